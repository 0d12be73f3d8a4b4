"""Figures of the empathy gap, drawn from the tables of cells, positions and gaps.

``DRAWN`` is "sound", or "released" for the colours and scales of the authors' code.
"""

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from ingroup import figures
from ingroup.models import label
from ingroup.studies.empathy_gap import precision, stimuli
from ingroup.studies.empathy_gap.statistics import same_group

WHITE = "white: not different from at least one of its two in-group cells"
# The World Cultural Map of 2023, in the colours of Okabe and Ito.
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


def cell_matrix(cells: pd.DataFrame, column: str) -> np.ndarray:
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


def settings_of(table: pd.DataFrame, wanted: Sequence[str] = ()) -> list[str]:
    """List the settings of a table in the order in which they are drawn.

    Parameters
    ----------
    table : DataFrame
        A table with ``setting``.
    wanted : sequence of str
        The order of the settings. If it is empty, the paper's order.

    Returns
    -------
    list of str
        The settings in this order. Settings that are not in the table are left out.
    """
    in_order = wanted
    if not in_order:
        in_order = stimuli.prompts()["settings"]

    settings = set(table.setting)
    return [name for name in in_order if name in settings]


def visible_models(cells: pd.DataFrame) -> list[str]:
    """List the models whose cells differ enough for a heatmap.

    Parameters
    ----------
    cells : DataFrame
        The cells of all blocks, with ``model``, ``setting``, ``category`` and ``mean``.

    Returns
    -------
    list of str
        The models with a block whose cells differ by a point of the scale or more. For other
        models, z-scores would magnify differences that are smaller than a point.
    """
    blocks = cells.groupby(["model", "setting", "category"], sort=False)
    means = blocks["mean"]
    ranges = means.max() - means.min()

    widest = ranges.groupby("model", sort=False).max()
    is_visible = widest >= 1
    return widest.index[is_visible].to_list()


def _draw_matrix(
    ax: Axes,
    cells: pd.DataFrame,
    drawn: str,
    limits: tuple[float, float] | None = None,
    names: Sequence[str] = (),
) -> QuadMesh:
    """Draw the z-scores of one block, and return the drawn mesh.

    Cells that do not differ from both of their in-group cells are white.
    """
    z = cell_matrix(cells, "z")
    is_shown = cell_matrix(cells, "shown_released").astype(bool)

    category = cells.category.iloc[0]
    # "a person" is in no group.
    groups = ["", *stimuli.identities(category).group[1:]]
    # The colour map of the authors' code, or the one of all heatmaps.
    cmap = "YlGnBu" if drawn == "released" else None
    return figures.heatmap(ax, z, is_shown, groups, names, limits, cmap)


def heatmaps(
    cells: pd.DataFrame, categories: Sequence[str], settings: Sequence[str], drawn: str
) -> Figure:
    """Draw the matrices of one model in all settings and categories: Figure 2.

    Parameters
    ----------
    cells : DataFrame
        The model's cells, with ``setting`` and ``category``.
    categories, settings : sequence of str
        Their order. Categories and settings without cells are left out.
    drawn : {"sound", "released"}
        With "sound" all panels share a scale, from the 1st to the 99th percentile.

    Returns
    -------
    Figure
        Two columns wide, or less.
    """
    by_block = dict(list(cells.groupby(["category", "setting"])))
    in_order = itertools.product(categories, settings)
    blocks = [block for block in in_order if block in by_block]
    n_columns = _panels_in_a_row(blocks)
    n_rows = math.ceil(len(blocks) / n_columns)
    width = min(figures.TWO_COLUMNS, 1.3 + 0.85 * n_columns)
    fig, axes = plt.subplots(n_rows, n_columns, squeeze=False)
    fig.set_size_inches(width, 1.1 * n_rows + 0.7)

    has_one_scale = drawn == "sound"
    # The few pairs beyond a shared scale have the colour of its end.
    limits = tuple(np.percentile(cells.z, [1, 99]))
    for ax, block in zip(axes.flat, blocks, strict=False):
        of_block = by_block[block]
        if not has_one_scale:
            limits = (of_block.z.min(), of_block.z.max())
        image = _draw_matrix(ax, of_block, drawn, limits)
        ax.set_title("\n".join(block), fontsize=figures.points(6))
    for ax in axes.flat[len(blocks) :]:
        ax.set_axis_off()

    extend = "both" if has_one_scale else "neither"
    bar = fig.colorbar(image, ax=axes, shrink=0.6, pad=0.01, extend=extend)
    if has_one_scale:
        bar.set_label("z-score")
    else:
        bar.set_label("z-score, each panel in its own range")
        # The bar belongs to the last panel, so its numbers would be wrong for the others.
        bar.set_ticks(limits, labels=["lowest", "highest"])

    model = label(cells.model.iloc[0])
    sides = "perceiver (rows) by experiencer (columns); wording of P persona, S scale, T task"
    fig.suptitle(f"{model}\n{sides}\n{WHITE}", fontsize=figures.points(7))
    return fig


