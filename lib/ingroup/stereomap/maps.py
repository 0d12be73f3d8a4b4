"""The map of the groups by competence and warmth, its clusters, and what is computed from it.

Jeoung et al. (2023), sections 3.1 and 5.1, appendices E, F, G and H. Ratings are the long table of
`answers.load`, in points from 1 to 5. A missing rating is NaN and never a number. Intervals are of
95 %, and p-values are two-sided.
"""

from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
import pandas as pd
from scipy import stats
from scipy.spatial import procrustes
from sklearn.cluster import KMeans
from statsmodels.stats.weightstats import CompareMeans

from ingroup import published
from ingroup.stats.intervals import TINY, means_by
from ingroup.stereomap import stimuli
from ingroup.stereomap.answers import MAP, ROUND
from ingroup.tables import InputError

TABLE = {"ORIGINAL": 2, "EXTENDED": 5}  # the printed clusters of a version
AXES = ["Competence", "Warmth"]
ALPHA = 0.001  # the level of the paper's signs
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
    of_version = ratings[ratings.version == version]
    rated = of_version.merge(words, left_on="item", right_on="word")

    # The words of both axes are asked together; emotions and behaviours have their own prompts.
    rated["asked"] = rated.family.replace("Competence", "Warmth")
    by_reply = rated.groupby([*ROUND, "group", "asked"])
    lowest = by_reply.rating.transform("min", skipna=False)
    is_incomplete = lowest.isna()
    rated["rating"] = rated.rating.mask(is_incomplete)

    keys = [*ROUND, "group", "dimension"]
    means = rated.groupby(keys, sort=False).rating.mean()
    dimensions = means.unstack("dimension", sort=False)
    of_dimension = words.groupby("dimension", sort=False)
    families = of_dimension.family.first()
    dimensions = dimensions.reindex(columns=families.index)
    axes = dimensions.T.groupby(families).mean().T
    return axes[AXES].join(dimensions)


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
    of_paper = ratings[ratings.ablation == stimuli.PAPER]
    tables = []
    for version in of_paper.version.unique():
        by_round = scores(of_paper, version)
        by_group = by_round.groupby([*MAP, "group"], sort=False)
        counts = by_group.Warmth.agg(rounds="size", used="count")
        means = by_group.mean()
        table = counts.join(means)
        tables.append(table)

    return pd.concat(tables).reset_index()


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
    different = complete.drop_duplicates()
    if len(different) < n_clusters:
        return pd.Series(np.nan, points.index)

    kmeans = KMeans(n_clusters, n_init=500, tol=0, random_state=0)
    labels = kmeans.fit_predict(complete.to_numpy())
    found = pd.Series(labels, complete.index)

    number_of = {}
    anchors = stimuli.ANCHORS.get(version, [])
    for number, anchor in enumerate(anchors[:n_clusters]):
        if anchor in found:
            number_of.setdefault(found[anchor], number)

    heights = kmeans.cluster_centers_.sum(axis=1)
    heights = pd.Series(heights).round(9)
    others = heights.drop(list(number_of))
    lowest_first = others.sort_values(kind="stable")
    free = pd.RangeIndex(n_clusters).difference(list(number_of.values()))
    number_of |= zip(lowest_first.index, free, strict=True)
    numbered = found.map(number_of)
    return numbered.reindex(points.index)


def cluster_maps(positions: pd.DataFrame, n_clusters: int = 5) -> pd.DataFrame:
    """Cluster the groups of every map. The result is `positions` with a column ``cluster``."""
    placed = positions.dropna(subset=AXES)
    if placed.empty:
        raise InputError("no group is rated in warmth and competence: there is nothing to map")

    tables = []
    by_map = positions.groupby(MAP, sort=False)
    for (*_, version), of_map in by_map:
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
    names = {
        "estimate": "difference",
        "statistic": "t",
    }
    both = centroids.join(tests)
    both = both.rename(columns=names)
    columns = ["n", *AXES, "difference", "low", "high", "t", "p"]
    table = both[columns].reset_index()

    is_larger = table.difference > 0
    table["sign"] = np.where(is_larger, ">", "<")
    table.loc[table.p >= ALPHA, "sign"] = "="
    table.loc[table.p.isna(), "sign"] = ""
    return table


