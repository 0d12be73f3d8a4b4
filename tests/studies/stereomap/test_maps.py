"""What a run says of its maps, by hand and against the functions that it is made of."""

import numpy as np
import pandas as pd
import pytest

from ingroup.studies.stereomap import clustering, maps, printed, statistics, stimuli

nan = np.nan


def means_of(points, names, **columns):
    """A table of group means: competence and warmth, and the columns of `group_means`."""
    index = pd.Index(names, name="group")
    table = pd.DataFrame(points, index, ["Competence", "Warmth"], dtype=float)
    return table.assign(rounds=1, **columns)


def test_cluster_scores_by_hand():
    means = pd.DataFrame({"Pity": [1, 3, 2, 9], "Envy": [2, nan, 5, 9]}, index=list("abcd"))
    table = maps.cluster_scores(means, pd.Series([0, 0, 1], list("abc")), ["Envy", "Pity"])
    assert table[["score", "cluster"]].values.tolist() == [
        ["Envy", 0],
        ["Envy", 1],
        ["Pity", 0],
        ["Pity", 1],
    ]
    assert table["n"].tolist() == [1, 1, 2, 1]
    assert table["mean"].tolist() == [2, 5, 2, 2]
    np.testing.assert_array_equal(table["variance"], [nan, nan, 2, nan])


def test_a_finding_is_empty_where_nothing_was_tested():
    p = pd.Series([0.01, 0.2, 0.2, nan])
    least = pd.Series([0.001, 0.001, 0.1, 0.001])
    assert maps.significance_words(p, least).tolist() == [
        "significant",
        "not significant",
        "could not have been significant",
        "",
    ]


def test_the_maps_of_a_model_are_one_family():
    """Two maps of one model: p of 0.03 and 0.02 are doubled, and the order is kept."""
    table = pd.DataFrame({"model": ["a", "a", "b"], "p": [0.03, 0.02, 0.03], "p_least": 0.01})
    corrected = maps.with_corrected_p(table, "p")
    assert corrected.p_holm.tolist() == pytest.approx([0.04, 0.04, 0.03])
    assert corrected.p_holm_least.tolist() == pytest.approx([0.02, 0.02, 0.01])
    assert corrected.finding.tolist() == ["significant"] * 3


def rounds_of(positions, n_rounds):
    """Scores: every group stands at its position in each round, but for a little."""
    rows = []
    for name, (competence, warmth) in positions.items():
        for number in range(n_rounds):
            rows.append((name, number, competence + 0.01 * number, warmth))
    return pd.DataFrame(rows, columns=["group", "round", "Competence", "Warmth"])


def test_clusters_of_one_half_are_tested_in_the_other():
    scores = rounds_of({"a": (1, 2), "b": (1, 2.2), "c": (5, 4), "d": (5, 4.1)}, 4)
    halves = clustering.halves(scores, np.random.default_rng(1))
    labels = pd.Series([0, 0, 1, 1], list("abcd"))
    seen = []

    def cluster(means):
        seen.append(means)
        return clustering.Clusters(labels, None, [])

    table = maps.tests_in_other_rounds(scores, cluster, np.random.default_rng(1), 0.05)
    first, second = (statistics.group_means(half) for half in halves)
    pd.testing.assert_frame_equal(seen[0], first)
    expected = second.Competence - second.Warmth
    assert table.difference.tolist() == pytest.approx(
        [expected[["a", "b"]].mean(), expected[["c", "d"]].mean()]
    )


@pytest.mark.parametrize(
    ("n_rounds", "message"), [(1, "no other half"), (2, "too few different positions")]
)
def test_without_another_half_or_clusters_there_is_no_test(n_rounds, message):
    scores = rounds_of({"a": (1, 2), "b": (3, 3)}, n_rounds)
    with pytest.raises(ValueError, match=message):
        maps.tests_in_other_rounds(scores, lambda _: None, np.random.default_rng(0), 0.05)


def test_a_whole_map_is_one_cluster():
    """Four groups, all one point more competent than warm: 1 of 8 pairs of sign patterns."""
    words = pd.DataFrame({"family": ["Competence", "Warmth"], "word": ["able", "kind"]})
    names = [*"abcd", "refused"]
    points = [(2, 1), (3, 2), (4, 3), (5, 4), (nan, nan)]
    ratings = pd.DataFrame({"group": names, "able": [2, 3, 4, 5, nan], "kind": [1, 2, 3, 4, nan]})
    row = maps.whole_map(means_of(points, names), ratings, words, np.random.default_rng(0))
    assert (row["n"], row["Competence"], row["Warmth"], row["difference"]) == (4, 3.5, 2.5, 1)
    assert row["p_exchanged"] == row["p_least"] == pytest.approx(1 / 8, abs=0.03)
    assert row["reason"]  # one word of an axis is no sample
    assert np.isnan(row["p_like_these"])


