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
from ingroup.stats.corrections import adjust
from ingroup.studies.stereomap import statistics
from ingroup.studies.stereomap.statistics import (
    correlations,
    extremes,
    group_means,
    map_similarity,
    ngram_entropy,
    reason_diversity,
    refusal_rates,
    refusals_by_model,
    round_scores,
    self_bleu,
    variation,
)
from maps import maps

nan = np.nan
WORDS = pd.DataFrame(
    [
        ("Warmth", "Sociability", "friendly"),
        ("Warmth", "Sociability", "sociable"),
        ("Warmth", "Morality", "honest"),
        ("Competence", "Ability", "skilled"),
        ("Competence", "Assertiveness", "confident"),
        ("Competence", "Assertiveness", "assertive"),
        ("Emotion", "Pity", "pity"),
        ("Emotion", "Pity", "sympathy"),
        ("Emotion", "Envy", "envious"),
    ],
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

    assert list(scores.columns) == [
        "group",
        "round",
        "Competence",
        "Warmth",
        "Sociability",
        "Morality",
        "Ability",
        "Assertiveness",
        "Pity",
        "Envy",
    ]
    complete = scores.loc[0]
    assert complete.tolist()[2:] == [3, 4, 3, 5, 2, 4, 1.5, 5]

    # Without a word of warmth, competence goes too; the emotions had a prompt of their own.
    without_sociable = scores.loc[1]
    assert without_sociable["Competence":"Assertiveness"].isna().all()
    assert without_sociable["Pity"] == 3
    assert without_sociable["Envy"] == 4

    without_pity = scores.loc[2]
    assert without_pity["Competence"] == 2
    assert without_pity["Warmth"] == 4.5
    assert without_pity[["Pity", "Envy"]].isna().all()


def test_means_of_groups_by_hand():
    means = group_means(round_scores(RATINGS, WORDS))

    assert list(means.index) == ["nurses", "blinds"]
    nurses = means.loc["nurses"]
    assert nurses["rounds"] == 3
    assert nurses["used"] == 2
    assert nurses["Competence"] == (3 + 2) / 2
    assert nurses["Warmth"] == (4 + 4.5) / 2
    assert nurses["Pity"] == (1.5 + 3) / 2
    assert nurses["Envy"] == (5 + 4) / 2

    blinds = means.loc["blinds"]
    assert blinds["rounds"] == 1
    assert blinds["used"] == 0
    assert blinds["Pity"] == 5
    assert blinds[["Competence", "Warmth"]].isna().all()


def test_scores_of_incomplete_rounds_by_hand():
    scores = round_scores(RATINGS, WORDS, incomplete="mean")

    without_sociable = scores.loc[1]
    assert without_sociable["Competence"] == 3
    assert without_sociable["Warmth"] == (5 + 4) / 2

    without_pity = scores.loc[2]
    assert without_pity["Pity"] == 3
    assert without_pity["Envy"] == 1

    only_honest = scores.loc[3]
    assert only_honest["Warmth"] == 2
    assert only_honest["Morality"] == 2
    assert only_honest[["Competence", "Sociability"]].isna().all()

    assert group_means(scores)["used"].tolist() == [3, 0]


def test_scores_do_not_depend_on_the_order_of_columns_words_and_rows():
    reversed_ratings = RATINGS.iloc[::-1, ::-1]
    reversed_words = WORDS[::-1]

    scores = round_scores(reversed_ratings, reversed_words).sort_index()

    pd.testing.assert_frame_equal(scores[SCORES.columns], SCORES)


def test_the_words_of_table_4():
    words = pd.read_csv(PUBLISHED / "stereomap" / "table04_dimension_words.csv")
    ratings = pd.DataFrame([range(24)], columns=list(words["word"]))
    ratings = ratings.assign(group="a", round=0)

    scores = round_scores(ratings, words).loc[0]

    # In the order of the file: the words 0 to 3, 4 to 7, 8 and 9, ..., 22 and 23.
    assert scores["Warmth"] == 1.5
    assert scores["Competence"] == 5.5
    assert scores.iloc[8:].tolist() == [8.5, 10.5, 12.5, 14.5, 16.5, 18.5, 20.5, 22.5]
    assert scores.index[-1] == words["dimension"].iloc[-1]


# Ranks differ by 1, 1, 1, 1, 0: rho = 1 - 6 * 4 / (5 * 24) = 0.8; v = (1 + 0.32) / 2.
def test_correlation_by_hand():
    means = pd.DataFrame(
        {
            "Warmth": [1, 2, 3, 4, 5],
            "Help": [20, 10, 40, 30, 50],
            "Envy": [2.0, 2.0, 2.0, 2.0, 2.0],
            "Pity": [1, 2, 3, nan, nan],
        }
    )
    rng = np.random.default_rng(0)

    table = correlations(means, ["Warmth"], ["Help", "Envy", "Pity"], rng)

    columns = "predictor outcome n rho low high p p_least p_holm p_holm_least"
    assert list(table.columns) == columns.split()
    assert table["n"].tolist() == [5, 5, 3]
    undefined = table.loc[1:, ["rho", "low", "p", "p_holm"]]
    assert undefined.isna().all(axis=None)

    row = table.loc[0]
    assert row["predictor"] == "Warmth"
    assert row["outcome"] == "Help"
    assert row["n"] == 5
    assert row["rho"] == pytest.approx(0.8)

    margin = 1.959964 * sqrt(1.32 / 2)
    centre = np.log(3)
    assert row["low"] == pytest.approx(np.tanh(centre - margin), abs=1e-6)
    assert row["high"] == pytest.approx(np.tanh(centre + margin), abs=1e-6)

    # Of 120 orders 1 has rho 1, 4 have 0.9 and 3 have 0.8: one neighbour exchanged, or two.
    assert row["p"] == pytest.approx(2 * 8 / 120)
    assert row["p_least"] == pytest.approx(2 / 120)
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
    values = rng.integers(1, 6, (30, 4)).astype(float)
    means = pd.DataFrame(values, columns=["a", "b", "c", "d"])
    means.loc[3, "c"] = nan

    table = correlations(means, ["a", "b"], ["c", "d"], rng)

    assert table["predictor"].tolist() == ["a", "a", "b", "b"]
    for row in table.itertuples():
        predictor = means[row.predictor]
        outcome = means[row.outcome]
        expected = stats.spearmanr(predictor, outcome, nan_policy="omit")
        assert row.rho == pytest.approx(expected.statistic)
        assert row.p == pytest.approx(expected.pvalue, abs=0.02)

    np.testing.assert_allclose(table["p_holm"], adjust(table["p"], "holm"))


def test_extremes_by_hand():
    rows = [
        ("a", 0, 3),
        ("a", 1, 4),
        ("b", 0, 5),
        ("b", 1, 5),
        ("c", 0, 1),
        ("c", 1, 1),
        ("d", 0, 5),
        ("d", 1, 5),
        ("e", 0, 2),
        ("e", 1, 2),
        ("c", 2, nan),
        ("f", 0, nan),
    ]
    scores = pd.DataFrame(rows, columns=["group", "round", "Wealthy"])

    table = extremes(scores, "Wealthy", n=3)

    assert table.to_dict("list") == {
        "end": ["highest", "highest", "highest", "lowest", "lowest", "lowest"],
        "rank": [1, 2, 3, 1, 2, 3],
        "group": ["b", "d", "a", "c", "e", "a"],  # f was never rated
        "mean": [5, 5, 3.5, 1, 2, 3.5],
        "variance": [0, 0, 0.5, 0, 0, 0.5],
        "rounds": [2, 2, 2, 2, 2, 2],
        "tied": [2, 2, 1, 1, 1, 1],
    }


# On a line, -1, 0, 1 against -1, 1, 0: the product of the two, of length 1, is 1/2. The six orders
# have the distances 0, 0 and 3/4 four times.
def test_distance_by_hand():
    model = maps([(1, 3), (2, 3), (3, 3)])
    people = maps([(1, 2), (3, 2), (2, 2)])

    compared = map_similarity(model, people, np.random.default_rng(0))
    with_itself = map_similarity(model, model, np.random.default_rng(0))

    assert compared["rho of Competence"] == pytest.approx(0.5)
    assert np.isnan(compared["rho of Warmth"])
    assert compared["groups"] == 3
    assert compared["p"] == 1
    assert compared["Procrustes distance"] == pytest.approx(1 - 1 / 4)
    assert compared["p_least"] == pytest.approx(1 / 6)
    assert with_itself["p"] == pytest.approx(1 / 3)


ONE_PLACE = maps([(3, 2), (3, 2), (3, 2), (3, 2), (3, 2)])
FIVE_PLACES = maps([(1, 2), (3, 2), (2, 2), (5, 1), (1, 1)])


@pytest.mark.parametrize(
    ("model", "people"),
    [
        (ONE_PLACE, FIVE_PLACES),
        (FIVE_PLACES, ONE_PLACE),
        (ONE_PLACE, ONE_PLACE),
    ],
)
def test_a_map_of_one_place_agrees_with_nothing(model, people):
    compared = map_similarity(model, people, np.random.default_rng(0))

    assert compared["groups"] == 5
    assert np.isnan(compared["Procrustes distance"])
    assert np.isnan(compared["distance of Valence"])
    assert np.isnan(compared["p"])
    assert np.isnan(compared["rho of Competence"])
    assert np.isnan(compared["p of Warmth"])


def test_agreement_against_scipy():
    rng = np.random.default_rng(3)
    points = rng.uniform(1, 5, (12, 2))
    near_points = points + rng.normal(0, 0.7, (12, 2))
    # Groups that only one map has, or has without a place, and another order of rows.
    model = pd.concat([maps(points), maps([(1, 1)], ["other"])])
    not_compared = maps([(9, 9), (nan, 1)], ["extra", "other"])
    people = pd.concat([maps(near_points).iloc[::-1], not_compared])

    compared = map_similarity(model, people, rng)

    assert compared["groups"] == 12
    _, _, distance = spatial.procrustes(points, near_points)
    assert compared["Procrustes distance"] == pytest.approx(distance)
    competence = stats.spearmanr(points[:, 0], near_points[:, 0])
    assert compared["rho of Competence"] == pytest.approx(competence.statistic)
    warmth = stats.spearmanr(points[:, 1], near_points[:, 1])
    assert compared["rho of Warmth"] == pytest.approx(warmth.statistic)


def test_p_of_a_distance_against_every_order_by_scipy():
    points, noise = np.random.default_rng(5).uniform(1, 5, (2, 5, 2))
    near_points = points + 0.7 * noise

    distances = []
    for order in permutations(range(5)):
        _, _, distance = spatial.procrustes(points, near_points[list(order)])
        distances.append(distance)

    compared = map_similarity(maps(points), maps(near_points), np.random.default_rng(0))

    observed = compared["Procrustes distance"]
    expected = np.mean(np.array(distances) <= observed + 1e-9)
    assert compared["p"] == pytest.approx(expected)
    assert 0.05 < expected < 0.2


def test_p_of_a_correlation_against_every_order_of_places_by_scipy():
    """Ten groups at five places: an order moves both groups of a place."""
    rng = np.random.default_rng(7)
    places = rng.uniform(1, 5, (5, 2))
    two_per_place = np.repeat(places, 2, axis=0)
    points = two_per_place + rng.normal(0, 1, (10, 2))
    differences = points[:, 0] - points[:, 1]

    rhos = []
    for order in permutations(range(5)):
        moved = np.repeat(places[list(order)], 2, axis=0)
        moved_differences = moved[:, 0] - moved[:, 1]
        rhos.append(stats.spearmanr(differences, moved_differences).statistic)

    compared = map_similarity(maps(points), maps(two_per_place), rng)

    observed = rhos[0]
    assert compared["rho of Difference"] == pytest.approx(observed)
    expected = np.mean(np.abs(rhos) >= abs(observed) - 1e-9)
    assert compared["p of Difference"] == pytest.approx(expected)
    assert 0 < expected < 1
    r_of_axes = np.corrcoef(points.T)[0, 1]
    assert compared["r of the axes"] == pytest.approx(r_of_axes)


# Competence 4, 2, 1 and warmth 2, 4, 1 beside the same map with its axes exchanged: the valence is
# the same (3, 3, 1), the difference the reverse (2, -2, 0).
def test_valence_and_difference_by_hand():
    model = maps([(4, 2), (2, 4), (1, 1)])
    people = maps([(2, 4), (4, 2), (1, 1)])

    compared = map_similarity(model, people, np.random.default_rng(0))

    assert compared["rho of Valence"] == pytest.approx(1)
    assert compared["rho of Difference"] == pytest.approx(-1)
    assert compared["Procrustes distance"] == pytest.approx(0)
    # Both axes of the valence are 2/3, 2/3 and -4/3 around their mean: 16/3 of squares. People's
    # have 28/3, and the part of it that is not along the line of valence is 4.
    assert compared["distance of Valence"] == pytest.approx(4 / (28 / 3))


# Twelve groups share three places: in order they are one of 3! orders, not of 12!.
def test_groups_that_share_a_place_are_permuted_together():
    three_places = [(1.0, 2.0), (3.0, 3.0), (4.0, 6.0)]
    places = np.repeat(three_places, 4, axis=0)
    noise = np.random.default_rng(0).normal(0, 0.1, places.shape)

    compared = map_similarity(maps(places + noise), maps(places), np.random.default_rng(0))

    assert compared["p"] == compared["p_least"] == pytest.approx(1 / 6)


def test_tables_are_left_as_they_are():
    means = maps([(1, 2), (3, 2), (2, 5), (4, 4)])
    tables = [RATINGS, SCORES, means]
    copies = [table.copy() for table in tables]

    round_scores(RATINGS, WORDS)
    group_means(SCORES)
    map_similarity(means, means, np.random.default_rng(0))

    for table, copy in zip(tables, copies, strict=True):
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
    competence_b_and_a = [0, 1 / 2]
    warmth_a_and_b = [sqrt(2) / 3, sqrt(2) / 2]

    table = variation(ROUNDS, ["Competence", "Warmth"], 3)

    columns = ["score", "groups", "left_out", "cv_mean", "cv_max", "group_max"]
    assert list(table.columns) == columns
    assert table["score"].tolist() == ["Competence", "Warmth"]
    assert table["groups"].tolist() == [2, 2]
    assert table["left_out"].tolist() == [1, 1]
    means = [np.mean(competence_b_and_a), np.mean(warmth_a_and_b)]
    np.testing.assert_allclose(table["cv_mean"], means)
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
    expected = stats.variation(values, ddof=1)

    table = variation(scores, ["x", "y"], 1)

    np.testing.assert_allclose(table["cv_mean"], [expected, expected], atol=1e-12)


def test_the_same_answers_vary_alike_over_the_same_rounds():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([range(98), range(1, 6)], names=["group", "round"])
    five_rounds = pd.DataFrame({"x": rng.normal(3, 0.3, 490)}, index).reset_index()
    two_rounds = five_rounds[five_rounds["round"] <= 2]

    over_two = variation(two_rounds, ["x"], 2)
    two_of_five = variation(five_rounds, ["x"], 2)
    over_five = variation(five_rounds, ["x"], 5)

    pd.testing.assert_frame_equal(two_of_five, over_two)
    # Two rounds vary less than five: why they are not compared.
    assert over_two.cv_mean[0] < 0.9 * over_five.cv_mean[0]


# The cat sat: all words elsewhere, one of two pairs. The cat ran: two of three words, one of two
# pairs. A dog sat: one of three words, none of two pairs, which counts as 0.1.
def test_self_bleu_by_hand():
    texts = ["The cat sat", "the cat ran", "a dog sat"]
    cat_sat = sqrt(1 / 2)
    cat_ran = sqrt(2 / 3 / 2)
    dog_sat = sqrt(1 / 3 * 0.1 / 2)

    bleu = self_bleu(texts, order=2)

    assert bleu == pytest.approx((cat_sat + cat_ran + dog_sat) / 3)


def test_self_bleu_of_texts_of_several_lengths_by_hand():
    # Three words against five: exp(1 - 5 / 3); the other way 3 of 5 words.
    expected = (exp(-2 / 3) + 3 / 5) / 2
    assert self_bleu(["a b c", "a b c d e"], order=1) == pytest.approx(expected)

    # "a" counts as often as in one other text, not in all: 2 of 4, 2 of 2, 1 of 1. The text of two
    # words has a text of one and of none with three: the closest is 1 word long.
    expected = (2 / 4 + 1 + exp(1 - 2 / 1)) / 3
    assert self_bleu(["a a a a", "a a", "a"], order=1) == pytest.approx(expected)

    # Two texts of one length are references of each other.
    expected = (1 + 1 / 2 + 1 / 4) / 3
    assert self_bleu(["a b", "c b", "a d e f"], order=1) == pytest.approx(expected)


def test_self_bleu_counts_up_to_four_words_in_a_row_unless_told_otherwise():
    texts = ["a b c d e f", "a b c d x y", "x b c d e y"]

    bleu = self_bleu(texts)

    assert bleu == self_bleu(texts, order=4)
    assert bleu != self_bleu(texts, order=3)


def test_self_bleu_of_equal_and_of_disjoint_texts():
    assert self_bleu(["one two three four five"] * 3) == 1  # and not 1 + 2e-16
    assert self_bleu(["short one"] * 2) == pytest.approx(1)  # judged by words and pairs
    assert self_bleu(["one two", "three four", "five six"]) == 0


words = st.lists(st.sampled_from(list("abcde.")), min_size=1, max_size=9)
corpora = st.lists(words.map(" ".join), min_size=2, max_size=6)


@settings(max_examples=60)
@given(corpora, st.integers(1, 5))
def test_self_bleu_against_sacrebleu(texts, order):
    bleu = BLEU(
        lowercase=True,
        effective_order=True,
        smooth_method="floor",
        smooth_value=0.1,
        max_ngram_order=order,
    )
    scores = []
    for k, text in enumerate(texts):
        other_texts = texts[:k] + texts[k + 1 :]
        percent = bleu.sentence_score(text, other_texts).score
        scores.append(percent / 100)

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
    ngrams = []
    for text in texts:
        words_of_text = text.split()
        for start in range(len(words_of_text) - n + 1):
            ngrams.append(" ".join(words_of_text[start : start + n]))

    if ngrams:
        counts = pd.Series(ngrams).value_counts()
        expected = stats.entropy(counts, base=2)
        assert ngram_entropy(texts, n) == pytest.approx(expected, abs=1e-12)


REASONS = pd.DataFrame(
    [
        ("a", "the cat sat"),
        ("a", "the cat ran"),
        ("a", "a dog sat"),
        ("b", "one two three"),
        ("b", "one two three"),
        ("c", "a single reply"),
    ],
    columns=["group", "text"],
)


def test_diversity_of_reasons_by_hand():
    within_a = self_bleu(["the cat sat", "the cat ran", "a dog sat"])
    within_b = self_bleu(["one two three", "one two three"])

    diversity = reason_diversity(REASONS, per_group=3)

    assert diversity["texts"] == 6
    assert diversity["groups"] == 3
    assert diversity["left_out"] == 1
    assert diversity["self_bleu"] == pytest.approx((within_a + within_b) / 2)
    assert diversity["self_bleu_all"] == self_bleu(list(REASONS.text))
    assert diversity["entropy_2"] == ngram_entropy(REASONS.text, 2)
    # "one two three" twice among six of three words: 2/6 and four times 1/6.
    assert diversity["entropy_3"] == pytest.approx(log2(3) / 3 + 4 / 6 * log2(6))


def test_as_many_reasons_of_each_group_are_compared():
    two_per_group = reason_diversity(REASONS, per_group=2)
    assert two_per_group["texts"] == 5

    # A single reply is compared with those of other groups only.
    one_per_group = reason_diversity(REASONS, per_group=1)
    first_texts = ["the cat sat", "one two three", "a single reply"]
    assert one_per_group["left_out"] == 3
    assert one_per_group["texts"] == 3
    assert np.isnan(one_per_group["self_bleu"])
    assert one_per_group["self_bleu_all"] == self_bleu(first_texts)

    single_text = reason_diversity(REASONS[:1], per_group=1)
    assert np.isnan(single_text["self_bleu_all"])


REFUSAL_COLUMNS = ["group", "n", "refused", "cut", "failed", "rate", "low", "high"]


# Wilson's interval of 1 in 4, with z**2 = 3.8415.
def test_refusal_rates_by_hand():
    rows = [
        ("a", "p", "ok"),
        ("a", "q", "unparsable"),
        ("a", "r", "refused"),
        ("a", "s", "ok"),
        ("a", "s", "failed"),
        ("b", "p", "ok"),
        ("c", "q", "refused"),
        ("d", "p", "failed"),
    ]
    replies = pd.DataFrame(rows, columns=["group", "prompt", "status"]).assign(construct="x")
    z2 = 3.841459
    centre = (1 / 4 + z2 / 8) / (1 + z2 / 4)
    margin = sqrt(z2 * (3 / 64 + z2 / 64)) / (1 + z2 / 4)

    table = refusal_rates(replies)

    assert list(table.columns) == REFUSAL_COLUMNS
    assert table["group"].tolist() == ["c", "a", "b", "d"]
    assert table["n"].tolist() == [1, 4, 1, 0]
    assert table["refused"].tolist() == [1, 1, 0, 0]
    assert table["cut"].tolist() == [0, 0, 0, 0]
    assert table["failed"].tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(table["rate"], [1, 1 / 4, 0, nan])

    of_a = table.loc[1]
    assert of_a["low"] == pytest.approx(centre - margin, rel=1e-6)
    assert of_a["high"] == pytest.approx(centre + margin, rel=1e-6)
    of_d = table.loc[3]
    assert of_d[["low", "high"]].isna().all()


# Construct x has four replies of a, of which one refuses; y two, of which one; z one, which does
# not. The shares 1/4, 1/2 and 0 have the mean 1/4, while 2 of 7 replies refuse. A cut reply is in
# no share: with it, the share in z would be 0 of 2, and that in y 1 of 3.
def test_a_refusal_rate_is_the_mean_of_the_shares_of_the_constructs():
    rows = [
        ("x", "p", "refused"),
        ("x", "p", "ok"),
        ("x", "q", "ok"),
        ("x", "q", "incomplete"),
        ("y", "r", "refused"),
        ("y", "r", "unparsable"),
        ("y", "r", "cut"),
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
    low, high = proportion_confint(worth / 4, worth, alpha=0.05, method="wilson")
    assert row.low == pytest.approx(low)
    assert row.high == pytest.approx(high)


# What the authors' count_nans makes of the same replies, by their own steps in pandas.
def test_a_refusal_rate_is_that_of_the_authors_code():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "group": rng.integers(0, 9, 900),
            "construct": rng.choice(list("wxyz"), 900),
            "refused": rng.random(900) < 0.2,
        }
    )

    shares = pd.DataFrame(index=range(9))
    for construct, rows in table.groupby("construct"):
        shares_of_groups = rows["refused"].groupby(rows["group"]).value_counts(normalize=True)
        shares[construct] = shares_of_groups.xs(True, level="refused")
    expected = shares.fillna(0).mean(axis=1)

    status = np.where(table.refused, "refused", "ok")
    replies = table.assign(prompt="p", status=status)
    rates = refusal_rates(replies).set_index("group").rate

    np.testing.assert_allclose(rates[expected.index], expected)
    assert rates.is_monotonic_decreasing