def printed_groups(version: str) -> pd.DataFrame:
    """Read the printed groups of Table 2 or 5, and the centroids of their clusters.

    Returns
    -------
    DataFrame
        ``source``, ``cluster`` (in the order of print), ``group``, `AXES` and ``sign``. Bard gave
        no position to some groups: NaN.
    """
    table = published.load("stereomap", TABLE[version])
    names = {
        "competence": "Competence",
        "warmth": "Warmth",
        "cluster_order": "cluster",
    }
    return table.rename(columns=names)


def people() -> pd.DataFrame:
    """Read people's map of 2002 (Table 2): index ``group``, `AXES`, which are those of clusters."""
    printed = printed_groups("ORIGINAL")
    of_people = printed.query("source == 'Fiske et al. (2002)'")
    return of_people.set_index("group")[AXES]


def as_in_table2(points: pd.DataFrame) -> pd.DataFrame:
    """Select the groups that Table 2 has, under its names. The nearest to "Gay men" is "Gay"."""
    renamed = points.rename(index=stimuli.groups().table2)
    printed = people().index
    is_printed = renamed.index.isin(printed)
    return renamed[is_printed].dropna(subset=AXES)


def is_flat(points: pd.DataFrame | pd.Series) -> bool:
    """Tell whether no column varies, but for rounding errors. A single row does not."""
    spreads = points.max() - points.min()
    # Without a row the spread is NaN.
    return not np.max(spreads) >= TINY


def agreement(points: pd.DataFrame) -> dict[str, float]:
    """Compare the shape of a map with people's map of 2002.

    Parameters
    ----------
    points : DataFrame
        Index ``group``; both `AXES`.

    Returns
    -------
    dict
        ``groups``; ``value``, 1 minus the Procrustes distance, 0 to 1 (the same shape after moving,
        scaling, turning and mirroring); and its ``p``. NaN where all groups share one place on one
        of the maps.

    Notes
    -----
    The groups of one of people's clusters share its position, so p is the share of all orders of
    the (five) positions that agree as well. With 120 orders, p is at least 1/120.
    """
    ours = as_in_table2(points)[AXES]
    row = {
        "groups": len(ours),
        "value": np.nan,
        "p": np.nan,
    }
    theirs = people().loc[ours.index]
    if is_flat(ours) or is_flat(theirs):
        return row

    places, member_of = np.unique(theirs, axis=0, return_inverse=True)
    values = []
    # The first order is that of people's map itself.
    for order in permutations(places):
        in_order = np.array(order)[member_of]
        *_, distance = procrustes(in_order, ours)
        values.append(1 - distance)

    least = values[0] - TINY
    is_as_large = np.array(values) >= least
    row["value"] = values[0]
    row["p"] = is_as_large.mean()
    return row


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
    difference = "Competence - Warmth"
    lean = as_in_table2(points).eval(difference)
    of_people = people().eval(difference)
    of_people = of_people[lean.index]
    is_competent = of_people > CLEAR
    is_warm = of_people < -CLEAR
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
    both = pd.concat([competent, warm])
    value = competent.mean() - warm.mean()

    low = high = p = np.nan
    fewest = min(len(competent), len(warm))
    if fewest > 1 and is_flat(both):
        low = high = 0.0
        p = 1.0
    elif fewest > 1:
        # SciPy's Welch warns where one side does not vary.
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
        ``predictor``, ``outcome``, ``n``, ``rho`` and ``p``; NaN for fewer than 4 groups, or where
        a column does not vary.
    """
    rows = []
    for predictor, outcome in product(predictors, outcomes):
        both = points[[predictor, outcome]].dropna()
        row = {
            "predictor": predictor,
            "outcome": outcome,
            "n": len(both),
        }

        # Four pairs are the fewest that have a p, and a column that does not vary has no ranks.
        spreads = both.max() - both.min()
        if len(both) > 3 and min(spreads) > TINY:
            row["rho"], row["p"] = stats.spearmanr(both)
        rows.append(row)
    return pd.DataFrame(rows, columns=["predictor", "outcome", "n", "rho", "p"])


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
