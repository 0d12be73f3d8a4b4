"""What a run says of its maps, each of one model and one version of the prompts.

The `means`, `ratings` and axes are those of `statistics`; `labels` come from `clustering.clusters`.
p-values are two-sided, intervals (``low``, ``high``) are at 95 %.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup import published
from ingroup.families import families
from ingroup.stats.paired import adjust, finding, paired_test
from ingroup.studies.stereomap import statistics, stimuli
from ingroup.studies.stereomap.clustering import (
    Clusters,
    axis_tests,
    exchange_null,
    halves,
    over_words,
)
from ingroup.studies.stereomap.statistics import AXES

STRUCTURE = ["Status", "Competition-others"]  # what the theory says that the axes follow from


def findings(p: pd.Series, least: pd.Series) -> NDArray[np.str_]:
    """Put corrected p-values into words, at the level of the study.

    Parameters
    ----------
    p : Series
        Corrected p-values.
    least : Series
        The smallest that each could have been.

    Returns
    -------
    ndarray of str
        The words of :func:`ingroup.stats.paired.finding`; "" where p is NaN.
    """
    level = families()["stereomap"].level
    return np.where(p.isna(), "", finding(p, least, level))


def corrected_over_maps(table: pd.DataFrame, p: str) -> pd.DataFrame:
    """Correct the tests of whole maps by Holm, the maps of a model as one family.

    Parameters
    ----------
    table : DataFrame
        One row per map: ``model``, ``p_least`` and the column of p.
    p : str
        The name of that column.

    Returns
    -------
    DataFrame
        The table with ``p_holm``, ``p_holm_least`` and ``finding``.
    """
    of_model = table.groupby("model")
    p_holm = of_model[p].transform(adjust, "holm")
    least = of_model.p_least.transform(adjust, "holm")
    return table.assign(
        p_holm=p_holm,
        p_holm_least=least,
        finding=findings(p_holm, least),
    )


def tests_in_other_rounds(
    scores: pd.DataFrame,
    cluster: Callable[[pd.DataFrame], Clusters | None],
    rng: np.random.Generator,
    alpha: float,
) -> pd.DataFrame:
    """Cluster the groups in one half of the rounds, and test the clusters in the other half.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.
    cluster : callable
        Makes clusters of group means, or None where it cannot.
    rng : numpy.random.Generator
        Draws the halves.
    alpha : float
        The level of the signs.

    Returns
    -------
    DataFrame
        As `axis_tests` returns it.

    Raises
    ------
    ValueError
        Where only one round was asked, or one half of the rounds has too few positions.
    """
    if scores["round"].nunique() == 1:
        raise ValueError("one round was asked, so there is no other half")

    first, second = halves(scores, rng)
    clusters = cluster(statistics.group_means(first))
    if clusters is None:
        raise ValueError("half of the rounds has too few different positions")

    means = statistics.group_means(second)
    return axis_tests(means, clusters.labels, alpha)


def whole_map(
    means: pd.DataFrame,
    ratings: pd.DataFrame,
    words: pd.DataFrame,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Test competence against warmth over all groups of a map, as one cluster.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    ratings : DataFrame
        The ratings that the means come from.
    words : DataFrame
        The rated words, as `stimuli.words` has them.
    rng : numpy.random.Generator
        Draws the exchanged axes.

    Returns
    -------
    dict
        For these words ``n``, both axes, ``difference``, ``low``, ``high``, ``p_exchanged`` and
        ``p_least``, as in `axis_tests`. For words like these, as in `over_words`, ``low_like``,
        ``high_like``, ``p_like`` and ``reason``.
    """
    placed = means[AXES].dropna()
    # All groups are one cluster, which k-means has not chosen.
    one_cluster = pd.Series(0, placed.index)
    null = exchange_null(placed, 1, rng)
    test = axis_tests(placed, one_cluster, null=null).loc[0]

    like = over_words(ratings, words)
    columns = ["n", *AXES, "difference", "low", "high", "p_exchanged", "p_least"]
    return test[columns].to_dict() | {
        "low_like": like.low,
        "high_like": like.high,
        "p_like": like.p,
        "reason": like.reason,
    }


def list_against_words(listed: pd.DataFrame, one_by_one: pd.DataFrame) -> dict[str, float]:
    """Compare competence minus warmth of a list of words with that of words asked one by one.

    Parameters
    ----------
    listed, one_by_one : DataFrame
        The `group_means` of the EXTENDED and of the ORIGINAL prompts.

    Returns
    -------
    dict
        The ``groups`` that both ask, by their names in Table 2; the mean difference of the axes in
        the ``list`` and ``word by word``, in points; the ``change``, list minus word by word, with
        ``low``, ``high`` and ``p`` of a paired t-test over groups.
    """
    both = pd.concat([_lean(listed), _lean(one_by_one)], axis=1, join="inner").dropna()
    of_list, word_by_word = both.to_numpy().T
    test = paired_test(of_list, word_by_word)
    return {
        "groups": len(both),
        "list": of_list.mean(),
        "word by word": word_by_word.mean(),
        "change": test.difference,
        "low": test.low,
        "high": test.high,
        "p": test.pvalue,
    }


