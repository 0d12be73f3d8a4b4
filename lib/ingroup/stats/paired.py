"""Paired t-tests, McNemar's test, corrections, shares in clusters, means of what is there."""

import warnings
from collections import namedtuple
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

TINY = 1e-9  # points of the scale: differences below are rounding errors of averages
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)

Numbers = NDArray[np.float64]
PairedTest = namedtuple("PairedTest", "statistic pvalue difference low high effect_size n least")


def paired_test(one: ArrayLike, other: ArrayLike = 0.0) -> PairedTest:
    """Paired t-test over the last axis, by scipy.stats.ttest_1samp of the differences.

    With d = one - other over the n pairs that have both::

        t = mean(d) / (sd(d) / sqrt(n)),  d_z = mean(d) / sd(d),  sd with n - 1, df = n - 1

    `one` and `other` are of shape (..., pairs) in points of the scale, NaN where one is missing.
    The fields are of shape (...): t, two-sided p, mean(d) with its interval ``low`` to ``high``
    (95 %), d_z, n, and ``least``, below which no d could have brought p: 0. Where all d are the
    same, t is infinite, d_z is not defined (NaN), and p is that of `sign_test`, with its least;
    where all are 0, these are 0, 0 and 1. With fewer than 2 pairs all but the mean and n is NaN.
    """
    d = np.subtract(one, other, dtype=float)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Too few pairs, or pairs without spread: what is returned says so.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ttest_1samp(d, 0, axis=-1, nan_policy="omit")
        low, high = test.confidence_interval(0.95)
        mean, sd = np.nanmean(d, axis=-1), np.nanstd(d, axis=-1, ddof=1)
        effect_size = mean / sd
    same = sd < TINY
    mean = np.where(same & (np.abs(mean) < TINY), 0.0, mean)
    n = np.count_nonzero(~np.isnan(d), axis=-1)
    far, undefined = (np.where(mean == 0, 0.0, one) for one in (np.copysign(np.inf, mean), np.nan))
    instead = [far, sign_test(d), mean, mean, mean, undefined, n, 2.0 ** (1 - n)]
    least = np.where(n > 1, 0.0, np.nan)
    numbers = [test.statistic, test.pvalue, mean, low, high, effect_size, n, least]
    numbers = [np.where(same, *pair) for pair in zip(instead, numbers, strict=True)]
    return PairedTest(*(number[()] for number in numbers))  # of one row, no arrays without axes


def finding(pvalues: Numbers, least: Numbers, alpha: float) -> NDArray[np.str_]:
    """In words, of p after a correction and the `least` that it could have been, corrected alike.

    "significant" (p < `alpha`), "not significant", "could not have been significant" (the least is
    not below `alpha`, whatever the answers), and "not tested" where p is NaN.
    """
    said = ["not tested", "significant", "could not have been significant"]
    where = [np.isnan(pvalues), pvalues < alpha, least >= alpha]
    return np.select(where, said, "not significant")


def in_family(table: pd.DataFrame, alpha: float, family: pd.Series | bool = True) -> pd.DataFrame:
    """The table with Holm's correction of ``p`` and ``p_least``, over its rows of one `family`.

    Adds ``p_holm``, ``p_holm_least`` (the smallest that it could have become) and their `finding`;
    in other rows they are NaN, and it is that of ``p`` and ``p_least``.
    """
    both = table["p"], table["p_least"]
    p, least = (adjust(np.where(family, one, np.nan), "holm") for one in both)
    table = table.assign(p_holm=p, p_holm_least=least)
    judged = table["p_holm"].fillna(both[0]), table["p_holm_least"].fillna(both[1])
    return table.assign(finding=finding(*judged, alpha))


def sign_test(one: ArrayLike, other: ArrayLike = 0.0) -> Numbers:
    """Two-sided p of the exact sign test, shapes as in `paired_test`.

    Of n pairs that differ k do so upwards, and X is binomial(n, 1/2)::

        p = min(1, 2 P(X <= min(k, n - k)))

    It asks nothing of their size, and is at least 2^(1 - n). Checked against SciPy's binomtest.
    """
    d = np.subtract(one, other, dtype=float)
    return _coin(*(np.count_nonzero(side > TINY, axis=-1) for side in (d, -d)))


def _coin(up: ArrayLike, down: ArrayLike) -> Numbers:
    """Two-sided p that a coin falls so unevenly."""
    return np.minimum(1.0, 2 * stats.binom.cdf(np.minimum(up, down), np.add(up, down), 0.5))


def paired_cells(ratings: NDArray[np.float64], test: str = "t") -> Numbers:
    """p-values of cells (p, x) against (p, p) and (x, x), event by event, the larger of both.

    Section 3.4 of Hou et al. 2025: `ratings` are perceivers by experiencers by events, (n, n,
    events), NaN where one is missing; the result is (n, n), its diagonal NaN. By the paper's "t",
    which is 0 where all differences are the same, or the "sign" `test`. ValueError for a comparison
    of fewer than 2 pairs (the sentence names the cell and the reference).
    """
    own = ratings[np.diag_indices(len(ratings))]
    both = []
    for name, reference in (("perceiver", own[:, None]), ("experiencer", own)):
        tests = paired_test(ratings, reference)
        for p, x in np.argwhere(tests.n < 2):
            found = f"row {p}, column {x} and its {name} in-group cell share {tests.n[p, x]}"
            raise ValueError(f"{found} events with a rating, expected at least 2 for a paired test")
        as_scipy = np.where(np.isinf(tests.statistic), 0.0, tests.pvalue)
        both.append(as_scipy if test == "t" else sign_test(ratings, reference))
    worse = np.maximum(*both)
    np.fill_diagonal(worse, np.nan)
    return worse


