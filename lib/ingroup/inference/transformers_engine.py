"""Any Hugging Face causal language model, from a folder or from the hub."""

import gc
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import torch
import transformers
from transformers import AutoTokenizer, DynamicCache, LogitsProcessorList, PreTrainedModel

from ingroup.design import Message
from ingroup.inference.engine import LENGTH, STOP, Reply, Sampling
from ingroup.inference.logits import Draw, FirstToken, reply_text, token_text
from ingroup.inference.prompts import Bos, Prompter, SystemRole
from ingroup.inference.weights import Weights

# One bar is enough: that of the prompts.
transformers.utils.logging.disable_progress_bar()


class TransformersEngine:
    """Batched generation with transformers; weights are loaded at the first question.

    The model is a folder or a name on the hub: code from there is never run, and only safetensors
    weights are read. Its dtype is bfloat16 on the first GPU where there is one, else float32 on the
    CPU. ``system`` and ``bos`` are those of :class:`ingroup.inference.prompts.Prompter`.
    EngineError where the model cannot be found or its chat template does not fit.
    """

    asks_again = False

    def __init__(
        self,
        model: str,
        batch_size: int = 64,
        system: SystemRole = "keep",
        bos: Bos = "template",
        dtype: str | None = None,
    ):
        self.batch_size = batch_size
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.dtype = dtype or ("float32" if self.device == "cpu" else "bfloat16")
        self.weights = Weights(model)
        self.tokenizer = self.weights.load(AutoTokenizer.from_pretrained, padding_side="left")
        self.prompter = Prompter(self.tokenizer, system, bos)
        self._token_text, self._reply_text = token_text(self.tokenizer), reply_text(self.tokenizer)
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = self.tokenizer.eos_token_id

    @cached_property
    def _model(self) -> PreTrainedModel:
        model = self.weights.causal_model(dtype=getattr(torch, self.dtype))
        return model.to(self.device).eval()

    def identity(self) -> dict[str, str]:
        """Engine, version, model, its commit or hash, template, dtype."""
        return {
            "engine": "transformers",
            "engine_version": transformers.__version__,
            **self.weights.identity(),
            "dtype": self.dtype,
            **self.prompter.identity(),
        }

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in order."""
        return self.complete(self.prompter.batch(conversations), sampling)

    def complete(self, prompts: list[list[int]], sampling: Sampling) -> list[Reply]:
        """See :class:`ingroup.inference.engine.LocalEngine`."""
        cut, model = list(batches(prompts, self.batch_size)), self._model
        replies: list[Reply | None] = [None] * len(prompts)
        # On a CPU many batches side by side, a thread each, are twice as fast as one batch on
        # many threads.
        cores = torch.get_num_threads()
        workers = max(1, min(cores, len(cut))) if self.device == "cpu" else 1
        torch.set_num_threads(max(1, cores // workers))
        try:
            with ThreadPoolExecutor(workers) as pool:
                asked = [([prompts[i] for i in batch], shared) for batch, shared in cut]
                answers = pool.map(lambda part: self._generate(model, *part, sampling), asked)
                for (batch, _), found in zip(cut, answers, strict=True):
                    for i, reply in zip(batch, found, strict=True):
                        replies[i] = reply
        finally:
            torch.set_num_threads(cores)
        return replies

    @torch.inference_mode()
    def _generate(
        self, model: PreTrainedModel, prompts: list[list[int]], shared: int, sampling: Sampling
    ) -> list[Reply]:
        """Replies to prompts whose first ``shared`` tokens are the same and computed once."""
        rest = self.tokenizer.pad(
            {"input_ids": [prompt[shared:] for prompt in prompts]}, return_tensors="pt"
        ).to(self.device)
        prefix = torch.tensor([prompts[0][:shared]], dtype=torch.long, device=self.device)
        past = None
        if shared:
            past = DynamicCache(config=model.config)
            model.base_model(input_ids=prefix, past_key_values=past, use_cache=True)
            past.batch_repeat_interleave(len(prompts))
        prefix = prefix.expand(len(prompts), shared)
        # Padding stands between the prefix and the rest; the mask hides it from both.
        ids = torch.cat([prefix, rest["input_ids"]], dim=1)
        mask = torch.cat([torch.ones_like(prefix), rest["attention_mask"]], dim=1)
        first = FirstToken(sampling.logprobs)
        listeners = [first] if sampling.logprobs else []
        if sampling.temperature > 0:
            listeners.append(Draw(prompts, sampling, self.device))
        output = model.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=past,
            max_new_tokens=sampling.max_tokens,
            pad_token_id=self.tokenizer.pad_token_id,
            logits_processor=LogitsProcessorList(listeners),
        )
        written = output[:, ids.shape[1] :].tolist()
        top = first.top or [[]] * len(prompts)
        # The first prompt of a batch pays for the prefix.
        cached = [0] + [shared] * (len(prompts) - 1)
        return list(map(self._reply, prompts, written, cached, top))

    def _reply(
        self, prompt: list[int], ids: list[int], cached: int, top: list[tuple[int, float]]
    ) -> Reply:
        ends = [place for place, token in enumerate(ids) if token in self._end_tokens]
        length = ends[0] + 1 if ends else len(ids)
        return Reply(
            text=self._reply_text(tuple(ids[:length])),
            finish_reason=STOP if ends else LENGTH,
            prompt_tokens=len(prompt),
            cached_tokens=cached,
            output_tokens=length,
            top_logprobs=tuple((self._token_text(token), number) for token, number in top),
        )

    @cached_property
    def _end_tokens(self) -> set[int]:
        ends = self._model.generation_config.eos_token_id
        return set(ends if isinstance(ends, list) else [ends])

    def close(self) -> None:
        """Give the memory of the weights back."""
        self.__dict__.pop("_model", None)
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()


def batches(prompts: list[list[int]], size: int) -> Iterator[tuple[list[int], int]]:
    """Cut prompts into batches of up to ``size`` that share a long prefix.

    In sorted order neighbours share the longest prefixes. A batch ends when it is full, or, once
    it is a quarter full, before a prompt that would more than halve the shared prefix: at the
    next persona, in the empathy-gap design.

    Yields
    ------
    list of int, int
        Places of the batch's prompts, and how many first tokens they share: at least one token
        of each is left to compute.
    """
    batch: list[int] = []
    shared = 0
    for place in sorted(range(len(prompts)), key=prompts.__getitem__):
        common = _common(prompts[batch[0]], prompts[place]) if batch else len(prompts[place]) - 1
        common = min(common, shared) if batch else common
        if len(batch) == size or (len(batch) >= size // 4 and 2 * common < shared):
            yield batch, shared
            batch, common = [], len(prompts[place]) - 1
        batch.append(place)
        shared = common
    if batch:
        yield batch, shared


def _common(a: list[int], b: list[int]) -> int:
    """Length of the common prefix, leaving at least one token of each."""
    longest = min(len(a), len(b)) - 1
    return next((i for i in range(longest) if a[i] != b[i]), longest)
