"""From ratings to matrices and the gap: by hand on 2 x 2 x 3, against loops, NumPy and SciPy."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.formula.api import ols

from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.paired import cell_pvalues
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.empathy_gap.statistics import (
    RELEASED,
    cell_means,
    cells,
    effects_by_kind,
    empathy_gap,
    exclude,
    gap,
    gap_like_these,
    gap_matrix,
    gap_of_these,
    matrix_of_groups,
    relationship_sd,
    same_group,
    zscore,
)

NAN = np.nan
VALUES = np.array(
    [
        [[10, 20, 30], [40, NAN, 60]],
        [[NAN, 80, 90], [100, NAN, NAN]],
    ]
)


@pytest.mark.parametrize(("rule", "keeps"), [("listwise", np.all), ("pairwise", np.any)])
@settings(max_examples=60)
@given(
    values=hnp.arrays(
        float,
        hnp.array_shapes(min_dims=3, max_dims=3, max_side=4),
        elements=st.one_of(st.just(NAN), st.integers(0, 100)),
    )
)
def test_exclusion_equals_a_loop_over_events(rule, keeps, values):
    events = []
    for event in range(values.shape[2]):
        is_rated = ~np.isnan(values[:, :, event])
        if keeps(is_rated):
            events.append(event)

    if events:
        np.testing.assert_array_equal(exclude(values, rule), values[:, :, events])
    else:
        with pytest.raises(ValueError, match="event"):
            exclude(values, rule)


def test_what_leaves_no_event_is_an_error():
    with pytest.raises(ValueError, match="all 3 events lack an answer: EXCLUSION=pairw"):
        exclude(VALUES)


def test_a_cell_without_any_rating_is_an_error():
    values = VALUES.copy()
    values[0, 1] = NAN

    with pytest.raises(ValueError, match=r"1 of 4 cells have no rating of any event.* CATEGORIES$"):
        exclude(values)


@pytest.mark.parametrize("rule", ["listwise", "pairwise"])
def test_ratings_that_are_all_missing_are_an_error(rule):
    with pytest.raises(ValueError, match="none of the 3 events has a rating in any cell"):
        exclude(VALUES * NAN, rule)


def test_cell_means_by_hand():
    np.testing.assert_array_equal(cell_means(VALUES), [[20, 50], [85, 100]])


def test_a_cell_without_a_rating_has_no_mean():
    with pytest.raises(ValueError, match="perceiver 1 and experiencer 0 is empty"):
        cell_means(VALUES[:, :, :1])


def test_cell_means_are_rounded_as_released():
    """200 events of mean 2.675, which binary floats hold just below: 2.67 as released."""
    ratings = np.repeat([2.0, 3.0], [65, 135])
    values = ratings.reshape(1, 1, 200)

    assert cell_means(values) == 2.675
    assert cell_means(values, decimals=2) == 2.67
    assert cell_means(values, decimals=1) == 2.7


@settings(max_examples=60)
@given(hnp.arrays(float, (3, 4), elements=st.integers(0, 10_000).map(lambda n: n / 100)))
def test_zscore_equals_the_formula(matrix):
    assume(np.ptp(matrix) > 0)
    expected = (matrix - np.mean(matrix)) / np.std(matrix)
    np.testing.assert_allclose(zscore(matrix), expected, atol=1e-9)


def test_cells_by_hand():
    """Mean 4, squares 9 + 1 + 1 + 9 over 4 cells: standard deviation sqrt(5)."""
    one_event = np.array([[[1.0], [3.0]], [[5.0], [7.0]]])

    table = cells(one_event, ["x", "y"])

    assert table.perceiver.tolist() == ["x", "x", "y", "y"]
    assert table.experiencer.tolist() == ["x", "y", "x", "y"]
    assert table["mean"].tolist() == [1, 3, 5, 7]
    np.testing.assert_allclose(table.z * np.sqrt(5), [-3, -1, 1, 3])


def test_cells_that_are_all_alike_have_z_scores_of_0():
    table = cells(np.full((2, 2, 3), 0.1), ["x", "y"])
    assert table.z.tolist() == [0, 0, 0, 0]


def test_means_of_cells_are_rounded_as_released():
    row = [[0, 0, 1], [0, 1, 1]]
    values = np.array([row, row], dtype=float)

    table = cells(values, ["x", "y"])

    assert table.mean_released.tolist() == [0.33, 0.67, 0.33, 0.67]


@pytest.mark.parametrize(
    "matrix",
    [
        [[5.1, 5.1]],
        [[0.3, 0.1 + 0.2], [0.3, 0.3]],
        [[0, 0], [0, 0]],
    ],
)
def test_a_matrix_without_zscores_is_an_error(matrix):
    with pytest.raises(ValueError, match=f"found {matrix[0][0]} in all of them"):
        zscore(matrix)


def block(seed=1, n=4, events=8):
    """Ratings of `n` identities; only "a person", at 0, lacks event 0; a named pair lacks 1."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 101, (n, n, events)).astype(float)
    values[0, 2, 0] = NAN
    values[1, 3, 1] = NAN
    return values


