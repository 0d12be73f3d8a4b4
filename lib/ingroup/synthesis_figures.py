"""Figures of the synthesis: group profiles, agreement, and the paths of the multiverse."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colors
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ingroup import canvas, figures
from ingroup.latex import group_names
from ingroup.models import label
from ingroup.stats import multiverse

STANDS = figures.COLOURS[0]
REVERSED = figures.COLOURS[1]
NEITHER = "#BBBBBB"
CONTROL = "#333333"

Look = Mapping[str, Any]  # options of matplotlib

_BLANK: Look = {
    "ha": "center",
    "va": "center",
    "color": "#777777",
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6},
}
_DOT: dict[str, Any] = {
    "linestyle": "",
    "marker": "o",
    "markersize": 3,
    "color": "#555555",
}
_HOLLOW = _DOT | {"markerfacecolor": "white"}
_DASH = _DOT | {"marker": "$–$", "color": _BLANK["color"]}
_TICK: dict[str, Any] = {
    "linestyle": "",
    "marker": "|",
    "color": "black",
}
_ZERO_LINE: Look = {
    "color": "black",
    "linewidth": 0.5,
    "zorder": 0,
}
_MODEL_AND_CONTROL = (figures.COLOURS[0], "#999999")
_COLOURS_OF_CHOICES = ("#333333", "#8A6D3B")
_MARKERS = "osD^v<>"
# Columns of a multiverse that are no choice of a path.
_RESULTS = {
    "model",
    "claim",
    "estimate",
    "low",
    "high",
    "p",
    "reason",
    "least",
    "p_corrected",
    "testable",
    "stands",
    "reversed",
}


def _write_own_error(
    ax: Axes, x: float, y: float, rows: pd.DataFrame, template: str, size: float
) -> None:
    """Write above a panel a calibrant's own error and how many intervals hold the ground truth.

    The template takes the error, the number of such intervals, and the number of all intervals.
    """
    # Only a calibrant's rows have a verdict: whether the interval holds the ground truth.
    judged = rows[rows.verdict.notna()]
    text = ""
    if len(judged):
        squares = judged.model_error**2
        own_error = np.sqrt(squares.mean())
        n_inside = (judged.verdict == "covers the ground truth").sum()
        text = template.format(own_error, n_inside, len(judged))

    fontsize = figures.points(size)
    ax.text(x, y, text, transform=ax.transAxes, ha="center", va="bottom", fontsize=fontsize)


def _draw_effects(
    ax: Axes, rows: pd.DataFrame, y: NDArray[np.floating], colour: str, limit: float
) -> None:
    """Draw a measure's effects with their intervals, and arrows where these leave the panel."""
    ax.hlines(y, rows.low, rows.high, color=colour, linewidth=1)

    is_beyond_left = rows.low < -limit
    is_beyond_right = rows.high > limit
    y_left = y[is_beyond_left]
    y_right = y[is_beyond_right]

    edge = 0.96 * limit
    x_left = np.full_like(y_left, -edge)
    x_right = np.full_like(y_right, edge)
    arrow = {
        "color": colour,
        "markersize": 3,
        "markeredgewidth": 0,
    }
    ax.plot(x_left, y_left, "<", **arrow)
    ax.plot(x_right, y_right, ">", **arrow)

    # A single item has no interval, so its dot is hollow.
    has_interval = rows["items"] > 1
    face = np.where(has_interval, colour, "white")
    ax.scatter(
        rows.effect,
        y,
        s=9,
        c=face,
        edgecolors=colour,
        linewidths=0.7,
        zorder=3,
    )


