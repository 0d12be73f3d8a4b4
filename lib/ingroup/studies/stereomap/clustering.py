"""Clusters of the groups on competence and warmth, their stability, and tests of their axes.

StereoMap (Jeoung et al. 2023), sections 3.1 and 5.1, appendices F and H, Figures 2, 3 and 6.
`statistics` defines `scores`, `means` and axes, and `labels` come from `clusters`. p-values are
two-sided, and ``p_holm`` takes a table as one family. Intervals (``low``, ``high``) are at 95 %.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from ingroup.stats.corrections import adjust
from ingroup.stats.crossed import Effect, difference_of_levels
from ingroup.stats.paired import TINY, paired_test
from ingroup.stats.power import POWER
from ingroup.studies.stereomap.statistics import AXES
from ingroup.studies.stereomap.stimuli import ANCHORS

LARGEST_MEAN = 100  # standard deviations, beyond which no difference is looked for
MOST_STEPS = 300  # of k-means, as in scikit-learn

Numbers = NDArray[np.float64]
Draws = Sequence[float] | Numbers
Labels = NDArray[np.intp]


class Clusters(NamedTuple):
    """Clusters of a map, with the fields that `clusters` explains."""

    labels: pd.Series
    centroids: pd.DataFrame
    left_out: list[str]


def halves(scores: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split the rounds of every group at random: one half to cluster, one half for `axis_tests`.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.
    rng : numpy.random.Generator
        Shuffles the rounds.

    Returns
    -------
    first : DataFrame
        The rounds to cluster.
    second : DataFrame
        The other rounds. Both hold rounds with both axes, in the order of `scores`. Where a group
        has an odd number of rounds, the first half has one more. Groups with fewer than 2 such
        rounds are in neither.

    Raises
    ------
    ValueError
        Where no group has 2 rounds with both axes.
    """
    complete = scores.dropna(subset=AXES)
    n_rounds = complete.groupby("group")["group"].transform("size")
    complete = complete[n_rounds > 1]
    if complete.empty:
        raise ValueError("no group has 2 rounds with both axes, expected at least one to halve")

    shuffled = complete.iloc[rng.permutation(len(complete))]
    # In random order, every second round of a group goes to the first half.
    number_in_group = shuffled.groupby("group").cumcount()
    is_even = number_in_group % 2 == 0
    # The halves go back into the order of the scores.
    in_first = is_even.reindex(complete.index)
    return complete[in_first], complete[~in_first]


def clusters(
    means: pd.DataFrame,
    n_clusters: int = 5,
    n_init: int = 500,
    seed: int = 0,
    version: str = "",
    kmeans: str = "sound",
) -> Clusters | None:
    """Cluster the groups on competence and warmth by k-means: Figures 2 and 6.

    The result is None where fewer positions than `n_clusters` are different.

    Parameters
    ----------
    means : DataFrame
        From `group_means`. The order of the groups changes no result.
    n_clusters : int
        Number of clusters.
    n_init : int
        Number of random starts, of which the best counts.
    seed : int
        Seed of the starts.
    version : str
        The version of the prompts, whose `ANCHORS` number and name clusters; "" for none.
    kmeans : {"sound", "released"}
        "released" is the call of the authors' code: scikit-learn's k-means with ten starts (its
        default in 2023), `seed` as its random state, and without regard to `n_init`.

    Returns
    -------
    labels : Series
        The number of its cluster, from 0, for each group with both axes.
    centroids : DataFrame
        Index ``cluster``; ``n``, both axes, ``anchor`` ("" for none) and ``name``, which is the
        anchor, or "near" and the group next to the centroid.
    left_out : list of str
        The groups without both axes.

    Notes
    -----
    Checked against scikit-learn. A map without clusters has many optima that are nearly as good. In
    the control's map, one start in a hundred finds the best.

    The k-th anchor that is in the map gives its cluster the number k, unless there are more such
    anchors than clusters. Where two anchors share a cluster, the first counts; in the released code
    the second does, and a cluster has no number. The other clusters share the free numbers by
    competence + warmth of their centroids, the lowest first.
    """
    points = means[AXES].dropna()
    if len(points.drop_duplicates()) < n_clusters:
        return None

    if kmeans == "released":
        partition = _released_partition(points, n_clusters, seed)
    else:
        # The k-means of `exchange_null`: a map and its null are clustered by the same code.
        rng = np.random.default_rng(seed)
        one_map = points.to_numpy()[np.newaxis]
        partitions = _partitions(one_map, n_clusters, n_init, rng)
        partition = pd.Series(partitions[0], points.index)

    anchors = [group for group in ANCHORS.get(version, ()) if group in means.index]
    if len(anchors) > n_clusters:
        anchors = []
    anchor_of = _anchored(partition, anchors)
    numbers = _numbers(points, partition, anchor_of)
    labels = partition.map(numbers).rename("cluster")

    centroids = _centroids(points, labels, anchor_of)
    left_out = means.index.difference(points.index, sort=False)
    return Clusters(labels, centroids, list(left_out))


