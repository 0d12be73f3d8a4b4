"""Row-and-column permutation test of the marked cells of a matrix against its other cells.

Hou et al. 2025, section 3.4: a row of the matrix is a perceiver, a column an experiencer. Under the
null hypothesis rows and columns stand in random order, each independently of the other. Shuffling
single cells would not keep the effects of perceivers and experiencers.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Numbers = NDArray[np.float64]
Booleans = NDArray[np.bool_]


def own_generator(seed: int, *names: str) -> np.random.Generator:
    """Make the random generator of one part of a study.

    The part's p-values and intervals then do not depend on the other parts of a run.

    Parameters
    ----------
    seed : int
        The seed of the run.
    *names : str
        The names of the part, for example a model and a setting.

    Returns
    -------
    Generator
        The same for the same seed and names.
    """
    letters = " ".join(names).encode()
    return np.random.default_rng([seed, *letters])


class PermutationTest(NamedTuple):
    """Result of `permutation_test`, whose docstring explains the fields."""

    statistic: float
    pvalue: float
    null_distribution: Numbers
    least: float

    @property
    def null_interval(self) -> tuple[float, float]:
        """Return the 2.5 and 97.5 percentiles of the null.

        They hold 95 % of the null between them. They say nothing about where delta may lie.

        Returns
        -------
        tuple of float
            The lower and the upper percentile, in the unit of delta.
        """
        low, high = np.percentile(self.null_distribution, [2.5, 97.5])
        return float(low), float(high)

    def null_spread(self, n_resamples: int = 10_000) -> tuple[float, float]:
        """Compute how far each end of `null_interval` may move with other random draws.

        Parameters
        ----------
        n_resamples : int
            The number of random arrangements of each null.

        Returns
        -------
        tuple of float
            For the lower and the upper end, a distance in the unit of the matrix.

        Notes
        -----
        Two nulls of n random arrangements each differ in the share p below an end by a standard
        error of sqrt(2 p (1 - p) / n). Two percentiles of the null lie three such errors below and
        above the end. The larger distance of the end to these two is returned.
        """
        low, high = self.null_interval
        variance = 2 * 0.025 * 0.975 / n_resamples
        # These are three standard errors of the difference of two shares, in percent.
        error = 300 * math.sqrt(variance)
        low_spread = self._largest_distance(low, 2.5, error)
        high_spread = self._largest_distance(high, 97.5, error)
        return low_spread, high_spread

    def _largest_distance(self, end: float, percentile: float, error: float) -> float:
        """Return the larger distance of an end to two percentiles of the null.

        The two percentiles lie an error below and an error above the percentile of the end.
        """
        percentiles = np.clip([percentile - error, percentile + error], 0, 100)
        # This method returns a delta of the null, where other methods interpolate between two.
        neighbours = np.percentile(self.null_distribution, percentiles, method="inverted_cdf")
        return float(np.abs(neighbours - end).max())


def permutation_test(
    matrix: ArrayLike,
    same: ArrayLike,
    n_resamples: int = 10_000,
    rng: np.random.Generator | int | None = None,
) -> PermutationTest:
    """Test delta = mean(matrix[same]) - mean(matrix[~same]), by scipy.stats.permutation_test.

    Parameters
    ----------
    matrix, same : array_like, (n, n)
        As in `checked_matrix`.
    n_resamples : int
        The number of random arrangements. Up to this number of arrangements the test is exact.
    rng : Generator or int, optional
        Draws the arrangements, which are not repeatable without it.

    Returns
    -------
    statistic : float
        The observed delta, from the same code as the null.
    pvalue : float
        Two-sided. Let b be the number of arrangements whose delta is at least as far from 0,
        exactly the mean of the null, as the observed delta (up to rounding). Then p is
        (b + 1) / (n_resamples + 1) or, where all arrangements were taken, b / their number.
    null_distribution : ndarray
        The delta of each arrangement. The paper prints its ``null_interval`` as a confidence
        interval, but it says nothing on the precision of delta.
    least : float
        The smallest p that this number of arrangements can give for any matrix.

    Raises
    ------
    ValueError
        As `checked_matrix` does.

    Notes
    -----
    Tested against the definition::

        for _ in range(n_resamples):
            order = np.ix_(rng.permutation(n), rng.permutation(n))
            null.append(matrix[order][same].mean() - matrix[order][~same].mean())

    Where every row and every column has one cell of `same` (nationality, religion), permuting the
    columns alone gives the same null, of n! arrangements. Otherwise there are n! ** 2. Up to
    `n_resamples` of them the test is exact (religion: 120).

    The test has its level where all cells vary alike and no two names or groups are related. Where
    own-group cells vary three times as much as others without being higher, it rejects at 0.05 in
    0.15 (race), 0.23 (religion) and 0.41 (nationality) of the cases. Where similar groups resemble
    each other and no group favours its own, it rejects in 0.99 (``make calibration``). See
    :mod:`ingroup.stats.crossed` for tests that hold there.
    """
    matrix, same = checked_matrix(matrix, same)
    n = len(matrix)
    unpermuted = np.arange(n)
    same_rows, same_columns = np.nonzero(same)
    # Where the cells sum to 0, delta is the in-group sum times a constant.
    n_same = len(same_rows)
    n_other = same.size - n_same
    factor = same.size / (n_same * n_other)
    centred = (matrix - matrix.mean()) * factor

    def delta(*orders: NDArray[np.int_], axis: int) -> Numbers:
        """Compute delta of arrangements (..., n). A single order leaves the rows unpermuted."""
        columns = orders[-1][..., same_columns]
        rows = orders[0] if len(orders) == 2 else unpermuted
        cells = centred[rows[..., same_rows], columns]
        return cells.sum(axis=axis)

    one_per_row = (same.sum(axis=1) == 1).all()
    one_per_column = (same.sum(axis=0) == 1).all()
    # Where both hold, permuting the columns alone gives the same null.
    needs_columns_alone = one_per_row and one_per_column
    sides = (unpermuted,) if needs_columns_alone else (unpermuted, unpermuted)
    test = stats.permutation_test(
        sides,
        delta,
        permutation_type="pairings",
        vectorized=True,
        n_resamples=n_resamples,
        # By default SciPy would hold the cells of all arrangements at once.
        batch=1000,
        rng=rng,
    )
    observed = float(test.statistic)
    null = test.null_distribution

    # SciPy doubles the smaller tail, which is no p of |delta| where the null is skewed.
    rounding = 1e-12 * np.abs(centred).max()
    is_extreme = np.abs(null) >= abs(observed) - rounding
    n_extreme = np.count_nonzero(is_extreme)
    n_arrangements = len(null)
    if math.factorial(n) ** len(sides) > n_resamples:
        # Random arrangements lack the observed one.
        n_extreme += 1
        n_arrangements += 1
    return PermutationTest(
        statistic=observed,
        pvalue=n_extreme / n_arrangements,
        null_distribution=null,
        least=1 / n_arrangements,
    )


def checked_matrix(matrix: ArrayLike, same: ArrayLike) -> tuple[Numbers, Booleans]:
    """Check a matrix and its in-group pairs, and return both as arrays.

    Parameters
    ----------
    matrix : array_like, (n, n)
        Numbers by row and column.
    same : array_like, (n, n)
        True for in-group pairs.

    Returns
    -------
    tuple of ndarray
        The matrix, of float, and the pairs, of bool.

    Raises
    ------
    ValueError
        For a cell that is not finite, a matrix of one value, and pairs that are all in-group or all
        out-group.
    """
    matrix = np.asarray(matrix, dtype=float)
    same = np.asarray(same, dtype=bool)
    if same.all() or not same.any():
        found = f"same is {bool(same.any())} for all pairs"
        raise ValueError(f"{found}, expected some in-group and some out-group pairs")

    is_not_finite = ~np.isfinite(matrix)
    for row, column in np.argwhere(is_not_finite):
        found = f"{matrix[row, column]} in row {row}, column {column}"
        raise ValueError(f"the matrix holds {found}, expected a finite number in every cell")

    rounding = 1e-12 * np.abs(matrix).max()
    if np.ptp(matrix) <= rounding:
        found = f"all cells of the matrix are {matrix[0, 0]:g}"
        raise ValueError(f"{found}, expected several values: a constant matrix has no gap to test")
    return matrix, same
