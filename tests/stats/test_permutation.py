"""The permutation test against its definition, closed forms, enumeration and SciPy."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ingroup.stats.permutation import permutation_test

RACE = "w" * 5 + "b" * 4 + "a" * 3 + "h" * 6


def same_group(groups):
    """In-group pairs of identities whose groups are given one by one."""
    return np.equal.outer(list(groups), list(groups))


def random_matrix(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, n))


def gap_of(matrix, same, rows, columns):
    """delta of one arrangement: the definition."""
    arranged = matrix[np.ix_(rows, columns)]
    return arranged[same].mean() - arranged[~same].mean()


def null_variance(matrix, same):
    """Variance of delta over all row and column orders, in closed form.

    delta is a sum of weights W times cells M. Both split into a mean, row effects, column effects
    and interaction, which give three uncorrelated parts of delta. With sums of squares over all
    cells, variance = (SSrow(W) SSrow(M) + SScol(W) SScol(M)) / (n - 1) + SSint(W) SSint(M) /
    (n - 1)**2. The mean is 0, since W sums to 0.
    """
    weights = np.where(same, 1 / np.count_nonzero(same), -1 / np.count_nonzero(~same))
    squares = []
    for cells in (weights, matrix - matrix.mean()):
        rows, columns = cells.mean(axis=1, keepdims=True), cells.mean(axis=0, keepdims=True)
        parts = np.broadcast_arrays(rows, columns, cells - rows - columns)
        squares.append([np.sum(part**2) for part in parts])
    row, column, interaction = np.prod(squares, axis=0)
    return float((row + column + interaction / (len(matrix) - 1)) / (len(matrix) - 1))


def all_gaps(matrix, same):
    """delta of every order of rows with every order of columns."""
    orders = list(permutations(range(len(matrix))))
    return np.array([gap_of(matrix, same, r, c) for r in orders for c in orders])


def as_often(few, many):
    """Both sorted; the few repeated to be as many, where one side alone reaches all gaps."""
    return np.sort(np.repeat(few, len(many) // len(few))), np.sort(many)


@pytest.mark.parametrize(
    ("groups", "roll", "n_arrangements"),
    [
        *[("aab", 0, 36), ("abc", 0, 6), ("aabb", 0, 576), ("abbb", 0, 576), ("abcd", 0, 24)],
        ("abcd", 2, 24),  # in-group cells off the diagonal
    ],
)
def test_exact_null_is_the_null_of_all_arrangements(groups, roll, n_arrangements):
    matrix, same = random_matrix(len(groups), 1), np.roll(same_group(groups), roll, axis=1)
    result = permutation_test(matrix, same)
    assert len(result.null_distribution) == n_arrangements
    slow = all_gaps(matrix, same)
    np.testing.assert_allclose(*as_often(result.null_distribution, slow), atol=1e-12)
    observed = gap_of(matrix, same, range(len(matrix)), range(len(matrix)))
    assert result.statistic == pytest.approx(observed, abs=1e-12)
    assert result.pvalue_greater == np.mean(slow >= observed - 1e-9)
    assert result.pvalue == np.mean(np.abs(slow) >= abs(observed) - 1e-9)


@pytest.mark.parametrize("groups", [RACE, range(21), range(6), "aabcddd", "ab" * 7])
def test_random_null_is_that_of_the_definition(groups):
    # Strong row and column effects and a skewed interaction: a kernel that fixed one side or
    # shuffled free cells would have another spread.
    rng = np.random.default_rng(3)
    n = len(groups)
    matrix = rng.exponential(size=(n, n)) + rng.exponential(size=(n, 1)) + rng.exponential(size=n)
    same = same_group(groups)
    result = permutation_test(matrix, same, 20_000 if n > 6 else 700, rng)
    slow = [gap_of(matrix, same, rng.permutation(n), rng.permutation(n)) for _ in range(3000)]
    assert stats.ks_2samp(slow, result.null_distribution).pvalue > 0.001


@pytest.mark.parametrize("groups", [RACE, range(21), "aabcddd"])
def test_random_null_has_the_closed_mean_and_variance(groups):
    same = same_group(groups)
    matrix = random_matrix(len(same), 4) + np.arange(len(same)) / 4
    variance = null_variance(matrix, same)
    null = permutation_test(matrix, same, 100_000, np.random.default_rng(5)).null_distribution
    assert null.mean() == pytest.approx(0, abs=4.5 * np.sqrt(variance / len(null)))
    error = np.sqrt((stats.moment(null, 4) - variance**2) / len(null))
    assert null.var() == pytest.approx(variance, abs=4.5 * error)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from("abc"), min_size=2, max_size=4), st.booleans()
)
def test_closed_moments_are_those_of_all_arrangements(seed, groups, lopsided):
    same = same_group(groups)
    if lopsided:
        same = same & (np.random.default_rng(seed).random(same.shape) < 0.6)
    if same.all() or not same.any():
        return
    matrix = random_matrix(len(groups), seed)
    gaps = all_gaps(matrix, same)
    assert gaps.mean() == pytest.approx(0, abs=1e-12)
    assert gaps.var() == pytest.approx(null_variance(matrix, same), abs=1e-12)
    null = permutation_test(matrix, same, 600).null_distribution
    np.testing.assert_allclose(*as_often(null, gaps), atol=1e-12)


def test_every_order_is_equally_likely():
    # Growing powers make the gap of each of the 24 orders another number.
    matrix = 10.0 ** (np.arange(16).reshape(4, 4) / 4)
    same = np.eye(4, dtype=bool)
    exact = np.sort(permutation_test(matrix, same).null_distribution)
    assert np.diff(exact).min() > 1e-6
    draws = [
        permutation_test(matrix, same, 23, np.random.default_rng(seed)).null_distribution
        for seed in range(400)
    ]
    counts = np.bincount(np.abs(np.concatenate(draws)[:, None] - exact).argmin(axis=1))
    assert stats.chisquare(counts).pvalue > 0.001


def test_large_matrix_needs_wider_numbers():
    # 45 identities: the table of row pairs outgrows 16 bits; 128 and 300: positions outgrow 8.
    for n, n_groups in ((45, 9), (128, 16), (300, 300)):
        matrix, same = random_matrix(n, n), same_group(np.arange(n) % n_groups)
        result = permutation_test(matrix, same, 500, np.random.default_rng(6))
        observed = gap_of(matrix, same, range(n), range(n))
        assert result.statistic == pytest.approx(observed, abs=1e-12)
        ratio = result.null_distribution.var() / null_variance(matrix, same)
        assert ratio == pytest.approx(1, abs=4.5 * np.sqrt(2 / 500))


def test_pvalue_counts_the_observed_arrangement():
    same = np.eye(21, dtype=bool)
    matrix = same + random_matrix(21) / 100
    result = permutation_test(matrix, same, 999, np.random.default_rng(7))
    assert result.pvalue == result.pvalue_greater == 1 / 1000
    assert permutation_test(-matrix, same, 999, np.random.default_rng(7)).pvalue_greater == 1


def test_ties_count_as_extreme():
    # Additive cells: every arrangement of a diagonal has the same gap, up to rounding.
    matrix = np.add.outer(np.arange(9) / 7, np.arange(9) / 3)
    result = permutation_test(matrix, np.eye(9, dtype=bool), 500, np.random.default_rng(8))
    assert result.pvalue == result.pvalue_greater == 1


def test_null_interval_is_of_the_null():
    same = same_group(RACE)
    matrix = random_matrix(18) + 3 * same
    result = permutation_test(matrix, same, 2000, np.random.default_rng(10))
    low, high = result.null_interval
    inside = (result.null_distribution >= low) & (result.null_distribution <= high)
    assert inside.mean() == pytest.approx(0.95, abs=0.001)
    assert high < result.statistic


# SciPy pairs one sample with a permuted other: the orders of columns against rows.
def test_diagonal_against_scipy():
    matrix, same = random_matrix(5, 11) + np.eye(5), np.eye(5, dtype=bool)
    theirs = stats.permutation_test(
        (np.arange(5),),
        lambda columns: matrix[np.arange(5), columns.astype(int)].sum(),
        permutation_type="pairings",
        vectorized=False,
        alternative="greater",
    )
    assert permutation_test(matrix, same).pvalue_greater == pytest.approx(theirs.pvalue)


def test_same_generator_same_null():
    matrix, same = random_matrix(18), same_group(RACE)
    one, again, other = (
        permutation_test(matrix, same, 100, np.random.default_rng(seed)).null_distribution
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.floats(-50, 50), st.floats(0.01, 100))
def test_shift_and_scale_leave_the_pvalue(seed, shift, scale):
    matrix, same = random_matrix(18, seed), same_group(RACE)
    one = permutation_test(matrix, same, 200, np.random.default_rng(seed))
    other = permutation_test(shift + scale * matrix, same, 200, np.random.default_rng(seed))
    assert (one.pvalue, one.pvalue_greater) == (other.pvalue, other.pvalue_greater)
    assert other.statistic == pytest.approx(scale * one.statistic, rel=1e-6, abs=1e-9)


def test_null_pvalues_are_uniform():
    rng = np.random.default_rng(12)
    same = same_group(RACE)
    pvalues = [
        permutation_test(rng.standard_normal((18, 18)), same, 199, rng).pvalue for _ in range(400)
    ]
    assert stats.kstest(pvalues, "uniform").pvalue > 0.001


NUMBERS = np.arange(9).reshape(3, 3)
EYE = np.eye(3, dtype=bool)


@pytest.mark.parametrize(
    ("matrix", "same", "message"),
    [
        (np.ones((3, 3)), EYE, "all cells of the matrix are 1"),
        (0.1 + NUMBERS * 1e-16, EYE, "constant"),
        (np.where(NUMBERS == 1, np.nan, NUMBERS), EYE, "nan in row 0, column 1"),
        (np.where(EYE, np.inf, 0), EYE, "inf in row 0, column 0"),
        (NUMBERS, EYE | True, "same is True for all"),
        (NUMBERS, EYE & False, "same is False for all"),
    ],
)
def test_what_has_no_gap_is_refused(matrix, same, message):
    with pytest.raises(ValueError, match=message):
        permutation_test(matrix, same)