def group_profile(table: pd.DataFrame, measures: Sequence[str], models: Sequence[str]) -> Figure:
    """Draw what the answers of a model say of each group, one panel per measure.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``measure``, ``category``, ``group``, ``effect``, ``low``, ``high``, ``items``,
        ``ground_truth``, ``model_error`` and ``verdict``.
    measures : sequence of str
        The order of the panels.
    models : sequence of str
        The model, and the control in grey if it is there.

    Returns
    -------
    Figure
        Two columns wide.
    """
    groups = table.drop_duplicates("group")
    measured = set(table.measure)
    present = [measure for measure in measures if measure in measured]
    n_panels = len(present)
    height = 1.5 + 0.23 * len(groups)
    fig, axes = figures.panels(
        n_panels,
        height,
        columns=n_panels,
        least=0.8,
        sharex=True,
        sharey=True,
    )

    y = figures.heights(len(groups))
    limit = _half_width_of_panel(table)
    is_of_model = table.model == models[0]
    has_ground_truth = table.ground_truth[is_of_model].notna().any()
    # A calibrant's own error stands between the panel and its title.
    pad = 12 + figures.points(6) if has_ground_truth else 6

    for ax, measure in zip(axes, present, strict=True):
        rows = table[table.measure == measure].set_index("group")
        of_models = []
        for model in models:
            # All models have the same lines, with NaN where a model lacks a group.
            of_model = rows[rows.model == model].reindex(groups.group)
            of_models.append(of_model)
        _draw_measure(ax, of_models, y, limit, has_ground_truth)
        title = measure.replace(" ", "\n")
        ax.set_title(title, fontsize=figures.points(7), pad=pad)

    leftmost = axes[0]
    leftmost.set(xlim=(-limit, limit), ylim=(-0.7, len(groups) - 0.3))
    leftmost.set_yticks(y, groups.group)
    height_by_category = pd.Series(y, groups.category)
    _name_categories(axes, height_by_category)
    figures.label_below(axes, "effect, in standard deviations of single answers")

    looks = {}
    for model, colour in zip(models, _MODEL_AND_CONTROL, strict=False):
        name = label(model)
        looks[name] = _DOT | {"color": colour}
    is_single_item = table["items"] == 1
    if is_single_item.any():
        looks["a single item"] = _HOLLOW
    looks["not in the design"] = _DASH
    if has_ground_truth:
        looks["ground truth"] = _TICK

    name = label(models[0])
    figures.legend_of_lines(
        fig,
        looks,
        columnspacing=1,
        title=f"Group profiles of {name}",
        title_fontsize=figures.points(8),
    )
    return fig


def _half_width_of_panel(table: pd.DataFrame) -> float:
    """Return half the width of a panel that holds all effects and nearly all intervals."""
    largest_effect = table.effect.abs().max()
    farther_ends = table[["low", "high"]].abs().max(axis=1)
    # A few very long intervals would make all others too short to see.
    nearly_largest_end = farther_ends.quantile(0.98)
    return 1.1 * max(largest_effect, nearly_largest_end, 0.1)


def _draw_measure(
    ax: Axes,
    of_models: Sequence[pd.DataFrame],
    y: NDArray[np.integer],
    limit: float,
    has_ground_truth: bool,
) -> None:
    """Draw one measure: the first model's effects above the lines, others in grey below."""
    first, *others = of_models
    colour_of_first, grey = _MODEL_AND_CONTROL
    y_of_first = y + 0.14
    _draw_effects(ax, first, y_of_first, colour_of_first, limit)

    # A group without a row is not in the design; one with items but no effect gave no answer.
    is_not_in_design = first["items"].isna()
    reasons = is_not_in_design.map({True: "–", False: "no answer"})
    is_blank = first.effect.isna()
    smallest = figures.points(5)
    for height, reason in zip(y[is_blank], reasons[is_blank], strict=True):
        ax.text(0, height, reason, fontsize=smallest, **_BLANK)

    if has_ground_truth:
        ax.plot(first.ground_truth, y_of_first, "|", color="black", markersize=5, zorder=4)
        template = "own error {:.2f}\n{} of {} inside"
        _write_own_error(ax, 0.5, 1.005, first, template, size=5)
    for other in others:
        _draw_effects(ax, other, y - 0.2, grey, limit)
    ax.axvline(0, **_ZERO_LINE)


def _name_categories(axes: Sequence[Axes], y: pd.Series) -> None:
    """Draw a rule above each category's groups, and write its name beside the last panel."""
    for category, heights in y.groupby(level=0, sort=False):
        above = heights.max() + 0.5
        for ax in axes:
            ax.axhline(above, color="#BBBBBB", linewidth=0.5)
        name = category.replace("race_or_ethnicity", "race, ethnicity")
        axes[-1].annotate(
            name,
            (1.06, heights.mean()),
            fontsize=figures.points(6),
            xycoords=("axes fraction", "data"),
            rotation=270,
            va="center",
        )


