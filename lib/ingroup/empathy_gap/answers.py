"""From answers to one long table of ratings."""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from ingroup.empathy_gap import stimuli
from ingroup.inference import jobs as shared
from ingroup.inference import parameters as base
from ingroup.inference import scoring
from ingroup.inference.answers import Sampling
from ingroup.inference.jobs import Job
from ingroup.inference.models import model
from ingroup.parsing import parse_rating, parse_rating_released, read_ratings
from ingroup.tables import InputError

REWRITE_TOKENS = 512  # of a rewritten narrative at most
RULES = {"sound": parse_rating, "released": parse_rating_released}
FACTORS = ["perceiver", "experiencer", "event"]
TRIAL = ["model", "reading", "setting", "category", *FACTORS]


class Parameters(base.Parameters):
    """The parameters of the study; `base.Parameters` has those of all studies."""

    CORPUS: str = "sample"
    N_EVENTS: Annotated[int, Field(ge=0)] = 12
    SETTINGS: base.Texts = Field(default_factory=list)
    CATEGORIES: base.Texts = Field(default_factory=list)
    ROUNDS: base.Count = 1
    N_RESAMPLES: base.Count = 10_000
    REWRITER: str = ""


def jobs(parameters: Parameters) -> list[Job]:
    """List the jobs that the numbers rest on: each model in every setting and category.

    Parameters
    ----------
    parameters : Parameters
        A model whose reading is "free" is asked for text, in several ``ROUNDS`` with seeds of their
        own. Any other is asked for the probabilities of the whole numbers of the scale.

    Returns
    -------
    list of Job
        Settings whose form of the narrative the corpus lacks are left out.

    Raises
    ------
    InputError
        A setting, a category or the corpus cannot work.
    """
    listed = []
    for job in _text_jobs(parameters, _events(parameters)):
        if job.model.reading == "free":
            listed += [_in_round(job, number) for number in range(1, parameters.ROUNDS + 1)]
        else:
            wording = stimuli.setting(job.labels["setting"])
            numbers = range(wording.low, wording.high + 1)
            scored = Sampling(choices=tuple(map(str, numbers)))
            listed.append(replace(job, sampling=scored))
    return listed


def written(parameters: Parameters) -> list[Job]:
    """List the jobs that ask scored models for free text, in the first setting.

    Parameters
    ----------
    parameters : Parameters
        As for `jobs`.

    Returns
    -------
    list of Job
        They ask about a tenth of the events, at least two.
    """
    events = _events(parameters)
    n_tenth = max(2, math.ceil(len(events) / 10))
    tenth = stimuli.load_events(parameters.CORPUS, min(n_tenth, len(events)))
    listed = _text_jobs(parameters, events[events.event.isin(tenth.event)])
    first = listed[0].labels["setting"]
    in_first = [job for job in listed if job.labels["setting"] == first]
    return [job for job in in_first if job.model.reading != "free"]


def rewriting(parameters: Parameters) -> list[Job]:
    """List the job that asks ``REWRITER`` for third-person texts, if the corpus lacks some.

    Ask for it before `jobs` is called, which shows its replies.
    """
    events = stimuli.load_events(parameters.CORPUS, parameters.N_EVENTS)
    if not parameters.REWRITER or (events.third_person_text != "").all():
        return []
    job = Job(
        study="empathy_gap",
        part="rewriting",
        model=model(parameters.REWRITER, parameters.model_dump()),
        design=stimuli.rewriting(events),
        sampling=Sampling(max_tokens=REWRITE_TOKENS),
    )
    return [job]


def _events(parameters: Parameters) -> pd.DataFrame:
    """Read the events, with the texts of the rewriter where the corpus has none."""
    events = stimuli.load_events(parameters.CORPUS, parameters.N_EVENTS)
    for job in rewriting(parameters):
        replies = shared.answers(job, ["text"])
        texts = replies.text.fillna("").map(stimuli.rewritten)
        for event in events.event[texts == ""]:
            raise InputError(f"REWRITER {job.model.name!r} gave no text of the event {event!r}")
        events["third_person_text"] = texts
    return events


