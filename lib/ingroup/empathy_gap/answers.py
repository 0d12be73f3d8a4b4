"""From answers to one long table of ratings."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from ingroup import ratings
from ingroup.empathy_gap import stimuli
from ingroup.inference import jobs as shared
from ingroup.inference import parameters as base
from ingroup.inference.answers import Sampling
from ingroup.inference.design import Design
from ingroup.inference.jobs import Job
from ingroup.inference.models import Model, model
from ingroup.parsing import parse_rating, parse_rating_released
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
    events = _events(parameters)
    listed = []
    for asked, (wording, design) in product(parameters.models, _designs(parameters, events)):
        if asked.reading == "free":
            for number in range(1, parameters.ROUNDS + 1):
                job = _job(parameters, asked, design, parameters.sampling, number)
                listed.append(job)
        else:
            numbers = map(str, range(wording.low, wording.high + 1))
            scored = Sampling(choices=tuple(numbers))
            job = _job(parameters, asked, design, scored)
            listed.append(job)
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
    is_asked = events.event.isin(tenth.event)
    designs = _designs(parameters, events[is_asked])

    (first, _), *_ = designs
    listed = []
    for asked, (wording, design) in product(parameters.models, designs):
        if asked.reading != "free" and wording == first:
            job = _job(parameters, asked, design, parameters.sampling)
            listed.append(job)
    return listed


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
        lacking = events.event[texts == ""].tolist()
        if lacking:
            raise InputError(f"REWRITER {job.model.name!r} gave no text of {lacking[0]!r}")
        events["third_person_text"] = texts
    return events


def _designs(parameters: Parameters, events: pd.DataFrame) -> list[tuple[stimuli.Setting, Design]]:
    """Make a design of each setting and category, which all models share."""
    categories = parameters.CATEGORIES or stimuli.identities().category.unique()
    designs = []
    for name in parameters.SETTINGS or stimuli.wordings()["settings"]:
        wording = stimuli.setting(name)
        if (events[wording.form] != "").all():
            for category in categories:
                design = stimuli.design(events, wording, category)
                designs.append((wording, design))
    if not designs:
        raise InputError(f"CORPUS {parameters.CORPUS!r} lacks the narratives that SETTINGS show")
    return designs


def _job(
    parameters: Parameters, asked: Model, design: Design, sampling: Sampling, number: int = 1
) -> Job:
    """Ask a model; each round has a seed of its own."""
    labels = design.blocks[0].labels
    words = [labels["setting"], *labels["category"].lower().split()]
    if number > 1:
        words.append(f"round{number}")
        labels = {**labels, "round": number}
    return Job(
        study="empathy_gap",
        part="-".join(words),
        model=asked,
        design=design,
        sampling=replace(sampling, seed=sampling.seed + 1000 * (number - 1)),
        labels=labels,
        options={"system": parameters.SYSTEM, "bos": parameters.BOS},
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
        As `ratings.load`, with the columns `TRIAL`; both readings of a scored answer.
    """
    # Each design crosses the three factors of one setting and category.
    (block,) = job.design.blocks
    levels = dict(block.factors)
    levels["event"] = [event["event"] for event in levels["event"]]
    trials = pd.MultiIndex.from_product(levels.values(), names=FACTORS)
    labelled = trials.to_frame(index=False).assign(**block.labels)
    wording = stimuli.setting(block.labels["setting"])
    return ratings.load(job, labelled, wording.low, wording.high, RULES[parsing])


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
        status is "ok" if any round has a rating, else that of the first round. Its reply is that of
        the first round.
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
