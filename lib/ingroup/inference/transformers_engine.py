"""An engine for any Hugging Face causal language model, from a folder or from the hub."""

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from typing import Any

import torch
import transformers
from transformers import DynamicCache, LogitsProcessorList, TemperatureLogitsWarper

from ingroup.design import Message
from ingroup.inference.choices import Tree
from ingroup.inference.engine import (
    FAILED,
    LENGTH,
    STOP,
    Bos,
    EngineError,
    Reply,
    Sampling,
    SystemRole,
)
from ingroup.inference.ledger import LedgerTrials
from ingroup.inference.prompts import Prompts, batches
from ingroup.inference.weights import NOT_FINITE, LocalEngine, scored_replies

# A batch of prompts to be scored may end early, for a longer shared prefix, from this size on.
LEAST_SCORED_PROMPTS = 4
BATCHES_PER_THREAD = 4  # in a group, after which the replies are kept

# One bar is enough: that of the prompts.
transformers.utils.logging.disable_progress_bar()


class TransformersEngine(LocalEngine):
    """Batched generation on the first GPU, or on the CPU.

    Parameters
    ----------
    model : str
        A folder, or a name on the hub.
    batch_size : int
        How many prompts are computed at once.
    system : {"keep", "fold", "plain"}
        As in :class:`ingroup.inference.prompts.Prompter`.
    bos : {"template", "released"}
        As in :class:`ingroup.inference.prompts.Prompter`.
    dtype : str
        The name of a type of PyTorch. "auto" is bfloat16 on a GPU, float32 on a CPU.
    reasoning : str
        As in :class:`ingroup.inference.prompts.Prompter`.

    Raises
    ------
    EngineError
        As :class:`ingroup.inference.weights.LocalEngine`.
    """

    def __init__(
        self,
        model: str,
        batch_size: int = 64,
        system: SystemRole = "keep",
        bos: Bos = "template",
        dtype: str = "auto",
        reasoning: str = "",
    ):
        self.batch_size = batch_size
        self.group_size = BATCHES_PER_THREAD * batch_size * torch.get_num_threads()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.dtype = dtype
        if dtype == "auto":
            self.dtype = "float32" if self.device == "cpu" else "bfloat16"
        about = {
            "engine": "transformers",
            "engine_version": transformers.__version__,
            "dtype": self.dtype,
        }
        super().__init__(model, system, bos, about, reasoning)

        # With padding on the left, the last token of each row is the prompt's.
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token_id = self.tokenizer.eos_token_id

    @cached_property
    def _model(self) -> transformers.PreTrainedModel:
        model = self.weights.causal_model(dtype=getattr(torch, self.dtype))
        return model.to(self.device).eval()

    keeps_each = True

    def answer_each(
        self,
        conversations: Sequence[Sequence[Message]],
        sampling: Sampling,
        keep: Callable[[int, Reply], None],
        ledger_trials: LedgerTrials | None = None,
    ) -> list[Reply]:
        """Return one reply to each conversation, some conversations at a time.

        Parameters
        ----------
        conversations : sequence
            The chats, each a sequence of turns.
        sampling : Sampling
            How replies are drawn.
        keep : callable
            Gets the index and the reply of each conversation, once its group is answered.
        ledger_trials : LedgerTrials, optional
            Not used. Only engines of servers need it.

        Returns
        -------
        list of Reply
            One reply per conversation, in order.

        Raises
        ------
        EngineError
            As :meth:`answer`.
        """
        replies: list[Reply] = []
        size = self.group_size
        for start in range(0, len(conversations), size):
            for reply in self.answer(conversations[start : start + size], sampling):
                keep(len(replies), reply)
                replies.append(reply)
        return replies

    def _free_replies(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        # A step costs little more for many prompts than for few, so small batches are avoided.
        least = max(1, self.batch_size // 4)
        return self._in_batches(prompts, least, partial(self._generate, sampling))

    def _scored(self, prompts: Prompts, sampling: Sampling, **options: Any) -> list[Reply]:
        """Score the choices after each answer prefix, for each prompt.

        A prompt on a CPU keeps its cache from prefix to prefix, so that it is computed once.
        """
        if len(sampling.leads) == 1 or self.device != "cpu":
            return super()._scored(prompts, sampling, **options)
        # This loads the model, before there are threads.
        config = self._model.config

        def score(ids: list[int]) -> Reply:
            cache = DynamicCache(config=config)
            (reply,) = super(TransformersEngine, self)._scored([ids], sampling, cache=cache)
            return reply

        with self._thread_pool(len(prompts)) as pool:
            return list(pool.map(score, prompts))

    def _scored_in_tree(
        self,
        prompts: Prompts,
        tree: Tree,
        choices: Sequence[str],
        cache: DynamicCache | None = None,
    ) -> list[Reply]:
        if cache is None or not prompts:
            return self._in_batches(
                prompts, LEAST_SCORED_PROMPTS, partial(self._score_batch, tree, choices)
            )

        cached_tokens = cache.get_seq_length()
        (reply,) = self._score_batch(tree, choices, prompts, cached_tokens, cache)
        # The next lead goes on behind this prompt: a negative number crops the tree's tokens off
        # the end.
        cache.crop(len(prompts[0]) - cache.get_seq_length())
        return [reply._replace(cached_tokens=cached_tokens)]

    def _longest_prompt(self) -> float:
        # This loads the model, before there are threads.
        config = self._model.config.get_text_config()
        return getattr(config, "max_position_embeddings", math.inf) - 1

    def _in_batches(self, prompts: Prompts, least: int, compute: Callable[..., list]) -> list:
        """Return the replies of ``compute`` to all prompts, in order.

        ``compute`` is given the prompts of a batch and the length of the prefix that they share.
        """
        order: list[int] = []
        parts = []
        shared_lengths = []
        for batch, shared in batches(prompts, self.batch_size, least):
            order += batch
            parts.append([prompts[index] for index in batch])
            shared_lengths.append(shared)

        with self._thread_pool(len(parts)) as pool:
            answers = chain.from_iterable(pool.map(compute, parts, shared_lengths))
            reply_of = dict(zip(order, answers, strict=True))
        return [reply_of[index] for index in range(len(prompts))]

    @contextmanager
    def _thread_pool(self, parts: int) -> Iterator[ThreadPoolExecutor]:
        """Yield a pool of threads for this many parts.

        The threads on a CPU share its cores. Parts side by side with one thread each take half the
        time of one part on all cores.
        """
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
        """Generate replies to prompts.
        Their first ``shared`` tokens are equal and computed once.
        """
        rest, prefix, past = self._split_prefix(prompts, shared)
        # Padding stands between the prefix and the rest; the mask hides it from both.
        ids = torch.cat([prefix, rest["input_ids"]], dim=1)
        mask = torch.cat([torch.ones_like(prefix), rest["attention_mask"]], dim=1)

        finite = FiniteLogits()
        processors = LogitsProcessorList([finite])
        if sampling.draws:
            processors.append(GumbelDraw(prompts, sampling, self.device))
        output = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=past,
            max_new_tokens=sampling.max_tokens,
            pad_token_id=self.tokenizer.pad_token_id,
            logits_processor=processors,
        )
        written = output[:, ids.shape[1] :].tolist()

        replies = []
        rows = zip(prompts, written, _cached_tokens(prompts, shared), finite.steps(), strict=True)
        for prompt, tokens, cached_tokens, is_finite in rows:
            reply = self._ended_reply(prompt, tokens, cached_tokens)
            if not all(is_finite[: reply.output_tokens]):
                reply = _not_finite_reply(reply)
            replies.append(reply)
        return replies

    def _split_prefix(
        self, prompts: Prompts, shared: int, past: DynamicCache | None = None
    ) -> tuple[transformers.BatchEncoding, torch.Tensor, DynamicCache | None]:
        """Split prompts into the tokens after their shared prefix, the prefix, and its cache.

        The tokens are padded on the left. The prefix is computed unless a cache (``past``) is
        given. The cache is None without a prefix.
        """
        rest = self.tokenizer.pad(
            {"input_ids": [prompt[shared:] for prompt in prompts]}, return_tensors="pt"
        )
        prefix = torch.tensor([prompts[0][:shared]], dtype=torch.long, device=self.device)
        if shared and past is None:
            past = DynamicCache(config=self._model.config)
            # The prefix needs no logits, so the head is left out.
            self._model.base_model(input_ids=prefix, past_key_values=past, use_cache=True)
            past.batch_repeat_interleave(len(prompts))
        return rest.to(self.device), prefix.expand(len(prompts), shared), past

    @torch.inference_mode()
    def _score_batch(
        self,
        tree: Tree,
        choices: Sequence[str],
        prompts: Prompts,
        shared: int,
        past: DynamicCache | None = None,
    ) -> list[Reply]:
        """Score the choices after each prompt, in one pass over prompts and tree together.

        The tokens of the tree stand after the prompt. Each of them sees the prompt and the tokens
        on its own path, as in tree attention for speculative decoding (Miao et al. 2024).
        """
        model = self._model
        rest, _, past = self._split_prefix(prompts, shared, past)
        prompt_ids = rest["input_ids"]
        n_prompts, length = prompt_ids.shape
        paths = _beginnings(tree)
        self._check_window(shared + length + len(paths))

        last_tokens = [path[-1] for path in paths]
        tree_ids = torch.tensor(last_tokens, dtype=torch.long, device=self.device)
        ids = torch.cat([prompt_ids, tree_ids.expand(n_prompts, -1)], dim=1)
        is_visible = attention_mask(rest["attention_mask"].bool(), shared, paths)
        # The new axis is that of the heads, which all have the same mask.
        is_hidden = (~is_visible[:, None]).to(model.dtype)

        # The logits behind a path are those of its last token, or of the prompt's last.
        position_of = {path: length + number for number, path in enumerate(paths)}
        position_of[()] = length - 1
        positions = [position_of[place.path] for place in tree.places]

        # Hidden tokens get the lowest finite number: a padding token may see nothing, and minus
        # infinity everywhere would give NaN.
        logits = model(
            input_ids=ids,
            attention_mask=is_hidden * torch.finfo(model.dtype).min,
            position_ids=(is_visible.sum(2) - 1).clamp(min=0),  # how many it sees before itself
            past_key_values=past,
            logits_to_keep=torch.tensor(positions, device=self.device),
        ).logits.float()
        total = logits.logsumexp(dim=-1, keepdim=True)

        steps = []
        for number, place in enumerate(tree.places):
            looked_up = place.ids_to_look_up(self._endings)
            log_probabilities = logits[:, number, looked_up] - total[:, number]
            steps.append(place.merge_ends(log_probabilities.cpu().numpy(), self._endings))
        return scored_replies(tree, steps, choices, _cached_tokens(prompts, shared))

    def _check_window(self, size: int) -> None:
        """Raise an EngineError if some layers look back over no more than ``size`` tokens."""
        window = getattr(self._model.config.get_text_config(), "sliding_window", None)
        if window and size >= window:
            raise EngineError(
                f"{self.weights.model!r} looks back {window} tokens in some layers, which is too "
                "little to score these prompts: ask with ENGINE=vllm"
            )

    def _ended_reply(self, prompt: list[int], ids: list[int], cached: int) -> Reply:
        """Make the reply up to its first end token, without the padding after it."""
        for number, token in enumerate(ids, start=1):
            if token in self._end_tokens:
                return self._reply(ids[:number], STOP, len(prompt), cached)
        return self._reply(ids, LENGTH, len(prompt), cached)

    def close(self) -> None:
        """Free the memory of the weights."""
        self.__dict__.pop("_model", None)
        gc.collect()
        if self.device == "cuda":
            torch.cuda.empty_cache()


def attention_mask(
    is_text: torch.Tensor, shared: int, paths: Sequence[tuple[int, ...]]
) -> torch.Tensor:
    """Make the attention mask of prompts that are each followed by a tree of answers.

    Parameters
    ----------
    is_text : Tensor of bool, shape (prompts, length)
        Whether each token after the shared prefix belongs to a prompt. The others are padding.
    shared : int
        Tokens of the prefix, whose keys and values are cached.
    paths : sequence of tuple of int
        One path (tokens from the root) for each token of the tree, in the order of the tokens.

    Returns
    -------
    Tensor of bool, shape (prompts, length + paths, shared + length + paths)
        Whether a token of the rest or of the tree (row) sees a token of the prefix, the rest or the
        tree (column). All see the prefix. A token of the rest also sees itself and the text before
        it. A token of the tree sees all text of the rest, and the tokens that its path begins with.
    """
    n_prompts, length = is_text.shape
    n_paths = len(paths)
    size = length + n_paths
    before_tree = shared + length
    everything = torch.ones(
        n_prompts,
        size,
        shared + size,
        dtype=torch.bool,
        device=is_text.device,
    )
    # The diagonal is moved by the prefix: each token sees that, itself and all before it.
    sees = everything.tril(shared)
    sees[:, :, shared:before_tree] &= is_text[:, None, :]

    on_path = []
    for path in paths:
        on_path.append([path[: len(other)] == other for other in paths])
    tree = torch.tensor(on_path, dtype=torch.bool, device=is_text.device)
    # Without any path the list has no second axis, which the mask needs.
    sees[:, length:, before_tree:] = tree.reshape(n_paths, n_paths)
    return sees


class FiniteLogits:
    """Record of whether the logits are finite, at each step and for each prompt of the batch.

    Only the largest logit is checked, because some models forbid a token by minus infinity. It is
    NaN if any logit is.
    """

    def __init__(self) -> None:
        self._is_finite: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        largest = logits.amax(dim=1)
        self._is_finite.append(largest.isfinite())
        return logits

    def steps(self) -> list[list[bool]]:
        """Return the record for each prompt.

        Returns
        -------
        list of list of bool
            For each prompt, whether the logits were finite at each step.
        """
        return torch.stack(self._is_finite, dim=1).tolist()


class GumbelDraw:
    """Draws of each prompt's tokens with a random generator of its own.

    ``generate`` draws a whole batch from one stream, so that a reply depends on its neighbours.
    Here Gumbel noise is added to the logits after temperature and top_p. The largest sum is a draw
    from their softmax (the Gumbel-max trick), and greedy decoding takes it.

    Parameters
    ----------
    prompts : list of list of int
        Token ids, one list for each row of the batch.
    sampling : Sampling
        Temperature (above 0), top_p and seed.
    device : str
        Where the logits are.
    """

    def __init__(self, prompts: Prompts, sampling: Sampling, device: str):
        self.streams = []
        for ids in prompts:
            stream = torch.Generator(device)
            stream.manual_seed(sampling.trial_seed(ids))
            self.streams.append(stream)

        assert sampling.temperature is not None  # sampling.draws
        self.warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
        if sampling.top_p < 1:
            self.warpers.append(transformers.TopPLogitsWarper(sampling.top_p))

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        logits = self.warpers(input_ids, logits.float())
        noise = torch.empty_like(logits)
        for row, stream in zip(noise, self.streams, strict=True):
            row.exponential_(generator=stream)
        # Minus the logarithm of an exponential draw is Gumbel.
        return logits - noise.log()


def _not_finite_reply(reply: Reply) -> Reply:
    """Make the failed call in place of a reply whose logits were not finite."""
    return Reply(None, FAILED, reply.prompt_tokens, reply.cached_tokens, error=NOT_FINITE)


def _cached_tokens(prompts: Sequence, shared: int) -> list[int]:
    """Count the tokens that each prompt of a batch did not have to compute."""
    # The prefix is computed for the first prompt.
    return [0] + [shared] * (len(prompts) - 1)


def _beginnings(tree: Tree) -> list[tuple[int, ...]]:
    """List all beginnings of the paths to a tree's places, sorted.

    A pass computes the last token of each beginning.
    """
    beginnings = set()
    for place in tree.places:
        for length in range(1, len(place.path) + 1):
            beginnings.add(place.path[:length])
    return sorted(beginnings)
