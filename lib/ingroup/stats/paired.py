"""Paired t-tests, sign tests, McNemar's test, shares in clusters, and means without NaN."""

import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betainc, betaincinv
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.corrections import Numbers, adjust

TINY = 1e-9  # points of the scale: differences below are rounding errors of averages
# Gauss-Legendre points on (-1, 1), with which `_lower_end` averages over T.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


class PairedTest(NamedTuple):
    """Result of `paired_test`, whose docstring explains the fields."""

    # Each field is an array, or a number for one row of pairs: NumPy's types leave that open.
    statistic: Any
    pvalue: Any
    difference: Any
    low: Any
    high: Any
    effect_size: Any
    n: Any
    least: Any


def paired_test(one: ArrayLike, other: ArrayLike = 0.0) -> PairedTest:
    """Make a paired t-test over the last axis, by scipy.stats.ttest_1samp of the differences.

    Parameters
    ----------
    one, other : array_like, (..., pairs)
        Points of the scale, NaN where a number is missing.

    Returns
    -------
    statistic : ndarray, (...)
        The t of each row of pairs.
    pvalue : ndarray, (...)
        Two-sided p.
    difference, low, high : ndarray, (...)
        The mean of d with its 95 % interval.
    effect_size : ndarray, (...)
        The standardised mean difference d_z.
    n : ndarray of int, (...)
        The number of pairs without NaN.
    least : ndarray, (...)
        The smallest p that n pairs can give: 0, unless all d are the same (see Notes).

    Notes
    -----
    With d = one - other over the n pairs without NaN::

        t = mean(d) / (sd(d) / sqrt(n)),  d_z = mean(d) / sd(d),  sd with n - 1, df = n - 1

    If all d are the same, t is infinite, d_z is not defined (NaN), and p comes from `sign_test`,
    whose least is 2^(1 - n). If all d are 0, t is 0, d_z is 0 and p is 1. With fewer than 2 pairs
    all but the mean and n is NaN.
    """
    d = np.subtract(one, other, dtype=float)
    has_both = ~np.isnan(d)
    n = np.count_nonzero(has_both, axis=-1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # With too few pairs, or pairs without spread, the result says so.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ttest_1samp(d, 0, axis=-1, nan_policy="omit")
        low, high = test.confidence_interval(0.95)
        mean = np.nanmean(d, axis=-1)
        sd = np.nanstd(d, axis=-1, ddof=1)
        effect_size = mean / sd

    same = sd < TINY
    is_zero = same & (np.abs(mean) < TINY)
    mean = np.where(is_zero, 0.0, mean)
    infinite = np.copysign(np.inf, mean)
    same_statistic = np.where(is_zero, 0.0, infinite)
    same_effect_size = np.where(is_zero, 0.0, np.nan)
    least = np.where(n > 1, 0.0, np.nan)

    fields = PairedTest(
        statistic=np.where(same, same_statistic, test.statistic),
        pvalue=np.where(same, sign_test(d), test.pvalue),
        difference=mean,
        low=np.where(same, mean, low),
        high=np.where(same, mean, high),
        effect_size=np.where(same, same_effect_size, effect_size),
        n=n,
        least=np.where(same, 2.0 ** (1 - n), least),
    )
    # The index () turns an array without axes, of one row of pairs, into a number.
    return PairedTest(*(field[()] for field in fields))


def sign_test(one: ArrayLike, other: ArrayLike = 0.0) -> Numbers:
    """Compute the two-sided p of the exact sign test.

    Parameters
    ----------
    one, other : array_like, (..., pairs)
        As in `paired_test`.

    Returns
    -------
    ndarray, (...)
        The p of each row of pairs, at least 2^(1 - n).

    Notes
    -----
    With n pairs that differ, k of them upwards, and X binomial(n, 1/2)::

        p = min(1, 2 P(X <= min(k, n - k)))

    The test assumes nothing about the size of the differences. Checked against SciPy's binomtest.
    """
    d = np.subtract(one, other, dtype=float)
    up = np.count_nonzero(d > TINY, axis=-1)
    down = np.count_nonzero(-d > TINY, axis=-1)
    return _coin_pvalue(up, down)


def _coin_pvalue(up: ArrayLike, down: ArrayLike) -> Numbers:
    """Compute the two-sided p of a fair coin that falls `up` and `down` times."""
    fewer = np.minimum(up, down)
    n = np.add(up, down)
    p = 2 * stats.binom.cdf(fewer, n, 0.5)
    return np.minimum(1.0, p)


def cell_pvalues(ratings: Numbers, test: str = "t") -> Numbers:
    """Test cells (p, x) against (p, p) and (x, x), event by event (section 3.4 of Hou et al. 2025).

    Parameters
    ----------
    ratings : ndarray, (n, n, events)
        Ratings by perceiver, experiencer and event, NaN where a rating is missing.
    test : {"t", "sign"}
        The paper's test, whose p is 0 where all differences are the same, or the sign test.

    Returns
    -------
    ndarray, (n, n)
        The larger p of both comparisons. The diagonal is NaN.

    Raises
    ------
    ValueError
        For a comparison of fewer than 2 pairs; the sentence names the cell and the reference.
    """
    own = ratings[np.diag_indices(len(ratings))]
    # Own cells are (n, events): the new axis pairs them with rows, else they pair with columns.
    perceiver = _against(ratings, own[:, None], "perceiver", test)
    experiencer = _against(ratings, own, "experiencer", test)
    larger = np.maximum(perceiver, experiencer)
    np.fill_diagonal(larger, np.nan)
    return larger


def _against(ratings: Numbers, reference: Numbers, name: str, test: str) -> Numbers:
    """Compute the p of all cells against in-group cells, of their perceivers or experiencers.

    Raise a ValueError that holds `name`, the side, if a comparison has fewer than 2 pairs.
    """
    tests = paired_test(ratings, reference)
    for row, column in np.argwhere(tests.n < 2):
        cell = f"row {row}, column {column}"
        n = tests.n[row, column]
        found = f"{cell} and its {name} in-group cell share {n}"
        raise ValueError(f"{found} events with a rating, expected at least 2 for a paired test")

    if test == "t":
        # `paired_test` gives the sign test's p where all differences are the same.
        is_same = np.isinf(tests.statistic)
        return np.where(is_same, 0.0, tests.pvalue)
    return sign_test(ratings, reference)


def cells_to_show(pvalues: Numbers, correction: str = "bonferroni") -> NDArray[np.bool_]:
    """Tell which cells a heatmap shows: those not tested, and those that differ at 0.05.

    Parameters
    ----------
    pvalues : ndarray, (n, n)
        Values of p of `cell_pvalues`, "a person" first. This row and column do not count as tested,
        nor does the diagonal.
    correction : str
        A method of `adjust`, over one family. Or "released": Bonferroni's with n**2 tests (361,
        484, 36), which also counts the cells that are not tested.

    Returns
    -------
    ndarray of bool, (n, n)
        True for cells that are not tested, and for cells that differ from both their perceiver's
        and their experiencer's in-group cell. A heatmap leaves the other cells white.
    """
    pvalues = pvalues.copy()
    pvalues[0, :] = np.nan
    pvalues[:, 0] = np.nan
    if correction == "released":
        pvalues *= pvalues.size
    else:
        pvalues = adjust(pvalues, correction)
    # Cells that were not tested are NaN, for which no comparison holds.
    return ~(pvalues >= 0.05)


@cache
def mcnemar(gained: int, lost: int, n: int) -> tuple[float, float, float]:
    """Make McNemar's exact test of n pairs, with the interval that agrees with it.

    Parameters
    ----------
    gained, lost : int
        How many pairs changed to one side, and how many to the other.
    n : int
        How many pairs there are.

    Returns
    -------
    low, high : float
        The interval (95 %) of the change (gained - lost) / n, from -1 to 1.
    p : float
        The p of `sign_test`, at least 2^(1 - n).

    Notes
    -----
    The interval follows Fay and Lumbard (2021, Statistics in Medicine 40:1147). With
    m = gained + lost, low is the 0.025 quantile of ::

        T (2 B - 1),  B ~ Beta(gained, lost + 1),  T ~ Beta(m, n - m + 1) or Beta(m + 1, n - m)

    The T that gives the lower end is taken. high is the low of lost and gained exchanged, with the
    other sign. The interval excludes 0 if and only if p < 0.05, and it holds the change in at least
    95 % of cases: 98 % with 79 pairs, all but 1 % with 6 (``make calibration``). Items must be
    independent: if they come in pairs that are answered alike, p is below 0.05 in 0.12 of the
    cases. Checked against random draws of B and T.
    """
    low = _lower_end(gained, lost, n)
    high = -_lower_end(lost, gained, n)
    p = float(_coin_pvalue(gained, lost))
    return low, high, p


def _lower_end(gained: int, lost: int, n: int) -> float:
    """Compute the lower end of the interval of `mcnemar`."""
    m = gained + lost
    # The chance that B is below 1/2 is the one-sided p. Where it is small, low is above 0.
    is_above = betainc(gained, lost + 1, 0.5) < 0.025
    if is_above:
        # The low end takes the T that gives less: the smaller T for a positive product, the
        # larger T for a negative one.
        beta = (m, n - m + 1)
        bracket = (0, 1)
    else:
        beta = (m + 1, n - m)
        bracket = (-1, 0)

    # Without a gained pair B is 0, and where all pairs changed T is 1.
    if gained == 0 and m == n:
        return -1.0
    if gained == 0:
        # With B = 0 the product is -T, whose 0.025 quantile is minus T's 0.975 quantile.
        return -float(betaincinv(*beta, 0.975))

    # Quantiles of T: 1 where all pairs changed. The nodes are on (-1, 1).
    levels = (NODES + 1) / 2
    shares = betaincinv(*beta, levels)
    shares = np.nan_to_num(shares, nan=1.0)

    def beyond(change: float) -> float:
        """Compute the chance that T (2 B - 1) is below a change, by quadrature, minus 0.025."""
        # T (2 B - 1) is below the change where B is below 1/2 + change / (2 T).
        limits = 0.5 + change / shares / 2
        chances = betainc(gained, lost + 1, np.clip(limits, 0, 1))
        # The weights sum to 2, the length of (-1, 1).
        chance = WEIGHTS @ chances / 2
        return chance - 0.025

    return brentq(beyond, *bracket)


def clustered_share(hits: ArrayLike, units: ArrayLike) -> tuple[float, float, float]:
    """Compute the share of hits that come in clusters, and its interval (95 %).

    Parameters
    ----------
    hits : array_like
        0 or 1 for each answer.
    units : array_like
        The label of the unit of each answer. The answers of one unit are a cluster.

    Returns
    -------
    share : float
        The share of hits; NaN without an answer.
    low, high : float
        The interval of the share; NaN for a single cluster or none.

    Notes
    -----
    Answers of a cluster are not independent observations (Miller 2024). With the share p, the
    cluster-robust standard error s of statsmodels, n answers and C clusters, the share is as
    precise as that of m independent answers::

        m = p (1 - p) / max(s^2, p (1 - p) / n), or C where all hits are the same

    The interval is Wilson's of p m hits in m answers, with the quantile of Student's t with C - 1
    degrees of freedom. It holds the share in 0.96 of the cases with 30 clusters of two, and in 0.16
    where one cluster of 100 stands beside 10 of one (``make calibration``). So clusters must be of
    similar size.
    """
    hits = np.asarray(hits, dtype=float)
    codes, names = pd.factorize(np.asarray(units))
    share = float(nan_mean(hits))
    n = len(hits)
    if len(names) < 2:
        return share, np.nan, np.nan

    model = OLS(hits, np.ones(n))
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": codes})
    robust_variance = float(fit.bse[0]) ** 2
    variance = share * (1 - share)
    # The share is as precise as that of this many independent answers: m of the docstring.
    n_independent = float(len(names))
    if variance:
        n_independent = variance / max(robust_variance, variance / n)

    t = stats.t.isf(0.025, len(names) - 1)
    low, high = proportion_confint(
        count=share * n_independent,
        nobs=n_independent,
        # statsmodels' interval takes a normal quantile: at this level it is Student's t.
        alpha=2 * stats.norm.sf(t),
        method="wilson",
    )
    return share, float(low), float(high)


def nan_mean(values: ArrayLike, axis: int | tuple[int, ...] = 0) -> Numbers:
    """Compute the mean of the numbers that are not NaN.

    The mean is NaN, without a warning, where all numbers are NaN.

    Parameters
    ----------
    values : array_like
        Numbers, NaN where a number is missing.
    axis : int or tuple of int
        The axis that is averaged over, or several.

    Returns
    -------
    ndarray
        The means, of the shape of `values` without this axis.
    """
    numbers = np.asarray(values, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(numbers, axis=axis)
