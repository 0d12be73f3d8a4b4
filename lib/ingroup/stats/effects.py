"""Standardised effects of groups with bootstrap intervals, and whether two instruments agree.

Every instrument has one form: a row for each repeated *item* (event, scenario, question, round), a
column for each group, NaN where an item says nothing of it. With x the numbers of a group::

    effect = mean(x) / SD

where SD is that of the single answers from which the numbers come (ratings in points, verdicts as 1
and 0), not that of the numbers themselves or of cells: where nothing differs, as in the negative
control, those hold noise alone, and noise divided by itself is of size 1. Only the empathy gap, in
`bootstrap_interval`, is relative to the SD of cells, as in its paper. Intervals: 95 %, over items.
"""

import math
from collections import namedtuple
from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ingroup.stats.paired import adjust, nan_mean

BLOCK = 100  # draws at a time: 100 x 6,050 events are 5 MB
ENDS = 0.025, 0.975

Measure = namedtuple("Measure", "effects draws")
BootstrapInterval = namedtuple("BootstrapInterval", "statistic low high draws")


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Each column minus the mean of the other columns, row by row; NaN is left out."""
    there = table.notna().sum(axis=1)
    others = table.rsub(table.sum(axis=1), axis=0).div(there - 1, axis=0)
    return table - others.where(there > 1, axis=0)


def expanded(n: int) -> NDArray[np.float64]:
    """Between which percentiles (0 to 1) of the draws of `n` > 1 items the interval lies.

    Those at 0.025 and 0.975 are too close together where items are few. Those of the expanded
    interval are Phi(-+ sqrt(n / (n - 1)) t), with t the 0.975 quantile of Student's t with n - 1
    degrees of freedom (Hesterberg 2015, The American Statistician 69:371).
    """
    reach = np.sqrt(n / (n - 1)) * stats.t.ppf(ENDS[1], n - 1)
    return stats.norm.cdf([-reach, reach])


def bootstrap_pvalue(draws: NDArray[np.float64], n: int) -> float:
    """Two-sided p of 0, given the `draws` of `n` > 1 items: where the `expanded` interval ends.

    With s the smaller share of the draws on one side of 0, one draw added, p is twice the share of
    Student's t with n - 1 degrees of freedom below Phi^-1(s) sqrt((n - 1) / n): p < 0.05 where the
    interval does not hold 0. Twice s itself is too small where items are few. With 2,000 draws of
    fewer than 5 items it cannot be below 0.05.
    """
    side = (min((draws <= 0).sum(), (draws >= 0).sum()) + 1) / (len(draws) + 1)
    return min(1.0, 2 * stats.t.cdf(stats.norm.ppf(side) * np.sqrt((n - 1) / n), n - 1))


def as_planted(planted: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.str_]:
    """Where a calibrant's interval holds what was planted "as planted", else "not as planted".

    Both share their items, and the pipeline adds nothing of its own (notebook 10 counts anew what
    the model said), so all that lies between them is the model's own error. One inside the interval
    could be of the items, one beyond it is the model's. How many intervals hold what was planted is
    therefore no test of them. "" where nothing is planted or there is no interval.
    """
    planted, low, high = (np.asarray(one, dtype=float) for one in (planted, low, high))
    told = ~np.isnan(planted + low + high)
    held = (low <= planted) & (planted <= high)
    return np.select([told & held, told], ["as planted", "not as planted"], "")


def measure(
    items: pd.DataFrame, sd: float, rng: np.random.Generator, n_resamples: int = 2000,
    together: bool = True,
) -> Measure:  # fmt: skip
    """Standardised effect of each group (column of `items`) with its interval.

    The interval is the percentile bootstrap's over items, with the `expanded` percentiles; SD is
    held fixed. A single item has no interval. It holds the effect in 0.95 of the cases with 10
    items or more; with 5 rounds of whole numbers in 0.92, with 3 verdicts (1, 0 or -1) in 0.72 and
    with 2 in 0.50 (``make calibration``). Checked against scipy.stats.bootstrap where n is large.

    `sd` is in the unit of the items: where it is 0 all answers were the same, and so are the
    effects; ValueError where it is NaN. A draw takes the same items for all groups where all have
    them `together`, else each group's own. ``effects``: by group, ``effect``, ``low``, ``high``,
    ``items`` (how many it has); ``draws``: effect of each draw, NaN where it met no item of it.
    """
    if not sd >= 0:
        raise ValueError(f"sd is {sd!r}, expected a number of at least 0")
    unit = sd if sd > 0 else 1.0
    values = items.to_numpy(dtype=float)
    there = ~np.isnan(values)
    counts = there.sum(axis=0)
    if together:
        drawn = np.concatenate([*_drawn_means(values, n_resamples, rng)])
    else:
        drawn = np.full((n_resamples, len(counts)), np.nan)
        for column, n in enumerate(counts):
            own = values[there[:, column], column]
            if n:
                drawn[:, column] = own[rng.integers(n, size=(n_resamples, n))].mean(axis=1)
    rows = []
    for column, n in enumerate(counts):
        low, high = np.nanquantile(drawn[:, column], expanded(n)) if n > 1 else (np.nan, np.nan)
        rows.append((nan_mean(values[:, column]) / unit, low / unit, high / unit, n))
    index = pd.Index(items.columns, name="group")
    effects = pd.DataFrame(rows, index, ["effect", "low", "high", "items"])
    return Measure(effects, pd.DataFrame(drawn / unit, columns=index))


def bootstrap_interval(
    ratings: ArrayLike, same: NDArray[np.bool_], n_resamples: int = 2000,
    rng: np.random.Generator | int | None = None,
) -> BootstrapInterval:  # fmt: skip
    """Interval of the empathy gap over events, which its paper lacks.

    The paper's interval (Hou et al. 2025, table 2) is that of the permutation null. Here each draw
    takes as many events as there are, with replacement and the same ones for all cells, and
    computes their means M0 and the gap of section 3.4, which is that of z-scores (population SD)::

        delta = (mean(M0[same]) - mean(M0[~same])) / std(M0)

    In a draw M0 carries the noise of the events twice, which widens std(M0) and pulls the interval
    towards 0 (simulated, 18 identities, noise 0.3 of the spread: 0.75 of the intervals hold delta).
    So std(M0) is taken relative to its mean over the draws, times that of the events as they are,
    and of few events the `expanded` percentiles are taken. With 4 events 0.90 of the
    intervals hold what as many events lead to expect, from 7 on 0.93 to 0.95 (``make calibration``,
    5 identities), also of events with heavy tails. Where 1 event of 10 has a gap and the others
    have none, 0.70 hold it with 12 events and 0.50 with 5. The interval is for these names and
    pairs of groups; see :func:`ingroup.stats.crossed.own_group` for groups like these. Checked
    against the definition draw by draw.

    `ratings` are perceivers by experiencers by events, NaN where an answer is missing: the event
    still counts in other cells. `same`, bool (n, n), is True for in-group pairs of the last n
    identities; cells of one before them, the unspecified, count in std(M0) and in neither mean.

    ``statistic`` is delta of the events as they are, ``low`` to ``high`` its interval, ``draws``
    delta of each draw: 0 where all cells were equal, without those that met a cell without any
    rating. ValueError for fewer than 2 events, a cell without ratings (the sentence names it), the
    same mean in all cells, and where no draw is defined.
    """
    ratings, rng = np.asarray(ratings, dtype=float), np.random.default_rng(rng)
    n_events, before = ratings.shape[2], (len(ratings) - len(same), 0)
    if n_events < 2:
        raise ValueError(f"ratings have shape {ratings.shape}, expected at least 2 events")
    for row, column in np.argwhere(np.isnan(ratings).all(axis=2)):
        found = f"row {row}, column {column} has no rating in any of {n_events} events"
        raise ValueError(f"{found}, expected at least one in every cell")
    inside, outside = np.pad(same, before).ravel(), np.pad(~same, before).ravel()
    cells = ratings.reshape(-1, n_events).T
    (gap,), (spread,) = _gaps(nan_mean(cells)[None], inside, outside)
    if spread == 0:
        raise ValueError("all cells have the same mean, expected several: there is no gap")
    drawn = _drawn_means(cells, n_resamples, rng)
    gaps, spreads = np.concatenate([_gaps(means, inside, outside) for means in drawn], axis=1)
    gaps, spreads = gaps[~np.isnan(spreads)], spreads[~np.isnan(spreads)]
    if not gaps.size:
        raise ValueError(f"none of {n_resamples} draws has a rating in every cell, expected some")
    draws = np.divide(gaps, spreads, out=np.zeros_like(gaps), where=spreads > 0)
    draws *= spreads.mean() / spread
    ends = np.quantile(draws, expanded(n_events))
    return BootstrapInterval(float(gap / spread), *ends.tolist(), draws)


def agreement(
    effects: pd.DataFrame, draws: Mapping[str, pd.DataFrame], seed: int,
    n_permutations: int = 9999,
) -> pd.DataFrame:  # fmt: skip
    """Spearman's correlation, over groups, of every pair of measures.

    The interval: with other items, what would it be among *these* groups? It holds the middle of
    the correlations of the bootstrap draws; these carry the noise of the items twice, and so lie
    nearer to 0 than the correlation itself where items are few. With 12 groups it holds the true
    one in 0.92 of the cases where the error of an effect is a tenth of the spread of the groups, in
    0.89 at three tenths and in 0.72 where it is as large (``make calibration``). Few items cover
    less: at three tenths 0.87 with 5 items in each measure, 0.81 with 3. p is that of
    `spearman`, its random orders drawn by the same `seed` for every pair.

    `effects` are groups by measures, NaN where a measure has no group; `draws` the `Measure.draws`
    of each, all as many. Columns ``one``, ``other``, ``n`` (groups with both), ``rho``, ``low``,
    ``high``, ``p``, ``p_holm`` (one family): NaN with fewer than 4 groups, or a constant measure.
    """
    rows = []
    for one, other in combinations(effects, 2):
        both = effects[[one, other]].dropna()
        rho, p, _ = spearman(both[one], both[other], seed, n_permutations)
        low = high = np.nan
        if not np.isnan(rho):
            ranks = [stats.rankdata(draws[name][both.index], axis=1) for name in (one, other)]
            low, high = pd.Series(_correlation(*ranks)).quantile(ENDS)  # of those that have one
        rows.append((one, other, len(both), rho, low, high, p))
    table = pd.DataFrame(rows, columns=["one", "other", "n", "rho", "low", "high", "p"])
    return table.assign(p_holm=adjust(table.p, "holm"))


def spearman(
    x: ArrayLike, y: ArrayLike, rng: np.random.Generator | int, n_permutations: int = 9999
) -> tuple[float, float, float]:
    """Spearman's correlation, its p, two-sided, and the smallest p that so many pairs can have.

    Could pairs in random order agree as much? By scipy.stats.permutation_test, exact up to
    `n_permutations` orders: of 4 pairs in order p is 2 / 4!, where a t-test has 0. A pair that
    lacks a number (NaN) is left out. NaN with fewer than 4 pairs, or where one of both is constant.
    """
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    whole = ~np.isnan(x + y)
    x = stats.rankdata(x[whole])
    y = stats.rankdata(y[whole])
    if len(x) < 4 or min(np.ptp(x), np.ptp(y)) == 0:
        return np.nan, np.nan, np.nan
    test = stats.permutation_test(
        (x,), lambda x, axis: _correlation(x, y), permutation_type="pairings",
        vectorized=True, n_resamples=n_permutations, rng=rng, batch=1000,
    )  # fmt: skip
    orders = math.factorial(len(x))
    least = 2 / (orders if orders <= n_permutations else n_permutations + 1)
    return float(test.statistic), float(test.pvalue), least


def _drawn_means(
    values: NDArray[np.float64], n_resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """Means of `values` (item, column), NaN left out, in each draw of items: (draw, column)."""
    n, there = len(values), ~np.isnan(values)
    filled, counted = np.where(there, values, 0.0), None if there.all() else there.astype(float)
    for start in range(0, n_resamples, BLOCK):
        size = min(BLOCK, n_resamples - start)
        picks = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        times = np.bincount(picks.ravel(), minlength=picks.size).reshape(picks.shape).astype(float)
        with np.errstate(invalid="ignore"):
            means = times @ filled / (n if counted is None else times @ counted)
        yield means


def _gaps(means: NDArray, inside: NDArray, outside: NDArray) -> NDArray[np.float64]:
    """Gap and spread of cell means, (draw, cell): shape (2, draw); NaN without a mean."""
    gap = means[:, inside].mean(axis=1) - means[:, outside].mean(axis=1)
    spread = means.std(axis=1)
    spread[spread <= 1e-12 * np.abs(means).max(axis=1)] = 0.0  # equal, but for rounding
    return np.stack([gap, spread])


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation over the last axis: of ranks, Spearman's. NaN where one is constant."""
    x, y = (part - part.mean(axis=-1, keepdims=True) for part in (x, y))
    size = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    product = (x * y).sum(axis=-1)
    return np.divide(product, size, out=np.full(size.shape, np.nan), where=size > 0)
