"""Any Hugging Face causal language model, from a folder or from the hub."""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain

import torch
import transformers
from transformers import DynamicCache, LogitsProcessorList, TemperatureLogitsWarper

from ingroup.design import Message
from ingroup.inference.choices import Tree
from ingroup.inference.engine import FAILED, LENGTH, STOP, EngineError, Reply, Sampling
from ingroup.inference.ledger import Asked
from ingroup.inference.prompts import Bos, Prompts, SystemRole, batches
from ingroup.inference.weights import NOT_FINITE, LocalEngine, weighed

LEAST = 4  # prompts to a batch over choices, before it may end for the sake of the prefix
BATCHES = 4  # a thread, from one time that replies are kept to the next

# One bar is enough: that of the prompts.
transformers.utils.logging.disable_progress_bar()


class TransformersEngine(LocalEngine):
    """Batched generation on the first GPU (dtype "auto" is bfloat16), or on the CPU (float32)."""

    def __init__(
        self, model: str, batch_size: int = 64, system: SystemRole = "keep",
        bos: Bos = "template", dtype: str = "auto", reasoning: str = "",
    ):  # fmt: skip
        self.batch_size = batch_size
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        own = "float32" if self.device == "cpu" else "bfloat16"
        self.dtype = own if dtype == "auto" else dtype
        about = {"engine": "transformers", "engine_version": transformers.__version__}
        about["dtype"] = self.dtype
        super().__init__(model, system, bos, about, reasoning)
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = self.tokenizer.eos_token_id

    @cached_property
    def _model(self) -> transformers.PreTrainedModel:
        model = self.weights.causal_model(dtype=getattr(torch, self.dtype))
        return model.to(self.device).eval()

    keeps_each = True

    def answer_each(
        self, conversations: Sequence[Sequence[Message]], sampling: Sampling,
        keep: Callable[[int, Reply], None], asked: Asked | None = None,
    ) -> list[Reply]:  # fmt: skip
        """:meth:`answer`, some at a time: ``keep`` gets the place and reply of each of them."""
        replies: list[Reply] = []
        size = BATCHES * self.batch_size * torch.get_num_threads()
        for start in range(0, len(conversations), size):
            for reply in self.answer(conversations[start : start + size], sampling):
                keep(len(replies), reply)
                replies.append(reply)
        return replies

    def _written(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        least = max(1, self.batch_size // 4)  # a step costs little more for many than for few
        return self._in_batches(prompts, least, partial(self._generate, sampling))

    def _chosen(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Behind several leads each prompt goes on from its own cache: it is computed once."""
        if len(sampling.leads) == 1 or self.device != "cpu":
            return super()._chosen(prompts, sampling)
        config = self._model.config  # loads it, before there are threads

        def one(ids: list[int]) -> Reply:
            own = DynamicCache(config=config)
            (reply,) = super(TransformersEngine, self)._chosen([ids], sampling, own=own)
            return reply

        with self._threads(len(prompts)) as pool:
            return list(pool.map(one, prompts))

    def _weighed(
        self, prompts: Prompts, tree: Tree, choices: Sequence[str], own: DynamicCache | None = None
    ) -> list[Reply]:
        if own is None or not prompts:
            return self._in_batches(prompts, LEAST, partial(self._weigh, tree, choices))
        known = own.get_seq_length()
        (found,) = self._weigh(tree, choices, prompts, known, own)
        own.crop(len(prompts[0]) - own.get_seq_length())  # without the tree's tokens
        return [found._replace(cached_tokens=known)]

    def _longest(self) -> float:
        config = self._model.config.get_text_config()  # loads it, before there are threads
        return getattr(config, "max_position_embeddings", math.inf) - 1

    def _in_batches(self, prompts: Prompts, least: int, compute: Callable[..., list]) -> list:
        """What ``compute`` makes of batches (prompts, length of their shared prefix), in order."""
        cut = list(batches(prompts, self.batch_size, least))
        parts = [[prompts[place] for place in batch] for batch, _ in cut]
        with self._threads(len(cut)) as pool:
            answers = chain(*pool.map(compute, parts, [shared for _, shared in cut]))
        found = dict(zip(chain(*(batch for batch, _ in cut)), answers, strict=True))
        return [found[place] for place in range(len(prompts))]

    @contextmanager
    def _threads(self, parts: int) -> Iterator[ThreadPoolExecutor]:
        """On a CPU parts side by side, a thread each, are twice as fast as one on many threads."""
        cores = torch.get_num_threads()
        workers = max(1, min(cores, parts)) if self.device == "cpu" else 1
        torch.set_num_threads(max(1, cores // workers))
        try:
            with ThreadPoolExecutor(workers) as pool:
                yield pool
        finally:
            torch.set_num_threads(cores)

    @torch.inference_mode()
    def _generate(self, sampling: Sampling, prompts: Prompts, shared: int) -> list[Reply]:
        """Replies to prompts whose first ``shared`` tokens are the same and computed once."""
        rest, prefix, past = self._begin(prompts, shared)
        # Padding stands between the prefix and the rest; the mask hides it from both.
        ids = torch.cat([prefix, rest["input_ids"]], dim=1)
        mask = torch.cat([torch.ones_like(prefix), rest["attention_mask"]], dim=1)
        finite = Finite()
        draw = [Draw(prompts, sampling, self.device)] if sampling.draws else []
        output = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=past,
            max_new_tokens=sampling.max_tokens,
            pad_token_id=self.tokenizer.pad_token_id,
            logits_processor=LogitsProcessorList([finite, *draw]),
        )
        written = output[:, ids.shape[1] :].tolist()
        replies = map(self._ended, prompts, written, _cached(prompts, shared))
        return [
            reply if all(steps[: reply.output_tokens]) else _not_finite(reply)
            for reply, steps in zip(replies, finite.steps(), strict=True)
        ]

    def _begin(
        self, prompts: Prompts, shared: int, past: DynamicCache | None = None
    ) -> tuple[transformers.BatchEncoding, torch.Tensor, DynamicCache | None]:
        """What follows the shared prefix, padded on the left; the prefix, a row each; its cache."""
        rest = self.tokenizer.pad(
            {"input_ids": [prompt[shared:] for prompt in prompts]}, return_tensors="pt"
        ).to(self.device)
        prefix = torch.tensor([prompts[0][:shared]], dtype=torch.long, device=self.device)
        if shared and past is None:
            past = DynamicCache(config=self._model.config)
            self._model.base_model(input_ids=prefix, past_key_values=past, use_cache=True)
            past.batch_repeat_interleave(len(prompts))
        return rest, prefix.expand(len(prompts), shared), past

    @torch.inference_mode()
    def _weigh(
        self, tree: Tree, choices: Sequence[str], prompts: Prompts, shared: int,
        past: DynamicCache | None = None,
    ) -> list[Reply]:  # fmt: skip
        """Probabilities over choices, in one pass over prompts and tree together.

        The tokens of the tree stand behind the prompt, and each sees the prompt and the tokens on
        its own path (as in tree attention for speculative decoding, Miao et al. 2024).
        """
        model = self._model
        rest, _, past = self._begin(prompts, shared, past)
        ids, there = rest["input_ids"], rest["attention_mask"].bool()
        number, length = ids.shape
        paths = sorted({p.path[:n] for p in tree.places for n in range(1, len(p.path) + 1)})
        tail = torch.tensor([path[-1] for path in paths], dtype=torch.long, device=self.device)
        # Which token sees which: all the prefix; of the rest, what is no padding and not behind it.
        size = length + len(paths)
        window = getattr(model.config.get_text_config(), "sliding_window", None)
        if window and shared + size >= window:
            raise EngineError(
                f"{self.weights.model!r} looks back {window} tokens in some layers, which is too "
                "little for these prompts over choices: ask with ENGINE=vllm"
            )
        seen = torch.ones(number, size, shared + size, dtype=torch.bool, device=self.device)
        seen = seen.tril(shared)
        seen[:, :, shared : shared + length] &= there[:, None, :]
        own = [[path[: len(other)] == other for other in paths] for path in paths]
        own = torch.tensor(own, dtype=torch.bool, device=self.device)
        seen[:, length:, shared + length :] = own.reshape(len(paths), len(paths))
        mask = (~seen[:, None]).to(model.dtype) * torch.finfo(model.dtype).min
        kept = [length - 1 + [(), *paths].index(place.path) for place in tree.places]
        logits = model(
            input_ids=torch.cat([ids, tail.expand(number, -1)], dim=1),
            attention_mask=mask,
            position_ids=(seen.sum(2) - 1).clamp(min=0),  # how many it sees before itself
            past_key_values=past,
            logits_to_keep=torch.tensor(kept, device=self.device),
        ).logits.float()
        total = logits.logsumexp(dim=-1, keepdim=True)
        steps = []
        for number, place in enumerate(tree.places):
            asked = logits[:, number, place.looked_up(self._endings)] - total[:, number]
            steps.append(place.steps(asked.cpu().numpy(), self._endings))
        return weighed(tree, steps, choices, _cached(prompts, shared))

    def _ended(self, prompt: list[int], ids: list[int], cached: int) -> Reply:
        """The reply up to its first end token, without the padding behind it."""
        ends = [place for place, token in enumerate(ids) if token in self._end_tokens]
        length = ends[0] + 1 if ends else len(ids)
        return self._reply(ids[:length], STOP if ends else LENGTH, len(prompt), cached)

    def close(self) -> None:
        """Give the memory of the weights back."""
        self.__dict__.pop("_model", None)
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()


class Finite:
    """Notes at each step, and for each prompt of the batch, whether the logits are numbers.

    Some models forbid a token by minus infinity, so that the largest logit counts; it is NaN where
    any is.
    """

    def __init__(self) -> None:
        self._noted: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        largest = logits.amax(dim=1)
        self._noted.append(largest.isfinite())
        return logits

    def steps(self) -> list[list[bool]]:
        """What was noted: a list a prompt."""
        return torch.stack(self._noted, dim=1).tolist()


class Draw:
    """Draws the tokens of each prompt with a random generator of its own.

    ``generate`` draws a whole batch from one stream, so that a reply depends on its neighbours.
    Here Gumbel noise is added to the logits after temperature and top_p, and the largest sum is a
    draw from their softmax (the Gumbel-max trick): greedy decoding then takes it.
    ``prompts`` are token ids, a list a row of the batch; the temperature is above 0.
    """

    def __init__(self, prompts: Prompts, sampling: Sampling, device: str):
        self.streams = [
            torch.Generator(device).manual_seed(sampling.trial_seed(ids)) for ids in prompts
        ]
        self.warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
        if sampling.top_p < 1:
            self.warpers.append(transformers.TopPLogitsWarper(sampling.top_p))

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        logits = self.warpers(input_ids, logits.float())
        noise = torch.empty_like(logits)
        for row, stream in zip(noise, self.streams, strict=True):
            row.exponential_(generator=stream)
        return logits - noise.log()  # minus the logarithm of an exponential draw is Gumbel


def _not_finite(reply: Reply) -> Reply:
    """The failed call in place of a reply whose logits were not finite."""
    return Reply(None, FAILED, reply.prompt_tokens, reply.cached_tokens, error=NOT_FINITE)


def _cached(prompts: Sequence, shared: int) -> list[int]:
    """Tokens that each prompt of a batch did not have to compute: the first pays for the prefix."""
    return [0] + [shared] * (len(prompts) - 1)
