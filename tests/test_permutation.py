"""The permutation test against its definition, by full enumeration and by its level."""

from itertools import permutations

import numpy as np
import pytest

from ingroup.stats.permutation import own_generator, permutation_test

TWO_GROUPS = np.kron(np.eye(2), np.ones((2, 2))).astype(bool)


def mean_difference(matrix, same):
    """Compute the definition: the mean of the marked cells minus that of the others."""
    return matrix[same].mean() - matrix[~same].mean()


def slow_null(matrix, same):
    """Compute the difference for each order of rows and each order of columns."""
    null = []
    for rows in permutations(range(len(matrix))):
        for columns in permutations(range(len(matrix))):
            null.append(mean_difference(matrix[np.ix_(rows, columns)], same))
    return np.array(null)


@pytest.fixture
def matrix():
    """Return 4 x 4 numbers whose first two lines are higher within their group."""
    return np.random.default_rng(1).normal(size=(4, 4)) + 2 * TWO_GROUPS


def test_the_statistic_by_hand():
    """(1 + 4) / 2 - (2 + 3) / 2 is 0, and 3 more on the diagonal is 3."""
    assert permutation_test([[1, 2], [3, 4]], np.eye(2)).statistic == 0
    assert permutation_test([[4, 2], [3, 7]], np.eye(2)).statistic == 3


def test_all_orders_of_two_groups_are_taken(matrix):
    """With 4!^2 orders or more to draw, null and p are those of the definition."""
    test = permutation_test(matrix, TWO_GROUPS, 4**6)
    null = slow_null(matrix, TWO_GROUPS)
    assert np.allclose(np.sort(test.null_distribution), np.sort(null))
    assert test.statistic == pytest.approx(mean_difference(matrix, TWO_GROUPS))
    assert test.pvalue == np.mean(np.abs(null) >= abs(test.statistic) - 1e-12)


def test_columns_alone_are_permuted_where_each_group_has_one_name(matrix):
    """Each of the 4! gaps comes 4! times among all orders, so the distribution is the same."""
    own = np.eye(4, dtype=bool)
    test = permutation_test(matrix, own)
    assert np.allclose(
        np.repeat(np.sort(test.null_distribution), 24), np.sort(slow_null(matrix, own))
    )
    assert test.null_interval == tuple(np.percentile(test.null_distribution, [2.5, 97.5]))


def test_drawn_orders_agree_with_all_orders(matrix):
    """500 of 576 orders are drawn; the observed order counts as one of them."""
    drawn = permutation_test(matrix, TWO_GROUPS, 500, np.random.default_rng(0))
    every = permutation_test(matrix, TWO_GROUPS, 576)
    assert len(drawn.null_distribution) == 500
    assert drawn.pvalue == pytest.approx(every.pvalue, abs=0.06)
    n_as_far = np.sum(np.abs(drawn.null_distribution) >= abs(drawn.statistic) - 1e-12)
    assert drawn.pvalue == (n_as_far + 1) / (len(drawn.null_distribution) + 1)


def test_a_constant_matrix_has_no_gap_and_stops_nothing():
    """Every order is as extreme as the observed one."""
    test = permutation_test(np.full((5, 5), 60.1), np.eye(5))
    assert test.statistic == pytest.approx(0)
    assert test.pvalue == 1


def test_a_missing_number_is_no_number(matrix):
    """NaN would be counted as less extreme than every gap."""
    matrix[1, 2] = np.nan
    with pytest.raises(ValueError, match="finite"):
        permutation_test(matrix, TWO_GROUPS)
    with pytest.raises(ValueError, match="two groups"):
        permutation_test(np.eye(3), np.ones((3, 3)))


def test_the_draws_of_a_part_depend_on_its_names_alone():
    """Another part or another seed draws other numbers."""
    first = own_generator(0, "a model", "Religion").random()
    assert own_generator(0, "a model", "Religion").random() == first
    assert own_generator(0, "a model", "Nationality").random() != first
    assert own_generator(1, "a model", "Religion").random() != first
