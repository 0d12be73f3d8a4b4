"""Figures of the Biased Samaritan, drawn from its tables."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from ingroup import figures
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
