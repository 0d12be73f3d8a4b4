"""Figures of GIEBench, drawn from its tables."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ingroup import figures
from ingroup.models import find, label
from ingroup.studies.giebench import statistics, stimuli


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
        One column wide. A hollow dot is the rest that the other categories leave.
    """
    y = figures.heights(len(share))
    is_listed = share["in Table 8"].to_numpy(bool)

    fig, ax = plt.subplots(figsize=(figures.ONE_COLUMN, 2.6))
    columns = ("items here", "questions of the paper")
    for column, colour in zip(columns, figures.COLOURS, strict=False):
        is_filled = is_listed | (column == "items here")
        look = {"marker": "o", "linestyle": "", "markersize": 3.5, "color": colour}
        ax.plot(share[column][is_filled], y[is_filled], label=column, **look)
        ax.plot(share[column][~is_filled], y[~is_filled], markerfacecolor="white", **look)
    ax.set_yticks(y, share.index)
    ax.set(xlim=(0, None), xlabel="share of all items (%)")
    ax.grid(axis="y", linewidth=0.3)

    look = {"fontsize": figures.points(5.5), "color": figures.COLOURS[1], "va": "bottom"}
    for height in y[~is_listed]:
        ax.text(0.3, height + 0.12, "not in Table 8: what is left", **look)
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
    """Draw the accuracy of each model as a closed line.

    A broken line shows the print, and a dotted line shows guessing.
    """
    # There is one angle more than spokes, as the line ends where it began.
    angles = np.linspace(0, 2 * np.pi, len(categories) + 1)
    closed = [*categories, categories[0]]
    for name, colour in zip(rows.model.unique(), cycle(figures.COLOURS), strict=False):
        of_model = rows[rows.model == name].set_index("category").reindex(closed)
        look = {"color": colour, "linewidth": 0.9}
        ax.plot(angles, of_model.accuracy, "-", label=label(name), **look)
        # A model that is not in print has no broken line.
        if of_model.in_print.notna().any():
            ax.plot(angles, of_model.in_print, "--", label=f"{label(name)}, in print", **look)

    guess = np.full(len(angles), 100 * statistics.CHANCE)
    ax.plot(angles, guess, ":", color="#777777", linewidth=0.8, label="by chance")
    _format_radar(ax, angles, categories)


def _format_radar(ax: Axes, angles: NDArray[np.float64], categories: Sequence[str]) -> None:
    """Format the spokes of a radar with their names, its rings and its legend."""
    smallest = figures.points(5)
    # The spokes begin at the top and go clockwise.
    ax.set(theta_offset=np.pi / 2, theta_direction=-1, ylim=(0, 100), yticks=[50, 100])
    ax.set_xticks(angles[:-1], categories, fontsize=smallest)
    ax.set_yticklabels(["50 %", "100 %"], fontsize=figures.points(4.5), color="#777777")

    # Eleven spokes leave a place for the numbers at the bottom, between two of them.
    ax.set_rlabel_position(180)
    ax.grid(linewidth=0.4, color="#DDDDDD")
    ax.spines["polar"].set_linewidth(0.5)
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        fontsize=smallest,
        handlelength=1,
        columnspacing=1,
        ncols=2,
    )