def agreement(table: pd.DataFrame) -> Figure:
    """Draw the rank correlations of all pairs of measures, one panel per model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``one``, ``other``, ``n``, ``rho``, ``low``, ``high``, ``p_holm``,
        ``ground_truth_rho``, ``model_error`` and ``verdict``.

    Returns
    -------
    Figure
        Two columns wide.
    """
    pairs = table.drop_duplicates(["one", "other"])
    models = list(table.model.unique())
    # Five panels side by side have no room for words.
    n_rows = 1 if len(models) <= 4 else 2
    n_columns = math.ceil(len(models) / n_rows)
    height = 0.4 + n_rows * 0.23 * len(pairs)
    fig, axes = plt.subplots(
        n_rows,
        n_columns,
        figsize=(figures.TWO_COLUMNS, height),
        sharex=True,
        sharey=True,
        squeeze=False,
    )

    # A calibrant's own error stands between the panel and its title.
    pad = 6 + figures.points(10)
    for ax, model, colour in zip(axes.flat, models, cycle(figures.COLOURS), strict=False):
        # All panels have the same lines, with NaN where a model lacks a pair.
        of_model = table[table.model == model]
        rows = pairs[["one", "other"]].merge(of_model, how="left")
        _draw_correlations(ax, rows, colour)
        ax.set_title(label(model), pad=pad)
    for ax in axes.flat[len(models) :]:
        ax.set_axis_off()

    y = figures.heights(len(pairs))
    names_of_pairs = pairs.one + " and " + pairs.other
    axes[0, 0].set_yticks(y, names_of_pairs)

    looks = {
        "p < 0.05, by Holm": _DOT | {"markersize": 3.5},
        "p of 0.05 or more": _HOLLOW | {"markersize": 3.5},
        "95 % interval": {"color": "#555555", "linewidth": 1},
    }
    if table.ground_truth_rho.notna().any():
        looks["ground truth"] = _TICK | {"markersize": 7}
    figures.legend_of_lines(fig, looks)
    return fig


def _draw_correlations(ax: Axes, rows: pd.DataFrame, colour: str) -> None:
    """Draw each pair of measures with its number of groups, or say why it has no correlation."""
    y = figures.heights(len(rows))
    ax.hlines(y, rows.low, rows.high, color=colour, linewidth=1)
    is_significant = rows.p_holm < 0.05
    face = np.where(is_significant, colour, "white")
    ax.scatter(
        rows.rho,
        y,
        s=14,
        c=face,
        edgecolors=colour,
        linewidths=0.8,
        zorder=3,
    )
    ax.plot(rows.ground_truth_rho, y, "|", color="black", markersize=7, zorder=4)

    smallest = figures.points(5)
    small = figures.points(figures.NOTE_POINTS)
    # The numbers of groups stand to the right of 1, the largest possible correlation.
    x_of_numbers = 1.28
    for height, row in zip(y, rows.itertuples(), strict=True):
        if np.isnan(row.rho):
            reason = _why_no_correlation(row.n)
            ax.text(0, height, reason, fontsize=smallest, **_BLANK)
        else:
            n_groups = f"{row.n:g}"
            ax.text(x_of_numbers, height, n_groups, ha="center", va="center", fontsize=small)

    ax.axvline(0, **_ZERO_LINE)
    ax.text(x_of_numbers, len(rows) - 0.4, "groups", ha="center", fontsize=small)
    template = "own error {:.2f}, {} of {} ticks inside"
    _write_own_error(ax, 0.37, 1.03, rows, template, figures.NOTE_POINTS)

    ax.set_xlabel("rank correlation")
    ax.set_xticks([-1, -0.5, 0, 0.5, 1])
    # Axes are shared, so only the last row would have numbers.
    ax.tick_params(labelbottom=True)
    ax.set_xlim(-1.1, 1.45)
    ax.set_ylim(-0.7, len(rows) - 0.3)


def _why_no_correlation(n_groups: float) -> str:
    """Say why two measures have no correlation. NaN groups stand for a missing measure."""
    if np.isnan(n_groups):
        return "not asked"
    if n_groups < 4:
        return f"{n_groups:g} groups, too few"
    return "no difference between groups"


def outcome(rows: pd.DataFrame) -> str:
    """Say on which share of its paths a claim stands, or is reversed.

    Parameters
    ----------
    rows : DataFrame
        The paths of one claim, as :func:`ingroup.stats.multiverse.shares` takes them.

    Returns
    -------
    str
        One line for each of the two that occurs; a sentence where neither does.
    """
    # The rows are of one claim, so their shares are one row.
    (share,) = multiverse.shares(rows).itertuples()
    if np.isnan(share.stands):
        return "cannot be told"

    lines = []
    if share.stands > 0:
        lines.append(f"stands on {share.stands:.0f} %")
    if share.reversed > 0:
        lines.append(f"reversed on {share.reversed:.0f} %")
    return ",\n".join(lines) or "stands on no path"


