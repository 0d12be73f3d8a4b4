"""Warmth and competence of groups, and what goes with them.

StereoMap (Jeoung et al. 2023), sections 3.1 and 5.1, appendix G; `clustering` has the clusters.
Ratings have a row for each ``group`` and ``round`` and a column for each rated word, in points, NaN
where there is none; `words` is Table 4: ``family``, ``dimension``, ``word``. `scores` are from
`round_scores`, `means` from `group_means`. p-values are two-sided, ``p_holm`` takes a table as one
family, intervals (``low``, ``high``) are of 95 %.
"""

from collections.abc import Sequence
from itertools import permutations
from math import factorial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from ingroup.stats.effects import spearman
from ingroup.stats.paired import TINY, adjust

AXES = ["Competence", "Warmth"]


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
    take the table as one family. NaN for a score that all groups share, or with fewer than 4.
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
    ends = []
    for end, rising in (("highest", False), ("lowest", True)):
        part = table.sort_values("mean", ascending=rising, kind="stable").head(n).reset_index()
        ends.append(part.assign(end=end, rank=part.index + 1))
    columns = ["end", "rank", "group", "mean", "variance", "rounds", "tied"]
    return pd.concat(ends, ignore_index=True)[columns]


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
    as of five places; ``p_least`` is the smallest that p can be.
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
    numbers |= {"groups": len(both), "Procrustes distance": max(float(nulls[0][0]), 0.0)}
    p = max(np.mean(null <= null[0] + TINY) for null in nulls)
    return numbers | {"p": float(p), "p_least": 1 / min(map(len, nulls))}


def _distances(mine: NDArray, theirs: NDArray) -> NDArray[np.float64]:
    """Procrustes distance of a map (group, axis) from others (map, group, axis)."""
    maps = [part - part.mean(axis=-2, keepdims=True) for part in (mine, theirs)]
    maps = [part / np.linalg.norm(part, axis=(-2, -1), keepdims=True) for part in maps]
    products = np.einsum("gi,pgj->pij", *maps)
    return 1 - np.linalg.svd(products, compute_uv=False).sum(axis=1) ** 2
