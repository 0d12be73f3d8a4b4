"""What is asked, and how replies become one long table: a row for each rated word."""

import re
from collections import defaultdict
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from ingroup.inference import parameters as shared
from ingroup.inference.answers import LENGTH, Sampling
from ingroup.inference.jobs import Job, answers
from ingroup.inference.parameters import AtLeast0, Count, Texts
from ingroup.parsing import CUT, OK, UNPARSABLE
from ingroup.ratings import WITHOUT_TEXT, matrix, numbers, statuses
from ingroup.stereomap import stimuli
from ingroup.stereomap.lists import parse_keywords, parse_ratings
from ingroup.stereomap.stimuli import HIGH, LOW, OVERALL, PAPER

FIRST = "Warmth-Competence"  # the prompt that the ablations reduce
MAP = ["model", "reading", "version"]  # what tells one map of the groups from another
ROUND = [*MAP, "ablation", "round"]
TRIAL = [*ROUND, "construct", "prompt", "part", "group"]


class Parameters(shared.Parameters):
    """Parameters of the notebooks 40 and 41."""

    GROUPS: Texts = Field(default_factory=list)
    ORIGINAL_GROUPS: Literal["paper", "released"] = "paper"
    ROUNDS: Count = 2
    ABLATION_ROUNDS: AtLeast0 = 0
    FORM: Literal["released", "grammatical"] = "released"
    WORDING: Literal["paper", "released"] = "paper"
    CALLS: Literal["together", "separate"] = "together"
    TEMPERATURE: Annotated[float, Field(ge=0, le=2)] | Literal[""] = 1.0
    MAX_TOKENS: Count = 400
    CLUSTERS: Annotated[int, Field(ge=2)] = 5
    SHEETS: Texts = Field(default_factory=list)


def _jobs(p, model, is_scored):
    """Plan the jobs of a model: both versions, then the reduced forms of `FIRST`."""
    sections = [("EXTENDED", PAPER), ("ORIGINAL", PAPER)]
    for ablation in stimuli.ABLATIONS[1:]:
        sections.append(("EXTENDED", ablation))

    planned = []
    for number, (version, ablation) in enumerate(sections):
        which = p.ORIGINAL_GROUPS if version == "ORIGINAL" else version
        groups = stimuli.names(which, p.GROUPS)
        prompts = list(stimuli.prompts(version))
        rounds = p.ROUNDS
        if ablation != PAPER:
            prompts = [FIRST]
            rounds = p.ABLATION_ROUNDS
        if not groups or not rounds:
            continue

        manner = {"form": p.FORM, "wording": p.WORDING}
        if is_scored:
            asked = _scored_lists(version, prompts)
        else:
            asked = _rounds(p, prompts, rounds, number)
            manner["calls"] = p.CALLS

        for end, names, turn, sampling in asked:
            wording = "" if p.WORDING == "paper" else "as sent"
            text = f"{version} {ablation} {p.FORM} {p.CALLS} {wording} {end}"
            plain = text.replace("w/o", "wo")
            job = Job(
                study="stereomap",
                part=re.sub(r"[^\w+]+", "-", plain),
                model=model,
                design=stimuli.design(version, groups, names, ablation, **manner),
                sampling=sampling,
                labels={"version": version, "ablation": ablation, "round": turn},
            )
            planned.append(job)
    return planned


def _scored_lists(version, prompts):
    """Ask for scored answers: prompts with the same words share a job."""
    by_words = defaultdict(list)
    for name in prompts:
        words, _ = stimuli.expected(version, name)
        by_words[words].append(name)
    for words, names in by_words.items():
        yield names[0].lower(), names, 1, scored_sampling(words)


def _rounds(p, prompts, rounds, number):
    """Ask for free text: a round has a seed of its own, as has a section."""
    for turn in range(1, rounds + 1):
        seed = p.SEED + number + 1000 * turn
        yield f"round{turn}", prompts, turn, replace(p.sampling, seed=seed)


def scored_sampling(words: tuple[str, ...]) -> Sampling:
    """Score the ratings of a list of words one after the other, each given those before it.

    The keywords and reasons that a prompt asks for first are left out.
    """
    prefixes = []
    for word in words:
        # From the second word on, a prefix also ends the line before it.
        before = "\n" if prefixes else ""
        bullet = "" if word == OVERALL else "- "
        prefixes.append(f"{before}{bullet}{word}:")
    # A number begins with the blank after the colon.
    choices = [f" {number}" for number in range(LOW, HIGH + 1)]
    return Sampling(choices=tuple(choices), prefixes=tuple(prefixes))


def jobs(parameters: Parameters) -> list[Job]:
    """List the jobs that the map rests on, each model asked as its reading says.

    Scored answers have one round, because the distribution is always the same. Prompts with the
    same words share a job.
    """
    planned = []
    for model in parameters.models:
        planned += _jobs(parameters, model, model.reading != "free")
    return planned


