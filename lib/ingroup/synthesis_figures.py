"""Figures of the synthesis: portraits, agreement, and the paths of the multiverse."""

import math
import textwrap
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

from ingroup import figures
from ingroup.canvas import MOST_INCHES
from ingroup.models import label
from ingroup.stats import multiverse

STANDS = figures.COLOURS[0]
REVERSED = figures.COLOURS[1]
NEITHER = "#BBBBBB"
CONTROL = "#333333"

_BLANK: dict = {
    "ha": "center",
    "va": "center",
    "color": "#777777",
    "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6},
}
_DOT: dict = {"linestyle": "", "marker": "o", "markersize": 3, "color": "#555555"}
_HOLLOW = _DOT | {"markerfacecolor": "white"}
_TICK: dict = {"linestyle": "", "marker": "|", "color": "black"}
_DASH = _DOT | {"marker": "$–$", "color": _BLANK["color"]}
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
    "could",
    "stands",
    "reversed",
}


def _add_legend(fig: Figure, key: Mapping[str, Mapping[str, Any]], **how: Any) -> None:
    """A legend of lines, by the look of each."""
    handles = [plt.Line2D([], [], **look) for look in key.values()]
    figures.legend(fig, handles, list(key), **how)


def _name_own_error(
    ax: Axes, x: float, y: float, rows: pd.DataFrame, text: str, size: float
) -> None:
    """Above a panel a calibrant's own error, how many ticks lie inside, and of how many."""
    # Only a calibrant's rows have a verdict: whether the interval holds what was planted.
    judged = rows[rows.verdict.notna()]
    error = np.sqrt((judged.model_error**2).mean())
    n_inside = (judged.verdict == "as planted").sum()
    text = text.format(error, n_inside, len(judged)) if len(judged) else ""
    ax.text(
        x, y, text, transform=ax.transAxes, ha="center", va="bottom", fontsize=figures.points(size)
    )


def _draw_effects(
    ax: Axes, rows: pd.DataFrame, y: NDArray[np.floating], colour: str, limit: float
) -> None:
    """Effects of one measure with their intervals; an arrow where one goes beyond the panel."""
    ax.hlines(y, rows.low, rows.high, color=colour, linewidth=1)
    sides = {"<": (rows.low < -limit, -0.96), ">": (rows.high > limit, 0.96)}
    for arrow, (beyond, end) in sides.items():
        x = [end * limit] * beyond.sum()
        ax.plot(x, y[beyond], arrow, color=colour, markersize=3, markeredgewidth=0)
    # A single item has no interval, so its dot is hollow.
    face = np.where(rows["items"] > 1, colour, "white")
    ax.scatter(rows.effect, y, s=9, c=face, edgecolors=colour, linewidths=0.7, zorder=3)


