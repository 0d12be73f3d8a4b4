"""Tables of StereoMap in the paper's layout, and the numbers to set beside the printed ones.

A map is named by its model and version, ``(model, "EXTENDED")``.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ingroup import dictionary, published
from ingroup.models import label
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.clustering import Clusters
from ingroup.studies.stereomap.statistics import AXES, extremes

FISKE = "Fiske et al. (2002)"
TABLES = {"ORIGINAL": 2, "EXTENDED": 5}  # the table that prints the map of each version
ENDS = ["Traditional", "Conservative", "Wealthy", "High-status"]  # the words of Table 9
CELLS = ["group", "centroid", "sign_as_printed"]

Map = tuple[str, str]


def cluster_lists(
    labels: Mapping[Map, pd.Series], tests: Mapping[Map, pd.DataFrame]
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
        ``row``, ``group``, ``cluster``; ``centroid`` and ``sign_as_printed`` in the first row of a
        cluster; ``printed``, whether the paper's table has the group; ``model``; ``version``.
    """
    lists = [_cluster_list(key, labels[key], tests[key]) for key in labels]
    if any(version == "ORIGINAL" for _, version in labels):
        lists.insert(0, _people_list())

    table = pd.concat(lists, ignore_index=True)
    in_map = table.groupby(["source", "version", "printed"], sort=False)
    table.insert(0, "row", in_map.cumcount() + 1)
    return table


def _cluster_list(key: Map, labels: pd.Series, tests: pd.DataFrame) -> pd.DataFrame:
    """The groups of one map by cluster, those that the paper's table has first."""
    model, version = key
    # Print and groups.csv differ in the capitals of some names.
    in_print = published.load("stereomap", TABLES[version]).group.str.casefold()
    rows = labels.rename("cluster").rename_axis("group").reset_index()
    rows["printed"] = rows.group.str.casefold().isin(in_print)
    rows = rows.sort_values(["cluster", "printed"], ascending=[True, False], kind="stable")

    side = np.where(tests.difference > 0, ">", "<")
    conditions = [tests.finding == "significant", tests.finding == "not significant"]
    sign = pd.Series(np.select(conditions, [side, "="], "?"), tests.index)
    competence, warmth = (tests[axis].map("{:.2f}".format) for axis in AXES)
    rows["centroid"] = _in_first_row("(" + competence + sign + warmth + ")", rows.cluster)
    rows["sign_as_printed"] = _in_first_row(tests.sign, rows.cluster)
    return rows.assign(source=model, model=model, version=version)


def _in_first_row(texts: pd.Series, clusters: pd.Series) -> pd.Series:
    """The text of each cluster in the row of its first group, "" in the others."""
    return clusters.map(texts).mask(clusters.duplicated(), "")


def _people_list() -> pd.DataFrame:
    """The groups as people placed them, the first columns of Table 2."""
    rows = published.load("stereomap", 2)
    rows = rows[rows.source == FISKE].rename(columns={"cluster_order": "cluster"})
    cells = "(" + rows.competence_printed + rows.sign + rows.warmth_printed + ")"
    rows["centroid"] = cells.mask(rows.cluster.duplicated(), "")
    rows = rows[["group", "cluster", "centroid", "source"]]
    return rows.assign(printed=True, sign_as_printed="", model=np.nan, version="ORIGINAL")


def side_by_side(lists: pd.DataFrame) -> pd.DataFrame:
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
    own = lists[lists.printed]
    own = own.assign(row=own.groupby("source").cumcount() + 1)
    wide = own.pivot(index="row", columns="source", values=CELLS).swaplevel(axis=1)
    # `pivot` sorts: sources and cells go back into the order of print.
    columns = pd.MultiIndex.from_product([own.source.unique(), CELLS])
    return wide.reindex(columns=columns).fillna("")