def written(parameters: Parameters) -> list[Job]:
    """List the jobs in free text, in rounds, of the models that `jobs` scores.

    Only text can have keywords and reasons, and only text can refuse. A recorded model of which no
    text is recorded is left out.
    """
    planned = []
    for model in parameters.models:
        if model.reading == "free":
            continue
        texts = _jobs(parameters, model, is_scored=False)
        if model.engine != "recorded" or any(len(job.recorded()) for job in texts):
            planned += texts
    return planned


def _trials(job):
    """List the trials of a job with all their labels, as those of free text."""
    trials = pd.DataFrame([trial.condition for trial in job.design])
    trials = trials.assign(model=job.model.name, reading="free", **job.labels)
    return trials[TRIAL]


def replies(planned: list[Job], rule: str = "sound") -> pd.DataFrame:
    """Read the replies to jobs in free text.

    Parameters
    ----------
    planned : list of Job
        From `jobs` or `written`. Scored ones are left out.
    rule : {"sound", "released"}
        How ratings are read (`lists.parse_ratings`).

    Returns
    -------
    DataFrame
        One row for each trial, in the order of the designs: `ROUND`, ``construct``, ``prompt``,
        ``part``, ``group``; ``text``, without the last word of a cut reply, and "" of a filtered,
        failed or missing one; ``finish_reason``; ``n_keywords`` that were asked for; ``item`` and
        ``rating``, lists of the words that were asked for and of their ratings; ``status``, "ok",
        "incomplete" (some words have a rating) or the reason why there is none.
    """
    tables = [pd.DataFrame(columns=[*TRIAL, "text", "finish_reason"])]
    for job in planned:
        if not job.sampling.choices:
            stored = answers(job, ["text"])
            trials = _trials(job)
            table = trials.join(stored[["text", "finish_reason"]])
            tables.append(table)
    table = pd.concat(tables, ignore_index=True).infer_objects()

    # The last word of a cut reply may be half a number or half a keyword.
    without_last = table.text.str.replace(r"\S+\Z", "", regex=True)
    is_cut = table.finish_reason == LENGTH
    is_without = table.finish_reason.isin(WITHOUT_TEXT)
    texts = table.text.mask(is_cut, without_last)
    table["text"] = texts.mask(is_without, "")

    rows = []
    for trial in table.itertuples():
        words, n_keywords = stimuli.expected(
            trial.version, trial.prompt, trial.part, trial.ablation
        )
        if words:
            ratings, status = parse_ratings(trial.text, words, rule)
        else:
            ratings = {}
            status = parse_keywords(trial.text, n_keywords).status

        if trial.finish_reason == LENGTH and status == UNPARSABLE:
            status = CUT
        status = WITHOUT_TEXT.get(trial.finish_reason, status)
        row = (n_keywords, list(ratings), list(ratings.values()), status)
        rows.append(row)
    read = pd.DataFrame(rows, columns=["n_keywords", "item", "rating", "status"])
    return table.join(read)


def load(job: Job, rule: str = "sound") -> pd.DataFrame:
    """Read the ratings of a job, scored answers in both readings.

    Parameters
    ----------
    job : Job
        From `jobs` or `written`.
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
        table = _scored(job)
    else:
        read = replies([job], rule)
        words = read.explode(["item", "rating"], ignore_index=True)
        table = words[[*TRIAL, "status", "item", "rating"]]
        table = table.dropna(subset="item")
        table["rating"] = table.rating.astype(float)
        table["option_mass"] = np.nan

    # A word that a list lacks was not read.
    reason = table.status.replace([OK, "incomplete"], UNPARSABLE)
    is_missing = table.rating.isna()
    table["status"] = reason.where(is_missing, OK)
    is_overall = table.item == OVERALL
    table["item"] = table.item.mask(is_overall, table.prompt)
    return table


def _scored(job):
    """Read scored answers in both readings; the status is that of the whole trial."""
    stored = answers(job, ["text", "probabilities", "option_mass"])
    words = [prefix.strip("\n- :") for prefix in job.sampling.prefixes]
    mass = matrix(stored.option_mass, len(words))
    trials = _trials(job)
    tables = []
    for reading in ("expected", "greedy"):
        ratings = numbers(stored, job.sampling, reading).set_axis(words, axis=1)
        trials["reading"] = reading
        trials["status"] = statuses(stored, ratings.sum(axis=1, skipna=False))
        wide = trials.join(ratings)
        table = wide.melt(list(trials), var_name="item", value_name="rating")
        # `melt` puts the columns below each other.
        table["option_mass"] = mass.ravel("F")
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
