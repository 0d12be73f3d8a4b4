"""Figures of GIEBench, drawn from its tables."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ingroup import figures
from ingroup.models import find, label
from ingroup.studies.giebench import statistics


def shares_of_items(share: pd.DataFrame) -> Figure:
    """Draw the share of each category among the items here and the paper's questions: Figure 1.

    Parameters
    ----------
    share : DataFrame
        Index ``category``; ``items here`` and ``questions of the paper``, in percent, and whether
        the category is ``in Table 8``.

    Returns
    -------
    Figure
        One column wide. A hollow dot is what the numbers of other categories leave.
    """
    fig, ax = plt.subplots(figsize=(figures.ONE_COLUMN, 2.6))
    # The first category is at the top.
    y = np.arange(len(share))[::-1]
    is_listed = share["in Table 8"].to_numpy(bool)
    columns = ("items here", "questions of the paper")
    for column, colour in zip(columns, figures.COLOURS, strict=False):
        filled = is_listed | (column == "items here")
        ax.plot(share[column][filled], y[filled], "o", markersize=3.5, color=colour, label=column)
        hollow = {"color": colour, "markerfacecolor": "white"}
        ax.plot(share[column][~filled], y[~filled], "o", markersize=3.5, **hollow)
    ax.set_yticks(y, share.index)
    ax.set(xlim=(0, None), xlabel="share of all items (%)")
    ax.grid(axis="y", linewidth=0.3)
    absent = {"fontsize": figures.points(5.5), "color": figures.COLOURS[1], "va": "bottom"}
    for place in y[~is_listed]:
        ax.text(0.3, place + 0.12, "not in Table 8: what is left", **absent)
    figures.legend(fig, *ax.get_legend_handles_labels())
    return fig


def radars(accuracy: pd.DataFrame, categories: Sequence[str]) -> Figure:
    """Draw accuracy by category, a radar for each series of models: Figure 3.

    Parameters
    ----------
    accuracy : DataFrame
        ``model``, ``category``, ``accuracy`` in percent, and ``in_print``, the paper's.
    categories : sequence of str
        The spokes, clockwise from the top.

    Returns
    -------
    Figure
        Two columns wide.
    """
    series = {}
    for model in accuracy.model.unique():
        known = find(model)
        series[model] = known.series if known else label(model)
    table = accuracy.assign(series=accuracy.model.map(series))
    polar = {"projection": "polar"}
    fig, axes = figures.facets(table, 2.5, "series", least=1.9, subplot_kw=polar)
    for ax, rows in axes:
        _draw_radar(ax, rows, categories)
    return fig


def _draw_radar(ax: Axes, rows: pd.DataFrame, categories: Sequence[str]) -> None:
    """A closed line for each model, broken in print, and a dotted one for guessing."""
    # There is one angle more than spokes, as the line ends where it began.
    angles = np.linspace(0, 2 * np.pi, len(categories) + 1)
    closed = [*categories, categories[0]]
    for name, colour in zip(rows.model.unique(), cycle(figures.COLOURS), strict=False):
        own = rows[rows.model == name].set_index("category").reindex(closed)
        for column, style, suffix in (("accuracy", "-", ""), ("in_print", "--", ", in print")):
            line = {"color": colour, "linestyle": style, "linewidth": 0.9}
            # A model that is not in print has no broken line.
            if own[column].notna().any():
                ax.plot(angles, own[column], label=label(name) + suffix, **line)
    guess = np.full(len(angles), 100 * statistics.CHANCE)
    ax.plot(angles, guess, ":", color="#777777", linewidth=0.8, label="by chance")

    smallest = figures.points(5)
    # The spokes begin at the top and go clockwise.
    ax.set(theta_offset=np.pi / 2, theta_direction=-1, ylim=(0, 100), yticks=[50, 100])
    ax.set_xticks(angles[:-1], categories, fontsize=smallest)
    ax.set_yticklabels(["50 %", "100 %"], fontsize=figures.points(4.5), color="#777777")
    # Eleven spokes leave a place for the numbers at the bottom, between two of them.
    ax.set_rlabel_position(180)
    ax.grid(linewidth=0.4, color="#DDDDDD")
    ax.spines["polar"].set_linewidth(0.5)
    small = {"fontsize": smallest, "handlelength": 1, "columnspacing": 1, "ncols": 2}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), **small)
