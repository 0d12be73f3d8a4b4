"""Scores, correlations, maps, variation, self-BLEU, entropies, refusals: by hand and by others."""

from functools import partial
from itertools import permutations
from math import exp, log2, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from scipy import spatial, stats
from statsmodels.stats.proportion import proportion_confint

from ingroup.paths import PUBLISHED
from ingroup.stats.paired import adjust
from ingroup.studies.stereomap.statistics import (
    agreement,
    correlations,
    extremes,
    group_means,
    ngram_entropy,
    reason_diversity,
    refusal_rates,
    round_scores,
    self_bleu,
    variation,
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
    row = scores.loc[1]
    assert row["Pity"] == 3
    assert row["Envy"] == 4
    row = scores.loc[2]
    assert row["Competence"] == 2
    assert row["Warmth"] == 4.5
    assert scores.loc[2, ["Pity", "Envy"]].isna().all()

    means = group_means(scores)
    assert list(means.index) == ["nurses", "blinds"]

    expected = [3, 2, (3 + 2) / 2, (4 + 4.5) / 2]
    assert means.loc["nurses", ["rounds", "used", "Competence", "Warmth"]].tolist() == expected
    nurses = means.loc["nurses"]
    assert nurses["Pity"] == (1.5 + 3) / 2
    assert nurses["Envy"] == (5 + 4) / 2
    blinds = means.loc["blinds"]
    assert blinds["rounds"] == 1
    assert blinds["used"] == 0
    assert blinds["Pity"] == 5
    assert means.loc["blinds", ["Competence", "Warmth"]].isna().all()


def test_scores_of_what_is_there_by_hand():
    scores = round_scores(RATINGS, WORDS, incomplete="mean")

    row = scores.loc[1]
    assert row["Competence"] == 3
    assert row["Warmth"] == (5 + 4) / 2
    row = scores.loc[2]
    assert row["Pity"] == 3
    assert row["Envy"] == 1
    row = scores.loc[3]
    assert row["Warmth"] == 2
    assert row["Morality"] == 2
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
    assert scores["Warmth"] == 1.5
    assert scores["Competence"] == 5.5
    assert scores.iloc[8:].tolist() == [8.5 + 2 * k for k in range(8)]
    assert scores.index[-1] == words["dimension"].iloc[-1]


# Ranks differ by 1, 1, 1, 1, 0: rho = 1 - 6 * 4 / (5 * 24) = 0.8; v = (1 + 0.32) / 2.
def test_correlation_by_hand():
    scores = {
        "Help": [20, 10, 40, 30, 50],
        "Envy": 2.0,
        "Pity": [1, 2, 3, nan, nan],
    }
    means = pd.DataFrame({"Warmth": [1, 2, 3, 4, 5], **scores})
    rng = np.random.default_rng(0)
    table = correlations(means, ["Warmth"], ["Help", "Envy", "Pity"], rng)
    columns = "predictor outcome n rho low high p p_least p_holm p_holm_least"

    assert list(table.columns) == columns.split()

    row = table.loc[0]
    assert row["predictor"] == "Warmth"
    assert row["outcome"] == "Help"
    assert row["n"] == 5
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
    means = pd.DataFrame(
        {
            "a": [1, 2, 3, 4],
            "b": [1, 2, 3, 9],
        }
    )
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
    rows = [
        ("a", 3),
        ("b", 5),
        ("c", 1),
        ("d", 5),
        ("e", 2),
    ]
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
    mine = maps(
        [
            (1, 3),
            (2, 3),
            (3, 3),
        ]
    )
    theirs = maps(
        [
            (1, 2),
            (3, 2),
            (2, 2),
        ]
    )
    found = agreement(mine, theirs, np.random.default_rng(0))

    assert found["rho of Competence"] == pytest.approx(0.5)
    assert np.isnan(found["rho of Warmth"])
    assert found["groups"] == 3
    assert found["p"] == 1
    assert found["Procrustes distance"] == pytest.approx(1 - 1 / 4)
    assert found["p_least"] == pytest.approx(1 / 6)
    assert agreement(mine, mine, np.random.default_rng(0))["p"] == pytest.approx(1 / 3)


def test_a_map_of_one_place_agrees_with_nothing():
    flat = maps([(3, 2)] * 5)
    other = maps(
        [
            (1, 2),
            (3, 2),
            (2, 2),
            (5, 1),
            (1, 1),
        ]
    )

    for pair in (
        (flat, other),
        (other, flat),
        (flat, flat),
    ):
        found = agreement(*pair, np.random.default_rng(0))
        names = [
            "Procrustes distance",
            "distance of Valence",
            "p",
            "rho of Competence",
            "p of Warmth",
        ]
        told = [found[name] for name in names]

        assert np.isnan(told).all()
        assert found["groups"] == 5


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


def test_p_of_a_correlation_against_every_order_of_places_by_scipy():
    """Ten groups at five places: an order moves both groups of a place."""
    rng = np.random.default_rng(7)
    places = rng.uniform(1, 5, (5, 2))
    points = np.repeat(places, 2, axis=0) + rng.normal(0, 1, (10, 2))
    found = agreement(maps(points), maps(np.repeat(places, 2, axis=0)), rng)
    mine = points[:, 0] - points[:, 1]
    rhos = []

    for order in permutations(range(5)):
        theirs = np.repeat(places[[*order]], 2, axis=0)
        rhos.append(stats.spearmanr(mine, theirs[:, 0] - theirs[:, 1]).statistic)

    assert found["rho of Difference"] == pytest.approx(rhos[0])

    expected = np.mean(np.abs(rhos) >= abs(rhos[0]) - 1e-9)
    assert found["p of Difference"] == pytest.approx(expected)
    assert 0 < expected < 1
    assert found["r of the axes"] == pytest.approx(np.corrcoef(points.T)[0, 1])


# Competence 4, 2, 1 and warmth 2, 4, 1 beside the same map with its axes exchanged: the valence is
# the same (3, 3, 1), the difference the reverse (2, -2, 0).
def test_valence_and_difference_by_hand():
    mine = maps(
        [
            (4, 2),
            (2, 4),
            (1, 1),
        ]
    )
    theirs = maps(
        [
            (2, 4),
            (4, 2),
            (1, 1),
        ]
    )
    found = agreement(mine, theirs, np.random.default_rng(0))

    assert found["rho of Valence"] == pytest.approx(1)
    assert found["rho of Difference"] == pytest.approx(-1)
    assert found["Procrustes distance"] == pytest.approx(0)

    # Both axes of the valence are 2/3, 2/3 and -4/3 around their mean: 16/3 of squares. People's
    # have 28/3, and the part of it that is not along the line of valence is 4.
    assert found["distance of Valence"] == pytest.approx(4 / (28 / 3))


# Twelve groups share three places: in order they are one of 3! orders, not of 12!.
def test_groups_that_share_a_place_are_permuted_together():
    places = np.repeat(
        [
            (1.0, 2.0),
            (3.0, 3.0),
            (4.0, 6.0),
        ],
        4,
        axis=0,
    )
    noise = np.random.default_rng(0).normal(0, 0.1, places.shape)
    found = agreement(maps(places + noise), maps(places), np.random.default_rng(0))

    assert found["p"] == found["p_least"] == pytest.approx(1 / 6)


def test_tables_are_left_as_they_are():
    means = maps(
        [
            (1, 2),
            (3, 2),
            (2, 5),
            (4, 4),
        ]
    )
    tables = [RATINGS, SCORES, means]
    before = [table.copy() for table in tables]
    round_scores(RATINGS, WORDS)
    group_means(SCORES)
    agreement(means, means, np.random.default_rng(0))

    for table, copy in zip(tables, before, strict=True):
        pd.testing.assert_frame_equal(table, copy)


# --- how much repeated answers differ

ROUNDS = pd.DataFrame(
    {
        "group": ["a", "a", "a", "b", "b", "c", "c"],
        "round": [1, 2, 3, 1, 2, 1, 2],
        "Competence": [1, 2, 3, 4, 4, 5, nan],
        "Warmth": [2, 4, nan, 1, 3, nan, nan],
    }
)


# Around 2: squares 1, 0, 1; around 3: 1, 1; around 2: 1, 1. A single round has no cv.
def test_variation_by_hand():
    table = variation(ROUNDS, ["Competence", "Warmth"], 3)
    columns = ["score", "groups", "left_out", "cv_mean", "cv_max", "group_max"]

    assert list(table.columns) == columns
    assert table["score"].tolist() == ["Competence", "Warmth"]
    assert table[["groups", "left_out"]].values.tolist() == [[2, 1], [2, 1]]
    np.testing.assert_allclose(table["cv_mean"], [1 / 4, (sqrt(2) / 3 + sqrt(2) / 2) / 2])
    np.testing.assert_allclose(table["cv_max"], [1 / 2, sqrt(2) / 2])
    assert table["group_max"].tolist() == ["a", "b"]


@settings(max_examples=15)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=8), st.integers(1, 9))
def test_variation_against_scipy_and_without_unit(values, factor):
    scores = pd.DataFrame(
        {
            "group": "a",
            "round": 1,
            "x": values,
            "y": np.multiply(values, factor),
        }
    )
    cv = variation(scores, ["x", "y"], 1)["cv_mean"]

    np.testing.assert_allclose(cv, stats.variation(values, ddof=1), atol=1e-12)


