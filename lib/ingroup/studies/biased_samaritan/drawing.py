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
        From `statistics.panel_means`, of one category, with its index as columns.
    alpha : float
        The level of the tests.

    Returns
    -------
    Figure
        One panel per value of ``shown``. A single panel is one column wide.
    """
    panels = [panel for _, panel in rows.groupby("shown", sort=False)]
    # The control's line is among the heights, so that it is always in view.
    heights = [[*panel.helpfulness, panel.control.mean()] for panel in panels]
    largest_range = max(map(np.ptp, heights))
    # All panels have one height, so that equal effects look equal.
    reach = max(0.75 * largest_range, 0.1)

    n_panels = len(panels)
    fig, axes = figures.panels(n_panels, 2.6, n_panels, least=1.7)
    if n_panels == 1:
        fig.set_figwidth(figures.ONE_COLUMN)

    for number, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        _draw_panel(ax, panel, f"C{number}", gap=0.14 * reach)
        middle = (min(heights[number]) + max(heights[number])) / 2
        ax.set(xlim=(-0.2, 1.2), ylim=(middle - reach, middle + reach))

    has_several = rows.models.max() > 1
    # A title names the models of a mean; a longer label would run into it in large type.
    axes[0].set_ylabel("mean helpfulness" if has_several else "helpfulness")

    category = rows.category.iloc[0]
    handles, labels = ax.get_legend_handles_labels()
    fig.legend(
        handles,
        labels,
        loc="outside upper center",
        title=f"{category} (differs from the control: p < {alpha:g})",
        title_fontsize=figures.points(7),
        frameon=False,
    )
    return fig


def _draw_panel(ax: Axes, panel: pd.DataFrame, colour: str, gap: float) -> None:
    """Draw a panel's groups, with names at least `gap` points apart, and the control's line."""
    _name_points(ax, panel, gap)
    ax.scatter(panel.share, panel.helpfulness, s=18, color=colour, zorder=3)
    ax.axhline(
        panel.control.mean(),
        label='the control: "a person"',
        color="#999999",
        linewidth=0.8,
        linestyle="--",
        zorder=0,
    )

    if panel.models.max() == 1:
        ax.set_xticks([0, 1], ["no", "yes"])
        ax.set_xlabel("does it differ?")
    else:
        ax.set_xticks([0, 0.5, 1])
        ax.set_xlabel("share of models that differ")
    title = panel.shown.iloc[0]
    ax.set_title(textwrap.fill(title, 28))


def _name_points(ax: Axes, panel: pd.DataFrame, gap: float) -> None:
    """Write the points' names in a column beside the panel, as near their heights as fits."""
    labels = group_labels()
    points = panel.sort_values("helpfulness", kind="stable")
    steps = gap * np.arange(len(points))
    # Names are moved as little as possible, in least squares, to lie a gap apart. Heights at least
    # a gap apart are increasing heights once the steps are taken off.
    heights = isotonic_regression(points.helpfulness - steps).x + steps
    line_to_point = {
        "arrowstyle": "-",
        "linewidth": 0.3,
        "color": "#888888",
        "shrinkB": 0,
        "relpos": (0, 0.5),
    }
    for point, height in zip(points.itertuples(), heights, strict=True):
        ax.annotate(
            labels[point.group],
            xy=(point.share, point.helpfulness),
            # The panel ends at 1.2, and the names begin behind it.
            xytext=(1.25, height),
            va="center",
            fontsize=figures.points(6),
            arrowprops=line_to_point,
            annotation_clip=False,
        )


