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
    five_places = np.array([[1.5, 1.5], [2.4, 2.6], [4.2, 2.3], [2.9, 3.9], [4.3, 4.2]])
    places = np.repeat(five_places, 4, axis=0)
    points = places[:, None] + rng.normal(0, noise, (20, rounds, 2))

    rows = []
    for group in range(20):
        for turn in range(rounds):
            competence, warmth = points[group, turn]
            rows.append((f"group {group}", turn, competence, warmth))

    return pd.DataFrame(rows, columns=["group", "round", "Competence", "Warmth"])


def test_numbers_and_centroids_of_clusters():
    # Sums 2, 10, 6.2 and 6; the refused group has no position.
    names = ["nurses", "homeless", "lower", "doctors", "addicts", "elderly", "refused"]
    points = [(5, 5), (1, 1), (3.2, 3), (5, 4.8), (1.2, 1), (1, 5), (nan, 3)]

    result = clusters(maps(points, names), n_clusters=4)

    assert result.labels.to_dict() == {
        "nurses": 3,
        "homeless": 0,
        "lower": 2,
        "doctors": 3,
        "addicts": 0,
        "elderly": 1,
    }
    assert result.left_out == ["refused"]
    assert list(result.labels.index) == names[:6]
    centroids = result.centroids
    np.testing.assert_allclose(centroids["n"], [2, 1, 1, 2])
    np.testing.assert_allclose(centroids["Competence"], [1.1, 1, 3.2, 5])
    np.testing.assert_allclose(centroids["Warmth"], [1, 5, 3, 4.9])
    assert centroids["anchor"].tolist() == ["", "", "", ""]


ANCHORS = list(stimuli.ANCHORS["EXTENDED"])
POINTS = [(1, 1), (1, 2), (5, 4), (5, 5), (2, 5)]
NAMES = ["Homeless", "Lower-class", "Lawyers", "Nurses", "Elderly"]


def test_clusters_have_the_numbers_of_the_groups_that_the_paper_names_them_by():
    result = clusters(maps(POINTS, NAMES), version="EXTENDED")

    assert result.labels[ANCHORS].tolist() == [0, 1, 2, 3, 4]
    assert result.centroids.anchor.tolist() == ANCHORS


def test_without_an_anchor_the_clusters_after_it_move_up():
    without_lawyers = ["Homeless", "Lower-class", "Men", "Nurses", "Elderly"]

    result = clusters(maps(POINTS, without_lawyers), version="EXTENDED")

    assert result.labels.tolist() == [0, 1, 4, 3, 2]


def test_four_places_are_not_five_clusters():
    four_places = maps(POINTS[:4], NAMES[:4])
    assert clusters(four_places, version="EXTENDED") is None


def test_more_anchors_than_clusters_number_none():
    result = clusters(maps(POINTS, NAMES), 3, version="EXTENDED")
    assert set(result.centroids.anchor) == {""}


def test_an_anchor_without_a_cluster_of_its_own_frees_its_number():
    """The second shares the cluster of the first, the third has no position: 1 and 2 stay free."""
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
    # As calc_warmth_competence and calc_kmeans have it: sorted, warmth first, random_state=0.
    placed = means.dropna().sort_values(["Competence", "Warmth"])
    by_authors = KMeans(n_clusters=5, n_init=10, random_state=0)
    by_authors.fit(placed[["Warmth", "Competence"]])
    their_centres = by_authors.cluster_centers_[by_authors.labels_]

    result = clusters(means, n_init=3, kmeans="released")
    shuffled = clusters(means.sample(frac=1, random_state=seed), kmeans="released")

    labels = result.labels[placed.index]
    assert adjusted_rand_score(by_authors.labels_, labels) == 1
    our_centres = result.centroids.loc[labels, ["Warmth", "Competence"]]
    np.testing.assert_allclose(our_centres, their_centres)
    assert result.left_out == [means.index[3]]
    assert shuffled.labels.to_dict() == result.labels.to_dict()


@settings(max_examples=6)
@given(st.integers(0, 1000), st.permutations(range(12)))
def test_order_of_groups_changes_no_label(seed, order):
    means = maps(np.random.default_rng(seed).uniform(1, 5, (12, 2)))

    result = clusters(means, 4, n_init=3)
    reordered = clusters(means.iloc[list(order)], 4, n_init=3)

    assert reordered.labels.to_dict() == result.labels.to_dict()
    pd.testing.assert_frame_equal(reordered.centroids, result.centroids)
    sums = result.centroids[["Competence", "Warmth"]].sum(axis=1)
    assert sums.round(6).is_monotonic_increasing