def significant_cells(pvalues: Numbers, correction: str = "bonferroni") -> NDArray[np.bool_]:
    """Cells that differ from both in-group references at 0.05: (n, n), True for those to show.

    `pvalues` are of `paired_cells`, "a person" first: this row and column are never masked and do
    not count as tested, nor does the diagonal. One family, corrected by a method of `adjust` or as
    "released": Bonferroni's with n**2 tests (361, 484, 36), which counts what is not tested.
    """
    pvalues = pvalues.copy()
    pvalues[0, :] = pvalues[:, 0] = np.nan
    pvalues = pvalues * pvalues.size if correction == "released" else adjust(pvalues, correction)
    # Cells that were not tested are NaN, for which no comparison holds.
    return ~(pvalues >= 0.05)


def adjust(pvalues: ArrayLike, method: str) -> Numbers:
    """p-values of one family, corrected, in their shape and at most 1.

    NaN, where nothing was tested, stays NaN and does not count. `method` is "none", "bonferroni" or
    "holm" (the chance of any false positive; Holm's finds at least as much), "benjamini-hochberg"
    (the false discovery rate); KeyError for another. Checked against statsmodels' multipletests,
    which collects garbage at every call.
    """
    pvalues = np.array(pvalues, dtype=float)
    tested = ~np.isnan(pvalues)
    made = pvalues[tested]
    if method == "benjamini-hochberg":
        pvalues[tested] = stats.false_discovery_control(made)
        return pvalues
    order, left = np.argsort(made), made.size - np.arange(made.size)
    times = {"none": 1, "bonferroni": made.size, "holm": left}[method]
    made[order] = np.minimum(np.maximum.accumulate(made[order] * times), 1)
    pvalues[tested] = made
    return pvalues


@cache
def mcnemar(gained: int, lost: int, n: int) -> tuple[float, float, float]:
    """McNemar's exact test of n pairs, and the interval that agrees with it.

    Returns ``low`` and ``high`` (95 %) of the change (gained - lost) / n, from -1 to 1, and ``p``,
    that of `sign_test`, at least 2^(1 - n). The interval is that of Fay and Lumbard (2021,
    Statistics in Medicine 40:1147): with m = gained + lost, low is the 0.025 quantile of ::

        T (2 B - 1),  B ~ Beta(gained, lost + 1),  T ~ Beta(m, n - m + 1) or Beta(m + 1, n - m)

    whichever gives less, and high that of lost and gained with the other sign. It excludes 0 if and
    only if p < 0.05, and it holds the change in at least 95 % of cases: 98 % with 79 pairs, all but
    1 % with 6 (``make calibration``). Items must be independent: where they come in pairs that are
    answered alike, p is below 0.05 in 0.12 of the cases. Checked against random draws of B and T.
    """
    return _low(gained, lost, n), -_low(lost, gained, n), float(_coin(gained, lost))


def _low(gained: int, lost: int, n: int) -> float:
    """Where `mcnemar`'s interval begins."""
    m, above = gained + lost, betainc(gained, lost + 1, 0.5) < 0.025  # one-sided: B above 1/2
    beta = (m, n - m + 1) if above else (m + 1, n - m)
    if gained == 0:  # B is 0
        return -float(betaincinv(*beta, 0.975)) if m < n else -1.0
    # Quantiles of T: 1 where all pairs changed.
    shares = np.nan_to_num(betaincinv(*beta, (NODES + 1) / 2), nan=1.0)

    def beyond(change: float) -> float:
        chance = betainc(gained, lost + 1, np.clip(0.5 + change / shares / 2, 0, 1))
        return WEIGHTS @ chance / 2 - 0.025

    return brentq(beyond, *((0, 1) if above else (-1, 0)))


def clustered_share(hits: ArrayLike, clusters: ArrayLike) -> tuple[float, float, float]:
    """The share of `hits` (0 or 1) that come in `clusters` (a label each), and its interval (95 %).

    Answers of a cluster are no independent witnesses (Miller 2024). With the share p, the
    cluster-robust standard error of statsmodels s and C clusters, as many independent answers as

        m = p (1 - p) / max(s^2, p (1 - p) / n), or C where all hits are the same

    would know p as well: the interval is Wilson's of p m and m, at Student's t with C - 1 degrees
    of freedom. It holds the share in 0.96 of the cases with 30 clusters of two, and in 0.16 where
    one cluster of 100 stands beside 10 of one (``make calibration``): clusters must be of similar
    size. NaN to NaN of a single cluster, all NaN of none.
    """
    hits, (places, names) = np.asarray(hits, dtype=float), pd.factorize(np.asarray(clusters))
    share, n = float(nan_mean(hits)), len(hits)
    if len(names) < 2:
        return share, np.nan, np.nan
    fit = OLS(hits, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": places})
    spread = share * (1 - share)
    independent = spread / max(float(fit.bse[0]) ** 2, spread / n) if spread else len(names)
    z = min(stats.t.isf(0.025, len(names) - 1), 37)  # further out its tail is 0 in floats
    interval = proportion_confint(share * independent, independent, 2 * stats.norm.sf(z), "wilson")
    return share, *map(float, interval)


def nan_mean(values: ArrayLike, axis: int = 0) -> Numbers:
    """Mean of what is not NaN; NaN, without a warning, where there is nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=axis)
