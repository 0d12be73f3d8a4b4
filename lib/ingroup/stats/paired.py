"""Tests of paired differences: the exact sign test, which is also McNemar's, and Student's t."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


def sign_test(differences: ArrayLike) -> NDArray[np.float64]:
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


def cell_pvalues(values: ArrayLike) -> NDArray[np.float64]:
    """Test each cell against both of its in-group cells, event by event.

    As in section 3.4 of Hou et al. (2025).

    Parameters
    ----------
    values : array_like, (n, n, events)
        Ratings by perceiver, experiencer and event, without NaN.

    Returns
    -------
    ndarray, (2, n, n)
        Two-sided p of paired t-tests, as in the paper, and of exact sign tests, in which zeros do
        not count. Each is the larger p of two tests: cell (i, j) against (i, i) and (j, j). NaN on
        the diagonal. A t-test of equal differences has p 0; any test without a difference has p 1.
    """
    values = np.asarray(values, dtype=float)
    diagonal = np.diag_indices(len(values))
    own = values[diagonal]
    from_perceiver = values - own[:, None]
    from_experiencer = values - own
    differences = np.stack([from_perceiver, from_experiencer])

    # SciPy gives NaN where all differences are 0, and warns where they are the same.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ttest_1samp(differences, 0, axis=-1)
    by_t = np.nan_to_num(test.pvalue, nan=1)
    by_sign = sign_test(differences)
    both = np.stack([by_t, by_sign])
    larger = both.max(axis=1)
    larger[:, *diagonal] = np.nan
    return larger
