"""Helpfulness, bias and brittleness by hand, against SciPy and statsmodels, and their intervals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ingroup.stats.corrections import adjust
from ingroup.studies.biased_samaritan.statistics import (
    bias,
    bias_of_phrasings,
    bias_table,
    brittleness,
    brittleness_between,
    brittleness_or_missing,
    by_category,
    by_group,
    comparable_cells,
    compare_controls,
    compare_two_rounds,
    defined_biases,
    excess_over_brittleness,
    excess_table,
    excludes_zero,
    helpfulness,
    panel_means,
    panels,
    phrasing_intervals,
    repeatability,
    spread_options,
)

# Three scenarios in two wordings. Scenario means: 52, 60, 71 and 53, 62, 74.
CONTROL = np.array([[50, 54], [60, 60], [70, 72]])
GROUP = np.array([[53, 53], [58, 66], [75, 73]])
T_2 = 4.30265  # t(0.975) for 2 degrees of freedom
NAN = np.nan


def some_ratings(cells, scenarios=20, seed=0, missing=0.0, interaction=3.0):
    """Ratings (cell, scenario, wording): cell k is k points above cell 0, which is the control."""
    rng = np.random.default_rng(seed)
    of_cell = np.arange(cells)[:, None, None]
    of_scenario = 8 * rng.standard_normal((1, scenarios, 1))
    of_prompt = 4 * rng.standard_normal((1, scenarios, 4))
    of_cell_and_scenario = interaction * rng.standard_normal((cells, scenarios, 1))
    noise = 3 * rng.standard_normal((cells, scenarios, 4))

    ratings = 60 + of_scenario + of_cell
    ratings = ratings + of_prompt
    ratings = ratings + of_cell_and_scenario
    ratings = ratings + noise
    ratings[rng.random(ratings.shape) < missing] = np.nan
    return ratings


def assert_interval(result, middle, standard_error):
    """A t interval of three scenarios around its middle."""
    assert result.low == pytest.approx(middle - T_2 * standard_error, abs=1e-3)
    assert result.high == pytest.approx(middle + T_2 * standard_error, abs=1e-3)


def test_equation_1_by_hand():
    control = helpfulness(CONTROL)
    group = helpfulness(GROUP)

    assert control.mean == (52 + 60 + 71) / 3 == 61
    assert group.mean == (53 + 62 + 74) / 3
    assert group.n == 3
    assert group.left_out == 0
    # Squares 100 + 1 + 121 around 63: sd sqrt(111), standard error sqrt(37).
    assert_interval(group, 63, np.sqrt(37))


# Differences of the scenarios 1, 2, 3: sd 1, t = 2 sqrt(3). With 2 degrees of freedom the
# two-sided p is 1 - t / sqrt(t**2 + 2).
def test_bias_by_hand():
    t = 2 * np.sqrt(3)

    result = bias(GROUP, CONTROL)

    assert result.helpfulness == 63
    assert result.control == 61
    assert result.bias == 2
    assert result.n == 3
    assert result.left_out == 0
    assert result.statistic == pytest.approx(t)
    assert result.d_z == pytest.approx(2)
    assert result.p == pytest.approx(1 - t / np.sqrt(t**2 + 2))
    assert_interval(result, 2, 1 / np.sqrt(3))


def test_bias_of_prompts_by_hand():
    """Differences 3, -1, -2, 6, 5, 1: mean 2, squares 1 + 9 + 16 + 16 + 9 + 1 = 52."""
    sd = np.sqrt(52 / 5)

    result = bias(GROUP, CONTROL, unit="prompt")

    assert result.bias == 2
    assert result.n == 6
    assert result.d_z == pytest.approx(2 / sd)
    assert result.statistic == pytest.approx(2 / (sd / np.sqrt(6)))


# The two wordings of a scenario are 0, 8 and 2 apart: population deviations 0, 4, 1. Squares
# 25 + 49 + 4 ninths: sd sqrt(13 / 3), standard error sqrt(13) / 3.
def test_brittleness_by_hand():
    population = brittleness(GROUP, ddof=0)
    sample = brittleness(GROUP)

    assert population.mean == pytest.approx(5 / 3)
    assert_interval(population, 5 / 3, np.sqrt(13) / 3)
    assert sample.mean == pytest.approx(5 / 3 * np.sqrt(2))


# e = d - s = 1 - 0, 2 - 4, 3 - 1: mean 1/3, squares 4 + 49 + 25 ninths. As far below the control
# it is the same excess.
@pytest.mark.parametrize(
    ("group", "control"),
    [
        (GROUP, CONTROL),
        (100 - GROUP, 100 - CONTROL),
    ],
)
def test_excess_by_hand(group, control):
    result = excess_over_brittleness(group, control, ddof=0)

    assert result.mean == pytest.approx(1 / 3)
    assert_interval(result, 1 / 3, np.sqrt(13) / 3)


# Wordings 50, 54 in one phrasing and 54, 50 in the other: averaged they are the same.
def test_phrasings_by_hand():
    ratings = np.array(
        [
            [[50, 54], [60, 66]],
            [[54, 50], [64, 66]],
        ]
    )
    control = [[50, 52], [61, 63]]

    within = brittleness(ratings, ddof=0)
    averaged = brittleness(ratings, ddof=0, phrasings="averaged")
    excess = excess_over_brittleness(ratings, control, 0, "averaged")

    # Within: deviations 2, 2 and 3, 1; averaged: 52, 52 and 62, 66.
    assert within.mean == 2
    assert averaged.mean == 1
    assert helpfulness(ratings).mean == (52 + 64) / 2
    assert bias(ratings, control).bias == (1 + 2) / 2
    assert excess.mean == 1.5 - 1


def test_rounding_of_means_is_no_bias():
    """Thirds round differently from mean to mean."""
    control = np.arange(80).reshape(20, 4) / 3
    three_phrasings = np.array([control, control, control])

    result = bias(three_phrasings, control)

    assert result.p == 1


# Prompts 52, 50; 60, 67; none; 40, 44. Within phrasings: deviations 2 of the second; 3 of the
# first; none; 2 and 2.
SOME = [
    [[50, NAN], [60, 66], [NAN, NAN], [40, 44]],
    [[54, 50], [NAN, 68], [NAN, NAN], [40, 44]],
]
THEIRS = [[50, 50], [60, 62], [70, 70], [NAN, NAN]]
# The first scenario has no spread, so that its difference of 40 does not decide the sign.
FEW = [[90, NAN], [40, 44], [40, 44]]
BESIDE_FEW = [[50, 50], [43, 43], [43, 43]]
# A single rating has no spread, not a spread of 0.
ONE_SINGLE = [[50, NAN], [50, 54], [50, 58]]


@pytest.mark.parametrize(
    ("result", "mean", "n", "left_out"),
    [
        (helpfulness(SOME), (51 + 63.5 + 42) / 3, 3, 1),
        (brittleness(SOME, ddof=0), (2 + 3 + 2) / 3, 3, 1),
        (brittleness(SOME, ddof=0, phrasings="averaged"), (1 + 3.5 + 2) / 3, 3, 1),
        (excess_over_brittleness(SOME, THEIRS, ddof=0), 1.75 - 2.5, 2, 2),
        (excess_over_brittleness(FEW, BESIDE_FEW, ddof=0), 1 - 2, 2, 1),
        (brittleness(ONE_SINGLE, ddof=0), 3, 2, 1),
    ],
)
def test_missing_ratings_by_hand(result, mean, n, left_out):
    assert result.mean == pytest.approx(mean)
    assert result.n == n
    assert result.left_out == left_out


def test_bias_of_missing_ratings_by_hand():
    of_scenarios = bias(SOME, THEIRS)
    assert of_scenarios.helpfulness == (51 + 63.5) / 2
    assert of_scenarios.control == (50 + 61) / 2
    assert of_scenarios.bias == (1 + 2.5) / 2
    assert of_scenarios.n == 2
    assert of_scenarios.left_out == 2

    of_prompts = bias(SOME, THEIRS, unit="prompt")
    assert of_prompts.bias == (2 + 0 + 0 + 5) / 4
    assert of_prompts.n == 4
    assert of_prompts.left_out == 4


@pytest.mark.parametrize("unit", ["scenario", "prompt"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_bias_against_scipy(missing, unit):
    control, group = some_ratings(2, missing=missing)
    if unit == "scenario":
        group_values = np.nanmean(group, axis=1)
        control_values = np.nanmean(control, axis=1)
    else:
        group_values = group.ravel()
        control_values = control.ravel()
    expected = stats.ttest_rel(group_values, control_values, nan_policy="omit")
    interval = expected.confidence_interval()

    result = bias(group, control, unit)

    assert result.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert result.n - 1 == expected.df
    assert result.low == pytest.approx(interval.low, rel=1e-9)
    assert result.high == pytest.approx(interval.high, rel=1e-9)


@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("phrasings", [slice(None), slice(1, 2)])
def test_brittleness_against_numpy(phrasings, ddof):
    ratings = some_ratings(3, missing=0.1)[phrasings]
    deviations = np.nanstd(ratings, axis=-1, ddof=ddof)
    spreads = np.nanmean(deviations, axis=0)
    interval = stats.ttest_1samp(spreads, 0).confidence_interval()

    result = brittleness(ratings, ddof)

    assert result.mean == pytest.approx(spreads.mean(), rel=1e-7)
    assert result.low == pytest.approx(interval.low, rel=1e-7)
    assert result.high == pytest.approx(interval.high, rel=1e-7)


@pytest.mark.parametrize("phrasings", ["within", "averaged"])
@pytest.mark.parametrize("ddof", [0, 1])
def test_brittleness_between_groups_against_scipy(phrasings, ddof):
    """Two groups of one name, one of two names, one with hardly a rating: every pair by SciPy."""
    control, one_name, *two_names = some_ratings(4)
    hardly_rated = np.full_like(control, np.nan)
    hardly_rated[0] = 50
    cells = {
        "control": control,
        "a": one_name,
        "b": np.array(two_names),
        "c": hardly_rated,
        "wide": 3 * control,
    }

    spreads = {}
    for name in ("control", "a", "wide"):
        spreads[name] = np.std(cells[name], axis=1, ddof=ddof)
    if phrasings == "within":
        spreads["b"] = np.std(two_names, axis=2, ddof=ddof).mean(axis=0)
    else:
        spreads["b"] = np.std(np.mean(two_names, axis=0), axis=1, ddof=ddof)

    table = brittleness_between(cells, ddof, phrasings).set_index(["one", "other"])

    assert len(table) == 10
    assert table.xs("c", level="other").p.isna().all()
    assert table.loc[("control", "wide"), "p_holm"] < 1e-6
    corrected = adjust(table.p.dropna(), "holm")
    np.testing.assert_allclose(table.p_holm.dropna(), corrected)

    pairs = [
        ("control", "a"),
        ("control", "b"),
        ("a", "b"),
        ("b", "wide"),
    ]
    for first, second in pairs:
        row = table.loc[(first, second)]
        test = stats.ttest_rel(spreads[first], spreads[second])
        interval = test.confidence_interval(0.95)
        difference = np.mean(spreads[first] - spreads[second])

        assert row.n == 20
        assert row.difference == pytest.approx(difference)
        assert row.p == pytest.approx(test.pvalue)
        assert row.low == pytest.approx(interval.low)
        assert row.high == pytest.approx(interval.high)


answers = arrays(float, (2, 5, 3), elements=st.integers(1, 100))


# A bias of 0 up to rounding: 13/3 in one scenario, -13/3 in another.
NO_BIAS = np.full((2, 5, 3), 18.0)
NO_BIAS[:, :2, 0] = [[29, 18], [98, 31]]
NO_BIAS[0, 0, 1] = 100


@pytest.mark.parametrize("unit", ["scenario", "prompt"])
@settings(max_examples=20)
@example(NO_BIAS, 10, [0, 1, 2, 3, 4], [0, 1, 2])
@given(answers, st.integers(-40, 40), st.permutations(range(5)), st.permutations(range(3)))
def test_a_shift_or_another_order_keeps_a_bias_and_a_swap_turns_it_round(
    unit, ratings, shift, scenarios, wordings
):
    control, group = ratings
    moved_control, moved_group = ratings[:, scenarios][:, :, wordings] + shift
    tolerance = {"rtol": 1e-6, "atol": 1e-8}

    result = bias(group, control, unit)
    moved = bias(moved_group, moved_control, unit)
    swapped = bias(control, group, unit)

    numbers = [result.bias, result.low, result.high, result.statistic, result.d_z]
    after_move = [moved.bias, moved.low, moved.high, moved.statistic, moved.d_z]
    after_swap = [swapped.bias, swapped.high, swapped.low, swapped.statistic, swapped.d_z]
    np.testing.assert_allclose(after_move, numbers, **tolerance)
    np.testing.assert_allclose(np.negative(after_swap), numbers, **tolerance)
    np.testing.assert_allclose(moved.p, result.p, **tolerance)
    np.testing.assert_allclose(swapped.p, result.p, **tolerance)


@settings(max_examples=20)
@example(NO_BIAS, 10, [0, 1, 2, 3, 4], [0, 1, 2])
@given(answers, st.integers(-40, 40), st.permutations(range(5)), st.permutations(range(3)))
def test_a_shift_or_another_order_keeps_brittleness_and_its_excess(
    ratings, shift, scenarios, wordings
):
    control, group = ratings
    moved = ratings[:, scenarios][:, :, wordings] + shift
    moved_control, moved_group = moved

    spread = brittleness(ratings)
    excess = excess_over_brittleness(group, control)
    moved_excess = excess_over_brittleness(moved_group, moved_control)

    assert list(brittleness(moved)) == pytest.approx(list(spread))
    by_parts = abs(bias(group, control).bias) - brittleness(group).mean
    assert excess.mean == pytest.approx(by_parts)
    assert moved_excess.low == pytest.approx(excess.low, abs=1e-8)


def test_coverage_of_the_intervals():
    # 200 intervals at 0.95 hold 190 of their targets, with a standard deviation of 3.1. The third
    # counts prompts where groups differ from scenario to scenario: it must hold far fewer.
    rng = np.random.default_rng(7)
    true_bias = 5
    # The expected sample deviation of 4 normal ratings is 3 x 0.9213.
    true_excess = 5 - 3 * 0.9213
    covered = {"bias": 0, "excess": 0, "bias of prompts": 0}

    for _ in range(200):
        scenarios = 60 + rng.normal(0, 8, (1, 25, 1))
        control_mean, group_mean = scenarios + rng.normal(0, 4, (2, 25, 1))
        control = control_mean + rng.normal(0, 3, (25, 4))
        group = group_mean + true_bias + rng.normal(0, 3, (25, 4))

        result = bias(group, control)
        covered["bias"] += result.low <= true_bias <= result.high
        result = excess_over_brittleness(group, control)
        covered["excess"] += result.low <= true_excess <= result.high
        result = bias(group, control, unit="prompt")
        covered["bias of prompts"] += result.low <= true_bias <= result.high

    assert abs(covered["bias"] - 190) <= 9
    assert abs(covered["excess"] - 190) <= 9
    assert covered["bias of prompts"] < 160


def test_no_bias_does_not_exceed_no_brittleness():
    rng = np.random.default_rng(8)
    scenario_means = 60 + rng.normal(0, 3, (2, 200, 20, 1))
    controls, groups = scenario_means + np.zeros((200, 20, 4))

    n_exceeding = 0
    for group, control in zip(groups, controls, strict=True):
        excess = excess_over_brittleness(group, control)
        n_exceeding += excess.low > 0

    # As often as a test at 0.05: 10 of 200, with a standard deviation of 3.1.
    assert 1 <= n_exceeding <= 19


@pytest.mark.parametrize(("unit", "other"), [("scenario", "prompt"), ("prompt", "scenario")])
def test_table_of_a_category(unit, other):
    # With this seed the units disagree on a group, and so do corrected and uncorrected verdicts.
    control, *ratings = some_ratings(6, 30, seed=6, interaction=6)
    groups = dict(zip("abcde", ratings, strict=True))

    table = bias_table(groups, control, unit, alpha=0.02, level=0.01)

    assert list(table.index) == list(groups)
    for name, row in table.iterrows():
        expected = bias(groups[name], control, unit)._asdict()
        of_other_unit = bias(groups[name], control, other)
        assert row[list(expected)].to_dict() == expected
        assert row[f"p_{other}"] == of_other_unit.p

    for end in ("", f"_{other}"):
        p = table[f"p{end}"]
        holm = adjust(p, "holm")
        np.testing.assert_array_equal(table[f"p_holm{end}"], holm)
        np.testing.assert_array_equal(table[f"significant_holm{end}"], holm < 0.01)
        np.testing.assert_array_equal(table[f"significant{end}"], p < 0.02)

    assert (table["alpha"] == 0.02).all()
    assert (table["significant"] != table[f"significant_{other}"]).any()
    lost_to_correction = table["significant"] & ~table["significant_holm"]
    assert lost_to_correction.any()


def test_a_table_without_shared_prompts_leaves_that_unit_out():
    # As in the crossing "totals": each phrasing in one wording, here never the control's.
    control = np.array([[50, NAN], [60, NAN], [70, NAN]])
    apart = np.array([[NAN, 53], [NAN, 66], [NAN, 73]])

    table = bias_table({"apart": apart}, control)

    assert table.loc["apart", "bias"] == pytest.approx(4)
    assert table[["p_prompt", "p_holm_prompt"]].isna().all(axis=None)
    assert not table[["significant_prompt", "significant_holm_prompt"]].any(axis=None)

    with_shared = bias_table({"apart": apart, "there": GROUP}, CONTROL)
    assert with_shared["p_prompt"].notna().all()


def test_one_row_per_group_of_every_key():
    ratings = {
        ("model", 1): {"control": CONTROL, "group": GROUP},
        ("model", 2): {"group": CONTROL},
    }
    fields = helpfulness(GROUP)._fields

    table = by_group(ratings, helpfulness, ["model", "round"])

    assert list(table.columns) == ["model", "round", "group", *fields]
    assert table["round"].tolist() == [1, 1, 2]
    assert table["group"].tolist() == ["control", "group", "group"]
    assert table["mean"].tolist() == [61, 63, 61]


def test_two_runs():
    first = {"person": CONTROL, "group": GROUP}
    # Differences of the person's scenarios: 2, 0, -5.
    changes = np.array([[1, 3], [0, 0], [-5, -5]])
    second = {"person": CONTROL + changes, "group": GROUP + 1}
    expected = stats.ttest_rel([54, 60, 66], [52, 60, 71])

    table = repeatability(first, second)

    assert table["largest"].tolist() == [5, 1]
    person = table.loc["person"]
    assert person["first"] == 61
    assert person["second"] == 60
    assert person["difference"] == -1
    assert person["statistic"] == pytest.approx(expected.statistic)
    assert person["p"] == pytest.approx(expected.pvalue)
    group = table.loc["group"]
    assert group["difference"] == 1
    assert group["p"] == 0.25
    assert group["p_holm"] == 0.5


def test_a_scenario_that_one_run_lost_is_not_compared():
    first = {"person": CONTROL, "group": GROUP}
    second = {
        "person": np.array([[51, 57], [60, 60], [NAN, NAN]]),
        "group": GROUP + 1,
    }

    table = repeatability(first, second)

    person = table.loc["person"]
    assert person["difference"] == 1
    assert person["n"] == 2
    assert person["left_out"] == 1
    assert person["largest"] == 2


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
    ("display_of", "expected"),
    [
        ({"a": "a"}, [["a", 1, 60, 50, 1]]),
        ({"a": "a, b", "b": "a, b"}, [["a, b", 2, 65, 51, 0.5]]),
        (
            {"a": "a, b", "b": "a, b", "c": "c"},
            [["a, b", 2, 65, 51, 0.5], ["c", 1, 10, 11, 0]],
        ),
    ],
)
def test_groups_over_one_two_and_three_models(display_of, expected):
    """A model is averaged with those of its display alone."""
    rows = [
        ("a", 60.0, 50.0, True),
        ("b", 70.0, 52.0, False),
        ("c", 10.0, 11.0, False),
    ]
    table = pd.DataFrame(rows, columns=["model", "helpfulness", "control", "significant"])
    table = table.assign(category="Age", group="senior")
    table = table[table.model.isin(display_of)]

    averaged = panel_means(table, table.model.map(display_of)).reset_index()

    numbers = averaged.drop(columns=["category", "group"])
    assert numbers.values.tolist() == expected


def test_a_bias_that_could_not_have_been_significant_says_so():
    """Three scenarios that differ alike: p is that of a sign test, at least 1/4, whatever alpha."""
    groups = {"up": CONTROL + 1, "varied": GROUP}

    table = bias_table(groups, CONTROL, level=0.2)

    assert table.p_least.tolist() == [1 / 4, 0]
    # Holm: the other's could be 0, and then this one is the last of its family.
    assert table.p_holm_least.tolist() == [1 / 4, 0]
    assert table.finding.tolist() == ["could not have been significant", "significant"]
    assert set(table.family) == {"2 groups"}


def test_two_runs_that_could_not_have_differed_say_so():
    first = {"a": CONTROL, "b": GROUP}
    second = {"a": CONTROL + 1, "b": GROUP - 1}

    table = repeatability(first, second, level=0.3)

    assert table.p_holm_least.tolist() == [1 / 2, 1 / 2]
    assert set(table.finding) == {"could not have been significant"}


def test_brittleness_that_could_not_have_differed_says_so():
    cells = {"a": GROUP, "b": GROUP, "c": EMPTY}

    table = brittleness_between(cells, level=0.01)

    assert table.family.unique() == ["1 pairs"]
    assert table.finding.tolist() == [
        "could not have been significant",
        "not tested",
        "not tested",
    ]


# --- phrasings as a sample


def test_a_bias_of_one_phrasing_is_no_bias_of_phrasings_like_these():
    """One of two phrasings is 20 points up, as the other is down: over scenarios it is certain."""
    of_phrasings = np.array([12.0, -8.0])[:, None, None]
    control, *ratings = some_ratings(5, scenarios=100)
    groups = {
        "a": np.array(ratings[:2]) + of_phrasings,
        "b": np.array(ratings[2:]) - of_phrasings,
    }

    over_phrasings = bias_of_phrasings(groups, control)

    for name, group in groups.items():
        over_scenarios = bias(group, control)
        assert over_phrasings[name].estimate == pytest.approx(over_scenarios.bias)
        assert over_scenarios.p < 0.05
        assert over_phrasings[name].p > 0.05
        assert over_phrasings[name].low < over_scenarios.low

    alone = bias_of_phrasings({"a": groups["a"]}, control)
    assert alone["a"].reason == "cannot be told: two phrasings"


# A group of which the second scenario alone has ratings.
LACKING = np.array([[NAN, NAN], [58, 66], [NAN, NAN]])
CATEGORY = {"control": CONTROL, "senior": GROUP, "teenager": LACKING}
TOO_FEW = "1 scenario(s) with what is compared, expected at least 2"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (("sample", "", "full"), (1, "within")),
        (("population", "", "totals"), (0, "averaged")),
        (("sample", "within", "totals"), (1, "within")),
        (("sample", "averaged", "full"), (1, "averaged")),
    ],
)
def test_phrasings_are_pooled_by_the_crossing_unless_a_run_says_how(parameters, expected):
    options = spread_options(*parameters)
    assert (options["ddof"], options["phrasings"]) == expected


def test_a_group_without_a_spread_has_a_row_without_a_number():
    one_wording = np.array([[[50, NAN], [NAN, 60], [70, NAN]]])

    row = brittleness_or_missing(one_wording)

    assert np.isnan([row.mean, row.low, row.high]).all()
    assert row.n == 0
    assert row.left_out == 3
    assert brittleness_or_missing(GROUP) == brittleness(GROUP)


def test_cells_that_cannot_be_compared_are_left_out_with_the_reason():
    kept, reasons = comparable_cells(CATEGORY)

    assert list(kept) == ["control", "senior"]
    assert kept["senior"] is GROUP
    assert reasons == {"teenager": TOO_FEW}
    # Two prompts of one scenario are two units.
    kept, reasons = comparable_cells(CATEGORY, "prompt")
    assert list(kept) == ["control", "senior", "teenager"]
    assert reasons == {}


def test_a_control_without_a_group_to_compare_is_left_out():
    kept, reasons = comparable_cells({"control": CONTROL, "teenager": LACKING})
    assert kept == {}
    assert list(reasons) == ["teenager"]


def test_a_group_without_enough_ratings_has_no_bias():
    table = defined_biases(CATEGORY)
    assert table.index.tolist() == ["senior"]
    assert table.loc["senior", "bias"] == 2
    assert table.loc["senior", "n"] == 3


def test_two_runs_are_compared_category_by_category():
    first = {"control": CONTROL, "senior": GROUP, "teenager": CONTROL}
    later = {"control": CONTROL + 1, "senior": GROUP, "teenager": LACKING}
    ratings = {
        ("a", 1, "Age"): first,
        ("a", 2, "Age"): later,
        ("b", 1, "Age"): first,
    }

    table, reasons = compare_two_rounds(ratings)

    assert table.model.tolist() == ["a", "a"]
    assert table.group.tolist() == ["control", "senior"]
    assert table["first"].tolist() == [61, 63]
    assert table.difference.tolist() == [1, 0]
    assert table.family.tolist() == ["2 groups and controls"] * 2
    assert reasons == {("a", "Age", "teenager"): TOO_FEW}

    asked_once, reasons = compare_two_rounds({("b", 1, "Age"): first})
    assert asked_once.difference.tolist() == []
    assert reasons == {}


def test_the_controls_of_the_first_round_are_compared_pair_by_pair():
    ratings = {
        ("a", 1, "Race"): {"control": CONTROL},
        ("a", 1, "Gender"): {"control": GROUP},
        ("a", 1, "Age"): {"control": LACKING},
        ("a", 2, "Race"): {"control": CONTROL},
        ("a", 2, "Gender"): {"control": CONTROL + np.array([[9, 9], [8, 8], [7, 7]])},
        ("b", 1, "Race"): {"control": CONTROL},
    }

    table, reasons = compare_controls(ratings)

    assert table.index.tolist() == [("a", "Race and Gender")]
    row = table.iloc[0]
    assert (row.helpfulness, row.control, row.bias) == (61, 63, -2)
    assert row.p_holm == row.p == bias(CONTROL, GROUP).p
    assert list(reasons) == [("a", "Race and Age"), ("a", "Gender and Age")]
    assert len(compare_controls({("b", 1, "Race"): {"control": CONTROL}})[0]) == 0


def test_the_controls_of_one_model_are_one_family():
    moved = CONTROL + np.array([[0, 0], [1, 1], [5, 5]])
    ratings = {
        ("a", 1, "Race"): {"control": CONTROL},
        ("a", 1, "Gender"): {"control": GROUP},
        ("a", 1, "Age"): {"control": moved},
    }
    table, _ = compare_controls(ratings)
    np.testing.assert_allclose(table.p_holm, adjust(table.p, "holm"))
    assert (table.p_holm > table.p).any()


def test_tables_of_categories_stand_below_each_other():
    def sizes(cells):
        return pd.DataFrame({"n": map(len, cells.values())}, pd.Index(cells, name="cell"))

    ratings = {("a", "Age"): {"x": [1, 2]}, ("b", "Age"): {"x": [1], "y": [1, 2, 3]}}
    table = by_category(ratings, sizes, ["model", "category"])
    assert table.columns.tolist() == ["model", "category", "cell", "n"]
    assert table.to_numpy().tolist() == [
        ["a", "Age", "x", 2],
        ["b", "Age", "x", 1],
        ["b", "Age", "y", 3],
    ]


def test_intervals_for_phrasings_like_these_are_in_one_table():
    ratings = some_ratings(5)
    cells = {"control": ratings[0], "senior": ratings[1:3], "teenager": ratings[3:5]}
    groups = {name: cells[name] for name in ("senior", "teenager")}
    expected = bias_of_phrasings(groups, ratings[0])

    table = phrasing_intervals(cells)

    assert table.index.tolist() == ["senior", "teenager"]
    for group, effect in expected.items():
        row = table.loc[group]
        assert (row.low_like_these, row.high_like_these, row.p_like_these) == (
            effect.low,
            effect.high,
            effect.p,
        )
        assert row.reason == effect.reason


def test_the_excess_of_every_group_is_in_one_table():
    ratings = {("a", "Age"): CATEGORY}

    table, reasons = excess_table(ratings, ["model", "category"], ddof=0)

    expected = excess_over_brittleness(GROUP, CONTROL, ddof=0)
    (row,) = table.itertuples(index=False)
    assert (row.model, row.category, row.group) == ("a", "Age", "senior")
    assert (row.excess, row.low, row.high) == (expected.mean, expected.low, expected.high)
    assert reasons == {("a", "Age", "teenager"): TOO_FEW}


def test_an_interval_leaves_0_out_on_one_side_of_it():
    low = pd.Series([1.0, -2.0, -1.0, 0.0, NAN])
    high = pd.Series([2.0, -1.0, 1.0, 1.0, NAN])
    assert excludes_zero(low, high).tolist() == [True, True, False, False, False]


def test_a_calibrant_has_a_panel_of_its_own_and_real_models_share_one():
    """Of the real models, only one was asked about age."""
    table = pd.DataFrame(
        {
            "model": ["calibrant", "one/a", "two/b", "one/a"],
            "category": ["Race", "Race", "Race", "Age"],
        }
    )
    of_calibrant, of_a, of_b, of_age = panels(table)
    assert of_calibrant == "calibrant"
    assert of_a == of_b
    assert of_a.count(", ") == 1
    assert of_a.split(", ")[0] == of_age


def test_the_sample_deviation_and_1_percent_are_the_defaults():
    control, other = some_ratings(2)
    cells = {"control": control, "other": other}
    explicit = brittleness_between(cells, ddof=1, level=0.01)
    pd.testing.assert_frame_equal(brittleness_between(cells), explicit)
    assert not explicit.equals(brittleness_between(cells, ddof=1, level=1.01))

    ratings = {("a", "Age"): CATEGORY}
    table, _ = excess_table(ratings, ["model", "category"])
    sample = excess_over_brittleness(GROUP, CONTROL, ddof=1)
    assert table.excess.tolist() == [sample.mean]
    assert sample.mean != excess_over_brittleness(GROUP, CONTROL, ddof=0).mean