def test_a_list_and_single_words_are_compared_over_the_groups_that_both_ask():
    """Women are in both maps, one point more competent in the first, one less in the second."""
    listed = means_of([(2, 1), (4, 3), (1, 5)], ["Nurses", "Women", "Lawyers"])
    single = means_of([(2, 2), (3, 4), (1, 1)], ["Asians", "Women", "Men"])
    names = stimuli.groups().set_index("group").table2
    shared = {names[group] or group for group in listed.index}
    shared &= {names[group] or group for group in single.index}
    assert shared == {"Women"}
    row = maps.list_against_words(listed, single)
    assert (row["groups"], row["list"], row["word by word"], row["change"]) == (1, 1, -1, 2)


def test_people_put_24_groups_into_five_places():
    people = maps.people_map()
    assert people.shape == (24, 2)
    assert len(people.drop_duplicates()) == 5


def test_a_map_like_peoples_agrees_and_one_place_is_no_map():
    people = maps.people_map().sample(frac=1, random_state=0)
    table = stimuli.groups().set_index("group").table2
    own = {name: group for group, name in table.items() if name}
    own |= {name: group for group, name in table.items() if name and name != group}
    means = people.set_axis([own[group] for group in people.index])
    rng = np.random.default_rng(0)
    row = maps.compare_with_people(means, rng)
    assert row["groups"] == 24
    assert row["rho of Warmth"] == pytest.approx(1)
    assert row["Procrustes distance"] == pytest.approx(0, abs=1e-9)
    same = maps.compare_with_people(means, rng, same_name=True)
    is_same = [group.casefold() == table[group].casefold() for group in means.index]
    assert 3 < same["groups"] == sum(is_same) < 24
    assert [name for name in row if name not in same] == [
        "p of Competence",
        "p of Warmth",
        "p of Difference",
        "p of Valence",
        "p",
        "p_least",
    ]
    with pytest.raises(ValueError, match="fewer than three different positions"):
        maps.compare_with_people(means.assign(Competence=3.0, Warmth=3.0), rng)


def test_status_and_competition_are_means_of_their_prompts():
    prompts = stimuli.prompts("ORIGINAL").items()
    names = {
        part: [name.split("/")[1] for name, prompt in prompts if prompt.construct == part]
        for part in maps.SOCIAL_STRUCTURE
    }
    assert all(names.values())
    ratings = pd.DataFrame({"group": ["a", "a"], "round": [1, 2]})
    for number, name in enumerate(names["Status"]):
        ratings[name] = [number, number + 1]
    for name in names["Competition-others"]:
        ratings[name] = [5.0, 3.0]
    table = maps.with_structure(means_of([(1, 2)], ["a"]), ratings)
    assert table.loc["a", "Status"] == np.mean(range(len(names["Status"]))) + 0.5
    assert table.loc["a", "Competition-others"] == 4


def test_groups_with_one_most_probable_list_are_one_lump():
    rows = [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 4), ("c", 4), ("d", nan), ("d", 1)]
    most_probable = pd.DataFrame(rows, columns=["group", "most_probable"]).assign(
        model="m", version="EXTENDED"
    )
    means = means_of([(1, 2), (3, 4), (5, 5), (5, 5)], list("abcd"))
    table = maps.most_probable_lists(most_probable, {("m", "EXTENDED"): means})
    lump = table[table.groups == 2]
    assert lump[["list", "Competence", "Warmth"]].values.tolist() == [["1 2", 2, 3]]
    assert table.list.tolist()[0] == "1 2"
    assert maps.most_probable_lists(most_probable.head(0), {}).empty


def test_the_sign_of_a_centroid_says_what_was_found():
    findings = ["significant", "significant", "not significant", "could not have been significant"]
    findings.append("")  # a single group is not tested
    names = ["Asians", "Men", "Women", "Jews", "Rich people"]
    table = pd.DataFrame({"Competence": [4, 1, 3, 4, 4], "Warmth": [2, 3, 2, 1, 1], "sign": "="})
    table["difference"] = table.Competence - table.Warmth
    table["finding"] = findings
    key = ("a model", "ORIGINAL")
    lists = printed.cluster_lists({key: pd.Series(range(5), names)}, {key: table})
    rows = lists[lists.source == "a model"]
    assert rows.centroid.tolist() == [
        "(4.00>2.00)",
        "(1.00<3.00)",
        "(3.00=2.00)",
        "(4.00?1.00)",
        "(4.00?1.00)",
    ]
    people = lists[lists.source == printed.FISKE]
    assert len(people) == 24
    assert people.model.isna().all()
    layout = printed.layout_of_version(lists)
    assert layout["a model", "group"].tolist()[:2] == ["Asians", "Men"]
    assert layout["a model", "group"].tolist()[5:] == [""] * 19


