"""Scores, clusters, tests and maps by hand, against SciPy, and by brute force."""

from itertools import permutations
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import spatial, stats
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from ingroup.paths import PUBLISHED
from ingroup.stats.paired import adjust
from ingroup.studies.stereomap.statistics import (
    ANCHORS,
    agreement,
    axis_tests,
    by_cluster,
    clusters,
    correlations,
    exchange_null,
    extremes,
    group_means,
    halves,
    round_scores,
    stability,
)

nan = np.nan
FAMILIES = {
    "Warmth": {"Sociability": ["friendly", "sociable"], "Morality": ["honest"]},
    "Competence": {"Ability": ["skilled"], "Assertiveness": ["confident", "assertive"]},
    "Emotion": {"Pity": ["pity", "sympathy"], "Envy": ["envious"]},
}
WORDS = pd.DataFrame(
    [(f, d, word) for f, its in FAMILIES.items() for d, words in its.items() for word in words],
    columns=["family", "dimension", "word"],
)
RATINGS = pd.DataFrame(
    [
        ("nurses", 0, 4, 2, 5, 2, 3, 5, 1, 2, 5),
        ("nurses", 1, 5, nan, 4, 3, 3, 3, 2, 4, 4),
        ("nurses", 2, 5, 5, 4, 1, 2, 4, nan, 3, 1),
        ("blinds", 0, nan, nan, 2, nan, nan, nan, 5, 5, 1),
    ],
    columns=["group", "round", *WORDS["word"]],
)

SCORES = round_scores(RATINGS, WORDS)


def maps(points, names=None):
    """A table of group means from (competence, warmth) pairs."""
    names = names or [f"group {k}" for k in range(len(points))]
    index = pd.Index(names, name="group")
    return pd.DataFrame(points, index, ["Competence", "Warmth"], dtype=float)


def some_rounds(noise, rounds=6, seed=0):
    """Rounds of 5 x 4 groups about five places, in points."""
    rng = np.random.default_rng(seed)
    places = np.array([[1.5, 1.5], [2.4, 2.6], [4.2, 2.3], [2.9, 3.9], [4.3, 4.2]])
    points = np.repeat(places, 4, axis=0)[:, None] + rng.normal(0, noise, (20, rounds, 2))
    rows = [(f"group {g}", r, *points[g, r]) for g in range(20) for r in range(rounds)]
    return pd.DataFrame(rows, columns=["group", "round", "Competence", "Warmth"])


# A dimension with two words counts as much as one with one: warmth is not the mean of its words.
def test_scores_by_hand():
    scores = round_scores(RATINGS, WORDS)
    columns = "group round Competence Warmth Sociability Morality Ability Assertiveness Pity Envy"
    assert list(scores.columns) == columns.split()
    assert scores.loc[0].tolist()[2:] == [3, 4, 3, 5, 2, 4, 1.5, 5]
    # Without a word of warmth, competence goes too; the emotions had a prompt of their own.
    assert scores.loc[1, "Competence":"Assertiveness"].isna().all()
    assert scores.loc[1, ["Pity", "Envy"]].tolist() == [3, 4]
    assert scores.loc[2, ["Competence", "Warmth"]].tolist() == [2, 4.5]
    assert scores.loc[2, ["Pity", "Envy"]].isna().all()
    means = group_means(scores)
    assert list(means.index) == ["nurses", "blinds"]
    expected = [3, 2, (3 + 2) / 2, (4 + 4.5) / 2]
    assert means.loc["nurses", ["rounds", "used", "Competence", "Warmth"]].tolist() == expected
    assert means.loc["nurses", ["Pity", "Envy"]].tolist() == [(1.5 + 3) / 2, (5 + 4) / 2]
    assert means.loc["blinds", ["rounds", "used", "Pity"]].tolist() == [1, 0, 5]
    assert means.loc["blinds", ["Competence", "Warmth"]].isna().all()


def test_scores_of_what_is_there_by_hand():
    scores = round_scores(RATINGS, WORDS, incomplete="mean")
    assert scores.loc[1, ["Competence", "Warmth"]].tolist() == [3, (5 + 4) / 2]
    assert scores.loc[2, ["Pity", "Envy"]].tolist() == [3, 1]
    assert scores.loc[3, ["Warmth", "Morality"]].tolist() == [2, 2]
    assert scores.loc[3, ["Competence", "Sociability"]].isna().all()
    assert group_means(scores)["used"].tolist() == [3, 0]


def test_order_of_columns_words_and_rows():
    found = round_scores(RATINGS.iloc[::-1, ::-1], WORDS[::-1]).sort_index()
    pd.testing.assert_frame_equal(found[SCORES.columns], SCORES)


