"""Examples behind the counts: trials without an answer, and trials of the extreme cells."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ingroup import figures, notebook
from ingroup.inference import Job, answered_jobs, stored

MAX_TRIALS_OF_JOB = 20_000  # trials of a job that is looked through
MAX_EXCERPTS = 3  # trials of an excerpt
OTHER_READING = "read otherwise by the released rule"


class Kind(NamedTuple):
    """A kind of trials.

    Attributes
    ----------
    name : str
        The property that the trials share.
    filter : str
        The filter that shows these trials in the viewer of ``make view``.
    """

    name: str
    filter: str


def unusual_replies(job: Job) -> Iterator[tuple[Kind, int]]:
    """Find trials whose reply has no answer, or another answer by the released rule.

    Parameters
    ----------
    job : Job
        A job with stored answers.

    Yields
    ------
    Kind, int
        The kind and number of a trial. A trial may be of two kinds. A status is a kind, and
        "missing" trials, which were not asked, are left out.
    """
    answers = notebook.read(job)
    by_released_rule = Kind(OTHER_READING, 'metadata.otherwise == "yes"')

    for trial, answer in enumerate(answers.itertuples()):
        status = answer.status
        if status not in ("ok", "missing"):
            kind = Kind(status, f'status == "{status}"')
            yield kind, trial
        if answer.otherwise == "yes":
            yield by_released_rule, trial


def extreme_cells(matrix: pd.DataFrame, job: Job) -> list[tuple[str, pd.Series]]:
    """Find the lowest and the highest cell of a job in a study's matrix.

    Parameters
    ----------
    matrix : DataFrame
        ``model``, labels of jobs, and ``z``, one row per cell.
    job : Job
        The job, whose model and labels name its cells.

    Returns
    -------
    list of tuple
        "lowest" and "highest" with the row of each cell. Empty where no cell has a number.
    """
    is_of_job = matrix.model == job.model
    for name, value in job.labels.items():
        # A matrix has only those labels of jobs that tell its cells apart.
        if name in matrix:
            is_of_job &= matrix[name] == value

    # The sort is stable, so that of equal cells the same two are named on every machine.
    has_number = matrix.z.notna()
    cells = matrix[is_of_job & has_number]
    ordered = cells.sort_values("z", kind="stable")
    if ordered.empty:
        return []

    lowest = ordered.iloc[0]
    highest = ordered.iloc[-1]
    return [
        ("lowest", lowest),
        ("highest", highest),
    ]


def extreme_trials(job: Job, matrix: pd.DataFrame) -> Iterator[tuple[Kind, int]]:
    """Find the trials of the lowest and the highest cell of a study's matrix.

    Parameters
    ----------
    job : Job
        A job of one block.
    matrix : DataFrame
        As in `extreme_cells`, with ``mean`` and the factors that name a cell.

    Yields
    ------
    Kind, int
        The kind and number of a trial.
    """
    (block,) = job.design.blocks
    keys = [name for name in block.factors if name in matrix]
    for which, cell in extreme_cells(matrix, job):
        # The cell fixes the level of its factors and leaves the others free.
        levels = dict(block.factors)
        conditions = []
        for key in keys:
            level = cell[key]
            levels[key] = [level]
            conditions.append(f'metadata.{key} == "{level}"')

        named = " of ".join(cell[keys])
        mean = cell["mean"]
        kind = Kind(
            name=f"the {which} cell, {named}, mean {mean:.1f}",
            filter=" and ".join(conditions),
        )
        # All combinations of the other factors were asked about this cell.
        for combination in product(*levels.values()):
            condition = dict(zip(levels, combination, strict=True))
            trial = block.index(condition)
            yield kind, trial


def excerpt(trials: Sequence[tuple[Job, int]]) -> Iterator[dict[str, Any]]:
    """Show the prompts and replies of some trials of one kind.

    Parameters
    ----------
    trials : sequence of tuple
        Jobs with stored answers, each with the number of a trial.

    Yields
    ------
    dict
        ``job``, ``trial``, ``excerpt`` (from 1), ``prompt``, ``reasoning`` and ``reply``, for at
        most `MAX_EXCERPTS` trials, evenly through all.
    """
    # The step is rounded up, so that at most SHOWN trials are taken.
    step = math.ceil(len(trials) / MAX_EXCERPTS)
    for number, (job, trial) in enumerate(trials[::step], start=1):
        store = stored(job)
        rows = store.read(trial, trial + 1, ["text", "reasoning"])
        row = rows.iloc[0]

        messages = job.design[trial].messages
        turns = [message["content"] for message in messages]
        yield {
            "job": job.title,
            "trial": trial,
            "excerpt": number,
            "prompt": "\n\n".join(turns),
            "reasoning": row.reasoning,
            "reply": row.text,
        }


def examples_of_study(jobs: Sequence[Job], tables: Path) -> Iterator[dict[str, Any]]:
    """Choose examples of each kind of trials of a study.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs of one study. Jobs without stored answers, with more than `MAX_TRIALS_OF_JOB` trials or
        with scored answers, which have no reply, are left out.
    tables : Path
        The study's tables, which may have a ``matrix.csv``.

    Yields
    ------
    dict
        ``model``, ``kind``, ``filter``, the number of ``trials`` of this kind, and the entries of
        `excerpt` for one trial.
    """
    trials_by_kind: dict[tuple[str, Kind], list[tuple[Job, int]]] = {}
    for job, kind, trial in _trials_of_kinds(jobs, tables):
        key = (job.model, kind)
        trials_by_kind.setdefault(key, []).append((job, trial))

    for (model, kind), trials in trials_by_kind.items():
        of_kind = {
            "model": model,
            "kind": kind.name,
            "filter": kind.filter,
            "trials": len(trials),
        }
        for example in excerpt(trials):
            yield {**of_kind, **example}


def _trials_of_kinds(jobs: Sequence[Job], tables: Path) -> Iterator[tuple[Job, Kind, int]]:
    """Yield the unusual replies of every job, then the extreme trials of each model's first job."""
    in_text = []
    for job in jobs:
        is_small = len(job.design) <= MAX_TRIALS_OF_JOB
        if job.settled and not job.is_scored and is_small:
            in_text.append(job)

    answered = answered_jobs(in_text)
    for job in answered:
        for kind, trial in unusual_replies(job):
            yield job, kind, trial

    if not (tables / "matrix.csv").exists():
        return

    matrix = figures.read_table(tables, "matrix")
    # The cells of a model whose answers are scored are no replies.
    scored_models = {job.model for job in jobs if job.is_scored}
    first_jobs = {}
    for job in reversed(answered):
        # The jobs come backwards, so a model's first one replaces its others.
        if job.model not in scored_models:
            first_jobs[job.model] = job

    for job in first_jobs.values():
        for kind, trial in extreme_trials(job, matrix):
            yield job, kind, trial
