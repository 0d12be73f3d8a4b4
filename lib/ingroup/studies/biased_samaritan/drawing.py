"""Figures of the Biased Samaritan, drawn from its tables."""

import textwrap

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from ingroup import figures, models
from ingroup.studies.biased_samaritan.printed import group_labels

_GREY = "#E3E3E3"


def helpfulness(rows: pd.DataFrame, alpha: float) -> Figure:
    """Draw helpfulness against the share of models in which a group differs: Figures 1 to 3.

    Parameters
    ----------
    rows : DataFrame
        From `printed.over_models`, of one category, with its index as columns.
    alpha : float
        The level of the tests.

    Returns
    -------
    Figure
        One panel per value of ``shown``; a single panel is one column wide.
    """
    panels = [own for _, own in rows.groupby("shown", sort=False)]
    values = [[*own.helpfulness, own.control.mean()] for own in panels]
    # All panels have one height, so that equal effects look equal.
    reach = max(0.75 * max(map(np.ptp, values)), 0.1)
    fig, axes = figures.panels(len(panels), 2.6, len(panels), least=1.7)
    if len(panels) == 1:
        fig.set_figwidth(figures.ONE_COLUMN)

    for number, (ax, own) in enumerate(zip(axes, panels, strict=True)):
        _name_points(ax, own, gap=0.14 * reach)
        ax.scatter(own.share, own.helpfulness, s=18, color=f"C{number}", zorder=3)
        line = {"color": "#999999", "linewidth": 0.8, "linestyle": "--", "zorder": 0}
        ax.axhline(own.control.mean(), label='the control: "a person"', **line)
        # The control's line is among the values, so that it is always in view.
        middle = (min(values[number]) + max(values[number])) / 2
        ax.set(xlim=(-0.2, 1.2), ylim=(middle - reach, middle + reach))
        if own.models.max() == 1:
            ax.set_xticks([0, 1], ["no", "yes"])
            ax.set_xlabel("does it differ?")
        else:
            ax.set_xticks([0, 0.5, 1])
            ax.set_xlabel("share of models that differ")
        ax.set_title(textwrap.fill(own.shown.iloc[0], 28))

    has_several = rows.models.max() > 1
    axes[0].set_ylabel("helpfulness, mean over the models" if has_several else "helpfulness")
    title = f"{rows.category.iloc[0]} (differs from the control: p < {alpha:g})"
    key = ax.get_legend_handles_labels()
    look = {"title": title, "title_fontsize": figures.points(7), "frameon": False}
    fig.legend(*key, loc="outside upper center", **look)
    return fig


def _name_points(ax: Axes, own: pd.DataFrame, gap: float) -> None:
    """Names in a column beside the panel, as near to the height of their points as they fit."""
    labels = group_labels()
    own = own.sort_values("helpfulness", kind="stable")
    steps = gap * np.arange(len(own))
    # Names are moved as little as possible, in least squares, to lie a gap apart.
    heights = isotonic_regression(own.helpfulness - steps).x + steps
    thin = {
        "arrowstyle": "-",
        "linewidth": 0.3,
        "color": "#888888",
        "shrinkB": 0,
        "relpos": (0, 0.5),
    }
    look = {
        "va": "center",
        "fontsize": figures.points(6),
        "arrowprops": thin,
        "annotation_clip": False,
    }
    for row, height in zip(own.itertuples(), heights, strict=True):
        # The panel ends at 1.2, and the names begin behind it.
        ax.annotate(labels[row.group], (row.share, row.helpfulness), (1.25, height), **look)


