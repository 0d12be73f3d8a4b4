"""Warmth and competence of groups, what goes with them, and how much repeated answers differ.

StereoMap (Jeoung et al. 2023), sections 3.1 and 5.1, appendices E, G and L; `clustering` has the
clusters. Ratings have a row for each ``group`` and ``round`` and a column for each rated word, in
points, NaN where there is none; `words` is Table 4: ``family``, ``dimension``, ``word``. `scores`
are from `round_scores`, `means` from `group_means`. p-values are two-sided, ``p_holm`` takes a
table as one family, intervals (``low``, ``high``) are of 95 %. Texts, all of which have a word, are
split as sacrebleu does by default (13a) and lower-cased.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from math import factorial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.helpers import extract_all_word_ngrams
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.effects import spearman
from ingroup.stats.paired import TINY, adjust, nan_mean

AXES = ["Competence", "Warmth"]
SPLIT = BLEU().tokenizer
_MARKED = ("refused", "cut", "failed")
_OF_REFUSALS = ["group", "n", *_MARKED, "rate", "low", "high"]
FLOOR = 0.1  # matches of an order that has none (Chen and Cherry 2014, method 1; NLTK's method1)


def round_scores(
    ratings: pd.DataFrame, words: pd.DataFrame, incomplete: str = "drop"
) -> pd.DataFrame:
    """Scores of every round: a dimension is the mean of its words, an axis of its dimensions.

    ``group``, ``round``, ``Competence``, ``Warmth`` and a column a dimension, in points. With
    `incomplete` "drop" a round that lacks a word of either axis has none of their scores, as in the
    released code; likewise for every other family (emotions, behaviours), which has a prompt of its
    own. "mean" is the mean of what is there.
    """
    prompts = words["family"].mask(words["family"].isin(AXES), AXES[0])
    dimensions = {}
    for _, asked in words.groupby(prompts, sort=False):
        part = ratings.reindex(columns=asked["word"])  # a prompt may not have been asked
        if incomplete == "drop":
            part = part.dropna().reindex(part.index)
        for dimension, of_it in asked.groupby("dimension", sort=False)["word"]:
            dimensions[dimension] = part[list(of_it)].mean(axis=1)
    scores, dimensions = ratings[["group", "round"]].copy(), pd.DataFrame(dimensions)
    for axis in AXES:
        its = words.loc[words["family"] == axis, "dimension"].unique()
        scores[axis] = dimensions[its].mean(axis=1)
    return scores.join(dimensions)


def group_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean of every score over the rounds that have it.

    Index ``group``; ``rounds`` (asked), ``used`` (with both axes), then the scores: NaN where no
    round has it, as of a group that a model always refused.
    """
    by_group = scores.assign(used=scores[AXES].notna().all(axis=1)).groupby("group", sort=False)
    means = by_group[list(scores.columns.drop(["group", "round"]))].mean()
    means.insert(0, "rounds", by_group.size())
    means.insert(1, "used", by_group["used"].sum())
    return means


