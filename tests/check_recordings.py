"""The recorded answers are the models': a sample is asked again, live, of the weights.

``make check-recordings`` runs it twice: with transformers, and where vLLM's CPU build is (there of
the real models alone). A large model is asked where its weights are already.
"""

from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from ingroup import models, paths
from ingroup.inference import find_model, make_engine, stored
from ingroup.inference.job import answered_jobs
from ingroup.inference.weights import Weights
from record import entries_by_model, recorded_jobs

ENGINE = "vllm" if find_spec("vllm") else "transformers"
MODELS = [
    name for name in entries_by_model() if ENGINE == "transformers" or not models.is_calibrant(name)
]
LEAST = 50  # prompts asked again, of each model
TIE = 1e-3  # two tokens whose logits are nearer than this may change places


@cache
def engine_of(model):
    return make_engine(ENGINE, model)  # a chat without a system turn is the same, folded or not


def recordings(model):
    """The recorded jobs that this engine has to answer alike: draws are another engine's own.

    Of a real model's free text, one job of each study: a text takes up to 128 steps. Answers in 16
    bits are left out, because each device rounds them in its own way.
    """
    in_full = [job for job, given in recorded_jobs(model) if given["DTYPE"] == "auto"]
    jobs = answered_jobs(in_full)
    is_transformers = ENGINE == "transformers"
    chosen = []
    with_text = set()
    for job in jobs:
        if job.is_scored:
            chosen.append(job)
            continue

        is_same_engine = is_transformers and job.engine == ENGINE
        is_alike = job.sampling.temperature == 0 or is_same_engine
        is_further = job.study in with_text and not models.is_calibrant(model)
        if is_alike and not is_further:
            chosen.append(job)
            with_text.add(job.study)
    return chosen


def sample(jobs):
    """Trials of each job, spread over it, as many of each as make up `LEAST` together."""
    each = -(-LEAST // len(jobs))
    for job in jobs:
        size = len(job.design)
        numbers = np.linspace(0, size - 1, min(each, size)).astype(int)
        yield job, np.unique(numbers).tolist()


@cache
def slow_model(model):
    weights = Weights(find_model(model))
    return weights.causal_model(dtype=torch.float32).eval()


def tie(job, trial, text, other_text):
    """How far apart the logits of the two tokens are at which two greedy texts part; inf if none.

    By a full pass over the prompt and what both say, without a cache.
    """
    engine = engine_of(job.model)
    end = engine._end_tokens[0]
    ids = [*engine._token_ids(text), end]
    other_ids = [*engine._token_ids(other_text), end]
    parting = 0
    while ids[parting] == other_ids[parting]:
        parting += 1

    (prompt,) = engine.prompter.batch([job.design[trial].messages])
    before = torch.tensor([prompt + ids[:parting]])
    with torch.inference_mode():
        logits = slow_model(job.model)(before).logits[0, -1]
    gap = logits[ids[parting]] - logits[other_ids[parting]]
    return float(gap.abs())


def compare(job, trial, row, reply):
    """Assert that a reply is the recorded one; return a sentence about a tie, or none."""
    where = f"{job.title}, trial {trial}"
    if job.is_scored:
        probabilities = np.array(row.probabilities)
        mass = np.array(row.mass)
        assert np.abs(probabilities - reply.probabilities).max() < 1e-3, where
        assert np.abs(mass - reply.mass).max() < 1e-3, where
        return None
    if row.text == reply.text:
        return None

    assert job.sampling.temperature == 0, f"{where}: {row.text!r} is {reply.text!r}"
    gap = tie(job, trial, row.text, reply.text)
    assert gap < TIE, f"{where}: {row.text!r} became {reply.text!r}, {gap:.2g} apart"
    return f"{where}: a tie of two tokens, {gap:.1g} apart"


@pytest.mark.parametrize("model", MODELS)
def test_live_answers_equal_the_recorded_ones(model):
    large = models.packaged_models().get(model, {}).get("large")
    if large and not (paths.MADE / model).is_dir():
        pytest.skip(f"the weights of {model} take {large}: make model fetches them")

    jobs = recordings(model)
    prompts = 0
    ties = []
    for job, trials in sample(jobs):
        store = stored(job)
        chats = [job.design[trial].messages for trial in trials]
        replies = engine_of(job.model).answer(chats, job.sampling)
        prompts += len(trials)
        for trial, reply in zip(trials, replies, strict=True):
            row = store.read(trial, trial + 1).iloc[0]
            sentence = compare(job, trial, row, reply)
            if sentence:
                ties.append(sentence)

    studies = ", ".join(dict.fromkeys(job.study for job in jobs))
    print(f"{model} on {ENGINE}: {prompts} prompts of {studies} asked again, {len(ties)} ties")
    print("\n".join(ties))
    assert prompts >= LEAST
