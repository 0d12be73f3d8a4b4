"""The map of the groups by competence and warmth, its clusters, and what is computed from it.

Jeoung et al. (2023), sections 3.1 and 5.1, appendices E, F, G and H. Ratings are the long table of
`answers.load`, in points from 1 to 5. A missing rating is NaN and never a number. Intervals are of
95 %, and p-values are two-sided.
"""

from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from scipy.spatial import procrustes
from sklearn.cluster import KMeans
from statsmodels.stats.weightstats import CompareMeans

from ingroup import published
from ingroup.stats.intervals import means_by
from ingroup.stereomap import stimuli
from ingroup.stereomap.answers import MAP, ROUND
from ingroup.tables import InputError

AXES = ["Competence", "Warmth"]
ALPHA = 0.001  # the level of the paper's signs
Z = 1.959964  # of a 95 % interval
VIEWS = {  # what is compared with people, from (competence, warmth)
    "Competence": (1, 0),
    "Warmth": (0, 1),
    "Competence - Warmth": (1, -1),
    "mean of both": (0.5, 0.5),
}
CLEAR = 0.1  # points between the two axes, below which people's clusters count as equal


def scores(ratings: pd.DataFrame, version: str) -> pd.DataFrame:
    """Score each group in each round: a dimension is the mean of its words, an axis of dimensions.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load`, of any models and versions.
    version : {"EXTENDED", "ORIGINAL"}
        The version whose words are scored: those of Table 4, or the attributes of Table 6.

    Returns
    -------
    DataFrame
        Index `answers.ROUND` and ``group``; both `AXES` and a column for each dimension, in points.

    Notes
    -----
    As released, a round that lacks one word of the axes has no score on both axes, and a round that
    lacks a word of the emotions (or behaviours) has none on these.
    """
    words = stimuli.words(version)
    keys = [*ROUND, "group", "item"]
    of_version = ratings[ratings.version == version]
    is_scored = of_version.item.isin(words.word)
    by_word = of_version[is_scored].set_index(keys).rating
    wide = by_word.unstack("item", sort=False)

    # The words of both axes are asked together; emotions and behaviours have their own prompts.
    is_of_axes = words.family.isin(AXES)
    asked_together = words.family.mask(is_of_axes, "axes")
    table = pd.DataFrame(np.nan, wide.index, AXES)
    for _, of_prompt in words.groupby(asked_together, sort=False):
        rated = wide.reindex(columns=of_prompt.word)
        complete = rated.dropna().reindex(wide.index)
        dimensions = of_prompt.groupby("dimension", sort=False)
        for dimension, of_dimension in dimensions:
            names = of_dimension.word
            table[dimension] = complete[names].mean(axis=1)

    for axis in AXES:
        of_axis = words[words.family == axis]
        dimensions = of_axis.dimension.unique()
        table[axis] = table[dimensions].mean(axis=1)
    return table


def positions(ratings: pd.DataFrame) -> pd.DataFrame:
    """Place each group on each map: the mean of its scores over rounds.

    Parameters
    ----------
    ratings : DataFrame
        From `answers.load`. Reduced prompts are left out.

    Returns
    -------
    DataFrame
        `answers.MAP`, ``group``; ``rounds`` that were asked and ``used``, those with both axes;
        `AXES` and the dimensions, in points, NaN where no round has a score.
    """
    tables = []
    is_of_paper = ratings.ablation == stimuli.PAPER
    of_paper = ratings[is_of_paper]
    for version in of_paper.version.unique():
        by_round = scores(of_paper, version)
        by_group = by_round.groupby([*MAP, "group"], sort=False)
        counts = by_group.Warmth.agg(rounds="size", used="count")
        means = by_group.mean()
        table = counts.join(means)
        tables.append(table)

    both = pd.concat(tables)
    return both.reset_index()


def cluster(points: pd.DataFrame, n_clusters: int = 5, version: str = "") -> pd.Series:
    """Cluster groups by k-means on competence and warmth (Figures 2 and 6).

    Parameters
    ----------
    points : DataFrame
        Index ``group``; both `AXES`. Groups that lack one are in no cluster.
    n_clusters : int
        How many clusters; there are none (NaN) if fewer points are different.
    version : str
        The version whose anchors number the clusters, "" for none.

    Returns
    -------
    Series
        The cluster of each group, from 0, NaN without one.

    Notes
    -----
    The best of 500 starts until nothing moves (tol=0), so the seed does not matter in practice.
    The k-th anchor (Homeless is the 0th) gives its cluster the number k. Of two anchors in one
    cluster the first counts. Other clusters get the free numbers, the lowest sum of both axes
    first.
    """
    # Sorted points make the starts, and so the clusters, independent of the order of the groups.
    complete = points[AXES].dropna()
    complete = complete.sort_values(AXES)
    places = complete.drop_duplicates()
    if len(places) < n_clusters:
        return pd.Series(np.nan, points.index)

    kmeans = KMeans(n_clusters, n_init=500, tol=0, random_state=0)
    labels = kmeans.fit_predict(complete.to_numpy())
    found = pd.Series(labels, complete.index)

    number_of = {}
    anchors = stimuli.ANCHORS.get(version, [])
    for number, anchor in enumerate(anchors[:n_clusters]):
        if anchor in found:
            number_of.setdefault(found[anchor], number)

    heights = complete.sum(axis=1)
    means = heights.groupby(found).mean()
    others = means.drop(list(number_of))
    rounded = others.round(9)
    lowest_first = rounded.sort_values(kind="stable")
    free = set(range(n_clusters)).difference(number_of.values())
    for label, number in zip(lowest_first.index, sorted(free), strict=True):
        number_of[label] = number
    numbers = found.map(number_of)
    return numbers.reindex(points.index)