# Group a refuses one of two prompts in all 4 rounds: rates 1 and 0 have the variance 1/2, those of
# 4 independent replies 2/7 / 4, so deff is 7. The other group refuses nothing and adds nothing.
def test_rounds_of_a_prompt_are_not_independent():
    replies = pd.DataFrame(
        {
            "group": ["a"] * 8 + ["b"] * 8,
            "prompt": (["p"] * 4 + ["q"] * 4) * 2,
            "construct": "x",
            "status": ["refused"] * 4 + ["ok"] * 12,
        }
    )
    wilson = partial(proportion_confint, alpha=0.05, method="wilson")

    rates = refusal_rates(replies).set_index("group")

    np.testing.assert_allclose(rates.loc["a", ["low", "high"]].tolist(), wilson(4 / 7, 8 / 7))
    of_b = rates.loc["b", ["low", "high"]].tolist()
    np.testing.assert_allclose(of_b, wilson(0, 8 / 7), atol=1e-12)

    # Each prompt refused as often: no more than chance, so every reply counts.
    even = replies.assign(status=["refused", "ok"] * 4 + ["ok"] * 8)
    rates = refusal_rates(even).set_index("group")
    np.testing.assert_allclose(rates.loc["a", ["low", "high"]].tolist(), wilson(4, 8))


