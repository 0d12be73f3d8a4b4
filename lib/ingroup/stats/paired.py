"""Paired tests over events: the exact sign test, and the tests of the cells of a matrix."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Numbers = NDArray[np.float64]


def sign_test(differences: ArrayLike) -> Numbers:
    """Test paired differences by their signs alone, exactly.

    Parameters
    ----------
    differences : array_like, (..., pairs)
        Differences of any unit. Zeros and NaN do not count.

    Returns
    -------
    ndarray, (...)
        Two-sided p of a fair coin, 1 where no difference counts.
    """
    differences = np.asarray(differences, dtype=float)
    above = (differences > 0).sum(axis=-1)
    below = (differences < 0).sum(axis=-1)
    n = above + below
    fewer = np.minimum(above, below)
    tail = stats.binom.cdf(fewer, n, 0.5)
    return np.minimum(2 * tail, 1)


def t_test(differences: ArrayLike) -> Numbers:
    """Test whether the mean of paired differences is 0, by Student's t.

    Parameters
    ----------
    differences : array_like, (..., pairs)
        Differences of any unit, without NaN.

    Returns
    -------
    ndarray, (...)
        Two-sided p; 0 where all differences are the same, 1 where all are 0 or there is one pair.
    """
    # SciPy gives NaN where all differences are 0, and warns where they are the same.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = stats.ttest_1samp(differences, 0, axis=-1)
    return np.nan_to_num(result.pvalue, nan=1)


def cell_pvalues(ratings: ArrayLike, test=t_test) -> Numbers:
    """Test each cell against both of its in-group cells, event by event.

    Parameters
    ----------
    ratings : array_like, (n, n, events)
        Ratings by perceiver, experiencer and event, without NaN.
    test : callable
        `t_test`, as in Hou et al. (2025), section 3.4, or `sign_test`.

    Returns
    -------
    ndarray, (n, n)
        The larger p of the two tests: cell (p, x) against (p, p) and (x, x). NaN on the diagonal.
    """
    ratings = np.asarray(ratings, dtype=float)
    diagonal = np.diag_indices(len(ratings))
    own = ratings[diagonal]
    of_perceiver = test(ratings - own[:, None])
    of_experiencer = test(ratings - own[None, :])

    larger = np.maximum(of_perceiver, of_experiencer)
    np.fill_diagonal(larger, np.nan)
    return larger