def test_the_same_answers_vary_alike_over_the_same_rounds():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([range(98), range(1, 6)], names=["group", "round"])
    five = pd.DataFrame({"x": rng.normal(3, 0.3, 490)}, index).reset_index()
    two = five[five["round"] <= 2]

    pd.testing.assert_frame_equal(variation(five, ["x"], 2), variation(two, ["x"], 2))
    # Two rounds vary less than five: why they are not compared.
    assert variation(two, ["x"], 2).cv_mean[0] < 0.9 * variation(five, ["x"], 5).cv_mean[0]


# The cat sat: all words elsewhere, one of two pairs. The cat ran: two of three words, one of two
# pairs. A dog sat: one of three words, none of two pairs, which counts as 0.1.
def test_self_bleu_by_hand():
    texts = ["The cat sat", "the cat ran", "a dog sat"]
    expected = sqrt(1 / 2), sqrt(2 / 3 / 2), sqrt(1 / 3 * 0.1 / 2)

    assert self_bleu(texts, order=2) == pytest.approx(sum(expected) / 3)

    # Three words against five: exp(1 - 5 / 3); the other way 3 of 5 words.
    assert self_bleu(["a b c", "a b c d e"], order=1) == pytest.approx((exp(-2 / 3) + 3 / 5) / 2)

    # "a" counts as often as in one other text, not in all: 2 of 4, 2 of 2, 1 of 1. The text of two
    # words has a text of one and of none with three: the closest is 1 word long.
    expected = (2 / 4 + 1 + exp(1 - 2 / 1)) / 3
    assert self_bleu(["a a a a", "a a", "a"], order=1) == pytest.approx(expected)

    # Two texts of one length are references of each other.
    assert self_bleu(["a b", "c b", "a d e f"], order=1) == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)

    # Same and disjoint texts.
    assert self_bleu(["one two three four five"] * 3) == 1  # and not 1 + 2e-16
    assert self_bleu(["short one"] * 2) == pytest.approx(1)  # judged by words and pairs
    assert self_bleu(["one two", "three four", "five six"]) == 0