def cluster_maps(positions: pd.DataFrame, n_clusters: int = 5) -> pd.DataFrame:
    """Cluster the groups of every map. The result is `positions` with a column ``cluster``."""
    has_place = positions[AXES].notna().all(axis=1)
    if not has_place.any():
        raise InputError("no group is rated in warmth and competence: there is nothing to map")

    tables = []
    for (*_, version), of_map in positions.groupby(MAP, sort=False):
        points = of_map.set_index("group")
        found = cluster(points, n_clusters, version)
        table = of_map.assign(cluster=found.to_numpy())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def cluster_tests(clustered: pd.DataFrame) -> pd.DataFrame:
    """Test competence against warmth in each cluster by a paired t-test (Tables 2 and 5).

    Parameters
    ----------
    clustered : DataFrame
        From `cluster_maps`.

    Returns
    -------
    DataFrame
        `answers.MAP` and ``cluster``; ``n`` groups; both `AXES` of the centroid; the mean
        ``difference`` (competence minus warmth) with ``low`` and ``high``; ``t``, ``p`` and the
        paper's ``sign``: > or < where p is below `ALPHA`, else =. A single group is not tested.

    Notes
    -----
    The paper's test. K-means has put groups together because they are alike, so p is far too small:
    where a model rates all groups alike, most clusters of many groups get a sign.
    """
    keys = [*MAP, "cluster"]
    members = clustered.dropna(subset="cluster")
    members = members.astype({"cluster": int})
    members = members.set_index(keys)
    by_cluster = members.groupby(keys)
    centroids = by_cluster[AXES].agg(np.mean)

    differences = members.Competence - members.Warmth
    tests = means_by(differences, keys)
    tests = tests.rename(columns={"estimate": "difference", "statistic": "t"})
    both = centroids.join(tests)
    columns = ["n", *AXES, "difference", "low", "high", "t", "p"]
    table = both[columns].reset_index()

    table["sign"] = np.where(table.difference > 0, ">", "<")
    is_equal = table.p >= ALPHA
    is_untested = table.p.isna()
    table.loc[is_equal, "sign"] = "="
    table.loc[is_untested, "sign"] = ""
    return table


def people() -> pd.DataFrame:
    """Read people's map of 2002 (Table 2): index ``group``, `AXES`, which are those of clusters."""
    table = published.load("stereomap", 2)
    is_of_people = table.source == "Fiske et al. (2002)"
    of_people = table[is_of_people].set_index("group")
    renamed = of_people.rename(columns=str.capitalize)
    return renamed[AXES]


def as_in_table2(points: pd.DataFrame) -> pd.DataFrame:
    """Select the groups that Table 2 has, under its names. The nearest to "Gay men" is "Gay"."""
    groups = stimuli.groups()
    renamed = points.rename(index=groups.table2)
    printed = people().index
    is_printed = renamed.index.isin(printed)
    return renamed[is_printed].dropna(subset=AXES)


def is_flat(values: ArrayLike) -> bool:
    """Tell whether columns do not vary, but for rounding errors. A single row does not."""
    if len(values) < 2:
        return True
    widest = np.ptp(values, axis=0).max()
    return bool(widest < 1e-9)