def test_gap_matrix_keeps_the_unspecified_identity_in_the_zscore():
    values = block()
    listwise_means = values[:, :, 2:].mean(axis=2)
    pairwise_means = np.nanmean(values, axis=2)

    listwise = gap_matrix(values)
    pairwise = gap_matrix(values, "pairwise")

    z = stats.zscore(listwise_means, axis=None)
    np.testing.assert_allclose(listwise, z[1:, 1:])
    z = stats.zscore(pairwise_means, axis=None)
    np.testing.assert_allclose(pairwise, z[1:, 1:])


def test_the_released_way_of_gap_matrix():
    """Named pairs lack event 1 alone; means of two decimals; the two steps part from it."""
    values = block()
    kept = np.delete(values[1:, 1:], 1, axis=2)
    means = np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        ratings = kept[i, j].tolist()
        means[i, j] = round(sum(ratings) / len(ratings), 2)
    expected = (means - np.mean(means)) / np.std(means)

    released = gap_matrix(values, **RELEASED)
    paper = gap_matrix(values)
    unrounded = gap_matrix(values, separate=True)
    joint = gap_matrix(values, decimals=2)

    np.testing.assert_allclose(released, expected, rtol=1e-12)
    np.testing.assert_allclose(joint, paper, atol=1e-3)
    assert 0 < abs(unrounded - released).max() < 1e-3
    assert abs(joint - paper).max() > 0
    assert abs(released - paper).max() > 0.1


# By hand: in-group cells 1, 2, 3, 4, 9 with mean 3.8; out-group 5, 6, 7, 8 with mean 6.5.
def test_gap_by_hand():
    matrix = [
        [1, 2, 5],
        [3, 4, 6],
        [7, 8, 9],
    ]
    same = same_group(["a", "a", "b"])

    assert empathy_gap(matrix, same) == pytest.approx(3.8 - 6.5)


def test_a_missing_cell_has_no_gap():
    with pytest.raises(ValueError, match="nan in row 0, column 1"):
        empathy_gap([[1, NAN], [2, 3]], np.eye(2, dtype=bool))


def test_same_group_by_hand():
    expected = [
        [1, 0, 1],
        [0, 1, 0],
        [1, 0, 1],
    ]

    np.testing.assert_array_equal(same_group(["x", "y", "x"]), expected)


def test_same_group_of_race_has_the_86_cells_of_the_paper():
    groups = stimuli.identities("Race or Ethnicity").group[1:]

    same = same_group(groups)

    assert same.sum() == 86
    np.testing.assert_array_equal(same, same.T)


def test_whole_groups_are_permuted_where_a_group_has_several_names():
    """Names of a group that behave alike: three groups have 6 orders, however many their names."""
    rng = np.random.default_rng(5)
    same = same_group(list("aaabbbbcc"))
    group_of_name = [0, 0, 0, 1, 1, 1, 1, 2, 2]
    of_groups = rng.normal(0, 1, (3, 3))
    of_names = of_groups[np.ix_(group_of_name, group_of_name)]
    z = np.pad(of_names, (1, 0))  # with "a person"
    values = z[..., None] + rng.normal(0, 1e-3, (*z.shape, 8))

    gaps = []
    for order in permutations(range(3)):
        permuted = of_groups[:, list(order)]
        inside = np.trace(permuted)
        outside = permuted.sum() - inside
        gaps.append(inside / 3 - outside / 6)
    expected = np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-9)

    row = gap(values, same, n_resamples=999, rng=rng)

    assert row["p_groups"] == pytest.approx(expected)
    assert row["p_groups_least"] == pytest.approx(1 / 6)
    assert row["p_least"] == 1 / 1000


def test_means_by_group_by_hand():
    """Of two names of a and one of b; groups come in the order of np.unique."""
    matrix = np.array(
        [
            [1, 2, 3],
            [4, 5, 6],
            [7, 8, 9],
        ]
    )

    means = matrix_of_groups(matrix, same_group(["a", "a", "b"]))

    off_diagonal = means[~np.eye(2, dtype=bool)]
    assert sorted(means.diagonal()) == [3, 9]
    assert sorted(off_diagonal) == [4.5, 7.5]


