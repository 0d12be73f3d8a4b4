"""The exact sign test of paired differences, which is also McNemar's exact test."""

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
