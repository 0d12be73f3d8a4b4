"""Warmth and competence of groups, their correlates, and the variation of repeated answers.

StereoMap (Jeoung et al. 2023), sections 3.1 and 5.1, appendices E, G and L. Clusters are in
`clustering`. Ratings have a row for each ``group`` and ``round`` and a column for each rated word,
in points. A missing rating is NaN. `words` is Table 4: ``family``, ``dimension``, ``word``.
`scores` are from `round_scores`, `means` from `group_means`. p-values are two-sided, ``p_holm``
takes a table as one family, and intervals (``low``, ``high``) are of 95 %. Each text has at least
one word. Texts are split as sacrebleu does by default (13a) and lower-cased.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import permutations
from math import factorial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.helpers import extract_all_word_ngrams
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ingroup.stats.corrections import adjust
from ingroup.stats.effects import pearson, spearman
from ingroup.stats.paired import TINY, nan_mean

AXES = ["Competence", "Warmth"]
TOKENIZE = BLEU().tokenizer
SMOOTHED_MATCHES = (
    0.1  # matches of an order that has none (Chen and Cherry 2014, method 1; NLTK's method1)
)


def round_scores(
    ratings: pd.DataFrame, words: pd.DataFrame, incomplete: str = "drop"
) -> pd.DataFrame:
    """Score every round on each dimension and axis.

    A dimension is the mean of its words, an axis the mean of its dimensions.

    Parameters
    ----------
    ratings : DataFrame
        ``group``, ``round`` and a column for each rated word, in points. A word without a column
        counts as not rated.
    words : DataFrame
        ``family``, ``dimension`` and ``word``, as in Table 4.
    incomplete : {"drop", "mean"}
        With "drop", as in the released code, a round that lacks a word of either axis has no score
        on both axes and their dimensions. The rule holds likewise for each other family (emotions,
        behaviours), which has a prompt of its own. With "mean" a score is the mean of the words
        that are rated.

    Returns
    -------
    DataFrame
        ``group``, ``round``, ``Competence``, ``Warmth`` and a column for each dimension, in points.
    """
    # One prompt asks for both axes; each other family has a prompt of its own.
    of_axes = words.family.isin(AXES)
    prompt = words.family.mask(of_axes, AXES[0])
    columns = {}
    for _, prompt_words in words.groupby(prompt, sort=False):
        # A prompt that was not asked has no columns, which become NaN.
        rated = ratings.reindex(columns=prompt_words["word"])
        if incomplete == "drop":
            # Rounds that `dropna` takes out come back as rows of NaN.
            rated = rated.dropna().reindex(ratings.index)
        for dimension, names in prompt_words.groupby("dimension", sort=False)["word"]:
            columns[dimension] = rated[list(names)].mean(axis=1)
    dimensions = pd.DataFrame(columns)

    scores = ratings[["group", "round"]].copy()
    for axis in AXES:
        axis_words = words[words.family == axis]
        axis_dimensions = dimensions[axis_words.dimension.unique()]
        scores[axis] = axis_dimensions.mean(axis=1)
    return scores.join(dimensions)


def group_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Average every score over the rounds that have it.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.

    Returns
    -------
    DataFrame
        Index ``group``; ``rounds`` (asked), ``used`` (rounds with both axes), then the scores. A
        score is NaN where no round has it, for example for a group that a model always refused.
    """
    has_both_axes = scores[AXES].notna().all(axis=1)
    by_group = scores.assign(used=has_both_axes).groupby("group", sort=False)
    counts = by_group.used.agg(rounds="size", used="sum")

    columns = scores.columns.drop(["group", "round"])
    means = by_group[list(columns)].mean()
    return counts.join(means)


class _Correlation(NamedTuple):
    """A row of `correlations`, before Holm's correction."""

    predictor: str
    outcome: str
    n: int
    rho: float
    low: float
    high: float
    p: float
    p_least: float