SAME_OF_SEVEN = same_group(list("aaaabbc"))
ONE_NAME = np.eye(7, dtype=bool)
TWO_NAMES = SAME_OF_SEVEN & ~ONE_NAME


def exact_ratings(rng):
    """Ratings of seven names: one name counts 3, two names of a group -2, beside the levels."""
    perceivers = 10 * rng.normal(size=(7, 1, 6))
    experiencers = 10 * rng.normal(size=(1, 7, 6))
    kinds = 3.0 * ONE_NAME - 2.0 * TWO_NAMES
    return perceivers + experiencers + kinds[..., None]


def test_of_exact_ratings_the_effects_of_one_name_and_two_names_come_out():
    tests = effects_by_kind(exact_ratings(np.random.default_rng(5)), SAME_OF_SEVEN)

    assert list(tests) == ["one name", "two names", "one name beyond two names"]
    assert tests["one name"].difference == pytest.approx(3)
    assert tests["two names"].difference == pytest.approx(-2)
    assert tests["one name beyond two names"].difference == pytest.approx(5)


def test_one_name_and_two_names_of_a_group_against_statsmodels():
    """Event by event, without the event that has no rating of most pairs."""
    rng = np.random.default_rng(5)
    values = exact_ratings(rng) + rng.normal(size=(7, 7, 6))
    values[0, 1, 0] = NAN
    values[:, :6, 1] = NAN
    perceiver, experiencer = np.indices((7, 7))
    cells_of_event = pd.DataFrame(
        {
            "i": perceiver.ravel(),
            "j": experiencer.ravel(),
            "one": ONE_NAME.ravel().astype(int),
            "two": TWO_NAMES.ravel().astype(int),
        }
    )
    one_name = []
    two_names = []
    for event in (0, 2, 3, 4, 5):
        table = cells_of_event.assign(x=values[..., event].ravel())
        weights = ols("x ~ one + two + C(i) + C(j)", table).fit().params
        one_name.append(weights["one"])
        two_names.append(weights["two"])
    expected = {
        "one name": one_name,
        "two names": two_names,
        "one name beyond two names": np.subtract(one_name, two_names),
    }

    tests = effects_by_kind(values, SAME_OF_SEVEN)

    for name, test in tests.items():
        t_test = stats.ttest_1samp(expected[name], 0)
        assert test.difference == pytest.approx(np.mean(expected[name]))
        assert test.pvalue == pytest.approx(t_test.pvalue)
        assert test.n == 5


def test_a_gap_for_groups_like_these():
    """Clusters share 9 points and own groups 4 more; each pair of groups has noise of its own."""
    clusters = stimuli.clusters("Nationality")
    groups = stimuli.identities("Nationality").group[1:].to_list()
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(21, 21))
    matrix = noise + 9 * same_group(clusters) + 4 * np.eye(21)
    values = matrix[..., None] + rng.normal(size=(21, 21, 6))

    effects = gap_like_these(values, groups, clusters)
    (of_these,) = effects_by_kind(values, np.eye(21, dtype=bool)).values()

    assert list(effects) == ["own group", "own group, by group", "beyond clusters"]
    own_group = effects["own group"]
    assert own_group.estimate == pytest.approx(of_these.difference)
    assert own_group.estimate == pytest.approx(effects["own group, by group"].estimate)
    assert own_group.low > 9
    assert effects["beyond clusters"].low < 4
    assert 4 < effects["beyond clusters"].high < 6


def test_a_gap_for_names_like_these():
    groups = stimuli.identities("Race or Ethnicity").group[1:].to_list()
    same = same_group(groups)
    rng = np.random.default_rng(6)
    values = 3.0 * same[..., None] + rng.normal(size=(18, 18, 5))
    values[0, 7, 0] = NAN

    effects = gap_like_these(values, groups)

    own_group = effects["own group"]
    one_name = effects["one name"]
    two_names = effects["two names"]
    beyond = effects["one name beyond two names"]
    assert list(effects) == [
        "own group",
        "own group, by group",
        "one name",
        "two names",
        "one name beyond two names",
    ]
    assert own_group.low < 3 < own_group.high
    assert two_names.low < 3 < two_names.high
    assert beyond.low < 0 < beyond.high
    assert beyond.estimate == pytest.approx(one_name.estimate - two_names.estimate)

    means = matrix_of_groups(np.nanmean(values, axis=2), same)
    level = (np.trace(means) - means.sum() / 4) / 3
    assert own_group.estimate == pytest.approx(level, abs=0.02)


