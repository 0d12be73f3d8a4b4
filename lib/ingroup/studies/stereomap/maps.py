"""Tables of the maps of a run, each map of one model and one version of the prompts.

A map is named by its model and version, ``(model, "EXTENDED")``. `statistics` defines `means`,
`ratings` and axes, and `labels` come from `clustering.clusters`. p-values are two-sided, intervals
(``low``, ``high``) are at 95 %.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from ingroup import published
from ingroup.families import families
from ingroup.models import is_calibrant
from ingroup.stats.corrections import adjust, finding
from ingroup.stats.effects import LEAST_PAIRS
from ingroup.stats.paired import paired_test
from ingroup.studies.stereomap import statistics, stimuli
from ingroup.studies.stereomap.clustering import (
    Clusters,
    axis_tests,
    exchange_null,
    halves,
    word_sample_test,
)
from ingroup.studies.stereomap.statistics import AXES

MAP_KEY = ["model", "version"]
SOCIAL_STRUCTURE = ["Status", "Competition-others"]  # causes of the axes in the theory

ModelVersion = tuple[str, str]  # a model and a version of the prompts


def models_of(means: Mapping[ModelVersion, pd.DataFrame], version: str) -> list[str]:
    """Select the models that answered one version of the prompts.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.
    version : {"EXTENDED", "ORIGINAL"}
        The version.

    Returns
    -------
    list of str
        The models in their order.
    """
    return [model for model, of_version in means if of_version == version]


def score_ranges(means: Mapping[ModelVersion, pd.DataFrame]) -> pd.DataFrame:
    """Compute how far apart the groups of each map are.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.

    Returns
    -------
    DataFrame
        Index ``model`` and ``version``; the smallest, mean and largest score of a group on each
        axis, and the number of ``rounds`` that were asked.
    """
    by_map = pd.concat(means, names=MAP_KEY).groupby(MAP_KEY, sort=False)
    table = by_map[AXES].agg(["min", "mean", "max"])
    table["rounds", ""] = by_map.rounds.max()
    return table


def averaged_models(means: Mapping[ModelVersion, pd.DataFrame]) -> list[str]:
    """Choose the models of the map ALL: real models that answered ORIGINAL, else calibrants.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.

    Returns
    -------
    list of str
        The models; calibrants are never averaged with real models.
    """
    models = models_of(means, "ORIGINAL")
    real = [model for model in models if not is_calibrant(model)]
    return real or models


def mean_map(means: Mapping[ModelVersion, pd.DataFrame], models: Sequence[str]) -> pd.DataFrame:
    """Average the positions of the groups over models: the map ALL of ORIGINAL.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.
    models : sequence of str
        The models to average.

    Returns
    -------
    DataFrame
        Index ``group``; both axes. A group without a score of one model has the mean of the others.
    """
    tables = [means[model, "ORIGINAL"][AXES] for model in models]
    return pd.concat(tables).groupby(level=0, sort=False).mean()


def clusters_of(
    means: Mapping[ModelVersion, pd.DataFrame],
    cluster: Callable[[pd.DataFrame, str], Clusters | None],
) -> dict[ModelVersion, Clusters]:
    """Cluster the groups of each map.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.
    cluster : callable
        Makes clusters of group means and a version, or None without enough positions.

    Returns
    -------
    dict
        The clusters of each map that has some.
    """
    by_map = {}
    for key, table in means.items():
        _, version = key
        clusters = cluster(table, version)
        if clusters is not None:
            by_map[key] = clusters
    return by_map


def other_starts(
    means: Mapping[ModelVersion, pd.DataFrame],
    labels: Mapping[ModelVersion, pd.Series],
    cluster: Callable[[pd.DataFrame, str], Clusters],
) -> pd.DataFrame:
    """Compare the clusters of each map with the clusters from other starts of k-means.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.
    labels : mapping
        The cluster of each group, for each map that has clusters.
    cluster : callable
        Makes clusters of group means and a version, from other starts.

    Returns
    -------
    DataFrame
        ``model``, ``version`` and ``other starts``, the adjusted Rand index (1: the same clusters).
    """
    rows = []
    for key, of_map in labels.items():
        model, version = key
        from_other_starts = cluster(means[key], version)
        rand = adjusted_rand_score(of_map, from_other_starts.labels)
        rows.append({"model": model, "version": version, "other starts": rand})
    return pd.DataFrame(rows)


def positions(
    means: Mapping[ModelVersion, pd.DataFrame], clusters: Mapping[ModelVersion, Clusters]
) -> pd.DataFrame:
    """Put all maps into one table: the scores of each group, and its cluster.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.
    clusters : mapping
        The clusters of each map that has some.

    Returns
    -------
    DataFrame
        Index ``model``, ``version`` and ``group``. ``cluster`` is missing if the map has no
        clusters, or if the group has no score on one of the axes.
    """
    table = pd.concat(means, names=MAP_KEY)

    labels = {}
    for key, of_map in clusters.items():
        labels[key] = of_map.labels
    cluster = pd.concat(labels).reindex(table.index)
    # Int64 holds whole numbers and missing ones.
    table.insert(2, "cluster", cluster.astype("Int64"))
    return table


def groups_in_no_cluster(positions: pd.DataFrame) -> pd.DataFrame:
    """List the groups of each map that are in no cluster.

    Parameters
    ----------
    positions : DataFrame
        From `positions`.

    Returns
    -------
    DataFrame
        One row per map with such a group, and their names in one text.
    """
    left_out = positions[positions.cluster.isna()].reset_index()
    groups = left_out.groupby(MAP_KEY, sort=False).group
    return groups.agg(", ".join).to_frame("in no cluster")


def centroids(clusters: Mapping[ModelVersion, Clusters]) -> pd.DataFrame:
    """Put the centroids of all maps into one table.

    Parameters
    ----------
    clusters : mapping
        The clusters of each map.

    Returns
    -------
    DataFrame
        Index ``model``, ``version`` and ``cluster``; the columns of `clustering.clusters`.
    """
    tables = {}
    for key, of_map in clusters.items():
        tables[key] = of_map.centroids
    return pd.concat(tables, names=MAP_KEY)


def significance_words(p: pd.Series, least: pd.Series) -> NDArray[np.str_]:
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
        The words of :func:`ingroup.stats.corrections.finding`; "" where p is NaN.
    """
    level = families()["stereomap"].level
    return np.where(p.isna(), "", finding(p, least, level))