words = st.lists(st.sampled_from(list("abcde.")), min_size=1, max_size=9)
corpora = st.lists(words.map(" ".join), min_size=2, max_size=6)


@settings(max_examples=60)
@given(corpora, st.integers(1, 5))
def test_self_bleu_against_sacrebleu(texts, order):
    options = {"smooth_method": "floor", "smooth_value": 0.1, "max_ngram_order": order}
    bleu = BLEU(lowercase=True, effective_order=True, **options)
    scores = [
        bleu.sentence_score(text, texts[:k] + texts[k + 1 :]).score / 100
        for k, text in enumerate(texts)
    ]
    value = self_bleu(texts, order)

    assert value == pytest.approx(np.mean(scores))
    assert 0 <= value <= 1
    assert self_bleu(texts[::-1], order) == pytest.approx(value)


# Pairs ab, ba, ab: 2/3 log2(3/2) + 1/3 log2(3) = log2(3) - 2/3. No pair goes from text to text.
def test_entropy_by_hand():
    assert ngram_entropy(["a b A b"], 2) == pytest.approx(log2(3) - 2 / 3)
    assert ngram_entropy(["a b", "a b"], 2) == 0
    assert ngram_entropy(["a b", "b a"], 2) == pytest.approx(1)
    assert ngram_entropy(["a b c", "d"], 3) == 0
    # Punctuation is a word of its own.
    assert ngram_entropy(["so, so"], 1) == pytest.approx(log2(3) - 2 / 3)