def portrait(table: pd.DataFrame, measures: Sequence[str], models: Sequence[str]) -> Figure:
    """Draw what the answers of a model say of each group, one panel per measure.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``measure``, ``category``, ``group``, ``effect``, ``low``, ``high``, ``items``,
        ``planted``, ``model_error`` and ``verdict``.
    measures : sequence of str
        The order of the panels.
    models : sequence of str
        The model, and the control in grey if it is there.

    Returns
    -------
    Figure
        Two columns wide.
    """
    kinds = table.drop_duplicates("group")
    present = [measure for measure in measures if measure in set(table.measure)]
    n = len(present)
    fig, axes = figures.panels(n, 1.5 + 0.23 * len(kinds), n, least=0.8, sharex=True, sharey=True)
    # Heights grow upwards, so the first group is on top.
    y = np.arange(len(kinds))[::-1]
    colours = (figures.COLOURS[0], "#999999")
    # No wider than needed for all effects and nearly all intervals.
    ends = table[["low", "high"]].abs().max(axis=1)
    limit = 1.1 * max(table.effect.abs().max(), ends.quantile(0.98), 0.1)
    has_planted = table[table.model == models[0]].planted.notna().any()
    smallest = figures.points(5)
    small = figures.points(7)

    for ax, measure in zip(axes, present, strict=True):
        rows = table[table.measure == measure].set_index("group")
        own, *grey = (rows[rows.model == model].reindex(kinds.group) for model in models)
        _draw_effects(ax, own, y + 0.14, colours[0], limit)
        # A group without a row is not in the design; one with items but no effect gave no answer.
        reasons = own["items"].isna().map({True: "–", False: "no answer"})
        blank = own.effect.isna()
        for place, text in zip(y[blank], reasons[blank], strict=True):
            ax.text(0, place, text, fontsize=smallest, **_BLANK)
        if has_planted:
            ax.plot(own.planted, y + 0.14, "|", color="black", markersize=5, zorder=4)
            _name_own_error(ax, 0.5, 1.005, own, "own error {:.2f}\n{} of {} inside", 5)
        for other in grey:
            _draw_effects(ax, other, y - 0.2, colours[1], limit)
        ax.axvline(0, color="black", linewidth=0.5, zorder=0)
        # A calibrant's own error stands between the panel and its title.
        pad = 12 + figures.points(6) if has_planted else 6
        ax.set_title(measure.replace(" ", "\n"), fontsize=small, pad=pad)

    axes[0].set(xlim=(-limit, limit), ylim=(-0.7, len(kinds) - 0.3))
    axes[0].set_yticks(y, kinds.group)
    _name_kinds(axes, pd.Series(y, kinds.category))
    figures.label_below(axes, "effect, in standard deviations of single answers")

    key = {}
    for model, colour in zip(models, colours, strict=False):
        key[label(model)] = _DOT | {"color": colour}
    if (table["items"] == 1).any():
        key["a single item"] = _HOLLOW
    key["not in the design"] = _DASH
    if has_planted:
        key["planted"] = _TICK
    title = f"Portrait of {label(models[0])}"
    _add_legend(fig, key, columnspacing=1, title=title, title_fontsize=figures.points(8))
    return fig


