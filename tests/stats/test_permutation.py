"""The permutation test against its definition, closed forms, enumeration and properties."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from ingroup.stats.permutation import own_generator, permutation_test

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


@settings(max_examples=25)
@given(
    st.integers(0, 2**32), st.lists(st.sampled_from("abc"), min_size=2, max_size=4), st.floats(0, 1)
)
@example(0, "abcd", 0)  # permuting the columns alone reaches all gaps
def test_exact_null_is_the_null_of_all_arrangements(seed, groups, lost):
    n, rng = len(groups), np.random.default_rng(seed)
    same = np.roll(same_group(groups) & (rng.random((n, n)) >= lost), seed % n, axis=1)
    assume(same.any() and not same.all())
    matrix = random_matrix(n, seed)
    orders = list(permutations(range(n)))
    slow = np.array([gap_of(matrix, same, r, c) for r in orders for c in orders])
    result = permutation_test(matrix, same, 600)
    null = result.null_distribution
    alone = (same.sum(axis=0) == 1).all() and (same.sum(axis=1) == 1).all()
    assert len(null) == (len(orders) if alone else len(slow))
    null = np.repeat(null, len(slow) // len(null))
    np.testing.assert_allclose(np.sort(null), np.sort(slow), atol=1e-12)
    observed = gap_of(matrix, same, range(n), range(n))
    assert result.statistic == pytest.approx(observed, abs=1e-12)
    assert result.pvalue == np.mean(np.abs(slow) >= abs(observed) - 1e-9)
    assert slow.mean() == pytest.approx(0, abs=1e-12)
    assert slow.var() == pytest.approx(null_variance(matrix, same), abs=1e-12)


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
    same, n = same_group(groups), len(groups)
    matrix = random_matrix(n, 4) + np.arange(n) / 4
    result = permutation_test(matrix, same, 100_000, np.random.default_rng(5))
    assert result.statistic == pytest.approx(gap_of(matrix, same, range(n), range(n)), abs=1e-12)
    null, variance = result.null_distribution, null_variance(matrix, same)
    assert null.mean() == pytest.approx(0, abs=4.5 * np.sqrt(variance / len(null)))
    error = np.sqrt((stats.moment(null, 4) - variance**2) / len(null))
    assert null.var() == pytest.approx(variance, abs=4.5 * error)


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


def test_pvalue_counts_the_observed_arrangement():
    same = np.eye(21, dtype=bool)
    matrix = same + random_matrix(21) / 100
    result = permutation_test(matrix, same, 999, np.random.default_rng(7))
    assert result.pvalue == result.least == 1 / 1000


def test_ties_count_as_extreme():
    # Additive cells: every arrangement of a diagonal has the same gap, up to rounding.
    matrix = np.add.outer(np.arange(9) / 7, np.arange(9) / 3)
    result = permutation_test(matrix, np.eye(9, dtype=bool), 500, np.random.default_rng(8))
    assert result.pvalue == 1


def test_null_interval_is_of_the_null():
    same = same_group(RACE)
    matrix = random_matrix(18) + 3 * same
    result = permutation_test(matrix, same, 2000, np.random.default_rng(10))
    low, high = result.null_interval
    inside = (result.null_distribution >= low) & (result.null_distribution <= high)
    assert inside.mean() == pytest.approx(0.95, abs=0.001)
    assert high < result.statistic


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.floats(-50, 50), st.floats(0.01, 100))
def test_shift_and_scale_leave_the_pvalue(seed, shift, scale):
    matrix, same = random_matrix(18, seed), same_group(RACE)
    one = permutation_test(matrix, same, 200, np.random.default_rng(seed))
    other = permutation_test(shift + scale * matrix, same, 200, np.random.default_rng(seed))
    assert one.pvalue == other.pvalue
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


def test_a_part_has_the_same_random_numbers_whatever_else_is_asked():
    draws = {names: own_generator(3, *names).random() for names in (("a", "b"), ("b", "a"))}
    assert own_generator(3, "a", "b").random() == draws["a", "b"] != draws["b", "a"]
    assert own_generator(4, "a", "b").random() != draws["a", "b"]
    assert draws["a", "b"] == np.random.default_rng([3, 97, 32, 98]).random()  # "a b" in ASCII
