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
from ingroup.stats.paired import paired_cells
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import statistics, stimuli
from ingroup.studies.empathy_gap.statistics import (
    RELEASED,
    by_group,
    by_kind,
    cell_means,
    cells,
    empathy_gap,
    exclude,
    gap,
    gap_like_these,
    gap_matrix,
    gap_of_these,
    relationship_sd,
    same_group,
    zscore,
)

NAN = np.nan
VALUES = np.array([[[10, 20, 30], [40, NAN, 60]], [[NAN, 80, 90], [100, NAN, NAN]]])


@settings(max_examples=60)
@given(
    hnp.arrays(
        float,
        hnp.array_shapes(min_dims=3, max_dims=3, max_side=4),
        elements=st.one_of(st.just(NAN), st.integers(0, 100)),
    )
)
def test_exclusion_equals_a_loop_over_events(values):
    there = [~np.isnan(values[:, :, k]) for k in range(values.shape[2])]
    for rule, kept in (("listwise", np.all), ("pairwise", np.any)):
        events = [k for k, ratings in enumerate(there) if kept(ratings)]
        if events:
            np.testing.assert_array_equal(exclude(values, rule), values[:, :, events])
        else:
            with pytest.raises(ValueError, match="event"):
                exclude(values, rule)


def test_what_leaves_no_event_is_an_error():
    with pytest.raises(ValueError, match="all 3 events lack an answer: EXCLUSION=pairw"):
        exclude(VALUES)
    never = VALUES.copy()
    never[0, 1] = NAN
    with pytest.raises(ValueError, match=r"1 of 4 cells have no rating of any event.* CATEGORIES$"):
        exclude(never)
    for rule in ("listwise", "pairwise"):
        with pytest.raises(ValueError, match="none of the 3 events has a rating in any cell"):
            exclude(VALUES * NAN, rule)


def test_cell_means_by_hand():
    np.testing.assert_array_equal(cell_means(VALUES), [[20, 50], [85, 100]])
    # 200 events of mean 2.675, a number that binary floats hold just below: 2.67 as released.
    values = np.r_[np.full(65, 2.0), np.full(135, 3.0)].reshape(1, 1, 200)
    assert cell_means(values) == 2.675
    assert cell_means(values, decimals=2) == 2.67
    assert cell_means(values, decimals=1) == 2.7
    with pytest.raises(ValueError, match="perceiver 1 and experiencer 0 is empty"):
        cell_means(VALUES[:, :, :1])


@settings(max_examples=60)
@given(hnp.arrays(float, (3, 4), elements=st.integers(0, 10_000).map(lambda n: n / 100)))
def test_zscore_equals_the_formula(matrix):
    assume(np.ptp(matrix) > 0)
    expected = (matrix - np.mean(matrix)) / np.std(matrix)
    np.testing.assert_allclose(zscore(matrix), expected, atol=1e-9)


def test_cells_by_hand():
    """Mean 4, squares 9 + 1 + 1 + 9 over 4 cells: standard deviation sqrt(5)."""
    table = cells(np.array([[1.0, 3.0], [5.0, 7.0]])[..., None], ["x", "y"])
    assert table[["perceiver", "experiencer", "mean"]].values.tolist() == [
        *(["x", "x", 1], ["x", "y", 3], ["y", "x", 5], ["y", "y", 7])
    ]
    np.testing.assert_allclose(table.z * np.sqrt(5), [-3, -1, 1, 3])
    assert cells(np.full((2, 2, 3), 0.1), ["x", "y"]).z.tolist() == [0] * 4
    # Means 1/3 and 2/3 are 0.33 and 0.67 as released.
    table = cells(np.array([[[0, 0, 1], [0, 1, 1]]] * 2, dtype=float), ["x", "y"])
    assert table.mean_released.tolist() == [0.33, 0.67] * 2


@pytest.mark.parametrize("matrix", [[[5.1, 5.1]], [[0.3, 0.1 + 0.2], [0.3, 0.3]], [[0, 0], [0, 0]]])
def test_a_matrix_without_zscores_is_an_error(matrix):
    with pytest.raises(ValueError, match=f"found {matrix[0][0]} in all of them"):
        zscore(matrix)


