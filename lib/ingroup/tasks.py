"""The four studies as tasks of inspect_ai.

``inspect eval lib/ingroup/tasks.py@giebench --model openai/gpt-5 --log-dir logs`` asks a model, and
``make 30 RECORDINGS=logs`` draws the paper's figures from the logs. Parameters of the notebook are
typed in small letters, e.g. ``-T n_events=6``.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from ingroup import RESPONSES
from ingroup.inference.answers import Reply
from ingroup.inference.design import Block, Design, Trial
from ingroup.inference.inspect_engine import config_of, reply_of
from ingroup.inference.jobs import Job
from ingroup.parsing import CUT, FAILED, OK, REFUSED, SEVERAL, UNPARSABLE
from ingroup.tables import InputError

REASONS = (REFUSED, UNPARSABLE, SEVERAL, CUT, FAILED)
# A task asks for free text, which is read as a notebook reads it by default.
FIXED = {"ENGINE": "inspect", "READING": "free", "PARSING": "sound"}


@dataclass(frozen=True, eq=False)
class AnsweredJob(Job):
    """A job whose answers are at hand, so that the `load` of its study can read them."""

    given: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def folder(self) -> Path:
        """Return a folder that does not exist: no other answers are read."""
        return RESPONSES / "none"

    def recorded(self, columns: Sequence[str] = ()) -> pd.DataFrame:
        """Return the answers."""
        return self.given


@cache
def trials(study: str, model: str, typed: str) -> dict[str, tuple[Job, Trial]]:
    """List what a study asks a model, as its notebook does.

    Parameters
    ----------
    study : str
        The name of the study.
    model : str
        The model, as inspect_ai names it.
    typed : str
        Parameters of the notebook in small letters, as JSON.

    Returns
    -------
    dict
        Job and trial, by the job's name and the key of the prompt, which a store has too.

    Raises
    ------
    InputError
        A parameter does not exist, or cannot work.
    """
    answers = import_module(f"ingroup.{study}.answers")
    values = {name.upper(): value for name, value in json.loads(typed).items()}
    known = set(answers.Parameters.model_fields) - {"MODELS", *FIXED}
    for name in sorted(set(values) - known):
        raise InputError(f"{name.lower()} is no parameter of the task {study}")

    parameters = answers.Parameters.of({**values, **FIXED, "MODELS": [model]})
    found = {}
    for job in answers.jobs(parameters):
        for key, trial in zip(job.design.keys, job.design, strict=True):
            found[f"{job.name}:{key}"] = (job, trial)
    return found


def columns(job: Job, trial: Trial) -> dict[str, Any]:
    """List the columns of a trial: labels of its job, then labels and levels of its condition."""
    found = dict(job.labels)
    for name, level in trial.condition.items():
        fields = level._asdict() if hasattr(level, "_asdict") else level
        found |= fields if isinstance(fields, dict) else {name: fields}
    return found


def read(job: Job, trial: Trial, reply: Reply) -> pd.DataFrame:
    """Read the reply to one trial with the `load` of its study.

    Parameters
    ----------
    job : Job
        The job of the trial.
    trial : Trial
        What was asked.
    reply : Reply
        What was answered.

    Returns
    -------
    DataFrame
        One row for each value that was asked for: ``item`` (a rated word, or the name of the
        study), ``value`` (NaN without one) and ``status`` ("ok", or one of `REASONS`).
    """
    design = Design([_block_of(job.design, trial)])
    given = pd.DataFrame([{"trial": 0, **reply._asdict()}])
    asked = AnsweredJob(
        job.study, job.part, job.model, design, job.sampling, job.labels, job.options, given
    )

    load = import_module(f"ingroup.{job.study}.answers").load
    is_giebench = job.study == "giebench"
    table = load([asked]) if is_giebench else load(asked)
    # GIEBench counts a reply without a verdict as wrong. Here it has no value.
    value = table["right" if is_giebench else "rating"].where(table.status == OK)
    item = table.get("item", job.study)
    return pd.DataFrame({"item": item, "value": value, "status": table.status})


def _block_of(design: Design, trial: Trial) -> Block:
    """Reduce the block of a trial to this trial alone."""
    condition = trial.condition
    for block in design.blocks:
        if block.labels.items() <= condition.items():
            levels = {name: [condition[name]] for name in block.factors}
            return Block(block.labels, levels, block.render)
    raise ValueError(f"the design has no trial {trial.number}")


@solver
def ask(study: str, model: str, typed: str) -> Solver:
    """Ask as the study does: each draw has the seed of its prompt."""
    asked = trials(study, model, typed)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        job, trial = asked[str(state.sample_id)]
        if not job.sampling.draws:
            return await generate(state)
        return await generate(state, seed=job.sampling.trial_seed(trial.chat))

    return solve


@metric
def means() -> Metric:
    """Average the values of each item, over the replies that have one."""

    def average(scores: list[SampleScore]) -> dict[str, float]:
        values = pd.DataFrame([score.score.value for score in scores])
        return values.mean().to_dict()

    return average


@metric
def reasons() -> Metric:
    """Count the values that are not there, by reason."""

    def count(scores: list[SampleScore]) -> dict[str, int]:
        counts = Counter()
        for score in scores:
            counts.update((score.score.metadata or {})["status"].values())
        return {reason: counts[reason] for reason in REASONS}

    return count


@scorer(metrics=[means(), reasons()])
def claimed(study: str, model: str, typed: str) -> Scorer:
    """Score a reply by the values that it claims, and name the reason for each that it lacks."""
    asked = trials(study, model, typed)

    async def score(state: TaskState, target: Target) -> Score:
        job, trial = asked[str(state.sample_id)]
        table = read(job, trial, reply_of(state.output, job.sampling)).set_index("item")
        lacking = sorted(set(table.status) - {OK})
        return Score(
            value=table.value.to_dict(),
            answer=state.output.completion,
            reason=", ".join(lacking) or None,
            metadata={"status": table.status.to_dict()},
        )

    return score


def of_study(study: str, parameters: dict[str, Any]) -> Task:
    """Make the task of a study: its prompts, its sampling, and its parsing as the scorer.

    Parameters
    ----------
    study : str
        The name of the study.
    parameters : dict
        Parameters of the notebook, in small letters.

    Returns
    -------
    Task
        One sample for each prompt and round. A call that fails costs no other sample.
    """
    about = (study, str(get_model()), json.dumps(parameters))
    asked = trials(*about)
    samples = []
    for key, (job, trial) in asked.items():
        chat = [dict(turn) for turn in trial.chat]
        samples.append(Sample(input=chat, id=key, metadata=columns(job, trial)))

    job, trial = next(iter(asked.values()))
    return Task(
        dataset=MemoryDataset(samples, name=study),
        solver=ask(*about),
        scorer=claimed(*about),
        config=config_of(trial.chat, job.sampling),
        fail_on_error=False,
        score_on_error=True,
    )


@task
def empathy_gap(**parameters: Any) -> Task:
    """Hou et al. (2025), `Language Models Predict Empathy Gaps`."""
    return of_study("empathy_gap", parameters)


@task
def biased_samaritan(**parameters: Any) -> Task:
    """Fagan et al. (2025), `The Biased Samaritan`."""
    return of_study("biased_samaritan", parameters)


@task
def giebench(**parameters: Any) -> Task:
    """Wang et al. (2024), `GIEBench`."""
    return of_study("giebench", parameters)


@task
def stereomap(**parameters: Any) -> Task:
    """Jeoung et al. (2023), `StereoMap`."""
    return of_study("stereomap", parameters)