def test_stars_and_cells_of_tables_8_and_9():
    p = pd.Series([0.0005, 0.005, 0.04, 0.2, nan])
    assert printed.stars(p).tolist() == ["***", "**", "*", "", ""]
    rows = pd.DataFrame(
        {
            "model": "m",
            "predictor": ["Warmth", "Warmth", "Envy", "Envy"],
            "outcome": ["Harm", "Help", "Harm", "Help"],
            "rho": [0.5, -0.25, nan, 0],
            "p": [0.0005, 0.04, nan, 1],
            "p_holm": [0.002, 0.08, nan, 1],
        }
    )
    table = printed.table8(rows)
    assert table.index.tolist() == ["Warmth", "Envy"]
    assert table["m"].values.tolist() == [["0.50*** | **", "-0.25* | "], ["", "0.00 | "]]
    ends = pd.DataFrame(
        {
            "model": "m",
            "word": printed.ENDS,
            "end": "highest",
            "rank": 1,
            "group": "Men",
            "mean": [4.0, 3.5, 2, 1],
            "variance": [0.5, nan, 0, 1],
            "tied": [1, 3, 1, 1],
        }
    )
    assert printed.table9(ends).loc[("m", "highest", 1)].tolist() == [
        "Men 4.00 (0.50)",
        "Men 3.50, 3 tied",
        "Men 2.00 (0.00)",
        "Men 1.00 (1.00)",
    ]


def test_the_correlations_of_all_models_are_one_table():
    rows = pd.DataFrame({"rho": [0.5, 0.1], "p_holm": [0.01, 0.5], "p_holm_least": [0.001, 0.2]})
    table = maps.correlation_table({"a": rows, "b": rows.head(1)})
    assert table.model.tolist() == ["a", "a", "b"]
    assert table.finding.tolist() == [
        "significant",
        "could not have been significant",
        "significant",
    ]


def test_a_correlation_that_is_missing_has_a_reason():
    """Of one group, of groups that are all alike, and of none that is missing."""
    rng = np.random.default_rng(0)
    alike = pd.DataFrame({"Status": [1, 2, 3, 4], "Warmth": [3, 1, 2, 4], "Competence": 2.0})
    by_model = {
        "one group": statistics.correlations(alike.head(1), ["Status"], ["Warmth"], rng),
        "alike": statistics.correlations(alike, ["Status"], ["Competence", "Warmth"], rng),
        "whole": statistics.correlations(alike, ["Status"], ["Warmth"], rng),
    }

    table = maps.correlation_table(by_model)

    beginning = "pairs of scores have no correlation, because"
    assert maps.missing_correlations(table) == [
        f"one group: 1 of 1 {beginning} fewer than 4 groups have both scores.",
        f"alike: 1 of 2 {beginning} one of the scores is the same for all groups.",
    ]


A = ("a", "EXTENDED")
B = ("b", "EXTENDED")


def two_clusters(labels):
    """Clusters with these labels; of their centroids only the number counts."""
    centroids = pd.DataFrame({"n": 2}, index=pd.Index([0, 1], name="cluster"))
    return clustering.Clusters(labels, centroids, [])


def test_the_spread_of_a_map_is_that_of_its_groups():
    means = {A: means_of([(1, 2), (4, 3), (4, nan)], list("xyz"))}
    row = maps.score_ranges(means).loc[A]
    assert row["Competence"].tolist() == [1, 3, 4]
    assert row["Warmth"].tolist() == [2, 2.5, 3]
    assert row["rounds", ""] == 1


def test_the_map_of_all_averages_real_models_if_there_are_any():
    """A group without a score of one model has the other's."""
    first = means_of([(1, 2), (nan, nan)], ["Men", "Women"])
    second = means_of([(3, 4), (5, 5)], ["Men", "Women"])
    means = {
        ("calibrant", "ORIGINAL"): first,
        ("own", "ORIGINAL"): first,
        ("own", "EXTENDED"): first,
        ("other", "ORIGINAL"): second,
    }
    assert maps.models_of(means, "EXTENDED") == ["own"]
    assert maps.averaged_models(means) == ["own", "other"]
    assert maps.averaged_models({("calibrant", "ORIGINAL"): first}) == ["calibrant"]
    table = maps.mean_map(means, ["own", "other"])
    assert table.to_dict("index") == {
        "Men": {"Competence": 2, "Warmth": 3},
        "Women": {"Competence": 5, "Warmth": 5},
    }


