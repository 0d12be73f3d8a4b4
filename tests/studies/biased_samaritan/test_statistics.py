"""Helpfulness, bias and brittleness by hand, against SciPy and statsmodels, and their intervals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ingroup.stats.paired import adjust
from ingroup.studies.biased_samaritan.printed import over_models
from ingroup.studies.biased_samaritan.statistics import (
    bias,
    bias_of_phrasings,
    bias_table,
    brittleness,
    brittleness_between,
    by_group,
    excess_over_brittleness,
    helpfulness,
    repeatability,
)

# Three scenarios in two wordings. Scenario means: 52, 60, 71 and 53, 62, 74.
CONTROL = np.array([[50, 54], [60, 60], [70, 72]])
GROUP = np.array([[53, 53], [58, 66], [75, 73]])
T_2 = 4.30265  # t(0.975) for 2 degrees of freedom
NAN = np.nan


def some_ratings(cells, scenarios=20, seed=0, missing=0.0, interaction=3.0):
    """Ratings (cell, scenario, wording): cell k is k points above cell 0, which is the control."""
    rng = np.random.default_rng(seed)
    ratings = 60 + 8 * rng.standard_normal((1, scenarios, 1)) + np.arange(cells)[:, None, None]
    ratings = ratings + 4 * rng.standard_normal((1, scenarios, 4))
    ratings = ratings + interaction * rng.standard_normal((cells, scenarios, 1))
    ratings = ratings + 3 * rng.standard_normal((cells, scenarios, 4))
    ratings[rng.random(ratings.shape) < missing] = np.nan
    return ratings


def ends(result):
    return pytest.approx((result.low, result.high), abs=1e-3)


def test_equation_1_by_hand():
    assert helpfulness(CONTROL).mean == (52 + 60 + 71) / 3 == 61
    result = helpfulness(GROUP)
    assert (result.mean, result.n, result.left_out) == ((53 + 62 + 74) / 3, 3, 0)
    # Squares 100 + 1 + 121 around 63: sd sqrt(111), standard error sqrt(37).
    assert ends(result) == (63 - T_2 * np.sqrt(37), 63 + T_2 * np.sqrt(37))


# Differences of the scenarios 1, 2, 3: sd 1, t = 2 sqrt(3). With 2 degrees of freedom the
# two-sided p is 1 - t / sqrt(t**2 + 2).
def test_bias_by_hand():
    result, t = bias(GROUP, CONTROL), 2 * np.sqrt(3)
    assert (result.helpfulness, result.control, result.bias) == (63, 61, 2)
    assert (result.n, result.left_out) == (3, 0)
    assert (result.statistic, result.d_z) == pytest.approx((t, 2))
    assert result.p == pytest.approx(1 - t / np.sqrt(t**2 + 2))
    assert ends(result) == (2 - T_2 / np.sqrt(3), 2 + T_2 / np.sqrt(3))
    # Differences of the prompts 3, -1, -2, 6, 5, 1: mean 2, squares 1 + 9 + 16 + 16 + 9 + 1 = 52.
    result = bias(GROUP, CONTROL, unit="prompt")
    assert (result.bias, result.n) == (2, 6)
    assert result.d_z == pytest.approx(2 / np.sqrt(52 / 5))
    assert result.statistic == pytest.approx(2 / np.sqrt(52 / 5 / 6))


# The two wordings of a scenario are 0, 8 and 2 apart: population deviations 0, 4, 1. Squares
# 25 + 49 + 4 ninths: sd sqrt(13 / 3), standard error sqrt(13) / 3.
def test_brittleness_by_hand():
    population = brittleness(GROUP, ddof=0)
    assert population.mean == pytest.approx(5 / 3)
    assert ends(population) == (5 / 3 - T_2 * np.sqrt(13) / 3, 5 / 3 + T_2 * np.sqrt(13) / 3)
    assert brittleness(GROUP).mean == pytest.approx(5 / 3 * np.sqrt(2))


# e = d - s = 1 - 0, 2 - 4, 3 - 1: mean 1/3, squares 4 + 49 + 25 ninths. As far below the control
# it is the same excess.
@pytest.mark.parametrize("pair", [(GROUP, CONTROL), (100 - GROUP, 100 - CONTROL)])
def test_excess_by_hand(pair):
    result = excess_over_brittleness(*pair, ddof=0)
    assert result.mean == pytest.approx(1 / 3)
    assert ends(result) == (1 / 3 - T_2 * np.sqrt(13) / 3, 1 / 3 + T_2 * np.sqrt(13) / 3)


# Wordings 50, 54 in one phrasing and 54, 50 in the other: averaged they are the same.
def test_phrasings_by_hand():
    ratings = np.array([[[50, 54], [60, 66]], [[54, 50], [64, 66]]])
    # Within: deviations 2, 2 and 3, 1; averaged: 52, 52 and 62, 66.
    assert brittleness(ratings, ddof=0).mean == 2
    assert brittleness(ratings, ddof=0, phrasings="averaged").mean == 1
    assert helpfulness(ratings).mean == (52 + 64) / 2
    assert bias(ratings, [[50, 52], [61, 63]]).bias == (1 + 2) / 2
    excess = excess_over_brittleness(ratings, [[50, 52], [61, 63]], 0, "averaged")
    assert excess.mean == 1.5 - 1
    # Thirds round differently from mean to mean, which is no bias.
    control = np.arange(80).reshape(20, 4) / 3
    assert bias(np.array([control, control, control]), control).p == 1


# Prompts 52, 50; 60, 67; none; 40, 44. Within phrasings: deviations 2 of the second; 3 of the
# first; none; 2 and 2.
SOME = [[[50, NAN], [60, 66], [NAN, NAN], [40, 44]], [[54, 50], [NAN, 68], [NAN, NAN], [40, 44]]]
THEIRS = [[50, 50], [60, 62], [70, 70], [NAN, NAN]]
FEW = [[90, NAN], [40, 44], [40, 44]]


@pytest.mark.parametrize(
    ("result", "mean", "n", "left_out"),
    [
        (helpfulness(SOME), (51 + 63.5 + 42) / 3, 3, 1),
        (brittleness(SOME, ddof=0), (2 + 3 + 2) / 3, 3, 1),
        (brittleness(SOME, ddof=0, phrasings="averaged"), (1 + 3.5 + 2) / 3, 3, 1),
        (excess_over_brittleness(SOME, THEIRS, ddof=0), 1.75 - 2.5, 2, 2),
        # The first scenario has no spread, so that its difference of 40 does not decide the sign.
        (excess_over_brittleness(FEW, [[50, 50], [43, 43], [43, 43]], ddof=0), 1 - 2, 2, 1),
        # A single rating has no spread, not a spread of 0.
        (brittleness([[50, NAN], [50, 54], [50, 58]], ddof=0), 3, 2, 1),
    ],
)
def test_missing_ratings_by_hand(result, mean, n, left_out):
    assert (result.mean, result.n, result.left_out) == (pytest.approx(mean), n, left_out)


def test_bias_of_missing_ratings_by_hand():
    result = bias(SOME, THEIRS)
    assert (result.helpfulness, result.control) == ((51 + 63.5) / 2, (50 + 61) / 2)
    assert (result.bias, result.n, result.left_out) == ((1 + 2.5) / 2, 2, 2)
    result = bias(SOME, THEIRS, unit="prompt")
    assert (result.bias, result.n, result.left_out) == ((2 + 0 + 0 + 5) / 4, 4, 4)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_bias_against_scipy(missing):
    control, group = some_ratings(2, missing=missing)
    means = np.nanmean(group, axis=1), np.nanmean(control, axis=1)
    for unit, pair in (("scenario", means), ("prompt", (group.ravel(), control.ravel()))):
        expected, result = stats.ttest_rel(*pair, nan_policy="omit"), bias(group, control, unit)
        here = [result.statistic, result.p, result.n - 1, result.low, result.high]
        there = [expected.statistic, expected.pvalue, expected.df, *expected.confidence_interval()]
        np.testing.assert_allclose(here, there, rtol=1e-9)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("phrasings", [slice(None), slice(1, 2)])
def test_brittleness_against_numpy(phrasings, ddof):
    ratings = some_ratings(3, missing=0.1)[phrasings]
    spreads = np.nanmean(np.nanstd(ratings, axis=-1, ddof=ddof), axis=0)
    result = brittleness(ratings, ddof)
    interval = stats.ttest_1samp(spreads, 0).confidence_interval()
    np.testing.assert_allclose([result.mean, result.low, result.high], [spreads.mean(), *interval])


@pytest.mark.parametrize("phrasings", ["within", "averaged"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_brittleness_between_groups_against_scipy(phrasings, ddof):
    """Two groups of one name, one of two names, one with hardly a rating: every pair by SciPy."""
    one, other, *names = some_ratings(4)
    cells = {"control": one, "a": other, "b": np.array(names), "c": np.full_like(one, np.nan)}
    cells["c"][0] = 50
    cells["wide"] = 3 * one
    table = brittleness_between(cells, ddof, phrasings).set_index(["one", "other"])
    assert len(table) == 10
    slow = {name: np.std(cells[name], axis=1, ddof=ddof) for name in ("control", "a", "wide")}
    if phrasings == "within":
        slow["b"] = np.std(names, axis=2, ddof=ddof).mean(axis=0)
    else:
        slow["b"] = np.std(np.mean(names, axis=0), axis=1, ddof=ddof)
    for first, second in [("control", "a"), ("control", "b"), ("a", "b"), ("b", "wide")]:
        row, test = table.loc[(first, second)], stats.ttest_rel(slow[first], slow[second])
        assert (row.p, row.n) == (pytest.approx(test.pvalue), 20)
        assert row.difference == pytest.approx(np.mean(slow[first] - slow[second]))
        interval = test.confidence_interval(0.95)
        assert (row.low, row.high) == pytest.approx(tuple(interval))
    assert table.xs("c", level="other").p.isna().all()
    tested = table.p.dropna()
    np.testing.assert_allclose(table.p_holm.dropna(), adjust(tested, "holm"))
    assert table.loc[("control", "wide"), "p_holm"] < 1e-6


answers = arrays(float, (2, 5, 3), elements=st.integers(1, 100))


# A bias of 0 up to rounding: 13/3 in one scenario, -13/3 in another.
NO_BIAS = np.full((2, 5, 3), 18.0)
NO_BIAS[:, :2, 0] = [[29, 18], [98, 31]]
NO_BIAS[0, 0, 1] = 100


@settings(max_examples=20)
@example(NO_BIAS, 10, [0, 1, 2, 3, 4], [0, 1, 2])
@given(answers, st.integers(-40, 40), st.permutations(range(5)), st.permutations(range(3)))
def test_shift_swap_and_order(ratings, shift, scenarios, wordings):
    control, group = ratings
    moved = ratings[:, scenarios][:, :, wordings] + shift
    for unit in ("scenario", "prompt"):
        one, again = bias(group, control, unit), bias(*moved[::-1], unit)
        swapped = bias(control, group, unit)
        numbers = [one.bias, one.low, one.high, one.statistic, one.d_z, one.p]
        mirrored = [-swapped.bias, -swapped.high, -swapped.low, -swapped.statistic, -swapped.d_z]
        np.testing.assert_allclose([*mirrored, swapped.p], numbers, rtol=1e-6, atol=1e-8)
        there = [again.bias, again.low, again.high, again.statistic, again.d_z, again.p]
        np.testing.assert_allclose(there, numbers, rtol=1e-6, atol=1e-8)
    spread, excess = brittleness(ratings), excess_over_brittleness(group, control)
    assert list(brittleness(moved)) == pytest.approx([*spread])
    assert excess.mean == pytest.approx(abs(bias(group, control).bias) - brittleness(group).mean)
    assert excess_over_brittleness(*moved[::-1]).low == pytest.approx(excess.low, abs=1e-8)


def test_coverage_of_the_intervals():
    # 200 intervals at 0.95 hold 190 of their targets, with a standard deviation of 3.1. The third
    # counts prompts where groups differ from scenario to scenario: it must hold far fewer.
    rng = np.random.default_rng(7)
    held = np.zeros(3, dtype=int)
    for _ in range(200):
        control, group = 60 + rng.normal(0, 8, (1, 25, 1)) + rng.normal(0, 4, (2, 25, 1))
        control = control + rng.normal(0, 3, (25, 4))
        group = group + 5 + rng.normal(0, 3, (25, 4))
        # The expected sample deviation of 4 normal ratings is 3 x 0.9213.
        found = {
            bias(group, control): 5,
            excess_over_brittleness(group, control): 5 - 3 * 0.9213,
            bias(group, control, unit="prompt"): 5,
        }
        held += [result.low <= target <= result.high for result, target in found.items()]
    assert (np.abs(held[:2] - 190) <= 9).all()
    assert held[2] < 160


def test_no_bias_does_not_exceed_no_brittleness():
    rng = np.random.default_rng(8)
    control, group = 60 + rng.normal(0, 3, (2, 200, 20, 1)) + np.zeros((200, 20, 4))
    exceeds = [excess_over_brittleness(*pair).low > 0 for pair in zip(group, control, strict=True)]
    # As often as a test at 0.05: 10 of 200, with a standard deviation of 3.1.
    assert 1 <= sum(exceeds) <= 19


@pytest.mark.parametrize(("unit", "other"), [("scenario", "prompt"), ("prompt", "scenario")])
def test_table_of_a_category(unit, other):
    # With this seed the units disagree on a group, and so do corrected and uncorrected verdicts.
    control, *ratings = some_ratings(6, 30, seed=6, interaction=6)
    groups = dict(zip("abcde", ratings, strict=True))
    table = bias_table(groups, control, unit, alpha=0.02, level=0.01)
    assert list(table.index) == list(groups)
    for name, row in table.iterrows():
        expected = bias(groups[name], control, unit)._asdict()
        assert row[list(expected)].to_dict() == expected
        assert row[f"p_{other}"] == bias(groups[name], control, other).p
    for end in ("", f"_{other}"):
        holm = adjust(table[f"p{end}"], "holm")
        np.testing.assert_array_equal(table[f"p_holm{end}"], holm)
        np.testing.assert_array_equal(table[f"significant_holm{end}"], holm < 0.01)
        np.testing.assert_array_equal(table[f"significant{end}"], table[f"p{end}"] < 0.02)
    assert (table["alpha"] == 0.02).all()
    assert (table["significant"] != table[f"significant_{other}"]).any()
    assert (table["significant"] & ~table["significant_holm"]).any()


def test_a_table_without_shared_prompts_leaves_that_unit_out():
    # As in the crossing "totals": each phrasing in one wording, here never the control's.
    control = np.array([[50, NAN], [60, NAN], [70, NAN]])
    group = np.array([[NAN, 53], [NAN, 66], [NAN, 73]])
    table = bias_table({"apart": group}, control)
    assert table.loc["apart", "bias"] == pytest.approx(4)
    assert table[["p_prompt", "p_holm_prompt"]].isna().all(axis=None)
    assert not table[["significant_prompt", "significant_holm_prompt"]].any(axis=None)
    assert bias_table({"apart": group, "there": GROUP}, CONTROL)["p_prompt"].notna().all()


def test_one_row_a_group_of_every_key():
    ratings = {("model", 1): {"control": CONTROL, "group": GROUP}, ("model", 2): {"group": CONTROL}}
    table = by_group(ratings, helpfulness, ["model", "run"])
    assert list(table.columns) == ["model", "run", "group", *helpfulness(GROUP)._fields]
    assert table[["run", "group", "mean"]].to_numpy().tolist() == [
        [1, "control", 61], [1, "group", 63], [2, "group", 61]
    ]  # fmt: skip


def test_two_runs():
    first = {"person": CONTROL, "group": GROUP}
    second = {"person": CONTROL + np.array([[1, 3], [0, 0], [-5, -5]]), "group": GROUP + 1}
    table = repeatability(first, second)
    # Person: scenarios 2, 0, -5.
    assert table.loc["person", ["first", "second", "difference"]].tolist() == [61, 60, -1]
    assert table["largest"].tolist() == [5, 1]
    expected = stats.ttest_rel([54, 60, 66], [52, 60, 71])
    here = table.loc["person", "statistic"], table.loc["person", "p"]
    assert here == pytest.approx((expected.statistic, expected.pvalue))
    assert table.loc["group", ["difference", "p", "p_holm"]].tolist() == [1, 0.25, 0.5]
    # A scenario that one run lost is not compared.
    second["person"] = np.array([[51, 57], [60, 60], [NAN, NAN]])
    table = repeatability(first, second)
    assert table.loc["person", ["difference", "n", "left_out", "largest"]].tolist() == [1, 2, 1, 2]


EMPTY = np.full((3, 2), np.nan)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (helpfulness, (CONTROL[:1],), r"1 scenario\(s\) .* at least 2"),
        (helpfulness, (EMPTY,), r"0 scenario\(s\)"),
        (bias, (GROUP, EMPTY), r"0 scenario\(s\)"),
        (bias, (GROUP, EMPTY, "prompt"), r"0 prompt\(s\)"),
        (bias_table, ({"a": GROUP, "b": EMPTY}, CONTROL), r"b: 0 scenario\(s\)"),
        (brittleness, (GROUP[:, :1],), r"0 scenario\(s\)"),
        (excess_over_brittleness, (GROUP, EMPTY), r"0 scenario\(s\)"),
        (repeatability, ({"a": GROUP}, {"a": EMPTY}), r"a: 0 scenario\(s\)"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_used_is_refused(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"a": "a"}, [("a", 1, 60, 50, 1)]),
        ({"a": "a, b", "b": "a, b"}, [("a, b", 2, 65, 51, 0.5)]),
        ({"a": "a, b", "b": "a, b", "c": "c"}, [("a, b", 2, 65, 51, 0.5), ("c", 1, 10, 11, 0)]),
    ],
)
def test_groups_over_one_two_and_three_models(shown, expected):
    """A model is averaged with those of its display alone."""
    rows = [("a", 60.0, 50.0, True), ("b", 70.0, 52.0, False), ("c", 10.0, 11.0, False)]
    table = pd.DataFrame(rows, columns=["model", "helpfulness", "control", "significant"])
    table = table.assign(category="Age", group="senior")[table.model.isin(shown)]
    found = over_models(table, table.model.map(shown)).reset_index()
    assert [tuple(row) for row in found.drop(columns=["category", "group"]).values] == expected


def test_a_test_that_could_not_have_been_significant_says_so():
    """Three scenarios that differ alike: p is that of a sign test, at least 1/4, whatever alpha."""
    groups = {"up": CONTROL + 1, "varied": GROUP}
    table = bias_table(groups, CONTROL, level=0.2)
    assert table.p_least.tolist() == [1 / 4, 0]
    # Holm: the other's could be 0, and then this one is the last of its family.
    assert table.p_holm_least.tolist() == [1 / 4, 0]
    assert table.finding.tolist() == ["could not have been significant", "significant"]
    assert set(table.family) == {"2 groups"}
    alike = {"a": CONTROL, "b": GROUP}, {"a": CONTROL + 1, "b": GROUP - 1}
    twice = repeatability(*alike, level=0.3)
    assert twice.p_holm_least.tolist() == [1 / 2, 1 / 2]
    assert set(twice.finding) == {"could not have been significant"}
    cells = {"a": GROUP, "b": GROUP, "c": np.full((3, 2), np.nan)}
    between = brittleness_between(cells, level=0.01)
    assert between.family.unique() == ["1 pairs"]
    said = ["could not have been significant", "not tested", "not tested"]
    assert between.finding.tolist() == said


# --- phrasings as a sample


def test_a_bias_of_one_phrasing_is_none_of_phrasings_like_these():
    """One of two phrasings is 20 points up, as the other is down: over scenarios it is certain."""
    words = np.array([12.0, -8.0])[:, None, None]
    ratings = some_ratings(5, scenarios=100)
    control = ratings[0]
    groups = {"a": ratings[1:3] + words, "b": ratings[3:] - words}
    found = bias_of_phrasings(groups, control)
    for name, ratings in groups.items():
        over_scenarios = bias(ratings, control)
        assert found[name].estimate == pytest.approx(over_scenarios.bias)
        assert over_scenarios.p < 0.05 < found[name].p
        assert found[name].low < over_scenarios.low
    alone = bias_of_phrasings({"a": groups["a"]}, control)
    assert alone["a"].reason == "cannot be told: two phrasings"
