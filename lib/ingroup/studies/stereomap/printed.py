"""Tables of StereoMap in the paper's layout, and the numbers to set beside printed numbers.

A map is named by its model and version, ``(model, "EXTENDED")``.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ingroup import dictionary, published
from ingroup.models import label
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.clustering import Clusters
from ingroup.studies.stereomap.maps import ModelVersion
from ingroup.studies.stereomap.statistics import AXES, extremes

FISKE = "Fiske et al. (2002)"
TABLES = {"ORIGINAL": 2, "EXTENDED": 5}  # the table that prints the map of each version
ENDS = ["Traditional", "Conservative", "Wealthy", "High-status"]  # the words of Table 9
CELLS = ["group", "centroid", "sign_as_printed"]  # columns of a source in Tables 2 and 5


def cluster_lists(
    labels: Mapping[ModelVersion, pd.Series], tests: Mapping[ModelVersion, pd.DataFrame]
) -> pd.DataFrame:
    """List the groups of each map by cluster, as Tables 2 and 5 do.

    Parameters
    ----------
    labels : mapping
        The cluster of each group, by map.
    tests : mapping
        The table of `axis_tests` with its ``finding``, by map.

    Returns
    -------
    DataFrame
        One row per group and ``source``, a model or `FISKE` (if there is a map of ORIGINAL):
        ``row``, ``group``, ``cluster``; ``centroid`` and ``sign_as_printed``, "" except in the
        first row of a cluster; ``printed``, whether the paper's table has the group; ``model``;
        ``version``.
    """
    lists = []
    versions = [version for _, version in labels]
    if "ORIGINAL" in versions:
        by_people = _people_list()
        lists.append(by_people)
    for key, labels_of_map in labels.items():
        by_model = _cluster_list(key, labels_of_map, tests[key])
        lists.append(by_model)
    table = pd.concat(lists, ignore_index=True)

    # Groups that the paper prints are numbered apart from the other groups.
    numbered = table.groupby(["source", "version", "printed"], sort=False)
    table.insert(0, "row", numbered.cumcount() + 1)
    return table


def _cluster_list(key: ModelVersion, labels: pd.Series, tests: pd.DataFrame) -> pd.DataFrame:
    """List the groups of one map by cluster.

    Groups of the paper's table come first in a cluster.
    """
    model, version = key
    cluster_of_group = labels.rename_axis("group")
    rows = cluster_of_group.reset_index(name="cluster")

    # Print and groups.csv differ in the capitals of some names.
    table = published.load("stereomap", TABLES[version])
    names_in_print = table.group.str.casefold()
    names_here = rows.group.str.casefold()
    rows["printed"] = names_here.isin(names_in_print)
    rows = rows.sort_values(
        ["cluster", "printed"],
        ascending=[True, False],
        kind="stable",
    )

    # The first row of a cluster says what holds for all its groups.
    is_first = ~rows.cluster.duplicated()
    centroid_texts = _centroid_texts(tests)
    centroids = rows.cluster.map(centroid_texts)
    signs = rows.cluster.map(tests.sign)
    rows["centroid"] = centroids.where(is_first, "")
    rows["sign_as_printed"] = signs.where(is_first, "")
    return rows.assign(source=model, model=model, version=version)


def _centroid_texts(tests: pd.DataFrame) -> pd.Series:
    """Write the centroid of each cluster as the paper does, such as "(3.21>2.50)".

    The sign "=" says that competence and warmth do not differ significantly. The sign "?" says that
    the test had too few groups to find a difference, or that there was no test.
    """
    is_significant = tests.finding == "significant"
    is_not_significant = tests.finding == "not significant"
    larger_side = np.where(tests.difference > 0, ">", "<")
    signs = np.select([is_significant, is_not_significant], [larger_side, "="], "?")

    two_decimals = "{:.2f}".format
    competence = tests.Competence.map(two_decimals)
    warmth = tests.Warmth.map(two_decimals)
    comparisons = competence + signs + warmth
    return "(" + comparisons + ")"


def _people_list() -> pd.DataFrame:
    """List the groups as people placed them, the first columns of Table 2."""
    table = published.load("stereomap", 2)
    is_of_people = table.source == FISKE
    rows = table[is_of_people].rename(columns={"cluster_order": "cluster"})
    comparisons = rows.competence_printed + rows.sign + rows.warmth_printed
    centroids = "(" + comparisons + ")"
    # Only the first row of a cluster has its centroid, as in `_cluster_list`.
    is_first = ~rows.cluster.duplicated()
    rows["centroid"] = centroids.where(is_first, "")

    rows = rows[["group", "cluster", "centroid", "source"]]
    return rows.assign(
        printed=True,
        sign_as_printed="",
        model=np.nan,
        version="ORIGINAL",
    )


def layout_of_version(lists: pd.DataFrame) -> pd.DataFrame:
    """Lay out the lists of one version as the paper does, a block of columns for each source.

    Parameters
    ----------
    lists : DataFrame
        Rows of `cluster_lists`, of one version; groups that the paper does not print are left out.

    Returns
    -------
    DataFrame
        `CELLS` by source; "" where a source has fewer groups than another.
    """
    printed = lists[lists.printed]
    wide = printed.pivot(index="row", columns="source", values=CELLS)
    wide = wide.swaplevel(axis=1)
    # `pivot` sorts: sources and cells go back into the order of print.
    sources = printed.source.unique()
    columns = pd.MultiIndex.from_product([sources, CELLS])
    return wide.reindex(columns=columns).fillna("")


def layouts(lists: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Lay out the lists of each version by `layout_of_version`.

    Parameters
    ----------
    lists : DataFrame
        From `cluster_lists`.

    Returns
    -------
    dict of DataFrame
        The layouts by the name of the paper's table.
    """
    tables = {}
    for version, rows in lists.groupby("version", sort=False):
        number = TABLES[str(version)]
        name = f"Table {number}"
        tables[name] = layout_of_version(rows)
    return tables


