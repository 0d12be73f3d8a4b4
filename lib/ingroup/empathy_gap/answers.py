"""From answers to one long table of ratings."""

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
from ingroup.inference.answers import FAILED, FILTERED, MISSING, Sampling
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
    events = _events(parameters)
    found = []
    for job in _text_jobs(parameters, events, _settings(parameters, events)):
        if job.model.reading == "free":
            found += _rounds(job, parameters.ROUNDS)
        else:
            wording = stimuli.setting(job.labels["setting"])
            numbers = range(wording.low, wording.high + 1)
            scored = Sampling(choices=tuple(map(str, numbers)))
            found.append(replace(job, sampling=scored))
    return found


def written(parameters: Parameters) -> list[Job]:
    """List the jobs that ask scored models for free text, in the first setting.

    Parameters
    ----------
    parameters : Parameters
        As for `jobs`.

    Returns
    -------
    list of Job
        They ask about `stimuli.tenth` of the events.
    """
    events = _events(parameters)
    first = _settings(parameters, events)[:1]
    found = _text_jobs(parameters, stimuli.tenth(events), first)
    return [job for job in found if job.model.reading != "free"]


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
        replies = shared.answers(job, ["text"]).text
        texts = replies.fillna("").map(stimuli.rewritten)
        for event in events.event[texts == ""]:
            raise InputError(f"REWRITER {job.model.name!r} gave no text of the event {event!r}")
        events["third_person_text"] = texts
    return events


def _settings(parameters: Parameters, events: pd.DataFrame) -> list[stimuli.Setting]:
    """List the settings whose form of the narrative all events have."""
    names = parameters.SETTINGS or stimuli.wordings()["settings"]
    settings = [stimuli.setting(name) for name in names]
    shown = [wording for wording in settings if (events[wording.form] != "").all()]
    if not shown:
        raise InputError(f"CORPUS {parameters.CORPUS!r} lacks the narratives that SETTINGS show")
    return shown


def _text_jobs(
    parameters: Parameters, events: pd.DataFrame, settings: Iterable[stimuli.Setting]
) -> list[Job]:
    """Ask each model for free text, in each setting and category."""
    temperature = parameters.TEMPERATURE
    sampling = Sampling(
        temperature=None if temperature == "" else temperature,
        top_p=parameters.TOP_P,
        max_tokens=parameters.MAX_TOKENS,
        seed=parameters.SEED,
        reasoning=parameters.REASONING,
    )
    options = {"system": parameters.SYSTEM, "bos": parameters.BOS}
    # All models share one design, whose prompts are hashed once.
    designs = []
    for wording in settings:
        for category in parameters.CATEGORIES or stimuli.categories():
            designs.append(stimuli.design(events, wording, category))

    found = []
    for asked in parameters.models:
        for design in designs:
            labels = design.blocks[0].labels
            category = "-".join(labels["category"].lower().split())
            part = f"{labels['setting']}-{category}"
            found.append(Job("empathy_gap", part, asked, design, sampling, labels, options))
    return found


def _rounds(first: Job, n_rounds: int) -> list[Job]:
    """Repeat a job in several rounds, each with a seed of its own."""
    rounds = [first]
    for number in range(2, n_rounds + 1):
        seed = first.sampling.seed + 1000 * (number - 1)
        again = replace(
            first,
            part=f"{first.part}-round{number}",
            sampling=replace(first.sampling, seed=seed),
            labels={**first.labels, "round": number},
        )
        rounds.append(again)
    return rounds


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
        parsed = read_ratings(replies, wording.low, wording.high, RULES[parsing])
        parsed = parsed.rename(columns={"value": "rating"})
        trials["option_mass"] = np.nan  # of scored answers alone
        return trials.assign(reading="free", text=replies.text, **parsed)

    replies = shared.answers(job, ["text", "probabilities", "option_mass"])
    has_none = replies.finish_reason.isin([FAILED, FILTERED, MISSING])
    trials["status"] = replies.finish_reason.where(has_none, "ok")
    trials["option_mass"] = scoring.matrix(replies.option_mass, 1)
    tables = []
    for reading in ("expected", "greedy"):
        ratings = scoring.ratings(replies, job.sampling, reading)
        tables.append(trials.assign(reading=reading, rating=ratings[0]))
    return pd.concat(tables, ignore_index=True)


def _trials(job: Job) -> pd.DataFrame:
    """Name the model, the labels and the levels of each trial, in the order of the design."""
    (block,) = job.design.blocks
    levels = dict(block.factors)
    levels["event"] = [event.name for event in levels["event"]]
    # Categories keep the order of the design, and take a byte or two for each trial.
    factors = [pd.CategoricalIndex(names, categories=names) for names in levels.values()]
    table = pd.MultiIndex.from_product(factors, names=FACTORS).to_frame(index=False)
    return table.assign(model=job.model.name, **block.labels)


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
    table = pd.concat([load(job, parsing) for job in jobs], ignore_index=True)
    for column in TRIAL:
        table[column] = pd.Categorical(table[column], table[column].unique())
    table = table.sort_values(["model", "reading"], kind="stable", ignore_index=True)

    rounds = table.groupby(TRIAL, observed=True, sort=False)
    if rounds.ngroups == len(table):
        return table
    table["rating"] = rounds.rating.transform("mean")
    table["status"] = np.where(table.rating.notna(), "ok", rounds.status.transform("first"))
    return table.drop_duplicates(TRIAL, ignore_index=True)
