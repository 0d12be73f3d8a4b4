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
        return low, high


def permutation_test(
    matrix: ArrayLike,
    same: ArrayLike,
    n_resamples: int = 10_000,
    rng: np.random.Generator | None = None,
) -> PermutationTest:
    """Test the mean of the marked cells minus that of the others, in matrices of random order.

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
    The statistic is mean(matrix[same]) - mean(matrix[~same]), the empathy gap of Hou et al. (2025).
    Section 3.4 permutes rows and columns, each independently of the other. Where every row and
    column has one marked cell, the columns alone give the same null, in n! arrangements.
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
    total = matrix.sum()

    def differences(*orders, axis):
        """Compute the difference in arrangements (..., n); one order leaves the rows alone."""
        rows = orders[0][..., in_row] if len(orders) == 2 else in_row
        columns = orders[-1][..., in_column]
        in_group = matrix[rows, columns].mean(axis=axis)
        # All arrangements have the same sum of cells, which gives the mean of the other cells.
        out_group = (total - n_in * in_group) / n_out
        return in_group - out_group

    order = np.arange(len(matrix))
    is_alone = (same.sum(axis=0) == 1) & (same.sum(axis=1) == 1)
    orders = (order,) if is_alone.all() else (order, order)
    test = stats.permutation_test(
        orders,
        differences,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=n_resamples,
        batch=1000,
        rng=rng,
    )

    # SciPy doubles the smaller tail, which is not the p of |delta| where the null is skewed.
    null = test.null_distribution
    rounding = 1e-12 * np.abs(matrix).max()
    is_as_far = np.abs(null) >= abs(test.statistic) - rounding
    pvalue = is_as_far.mean()
    is_drawn = len(null) == n_resamples
    if is_drawn:
        pvalue = (is_as_far.sum() + 1) / (n_resamples + 1)
    return PermutationTest(test.statistic, pvalue, null)
