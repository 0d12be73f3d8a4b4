"""Power of the own-group test: the issue's numbers, simulation, and the floor of permutations."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from ingroup.stats import power
from ingroup.stats.crossed import own_group
from ingroup.stats.paired import paired_test
from ingroup.stats.permutation import permutation_test


@pytest.mark.parametrize(
    ("groups", "effect", "wanted"),
    [(4, 0, 0.05), (4, 1, 0.33), (4, 2, 0.85), (5, 1, 0.46), (5, 2, 0.96), (21, 1, 0.99)],
)
def test_power_is_that_of_the_prototype(groups, effect, wanted):
    assert power.own_group_power(groups, effect) == pytest.approx(wanted, abs=0.015)


def test_power_by_simulation():
    """800 matrices of five religions, effect 1 SD, at the level of Holm's seven tests."""
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(800, 5, 5)) + np.eye(5)
    found = np.mean([own_group(matrix).p < 0.05 / 7 for matrix in matrices])
    wanted = power.own_group_power(5, 1, 0.05 / 7)
    assert found == pytest.approx(wanted, abs=0.055)  # four standard errors
    assert 0.1 < wanted < 0.3


def test_the_smallest_effect_has_the_power():
    effect = power.smallest_own_group_effect(5, 0.01)
    assert power.own_group_power(5, effect, 0.01) == pytest.approx(0.8)


def test_the_floor_is_that_of_the_permutation_test():
    for groups in (3, 5):
        test = permutation_test(np.eye(groups) * 1.0, np.eye(groups), 10_000, 0)
        assert power.permutation_floor(groups) == pytest.approx(test.least)
        assert test.pvalue == pytest.approx(test.least)
    assert power.permutation_floor(8, 999) == 1 / 1000


def test_how_many_religions_permutations_need():
    assert 7 * power.permutation_floor(5) == pytest.approx(0.0583, abs=1e-4)
    assert power.groups_for_permutation(tests=7) == 6
    assert power.groups_for_permutation(tests=1) == 4
    assert power.groups_for_permutation(tests=6) == 6  # 6 / 120 is no less than 0.05
    with pytest.raises(ValueError, match="99 arrangements for 7 tests, expected at least 140"):
        power.groups_for_permutation(tests=7, n_resamples=99)


def test_one_pair_finds_nothing():
    assert power.smallest_paired_effect(1) == math.inf


@pytest.mark.parametrize("n", [12, 79, 103])
def test_the_smallest_paired_effect_by_simulation(n):
    """The test of biases over scenarios, and of shares over items, at a level of Holm's four."""
    level = 0.05 / 4
    effect = power.smallest_paired_effect(n, level)
    differences = np.random.default_rng(n).normal(effect, size=(4_000, n))
    found = np.mean(paired_test(differences).pvalue < level)
    assert found == pytest.approx(0.8, abs=0.026)  # four standard errors


def test_what_has_no_power_is_refused():
    with pytest.raises(ValueError, match="found 2 groups, expected at least 3"):
        power.own_group_power(2, 1)


@pytest.mark.parametrize("n", [6, 79, 120, 6050])
@pytest.mark.parametrize("level", [0.05, 0.05 / 7])
def test_the_smallest_paired_effect_is_one_positive_number_at_every_size(n, level):
    """For some of these sizes the solver gives an array, and a negative number."""
    effect = power.smallest_paired_effect(n, level)
    assert effect > 0
    critical = stats.t.isf(level / 2, n - 1)
    shift = effect * math.sqrt(n)
    above = stats.nct.sf(critical, n - 1, shift)
    below = stats.nct.cdf(-critical, n - 1, shift)
    assert above + below == pytest.approx(0.8, abs=1e-3)
    assert re.match(r"\d", f"{effect:,.2g}")