def block(seed=1, n=4, events=8):
    """Ratings of `n` identities; only "a person", at 0, lacks event 0; a named pair lacks 1."""
    values = np.random.default_rng(seed).integers(0, 101, (n, n, events)).astype(float)
    values[0, 2, 0] = values[1, 3, 1] = NAN
    return values


def test_gap_matrix_keeps_the_unspecified_identity_in_the_zscore():
    values = block()
    expected = stats.zscore(values[:, :, 2:].mean(axis=2), axis=None)[1:, 1:]
    np.testing.assert_allclose(gap_matrix(values), expected)
    expected = stats.zscore(np.nanmean(values, axis=2), axis=None)[1:, 1:]
    np.testing.assert_allclose(gap_matrix(values, "pairwise"), expected)


def test_the_released_way_of_gap_matrix():
    """Named pairs lack event 1 alone; means of two decimals; the two steps part from it."""
    values = block()
    kept = np.delete(values[1:, 1:], 1, axis=2)
    means = [[round(sum(cell) / len(cell), 2) for cell in row] for row in kept.tolist()]
    expected = (means - np.mean(means)) / np.std(means)
    np.testing.assert_allclose(gap_matrix(values, **RELEASED), expected, rtol=1e-12)
    released, paper = gap_matrix(values, **RELEASED), gap_matrix(values)
    unrounded, joint = gap_matrix(values, separate=True), gap_matrix(values, decimals=2)
    assert 0 < abs(unrounded - released).max() < 1e-3
    np.testing.assert_allclose(joint, paper, atol=1e-3)
    assert abs(joint - paper).max() > 0
    assert abs(released - paper).max() > 0.1


# By hand: in-group cells 1, 2, 3, 4, 9 with mean 3.8; out-group 5, 6, 7, 8 with mean 6.5.
def test_gap_by_hand():
    matrix = [[1, 2, 5], [3, 4, 6], [7, 8, 9]]
    assert empathy_gap(matrix, same_group(["a", "a", "b"])) == pytest.approx(3.8 - 6.5)
    with pytest.raises(ValueError, match="nan in row 0, column 1"):
        empathy_gap([[1, NAN], [2, 3]], np.eye(2, dtype=bool))