def with_corrected_p(table: pd.DataFrame, p: str) -> pd.DataFrame:
    """Add the corrected p of a test of each map: Holm, with the maps of a model as one family.

    Parameters
    ----------
    table : DataFrame
        One row per map: ``model``; the p of its test; ``p_least``, the smallest p that the test
        can give.
    p : str
        The name of the column with the p.

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
        finding=significance_words(p_holm, least),
    )


def tests_in_same_rounds(
    means: pd.DataFrame, clusters: Clusters, rng: np.random.Generator, alpha: float
) -> pd.DataFrame:
    """Test the clusters of a map on the rounds that made them.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    clusters : Clusters
        The clusters of these means.
    rng : numpy.random.Generator
        Draws the exchanged axes.
    alpha : float
        The level of the signs.

    Returns
    -------
    DataFrame
        As `axis_tests` returns it, with ``p_exchanged`` and the ``finding`` that it gives.
    """
    # k-means chose the clusters that are tested, so it also clusters each draw of the null.
    null = exchange_null(means, len(clusters.centroids), rng)
    tests = axis_tests(means, clusters.labels, alpha, null)
    return _with_finding(tests)


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
        Makes clusters of group means, or None without enough positions.
    rng : numpy.random.Generator
        Draws the halves.
    alpha : float
        The level of the signs.

    Returns
    -------
    DataFrame
        As `axis_tests` returns it, without ``p_exchanged``; the ``finding`` is "".

    Raises
    ------
    ValueError
        Where only one round was asked, or one half of the rounds has too few positions.
    """
    if scores["round"].nunique() == 1:
        raise ValueError("one round was asked, so there is no other half")

    clustered_rounds, tested_rounds = halves(scores, rng)
    clusters = cluster(statistics.group_means(clustered_rounds))
    if clusters is None:
        raise ValueError("half of the rounds has too few different positions")

    means = statistics.group_means(tested_rounds)
    tests = axis_tests(means, clusters.labels, alpha)
    return _with_finding(tests)


