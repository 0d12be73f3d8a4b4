"""How much repeated answers differ: ratings, reasons, and how often there is none.

StereoMap (Jeoung et al. 2023), appendices E and L, Tables 13 and 14, Figure 5. Texts are split
into words as sacrebleu does by default (13a) and lower-cased.

ValueError for an empty table, a missing column, a text without words, an unknown option or
confidence.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sacrebleu.metrics import BLEU

from ingroup.stats.paired import checked_confidence, wilson
from ingroup.studies.stereomap.statistics import needs

SPLIT = BLEU().tokenizer
FLOOR = 0.1  # matches of an order that has none (Chen and Cherry 2014, method 1; NLTK's method1)


def variation(scores: pd.DataFrame, columns: Sequence[str], ddof: int = 1) -> pd.DataFrame:
    """Coefficient of variation of each group's scores over its rounds, ``cv = sd / mean``.

    Appendix L. It depends on where the scale begins, so scores have to be of a scale above 0. The
    sd is the sample's, or with `ddof` 0 the population's; the paper does not say which. Returns
    ``score``, ``group``, ``n`` (rounds), ``mean``, ``sd``, ``cv``; NaN below 2 rounds.
    """
    needs(scores, ("group", *columns), "scores")
    if ddof not in (0, 1):
        raise ValueError(f"ddof is {ddof!r}, expected 1 (sample) or 0 (population)")
    parts = []
    for column in columns:
        by_group = scores.groupby("group", sort=False)[column]
        part = pd.DataFrame({"n": by_group.count(), "mean": by_group.mean()})
        for group in part.index[part["mean"] <= 0]:
            found = f"the mean of {column!r} of group {group!r} is {part.loc[group, 'mean']}"
            raise ValueError(f"{found}, expected a scale above 0 for a coefficient of variation")
        part["sd"] = by_group.std(ddof=ddof).where(part["n"] > 1)
        part["cv"] = part["sd"] / part["mean"]
        parts.append(part.reset_index().assign(score=column))
    return pd.concat(parts, ignore_index=True)[["score", "group", "n", "mean", "sd", "cv"]]


def variation_summary(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `variation` as Table 13 prints it, a row a score.

    ``left_out`` groups have fewer than 2 rounds; ``group_max`` is the first with ``cv_max``.
    """
    needs(table, ("score", "group", "cv"), "the table")
    rows = []
    for score, part in table.groupby("score", sort=False):
        there = part.dropna(subset="cv")
        if there.empty:
            raise ValueError(f"no group has 2 rounds with {score!r}, expected at least one")
        largest = there.loc[there["cv"].idxmax()]
        left_out = len(part) - len(there)
        rows.append(
            (score, len(there), left_out, there["cv"].mean(), largest["cv"], largest["group"])
        )
    columns = "score groups left_out cv_mean cv_max group_max"
    return pd.DataFrame(rows, columns=columns.split())


def self_bleu(texts: Sequence[str], order: int = 4) -> float:
    """Mean BLEU of each text against all the others: 0 is diverse, 1 is the same text again.

    Zhu et al. 2018. Of a text with c words, whose references' closest length is r (the shorter, if
    two are as close)::

        BLEU = min(1, exp(1 - r / c)) * exp(mean over n = 1..order of log p_n)
        p_n = n-grams that a reference has, each at most as often as there / n-grams

    An order without a match counts as 0.1 matches, as in their program; a text shorter than `order`
    (the paper names none) is judged by the orders that it has; one that shares no word has 0.
    Scored by sacrebleu, checked against it text by text. More texts give a higher value: compare
    equal numbers.
    """
    tokens = _tokens(texts)
    if len(tokens) < 2:
        raise ValueError(f"there is {len(tokens)} text, expected at least 2 to compare")
    if order < 1:
        raise ValueError(f"order is {order!r}, expected at least 1")
    counts = [Counter(g for n in range(order) for g in _ngrams(words, n + 1)) for words in tokens]
    # The two largest counts of an n-gram in a text; without its own, that text sees the other.
    first, second = Counter(), Counter()
    for own in counts:
        for ngram, count in own.items():
            if count > first[ngram]:
                first[ngram], second[ngram] = count, first[ngram]
            elif count > second[ngram]:
                second[ngram] = count
    lengths = Counter(map(len, tokens))
    scores = []
    for own, length in zip(counts, map(len, tokens), strict=True):
        correct, total = [0] * order, [0] * order
        for ngram, count in own.items():
            there = (second if count == first[ngram] else first)[ngram]
            correct[len(ngram) - 1] += min(count, there)
            total[len(ngram) - 1] += count
        others = (other for other, number in lengths.items() if number > (other == length))
        closest = min(others, key=lambda other: (abs(other - length), other))
        scored = BLEU.compute_bleu(correct, total, length, closest, "floor", FLOOR, True, order)
        scores.append(scored.score / 100)
    return float(np.mean(scores))


