"""What is asked, and how replies become one long table: a row for each rated word."""

import re
from dataclasses import replace
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
from ingroup.parsing import CUT, OK, UNPARSABLE, WITHOUT_TEXT
from ingroup.stereomap import stimuli
from ingroup.stereomap.lists import parse_keywords, parse_ratings
from ingroup.stereomap.stimuli import HIGH, LOW, OVERALL, PAPER, Prompt

FIRST = "Warmth-Competence"  # the prompt that the ablations reduce
MAP = ["model", "reading", "version"]  # what tells one map of the groups from another
ROUND = [*MAP, "ablation", "round"]
TRIAL = [*ROUND, "construct", "prompt", "part", "group"]
Asked = tuple[str, list[str], int, Sampling]  # the end of a part's name, prompts, round, sampling


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
    CLUSTERS: Annotated[int, Field(ge=2)] = 5
    SHEETS: Texts = Field(default_factory=list)


def _sections(p: Parameters) -> list[tuple[str, str, int]]:
    """List version, ablation and rounds: both versions, then the reduced forms of `FIRST`."""
    paper, *reduced = stimuli.ABLATIONS
    sections = [("EXTENDED", paper, p.ROUNDS), ("ORIGINAL", paper, p.ROUNDS)]
    for ablation in reduced:
        sections.append(("EXTENDED", ablation, p.ABLATION_ROUNDS))
    return sections


def _jobs(p: Parameters, model: Model, is_scored: bool) -> list[Job]:
    """Plan the jobs of a model: scored answers, or rounds of free text, for each section."""
    planned = []
    for number, (version, ablation, rounds) in enumerate(_sections(p)):
        which = p.ORIGINAL_GROUPS if version == "ORIGINAL" else version
        groups = stimuli.names(which, p.GROUPS)
        if not groups or not rounds:
            continue

        known = stimuli.prompts(version)
        names = list(known) if ablation == PAPER else [FIRST]
        manner = {"form": p.FORM, "wording": p.WORDING}
        if is_scored:
            asked = _lists(known, names)
        else:
            asked = _rounds(p, names, rounds, number)
            manner["calls"] = p.CALLS
        for end, together, turn, sampling in asked:
            job = Job(
                study="stereomap",
                part=_part(p, version, ablation, end),
                model=model,
                design=stimuli.design(version, groups, together, ablation, **manner),
                sampling=sampling,
                labels={"version": version, "ablation": ablation, "round": turn},
            )
            planned.append(job)
    return planned


def _lists(known: dict[str, Prompt], names: list[str]) -> list[Asked]:
    """Ask for scored answers: neighbouring prompts with the same words share a job."""
    asked = []
    for words, together in groupby(names, lambda name: known[name].words):
        same = list(together)
        asked.append((same[0].lower(), same, 1, scored_sampling(words)))
    return asked


def _rounds(p: Parameters, names: list[str], rounds: int, number: int) -> list[Asked]:
    """Ask for free text: a round has a seed of its own, as has a section."""
    asked = []
    for turn in range(1, rounds + 1):
        sampling = replace(p.sampling, seed=p.SEED + number + 1000 * turn)
        asked.append((f"round{turn}", names, turn, sampling))
    return asked


def _part(p: Parameters, version: str, ablation: str, end: str) -> str:
    """Name a part of the study: words and hyphens alone."""
    without_slash = ablation.replace("w/o", "wo")
    wording = "" if p.WORDING == "paper" else "as sent"
    text = f"{version} {without_slash} {p.FORM} {p.CALLS} {wording} {end}"
    return "-".join(re.findall(r"[\w+]+", text))


def scored_sampling(words: tuple[str, ...]) -> Sampling:
    """Score the ratings of a list of words one after the other, each given those before it.

    The keywords and reasons that a prompt asks for first are left out.
    """
    lines = [f"- {word}:" if word != OVERALL else f"{word}:" for word in words]
    # From the second word on, a prefix also ends the line before it.
    prefixes = [lines[0], *(f"\n{line}" for line in lines[1:])]
    # A number begins with the blank after the colon.
    choices = [f" {number}" for number in range(LOW, HIGH + 1)]
    return Sampling(choices=tuple(choices), prefixes=tuple(prefixes))


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
        if model.reading == "free":
            continue
        of_model = _jobs(parameters, model, is_scored=False)
        is_live = model.engine != "recorded"
        if is_live or any(len(job.recorded()) for job in of_model):
            planned += of_model
    return planned


def _trials(job: Job, reading: str) -> pd.DataFrame:
    """List the trials of a job with all their labels, in the order of the design."""
    rows = []
    for block in job.design.blocks:
        labels = {**block.labels, **job.labels}
        rows += [labels | {"group": group} for group in block.factors["group"]]
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
    texts = stored.text.astype("str").astype(object)
    # The last word of a cut reply may be half a number or half a keyword.
    without_last = texts.str.replace(r"\S+\Z", "", regex=True)
    is_cut = stored.finish_reason == LENGTH
    table["text"] = texts.mask(is_cut, without_last)
    table["finish_reason"] = stored.finish_reason

    rows = []
    for trial in table.itertuples():
        asked = stimuli.expected(trial.version, trial.prompt, trial.part, trial.ablation)
        ratings, status = _read(trial.text or "", trial.finish_reason, asked, rule)
        rows.append([asked.n_keywords, ratings, status])
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
    nothing = pd.DataFrame(columns=[*TRIAL, "text", "status"])
    tables = [replies(job, rule) for job in planned if not job.sampling.choices]
    return pd.concat([nothing, *tables], ignore_index=True)


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
        trials = read.loc[words.index, [*TRIAL, "status"]]
        table = trials.reset_index(drop=True)
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
    trials["status"] = scoring.statuses(stored)

    ratings = scoring.ratings(stored, job.sampling, reading)
    wide = trials.join(ratings.set_axis(words, axis=1))
    table = wide.melt(list(trials), var_name="item", value_name="rating")
    mass = scoring.matrix(stored.option_mass, len(words))
    # `melt` puts the columns below each other.
    return table.assign(option_mass=mass.ravel("F"))


def load_all(planned: list[Job], rule: str = "sound") -> pd.DataFrame:
    """Read the ratings of several jobs into one long table, scored answers in both readings."""
    tables = []
    for job in planned:
        for reading in ("expected", "greedy") if job.sampling.choices else ("free",):
            tables.append(load(job, reading, rule))
    return pd.concat(tables, ignore_index=True)