def _with_finding(tests: pd.DataFrame) -> pd.DataFrame:
    """Add the ``finding`` of the exchanged axes to the tests of clusters, in words."""
    return tests.assign(finding=significance_words(tests.p_exchanged, tests.p_least))


def differences_found(tests: pd.DataFrame) -> pd.DataFrame:
    """Count the clusters of each map in which a test finds a difference of the axes.

    Parameters
    ----------
    tests : DataFrame
        Index ``model``, ``version``, ``way`` and ``cluster``; the columns of `axis_tests` and
        ``finding``.

    Returns
    -------
    DataFrame
        One row per map and way: the number of clusters, of those with the sign > or <, and of those
        that are significant when the axes are exchanged.
    """
    marked = tests.assign(
        printed=tests.sign.isin([">", "<"]),
        exchanged=tests.finding == "significant",
    )

    by_way = marked.groupby([*MAP_KEY, "way"], sort=False)
    counts = by_way.agg(
        clusters=("n", "size"),
        printed=("printed", "sum"),
        exchanged=("exchanged", "sum"),
    )
    names = {
        "printed": "as printed, with > or <",
        "exchanged": "axes exchanged, significant",
    }
    return counts.rename(columns=names)


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
        ``p_least``, as in `axis_tests`. For words like these, as in `word_sample_test`,
        ``low_like_these``, ``high_like_these``, ``p_like_these`` and ``reason``.
    """
    points = means[AXES].dropna()
    # All groups are one cluster, which k-means has not chosen.
    one_cluster = pd.Series(0, points.index)
    null = exchange_null(points, 1, rng)
    test = axis_tests(points, one_cluster, null=null).loc[0]
    columns = ["n", *AXES, "difference", "low", "high", "p_exchanged", "p_least"]
    numbers = test[columns].to_dict()

    words_like_these = word_sample_test(ratings, words)
    numbers["low_like_these"] = words_like_these.low
    numbers["high_like_these"] = words_like_these.high
    numbers["p_like_these"] = words_like_these.p
    numbers["reason"] = words_like_these.reason
    return numbers


def whole_map_table(tests: pd.DataFrame) -> pd.DataFrame:
    """Make the table of the tests of whole maps, with corrected p for both scopes.

    Parameters
    ----------
    tests : DataFrame
        One row per map: ``model``, ``version`` and the numbers of `whole_map`.

    Returns
    -------
    DataFrame
        The numbers for these words with ``p_holm``, ``p_holm_least`` and ``finding``, then the
        numbers for words like these with ``p_like_these_holm``. The maps of a model are one family.
    """
    table = with_corrected_p(tests, "p_exchanged")
    table["p_like_these_holm"] = table.groupby("model").p_like_these.transform(adjust, "holm")

    columns = [
        *MAP_KEY,
        "n",
        *AXES,
        "difference",
        "low",
        "high",
        "p_exchanged",
        "p_holm",
        "p_holm_least",
        "finding",
        "low_like_these",
        "high_like_these",
        "p_like_these",
        "p_like_these_holm",
        "reason",
    ]
    return table[columns]


def list_against_words(listed: pd.DataFrame, one_by_one: pd.DataFrame) -> dict[str, float]:
    """Compare competence minus warmth between words rated in a list and words rated one by one.

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
    # One row per group: turned, the columns come one by one.
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


