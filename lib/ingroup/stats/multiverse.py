"""A claim under every combination of the choices that a paper leaves open.

A *choice* has options, a *path* takes one option of each choice, and a claim is computed on every
path by the statistics of the studies themselves. It *stands* on a path where its estimate has the
claimed sign (all claims here are that something is above 0) and its p, corrected, is below alpha.
The share of the paths on which it stands is no probability: it depends on the choices that were
thought of, and paths share their data. After Steegen et al. 2016 (Perspectives on Psychological
Science 11:702) and, for the curve, Simonsohn et al. 2020 (Nature Human Behaviour 4:1208).

No study is known here: :mod:`ingroup.claims` has a function a study that takes a path's options.
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ingroup.stats.paired import adjust

CORRECTIONS = ("none", "Bonferroni", "Holm", "Benjamini-Hochberg")


class Result(NamedTuple):
    """A claim on one path: NaN, and the reason, where it is not defined there."""

    estimate: float
    low: float
    high: float
    p: float
    reason: str = ""


def paths(
    choices: Mapping[str, Sequence], applies: Callable[..., bool] | None = None
) -> list[dict[str, Any]]:
    """Every combination of options, the first choice changing slowest.

    Parameters
    ----------
    choices : mapping
        Name to options, at least one each.
    applies : callable, optional
        Takes a path as keywords, False for one that makes no sense; all do unless given.

    Raises
    ------
    ValueError
        For a choice without an option, or with one twice.
    """
    for name, options in choices.items():
        if not options or len(set(options)) < len(options):
            raise ValueError(f"{name} has the options {list(options)}, expected each once")
    every = (dict(zip(choices, path, strict=True)) for path in product(*choices.values()))
    return [path for path in every if applies is None or applies(**path)]


def correct(p: ArrayLike, method: str) -> NDArray[np.float64]:
    """p-values of one family, corrected by one of `CORRECTIONS`; NaN is no test and stays NaN.

    Bonferroni and Holm by `ingroup.stats.paired.adjust`, Benjamini and Hochberg's false discovery
    rate by scipy.stats.false_discovery_control.

    Raises
    ------
    ValueError
        For an unknown method.
    """
    p = np.array(p, dtype=float)
    tested = ~np.isnan(p)
    if method not in CORRECTIONS:
        raise ValueError(f"method is {method!r}, expected one of {CORRECTIONS}")
    if method == "none" or not tested.any():
        return p
    if method == "Benjamini-Hochberg":
        p[tested] = stats.false_discovery_control(p[tested])
        return p
    return adjust(p, method.lower())


def evaluate(
    choices: Mapping[str, Sequence],
    results: Callable[..., Mapping[str, Result]],
    alpha: float,
    applies: Callable[..., bool] | None = None,
    corrections: Sequence[str] = CORRECTIONS,
) -> pd.DataFrame:
    """All claims of one family on every path; the correction is the last choice.

    Parameters
    ----------
    choices, applies
        See `paths`.
    results : callable
        Takes a path as keywords and gives the `Result` of each claim. These are one family: the
        corrections count as many tests as there are claims with a p.
    alpha : float
        Level, above 0 and below 1.
    corrections : sequence of str
        Some of `CORRECTIONS`.

    Returns
    -------
    DataFrame
        A row for each path and claim: ``claim``, a column a choice, ``correction``, the fields of
        `Result`, ``p_corrected``, ``stands``, and ``reversed``: significant with the other sign.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha!r}, expected a number between 0 and 1")
    rows = []
    # statsmodels collects garbage at every correction, a tenth of a second each in a notebook.
    gc.freeze()
    try:
        for path in paths(choices, applies):
            found = results(**path)
            family = [one.p for one in found.values()]
            for correction in corrections:
                for (claim, one), p in zip(found.items(), correct(family, correction), strict=True):
                    rows.append((claim, *path.values(), correction, *one, p))
    finally:
        gc.unfreeze()
    columns = ["claim", *choices, "correction", *Result._fields, "p_corrected"]
    table = pd.DataFrame(rows, columns=columns)
    significant = table.p_corrected < alpha
    return table.assign(
        stands=significant & (table.estimate > 0), reversed=significant & (table.estimate < 0)
    )


def shares(table: pd.DataFrame, by: Sequence[str] = ("claim",)) -> pd.DataFrame:
    """On which share of its paths a claim stands.

    Index `by`; ``paths``, ``undefined`` (of them, which count as not standing), ``stands`` and
    ``reversed`` (percent of the paths), ``median``, ``lowest`` and ``highest`` estimate.
    """
    numbers = table.assign(
        undefined=table.p.isna(), stands=100.0 * table.stands, reversed=100.0 * table.reversed
    )
    return numbers.groupby(list(by), sort=False).agg(
        paths=("stands", "size"),
        undefined=("undefined", "sum"),
        stands=("stands", "mean"),
        reversed=("reversed", "mean"),
        median=("estimate", "median"),
        lowest=("estimate", "min"),
        highest=("estimate", "max"),
    )


def by_option(table: pd.DataFrame, choices: Sequence[str]) -> pd.DataFrame:
    """`shares` of the paths that take each option: which choice decides?"""
    parts = {}
    for name in [*choices, "correction"]:
        part = shares(table.astype({name: str}), ["claim", name])
        parts[name] = part.rename_axis(index=["claim", "option"])
    return pd.concat(parts, names=["choice"]).reorder_levels(["claim", "choice", "option"])


def attempt(function: Callable[..., Result], *arguments, **options) -> Result:
    """The result, or NaN and the sentence of the statistic that is not defined for these data."""
    try:
        return function(*arguments, **options)
    except ValueError as error:
        return Result(np.nan, np.nan, np.nan, np.nan, str(error))
