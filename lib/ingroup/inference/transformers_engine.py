"""An engine for any causal model of transformers, on a CPU or the first GPU."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
import transformers
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    GenerationConfig,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from ingroup.inference.answers import LENGTH, STOP, EngineError, Reply, Sampling
from ingroup.inference.local_engine import LocalEngine, Prompts
from ingroup.inference.scoring import AnswerTree, Floats, common_length

ENDLESS = 2**31  # tokens, of a model that names no limit


class TransformersEngine(LocalEngine):
    """Batches of prompts, each padded on its left.

    Parameters
    ----------
    model : str
        A folder, or a name on the hub.
    batch_size : int
        Prompts that are computed at once. Scored prompts take a fourth of it.
    dtype : str
        A type of PyTorch. "auto" is float32 on a CPU and bfloat16 on a GPU.
    **rendering : str
        As in `LocalEngine`.
    """

    def __init__(self, model: str, batch_size: int = 64, dtype: str = "auto", **rendering: Any):
        super().__init__(model, **rendering)
        self.batch_size = batch_size
        self.piece_size = batch_size * torch.get_num_threads()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.dtype = dtype
        if dtype == "auto":
            self.dtype = "float32" if self.device == "cpu" else "bfloat16"
        self.tokenizer.padding_side = "left"
        self.tokenizer.pad_token = self.tokenizer.pad_token or self.tokenizer.eos_token

    def identity(self) -> dict[str, Any]:
        """Name the engine, its version, the model and its type.

        Returns
        -------
        dict
            Entries of a store's manifest.
        """
        about = {
            "engine": "transformers",
            "engine_version": transformers.__version__,
            "dtype": self.dtype,
        }
        return about | super().identity()

    @cached_property
    def _model(self) -> transformers.PreTrainedModel:
        """Load the model. Refuse files that lack a tensor, which would be random."""
        # Its bar would stand in the middle of that of the answers.
        transformers.utils.logging.disable_progress_bar()
        dtype = getattr(torch, self.dtype)
        model, info = AutoModelForCausalLM.from_pretrained(
            self.folder, dtype=dtype, output_loading_info=True
        )
        for lacking in sorted(info["missing_keys"]):
            raise EngineError(f"the files of {self.model!r} lack the tensor {lacking}")
        # Other defaults of the model (penalties, beams) are not applied by the other engines.
        model.generation_config = GenerationConfig(eos_token_id=self._ends)
        return model.to(self.device).eval()

    def _longest(self) -> int:
        config = self._model.config.get_text_config()
        return getattr(config, "max_position_embeddings", ENDLESS)

    def _in_batches(self, prompts: Prompts, size: int, compute: Callable[..., Sequence]) -> list:
        """Compute prompts in batches of neighbours, and return the results in their order."""
        n_prompts = len(prompts)
        order = sorted(range(n_prompts), key=prompts.__getitem__)
        starts = range(0, n_prompts, size)
        batches = [order[start : start + size] for start in starts]
        parts = [[prompts[row] for row in batch] for batch in batches]
        # Batches side by side, with one thread each, use all cores better than one after another.
        cores = torch.get_num_threads()
        workers = min(cores, len(batches)) if self.device == "cpu" else 1
        self._longest()
        torch.set_num_threads(cores // workers)
        try:
            with ThreadPoolExecutor(workers) as pool:
                results = list(pool.map(compute, parts))
        finally:
            torch.set_num_threads(cores)

        by_row = {}
        for batch, part in zip(batches, results, strict=True):
            pairs = zip(batch, part, strict=True)
            by_row.update(pairs)
        return [by_row[row] for row in range(n_prompts)]

    def _begin(self, prompts: Prompts) -> tuple[torch.Tensor, torch.Tensor, DynamicCache]:
        """Compute the beginning that sorted prompts share, once for all of them.

        Return their token ids and mask, padded on the left behind it, and its cache.
        """
        # The first and the last of sorted prompts differ most. One token must be left to compute.
        common = common_length(prompts[0], prompts[-1])
        shortest = min(map(len, prompts))
        shared = min(common, shortest - 1)
        rest = {"input_ids": [prompt[shared:] for prompt in prompts]}
        padded = self.tokenizer.pad(rest, return_tensors="pt").to(self.device)
        first = [prompts[0][:shared]]
        beginning = torch.tensor(first, dtype=torch.long, device=self.device)

        cache = DynamicCache(config=self._model.config)
        if shared:
            self._model.base_model(input_ids=beginning, past_key_values=cache, use_cache=True)
            cache.batch_repeat_interleave(len(prompts))
        beginning = beginning.expand(len(prompts), shared)
        seen = torch.ones_like(beginning)
        ids = torch.cat([beginning, padded["input_ids"]], dim=1)
        mask = torch.cat([seen, padded["attention_mask"]], dim=1)
        return ids, mask, cache

    def _write(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        generate = partial(self._generate, sampling)
        return self._in_batches(prompts, self.batch_size, generate)

    @torch.inference_mode()
    def _generate(self, sampling: Sampling, prompts: Prompts) -> list[Reply]:
        """Generate the replies to one batch."""
        ids, mask, cache = self._begin(prompts)
        processors = LogitsProcessorList()
        if sampling.draws:
            processors.append(SeededDraw(prompts, sampling, self.device))

        output = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            max_new_tokens=sampling.max_tokens,
            pad_token_id=self.tokenizer.pad_token_id,
            logits_processor=processors,
        )
        replies = []
        written = output[:, ids.shape[1] :].tolist()
        for tokens, prompt in zip(written, prompts, strict=True):
            replies.append(self._ended(tokens, len(prompt)))
        return replies

    def _ended(self, ids: list[int], n_prompt_tokens: int) -> Reply:
        """Make the reply up to its first end token."""
        for length, token in enumerate(ids, start=1):
            if token in self._ends:
                return self._reply(ids[:length], STOP, n_prompt_tokens)
        return self._reply(ids, LENGTH, n_prompt_tokens)

    def _log_probabilities(self, prompts: Prompts, tree: AnswerTree) -> list[Floats]:
        size = max(1, self.batch_size // 4)
        score = partial(self._score_batch, tree)
        rows = self._in_batches(prompts, size, score)
        columns = zip(*rows, strict=True)
        return [np.stack(values) for values in columns]

    @torch.inference_mode()
    def _score_batch(self, tree: AnswerTree, prompts: Prompts) -> list[list[Floats]]:
        """Compute a batch once, then all beginnings of answers behind its cache."""
        ids, mask, cache = self._begin(prompts)
        numbers = mask.cumsum(dim=1) - 1
        positions = numbers.clamp(min=0)
        begun = cache.get_seq_length()
        output = self._model(
            input_ids=ids[:, begun:],
            attention_mask=mask,
            position_ids=positions[:, begun:],
            past_key_values=cache,
            logits_to_keep=1,
        )
        logits = [output.logits[:, -1]]
        deeper = [place.path for place in tree.places[1:]]
        if deeper:
            logits += self._behind_cache(mask, cache, deeper)

        of_places = []
        for place, values in zip(tree.places, logits, strict=True):
            normed = values.float().log_softmax(dim=-1)
            looked_up = normed[:, self._looked_up(place)]
            of_places.append(looked_up.double().cpu().numpy())
        return list(zip(*of_places, strict=True))

    def _behind_cache(
        self, mask: torch.Tensor, cache: DynamicCache, paths: Sequence[tuple[int, ...]]
    ) -> list[torch.Tensor]:
        """Compute the logits behind each path for each prompt of a cache."""
        n_prompts, n_paths = len(mask), len(paths)
        length = max(map(len, paths))
        # Padding stands behind a path, where no token of the path sees it.
        padded = []
        for path in paths:
            padding = [path[-1]] * (length - len(path))
            padded.append([*path, *padding])
        of_prompt = torch.tensor(padded, device=self.device)
        ids = of_prompt.repeat(n_prompts, 1)

        cache.batch_repeat_interleave(n_paths)
        beginning = mask.repeat_interleave(n_paths, dim=0)
        of_paths = torch.ones_like(ids)
        seen = torch.cat([beginning, of_paths], dim=1)
        numbers = seen.cumsum(dim=1) - 1
        positions = numbers[:, -length:]

        logits = self._model(
            input_ids=ids, attention_mask=seen, position_ids=positions, past_key_values=cache
        ).logits
        logits = logits.reshape(n_prompts, n_paths, length, -1)
        behind = []
        for number, path in enumerate(paths):
            last = len(path) - 1
            behind.append(logits[:, number, last])
        return behind

    def close(self) -> None:
        """Free the memory of the weights."""
        self.__dict__.pop("_model", None)
        torch.cuda.empty_cache()


class SeededDraw:
    """A logits processor that draws each prompt's tokens with a generator of its own.

    Greedy decoding of logits plus Gumbel noise is a draw from their softmax.

    Parameters
    ----------
    prompts : sequence of list of int
        The prompts of the batch.
    sampling : Sampling
        Temperature, top_p and seed.
    device : str
        Where the logits are.
    """

    def __init__(self, prompts: Prompts, sampling: Sampling, device: str):
        self.warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
        if sampling.top_p < 1:
            self.warpers.append(TopPLogitsWarper(sampling.top_p))
        self.generators = []
        for prompt in prompts:
            generator = torch.Generator(device)
            generator.manual_seed(sampling.trial_seed(prompt))
            self.generators.append(generator)

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        logits = self.warpers(input_ids, logits.float())
        noise = torch.empty_like(logits)
        for row, generator in zip(noise, self.generators, strict=True):
            row.exponential_(generator=generator)
        return logits - noise.log()