def spearman(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Compute Spearman's rho and its p, NaN for fewer than 4 pairs or a side that does not vary."""
    if len(x) < 4 or is_flat(x) or is_flat(y):
        return np.nan, np.nan
    rho, p = stats.spearmanr(x, y)
    return rho, p


def agreement(points: pd.DataFrame) -> pd.DataFrame:
    """Compare a map with people's map of 2002.

    Parameters
    ----------
    points : DataFrame
        Index ``group``; both `AXES`.

    Returns
    -------
    DataFrame
        One row for each of `VIEWS`, and for the ``shape`` unless all groups share one place;
        ``groups``; ``value``: Spearman's rho, or for the shape 1 minus the Procrustes distance, 0
        to 1 (the same shape after moving, scaling, turning and mirroring); and its ``p``.

    Notes
    -----
    The groups of one of people's clusters share its position, so p is the share of all orders of
    the (five) positions that agree as well, two-sided for rho. With 120 orders, p is at least
    1/120.
    """
    ours = as_in_table2(points)[AXES]
    theirs = people().loc[ours.index]
    places, member_of = np.unique(theirs, axis=0, return_inverse=True)

    rows = []
    # The first order is that of people's map itself.
    for order in permutations(places):
        theirs = np.array(order)[member_of]
        row = {}
        for view, weights in VIEWS.items():
            here = ours @ weights
            there = theirs @ weights
            row[view], _ = spearman(here, there)
        if not is_flat(ours):
            *_, distance = procrustes(theirs, ours)
            row["shape"] = 1 - distance
        rows.append(row)

    values = pd.DataFrame(rows)
    observed = values.iloc[0]
    least = observed.abs() - 1e-9
    is_as_large = values.abs() >= least
    p = is_as_large.mean()
    p[observed.isna()] = np.nan
    columns = {
        "groups": len(ours),
        "value": observed,
        "p": p,
    }
    table = pd.DataFrame(columns).rename_axis("view")
    return table.reset_index()


def lean_by_side(points: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Compute competence minus warmth on both sides of people's map.

    Parameters
    ----------
    points : DataFrame
        Index ``group``; both `AXES`, in points.

    Returns
    -------
    competent, warm : Series
        Of the groups of Table 2 that people see as clearly more competent than warm, or warmer.
    """
    ours = as_in_table2(points)
    theirs = people().loc[ours.index]
    lean = ours.Competence - ours.Warmth
    people_lean = theirs.Competence - theirs.Warmth
    is_competent = people_lean > CLEAR
    is_warm = people_lean < -CLEAR
    return lean[is_competent], lean[is_warm]


def mixed_contrast(points: pd.DataFrame) -> dict[str, float]:
    """Test whether a model mixes competence and warmth as people do.

    Parameters
    ----------
    points : DataFrame
        Index ``group``; both `AXES`, in points.

    Returns
    -------
    dict
        ``value``, the difference of the means of `lean_by_side`; ``n`` groups; ``low``, ``high``
        and ``p`` of Welch's t-test, groups being a sample. NaN with too few groups. A map without
        differences has the interval 0 to 0.

    Notes
    -----
    On a map that only tells good from bad, the contrast is 0 however far groups lie apart. It does
    not depend on which axis is rated higher on the whole. People's own is 2.0 points.
    """
    competent, warm = lean_by_side(points)
    value = competent.mean() - warm.mean()
    both = pd.concat([competent, warm])

    low = high = p = np.nan
    fewest = min(len(competent), len(warm))
    if fewest > 1 and is_flat(both):
        low = high = 0.0
        p = 1.0
    elif fewest > 1:
        welch = CompareMeans.from_data(competent, warm)
        low, high = welch.tconfint_diff(usevar="unequal")
        _, p, _ = welch.ttest_ind(usevar="unequal")
    return {
        "value": value,
        "n": len(both),
        "low": low,
        "high": high,
        "p": p,
    }


def correlations(
    points: pd.DataFrame, predictors: Sequence[str], outcomes: Sequence[str]
) -> pd.DataFrame:
    """Correlate predictors with outcomes over groups by Spearman's rho (Table 8).

    Parameters
    ----------
    points : DataFrame
        One row for each group.
    predictors, outcomes : sequence of str
        Columns of `points`.

    Returns
    -------
    DataFrame
        ``predictor``, ``outcome``, ``n``, ``rho`` with ``low`` and ``high``, and ``p``.

    Notes
    -----
    The interval is tanh(atanh(rho) -+ 1.96 sqrt((1 + rho^2 / 2) / (n - 3))): Bonett and Wright
    (2000).
    """
    rows = []
    for predictor, outcome in product(predictors, outcomes):
        both = points[[predictor, outcome]].dropna()
        n = len(both)
        rho, p = spearman(both[predictor], both[outcome])

        low = high = np.nan
        if abs(rho) < 1:
            variance = (1 + rho**2 / 2) / (n - 3)
            half = Z * np.sqrt(variance)
            middle = np.arctanh(rho)
            low = np.tanh(middle - half)
            high = np.tanh(middle + half)
        row = {
            "predictor": predictor,
            "outcome": outcome,
            "n": n,
            "rho": rho,
            "low": low,
            "high": high,
            "p": p,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def extremes(ratings: pd.DataFrame, item: str, n: int = 10) -> pd.DataFrame:
    """Find the groups with the highest and the lowest mean rating of a word (Table 9).

    Returns
    -------
    DataFrame
        ``item``, ``end`` ("highest" or "lowest"), ``rank``, ``group``, ``mean`` and ``variance``
        (n - 1) over rounds. Ties keep the order of the prompts.
    """
    of_item = ratings[ratings.item == item]
    by_group = of_item.groupby("group", sort=False)
    groups = by_group.rating.agg(mean="mean", variance="var")
    groups = groups.dropna(subset="mean")
    # Means that differ by rounding errors are ties.
    groups = groups.round({"mean": 9})

    ends = {
        "highest": groups.nlargest(n, "mean"),
        "lowest": groups.nsmallest(n, "mean"),
    }
    table = pd.concat(ends, names=["end"])
    table = table.reset_index()
    place = table.groupby("end").cumcount()
    return table.assign(item=item, rank=place + 1)
