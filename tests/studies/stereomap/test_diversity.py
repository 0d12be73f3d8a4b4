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
    variation_summary,
)

nan = np.nan
SCORES = pd.DataFrame(
    {
        "group": ["a", "a", "a", "b", "b", "c", "c"],
        "Competence": [1, 2, 3, 4, 4, 5, nan],
        "Warmth": [2, 4, nan, 1, 3, nan, nan],
    }
)


# Around 2: squares 1, 0, 1; around 3: 1, 1; around 2: 1, 1.
def test_variation_by_hand():
    table = variation(SCORES, ["Competence", "Warmth"])
    assert list(table.columns) == ["score", "group", "n", "mean", "sd", "cv"]
    assert table["score"].tolist() == ["Competence"] * 3 + ["Warmth"] * 3
    assert table["n"].tolist() == [3, 2, 1, 2, 2, 0]
    np.testing.assert_allclose(table["mean"], [2, 4, 5, 3, 2, nan])
    np.testing.assert_allclose(table["sd"], [1, 0, nan, sqrt(2), sqrt(2), nan])
    np.testing.assert_allclose(table["cv"], [1 / 2, 0, nan, sqrt(2) / 3, sqrt(2) / 2, nan])
    population = variation(SCORES, ["Competence", "Warmth"], ddof=0)
    np.testing.assert_allclose(population["cv"], [sqrt(2 / 3) / 2, 0, nan, 1 / 3, 1 / 2, nan])
    summary = variation_summary(population)
    columns = ["score", "groups", "left_out", "cv_mean", "cv_max", "group_max"]
    assert list(summary.columns) == columns
    assert summary["score"].tolist() == ["Competence", "Warmth"]
    assert summary[["groups", "left_out"]].values.tolist() == [[2, 1], [2, 1]]
    np.testing.assert_allclose(summary["cv_mean"], [sqrt(2 / 3) / 4, 5 / 12])
    np.testing.assert_allclose(summary["cv_max"], [sqrt(2 / 3) / 2, 1 / 2])
    assert summary["group_max"].tolist() == ["a", "b"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=8), st.integers(1, 9), st.integers(0, 1))