def correlations(
    means: pd.DataFrame,
    predictors: Sequence[str],
    outcomes: Sequence[str],
    rng: np.random.Generator,
    n_permutations: int = 9999,
) -> pd.DataFrame:
    """Correlate each predictor with each outcome over groups: Table 8.

    Parameters
    ----------
    means : DataFrame
        From `group_means`. Groups must be unrelated, see the notes.
    predictors, outcomes : sequence of str
        Columns of `means`.
    rng : numpy.random.Generator
        Draws the random orders of the groups.
    n_permutations : int
        Number of random orders; where there are no more orders than that, all are taken.

    Returns
    -------
    DataFrame
        ``predictor``, ``outcome``, ``n`` (groups with both), Spearman's ``rho`` (-1 to 1), ``low``,
        ``high``, ``p`` of `effects.spearman`, and ``p_least``, the smallest that p can be.
        ``p_holm`` and ``p_holm_least`` take the table as one family. NaN where all groups share a
        score, or with fewer than 4 groups. ``low`` and ``high`` are also NaN where rho is 1 or -1.

    Notes
    -----
    The interval is Fisher's, tanh(atanh(r) -+ z sqrt(v)), with v = (1 + r**2 / 2) / (n - 3) of
    Bonett and Wright 2000. Where ten families of groups share their scores, p is below 0.05 in 0.49
    of the cases. Heavy tails and ties do no harm (``make calibration``).
    """
    rows = []
    for predictor in predictors:
        for outcome in outcomes:
            both = means[[predictor, outcome]].dropna()
            n = len(both)
            rho, p, least = spearman(both[predictor], both[outcome], rng, n_permutations)
            low, high = _fisher_interval(rho, n)
            rows.append(_Correlation(predictor, outcome, n, rho, low, high, p, least))

    table = pd.DataFrame(rows, columns=_Correlation._fields)
    table["p_holm"] = adjust(table["p"], "holm")
    table["p_holm_least"] = adjust(table["p_least"], "holm")
    return table


def _fisher_interval(rho: float, n: int) -> tuple[float, float]:
    """Compute the interval (95 %) of Spearman's correlation of n pairs.

    Both ends are NaN if the correlation is 1, -1 or NaN.
    """
    # This is not written as >=, so that NaN ends here, too.
    if not abs(rho) < 1 - TINY:
        return np.nan, np.nan

    z = np.arctanh(rho)
    variance = (1 + rho**2 / 2) / (n - 3)
    quantiles = stats.norm.ppf([0.025, 0.975])
    low, high = np.tanh(z + quantiles * np.sqrt(variance))
    return low, high


def extremes(ratings: pd.DataFrame, word: str, n: int = 10) -> pd.DataFrame:
    """Find the `n` groups with the highest and the lowest mean rating of a word: Table 9.

    Parameters
    ----------
    ratings : DataFrame
        ``group``, ``round`` and a column for each rated word, in points.
    word : str
        The rated word, a column of `ratings`.
    n : int
        Number of groups at each end.

    Returns
    -------
    DataFrame
        ``end`` ("highest", "lowest"), ``rank``, ``group``, ``mean`` and ``variance`` (n - 1) over
        its ``rounds`` with the word. ``tied`` groups have the same mean; they come in the order of
        `ratings`.
    """
    by_group = ratings.dropna(subset=word).groupby("group", sort=False)[word]
    groups = by_group.agg(mean="mean", variance="var", rounds="size")
    # Means are rounded, because means that differ by the error of floats are ties.
    groups["mean"] = groups["mean"].round(9)
    by_mean = groups.groupby("mean")
    groups["tied"] = by_mean["mean"].transform("size").astype(int)

    ends = {
        "highest": groups.nlargest(n, "mean"),
        "lowest": groups.nsmallest(n, "mean"),
    }
    table = pd.concat(ends, names=["end"]).reset_index()
    table["rank"] = 1 + table.groupby("end").cumcount()
    return table[["end", "rank", "group", "mean", "variance", "rounds", "tied"]]


