"""The vllm engine where vLLM is missing or broken; for the rest see check_vllm.py."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ingroup import paths
from ingroup.inference import EngineError, Sampling, vllm_engine
from ingroup.inference.vllm_engine import VLLMEngine
from ingroup.inference.weights import NOT_FINITE

HOW = "give make ENGINE=vllm, or .*@vllm, and it adds vLLM to .venv, or without a GPU"


class Broken:
    """An importer whose vllm raises."""

    def __init__(self, error: Exception):
        self.error = error

    def find_spec(self, name, path=None, target=None):
        if name == "vllm":
            raise self.error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModuleNotFoundError("No module named 'vllm'"), "No module named 'vllm'"),
        (RuntimeError("operator nms\ndoes not exist"), "operator nms does not exist"),
        (OSError("libcudart.so.13: cannot open"), "libcudart"), (ImportError(), "ImportError"),
    ],
)  # fmt: skip
def test_a_missing_or_broken_vllm_is_one_sentence(error, reason, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(error), *sys.meta_path])
    with pytest.raises(EngineError, match=rf"needs vLLM.*\({reason}.*\): {HOW}") as raised:
        VLLMEngine(str(paths.MODELS / "calibrant"))
    assert "\n" not in str(raised.value)


class FakeLLM:
    """Writes one token for each prompt; its log-probability is the prompt's last entry here."""

    model_config = SimpleNamespace(max_model_len=1000)

    def __init__(self, logprobs):
        self.logprobs = logprobs
        self.asked = []  # how many log-probabilities each call asked for

    def generate(self, prompts, how, use_tqdm):
        own = how if isinstance(how, list) else [how] * len(prompts)
        self.asked.append(getattr(own[0], "logprobs", None))
        return [self._output(one, logprob) for one, logprob in zip(own, self.logprobs, strict=True)]

    def _output(self, how, logprob):
        named = getattr(how, "logprob_token_ids", [5])
        told = {token: SimpleNamespace(logprob=logprob) for token in named}
        is_asked = hasattr(how, "logprob_token_ids") or how.logprobs is not None
        written = SimpleNamespace(
            token_ids=[5], finish_reason="stop", logprobs=[told] if is_asked else None
        )
        return SimpleNamespace(outputs=[written], prompt_token_ids=[1], num_cached_tokens=0)


@pytest.fixture
def fake(monkeypatch):
    """A vllm engine without vLLM."""
    module = SimpleNamespace(
        __version__="0", SamplingParams=SimpleNamespace, TokensPrompt=SimpleNamespace
    )
    monkeypatch.setattr(vllm_engine, "_import", lambda on_cpu: module)
    return VLLMEngine(str(paths.MODELS / "calibrant"))


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(choices=("0", "1"))])
def test_a_reply_whose_logits_are_not_finite_fails_alone(fake, sampling):
    fake.llm = FakeLLM([-1.0, np.nan])
    sound, failed = fake.complete([[1], [1]], sampling)
    assert (sound.finish_reason, failed.finish_reason) == ("stop", "failed")
    assert (failed.text, failed.error, failed.probabilities) == (None, NOT_FINITE, ())


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(choices=("0", "1"))])
def test_a_first_batch_without_finite_logits_stops_the_run(fake, sampling):
    fake.llm = FakeLLM([np.nan, np.nan])
    with pytest.raises(EngineError, match="not finite numbers after each of the first 2 prompts"):
        fake.complete([[1], [1]], sampling)


def test_only_the_first_batch_pays_for_log_probabilities(fake):
    fake.llm = FakeLLM([-1.0, -1.0])
    for _ in range(3):
        fake.complete([[1], [1]], Sampling())
    assert fake.llm.asked == [0, None, None]
