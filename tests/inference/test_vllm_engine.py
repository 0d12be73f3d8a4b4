"""The vllm engine where vLLM is missing or broken; for the rest see check_vllm.py."""

import sys

import pytest

from ingroup import paths
from ingroup.inference import EngineError
from ingroup.inference.vllm_engine import VLLMEngine

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
