"""From stored answers to ratings: one row for each trial and reading."""

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ingroup.inference import jobs
from ingroup.inference.answers import Sampling
from ingroup.inference.jobs import Job
from ingroup.parsing import (
    CUT,
    FAILED,
    MISSING,
    OK,
    REFUSED,
    UNPARSABLE,
    Parsed,
    parse_cut_rating,
    parse_rating,
)

WITHOUT_TEXT = {"filtered": REFUSED, "failed": FAILED, "missing": MISSING}

# ---- free text


def read_answers(
    answers: pd.DataFrame,
    parse: Callable,
    parse_cut: Callable | None = None,
) -> pd.DataFrame:
    """Parse the texts of answers, and tell why there is no value from how they ended.

    Parameters
    ----------
    answers : DataFrame
        One row per answer, with ``text``, ``finish_reason`` and perhaps ``reasoning``.
    parse : callable
        Takes a text, gives a value and a status. Each different text is parsed once.
    parse_cut : callable, optional
        The same for a text that was cut, by default `parse`.

    Returns
    -------
    DataFrame
        ``value`` (None without one) and ``status``, with the index of the answers. An answer that
        was cut before its value is "cut", one that a filter declined "refused".
    """
    texts = answers["text"].astype(object).fillna("")
    endings = answers["finish_reason"].astype(object)
    if "reasoning" in answers:
        # All tokens went into the reasoning.
        has_reasoning = answers["reasoning"].fillna("") != ""
        has_text = texts.str.strip() != ""
        is_unanswered = has_reasoning & ~has_text & (endings == "stop")
        endings = endings.mask(is_unanswered, "length")

    @cache
    def read(text, ending):
        """Parse a text, each different one once."""
        is_cut = ending == "length"
        parse_this = parse_cut if is_cut and parse_cut else parse
        value, status = parse_this(text)
        if is_cut and status not in (OK, REFUSED):
            status = CUT
        status = WITHOUT_TEXT.get(ending, status)
        if status != OK:
            value = None
        return value, status

    rows = list(map(read, texts, endings))
    return pd.DataFrame(rows, index=answers.index, columns=["value", "status"])


def read_ratings(
    answers: pd.DataFrame,
    low: float,
    high: float,
    rule: Callable[..., Parsed] = parse_rating,
) -> pd.DataFrame:
    """Read ratings from answers in free text.

    Parameters
    ----------
    answers : DataFrame
        As in `read_answers`.
    low, high : float
        The ends of the scale.
    rule : {parse_rating, parse_rating_released}
        How a text is read. The released rule knows nothing of answers that were cut.

    Returns
    -------
    DataFrame
        ``rating`` in points of the scale, NaN without one, and ``status``.
    """
    of_cut = parse_cut_rating if rule is parse_rating else rule
    table = read_answers(
        answers,
        lambda text: rule(text, low, high),
        lambda text: of_cut(text, low, high),
    )
    rating = table["value"].astype(float)
    return pd.DataFrame({"rating": rating, "status": table["status"]})


# ---- scored answers


def matrix(column: pd.Series, width: int) -> NDArray[np.float64]:
    """Convert a column of lists to an array, with NaN where a list is empty.

    Parameters
    ----------
    column : Series of list
        Lists of `width` numbers, or empty.
    width : int
        The length of a list.

    Returns
    -------
    array of shape (rows, width)
        The numbers.
    """
    kind = pa.list_(pa.float16())
    lists = pa.array(column, kind, from_pandas=True)
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    lengths = lists.value_lengths().fill_null(0)
    has_values = lengths.to_numpy() > 0
    values = lists.flatten().to_numpy()
    shape = len(column), width
    table = np.full(shape, np.nan)
    table[has_values] = values.reshape(-1, width)
    return table


def greedy_choices(answers: pd.DataFrame, sampling: Sampling) -> pd.DataFrame:
    """Read the greedy answers from the stored texts, which have them behind their prefixes.

    Parameters
    ----------
    answers : DataFrame
        Rows of a store, with ``text``.
    sampling : Sampling
        How they were asked.

    Returns
    -------
    DataFrame of str
        One column for each prefix, NaN where no admissible answer was scored.
    """
    rest = answers.text.astype(object)
    columns = {}
    for number, prefix in enumerate(sampling.prefixes):
        rest = rest.str.removeprefix(prefix)
        columns[number] = rest
        for following in sampling.prefixes[number + 1 : number + 2]:
            parts = rest.str.split(following, n=1, regex=False)
            columns[number] = parts.str[0]
            rest = following + parts.str[1]
    chosen = pd.DataFrame(columns, answers.index)
    # A server may have written something else.
    has_text = ~answers.finish_reason.isin(WITHOUT_TEXT)
    is_admissible = chosen.isin(sampling.choices).mul(has_text, axis=0)
    return chosen.where(is_admissible)


