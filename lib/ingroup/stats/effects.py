"""Standardised effects of groups with their intervals, and whether two instruments agree.

Every instrument is brought to the same form: a row for each repeated *item* (event, scenario,
question, round), a column for each group, NaN where an item says nothing of a group. With x the
numbers of a group::

    effect = mean(x) / SD

where SD is that of the single answers from which the numbers come (ratings in points, verdicts as 1
and 0): an effect of 1 is as large as one answer lies from another. It is not the SD of the numbers
themselves, nor that of cells: where nothing differs, as in the negative control, those hold noise
alone, and noise divided by itself is of size 1. ValueError for what cannot be used.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from ingroup.stats.paired import adjust, nan_mean

BLOCK = 200  # draws at a time: 200 x 6,050 events are 10 MB


@dataclass(frozen=True)
class Measure:
    """What `measure` returns: ``effects`` by group, and ``draws`` (draw, group)."""

    effects: pd.DataFrame
    draws: pd.DataFrame


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Each column minus the mean of the other columns, row by row; NaN is left out."""
    there = table.notna().sum(axis=1)
    others = table.rsub(table.sum(axis=1), axis=0).div(there - 1, axis=0)
    return table - others.where(there > 1, axis=0)


def measure(
    items: pd.DataFrame,
    sd: float,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    together: bool = True,
) -> Measure:
    """Standardised effect of each group with its interval.

    The interval is the percentile bootstrap's over items; SD is held fixed. Of few items the
    percentiles are too close together, so that those of the expanded interval are taken (Hesterberg
    2015, The American Statistician 69:371): with n items and the coverage 1 - a those at
    Phi(-+ sqrt(n / (n - 1)) t), t the 1 - a / 2 quantile of Student's t with n - 1 degrees of
    freedom. A single item has no interval. Checked against scipy.stats.bootstrap where n is large.

    Parameters
    ----------
    items, sd : DataFrame, float
        Items by groups, and the SD in their unit. Where it is 0 all answers were the same, and so
        are the effects.
    rng, n_resamples, confidence
        Source and number of the draws; coverage, above 0 and below 1.
    together : bool
        Whether a draw takes the same items for all groups, which all have; else each group's own.

    Returns
    -------
    Measure
        ``effects``: by group, ``effect``, ``low``, ``high`` and ``items`` (how many it has).
        ``draws``: effect of each draw; NaN where it met no item of a group.
    """
    if not sd >= 0:
        raise ValueError(f"sd is {sd!r}, expected a number of at least 0")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence!r}, expected a number between 0 and 1")
    unit = sd if sd > 0 else 1.0
    values = items.to_numpy(dtype=float)
    counts = (~np.isnan(values)).sum(axis=0)
    if together:
        drawn = _together(values, rng, n_resamples)
    else:
        drawn = np.full((n_resamples, len(counts)), np.nan)
        for column, n in enumerate(counts):
            own = values[~np.isnan(values[:, column]), column]
            if n:
                drawn[:, column] = own[rng.integers(n, size=(n_resamples, n))].mean(axis=1)
    rows = []
    for column, n in enumerate(counts):
        ends = _expanded(drawn[:, column], n, confidence) if n > 1 else (np.nan, np.nan)
        rows.append((nan_mean(values[:, column]) / unit, ends[0] / unit, ends[1] / unit, n))
    index = pd.Index(items.columns, name="group")
    effects = pd.DataFrame(rows, index, ["effect", "low", "high", "items"])
    return Measure(effects, pd.DataFrame(drawn / unit, columns=index))


def agreement(
    effects: pd.DataFrame,
    draws: Mapping[str, pd.DataFrame],
    rng: np.random.Generator,
    n_permutations: int = 9999,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Spearman's correlation, over groups, of every pair of measures.

    Interval and p answer two questions. The interval: with other events, scenarios, questions or
    rounds, what would it be among *these* groups? It holds the middle of the correlations of the
    bootstrap draws; these carry the noise of the items twice, and so lie nearer to 0 than the
    correlation itself where items are few. p: could groups in random order agree as much? Exact
    where all orders are at most `n_permutations`, by scipy.stats.permutation_test, two-sided.

    `effects` are groups by measures, NaN where a measure does not have a group; `draws` the
    `Measure.draws` of each, all as many. Columns ``one``, ``other``, ``n`` (groups with both),
    ``rho``, ``low``, ``high``, ``p``, ``p_holm`` (all pairs are one family): NaN with fewer than 4
    groups, or where a measure is the same for all of them.
    """
    rows = []
    for one, other in combinations(effects, 2):
        both = effects[[one, other]].dropna()
        row = {"one": one, "other": other, "n": len(both)}
        row |= dict.fromkeys(("rho", "low", "high", "p"), np.nan)
        if len(both) >= 4 and (both.nunique() > 1).all():
            x, y = (stats.rankdata(both[name]) for name in (one, other))
            test = stats.permutation_test(
                (x,), lambda x, axis, y=y: _correlation(x, y), permutation_type="pairings",
                vectorized=True, n_resamples=n_permutations, rng=rng,
            )  # fmt: skip
            row |= {"rho": float(test.statistic), "p": float(test.pvalue)}
            ranks = [stats.rankdata(draws[name][both.index], axis=1) for name in (one, other)]
            rhos = _correlation(*ranks)
            if not np.isnan(rhos).all():
                ends = (1 - confidence) / 2, (1 + confidence) / 2
                row["low"], row["high"] = np.nanquantile(rhos, ends)
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(p_holm=adjust(table.p, "holm"))


def _together(
    values: NDArray[np.float64], rng: np.random.Generator, n_resamples: int
) -> NDArray[np.float64]:
    """Means of each column in draws of rows, the same rows for all columns."""
    n, there = len(values), ~np.isnan(values)
    filled, blocks = np.where(there, values, 0.0), []
    for start in range(0, n_resamples, BLOCK):
        size = min(BLOCK, n_resamples - start)
        picks = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(picks.ravel(), minlength=picks.size).reshape(size, n).astype(float)
        number = times @ there
        empty = np.full(number.shape, np.nan)
        blocks.append(np.divide(times @ filled, number, out=empty, where=number > 0))
    return np.concatenate(blocks)


def _expanded(draws: NDArray[np.float64], n: int, confidence: float) -> tuple[float, float]:
    """Percentiles of the draws, further apart the fewer items there are."""
    reach = np.sqrt(n / (n - 1)) * stats.t.ppf((1 + confidence) / 2, n - 1)
    low, high = np.nanquantile(draws, [stats.norm.sf(reach), stats.norm.cdf(reach)])
    return float(low), float(high)


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation over the last axis: of ranks, Spearman's. NaN where one is constant."""
    x, y = (part - part.mean(axis=-1, keepdims=True) for part in (x, y))
    size = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    product = (x * y).sum(axis=-1)
    return np.divide(product, size, out=np.full(size.shape, np.nan), where=size > 0)
