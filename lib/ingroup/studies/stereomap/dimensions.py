"""Dimensions of stereotypes that the keywords of groups and clusters belong to: Figures 4, 7 and 8.

The tables of keywords come from `list_keywords`. Their ``word`` is the dictionary's word for the
keyword, from :func:`ingroup.dictionary.find`. A keyword outside the dictionary has no word.
"""

from collections.abc import Mapping

import pandas as pd

from ingroup import keywords
from ingroup.dictionary import Lexicon
from ingroup.studies.stereomap.clustering import Clusters

CLUSTER_COLUMNS = ["model", "way", "cluster", "dimension", "share", "direction", "score", "n"]
GROUP_COLUMNS = ["group", "dimension", "share", "direction", "score", "n", "model", "sum"]


def list_keywords(replies: pd.DataFrame) -> pd.DataFrame:
    """List the keywords that replies give.

    Parameters
    ----------
    replies : DataFrame
        Replies, as `answers.load_jobs` returns them.

    Returns
    -------
    DataFrame
        One row for each time that a reply has a keyword: ``model``, ``group``, ``round`` and
        ``keyword``.
    """
    asked_for_list = replies["list"] != ""
    # A reply has a tuple of keywords; an empty one becomes a missing keyword.
    rows = replies[asked_for_list].explode("keywords")
    rows = rows.dropna(subset="keywords")
    rows = rows.rename(columns={"keywords": "keyword"})
    columns = [
        "model",
        "group",
        "round",
        "keyword",
    ]
    return rows[columns].reset_index(drop=True)


def cluster_dimensions(placed: pd.DataFrame, lexicon: Lexicon) -> pd.DataFrame:
    """Score each dimension by the keywords of each cluster, in the sound and the released way.

    Parameters
    ----------
    placed : DataFrame
        Keywords with the ``cluster`` of their group, from `clustering.with_clusters`.
    lexicon : Lexicon
        The dictionary.

    Returns
    -------
    DataFrame
        Index ``model`` and ``way``: "sound" for :func:`ingroup.keywords.scores`, "released" for
        :func:`ingroup.keywords.released_scores`. Models without a word of the dictionary are left
        out.
    """
    tables = {}
    for model, rows in placed.groupby("model", sort=False):
        if rows.word.isna().all():
            continue
        sound = keywords.scores(rows, lexicon, "cluster", within="group")
        tables[model, "sound"] = sound
        tables[model, "released"] = keywords.released_scores(rows, lexicon)

    if not tables:
        empty = pd.DataFrame(columns=CLUSTER_COLUMNS)
        return empty.set_index(["model", "way"])
    table = pd.concat(tables, names=["model", "way"])
    # The third level numbers the rows of each table.
    return table.droplevel(2)


def strongest_dimensions(scored: pd.DataFrame) -> pd.DataFrame:
    """Lay out the strongest dimensions of each cluster, with their sign.

    Parameters
    ----------
    scored : DataFrame
        From `cluster_dimensions`, with at least one model.

    Returns
    -------
    DataFrame
        Index ``model``, ``way`` and ``cluster``; a column per rank, the strongest first.
    """
    tables = {}
    for key, rows in scored.groupby(level=["model", "way"], sort=False):
        rows = rows.reset_index(drop=True)
        tables[key] = keywords.top(rows)

    table = pd.concat(tables, names=["model", "way"])
    table = table.reset_index(["model", "way"])
    table["cell"] = table.dimension + " " + table.sign
    return table.pivot(
        index=["model", "way", "cluster"],
        columns="rank",
        values="cell",
    )


def cluster_names(clusters: Mapping[str, Clusters]) -> pd.DataFrame:
    """List the names of the clusters of each model.

    Parameters
    ----------
    clusters : mapping
        The clusters by model.

    Returns
    -------
    DataFrame
        ``model``, ``cluster`` and ``name``.
    """
    names = {}
    for model, of_model in clusters.items():
        names[model] = of_model.centroids.name

    table = pd.concat(names, names=["model", "cluster"])
    return table.reset_index()


def group_dimensions(traits: pd.DataFrame, lexicon: Lexicon) -> pd.DataFrame:
    """Score each dimension by the keywords of each group.

    Parameters
    ----------
    traits : DataFrame
        Keywords.
    lexicon : Lexicon
        The dictionary.

    Returns
    -------
    DataFrame
        The columns of :func:`ingroup.keywords.scores`, ``model``, and ``sum``, the paper's sum of
        directions, which grows with the number of keywords. Models without a word of the dictionary
        are left out.
    """
    tables = []
    for model, rows in traits.groupby("model", sort=False):
        if rows.word.isna().all():
            continue
        table = keywords.scores(rows, lexicon)
        table["model"] = model
        table["sum"] = table.score * table.n
        tables.append(table)

    if not tables:
        return pd.DataFrame(columns=GROUP_COLUMNS)
    return pd.concat(tables)
