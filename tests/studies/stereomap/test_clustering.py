"""Clusters of groups and their tests by hand, against SciPy and scikit-learn, by brute force."""

from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from ingroup.studies.stereomap import clustering, statistics, stimuli
from ingroup.studies.stereomap.clustering import (
    axis_tests,
    clusters,
    exchange_null,
    halves,
    stability,
)
from ingroup.studies.stereomap.statistics import group_means
from maps import maps

nan = np.nan


def some_rounds(noise, rounds=6, seed=0):
    """Rounds of 5 x 4 groups about five places, in points."""
    rng = np.random.default_rng(seed)
    places = np.array([[1.5, 1.5], [2.4, 2.6], [4.2, 2.3], [2.9, 3.9], [4.3, 4.2]])
    points = np.repeat(places, 4, axis=0)[:, None] + rng.normal(0, noise, (20, rounds, 2))
    rows = [(f"group {g}", r, *points[g, r]) for g in range(20) for r in range(rounds)]
    return pd.DataFrame(rows, columns=["group", "round", "Competence", "Warmth"])


def test_numbers_and_centroids_of_clusters():
    # Sums 2, 10, 6.2 and 6; the refused group has no position.
    points = [(5, 5), (1, 1), (3.2, 3), (5, 4.8), (1.2, 1), (1, 5), (nan, 3)]
    names = ["nurses", "homeless", "lower", "doctors", "addicts", "elderly", "refused"]
    result = clusters(maps(points, names), n_clusters=4)
    assert list(result.labels.index) == names[:6]
    assert result.labels.tolist() == [3, 0, 2, 3, 0, 1]
    assert result.left_out == ["refused"]
    expected = [[2, 1.1, 1], [1, 1, 5], [1, 3.2, 3], [2, 5, 4.9]]
    np.testing.assert_allclose(result.centroids[["n", "Competence", "Warmth"]], expected)
    assert result.centroids["anchor"].tolist() == [""] * 4


def test_clusters_have_the_numbers_of_the_groups_that_the_paper_names_them_by():
    points = [(1, 1), (1, 2), (5, 4), (5, 5), (2, 5)]
    names = ["Homeless", "Lower-class", "Lawyers", "Nurses", "Elderly"]
    named = clusters(maps(points, names), version="EXTENDED")
    assert named.labels[list(stimuli.ANCHORS["EXTENDED"])].tolist() == [0, 1, 2, 3, 4]
    assert named.centroids.anchor.tolist() == list(stimuli.ANCHORS["EXTENDED"])
    # Without the lawyers the two after them move up; four places are not five clusters.
    some = maps(points, ["Homeless", "Lower-class", "Men", "Nurses", "Elderly"])
    assert clusters(some, version="EXTENDED").labels.tolist() == [0, 1, 4, 3, 2]
    assert clusters(maps(points[:4], names[:4]), version="EXTENDED") is None
    # More of them than clusters number none.
    assert set(clusters(maps(points, names), 3, version="EXTENDED").centroids.anchor) == {""}
    # The second shares the cluster of the first, the third has no position: 1 and 2 stay free.
    points = [(1, 1), (1, 1.1), (nan, 2), (5, 5), (1, 5), (5, 1.5)]
    names = ["Homeless", "Lower-class", "Lawyers", "Elderly", "Men", "Women"]
    result = clusters(maps(points, names), n_clusters=4, version="EXTENDED")
    assert result.labels.tolist() == [0, 0, 3, 1, 2]
    assert result.centroids["anchor"].tolist() == ["Homeless", "", "", "Elderly"]


# {0, 1}, {2 + d} leaves 1/2 and {0}, {1, 2 + d} leaves (1 + d)**2 / 2, which is d more.
@pytest.mark.parametrize("d", [1e-4, 1e-7])
def test_inertia_is_compared_without_rounding(d):
    means = maps([(1.0, 3.0), (2.0, 3.0), (3.0 + d, 3.0)])
    for seed in range(12):
        labels = clusters(means, 2, n_init=20, seed=seed).labels
        assert labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_the_released_way_is_scikit_learns_own_call(seed):
    means = maps(np.random.default_rng(seed).uniform(1, 5, (40, 2)))
    means.iloc[3, 0] = nan  # of no position
    found = clusters(means, n_init=3, kmeans="released")
    # As calc_warmth_competence and calc_kmeans have it: sorted, warmth first, random_state=0.
    there = means.dropna().sort_values(["Competence", "Warmth"])
    own = KMeans(n_clusters=5, n_init=10, random_state=0).fit(there[["Warmth", "Competence"]])
    assert adjusted_rand_score(own.labels_, found.labels[there.index]) == 1
    centres = found.centroids.loc[found.labels[there.index], ["Warmth", "Competence"]]
    np.testing.assert_allclose(centres, own.cluster_centers_[own.labels_])
    assert found.left_out == [means.index[3]]
    again = clusters(means.sample(frac=1, random_state=seed), kmeans="released")
    assert again.labels.to_dict() == found.labels.to_dict()