def _panels_in_a_row(blocks: Sequence[tuple[str, str]]) -> int:
    """Return the number of panels in a row: all settings of a category, one row per category.

    If a category lacks a setting, a row has up to 5 panels of any category.
    """
    n_categories = len({category for category, _ in blocks})
    n_settings = len({setting for _, setting in blocks})
    # Where some settings lack a category, a row for each category would have empty panels.
    if n_categories * n_settings > len(blocks):
        return min(5, len(blocks))
    return n_settings


def enlarged_heatmap(cells: pd.DataFrame, width: float, drawn: str) -> Figure:
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
    block = cells.iloc[0]
    # "A person from Canada" is the name in the prompt, too long for a label.
    identities = stimuli.identities(block.category).identity
    names = identities.str.replace("a person from ", "")

    # Without limits a heatmap ends at the 1st and the 99th percentile.
    limits = None
    extend = "both"
    scale = "z-score, 1st to 99th percentile"
    if drawn == "released":
        limits = (cells.z.min(), cells.z.max())
        extend = "neither"
        scale = "z-score"

    fig, ax = plt.subplots(figsize=(width, width * 0.92))
    image = _draw_matrix(ax, cells, drawn, limits, names)
    title = f"{label(block.model)}, setting {block.setting}"
    ax.set(xlabel="experiencer", ylabel="perceiver", title=title)

    if not cells.shown_released.all():
        lines = textwrap.fill(WHITE, figures.note_letters(width))
        fig.suptitle(lines, fontsize=figures.points(figures.NOTE_POINTS))
    bar = fig.colorbar(image, ax=ax, shrink=0.7, pad=0.01, extend=extend)
    bar.set_label(scale)
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
    palette = dict(zip(positions.cluster.unique(), figures.COLOURS, strict=False))
    if drawn == "released":
        palette = CULTURAL_MAP

    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 3.6))
    sns.scatterplot(
        positions,
        x="x",
        y="y",
        hue="cluster",
        palette=palette,
        s=22,
        linewidth=0,
        ax=ax,
    )
    title = label(positions.model.iloc[0])
    # Positions of t-SNE have no unit, so the axes have no numbers.
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="", title=title)
    ax.margins(0.1)
    ax.spines[:].set_visible(True)

    # The legend stands above the panel, where it covers no country.
    handles, names = ax.get_legend_handles_labels()
    ax.get_legend().remove()
    figures.legend(fig, handles, names, title="cultural cluster")
    figures.label_points(ax, positions.x, positions.y, positions.label)
    return fig


_DOT = {"linestyle": "", "marker": "o", "markersize": 3}
_HOLLOW = {"markerfacecolor": "white"}
_CROSS = {
    "linestyle": "",
    "marker": "x",
    "color": "black",
    "markersize": 3,
    "markeredgewidth": 0.6,
}
_NULL = {"color": "#BBBBBB", "linewidth": 2.2}
_PRINTED = ("#000000", "#999999", "#8A6D3B", "#7B3294")  # colours that no model of a run has
PANELS = ("this run", "real models, as printed in Table 2")