def stars(p: pd.Series) -> pd.Series:
    """Mark p-values as Table 8 does.

    Parameters
    ----------
    p : Series
        Values of p.

    Returns
    -------
    Series
        ``***`` below .001, ``**`` below .01, ``*`` below .05, else "".
    """
    marks = pd.Series("", p.index, dtype=object)
    for level in (0.05, 0.01, 0.001):
        is_below = p < level
        marks = marks.mask(is_below, marks + "*")
    return marks


def table8(correlations: pd.DataFrame) -> pd.DataFrame:
    """Lay out correlations as Table 8 does, with the stars of the paper and of Holm's correction.

    Parameters
    ----------
    correlations : DataFrame
        ``model`` and the columns of `statistics.correlations`, in the order of the paper.

    Returns
    -------
    DataFrame
        Predictors by model and outcome; a text such as ``0.71*** | **``, "" without a correlation.
    """
    rho = correlations.rho
    texts = rho.map("{:.2f}".format)
    stars_of_paper = stars(correlations.p)
    stars_of_holm = stars(correlations.p_holm)
    cells = texts + stars_of_paper + " | " + stars_of_holm
    cells = cells.where(rho.notna(), "")
    table = correlations.assign(cell=cells)

    names = ["model", "outcome"]
    wide = table.pivot(index="predictor", columns=names, values="cell")
    # `pivot` sorts: rows and columns go back into the order of the paper.
    columns = pd.MultiIndex.from_frame(table[names].drop_duplicates())
    return wide.loc[table.predictor.unique(), columns]


