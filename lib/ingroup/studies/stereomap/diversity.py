"""How much repeated answers differ: ratings, reasons, and how often there is none.

StereoMap (Jeoung et al. 2023), appendices E and L, Tables 13 and 14, Figure 5. Texts, all of which
have a word, are split as sacrebleu does by default (13a) and lower-cased.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.helpers import extract_all_word_ngrams
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.paired import nan_mean

SPLIT = BLEU().tokenizer
FLOOR = 0.1  # matches of an order that has none (Chen and Cherry 2014, method 1; NLTK's method1)


def variation(scores: pd.DataFrame, columns: Sequence[str], rounds: int) -> pd.DataFrame:
    """Coefficients of variation of each group's scores over `rounds` rounds, the first: Table 13.

    Appendix L: ``cv = sd / mean``, of scores above 0; the sd is the sample's (the paper does not
    say which, and of few rounds it is small: compare equal numbers). A row a ``score``: over the
    ``groups`` with 2 rounds or more (others are ``left_out``) ``cv_mean`` and ``cv_max``, of which
    ``group_max`` is the first. ValueError without such a group.
    """
    scores = scores[scores["round"] <= rounds]
    by_group = scores.groupby("group", sort=False)[list(columns)]
    cv = by_group.std() / by_group.mean()  # NaN below 2 rounds
    for score in cv.columns[cv.isna().all()]:
        raise ValueError(f"no group has 2 rounds with {score!r}, expected at least one")
    table = pd.DataFrame({"groups": cv.count(), "left_out": cv.isna().sum()})
    table = table.assign(cv_mean=cv.mean(), cv_max=cv.max(), group_max=cv.idxmax())
    return table.rename_axis("score").reset_index()


def self_bleu(texts: Sequence[str], order: int = 4) -> float:
    """Mean BLEU of each text against all the others: 0 is diverse, 1 is the same text again.

    Zhu et al. 2018. Of a text with c words, whose references' closest length is r (the shorter, if
    two are as close)::

        BLEU = min(1, exp(1 - r / c)) * exp(mean over n = 1..order of log p_n)
        p_n = n-grams that a reference has, each at most as often as there / n-grams

    An order without a match counts as 0.1 matches, as in their program; a text shorter than `order`
    (the paper names none) is judged by the orders that it has. Scored by sacrebleu, checked against
    it text by text. More texts give a higher value: compare equal numbers. NaN for a single text.
    """
    if len(texts) < 2:
        return np.nan
    read = [extract_all_word_ngrams(SPLIT(text.lower()), 1, order) for text in texts]
    # The two largest counts of an n-gram in a text; without its own, that text sees the other.
    largest: dict[tuple, list[int]] = {}
    for own, _ in read:
        for ngram, count in own.items():
            largest[ngram] = sorted([*largest.get(ngram, (0, 0)), count])[1:]
    lengths = Counter(length for _, length in read)
    scores = []
    for own, length in read:
        correct, total = [0] * order, [0] * order
        for ngram, count in own.items():
            second, first = largest[ngram]
            correct[len(ngram) - 1] += min(count, second if count == first else first)
            total[len(ngram) - 1] += count
        others = (other for other, number in lengths.items() if number > (other == length))
        closest = min(others, key=lambda other: (abs(other - length), other))
        scored = BLEU.compute_bleu(correct, total, length, closest, "floor", FLOOR, True, order)
        scores.append(min(scored.score / 100, 1.0))  # the same text comes out as 1 + 2e-16
    return float(np.mean(scores))


def ngram_entropy(texts: Sequence[str], n: int) -> float:
    """Entropy, in bits, of the n-grams of all texts together (Zhang et al. 2018).

    H = -sum over w of F(w) / N * log2(F(w) / N), with the number F(w) of each n-gram w, none of
    which goes over the end of a text, and N their sum. The paper names no base and no set of texts;
    its 16.28 for three words would take 12 million n-grams in nats, 80,000 in bits: it must be
    bits, over all groups. H grows with N: compare equal numbers of texts. NaN without an n-gram.
    """
    each = (extract_all_word_ngrams(SPLIT(text.lower()), n, n)[0] for text in texts)
    counts = Counter(ngram for own in each for ngram in own.elements())
    shares = np.array(list(counts.values())) / counts.total() if counts else np.nan
    return float(abs(np.dot(shares, np.log2(shares))))


def reason_diversity(reasons: pd.DataFrame, per_group: int) -> dict[str, float]:
    """Diversity of the reasons of one prompt: the middle of Table 14.

    `reasons` has ``group`` and ``text``, one row a reply, no refusal, the first `per_group` of
    which count: both measures grow with the number of texts, and the paper has ten rounds of its
    own prompt, five of the others. ``left_out`` groups have a single text; ``self_bleu`` is the
    mean over the others, ``self_bleu_all`` that of all texts: the paper does not say which.
    """
    reasons = reasons.groupby("group", sort=False).head(per_group)
    within = reasons.groupby("group", sort=False).text.agg(lambda own: self_bleu([*own]))
    texts = [*reasons.text]
    return {
        "texts": len(texts),
        "groups": len(within),
        "left_out": within.isna().sum(),
        "self_bleu": float(nan_mean(within.dropna())),
        "self_bleu_all": self_bleu(texts),
        "entropy_2": ngram_entropy(texts, 2),
        "entropy_3": ngram_entropy(texts, 3),
    }


def refusal_rates(replies: pd.DataFrame) -> pd.DataFrame:
    """Share of the replies that refuse, by group (Figure 5).

    ``group``, ``n`` (replies; "failed", without a text, is none), ``refused``, ``failed``, ``rate``
    (0 to 1; NaN without a reply) with ``low`` to ``high`` (95 %); the highest rate first. A group's
    rounds of one prompt are not independent. The interval is Wilson's of n / deff replies, with
    Kish's design effect deff, one for all groups (1 at least): how much more the rates of a group's
    prompts vary than those of as many independent replies would. `replies` have ``group``,
    ``prompt`` and ``status``.
    """
    there = replies.assign(refused=replies["status"].eq("refused").astype(float))
    there["failed"] = there["status"].eq("failed")
    texts = there[~there["failed"]]
    cells = texts.groupby(["group", "prompt"])["refused"].agg(["mean", "size"])
    of_group = cells.groupby("group")
    varied, rate = of_group["mean"].var(), texts.groupby("group")["refused"].mean()
    alone = texts.groupby("group")["refused"].var() / of_group["size"].mean()
    alone = alone[varied.notna()].sum()
    deff = max(1.0, varied.sum() / alone) if alone > 0 else 1.0
    table = there.groupby("group", sort=False).agg(n=("failed", "size"), failed=("failed", "sum"))
    table["n"] -= table["failed"]
    table.insert(1, "refused", there.groupby("group")["refused"].sum().astype(int))
    table["rate"] = rate
    n = (table["n"] / deff).where(table["n"] > 0)
    table["low"], table["high"] = proportion_confint(table["rate"] * n, n, method="wilson")
    return table.sort_values("rate", ascending=False, kind="stable").reset_index()