def test_races_have_no_clusters():
    assert stimuli.clusters("Race or Ethnicity") is None


def three_names(rng):
    """Ratings of three names, whose own cells are 2 points up."""
    return 2.0 * np.eye(3)[..., None] + rng.normal(size=(3, 3, 6))


def test_a_gap_for_these_names_is_a_t_test_over_events():
    """Each event's effect: what own cells have beyond both levels, of three groups by hand."""
    values = three_names(np.random.default_rng(7))
    by_event = []
    for event in range(6):
        means = values[:, :, event]
        # With the means B of G groups: (trace(B) - sum(B) / G) / (G - 1).
        by_event.append((np.trace(means) - means.sum() / 3) / 2)
    expected = stats.ttest_1samp(by_event, 0)

    test = gap_of_these(values, ["a", "b", "c"])
    like_these = gap_like_these(values, ["a", "b", "c"])

    assert test.difference == pytest.approx(np.mean(by_event))
    assert test.pvalue == pytest.approx(expected.pvalue)
    assert test.difference == pytest.approx(like_these["own group"].estimate)


def test_an_event_without_all_pairs_is_in_no_gap_of_these_names():
    values = three_names(np.random.default_rng(7))
    values[0, 1, 0] = NAN
    no_ratings = np.full((3, 3, 2), NAN)

    assert gap_of_these(values, ["a", "b", "c"]).n == 5
    with pytest.raises(ValueError, match="no event has ratings of all pairs"):
        gap_of_these(no_ratings, ["a", "b", "c"])


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((4, 4)),
        np.random.default_rng(2).normal(size=(4, 4)) + 4 * np.eye(4),
    ],
)
def test_events_that_are_all_answered_alike_are_no_sample(matrix):
    same = same_group(list("aabb"))
    values = np.repeat(matrix[..., None], 12, axis=2)
    of_one_event = effects_by_kind(values[..., :1], same)

    for kind, test in effects_by_kind(values, same).items():
        numbers = [test.statistic, test.pvalue, test.low, test.high, test.least]
        assert np.isnan(numbers).all()
        assert test.difference == pytest.approx(of_one_event[kind].difference, abs=1e-12)
        assert test.n == 12

    values[0, 0, 0] += 1
    assert effects_by_kind(values, same)["one name"].pvalue > 0


def test_where_a_group_is_a_name_one_name_is_the_gap_in_points():
    values = exclude(block())[1:, 1:]
    same = np.eye(3, dtype=bool)

    (test,) = effects_by_kind(values, same).values()

    gap_in_points = empathy_gap(values.mean(axis=2), same)
    assert test.difference == pytest.approx(gap_in_points)


@pytest.mark.parametrize(("exclusion", "events"), [("listwise", 6), ("pairwise", 8)])
def test_a_row_of_table_2_is_its_parts(exclusion, events):
    values = block()
    same = np.eye(3, dtype=bool)
    rng = np.random.default_rng(3)
    paper = gap_matrix(values, exclusion)
    released = gap_matrix(values, exclusion, **RELEASED)
    test = permutation_test(paper, same, 500, rng)
    interval = bootstrap_interval(exclude(values, exclusion), same, rng=rng)
    released_test = permutation_test(released, same, 500, rng)
    null_low, null_high = test.null_interval
    released_low, released_high = released_test.null_interval
    spread_low, spread_high = released_test.null_spread()

    row = gap(values, same, exclusion, 500, np.random.default_rng(3))

    assert row == {
        "flat": False,
        "delta": pytest.approx(empathy_gap(paper, same)),
        "null_low": null_low,
        "null_high": null_high,
        "low": interval.low,
        "high": interval.high,
        "p_two_sided": test.pvalue,
        "p_least": 1 / 6,
        "p_groups": test.pvalue,  # each name is a group
        "p_groups_least": 1 / 6,
        "delta_released": pytest.approx(empathy_gap(released, same)),
        "null_low_released": released_low,
        "null_high_released": released_high,
        "null_low_spread": spread_low,
        "null_high_spread": spread_high,
        "events": events,
    }
    assert row["delta"] == pytest.approx(interval.statistic)


def test_cells_that_do_not_differ_have_no_gap():
    values = np.full((4, 4, 5), 50.0)
    values[1, 2, 0] = NAN

    row = gap(values, np.eye(3, dtype=bool))

    assert row.pop("flat") is True
    assert row.pop("events") == 4
    assert len(row) == 14
    assert np.isnan(list(row.values())).all()


