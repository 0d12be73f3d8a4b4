"""Figures 2, 3, 5 and 6 of Jeoung et al., drawn from written tables.

Names in a map stand on a coarse grid, at places that depend on whole numbers alone, so a
difference in the last digit of a position moves no letter.
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

from ingroup.stereomap.maps import AXES
from ingroup.style import TWO_COLUMNS

LEAST_SPAN = 0.4  # points; a panel that is filled by a tenth of a point looks like a finding
TYPE = 5.0  # points, of the names in a map
WIDTH = 0.56  # of a letter, in heights of the type
LINE = 1.25  # of a line, in heights of the type


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
    heights = [TWO_COLUMNS / n_printed, n_rows * TWO_COLUMNS / columns]
    fig = plt.figure(figsize=(TWO_COLUMNS, sum(heights)))
    above, below = fig.subfigures(2, height_ratios=heights)
    for part, height in zip((above, below), heights, strict=True):
        # Names are placed in panels of a fixed size.
        part.subplots_adjust(0.06, 0.42 / height, 0.99, 1 - 0.42 / height, 0.25, 0.3)

    axes = above.subplots(1, n_printed)
    for ax, (source, clusters) in zip(axes, printed.groupby("source", sort=False), strict=True):
        title = f"{source}\nprinted centroids"
        _map(ax, clusters.rename(columns={"name": "group"}), title, 3.6)

    axes = below.subplots(n_rows, columns, squeeze=False)
    for ax in axes.flat[n_maps:]:
        ax.remove()
    for ax, (model, points) in zip(axes.flat, here.groupby("model", sort=False), strict=False):
        extent = points[AXES].max() - points[AXES].min()
        title = f"{model}\nspread over {extent.max():.2f} of 4 points"
        outermost = points.group[[*points[AXES].idxmin(), *points[AXES].idxmax()]]
        names = [*named, *outermost] if named else []
        _map(ax, points, title, max(LEAST_SPAN, 1.1 * extent.max()), names)
    return fig


def _map(
    ax: Axes, points: pd.DataFrame, title: str, span: float, names: Sequence[str] = ()
) -> None:
    """Draw one map, `span` points wide and high, and write some names, all if none is given."""
    rounded = points[AXES].round(4)
    looks: dict = {"marker": "X", "s": 16, "c": "black"}
    if "cluster" in points:
        colours = np.array(sns.color_palette("colorblind", 10))
        looks = {"s": 7, "c": colours[points.cluster.astype(int) % 10]}
    ax.scatter(rounded.Competence, rounded.Warmth, linewidth=0, **looks)
    ax.axline((3, 3), slope=1, color="lightgrey", linewidth=0.6, zorder=0)

    low = ((rounded.min() + rounded.max() - span) / 2).round(4)
    ax.set_xlim(low.Competence, low.Competence + span)
    ax.set_ylim(low.Warmth, low.Warmth + span)
    ax.set_title(title, fontsize=6.5)
    ax.set_xlabel("Competence", fontsize=6, labelpad=1)
    ax.set_ylabel("Warmth", fontsize=6, labelpad=1)
    ax.tick_params(labelsize=5.5, length=2, pad=1)

    is_named = points.group.isin(names) if len(names) else points.group.notna()
    places = (rounded - low) / span
    write_names(ax, places[is_named], points.group[is_named], places)


def write_names(
    ax: Axes, named: pd.DataFrame, names: Sequence[str], occupied: pd.DataFrame
) -> None:
    """Write names beside points, none over another name or a point.

    Parameters
    ----------
    ax : Axes
        A panel of fixed size.
    named, occupied : DataFrame
        The points that are named, and all points: shares of the panel's width and height.
    names : sequence of str
        Their names.

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
    for x, y in occupied.to_numpy():
        taken[int(y * n_lines), int(x * n_columns)] = True

    lines, starts = np.indices(taken.shape)
    for name, (x, y) in sorted(zip(names, named.to_numpy().tolist(), strict=True)):
        line, column = int(y * n_lines), int(x * n_columns)
        length = len(name) + 2  # a blank at both ends
        # A name may start where none of its cells is taken, and none is outside the panel.
        starting = sliding_window_view(taken, length, axis=1).any(axis=2)
        is_taken = np.ones_like(taken)
        is_taken[:, : starting.shape[1]] = starting

        right_of_name = np.maximum(column - starts - length + 1, 0)
        left_of_name = np.maximum(starts - column, 0)
        distance = (left_of_name + right_of_name) ** 2 + (3 * (lines - line)) ** 2
        distance[is_taken] = distance.max() + 1
        at_line, start = np.unravel_index(distance.argmin(), distance.shape)
        taken[at_line, start : start + length] = True

        place = ((start + 1) / n_columns, (at_line + 0.5) / n_lines)
        end = np.clip(x, place[0], place[0] + len(name) / n_columns)
        inside = ax.transAxes
        ax.text(*place, name, fontsize=TYPE, va="center_baseline", transform=inside)
        ax.plot([x, end], [y, place[1]], color="grey", linewidth=0.25, transform=inside)


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
    long["score"] = long.score.str.replace(r"(?<=[a-z]) ?(?=[A-Z])", "\n", regex=True)
    grid = sns.catplot(
        long.astype({"cluster": int}),
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
    for ax, score in zip(grid.axes[0], grid.col_names, strict=True):
        ax.set_title(score, fontsize=6.5)
    for ax, model in zip(grid.axes[:, 0], grid.row_names, strict=True):
        ax.set_ylabel(f"{model}\nmean rating", fontsize=5.5)
    return grid.figure


def refusals(rates: pd.DataFrame, n: int = 10) -> Figure:
    """Draw the `n` groups with the highest refusal rates of each model (Figure 5)."""
    grid = sns.FacetGrid(
        rates.groupby("model", sort=False).head(n),
        col="model",
        sharey=False,
        height=2.2,
        aspect=1.3,
    )
    grid.map_dataframe(_intervals)
    grid.set_titles("{col_name}").set_axis_labels("share refused (mean of the constructs)", "")
    return grid.figure


def _intervals(data: pd.DataFrame, color: str, label: object = None) -> None:
    """Draw rates with their intervals, the highest on top."""
    ax = sns.scatterplot(data, x="rate", y="group", color=color, zorder=3)
    ax.hlines(data.group, data.low, data.high, color=color, linewidth=1)
    ax.set_xlim(0, 1)
