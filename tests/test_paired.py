"""Paired tests beside those of SciPy."""

import numpy as np
import pytest
from scipy import stats

from ingroup.stats.paired import cell_pvalues, sign_test


def test_sign_test_is_that_of_a_fair_coin():
    """Zeros and missing differences do not count; 1 without a difference."""
    differences = [[1, 2, 3, -1, 0, np.nan], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]
    expected = [stats.binomtest(3, 4).pvalue, 1, 2 * 0.5**6]
    assert sign_test(differences) == pytest.approx(expected)


def test_cells_are_compared_with_both_in_group_cells():
    """The larger p of two paired tests, by SciPy's tests of single cells."""
    values = np.random.default_rng(3).normal(50, 10, (6, 6, 12))
    by_t, by_sign = cell_pvalues(values)
    for i, j in np.ndindex(6, 6):
        larger_t = 0
        larger_sign = 0
        for own in (i, j):
            differences = values[i, j] - values[own, own]
            above = int((differences > 0).sum())
            if i != j:
                larger_t = max(larger_t, stats.ttest_rel(values[i, j], values[own, own]).pvalue)
                larger_sign = max(larger_sign, stats.binomtest(above, 12).pvalue)
        if i == j:
            larger_t = larger_sign = np.nan
        assert by_t[i, j] == pytest.approx(larger_t, nan_ok=True)
        assert by_sign[i, j] == pytest.approx(larger_sign, nan_ok=True)


def test_cells_without_variance():
    """Equal differences have p 0 by t, as released; no difference has p 1; zeros do not count."""
    values = np.full((3, 3, 6), 50.0)
    values[0, 1] += 1
    values[1, 2, :4] += [1, 2, 3, -1]
    by_t, by_sign = cell_pvalues(values)
    assert by_t[0, 1] == 0
    assert by_sign[0, 1] == pytest.approx(2 * 0.5**6)
    assert by_t[1, 0] == by_sign[1, 0] == 1
    assert by_sign[1, 2] == pytest.approx(stats.binomtest(3, 4).pvalue)