def map_similarity(
    means: pd.DataFrame,
    human: pd.DataFrame,
    rng: np.random.Generator,
    n_permutations: int = 9999,
) -> dict[str, float]:
    """Compare a model's map of the groups with people's map.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    human : DataFrame
        Index ``group``, with both axes: Fiske et al. 2002, in Table 2, where the groups of a
        cluster share its centroid.
    rng : numpy.random.Generator
        Draws the random orders.
    n_permutations : int
        Number of random orders; where there are no more orders than that, all are taken.

    Returns
    -------
    dict
        ``rho of Competence`` and ``rho of Warmth``, Spearman's correlations. They have no interval,
        since groups share centroids.

        ``rho of Difference``, of competence minus warmth, and ``rho of Valence``, of the mean of
        both axes. A map that says good and bad alone has valence, and no difference.

        ``p of Competence`` and so on, the p of each correlation over the orders of people's
        centroids (two-sided). It is NaN where the correlation is.

        ``r of the axes``, Pearson's correlation of the model's competence with its warmth. Near 1
        or -1, the map has one dimension.

        ``groups`` that both maps have (3 or more).

        ``Procrustes distance``, the disparity of scipy.spatial.procrustes, 0 to 1. It is 0 for maps
        with their axes exchanged, which only the correlations can tell.

        ``distance of Valence``: the same distance of a map whose groups have their valence on both
        axes. A map fits people's better than its valence does where this is larger.

        ``p`` of the distance, and ``p_least``, the smallest that p can be. The distance and p are
        NaN where all groups of a map share one place, as such a map has no shape.

    Notes
    -----
    p is the share of orders whose distance is no larger (Jackson 1995). There are two such shares,
    and p is the larger one. The first puts people's centroids in random order, so that groups of
    one cluster move together. The second puts the groups in random order. Alone, the second finds
    agreement in 0.71 of unrelated maps that put people's clusters together (``make calibration``).
    All orders are taken where they are at most `n_permutations`, for example those of five
    centroids. A small p says that two maps share a shape, not that they share both dimensions: it
    is below 0.05 for each of 400 maps whose valence is people's and whose difference is the reverse
    of people's (``make calibration``).
    """
    both = pd.merge(
        means[AXES],
        human[AXES],
        left_index=True,
        right_index=True,
        suffixes=("", " human"),
    ).dropna()
    # The first two columns are the model's axes, the others people's.
    model_map, human_map = np.split(both.to_numpy(), 2, axis=1)

    centroids, cluster = np.unique(human_map, axis=0, return_inverse=True)
    orders_of_centroids = _orders(len(centroids), n_permutations, rng)
    # The shape is (order, centroid, axis).
    permuted_centroids = centroids[orders_of_centroids]
    # Each group takes the position of the centroid that an order gives to its cluster.
    maps_by_centroid = permuted_centroids[:, cluster.ravel()]
    orders_of_groups = _orders(len(both), n_permutations, rng)
    maps_by_group = human_map[orders_of_groups]
    nulls = [_distances(model_map, maps_by_centroid), _distances(model_map, maps_by_group)]

    # The first order of each null is the identity, so the first distance is the observed one.
    observed = nulls[0][0]
    p = np.nan
    if not np.isnan(observed):
        p = max(np.mean(null <= null[0] + TINY) for null in nulls)

    # A map that knows only good and bad has its valence on both axes.
    model_values = _by_axis(model_map)
    valence = model_values["Valence"]
    map_of_valence = np.stack([valence, valence], axis=-1)
    (distance_of_valence,) = _distances(map_of_valence, human_map[np.newaxis])

    rhos = {}
    ps = {}
    permuted_values = _by_axis(maps_by_centroid)
    for axis, values in model_values.items():
        ranks = stats.rankdata(values)
        permuted_ranks = stats.rankdata(permuted_values[axis], axis=-1)
        null = pearson(permuted_ranks, ranks)
        rho = null[0]
        is_as_large = np.abs(null) >= np.abs(rho) - TINY
        rhos[f"rho of {axis}"] = rho
        ps[f"p of {axis}"] = np.nan if np.isnan(rho) else is_as_large.mean()

    numbers = rhos | ps
    numbers["r of the axes"] = both.Competence.corr(both.Warmth)
    numbers["groups"] = len(both)
    # 1 - fit**2 may come out just below 0; np.maximum lets NaN pass.
    numbers["Procrustes distance"] = float(np.maximum(observed, 0.0))
    numbers["distance of Valence"] = float(np.maximum(distance_of_valence, 0.0))
    numbers["p"] = float(p)
    # The larger of two p is at least the larger of both floors.
    numbers["p_least"] = 1 / min(map(len, nulls))
    return numbers