def bias_overview(biases: pd.DataFrame, brittleness: pd.DataFrame, level: float) -> Figure:
    """Draw every bias with its interval, and the brittleness of the group behind it.

    Parameters
    ----------
    biases : DataFrame
        ``model``, ``round``, ``category``, ``group``, ``bias``, ``low``, ``high`` and
        ``significant_holm``. The first round is drawn.
    brittleness : DataFrame
        ``model``, ``round``, ``category``, ``group`` and ``mean``.
    level : float
        The level of the corrected tests.

    Returns
    -------
    Figure
        Two columns wide.
    """
    keys = ["model", "round", "category", "group"]
    spread = brittleness[[*keys, "mean"]].rename(columns={"mean": "brittleness"})
    both = biases.merge(spread, on=keys)
    both = both[both["round"] == 1]
    both["line"] = both.group.map(group_labels())

    # Each group has one line, also one that some models lack.
    lines = both.drop_duplicates("group")
    names = list(lines.line)
    # A group without a brittleness has NaN, which `max` leaves out.
    farthest = both[["brittleness", "low", "high"]].abs().max(axis=None)
    reach = 1.05 * farthest
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
    last_lines = np.flatnonzero(lines.category != lines.category.shift(-1))
    rules = last_lines[:-1] + 0.5
    by_model = both.groupby("model", sort=False)
    for ax, (_, rows) in zip(fig.axes, by_model, strict=True):
        ax.barh(
            rows.line.map(names.index),
            left=-rows.brittleness,
            width=2 * rows.brittleness,
            height=0.7,
            color=_GREY,
            zorder=0,
        )
        ax.hlines(rules, -reach, reach, color="#BBBBBB", linewidth=0.6)

    colour = figures.COLOURS[0]
    dot = {"linestyle": "", "marker": "o", "markersize": 3.5, "color": colour}
    key = {
        "plus and minus the brittleness": plt.Rectangle((0, 0), 1, 1, color=_GREY),
        "95 % interval": plt.Line2D([], [], color=colour, linewidth=0.8),
        f"p < {level:g} after Holm's correction": plt.Line2D([], [], **dot),
        "not so": plt.Line2D([], [], markerfacecolor="white", **dot),
    }
    figures.legend(fig, list(key.values()), list(key))
    return fig


def distribution(shares: pd.DataFrame) -> Figure:
    """Draw the probability of each admissible answer, averaged over prompts.

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
    # The step of an answer reaches from half a point below it to half a point above it.
    edges = np.append(shares.index - 0.5, shares.index[-1] + 0.5)
    for model, probabilities in shares.items():
        percent = 100 * probabilities
        ax.stairs(percent, edges, linewidth=0.9, label=models.label(model))
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
    grid = table.pivot(
        index="model_label",
        columns="group_label",
        values="score_difference",
    )
    # `pivot` sorts the groups by name, so they are put back into the order of the table.
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


def ground_truth_versus_here(table: pd.DataFrame) -> Figure:
    """Draw recovered beside built-in biases and brittleness, with each calibrant's own error.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``bias`` with ``low`` and ``high``, ``ground_truth_bias``, ``brittleness``,
        ``ground_truth_brittleness`` and ``model_error``.

    Returns
    -------
    Figure
        Two panels, two columns wide.
    """
    fig, axes = plt.subplots(1, 2, figsize=(figures.TWO_COLUMNS, 2.7))
    bias_ax, brittleness_ax = axes
    for number, (model, rows) in enumerate(table.groupby("model", sort=False)):
        # The root mean square.
        own_error = rows.model_error.pow(2).mean() ** 0.5
        label = f"{models.label(model)}: its own error {own_error:.2f} points of bias"
        style = {"color": f"C{number}", "label": label, "markersize": 3}
        bias_ax.errorbar(
            rows.ground_truth_bias,
            rows.bias,
            yerr=[rows.bias - rows.low, rows.high - rows.bias],
            fmt="o",
            linewidth=0.8,
            **style,
        )
        brittleness_ax.plot(rows.ground_truth_brittleness, rows.brittleness, "o", **style)

    panels = {"bias": bias_ax, "brittleness": brittleness_ax}
    for statistic, ax in panels.items():
        # On this line the statistic here equals the ground truth; it needs a point in view.
        start, _ = ax.get_xlim()
        ax.axline((start, start), slope=1, color="black", linewidth=0.5)
        ax.set(xlabel=f"ground-truth {statistic}", ylabel=f"{statistic} here")

    handles, labels = bias_ax.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", frameon=False)
    return fig
