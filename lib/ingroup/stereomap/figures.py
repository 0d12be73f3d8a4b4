"""The paper's tables in its own layout, its models first, and Figures 2, 3, 5 and 6.

Figures are drawn from written tables. Names in a map stand on a coarse grid, at places that depend
on whole numbers alone, so a difference in the last digit of a position moves no letter.
"""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.lib.stride_tricks import sliding_window_view

from ingroup import published
from ingroup.stereomap.answers import MAP
from ingroup.stereomap.maps import AXES
from ingroup.stereomap.stimuli import ABLATIONS, PAPER
from ingroup.style import TWO_COLUMNS

TABLE = {"ORIGINAL": 2, "EXTENDED": 5}  # the printed clusters of a version
WORDS = {  # Table 8 has other words than Table 4
    "Admire": "Admiration",
    "ActiveFacilitation": "Active facilitation",
    "Active Harm": "Active harm",
    "PassiveFacilitation": "Passive facilitation",
    "Passive Harm": "Passive harm",
}
LEVELS = [-1, 0.001, 0.01, 0.05, 1]  # of p, and Table 8's marks between them
STARS = ["***", "**", "*", ""]

LEAST_SPAN = 0.4  # points; a panel that is filled by a tenth of a point looks like a finding
TYPE = 5.0  # points, of the names in a map
WIDTH = 0.61  # of a letter, in heights of the type
LINE = 1.25  # of a line, in heights of the type


# ---- tables


def printed_groups(version: str) -> pd.DataFrame:
    """Read the printed groups of Table 2 or 5, and the centroids of their clusters.

    Returns
    -------
    DataFrame
        ``source``, ``cluster`` (in the order of print), ``group``, `AXES` and ``sign``. Bard gave
        no position to some groups: NaN.
    """
    table = published.load("stereomap", TABLE[version])
    names = {"competence": "Competence", "warmth": "Warmth", "cluster_order": "cluster"}
    return table.rename(columns=names)


def centroids(version: str) -> pd.DataFrame:
    """List the printed clusters: ``source``, ``name`` (a group, and how many others), `AXES`.

    Where both axes are printed alike (1.78 = 1.78), the released code gave competence the warmth.
    """
    groups = printed_groups(version).dropna()
    by_cluster = groups.groupby(["source", "cluster"], sort=False)
    table = by_cluster.first()
    n_others = by_cluster.size() - 1
    table["name"] = table.group + " +" + n_others.astype(str)
    return table.reset_index()