def _by_axis(points: NDArray) -> dict[str, NDArray]:
    """Return competence, warmth, their difference and their mean for maps (..., group, axis).

    The mean is the valence.
    """
    competence, warmth = np.moveaxis(points, -1, 0)
    return {
        "Competence": competence,
        "Warmth": warmth,
        "Difference": competence - warmth,
        "Valence": (competence + warmth) / 2,
    }


def _orders(n: int, n_permutations: int, rng: np.random.Generator) -> NDArray:
    """Return orders of n things, (order, n), the identity first.

    These are all orders, or `n_permutations` random orders if there are more orders than that.
    """
    if factorial(n) <= n_permutations:
        # itertools gives the identity first.
        return np.array(list(permutations(range(n))))

    # Sorting random numbers gives a random order.
    numbers = rng.random((n_permutations + 1, n))
    orders = np.argsort(numbers, axis=1)
    orders[0] = np.arange(n)
    return orders


def _distances(points: NDArray, others: NDArray) -> NDArray:
    """Compute the Procrustes distance of a map (group, axis) from others (map, group, axis).

    All distances are NaN if the groups of `points`, or of all `others`, share one point.
    """
    for maps in (points, others):
        extent = np.ptp(maps, axis=-2)
        if extent.max() < TINY:
            return np.full(len(others), np.nan)

    # Over all rotations and reflections, the best fit of two shapes is the sum of the singular
    # values of their product.
    products = np.einsum("gi,pgj->pij", _shape(points), _shape(others))
    singular_values = np.linalg.svd(products, compute_uv=False)
    fit = singular_values.sum(axis=1)
    return 1 - fit**2


def _shape(points: NDArray) -> NDArray:
    """Move maps (..., group, axis) to the origin and scale them to size 1."""
    centred = points - points.mean(axis=-2, keepdims=True)
    size = np.linalg.norm(centred, axis=(-2, -1), keepdims=True)
    return centred / size


def variation(scores: pd.DataFrame, columns: Sequence[str], rounds: int) -> pd.DataFrame:
    """Compute the coefficients of variation of each group's scores: Table 13.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.
    columns : sequence of str
        The scores to take; they must be above 0.
    rounds : int
        Number of rounds to take, the first ones.

    Returns
    -------
    DataFrame
        A row for each ``score``; over the ``groups`` with 2 rounds or more (others are
        ``left_out``) ``cv_mean`` and ``cv_max``, and ``group_max``, the first group that has
        cv_max.

    Raises
    ------
    ValueError
        No group has 2 rounds with one of the scores, which the message names.

    Notes
    -----
    Appendix L: ``cv = sd / mean``. The sd is the sample's, as the paper does not say which. It is
    small where rounds are few, so compare equal numbers of rounds.
    """
    first_rounds = scores[scores["round"] <= rounds]
    by_group = first_rounds.groupby("group", sort=False)[list(columns)]
    # A group with one round has no standard deviation: NaN.
    cv = by_group.std() / by_group.mean()
    for score in columns:
        if cv[score].isna().all():
            raise ValueError(f"no group has 2 rounds with {score!r}, expected at least one")

    table = pd.DataFrame(
        {
            "groups": cv.count(),
            "left_out": cv.isna().sum(),
            "cv_mean": cv.mean(),
            "cv_max": cv.max(),
            "group_max": cv.idxmax(),
        }
    )
    return table.rename_axis("score").reset_index()