def numbers(
    answers: pd.DataFrame,
    sampling: Sampling,
    reading: str = "expected",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Read scored answers as numbers.

    Parameters
    ----------
    answers : DataFrame
        Rows of a store: ``probabilities``, or ``text`` for the reading "greedy".
    sampling : Sampling
        How they were asked. Its choices are numbers.
    reading : {"expected", "greedy", "drawn"}
        The mean of the distribution over the choices, the answer that greedy decoding writes, or a
        draw from the distribution, as a model at temperature 1 gives.
    rng : numpy.random.Generator, optional
        The source of draws.

    Returns
    -------
    DataFrame
        One column for each prefix, NaN where no admissible answer was scored.
    """
    if reading == "greedy":
        return greedy_choices(answers, sampling).astype(float)

    points = np.array(sampling.choices, dtype=float)
    n_prefixes = len(sampling.prefixes)
    weights = matrix(answers.probabilities, n_prefixes * len(points))
    weights = weights.reshape(-1, n_prefixes, len(points))
    # Stored numbers have three digits, so their sum is not exactly 1.
    sums = weights.sum(axis=2)
    values = weights @ points / sums
    if reading == "drawn":
        cumulative = weights.cumsum(axis=2)
        shares = np.random.default_rng(rng).random(sums.shape)
        thresholds = shares * cumulative[..., -1]
        is_below = cumulative < thresholds[..., None]
        drawn = points[is_below.sum(axis=2)]
        values = np.where(np.isnan(sums), np.nan, drawn)
    return pd.DataFrame(values, answers.index)


def statuses(answers: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Tell whether scored answers have a value, or why there is none.

    Parameters
    ----------
    answers : DataFrame
        Rows of a store.
    values : Series
        What was read from them, NaN without a value.

    Returns
    -------
    Series of str
        "ok"; "unparsable" for a text without an admissible answer; else "failed", "missing" or
        "refused".
    """
    read = np.where(values.isna(), UNPARSABLE, OK)
    reasons = answers.finish_reason.astype(object).map(WITHOUT_TEXT)
    return reasons.where(reasons.notna(), read)


# ---- both


def load(
    job: Job,
    trials: pd.DataFrame,
    low: int,
    high: int,
    rule: Callable[..., Parsed] = parse_rating,
    readings: Iterable[str] = ("expected", "greedy"),
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Read the ratings of a job whose prompts ask for one number each.

    Parameters
    ----------
    job : Job
        The job.
    trials : DataFrame
        The labels and levels of each trial, in the order of the design, numbered from 0.
    low, high : int
        The ends of the scale.
    rule : {parse_rating, parse_rating_released}
        How a text is read.
    readings : iterable of {"expected", "greedy", "drawn"}
        How scored answers become `numbers`; one row for each reading.
    rng : numpy.random.Generator, optional
        The source of draws.

    Returns
    -------
    DataFrame
        The columns of `trials`; ``model``; ``reading``, "free" for free text; ``reply``, the text;
        ``rating`` in points, NaN without one; ``status``, "ok" or why there is no rating;
        ``option_mass``, the probability that the model, unconstrained, begins an admissible answer
        (NaN for free text).
    """
    if job.sampling.choices:
        stored = jobs.answers(job, ["text", "probabilities", "option_mass"])
        mass = matrix(stored.option_mass, 1)[:, 0]
        read = {}
        for reading in readings:
            rating = numbers(stored, job.sampling, reading, rng)[0]
            columns = {"rating": rating, "status": statuses(stored, rating)}
            read[reading] = pd.DataFrame(columns)
    else:
        stored = jobs.answers(job, ["text", "reasoning"])
        mass = np.nan
        read = {"free": read_ratings(stored, low, high, rule)}

    labelled = trials.assign(model=job.model.name, reply=stored.text, option_mass=mass)
    tables = [labelled.assign(reading=name).join(table) for name, table in read.items()]
    return pd.concat(tables, ignore_index=True)