def ratings_of_ends(ratings: Mapping[ModelVersion, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Select the ratings that have the words of Table 9.

    Parameters
    ----------
    ratings : mapping
        The ratings by map.

    Returns
    -------
    dict of DataFrame
        The ratings of EXTENDED by model; models that were not asked for all `ENDS` are left out.
    """
    of_models = {}
    for (model, version), table in ratings.items():
        has_all_words = set(ENDS).issubset(table.columns)
        if version == "EXTENDED" and has_all_words:
            of_models[model] = table
    return of_models


def ends_of_words(ratings_of_models: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Find the groups at either end of each word of Table 9.

    Parameters
    ----------
    ratings_of_models : mapping
        From `ratings_of_ends`.

    Returns
    -------
    DataFrame
        ``model``, ``word`` and the columns of `statistics.extremes`; no row without a model.
    """
    tables = []
    for model, ratings in ratings_of_models.items():
        for word in ENDS:
            ends = extremes(ratings, word)
            ends.insert(0, "model", model)
            ends.insert(1, "word", word)
            tables.append(ends)
    if not tables:
        return pd.DataFrame(columns=["model", "word"])
    return pd.concat(tables, ignore_index=True)


def table9(ends: pd.DataFrame) -> pd.DataFrame:
    """Lay out the groups at the ends of each word as Table 9 does.

    Parameters
    ----------
    ends : DataFrame
        ``model``, ``word`` and the columns of `statistics.extremes`.

    Returns
    -------
    DataFrame
        Ranks by word: the group, its mean, its variance over rounds in parentheses, and how many
        groups are tied.
    """
    means = ends["mean"].map(" {:.2f}".format)

    # A group of one round has no variance.
    has_variance = ends["variance"].notna()
    variances = ends["variance"].map(" ({:.2f})".format)
    variances = variances.where(has_variance, "")

    # A group that is tied with none counts itself alone.
    is_tied = ends["tied"] > 1
    ties = ends["tied"].map(", {} tied".format)
    ties = ties.where(is_tied, "")

    cells = ends.group + means + variances + ties
    table = ends.assign(cell=cells)
    ranks = ["model", "end", "rank"]
    wide = table.pivot(index=ranks, columns="word", values="cell")
    # `pivot` sorts: models and words go back into their order.
    models = table.model.unique()
    return wide.reindex(index=models, columns=ENDS, level="model")


def _spelt(names: Sequence[str], number: int, column: str, source: str | None) -> pd.Index:
    """Spell names as a source's rows of a printed table do.

    Case and spaces do not matter. Without a source, all names keep their spelling, and so does a
    name that is not printed.
    """
    table = published.load("stereomap", number)
    column_of_source = "source" if "source" in table else "model"
    is_of_source = table[column_of_source] == source
    printed_names = table[column][is_of_source]

    printed_spelling = {}
    for name in printed_names:
        folded = _folded(name)
        printed_spelling[folded] = name

    spelt = []
    for name in names:
        folded = _folded(name)
        # A name that is not printed keeps its spelling.
        spelt.append(printed_spelling.get(folded, name))
    return pd.Index(spelt, name=column)


def _folded(name: str) -> str:
    """Write a name in lower case without spaces."""
    return name.replace(" ", "").lower()


def _equal_pairs(number: int, source: str | None) -> pd.Series:
    """Select the groups of Table 2 or 5 with the same digits printed for competence and warmth."""
    table = published.load("stereomap", number)
    rows = table[table.source == source]
    rows = rows[rows.competence.notna()]
    is_equal = rows.competence_printed == rows.warmth_printed
    return rows.group[is_equal]


def _centroids_as_printed(number: int, clusters: Clusters, source: str | None) -> pd.DataFrame:
    """Give each group the centroid of its cluster, under its printed name.

    The slip of the released code is repeated: competence is the warmth where the print has C = W.
    """
    # Each group gets the centroid of its cluster.
    labels = clusters.labels
    centroids = clusters.centroids[AXES].reindex(labels)
    centroids = centroids.set_axis(labels.index)
    if number == 5:
        # The columns of Table 5 do not agree on the names of these two groups.
        second_names = {
            "Elderly": "Elderly people",
            "Women": "Woman",
        }
        has_second_name = centroids.index.isin(list(second_names))
        renamed = centroids[has_second_name].rename(second_names)
        centroids = pd.concat([centroids, renamed])
    groups = _spelt(centroids.index, number, "group", source)
    centroids = centroids.set_axis(groups)

    # Where the print has the warmth twice, the number beside it is the warmth, too.
    groups_with_slip = _equal_pairs(number, source)
    is_slip = groups.isin(groups_with_slip)
    competence = centroids.Competence.mask(is_slip, centroids.Warmth)
    return centroids.assign(Competence=competence)


def numbers_of(
    model: str,
    clusters: Mapping[ModelVersion, Clusters],
    correlations: Mapping[str, pd.DataFrame],
    ratings: Mapping[str, pd.DataFrame],
) -> list[tuple]:
    """Collect the numbers of one model that the paper prints in Tables 2, 5, 8 and 9.

    Parameters
    ----------
    model : str
        The model.
    clusters : mapping
        The clusters of each map.
    correlations : mapping
        Table 8 by model, from `statistics.correlations`.
    ratings : mapping
        The ratings by model, with the words of Table 9.

    Returns
    -------
    list of tuple
        As :func:`ingroup.published.beside` takes them.
    """
    source = published.model_of("stereomap", model)
    numbers = []
    for version, number in TABLES.items():
        key = (model, version)
        if key in clusters:
            centroids = _centroids_as_printed(number, clusters[key], source)
            for axis in AXES:
                column = axis.lower()
                numbers.append((number, column, centroids[axis]))

    if model in correlations:
        # Table 8 has another word for this feeling.
        predictor_names = {"Admire": "Admiration"}
        table = correlations[model].replace({"predictor": predictor_names})
        behaviours = _spelt(table.outcome, 8, "behavior", source)
        rhos = table.set_index(["predictor", behaviours]).rho
        numbers.append((8, "spearman_rho", rhos))

    if model in ratings:
        by_group = ratings[model].groupby("group")[ENDS]
        by_statistic = {
            "mean": by_group.mean(),
            "variance": by_group.var(),
        }
        words = _spelt(ENDS, 9, "dimension", source)
        for column, table in by_statistic.items():
            groups = _spelt(table.index, 9, "group", source)
            named = table.set_axis(groups).set_axis(words, axis=1)
            numbers.append((9, column, named.unstack()))
    return numbers


def mark_printed_slips(versus: pd.DataFrame) -> pd.DataFrame:
    """Mark the pairs of Tables 2 and 5 whose competence is printed as the warmth.

    Parameters
    ----------
    versus : DataFrame
        From :func:`ingroup.published.beside_each`.

    Returns
    -------
    DataFrame
        The comparison with the column ``mark``, "" where nothing is marked.
    """
    marks = []
    for row in versus.itertuples():
        mark = ""
        if row.table in TABLES.values():
            source = published.model_of("stereomap", row.model)
            groups = _equal_pairs(row.table, source)
            # In Tables 2 and 5 a row of the comparison is a group.
            if groups.eq(row.row).any():
                mark = "the print has C = W"
        marks.append(mark)
    return versus.assign(mark=marks)


def numbers_of_words(
    model: str,
    traits: pd.DataFrame,
    lexicon: dictionary.Lexicon,
    mappings: dict[str, str],
    sensitivity: pd.DataFrame,
    between_prompts: pd.DataFrame,
    ablated: str,
) -> list[tuple]:
    """Collect the numbers of one model that the paper prints in Tables 13 to 15 and appendix L.

    Parameters
    ----------
    model : str
        The model.
    traits : DataFrame
        ``model`` and ``keyword``, one row for each time that a reply has it.
    lexicon : Lexicon
        The dictionary.
    mappings : dict
        Keywords that stand for words of the dictionary.
    sensitivity : DataFrame
        Index ``model`` and ``prompt``, from `sensitivity.table14`.
    between_prompts : DataFrame
        From `sensitivity.mean_of_axes`.
    ablated : str
        The printed name of the model whose ablations the paper prints.

    Returns
    -------
    list of tuple
        As :func:`ingroup.published.beside` takes them; none for a model that is not printed.
    """
    source = published.model_of("stereomap", model)
    if source is None:
        return []

    keywords = traits.keyword[traits.model == model]
    coverage = _coverage_as_printed(keywords, lexicon, mappings)
    numbers: list[tuple] = [(15, "coverage_pct", coverage)]

    by_prompt = sensitivity.loc[[model]].droplevel("model")
    by_prompt = by_prompt.dropna(axis=1, how="all")
    paper_prompt = stimuli.ablations()[0]
    of_paper = by_prompt.loc[paper_prompt]
    for end in ("mean", "max"):
        by_axis = _variation_over_rounds(of_paper, end)
        numbers.append((13, f"cv_{end}", by_axis))

    if source == ablated:
        by_metric = _table14_as_printed(by_prompt)
        numbers.append((14, "value", by_metric))
        of_model = between_prompts[between_prompts.model == model]
        by_form = of_model.set_index("prompt").rename_axis("prompt_type")
        numbers.append(("appendix_l", "cv_mean", by_form.cv_mean))
    return numbers


def _variation_over_rounds(of_prompt: pd.Series, end: str) -> pd.Series:
    """Select the mean or max variation of each axis under one prompt, as Table 13 names the axes.

    A model without rounds to compare has NaN.
    """
    variation = {}
    for axis in AXES:
        name = f"{axis} CV {end}, all rounds"
        # A model without rounds to compare has no such number.
        variation[axis] = of_prompt.get(name)
    return pd.Series(variation, dtype=float).rename_axis("dimension")


def _table14_as_printed(by_prompt: pd.DataFrame) -> pd.Series:
    """List the numbers of one model by prompt and metric, under the names of Table 14."""
    # The variation over all rounds is in Table 13 instead.
    is_over_all_rounds = by_prompt.columns.str.endswith("all rounds")
    table = by_prompt.loc[:, ~is_over_all_rounds]

    metrics = table.columns.str.lower().str.replace(" ", "_")
    table = table.set_axis(metrics, axis=1)
    table = table.rename_axis("prompt_type").rename_axis(columns="metric")
    return table.stack()


def _coverage_as_printed(
    keywords: pd.Series, lexicon: dictionary.Lexicon, mappings: dict[str, str]
) -> pd.Series:
    """Compute the percentage of keywords that each of the paper's three stages covers."""
    lemmas = dictionary.lemmatizer("paper")
    matches = dictionary.find(keywords, lexicon, lemmas=lemmas, mappings=mappings, way="paper")
    # All keywords are of one model, whose name does not matter here.
    covered = dictionary.coverage(matches.assign(model=""), by="model")
    is_printed = covered.printed_stage != ""
    by_stage = covered[is_printed].set_index("printed_stage").rename_axis("stage")
    return by_stage.coverage_pct


def table13(sensitivity: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Lay out the variation over rounds as Table 13 does, the models of the run below the paper's.

    Parameters
    ----------
    sensitivity : DataFrame
        Index ``model`` and ``prompt``, from `sensitivity.table14`.
    models : sequence of str
        The models of the run; models without rounds to compare are left out.

    Returns
    -------
    DataFrame
        A row per model, a column per axis.
    """
    printed = published.load("stereomap", 13)
    table = printed.pivot(index="model", columns="dimension", values="cv_mean")

    paper_prompt = stimuli.ablations()[0]
    # Table 13 names its columns by the axes.
    columns_here = [f"{axis} CV mean, all rounds" for axis in table]
    for model in models:
        if (model, paper_prompt) in sensitivity.index:
            numbers = sensitivity.loc[(model, paper_prompt), columns_here]
            name = f"{label(model)} (here)"
            table.loc[name] = numbers.to_numpy()

    # A model of one round has no variation.
    return table.astype(float).dropna()
