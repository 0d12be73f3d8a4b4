"""Coefficients of variation, self-BLEU, entropies and refusal rates by hand and by others."""

from math import exp, log2, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from scipy import stats

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
        "Competence": [1, 2, 3, 4, 4, 5, nan],
        "Warmth": [2, 4, nan, 1, 3, nan, nan],
    }
)


# Around 2: squares 1, 0, 1; around 3: 1, 1; around 2: 1, 1. A single round has no cv.
def test_variation_by_hand():
    table = variation(SCORES, ["Competence", "Warmth"])
    columns = ["score", "groups", "left_out", "cv_mean", "cv_max", "group_max"]
    assert list(table.columns) == columns
    assert table["score"].tolist() == ["Competence", "Warmth"]
    assert table[["groups", "left_out"]].values.tolist() == [[2, 1], [2, 1]]
    np.testing.assert_allclose(table["cv_mean"], [1 / 4, (sqrt(2) / 3 + sqrt(2) / 2) / 2])
    np.testing.assert_allclose(table["cv_max"], [1 / 2, sqrt(2) / 2])
    assert table["group_max"].tolist() == ["a", "b"]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=8), st.integers(1, 9))
def test_variation_against_scipy_and_without_unit(values, factor):
    scores = pd.DataFrame({"group": "a", "x": values, "y": np.multiply(values, factor)})
    cv = variation(scores, ["x", "y"])["cv_mean"]
    np.testing.assert_allclose(cv, stats.variation(values, ddof=1), atol=1e-12)


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
    assert self_bleu(["one two three four five"] * 3) == pytest.approx(1)
    assert self_bleu(["short one"] * 2) == pytest.approx(1)  # judged by words and pairs
    assert self_bleu(["one two", "three four", "five six"]) == 0


words = st.lists(st.sampled_from(list("abcde.")), min_size=1, max_size=9)
corpora = st.lists(words.map(" ".join), min_size=2, max_size=6)


@settings(max_examples=60, deadline=None)
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
    assert 0 <= value <= 1 + 1e-12
    assert self_bleu(texts[::-1], order) == pytest.approx(value)


# Pairs ab, ba, ab: 2/3 log2(3/2) + 1/3 log2(3) = log2(3) - 2/3. No pair goes from text to text.
def test_entropy_by_hand():
    assert ngram_entropy(["a b A b"], 2) == pytest.approx(log2(3) - 2 / 3)
    assert ngram_entropy(["a b", "a b"], 2) == 0
    assert ngram_entropy(["a b", "b a"], 2) == pytest.approx(1)
    assert ngram_entropy(["a b c", "d"], 3) == 0
    # Punctuation is a word of its own.
    assert ngram_entropy(["so, so"], 1) == pytest.approx(log2(3) - 2 / 3)


@settings(max_examples=40, deadline=None)
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


# Wilson's interval of 3/4 in 3, with z = 3.1824 of Student's t for 3: each reply to its own prompt.
def test_refusal_rates_by_hand():
    status = ["ok", "unparsable", "refused", "ok", "failed", "ok", "refused", "failed"]
    replies = {"group": list("aaaaabcd"), "prompt": list("pqrsppqr"), "status": status}
    table = refusal_rates(pd.DataFrame(replies))
    assert list(table.columns) == ["group", "n", "refused", "failed", "rate", "low", "high"]
    assert table["group"].tolist() == ["c", "a", "b", "d"]
    assert table[["n", "refused", "failed"]].values.tolist() == [
        [1, 1, 0], [4, 1, 1], [1, 0, 0], [0, 0, 1],
    ]  # fmt: skip
    np.testing.assert_allclose(table["rate"], [1, 1 / 4, 0, nan])
    z2 = 3.182446**2
    centre, margin = (1 / 4 + z2 / 6) / (1 + z2 / 3), sqrt(z2 * (1 / 16 + z2 / 36)) / (1 + z2 / 3)
    found = table.loc[1, ["low", "high"]].tolist()
    np.testing.assert_allclose(found, [centre - margin, centre + margin], rtol=1e-6)
    assert table.loc[[0, 2, 3], ["low", "high"]].isna().all(axis=None)
    # Other rounds of the same prompts, answered alike, make no interval narrower.
    many = pd.concat([pd.DataFrame(replies)[:4]] * 5)
    np.testing.assert_allclose(refusal_rates(many).loc[0, ["low", "high"]].tolist(), found)


def test_what_is_not_defined():
    with pytest.raises(ValueError, match="no group has 2 rounds with 'Warmth', expected at least"):
        variation(SCORES[5:], ["Warmth"])
    assert np.isnan([self_bleu(["one"]), ngram_entropy(["one two"], 3)]).all()
