"""A claim under every combination of the choices that a paper leaves open.

A *choice* has options, a *path* takes one option of each choice. A claim (all are that something
is above 0) *stands* on a path where its estimate is and its p, corrected, is below alpha. Two kinds
of path say nothing about a claim, and its share leaves them out. On one its p *could not* have been
below alpha with so few items or groups. Another has the *same result* as a path before it: no claim
of the family changes under its options. A path without a result counts as one on which the claim
does not stand. The share is not a probability: it depends on the choices that were thought of, and
paths share their data. After Steegen et al. 2016 (Perspectives on Psychological Science 11:702)
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
    """A claim on one path: NaN, and the reason, where it is not defined there.

    ``least`` is the smallest p possible with this number of items or groups; 0 where any p can be.
    """

    estimate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    reason: str = ""
    least: float = 0.0


def paths(
    choices: Mapping[str, Sequence], applies: Callable[..., bool] | None = None
) -> list[dict[str, Any]]:
    """Every combination of the options of named choices to which it `applies`, the last fastest."""
    every = (dict(zip(choices, path, strict=True)) for path in product(*choices.values()))
    return [path for path in every if applies is None or applies(**path)]


def evaluate(
    reading: Mapping[str, Sequence], read: Callable[..., Any], choices: Mapping[str, Sequence],
    claims: Callable[..., Mapping[str, Result]], alpha: float,
    applies: Callable[..., bool] | None = None, corrections: Sequence[str] = CORRECTIONS,
) -> pd.DataFrame:  # fmt: skip
    """Compute all claims of one family on every path; one of `corrections` is the last choice.

    The options of `reading`, the first choices, go to `read`, which gives the answers; paths on
    equal answers are computed once. Answers and the options of the other `choices`, where `applies`
    (see `paths`), go to `claims`, which gives the `Result` of each claim: one family.

    Returns
    -------
    DataFrame
        A row for each path and claim: ``claim``, a column a choice, ``correction``, the fields of
        `Result`, ``p_corrected``; ``could``, whether the path can show the claim: the least p,
        corrected, is below `alpha`; ``stands`` (p_corrected < `alpha`, estimate above 0);
        ``reversed``, significant with the other sign; ``result``, a number that paths share whose
        results are the same for every claim, by the same correction. With one test all corrections
        are the same.
    """
    rows = []
    known: dict[tuple, dict[str, Result]] = {}
    results: dict[tuple[str, str], int] = {}
    for sheet in paths(reading):
        answers = read(**sheet)
        name = joblib.hash(answers)
        for path in paths(choices, applies):
            key = (name, *path.values())
            if key not in known:
                known[key] = dict(claims(answers, **path))
            options = (*sheet.values(), *path.values())
            tested = sum(not np.isnan(one.p) for one in known[key].values())
            for method in corrections:
                family = _corrected(known[key], method.lower(), alpha)
                kind = (repr(known[key]), method if tested > 1 else "")
                number = results.setdefault(kind, len(results))
                rows += [(claim, *options, method, *one, number) for claim, *one in family]
    columns = ["claim", *reading, *choices, "correction", *Result._fields, "p_corrected", "could"]
    table = pd.DataFrame(rows, columns=[*columns, "result"])
    significant = table.p_corrected < alpha
    above = table.estimate > 0
    below = table.estimate < 0
    return table.assign(stands=significant & above, reversed=significant & below)


def _corrected(family: Mapping[str, Result], method: str, alpha: float) -> list[tuple]:
    """Each claim's name, result, corrected p, and whether it could have been below alpha."""
    p = adjust([one.p for one in family.values()], method).tolist()
    untested = np.isnan(p)
    least = adjust(np.where(untested, np.nan, [one.least for one in family.values()]), method)
    could = (least < alpha).tolist()
    return [
        (claim, *one, corrected, able)
        for (claim, one), corrected, able in zip(family.items(), p, could, strict=True)
    ]


