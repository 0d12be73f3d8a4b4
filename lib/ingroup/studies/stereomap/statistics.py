"""Warmth and competence of groups, their clusters, and what goes with them.

StereoMap (Jeoung et al. 2023), sections 3.1 and 5.1, appendices F to H. Ratings have a row for each
``group`` and ``round`` and a column for each rated word, in points, NaN where there is none;
`words` is Table 4: ``family``, ``dimension``, ``word``. `scores` are from `round_scores`, `means`
from `group_means`, `labels` of `maps.clusters`. p-values are two-sided, ``p_holm`` takes a table as
one family, intervals (``low``, ``high``) are of 95 %.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ingroup.stats.paired import TINY, adjust, paired_test

AXES = ["Competence", "Warmth"]
N_PERMUTATIONS = 9999


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
        part = ratings[list(asked["word"])]
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


def axis_tests(means: pd.DataFrame, labels: pd.Series, alpha: float = 0.001) -> pd.DataFrame:
    """Competence against warmth over the groups of each cluster, by `paired_test`: Tables 2 and 5.

    With `means` and `labels` of the same rounds, as in the paper, chance alone is significant, as
    k-means cuts even noise; sound are labels of one half of the rounds, means of the other
    (`halves`). Index ``cluster``; ``n``, the centroid (the released code gives one cluster its
    warmth as competence, hence C = W in print), ``difference`` with ``low`` to ``high``,
    ``statistic``, ``d_z``, ``p``, ``p_holm``, ``sign`` (">" or "<" where p < `alpha`, else "=", as
    printed) and ``sign_holm``. A single group is not tested: NaN and "".
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
