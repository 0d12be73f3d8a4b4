"""What is asked, and how replies become one long table: a row for each rated word."""

import re
from itertools import groupby
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from ingroup.inference import parameters as shared
from ingroup.inference import scoring
from ingroup.inference.answers import LENGTH, Sampling
from ingroup.inference.jobs import Job, answers
from ingroup.inference.models import Model
from ingroup.inference.parameters import Count, Texts
from ingroup.parsing import CUT, FAILED, MISSING, OK, REFUSED, UNPARSABLE
from ingroup.stereomap import stimuli
from ingroup.stereomap.lists import parse_keywords, parse_ratings
from ingroup.stereomap.stimuli import HIGH, LOW, OVERALL, PAPER, Prompt

FIRST = "Warmth-Competence"  # the prompt that the ablations reduce
MAP = ["model", "reading", "version"]  # what tells one map of the groups from another
ROUND = [*MAP, "ablation", "round"]
TRIAL = [*ROUND, "construct", "prompt", "part", "group"]
WITHOUT_TEXT = {"failed": FAILED, "missing": MISSING, "filtered": REFUSED}  # by how a reply ended


class Parameters(shared.Parameters):
    """Parameters of the notebooks 40 and 41."""

    GROUPS: Texts = Field(default_factory=list)
    ORIGINAL_GROUPS: Literal["paper", "released"] = "paper"
    ROUNDS: Count = 2
    ABLATION_ROUNDS: Annotated[int, Field(ge=0)] = 0
    FORM: Literal["released", "grammatical"] = "released"
    WORDING: Literal["paper", "released"] = "paper"
    CALLS: Literal["together", "separate"] = "together"
    TEMPERATURE: Annotated[float, Field(ge=0, le=2)] | Literal[""] = 1.0
    MAX_TOKENS: Count = 400
    INCOMPLETE: Literal["drop", "mean"] = "drop"
    CLUSTERS: Annotated[int, Field(ge=2)] = 5
    SHEETS: Texts = Field(default_factory=list)


def _sections(p: Parameters) -> list[tuple[str, str, int]]:
    """List version, ablation and rounds: both versions, then the reduced forms of `FIRST`."""
    paper, *reduced = stimuli.ABLATIONS
    sections = [("EXTENDED", paper, p.ROUNDS), ("ORIGINAL", paper, p.ROUNDS)]
    for ablation in reduced:
        sections.append(("EXTENDED", ablation, p.ABLATION_ROUNDS))
    return sections


def _part(p: Parameters, version: str, ablation: str) -> str:
    """Name a part of the study: words and hyphens alone."""
    names = [version, ablation.replace("w/o", "wo"), p.FORM, p.CALLS]
    if p.WORDING != "paper":
        names.append("as-sent")
    return "-".join(re.findall(r"[\w+]+", " ".join(names)))


def _jobs(p: Parameters, model: Model, is_scored: bool) -> list[Job]:
    """Plan the jobs of a model. A round of free text has a seed of its own, as has a section."""
    planned = []
    for number, (version, ablation, rounds) in enumerate(_sections(p)):
        groups = stimuli.names(p.ORIGINAL_GROUPS if version == "ORIGINAL" else version, p.GROUPS)
        if not groups or not rounds:
            continue
        names = list(stimuli.prompts(version)) if ablation == PAPER else [FIRST]
        part = _part(p, version, ablation)
        labels = {"version": version, "ablation": ablation}
        manner = {"form": p.FORM, "wording": p.WORDING}

        if is_scored:
            words_of = {name: stimuli.prompts(version)[name].words for name in names}
            for words, same in groupby(names, words_of.get):
                together = list(same)
                end = together[0].lower().replace(" ", "-")
                asked = stimuli.design(version, groups, together, ablation, **manner)
                sampling = scored_sampling(words)
                of_round = labels | {"round": 1}
                planned.append(Job("stereomap", f"{part}-{end}", model, asked, sampling, of_round))
            continue

        asked = stimuli.design(version, groups, names, ablation, calls=p.CALLS, **manner)
        for turn in range(1, rounds + 1):
            seed = p.SEED + number + 1000 * turn
            temperature = None if p.TEMPERATURE == "" else p.TEMPERATURE
            sampling = Sampling(temperature, p.TOP_P, p.MAX_TOKENS, seed, reasoning=p.REASONING)
            of_round = labels | {"round": turn}
            planned.append(
                Job("stereomap", f"{part}-round{turn}", model, asked, sampling, of_round)
            )
    return planned


def scored_sampling(words: tuple[str, ...]) -> Sampling:
    """Score the ratings of a list of words one after the other, each given those before it.

    The keywords and reasons that a prompt asks for first are left out.
    """
    prefixes: list[str] = []
    for word in words:
        line = f"{word}:" if word == OVERALL else f"- {word}:"
        # From the second word on, a prefix also ends the line before it.
        prefixes.append(f"\n{line}" if prefixes else line)
    # A number begins with the blank after the colon.
    choices = tuple(f" {number}" for number in range(LOW, HIGH + 1))
    return Sampling(choices=choices, prefixes=tuple(prefixes))


def jobs(parameters: Parameters) -> list[Job]:
    """List the jobs that the map rests on, each model asked as its reading says.

    Scored answers have one round, because the distribution is always the same. Neighbouring prompts
    with the same words share a job.
    """
    planned: list[Job] = []
    for model in parameters.models:
        planned += _jobs(parameters, model, model.reading != "free")
    return planned


