"""Figures of GIEBench, each drawn from a written table, with the printed models in it."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ingroup.giebench import stimuli
from ingroup.giebench.accuracy import OVERALL
from ingroup.style import TWO_COLUMNS

GREY = "#999999"
CHANCE = 25  # percent


def by_category(both: pd.DataFrame) -> Figure:
    """Draw the accuracy of all models by category and prompt, with Wilson's intervals here.

    Parameters
    ----------
    both : DataFrame
        From `printed.with_printed`.

    Returns
    -------
    Figure
        A panel for each prompt; the dotted line is guessing.
    """
    lines = [*stimuli.categories(), OVERALL]
    fig, axes = plt.subplots(
        ncols=len(stimuli.PROMPTS),
        figsize=(TWO_COLUMNS, 4.8),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for ax, prompt in zip(axes, stimuli.PROMPTS, strict=True):
        of_prompt = both[both.prompt == prompt]
        is_printed = of_prompt.source == "printed"
        printed = of_prompt[is_printed]
        here = of_prompt[~is_printed]
        intervals(ax, printed, here, "accuracy", "category", lines)
        ax.axvline(CHANCE, color="black", linewidth=0.6, linestyle=":")
        ax.axhline(len(lines) - 1.5, color=GREY, linewidth=0.5)
        ax.set(title=prompt, xlabel="accuracy (%)", xlim=(-3, 103))

    handles, names = axes[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=4)
    return fig


def intervals(
    ax: Axes, printed: pd.DataFrame, here: pd.DataFrame, x: str, line: str, lines: list[str]
) -> None:
    """Draw printed models as marks, and below them a dot with its interval for each model here.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    printed, here : DataFrame
        Columns `x` and `line`; `here` also ``model``, ``low`` and ``high``.
    x, line : str
        The column of the estimate, and that of the line on which it stands.
    lines : list of str
        The lines, from top to bottom.
    """
    models = here.model.unique()
    offsets = np.linspace(-0.33, 0.33, 1 + len(models))
    y = printed[line].map(lines.index) + offsets[0]
    ax.plot(printed[x], y, "|", color=GREY, markersize=4, label="printed models")

    for model, offset in zip(models, offsets[1:], strict=True):
        table = here[here.model == model]
        y = table[line].map(lines.index) + offset
        (dots,) = ax.plot(table[x], y, "o", markersize=2.8, label=model)
        ax.hlines(y, table.low, table.high, color=dots.get_color(), linewidth=0.9)
    ax.set_yticks(range(len(lines)), lines)
    ax.set_ylim(len(lines) - 0.5, -0.5)


def mismatch(changes: pd.DataFrame) -> Figure:
    """Draw how the other identity of a pair changes the accuracy under COT: Table 7.

    Parameters
    ----------
    changes : DataFrame
        ``model`` (the printed one first), ``identity_tuple`` and ``change`` in points.

    Returns
    -------
    Figure
        One line per pair; the printed model is grey.
    """
    models = changes.model.unique()
    palette = [GREY, *sns.color_palette(n_colors=len(models) - 1)]
    fig, ax = plt.subplots(figsize=(5, 6.4))
    sns.stripplot(
        changes,
        x="change",
        y="identity_tuple",
        hue="model",
        palette=palette,
        dodge=True,
        jitter=False,
        size=3.5,
        ax=ax,
    )
    ax.grid(axis="y", linewidth=0.3)
    ax.set(xlabel="accuracy with the other identity minus the own (points)", ylabel="")
    sns.move_legend(ax, "lower center", bbox_to_anchor=(0.3, 1), ncols=4, title=None)
    return fig


def radars(both: pd.DataFrame) -> Figure:
    """Draw accuracy under COT by category, a radar for each series of models: Figure 3.

    Parameters
    ----------
    both : DataFrame
        From `printed.with_printed`.

    Returns
    -------
    Figure
        Printed models are broken lines, models here are black; the dotted circle is guessing.
    """
    rows = both[(both.prompt == "COT") & (both.category != OVERALL)]
    groups = rows.groupby("series", sort=False)
    n_lines = -(-len(groups) // 3)
    fig, axes = plt.subplots(
        nrows=n_lines,
        ncols=3,
        figsize=(TWO_COLUMNS, 2.5 * n_lines),
        subplot_kw={"projection": "polar"},
        layout="constrained",
    )
    for ax in axes.flat[len(groups) :]:
        ax.remove()
    for ax, (series, table) in zip(axes.flat, groups, strict=False):
        _radar(ax, table)
        ax.set_title(series, fontsize=7)
    return fig


def _radar(ax, table):
    """Draw the models of one series as closed lines."""
    spokes = stimuli.categories()
    closed = [*spokes, spokes[0]]
    angles = np.linspace(0, 2 * np.pi, len(closed))
    for (source, model), cells in table.groupby(["source", "model"], sort=False):
        look = {"linestyle": "--", "linewidth": 0.8}
        if source == "here":
            look = {"color": "black", "linewidth": 1.4}
        values = cells.set_index("category").accuracy.reindex(closed)
        ax.plot(angles, values, label=model, **look)

    guessing = np.full(len(angles), CHANCE)
    ax.plot(angles, guessing, ":", color=GREY, linewidth=0.8)
    # The first spoke is at the top, the next ones follow clockwise.
    ax.set(theta_offset=np.pi / 2, theta_direction=-1, ylim=(0, 100))
    ax.set_yticks([50, 100], ["50", "100"], fontsize=5)
    ax.set_xticks(angles[:-1], spokes, fontsize=5)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), fontsize=5, ncols=2)
