"""vLLM's CPU build beside transformers, on the small model (``make test-vllm``)."""

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ingroup.inference.answers import FAILED, Sampling
from ingroup.inference.transformers_engine import TransformersEngine

pytest.importorskip("vllm")
MODEL = str(Path(__file__).parent / "model")
CHATS = [
    [{"role": "user", "content": f"A person found {number} coins. Rate the joy from 0 to 100."}]
    for number in range(64)
]


@pytest.fixture(scope="module")
def engines():
    """Load the small model in both engines."""
    from ingroup.inference.vllm_engine import VLLMEngine

    vllm = VLLMEngine(MODEL, dtype="float32")
    transformers = TransformersEngine(MODEL)
    with closing(vllm), closing(transformers):
        yield vllm, transformers


def test_free_text_is_the_same(engines):
    vllm, transformers = engines
    sampling = Sampling(max_tokens=4)
    texts = [reply.text for reply in vllm.answer(CHATS, sampling)]
    assert texts == [reply.text for reply in transformers.answer(CHATS, sampling)]


@pytest.mark.parametrize("prefixes", [("",), ("warm: ", "\ncompetent: ")])
def test_scores_are_the_same(engines, prefixes):
    vllm, transformers = engines
    sampling = Sampling(choices=tuple(map(str, range(101))), prefixes=prefixes)
    ours = vllm.answer(CHATS[:16], sampling)
    theirs = transformers.answer(CHATS[:16], sampling)
    for one, other in zip(ours, theirs, strict=True):
        assert one.text == other.text
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-4)
        np.testing.assert_allclose(one.option_mass, other.option_mass, atol=1e-4)


def test_prompts_that_are_too_long_fail_alone(engines):
    vllm, _ = engines
    long = [{"role": "user", "content": "joy " * 3000}]
    replies = vllm.answer([CHATS[0], long], Sampling(max_tokens=2))
    assert replies[0].text is not None
    assert replies[1].finish_reason == FAILED


def test_the_identity_names_vllm(engines):
    identity = engines[0].identity()
    assert identity["engine"] == "vllm"
    assert identity["engine_version"].startswith("0.32")
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