def written(parameters: Parameters) -> list[Job]:
    """List the jobs in free text, in rounds, of the models that `jobs` scores.

    Only text can have keywords and reasons, and only text can refuse. A recorded model of which no
    text is recorded is left out.
    """
    planned: list[Job] = []
    for model in parameters.models:
        if model.reading != "free":
            own = _jobs(parameters, model, is_scored=False)
            if model.engine != "recorded" or any(len(job.recorded()) for job in own):
                planned += own
    return planned


def _trials(job: Job, reading: str) -> pd.DataFrame:
    """List the trials of a job with all their labels, in the order of the design."""
    rows = []
    for block in job.design.blocks:
        for group in block.factors["group"]:
            rows.append({**block.labels, **job.labels, "group": group})
    trials = pd.DataFrame(rows).assign(model=job.model.name, reading=reading)
    return trials[TRIAL]


def replies(job: Job, rule: str = "sound") -> pd.DataFrame:
    """Read the replies to a job in free text.

    Parameters
    ----------
    job : Job
        From `jobs` or `written`, without choices.
    rule : {"sound", "released"}
        How ratings are read (`lists.parse_ratings`).

    Returns
    -------
    DataFrame
        One row for each trial, in the order of the design: `ROUND`, ``construct``, ``prompt``,
        ``part``, ``group``; ``text``, without the last word of a cut reply; ``finish_reason``;
        ``n_keywords`` that were asked for; ``ratings``, a dict of each rated item; ``status``,
        "ok", "incomplete" (some words have a rating) or the reason why there is none.
    """
    stored = answers(job, ["text"])
    table = _trials(job, "free")
    texts = stored.text.astype(object).where(stored.text.notna(), None)
    # The last word of a cut reply may be half a number or half a keyword.
    without_last = stored.text.astype("str").str.replace(r"\S+\Z", "", regex=True)
    table["text"] = texts.mask(stored.finish_reason == LENGTH, without_last)
    table["finish_reason"] = stored.finish_reason
    rows = []
    for trial, ending in zip(table.itertuples(), stored.finish_reason, strict=True):
        asked = stimuli.expected(trial.version, trial.prompt, trial.part, trial.ablation)
        rows.append((asked.n_keywords, *_read(trial.text or "", ending, asked, rule)))
    read = pd.DataFrame(rows, columns=["n_keywords", "ratings", "status"])
    return table.join(read)


def _read(text: str, ending: str, asked: Prompt, rule: str) -> tuple[dict[str, float], str]:
    """Read the ratings in a reply, and say why there are none."""
    if ending in WITHOUT_TEXT:
        return dict.fromkeys(asked.words, np.nan), WITHOUT_TEXT[ending]

    values: dict[str, float] = {}
    if asked.words:
        values, status, *_ = parse_ratings(text, asked.words, rule)
    else:
        status = parse_keywords(text, asked.n_keywords).status
    if ending == LENGTH and status == UNPARSABLE:
        status = CUT
    return values, status


def load_replies(planned: list[Job], rule: str = "sound") -> pd.DataFrame:
    """Read the `replies` to several jobs; no row without a job in free text."""
    tables = [pd.DataFrame(columns=[*TRIAL, "text", "status"])]
    tables += [replies(job, rule) for job in planned if not job.sampling.choices]
    return pd.concat(tables, ignore_index=True)


def load(job: Job, reading: str = "", rule: str = "sound") -> pd.DataFrame:
    """Read the ratings of a job.

    Parameters
    ----------
    job : Job
        From `jobs` or `written`.
    reading : {"", "expected", "greedy"}
        How scored answers are read, "" for the reading of the model.
    rule : {"sound", "released"}
        How free text is read.

    Returns
    -------
    DataFrame
        One row for each rated word of each trial: `ROUND`, ``construct``, ``prompt``, ``part``,
        ``group``, ``item`` (the word; for a rating without a word, the name of the prompt);
        ``rating`` (1 to 5, NaN without one); ``status``, "ok" or the reason why there is no rating;
        and ``option_mass``, the probability that the unconstrained model gives to the beginnings of
        admissible answers (NaN for free text).
    """
    if job.sampling.choices:
        table = _scored(job, reading or job.model.reading)
    else:
        read = replies(job, rule)
        words = read.ratings.map(dict.items).map(list).explode().dropna()
        table = read.loc[words.index, [*TRIAL, "status"]].reset_index(drop=True)
        table[["item", "rating"]] = pd.DataFrame(words.tolist())
        table["option_mass"] = np.nan

    # A word that a list lacks was not read.
    reason = table.status.replace([OK, "incomplete"], UNPARSABLE)
    table["status"] = reason.where(table.rating.isna(), OK)
    table["item"] = table.item.mask(table.item == OVERALL, table.prompt)
    return table


def _scored(job: Job, reading: str) -> pd.DataFrame:
    """Read scored answers; the status is that of the whole trial."""
    stored = answers(job, ["text", "probabilities", "option_mass"])
    words = [prefix.strip("\n- :") for prefix in job.sampling.prefixes]
    trials = _trials(job, reading)
    trials["status"] = stored.finish_reason.map(WITHOUT_TEXT).fillna(OK)

    ratings = scoring.ratings(stored, job.sampling, reading).set_axis(words, axis=1)
    mass = scoring.matrix(stored.option_mass, len(words))
    table = trials.join(ratings).melt(list(trials), var_name="item", value_name="rating")
    # `melt` puts the columns below each other.
    return table.assign(option_mass=mass.ravel("F"))


def load_all(planned: list[Job], rule: str = "sound") -> pd.DataFrame:
    """Read the ratings of several jobs into one long table, scored answers in both readings."""
    tables = []
    for job in planned:
        for reading in ("expected", "greedy") if job.sampling.choices else ("free",):
            tables.append(load(job, reading, rule))
    return pd.concat(tables, ignore_index=True)
