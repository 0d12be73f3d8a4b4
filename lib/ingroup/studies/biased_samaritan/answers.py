"""Stored answers of the Biased Samaritan, read into a table of ratings, one row per prompt."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Job, stored
from ingroup.inference.choices import agreement, beginnings, probabilities
from ingroup.inference.reading import Reading, ratings_from_scores, three_readings
from ingroup.parsing import (
    CUT,
    FAILED,
    OK,
    REFUSED,
    UNPARSABLE,
    Parsed,
    Rule,
    ends_in_cut_number,
    final_status,
    parse_rating,
)
from ingroup.studies.biased_samaritan import stimuli
from ingroup.studies.biased_samaritan.design import Prompt
from ingroup.synthesis import ways_to_read

SILENT = (REFUSED, UNPARSABLE, CUT, FAILED)  # statuses of a reply without a number
PROMPT = list(Prompt._fields)  # the columns that tell one prompt from all others


def load(job: Job, rule: Rule = "sound", reading: Reading | None = None) -> pd.DataFrame:
    """Load the prompts of one job with stored answers, and their ratings.

    Parameters
    ----------
    job : Job
        A job of :func:`~.design.jobs`.
    rule : {"sound", "released"}
        How free text is parsed, see :func:`ingroup.parsing.parse_rating`.
    reading : Reading, optional
        How scored answers are read, by default the job's own reading.

    Returns
    -------
    DataFrame
        One row per prompt, in the order of the design: the fields of :class:`~.design.Prompt`,
        ``reply`` (None where the request failed), ``rating`` (in points of the scale, NaN where it
        is missing) and ``status`` ("ok", "refused", "unparsable", "cut", "failed"), which
        :func:`ingroup.parsing.final_status` decides. A number at which a reply was cut is not an
        answer. The ``reply`` of a scored answer is its greedy number.

    Raises
    ------
    StoreError
        Where there are no answers to these prompts, or the reading needs more than is stored.
    """
    (block,) = job.design.blocks
    store = stored(job)
    responses = store.read()
    # A failed request has a missing text, which `parse_rating` takes as None.
    has_text = responses.text.notna()
    texts = responses.text.astype(object).where(has_text, None)

    parsed = _parsed(texts, rule)
    if job.is_scored:
        # There is one column per question of a prompt, and here one question.
        scored = ratings_from_scores(responses, store, job.sampling, reading or job.reading)[0]
        # The text of a scored answer is its greedy number; only its status is needed here.
        status = final_status(responses, parsed.status)
        # A server's most probable tokens may hold no admissible answer.
        status[(status == OK) & scored.isna()] = UNPARSABLE
        ratings = scored.where(status == OK)
    else:
        # These replies are at their limit, so `final_status` makes them "cut".
        parsed.loc[ends_in_cut_number(responses), "status"] = UNPARSABLE
        status = final_status(responses, parsed.status)
        ratings = parsed.rating.where(status == OK)

    prompts = pd.DataFrame(block.factors["prompt"])
    return prompts.assign(reply=texts, rating=ratings, status=status)


def _parsed(texts: pd.Series, rule: Rule) -> pd.DataFrame:
    """Parse each text into a ``rating`` and a ``status``."""
    scale = stimuli.request()

    # Many replies are equal, so each text is parsed once.
    @cache
    def parse(text: str | None) -> Parsed:
        return parse_rating(text, scale.low, scale.high, rule)

    return pd.DataFrame(map(parse, texts), columns=["rating", "status"])


def cubes(prompts: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Arrange the ratings of each group of a category as arrays for the statistics.

    Parameters
    ----------
    prompts : DataFrame
        From :func:`load`.

    Returns
    -------
    dict of str to ndarray, (phrasing, scenario, wording)
        Groups, the control among them, and phrasings in the order of Table 4. NaN where a rating is
        missing, or where the crossing "totals" does not ask.
    """
    # A run with LATINO has phrasings that Table 4 lacks.
    tables = [stimuli.phrasings(category, latino=True) for category in stimuli.categories()]
    phrasings_in_order = pd.Index(pd.concat(tables).phrasing.unique())
    in_order = prompts.sort_values(
        "phrasing",
        key=phrasings_in_order.get_indexer,
        kind="stable",
    )
    wordings = sorted(prompts.wording.unique())

    arrays = {}
    for group, rows in in_order.groupby("group", sort=False):
        rated = rows.pivot(
            index=["phrasing", "scenario"],
            columns="wording",
            values="rating",
        )
        phrasings = list(rows.phrasing.unique())
        # `pivot` sorts phrasings by name, so they are put back into order. With "totals" a group
        # may lack a wording in all scenarios, whose column is then NaN.
        rated = rated.reindex(columns=wordings).loc[phrasings]
        shape = (len(phrasings), -1, len(wordings))
        arrays[group] = rated.to_numpy().reshape(shape)
    return arrays


