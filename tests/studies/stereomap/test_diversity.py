"""Coefficients of variation, self-BLEU, entropies and refusal rates by hand and by others."""

from functools import partial
from math import exp, log2, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ingroup.studies.stereomap.diversity import (
    ngram_entropy,
    reason_diversity,
    refusal_rates,
    self_bleu,
    variation,
)

nan = np.nan
SCORES = pd.DataFrame(
    {
        "group": ["a", "a", "a", "b", "b", "c", "c"],
        "round": [1, 2, 3, 1, 2, 1, 2],
        "Competence": [1, 2, 3, 4, 4, 5, nan],
        "Warmth": [2, 4, nan, 1, 3, nan, nan],
    }
)


# Around 2: squares 1, 0, 1; around 3: 1, 1; around 2: 1, 1. A single round has no cv.
def test_variation_by_hand():
    table = variation(SCORES, ["Competence", "Warmth"], 3)
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
    scores = pd.DataFrame({"group": "a", "round": 1, "x": values, "y": np.multiply(values, factor)})
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
    assert (one["left_out"], one["texts"]) == (3, 3)
    assert np.isnan(one["self_bleu"])
    assert one["self_bleu_all"] == self_bleu(["the cat sat", "one two three", "a single reply"])
    assert np.isnan(reason_diversity(reasons[:1], per_group=1)["self_bleu_all"])


# Wilson's interval of 1 in 4, with z**2 = 3.8415.
def test_refusal_rates_by_hand():
    status = ["ok", "unparsable", "refused", "ok", "failed", "ok", "refused", "failed"]
    told = {"group": list("aaaaabcd"), "prompt": list("pqrsspqp"), "status": status}
    table = refusal_rates(pd.DataFrame(told))
    assert list(table.columns) == ["group", "n", "refused", "failed", "rate", "low", "high"]
    assert table["group"].tolist() == ["c", "a", "b", "d"]
    assert table[["n", "refused", "failed"]].values.tolist() == [
        [1, 1, 0], [4, 1, 1], [1, 0, 0], [0, 0, 1],
    ]  # fmt: skip
    np.testing.assert_allclose(table["rate"], [1, 1 / 4, 0, nan])
    z2 = 3.841459
    centre, margin = (1 / 4 + z2 / 8) / (1 + z2 / 4), sqrt(z2 * (3 / 64 + z2 / 64)) / (1 + z2 / 4)
    found = table.loc[1, ["low", "high"]].tolist()
    np.testing.assert_allclose(found, [centre - margin, centre + margin], rtol=1e-6)
    assert table.loc[3, ["low", "high"]].isna().all()


# Group a refuses one of two prompts in all 4 rounds: rates 1 and 0 have the variance 1/2, those of
# 4 independent replies 2/7 / 4, so deff is 7. The other group refuses nothing and adds nothing.
def test_rounds_of_a_prompt_are_not_independent():
    told = {"group": list("a" * 8 + "b" * 8), "prompt": list("ppppqqqq" * 2)}
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
    table = refusal_rates(pd.DataFrame({"group": [], "prompt": [], "status": []}))
    assert len(table) == 0
    assert list(table.columns) == ["group", "n", "refused", "failed", "rate", "low", "high"]


def test_what_is_not_defined():
    with pytest.raises(ValueError, match="no group has 2 rounds with 'Warmth', expected at least"):
        variation(SCORES[5:], ["Warmth"], 2)
    assert np.isnan([self_bleu(["one"]), ngram_entropy(["one two"], 3)]).all()