def test_cells_that_only_a_person_differs_in_have_no_gap():
    """Z-scores of all others are one number then, up to rounding: no permutation changes it."""
    values = np.full((4, 4, 5), 100.0)
    values[0] = 90.0

    row = gap(values, np.eye(3, dtype=bool))

    assert row["flat"] is True
    assert row["events"] == 5
    assert np.isnan(row["delta"])
    assert np.isnan(row["p_two_sided"])
    assert np.isnan(row["delta_released"])


def test_the_relationship_sd_is_that_of_simulated_pairs():
    """Levels of perceivers and targets, and own groups, change nothing."""
    rng = np.random.default_rng(5)

    variances = []
    for _ in range(300):
        pairs = rng.normal(0, 2, (6, 6))
        perceivers = rng.normal(0, 9, (6, 1))
        targets = rng.normal(0, 9, (1, 6))
        matrix = pairs + perceivers + targets + 20 * np.eye(6)
        two_events = np.repeat(matrix[..., None], 2, axis=2)
        sd = relationship_sd(two_events, list("abcdef"))
        variances.append(sd**2)

    assert np.mean(variances) == pytest.approx(4, abs=0.3)  # four standard errors


# ---- tables over the blocks of a run -------------------------------------------------------------


def test_lost_events_by_hand():
    """Each of three events lacks a rating; four of the twelve ratings are missing."""
    listwise = statistics.lost_events(VALUES)
    pairwise = statistics.lost_events(VALUES, "pairwise")

    assert listwise == {
        "events": 3,
        "events_lost": 3,
        "percent_of_events": 100,
        "percent_of_answers": pytest.approx(100 * 4 / 12),
    }
    assert pairwise["events_lost"] == 0


def test_the_least_rated_pairs_by_hand():
    pairs = statistics.least_rated_pairs(VALUES, ["a", "b"], n=2)

    assert pairs.values.tolist() == [
        ["b", "b", pytest.approx(200 / 3)],
        ["a", "b", pytest.approx(100 / 3)],
    ]


def test_no_pair_is_least_rated_where_all_are_rated():
    pairs = statistics.least_rated_pairs(np.ones((2, 2, 3)), ["a", "b"])

    assert pairs.empty


def test_cell_summary_by_hand():
    """The released numbers are twice the others."""
    rows = pd.DataFrame(
        {
            "mean": [1.0, 3.0, 5.0],
            "z": [-1.0, 1.0, 0.0],
            "mean_released": [2.0, 6.0, 10.0],
            "z_released": [-2.0, 2.0, 0.0],
            "block": ["a", "a", "b"],
        }
    )

    table = statistics.cell_summary(rows, ["block"])

    assert table.loc["a"].tolist() == [2, 1, -1, 1, 4, 2, -2, 2]
    assert table.columns.tolist()[:5] == ["mean", "std", "z_min", "z_max", "mean_released"]


def row_of_table_2(**columns):
    """A row of Table 2: its gap is significant unless these columns say otherwise."""
    significant = {
        "flat": False,
        "low": 0.1,
        "high": 0.5,
        "p_holm": 0.01,
        "p_holm_least": 0.001,
        "p_groups_holm": 0.01,
        "p_groups_holm_least": 0.001,
    }
    return pd.DataFrame([significant | columns])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, "significant"),
        ({"low": -0.5, "high": -0.1}, "significant"),
        ({"low": -0.1}, "not beyond its events"),
        (
            {"p_groups_holm": 0.2, "p_groups_holm_least": 0.05},
            "could not have been beyond its groups",
        ),
        ({"p_groups_holm": 0.2}, "not beyond its groups"),
        ({"p_holm": 0.2}, "not significant"),
        ({"p_holm": 0.2, "p_holm_least": 0.06}, "could not have been significant"),
        ({"flat": True, "p_holm": NAN, "low": NAN, "high": NAN}, "no cell differs"),
    ],
)
def test_the_finding_of_a_block(columns, expected):
    row = row_of_table_2(**columns)

    assert statistics.finding(row).tolist() == [expected]


def test_corrections_leave_out_flat_blocks():
    """Two of three blocks are tested: the smaller p is doubled."""
    table = pd.DataFrame(
        {
            "model": "m",
            "setting": "s",
            "flat": [False, True, False],
            "p_two_sided": [0.02, NAN, 0.04],
            "p_least": 0.01,
            "p_groups": [0.03, NAN, 0.01],
            "p_groups_least": 0.01,
        }
    )

    corrected = statistics.with_corrections(table)

    assert corrected.p_holm.tolist() == pytest.approx([0.04, NAN, 0.04], nan_ok=True)
    assert corrected.p_groups_holm.tolist() == pytest.approx([0.03, NAN, 0.02], nan_ok=True)
    assert corrected.p_holm_least.tolist() == pytest.approx([0.02, NAN, 0.02], nan_ok=True)
    assert corrected.holm_tests.tolist() == pytest.approx([2, NAN, 2], nan_ok=True)


