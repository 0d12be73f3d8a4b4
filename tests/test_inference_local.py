"""The engine of transformers, on the small model in tests/model."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ingroup.inference.answers import FAILED, LENGTH, EngineError, Sampling
from ingroup.inference.transformers_engine import TransformersEngine

MODEL = str(Path(__file__).parent / "model")
NUMBERS = tuple(map(str, range(101)))
STORIES = ["I won a prize.", "My dog died, and I could not speak for days.", "It rained again."]
CHATS = [
    [
        {"role": "system", "content": "You are from Peru."},
        {"role": "user", "content": f"{story} Rate the joy from 0 to 100."},
    ]
    for story in STORIES
]


@pytest.fixture(scope="module")
def engine():
    """Load the small model once."""
    with closing(TransformersEngine(MODEL, batch_size=8)) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def plain():
    """Load the same model without the engine."""
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(MODEL)


@torch.inference_mode()
def log_probabilities(plain, ids):
    """Compute the next token's log-probabilities in one pass, without a cache."""
    model, _ = plain
    return model(torch.tensor([ids])).logits[0, -1].log_softmax(dim=-1).numpy()


def slow_scores(plain, chat, choices):
    """Score each choice by passes of its own, renormalised token by token."""
    _, tokenizer = plain
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    spelling = [tokenizer.encode(choice, add_special_tokens=False) for choice in choices]
    end = tokenizer.eos_token_id
    passes = {}
    scores = []
    for ids in spelling:
        probability = 1.0
        for length in range(len(ids) + 1):
            path = ids[:length]
            ways = {other[length] for other in spelling if other[:length] == path != other}
            ways |= {end} if path in spelling else set()
            key = tuple(path)
            if key not in passes:
                passes[key] = np.exp(log_probabilities(plain, [*prompt, *path]))
            taken = ids[length] if length < len(ids) else end
            if taken in ways:
                probability *= passes[key][taken] / sum(passes[key][way] for way in ways)
        scores.append(probability)
    return scores


def test_scores_are_those_of_a_pass_per_choice(engine, plain):
    replies = engine.answer(CHATS, Sampling(choices=NUMBERS))
    for chat, reply in zip(CHATS, replies, strict=True):
        slow = slow_scores(plain, chat, NUMBERS)
        np.testing.assert_allclose(reply.probabilities, slow, atol=1e-5)
        assert sum(reply.probabilities) == pytest.approx(1, abs=1e-6)
        assert 0 < reply.option_mass[0] <= 1


def test_a_second_prefix_stands_behind_the_first_answer(engine):
    letters = ("A", "B", "C")
    (both,) = engine.answer(CHATS[:1], Sampling(choices=letters, prefixes=("(a) ", "\n(b) ")))
    (first,) = engine.answer(CHATS[:1], Sampling(choices=letters, prefixes=("(a) ",)))
    (second,) = engine.answer(
        CHATS[:1], Sampling(choices=letters, prefixes=(f"{first.text}\n(b) ",))
    )
    assert both.text.startswith(f"{first.text}\n(b) ")
    np.testing.assert_allclose(both.probabilities[:3], first.probabilities, atol=1e-6)
    np.testing.assert_allclose(both.probabilities[3:], second.probabilities, atol=1e-6)
    assert len(both.option_mass) == 2


def test_free_text_is_that_of_greedy_generation(engine, plain):
    model, tokenizer = plain
    replies = engine.answer(CHATS, Sampling(max_tokens=6))
    for chat, reply in zip(CHATS, replies, strict=True):
        ids = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=False
        )
        written = model.generate(ids, max_new_tokens=6, do_sample=False)[0, ids.shape[1] :]
        assert reply.text == tokenizer.decode(written, skip_special_tokens=True)
        assert reply.prompt_tokens == ids.shape[1]


def test_a_draw_depends_on_its_prompt_and_seed_alone(engine):
    drawn = Sampling(temperature=1.5, max_tokens=6, seed=1)
    together = engine.answer(CHATS, drawn)
    alone = [engine.answer([chat], drawn)[0] for chat in CHATS]
    assert [reply.text for reply in together] == [reply.text for reply in alone]
    others = engine.answer(CHATS, Sampling(temperature=1.5, max_tokens=6, seed=2))
    assert [reply.text for reply in together] != [reply.text for reply in others]


def test_prompts_that_are_too_long_fail_alone(engine):
    long = [{"role": "system", "content": "x"}, {"role": "user", "content": "joy " * 3000}]
    replies = engine.answer([CHATS[0], long], Sampling(max_tokens=2))
    assert replies[0].text is not None
    assert (replies[1].text, replies[1].finish_reason) == (None, FAILED)
    assert "the model takes 2047" in replies[1].error


def test_replies_that_are_cut_say_so(engine):
    (reply,) = engine.answer(CHATS[:1], Sampling(max_tokens=1, temperature=2.0))
    assert reply.finish_reason == LENGTH
    assert reply.output_tokens == 1


def test_broken_weights_stop_a_run_in_free_text():
    with closing(TransformersEngine(MODEL)) as broken:
        with torch.no_grad():
            broken._model.lm_head.weight[5] = torch.nan
        with pytest.raises(EngineError, match="logits that are not numbers"):
            broken.answer(CHATS, Sampling())


def test_broken_weights_are_failed_calls_where_scores_are_asked():
    with closing(TransformersEngine(MODEL)) as broken:
        with torch.no_grad():
            broken._model.lm_head.weight[5] = torch.nan
        replies = broken.answer(CHATS, Sampling(choices=("A", "B")))
        assert {reply.finish_reason for reply in replies} == {FAILED}


def test_models_that_are_not_there_are_named():
    with pytest.raises(EngineError, match="'no/such/folder' cannot be loaded"):
        TransformersEngine("no/such/folder")


def test_the_identity_names_weights_and_rendering(engine):
    identity = engine.identity()
    assert identity["engine"] == "transformers"
    assert identity["model"] == "model"
    assert identity["dtype"] == "float32"
    assert identity["system"] == "keep"
    assert len(identity["revision"]) == 16
