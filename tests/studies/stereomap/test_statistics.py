"""Scores, correlations and maps by hand, against SciPy, and by brute force."""

from itertools import permutations
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy import spatial, stats

from ingroup.paths import PUBLISHED
from ingroup.stats.paired import adjust
from ingroup.studies.stereomap.statistics import (
    agreement,
    correlations,
    extremes,
    group_means,
    round_scores,
)
from maps import maps

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
    means = maps([(1, 2), (3, 2), (2, 5), (4, 4)])
    tables = [RATINGS, SCORES, means]
    before = [table.copy() for table in tables]
    round_scores(RATINGS, WORDS)
    group_means(SCORES)
    agreement(means, means, np.random.default_rng(0))
    for table, copy in zip(tables, before, strict=True):
        pd.testing.assert_frame_equal(table, copy)