def _anchored(partition: pd.Series, anchors: Sequence[str]) -> dict[int, str]:
    """Index the anchors by the number that they give their cluster.

    The first of two anchors in a cluster counts.
    """
    anchor_of = {}
    numbered = set()
    for number, anchor in enumerate(anchors):
        # A group without a mean on both axes has no position.
        if anchor not in partition.index:
            continue
        cluster = partition[anchor]
        if cluster not in numbered:
            numbered.add(cluster)
            anchor_of[number] = anchor
    return anchor_of


def _numbers(
    points: pd.DataFrame,
    partition: pd.Series,
    anchor_of: dict[int, str],
) -> dict[int, int]:
    """Give each cluster of a partition a number.

    An anchor numbers its cluster, and the other clusters get the free numbers by competence +
    warmth, the lowest first.
    """
    numbers = {partition[anchor]: number for number, anchor in anchor_of.items()}
    height = points.groupby(partition).mean().sum(axis=1)
    # Sums are rounded, because sums that differ by the error of floats are ties.
    lowest_first = height.round(9).sort_values(kind="stable").index

    next_number = 0
    for cluster in lowest_first:
        if cluster in numbers:
            continue
        while next_number in anchor_of:
            next_number += 1
        numbers[cluster] = next_number
        next_number += 1
    return numbers


def _centroids(points: pd.DataFrame, labels: pd.Series, anchor_of: dict[int, str]) -> pd.DataFrame:
    """Describe each cluster in a row: its size, its centroid, its anchor and its name."""
    by_cluster = points.groupby(labels)
    centroids = by_cluster.mean()
    centroids.insert(0, "n", labels.value_counts())

    offsets = points - by_cluster.transform("mean")
    distances = (offsets**2).sum(axis=1)
    # Where two groups are as near, up to rounding, the first by name counts.
    nearest = distances.round(9).sort_index().groupby(labels).idxmin()

    anchors = []
    names = []
    for number in centroids.index:
        anchor = anchor_of.get(number, "")
        anchors.append(anchor)
        names.append(anchor or f"near {nearest[number]}")
    centroids["anchor"] = anchors
    centroids["name"] = names
    return centroids


def with_clusters(rows: pd.DataFrame, clusters: Mapping[str, Clusters]) -> pd.DataFrame:
    """Add the cluster of each row's group to a table of several models.

    Parameters
    ----------
    rows : DataFrame
        A table with ``model`` and ``group``.
    clusters : mapping
        The clusters by model.

    Returns
    -------
    DataFrame
        The rows with ``cluster``; rows of groups that are in no cluster are left out.
    """
    cluster_of = {}
    for model, of_model in clusters.items():
        for group, cluster in of_model.labels.items():
            cluster_of[model, group] = cluster

    keys = zip(rows.model, rows.group, strict=True)
    with_cluster = rows.assign(cluster=[cluster_of.get(key) for key in keys])
    return with_cluster.dropna(subset="cluster").astype({"cluster": int})


