"""Checks of the printed numbers of StereoMap's paper against each other, for its audit."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from ingroup import published
from ingroup.published import FLOAT_ERROR

SECOND_NAMES = {"Elderly people": "Elderly", "Woman": "Women"}  # of groups in table 5


def one_spelling(table: pd.DataFrame) -> pd.DataFrame:
    """Spell the groups in the same way in all columns of a table.

    Parameters
    ----------
    table : DataFrame
        Table 2 or 5.

    Returns
    -------
    DataFrame
        The table; two groups of table 5 have the name that its other columns have.
    """
    groups = table.group.replace(SECOND_NAMES)
    return table.assign(group=groups)


def cluster_means(table: pd.DataFrame) -> pd.DataFrame:
    """Reduce a table to one row per cluster, with the printed means and sign.

    Parameters
    ----------
    table : DataFrame
        Table 2 or 5 as :func:`ingroup.published.load` reads it; a cluster's means stand in the rows
        of all its groups.

    Returns
    -------
    DataFrame
        The first row of each cluster. ``expected`` is the sign to which the two means point, and
        ``shown`` has the printed texts, e.g. "3.16<3.14".
    """
    has_means = table.competence.notna()
    with_means = table[has_means]
    clusters = with_means.drop_duplicates(["source", "cluster_order"])

    competence = clusters.competence
    warmth = clusters.warmth
    expected = pd.Series("=", clusters.index)
    expected[competence > warmth] = ">"
    expected[competence < warmth] = "<"

    shown = clusters.competence_printed + clusters.sign + clusters.warmth_printed
    return clusters.assign(expected=expected, shown=shown)


def clusters_with(table: pd.DataFrame, group: str) -> pd.DataFrame:
    """Find the cluster in which each source puts a group.

    Parameters
    ----------
    table : DataFrame
        Table 2 or 5.
    group : str
        The group, as the table spells it.

    Returns
    -------
    DataFrame
        By source: ``groups``, the set of the cluster's groups; ``competence``, ``warmth`` and
        ``sign``; ``means``, the first two as a pair; ``shown``, e.g. "4.0=3.92"; ``is_highest``,
        whether no other cluster of the source has a larger sum of both means. A source without
        the group is left out.
    """
    rows = {}
    for source, of_source in table.groupby("source", sort=False):
        is_group = of_source.group == group
        if not is_group.any():
            continue

        row_of_group = of_source[is_group].iloc[0]
        is_same_cluster = of_source.cluster_order == row_of_group.cluster_order
        cluster = of_source[is_same_cluster]

        # A cluster's means and sign stand in the rows of all its groups.
        first = cluster.iloc[0]
        competence = first.competence
        warmth = first.warmth
        sign = first.sign
        sums = of_source.competence + of_source.warmth
        rows[source] = {
            "groups": set(cluster.group),
            "competence": competence,
            "warmth": warmth,
            "sign": sign,
            "means": (float(competence), float(warmth)),
            "shown": f"{competence}{sign}{warmth}",
            "is_highest": competence + warmth == sums.max(),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def share_cluster(
    table: pd.DataFrame, sources: Sequence[str], groups: Sequence[str], sign: str = ""
) -> bool:
    """Tell whether each source has some groups in one cluster.

    Parameters
    ----------
    table : DataFrame
        Table 2 or 5.
    sources : sequence of str
        The sources.
    groups : sequence of str
        The groups, as the table spells them.
    sign : str
        The sign that the clusters must have; "" for any.

    Returns
    -------
    bool
        False, too, if a source lacks the first group.
    """
    clusters = clusters_with(table, groups[0])
    for source in sources:
        if source not in clusters.index:
            return False

        cluster = clusters.loc[source]
        if not cluster.groups.issuperset(groups):
            return False
        if sign and cluster.sign != sign:
            return False

    return True


def correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Count the stars of printed correlations, and bound each correlation before rounding.

    Parameters
    ----------
    table : DataFrame
        Table 8.

    Returns
    -------
    DataFrame
        The table with ``shown``, e.g. "0.19**"; ``n_stars``; ``least`` and ``most``, the smallest
        and the largest size, from 0 to 0.999 and without a sign.
    """
    size = table.spearman_rho.abs()
    half = published.tolerance(table.spearman_rho_printed)
    least = size - half
    most = size + half

    return table.assign(
        shown=table.spearman_rho_printed + table.significance,
        n_stars=table.significance.str.len(),
        # A correlation of 1 has no finite t-value.
        least=least.clip(0, 0.999),
        most=most.clip(0, 0.999),
    )


def with_best_n(fits: pd.DataFrame, source: pd.Series) -> pd.DataFrame:
    """Judge each star mark with the n that makes most marks of its source right.

    Parameters
    ----------
    fits : DataFrame
        Whether a mark (row) is right with an n (column), the smallest n first.
    source : Series
        The source of each row.

    Returns
    -------
    DataFrame
        By row: ``is_right``, whether the mark is right with all n that are best for its source, and
        ``smallest_n``, the smallest of these n.
    """
    n_right = fits.groupby(source).sum()
    most_right = n_right.max(axis=1)
    is_best = n_right.eq(most_right, axis=0)
    # The columns go up, and idxmax takes the first that is true.
    smallest = is_best.idxmax(axis=1)

    is_best_of_row = is_best.loc[source].set_axis(fits.index)
    # An n that is not the source's best cannot make a mark wrong.
    is_right = fits | ~is_best_of_row
    marks = {
        "is_right": is_right.all(axis=1),
        "smallest_n": source.map(smallest),
    }
    return pd.DataFrame(marks)