def claim_name(claim: str) -> str:
    """Write the name of a claim as a figure does.

    Parameters
    ----------
    claim : str
        Its name in the tables: a phrase, or a key in lower case such as ``"young_adults"``.

    Returns
    -------
    str
        The phrase as it is; the name of a group (`ingroup.latex.group_names`); any other key in
        words that begin with capitals.
    """
    if not claim.islower():
        return claim
    in_words = claim.replace("_", " ").title()
    return group_names().get(claim, in_words)


def specification_curves(
    table: pd.DataFrame, model: str, control: str | None, across: int, ylabel: str
) -> Figure:
    """Draw all claims of one study on a model: its sorted estimates, and the choices below them.

    Parameters
    ----------
    table : DataFrame
        The paths of the study, with ``model``.
    model : str
        The model.
    control : str or None
        The model whose estimates stand beside it as a line.
    across : int
        How many claims stand side by side.
    ylabel : str
        What an estimate is.

    Returns
    -------
    Figure
        Two columns wide.
    """
    choice_columns = [column for column in table.columns if column not in _RESULTS]
    paths_of_model = table[table.model == model]
    # Claims and options keep the order of the table; only paths are sorted.
    claims = paths_of_model.claim.unique()
    choices = _options_of(paths_of_model, choice_columns)
    paths_of_model = _sorted_paths(paths_of_model, choice_columns)

    n_down = math.ceil(len(claims) / across)
    n_options = sum(len(options) for options in choices.values())
    fig, axes, size = _curves_above_marks(n_down, across, n_options)
    # Five titles side by side have no room for larger type.
    title_size = figures.points(6) if across < 5 else 6
    smallest = figures.points(5)

    pairs = _paired_panels(axes)
    for ax in pairs[len(claims) :].flat:
        ax.set_axis_off()

    panel_inches = 0.75 * figures.TWO_COLUMNS / across
    paths_of_control = table[table.model == control]
    # There may be more pairs of panels than claims.
    for number, (claim, pair) in enumerate(zip(claims, pairs, strict=False)):
        row_number, column = divmod(number, across)
        is_of_claim = paths_of_model.claim == claim
        rows = paths_of_model[is_of_claim].reset_index(drop=True)
        of_control = paths_of_control[paths_of_control.claim == claim]
        upper, lower = pair
        _draw_curve(upper, rows, of_control, panel_inches)
        draw_marks(lower, rows, choices, labelled=column == 0, size=size)

        title = f"{claim_name(claim)}\n{outcome(rows)}"
        upper.set_title(title, fontsize=title_size)
        upper.tick_params(labelsize=smallest)
        if column == 0:
            upper.set_ylabel(ylabel, fontsize=figures.points(6))
        if row_number == n_down - 1:
            lower.set_xlabel("paths, by estimate", fontsize=smallest)

    looks = {
        "stands (pale: 95 % interval)": {"color": STANDS, "linewidth": 3},
        "neither": {"color": NEITHER, "linewidth": 3},
        "reversed": {"color": REVERSED, "linewidth": 3},
    }
    if control:
        name = f"{label(control)}, the negative control"
        looks[name] = {"color": CONTROL, "linewidth": 0.7}
    figures.legend_of_lines(fig, looks, title=label(model), title_fontsize=figures.points(8))

    # The height of the curves is known only after the layout.
    fig.draw_without_rendering()
    for curve in axes[::2, 0]:
        canvas.wrap(curve.yaxis.label, curve.bbox.height)
    return fig


