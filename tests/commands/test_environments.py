"""Which environment a run takes: by the engines and providers of its models."""

import pytest

from ingroup.commands.environments import needed_environment

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("values", "folder", "parts"),
    [
        ({}, ".venv", []),
        ({"N_EVENTS": "24"}, ".venv", []),
        ({"ENGINE": "vllm"}, ".venv-vllm", [".ready"]),
        ({"MODELS": LLAMA}, ".venv-vllm", [".ready"]),
        ({"MODELS": f"calibrant;{LLAMA}"}, ".venv-vllm", [".ready"]),
        ({"MODELS": LLAMA, "ENGINE": "transformers"}, ".venv", []),
        ({"MODELS": "some/model@vllm"}, ".venv-vllm", [".ready"]),
        ({"MODELS": "qwen-2-7b@openai;calibrant"}, ".venv", []),
        ({"MODELS": "gpt-4o-mini"}, ".venv", []),
        ({"MODELS": "openai/gpt-4o-mini"}, ".venv", []),
        ({"MODELS": "anthropic/some"}, ".venv", [".providers"]),
        ({"MODELS": "calibrant;google/some"}, ".venv", [".providers"]),
        ({"MODELS": "mistral/some"}, ".venv", [".providers"]),
        ({"MODELS": "mistralai/some"}, ".venv", []),
        ({"ENGINE": "vllm", "ENGINE_WORKERS": "8"}, ".venv-vllm", [".ready", ".ray"]),
        ({"RAY_ADDRESS": "here:6379"}, ".venv", [".ray"]),
        ({"ENGINE": "replay", "MODELS": "x"}, ".venv", []),
    ],
)
def test_a_run_takes_the_environment_that_it_needs(values, folder, parts):
    environment, marks = needed_environment(values, ".venv", False)

    assert environment == folder
    assert marks == [f"{folder}/{part}" for part in parts]


def test_with_a_gpu_vllm_is_added_to_the_one_environment():
    assert needed_environment({"ENGINE": "vllm"}, "mine", True) == ("mine", ["mine/.vllm"])