def cluster_table(version: str, clustered: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
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
    theirs = printed_groups(version)
    members = clustered[[*MAP, "cluster", "group"]]
    of_version = tests[tests.version == version]
    ours = members.merge(of_version)
    names = ours.group.str.casefold()
    printed_names = theirs.group.str.casefold()
    is_printed = names.isin(printed_names)
    ours = ours[is_printed]
    ours = ours.sort_values("cluster", kind="stable")

    # A single group has no test.
    ours["sign"] = ours.sign.replace("", "?")
    ours = ours.rename(columns={"model": "source"})
    both = pd.concat([theirs, ours])
    competence = both.Competence.map("{:.2f}".format)
    warmth = both.Warmth.map("{:.2f}".format)
    sign = both.sign.fillna("")
    both["C, W"] = competence + sign + warmth
    lacks_position = both.Warmth.isna()
    is_further = both.duplicated(["source", "cluster"])
    both.loc[lacks_position, "C, W"] = "-"
    both.loc[is_further, "C, W"] = ""

    columns = {}
    by_source = both.groupby("source", sort=False)
    for source, rows in by_source:
        shown = rows[["group", "C, W"]]
        columns[source] = shown.reset_index(drop=True)
    table = pd.concat(columns, axis=1)
    return table.fillna("")


def correlation_table(here: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 8: predictors by source and behaviour, with stars of uncorrected p.

    Parameters
    ----------
    here : DataFrame
        ``model`` and the columns of `maps.correlations`.
    """
    theirs = published.load("stereomap", 8)
    theirs["stars"] = theirs.significance.fillna("")
    ours = here.replace({"predictor": WORDS, "outcome": WORDS})
    marks = pd.cut(ours.p, LEVELS, right=False, labels=STARS)
    stars = marks.astype("str")
    ours["stars"] = stars.fillna("")
    names = {
        "model": "source",
        "outcome": "behavior",
        "rho": "spearman_rho",
    }
    ours = ours.rename(columns=names)

    both = pd.concat([theirs, ours])
    rho = both.spearman_rho.map("{:.2f}".format)
    both["text"] = rho + both.stars
    return _wide(both, ["predictor"], ["source", "behavior"])


def extremes_table(here: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 9: the ends of each word by model, the variance over rounds in parentheses.

    Parameters
    ----------
    here : DataFrame
        ``model`` and the columns of `maps.extremes`.
    """
    theirs = published.load("stereomap", 9)
    theirs = theirs.rename(columns={"dimension": "item"})
    both = pd.concat([theirs, here])
    mean = both["mean"].map(" {:.2f}".format)
    variance = both.variance.map(" ({:.2f})".format, na_action="ignore")
    in_parentheses = variance.fillna("")
    both["text"] = both.group + mean + in_parentheses
    return _wide(both, ["item", "end", "rank"], ["model"])


def sensitivity_table() -> pd.DataFrame:
    """Read Tables 13 and 14 as one: index ``model`` and ``ablation``, a column for each measure."""
    measures = ["cv_mean", "cv_max"]
    table13 = published.load("stereomap", 13)
    table13 = table13.pivot(index="model", columns="dimension", values=measures)
    table13.columns = [f"{axis.lower()}_{measure}" for measure, axis in table13]
    table13["ablation"] = PAPER

    table14 = published.load("stereomap", 14)
    table14 = table14.pivot(index="prompt_type", columns="metric", values="value")
    table14 = table14.loc[ABLATIONS]
    table14 = table14.rename_axis("ablation").reset_index()
    table14["model"] = "GPT-3.5"

    # Table 14 repeats this model's row of Table 13.
    others = table13.loc[["DAVINCI", "BARD"]]
    both = pd.concat([others.reset_index(), table14])
    return both.set_index(["model", "ablation"])


def _wide(table, index, columns):
    """Spread the texts of a table over columns, all in the order of the table."""
    keys = index + columns
    cells = table.set_index(keys).text
    return cells.unstack(columns, fill_value="", sort=False)


# ---- figures


def maps(
    printed: pd.DataFrame, here: pd.DataFrame, columns: int, named: Sequence[str] = ()
) -> Figure:
    """Draw maps of the groups: a row of printed centroids, and the maps of this run below.

    Parameters
    ----------
    printed : DataFrame
        ``source``, ``name`` and `AXES` of each printed cluster.
    here : DataFrame
        ``model``, ``group``, ``cluster`` and `AXES`.
    columns : int
        How many maps of this run stand in a row.
    named : sequence of str
        The groups whose names are written besides the outermost ones, all if empty.

    Returns
    -------
    Figure
        On the grey line warmth equals competence. A colour is a cluster.
    """
    n_printed = printed.source.nunique()
    n_maps = here.model.nunique()
    n_rows = max(1, math.ceil(n_maps / columns))
    height_above = TWO_COLUMNS / n_printed
    height_below = n_rows * TWO_COLUMNS / columns
    heights = [height_above, height_below]
    size = (TWO_COLUMNS, sum(heights))
    fig = plt.figure(figsize=size)
    parts = fig.subfigures(2, height_ratios=heights)
    # Names are placed in panels of a fixed size.
    for part, height in zip(parts, heights, strict=True):
        edge = 0.42 / height
        part.subplots_adjust(
            left=0.06,
            right=0.99,
            bottom=edge,
            top=1 - edge,
            wspace=0.25,
            hspace=0.3,
        )

    above, below = parts
    sources = printed.groupby("source", sort=False)
    for number, (source, clusters) in enumerate(sources, start=1):
        ax = above.add_subplot(1, n_printed, number)
        places = clusters.set_index("name")
        title = f"{source}\nprinted centroids"
        _map(ax, places, title, 3.6)

    models = here.groupby("model", sort=False)
    for number, (model, points) in enumerate(models, start=1):
        ax = below.add_subplot(n_rows, columns, number)
        places = points.set_index("group")
        axes = places[AXES]
        spread = np.ptp(axes, axis=0).max()
        outermost = [*axes.idxmin(), *axes.idxmax()]
        names = [*named, *outermost] if named else []
        title = f"{model}\nspread over {spread:.2f} of 4 points"
        span = max(LEAST_SPAN, 1.1 * spread)
        _map(ax, places, title, span, names)
    return fig


def _map(ax, points, title, span, names=()):
    """Draw one map, `span` points wide and high, and write some names, all if none is given."""
    rounded = points[AXES].round(4)
    look = {"marker": "X", "s": 16, "c": "black"}
    if "model" in points:
        number = points.cluster.astype(int)
        look = {"s": 7, "c": "C" + number.astype(str)}
    ax.scatter(rounded.Competence, rounded.Warmth, linewidth=0, **look)
    ax.axline((3, 3), slope=1, color="lightgrey", linewidth=0.6, zorder=0)

    lowest = rounded.min()
    highest = rounded.max()
    middle = (lowest + highest) / 2
    corner = middle - span / 2
    left, bottom = corner.round(4)
    ax.set_xlim(left, left + span)
    ax.set_ylim(bottom, bottom + span)
    ax.set_title(title, fontsize=6.5)
    ax.set_xlabel("Competence", fontsize=6, labelpad=1)
    ax.set_ylabel("Warmth", fontsize=6, labelpad=1)
    ax.tick_params(labelsize=5.5, length=2, pad=1)

    from_corner = rounded - [left, bottom]
    places = from_corner / span
    is_named = places.index.isin(names or places.index)
    named = places[is_named]
    write_names(ax, named, places)


def write_names(ax: Axes, named: pd.DataFrame, occupied: pd.DataFrame) -> None:
    """Write names beside points, none over another name or a point.

    Parameters
    ----------
    ax : Axes
        A panel of fixed size.
    named, occupied : DataFrame
        The points that are named, by name, and all points: shares of the panel's width and height.

    Notes
    -----
    The panel is a grid of letters and lines. Names come in alphabetical order, each into the free
    cells that are nearest to its point; ties go to the lowest line, then to the left.
    """
    panel = ax.get_window_extent()
    points_of_type = ax.figure.dpi / 72 * TYPE
    n_columns = int(panel.width / points_of_type / WIDTH)
    n_lines = int(panel.height / points_of_type / LINE)
    taken = np.zeros((n_lines, n_columns), dtype=bool)
    for _, x, y in occupied.itertuples():
        column = int(x * n_columns)
        line = int(y * n_lines)
        # A point is wider than a letter.
        first = max(0, column - 1)
        taken[line, first : column + 2] = True

    for name, x, y in named.sort_index().itertuples():
        column = int(x * n_columns)
        line = int(y * n_lines)
        length = len(name) + 2  # a blank at both ends
        at_line, start = _free_place(taken, length, column, line)
        taken[at_line, start : start + length] = True

        left = (start + 1) / n_columns
        height = (at_line + 0.5) / n_lines
        right = left + len(name) / n_columns
        nearest = np.clip(x, left, right)
        inside = ax.transAxes
        ax.text(
            left,
            height,
            name,
            fontsize=TYPE,
            va="center_baseline",
            transform=inside,
        )
        ax.plot(
            [x, nearest],
            [y, height],
            color="grey",
            linewidth=0.25,
            transform=inside,
        )


def _free_place(taken, length, column, line):
    """Find the line and column where the nearest run of free cells starts."""
    cells = sliding_window_view(taken, length, axis=1)
    is_taken = cells.any(axis=2)
    lines, starts = np.indices(is_taken.shape)
    ends = starts + length - 1
    nearest = np.clip(column, starts, ends)

    across = column - nearest
    upwards = 3 * (line - lines)
    distance = across**2 + upwards**2
    distance[is_taken] = distance.max() + 1
    place = distance.argmin()
    return np.unravel_index(place, distance.shape)


def by_cluster(positions: pd.DataFrame, scores: list[str]) -> Figure:
    """Draw the scores of the groups of each cluster (Figure 3): a row for each model.

    Parameters
    ----------
    positions : DataFrame
        ``model``, ``cluster`` and the scores of each group.
    scores : list of str
        Emotions and behaviours of Table 4.
    """
    long = positions.melt(["model", "cluster"], scores, "score", "mean rating")
    between_words = r"(?<=[a-z]) ?(?=[A-Z])"
    long["score"] = long.score.str.replace(between_words, "\n", regex=True)
    long["cluster"] = long.cluster.astype(int)
    grid = sns.catplot(
        long,
        kind="box",
        x="cluster",
        y="mean rating",
        hue="cluster",
        col="score",
        row="model",
        palette="colorblind",
        legend=False,
        height=1.3,
        aspect=0.6,
        linewidth=0.5,
        fliersize=0.8,
    )
    grid.set(ylim=(0.8, 5.2)).set_titles("")

    for score, ax in zip(grid.col_names, grid.axes[0], strict=True):
        ax.set_title(score, fontsize=6.5)
    for model, ax in zip(grid.row_names, grid.axes[:, 0], strict=True):
        ax.set_ylabel(f"{model}\nmean rating", fontsize=5.5)
    return grid.figure
