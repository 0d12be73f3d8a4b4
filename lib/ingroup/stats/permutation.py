"""A permutation test of the difference between two kinds of cells of a matrix."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Numbers = NDArray[np.float64]


def own_generator(seed: int, *names: str) -> np.random.Generator:
    """Seed a generator by the names of a part, so that other parts do not change its draws.

    Parameters
    ----------
    seed : int
        The seed of the run.
    *names : str
        The names of the part, e.g. a model and a setting.

    Returns
    -------
    Generator
        The same for the same seed and names.
    """
    return np.random.default_rng([seed, *" ".join(names).encode()])


class PermutationTest(NamedTuple):
    """Result of `permutation_test`.

    Attributes
    ----------
    statistic : float
        The observed difference, in the unit of the matrix.
    pvalue : float
        Two-sided p.
    null_distribution : ndarray
        The difference in each arrangement.
    """

    statistic: float
    pvalue: float
    null_distribution: Numbers

    @property
    def null_interval(self) -> tuple[float, float]:
        """Return the middle 95 % of the null, which says nothing about the precision of delta."""
        low, high = np.percentile(self.null_distribution, [2.5, 97.5])
        return float(low), float(high)


def mean_difference(matrix: ArrayLike, same: ArrayLike) -> float:
    """Subtract the mean of the other cells from the mean of the marked cells.

    Parameters
    ----------
    matrix : array_like, (n, n)
        Numbers in any unit.
    same : array_like of bool, (n, n)
        The marked cells.

    Returns
    -------
    float
        mean(matrix[same]) - mean(matrix[~same]); the empathy gap of Hou et al. 2025, section 3.4.
    """
    matrix = np.asarray(matrix, dtype=float)
    same = np.asarray(same, dtype=bool)
    return float(matrix[same].mean() - matrix[~same].mean())


def permutation_test(
    matrix: ArrayLike,
    same: ArrayLike,
    n_resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> PermutationTest:
    """Test `mean_difference` against rows and columns in random order.

    Parameters
    ----------
    matrix : array_like, (n, n)
        Finite numbers. Rows are perceivers, columns are experiencers.
    same : array_like of bool, (n, n)
        True for pairs of one group.
    n_resamples : int
        How many arrangements are drawn. The test is exact where no more exist.
    rng : Generator, optional
        Draws the arrangements.

    Returns
    -------
    PermutationTest
        p is the share of arrangements that lie at least as far from 0 as the observed one, which
        counts as one of them: (b + 1) / (B + 1), Phipson and Smyth (2010). A constant matrix has
        the statistic 0 and p 1.

    Raises
    ------
    ValueError
        A cell is not finite, or `same` marks all cells or none.

    Notes
    -----
    Hou et al. (2025), section 3.4, permute rows and columns, each independently of the other. Where
    every row and column has one marked cell, the columns alone give the same null, in n!
    arrangements.
    """
    matrix = np.asarray(matrix, dtype=float)
    same = np.asarray(same, dtype=bool)
    if not np.isfinite(matrix).all():
        raise ValueError("a permutation test needs a finite number in every cell")
    if same.all() or not same.any():
        raise ValueError("a permutation test needs pairs of one group and pairs of two groups")

    in_row, in_column = np.nonzero(same)
    n_in = same.sum()
    n_out = same.size - n_in

    def differences(*orders, axis):
        """Compute the difference in arrangements (..., n); one order leaves the rows alone."""
        rows = orders[0][..., in_row] if len(orders) == 2 else in_row
        columns = orders[-1][..., in_column]
        in_group = matrix[rows, columns].mean(axis=axis)
        # All arrangements have the same sum of cells, which gives the mean of the other cells.
        out_group = (matrix.sum() - n_in * in_group) / n_out
        return in_group - out_group

    order = np.arange(len(matrix))
    has_one_a_line = (same.sum(axis=0) == 1).all() and (same.sum(axis=1) == 1).all()
    test = stats.permutation_test(
        (order,) if has_one_a_line else (order, order),
        differences,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=n_resamples,
        batch=1000,
        rng=rng,
    )

    # SciPy doubles the smaller tail, which is not the p of |delta| where the null is skewed.
    rounding = 1e-12 * np.abs(matrix).max()
    is_as_far = np.abs(test.null_distribution) >= abs(test.statistic) - rounding
    is_exact = is_as_far.size < n_resamples
    pvalue = is_as_far.mean() if is_exact else (is_as_far.sum() + 1) / (n_resamples + 1)
    return PermutationTest(float(test.statistic), float(pvalue), test.null_distribution)