def stability(
    scores: pd.DataFrame,
    labels: pd.Series,
    rng: np.random.Generator,
    n_resamples: int,
) -> dict[str, float]:
    """Estimate how stable a clustering is when the rounds are resampled.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.
    labels : Series
        From `clusters`, of the same rounds.
    rng : numpy.random.Generator
        Draws the rounds, and the starts of k-means.
    n_resamples : int
        Number of draws.

    Returns
    -------
    dict
        ``ari``, the mean of the adjusted Rand index of `labels` and the partition of a draw (1 is
        the same, 0 chance); ``low`` and ``high``, between which 95 % of the draws are. For each
        cluster ``overlap of <k>``: the Jaccard index (0 to 1) of this cluster and the most similar
        one of a draw, averaged. It is stable above 0.75, and dissolved at 0.5.

    Raises
    ------
    ValueError
        Where every group has a single round.

    Notes
    -----
    Each draw resamples the rounds of every group with replacement, and clusters their means by the
    best of 20 starts. Means of a draw vary about means that vary, so both indices come out too low
    rather than too high.

    References
    ----------
    Hubert and Arabie 1985 (the index); Hennig 2007 (the overlap and its limits).
    """
    maps = _resampled_maps(scores, labels.index, rng, n_resamples)
    numbers = np.unique(labels)
    partitions = _partitions(maps, len(numbers), 20, rng)

    rand = np.empty(n_resamples)
    overlap = np.empty((n_resamples, len(numbers)))
    for draw, partition in enumerate(partitions):
        rand[draw] = adjusted_rand_score(labels, partition)
        overlap[draw] = _largest_jaccard(labels, partition)

    low, high = np.quantile(rand, [0.025, 0.975])
    mean_overlap = pd.Series(overlap.mean(axis=0), numbers)
    return {
        "ari": rand.mean(),
        "low": low,
        "high": high,
        **mean_overlap.add_prefix("overlap of "),
    }


def _resampled_maps(
    scores: pd.DataFrame,
    groups: pd.Index,
    rng: np.random.Generator,
    n_resamples: int,
) -> Numbers:
    """Draw the rounds of each group with replacement, and average them: means (draw, group, axis).

    Raise a ValueError if every group has a single round.
    """
    complete = scores.dropna(subset=AXES)
    rounds = {group: rows[AXES] for group, rows in complete.groupby("group")}
    # A group with a single round never varies, which is no fault while others do.
    if max(map(len, rounds.values())) < 2:
        raise ValueError("every group has a single round, expected at least 2 to resample")

    maps = np.empty((n_resamples, len(groups), len(AXES)))
    for position, group in enumerate(groups):
        points = rounds[group].to_numpy()
        n_rounds = len(points)
        drawn = rng.integers(n_rounds, size=(n_resamples, n_rounds))
        maps[:, position] = points[drawn].mean(axis=1)
    return maps


def _largest_jaccard(labels: pd.Series, partition: Labels) -> Numbers:
    """Compute the Jaccard index of each cluster with the most similar cluster of a partition."""
    # How many groups a cluster (row) and a cluster of the partition (column) have in common.
    shared = contingency_matrix(labels, partition)
    sizes = shared.sum(axis=1, keepdims=True)
    other_sizes = shared.sum(axis=0)
    union = sizes + other_sizes - shared
    jaccard = shared / union
    return jaccard.max(axis=1)


def exchange_null(
    means: pd.DataFrame,
    n_clusters: int,
    rng: np.random.Generator,
    n_draws: int = 999,
    n_init: int = 5,
) -> Numbers:
    """Draw the largest z of a cluster in maps without a difference between the axes.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    n_clusters : int
        Number of clusters.
    rng : numpy.random.Generator
        Draws the exchanged groups, and the starts of k-means.
    n_draws : int
        Number of maps.
    n_init : int
        Number of starts of k-means in each map.

    Returns
    -------
    ndarray, (n_draws,)
        The largest z of a map's clusters, from 0 to sqrt(groups).

    Notes
    -----
    If competence is rated as warmth is, a group's two axes can be exchanged. Each draw does so for
    a random half of the groups and clusters anew. The draw keeps the groups' noise, and how far
    from the diagonal they lie. For the d = competence - warmth of a cluster's n groups::

        z = abs(sum(d)) / sqrt(sum(d**2))

    from 0 to sqrt(n): few groups cannot reach a large z, even if they are alike. With one cluster
    this is the test of random signs of the whole map (checked against
    scipy.stats.permutation_test).

    Exchanging the axes assumes that both vary alike. Where warmth varies three times as much as
    competence and no mean differs, some cluster has a p below 0.05 in 0.45 of the cases (``make
    calibration``).
    """
    points = means[AXES].dropna().to_numpy()
    exchanged = rng.random((n_draws, len(points))) < 0.5
    # With the columns reversed, the axes are exchanged.
    maps = np.where(exchanged[..., np.newaxis], points[:, ::-1], points)
    labels = _partitions(maps, n_clusters, n_init, rng)

    # The last axis is the cluster; d counts as 0 in the clusters of which a group is no member.
    numbers = np.arange(n_clusters)
    is_member = labels[..., np.newaxis] == numbers
    # Slices keep the last axis, along which the clusters are broadcast.
    competence = maps[..., :1]
    warmth = maps[..., 1:]
    d = competence - warmth
    sums = (is_member * d).sum(axis=1)
    squares = (is_member * d**2).sum(axis=1)
    return _z(sums, squares).max(axis=1)


