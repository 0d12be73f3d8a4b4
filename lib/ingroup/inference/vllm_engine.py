"""An engine with vLLM inside this process, for one GPU or several that share a model."""

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ingroup.inference.answers import LENGTH, STOP, EngineError, Reply, Sampling, failed
from ingroup.inference.local_engine import LocalEngine, Prompts
from ingroup.inference.scoring import AnswerTree, Floats

QUIET = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
# For trials of vLLM's CPU build, whose own block size caches nothing of short prompts, and which
# takes nearly all memory of the machine if it is given no number of GiB.
CPU_SETTINGS = {"block_size": 32, "enforce_eager": True}
CPU_VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "TORCH_COMPILE_DISABLE": "1",
}


class VLLMEngine(LocalEngine):
    """Offline vLLM with its prefix cache.

    Parameters
    ----------
    model : str
        A folder, or a name on the hub.
    gpus : int
        How many GPUs share the model. 0 is one.
    dtype : str
        As vLLM takes it.
    **rendering : str
        As in `LocalEngine`.
    """

    piece_size = 16_384

    def __init__(self, model: str, gpus: int = 0, dtype: str = "auto", **rendering: Any):
        self.on_cpu = not torch.cuda.is_available()
        variables = {**QUIET, **CPU_VARIABLES} if self.on_cpu else QUIET
        os.environ.update(variables | os.environ)
        super().__init__(model, **rendering)
        self.gpus = max(1, gpus)
        self.dtype = dtype

    def identity(self) -> dict[str, Any]:
        """Name the engine, its version, the model and its type.

        Returns
        -------
        dict
            Entries of a store's manifest.
        """
        import vllm

        about = {
            "engine": "vllm",
            "engine_version": vllm.__version__,
            "dtype": self.dtype,
            "gpus_of_model": self.gpus,
        }
        return about | super().identity()

    @cached_property
    def llm(self) -> Any:
        """Start vLLM with the model."""
        try:
            from vllm import LLM

            return LLM(
                str(self.folder),
                dtype=self.dtype,
                tensor_parallel_size=self.gpus,
                enable_prefix_caching=True,
                logprobs_mode="raw_logprobs",
                load_format="safetensors",
                use_tqdm_on_load=False,
                max_model_len=-1,  # what fits
                **CPU_SETTINGS if self.on_cpu else {},
            )
        except Exception as error:  # drivers, kernels and settings each raise their own
            raise EngineError(f"vLLM cannot start {self.model!r}: {error}") from error

    def _longest(self) -> int:
        return self.llm.model_config.max_model_len

    def _ask(self, prompts: Prompts, params: Any) -> list[Any]:
        """Ask vLLM for its outputs."""
        tokens = [{"prompt_token_ids": ids} for ids in prompts]
        return self.llm.generate(tokens, params, use_tqdm=False)

    def _write(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        from vllm import SamplingParams

        params = []
        for ids in prompts:
            of_prompt = SamplingParams(
                temperature=sampling.temperature or 0.0,
                top_p=sampling.top_p,
                max_tokens=sampling.max_tokens,
                seed=sampling.trial_seed(ids) if sampling.draws else None,
                detokenize=False,
            )
            params.append(of_prompt)

        replies = []
        for output in self._ask(prompts, params):
            written = output.outputs[0]
            if written.finish_reason not in (STOP, LENGTH):
                replies.append(failed(f"vLLM ended with {written.finish_reason!r}"))
                continue
            n_prompt_tokens = len(output.prompt_token_ids)
            reply = self._reply(written.token_ids, written.finish_reason, n_prompt_tokens)
            replies.append(reply)
        return replies

    def _log_probabilities(self, prompts: Prompts, tree: AnswerTree) -> list[Floats]:
        from vllm import SamplingParams

        looked_up = [self._looked_up(place) for place in tree.places]
        params = []
        for tokens in looked_up:
            params.append(SamplingParams(temperature=0, max_tokens=1, logprob_token_ids=tokens))
        # All places of a prompt stand together, so that its prefix is in the cache.
        extended = [[*ids, *place.path] for ids in prompts for place in tree.places]
        outputs = self._ask(extended, params * len(prompts))

        of_places: list[Sequence[Floats]] = []
        for number, tokens in enumerate(looked_up):
            values = []
            for output in outputs[number :: len(looked_up)]:
                logprobs = output.outputs[0].logprobs[0]
                values.append([logprobs[token].logprob for token in tokens])
            of_places.append(np.array(values))
        return of_places

    def close(self) -> None:
        """End vLLM's processes."""
        llm = self.__dict__.pop("llm", None)
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
