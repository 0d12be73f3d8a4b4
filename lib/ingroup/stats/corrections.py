"""Corrections of several tests' p, in one family or in many."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Numbers = NDArray[np.float64]


def adjust(pvalues: ArrayLike, method: str) -> Numbers:
    """Correct the p-values of one family.

    Parameters
    ----------
    pvalues : array_like
        Values of p. NaN, where nothing was tested, stays NaN and does not count as a test.
    method : str
        "none"; "bonferroni" or "holm" (the chance of any false positive; Holm's finds at least as
        much); "benjamini-hochberg" (the false discovery rate).

    Returns
    -------
    ndarray
        Corrected p-values in their shape, at most 1.

    Raises
    ------
    KeyError
        For another method.

    Notes
    -----
    Checked against statsmodels' multipletests, which collects garbage at every call.
    """
    adjusted = np.array(pvalues, dtype=float)
    is_tested = ~np.isnan(adjusted)
    tested = adjusted[is_tested]

    if method == "benjamini-hochberg":
        adjusted[is_tested] = stats.false_discovery_control(tested)
        return adjusted

    n = tested.size
    factors = {
        "none": 1,
        "bonferroni": n,
        # For the smallest p all tests count, for the largest p one.
        "holm": n - np.arange(n),
    }
    order = np.argsort(tested)
    multiplied = tested[order] * factors[method]
    # No p becomes smaller than one that is smaller before the correction.
    increasing = np.maximum.accumulate(multiplied)
    tested[order] = np.minimum(increasing, 1)
    adjusted[is_tested] = tested
    return adjusted


def in_family(table: pd.DataFrame, alpha: float, family: pd.Series | bool = True) -> pd.DataFrame:
    """Correct the tests of one family by Holm's method.

    Parameters
    ----------
    table : DataFrame
        Tests, with ``p`` and ``p_least``.
    alpha : float
        The level of the family.
    family : Series of bool, or bool
        The rows that are one family.

    Returns
    -------
    DataFrame
        The table with ``p_holm``, ``p_holm_least`` (the smallest possible ``p_holm``) and their
        `finding`. In other rows they are NaN, and the finding comes from ``p`` and ``p_least``.
    """
    p = np.where(family, table["p"], np.nan)
    least = np.where(family, table["p_least"], np.nan)
    table = table.assign(
        p_holm=adjust(p, "holm"),
        p_holm_least=adjust(least, "holm"),
    )

    judged = table["p_holm"].fillna(table["p"])
    judged_least = table["p_holm_least"].fillna(table["p_least"])
    return table.assign(finding=finding(judged, judged_least, alpha))


def finding(pvalues: Numbers, least: Numbers, alpha: float) -> NDArray[np.str_]:
    """Put p-values into words.

    Parameters
    ----------
    pvalues : array_like
        Values of p after a correction.
    least : array_like
        The smallest p that each could have been, corrected alike.
    alpha : float
        The level.

    Returns
    -------
    ndarray of str
        "significant" (p < `alpha`), "not significant", "could not have been significant" (the least
        is not below `alpha`), and "not tested" where p is NaN.
    """
    conditions = {
        "not tested": np.isnan(pvalues),
        "significant": pvalues < alpha,
        "could not have been significant": least >= alpha,
    }
    return np.select(
        list(conditions.values()),
        list(conditions),
        default="not significant",
    )
