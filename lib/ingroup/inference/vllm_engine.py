"""An engine with vLLM inside this process: one GPU or several, and millions of short replies."""

import gc
import math
import os
from collections.abc import Sequence
from functools import cached_property, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

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
from ingroup.inference.prompts import Prompts
from ingroup.inference.weights import NOT_FINITE, LocalEngine, scored_replies

if TYPE_CHECKING:
    from vllm import LLM, CompletionOutput, RequestOutput

# vLLM reads these when it is imported, or later. What the user has set stays.
ENVIRONMENT = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    # float32 means float32: without it, attention of float32 is computed in TF32 on a GPU.
    "TRITON_F32_DEFAULT": "ieee",
}
CPU_ENVIRONMENT = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1"}  # GiB
# The CPU build takes no smaller block, and its default of 128 caches nothing of a short prompt.
CPU_BLOCK = 32
CPU_SEQUENCES = 256  # prompts in work at once
GPU_SEQUENCES = 1024
TOKENS_A_SEQUENCE = 16  # computed in one step, on average
MOST_LOOKED_UP = 128  # of which vLLM gives the log-probabilities at one position


class VLLMEngine(LocalEngine):
    """Offline vLLM with its prefix cache on.

    Neighbours of a design share the longest prefixes, so the order of the prompts is kept. The
    cache then saves most tokens even if it is far smaller than the design.

    A GPU has 1,024 prompts in work at once and a CPU 256, with 16 tokens of each computed in one
    step on average. A reply of one to three tokens leaves after as many steps, so that the number
    of prompts that enter limits the speed. A prompt is as long as model and memory allow. A longer
    prompt fails alone.

    Each scored reply is checked for logits that are not finite. Free text is checked in the first
    batch alone. The check needs log-probabilities, which take 15 to 25 % more CPU time for tiny
    replies.

    Parameters
    ----------
    model : str
        As in :class:`ingroup.inference.weights.LocalEngine`.
    system : {"keep", "fold", "plain"}
        As in :class:`ingroup.inference.weights.LocalEngine`.
    bos : {"template", "released"}
        As in :class:`ingroup.inference.weights.LocalEngine`.
    tensor_parallel_size : int
        How many GPUs share the model.
    dtype : str
        "auto" is float32 on a CPU. On a GPU it is vLLM's choice: the checkpoint's own 16-bit type,
        and a 16-bit type for a checkpoint in float32.
    reasoning : str
        As in :class:`ingroup.inference.weights.LocalEngine`.

    Raises
    ------
    EngineError
        As in :class:`ingroup.inference.weights.LocalEngine`, and where vLLM is missing or broken.
    """

    def __init__(
        self,
        model: str,
        system: SystemRole = "keep",
        bos: Bos = "template",
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        reasoning: str = "",
    ):
        # The check that leaves CUDA alone: vLLM's own processes could not start it after the other.
        os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
        self.on_cpu = not torch.cuda.is_available()
        self.vllm = _import(self.on_cpu)
        self._seed = 0
        self._gpus = tensor_parallel_size
        self._dtype = "float32" if self.on_cpu and dtype == "auto" else dtype

        about = {
            "engine": "vllm",
            "engine_version": self.vllm.__version__,
            "dtype": self._dtype,
            "tensor_parallel_size": str(tensor_parallel_size),
        }
        super().__init__(model, system, bos, about, reasoning)

    @cached_property
    def llm(self) -> "LLM":
        """Start vLLM with the model loaded, once.

        Returns
        -------
        LLM
            The engine of vLLM.

        Raises
        ------
        EngineError
            Where vLLM cannot start, or a tensor is missing.
        """
        # vLLM would not notice that the files lack a tensor; on the meta device the check takes no
        # memory.
        self.weights.causal_model(device_map={"": "meta"})
        sequences = CPU_SEQUENCES if self.on_cpu else GPU_SEQUENCES

        try:
            return self.vllm.LLM(
                str(self.weights.folder),
                trust_remote_code=False,
                load_format="safetensors",
                use_tqdm_on_load=False,
                enable_prefix_caching=True,
                logprobs_mode="raw_logprobs",  # before temperature and top_p
                seed=self._seed,
                dtype=self._dtype,
                block_size=CPU_BLOCK if self.on_cpu else None,  # None: vLLM's own
                enforce_eager=self.on_cpu,
                tensor_parallel_size=self._gpus,
                max_num_seqs=sequences,
                max_num_batched_tokens=TOKENS_A_SEQUENCE * sequences,
                max_model_len=-1,  # what fits
            )
        except Exception as error:  # drivers, kernels and settings each raise their own
            raise EngineError(
                f"vLLM cannot start {self.weights.model!r}: {_reason(error)}"
            ) from error

    def complete(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        """Return one reply to each prompt, in order.

        Parameters
        ----------
        prompts : list of list of int
            Token ids, one list for each prompt.
        sampling : Sampling
            How replies are drawn.

        Returns
        -------
        list of Reply
            One reply per prompt.

        Raises
        ------
        EngineError
            vLLM cannot start, or as in :meth:`ingroup.inference.weights.LocalEngine.complete`.
        """
        if self.on_cpu and sampling.draws and sampling.seed != self._seed:
            # The CPU build crashes with a seed for each prompt, so there the engine has one.
            self.close()
            self._seed = sampling.seed
        return super().complete(prompts, sampling)

    def _longest_prompt(self) -> int:
        return self.llm.model_config.max_model_len - 1

    def _free_replies(self, prompts: Prompts, sampling: Sampling) -> list[Reply]:
        make_params = partial(
            self.vllm.SamplingParams,
            temperature=sampling.temperature or 0.0,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            detokenize=False,
            logprobs=None if self.has_answered else 0,  # 0: of the tokens written alone
        )

        if sampling.draws and not self.on_cpu:
            params = [make_params(seed=sampling.trial_seed(ids)) for ids in prompts]
        else:
            params = make_params()
        return list(map(self._ended_reply, self._generate(prompts, params)))

    def _scored_in_tree(self, prompts: Prompts, tree: Tree, choices: Sequence[str]) -> list[Reply]:
        """Score the choices by one token after each beginning of an answer, for each prompt.

        The tokens before it are in the cache.
        """
        make_params = partial(
            self.vllm.SamplingParams, temperature=0, max_tokens=1, detokenize=False
        )
        params_of_places = []
        most = 0
        for place in tree.places:
            looked_up = place.ids_to_look_up(self._endings)
            params_of_places.append(make_params(logprob_token_ids=looked_up))
            most = max(most, len(looked_up))
        if most > MOST_LOOKED_UP:
            raise EngineError(
                f"vLLM weighs at most {MOST_LOOKED_UP} tokens in one place, these choices have "
                f"{most}: ask with ENGINE=transformers"
            )

        # All places of one prompt stand together, so that its prefix is in the cache for each.
        prompts_of_places = []
        for ids in prompts:
            prompts_of_places += [[*ids, *place.path] for place in tree.places]
        params = params_of_places * len(prompts)
        outputs = iter(self._generate(prompts_of_places, params))
        replies = []
        for _ in prompts:
            outputs_of_prompt = [next(outputs) for _ in tree.places]
            replies.append(self._scored_reply(outputs_of_prompt, tree, choices))
        return replies

    def _scored_reply(
        self, outputs: list["RequestOutput"], tree: Tree, choices: Sequence[str]
    ) -> Reply:
        """Make the scored reply to one prompt from vLLM's outputs at the places of the tree."""
        steps = []
        for place, output in zip(tree.places, outputs, strict=True):
            error = _failure(output)
            if error:
                return Reply(None, FAILED, error=error)
            logprobs = output.outputs[0].logprobs[0]
            values = [logprobs[token].logprob for token in place.ids_to_look_up(self._endings)]
            steps.append(place.merge_ends(np.array([values]), self._endings))
        (reply,) = scored_replies(tree, steps, choices, [outputs[0].num_cached_tokens or 0])
        return reply

    def _generate(self, prompts: Prompts, params: Any) -> list["RequestOutput"]:
        """Ask vLLM for its output to each prompt, with one ``SamplingParams`` for all or each."""
        tokens = [self.vllm.TokensPrompt(prompt_token_ids=ids) for ids in prompts]
        try:
            return self.llm.generate(tokens, params, use_tqdm=False)
        except BaseException:
            # Prompts that an interrupt leaves in vLLM's queue would be answered with the next ones.
            self.close()
            raise

    def _ended_reply(self, output: "RequestOutput") -> Reply:
        """Make the reply to one prompt from vLLM's output in free text."""
        (written,) = output.outputs
        prompt_tokens = len(output.prompt_token_ids)
        error = _failure(output)
        if error:
            return Reply(None, FAILED, prompt_tokens, error=error)
        if not _is_finite(written):
            return Reply(None, FAILED, prompt_tokens, error=NOT_FINITE)
        # Decoded as in the transformers engine: same tokens, same text.
        cached = output.num_cached_tokens or 0
        return self._reply(written.token_ids, written.finish_reason, prompt_tokens, cached)

    def close(self) -> None:
        """Free the memory of weights and cache. The next question loads the model again."""
        llm = self.__dict__.pop("llm", None)
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()
        del llm
        gc.collect()


def _failure(output: "RequestOutput") -> str:
    """Write why vLLM broke a reply off, "" if it did not."""
    ending = output.outputs[0].finish_reason
    return "" if ending in (STOP, LENGTH) else f"vLLM ended with {ending!r}"


def _is_finite(written: "CompletionOutput") -> bool:
    """Tell whether the log-probabilities of the written tokens that vLLM returned are finite."""
    for alternatives in written.logprobs or ():
        for token in alternatives.values():
            if not math.isfinite(token.logprob):
                return False
    return True


def _reason(error: Exception) -> str:
    """Write an error's message on one line, without the object that pydantic prints after it."""
    text = " ".join(str(error).split()).partition(" [type=")[0]
    return text[:300] or type(error).__name__


def _import(on_cpu: bool) -> ModuleType:
    """Import vLLM, after setting the environment that it reads at import.

    Raise an EngineError if vLLM is missing or broken.
    """
    environment = ENVIRONMENT | CPU_ENVIRONMENT if on_cpu else ENVIRONMENT
    for name, value in environment.items():
        os.environ.setdefault(name, value)

    try:
        import vllm
        from vllm import LLM, SamplingParams, TokensPrompt  # noqa: F401 (loads all of it)
    except (ImportError, OSError, RuntimeError) as error:  # or broken
        raise EngineError(
            f"the vllm engine needs vLLM, which cannot be imported here ({_reason(error)}): "
            "give make ENGINE=vllm, or the model as <name>@vllm, and it adds vLLM to .venv, or "
            "without a GPU makes an environment with the CPU build, .venv-vllm"
        ) from error
    if on_cpu:
        # To compile takes longer than a small model's whole run, and the first log-probabilities
        # would wait 14 s for it.
        torch._dynamo.config.disable = True
    return vllm
