"""The permutation test against its definition, closed forms, enumeration and properties."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from ingroup.stats.permutation import (
    PermutationTest,
    checked_matrix,
    own_generator,
    permutation_test,
)

RACE = "w" * 5 + "b" * 4 + "a" * 3 + "h" * 6


def same_group(groups):
    """In-group pairs of identities whose groups are given one by one."""
    names = list(groups)
    return np.equal.outer(names, names)


def random_matrix(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n))


def gap_of(matrix, same, rows, columns):
    """delta of one arrangement: the definition."""
    order = np.ix_(rows, columns)
    arranged = matrix[order]
    inside = arranged[same].mean()
    outside = arranged[~same].mean()
    return inside - outside


def all_gaps(matrix, same):
    """delta of every arrangement: each order of the rows with each order of the columns."""
    n = len(matrix)
    orders = permutations(range(n))
    pairs = product(list(orders), repeat=2)
    gaps = [gap_of(matrix, same, rows, columns) for rows, columns in pairs]
    return np.array(gaps)


def squares_of_parts(cells):
    """Sums of squares of the row effects, column effects and interaction of centred cells."""
    rows = cells.mean(axis=1, keepdims=True)
    columns = cells.mean(axis=0, keepdims=True)
    interaction = cells - rows - columns
    n = len(cells)
    of_rows = n * np.sum(rows**2)
    of_columns = n * np.sum(columns**2)
    of_interaction = np.sum(interaction**2)
    return np.array([of_rows, of_columns, of_interaction])


def null_variance(matrix, same):
    """Variance of delta over all row and column orders, in closed form.

    delta is a sum of weights W times cells M. Both split into a mean, row effects, column effects
    and interaction, which give three uncorrelated parts of delta. With sums of squares over all
    cells, variance = (SSrow(W) SSrow(M) + SScol(W) SScol(M)) / (n - 1) + SSint(W) SSint(M) /
    (n - 1)**2. The mean is 0, since W sums to 0.
    """
    inside = 1 / np.count_nonzero(same)
    outside = -1 / np.count_nonzero(~same)
    weights = np.where(same, inside, outside)
    centred = matrix - matrix.mean()

    products = squares_of_parts(weights) * squares_of_parts(centred)
    row, column, interaction = products
    freedom = len(matrix) - 1
    variance = (row + column) / freedom + interaction / freedom**2
    return float(variance)


# --- the exact null


@settings(max_examples=25)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from("abc"), min_size=2, max_size=4),
    st.floats(0, 1),
)
@example(0, "abcd", 0)  # permuting the columns alone reaches all gaps
def test_exact_null_is_the_null_of_all_arrangements(seed, groups, lost):
    n = len(groups)
    rng = np.random.default_rng(seed)
    kept = rng.random((n, n)) >= lost
    same = np.roll(same_group(groups) & kept, seed % n, axis=1)
    assume(same.any() and not same.all())
    matrix = random_matrix(n, seed)
    slow = all_gaps(matrix, same)
    observed = gap_of(matrix, same, range(n), range(n))

    result = permutation_test(matrix, same, 600)

    null = result.null_distribution
    one_per_column = (same.sum(axis=0) == 1).all()
    one_per_row = (same.sum(axis=1) == 1).all()
    orders = math.factorial(n)  # of the columns alone
    expected_length = orders if one_per_column and one_per_row else len(slow)
    assert len(null) == expected_length
    repeated = np.repeat(null, len(slow) // len(null))
    np.testing.assert_allclose(np.sort(repeated), np.sort(slow), atol=1e-12)
    assert result.statistic == pytest.approx(observed, abs=1e-12)
    assert result.pvalue == np.mean(np.abs(slow) >= abs(observed) - 1e-9)
    assert slow.mean() == pytest.approx(0, abs=1e-12)
    assert slow.var() == pytest.approx(null_variance(matrix, same), abs=1e-12)


@pytest.mark.parametrize(
    "same",
    [
        [[1, 0, 0], [1, 0, 0], [1, 0, 0]],  # one cell per row alone
        [[1, 1, 1], [0, 0, 0], [0, 0, 0]],  # one cell per column alone
    ],
)
def test_both_sides_move_unless_each_row_and_each_column_has_one_cell(same):
    """A delta of one column, or row: 3 of its values, each in 12 of 36 arrangements."""
    same = np.array(same, dtype=bool)
    matrix = random_matrix(3)

    null = permutation_test(matrix, same).null_distribution

    slow = all_gaps(matrix, same)
    assert len(null) == 36
    np.testing.assert_allclose(np.sort(null), np.sort(slow), atol=1e-12)


def test_as_many_arrangements_as_asked_are_exact():
    """Of four names there are 24: taken with 24 resamples, drawn with 23."""
    matrix = random_matrix(4)
    same = np.eye(4, dtype=bool)

    exact = permutation_test(matrix, same, 24)
    drawn = permutation_test(matrix, same, 23, 0)

    assert len(exact.null_distribution) == 24
    assert exact.least == 1 / 24
    assert len(drawn.null_distribution) == 23
    assert drawn.least == 1 / 24


def test_ten_thousand_arrangements_unless_told_otherwise():
    result = permutation_test(random_matrix(9), np.eye(9, dtype=bool), rng=0)

    assert len(result.null_distribution) == 10_000
    assert result.least == 1 / 10_001


# --- the random null


@pytest.mark.parametrize("groups", [RACE, range(21), range(6), "aabcddd", "ab" * 7])
def test_random_null_is_that_of_the_definition(groups):
    """A kernel that fixed one side or shuffled free cells would have another spread.

    Row and column effects are strong, and the interaction is skewed.
    """
    rng = np.random.default_rng(3)
    n = len(groups)
    interaction = rng.exponential(size=(n, n))
    rows = rng.exponential(size=(n, 1))
    columns = rng.exponential(size=n)
    matrix = interaction + rows + columns
    same = same_group(groups)
    resamples = 20_000 if n > 6 else 700

    result = permutation_test(matrix, same, resamples, rng)

    slow = []
    for _ in range(3000):
        gap = gap_of(matrix, same, rng.permutation(n), rng.permutation(n))
        slow.append(gap)
    assert stats.ks_2samp(slow, result.null_distribution).pvalue > 0.001


@pytest.mark.parametrize("groups", [RACE, range(21), "aabcddd"])
def test_random_null_has_the_closed_mean_and_variance(groups):
    n = len(groups)
    same = same_group(groups)
    matrix = random_matrix(n, 4) + np.arange(n) / 4
    variance = null_variance(matrix, same)

    result = permutation_test(matrix, same, 100_000, np.random.default_rng(5))

    null = result.null_distribution
    error_of_mean = np.sqrt(variance / len(null))
    fourth = stats.moment(null, 4)
    error_of_variance = np.sqrt((fourth - variance**2) / len(null))
    observed = gap_of(matrix, same, range(n), range(n))
    assert result.statistic == pytest.approx(observed, abs=1e-12)
    assert null.mean() == pytest.approx(0, abs=4.5 * error_of_mean)
    assert null.var() == pytest.approx(variance, abs=4.5 * error_of_variance)


def test_every_order_is_equally_likely():
    """Growing powers make the gap of each of the 24 orders another number."""
    matrix = 10.0 ** (np.arange(16).reshape(4, 4) / 4)
    same = np.eye(4, dtype=bool)
    exact = np.sort(permutation_test(matrix, same).null_distribution)
    assert np.diff(exact).min() > 1e-6

    draws = []
    for seed in range(400):
        result = permutation_test(matrix, same, 23, np.random.default_rng(seed))
        draws.append(result.null_distribution)

    distances = np.abs(np.concatenate(draws)[:, None] - exact)
    nearest = distances.argmin(axis=1)
    counts = np.bincount(nearest)
    assert stats.chisquare(counts).pvalue > 0.001


def test_null_pvalues_are_uniform():
    rng = np.random.default_rng(12)
    same = same_group(RACE)

    pvalues = []
    for _ in range(400):
        matrix = rng.standard_normal((18, 18))
        result = permutation_test(matrix, same, 199, rng)
        pvalues.append(result.pvalue)

    assert stats.kstest(pvalues, "uniform").pvalue > 0.001


# --- p


def test_pvalue_counts_the_observed_arrangement():
    same = np.eye(21, dtype=bool)
    matrix = same + random_matrix(21) / 100

    result = permutation_test(matrix, same, 999, np.random.default_rng(7))

    assert result.pvalue == 1 / 1000
    assert result.least == 1 / 1000


def test_random_pvalue_is_the_share_of_the_null_with_the_observed_one():
    matrix = random_matrix(18, 2)

    result = permutation_test(matrix, same_group(RACE), 499, np.random.default_rng(1))

    sizes = np.abs(result.null_distribution)
    extreme = np.count_nonzero(sizes >= abs(result.statistic))
    assert 10 < extreme < 490
    assert result.pvalue == (extreme + 1) / 500


@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15])
def test_ties_count_as_extreme(scale):
    """Additive cells: every arrangement of a diagonal has the same gap, up to rounding."""
    matrix = scale * np.add.outer(np.arange(9) / 7, np.arange(9) / 3)

    result = permutation_test(matrix, np.eye(9, dtype=bool), 500, np.random.default_rng(8))

    assert result.pvalue == 1


def test_a_near_gap_is_no_tie():
    """Two orders whose gaps differ by a billionth of the cells: one is as extreme, one is not."""
    matrix = np.array([[1.0, 0.0], [0.0, 1.0 - 1e-9]])
    off_centre = np.array([[True, False], [False, False]])

    result = permutation_test(matrix, off_centre)

    # Gaps of 1, 1 - 1e-9, 0 and 0 beyond the mean of the other three cells.
    assert result.pvalue == 1 / 4


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.floats(-50, 50), st.floats(0.01, 100))
def test_shift_and_scale_leave_the_pvalue(seed, shift, scale):
    matrix = random_matrix(18, seed)
    same = same_group(RACE)

    one = permutation_test(matrix, same, 200, np.random.default_rng(seed))
    other = permutation_test(shift + scale * matrix, same, 200, np.random.default_rng(seed))

    assert one.pvalue == other.pvalue
    assert other.statistic == pytest.approx(scale * one.statistic, rel=1e-6, abs=1e-9)


# --- the interval of the null, and how far its ends may lie


def test_null_interval_is_of_the_null():
    same = same_group(RACE)
    matrix = random_matrix(18) + 3 * same

    result = permutation_test(matrix, same, 2000, np.random.default_rng(10))

    low, high = result.null_interval
    null = result.null_distribution
    inside = (null >= low) & (null <= high)
    assert inside.mean() == pytest.approx(0.95, abs=0.001)
    assert np.mean(null < low) == pytest.approx(0.025, abs=0.001)
    assert high < result.statistic


def with_null(null):
    """A result that has nothing but a null."""
    return PermutationTest(0.0, 1.0, np.array(null, dtype=float), 0.0)


def test_null_spread_by_hand():
    """The numbers 0 to 10,000, whose ends are 250 and 9,750.

    Three errors are 300 sqrt(2 x 0.025 x 0.975 / 10,000) = 0.6624 percent of 10,001 numbers, 66.2.
    The ends at 1.8376, 3.1624, 96.8376 and 98.1624 percent are the 184th, 317th, 9,685th and
    9,818th number: 183, 316, 9,684 and 9,817. With 2,500 draws the errors are twice as large.
    """
    numbers = with_null(np.arange(10_001))

    assert numbers.null_interval == pytest.approx((250, 9750))
    assert numbers.null_spread() == pytest.approx((67, 67))
    assert numbers.null_spread(10_000) == pytest.approx((67, 67))
    assert numbers.null_spread(2_500) == pytest.approx((133, 133))


def test_null_spread_ends_with_the_null():
    """Of 100 draws three errors are 6.6 percent, more than there is beyond either end."""
    inner = np.arange(1, 10_000)
    null = [-1_000_000, *inner, 3_000_000]

    low, high = with_null(null).null_spread(100)

    assert low == pytest.approx(1_000_250)
    assert high == pytest.approx(3_000_000 - 9750)


# --- what is refused

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
    of_part = own_generator(3, "a", "b").random()
    again = own_generator(3, "a", "b").random()
    of_another = own_generator(3, "b", "a").random()
    of_another_seed = own_generator(4, "a", "b").random()

    assert of_part == again
    assert of_part != of_another
    assert of_part != of_another_seed
    in_ascii = np.random.default_rng([3, 97, 32, 98])  # "a b"
    assert of_part == in_ascii.random()


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_what_varies_is_taken_whatever_its_unit(scale):
    matrix = scale * (1 + NUMBERS * 1e-9)

    numbers, same = checked_matrix(matrix, EYE.astype(int))

    np.testing.assert_array_equal(numbers, matrix)
    np.testing.assert_array_equal(same, EYE)
    assert same.dtype == bool


def test_a_constant_matrix_is_named_by_its_value():
    matrix = np.full((3, 3), 2.5)
    matrix[0, 1] += 1e-15

    with pytest.raises(ValueError, match=r"all cells of the matrix are 2\.5, expected several"):
        checked_matrix(matrix, EYE)