def _paired_panels(axes: NDArray[Any]) -> NDArray[Any]:
    """Pair the panel of each curve with that of its marks, one row per claim in reading order.

    The grid has a row of curves above each row of marks. All curves get the scale of the first, so
    that equal estimates look equal.
    """
    n_rows, across = axes.shape
    # The axes of the array: the row of the figure, curve or marks, the column.
    by_row = axes.reshape(n_rows // 2, 2, across)
    pairs = by_row.swapaxes(1, 2).reshape(-1, 2)

    first_curve, *other_curves = pairs[:, 0]
    for ax in other_curves:
        ax.sharey(first_curve)
    return pairs


def _sorted_paths(paths: pd.DataFrame, choice_columns: Sequence[str]) -> pd.DataFrame:
    """Sort paths by their rounded estimates, then by the lower ends of their intervals."""
    # Paths that are equal in both are sorted by their options, so that their marks lie together.
    by = ["rounded", "low", *reversed(choice_columns)]
    rounded = paths.estimate.round(9)
    with_rounded = paths.assign(rounded=rounded)
    return with_rounded.sort_values(by, kind="stable")


def _options_of(paths: pd.DataFrame, choice_columns: Sequence[str]) -> dict[str, list[str]]:
    """List the options of each choice, without columns that are the same on all paths."""
    choices = {}
    for name in choice_columns:
        column = paths[name]
        if column.nunique() > 1:
            options = column.astype(str).unique()
            choices[name] = list(options)
    return choices


def _curves_above_marks(
    n_down: int, across: int, n_options: int
) -> tuple[Figure, NDArray[Any], float]:
    """Make a figure with a row of curves above each row of marks, and choose a size of type.

    Returns the figure, its panels, and the size of the options' names in points.
    """
    size = figures.points(5)
    # An inch holds about twelve lines of 5 points.
    marks_height = 0.085 * n_options * size / 5
    curve_height = 1.0
    height = n_down * (1.25 + marks_height) + 0.3
    if height > canvas.MAX_HEIGHT_INCHES:
        # The names of the options do not follow FONT then, as they would overlap.
        size = 5
        marks_height = 0.085 * n_options
        height = n_down * (1.25 + marks_height) + 0.3
        # If that is still too high, the curves become flatter.
        too_much = max(height - canvas.MAX_HEIGHT_INCHES, 0)
        curve_height = max(1 - too_much / n_down, 0.3)
        height -= too_much

    fig, axes = plt.subplots(
        2 * n_down,
        across,
        figsize=(figures.TWO_COLUMNS, height),
        height_ratios=[curve_height, marks_height] * n_down,
        squeeze=False,
    )
    return fig, axes, size


def _draw_curve(ax: Axes, rows: pd.DataFrame, control: pd.DataFrame, inches: float) -> None:
    """Draw sorted estimates with intervals, and the control's as a line of the same width."""
    x = np.arange(len(rows))
    colour = np.select([rows.stands, rows.reversed], [STANDS, REVERSED], NEITHER)

    # Intervals are mixed with white instead of transparent, and a little too wide: where
    # transparent neighbours overlap or leave a gap, there would be seams.
    pale = []
    for name in colour:
        rgb = np.array(colors.to_rgb(name))
        mixed = 0.35 * rgb + 0.65
        pale.append(mixed)
    # An inch has 72 points.
    points_per_path = 72 * inches / max(len(rows), 1)
    width = 1.3 * points_per_path
    ax.vlines(x, rows.low, rows.high, color=pale, linewidth=width, rasterized=True)
    ax.scatter(
        x,
        rows.estimate,
        s=1.2,
        c=colour,
        linewidths=0,
        rasterized=True,
        zorder=3,
    )

    # The control may have another number of paths; they are spread over the same width.
    control_estimates = np.sort(control.estimate.dropna())
    x_of_control = np.linspace(0, len(rows) - 1, len(control_estimates))
    ax.plot(x_of_control, control_estimates, color=CONTROL, linewidth=0.7, zorder=4)
    ax.axhline(0, color="black", linewidth=0.5)
    ax.set_xlim(-0.5, len(rows) - 0.5)
    ax.set_xticks([])


def draw_marks(
    ax: Axes,
    rows: pd.DataFrame,
    choices: Mapping[str, Sequence[str]],
    labelled: bool,
    size: float = 5,
) -> None:
    """Draw which option of each choice the paths take: the darker, the more of them.

    Parameters
    ----------
    ax : Axes
        The panel.
    rows : DataFrame
        The paths in order, with a column for each choice.
    choices : mapping
        The options of each choice.
    labelled : bool
        Whether the options are named.
    size : float
        The size of their names, in points.
    """
    # Neighbouring paths share a mark, so that marks are wider than a printer's dots: no moiré.
    n_stretches = min(40, len(rows))
    marks = []
    names = []
    # Choices have two colours by turns.
    for choice, colour_name in zip(choices, cycle(_COLOURS_OF_CHOICES), strict=False):
        colour = np.array(colors.to_rgb(colour_name))
        options = choices[choice]
        chosen = rows[choice].astype(str)
        for option in options:
            is_taken = np.array(chosen == option, dtype=float)
            stretches = np.array_split(is_taken, n_stretches)
            share = np.array([stretch.mean() for stretch in stretches])
            # A mark has its choice's colour where all paths of the stretch take the option, and is
            # white where none does. The shape is (stretch, red green blue).
            marks.append(1 - np.outer(share, 1 - colour))
            # Only the first option has the name of the choice before it.
            is_first = option == options[0]
            names.append(f"{choice}:  {option}" if is_first else option)

    # The image has one row per option.
    ax.imshow(np.array(marks), aspect="auto", interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    if labelled:
        ax.set_yticks(range(len(names)), names, fontsize=size)
        ax.tick_params(length=0, pad=1)


def claims_at_a_glance(
    shares: pd.DataFrame, models: Sequence[str], control: str | None, sides: Mapping[str, str]
) -> Figure:
    """Draw on which share of the paths each claim stands or is reversed, for all models.

    Parameters
    ----------
    shares : DataFrame
        ``model``, ``study``, ``claim``, ``stands`` and ``reversed``, in percent.
    models : sequence of str
        The models, in order.
    control : str or None
        The negative control, drawn as a grey cross.
    sides : mapping
        The label of the side where claims stand, by study.

    Returns
    -------
    Figure
        Two columns wide.
    """
    claims = shares.drop_duplicates(["study", "claim"])
    y = figures.heights(len(claims))
    height = 0.9 + 0.17 * len(claims)
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, height))

    with_shares = set(shares.model)
    present = [model for model in models if model in with_shares]
    looks = _looks_of_models(present, control)
    # The marks of one claim stand a little above each other, so that none covers another.
    shifts = np.linspace(0.26, -0.26, len(looks))
    for model, shift in zip(looks, shifts, strict=True):
        of_model = shares[shares.model == model]
        # All models have the same lines, with NaN where a model lacks a claim.
        rows = claims[["study", "claim"]].merge(of_model, how="left")
        marker, colour = looks[model]
        _draw_shares(ax, y + shift, rows, marker, colour, label(model))

    height_by_study = pd.Series(y, claims.study)
    _name_sides(ax, height_by_study, sides)
    for line_y in y:
        ax.axhline(line_y - 0.5, color="#DDDDDD", linewidth=0.3, zorder=0)
    ax.axvline(0, **_ZERO_LINE)

    ax.set_yticks(y, claims.claim.map(claim_name))
    ax.set(xlim=(-105, 105), ylim=(-0.5, len(claims) - 0.4))
    ax.set_xticks(range(-100, 101, 50), ["100", "50", "0", "50", "100"])
    ax.set_xlabel("reversed  ←   share of the paths (%)   →  stands")
    handles, names = ax.get_legend_handles_labels()
    figures.legend(fig, handles, names)
    return fig


