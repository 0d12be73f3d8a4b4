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

# --- the own-group test


@pytest.mark.parametrize(
    ("groups", "effect", "expected"),
    [
        (4, 0, 0.05),
        (4, 1, 0.33),
        (4, 2, 0.85),
        (5, 1, 0.46),
        (5, 2, 0.96),
        (21, 1, 0.99),
    ],
)
def test_power_is_that_of_the_prototype(groups, effect, expected):
    assert power.own_group_power(groups, effect) == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("groups", [3, 4, 9])
@pytest.mark.parametrize("effect", [0.3, -1.0])
def test_power_is_that_of_noncentral_t(groups, effect):
    """Both tails of a t with n^2 - 2 n degrees of freedom, shifted by effect sqrt(n - 1)."""
    df = groups * (groups - 2)
    critical = stats.t.isf(0.01, df)
    shift = effect * math.sqrt(groups - 1)

    found = power.own_group_power(groups, effect, 0.02)

    above = stats.nct.sf(critical, df, shift)
    below = stats.nct.cdf(-critical, df, shift)
    assert found == pytest.approx(above + below, rel=1e-6)


def test_without_an_effect_the_power_is_the_level():
    assert power.own_group_power(4, 0) == 0.05
    assert power.own_group_power(4, 0, 0.01) == 0.01


def test_power_by_simulation():
    """800 matrices of five religions, effect 1 SD, at the level of Holm's seven tests."""
    level = 0.05 / 7
    rng = np.random.default_rng(1)
    matrices = rng.normal(size=(800, 5, 5)) + np.eye(5)

    expected = power.own_group_power(5, 1, level)

    found = [own_group(matrix).p < level for matrix in matrices]
    assert np.mean(found) == pytest.approx(expected, abs=0.055)  # four standard errors
    assert 0.1 < expected < 0.3


@pytest.mark.parametrize("groups", [3, 5, 21])
def test_the_smallest_effect_has_the_power(groups):
    effect = power.smallest_own_group_effect(groups, 0.01)
    more = power.smallest_own_group_effect(groups, 0.01, 0.9)

    assert effect > 0
    assert power.own_group_power(groups, effect, 0.01) == pytest.approx(0.8)
    assert power.own_group_power(groups, more, 0.01) == pytest.approx(0.9)


def test_the_smallest_effect_is_at_a_twentieth_unless_told_otherwise():
    effect = power.smallest_own_group_effect(5)

    assert power.own_group_power(5, effect, 0.05) == pytest.approx(0.8)


def test_what_has_no_power_is_refused():
    with pytest.raises(ValueError, match="found 2 groups, expected at least 3"):
        power.own_group_power(2, 1)


# --- permutations


@pytest.mark.parametrize("groups", [3, 5])
def test_the_floor_is_that_of_the_permutation_test(groups):
    own = np.eye(groups)

    test = permutation_test(own, own, 10_000, 0)

    floor = power.permutation_floor(groups)
    assert floor == pytest.approx(test.least)
    assert floor == pytest.approx(test.pvalue)


@pytest.mark.parametrize(
    ("groups", "resamples", "floor"),
    [
        (8, [999], 1 / 1000),
        (5, [120], 1 / 120),
        (5, [119], 1 / 120),
        (5, [118], 1 / 119),
        (7, [], 1 / 5040),
        (8, [], 1 / 10_001),
    ],
)
def test_the_floor_by_hand(groups, resamples, floor):
    assert power.permutation_floor(groups, *resamples) == pytest.approx(floor, rel=1e-9)


@pytest.mark.parametrize(
    ("tests", "groups"),
    [
        (1, 4),  # 1 / 3! is .17, 1 / 4! is .042
        (6, 6),  # 6 / 120 is no less than 0.05
        (7, 6),
        (36, 7),  # 36 / 720 is no less than 0.05
    ],
)
def test_how_many_religions_permutations_need(tests, groups):
    assert power.groups_for_permutation(tests=tests) == groups


def test_two_groups_are_enough_at_a_level_above_a_half():
    assert power.groups_for_permutation(0.6) == 2


def test_one_test_of_four_groups_unless_told_otherwise():
    assert power.groups_for_permutation() == 4


def test_five_religions_in_seven_settings_are_too_few():
    assert 7 * power.permutation_floor(5) == pytest.approx(0.0583, abs=1e-4)


@pytest.mark.parametrize("resamples", [99, 139])
def test_too_few_arrangements_are_refused(resamples):
    """With 139 the smallest p is 1 / 140, seven times which is 0.05, and not below it."""
    sentence = f"found {resamples} arrangements for 7 tests, expected at least 140"

    with pytest.raises(ValueError, match=sentence):
        power.groups_for_permutation(tests=7, n_resamples=resamples)


def test_just_enough_arrangements_do():
    assert power.groups_for_permutation(tests=7, n_resamples=140) == 6
    # The smallest p of 99 arrangements is 1 / 100, and 1 / 99 would be too large.
    assert power.groups_for_permutation(0.01005, n_resamples=99) == 5


def test_ten_thousand_arrangements_unless_told_otherwise():
    """The smallest p of 10,000 is 1 / 10,001, below 0.0001 by a ten-thousandth of it."""
    assert power.groups_for_permutation(0.0001) == 8
    with pytest.raises(ValueError, match="found 10000 arrangements for 1 tests"):
        power.groups_for_permutation(1 / 10_001)


# --- paired tests


@pytest.mark.parametrize("n", [0, 1])
def test_one_pair_finds_nothing(n):
    assert power.smallest_paired_effect(n) == math.inf


def test_the_level_is_5_percent_unless_told_otherwise():
    assert power.smallest_paired_effect(20) == power.smallest_paired_effect(20, level=0.05)


def test_two_pairs_find_a_large_effect():
    """At a level of a half: t of 1 degree of freedom is beyond 1 then."""
    effect = power.smallest_paired_effect(2, 0.5)

    shift = effect * math.sqrt(2)
    found = stats.nct.sf(1, 1, shift) + stats.nct.cdf(-1, 1, shift)
    assert found == pytest.approx(0.8, abs=1e-4)


# The solver takes seconds of n = 79, which therefore comes last.
@pytest.mark.parametrize("n", [12, 103, 79])
def test_the_smallest_paired_effect_by_simulation(n):
    """The test of biases over scenarios, and of shares over items, at a level of Holm's four."""
    level = 0.05 / 4
    rng = np.random.default_rng(n)

    effect = power.smallest_paired_effect(n, level)

    differences = rng.normal(effect, size=(4_000, n))
    found = paired_test(differences).pvalue < level
    assert found.mean() == pytest.approx(0.8, abs=0.026)  # four standard errors


@pytest.mark.parametrize("n", [6, 120, 6050, 79])
@pytest.mark.parametrize("level", [0.05, 0.05 / 7])
def test_the_smallest_paired_effect_is_one_positive_number_at_every_size(n, level):
    """For some of these sizes the solver gives an array, and a negative number."""
    effect = power.smallest_paired_effect(n, level)

    critical = stats.t.isf(level / 2, n - 1)
    shift = effect * math.sqrt(n)
    above = stats.nct.sf(critical, n - 1, shift)
    below = stats.nct.cdf(-critical, n - 1, shift)
    assert effect > 0
    assert above + below == pytest.approx(0.8, abs=1e-3)
    assert re.match(r"\d", f"{effect:,.2g}")