def _text_jobs(parameters: Parameters, events: pd.DataFrame) -> list[Job]:
    """Ask each model for free text, in each setting and category."""
    categories = parameters.CATEGORIES or stimuli.identities().category.unique()
    # All models share one design, whose prompts are hashed once.
    designs = []
    for name in parameters.SETTINGS or stimuli.wordings()["settings"]:
        wording = stimuli.setting(name)
        if (events[wording.form] != "").all():
            designs += [stimuli.design(events, wording, category) for category in categories]
    if not designs:
        raise InputError(f"CORPUS {parameters.CORPUS!r} lacks the narratives that SETTINGS show")

    listed = []
    for asked in parameters.models:
        for design in designs:
            labels = design.blocks[0].labels
            words = labels["category"].lower().split()
            job = Job(
                study="empathy_gap",
                part="-".join([labels["setting"], *words]),
                model=asked,
                design=design,
                sampling=parameters.sampling,
                labels=labels,
                options={"system": parameters.SYSTEM, "bos": parameters.BOS},
            )
            listed.append(job)
    return listed


def _in_round(job: Job, number: int) -> Job:
    """Ask again in a later round, with a seed of its own."""
    if number == 1:
        return job
    seed = job.sampling.seed + 1000 * (number - 1)
    return replace(
        job,
        part=f"{job.part}-round{number}",
        sampling=replace(job.sampling, seed=seed),
        labels={**job.labels, "round": number},
    )


def load(job: Job, parsing: str = "sound") -> pd.DataFrame:
    """Read the ratings of one job.

    Parameters
    ----------
    job : Job
        From `jobs` or `written`.
    parsing : {"sound", "released"}
        How a text is read.

    Returns
    -------
    DataFrame
        `TRIAL`; ``rating`` in points, NaN without one; ``status``: "ok", or why there is no rating.
        The readings of a scored answer stand below each other, "expected" and "greedy", with
        ``option_mass``: the probability that the model, unconstrained, begins an admissible answer.
        Free text has the reading "free" and its ``text``.
    """
    trials = _trials(job)
    if not job.sampling.choices:
        replies = shared.answers(job, ["text", "reasoning"])
        wording = stimuli.setting(job.labels["setting"])
        read = read_ratings(replies, wording.low, wording.high, RULES[parsing])
        return trials.assign(
            reading="free",
            text=replies.text,
            rating=read.value,
            status=read.status,
            option_mass=np.nan,
        )

    replies = shared.answers(job, ["text", "probabilities", "option_mass"])
    trials["option_mass"] = scoring.matrix(replies.option_mass, 1)
    tables = []
    for reading in ("expected", "greedy"):
        rating = scoring.ratings(replies, job.sampling, reading)[0]
        status = scoring.statuses(replies)
        tables.append(trials.assign(reading=reading, rating=rating, status=status))
    return pd.concat(tables, ignore_index=True)


def _trials(job: Job) -> pd.DataFrame:
    """Name the model, the setting and the levels of each trial, in the order of the design."""
    (block,) = job.design.blocks
    levels = dict(block.factors)
    levels["event"] = [event.name for event in levels["event"]]
    trials = pd.MultiIndex.from_product(levels.values(), names=FACTORS)
    return trials.to_frame(index=False).assign(model=job.model.name, **block.labels)


def load_all(jobs: Iterable[Job], parsing: str = "sound") -> pd.DataFrame:
    """Read the ratings of several jobs into one long table.

    Parameters
    ----------
    jobs : iterable of Job
        From `jobs` and `written`.
    parsing : {"sound", "released"}
        How a text is read.

    Returns
    -------
    DataFrame
        As `load`, by model and reading. A trial of several rounds has the mean of its ratings; its
        status is "ok" if any round has a rating, else that of the first round.
    """
    tables = [load(job, parsing) for job in jobs]
    table = pd.concat(tables, ignore_index=True)
    # Categories take a byte or two for each trial, and keep the order of the design.
    for column in TRIAL:
        table[column] = pd.Categorical(table[column], table[column].unique())
    table = table.sort_values(["model", "reading"], kind="stable", ignore_index=True)

    rounds = table.groupby(TRIAL, observed=True, sort=False)
    if rounds.ngroups == len(table):
        return table
    table["rating"] = rounds.rating.transform("mean")
    table["status"] = np.where(table.rating.notna(), "ok", rounds.status.transform("first"))
    return table.drop_duplicates(TRIAL, ignore_index=True)