@settings(max_examples=6)
@given(st.integers(0, 1000), st.permutations(range(12)))
def test_order_of_groups_changes_no_label(seed, order):
    means = maps(np.random.default_rng(seed).uniform(1, 5, (12, 2)))
    one, other = (clusters(table, 4, n_init=3) for table in (means, means.iloc[list(order)]))
    assert other.labels.to_dict() == one.labels.to_dict()
    pd.testing.assert_frame_equal(other.centroids, one.centroids)
    assert one.centroids[["Competence", "Warmth"]].sum(axis=1).round(6).is_monotonic_increasing


# C is at 1 or 4.9 or between, at 2.95: a quarter of the draws put it to B instead of A. Then the
# index of {A, C}, {B} and {A}, {B, C} is (0 - 1/3) / (1 - 1/3), each Jaccard index 1/2.
def test_stability_by_hand():
    rounds = [("A", 0, 1, 1), ("B", 0, 5, 5), ("C", 0, 1, 1), ("C", 1, 4.9, 4.9), ("C", 2, nan, 5)]
    scores = pd.DataFrame(rounds, columns=["group", "round", "Competence", "Warmth"])
    labels = pd.Series({"A": 0, "B": 1, "C": 0})
    found = stability(scores, labels, np.random.default_rng(0), 60)
    same = (found["ari"] + 0.5) / 1.5
    assert 35 <= round(60 * same, 9) <= 55  # 45 expected, with a standard deviation of 3.4
    overlap = dict.fromkeys(("overlap of 0", "overlap of 1"), (1 + same) / 2)
    assert found == pytest.approx({"ari": found["ari"], "low": -0.5, "high": 1, **overlap})


def test_stability_falls_with_noise():
    found = []
    for noise in (0.05, 0.7, 5.0):
        scores = some_rounds(noise)
        labels = clusters(group_means(scores)).labels
        found.append(stability(scores, labels, np.random.default_rng(1), 8))
    assert set(found[0].values()) == {1}
    assert found[2]["ari"] < 0.5 < 0.6 < found[1]["ari"] < 0.999
    assert found == [*found[:2], stability(scores, labels, np.random.default_rng(1), 8)]
    scores[["Competence", "Warmth"]] = 3.0  # all groups alike
    labels = pd.Series(0, scores["group"].unique())
    assert stability(scores, labels, np.random.default_rng(0), 3)["ari"] == 1


# Differences 1, 2, 3: sd 1, t = 2 sqrt(3). With 2 degrees of freedom the two-sided p is
# 1 - t / sqrt(t**2 + 2), and t(0.975) is 4.30265.
def test_axis_tests_by_hand():
    points = [(3, 2), (4, 2), (5, 2), (1, 2), (2, 2.5), (2, 3), (3, 4), (4, 4), (1, 1)]
    labels = pd.Series([0, 0, 0, 1, 2, 3, 3, 4, 4], [f"group {k}" for k in range(9)])
    table = axis_tests(maps(points), labels, alpha=0.08)
    t = 2 * sqrt(3)
    first = table.loc[0]
    assert first[["n", "Competence", "Warmth", "difference"]].tolist() == [3, 4, 2, 2]
    assert first["statistic"] == pytest.approx(t)
    assert first["d_z"] == pytest.approx(2)
    assert first["p"] == pytest.approx(1 - t / sqrt(t**2 + 2))
    assert first["low"] == pytest.approx(2 - 4.30265 / sqrt(3), abs=1e-4)
    assert first["high"] == pytest.approx(2 + 4.30265 / sqrt(3), abs=1e-4)
    # Single groups keep their centroids; differences without spread have no t.
    assert table.loc[[1, 2], ["Competence", "Warmth"]].values.tolist() == [[1, 2], [2, 2.5]]
    assert table.loc[[1, 2], ["statistic", "p", "p_holm", "low"]].isna().all(axis=None)
    numbers = table[["difference", "statistic", "d_z", "p"]]
    np.testing.assert_array_equal(numbers.loc[[3, 4]], [[-1, -np.inf, np.nan, 0.5], [0, 0, 0, 1]])
    assert table["sign"].tolist() == [">", "", "", "=", "="]
    # Holm doubles the first p, 0.074, as the third cluster comes before it.
    assert table.loc[0, "p_holm"] == pytest.approx(3 * first["p"])
    assert table["sign_holm"].tolist() == ["=", "", "", "=", "="]