# C is at 1 or 4.9 or between, at 2.95: a quarter of the draws put it to B instead of A. Then the
# index of {A, C}, {B} and {A}, {B, C} is (0 - 1/3) / (1 - 1/3), each Jaccard index 1/2.
def test_stability_by_hand():
    rounds = [
        ("A", 0, 1, 1),
        ("B", 0, 5, 5),
        ("C", 0, 1, 1),
        ("C", 1, 4.9, 4.9),
        ("C", 2, nan, 5),
    ]
    scores = pd.DataFrame(rounds, columns=["group", "round", "Competence", "Warmth"])
    labels = pd.Series({"A": 0, "B": 1, "C": 0})

    result = stability(scores, labels, np.random.default_rng(0), 60)

    share_alike = (result["ari"] + 0.5) / 1.5
    n_alike = round(60 * share_alike, 9)
    assert 35 <= n_alike <= 55  # 45 expected, with a standard deviation of 3.4

    overlap = (1 + share_alike) / 2
    assert result == pytest.approx(
        {
            "ari": result["ari"],
            "low": -0.5,
            "high": 1,
            "overlap of 0": overlap,
            "overlap of 1": overlap,
        }
    )


def stability_under(noise):
    """Stability of clusters of rounds with this noise."""
    scores = some_rounds(noise)
    labels = clusters(group_means(scores)).labels
    return stability(scores, labels, np.random.default_rng(1), 8)


def test_stability_falls_with_noise():
    little = stability_under(0.05)
    some = stability_under(0.7)
    much = stability_under(5.0)

    assert set(little.values()) == {1}
    assert 0.6 < some["ari"] < 0.999
    assert much["ari"] < 0.5


def test_stability_is_the_same_under_the_same_seed():
    assert stability_under(5.0) == stability_under(5.0)


def test_groups_that_are_all_alike_are_stable():
    scores = some_rounds(5.0)
    scores[["Competence", "Warmth"]] = 3.0
    labels = pd.Series(0, scores["group"].unique())

    result = stability(scores, labels, np.random.default_rng(0), 3)

    assert result["ari"] == 1


# Differences 1, 2, 3: sd 1, t = 2 sqrt(3). With 2 degrees of freedom the two-sided p is
# 1 - t / sqrt(t**2 + 2), and t(0.975) is 4.30265.
def test_axis_tests_by_hand():
    points = [(3, 2), (4, 2), (5, 2), (1, 2), (2, 2.5), (2, 3), (3, 4), (4, 4), (1, 1)]
    labels = pd.Series([0, 0, 0, 1, 2, 3, 3, 4, 4], [f"group {k}" for k in range(9)])
    t = 2 * sqrt(3)
    margin = 4.30265 / sqrt(3)

    table = axis_tests(maps(points), labels, alpha=0.08)

    first = table.loc[0]
    assert first["n"] == 3
    assert first["Competence"] == 4
    assert first["Warmth"] == 2
    assert first["difference"] == 2
    assert first["statistic"] == pytest.approx(t)
    assert first["d_z"] == pytest.approx(2)
    assert first["p"] == pytest.approx(1 - t / sqrt(t**2 + 2))
    assert first["low"] == pytest.approx(2 - margin, abs=1e-4)
    assert first["high"] == pytest.approx(2 + margin, abs=1e-4)

    # Single groups keep their centroids; differences without spread have no t.
    single = table.loc[[1, 2]]
    assert single["Competence"].tolist() == [1, 2]
    assert single["Warmth"].tolist() == [2, 2.5]
    assert single[["statistic", "p", "p_holm", "low"]].isna().all(axis=None)

    without_spread = table.loc[[3, 4]]
    assert without_spread["difference"].tolist() == [-1, 0]
    assert without_spread["statistic"].tolist() == [-np.inf, 0]
    np.testing.assert_array_equal(without_spread["d_z"], [np.nan, 0])
    assert without_spread["p"].tolist() == [0.5, 1]
    assert table["sign"].tolist() == [">", "", "", "=", "="]

    # Holm doubles the first p, 0.074, as the third cluster comes before it.
    assert first["p_holm"] == pytest.approx(3 * first["p"])
    assert table["sign_holm"].tolist() == ["=", "", "", "=", "="]


def test_halves_share_no_round():
    scores = some_rounds(0.5, rounds=5)
    scores.loc[[0, 5, 6, 7, 8], "Warmth"] = nan  # 4 rounds of the first group, 1 of the second
    expected = scores[scores["group"] != "group 1"].dropna()

    first, second = halves(scores, np.random.default_rng(0))
    other_first, _ = halves(scores, np.random.default_rng(1))

    joined = pd.concat([first, second]).sort_index()
    pd.testing.assert_frame_equal(joined, expected)
    assert sorted(first["group"].value_counts()) == [2] + [3] * 18
    assert sorted(second["group"].value_counts()) == [2] * 19
    assert list(other_first.index) != list(first.index)