def test_positions_have_their_cluster_and_groups_without_one_are_named():
    means = {
        A: means_of([(1, 2), (4, 3), (nan, 3), (nan, 1)], ["Men", "Women", "Jews", "Asians"]),
        B: means_of([(1, 2)], ["Men"]),
    }
    clusters = {A: two_clusters(pd.Series([1, 0], ["Men", "Women"]))}
    table = maps.positions(means, clusters)
    assert table.columns[2] == "cluster"
    assert table.loc[A, "cluster"].tolist() == [1, 0, pd.NA, pd.NA]
    unplaced = maps.groups_in_no_cluster(table)["in no cluster"]
    assert unplaced.to_dict() == {A: "Jews, Asians", B: "Men"}
    assert maps.centroids(clusters).index.tolist() == [(*A, 0), (*A, 1)]


def test_maps_without_clusters_are_left_out_and_versions_are_told():
    means = {A: means_of([(1, 2)], ["Men"]), ("a", "ORIGINAL"): means_of([(3, 4)], ["Men"])}
    clusters = two_clusters(pd.Series([1], ["Men"]))
    seen = []

    def cluster(table, version):
        seen.append((table.Competence["Men"], version))
        return clusters if version == "EXTENDED" else None

    assert maps.clusters_of(means, cluster) == {A: clusters}
    assert seen == [(1, "EXTENDED"), (3, "ORIGINAL")]


def test_other_starts_that_find_the_same_clusters_have_an_index_of_one():
    labels = {A: pd.Series([0, 0, 1, 1], list("wxyz")), B: pd.Series([0, 1, 0, 1], list("wxyz"))}
    again = two_clusters(pd.Series([1, 1, 0, 0], list("wxyz")))
    table = maps.other_starts({A: None, B: None}, labels, lambda table, version: again)
    assert table["other starts"].tolist() == [1, pytest.approx(-0.5)]
    assert table[["model", "version"]].values.tolist() == [list(A), list(B)]


def test_a_map_is_tested_on_its_rounds_against_maps_that_are_clustered_again():
    """Two clusters, far from the diagonal on either side: each group leans by 2 points."""
    names = [f"{side}{number}" for side in "lr" for number in range(6)]
    points = [(1 + n / 10, 3 + n / 10) for n in range(6)] + [
        (4 + n / 10, 2 + n / 10) for n in range(6)
    ]
    means = means_of(points, names)
    labels = pd.Series([0] * 6 + [1] * 6, names)
    rng = np.random.default_rng(0)
    table = maps.tests_in_same_rounds(means, two_clusters(labels), rng, 0.05)

    null = clustering.exchange_null(means, 2, np.random.default_rng(0))
    expected = clustering.axis_tests(means, labels, 0.05, null)
    pd.testing.assert_frame_equal(table.drop(columns="finding"), expected)
    assert (
        table.finding.tolist()
        == maps.significance_words(expected.p_exchanged, expected.p_least).tolist()
    )
    assert table.sign.tolist() == ["<", ">"]


def test_differences_are_counted_for_each_map_and_way():
    keys = [(*A, "same rounds", 0), (*A, "same rounds", 1), (*A, "other rounds", 0)]
    index = pd.MultiIndex.from_tuples(keys, names=["model", "version", "way", "cluster"])
    findings = ["significant", "not significant", ""]
    tests = pd.DataFrame({"n": 2, "sign": [">", "<", "="], "finding": findings}, index)
    table = maps.differences_found(tests)
    assert table.loc[(*A, "same rounds")].tolist() == [2, 2, 1]
    assert table.loc[(*A, "other rounds")].tolist() == [1, 0, 0]


def test_tests_of_whole_maps_are_corrected_for_both_scopes():
    rows = pd.DataFrame(
        {
            "model": ["a", "a"],
            "version": ["EXTENDED", "ORIGINAL"],
            "p_exchanged": [0.01, 0.5],
            "p_least": 0.001,
            "p_like_these": [0.03, 0.02],
        }
    )
    columns = [
        "n",
        "Competence",
        "Warmth",
        "difference",
        "low",
        "high",
        "low_like_these",
        "high_like_these",
    ]
    rows[columns] = 1.0
    table = maps.whole_map_table(rows.assign(reason=""))
    assert table.p_holm.tolist() == pytest.approx([0.02, 0.5])
    assert table.p_like_these_holm.tolist() == pytest.approx([0.04, 0.04])
    assert table.finding.tolist() == ["significant", "not significant"]
    assert table.columns[-5:].tolist() == [
        "low_like_these",
        "high_like_these",
        "p_like_these",
        "p_like_these_holm",
        "reason",
    ]