def test_halves_share_no_round():
    scores = some_rounds(0.5, rounds=5)
    scores.loc[[0, 5, 6, 7, 8], "Warmth"] = nan  # 4 rounds of the first group, 1 of the second
    first, second = halves(scores, np.random.default_rng(0))
    expected = scores[scores["group"] != "group 1"].dropna()
    pd.testing.assert_frame_equal(pd.concat([first, second]).sort_index(), expected)
    assert sorted(first["group"].value_counts()) == [2] + [3] * 18
    assert sorted(second["group"].value_counts()) == [2] * 19
    assert list(halves(scores, np.random.default_rng(1))[0].index) != list(first.index)


def test_noise_is_significant_only_to_the_rounds_that_made_its_clusters():
    rng = np.random.default_rng(4)
    index = pd.MultiIndex.from_product([range(98), range(10)], names=["group", "round"])
    noise = rng.normal(3, 0.3, (980, 2))
    scores = pd.DataFrame(noise, index, ["Competence", "Warmth"]).reset_index()
    means = group_means(scores)
    printed = axis_tests(means, clusters(means).labels)
    assert set(printed["sign"]) == {">", "<", "="}
    first, second = halves(scores, rng)
    sound = axis_tests(group_means(second), clusters(group_means(first)).labels)
    assert (sound["sign"] == "=").all()
    assert sound["p_holm"].min() > 0.05
    # What is there is found in the other half too.
    first, second = halves(some_rounds(0.3), rng)
    sound = axis_tests(group_means(second), clusters(group_means(first)).labels, alpha=0.01)
    assert sound["sign_holm"].tolist()[2:4] == [">", "<"]


# Two groups at (1, 4): exchanged or not, d is 3 and 3, or 3 and -3, which cancel, or -3 and -3.
def test_null_of_exchanged_axes_by_hand():
    null = exchange_null(maps([(1, 4), (1, 4)]), 1, np.random.default_rng(0), 400)
    assert set(null.round(9)) == {0, round(sqrt(2), 9)}
    assert 150 <= np.count_nonzero(null < 1) <= 250
    # In two clusters each has its own place in every draw: a z of 1, or of sqrt(2) together.
    null = exchange_null(maps([(1, 4), (1, 4)]), 2, np.random.default_rng(0), 400)
    assert set(null.round(9)) == {1, round(sqrt(2), 9)}


def test_one_cluster_is_the_test_of_random_signs():
    rng = np.random.default_rng(6)
    means = maps(rng.normal([3.4, 3], 0.5, (40, 2)))
    labels = pd.Series(0, means.index)
    row = axis_tests(means, labels, null=exchange_null(means, 1, rng, 4999)).loc[0]
    expected = stats.permutation_test(
        (means.Competence, means.Warmth), lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=4999, rng=rng,
    ).pvalue  # fmt: skip
    assert 0.001 < expected < 0.5
    assert row["p_exchanged"] == pytest.approx(expected, abs=0.025)
    assert row["p_least"] == 1 / 5000


# Half of the groups are competent, half warm: k-means finds them, the mean difference is 0.
def test_position_is_significant_to_the_paired_test_and_not_to_exchanged_axes():
    rng = np.random.default_rng(1)
    places = np.repeat([[4.0, 2.0], [2.0, 4.0], [3.0, 3.0]], 10, axis=0)
    means = maps(places + rng.normal(0, 0.1, (30, 2)))
    table = axis_tests(means, clusters(means, 3).labels, null=exchange_null(means, 3, rng, 199))
    assert sorted(table["sign"]) == ["<", "=", ">"]
    assert table["p_exchanged"].min() > 0.3
    assert table["p_least"].min() > 0.05  # ten groups of thirty could not have been enough
    # All of them competent: the clusters are as far from the diagonal, but on one side of it.
    means = maps(places[:20, :1] ** 0 * [4.0, 2.0] + rng.normal(0, 0.1, (20, 2)))
    table = axis_tests(means, pd.Series(0, means.index), null=exchange_null(means, 1, rng, 199))
    assert table["p_exchanged"].tolist() == [1 / 200]


