"""Warmth and competence of groups, their clusters, and what goes with them.

StereoMap (Jeoung et al. 2023), sections 3.1 and 5.1, appendices F to H, Figures 2 and 6. Ratings
have a row for each ``group`` and ``round`` and a column for each rated word, in points, NaN where
there is none; `words` is Table 4: ``family``, ``dimension``, ``word``. `scores` are from
`round_scores`, `means` from `group_means`, `labels` of `clusters`. p-values are two-sided,
``p_holm`` takes a table as one family, intervals (``low``, ``high``) are of 95 %.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_limits

from ingroup.stats.paired import TINY, adjust, paired_test

AXES = ["Competence", "Warmth"]
N_PERMUTATIONS = 9999
ANCHORS = {  # the groups that the paper names its clusters by, 0 to 4
    "EXTENDED": ("Homeless", "Lower-class", "Lawyers", "Elderly", "Nurses"),
    "ORIGINAL": (
        "Homeless people", "Blue-collar workers", "Rich people", "Elderly people",
        "Middle-class people",
    ),
}  # fmt: skip


class Clusters(NamedTuple):
    """Labels by group, centroids by cluster, and the groups without a position: see `clusters`."""

    labels: pd.Series
    centroids: pd.DataFrame
    left_out: list[str]


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


def halves(scores: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rounds of every group, at random in two halves: one to cluster, one for `axis_tests`.

    Of an odd number the first half has one more. Groups with fewer than 2 rounds with both axes are
    in neither; ValueError where there is no other.
    """
    used = scores.dropna(subset=AXES)
    used = used[used.groupby("group")["group"].transform("size") > 1]
    if used.empty:
        raise ValueError("no group has 2 rounds with both axes, expected at least one to halve")
    shuffled = used.iloc[rng.permutation(len(used))]
    first = (shuffled.groupby("group").cumcount() % 2 == 0).reindex(used.index)
    return used[first], used[~first]


def clusters(
    means: pd.DataFrame, n_clusters: int = 5, n_init: int = 20, seed: int = 0, version: str = ""
) -> Clusters | None:
    """k-means (scikit-learn) of the groups on competence and warmth: Figures 2 and 6.

    Clusters are numbered from 0 by competence + warmth of their centroid, the lowest first; the
    order of the groups changes nothing. Groups without both axes are ``left_out``; ``centroids``
    has ``n``, both axes and ``anchor``. With a `version`, the k-th of those `ANCHORS` that are in
    the map calls its cluster k (unless they are more than clusters); of two in a cluster the first
    counts (in the released code the second, and a cluster has no number), and other clusters share
    the free numbers as above. None where fewer positions than `n_clusters` are different.
    """
    points = means[AXES].dropna()
    if len(points.drop_duplicates()) < n_clusters:
        return None
    found = pd.Series(_partitions([points.to_numpy()], n_clusters, n_init, seed)[0], points.index)
    anchors = [group for group in ANCHORS.get(version, ()) if group in means.index]
    number, named = {}, {}
    for k, anchor in enumerate(anchors if len(anchors) <= n_clusters else ()):
        if anchor in found.index and found[anchor] not in number:
            number[found[anchor]], named[k] = k, anchor
    free = (k for k in range(n_clusters) if k not in named)
    height = points.groupby(found).mean().sum(axis=1).round(9)
    for cluster in height.sort_values(kind="stable").index:
        if cluster not in number:
            number[cluster] = next(free)
    labels = found.map(number).rename("cluster")
    centroids = points.groupby(labels).mean()
    centroids.insert(0, "n", labels.value_counts())
    centroids["anchor"] = [named.get(k, "") for k in centroids.index]
    return Clusters(labels, centroids, list(means.index.difference(points.index, sort=False)))


