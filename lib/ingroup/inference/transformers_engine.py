"""Any Hugging Face causal language model, from a folder or from the hub."""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import torch
import transformers
from transformers import (
    DynamicCache,
    LogitsProcessorList,
    PreTrainedModel,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from ingroup.inference.engine import LENGTH, STOP, Reply, Sampling, trial_seed
from ingroup.inference.prompts import Bos, SystemRole
from ingroup.inference.weights import LocalEngine

# One bar is enough: that of the prompts.
transformers.utils.logging.disable_progress_bar()


class TransformersEngine(LocalEngine):
    """Batched generation on the first GPU, or else on the CPU; dtype "auto" is bfloat16 or float32.

    Code from the hub is never run, and only safetensors weights are read.
    """

    def __init__(
        self,
        model: str,
        batch_size: int = 64,
        system: SystemRole = "keep",
        bos: Bos = "template",
        dtype: str = "auto",
    ):
        self.batch_size = batch_size
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        own = "float32" if self.device == "cpu" else "bfloat16"
        self.dtype = own if dtype == "auto" else dtype
        about = {"engine": "transformers", "engine_version": transformers.__version__}
        about["dtype"] = self.dtype
        super().__init__(model, system, bos, about, padding_side="left")
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = self.tokenizer.eos_token_id

    @cached_property
    def _model(self) -> PreTrainedModel:
        model = self.weights.causal_model(dtype=getattr(torch, self.dtype))
        return model.to(self.device).eval()

    def complete(self, prompts: list[list[int]], sampling: Sampling) -> list[Reply]:
        """One reply a prompt (token ids), in order."""
        cut, model = list(batches(prompts, self.batch_size)), self._model
        replies: dict[int, Reply] = {}
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
                    replies |= zip(batch, found, strict=True)
        finally:
            torch.set_num_threads(cores)
        return [replies[place] for place in range(len(prompts))]

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


class FirstToken:
    """Listens to a generation: the most probable first tokens of each prompt.

    To let ``generate`` return its logits would keep those of every token, gigabytes of them.
    It is called before temperature and top_p are applied. ``top`` are, for each prompt, the ids of
    the ``number`` most probable tokens with the natural logarithm of their probability, most
    probable first.
    """

    def __init__(self, number: int):
        self.number = number
        self.top: list[list[tuple[int, float]]] = []

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        if not self.top:
            logprobs = torch.log_softmax(logits.float(), dim=-1)
            values, ids = logprobs.topk(min(self.number, logprobs.shape[-1]))
            self.top = [list(pairs) for pairs in map(zip, ids.tolist(), values.tolist())]
        return logits


class Draw:
    """Draws the tokens of each prompt with a random generator of its own.

    ``generate`` draws a whole batch from one stream, so that a reply depends on its neighbours.
    Here Gumbel noise is added to the logits after temperature and top_p, and the largest sum is a
    draw from their softmax (the Gumbel-max trick): greedy decoding then takes it.
    ``prompts`` are token ids, a list a row of the batch; the temperature is above 0.
    """

    def __init__(self, prompts: list[list[int]], sampling: Sampling, device: str):
        self.streams = [
            torch.Generator(device).manual_seed(trial_seed(sampling.seed, ids)) for ids in prompts
        ]
        self.warpers = [TemperatureLogitsWarper(sampling.temperature)]
        if sampling.top_p < 1:
            self.warpers.append(TopPLogitsWarper(sampling.top_p))

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        logits = logits.float()
        for warp in self.warpers:
            logits = warp(input_ids, logits)
        noise = torch.empty_like(logits)
        for row, stream in zip(noise, self.streams, strict=True):
            row.exponential_(generator=stream)
        return logits - noise.log()  # minus the logarithm of an exponential draw is Gumbel


def batches(prompts: list[list[int]], size: int) -> Iterator[tuple[list[int], int]]:
    """Cut prompts into batches of up to ``size`` that share a long prefix.

    In sorted order neighbours share the longest prefixes. A batch ends when it is full, or, once
    it is a quarter full, before a prompt that would more than halve the shared prefix: at the
    next persona, in the empathy-gap design. Each is its prompts' places, and how many first tokens
    they share: at least one token of each is left to compute.
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