def gap_overview(
    gaps: pd.DataFrame,
    printed: pd.DataFrame,
    categories: Sequence[str],
    settings: Sequence[str],
) -> Figure:
    """Draw all gaps of a run beside the gaps that the paper printed.

    Parameters
    ----------
    gaps : DataFrame
        Table 2 of a run.
    printed : DataFrame
        Table 2 of the paper, as `printed.gaps_of_the_paper` loads it.
    categories, settings : sequence of str
        Categories and settings in the order in which they are drawn; others are left out.

    Returns
    -------
    Figure
        Two columns wide, with the two `PANELS`.
    """
    fig, axes = figures.panels(2, 4.8, 2, least=2, sharex=True, sharey=True)
    here_ax, printed_ax = axes
    lines = pd.MultiIndex.from_product([categories, settings])
    is_drawn = printed.setting.isin(settings)
    _draw_gaps(here_ax, gaps, lines, figures.COLOURS)
    _draw_gaps(printed_ax, printed[is_drawn], lines, _PRINTED)
    for ax, title in zip(axes, PANELS, strict=True):
        ax.set(title=title, ylabel="setting: P persona, S scale, T task")
        _name_categories(ax, lines)

    # Side by side the panels share these texts; a panel alone, or below another, shows its own.
    is_side_by_side = printed_ax.get_subplotspec().is_first_row()
    if is_side_by_side:
        printed_ax.yaxis.label.set_visible(False)
        for text in here_ax.texts:
            text.set_visible(False)
    else:
        here_ax.tick_params(labelbottom=True)

    key = {
        "95 % of the null": _NULL,
        "95 % interval over events": {"color": "#555555", "linewidth": 0.9},
        "less than 0.1 points of the scale": _DOT | {"color": "#555555"} | _HOLLOW,
        r"p of whole groups $\geq$ 0.05": _CROSS,
    }
    figures.legend_of_lines(fig, key)
    return fig


def _draw_gaps(ax: Axes, table: pd.DataFrame, lines: pd.MultiIndex, colours: Sequence[str]) -> None:
    """Draw the gaps of each model on the lines of their blocks, with a legend of the models."""
    handles = []
    names = []
    # Each model has its own height within a line, so that their intervals do not overlap.
    offsets = np.linspace(-0.27, 0.27, table.model.nunique())
    models = table.groupby("model", sort=False)
    for offset, colour, (model, rows) in zip(offsets, colours, models, strict=False):
        blocks = pd.MultiIndex.from_frame(rows[["category", "setting"]])
        y = lines.get_indexer(blocks) + offset
        dot = _draw_model(ax, rows, y, colour)

        name = label(model)
        if rows.delta.isna().all():
            name += " (no cell differs)"
        handles.append(plt.Line2D([], [], **dot))
        names.append(name)

    ax.axvline(0, color="black", linewidth=0.5, zorder=0)
    # The axis is upside down, so that the first line is at the top.
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_xlabel(r"empathy gap $\delta$")
    ax.set_yticks(range(len(lines)), lines.get_level_values(1))
    ax.legend(
        handles,
        names,
        ncols=2,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.06),
        columnspacing=1,
    )


def _draw_model(ax: Axes, rows: pd.DataFrame, y: np.ndarray, colour: str) -> dict[str, Any]:
    """Draw a model's gaps and intervals, and return the style of its dot in a legend."""
    dot = _DOT | {"color": colour, "zorder": 3}
    ax.hlines(y, rows.null_low, rows.null_high, zorder=1, **_NULL)
    ax.plot(rows.delta, y, **dot)
    # Only a run has intervals over events; the printed table has none.
    if "low" not in rows:
        return dot

    ax.hlines(y, rows.low, rows.high, color=colour, linewidth=0.9, zorder=2)
    is_small = rows.points.abs() < 0.1
    is_weak = rows.p_groups >= 0.05
    ax.plot(rows.delta[is_small], y[is_small], **dot, **_HOLLOW)
    ax.plot(rows.delta[is_weak], y[is_weak], zorder=4, **_CROSS)

    # The dot in the legend is hollow where all dots of a model are.
    has_gap = rows.delta.notna()
    if is_small[has_gap].all():
        return dot | _HOLLOW
    return dot


def _name_categories(ax: Axes, lines: pd.MultiIndex) -> None:
    """Name each category beside its lines, and draw a rule between two categories."""
    categories = lines.get_level_values(0)
    for category in categories.unique():
        rows = np.flatnonzero(categories == category)
        if rows[0] > 0:
            ax.axhline(rows[0] - 0.5, color="#DDDDDD", linewidth=0.6)
        ax.annotate(
            category,
            (1.01, rows.mean()),
            xycoords=("axes fraction", "data"),
            rotation=270,
            va="center",
            fontsize=figures.points(7),
        )