def _z(sums: ArrayLike, squares: ArrayLike) -> Numbers:
    """Compute the z of `exchange_null` from the sums of d and of d**2 over a cluster's groups."""
    # A cluster whose groups all lie on the diagonal has z = 0, and not 0 / 0.
    lengths = np.maximum(np.sqrt(squares), TINY)
    return np.abs(sums) / lengths


def _exchange_p(null: Draws, z: ArrayLike) -> Numbers:
    """Compute p of each z: the share of draws, the observed map among them, that are as large."""
    # The observed map is one of the draws, and as large as itself: infinity stands for it.
    draws = np.append(null, np.inf)
    lowest = np.expand_dims(z, -1) - TINY
    is_as_large = draws >= lowest
    return np.mean(is_as_large, axis=-1)


def exchange_floor(null: Draws, n: int) -> float:
    """Compute the smallest p that exchanging the axes can give a cluster of `n` groups.

    This p belongs to z = sqrt(n), the largest z of n groups. Larger clusters of a draw can reach
    more.

    Parameters
    ----------
    null : sequence of float
        From `exchange_null`.
    n : int
        The number of groups in the cluster.

    Returns
    -------
    float
        The smallest p.
    """
    largest_z = np.sqrt(n)
    return float(_exchange_p(null, largest_z))


def groups_for_exchange(null: Draws, level: float = 0.05) -> int:
    """Find the smallest cluster for which exchanging the axes can detect a difference.

    Parameters
    ----------
    null : sequence of float
        As in `exchange_floor`.
    level : float
        The level below which a p has to be.

    Returns
    -------
    int
        The smallest number of groups, at least 2.

    Raises
    ------
    ValueError
        Where no number is enough: there are too few draws for `level`.
    """
    smallest_p = 1 / (len(null) + 1)
    if smallest_p >= level:
        raise ValueError(f"found {len(null)} draws, expected more than {1 / level:g}")

    n = 2
    while exchange_floor(null, n) >= level:
        n += 1
    return n


def smallest_standardised_difference(null: Draws, n: int, level: float = 0.05) -> float:
    """Find the smallest difference between the axes, in its SDs, that the exchange test detects.

    The cluster has `n` groups. Their differences d are drawn from a normal distribution, for 2,000
    clusters per mean. The exchange test detects a cluster if the p of its z is below `level`. It
    has to detect the share `POWER` of the clusters. Checked by simulation.

    Parameters
    ----------
    null : sequence of float
        From `exchange_null`.
    n : int
        Groups of the cluster.
    level : float
        The level of the test of all clusters together.

    Returns
    -------
    float
        The mean of d in its standard deviations within the cluster; infinite where no mean has
        this power, as z cannot be above sqrt(n).
    """
    if n < 2 or exchange_floor(null, n) >= level:
        return np.inf

    # Every mean gets the same noise, so that power is one function of the mean.
    noise = np.random.default_rng(0).standard_normal((2_000, n))

    def excess_power(mean: float) -> float:
        d = mean + noise
        z = _z(d.sum(axis=1), (d**2).sum(axis=1))
        is_significant = _exchange_p(null, z) < level
        return float(np.mean(is_significant)) - POWER

    # The power grows with the mean: the bracket is doubled until it holds the mean looked for.
    upper = 1.0
    while excess_power(upper) < 0:
        upper *= 2
        if upper > LARGEST_MEAN:
            return np.inf
    return float(brentq(excess_power, 0, upper))


