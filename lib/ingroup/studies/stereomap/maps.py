"""The map of the groups: clusters by competence and warmth, and how much of them is steady.

StereoMap (Jeoung et al. 2023), Figures 2 and 6. `means` (index: group) and `scores` (``group``,
``round``) are from `statistics`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_limits

from ingroup.studies.stereomap.statistics import AXES

ANCHORS = {  # the groups that the paper names its clusters by, 0 to 4
    "EXTENDED": ("Homeless", "Lower-class", "Lawyers", "Elderly", "Nurses"),
    "ORIGINAL": (
        *("Homeless people", "Blue-collar workers", "Rich people", "Elderly people"),
        "Middle-class people",
    ),
}


class Clusters(NamedTuple):
    """Labels by group, centroids by cluster, and the groups without a position: see `clusters`."""

    labels: pd.Series
    centroids: pd.DataFrame
    left_out: list[str]


def clusters(
    means: pd.DataFrame, n_clusters: int = 5, n_init: int = 20, seed: int = 0, version: str = ""
) -> Clusters | None:
    """k-means (scikit-learn) of the groups on competence and warmth: Figures 2 and 6.

    Clusters are numbered from 0 by competence + warmth of their centroid, the lowest first; the
    order of the groups changes nothing. Groups without both axes are ``left_out``; ``centroids``
    has ``n``, both axes and ``anchor``. With a `version`, the k-th of those `ANCHORS` that are in
    the map calls its cluster k (unless they are more than clusters), as in the released code (where
    a second anchor in a cluster overwrites the first and leaves a cluster unnumbered). Here the
    first counts, and the other clusters share the free numbers as above. None where fewer positions
    than `n_clusters` are different.
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