@settings(max_examples=40)
@given(corpora, st.integers(1, 2))
def test_entropy_against_scipy(texts, n):
    split = [text.split() for text in texts]
    ngrams = [" ".join(t[i : i + n]) for t in split for i in range(len(t) - n + 1)]

    if ngrams:
        counts = pd.Series(ngrams).value_counts()
        assert ngram_entropy(texts, n) == pytest.approx(stats.entropy(counts, base=2), abs=1e-12)


def test_reasons():
    texts = {
        "a": ["the cat sat", "the cat ran", "a dog sat"],
        "b": ["one two three", "one two three"],
        "c": ["a single reply"],
    }
    rows = [(group, text) for group, replies in texts.items() for text in replies]
    reasons = pd.DataFrame(rows, columns=["group", "text"])
    found = reason_diversity(reasons, per_group=3)

    assert [found[name] for name in ("texts", "groups", "left_out")] == [6, 3, 1]

    first, second = (self_bleu(texts[group]) for group in "ab")
    assert found["self_bleu"] == pytest.approx((first + second) / 2)
    assert found["self_bleu_all"] == self_bleu([*reasons.text])
    assert found["entropy_2"] == ngram_entropy(reasons.text, 2)

    # "one two three" twice among six of three words: 2/6 and four times 1/6.
    assert found["entropy_3"] == pytest.approx(log2(3) / 3 + 4 / 6 * log2(6))

    # As many replies of each group; a single one is compared with those of other groups only.
    assert reason_diversity(reasons, per_group=2)["texts"] == 5

    one = reason_diversity(reasons, per_group=1)
    assert one["left_out"] == 3
    assert one["texts"] == 3
    assert np.isnan(one["self_bleu"])
    assert one["self_bleu_all"] == self_bleu(["the cat sat", "one two three", "a single reply"])
    assert np.isnan(reason_diversity(reasons[:1], per_group=1)["self_bleu_all"])