class _AxisTest(NamedTuple):
    """A row of `axis_tests` without ``p_holm`` and the signs, which need the p of all rows."""

    cluster: int
    n: int
    Competence: float
    Warmth: float
    difference: float
    low: float
    high: float
    statistic: float
    d_z: float
    p: float
    p_exchanged: float
    p_least: float


def axis_tests(
    means: pd.DataFrame,
    labels: pd.Series,
    alpha: float = 0.001,
    null: Draws = (),
) -> pd.DataFrame:
    """Test competence against warmth over the groups of each cluster: Tables 2 and 5.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    labels : Series
        From `clusters`. The notes say from which rounds.
    alpha : float
        The level of the signs.
    null : sequence of float
        From `exchange_null`; without it, ``p_exchanged`` and ``p_least`` are NaN.

    Returns
    -------
    DataFrame
        Index ``cluster``; ``n``; both axes of the centroid; ``difference``, ``low``, ``high``,
        ``statistic``, ``d_z`` and ``p`` of the paper's `paired_test`, and ``p_holm``. ``sign`` is
        ">" or "<" where ``p`` is below `alpha`, else "="; ``sign_holm`` goes by ``p_holm``.
        ``p_exchanged`` is the share of the null's draws and the observed map with a z as large in
        any cluster, and ``p_least`` the smallest that so many groups can reach. A single group is
        not tested: NaN and "".

    Notes
    -----
    The paired test takes clusters as given, but k-means makes them of groups that differ alike.
    With `means` and `labels` of the same rounds, noise is significant. With `labels` of other
    rounds (`halves`), any position that a group keeps from round to round is significant. Where a
    model rates all groups alike, 0.70 of the clusters of the same rounds have p < 0.001, and the
    interval of 95 % holds the difference in 0.14 of them (``make calibration``).

    ``p_exchanged`` is corrected for the number of clusters (Westfall and Young 1993).

    The released code gives one cluster its warmth as competence, hence C = W in print.
    """
    competence, warmth = AXES
    rows = []
    for cluster, points in means.loc[labels.index, AXES].groupby(labels):
        test = paired_test(points[competence], points[warmth])
        p_exchanged = np.nan
        p_least = np.nan
        if len(null) > 0 and test.n > 1:
            d = points[competence] - points[warmth]
            z = _z(d.sum(), (d**2).sum())
            largest_z = np.sqrt(test.n)
            p_exchanged, p_least = _exchange_p(null, [z, largest_z])

        centroid = points.mean()
        row = _AxisTest(
            cluster=cluster,
            n=test.n,
            Competence=centroid[competence],
            Warmth=centroid[warmth],
            difference=test.difference,
            low=test.low,
            high=test.high,
            statistic=test.statistic,
            d_z=test.effect_size,
            p=test.pvalue,
            p_exchanged=p_exchanged,
            p_least=p_least,
        )
        rows.append(row)

    table = pd.DataFrame(rows, columns=_AxisTest._fields).set_index("cluster")
    table["p_holm"] = adjust(table["p"], "holm")
    table["sign"] = _signs(table["p"], table["difference"], alpha)
    table["sign_holm"] = _signs(table["p_holm"], table["difference"], alpha)
    return table


def _signs(p: pd.Series, difference: pd.Series, alpha: float) -> NDArray[np.str_]:
    """Choose the signs between competence and warmth. The sign is "" where nothing was tested."""
    conditions = [p.isna(), p >= alpha, difference > 0]
    return np.select(conditions, ["", "=", ">"], default="<")