def ngram_entropy(texts: Sequence[str], n: int) -> float:
    """Entropy, in bits, of the n-grams of all texts together (Zhang et al. 2018).

    With the number F(w) of each n-gram w, none of which goes over the end of a text::

        H = -sum over w of F(w) / N * log2(F(w) / N),  N = sum of F(w)

    at most log2(N). The paper names no base and no set of texts; its 16.28 for three words would
    take 12 million n-grams in nats, 80,000 in bits: it must be bits, over all groups. H grows with
    N: compare equal numbers of texts.
    """
    if n < 1:
        raise ValueError(f"n is {n!r}, expected at least 1")
    counts = Counter(ngram for words in _tokens(texts) for ngram in _ngrams(words, n))
    if not counts:
        raise ValueError(f"no text has {n} words, expected at least one that has")
    shares = np.array(list(counts.values())) / counts.total()
    return float(abs(shares @ np.log2(shares)))


def reason_diversity(
    reasons: pd.DataFrame, per_group: int | None = None, order: int = 4
) -> pd.DataFrame:
    """Diversity of the reasons of each prompt: the middle of Table 14.

    `reasons` has ``prompt``, ``group`` and ``text``, one row a reply, no refusal. `per_group`
    takes the first so many of each group: both measures grow with the number of texts, and the
    paper has ten rounds of its own prompt, five of the others. Returns ``left_out`` (groups with a
    single text), ``self_bleu`` (mean over groups; NaN if all are left out), ``self_bleu_all`` (each
    text against all others of the prompt: the paper does not say which), entropies in bits.
    """
    needs(reasons, ("prompt", "group", "text"), "reasons")
    if per_group is not None:
        if per_group < 1:
            raise ValueError(f"per_group is {per_group!r}, expected at least 1")
        reasons = reasons.groupby(["prompt", "group"], sort=False).head(per_group)
    rows = []
    for prompt, part in reasons.groupby("prompt", sort=False):
        groups = [list(texts) for _, texts in part.groupby("group", sort=False)["text"]]
        several, texts = [own for own in groups if len(own) > 1], list(part["text"])
        try:
            within = [self_bleu(own, order) for own in several]
            over_all = self_bleu(texts, order) if len(texts) > 1 else np.nan
            entropies = ngram_entropy(texts, 2), ngram_entropy(texts, 3)
        except ValueError as error:
            raise ValueError(f"prompt {prompt!r}: {error}") from error
        left_out, bleu = len(groups) - len(several), np.mean(within) if within else np.nan
        rows.append((prompt, len(texts), len(groups), left_out, bleu, over_all, *entropies))
    columns = "prompt texts groups left_out self_bleu self_bleu_all entropy_2 entropy_3"
    return pd.DataFrame(rows, columns=columns.split())


def refusal_rates(
    replies: pd.DataFrame, by: str = "group", confidence: float = 0.95
) -> pd.DataFrame:
    """Share of the replies that refuse, by group (Figure 5) or prompt (Table 14).

    ``status`` "failed" (the engine gave no text) is no reply. Returns `by`, ``n`` (replies),
    ``refused``, ``failed``, ``rate`` (0 to 1; NaN without a reply) with Wilson's ``low`` to
    ``high``; the highest rate first, ties in the order of `replies`.
    """
    needs(replies, (by, "status"), "replies")
    checked_confidence(confidence)
    for row in np.flatnonzero(replies["status"].isna()):
        raise ValueError(f"the reply in row {row} has no status, expected one for each")
    rows = []
    for name, status in replies.groupby(by, sort=False)["status"]:
        refused, failed = int(status.eq("refused").sum()), int(status.eq("failed").sum())
        n = len(status) - failed
        numbers = (refused / n, *wilson(refused, n, confidence)) if n else (np.nan,) * 3
        rows.append((name, n, refused, failed, *numbers))
    table = pd.DataFrame(rows, columns=[by, "n", "refused", "failed", "rate", "low", "high"])
    return table.sort_values("rate", ascending=False, kind="stable", ignore_index=True)


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    """Words of each text, or a sentence on the first that has none."""
    tokens = []
    for position, text in enumerate(texts):
        words = SPLIT(text.lower()).split() if isinstance(text, str) else []
        if not words:
            raise ValueError(f"the text at position {position} is {text!r}, expected words")
        tokens.append(words)
    return tokens


def _ngrams(words: list[str], n: int) -> zip:
    return zip(*(words[start:] for start in range(n)), strict=False)