def shares(table: pd.DataFrame, by: Sequence[str] = ("claim",)) -> pd.DataFrame:
    """Count on which share of its paths a claim stands.

    Parameters
    ----------
    table : DataFrame
        As `evaluate` makes it, of one model.
    by : sequence of str
        Columns whose values the paths of a row share.

    Returns
    -------
    DataFrame
        Index `by`. ``listed`` paths; ``paths`` of them with different results; of these
        ``undefined`` ones, without a result, and those that ``could`` have shown the claim; the
        percent of these two kinds on which it ``stands`` or is ``reversed``, NaN where there are
        none; ``median``, ``lowest`` and ``highest`` of the estimates over ``paths``.
    """
    keys = list(by)
    listed = table.groupby(keys, sort=False).size()
    different = table.drop_duplicates([*dict.fromkeys(["claim", *keys]), "result"])
    undefined = different.p.isna()
    counted = different.could | undefined
    numbers = different.assign(
        undefined=undefined,
        stands=100.0 * different.stands.where(counted),
        reversed=100.0 * different.reversed.where(counted),
    )
    found = numbers.groupby(keys, sort=False).agg(
        paths=("claim", "size"),
        undefined=("undefined", "sum"),
        could=("could", "sum"),
        stands=("stands", "mean"),
        reversed=("reversed", "mean"),
        median=("estimate", "median"),
        lowest=("estimate", "min"),
        highest=("estimate", "max"),
    )
    found.insert(0, "listed", listed)
    return found


def by_option(table: pd.DataFrame, choices: Sequence[str]) -> pd.DataFrame:
    """`shares` of the paths that take each option: which choice decides?"""
    every = [*choices, "correction"]
    parts = [shares(table.astype({name: str}), ["claim", name]) for name in every]
    named = pd.concat(parts, keys=every).rename_axis(["choice", "claim", "option"])
    return named.reorder_levels(["claim", "choice", "option"])


def verdicts(table: pd.DataFrame, way: Sequence[str]) -> pd.DataFrame:
    """Say what the paths of `shares` make of sentences.

    Parameters
    ----------
    table : DataFrame
        Rows of `shares`.
    way : sequence of str
        What each sentence says of its claim: "above" or "below" 0, or "no difference".

    Returns
    -------
    DataFrame
        Of the table's index. ``counted``, the paths that could show the claim and those without a
        result. ``share``, the percent of the counted paths that bear the sentence out: they stand,
        are reversed, or have a result that is not significant. ``against``, the percent that find
        the opposite, or a difference where the sentence sees none. ``verdict``:
        "undefined" where no path has a result; "cannot be told" where none could show the claim;
        "stands" at a share of 100; "reversed", or "differs" where the sentence sees no difference,
        at 100 against it; "depends" where some paths bear it out; "mostly reversed" or "mostly
        differs" where none does and at least half are against it; else "not shown".
    """
    way = np.asarray(way)
    significant = table["stands"] + table["reversed"]
    above = way == "above"
    below = way == "below"
    counted = table["could"] + table["undefined"]
    without = 100 * table["undefined"] / counted.clip(lower=1)
    calm = 100 - significant - without
    share = np.select([above, below], [table["stands"], table["reversed"]], calm)
    against = np.select([above, below], [table["reversed"], table["stands"]], significant)

    opposite = np.where(above | below, "reversed", "differs")
    mostly = np.char.add("mostly ", opposite)
    conditions = [
        table["undefined"] == table["paths"],
        table["could"] == 0,
        np.isclose(share, 100),
        np.isclose(against, 100),
        ~np.isclose(share, 0),
        against >= 50,
    ]
    words = ["undefined", "cannot be told", "stands", opposite, "depends", mostly]
    found = {
        "counted": counted,
        "share": share,
        "against": against,
        "verdict": np.select(conditions, words, "not shown"),
    }
    return pd.DataFrame(found, table.index)


def attempt(function: Callable[..., Result], *arguments, **options) -> Result:
    """The result, or NaN and the sentence of the statistic that is not defined for these data."""
    try:
        return function(*arguments, **options)
    except ValueError as error:
        return Result(reason=str(error))