def marks_against(table: pd.DataFrame) -> pd.Series:
    """Count the correlations of the same source that contradict a correlation's stars.

    A larger correlation cannot have fewer stars than a smaller correlation of the same n.

    Parameters
    ----------
    table : DataFrame
        From `correlations`.

    Returns
    -------
    Series
        How many larger correlations have fewer stars, and smaller ones more, by row of `table`.
    """
    rows = table.assign(row=table.index)
    columns = ["row", "source", "n_stars", "least", "most"]
    correlations = rows[columns]
    # Each correlation meets all others of its source.
    pairs = correlations.merge(correlations, on="source", suffixes=("", "_other"))

    # Rounding must not decide which of two correlations is the larger one.
    is_larger = pairs.least >= pairs.most_other - FLOAT_ERROR
    has_fewer = pairs.n_stars < pairs.n_stars_other
    is_smaller = pairs.most <= pairs.least_other + FLOAT_ERROR
    has_more = pairs.n_stars > pairs.n_stars_other

    is_larger_with_fewer = is_larger & has_fewer
    is_smaller_with_more = is_smaller & has_more
    is_against = is_larger_with_fewer | is_smaller_with_more
    counts = is_against.groupby(pairs.row).sum()
    return counts.reindex(table.index)


def nearest_whole(mean: pd.Series, variance: pd.Series, n: int) -> pd.DataFrame:
    """Find the mean and variance of n whole numbers that are nearest to printed values.

    A whole number and its square are both even or both odd. So are the sum of n whole numbers and
    the sum of their squares.

    Parameters
    ----------
    mean, variance : Series
        The printed numbers.
    n : int
        How many whole numbers, at least 2.

    Returns
    -------
    DataFrame
        ``mean`` and ``variance`` (with n - 1), with the index of `mean`.
    """
    total = (n * mean).round()
    of_mean = total**2 / n
    # The sum of squares that gives this variance, not yet a whole number.
    squares = (n - 1) * variance + of_mean

    # It is rounded to the nearest even number where the sum is even, else to the nearest odd one.
    odd = total % 2
    half = (squares - odd) / 2
    squares = 2 * half.round() + odd
    around_mean = squares - of_mean

    nearest = {
        "mean": total / n,
        "variance": around_mean / (n - 1),
    }
    return pd.DataFrame(nearest)


def possible_n(table: pd.DataFrame, numbers: Iterable[int]) -> pd.DataFrame:
    """Tell for which n a printed mean and variance can come from n whole numbers.

    Parameters
    ----------
    table : DataFrame
        Table 9.
    numbers : iterable of int
        The n to try.

    Returns
    -------
    DataFrame
        A truth value by row of `table` and n.
    """
    fits = {}
    for n in numbers:
        nearest = nearest_whole(table["mean"], table["variance"], n)
        is_near = pd.Series(True, table.index)
        for column in ("mean", "variance"):
            printed = table[f"{column}_printed"]
            half = published.tolerance(printed)
            distance = nearest[column] - table[column]
            is_near &= distance.abs() <= half + FLOAT_ERROR
        fits[n] = is_near
    return pd.DataFrame(fits)


def order_of_lists(table: pd.DataFrame) -> pd.Series:
    """Judge whether the lists of groups are sorted by their means.

    Parameters
    ----------
    table : DataFrame
        Table 9. Rows with a ``text_flag`` are damaged in our copy and are passed over.

    Returns
    -------
    Series
        The verdict on each row: whether its mean is beyond that of the row before.
    """
    is_sound = table.text_flag == ""
    sound = table[is_sound]
    lists = sound.groupby(["dimension", "model", "end"])
    step = lists["mean"].diff()
    # The first row of a list has no row before it.
    step = step.fillna(0)
    # The lists of the highest means go down.
    goes_down = sound.end == "highest"
    step = step.mask(goes_down, -step)
    is_in_order = step >= 0

    verdict = pd.Series("cannot be checked", table.index)
    verdict[is_sound] = np.where(is_in_order, "holds", "contradicts")
    return verdict


def models_with(table: pd.DataFrame, phrases: Iterable[str], length: int = 9) -> dict[str, int]:
    """Count the models that have each phrase among their keywords.

    Parameters
    ----------
    table : DataFrame
        Rows of table 10.
    phrases : iterable of str
        The phrases.
    length : int
        How many letters of a phrase have to agree; the text inflects the words of the table.

    Returns
    -------
    dict
        The number of models by phrase.
    """
    counts = {}
    for phrase in phrases:
        stem = phrase[:length]
        has_stem = table.keyword.str.contains(stem, regex=False)
        rows = table[has_stem]
        counts[phrase] = rows.model.nunique()
    return counts