def test_variation_against_scipy_and_without_unit(values, factor, ddof):
    scores = pd.DataFrame({"group": "a", "x": values, "y": np.multiply(values, factor)})
    cv = variation(scores, ["x", "y"], ddof)["cv"]
    np.testing.assert_allclose(cv, stats.variation(values, ddof=ddof), atol=1e-12)


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


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 3))
def test_equally_frequent_ngrams(k, n, times):
    texts = [" ".join(f"w{i}x{j}" for j in range(n)) for i in range(k)] * times
    assert ngram_entropy(texts, n) == pytest.approx(log2(k), abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(corpora, st.integers(1, 2))
def test_entropy_against_scipy(texts, n):
    split = [text.split() for text in texts]
    ngrams = [" ".join(t[i : i + n]) for t in split for i in range(len(t) - n + 1)]
    if ngrams:
        counts = pd.Series(ngrams).value_counts()
        assert ngram_entropy(texts, n) == pytest.approx(stats.entropy(counts, base=2), abs=1e-12)


def test_reasons_by_prompt():
    texts = {
        ("paper", "a"): ["the cat sat", "the cat ran", "a dog sat"],
        ("paper", "b"): ["one two three", "one two three"],
        ("paper", "c"): ["a single reply"],
        ("short", "a"): ["x y z", "x y w"],
    }
    rows = [(*key, text) for key, replies in texts.items() for text in replies]
    reasons = pd.DataFrame(rows, columns=["prompt", "group", "text"])
    table = reason_diversity(reasons, order=2)
    expected = "prompt texts groups left_out self_bleu self_bleu_all entropy_2 entropy_3"
    assert list(table.columns) == expected.split()
    assert table.loc[0, "prompt":"left_out"].tolist() == ["paper", 6, 3, 1]
    assert table.loc[1, "prompt":"left_out"].tolist() == ["short", 2, 1, 0]
    paper = list(reasons["text"][:6])
    first, second = (self_bleu(texts["paper", group], 2) for group in "ab")
    assert table.loc[0, "self_bleu"] == pytest.approx((first + second) / 2)
    assert table.loc[0, "self_bleu_all"] == self_bleu(paper, 2)
    assert table.loc[0, "entropy_2"] == ngram_entropy(paper, 2)
    # "one two three" twice among six of three words: 2/6 and four times 1/6.
    assert table.loc[0, "entropy_3"] == pytest.approx(log2(3) / 3 + 4 / 6 * log2(6))
    assert table.loc[1, "self_bleu"] == table.loc[1, "self_bleu_all"]
    # As many replies of each group; a single one is compared with those of other groups only.
    two = reason_diversity(reasons, per_group=2, order=2)
    assert two["texts"].tolist() == [5, 2]
    one = reason_diversity(reasons, per_group=1, order=2)
    assert one["left_out"].tolist() == [3, 1]
    assert one["self_bleu"].isna().all()
    kept = ["the cat sat", "one two three", "a single reply"]
    assert one.loc[0, "self_bleu_all"] == self_bleu(kept, 2)
    assert np.isnan(one.loc[1, "self_bleu_all"])


# Wilson's interval of 1 in 4, with z**2 = 3.8415.
def test_refusal_rates_by_hand():
    status = ["ok", "unparsable", "refused", "ok", "failed", "ok", "refused", "failed"]
    table = refusal_rates(pd.DataFrame({"group": list("aaaaabcd"), "status": status}))
    assert list(table.columns) == ["group", "n", "refused", "failed", "rate", "low", "high"]
    assert table["group"].tolist() == ["c", "a", "b", "d"]
    assert table[["n", "refused", "failed"]].values.tolist() == [
        [1, 1, 0], [4, 1, 1], [1, 0, 0], [0, 0, 1],
    ]  # fmt: skip
    np.testing.assert_allclose(table["rate"], [1, 1 / 4, 0, nan])
    z2 = 3.841459
    centre, margin = (1 / 4 + z2 / 8) / (1 + z2 / 4), sqrt(z2 * (3 / 64 + z2 / 64)) / (1 + z2 / 4)
    np.testing.assert_allclose(
        table.loc[1, ["low", "high"]].tolist(), [centre - margin, centre + margin], rtol=1e-6
    )
    assert table.loc[3, ["low", "high"]].isna().all()
    by_prompt = pd.DataFrame({"prompt": ["x", "x"], "status": ["refused", "ok"]})
    assert refusal_rates(by_prompt, by="prompt").loc[0, ["prompt", "rate"]].tolist() == ["x", 0.5]


REASONS = pd.DataFrame({"prompt": ["x"], "group": ["a"], "text": ["one two"]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variation(SCORES, ["Envy"]), "scores have no column 'Envy', found"),
        (lambda: variation(SCORES[:0], ["Warmth"]), "scores have no rows, expected at least one"),
        (lambda: variation(SCORES, ["Warmth"], 2), r"ddof is 2, expected 1 \(sample\) or 0"),
        (
            lambda: variation(SCORES.assign(Warmth=0.0), ["Warmth"]),
            "mean of 'Warmth' of group 'a' is 0.0, expected a scale above 0",
        ),
        (
            lambda: variation_summary(variation(SCORES[5:], ["Warmth"])),
            "no group has 2 rounds with",
        ),
        (lambda: self_bleu(["one"]), "there is 1 text, expected at least 2 to compare"),
        (lambda: self_bleu(["one", "two"], 0), "order is 0, expected at least 1"),
        (lambda: self_bleu(["one", " "]), "text at position 1 is ' ', expected words"),
        (lambda: ngram_entropy([None], 1), "text at position 0 is None, expected words"),
        (lambda: ngram_entropy(["one two"], 3), "no text has 3 words, expected at least one"),
        (lambda: ngram_entropy(["one two"], 0), "n is 0, expected at least 1"),
        (lambda: reason_diversity(REASONS), "prompt 'x': no text has 3 words"),
        (lambda: reason_diversity(REASONS, per_group=0), "per_group is 0, expected at least 1"),
        (lambda: reason_diversity(REASONS[["text"]]), "reasons have no column 'prompt'"),
        (lambda: refusal_rates(REASONS), "replies have no column 'status'"),
        (lambda: refusal_rates(REASONS.assign(status=None)), "reply in row 0 has no status"),
        (
            lambda: refusal_rates(REASONS.assign(status="ok"), confidence=95),
            "confidence is 95, expected a number between 0 and 1",
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_used_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