def mean_gaps(gaps: pd.DataFrame, categories: Sequence[str]) -> Figure:
    """Draw the gaps of each model on one line, with the mean over the blocks of all models.

    Parameters
    ----------
    gaps : DataFrame
        From `statistics.shared_blocks`; the model of a paper ends with "(printed)".
    categories : sequence of str
        The categories, one colour each, in order.

    Returns
    -------
    Figure
        Two columns wide.
    """
    names = list(gaps.model.unique())
    height = 1.1 + 0.2 * len(names)
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, height))
    palette = figures.COLOURS[: len(categories)]
    lines = {
        "x": "delta",
        "y": "model",
        "order": names,
        "hue": "category",
        "hue_order": categories,
        "dodge": True,
        "jitter": False,
        "legend": False,
        "ax": ax,
    }
    common = gaps[gaps.common]
    others = gaps[~gaps.common]
    sns.stripplot(common, palette=palette, size=3, alpha=0.8, **lines)
    sns.stripplot(others, palette=palette, size=3, alpha=0.25, **lines)

    # White centres on top make the dots of small gaps hollow.
    small = gaps[gaps.points.abs() < 0.1]
    white = ["white"] * len(categories)
    sns.stripplot(small, palette=white, size=1.6, zorder=4, **lines)

    means = common.groupby("model").delta.mean().reindex(names)
    ax.plot(means, names, "|", color="black", markersize=11, markeredgewidth=1.6)
    ax.axvline(0, color="black", linewidth=0.5, zorder=0)

    # The models of the paper come last, below a rule.
    n_printed = sum(name.endswith("(printed)") for name in names)
    if n_printed:
        ax.axhline(len(names) - n_printed - 0.5, color="#BBBBBB", linewidth=0.6)
    dots = r"empathy gap $\delta$ (a dot a block, hollow below 0.1 points of the scale, "
    bars = "pale where not all models have it; the line the mean of those that all have)"
    ax.set(xlabel=dots + bars, ylabel="")

    handles = [plt.Line2D([], [], **_DOT, color=colour) for colour in palette]
    figures.legend(fig, handles, categories)
    return fig


def ground_truth_cells(
    cells: pd.DataFrame, recovered: pd.DataFrame, categories: Sequence[str]
) -> Figure:
    """Draw the mean rating of each cell against the ground truth, one panel per category.

    Parameters
    ----------
    cells : DataFrame
        The cells of one model and setting, with ``model``, ``setting``, ``category``, ``mean`` and
        ``ground_truth``, as `ground_truth.cells` has them.
    recovered : DataFrame
        From `ground_truth.with_verdicts`.
    categories : sequence of str
        The categories, one panel each, in order.

    Returns
    -------
    Figure
        Two columns wide.
    """
    model = cells.model.iloc[0]
    setting = cells.setting.iloc[0]
    is_of_this_model = (recovered.model == model) & (recovered.setting == setting)
    by_category = recovered[is_of_this_model].set_index("category")

    n_panels = len(categories)
    fig, axes = figures.panels(n_panels, 2.5, n_panels, least=1.8)
    for ax, category in zip(axes, categories, strict=True):
        rows = cells[cells.category == category]
        if len(rows):
            _draw_cells(ax, rows, by_category.loc[category])

    axes[0].set_ylabel("mean rating here")
    axes[0].legend(loc="upper left")
    fig.suptitle(f"{label(model)}, {setting}", fontsize=figures.points(7))
    return fig


def _draw_cells(ax: Axes, cells: pd.DataFrame, recovered: pd.Series) -> None:
    """Draw each cell of a category as a point, and write how well the category is recovered."""
    category = recovered.name
    is_own = same_group(stimuli.identities(category).group).ravel()
    kinds = {"other group": ~is_own, "same group": is_own}
    for (kind, is_of_kind), colour in zip(kinds.items(), figures.COLOURS, strict=False):
        points = cells[is_of_kind]
        ax.plot(
            points.ground_truth,
            points["mean"],
            "o",
            label=kind,
            markersize=2,
            markeredgewidth=0,
            alpha=0.6,
            color=colour,
        )
    # On this line the mean here equals the ground truth.
    middle = cells.ground_truth.mean()
    ax.axline((middle, middle), slope=1, color="black", linewidth=0.5)
    ax.set_title(category)
    ax.set_xlabel("ground-truth mean rating")

    lines = [
        f"ground-truth $\\delta$ {recovered.ground_truth_delta:.2f}, here {recovered.delta:.2f}",
        f"the model's own error: {recovered.model_error:+z.2f}",
        f"(of cells: {recovered.cell_error:.2f} points)",
        recovered.verdict,
    ]
    ax.text(
        0.99,
        0.02,
        "\n".join(lines),
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=figures.points(5.5),
        linespacing=1.3,
    )