def test_same_group_of_race_has_the_86_cells_of_the_paper():
    same = same_group(stimuli.identities("Race or Ethnicity").group[1:])
    assert same.sum() == 86
    np.testing.assert_array_equal(same, same.T)
    np.testing.assert_array_equal(same_group(["x", "y", "x"]), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_whole_groups_are_permuted_where_a_group_has_several_names():
    """Names of a group that behave alike: three groups have 6 orders, however many their names."""
    rng, groups = np.random.default_rng(5), list("aaabbbbcc")
    same, blocks = same_group(groups), rng.normal(0, 1, (3, 3))
    place = np.array([ord(group) - ord("a") for group in groups])
    z = np.pad(blocks[np.ix_(place, place)], (1, 0))  # with "a person"
    values = z[..., None] + rng.normal(0, 1e-3, (*z.shape, 8))
    row = gap(values, same, n_resamples=999, rng=rng)
    found = [blocks[:, order] for order in map(list, permutations(range(3)))]
    gaps = [np.trace(one) / 3 - (one.sum() - np.trace(one)) / 6 for one in found]
    expected = np.mean(np.abs(gaps) >= abs(gaps[0]) - 1e-9)
    assert row["p_groups"] == pytest.approx(expected)
    assert row["p_groups_least"] == pytest.approx(1 / 6)
    assert row["p_least"] == 1 / 1000


def test_means_by_group_by_hand():
    """Of two names of a and one of b; groups come in the order of np.unique."""
    matrix = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    found = by_group(matrix, same_group(["a", "a", "b"]))
    assert sorted(found.diagonal()) == [3, 9]
    assert sorted(found[~np.eye(2, dtype=bool)]) == [4.5, 7.5]


def test_one_name_and_two_names_of_a_group_are_told_apart():
    """Against statsmodels, event by event; of exact ratings what was put in comes out."""
    rng = np.random.default_rng(5)
    same, one = same_group(list("aaaabbc")), np.eye(7, dtype=bool)
    levels = 10 * rng.normal(size=(7, 1, 6)) + 10 * rng.normal(size=(1, 7, 6))
    exact = levels + 3.0 * one[..., None] - 2.0 * (same & ~one)[..., None]
    assert {k: t.difference for k, t in by_kind(exact, same).items()} == pytest.approx(
        {"one name": 3, "two names": -2, "one name beyond two names": 5}
    )
    values = exact + rng.normal(size=exact.shape)
    values[0, 1, 0] = NAN
    values[:, :6, 1] = NAN  # tells nothing
    i, j = np.indices((7, 7)).reshape(2, -1)
    told = pd.DataFrame({"i": i, "j": j, "one": one.ravel() * 1, "two": (same & ~one).ravel() * 1})
    fits = [
        ols("x ~ one + two + C(i) + C(j)", told.assign(x=values[..., k].ravel())).fit().params
        for k in (0, 2, 3, 4, 5)
    ]
    for name, test in by_kind(values, same).items():
        one, two = (np.array([fit[kind] for fit in fits]) for kind in ("one", "two"))
        weights = {"one name": one, "two names": two, "one name beyond two names": one - two}[name]
        assert test.difference == pytest.approx(np.mean(weights))
        assert test.pvalue == pytest.approx(stats.ttest_1samp(weights, 0).pvalue)
        assert test.n == 5


def test_a_gap_for_groups_like_these():
    """Clusters share 9 points and own groups 4 more; each pair of groups has noise of its own."""
    clusters = stimuli.clusters("Nationality")
    groups = stimuli.identities("Nationality").group[1:].to_list()
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(21, 21)) + 9 * same_group(clusters) + 4 * np.eye(21)
    values = matrix[..., None] + rng.normal(size=(21, 21, 6))
    found = gap_like_these(values, groups, clusters)
    assert list(found) == ["own group", "own group, by group", "beyond clusters"]
    assert found["own group"].estimate == pytest.approx(found["own group, by group"].estimate)
    assert found["own group"].low > 9
    assert found["beyond clusters"].low < 4 < found["beyond clusters"].high < 6
    (test,) = by_kind(values, np.eye(21, dtype=bool)).values()
    assert found["own group"].estimate == pytest.approx(test.difference)


def test_a_gap_for_names_like_these():
    groups = stimuli.identities("Race or Ethnicity").group[1:].to_list()
    same = same_group(groups)
    rng = np.random.default_rng(6)
    values = 3.0 * same[..., None] + rng.normal(size=(18, 18, 5))
    values[0, 7, 0] = NAN
    found = gap_like_these(values, groups)
    names = ["one name", "two names", "one name beyond two names"]
    assert list(found) == ["own group", "own group, by group", *names]
    assert found[names[2]].estimate == pytest.approx(
        found["one name"].estimate - found["two names"].estimate
    )
    assert found[names[2]].low < 0 < found[names[2]].high
    assert found["own group"].low < 3 < found["own group"].high
    assert found["two names"].low < 3 < found["two names"].high
    means = by_group(np.nan_to_num(np.nanmean(values, axis=2)), same)
    level = (np.trace(means) - means.sum() / 4) / 3
    assert found["own group"].estimate == pytest.approx(level, abs=0.02)
    assert stimuli.clusters("Race or Ethnicity") is None


def test_a_gap_for_these_names_is_a_t_test_over_events():
    """Each event's effect: what own cells have beyond both levels, of three groups by hand."""
    rng = np.random.default_rng(7)
    values = 2.0 * np.eye(3)[..., None] + rng.normal(size=(3, 3, 6))
    # With the means B of G groups: (trace(B) - sum(B) / G) / (G - 1).
    by_event = [(np.trace(m) - m.sum() / 3) / 2 for m in np.moveaxis(values, 2, 0)]
    found = gap_of_these(values, ["a", "b", "c"])
    assert found.difference == pytest.approx(np.mean(by_event))
    assert found.pvalue == pytest.approx(stats.ttest_1samp(by_event, 0).pvalue)
    like = gap_like_these(values, ["a", "b", "c"])["own group"]
    assert found.difference == pytest.approx(like.estimate)

    values[0, 1, 0] = NAN  # an event without all pairs says nothing
    assert gap_of_these(values, ["a", "b", "c"]).n == 5
    with pytest.raises(ValueError, match="no event has ratings of all pairs"):
        gap_of_these(np.full((3, 3, 2), NAN), ["a", "b", "c"])