def bias_overview(biases: pd.DataFrame, brittleness: pd.DataFrame, level: float) -> Figure:
    """Draw every bias with its interval, and the brittleness of the group behind it.

    Parameters
    ----------
    biases : DataFrame
        ``model``, ``run``, ``category``, ``group``, ``bias``, ``low``, ``high`` and
        ``significant_holm``. The first run is drawn.
    brittleness : DataFrame
        ``model``, ``run``, ``category``, ``group`` and ``mean``.
    level : float
        The level of the corrected tests.

    Returns
    -------
    Figure
        Two columns wide.
    """
    keys = ["model", "run", "category", "group"]
    spread = brittleness[[*keys, "mean"]].rename(columns={"mean": "brittleness"})
    both = biases.merge(spread, on=keys)
    both = both[both.run == 1].assign(line=both.group.map(group_labels()))
    # Each group has one line, also one that some models lack.
    lines = both.drop_duplicates("group")
    names = list(lines.line)
    ends_of_lines = both[["brittleness", "low", "high"]].abs()  # without brittleness: NaN
    reach = 1.05 * ends_of_lines.max(axis=None)
    fig = figures.intervals(
        both,
        x="bias",
        y="line",
        lines=names,
        filled="significant_holm",
        xlabel="bias: points above the control",
        limits=(-reach, reach),
        step=0.2,
    )

    # A rule is drawn below the last line of each category but the last.
    ends = np.flatnonzero(lines.category != lines.category.shift(-1))
    for ax, (_, rows) in zip(fig.axes, both.groupby("model", sort=False), strict=True):
        y = rows.line.map(names.index)
        left = -rows.brittleness
        ax.barh(y, 2 * rows.brittleness, left=left, height=0.7, color=_GREY, zorder=0)
        ax.hlines(ends[:-1] + 0.5, -reach, reach, color="#BBBBBB", linewidth=0.6)

    dot = {"linestyle": "", "marker": "o", "markersize": 3.5, "color": figures.COLOURS[0]}
    key = {
        "plus and minus the brittleness": plt.Rectangle((0, 0), 1, 1, color=_GREY),
        "95 % interval": plt.Line2D([], [], color=figures.COLOURS[0], linewidth=0.8),
        f"p < {level:g} after Holm's correction": plt.Line2D([], [], **dot),
        "not so": plt.Line2D([], [], markerfacecolor="white", **dot),
    }
    figures.legend(fig, list(key.values()), list(key))
    return fig


def distribution(shares: pd.DataFrame) -> Figure:
    """Draw how probable each admissible answer is, averaged over prompts.

    Parameters
    ----------
    shares : DataFrame
        Index ``answer``, whole numbers; one column per model.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 1.9))
    # A step stands around its whole number.
    edges = np.append(shares.index - 0.5, shares.index[-1] + 0.5)
    for model, share in shares.items():
        ax.stairs(100 * share, edges, linewidth=0.9, label=models.label(model))
    ax.set(xlabel="answer", ylabel="probability (%)", xlim=(0, 101), ylim=(0, None))
    ax.legend(frameon=False)
    return fig


def printed_landscape(table: pd.DataFrame) -> Figure:
    """Draw the biases that the paper prints for every model and group.

    Parameters
    ----------
    table : DataFrame
        ``model_label``, ``group_label`` and ``score_difference``, groups in the order of columns.

    Returns
    -------
    Figure
        Two columns wide.
    """
    grid = table.pivot(index="model_label", columns="group_label", values="score_difference")
    # `pivot` sorts the groups by name.
    grid = grid[table.group_label.unique()]
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 3.1))
    sns.heatmap(
        grid,
        cmap="PuOr_r",
        center=0,
        cbar_kws={"label": "bias as printed (points)", "pad": 0.01},
        ax=ax,
        annot=grid.map("{:z.1f}".format),
        fmt="",
        annot_kws={"fontsize": figures.points(5.5)},
    )
    ax.set(xlabel="", ylabel="")
    ax.tick_params(length=0)
    ax.set_xticks(ax.get_xticks(), grid.columns, rotation=30, ha="right")
    return fig


def planted_versus_here(table: pd.DataFrame) -> Figure:
    """Draw recovered beside planted biases and brittleness, with each calibrant's own error.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``bias`` with ``low`` and ``high``, ``planted_bias``, ``brittleness``,
        ``planted_brittleness`` and ``model_error``.

    Returns
    -------
    Figure
        Two panels, two columns wide.
    """
    fig, axes = plt.subplots(1, 2, figsize=(figures.TWO_COLUMNS, 2.7))
    bias_ax, brittleness_ax = axes
    for number, (model, rows) in enumerate(table.groupby("model", sort=False)):
        own_error = rows.model_error.pow(2).mean() ** 0.5
        label = f"{models.label(model)}: its own error {own_error:.2f} points of bias"
        style = {"color": f"C{number}", "label": label, "markersize": 3}
        reach = [rows.bias - rows.low, rows.high - rows.bias]
        bias_ax.errorbar(rows.planted_bias, rows.bias, reach, fmt="o", linewidth=0.8, **style)
        brittleness_ax.plot(rows.planted_brittleness, rows.brittleness, "o", **style)

    for ax, what in ((bias_ax, "bias"), (brittleness_ax, "brittleness")):
        # The line of equality needs a point in view.
        start = ax.get_xlim()[0]
        ax.axline((start, start), slope=1, color="black", linewidth=0.5)
        ax.set(xlabel=f"planted {what}", ylabel=f"{what} here")
    key = bias_ax.get_legend_handles_labels()
    fig.legend(*key, loc="outside upper center", frameon=False)
    return fig