def by_category(
    table: pd.DataFrame,
    x: str,
    colours: Mapping[str, str],
    xlabel: str,
    chance: float,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Draw an estimate with its intervals by category, under each prompt.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``category``, ``prompt``, ``low``, ``high`` and the column of the estimate.
    x : str
        The column of the estimate.
    colours : mapping
        The colour of each prompt.
    xlabel : str
        The label of the axis of the estimates.
    chance : float
        The estimate of a judge that guesses.
    limits : tuple of float, optional
        The ends of that axis.

    Returns
    -------
    Figure
        A panel for each model; a line divides the categories from Overall.
    """
    lines = [*stimuli.categories(), statistics.OVERALL]
    fig = figures.intervals(
        table,
        x=x,
        y="category",
        hue="prompt",
        lines=lines,
        colours=colours,
        xlabel=xlabel,
        reference=chance,
        reference_name="guessing",
        limits=limits,
        step=0.24,
    )

    above_overall = len(lines) - 1.5
    for ax in fig.axes:
        ax.axhline(above_overall, color="#BBBBBB", linewidth=0.6)
    return fig


def mismatch(table: pd.DataFrame) -> Figure:
    """Draw how another identity in the prompt changes the accuracy under COT, tuple by tuple.

    Parameters
    ----------
    table : DataFrame
        ``model`` and the columns of `statistics.mismatch_of_pairs`.

    Returns
    -------
    Figure
        A panel for each model. Tuples are grouped by category; a hollow dot could not have been
        significant.
    """
    rank = {category: i for i, category in enumerate(stimuli.categories())}
    table = table.sort_values("category", key=lambda column: column.map(rank), kind="stable")
    names = table.identity_i + ", " + table.identity_j
    table = table.assign(
        pair=names + " (" + table.n.astype(str) + ")",
        is_enough=table.cot_finding != "could not have been significant",
        low=table.cot_low,
        high=table.cot_high,
    )
    fig = figures.intervals(
        table,
        x="cot_change",
        y="pair",
        filled="is_enough",
        xlabel="change (points), 95 % intervals",
        limits=(-108, 108),
        step=0.12,
        least=0.6,
        # All panels stand in one row, so that the names of the tuples are there once.
        columns=table.model.nunique(),
    )

    categories = table.drop_duplicates("pair").category.reset_index(drop=True)
    for category, rows in categories.groupby(categories, sort=False):
        positions = rows.index.to_numpy()
        for ax in fig.axes:
            ax.axhline(positions[-1] + 0.5, color="#BBBBBB", linewidth=0.5)
        # The last panel has the names of the categories at its right.
        fig.axes[-1].annotate(
            category,
            (1.02, positions.mean()),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=figures.points(5.5),
        )
    return fig


def mean_probabilities(letters: pd.DataFrame, colours: Mapping[str, str]) -> Figure:
    """Draw the mean probability of each letter.

    Parameters
    ----------
    letters : DataFrame
        ``model``, ``prompt`` and the mean probability of each letter, 0 to 1.
    colours : mapping
        The colour of each prompt.

    Returns
    -------
    Figure
        A panel for each model; the dotted line is guessing.
    """
    table = letters.melt(["model", "prompt"], list(stimuli.LETTERS), "letter", "share")
    table["percent"] = 100 * table["share"]

    fig, axes = figures.facets(table, 1.9, sharey=True)
    for ax, rows in axes:
        sns.barplot(
            rows,
            x="letter",
            y="percent",
            hue="prompt",
            palette=colours,
            saturation=1,
            ax=ax,
        )
        chance = 100 * statistics.CHANCE
        ax.axhline(chance, color="#777777", linewidth=0.8, linestyle=":", label="guessing")
        ax.set(xlabel="letter", ylabel="mean probability (%)")

        # One legend of the figure takes the place of the panels' legends.
        handles, names = ax.get_legend_handles_labels()
        ax.get_legend().remove()
    figures.label_outer([ax for ax, _ in axes])
    figures.legend(fig, handles, names)
    return fig


def printed_landscape(landscape: pd.DataFrame, gains: Sequence[str]) -> Figure:
    """Draw gains of the printed models by their size.

    Parameters
    ----------
    landscape : DataFrame
        Index ``model``; ``billions`` of parameters, NaN where unknown, and the columns of `gains`.
    gains : sequence of str
        Two gains in points, drawn one below the other.

    Returns
    -------
    Figure
        A dot for each model, hollow at the right where its size is unknown.
    """
    x_of_unknown = 2.2 * landscape.billions.max()
    x = landscape.billions.fillna(x_of_unknown)
    colour = figures.COLOURS[0]
    faces = np.where(landscape.billions.isna(), "white", colour)
    ticks = [2, 5, 10, 20, 50, 100]

    fig, axes = plt.subplots(2, 1, figsize=(figures.TWO_COLUMNS, 6.0), sharex=True)
    for ax, gain in zip(axes, gains, strict=True):
        ax.scatter(x, landscape[gain], s=12, c=faces, edgecolors=colour, linewidths=0.7)
        ax.axhline(0, color="#CCCCCC", linewidth=0.8, zorder=0)
        ax.set(xscale="log", xlim=(1.4, 1.8 * x_of_unknown), xticks=ticks, xticklabels=ticks)
        ax.minorticks_off()
        ax.set(title=f"{gain}, as printed", ylabel="points of overall accuracy", ymargin=0.15)

    axes[1].set_xlabel("billions of parameters by the name, 8x7b as 56 (open: not in the name)")
    # Names are placed last, because they keep clear of the other marks.
    for ax, gain in zip(axes, gains, strict=True):
        figures.label_points(ax, x, landscape[gain], landscape.index, figures.points(5.5))
    return fig


def ground_truth_versus_here(recovered: pd.DataFrame, colours: Mapping[str, str]) -> Figure:
    """Draw the accuracy of the calibrants here against their ground truth.

    Parameters
    ----------
    recovered : DataFrame
        ``model``, ``prompt``, ``accuracy_ground_truth`` and ``accuracy``, in percent.
    colours : mapping
        The colour of each prompt.

    Returns
    -------
    Figure
        A panel for each model; on the diagonal the two are equal.
    """
    fig, axes = figures.facets(recovered, 3.0, sharey=True, least=2)
    for ax, rows in axes:
        sns.scatterplot(
            rows,
            x="accuracy_ground_truth",
            y="accuracy",
            hue="prompt",
            style="prompt",
            palette=colours,
            alpha=0.7,
            s=20,
            ax=ax,
        )

        ax.axline((0, 0), slope=1, color="black", linewidth=0.5)
        ax.set(xlabel="ground-truth accuracy (%)", ylabel="accuracy here (%)")
        ax.set(xlim=(-3, 103), ylim=(-3, 103), aspect="equal")
    return fig