def _name_kinds(axes: Sequence[Axes], y: pd.Series) -> None:
    """A rule above the groups of each category, and its name beside the last panel."""
    for kind, places in y.groupby(level=0, sort=False):
        for ax in axes:
            ax.axhline(places.max() + 0.5, color="#BBBBBB", linewidth=0.5)
        axes[-1].annotate(
            kind.replace("race_or_ethnicity", "race, ethnicity"),
            (1.06, places.mean()),
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
        ``planted_rho``, ``model_error`` and ``verdict``.

    Returns
    -------
    Figure
        Two columns wide.
    """
    pairs = table.drop_duplicates(["one", "other"])
    models = list(table.model.unique())
    # Five panels side by side have no room for words.
    n_rows = 1 + (len(models) > 4)
    n_columns = math.ceil(len(models) / n_rows)
    size = (figures.TWO_COLUMNS, 0.4 + n_rows * 0.23 * len(pairs))
    grid = {"sharex": True, "sharey": True, "squeeze": False}
    fig, axes = plt.subplots(n_rows, n_columns, figsize=size, **grid)
    for ax, model, colour in zip(axes.flat, models, cycle(figures.COLOURS), strict=False):
        # All panels have the same lines, with NaN where a model lacks a pair.
        rows = pairs[["one", "other"]].merge(table[table.model == model], how="left")
        _draw_correlations(ax, rows, colour)
        # A calibrant's own error stands between the panel and its title.
        ax.set_title(label(model), pad=6 + figures.points(10))
    for ax in axes.flat[len(models) :]:
        ax.set_axis_off()
    y = np.arange(len(pairs))[::-1]
    axes[0, 0].set_yticks(y, pairs.one + " and " + pairs.other)

    key = {
        "p < 0.05, by Holm": _DOT | {"markersize": 3.5},
        "p of 0.05 or more": _HOLLOW | {"markersize": 3.5},
        "95 % interval": {"color": "#555555", "linewidth": 1},
    }
    if table.planted_rho.notna().any():
        key["planted"] = _TICK | {"markersize": 7}
    _add_legend(fig, key)
    return fig


def _draw_correlations(ax: Axes, rows: pd.DataFrame, colour: str) -> None:
    """A row for each pair of measures; the number of groups, or why there is no correlation."""
    y = np.arange(len(rows))[::-1]
    ax.hlines(y, rows.low, rows.high, color=colour, linewidth=1)
    face = np.where(rows.p_holm < 0.05, colour, "white")
    ax.scatter(rows.rho, y, s=14, c=face, edgecolors=colour, linewidths=0.8, zorder=3)
    ax.plot(rows.planted_rho, y, "|", color="black", markersize=7, zorder=4)
    smallest = figures.points(5)
    small = figures.points(figures.SMALL)
    for place, row in zip(y, rows.itertuples(), strict=True):
        if np.isnan(row.rho):
            ax.text(0, place, _why_no_correlation(row.n), fontsize=smallest, **_BLANK)
        else:
            # The number stands to the right of 1, the largest possible correlation.
            ax.text(1.28, place, f"{row.n:g}", ha="center", va="center", fontsize=small)
    ax.axvline(0, color="black", linewidth=0.5, zorder=0)
    ax.text(1.28, len(rows) - 0.4, "groups", ha="center", fontsize=small)
    _name_own_error(ax, 0.37, 1.03, rows, "own error {:.2f}, {} of {} ticks inside", figures.SMALL)
    ax.set(xticks=[-1, -0.5, 0, 0.5, 1], xlabel="rank correlation")
    # Axes are shared, so only the last row would have numbers.
    ax.tick_params(labelbottom=True)
    ax.set(xlim=(-1.1, 1.45), ylim=(-0.7, len(rows) - 0.3))


def _why_no_correlation(n: float) -> str:
    """Why two measures have no correlation over n groups; NaN where one was not asked."""
    if np.isnan(n):
        return "not asked"
    return f"{n:g} groups, too few" if n < 4 else "no difference between groups"


def outcome(rows: pd.DataFrame) -> str:
    """Say on which share of its paths a claim stands, or is reversed.

    Parameters
    ----------
    rows : DataFrame
        The paths of one claim, as :func:`ingroup.stats.multiverse.shares` takes them.

    Returns
    -------
    str
        One line for each of the two that occurs.
    """
    (share,) = multiverse.shares(rows).itertuples()
    if np.isnan(share.stands):
        return "cannot be told"
    ways = {"stands": share.stands, "reversed": share.reversed}
    lines = [f"{way} on {percent:.0f} %" for way, percent in ways.items() if percent > 0]
    return ",\n".join(lines) or "stands on no path"


def written(claim: str) -> str:
    """Write the name of a claim as a figure does.

    Parameters
    ----------
    claim : str
        The name; some are keys of a table.

    Returns
    -------
    str
        The name in words.
    """
    return claim.replace("_", " ").title() if claim.islower() else claim


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
    own = table[table.model == model]
    names = [column for column in table.columns if column not in _RESULTS]
    choices = {}
    for name in names:
        # What is the same on all paths of this model is no choice.
        if own[name].nunique() > 1:
            choices[name] = list(own[name].astype(str).unique())
    claims = own.claim.unique()
    # Paths with one estimate, rounding aside, and one lower end are sorted by their options, so
    # that their marks lie together.
    by = ["height", "low", *names[::-1]]
    own = own.assign(height=own.estimate.round(9)).sort_values(by, kind="stable")

    n_down = math.ceil(len(claims) / across)
    n_options = sum(map(len, choices.values()))
    fig, axes, size, inches = _curves_above_marks(n_down, across, n_options)
    # Beside a flat curve its label takes two lines; titles in large type make it flatter still.
    larger = figures.points(6) / 6
    n_letters = int(27 * inches / larger**3)
    # Five titles side by side have no room for larger type.
    of_title = figures.points(6) if across < 5 else 6
    ylabel = textwrap.fill(ylabel, n_letters)

    # In reading order: the panel of each curve, and the panel of its marks.
    pairs = axes.reshape(n_down, 2, across).swapaxes(1, 2).reshape(-1, 2)
    for ax in pairs[len(claims) :].flat:
        ax.set_axis_off()
    for ax in pairs[1:, 0]:
        # All curves have one scale, so that equal estimates look equal.
        ax.sharey(axes[0, 0])
    smallest = figures.points(5)
    for place, (claim, (upper, lower)) in enumerate(zip(claims, pairs, strict=False)):
        is_first = place % across == 0
        is_last = place // across == n_down - 1
        rows = own[own.claim == claim].reset_index(drop=True)
        beside = table[(table.model == control) & (table.claim == claim)]
        _draw_curve(upper, rows, beside, 0.75 * figures.TWO_COLUMNS / across)
        draw_marks(lower, rows, choices, is_first, size)
        upper.set_title(f"{written(claim)}\n{outcome(rows)}", fontsize=of_title)
        upper.tick_params(labelsize=smallest)
        upper.set_ylabel(ylabel if is_first else "", fontsize=figures.points(6))
        lower.set_xlabel("paths, by estimate" if is_last else "", fontsize=smallest)

    key = {
        "stands (pale: 95 % interval)": {"color": STANDS, "linewidth": 3},
        "neither": {"color": NEITHER, "linewidth": 3},
        "reversed": {"color": REVERSED, "linewidth": 3},
    }
    if control:
        name = f"{label(control)}, the negative control"
        key[name] = {"color": CONTROL, "linewidth": 0.7}
    _add_legend(fig, key, title=label(model), title_fontsize=figures.points(8))
    return fig


def _curves_above_marks(
    n_down: int, across: int, n_options: int
) -> tuple[Figure, NDArray[Any], float, float]:
    """Rows of curves above rows of marks: the figure, its panels, and two sizes.

    These are the size of the options' names in points, and the height of a curve in inches.
    """
    size = figures.points(5)
    # An inch holds about twelve lines of 5 points.
    marks_height = 0.085 * n_options * size / 5
    curve_height = 1.0
    height = n_down * (1.25 + marks_height) + 0.3
    if height > MOST_INCHES:
        # The names of the options do not follow FONT then, as they would overlap.
        size = 5
        marks_height = 0.085 * n_options
        height = n_down * (1.25 + marks_height) + 0.3
        # What is still too much, the curves lose.
        too_much = max(height - MOST_INCHES, 0)
        curve_height = max(1 - too_much / n_down, 0.3)
        height -= too_much

    fig, axes = plt.subplots(
        2 * n_down,
        across,
        figsize=(figures.TWO_COLUMNS, height),
        height_ratios=[curve_height, marks_height] * n_down,
        squeeze=False,
    )
    return fig, axes, size, curve_height


def _draw_curve(ax: Axes, rows: pd.DataFrame, control: pd.DataFrame, width: float) -> None:
    """Sorted estimates with intervals; the control's as a line over the same width in inches."""
    x = np.arange(len(rows))
    # This is the width of a path, in points.
    thick = 72 * width / max(len(rows), 1)
    colour = np.select([rows.stands, rows.reversed], [STANDS, REVERSED], NEITHER)
    # Mixed with white and a little too wide: no seams between neighbours.
    pale = [0.35 * np.array(colors.to_rgb(one)) + 0.65 for one in colour]
    ax.vlines(x, rows.low, rows.high, color=pale, linewidth=1.3 * thick, rasterized=True)
    ax.scatter(x, rows.estimate, s=1.2, c=colour, linewidths=0, rasterized=True, zorder=3)
    line = np.sort(control.estimate.dropna())
    # The control may have another number of paths; they are spread over the same width.
    at = np.linspace(0, len(rows) - 1, len(line))
    ax.plot(at, line, color=CONTROL, linewidth=0.7, zorder=4)
    ax.axhline(0, color="black", linewidth=0.5)
    ax.set(xlim=(-0.5, len(rows) - 0.5), xticks=[])


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
    options = [(name, option) for name in choices for option in choices[name]]
    # The array has one row per option and one column per path: 1 where the path takes the option.
    taken = np.array([rows[name].astype(str) == option for name, option in options], dtype=float)
    # Neighbouring paths share a mark, so that marks are wider than what a printer has: no moiré.
    parts = np.array_split(taken, min(40, len(rows)), axis=1)
    share = np.transpose([part.mean(axis=1) for part in parts])[..., np.newaxis]

    # The options of a choice have one colour, those of the next the other.
    bands = np.array([colors.to_rgb(colour) for colour in ("#333333", "#8A6D3B")])
    is_second = [list(choices).index(name) % 2 for name, _ in options]
    band = bands[is_second][:, np.newaxis]
    # A mark is white where no path takes the option, and has its choice's colour where all do.
    ax.imshow(1 - share * (1 - band), aspect="auto", interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    if labelled:
        names = []
        for name, option in options:
            is_first = option == choices[name][0]
            names.append(f"{name}:  {option}" if is_first else option)
        ax.set_yticks(range(len(options)), names, fontsize=size)
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
        What it says that a claim stands, by study.

    Returns
    -------
    Figure
        Two columns wide.
    """
    lines = shares.drop_duplicates(["study", "claim"])
    y = np.arange(len(lines))[::-1]
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 0.9 + 0.17 * len(lines)))
    present = [model for model in models if model in set(shares.model)]
    looks = {}
    # With seven marks and six colours, 42 models differ in one of the two.
    for place, model in enumerate(model for model in present if model != control):
        looks[model] = ("osD^v<>"[place % 7], figures.COLOURS[place % 6])
    if control in present:
        looks[control] = ("x", "#777777")
    shifts = np.linspace(0.26, -0.26, len(looks))
    for (model, look), shift in zip(looks.items(), shifts, strict=True):
        rows = lines[["study", "claim"]].merge(shares[shares.model == model], how="left")
        _draw_shares(ax, y + shift, rows, *look, label(model))

    for study, part in pd.Series(y, lines.study).groupby(level=0, sort=False):
        ax.axhline(part.min() - 0.5, color="#777777", linewidth=0.6)
        where = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(sides[study], (1.01, part.mean()), fontsize=figures.points(6), **where)
    for place in y:
        ax.axhline(place - 0.5, color="#DDDDDD", linewidth=0.3, zorder=0)
    ax.axvline(0, color="black", linewidth=0.5, zorder=0)
    ax.set_yticks(y, lines.claim.map(written))
    ax.set(xlim=(-105, 105), ylim=(-0.5, len(lines) - 0.4))
    ax.set_xticks(range(-100, 101, 50), ["100", "50", "0", "50", "100"])
    ax.set_xlabel("reversed  ←   share of the paths (%)   →  stands")
    figures.legend(fig, *ax.get_legend_handles_labels())
    return fig


def _draw_shares(
    ax: Axes, y: NDArray[np.float64], rows: pd.DataFrame, marker: str, colour: str, name: str
) -> None:
    """Shares of one model: standing to the right of 0, reversed to the left of it."""
    right = rows.stands
    left = -rows.reversed
    both = (right > 0) & (left < 0)
    ax.hlines(y[both], left[both], right[both], color=colour, linewidth=0.6)
    look = {"markersize": 3.2, "color": colour, "zorder": 3}
    # A claim that neither stands nor is reversed has one mark, at 0.
    ax.plot(right.where((right > 0) | (left == 0)), y, marker, **look)
    # Only one of the two has the name, so the legend has it once.
    ax.plot(left.where(left < 0), y, marker, label=name, **look)