# Wilson's interval of 1 in 4, with z**2 = 3.8415.
def test_refusal_rates_by_hand():
    status = ["ok", "unparsable", "refused", "ok", "failed", "ok", "refused", "failed"]
    told = {"group": list("aaaaabcd"), "prompt": list("pqrsspqp"), "status": status}
    table = refusal_rates(pd.DataFrame(told | {"construct": "x"}))
    columns = ["group", "n", "refused", "cut", "failed", "rate", "low", "high"]

    assert list(table.columns) == columns
    assert table["group"].tolist() == ["c", "a", "b", "d"]
    assert table[["n", "refused", "cut", "failed"]].values.tolist() == [
        [1, 1, 0, 0], [4, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    np.testing.assert_allclose(table["rate"], [1, 1 / 4, 0, nan])

    z2 = 3.841459
    centre = (1 / 4 + z2 / 8) / (1 + z2 / 4)
    margin = sqrt(z2 * (3 / 64 + z2 / 64)) / (1 + z2 / 4)
    found = table.loc[1, ["low", "high"]].tolist()

    np.testing.assert_allclose(found, [centre - margin, centre + margin], rtol=1e-6)
    assert table.loc[3, ["low", "high"]].isna().all()


# Construct x has four replies of a, of which one refuses; y two, of which one; z one, which does
# not. The shares 1/4, 1/2 and 0 have the mean 1/4, while 2 of 7 replies refuse. A cut reply is in
# no share: with it, the share in z would be 0 of 2, and that in y 1 of 3.
def test_a_refusal_rate_is_the_mean_of_the_shares_of_the_constructs():
    rows = [
        ("x", "p", "refused"),
        ("x", "p", "ok"),
        ("x", "q", "ok"),
        ("x", "q", "incomplete"),
    ]
    rows += [
        ("y", "r", "refused"),
        ("y", "r", "unparsable"),
        ("y", "r", "cut"),
    ]
    rows += [
        ("z", "s", "ok"),
        ("z", "s", "cut"),
        ("z", "s", "failed"),
    ]
    replies = pd.DataFrame(rows, columns=["construct", "prompt", "status"]).assign(group="a")
    (row,) = refusal_rates(replies).itertuples()

    assert row.n == 7
    assert row.refused == 2
    assert row.cut == 2
    assert row.failed == 1
    assert row.rate == pytest.approx(1 / 4)

    # Worth 3**2 / (1/4 + 1/2 + 1) replies. Prompts' rates 1/2, 0, 1/2, 0 vary by 1/12; 7 replies
    # of which 2 refuse vary by 5/21, their means of 7/4 by 20/147, which is more: deff is 1.
    worth = 9 / (7 / 4)
    expected = proportion_confint(worth / 4, worth, alpha=0.05, method="wilson")

    assert (row.low, row.high) == pytest.approx(expected)


# What the authors' count_nans makes of the same replies, by their own steps in pandas.
def test_a_refusal_rate_is_that_of_the_authors_code():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 9, 900), rng.choice(list("wxyz"), 900), rng.random(900) < 0.2
    table = pd.DataFrame(dict(zip(("group", "construct", "refused"), rows, strict=True)))
    shares = pd.DataFrame(index=range(9))

    for construct, own in table.groupby("construct"):
        counted = own["refused"].groupby(own["group"]).value_counts(normalize=True)
        shares[construct] = counted.xs(True, level="refused")

    expected = shares.fillna(0).mean(axis=1)
    replies = table.assign(prompt="p", status=np.where(table.refused, "refused", "ok"))
    found = refusal_rates(replies).set_index("group").rate

    np.testing.assert_allclose(found[expected.index], expected)
    assert found.is_monotonic_decreasing


# Group a refuses one of two prompts in all 4 rounds: rates 1 and 0 have the variance 1/2, those of
# 4 independent replies 2/7 / 4, so deff is 7. The other group refuses nothing and adds nothing.
def test_rounds_of_a_prompt_are_not_independent():
    told = {"group": list("a" * 8 + "b" * 8), "prompt": list("ppppqqqq" * 2), "construct": "x"}
    replies = pd.DataFrame(told | {"status": ["refused"] * 4 + ["ok"] * 12})
    ends = refusal_rates(replies).set_index("group")[["low", "high"]]
    wilson = partial(proportion_confint, alpha=0.05, method="wilson")

    np.testing.assert_allclose(ends.loc["a"], wilson(4 / 7, 8 / 7))
    np.testing.assert_allclose(ends.loc["b"], wilson(0, 8 / 7), atol=1e-12)

    # Each prompt refused as often: no more than chance, so every reply counts.
    even = replies.assign(status=["refused", "ok"] * 4 + ["ok"] * 8)
    ends = refusal_rates(even).set_index("group")[["low", "high"]]

    np.testing.assert_allclose(ends.loc["a"], wilson(4, 8))


def test_a_model_that_wrote_nothing_refused_nothing():
    nothing = {
        "group": [],
        "construct": [],
        "prompt": [],
        "status": [],
    }
    table = refusal_rates(pd.DataFrame(nothing))

    assert len(table) == 0

    columns = ["group", "n", "refused", "cut", "failed", "rate", "low", "high"]
    assert list(table.columns) == columns


def test_what_is_not_defined():
    with pytest.raises(ValueError, match="no group has 2 rounds with 'Warmth', expected at least"):
        variation(ROUNDS[5:], ["Warmth"], 2)
    assert np.isnan([self_bleu(["one"]), ngram_entropy(["one two"], 3)]).all()