def _name_sides(ax: Axes, y: pd.Series, sides: Mapping[str, str]) -> None:
    """Draw a rule below each study's claims, and write beside them what a standing claim means."""
    small = figures.points(6)
    for study, heights in y.groupby(level=0, sort=False):
        below = heights.min() - 0.5
        ax.axhline(below, color="#777777", linewidth=0.6)
        ax.annotate(
            sides[study],
            (1.01, heights.mean()),
            fontsize=small,
            xycoords=("axes fraction", "data"),
            va="center",
        )


def _looks_of_models(models: Sequence[str], control: str | None) -> dict[str, tuple[str, str]]:
    """Choose a marker and a colour for each model, the control last."""
    looks = {}
    # With seven markers and six colours, 42 models differ in one of the two. The palette's other
    # colours are black and the control's grey.
    others = [model for model in models if model != control]
    looks_by_turns = zip(cycle(_MARKERS), cycle(figures.COLOURS[:6]), strict=False)
    for model, look in zip(others, looks_by_turns, strict=False):
        looks[model] = look

    if control and control in models:
        looks[control] = ("x", "#777777")
    return looks


def _draw_shares(
    ax: Axes, y: NDArray[np.float64], rows: pd.DataFrame, marker: str, colour: str, name: str
) -> None:
    """Draw a model's shares of paths, standing to the right of 0 and reversed to the left."""
    right = rows.stands
    left = -rows.reversed
    stands = right > 0
    is_reversed = left < 0
    is_both = stands & is_reversed
    ax.hlines(y[is_both], left[is_both], right[is_both], color=colour, linewidth=0.6)

    look = {"markersize": 3.2, "color": colour, "zorder": 3}
    # A claim that neither stands nor is reversed has one mark, at 0.
    has_right_mark = stands | (left == 0)
    ax.plot(right.where(has_right_mark), y, marker, **look)
    # Only one of the two plots has the name, so the legend has it once.
    ax.plot(left.where(is_reversed), y, marker, label=name, **look)
