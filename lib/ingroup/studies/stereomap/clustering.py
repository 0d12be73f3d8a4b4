"""Clusters of the groups on competence and warmth, how firm they are, and whether they differ.

StereoMap (Jeoung et al. 2023), sections 3.1 and 5.1, appendices F and H, Figures 2, 3 and 6. The
`scores`, `means` and axes are those of `statistics`, `labels` are of `clusters`; p-values are
two-sided, ``p_holm`` takes a table as one family, intervals (``low``, ``high``) are of 95 %.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from ingroup.stats.crossed import Effect, difference_of_levels
from ingroup.stats.paired import TINY, adjust, paired_test
from ingroup.stats.power import POWER
from ingroup.studies.stereomap.statistics import AXES
from ingroup.studies.stereomap.stimuli import ANCHORS

LARGEST_MEAN = 100  # standard deviations, beyond which no difference is looked for


class Clusters(NamedTuple):
    """Labels by group, centroids by cluster, and the groups without a position: see `clusters`."""

    labels: pd.Series
    centroids: pd.DataFrame
    left_out: list[str]


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
    means: pd.DataFrame, n_clusters: int = 5, n_init: int = 500, seed: int = 0, version: str = "",
    kmeans: str = "sound",
) -> Clusters | None:  # fmt: skip
    """k-means of the groups on competence and warmth, the best of `n_init` starts: Figures 2 and 6.

    Checked against scikit-learn. A map without clusters has many optima that are nearly as good: of
    the control's, one start in a hundred finds the best. `kmeans` "released" is the call of the
    authors' code instead: scikit-learn's k-means of ten starts (its default in 2023), with the
    random state `seed`.

    Clusters are numbered from 0 by competence + warmth of their centroid, the lowest first; the
    order of the groups changes nothing. Groups without both axes are ``left_out``; ``centroids``
    has ``n``, both axes, ``anchor`` and ``name``, the anchor or the group next to the centroid.
    With a `version`, the k-th of those `ANCHORS` that are in the map calls its cluster k (unless
    they are more than clusters); of two in a cluster the first counts (in the released code the
    second, and a cluster has no number), and other clusters share the free numbers as above. None
    where fewer positions than `n_clusters` are different.
    """
    points = means[AXES].dropna()
    if len(points.drop_duplicates()) < n_clusters:
        return None
    if kmeans == "released":
        found = _released_partition(points, n_clusters, seed)
    else:
        rng = np.random.default_rng(seed)
        (found,) = _partitions(points.to_numpy()[None], n_clusters, n_init, rng)
        found = pd.Series(found, points.index)
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
    near = ((points - points.groupby(labels).transform("mean")) ** 2).sum(axis=1)
    near = near.round(9).sort_index().groupby(labels).idxmin()  # of two as near the first by name
    centroids["name"] = [named.get(k) or f"near {near[k]}" for k in centroids.index]
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
    for draw, found in enumerate(_partitions(draws, len(numbers), 20, rng)):
        rand[draw] = adjusted_rand_score(labels, found)
        shared = contingency_matrix(labels, found)
        either = shared.sum(axis=1, keepdims=True) + shared.sum(axis=0) - shared
        best[draw] = (shared / either).max(axis=1)
    low, high = np.quantile(rand, [0.025, 0.975])
    overlap = pd.Series(best.mean(axis=0), numbers).add_prefix("overlap of ")
    return {"ari": rand.mean(), "low": low, "high": high, **overlap}


def exchange_null(
    means: pd.DataFrame, n_clusters: int, rng: np.random.Generator, n_draws: int = 999,
    n_init: int = 5,
) -> NDArray[np.float64]:  # fmt: skip
    """The largest z of a cluster in each of `n_draws` maps without a difference between the axes.

    Were competence not rated otherwise than warmth, a group's two axes could be exchanged. Each
    draw does so for a random half of the groups, which keeps their noise and how far from the
    diagonal they lie, and clusters anew. For the d = competence - warmth of a cluster's n groups::

        z = abs(sum(d)) / sqrt(sum(d**2))

    from 0 to sqrt(n): few groups, however alike, reach little. With one cluster it is the test of
    random signs of the whole map (checked against scipy.stats.permutation_test).

    Exchanging the axes assumes that both vary alike. Where warmth varies three times as much as
    competence and no mean differs, some cluster has a p below 0.05 in 0.45 of the cases (``make
    calibration``).
    """
    points = means[AXES].dropna().to_numpy()
    turned = rng.random((n_draws, len(points))) < 0.5
    maps = np.where(turned[..., None], points[:, ::-1], points)
    member = _partitions(maps, n_clusters, n_init, rng)[..., None] == np.arange(n_clusters)
    d = (maps[..., 0] - maps[..., 1])[..., None]
    size = np.sqrt((member * d**2).sum(axis=1))
    return (np.abs((member * d).sum(axis=1)) / np.maximum(size, TINY)).max(axis=1)


def _exchange_p(null: Sequence[float], z: ArrayLike) -> NDArray[np.float64]:
    """p of each z: the share of the draws, the observed map among them, that are as large."""
    draws = np.append(null, np.inf)
    return np.mean(draws >= np.expand_dims(z, -1) - TINY, axis=-1)


def exchange_floor(null: Sequence[float], n: int) -> float:
    """Compute the smallest p that exchanging the axes can give a cluster of `n` groups.

    It is the p of z = sqrt(n), the largest of so many groups: larger clusters of a draw reach more.
    """
    return float(_exchange_p(null, np.sqrt(n)))


def groups_for_exchange(null: Sequence[float], level: float = 0.05) -> int:
    """Count the groups of a cluster from which exchanging the axes can find a difference.

    Raises
    ------
    ValueError
        Where no number is enough: there are too few draws for `level`.
    """
    if 1 / (len(null) + 1) >= level:
        raise ValueError(f"found {len(null)} draws, expected more than {1 / level:g}")

    n = 2
    while exchange_floor(null, n) >= level:
        n += 1
    return n


def smallest_difference(
    null: Sequence[float], n: int, level: float = 0.05, power: float = POWER
) -> float:
    """Find the difference of the axes that exchanging them finds in a cluster of `n` groups.

    The differences d of the groups are drawn from a normal distribution, 2,000 clusters a mean; the
    z of `exchange_null` has to be above all but `level` of the null. Checked by simulation.

    Parameters
    ----------
    null : sequence of float
        From `exchange_null`.
    n : int
        Groups of the cluster.
    level : float
        The level of the test of all clusters together.
    power : float
        The share of clusters that it finds.

    Returns
    -------
    float
        The mean of d in its standard deviations within the cluster; infinite where no mean has
        this power, as z cannot be above sqrt(n).
    """
    if n < 2 or exchange_floor(null, n) >= level:
        return np.inf

    noise = np.random.default_rng(0).standard_normal((2_000, n))

    def missing(mean: float) -> float:
        d = mean + noise
        z = np.abs(d.sum(axis=1)) / np.sqrt((d**2).sum(axis=1))
        return np.mean(_exchange_p(null, z) < level) - power

    above = 1.0
    while missing(above) < 0:
        above *= 2
        if above > LARGEST_MEAN:
            return np.inf
    return float(brentq(missing, 0, above))


def axis_tests(
    means: pd.DataFrame, labels: pd.Series, alpha: float = 0.001, null: Sequence[float] = ()
) -> pd.DataFrame:
    """Competence against warmth over the groups of each cluster: Tables 2 and 5.

    ``p`` is the paper's, by `paired_test`, with the ``sign`` ">" or "<" where it is below `alpha`,
    else "=". It takes clusters as given, but k-means makes them of groups that differ alike: with
    `means` and `labels` of the same rounds noise is significant, with those of other rounds
    (`halves`) whatever a group keeps from round to round. Where a model rates all groups alike,
    0.70 of the clusters of the same rounds have p < 0.001, and the interval of 95 % holds the
    difference in 0.14 of them (``make calibration``).

    With a `null` of `exchange_null`, ``p_exchanged`` is the share of its draws and the observed map
    with a z as large in any cluster, so that it is corrected for their number (Westfall and Young
    1993), and ``p_least`` the smallest that so many groups can reach. Index ``cluster``; ``n``, the
    centroid (the released code gives one cluster its warmth as competence, hence C = W in print)
    and numbers of the tests. A single group is not tested: NaN and "".
    """
    rows = {}
    for cluster, points in means.loc[labels.index, AXES].groupby(labels):
        t = paired_test(points[AXES[0]], points[AXES[1]])
        d = points[AXES[0]] - points[AXES[1]]
        z = abs(d.sum()) / max(np.sqrt((d**2).sum()), TINY)
        can_be_tested = len(null) > 0 and t.n > 1
        ends = _exchange_p(null, [z, np.sqrt(t.n)]) if can_be_tested else [np.nan] * 2
        numbers = t.difference, t.low, t.high, t.statistic, t.effect_size, t.pvalue, *ends
        rows[cluster] = t.n, *points.mean(), *numbers
    columns = ["n", *AXES, "difference", "low", "high", "statistic", "d_z", "p"]
    columns += ["p_exchanged", "p_least"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("cluster")
    table["p_holm"] = adjust(table["p"], "holm")
    for end in ("", "_holm"):
        where = [table["p"].isna(), table[f"p{end}"] >= alpha, table["difference"] > 0]
        table[f"sign{end}"] = np.select(where, ["", "=", ">"], "<")
    return table


def over_words(ratings: pd.DataFrame, words: pd.DataFrame) -> Effect:
    """Test competence against warmth over a whole map, for words like these.

    `axis_tests` takes the words as all that could have been asked, and the groups as a sample. Here
    the words of both axes are samples too, crossed with the groups
    (:func:`ingroup.stats.crossed.difference_of_levels`). Each word counts alike, as in Table 4,
    where all dimensions of an axis have as many words.

    Parameters
    ----------
    ratings : DataFrame
        ``group``, and a column a word, in points; a row is a round.
    words : DataFrame
        Table 4: ``family`` and ``word``.

    Returns
    -------
    Effect
        Competence minus warmth, in points.

    Raises
    ------
    ValueError
        Where no group has a rating of both axes.
    """
    by_group = ratings.groupby("group", sort=False)
    sides = []
    for axis in AXES:
        names = words.loc[words["family"] == axis, "word"]
        means = by_group[list(names)].mean()
        sides.append(means.to_numpy().T)
    return difference_of_levels(*sides)


def _released_partition(points: pd.DataFrame, n_clusters: int, seed: int) -> pd.Series:
    """Labels of `points` as ``calc_kmeans`` of the authors' code makes them.

    Its rows are sorted and warmth comes first: both decide what a random state draws.
    """
    ordered = points.sort_values(AXES, kind="stable")
    model = KMeans(n_clusters, n_init=10, random_state=seed)
    found = model.fit_predict(ordered[AXES[::-1]].to_numpy())
    return pd.Series(found, ordered.index).reindex(points.index)


def _partitions(
    maps: NDArray[np.float64], n_clusters: int, n_init: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """k-means labels (map, point) of maps (map, point, 2); fewer clusters where fewer are distinct.

    Keeps the start with the smallest inertia of `n_init` at random points. Ties, up to the error of
    floats (`TINY`), go to the first. All at once: scikit-learn checks its input for a hundred
    starts' time, and the null has thousands.
    """
    order = np.lexsort(np.moveaxis(maps, 2, 0))  # the order of the groups changes nothing
    points = np.repeat(np.take_along_axis(maps, order[..., None], axis=1), n_init, axis=0)
    starts = np.argsort(rng.random(points.shape[:2]))[:, :n_clusters, None]
    centres, found = np.take_along_axis(points, starts, axis=1), None
    for _ in range(300):
        # Squared distances, less the square of the point, which is the same for all centres.
        far = (centres**2).sum(axis=2)[:, None] - 2 * points @ centres.swapaxes(1, 2)
        last, found = found, far.round(9).argmin(axis=2)
        if np.array_equal(last, found):
            break
        member = (found[:, None] == np.arange(n_clusters)[:, None]).astype(float)
        counts = member.sum(axis=2, keepdims=True)
        centres = np.where(counts > 0, member @ points / np.maximum(counts, 1), centres)
    inertia = far.min(axis=2).sum(axis=1).reshape(-1, n_init)
    least = inertia.min(axis=1, keepdims=True)
    best = (inertia <= least + TINY).argmax(axis=1)
    labels = np.empty(maps.shape[:2], dtype=int)
    found = found.reshape(-1, n_init, maps.shape[1])[np.arange(len(maps)), best]
    np.put_along_axis(labels, order, found, axis=1)
    return labels
