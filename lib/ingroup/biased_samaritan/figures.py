"""Figures 1 to 3 of Fagan et al., and biases with their intervals."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ingroup.biased_samaritan.bias import group_labels
from ingroup.inference.models import registry
from ingroup.style import ONE_COLUMN, TWO_COLUMNS

MARKERS = "osD^v"


def helpfulness(rows: pd.DataFrame) -> Figure:
    """Draw helpfulness against the share of models in which a group differs (Figures 1 to 3).

    Parameters
    ----------
    rows : DataFrame
        Groups of one category: ``group``, ``share``, ``helpfulness`` and ``control``, means over
        models in points.
    """
    named = rows.assign(group=rows.group.map(group_labels()))
    control = rows.control.mean()

    fig, ax = plt.subplots(figsize=(ONE_COLUMN, 2.2), layout="constrained")
    sns.scatterplot(named, x="share", y="helpfulness", hue="group", style="group", s=45, ax=ax)
    ax.axhline(control, color="grey", linestyle="--", linewidth=0.8, label="Control")
    ax.set(xlabel="share of models that differ", ylabel="helpfulness (points)")
    ax.set(xlim=(-0.05, 1.05), xticks=[0, 0.5, 1])
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return fig


def intervals(table: pd.DataFrame, hue: str, reach: float | None = None) -> Figure:
    """Draw biases with their 95 % intervals, one panel for each model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``group``, ``estimate``, ``low`` and ``high``. If it has ``brittleness``, a grey
        bar shows it on both sides of 0.
    hue : str
        The column whose values lie side by side in a line, in colours.
    reach : float, optional
        Where the axis ends on both sides, in points.
    """
    models = table.model.unique()
    labels = group_labels()
    labels = labels[labels.index.isin(table.group)]
    levels = table[hue].unique()
    height = 0.8 + 0.2 * len(labels)
    fig, axes = plt.subplots(
        1,
        len(models),
        figsize=(TWO_COLUMNS, height),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    legend = {}
    for model, ax in zip(models, axes.flat, strict=True):
        rows = table[table.model == model]
        lines = labels.index.get_indexer(rows.group)
        _draw_panel(ax, rows.assign(line=lines, level=rows[hue]), levels)
        ax.set_title(registry().label.get(model, model))
        # A model may lack a level, e.g. free text.
        handles, names = ax.get_legend_handles_labels()
        legend.update(zip(names, handles, strict=True))

    first = axes[0, 0]
    first.set_yticks(range(len(labels)), labels)
    first.invert_yaxis()
    if reach:
        first.set_xlim(-reach, reach)
    fig.supxlabel("bias (points above the control)", fontsize="medium")
    fig.legend(
        legend.values(),
        legend.keys(),
        loc="outside upper center",
        ncols=len(legend),
        frameon=False,
    )
    return fig


def _draw_panel(ax: Axes, rows: pd.DataFrame, levels: Sequence[str]) -> None:
    """Draw the biases of one model; ``line`` is the height of a group, ``level`` has a colour."""
    if "brittleness" in rows:
        width = 2 * rows.brittleness
        ax.barh(rows.line, width, left=-rows.brittleness, color="0.9", label="± brittleness")

    middle = (len(levels) - 1) / 2
    for number, level in enumerate(levels):
        of_level = rows[rows.level == level]
        if of_level.empty:
            continue
        heights = of_level.line + 0.25 * (number - middle)
        errors = np.abs(of_level[["low", "high"]].T - of_level.estimate)
        ax.errorbar(
            of_level.estimate,
            heights,
            xerr=errors,
            color=f"C{number}",
            fmt=MARKERS[number],
            markersize=3,
            linewidth=1,
            label=level,
        )
    ax.axvline(0, color="grey", linewidth=0.6)


def printed_beside_here(table: pd.DataFrame) -> Figure:
    """Draw the bias of each printed model, and of each model of this run, group by group.

    Parameters
    ----------
    table : DataFrame
        ``source`` ("printed" or "here"), ``model``, ``group`` (its label) and ``estimate``.
    """
    is_here = table.source == "here"
    printed = table[~is_here]
    here = table[is_here]
    labels = here.model.map(registry().label)
    here = here.assign(model=labels.fillna(here.model))
    name = f"{printed.model.nunique()} models of the paper"

    fig, ax = plt.subplots(figsize=(TWO_COLUMNS, 3.2), layout="constrained")
    sns.stripplot(printed, x="estimate", y="group", color="0.7", jitter=False, ax=ax, label=name)
    sns.stripplot(here, x="estimate", y="group", hue="model", marker="D", jitter=False, ax=ax)
    ax.axvline(0, color="grey", linewidth=0.6)
    ax.set(xlabel="bias (points above the control)", ylabel="")

    # Each group of printed models has a handle of its own.
    handles, names = ax.get_legend_handles_labels()
    by_name = dict(zip(names, handles, strict=True))
    ax.get_legend().remove()
    fig.legend(by_name.values(), by_name.keys(), loc="outside upper center", ncols=4, frameon=False)
    return fig