def distributions(table: pd.DataFrame) -> Figure:
    """Draw the mean probability of each number of the scale, one line per category.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``category``, ``rating`` and ``probability``, in one setting.

    Returns
    -------
    Figure
        Two columns wide, one row per model, with probabilities on a logarithmic scale.
    """
    categories = table.category.unique()
    palette = dict(zip(categories, figures.COLOURS, strict=False))
    fig, axes = figures.facets(table, 1.4, columns=1, sharex=True, sharey=True)
    fig.set_figwidth(figures.TWO_COLUMNS)
    for ax, rows in axes:
        sns.lineplot(
            rows,
            x="rating",
            y="probability",
            hue="category",
            palette=palette,
            ax=ax,
            linewidth=0.6,
            marker=".",
            markersize=3,
            markeredgewidth=0,
            legend=False,
        )
        ax.set(ylabel="mean probability", yscale="log")

    # The legend stands above the panels, where it covers no line.
    looks = {category: {"color": colour} for category, colour in palette.items()}
    figures.legend_of_lines(fig, looks)
    return fig


def precisions(ratings: pd.DataFrame, models: Sequence[str]) -> Figure:
    """Draw the ratings in float32 against those in bfloat16, one panel per model and reading.

    Parameters
    ----------
    ratings : DataFrame
        From `precision.ratings`.
    models : sequence of str
        The models, one row of panels for each.

    Returns
    -------
    Figure
        Two columns wide. The size of a dot is the number of prompts with these two ratings.
    """
    n_prompts = ratings.value_counts(["model", "reading", "float32", "bfloat16"])
    dots = n_prompts.rename("prompts").reset_index()

    height = 2.8 * len(models)
    fig, axes = plt.subplots(
        len(models),
        len(precision.READINGS),
        figsize=(figures.TWO_COLUMNS, height),
        squeeze=False,
        sharex=True,
        sharey=True,
    )

    panels = itertools.product(models, precision.READINGS)
    for ax, (model, reading) in zip(axes.flat, panels, strict=True):
        is_in_panel = (dots.model == model) & (dots.reading == reading)
        sns.scatterplot(
            dots[is_in_panel],
            x="float32",
            y="bfloat16",
            size="prompts",
            # Where all pairs of ratings are different, one size would be all there is to explain.
            legend="auto" if dots[is_in_panel].prompts.nunique() > 1 else False,
            ax=ax,
        )
        # On this line both precisions give the same rating.
        ax.axline((50, 50), slope=1, color="grey", linewidth=0.8, zorder=0)
        ax.set(title=f"{label(model)}, {reading}", aspect="equal")
        ax.set(xlabel="rating in float32", ylabel="rating in bfloat16")
    return fig


def over_settings(table: pd.DataFrame) -> Figure:
    """Draw the mean effect of each model and category over settings, with its interval.

    Parameters
    ----------
    table : DataFrame
        From `blocks.over_settings`, rows with an estimate.

    Returns
    -------
    Figure
        One column wide. The pale bar reaches from the least to the greatest effect of a setting.
    """
    # `figures.intervals` draws "low" to "high" as a pale bar where there is a second interval.
    names = {"low": "low_like_these", "high": "high_like_these", "least": "low", "greatest": "high"}
    drawn = table.rename(columns=names)
    drawn["line"] = table.model.map(label) + ", " + table.category
    fig = figures.intervals(
        drawn,
        x="estimate",
        y="line",
        facet=None,
        xlabel="own-group effect (SD between cells)",
        step=0.22,
        margin=1,
    )

    colour = figures.COLOURS[0]
    looks = {
        "lowest to highest of the settings": {"color": colour, "linewidth": 2.4, "alpha": 0.5},
        "95 % interval": {"color": colour, "linewidth": 0.7},
    }
    figures.legend_of_lines(fig, looks)
    return fig