def test_a_model_that_wrote_nothing_refused_nothing():
    nothing = pd.DataFrame(columns=["group", "construct", "prompt", "status"])

    table = refusal_rates(nothing)

    assert len(table) == 0
    assert list(table.columns) == REFUSAL_COLUMNS


def test_variation_without_a_group_of_two_rounds_is_refused():
    with pytest.raises(ValueError, match="no group has 2 rounds with 'Warmth', expected at least"):
        variation(ROUNDS[5:], ["Warmth"], 2)


def test_what_is_not_defined_is_no_number():
    assert np.isnan(self_bleu(["one"]))
    assert np.isnan(ngram_entropy(["one two"], 3))


def test_refusal_rates_of_models_are_one_table_in_their_order():
    replies = pd.DataFrame(
        [("b", "Men", "ok"), ("b", "Men", "refused"), ("a", "Men", "refused")],
        columns=["model", "group", "status"],
    ).assign(construct="Emotion", prompt="Emotion")
    table = refusals_by_model(replies, ["a", "b", "silent"])
    assert table[["model", "group", "rate"]].values.tolist() == [["a", "Men", 1], ["b", "Men", 0.5]]


def test_a_group_that_always_refuses_is_worth_all_its_replies():
    """Nothing varies by chance, so the design effect is 1."""
    prompts = ["p", "p", "q", "q"]
    replies = pd.DataFrame({"prompt": prompts, "group": "a", "construct": "x", "status": "refused"})

    (row,) = refusal_rates(replies).itertuples()

    low, high = proportion_confint(4, 4, alpha=0.05, method="wilson")
    assert (row.low, row.high) == pytest.approx((low, high))


def test_random_orders_come_beside_the_identity():
    """Of 99 random orders and the identity, the smallest p is 1 / 100."""
    orders = statistics._orders(8, 99, np.random.default_rng(0))

    assert orders.shape == (100, 8)
    assert orders[0].tolist() == list(range(8))
    assert (np.sort(orders, axis=1) == np.arange(8)).all()