def test_lists_are_compared_for_models_that_answered_both_versions():
    listed = means_of([(2, 1), (4, 3)], ["Women", "Men"])
    single = means_of([(2, 2), (3, 4)], ["Women", "Men"])
    means = {A: listed, B: listed, ("a", "ORIGINAL"): single, ("c", "ORIGINAL"): single}
    table = maps.lists_against_words(means)
    assert table.model.tolist() == ["a"]
    assert table[["groups", "list", "word by word", "change"]].values.tolist() == [
        [2, 1, -0.5, 1.5]
    ]
    assert maps.lists_against_words({A: listed}).columns[0] == "model"


def test_the_coldest_group_is_a_real_models_if_there_is_one():
    cold = means_of([(1, 1), (4, 3)], ["Men", "Women"])
    warm = means_of([(1, 5), (4, 4)], ["Men", "Women"])
    means = {("calibrant", "EXTENDED"): cold, A: warm, ("a", "ORIGINAL"): cold}
    table = pd.concat(means, names=maps.MAP_KEY)
    assert maps.coldest_group(table) == ("a", "Women")
    of_calibrant = table.loc[["calibrant"]]
    assert maps.coldest_group(of_calibrant) == ("calibrant", "Men")


def test_table_8_says_which_predictors_are_stereotypes():
    rows = pd.DataFrame({"predictor": ["Warmth", "Envy"], "p_holm": 0.5, "p_holm_least": 0.001})
    table = maps.table8({"a": rows})
    assert table.columns[:2].tolist() == ["model", "kind"]
    assert table.kind.tolist() == ["Stereotypes", "Emotions"]


def test_cluster_scores_are_those_of_extended_maps():
    means = means_of([(1, 2), (4, 3), (4, 3)], list("xyz"), Envy=[1.0, 2.0, 4.0])
    labels = pd.Series([0, 1, 1], list("xyz"))
    original = ("a", "ORIGINAL")
    table = maps.cluster_scores_of_maps(
        {A: means, original: means}, {A: labels, original: labels}, ["Envy"]
    )
    assert table.model.tolist() == ["a", "a"]
    assert table["mean"].tolist() == [1, 3]
    assert maps.cluster_scores_of_maps({}, {}, ["Envy"]).empty


def test_the_ends_of_table_9_are_of_models_that_rated_all_its_words():
    ratings = pd.DataFrame({"group": ["Men", "Women"], "round": 1})
    ratings[printed.ENDS] = [[1.0, 2.0, 3.0, 4.0], [5.0, 1.0, 3.0, 2.0]]
    tables = {A: ratings, B: ratings.drop(columns=printed.ENDS[0]), ("a", "ORIGINAL"): ratings}
    of_words = printed.ratings_of_ends(tables)
    assert list(of_words) == ["a"]
    ends = printed.ends_of_words(of_words)
    first = ends.query("word == 'Traditional' and end == 'highest'")
    assert first.group.tolist() == ["Women", "Men"]
    assert ends.columns[:3].tolist() == ["model", "word", "end"]
    assert ends.word.unique().tolist() == printed.ENDS
    assert printed.ends_of_words({}).empty


def test_each_layout_has_the_number_of_the_papers_table():
    tests = pd.DataFrame({"Competence": [4.0], "Warmth": [2.0], "sign": ">", "difference": 2.0})
    tests["finding"] = "significant"
    labels = pd.Series([0], ["Women"])
    lists = printed.cluster_lists({A: labels}, {A: tests})
    layouts = printed.layouts(lists)
    assert list(layouts) == ["Table 5"]
    assert layouts["Table 5"]["a", "centroid"].tolist() == ["(4.00>2.00)"]


def test_models_of_the_run_stand_below_those_of_table_13():
    paper = stimuli.ablations()[0]
    columns = ["Competence CV mean, all rounds", "Warmth CV mean, all rounds"]
    index = pd.MultiIndex.from_tuples([("own", paper), ("one round", paper)])
    sensitivity = pd.DataFrame([[0.1, 0.2], [nan, nan]], index, columns)
    table = printed.table13(sensitivity, ["own", "one round", "absent"])
    assert table.index[-1] == "own (here)"
    assert table.loc["own (here)"].to_dict() == {"Competence": 0.1, "Warmth": 0.2}
    assert len(table) > 1