@pytest.mark.parametrize("gap", [0.0, 4.0])
def test_events_that_are_all_answered_alike_are_no_sample(gap):
    same = same_group(list("aabb"))
    matrix = np.random.default_rng(2).normal(size=(4, 4)) * (gap > 0) + gap * np.eye(4)
    values = np.repeat(matrix[..., None], 12, axis=2)
    mean = by_kind(values[..., :1], same)
    for kind, test in by_kind(values, same).items():
        assert np.isnan([test.statistic, test.pvalue, test.low, test.high, test.least]).all()
        assert test.difference == pytest.approx(mean[kind].difference, abs=1e-12)
        assert test.n == 12
    values[0, 0, 0] += 1
    assert by_kind(values, same)["one name"].pvalue > 0


def test_where_a_group_is_a_name_one_name_is_the_gap_in_points():
    values, same = exclude(block()), np.eye(3, dtype=bool)
    values = values[1:, 1:]
    (test,) = by_kind(values, same).values()
    assert test.difference == pytest.approx(empathy_gap(values.mean(axis=2), same))


@pytest.mark.parametrize("exclusion", ["listwise", "pairwise"])
def test_a_row_of_table_2_is_its_parts(exclusion):
    values, same = block(), np.eye(3, dtype=bool)
    row = gap(values, same, exclusion, 500, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    paper, left = gap_matrix(values, exclusion), exclude(values, exclusion)
    test = permutation_test(paper, same, 500, rng)
    interval = bootstrap_interval(left, same, rng=rng)
    matrix = gap_matrix(values, exclusion, **RELEASED)
    released = permutation_test(matrix, same, 500, rng)
    (low, high), (low_spread, high_spread) = released.null_interval, released.null_spread()
    assert row == {
        "flat": False,
        "delta": pytest.approx(empathy_gap(paper, same)),
        **dict(zip(("null_low", "null_high"), test.null_interval, strict=True)),
        **{"low": interval.low, "high": interval.high},
        **{"p_two_sided": test.pvalue, "p_least": 1 / 6},
        **{"p_groups": test.pvalue, "p_groups_least": 1 / 6},  # each name is a group
        "delta_released": pytest.approx(empathy_gap(matrix, same)),
        **{"null_low_released": low, "null_high_released": high},
        **{"null_low_spread": low_spread, "null_high_spread": high_spread},
        "events": {"listwise": 6, "pairwise": 8}[exclusion],
    }
    assert row["delta"] == pytest.approx(interval.statistic)


def test_cells_that_do_not_differ_have_no_gap():
    values, same = np.full((4, 4, 5), 50.0), np.eye(3, dtype=bool)
    values[1, 2, 0] = NAN
    row = gap(values, same)
    assert (row.pop("flat"), row.pop("events")) == (True, 4)
    assert len(row) == 14
    assert np.isnan([*row.values()]).all()


def test_cells_that_only_a_person_differs_in_have_no_gap():
    """Z-scores of all others are one number then, up to rounding: no permutation changes it."""
    values = np.full((4, 4, 5), 100.0)
    values[0] = 90.0
    row = gap(values, np.eye(3, dtype=bool))
    assert (row["flat"], row["events"]) == (True, 5)
    assert np.isnan([row["delta"], row["p_two_sided"], row["delta_released"]]).all()


def test_the_relationship_sd_is_that_of_simulated_pairs():
    """Levels of perceivers and targets, and own groups, change nothing."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(300):
        pairs = rng.normal(0, 2, (6, 6))
        levels = rng.normal(0, 9, (6, 1)) + rng.normal(0, 9, (1, 6)) + 20 * np.eye(6)
        values = (pairs + levels)[..., None] + np.zeros(2)
        found.append(relationship_sd(values, list("abcdef")) ** 2)
    assert np.mean(found) == pytest.approx(4, abs=0.3)  # four standard errors


# ---- tables over the blocks of a run -------------------------------------------------------------


def test_lost_events_and_pairs_by_hand():
    """Each of three events lacks a rating; four of the twelve ratings are missing."""
    assert statistics.lost_events(VALUES) == {
        "events": 3,
        "events_lost": 3,
        "percent_of_events": 100,
        "percent_of_answers": pytest.approx(100 * 4 / 12),
    }
    assert statistics.lost_events(VALUES, "pairwise")["events_lost"] == 0
    pairs = statistics.least_rated_pairs(VALUES, ["a", "b"], n=2)
    assert pairs.values.tolist() == [
        ["b", "b", pytest.approx(200 / 3)],
        ["a", "b", pytest.approx(100 / 3)],
    ]
    assert statistics.least_rated_pairs(np.ones((2, 2, 3)), ["a", "b"]).empty


def test_spread_by_hand():
    rows = pd.DataFrame({"mean": [1.0, 3.0, 5.0], "z": [-1.0, 1.0, 0.0], "block": ["a", "a", "b"]})
    rows = rows.join(rows[["mean", "z"]].add_suffix("_released") * 2)
    table = statistics.spread(rows, ["block"])
    assert table.loc["a"].tolist() == [2, 1, -1, 1, 4, 2, -2, 2]
    assert table.columns.tolist()[:5] == ["mean", "std", "z_min", "z_max", "mean_released"]


def gaps(**columns):
    """Rows of Table 2 of one model and setting; all are significant unless told otherwise."""
    usual = {
        "flat": False, "low": 0.1, "high": 0.5, "p_holm": 0.01, "p_holm_least": 0.001,
        "p_groups_holm": 0.01, "p_groups_holm_least": 0.001,
    }  # fmt: skip
    return pd.DataFrame([usual | columns])


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
    assert statistics.finding(gaps(**columns)).tolist() == [expected]


def test_corrections_leave_out_flat_blocks():
    """Two of three blocks are tested: the smaller p is doubled."""
    table = pd.DataFrame(
        {
            "model": "m", "setting": "s", "flat": [False, True, False],
            "p_two_sided": [0.02, NAN, 0.04], "p_least": 0.01,
            "p_groups": [0.03, NAN, 0.01], "p_groups_least": 0.01,
        }
    )  # fmt: skip
    corrected = statistics.with_corrections(table)
    assert corrected.p_holm.tolist() == pytest.approx([0.04, NAN, 0.04], nan_ok=True)
    assert corrected.p_groups_holm.tolist() == pytest.approx([0.03, NAN, 0.02], nan_ok=True)
    assert corrected.p_holm_least.tolist() == pytest.approx([0.02, NAN, 0.02], nan_ok=True)
    assert corrected.holm_tests.tolist() == pytest.approx([2, NAN, 2], nan_ok=True)


def test_delta_is_nan_where_there_is_none():
    values = np.random.default_rng(0).normal(50, 5, (4, 4, 3))
    same = np.eye(3, dtype=bool)
    expected = empathy_gap(gap_matrix(values), same)
    assert statistics.delta_if_any(values, same, "listwise") == expected
    assert np.isnan(statistics.delta_if_any(np.ones_like(values), same, "listwise"))
    values[1, 1] = NAN
    assert np.isnan(statistics.delta_if_any(values, same, "pairwise"))


def test_shares_of_shown_cells_leave_out_a_person_and_the_diagonal():
    """Two names: each rates itself ten points above the other, in every event but for noise."""
    noise = np.random.default_rng(1).normal(0, 0.1, (3, 3, 12))
    values = 50 + 10 * np.eye(3)[..., None] + noise
    pvalues = paired_cells(values)
    shown = statistics.shown_cells(pvalues)
    assert len(shown) == 9
    assert shown.columns.tolist() == ["shown_released", "shown_bonferroni", "shown_holm"]
    both = shown.shown_holm.to_numpy().reshape(3, 3)[1:, 1:]
    assert both[~np.eye(2, dtype=bool)].all()
    shares = statistics.shares_shown(values, pvalues)
    assert shares == {"released": 1, "bonferroni": 1, "holm": 1, "sign": 1, "could": 1}
    few = statistics.shares_shown(values[..., :2], paired_cells(values[..., :2]))
    assert few["could"] == few["sign"] == 0  # p of a sign test is 0.5 at least


def test_who_stands_out_by_hand():
    names = ["a person", "x", "y"]
    index = pd.MultiIndex.from_product([names, names], names=["perceiver", "experiencer"])
    cells = pd.DataFrame({"z": [9, 9, 9, 9, 1, 2, 9, 3, -1.0]}, index).reset_index()
    flat = cells.assign(z=0.0, model="flat", category="Religion")
    both = pd.concat([cells.assign(model="m", category="Religion"), flat])
    named = statistics.named_cells(both)
    assert set(named.model) == {"m"}
    assert len(named) == 4
    table = statistics.standing(named)
    assert table["name"].tolist() == ["x", "y", "x", "y"]
    assert table["mean"].tolist() == [1.5, 1, 2, 0.5]  # as perceivers, then as experiencers
    assert table.spread.tolist() == pytest.approx([0.5**0.5, 8**0.5, 2**0.5, 4.5**0.5])
    ends = statistics.extremes(table)
    assert ends.loc[("m", "perceiver", "Religion")].tolist() == ["x", "y", 1.5, 1, "x"]
    of_groups = statistics.standing(named, {"Religion": {"x": "one", "y": "one"}})
    assert of_groups[["name", "mean"]].values.tolist() == [["one", 1.25], ["one", 1.25]]
    assert statistics.standing(named.head(0)).empty


def noisy(n=5, events=8, own=3.0, seed=2):
    """Ratings with an own-group effect, "a person" first."""
    noise = np.random.default_rng(seed).normal(0, 0.5, (n, n, events))
    return 50 + own * np.eye(n)[..., None] + noise


def test_a_gap_in_points_is_that_of_the_cell_means():
    values = noisy()
    same = np.eye(4, dtype=bool)
    row = statistics.gap_in_points(values, same, "listwise", 99, np.random.default_rng(4))
    named = values[1:, 1:].mean(axis=2)
    assert row["points"] == pytest.approx(named[same].mean() - named[~same].mean())
    by_event = values[1:, 1:][same].mean(axis=0) - values[1:, 1:][~same].mean(axis=0)
    interval = stats.ttest_1samp(by_event, 0).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx(tuple(interval))
    whole = gap(values, same, "listwise", 99, np.random.default_rng(4))
    for name in ("delta", "p_two_sided", "events"):
        assert row[name] == whole[name]
    nothing = np.full_like(values, NAN)
    assert statistics.gap_in_points(nothing, same, "listwise", 9, None) == {"events": 0}


def test_scopes_have_these_groups_and_groups_like_these():
    values = noisy()[1:, 1:]
    groups = list("abcd")
    row = statistics.scopes(values, groups)
    these = gap_of_these(values, groups)
    like = gap_like_these(values, groups)
    assert (row["estimate"], row["p"]) == (these.difference, these.pvalue)
    assert (row["low_like"], row["p_like"]) == (like["own group"].low, like["own group"].p)
    assert row["by_group_p"] == like["own group, by group"].p
    clustered = statistics.scopes(values, groups, ["x", "x", "y", "y"])
    assert "beyond_clusters" in clustered
    assert "beyond_clusters" not in row


def test_settings_like_these_are_a_sample():
    ratings = [noisy(own=own, seed=k) for k, own in enumerate((2, 3, 4))]
    groups = list("abcd")
    row = statistics.over_settings(ratings, groups, "listwise")
    each = [
        gap_like_these(gap_matrix(values)[..., None], groups)["own group"].estimate
        for values in ratings
    ]
    assert row["settings"] == 3
    assert (row["least"], row["greatest"]) == (min(each), max(each))
    assert row["estimate"] == pytest.approx(np.mean(each))
    one = statistics.over_settings(ratings[:1], groups, "listwise")
    assert one == {"settings": 1, "reason": "cannot be told: one setting"}
    flat = statistics.over_settings([np.ones_like(ratings[0])] * 2, groups, "listwise")
    assert flat["reason"].startswith("z-scores need cells that differ")


def test_a_block_is_common_where_all_models_have_a_gap():
    gaps = pd.DataFrame(
        [("a", "s", "x", 1.0), ("a", "s", "y", 2.0), ("b", "s", "x", 3.0), ("b", "s", "y", NAN)],
        columns=["model", "setting", "category", "delta"],
    )
    table = statistics.shared_blocks(gaps)
    assert table.delta.tolist() == [1, 2, 3]
    assert table.common.tolist() == [True, False, True]