def _lean(means: pd.DataFrame) -> pd.Series:
    """Competence minus warmth of each group, by its name in Table 2."""
    difference = means.Competence - means.Warmth
    named = difference.set_axis(_names_in_table2(means.index))
    return named.groupby(level=0).mean()


def _names_in_table2(groups: Sequence[str]) -> list[str]:
    """The names of groups in Table 2; a group that it does not have keeps its own."""
    in_table2 = stimuli.groups().set_index("group").table2
    return [in_table2.get(group) or group for group in groups]


def people() -> pd.DataFrame:
    """Load the map of the people whom Fiske et al. asked in 2002.

    Returns
    -------
    DataFrame
        Index ``group``, as Table 2 names it; both axes, which the groups of a cluster share.
    """
    table = published.load("stereomap", 2)
    table = table[table.source.str.startswith("Fiske")]
    return table.set_index("group").rename(columns=str.capitalize)[AXES]


def beside_people(
    means: pd.DataFrame, rng: np.random.Generator, same_name: bool = False
) -> dict[str, float]:
    """Compare a model's map with people's map, over the groups of Table 2.

    Parameters
    ----------
    means : DataFrame
        Index ``group``, as in ``groups.csv``, and both axes.
    rng : numpy.random.Generator
        Draws the random orders.
    same_name : bool
        Whether only groups with the same name in Table 2, apart from capitals, are compared.

    Returns
    -------
    dict
        As `statistics.agreement` returns it.

    Raises
    ------
    ValueError
        Where the groups have fewer than three different positions.
    """
    human = people()
    named = means.set_axis(_names_in_table2(means.index))
    if same_name:
        named = named[named.index.str.casefold() == means.index.str.casefold()]
    named = named[named.index.isin(human.index)].dropna(subset=AXES)
    # Any two points have the same shape as any two others.
    if len(named[AXES].drop_duplicates()) < 3:
        raise ValueError("it shares fewer than three different positions with people's map")
    return statistics.agreement(named, human, rng)


def with_structure(means: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Add the social structure to a map of the ORIGINAL prompts: status and competition.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    ratings : DataFrame
        The ratings that the means come from, with a column for each prompt.

    Returns
    -------
    DataFrame
        The means with a column for each part of `STRUCTURE`, the mean of its prompts, in points.
    """
    by_group = ratings.groupby("group").mean()
    parts = {}
    for part in STRUCTURE:
        names = []
        for name, prompt in stimuli.prompts("ORIGINAL").items():
            if prompt.construct == part:
                names.append(name.split("/")[1])
        parts[part] = by_group[names].mean(axis=1)
    return means.assign(**parts)


def by_cluster(means: pd.DataFrame, labels: pd.Series, scores: Sequence[str]) -> pd.DataFrame:
    """Average scores over the groups of each cluster: Figure 3.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    labels : Series
        The cluster of each group.
    scores : sequence of str
        Columns of `means`.

    Returns
    -------
    DataFrame
        ``score``, ``cluster``, ``n`` (groups with the score), their ``mean`` and their ``variance``
        (n - 1).
    """
    grouped = means.loc[labels.index].groupby(labels)
    parts = {}
    for score in scores:
        parts[score] = grouped[score].agg(n="count", mean="mean", variance="var")
    return pd.concat(parts, names=["score", "cluster"]).reset_index()


def most_probable_lists(
    chosen: pd.DataFrame, means: Mapping[tuple[str, str], pd.DataFrame]
) -> pd.DataFrame:
    """Count the groups that share a most probable list of ratings, and place them on the map.

    Parameters
    ----------
    chosen : DataFrame
        ``model``, ``version``, ``group`` and ``chosen``, the most probable rating of each word of
        one prompt, in the order of the words.
    means : mapping
        The `group_means` of each model and version.

    Returns
    -------
    DataFrame
        ``model``, ``version``, ``list`` (the ratings as a text), ``groups`` and the mean position
        of these groups on both axes; the most frequent list of a model comes first.
    """
    numbers = chosen.dropna().assign(list=lambda rows: rows.chosen.astype(int).astype(str))
    lists = numbers.groupby(["model", "version", "group"], sort=False).list.agg(" ".join)

    tables = {}
    for key, of_map in lists.groupby(level=["model", "version"], sort=False):
        placed = means[key].join(of_map.droplevel(["model", "version"])).groupby("list")
        axes = {axis: (axis, "mean") for axis in AXES}
        table = placed.agg(groups=("rounds", "size"), **axes)
        tables[key] = table.sort_values("groups", ascending=False, kind="stable")
    if not tables:
        return pd.DataFrame(columns=["model", "version", "list", "groups", *AXES])
    return pd.concat(tables, names=["model", "version"]).reset_index()


def correlation_table(by_model: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put the correlations of all models below one another, with what each corrected p says.

    Parameters
    ----------
    by_model : mapping
        From `statistics.correlations`, by model.

    Returns
    -------
    DataFrame
        ``model``, the columns of `statistics.correlations` and ``finding``.
    """
    table = pd.concat(by_model, names=["model"]).reset_index("model")
    table["finding"] = findings(table.p_holm, table.p_holm_least)
    return table