def test_delta_is_the_gap_of_ratings_that_differ():
    values = np.random.default_rng(0).normal(50, 5, (4, 4, 3))
    same = np.eye(3, dtype=bool)

    delta = statistics.delta_or_nan(values, same, "listwise")

    assert delta == empathy_gap(gap_matrix(values), same)


def test_delta_is_nan_where_no_cell_differs_and_where_one_has_no_rating():
    same = np.eye(3, dtype=bool)
    flat = np.ones((4, 4, 3))
    without_a_cell = np.random.default_rng(0).normal(50, 5, (4, 4, 3))
    without_a_cell[1, 1] = NAN

    assert np.isnan(statistics.delta_or_nan(flat, same, "listwise"))
    assert np.isnan(statistics.delta_or_nan(without_a_cell, same, "pairwise"))


@pytest.fixture
def two_names():
    """Each name rates itself ten points above the other, in every event but for noise."""
    noise = np.random.default_rng(1).normal(0, 0.1, (3, 3, 12))
    return 50 + 10 * np.eye(3)[..., None] + noise


def test_a_cell_is_shown_by_each_correction(two_names):
    shown = statistics.cells_to_show_by_rule(cell_pvalues(two_names))

    assert len(shown) == 9
    assert shown.columns.tolist() == ["shown_released", "shown_bonferroni", "shown_holm"]
    of_names = shown.shown_holm.to_numpy().reshape(3, 3)[1:, 1:]
    is_other = ~np.eye(2, dtype=bool)
    assert of_names[is_other].all()


def test_shares_of_shown_cells_leave_out_a_person_and_the_diagonal(two_names):
    shares = statistics.shares_shown(two_names, cell_pvalues(two_names))

    assert shares == {"released": 1, "bonferroni": 1, "holm": 1, "sign": 1, "testable": 1}


def test_no_sign_test_of_two_events_could_show_a_cell(two_names):
    """Its p is 0.5 at least."""
    two_events = two_names[..., :2]

    shares = statistics.shares_shown(two_events, cell_pvalues(two_events))

    assert shares["testable"] == 0
    assert shares["sign"] == 0


def test_a_cell_could_be_shown_by_the_events_that_it_has(two_names):
    """Holm's first limit is 0.05 / 6, for six cells: 1/128 is below, of 8 events; 1/32 is not."""
    values = two_names[..., :6].copy()
    assert statistics.shares_shown(values, cell_pvalues(values))["testable"] == 0

    values = two_names[..., :8].copy()
    assert statistics.shares_shown(values, cell_pvalues(values))["testable"] == 1

    values[1, 2, :3] = np.nan  # five events are left to this cell
    assert statistics.shares_shown(values, cell_pvalues(values))["testable"] == 0.5


@pytest.fixture
def named():
    """Z-scores of two names, x and y; those of "a person" are 9, and another model is flat."""
    names = ["a person", "x", "y"]
    index = pd.MultiIndex.from_product([names, names], names=["perceiver", "experiencer"])
    z = [9, 9, 9, 9, 1, 2, 9, 3, -1.0]
    cells_of_m = pd.DataFrame({"z": z}, index).reset_index()
    cells_of_m = cells_of_m.assign(model="m", category="Religion")
    flat = cells_of_m.assign(z=0.0, model="flat")
    return statistics.named_cells(pd.concat([cells_of_m, flat]))


def test_named_cells_leave_out_a_person_and_flat_blocks(named):
    assert set(named.model) == {"m"}
    assert len(named) == 4


def test_z_by_identity_by_hand(named):
    table = statistics.z_by_identity(named)

    assert table["name"].tolist() == ["x", "y", "x", "y"]
    assert table["mean"].tolist() == [1.5, 1, 2, 0.5]  # as perceivers, then as experiencers
    assert table.sd.tolist() == pytest.approx([0.5**0.5, 8**0.5, 2**0.5, 4.5**0.5])


def test_perceiver_and_experiencer_stand_side_by_side(named):
    table = statistics.means_by_side(statistics.z_by_identity(named))

    columns = ["model", "category", "name", "perceiver", "experiencer"]
    assert table[columns].values.tolist() == [
        ["m", "Religion", "x", 1.5, 2],
        ["m", "Religion", "y", 1, 0.5],
    ]


