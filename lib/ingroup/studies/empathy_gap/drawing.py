"""Figures of the empathy gap, drawn from the tables of cells, positions and gaps.

``DRAWN`` is "sound", or "released" for the colours and scales of the authors' code.
"""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from ingroup import figures
from ingroup.models import label
from ingroup.studies.empathy_gap import stimuli

WHITE = "white: not different from at least one of its two in-group cells"
# The World Cultural Map of 2023, whose colours are those of Okabe and Ito.
CULTURAL_MAP = {
    "African-Islamic": "#000000",
    "Confucian": "#56B4E9",
    "Latin America": "#CC79A7",
    "Protestant Europe": "#D55E00",
    "Catholic Europe": "#E69F00",
    "English-Speaking": "#009E73",
    "Orthodox Europe": "#0072B2",
    "West & South Asia": "#F0E442",
}


def square(cells: pd.DataFrame, column: str) -> np.ndarray:
    """Turn one column of a block's cells into a matrix.

    Parameters
    ----------
    cells : DataFrame
        The cells of one model, setting and category, row by row.
    column : str
        The column.

    Returns
    -------
    ndarray, (n, n)
        Perceivers (rows) by experiencers (columns).
    """
    n = math.isqrt(len(cells))
    return cells[column].to_numpy().reshape(n, n)


def _groups(category: str) -> list[str]:
    """The group of each identity; "a person" is in none."""
    return ["", *stimuli.identities(category).group[1:]]


def _colour_map(drawn: str) -> str | None:
    """The colour map of the authors' code, or None for that of all heatmaps here."""
    return "YlGnBu" if drawn == "released" else None


def heatmaps(
    cells: pd.DataFrame, categories: Sequence[str], settings: Sequence[str], drawn: str
) -> Figure:
    """Draw the matrices of one model in all settings and categories: Figure 2.

    Parameters
    ----------
    cells : DataFrame
        The model's cells, with ``setting`` and ``category``.
    categories, settings : sequence of str
        Their order; those that were not asked are left out.
    drawn : {"sound", "released"}
        With "sound" all panels share a scale, from the 1st to the 99th percentile.

    Returns
    -------
    Figure
        Two columns wide, or less.
    """
    blocks = dict(list(cells.groupby(["category", "setting"])))
    places = [(c, s) for c in categories for s in settings if (c, s) in blocks]
    n_columns = len({setting for _, setting in places})
    n_categories = len({category for category, _ in places})
    if n_columns * n_categories > len(places):
        n_columns = min(5, len(places))  # some settings have some categories: no empty panels
    n_rows = math.ceil(len(places) / n_columns)
    width = min(figures.TWO_COLUMNS, 1.3 + 0.85 * n_columns)
    fig, axes = plt.subplots(n_rows, n_columns, squeeze=False)
    fig.set_size_inches(width, 1.1 * n_rows + 0.7)

    # One scale for all panels; the few pairs beyond it have the colour of its end.
    shared = tuple(np.percentile(cells.z, [1, 99])) if drawn == "sound" else None
    for ax, place in zip(axes.flat, places, strict=False):
        z = square(blocks[place], "z")
        shown = square(blocks[place], "shown_released").astype(bool)
        limits = shared or (z.min(), z.max())
        groups = _groups(place[0])
        image = figures.heatmap(ax, z, shown, groups, limits=limits, cmap=_colour_map(drawn))
        ax.set_title("\n".join(place), fontsize=6)
    for ax in axes.flat[len(places) :]:
        ax.set_axis_off()

    extend = "both" if shared else "neither"
    bar = fig.colorbar(image, ax=axes, shrink=0.6, pad=0.01, extend=extend)
    bar.set_label("z-score" if shared else "z-score, each panel in its own range")
    if not shared:
        bar.set_ticks([z.min(), z.max()], labels=["lowest", "highest"])
    sides = "perceiver (rows) by experiencer (columns); wording of P persona, S scale, T task"
    fig.suptitle(f"{label(cells.model.iloc[0])}\n{sides}\n{WHITE}", fontsize=7)
    return fig


def enlarged(cells: pd.DataFrame, width: float, drawn: str) -> Figure:
    """Draw the matrix of one block with the names of the identities: Figures 3, 5 and 6.

    Parameters
    ----------
    cells : DataFrame
        The cells of one model, setting and category.
    width : float
        The width of the figure, in inches.
    drawn : {"sound", "released"}
        With "released" the scale ends at the smallest and the largest cell.

    Returns
    -------
    Figure
        The figure.
    """
    about = cells.iloc[0]
    z = square(cells, "z")
    shown = square(cells, "shown_released").astype(bool)
    names = stimuli.identities(about.category).identity.str.replace("a person from ", "")
    limits = (z.min(), z.max()) if drawn == "released" else None

    fig, ax = plt.subplots(figsize=(width, width * 0.92))
    groups = _groups(about.category)
    image = figures.heatmap(ax, z, shown, groups, names, limits, _colour_map(drawn))
    title = f"{label(about.model)}, setting {about.setting}"
    ax.set(xlabel="experiencer", ylabel="perceiver", title=title)
    if not shown.all():
        fig.suptitle(textwrap.fill(WHITE, int(22 * width)), fontsize=5.5)
    bar = fig.colorbar(image, ax=ax, shrink=0.7, pad=0.01, extend="neither" if limits else "both")
    bar.set_label("z-score" if limits else "z-score, 1st to 99th percentile")
    return fig


def countries(positions: pd.DataFrame, drawn: str) -> Figure:
    """Draw the countries where t-SNE puts them, coloured by cultural cluster: Figure 4.

    Parameters
    ----------
    positions : DataFrame
        ``model`` (one), ``label``, ``cluster``, ``x`` and ``y``.
    drawn : {"sound", "released"}
        With "released" in the colours of the World Cultural Map.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 3.6))
    palette = dict(zip(positions.cluster.unique(), figures.COLOURS, strict=False))
    if drawn == "released":
        palette = CULTURAL_MAP
    look = {"hue": "cluster", "palette": palette, "s": 22, "linewidth": 0}
    sns.scatterplot(positions, x="x", y="y", ax=ax, **look)
    title = label(positions.model.iloc[0])
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", title=title)
    ax.margins(0.1)
    ax.spines[:].set_visible(True)

    key = ax.get_legend_handles_labels()
    ax.get_legend().remove()
    figures.legend(fig, *key, title="cultural cluster")
    figures.label_points(ax, positions.x, positions.y, positions.label)
    return fig