def self_bleu(texts: Sequence[str], order: int = 4) -> float:
    """Compute the mean BLEU of each text against all other texts.

    Parameters
    ----------
    texts : sequence of str
        Each has a word.
    order : int
        Length in words of the longest n-grams.

    Returns
    -------
    float
        0 (diverse) to 1 (the same text again); NaN for a single text. More texts give a higher
        value, so compare equal numbers of texts.

    Notes
    -----
    Zhu et al. 2018. For a text of c words, r is the closest length of a reference (the shorter, if
    two are as close)::

        BLEU = min(1, exp(1 - r / c)) * exp(mean over n = 1..order of log p_n)
        p_n = n-grams that a reference has, each at most as often as there / n-grams

    An order without a match counts as 0.1 matches, as in their program. The paper names no rule for
    a text shorter than `order`; it is judged by the orders that it has. Scored by sacrebleu,
    checked against it text by text.
    """
    if len(texts) < 2:
        return np.nan

    split_texts = [extract_all_word_ngrams(TOKENIZE(text.lower()), 1, order) for text in texts]
    # N-grams are counted once over all texts, rather than over the others of every text.
    largest = _two_largest_counts(ngrams for ngrams, _ in split_texts)
    lengths = Counter(length for _, length in split_texts)

    scores = []
    for ngrams, length in split_texts:
        correct = [0] * order
        total = [0] * order
        for ngram, count in ngrams.items():
            # The text with the largest count sees the second largest in the others.
            second, first = largest[ngram]
            most_elsewhere = second if count == first else first
            index = len(ngram) - 1
            correct[index] += min(count, most_elsewhere)
            total[index] += count

        reference = _closest_length(length, lengths)
        bleu = BLEU.compute_bleu(
            correct,
            total,
            sys_len=length,
            ref_len=reference,
            smooth_method="floor",
            smooth_value=SMOOTHED_MATCHES,
            effective_order=True,
            max_ngram_order=order,
        )
        # The same text comes out as 1 + 2e-16.
        scores.append(min(bleu.score / 100, 1.0))
    return float(np.mean(scores))


def _two_largest_counts(counts: Iterable[Counter[tuple]]) -> dict[tuple, list[int]]:
    """Find the second largest and the largest count that any text has of each n-gram."""
    largest: dict[tuple, list[int]] = {}
    for ngrams in counts:
        for ngram, count in ngrams.items():
            earlier = largest.get(ngram, (0, 0))
            largest[ngram] = sorted([*earlier, count])[1:]
    return largest


def _closest_length(length: int, lengths: Counter[int]) -> int:
    """Find the length of another text that is closest to `length`, the shorter of two as close."""
    # One text of this length is the text itself.
    others = lengths - Counter([length])
    return min(others, key=lambda other: (abs(other - length), other))


