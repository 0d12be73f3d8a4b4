"""The paired tests against SciPy and against the test of single cells."""

import numpy as np
import pytest
from scipy import stats

from ingroup.stats.paired import cell_pvalues, sign_test, t_test


@pytest.fixture
def ratings():
    """Return ratings of 4 perceivers, 4 experiencers and 9 events."""
    return np.random.default_rng(3).normal(60, 5, (4, 4, 9))


def test_sign_test_is_that_of_a_fair_coin():
    """Zeros and missing differences do not count; 1 without a difference."""
    differences = [[1, 2, 3, -1, 0, np.nan], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]
    expected = [stats.binomtest(3, 4).pvalue, 1, 2 * 0.5**6]
    assert sign_test(differences) == pytest.approx(expected)


def test_t_test_is_scipys(ratings):
    """Paired, two-sided."""
    pvalue = t_test(ratings[0] - ratings[1])[2]
    assert pvalue == pytest.approx(stats.ttest_rel(ratings[0, 2], ratings[1, 2]).pvalue)


def test_t_test_without_variance():
    """Equal differences have p 0, as in the released code; no difference has p 1."""
    assert t_test([[1, 1, 1], [0, 0, 0]]).tolist() == [0, 1]
    assert t_test([[5.0]]).tolist() == [1]


@pytest.mark.parametrize("test", [t_test, sign_test])
def test_cell_is_compared_with_both_in_group_cells(ratings, test):
    """The larger p of two tests, cell by cell."""
    pvalues = cell_pvalues(ratings, test)
    for perceiver in range(4):
        for experiencer in range(4):
            cell = ratings[perceiver, experiencer]
            of_perceiver = test(cell - ratings[perceiver, perceiver])
            of_experiencer = test(cell - ratings[experiencer, experiencer])
            expected = max(of_perceiver, of_experiencer)
            if perceiver == experiencer:
                expected = np.nan
            assert pvalues[perceiver, experiencer] == pytest.approx(expected, nan_ok=True)
