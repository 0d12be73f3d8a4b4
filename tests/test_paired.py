"""The sign test against a fair coin."""

import numpy as np
import pytest
from scipy import stats

from ingroup.stats.paired import sign_test


def test_sign_test_is_that_of_a_fair_coin():
    """Zeros and missing differences do not count; 1 without a difference."""
    differences = [[1, 2, 3, -1, 0, np.nan], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]]
    expected = [stats.binomtest(3, 4).pvalue, 1, 2 * 0.5**6]
    assert sign_test(differences) == pytest.approx(expected)