def test_the_lowest_pairs_are_those_of_each_category(named):
    """Of m the pairs (y, y) of -1 and (x, x) of 1; of another model the same."""
    cells = pd.concat([named, named.assign(model="a")]).assign(mean=5.0)

    lowest = statistics.lowest_pairs(cells, 2)

    assert lowest.model.tolist() == ["a", "a", "m", "m"]
    assert lowest.z.tolist() == [-1, 1, -1, 1]
    assert lowest.perceiver.tolist() == ["y", "x", "y", "x"]


def test_the_own_cell_farthest_from_its_row_is_found(named):
    """x rates x 0.5 below the mean of its row, y rates y 2 below its own."""
    cells = named.assign(mean=named.z)

    farthest = cells.loc[statistics.farthest_own_cell(cells)]

    assert farthest[["perceiver", "experiencer"]].tolist() == ["y", "y"]
    assert statistics.farthest_own_cell(cells.head(0)) is None


def test_who_stands_out_by_hand(named):
    extremes = statistics.extremes(statistics.z_by_identity(named))

    perceivers = extremes.loc[("m", "perceiver", "Religion")]
    assert perceivers.tolist() == ["x", "y", 1.5, 1, "x"]


def test_z_of_a_group_is_that_of_all_its_names(named):
    group_of = {"x": "one", "y": "one"}

    table = statistics.z_by_identity(named, {"Religion": group_of})

    assert table[["name", "mean"]].values.tolist() == [["one", 1.25], ["one", 1.25]]


def test_nobody_stands_out_of_no_cells(named):
    no_cells = named.head(0)

    assert statistics.z_by_identity(no_cells).empty


def noisy(own=3.0, seed=2):
    """Eight events of five identities, "a person" first, with `own` points for the own group."""
    noise = np.random.default_rng(seed).normal(0, 0.5, (5, 5, 8))
    return 50 + own * np.eye(5)[..., None] + noise


def test_a_gap_in_points_is_that_of_the_cell_means():
    values = noisy()
    named = values[1:, 1:]
    same = np.eye(4, dtype=bool)
    by_event = named[same].mean(axis=0) - named[~same].mean(axis=0)
    interval = stats.ttest_1samp(by_event, 0).confidence_interval()
    means = named.mean(axis=2)

    row = statistics.gap_in_points(values, same, "listwise", 99, np.random.default_rng(4))

    assert row["points"] == pytest.approx(means[same].mean() - means[~same].mean())
    assert row["low"] == pytest.approx(interval.low)
    assert row["high"] == pytest.approx(interval.high)


def test_a_gap_in_points_has_the_delta_and_p_of_table_2():
    values = noisy()
    same = np.eye(4, dtype=bool)

    row = statistics.gap_in_points(values, same, "listwise", 99, np.random.default_rng(4))

    of_table_2 = gap(values, same, "listwise", 99, np.random.default_rng(4))
    for name in ("delta", "p_two_sided", "events"):
        assert row[name] == of_table_2[name]


def test_two_readings_differ_by_the_difference_of_their_gaps_in_each_event():
    first = noisy(own=3, seed=5)
    second = noisy(own=1, seed=6)
    second[2, 2, 0] = NAN  # so the first event counts in neither
    same = np.eye(4, dtype=bool)

    row = statistics.difference_of_gaps(first, second, same, "listwise")

    gap_of_event = []
    for values in (first[1:, 1:, 1:], second[1:, 1:, 1:]):
        gap_of_event.append(values[same].mean(axis=0) - values[~same].mean(axis=0))
    expected = stats.ttest_rel(*gap_of_event)
    interval = expected.confidence_interval()
    assert row["difference"] == pytest.approx(np.mean(gap_of_event[0] - gap_of_event[1]))
    assert row["p"] == pytest.approx(expected.pvalue)
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    nothing = np.full_like(first, NAN)
    assert statistics.difference_of_gaps(first, nothing, same, "listwise") == {}


def test_a_gap_in_points_of_no_ratings_has_no_events():
    nothing = np.full((5, 5, 8), NAN)
    same = np.eye(4, dtype=bool)

    row = statistics.gap_in_points(nothing, same, "listwise", 9, None)

    assert row == {"events": 0}


def test_scopes_have_these_groups_and_groups_like_these():
    named = noisy()[1:, 1:]
    groups = ["a", "b", "c", "d"]
    of_these = gap_of_these(named, groups)
    like_these = gap_like_these(named, groups)

    row = statistics.scopes(named, groups)

    assert row["estimate"] == of_these.difference
    assert row["p"] == of_these.pvalue
    assert row["low_like_these"] == like_these["own group"].low
    assert row["p_like_these"] == like_these["own group"].p
    assert row["by_group_p"] == like_these["own group, by group"].p
    assert "beyond_clusters" not in row