def test_the_words_of_table_4():
    words = pd.read_csv(PUBLISHED / "stereomap" / "table04_dimension_words.csv")
    ratings = pd.DataFrame([range(24)], columns=list(words["word"])).assign(group="a", round=0)
    scores = round_scores(ratings, words).loc[0]
    # In the order of the file: the words 0 to 3, 4 to 7, 8 and 9, ..., 22 and 23.
    assert scores[["Warmth", "Competence"]].tolist() == [1.5, 5.5]
    assert scores.iloc[8:].tolist() == [8.5 + 2 * k for k in range(8)]
    assert scores.index[-1] == words["dimension"].iloc[-1]


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
    assert named.labels[list(ANCHORS["EXTENDED"])].tolist() == [0, 1, 2, 3, 4]
    assert named.centroids.anchor.tolist() == list(ANCHORS["EXTENDED"])
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


@settings(max_examples=6, deadline=None)
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
        points = np.random.default_rng(seed).normal(3, 0.1, (98, 2))
        labels = clusters(maps(points.round(1 + seed % 2))).labels
        fit = KMeans(5, n_init=60, random_state=0).fit(points.round(1 + seed % 2))
        centres = pd.DataFrame(points.round(1 + seed % 2)).groupby(labels.to_numpy())
        squares = ((centres.transform("mean") - points.round(1 + seed % 2)) ** 2).to_numpy().sum()
        assert squares <= fit.inertia_ + 1e-9


def test_a_map_of_noise_has_one_best_partition_whatever_the_seed():
    noise = maps(np.random.default_rng(3).normal(3, 0.1, (98, 2)))
    one, other = (clusters(noise, seed=seed).labels for seed in (0, 1))
    assert adjusted_rand_score(one, other) > 0.95


# Ranks differ by 1, 1, 1, 1, 0: rho = 1 - 6 * 4 / (5 * 24) = 0.8; v = (1 + 0.32) / 2.
def test_correlation_by_hand():
    scores = {"Help": [20, 10, 40, 30, 50], "Envy": 2.0, "Pity": [1, 2, 3, nan, nan]}
    means = pd.DataFrame({"Warmth": [1, 2, 3, 4, 5], **scores})
    rng = np.random.default_rng(0)
    table = correlations(means, ["Warmth"], ["Help", "Envy", "Pity"], rng)
    columns = "predictor outcome n rho low high p p_least p_holm p_holm_least"
    assert list(table.columns) == columns.split()
    row = table.loc[0]
    assert (row["predictor"], row["outcome"], row["n"]) == ("Warmth", "Help", 5)
    assert row["rho"] == pytest.approx(0.8)
    margin = 1.959964 * sqrt(1.32 / 2)
    assert row["low"] == pytest.approx(np.tanh(np.log(3) - margin), abs=1e-6)
    assert row["high"] == pytest.approx(np.tanh(np.log(3) + margin), abs=1e-6)
    # Of 120 orders 1 has rho 1, 4 have 0.9 and 3 have 0.8: one neighbour exchanged, or two.
    assert row["p"] == pytest.approx(2 * 8 / 120)
    assert row["p_least"] == pytest.approx(2 / 120)
    assert table.loc[1:, ["rho", "low", "p", "p_holm"]].isna().all(axis=None)
    assert table["n"].tolist() == [5, 5, 3]
    assert row["p_holm"] == row["p"]


def test_four_groups_in_order_are_one_of_24_orders():
    means = pd.DataFrame({"a": [1, 2, 3, 4], "b": [1, 2, 3, 9]})
    row = correlations(means, ["a"], ["b"], np.random.default_rng(0)).loc[0]
    assert row["rho"] == pytest.approx(1)
    assert row["p"] == row["p_least"] == pytest.approx(2 / 24)
    assert row[["low", "high"]].isna().all()  # four points in order show no interval


def test_many_correlations_against_scipy():
    rng = np.random.default_rng(2)
    means = pd.DataFrame(rng.integers(1, 6, (30, 4)), columns=list("abcd")).astype(float)
    means.loc[3, "c"] = nan
    table = correlations(means, ["a", "b"], ["c", "d"], rng)
    assert table["predictor"].tolist() == ["a", "a", "b", "b"]
    for row in table.itertuples():
        expected = stats.spearmanr(means[row.predictor], means[row.outcome], nan_policy="omit")
        assert row.rho == pytest.approx(expected.statistic)
        assert row.p == pytest.approx(expected.pvalue, abs=0.02)
    np.testing.assert_allclose(table["p_holm"], adjust(table["p"], "holm"))


def test_scores_by_cluster_by_hand():
    means = pd.DataFrame({"Pity": [1, 3, 2, 9], "Envy": [2, nan, 5, 9]}, index=list("abcd"))
    table = by_cluster(means, pd.Series([0, 0, 1], list("abc")), ["Envy", "Pity"])
    assert table[["score", "cluster"]].values.tolist() == [
        ["Envy", 0], ["Envy", 1], ["Pity", 0], ["Pity", 1],
    ]  # fmt: skip
    assert table["n"].tolist() == [1, 1, 2, 1]
    assert table["mean"].tolist() == [2, 5, 2, 2]
    np.testing.assert_array_equal(table["variance"], [nan, nan, 2, nan])