def lists_against_words(means: Mapping[ModelVersion, pd.DataFrame]) -> pd.DataFrame:
    """Apply `list_against_words` to each model that answered both versions.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.

    Returns
    -------
    DataFrame
        ``model`` and the numbers of `list_against_words`; no row if no model answered both.
    """
    rows = []
    for model, version in means:
        if version == "EXTENDED" and (model, "ORIGINAL") in means:
            compared = list_against_words(means[model, "EXTENDED"], means[model, "ORIGINAL"])
            rows.append({"model": model, **compared})

    columns = ["model", "groups", "list", "word by word", "change", "low", "high", "p"]
    return pd.DataFrame(rows, columns=columns)


def _lean(means: pd.DataFrame) -> pd.Series:
    """Compute competence minus warmth of each group, by its name in Table 2.

    Groups with the same name are averaged.
    """
    difference = means.Competence - means.Warmth
    named = difference.set_axis(_names_in_table2(means.index))
    return named.groupby(level=0).mean()


def _names_in_table2(groups: Sequence[str]) -> list[str]:
    """Translate groups to their names in Table 2. A group without such a name keeps its own."""
    in_table2 = stimuli.groups().set_index("group").table2
    return [in_table2.get(group) or group for group in groups]


def people_map() -> pd.DataFrame:
    """Load the map of the people whom Fiske et al. asked in 2002.

    Returns
    -------
    DataFrame
        Index ``group``, as Table 2 names it; both axes, which the groups of a cluster share.
    """
    table = published.load("stereomap", 2)
    is_of_people = table.source.str.startswith("Fiske")
    by_group = table[is_of_people].set_index("group")
    return by_group.rename(columns=str.capitalize)[AXES]