def correlations(
    means: pd.DataFrame, predictors: Sequence[str], outcomes: Sequence[str],
    rng: np.random.Generator, n_permutations: int = 9999,
) -> pd.DataFrame:  # fmt: skip
    """Spearman's correlation, over groups, of each predictor with each outcome: Table 8.

    The interval is Fisher's, tanh(atanh(r) -+ z sqrt(v)), with v = (1 + r**2 / 2) / (n - 3) of
    Bonett and Wright 2000, and none where r is 1 or -1; ``n`` groups have both. ``p`` is that of
    `effects.spearman`, ``p_least`` the smallest that it can be, and ``p_holm``, ``p_holm_least``
    take the table as one family. NaN for a score that all groups share, or with fewer than 4. The
    groups must be unrelated: where ten families of groups share their scores, p is below 0.05 in
    0.49 of the cases. Heavy tails and ties do no harm (``make calibration``).
    """
    rows = []
    for one in predictors:
        for other in outcomes:
            both = means[[one, other]].dropna()
            rho, p, least = spearman(both[one], both[other], rng, n_permutations)
            spread = np.sqrt((1 + rho**2 / 2) / max(len(both) - 3, 1))
            z = np.arctanh(rho) if abs(rho) < 1 - TINY else np.nan
            ends = np.tanh(z + stats.norm.ppf([0.025, 0.975]) * spread)
            rows.append((one, other, len(both), rho, *ends, p, least))
    columns = ["predictor", "outcome", "n", "rho", "low", "high", "p", "p_least"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(
        p_holm=adjust(table["p"], "holm"), p_holm_least=adjust(table["p_least"], "holm")
    )


def extremes(ratings: pd.DataFrame, word: str, n: int = 10) -> pd.DataFrame:
    """The `n` groups with the highest and the lowest mean rating of a word: Table 9.

    ``end`` ("highest", "lowest"), ``rank``, ``group``, ``mean`` and ``variance`` (n - 1) over its
    ``rounds`` with the word; ``tied`` groups have this mean, in the order of `ratings`.
    """
    by_group = ratings.dropna(subset=word).groupby("group", sort=False)[word]
    table = by_group.agg(mean="mean", variance="var", rounds="size")
    table["mean"] = table["mean"].round(9)
    table["tied"] = table.groupby("mean")["mean"].transform("size").astype(int)
    ends = {"highest": table.nlargest(n, "mean"), "lowest": table.nsmallest(n, "mean")}
    table = pd.concat(ends, names=["end"]).reset_index()
    table["rank"] = table.groupby("end").cumcount() + 1
    return table[["end", "rank", "group", "mean", "variance", "rounds", "tied"]]


def agreement(
    means: pd.DataFrame, human: pd.DataFrame, rng: np.random.Generator, n_permutations: int = 9999
) -> dict[str, float]:
    """A model's map of the groups against people's, over the ``groups`` that both have (3 or more).

    `human` has the index ``group`` and both axes: Fiske et al. 2002, in Table 2, where the groups
    of a cluster share its centroid. Spearman's ``rho`` of each axis therefore has neither interval
    nor p. The ``Procrustes distance`` is the disparity of scipy.spatial.procrustes, 0 to 1 (of maps
    with their axes exchanged it is 0: only the correlations see that), its ``p`` the share of
    orders whose distance is no larger (Jackson 1995), the larger of two: of the groups in random
    order (which alone finds agreement in 0.71 of unrelated maps that put people's clusters
    together, ``make calibration``), and of the places. Up to `n_permutations` orders are all taken,
    as of five places; ``p_least`` is the smallest that p can be. A map whose groups share one place
    has no shape: its distance and p are NaN.
    """
    both = pd.merge(
        means[AXES], human[AXES], left_index=True, right_index=True, suffixes=("", " human")
    ).dropna()
    mine, theirs = np.split(both.to_numpy(), 2, axis=1)
    places, own = np.unique(theirs, axis=0, return_inverse=True)
    nulls = []
    for points, which in ((places, own.ravel()), (theirs, np.arange(len(both)))):
        n = len(points)
        if factorial(n) <= n_permutations:
            orders = np.array([*permutations(range(n))])
        else:
            orders = np.argsort(rng.random((n_permutations + 1, n)), axis=1)
            orders[0] = np.arange(n)
        nulls.append(_distances(mine, points[orders][:, which]))
    numbers = {
        f"rho of {axis}": both[axis].corr(both[f"{axis} human"], "spearman") for axis in AXES
    }
    distance = float(np.maximum(nulls[0][0], 0.0))
    numbers |= {"groups": len(both), "Procrustes distance": distance}
    p = np.nan
    if not np.isnan(distance):
        p = max(np.mean(null <= null[0] + TINY) for null in nulls)
    return numbers | {"p": float(p), "p_least": 1 / min(map(len, nulls))}


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
    return float(stats.entropy([*counts.values()], base=2)) if counts else np.nan


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

    As in the authors' code, a group's ``rate`` is the mean of its shares in each construct, however
    many prompts and replies that has. A reply that failed or was cut is in no share, as nobody
    knows whether it would have refused.

    Parameters
    ----------
    replies : DataFrame
        A row a reply, with ``group``, ``construct``, ``prompt`` and ``status``.

    Returns
    -------
    DataFrame
        ``group``; ``n`` replies, of which some ``refused``; ``cut`` and ``failed`` ones, which are
        not among them; ``rate`` (0 to 1, NaN without a reply) with ``low`` to ``high`` (95 %). The
        highest rate comes first. The interval is Wilson's of as many replies as the mean of shares
        is worth, C**2 / sum(1 / n) for the n replies of each of C constructs, divided by Kish's
        design effect. That is one for all groups, 1 at least: how much more the rates of a group's
        prompts vary than those of as many independent replies would. Rounds of a prompt are alike.
    """
    status = replies["status"]
    marked = replies.assign(
        refused=status.eq("refused").astype(float),
        cut=status.eq("cut"),
        failed=status.eq("failed"),
    )
    table = marked.groupby("group", sort=False)[list(_MARKED)].sum()
    table = table.astype(int)

    answered = marked[~marked["cut"] & ~marked["failed"]]
    table["n"] = answered.groupby("group").size()
    table["n"] = table["n"].fillna(0).astype(int)

    constructs = answered.groupby(["group", "construct"])["refused"]
    shares = constructs.mean().groupby("group")
    table["rate"] = shares.mean()

    each = 1 / constructs.size()
    worth = shares.size() ** 2 / each.groupby("group").sum()
    worth = (worth / _design_effect(answered)).reindex(table.index)
    refused = table["rate"] * worth
    table["low"], table["high"] = proportion_confint(refused, worth, method="wilson")

    table = table.sort_values("rate", ascending=False, kind="stable")
    return table.reset_index()[_OF_REFUSALS]


def _design_effect(answered: pd.DataFrame) -> float:
    """How much more the refusal rates of a group's prompts vary than by chance, 1 at least."""
    prompts = answered.groupby(["group", "prompt"])["refused"]
    varied = prompts.mean().groupby("group").var()
    size = prompts.size().groupby("group").mean()

    of_replies = answered.groupby("group")["refused"].var()
    by_chance = of_replies / size
    total = by_chance[varied.notna()].sum()
    if total == 0:
        return 1.0
    return max(1.0, varied.sum() / total)


def _distances(mine: NDArray, theirs: NDArray) -> NDArray[np.float64]:
    """Procrustes distance of a map (group, axis) from others (map, group, axis); NaN of a point."""
    if min(np.ptp(part, axis=-2).max() for part in (mine, theirs)) < TINY:
        return np.full(len(theirs), np.nan)
    maps = [part - part.mean(axis=-2, keepdims=True) for part in (mine, theirs)]
    maps = [part / np.linalg.norm(part, axis=(-2, -1), keepdims=True) for part in maps]
    products = np.einsum("gi,pgj->pij", *maps)
    return 1 - np.linalg.svd(products, compute_uv=False).sum(axis=1) ** 2
