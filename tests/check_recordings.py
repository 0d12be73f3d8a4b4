"""Recorded answers asked again of SmolLM2's weights (``make check-recordings``): a sample."""

from contextlib import closing
from importlib import import_module

import numpy as np
import pytest

from ingroup.inference import weights
from ingroup.inference.answers import Sampling
from ingroup.inference.transformers_engine import TransformersEngine

MODEL = "smollm2-135m-instruct"
STUDIES = ["empathy_gap", "biased_samaritan", "giebench", "stereomap"]
N_PROMPTS = 2  # asked again of each job
N_JOBS = 3  # of each study


@pytest.fixture(scope="module")
def engine():
    """Load SmolLM2, whose weights are made at first."""
    with closing(TransformersEngine(str(weights.available(MODEL)), batch_size=8)) as loaded:
        yield loaded


def sample(study):
    """Choose jobs of a study, spread over all of them, and prompts of each."""
    answers = import_module(f"ingroup.{study}.answers")
    jobs = answers.jobs(answers.Parameters.of({"MODELS": [MODEL]}))
    for number in np.unique(np.linspace(0, len(jobs) - 1, N_JOBS).astype(int)):
        job = jobs[number]
        trials = np.linspace(0, len(job.design) - 1, N_PROMPTS).astype(int).tolist()
        yield job, trials


@pytest.mark.parametrize("study", STUDIES)
def test_scored_answers_are_the_models(study, engine):
    for job, trials in sample(study):
        recorded = job.recorded(["probabilities", "option_mass"]).set_index("trial")
        replies = engine.answer(job.design.chats(trials), job.sampling)
        for trial, reply in zip(trials, replies, strict=True):
            row = recorded.loc[trial]
            # Stored numbers have three digits.
            np.testing.assert_allclose(row.probabilities, reply.probabilities, 2e-3, 2e-5)
            np.testing.assert_allclose(row.option_mass, reply.option_mass, 2e-3, 2e-5)


def test_free_text_is_the_models(engine):
    answers = import_module("ingroup.empathy_gap.answers")
    job = answers.written(answers.Parameters.of({"MODELS": [MODEL]}))[0]
    recorded = job.recorded(["text"]).head(N_PROMPTS)
    greedy = Sampling(temperature=0.0, max_tokens=job.sampling.max_tokens)
    replies = engine.answer(job.design.chats(recorded.trial.tolist()), greedy)
    same = [reply.text == text for reply, text in zip(replies, recorded.text, strict=True)]
    # Where two tokens are nearly as probable, another machine may write the other.
    assert sum(same) >= N_PROMPTS - 1