def ngram_entropy(texts: Sequence[str], n: int) -> float:
    """Compute the entropy of the n-grams of all texts together (Zhang et al. 2018).

    Parameters
    ----------
    texts : sequence of str
        No n-gram goes over the end of a text.
    n : int
        Words of an n-gram.

    Returns
    -------
    float
        In bits; NaN without an n-gram. It grows with the number of n-grams, so compare equal
        numbers of texts.

    Notes
    -----
    H = -sum over w of F(w) / N * log2(F(w) / N), with the number F(w) of each n-gram w, and N their
    sum. The paper names no base and no set of texts. Its 16.28 for three words would take 12
    million n-grams in nats, 80,000 in bits: it must be bits, over all groups.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        ngrams, _ = extract_all_word_ngrams(TOKENIZE(text.lower()), n, n)
        counts.update(ngrams)
    if not counts:
        return np.nan
    return float(stats.entropy(list(counts.values()), base=2))


def reason_diversity(reasons: pd.DataFrame, per_group: int) -> dict[str, float]:
    """Measure how diverse the reasons of one prompt are: the middle of Table 14.

    Parameters
    ----------
    reasons : DataFrame
        ``group`` and ``text``, one row for each reply, without refusals.
    per_group : int
        How many replies of each group count, the first ones. Both measures grow with the number of
        texts, and the paper has ten rounds of its own prompt, five of the others.

    Returns
    -------
    dict
        Numbers of ``texts``, ``groups`` and ``left_out`` groups, which have a single text.
        ``self_bleu`` is the mean over the other groups, ``self_bleu_all`` that of all texts, as the
        paper does not say which. ``entropy_2`` and ``entropy_3`` are in bits.
    """
    counted = reasons.groupby("group", sort=False).head(per_group)
    within = counted.groupby("group", sort=False)["text"].agg(self_bleu)

    texts = counted["text"].tolist()
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
    """Compute the share of the replies that refuse, by group (Figure 5).

    Parameters
    ----------
    replies : DataFrame
        One row per reply, with ``group``, ``construct``, ``prompt`` and ``status``.

    Returns
    -------
    DataFrame
        ``group``; ``n``, the replies that were neither cut nor failed; the numbers of ``refused``,
        ``cut`` and ``failed`` replies; ``rate`` (0 to 1, NaN if n is 0) with ``low`` to ``high``
        (95 %). The highest rate comes first.

    Notes
    -----
    As in the authors' code, a group's rate is the mean of its shares in each construct. Constructs
    count alike, also with different numbers of prompts and replies. A reply that failed or was cut
    is in no share, as it may have been a refusal.

    The interval is Wilson's, for as many replies as the mean of shares is worth: C**2 / sum(1 / n)
    for the n replies of each of C constructs, divided by Kish's design effect. The design effect is
    one number for all groups, at least 1. It says how much more the rates of a group's prompts vary
    than those of as many independent replies would, as the rounds of a prompt are alike.
    """
    status = replies.status
    marked = replies.assign(
        refused=status.eq("refused").astype(float),
        cut=status.eq("cut"),
        failed=status.eq("failed"),
    )
    by_group = marked.groupby("group", sort=False)
    table = by_group[["refused", "cut", "failed"]].sum().astype(int)

    answered = marked[~marked.cut & ~marked.failed]
    n = answered.groupby("group").size()
    table["n"] = n.reindex(table.index, fill_value=0)

    by_construct = answered.groupby(["group", "construct"]).refused
    shares = by_construct.mean()
    table["rate"] = shares.groupby("group").mean()

    worth = _worth(by_construct.size()) / _design_effect(answered)
    worth = worth.reindex(table.index)
    # A mean of shares is worth a number of replies that need not be whole.
    table["low"], table["high"] = proportion_confint(table.rate * worth, worth, method="wilson")

    table = table.sort_values("rate", ascending=False, kind="stable").reset_index()
    columns = [
        "group",
        "n",
        "refused",
        "cut",
        "failed",
        "rate",
        "low",
        "high",
    ]
    return table[columns]


def refusals_by_model(replies: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Compute the refusal rates of several models.

    Parameters
    ----------
    replies : DataFrame
        The columns of `refusal_rates`, and ``model``.
    models : sequence of str
        The models, in the order of the table.

    Returns
    -------
    DataFrame
        ``model``, then the columns of `refusal_rates`.
    """
    rates = {}
    for model in models:
        of_model = replies[replies.model == model]
        rates[model] = refusal_rates(of_model)
    return pd.concat(rates, names=["model"]).reset_index("model")


def _worth(sizes: pd.Series) -> pd.Series:
    """Compute how many replies each group's mean of shares is worth.

    A share of as many replies, all of one construct, would have the same variance.
    """
    by_group = (1 / sizes).groupby("group")
    return by_group.size() ** 2 / by_group.sum()


def _design_effect(answered: pd.DataFrame) -> float:
    """Compute how much more the refusal rates of a group's prompts vary than by chance.

    The factor is at least 1, and 1 if nothing varies by chance.
    """
    by_prompt = answered.groupby(["group", "prompt"]).refused
    rates = by_prompt.mean()
    observed = rates.groupby("group").var()

    sizes = by_prompt.size()
    mean_size = sizes.groupby("group").mean()
    variance_of_replies = answered.groupby("group").refused.var()
    by_chance = variance_of_replies / mean_size

    # A group with a single prompt shows no variance between prompts and is in neither sum.
    total = by_chance[observed.notna()].sum()
    # Nothing varies by chance, as where every group refuses always or never.
    if total == 0:
        return 1.0
    return max(1.0, observed.sum() / total)