def word_sample_test(ratings: pd.DataFrame, words: pd.DataFrame) -> Effect:
    """Test competence against warmth over a whole map, for words like these.

    `axis_tests` takes the words as fixed, and the groups as a sample. Here the words of both axes
    are samples too, crossed with the groups, as in `difference_of_levels`. Each word counts alike,
    as in Table 4, where all dimensions of an axis have as many words.

    Parameters
    ----------
    ratings : DataFrame
        One row per group and round: ``group``, and a column for each word, in points.
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
    word_means = []
    for axis in AXES:
        names = words.loc[words["family"] == axis, "word"]
        means = by_group[list(names)].mean()
        # The table is turned to words by groups, which are levels by items.
        word_means.append(means.to_numpy().T)
    return difference_of_levels(*word_means)


def _released_partition(points: pd.DataFrame, n_clusters: int, seed: int) -> pd.Series:
    """Label `points` as ``calc_kmeans`` of the authors' code does.

    The rows are sorted and warmth comes first, because both decide the draws of a random state.
    """
    ordered = points.sort_values(AXES, kind="stable")
    warmth_first = ordered[AXES[::-1]].to_numpy()
    model = KMeans(n_clusters, n_init=10, random_state=seed)
    labels = pd.Series(model.fit_predict(warmth_first), ordered.index)
    return labels.reindex(points.index)


def _partitions(maps: Numbers, n_clusters: int, n_init: int, rng: np.random.Generator) -> Labels:
    """Label the points of maps (map, point, 2) by k-means, and return labels (map, point).

    A map with fewer distinct points has fewer clusters. The start with the smallest inertia counts,
    out of `n_init` starts at random points. Ties, up to the error of floats (`TINY`), go to the
    first start. All maps and starts are computed at once, because the null has thousands of maps.
    The check of its input alone takes scikit-learn as long as a hundred starts.
    """
    n_maps, n_points, _ = maps.shape
    # Sorted points make the result independent of the order of the groups.
    order = np.lexsort(np.moveaxis(maps, 2, 0))
    sorted_maps = np.take_along_axis(maps, order[..., np.newaxis], axis=1)
    # A row for each start: every map stands here n_init times.
    points = np.repeat(sorted_maps, n_init, axis=0)

    # The positions of the smallest random numbers are a draw of points without replacement.
    random_numbers = rng.random((n_maps * n_init, n_points))
    shuffled = np.argsort(random_numbers)
    drawn = shuffled[:, :n_clusters, np.newaxis]
    centres = np.take_along_axis(points, drawn, axis=1)
    labels, inertia = _lloyd(points, centres, n_clusters)

    inertia = inertia.reshape(n_maps, n_init)
    least = inertia.min(axis=1, keepdims=True)
    is_least = inertia <= least + TINY
    # Among equally good starts argmax takes the first.
    best_start = is_least.argmax(axis=1)
    by_start = labels.reshape(n_maps, n_init, n_points)
    best = by_start[np.arange(n_maps), best_start]

    # `order` says from which position of its map each sorted point came.
    partitions = np.empty((n_maps, n_points), dtype=int)
    np.put_along_axis(partitions, order, best, axis=1)
    return partitions


def _lloyd(points: Numbers, centres: Numbers, n_clusters: int) -> tuple[Labels, Numbers]:
    """Run Lloyd's algorithm from one start per row.

    The results are labels (start, point) and inertia (start,). The inertia is the sum of squared
    distances to the centres, less a number that all starts of a map share. A centre without points
    does not move.
    """
    numbers = np.arange(n_clusters)[:, np.newaxis]
    labels = np.full(points.shape[:2], -1)
    for _ in range(MOST_STEPS):
        # Squared distances, less the square of the point, which is the same for all centres.
        squares = (centres**2).sum(axis=2)
        products = 2 * points @ centres.swapaxes(1, 2)
        distances = squares[:, np.newaxis] - products

        previous = labels
        # Distances are rounded, so that a point midway between two centres goes to the first.
        labels = distances.round(9).argmin(axis=2)
        if np.array_equal(previous, labels):
            break

        # Which points (last axis) each cluster has, as 0 and 1: a product with it sums them.
        is_member = labels[:, np.newaxis] == numbers
        members = is_member.astype(float)
        counts = members.sum(axis=2, keepdims=True)
        sums = members @ points
        averages = sums / np.maximum(counts, 1)
        centres = np.where(counts > 0, averages, centres)

    nearest = distances.min(axis=2)
    return labels, nearest.sum(axis=1)
