"""Row-and-column permutation test: do the marked cells of a matrix differ from the others?

Hou et al. 2025, section 3.4: a row of the matrix is a perceiver, a column an experiencer. Under the
null hypothesis rows and columns stand in random order, each independently of the other; shuffled
cells would break up what belongs to a perceiver or to an experiencer.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


class PermutationTest(NamedTuple):
    """What `permutation_test` returns, and explains."""

    statistic: float
    pvalue: float
    null_distribution: NDArray[np.float64]
    least: float

    @property
    def null_interval(self) -> tuple[float, float]:
        """The 2.5 and 97.5 percentiles of the null: where 95 % of it lies, not where delta may."""
        low, high = np.percentile(self.null_distribution, [2.5, 97.5])
        return float(low), float(high)

    def null_spread(self, n_resamples: int = 10_000) -> tuple[float, float]:
        """How far each end of `null_interval` may lie from that of somebody else's draws.

        Three standard errors of a share p, of the difference of two nulls of `n_resamples` random
        arrangements each, 3 (2 p (1 - p) / n)^(1/2), read off the null to both sides of the end.
        """
        error = 300 * math.sqrt(2 * 0.025 * 0.975 / n_resamples)
        shares = [2.5 - error, 2.5 + error, 97.5 - error, 97.5 + error]
        ends = np.percentile(self.null_distribution, np.clip(shares, 0, 100), method="inverted_cdf")
        here = np.repeat(self.null_interval, 2)
        low, high = np.abs(ends - here).reshape(2, 2).max(axis=1)
        return float(low), float(high)


def permutation_test(
    matrix: ArrayLike, same: ArrayLike, n_resamples: int = 10_000,
    rng: np.random.Generator | int | None = None,
) -> PermutationTest:  # fmt: skip
    """Test delta = mean(matrix[same]) - mean(matrix[~same]), by scipy.stats.permutation_test::

        for _ in range(n_resamples):
            order = np.ix_(rng.permutation(n), rng.permutation(n))
            null.append(matrix[order][same].mean() - matrix[order][~same].mean())

    It is tested against this definition. Where every row and every column has one cell of `same`
    (nationality, religion), permuting the columns alone gives the same null, of n! arrangements.
    Otherwise there are n! ** 2. Up to `n_resamples` of them the test is exact (religion: 120).

    The test has its level where all cells vary alike and no two names or groups are related. Where
    own-group cells vary three times as much as others and none is higher, it rejects at 0.05 in
    0.15 (race), 0.23 (religion) and 0.41 (nationality) of the cases. Where similar groups resemble
    each other and none favours its own, it rejects in 0.99 (``make calibration``). See
    :mod:`ingroup.stats.crossed` for tests that hold there.

    Matrix and same are those of `checked`; without `rng` the arrangements are not repeatable.
    Returns

    - ``statistic``: the observed delta, from the same code as the null.
    - ``pvalue``, two-sided. With b arrangements at least as far from 0, exactly the mean of the
      null, as the observed one (ties up to rounding included): (b + 1) / (n_resamples + 1) or,
      where all were taken, b / their number.
    - ``null_distribution``: delta of each arrangement. The paper prints its ``null_interval`` as a
      confidence interval, but it says nothing on the precision of delta.
    - ``least``: the smallest p that so many arrangements can give, whatever the matrix.
    """
    matrix, same = checked(matrix, same)
    order, (one, other) = np.arange(len(matrix)), np.nonzero(same)
    alone = bool((same.sum(axis=0) == 1).all() and (same.sum(axis=1) == 1).all())
    permuted = (order,) if alone else (order, order)
    # Where the cells sum to 0, delta is the in-group sum times a constant.
    centred = (matrix - matrix.mean()) * (same.size / (len(one) * (same.size - len(one))))

    def delta(*orders: NDArray[np.int_], axis: int) -> NDArray[np.float64]:
        rows, columns = (order, *orders) if alone else orders
        return centred[rows[..., one], columns[..., other]].sum(axis=axis)

    test = stats.permutation_test(
        permuted, delta, permutation_type="pairings", vectorized=True,
        n_resamples=n_resamples, batch=1000, rng=rng,
    )  # fmt: skip
    observed, null = float(test.statistic), test.null_distribution
    own = int(math.factorial(len(matrix)) ** len(permuted) > n_resamples)  # else it is among them
    # SciPy doubles the smaller tail, which is no p of |delta| where the null is skewed.
    extreme = np.count_nonzero(np.abs(null) >= abs(observed) - 1e-12 * np.abs(centred).max())
    taken = len(null) + own
    return PermutationTest(observed, (extreme + own) / taken, null, 1 / taken)


def checked(matrix: ArrayLike, same: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A square matrix and its in-group pairs (True), both (n, n), as arrays; ValueError for a cell
    that is not finite, a matrix of one value, and pairs that are all in-group or all out-group.
    """
    matrix, same = np.asarray(matrix, dtype=float), np.asarray(same, dtype=bool)
    if same.all() or not same.any():
        found = f"same is {bool(same.any())} for all pairs"
        raise ValueError(f"{found}, expected some in-group and some out-group pairs")
    for row, column in np.argwhere(~np.isfinite(matrix)):
        found = f"{matrix[row, column]} in row {row}, column {column}"
        raise ValueError(f"the matrix holds {found}, expected a finite number in every cell")
    if np.ptp(matrix) <= 1e-12 * np.abs(matrix).max():
        found = f"all cells of the matrix are {matrix[0, 0]:g}"
        raise ValueError(f"{found}, expected several values: a constant matrix has no gap to test")
    return matrix, same