def layouts(lists: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Lay out the lists of each version by `side_by_side`.

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
        tables[f"Table {number}"] = side_by_side(rows)
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
    count = sum((p < level).astype(int) for level in (0.05, 0.01, 0.001))
    return count.map("*".__mul__)


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
    marks = stars(correlations.p) + " | " + stars(correlations.p_holm)
    cell = correlations.rho.map("{:.2f}".format) + marks
    table = correlations.assign(cell=cell.where(correlations.rho.notna(), ""))
    wide = table.pivot(index="predictor", columns=["model", "outcome"], values="cell")
    columns = pd.MultiIndex.from_frame(table[["model", "outcome"]].drop_duplicates())
    return wide.loc[table.predictor.unique(), columns]


def ratings_of_ends(
    ratings: Mapping[Map, pd.DataFrame],
) -> dict[str, pd.DataFrame]:
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
    of_words = {}
    for (model, version), table in ratings.items():
        if version == "EXTENDED" and set(ENDS) <= set(table):
            of_words[model] = table
    return of_words


def ends_of_words(of_words: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Find the groups at either end of each word of Table 9.

    Parameters
    ----------
    of_words : mapping
        From `ratings_of_ends`.

    Returns
    -------
    DataFrame
        ``model``, ``word`` and the columns of `statistics.extremes`; no row without a model.
    """
    tables = []
    for model, ratings in of_words.items():
        for word in ENDS:
            ends = extremes(ratings, word)
            ends.insert(0, "model", model)
            ends.insert(1, "word", word)
            tables.append(ends)
    if not tables:
        return pd.DataFrame(columns=["model", "word"])
    return pd.concat(tables, ignore_index=True)


def table9(extremes: pd.DataFrame) -> pd.DataFrame:
    """Lay out the groups at the ends of each word as Table 9 does.

    Parameters
    ----------
    extremes : DataFrame
        ``model``, ``word`` and the columns of `statistics.extremes`.

    Returns
    -------
    DataFrame
        Ranks by word: the group, its mean, its variance over rounds in parentheses, and how many
        groups are tied.
    """
    tied = (", " + extremes.tied.astype(str) + " tied").where(extremes.tied > 1, "")
    variance = extremes["variance"].map(" ({:.2f})".format).where(extremes["variance"].notna(), "")
    mean = extremes["mean"].map("{:.2f}".format)
    table = extremes.assign(cell=extremes.group + " " + mean + variance + tied)
    wide = table.pivot(index=["model", "end", "rank"], columns="word", values="cell")
    return wide.reindex(index=table.model.unique(), columns=ENDS, level="model")


def _spelt(names: Sequence[str], number: int, column: str, source: str | None) -> pd.Index:
    """Names as a source's rows of a printed table spell them, whatever their case and spaces."""
    table = published.load("stereomap", number)
    whose = "source" if "source" in table else "model"
    in_print = table[column][table[whose] == source]
    known = {}
    # The printed names come last, so that their spelling wins.
    for name in [*names, *in_print]:
        known[name.replace(" ", "").lower()] = name
    spelt = [known[name.replace(" ", "").lower()] for name in names]
    return pd.Index(spelt, name=column)


def _equal_pairs(number: int, source: str | None) -> pd.Series:
    """Groups of Table 2 or 5 whose printed competence is the warmth, to the last digit."""
    table = published.load("stereomap", number)
    table = table[(table.source == source) & table.competence.notna()]
    return table.group[table.competence_printed == table.warmth_printed]


def _centroids_as_printed(number: int, clusters: Clusters, source: str | None) -> pd.DataFrame:
    """Centroids by group, as Tables 2 and 5 spell groups, with the slip of the released code."""
    labels = clusters.labels
    own = clusters.centroids[AXES].reindex(labels).set_axis(labels.index)
    # The columns of Table 5 do not agree on the names of these two groups.
    second_names = {"Elderly": "Elderly people", "Women": "Woman"} if number == 5 else {}
    again = own[own.index.isin(list(second_names))].rename(second_names)
    own = pd.concat([own, again])
    own = own.set_axis(_spelt(own.index, number, "group", source))

    slips = own.index.isin(_equal_pairs(number, source))
    own.loc[slips, "Competence"] = own.loc[slips, "Warmth"]
    return own


def numbers_of(
    model: str,
    clusters: Mapping[Map, Clusters],
    correlations: Mapping[str, pd.DataFrame],
    ratings: Mapping[str, pd.DataFrame],
) -> list[tuple]:
    """Collect the numbers of one model that the paper has in its Tables 2, 5, 8 and 9.

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
    sources = []
    for version, number in TABLES.items():
        if (model, version) in clusters:
            own = _centroids_as_printed(number, clusters[model, version], source)
            sources += [(number, axis.lower(), own[axis]) for axis in AXES]

    if model in correlations:
        # Table 8 has another word for this feeling.
        table = correlations[model].replace({"predictor": {"Admire": "Admiration"}})
        outcome = _spelt(table.outcome, 8, "behavior", source)
        sources.append((8, "spearman_rho", table.set_index(["predictor", outcome]).rho))

    if model in ratings:
        by_group = ratings[model].groupby("group")[ENDS]
        for name, ends in (("mean", by_group.mean()), ("variance", by_group.var())):
            ends = ends.set_axis(_spelt(ends.index, 9, "group", source))
            ends = ends.set_axis(_spelt(ENDS, 9, "dimension", source), axis=1)
            sources.append((9, name, ends.unstack()))
    return sources


def marked(versus: pd.DataFrame) -> pd.DataFrame:
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
        source = published.model_of("stereomap", row.model)
        is_map = row.table in TABLES.values()
        is_equal = is_map and row.row in set(_equal_pairs(row.table, source))
        marks.append("the print has C = W" if is_equal else "")
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
    """Collect the numbers of one model that the paper has in its Tables 13 to 15 and appendix L.

    Parameters
    ----------
    model : str
        The model.
    traits : DataFrame
        ``model`` and ``keyword``, as often as it was given.
    lexicon : Lexicon
        The dictionary.
    mappings : dict
        Keywords that stand for words of the dictionary.
    sensitivity : DataFrame
        Index ``model`` and ``prompt``, from `sensitivity.by_prompt`.
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
    sources: list[tuple] = [(15, "coverage_pct", coverage)]

    own = sensitivity.loc[[model]].droplevel("model")
    own = own.dropna(axis=1, how="all")
    of_paper = own.loc[stimuli.ablations()[0]]
    for end in ("mean", "max"):
        variation = {}
        for axis in AXES:
            variation[axis] = of_paper.get(f"{axis} CV {end}, all rounds")
        by_axis = pd.Series(variation, dtype=float)
        sources.append((13, f"cv_{end}", by_axis.rename_axis("dimension")))

    if source == ablated:
        sources.append((14, "value", _table14_as_printed(own)))
        is_own = between_prompts.model == model
        by_form = between_prompts[is_own].set_index("prompt")
        by_form = by_form.rename_axis("prompt_type")
        sources.append(("appendix_l", "cv_mean", by_form.cv_mean))
    return sources


def _table14_as_printed(own: pd.DataFrame) -> pd.Series:
    """The numbers of one model by prompt and metric, under the names of Table 14."""
    # Table 13 has the variation over all rounds.
    over_all_rounds = own.columns.str.endswith("all rounds")
    table = own.loc[:, ~over_all_rounds]

    metrics = table.columns.str.lower().str.replace(" ", "_")
    table = table.set_axis(metrics, axis=1)
    table = table.rename_axis("prompt_type").rename_axis(columns="metric")
    return table.stack()


def _coverage_as_printed(
    keywords: pd.Series, lexicon: dictionary.Lexicon, mappings: dict[str, str]
) -> pd.Series:
    """Percentage of keywords that each of the paper's three stages covers."""
    lemmas = dictionary.lemmatizer("paper")
    found = dictionary.find(keywords, lexicon, lemmas=lemmas, mappings=mappings, way="paper")
    covered = dictionary.coverage(found.assign(model=""), by="model")
    is_printed = covered.printed_stage != ""
    by_stage = covered[is_printed].set_index("printed_stage")
    by_stage = by_stage.rename_axis("stage")
    return by_stage.coverage_pct


def table13(sensitivity: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Lay out the variation over rounds as Table 13 does, the models of the run below the paper's.

    Parameters
    ----------
    sensitivity : DataFrame
        Index ``model`` and ``prompt``, from `sensitivity.by_prompt`.
    models : sequence of str
        The models of the run; those without rounds to compare are left out.

    Returns
    -------
    DataFrame
        A row per model, a column per axis.
    """
    printed = published.load("stereomap", 13)
    table = printed.pivot(index="model", columns="dimension", values="cv_mean")
    paper = stimuli.ablations()[0]
    # Table 13 names its columns by the axes.
    names = [f"{axis} CV mean, all rounds" for axis in table]
    for model in models:
        if (model, paper) in sensitivity.index:
            row = sensitivity.loc[(model, paper), names]
            table.loc[f"{label(model)} (here)"] = row.to_numpy()

    # A model of one round has no variation.
    table = table.astype(float)
    return table.dropna()