def axis_tests_on_the_other_half(scores, rng, **options):
    """Clusters of one half of the rounds, tested on the other."""
    first, second = halves(scores, rng)
    labels = clusters(group_means(first)).labels
    return axis_tests(group_means(second), labels, **options)


def test_noise_is_significant_only_to_the_rounds_that_made_its_clusters():
    rng = np.random.default_rng(4)
    index = pd.MultiIndex.from_product([range(98), range(10)], names=["group", "round"])
    noise = rng.normal(3, 0.3, (980, 2))
    scores = pd.DataFrame(noise, index, ["Competence", "Warmth"]).reset_index()
    means = group_means(scores)

    as_printed = axis_tests(means, clusters(means).labels)
    on_other_half = axis_tests_on_the_other_half(scores, rng)

    assert set(as_printed["sign"]) == {">", "<", "="}
    assert (on_other_half["sign"] == "=").all()
    assert on_other_half["p_holm"].min() > 0.05


def test_true_differences_are_found_in_the_other_half_too():
    table = axis_tests_on_the_other_half(some_rounds(0.3), np.random.default_rng(4), alpha=0.01)
    assert table["sign_holm"].tolist()[2:4] == [">", "<"]


# Two groups at (1, 4): exchanged or not, d is 3 and 3, or 3 and -3, which cancel, or -3 and -3.
def test_null_of_exchanged_axes_by_hand():
    two_groups = maps([(1, 4), (1, 4)])

    one_cluster = exchange_null(two_groups, 1, np.random.default_rng(0), 400)
    two_clusters = exchange_null(two_groups, 2, np.random.default_rng(0), 400)

    together = round(sqrt(2), 9)
    assert set(one_cluster.round(9)) == {0, together}
    n_cancelled = np.count_nonzero(one_cluster < 1)
    assert 150 <= n_cancelled <= 250
    # In two clusters each has its own place in every draw: a z of 1, or of sqrt(2) together.
    assert set(two_clusters.round(9)) == {1, together}


def test_one_cluster_is_the_test_of_random_signs():
    def mean_difference(competence, warmth, axis):
        return np.mean(competence - warmth, axis=axis)

    rng = np.random.default_rng(6)
    means = maps(rng.normal([3.4, 3], 0.5, (40, 2)))
    labels = pd.Series(0, means.index)
    null = exchange_null(means, 1, rng, 4999)
    expected = stats.permutation_test(
        (means.Competence, means.Warmth),
        mean_difference,
        permutation_type="samples",
        vectorized=True,
        n_resamples=4999,
        rng=rng,
    ).pvalue

    row = axis_tests(means, labels, null=null).loc[0]

    assert 0.001 < expected < 0.5
    assert row["p_exchanged"] == pytest.approx(expected, abs=0.025)
    assert row["p_least"] == 1 / 5000


# Half of the groups are competent, half warm: k-means finds them, the mean difference is 0.
def test_position_is_significant_to_the_paired_test_and_not_to_exchanged_axes():
    rng = np.random.default_rng(1)
    three_places = [[4.0, 2.0], [2.0, 4.0], [3.0, 3.0]]
    places = np.repeat(three_places, 10, axis=0)
    means = maps(places + rng.normal(0, 0.1, (30, 2)))
    labels = clusters(means, 3).labels
    null = exchange_null(means, 3, rng, 199)

    table = axis_tests(means, labels, null=null)

    assert sorted(table["sign"]) == ["<", "=", ">"]
    assert table["p_exchanged"].min() > 0.3
    assert table["p_least"].min() > 0.05  # ten groups of thirty could not have been enough


def test_groups_on_one_side_of_the_diagonal_are_significant_to_exchanged_axes():
    rng = np.random.default_rng(1)
    places = np.tile([4.0, 2.0], (20, 1))
    means = maps(places + rng.normal(0, 0.1, (20, 2)))
    labels = pd.Series(0, means.index)
    null = exchange_null(means, 1, rng, 199)

    table = axis_tests(means, labels, null=null)

    assert table["p_exchanged"].tolist() == [1 / 200]


