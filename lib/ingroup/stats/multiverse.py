"""A claim under every combination of the choices that a paper leaves open.

A *choice* has options, a *path* takes one option of each choice. A claim (all are that something
is above 0) *stands* on a path where its estimate is and its p, corrected, is below alpha. The share
of the paths on which it stands is no probability: it depends on the choices that were thought of,
and paths share their data. After Steegen et al. 2016 (Perspectives on Psychological Science 11:702)
and, for the curve, Simonsohn et al. 2020 (Nature Human Behaviour 4:1208).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd

from ingroup.stats.paired import adjust

CORRECTIONS = ("none", "Bonferroni", "Holm", "Benjamini-Hochberg")


class Result(NamedTuple):
    """A claim on one path: NaN, and the reason, where it is not defined there."""

    estimate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    reason: str = ""


def paths(
    choices: Mapping[str, Sequence], applies: Callable[..., bool] | None = None
) -> list[dict[str, Any]]:
    """Every combination of the options of named choices to which it `applies`, the last fastest."""
    every = (dict(zip(choices, path, strict=True)) for path in product(*choices.values()))
    return [path for path in every if applies is None or applies(**path)]


def evaluate(
    reading: Mapping[str, Sequence], read: Callable[..., Any], choices: Mapping[str, Sequence],
    claims: Callable[..., Mapping[str, Result]], alpha: float,
    applies: Callable[..., bool] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """All claims of one family on every path; the correction is the last choice.

    The options of `reading`, the first choices, go to `read`, which gives the answers; paths on
    equal answers are computed once. Answers and the options of the other `choices`, where `applies`
    (see `paths`), go to `claims`, which gives the `Result` of each claim: one family.

    A row for each path and claim: ``claim``, a column a choice, ``correction``, the fields of
    `Result`, ``p_corrected``, ``stands`` (p_corrected < `alpha`), and ``reversed``: significant
    with the other sign.
    """
    rows, known = [], {}
    for sheet in paths(reading):
        answers = read(**sheet)
        name = joblib.hash(answers)
        for path in paths(choices, applies):
            key = (name, *path.values())
            if key not in known:
                known[key] = claims(answers, **path)
            options = *sheet.values(), *path.values()
            family = [one.p for one in known[key].values()]
            for method in CORRECTIONS:
                corrected = adjust(family, method.lower())
                corrected = zip(known[key].items(), corrected, strict=True)
                rows += [(claim, *options, method, *one, p) for (claim, one), p in corrected]
    columns = ["claim", *reading, *choices, "correction", *Result._fields, "p_corrected"]
    table = pd.DataFrame(rows, columns=columns)
    significant = table.p_corrected < alpha
    above, below = table.estimate > 0, table.estimate < 0
    return table.assign(stands=significant & above, reversed=significant & below)


def shares(table: pd.DataFrame, by: Sequence[str] = ("claim",)) -> pd.DataFrame:
    """On which share of its paths a claim stands; undefined ones count as not standing.

    Index `by`; numbers of paths, percent that stand or are reversed, and of the estimates.
    """
    numbers = table.assign(undefined=table.p.isna(), stands=100.0 * table.stands)
    numbers["reversed"] = 100.0 * table.reversed
    return numbers.groupby(list(by), sort=False).agg(
        paths=("stands", "size"), undefined=("undefined", "sum"),
        stands=("stands", "mean"), reversed=("reversed", "mean"),
        median=("estimate", "median"), lowest=("estimate", "min"), highest=("estimate", "max"),
    )  # fmt: skip


def by_option(table: pd.DataFrame, choices: Sequence[str]) -> pd.DataFrame:
    """`shares` of the paths that take each option: which choice decides?"""
    every = [*choices, "correction"]
    parts = [shares(table.astype({name: str}), ["claim", name]) for name in every]
    named = pd.concat(parts, keys=every).rename_axis(["choice", "claim", "option"])
    return named.reorder_levels(["claim", "choice", "option"])


def attempt(function: Callable[..., Result], *arguments, **options) -> Result:
    """The result, or NaN and the sentence of the statistic that is not defined for these data."""
    try:
        return function(*arguments, **options)
    except ValueError as error:
        return Result(reason=str(error))
