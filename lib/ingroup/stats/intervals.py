"""Intervals over items, and corrections for several tests."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from statsmodels.regression.linear_model import OLS

Numbers = NDArray[np.float64]
TINY = 1e-9  # smaller standard deviations are rounding errors


class Mean(NamedTuple):
    """A mean over items with its 95 % interval and its t-test against 0."""

    estimate: float
    low: float = np.nan
    high: float = np.nan
    statistic: float = np.nan
    p: float = np.nan
    effect_size: float = np.nan
    n: int = 0


def mean_over_items(values: ArrayLike) -> Mean:
    """Average items, e.g. paired differences, and test the mean against 0 by Student's t.

    Parameters
    ----------
    values : array_like, (items,)
        One number for each item. NaN is left out.

    Returns
    -------
    Mean
        The mean with its interval, t, two-sided p, Cohen's d (mean / SD) and the number of items.
        Items that do not vary, and a single one, have a mean alone: the rest is NaN.

    Notes
    -----
    With n items::

        t = mean / (SD / sqrt(n)), with n - 1 degrees of freedom and n - 1 in the SD
    """
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    n = len(values)
    mean = values.mean() if n else np.nan
    sd = values.std(ddof=1) if n > 1 else 0.0
    if sd < TINY:
        return Mean(mean, n=n)

    test = stats.ttest_1samp(values, 0)
    low, high = test.confidence_interval(0.95)
    return Mean(
        estimate=mean,
        low=low,
        high=high,
        statistic=test.statistic,
        p=test.pvalue,
        effect_size=mean / sd,
        n=n,
    )


def means_by(values: pd.Series, keys: Sequence[str]) -> pd.DataFrame:
    """Average the items of each cell, and test the mean against 0 (`mean_over_items`).

    Parameters
    ----------
    values : Series
        One number for each item, whose index levels name its cell.
    keys : sequence of str
        The levels that make a cell.

    Returns
    -------
    DataFrame
        The fields of `Mean` by the keys, in the order of the values.
    """
    cells = values.groupby(list(keys), observed=True, sort=False)
    rows = [mean_over_items(of_cell) for _, of_cell in cells]
    index = cells.size().index
    return pd.DataFrame(rows, index, columns=Mean._fields)


def mean_test(differences: pd.Series, cluster: str) -> dict[str, float]:
    """Test a mean against 0, with the observations in clusters.

    Parameters
    ----------
    differences : Series
        One number for each item.
    cluster : str
        The level of the index that names the cluster of each item; with a cluster each, this
        is Student's t-test.

    Returns
    -------
    dict
        ``change`` (the mean), ``low`` and ``high`` (95 %), ``p`` and ``n`` (clusters). Where all
        differences are 0, the interval has no width and p is 1. Where all are another number, or in
        one cluster, interval and p are NaN.

    Notes
    -----
    With the covariance of Liang and Zeger (1986, Biometrika 73:13) and one degree of freedom less
    than there are clusters. For n items with residuals r in G clusters::

        SE^2 = G / (G - 1) * sum over clusters of (sum of r)^2 / n^2
    """
    codes, names = differences.index.get_level_values(cluster).factorize()
    low = high = p = np.nan
    if not differences.any():
        low = high = 0.0
        p = 1.0
    elif differences.nunique() > 1 and len(names) > 1:
        values = differences.to_numpy()
        model = OLS(values, np.ones_like(values))
        fit = model.fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
        (interval,) = fit.conf_int()
        low, high = interval
        (p,) = fit.pvalues

    return {
        "change": differences.mean(),
        "low": low,
        "high": high,
        "p": p,
        "n": len(names),
    }


def interval_over_events(
    ratings: ArrayLike,
    same: ArrayLike,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
) -> tuple[float, float]:
    """Bootstrap the empathy gap over events (not in the paper).

    Parameters
    ----------
    ratings : array_like, (1 + n, 1 + n, events)
        Ratings; the unspecified identity comes first.
    same : array_like of bool, (n, n)
        Pairs of one group, as in `permutation_test`.
    n_resamples : int
        Random draws of events.
    rng : numpy.random.Generator, optional
        The source of the draws.

    Returns
    -------
    low, high : float
        95 % interval in standard deviations of the matrix.

    Notes
    -----
    Resampling adds noise to every cell and so widens the matrix. The standard deviations of the
    draws are therefore scaled back to the observed one. The percentiles are those of Hesterberg
    (2015) for few items.
    """
    rng = np.random.default_rng(rng)
    ratings = np.asarray(ratings, dtype=float)
    n_events = ratings.shape[-1]
    cells = ratings.reshape(-1, n_events)
    shares = np.full(n_events, 1 / n_events)
    counts = rng.multinomial(n_events, shares, size=n_resamples)
    means = cells @ counts.T / n_events

    # The gap is a weighted sum of cells; cells of the unspecified identity weigh nothing.
    same = np.asarray(same, dtype=bool)
    weights = same / same.sum() - ~same / (~same).sum()
    padded = np.pad(weights, (1, 0))
    gaps = padded.ravel() @ means
    spreads = means.std(axis=0)
    # A draw in which no cell differs has no gap.
    deltas = np.divide(gaps, spreads, out=np.zeros_like(gaps), where=spreads > 0)
    deltas *= spreads.mean() / cells.mean(axis=1).std()

    df = n_events - 1
    t = stats.t.ppf(0.975, df) * np.sqrt(n_events / df)
    low, high = np.quantile(deltas, stats.norm.cdf([-t, t]))
    return low, high


def holm(pvalues: ArrayLike) -> Numbers:
    """Correct the p-values of one family by Holm's method.

    Parameters
    ----------
    pvalues : array_like
        The p-values of the family. NaN is no test and stays NaN.

    Returns
    -------
    ndarray
        Corrected p-values in the same order.
    """
    adjusted = np.array(pvalues, dtype=float)
    is_tested = ~np.isnan(adjusted)
    tested = adjusted[is_tested]
    order = np.argsort(tested)
    # statsmodels' multipletests gives the same, but collects garbage in each call (0.3 s).
    multiplied = tested[order] * np.arange(tested.size, 0, -1)
    tested[order] = np.minimum(np.maximum.accumulate(multiplied), 1)
    adjusted[is_tested] = tested
    return adjusted