def stability(
    scores: pd.DataFrame, labels: pd.Series, rng: np.random.Generator, n_resamples: int
) -> dict[str, float]:
    """How much of a clustering would be left with other rounds.

    Each draw resamples the rounds of every group with replacement, and clusters their means;
    partitions are compared by the adjusted Rand index (Hubert and Arabie 1985; 1 is the same, 0
    chance): ``ari`` is its mean, ``low`` to ``high`` hold 95 % of the draws. ``overlap of <k>`` is
    the Jaccard index of a cluster with the most similar one of a draw, averaged (Hennig 2007:
    stable above 0.75, dissolved at 0.5). Means of a draw vary about means that vary, so both come
    out low rather than high. ValueError where every group has a single round.
    """
    used = dict(list(scores.dropna(subset=AXES).groupby("group")[AXES]))
    if max(map(len, used.values())) < 2:
        raise ValueError("every group has a single round, expected at least 2 to resample")
    draws = np.empty((n_resamples, len(labels), 2))
    for place, group in enumerate(labels.index):
        points = used[group].to_numpy()
        chosen = rng.integers(len(points), size=(n_resamples, len(points)))
        draws[:, place] = points[chosen].mean(axis=1)
    numbers = np.unique(labels)
    rand, best = np.empty(n_resamples), np.empty((n_resamples, len(numbers)))
    for draw, found in enumerate(_partitions(draws, len(numbers), n_init=10, seed=0)):
        rand[draw] = adjusted_rand_score(labels, found)
        shared = contingency_matrix(labels, found)
        either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
        best[draw] = (shared / either).max(axis=1)
    low, high = np.quantile(rand, [0.025, 0.975])
    overlap = pd.Series(best.mean(axis=0), numbers).add_prefix("overlap of ")
    return {"ari": rand.mean(), "low": low, "high": high, **overlap}