@pytest.mark.parametrize("seed", range(4))
def test_clusters_are_the_best_that_many_starts_of_scikit_learn_find(seed):
    points = np.random.default_rng(seed).normal(3, 0.1, (98, 2)).round(1 + seed % 2)
    means = maps(points)
    by_scikit_learn = KMeans(5, n_init=60, random_state=0).fit(points)

    labels = clusters(means).labels

    centres = means.groupby(labels).transform("mean")
    squares = (centres - points) ** 2
    inertia = squares.to_numpy().sum()
    assert inertia <= by_scikit_learn.inertia_ + 1e-9


def test_a_map_of_noise_has_one_best_partition_whatever_the_seed():
    noise = maps(np.random.default_rng(3).normal(3, 0.1, (98, 2)))

    labels = clusters(noise, seed=0).labels
    labels_of_other_seed = clusters(noise, seed=1).labels

    assert adjusted_rand_score(labels, labels_of_other_seed) > 0.95


def test_tables_are_left_as_they_are():
    scores = some_rounds(0.5)
    means = group_means(scores)
    labels = clusters(means).labels
    tables = [scores, means, labels]
    copies = [table.copy() for table in tables]

    stability(scores, labels, np.random.default_rng(0), 2)
    axis_tests(means, labels)

    for table, copy in zip(tables, copies, strict=True):
        pd.testing.assert_frame_equal(pd.DataFrame(table), pd.DataFrame(copy))


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_done_is_one_sentence():
    rng = np.random.default_rng(0)
    single_round = some_rounds(0.5, rounds=1)
    labels = pd.Series(0, single_round["group"])

    with pytest.raises(ValueError, match="every group has a single round, expected at least 2"):
        stability(single_round, labels, rng, 2)
    with pytest.raises(ValueError, match="no group has 2 rounds with both axes"):
        halves(single_round, rng)


def test_the_smallest_difference_is_found_in_four_clusters_of_five():
    """A null of clusters of 20 groups; the differences of 30 groups, drawn and tested."""
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((999, 20))
    lengths = np.sqrt((noise**2).sum(axis=1))
    null = np.abs(noise.sum(axis=1)) / lengths
    means = pd.DataFrame({"Warmth": 3.0, "Competence": 3.0}, index=range(30))
    one_cluster = pd.Series(0, means.index)

    smallest = clustering.smallest_standardised_difference(null, 30)

    significant = []
    for differences in smallest + rng.standard_normal((400, 30)):
        drawn = means.assign(Competence=3 + differences)
        table = clustering.axis_tests(drawn, one_cluster, null=null)
        significant.append(table.p_exchanged[0] < 0.05)
    assert np.mean(significant) == pytest.approx(0.8, abs=0.08)  # four standard errors


def test_a_cluster_that_is_too_small_finds_nothing():
    """Each draw has a cluster of 16 groups that all lean to one side: z is 4."""
    null = np.full(999, 4.0)

    assert clustering.exchange_floor(null, 16) == 1
    assert clustering.smallest_standardised_difference(null, 16) == np.inf
    assert clustering.groups_for_exchange(null) == 17
    assert clustering.exchange_floor(null, 17) == 1 / 1000
    assert 0 < clustering.smallest_standardised_difference(null, 40) < 5

    with pytest.raises(ValueError, match="found 9 draws, expected more than 20"):
        clustering.groups_for_exchange(null[:9])


def steady_ratings(words, rng):
    """Ratings of these words by one round of twelve groups."""
    ratings = {word: rng.normal(3, 0.5, 12) for word in words}
    groups = [f"group {k}" for k in range(12)]
    return pd.DataFrame({"group": groups, "round": 0, **ratings})


def test_words_of_both_axes_are_a_sample():
    """The difference is that of the means of the axes; words that vary widen its interval."""
    words = stimuli.words("EXTENDED")
    of_axes = words[words.family.isin(["Competence", "Warmth"])]
    first_word, second_word = of_axes.word.iloc[:2]
    steady = steady_ratings(of_axes.word, np.random.default_rng(5))
    uneven = steady.copy()
    uneven[first_word] += 2
    uneven[second_word] -= 2

    narrow = clustering.word_sample_test(steady, words)
    wide = clustering.word_sample_test(uneven, words)

    means = group_means(statistics.round_scores(steady, words))
    differences = means.Competence - means.Warmth
    assert narrow.estimate == pytest.approx(differences.mean())
    assert narrow.df == 6
    assert wide.estimate == pytest.approx(narrow.estimate)
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_words_that_nobody_rated_are_refused():
    words = stimuli.words("EXTENDED")
    unrated = pd.DataFrame({"group": ["a", "b"]})
    unrated = unrated.reindex(columns=["group", *words.word])

    with pytest.raises(ValueError, match="found no number"):
        clustering.word_sample_test(unrated, words)