def test_extremes_by_hand():
    rows = [("a", 3), ("b", 5), ("c", 1), ("d", 5), ("e", 2)]
    rows = [(group, r, value + r * (group == "a")) for group, value in rows for r in (0, 1)]
    rows += [("c", 2, nan), ("f", 0, nan)]
    table = extremes(pd.DataFrame(rows, columns=["group", "round", "Wealthy"]), "Wealthy", n=3)
    assert table.to_dict("list") == {
        "end": ["highest"] * 3 + ["lowest"] * 3,
        "rank": [1, 2, 3, 1, 2, 3],
        "group": ["b", "d", "a", "c", "e", "a"],  # f was never rated
        "mean": [5, 5, 3.5, 1, 2, 3.5],
        "variance": [0, 0, 0.5, 0, 0, 0.5],
        "rounds": [2] * 6,
        "tied": [2, 2, 1, 1, 1, 1],
    }


# On a line, -1, 0, 1 against -1, 1, 0: the product of the two, of length 1, is 1/2. The six orders
# have the distances 0, 0 and 3/4 four times.
def test_distance_by_hand():
    mine, theirs = maps([(1, 3), (2, 3), (3, 3)]), maps([(1, 2), (3, 2), (2, 2)])
    found = agreement(mine, theirs, np.random.default_rng(0))
    assert found["rho of Competence"] == pytest.approx(0.5)
    assert np.isnan(found["rho of Warmth"])
    assert (found["groups"], found["p"]) == (3, 1)
    assert found["Procrustes distance"] == pytest.approx(1 - 1 / 4)
    assert found["p_least"] == pytest.approx(1 / 6)
    assert agreement(mine, mine, np.random.default_rng(0))["p"] == pytest.approx(1 / 3)


def test_agreement_against_scipy():
    rng = np.random.default_rng(3)
    points = rng.uniform(1, 5, (12, 2))
    mine = maps(points)
    human = maps(points + rng.normal(0, 0.7, (12, 2))).iloc[::-1]
    extra = pd.concat([human, maps([(9, 9), (nan, 1)], ["extra", "other"])])
    found = agreement(pd.concat([mine, maps([(1, 1)], ["other"])]), extra, rng)
    assert found["groups"] == 12
    theirs = human.loc[mine.index].to_numpy()
    assert found["Procrustes distance"] == pytest.approx(spatial.procrustes(points, theirs)[2])
    for axis, one, other in zip(("Competence", "Warmth"), points.T, theirs.T, strict=True):
        assert found[f"rho of {axis}"] == pytest.approx(stats.spearmanr(one, other).statistic)


def test_p_of_a_distance_against_every_order_by_scipy():
    points = np.random.default_rng(5).uniform(1, 5, (2, 5, 2))
    points[1] = points[0] + 0.7 * points[1]
    orders = [spatial.procrustes(points[0], points[1][[*o]])[2] for o in permutations(range(5))]
    found = agreement(*map(maps, points), np.random.default_rng(0))
    expected = np.mean(np.array(orders) <= found["Procrustes distance"] + 1e-9)
    assert found["p"] == pytest.approx(expected)
    assert 0.05 < expected < 0.2


# Twelve groups share three places: in order they are one of 3! orders, not of 12!.
def test_groups_that_share_a_place_are_permuted_together():
    places = np.repeat([(1.0, 2.0), (3.0, 3.0), (4.0, 6.0)], 4, axis=0)
    noise = np.random.default_rng(0).normal(0, 0.1, places.shape)
    found = agreement(maps(places + noise), maps(places), np.random.default_rng(0))
    assert found["p"] == found["p_least"] == pytest.approx(1 / 6)


def test_tables_are_left_as_they_are():
    scores = some_rounds(0.5)
    means = group_means(scores)
    labels = clusters(means).labels
    tables = [RATINGS, scores, means, labels.to_frame()]
    before = [table.copy() for table in tables]
    round_scores(RATINGS, WORDS)
    stability(scores, labels, np.random.default_rng(0), 2)
    axis_tests(means, labels)
    agreement(means, means, np.random.default_rng(0))
    for table, copy in zip(tables, before, strict=True):
        pd.testing.assert_frame_equal(table, copy)


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_done_is_one_sentence():
    rng, single = np.random.default_rng(0), some_rounds(0.5, rounds=1)
    with pytest.raises(ValueError, match="every group has a single round, expected at least 2"):
        stability(single, pd.Series(0, single["group"]), rng, 2)
    with pytest.raises(ValueError, match="no group has 2 rounds with both axes"):
        halves(single, rng)
