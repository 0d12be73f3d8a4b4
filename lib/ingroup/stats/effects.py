"""Standardised effects of groups with bootstrap intervals, and the agreement of instruments.

Every instrument has one form: a row for each repeated *item* (event, scenario, question, round)
and a column for each group. It has NaN where an item says nothing of a group.

The effect of a group is the mean of its numbers, divided by the standard deviation (SD) of the
single answers behind the numbers. These are ratings in points, or verdicts as 1 and 0. The numbers
themselves, or cells, hold noise alone where nothing differs, as in the negative control. Divided by
their own SD, this noise would look like an effect of size 1. Only the empathy gap, in
`bootstrap_interval`, is relative to the SD of cells, as in its paper. Intervals are of 95 %, over
items.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ingroup.stats.corrections import adjust
from ingroup.stats.paired import nan_mean

DRAWS_AT_A_TIME = 100  # 100 draws x 6,050 events are 5 MB
INTERVAL_QUANTILES = 0.025, 0.975
LEAST_PAIRS = 4  # of a correlation: the p of fewer pairs cannot be below 0.33

Numbers = NDArray[np.float64]
Booleans = NDArray[np.bool_]


class Measure(NamedTuple):
    """Result of `measure`, whose docstring explains the fields."""

    effects: pd.DataFrame
    draws: pd.DataFrame


class BootstrapInterval(NamedTuple):
    """Result of `bootstrap_interval`, whose docstring explains the fields."""

    statistic: float
    low: float
    high: float
    draws: Numbers


def relative_to_others(table: pd.DataFrame) -> pd.DataFrame:
    """Subtract from each column the mean of the other columns, row by row, without NaN.

    Parameters
    ----------
    table : DataFrame
        Numbers, one row per item and one column per group.

    Returns
    -------
    DataFrame
        The differences, of the same shape. A number is NaN where the table has NaN, and where no
        other column of its row has a number.
    """
    n = table.notna().sum(axis=1)
    total = table.sum(axis=1)
    # `rsub` is the total less the number itself, which leaves n - 1 numbers.
    others = table.rsub(total, axis=0).div(n - 1, axis=0)
    return table - others.where(n > 1, axis=0)


def expanded_percentiles(n: int) -> Numbers:
    """Compute the two percentiles of bootstrap draws that are the ends of a 95 % interval.

    Parameters
    ----------
    n : int
        The number of items, more than 1.

    Returns
    -------
    ndarray
        Two percentiles, 0 to 1.

    Notes
    -----
    The percentiles 0.025 and 0.975 are too close together where items are few. The expanded
    interval of Hesterberg (2015, The American Statistician 69:371) takes, with t the 0.975 quantile
    of Student's t with n - 1 degrees of freedom::

        Phi(-+ sqrt(n / (n - 1)) t)
    """
    quantile = stats.t.ppf(0.975, n - 1)
    widening = np.sqrt(n / (n - 1))
    reach = widening * quantile
    return stats.norm.cdf([-reach, reach])


def bootstrap_pvalue(draws: Numbers, n: int) -> float:
    """Compute the two-sided p of 0 that agrees with the interval of `expanded_percentiles`.

    Parameters
    ----------
    draws : ndarray
        The statistic of each draw.
    n : int
        The number of items, more than 1.

    Returns
    -------
    float
        The two-sided p, below 0.05 where the interval excludes 0. With 2,000 draws of fewer than
        5 items it cannot be below 0.05.

    Notes
    -----
    With s the smaller share of the draws on one side of 0, one draw added, and T the distribution
    function of Student's t with n - 1 degrees of freedom::

        p = 2 T(Phi^-1(s) sqrt((n - 1) / n))

    Twice s itself is too small where items are few.
    """
    below = (draws <= 0).sum()
    above = (draws >= 0).sum()
    fewer = min(below, above)
    share = (fewer + 1) / (len(draws) + 1)
    narrowing = np.sqrt((n - 1) / n)
    quantile = stats.norm.ppf(share) * narrowing
    p = 2 * stats.t.cdf(quantile, n - 1)
    # One draw is added and a 0 counts on both sides, so p can come out above 1.
    return min(1.0, p)


def coverage_text(ground_truth: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.str_]:
    """Say in words whether a calibrant's interval holds the ground truth.

    Parameters
    ----------
    ground_truth, low, high : array_like
        The true numbers, and the ends of the intervals, of one shape; NaN where there is no ground
        truth or no interval.

    Returns
    -------
    ndarray of str
        "covers the ground truth" where the interval holds it, else "misses the ground truth"; ""
        where one of the three is NaN.

    Notes
    -----
    The ground truth and the estimate are about the same items, and the pipeline adds no error
    (notebook 11 counts the model's answers again). So they differ only by the model's own error.
    Inside the interval this error is as small as that of drawing items. The share of intervals that
    hold the ground truth is therefore not a test of the intervals.
    """
    ground_truth = np.asarray(ground_truth, dtype=float)
    low = np.asarray(low, dtype=float)
    high = np.asarray(high, dtype=float)
    is_undefined = np.isnan(ground_truth + low + high)
    is_inside = (low <= ground_truth) & (ground_truth <= high)
    return np.select(
        [is_undefined, is_inside],
        ["", "covers the ground truth"],
        default="misses the ground truth",
    )


def measure(
    items: pd.DataFrame,
    sd: float,
    rng: np.random.Generator,
    n_resamples: int = 2000,
    together: bool = True,
) -> Measure:
    """Compute the standardised effect of each group with its interval.

    Parameters
    ----------
    items : DataFrame
        Items by groups, NaN where an item says nothing of a group.
    sd : float
        The SD of the single answers, in the unit of the items. Where it is 0 all answers were the
        same, and so are the effects.
    rng : Generator
        Draws the items.
    n_resamples : int
        The number of draws.
    together : bool
        Whether all groups have the same items. A draw then takes the same items for all groups,
        else each group's own.

    Returns
    -------
    effects : DataFrame
        By group: ``effect``, ``low`` and ``high``, and ``items``, the number of its items. A single
        item has no interval (NaN).
    draws : DataFrame
        The effect of each group in each draw, NaN where the draw met no item of the group.

    Raises
    ------
    ValueError
        Where `sd` is negative or NaN.

    Notes
    -----
    The interval is the percentile bootstrap's over items, with the `expanded_percentiles`; SD is
    held fixed. It holds the effect in 0.95 of the cases with 10 items or more; with 5 rounds of
    whole numbers in 0.92, with 3 verdicts (1, 0 or -1) in 0.72 and with 2 in 0.50
    (``make calibration``). Checked against scipy.stats.bootstrap where n is large.
    """
    if not sd >= 0:
        raise ValueError(f"sd is {sd!r}, expected a number of at least 0")
    # An SD of 0 would turn effects of 0 into NaN.
    unit = sd if sd > 0 else 1.0
    values = items.to_numpy(dtype=float)
    if together:
        blocks = list(_drawn_means(values, n_resamples, rng))
        drawn = np.concatenate(blocks)
    else:
        drawn = _drawn_apart(values, n_resamples, rng)

    n_items = np.count_nonzero(~np.isnan(values), axis=0)
    low = np.full(len(n_items), np.nan)
    high = low.copy()
    for column, n in enumerate(n_items):
        if n > 1:
            ends = np.nanquantile(drawn[:, column], expanded_percentiles(n))
            low[column], high[column] = ends / unit

    groups = pd.Index(items.columns, name="group")
    effects = pd.DataFrame(
        {
            "effect": [nan_mean(numbers) / unit for numbers in values.T],
            "low": low,
            "high": high,
            "items": n_items,
        },
        index=groups,
    )
    return Measure(effects, pd.DataFrame(drawn / unit, columns=groups))


def _drawn_apart(values: Numbers, n_resamples: int, rng: np.random.Generator) -> Numbers:
    """Average each column of `values` (item, column) over its own draws of items: (draw, column).

    A column without a number has NaN.
    """
    drawn = np.full((n_resamples, values.shape[1]), np.nan)
    for column, numbers in enumerate(values.T):
        numbers = numbers[~np.isnan(numbers)]
        n = len(numbers)
        if n:
            picks = rng.integers(n, size=(n_resamples, n))
            drawn[:, column] = numbers[picks].mean(axis=1)
    return drawn


def bootstrap_interval(
    ratings: ArrayLike,
    same: Booleans,
    n_resamples: int = 2000,
    rng: np.random.Generator | int | None = None,
) -> BootstrapInterval:
    """Compute an interval of the empathy gap over events, which its paper lacks.

    Parameters
    ----------
    ratings : array_like, (perceivers, experiencers, events)
        Ratings, NaN where an answer is missing: the event still counts in other cells.
    same : ndarray of bool, (n, n)
        True for in-group pairs of the last n identities. Cells of an identity before them, the
        unspecified, count in std(M0) and in neither mean.
    n_resamples : int
        The number of draws.
    rng : Generator or int, optional
        Draws the events.

    Returns
    -------
    statistic : float
        The gap delta of the events as they are.
    low, high : float
        The interval of the gap.
    draws : ndarray
        The delta of each draw, 0 where all cells were equal. Draws that met a cell without any
        rating are left out.

    Raises
    ------
    ValueError
        For fewer than 2 events, a cell without ratings (the sentence names it), the same mean in
        all cells, and where no draw is defined.

    Notes
    -----
    The paper's interval (Hou et al. 2025, table 2) is the interval of the permutation null. Here
    each draw takes as many events as there are, with replacement and the same events for all cells.
    It computes their means M0 and the gap of section 3.4, the gap of z-scores (population SD)::

        delta = (mean(M0[same]) - mean(M0[~same])) / std(M0)

    In a draw M0 carries the noise of the events twice, which widens std(M0) and pulls the interval
    towards 0 (simulated, 18 identities, noise 0.3 of the spread: 0.75 of the intervals hold delta).
    So std(M0) is divided by its mean over the draws and multiplied by the std(M0) of the events as
    they are. The `expanded_percentiles` widen the interval where events are few.

    With 4 events 0.90 of the intervals hold the gap that this number of events leads to expect, and
    from 7 events on 0.93 to 0.95 (``make calibration``, 5 identities). The same is true of events
    with heavy tails. Where 1 event of 10 has a gap and the others have none, 0.70 hold the gap with
    12 events and 0.50 with 5. The interval is for these names and pairs of groups; see
    :func:`ingroup.stats.crossed.own_group` for groups like these. Checked against the definition
    draw by draw.
    """
    ratings = np.asarray(ratings, dtype=float)
    rng = np.random.default_rng(rng)
    _check_ratings(ratings)

    # The unspecified identities, which come first, are False in both.
    n_unspecified = len(ratings) - len(same)
    padding = (n_unspecified, 0)
    inside = np.pad(same, padding).ravel()
    outside = np.pad(~same, padding).ravel()
    n_events = ratings.shape[2]
    # Events come first, because events are drawn: (event, cell).
    cells = ratings.reshape(-1, n_events).T
    # The events as they are, as if they were the only draw.
    means = nan_mean(cells)[None]
    gap, spread = _gaps(means, inside, outside)[:, 0]
    if spread == 0:
        raise ValueError("all cells have the same mean, expected several: there is no gap")

    blocks = []
    for means in _drawn_means(cells, n_resamples, rng):
        blocks.append(_gaps(means, inside, outside))
    gaps, spreads = np.concatenate(blocks, axis=1)
    is_defined = ~np.isnan(spreads)
    if not is_defined.any():
        raise ValueError(f"none of {n_resamples} draws has a rating in every cell, expected some")
    gaps = gaps[is_defined]
    spreads = spreads[is_defined]

    draws = np.zeros_like(gaps)
    np.divide(gaps, spreads, out=draws, where=spreads > 0)
    draws *= spreads.mean() / spread
    low, high = np.quantile(draws, expanded_percentiles(n_events))
    return BootstrapInterval(
        statistic=float(gap / spread),
        low=float(low),
        high=float(high),
        draws=draws,
    )


def _check_ratings(ratings: Numbers) -> None:
    """Raise a ValueError for fewer than 2 events, or for a cell without ratings."""
    n_events = ratings.shape[2]
    if n_events < 2:
        raise ValueError(f"ratings have shape {ratings.shape}, expected at least 2 events")

    is_empty = np.isnan(ratings).all(axis=2)
    for row, column in np.argwhere(is_empty):
        found = f"row {row}, column {column} has no rating in any of {n_events} events"
        raise ValueError(f"{found}, expected at least one in every cell")


def rank_correlations(
    effects: pd.DataFrame,
    draws: Mapping[str, pd.DataFrame],
    seed: int,
    n_permutations: int = 9999,
) -> pd.DataFrame:
    """Compute Spearman's correlation, over groups, of every pair of measures.

    Parameters
    ----------
    effects : DataFrame
        Groups by measures, NaN where a measure has no group.
    draws : mapping of str to DataFrame
        The `Measure.draws` of each measure, with the same number of draws.
    seed : int
        Gives `spearman` the same random orders for every pair.
    n_permutations : int
        The number of random orders.

    Returns
    -------
    DataFrame
        A row for each pair: ``one``, ``other``, ``n`` (groups with both), ``rho``, ``low``,
        ``high``, ``p`` of `spearman`, and ``p_holm`` (one family). They are NaN with fewer than 4
        groups, or a constant measure.

    Notes
    -----
    The interval says how the correlation among *these* groups would vary with other items. It holds
    the middle of the correlations of the bootstrap draws. These carry the noise of the items twice,
    and so lie nearer to 0 than the correlation itself where items are few. With 12 groups it holds
    the true correlation in 0.92 of the cases where the error of an effect is a tenth of the spread
    of the groups, in 0.89 at three tenths, and in 0.72 where both are equal (``make calibration``).
    Few items cover less: at three tenths 0.87 with 5 items in each measure, 0.81 with 3.
    """
    rows = []
    for one, other in combinations(effects, 2):
        both = effects[[one, other]].dropna()
        rho, p, _ = spearman(both[one], both[other], seed, n_permutations)
        low = high = np.nan
        if not np.isnan(rho):
            ranks = stats.rankdata(draws[one][both.index], axis=1)
            other_ranks = stats.rankdata(draws[other][both.index], axis=1)
            drawn = pd.Series(pearson(ranks, other_ranks))
            # A draw in which a measure is constant has no correlation; `quantile` skips its NaN.
            low, high = drawn.quantile(INTERVAL_QUANTILES)
        row = {
            "one": one,
            "other": other,
            "n": len(both),
            "rho": rho,
            "low": low,
            "high": high,
            "p": p,
        }
        rows.append(row)

    # The columns are named for the case of one measure, which has no pair.
    table = pd.DataFrame(
        rows,
        columns=["one", "other", "n", "rho", "low", "high", "p"],
    )
    table["p_holm"] = adjust(table.p, "holm")
    return table


def pearson(x: Numbers, y: Numbers) -> Numbers:
    """Compute Pearson's correlation over the last axis.

    Parameters
    ----------
    x, y : ndarray
        The pairs; of ranks, the correlation is Spearman's. Their shapes may be broadcast.

    Returns
    -------
    ndarray
        A correlation for each row; NaN where x or y is constant.
    """
    # scipy.stats.pearsonr divides before it sums, so ranks whose correlation is 0 get -2e-17.
    x = x - x.mean(axis=-1, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    product = (x * y).sum(axis=-1)
    x_squares = (x**2).sum(axis=-1)
    y_squares = (y**2).sum(axis=-1)
    size = np.sqrt(x_squares * y_squares)
    undefined = np.full(size.shape, np.nan)
    return np.divide(product, size, out=undefined, where=size > 0)


def spearman(
    x: ArrayLike, y: ArrayLike, rng: np.random.Generator | int, n_permutations: int = 9999
) -> tuple[float, float, float]:
    """Test Spearman's correlation against pairs in random order.

    The p comes from scipy.stats.permutation_test. It is 2 / 4! for 4 pairs of the same order, where
    a t-test gives 0.

    Parameters
    ----------
    x, y : array_like
        The pairs. A pair that lacks a number (NaN) is left out.
    rng : Generator or int
        Draws the orders.
    n_permutations : int
        The number of random orders. The test is exact if there are at most this many orders.

    Returns
    -------
    tuple of float
        The correlation, its two-sided p, and the smallest p that this number of pairs can have. All
        are NaN with fewer than `LEAST_PAIRS`, or where x or y is constant.
    """
    numbers = np.asarray(x, dtype=float)
    other_numbers = np.asarray(y, dtype=float)
    has_both = ~np.isnan(numbers + other_numbers)
    ranks = stats.rankdata(numbers[has_both])
    other_ranks = stats.rankdata(other_numbers[has_both])
    undefined = (np.nan, np.nan, np.nan)
    if len(ranks) < LEAST_PAIRS:
        return undefined
    if np.ptp(ranks) == 0 or np.ptp(other_ranks) == 0:
        return undefined

    test = stats.permutation_test(
        (ranks,),
        lambda reordered, axis: pearson(reordered, other_ranks),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=n_permutations,
        rng=rng,
        batch=1000,
    )
    # SciPy adds the observed order to random ones and doubles the smaller tail, so p is at
    # least 2 / n_orders.
    n_orders = math.factorial(len(ranks))
    if n_orders > n_permutations:
        n_orders = n_permutations + 1
    rho = float(test.statistic)
    p = float(test.pvalue)
    return rho, p, 2 / n_orders


def _drawn_means(values: Numbers, n_resamples: int, rng: np.random.Generator) -> Iterator[Numbers]:
    """Yield the means of `values` (item, column) in each draw of items, without NaN.

    They come in blocks (draw, column). A mean of no number is NaN.
    """
    n = len(values)
    is_number = ~np.isnan(values)
    is_whole = is_number.all()
    # A 0 adds nothing to a sum, and the count below leaves it out of the mean.
    filled = np.where(is_number, values, 0.0)
    has_number = is_number.astype(float)

    for start in range(0, n_resamples, DRAWS_AT_A_TIME):
        size = min(DRAWS_AT_A_TIME, n_resamples - start)
        picks = rng.integers(n, size=(size, n))
        # Each draw counts in n cells of its own, so that one bincount serves the whole block.
        offsets = n * np.arange(size)
        cells = picks + offsets[:, None]
        flat_counts = np.bincount(cells.ravel(), minlength=cells.size)
        times_drawn = flat_counts.reshape(size, n).astype(float)
        sums = times_drawn @ filled
        # Without NaN every mean is over n, and the second product can be spared.
        counts = n if is_whole else times_drawn @ has_number
        # A draw without any number of a column divides 0 by 0, and its mean is NaN.
        with np.errstate(invalid="ignore"):
            means = sums / counts
        yield means


def _gaps(means: Numbers, inside: Booleans, outside: Booleans) -> Numbers:
    """Compute gap and spread of the cell means (draw, cell) in each draw: (2, draw).

    Both are NaN in a draw that lacks the mean of a cell.
    """
    inside_mean = means[:, inside].mean(axis=1)
    outside_mean = means[:, outside].mean(axis=1)
    spread = means.std(axis=1)
    # A spread that comes from rounding alone counts as 0.
    rounding = 1e-12 * np.abs(means).max(axis=1)
    spread[spread <= rounding] = 0.0
    return np.stack([inside_mean - outside_mean, spread])
