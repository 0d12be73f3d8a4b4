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
        (OSError("libcudart.so.13: cannot open"), "libcudart"),
        (ImportError(), "ImportError"),
    ],
)
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
        self.numbers_asked = []  # of log-probabilities, one per call

    def generate(self, prompts, how, use_tqdm):
        parameters = how if isinstance(how, list) else [how] * len(prompts)
        self.numbers_asked.append(getattr(parameters[0], "logprobs", None))
        pairs = zip(parameters, self.logprobs, strict=True)
        return [self._output(each, logprob) for each, logprob in pairs]

    def _output(self, parameters, logprob):
        tokens = getattr(parameters, "logprob_token_ids", [5])
        logprobs = {token: SimpleNamespace(logprob=logprob) for token in tokens}
        is_asked = hasattr(parameters, "logprob_token_ids") or parameters.logprobs is not None

        written = SimpleNamespace(
            token_ids=[5],
            finish_reason="stop",
            logprobs=[logprobs] if is_asked else None,
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

    assert sound.finish_reason == "stop"
    assert failed.finish_reason == "failed"
    assert failed.text is None
    assert failed.error == NOT_FINITE
    assert failed.probabilities == ()


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(choices=("0", "1"))])
def test_a_first_batch_without_finite_logits_stops_the_run(fake, sampling):
    fake.llm = FakeLLM([np.nan, np.nan])

    with pytest.raises(EngineError, match="not finite numbers after each of the first 2 prompts"):
        fake.complete([[1], [1]], sampling)


def test_only_the_first_batch_pays_for_log_probabilities(fake):
    fake.llm = FakeLLM([-1.0, -1.0])

    for _ in range(3):
        fake.complete([[1], [1]], Sampling())

    assert fake.llm.numbers_asked == [0, None, None]