def axis_tests(means: pd.DataFrame, labels: pd.Series, alpha: float = 0.001) -> pd.DataFrame:
    """Competence against warmth over the groups of each cluster, by `paired_test`: Tables 2 and 5.

    With `means` and `labels` of the same rounds, as in the paper, chance alone is significant, as
    k-means cuts even noise; sound are labels of one half of the rounds, means of the other
    (`halves`). Index ``cluster``; ``n``, the centroid (the released code gives one cluster its
    warmth as competence, hence C = W in print) and numbers of the test; ``sign`` is ">" or "<"
    where p < `alpha`, else "=", as printed. A single group is not tested: NaN and "".
    """
    rows = {}
    for cluster, points in means.loc[labels.index, AXES].groupby(labels):
        t = paired_test(points[AXES[0]], points[AXES[1]])
        numbers = t.difference, t.low, t.high, t.statistic, t.effect_size, t.pvalue
        rows[cluster] = t.n, *points.mean(), *numbers
    columns = ["n", *AXES, "difference", "low", "high", "statistic", "d_z", "p"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("cluster")
    table["p_holm"] = adjust(table["p"], "holm")
    for end in ("", "_holm"):
        sign = np.where(table["difference"] > 0, ">", "<")
        sign = np.where(table[f"p{end}"] < alpha, sign, "=")
        table[f"sign{end}"] = np.where(table["p"].isna(), "", sign)
    return table


def correlations(
    means: pd.DataFrame, predictors: Sequence[str], outcomes: Sequence[str]
) -> pd.DataFrame:
    """Spearman's correlation, over groups, of each predictor with each outcome: Table 8.

    The interval is Fisher's, tanh(atanh(r) -+ z sqrt(v)), with v = (1 + r**2 / 2) / (n - 3) of
    Bonett and Wright 2000; p by scipy.stats.spearmanr; ``n`` groups have both. NaN for a score that
    all groups share, or with fewer than 4 groups.
    """
    rows = [
        (one, other, *_correlation(means[one], means[other], "spearman"))
        for one in predictors
        for other in outcomes
    ]
    table = pd.DataFrame(rows, columns=["predictor", "outcome", "n", "rho", "low", "high", "p"])
    return table.assign(p_holm=adjust(table["p"], "holm"))


def by_cluster(means: pd.DataFrame, labels: pd.Series, columns: Sequence[str]) -> pd.DataFrame:
    """Figure 3: ``score``, ``cluster``, ``n`` (groups with it), ``mean``, ``variance`` (n - 1)."""
    grouped = means.loc[labels.index].groupby(labels)
    parts = {name: grouped[name].agg(n="count", mean="mean", variance="var") for name in columns}
    return pd.concat(parts, names=["score", "cluster"]).reset_index()


def extremes(ratings: pd.DataFrame, word: str, n: int = 10) -> pd.DataFrame:
    """The `n` groups with the highest and the lowest mean rating of a word: Table 9.

    ``end`` ("highest", "lowest"), ``rank``, ``group``, ``mean`` and ``variance`` (n - 1) over its
    ``rounds`` with the word; ``tied`` groups have this mean, in the order of `ratings`.
    """
    by_group = ratings.dropna(subset=word).groupby("group", sort=False)[word]
    table = by_group.agg(mean="mean", variance="var", rounds="size")
    table["mean"] = table["mean"].round(9)
    table["tied"] = table.groupby("mean")["mean"].transform("size").astype(int)
    ends = []
    for end, rising in (("highest", False), ("lowest", True)):
        part = table.sort_values("mean", ascending=rising, kind="stable").head(n).reset_index()
        ends.append(part.assign(end=end, rank=part.index + 1))
    columns = ["end", "rank", "group", "mean", "variance", "rounds", "tied"]
    return pd.concat(ends, ignore_index=True)[columns]


def agreement(
    means: pd.DataFrame, human: pd.DataFrame, rng: np.random.Generator
) -> tuple[pd.DataFrame, dict[str, float]]:
    """A model's map of the groups against people's, over the groups that both have (3 or more).

    `human` has the index ``group`` and both axes: Fiske et al. 2002, in Table 2. There the groups
    of a cluster share its centroid, so that the intervals are too short. Returns a table with
    ``axis``, ``method`` ("pearson", "spearman") and the numbers of `correlations`; and the number
    of ``groups``, the ``Procrustes distance`` (the disparity of scipy.spatial.procrustes, 0 to 1;
    of maps with their axes exchanged it is 0: only the correlations see that) and its ``p``, the
    share of 9,999 permutations of the groups and the observed order whose distance is no larger
    (Jackson 1995).
    """
    both = pd.merge(
        means[AXES], human[AXES], left_index=True, right_index=True, suffixes=("", " human")
    ).dropna()
    rows = [
        (axis, method, *_correlation(both[axis], both[f"{axis} human"], method))
        for axis in AXES
        for method in ("pearson", "spearman")
    ]
    table = pd.DataFrame(rows, columns=["axis", "method", "n", "r", "low", "high", "p"])
    table["p_holm"] = adjust(table["p"], "holm")
    maps = [points - points.mean(axis=0) for points in np.split(both.to_numpy(), 2, axis=1)]
    maps = [points / np.linalg.norm(points) for points in maps]
    orders = np.tile(np.arange(len(both)), (N_PERMUTATIONS + 1, 1))
    orders[1:] = rng.permuted(orders[1:], axis=1)
    products = np.einsum("gi,pgj->pij", maps[0], maps[1][orders])
    distances = 1 - np.linalg.svd(products, compute_uv=False).sum(axis=1) ** 2
    p = float(np.mean(distances <= distances[0] + TINY))
    distance = max(float(distances[0]), 0.0)
    return table, {"groups": len(both), "Procrustes distance": distance, "p": p}


def _correlation(one: pd.Series, other: pd.Series, method: str) -> tuple:
    """n, r, its interval and p, over the groups that have both."""
    x, y = pd.concat([one, other], axis=1).dropna().to_numpy().T
    n = len(x)
    if n < 4 or min(np.ptp(x), np.ptp(y)) < TINY:
        return n, np.nan, np.nan, np.nan, np.nan
    r, p = (stats.spearmanr if method == "spearman" else stats.pearsonr)(x, y)
    spread = np.sqrt((1 + r**2 / 2 if method == "spearman" else 1) / (n - 3))
    margin = stats.norm.ppf(0.975) * spread
    # atanh(1) is infinite, and so would be both ends.
    z = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    return n, r, np.tanh(z - margin), np.tanh(z + margin), p


def _partitions(
    maps: Sequence[NDArray], n_clusters: int, n_init: int, seed: int
) -> list[NDArray[np.int32]]:
    """k-means labels of the points of each map; fewer clusters where fewer are distinct."""
    found = []
    with threadpool_limits(1):  # a hundred points are clustered before a second thread has started
        for points in maps:
            order = np.lexsort(points.T)
            n = min(n_clusters, len(np.unique(points, axis=0)))
            fit = KMeans(n, n_init=n_init, random_state=seed).fit(points[order])
            found.append(fit.labels_[np.argsort(order)])
    return found