def compare_with_people(
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
        As `statistics.map_similarity` returns it; without its p-values if `same_name`.

    Raises
    ------
    ValueError
        Where the groups have fewer than three different positions.
    """
    human = people_map()
    named = means.set_axis(_names_in_table2(means.index))
    is_compared = named.index.isin(human.index)
    if same_name:
        is_compared &= named.index.str.casefold() == means.index.str.casefold()
    compared = named[is_compared].dropna(subset=AXES)
    # Any two points have the same shape as any two others.
    if len(compared[AXES].drop_duplicates()) < 3:
        raise ValueError("it shares fewer than three different positions with people's map")

    numbers = statistics.map_similarity(compared, human, rng)
    if not same_name:
        return numbers

    # These groups share few positions, of which no order could be significant.
    without_p = {}
    for name, number in numbers.items():
        is_p = name == "p" or name.startswith(("p ", "p_"))
        if not is_p:
            without_p[name] = number
    return without_p


def with_structure(means: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Add status and competition, the social structure, to a map of the ORIGINAL prompts.

    Parameters
    ----------
    means : DataFrame
        From `group_means`.
    ratings : DataFrame
        The ratings that the means come from, with a column for each prompt.

    Returns
    -------
    DataFrame
        The means with a column for each part of `SOCIAL_STRUCTURE`, the mean of its prompts, in
        points.
    """
    by_group = ratings.groupby("group").mean()
    parts = {}
    for part in SOCIAL_STRUCTURE:
        names = []
        for name, prompt in stimuli.prompts("ORIGINAL").items():
            if prompt.construct == part:
                # The column has the name of the prompt without its version.
                names.append(name.split("/")[1])
        parts[part] = by_group[names].mean(axis=1)
    return means.assign(**parts)


def cluster_scores(means: pd.DataFrame, labels: pd.Series, scores: Sequence[str]) -> pd.DataFrame:
    """Average scores over the groups of each cluster of one map.

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
    most_probable: pd.DataFrame, means: Mapping[ModelVersion, pd.DataFrame]
) -> pd.DataFrame:
    """Count the groups that share a most probable list of ratings, and place them on the map.

    Parameters
    ----------
    most_probable : DataFrame
        ``model``, ``version``, ``group`` and ``most_probable``, the most probable rating of each
        word of one prompt, in the order of the words.
    means : mapping
        The `group_means` of each model and version.

    Returns
    -------
    DataFrame
        ``model``, ``version``, ``list`` (the ratings as a text), ``groups`` and the mean position
        of these groups on both axes; the most frequent list of a model comes first.
    """
    numbers = most_probable.dropna()
    digits = numbers.most_probable.astype(int).astype(str)
    by_group = numbers.assign(list=digits).groupby([*MAP_KEY, "group"], sort=False)
    lists = by_group.list.agg(" ".join)

    tables = {}
    for key, of_map in lists.groupby(level=MAP_KEY, sort=False):
        list_of_group = of_map.droplevel(MAP_KEY)
        by_list = means[key].join(list_of_group).groupby("list")
        table = by_list.agg(
            groups=("rounds", "size"),
            Competence=("Competence", "mean"),
            Warmth=("Warmth", "mean"),
        )
        tables[key] = table.sort_values("groups", ascending=False, kind="stable")

    if not tables:
        return pd.DataFrame(columns=[*MAP_KEY, "list", "groups", *AXES])
    return pd.concat(tables, names=MAP_KEY).reset_index()


def coldest_group(positions: pd.DataFrame) -> tuple[str, str]:
    """Find the group with the lowest warmth on an EXTENDED map, of a real model if possible.

    Parameters
    ----------
    positions : DataFrame
        From `positions`, with an EXTENDED map.

    Returns
    -------
    model : str
        The model of the map.
    group : str
        The group.
    """
    warmth = positions.Warmth.xs("EXTENDED", level="version")

    models = warmth.index.get_level_values("model")
    is_real = ~models.map(is_calibrant).astype(bool)
    if is_real.any():
        warmth = warmth[is_real]
    # The label of a row is a pair of model and group.
    return warmth.idxmin()


def table8(by_model: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Make the `correlation_table` of Table 8, which groups its predictors.

    Parameters
    ----------
    by_model : mapping
        From `statistics.correlations`, by model.

    Returns
    -------
    DataFrame
        ``model``, ``kind`` ("Stereotypes" for the axes, else "Emotions"), then the columns of
        `correlation_table`.
    """
    table = correlation_table(by_model)
    is_axis = table.predictor.isin(AXES)
    table.insert(1, "kind", np.where(is_axis, "Stereotypes", "Emotions"))
    return table


def correlation_table(by_model: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put the correlations of all models below one another, with the finding of each in words.

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
    table["finding"] = significance_words(table.p_holm, table.p_holm_least)
    return table


def missing_correlations(table: pd.DataFrame) -> list[str]:
    """Explain why correlations of a table are missing.

    Parameters
    ----------
    table : DataFrame
        From `correlation_table`.

    Returns
    -------
    list of str
        One sentence per model and reason; none where no correlation is missing.
    """
    missing = table[table.rho.isna()]
    is_small = missing.n < LEAST_PAIRS
    reasons = is_small.map(
        {
            True: f"fewer than {LEAST_PAIRS} groups have both scores",
            False: "one of the scores is the same for all groups",
        }
    )
    n_pairs = table.model.value_counts()
    sentences = []
    for (model, reason), rows in missing.groupby(["model", reasons], sort=False):
        share = f"{len(rows)} of {n_pairs[model]}"
        sentences.append(f"{model}: {share} pairs of scores have no correlation, because {reason}.")
    return sentences


def cluster_scores_of_maps(
    means: Mapping[ModelVersion, pd.DataFrame],
    labels: Mapping[ModelVersion, pd.Series],
    scores: Sequence[str],
) -> pd.DataFrame:
    """Put the `cluster_scores` of all EXTENDED maps into one table: Figure 3.

    Parameters
    ----------
    means : mapping
        The `group_means` of each map.
    labels : mapping
        The cluster of each group, for each map that has clusters.
    scores : sequence of str
        Columns of `means`.

    Returns
    -------
    DataFrame
        ``model`` and the columns of `cluster_scores`; no row if no EXTENDED map has clusters.
    """
    tables = {}
    for (model, version), of_map in labels.items():
        if version == "EXTENDED":
            tables[model] = cluster_scores(means[model, version], of_map, scores)
    if not tables:
        return pd.DataFrame(columns=["model", "score", "cluster", "n", "mean", "variance"])
    return pd.concat(tables, names=["model"]).reset_index("model")
