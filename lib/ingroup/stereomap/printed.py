"""The paper's tables in its own layout: its models first, then those of this run."""

from typing import Any

import numpy as np
import pandas as pd

from ingroup import published
from ingroup.stereomap.answers import MAP
from ingroup.stereomap.maps import AXES
from ingroup.stereomap.stimuli import ABLATIONS, PAPER

NUMBER = {"ORIGINAL": 2, "EXTENDED": 5}  # the table that prints the clusters of a version
WORDS = {  # Table 8 has other words than Table 4
    "Admire": "Admiration",
    "ActiveFacilitation": "Active facilitation",
    "Active Harm": "Active harm",
    "PassiveFacilitation": "Passive facilitation",
    "Passive Harm": "Passive harm",
}
STARS = {0.001: "***", 0.01: "**", 0.05: "*"}


def groups(version: str) -> pd.DataFrame:
    """Read the printed groups of Table 2 or 5, and the centroids of their clusters.

    Returns
    -------
    DataFrame
        ``source``, ``cluster`` (in the order of print), ``group``, `AXES` and ``sign``. Bard gave
        no position to some groups: NaN.
    """
    table = published.load("stereomap", NUMBER[version])
    names = {"competence": "Competence", "warmth": "Warmth", "cluster_order": "cluster"}
    return table.rename(columns=names)


def centroids(version: str) -> pd.DataFrame:
    """List the printed clusters: ``source``, ``name`` (a group, and how many others), `AXES`.

    Where both axes are printed alike (1.78 = 1.78), the released code gave competence the warmth.
    """
    by_cluster = groups(version).dropna().groupby(["source", "cluster"], sort=False)
    table = by_cluster.agg({"group": ["first", "size"], **dict.fromkeys(AXES, "first")})
    table.columns = ["first", "size", *AXES]
    table["name"] = table["first"] + " +" + (table["size"] - 1).astype(str)
    return table.reset_index("source")


def clusters(version: str, clustered: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 2 or 5: the groups of each source by cluster.

    Parameters
    ----------
    version : {"ORIGINAL", "EXTENDED"}
        The version of the prompts.
    clustered, tests : DataFrame
        From `maps.cluster_maps` and `maps.cluster_tests`, one reading for each model.

    Returns
    -------
    DataFrame
        For each source the group and, in the first row of a cluster, the centroid, such as
        "3.86>3.08". Of our models, only groups that the paper's table has are shown.
    """
    theirs = groups(version)
    of_version = clustered[clustered.version == version].dropna(subset="cluster")
    is_printed = of_version.group.str.casefold().isin(theirs.group.str.casefold())
    signs = tests[[*MAP, "cluster", *AXES, "sign"]]
    ours = of_version.loc[is_printed, [*MAP, "cluster", "group"]].merge(signs)
    ours = ours.rename(columns={"model": "source"}).sort_values("cluster", kind="stable")

    columns = {}
    for source, rows in pd.concat([theirs, ours]).groupby("source", sort=False):
        # A single group has no test, and Bard's last groups have no position.
        signs = rows.sign.replace("", "?").fillna("")
        texts = [rows[axis].map("{:.2f}".format) for axis in AXES]
        centroid = (texts[0] + signs + texts[1]).where(rows.Warmth.notna(), "-")
        is_first = ~rows.cluster.duplicated()
        columns[source, "group"] = rows.group.tolist()
        columns[source, "C, W"] = centroid.where(is_first, "").tolist()
    return pd.DataFrame({name: pd.Series(cells) for name, cells in columns.items()}).fillna("")


def stars(p: pd.Series) -> pd.Series:
    """Mark p as Table 8 does."""
    levels = [p < level for level in STARS]
    return pd.Series(np.select(levels, list(STARS.values()), ""), p.index)


def correlations(here: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 8: predictors by source and behaviour, with stars of uncorrected p.

    Parameters
    ----------
    here : DataFrame
        ``model`` and the columns of `maps.correlations`.
    """
    theirs = published.load("stereomap", 8)
    ours = here.replace({"predictor": WORDS, "outcome": WORDS})
    ours["significance"] = stars(here.p)
    names = {"model": "source", "outcome": "behavior", "rho": "spearman_rho"}
    both = pd.concat([theirs, ours.rename(columns=names)])
    both["text"] = both.spearman_rho.map("{:.2f}".format) + both.significance.fillna("")
    return _wide(both, "predictor", ["source", "behavior"])


def extremes(here: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 9: the ends of each word by model, the variance over rounds in parentheses.

    Parameters
    ----------
    here : DataFrame
        ``model`` and the columns of `maps.extremes`.
    """
    theirs = published.load("stereomap", 9).rename(columns={"dimension": "item"})
    both = pd.concat([theirs, here])
    variance = both.variance.map(" ({:.2f})".format).where(both.variance.notna(), "")
    both["text"] = both.group + both["mean"].map(" {:.2f}".format) + variance
    return _wide(both, ["item", "end", "rank"], ["model"])


def sensitivity() -> pd.DataFrame:
    """Read Tables 13 and 14 as one: index ``model`` and ``ablation``, a column for each measure."""
    table13 = published.load("stereomap", 13)
    table13 = table13.pivot(index="model", columns="dimension", values=["cv_mean", "cv_max"])
    table13.columns = [f"{axis.lower()}_{measure}" for measure, axis in table13]

    table14 = published.load("stereomap", 14)
    table14 = table14.pivot(index="prompt_type", columns="metric", values="value")
    # Table 14 is about GPT-3.5, and repeats its row of Table 13.
    by_model = {model: table13.loc[[model]].set_axis([PAPER]) for model in ("DAVINCI", "BARD")}
    return pd.concat(by_model | {"GPT-3.5": table14.loc[ABLATIONS]}, names=["model", "ablation"])


def _wide(table: pd.DataFrame, index: Any, columns: list[str]) -> pd.DataFrame:
    """Spread the texts of a table over columns, all in the order of the table."""
    wide = table.pivot(index=index, columns=columns, values="text")
    return wide.reindex(
        index=table.set_index(index).index.unique(),
        columns=table.set_index(columns).index.unique(),
    ).fillna("")