def test_clusters_are_the_best_that_many_starts_of_scikit_learn_find():
    for seed in range(4):
        points = np.random.default_rng(seed).normal(3, 0.1, (98, 2)).round(1 + seed % 2)
        means = maps(points)
        centres = means.groupby(clusters(means).labels).transform("mean")
        squares = ((centres - points) ** 2).to_numpy().sum()
        fit = KMeans(5, n_init=60, random_state=0).fit(points)
        assert squares <= fit.inertia_ + 1e-9


def test_a_map_of_noise_has_one_best_partition_whatever_the_seed():
    noise = maps(np.random.default_rng(3).normal(3, 0.1, (98, 2)))
    one, other = (clusters(noise, seed=seed).labels for seed in (0, 1))
    assert adjusted_rand_score(one, other) > 0.95


def test_tables_are_left_as_they_are():
    scores = some_rounds(0.5)
    means = group_means(scores)
    labels = clusters(means).labels
    tables = [scores, means, labels]
    before = [table.copy() for table in tables]
    stability(scores, labels, np.random.default_rng(0), 2)
    axis_tests(means, labels)
    for table, copy in zip(tables, before, strict=True):
        pd.testing.assert_frame_equal(pd.DataFrame(table), pd.DataFrame(copy))


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_done_is_one_sentence():
    rng, single = np.random.default_rng(0), some_rounds(0.5, rounds=1)
    with pytest.raises(ValueError, match="every group has a single round, expected at least 2"):
        stability(single, pd.Series(0, single["group"]), rng, 2)
    with pytest.raises(ValueError, match="no group has 2 rounds with both axes"):
        halves(single, rng)


def test_the_smallest_difference_is_found_in_four_clusters_of_five():
    """A null of clusters of 20 groups; the differences of 30 groups, drawn and tested."""
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((999, 20))
    null = np.abs(noise.sum(axis=1)) / np.sqrt((noise**2).sum(axis=1))
    mean = clustering.smallest_difference(null, 30)
    means = pd.DataFrame({"Warmth": 3.0, "Competence": 3.0}, index=range(30))
    found = []
    for d in mean + rng.standard_normal((400, 30)):
        drawn = means.assign(Competence=3 + d)
        table = clustering.axis_tests(drawn, pd.Series(0, means.index), null=null)
        found.append(table.p_exchanged[0] < 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.08)  # four standard errors


def test_a_cluster_that_is_too_small_finds_nothing():
    """Each draw has a cluster of 16 groups that all lean to one side: z is 4."""
    null = np.full(999, 4.0)
    assert clustering.exchange_floor(null, 16) == 1
    assert clustering.smallest_difference(null, 16) == np.inf
    assert clustering.groups_for_exchange(null) == 17
    assert clustering.exchange_floor(null, 17) == 1 / 1000
    assert 0 < clustering.smallest_difference(null, 40) < 5
    with pytest.raises(ValueError, match="found 9 draws, expected more than 20"):
        clustering.groups_for_exchange(null[:9])


def test_words_of_both_axes_are_a_sample():
    """The difference is that of the means of the axes; words that vary widen its interval."""
    words = stimuli.words("EXTENDED")
    rated = words[words.family.isin(["Competence", "Warmth"])]
    rng = np.random.default_rng(5)
    groups = [f"group {g}" for g in range(12)]
    steady = pd.DataFrame({word: rng.normal(3, 0.5, 12) for word in rated.word})
    steady.insert(0, "group", groups)
    steady.insert(1, "round", 0)
    effect = clustering.over_words(steady, words)
    scores = group_means(statistics.round_scores(steady, words))
    difference = (scores.Competence - scores.Warmth).mean()
    assert effect.estimate == pytest.approx(difference)
    assert effect.df == 6

    uneven = steady.copy()
    uneven[rated.word.iloc[0]] += 2
    uneven[rated.word.iloc[1]] -= 2
    wider = clustering.over_words(uneven, words)
    assert wider.estimate == pytest.approx(effect.estimate)
    assert wider.high - wider.low > 2 * (effect.high - effect.low)


def test_words_that_nobody_rated_are_refused():
    words = stimuli.words("EXTENDED")
    empty = pd.DataFrame({"group": ["a", "b"]} | {word: [nan, nan] for word in words.word})
    with pytest.raises(ValueError, match="found no number"):
        clustering.over_words(empty, words)