def test_scopes_of_clusters_say_what_is_beyond_them():
    named = noisy()[1:, 1:]

    row = statistics.scopes(named, ["a", "b", "c", "d"], ["x", "x", "y", "y"])

    assert "beyond_clusters" in row


def test_settings_like_these_are_a_sample():
    groups = ["a", "b", "c", "d"]
    ratings = [noisy(own=2, seed=0), noisy(own=3, seed=1), noisy(own=4, seed=2)]
    estimates = []
    for values in ratings:
        matrix = gap_matrix(values)[..., None]
        estimates.append(gap_like_these(matrix, groups)["own group"].estimate)

    row = statistics.over_settings(ratings, groups, "listwise")

    assert row["settings"] == 3
    assert row["least"] == min(estimates)
    assert row["greatest"] == max(estimates)
    assert row["estimate"] == pytest.approx(np.mean(estimates))


def test_one_setting_is_no_sample():
    row = statistics.over_settings([noisy()], ["a", "b", "c", "d"], "listwise")

    assert row == {"settings": 1, "reason": "cannot be told: one setting"}


def test_settings_in_which_no_cell_differs_say_so():
    flat = np.ones((5, 5, 8))

    row = statistics.over_settings([flat, flat], ["a", "b", "c", "d"], "listwise")

    assert row["reason"].startswith("z-scores need cells that differ")


def test_a_block_is_common_where_all_models_have_a_gap():
    gaps = pd.DataFrame(
        [
            ("a", "s", "x", 1.0),
            ("a", "s", "y", 2.0),
            ("b", "s", "x", 3.0),
            ("b", "s", "y", NAN),
        ],
        columns=["model", "setting", "category", "delta"],
    )

    table = statistics.shared_blocks(gaps)

    assert table.delta.tolist() == [1, 2, 3]
    assert table.common.tolist() == [True, False, True]


def test_the_mean_gap_of_a_model_is_that_of_all_its_blocks_and_of_common_ones():
    gaps = pd.DataFrame(
        {
            "model": ["m", "m", "a"],
            "delta": [1.0, 4.0, -2.0],
            "common": [True, False, True],
        }
    )

    means = statistics.mean_gaps(gaps)

    assert means.index.tolist() == ["m", "a"]
    assert means.blocks.tolist() == [2, 1]
    assert means["mean"].tolist() == [2.5, -2]
    assert means.mean_common.tolist() == [1, -2]
    assert means["max"].tolist() == [4, -2]


def test_the_root_of_the_mean_square_by_hand():
    assert statistics.root_mean_square(pd.Series([3.0, -4.0, np.nan])) == pytest.approx(12.5**0.5)


def test_the_bands_of_table_2_by_hand():
    delta = pd.Series([1.01, 1.0, 0.5, 0.0, -0.01, np.nan])

    assert statistics.band(delta).tolist() == [
        "above_1",
        "0_to_1",
        "0_to_1",
        "0_to_1",
        "negative",
        "",
    ]


def test_three_pairs_are_returned_unless_told_otherwise():
    values = np.ones((2, 2, 4))
    # The pairs lack 4, 3, 2 and 1 of four ratings.
    for number, (perceiver, experiencer) in enumerate(np.ndindex(2, 2)):
        values[perceiver, experiencer, number:] = np.nan
    least_rated = statistics.least_rated_pairs(values, ["a", "b"])
    assert least_rated.percent_lost.tolist() == [100, 75, 50]

    cells = least_rated.assign(model="m", category="Religion", mean=5.0, z=[1.0, 2.0, 3.0])
    fourth = cells.head(1).assign(z=4.0)
    lowest = statistics.lowest_pairs(pd.concat([fourth, cells]))
    assert lowest.z.tolist() == [1, 2, 3]


def test_blocks_and_identities_keep_their_order_and_groups_are_sorted(named):
    """The order of the cells is that of the design: here y before x."""
    y_first = named.iloc[::-1]

    by_identity = statistics.z_by_identity(y_first)
    assert by_identity["name"].tolist() == ["y", "x"] * 2

    by_group = statistics.z_by_identity(y_first, {"Religion": {"x": "a group", "y": "b group"}})
    assert by_group["name"].tolist() == ["a group", "b group"] * 2

    cells = y_first.assign(mean=1.0, mean_released=1.0, z_released=0.0)
    assert statistics.cell_summary(cells, ["perceiver"]).index.tolist() == ["y", "x"]