def decimals(prompts: pd.DataFrame) -> pd.DataFrame:
    """Compute how many answers in free text have a decimal, by group.

    Parameters
    ----------
    prompts : DataFrame
        The prompts of one job in free text, as `load` returns them.

    Returns
    -------
    DataFrame
        Index ``group``; the percentages of answers with ``a decimal`` and with ``a repeating one``
        (66.66), the percentage of prompts whose ``mean over names`` has a decimal, and the number
        of ``answers``.
    """
    rows = prompts[prompts.status == "ok"]
    columns = {
        "a decimal": rows.rating % 1 > 0,
        "a repeating one": rows.reply.str.count(r"\d[.,](\d)\1") > 0,
    }
    has_decimal = pd.DataFrame(columns)
    shares = has_decimal.groupby(rows.group, sort=False).mean()

    # The mean of whole numbers over the phrasings of a prompt may have a decimal, too.
    means = rows.groupby(["group", "scenario", "wording"], sort=False).rating.mean()
    mean_has_decimal = means % 1 > 0
    shares["mean over names"] = mean_has_decimal.groupby("group", sort=False).mean()

    percentages = 100 * shares
    n_answers = rows.groupby("group").size()
    return percentages.assign(answers=n_answers)


def every_reading(
    job: Job, rule: Rule = "sound", texts: pd.DataFrame | None = None
) -> dict[tuple[str, str], pd.DataFrame]:
    """Load the answers to a scored job under every reading that they allow.

    Parameters
    ----------
    job : Job
        A scored job.
    rule : {"sound", "released"}
        As in `load`.
    texts : DataFrame, optional
        The same model's answers in free text, from `load`, which are a further reading.

    Returns
    -------
    dict of tuple to DataFrame
        The tables of `load` by reading ("free", "greedy", "drawn" or "expected") and by what ends a
        number ("" for free text). Free text comes first.
    """
    answers = {}
    if texts is not None:
        answers["free", ""] = texts
    # The readings come by their names, which join the two entries of the key.
    for reading in ways_to_read([job]).values():
        answers[reading.how, reading.ending] = load(job, rule, reading)
    return answers


def free_beside_choices(job: Job, scored: pd.DataFrame, texts: pd.DataFrame) -> dict[str, Any]:
    """Compare the free text of a model with its scored answers to the same prompts.

    Parameters
    ----------
    job : Job
        A scored job.
    scored : DataFrame
        The prompts of this job, from `load`.
    texts : DataFrame
        The prompts in free text, from `load`.

    Returns
    -------
    dict
        The numbers of :func:`ingroup.inference.choices.agreement`, and how many free answers have
        each status of `SILENT`.
    """
    store = stored(job)
    responses = store.read()
    of_scored = three_readings(responses, store, job.sampling)
    # A reply to one question has one option mass, the first of its list.
    of_scored["option_mass"] = responses.mass.list[0].astype(float)

    prompts = scored[PROMPT].join(of_scored)
    both = texts.merge(prompts, on=PROMPT)
    # The admissible answer with which each free reply begins.
    begun = beginnings(both.reply, job.sampling.choices)
    row: dict[str, Any] = agreement(
        free=both.rating,
        chosen=both.most_probable,
        option_mass=both["option_mass"],
        greedy=both.greedy,
        mean=both.expected,
        begun=pd.to_numeric(begun),
    )
    for status in SILENT:
        row[status] = int((both.status == status).sum())
    return row


def mean_distribution(jobs: Sequence[Job]) -> pd.DataFrame:
    """Average the probabilities of the admissible answers over all prompts of a scored model.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers. Jobs in free text are left out.

    Returns
    -------
    DataFrame
        Index ``answer``, the points of the scale; one column per scored model. All jobs of a model
        count the same, however many prompts they have.
    """
    by_model: dict[str, list[NDArray]] = defaultdict(list)
    for job in jobs:
        if not job.is_scored:
            continue

        responses = stored(job).read(columns=["probabilities"])
        # A reply is one rating, so the second axis has the length 1.
        of_prompts = probabilities(responses, job.sampling.choices)[:, 0]
        of_job = np.nanmean(of_prompts, axis=0)
        by_model[job.model].append(of_job)

    means = {}
    for model, of_jobs in by_model.items():
        means[model] = np.mean(of_jobs, axis=0)

    scale = stimuli.request()
    points = pd.RangeIndex(scale.low, scale.high + 1, name="answer")
    return pd.DataFrame(means, points)
