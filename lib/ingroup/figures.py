"""One style, one save function and the plots that several notebooks share.

Figures are drawn from tables, in inches of one or two columns of a page of the papers (ACL style).
"""

import io
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import textalloc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from ingroup import models
from ingroup.tables import InputError

# What `make figures ONLY=...` asks for: only, models, out, format, width, font, cmap, panel.
OWN = {n[7:].lower(): text for n, text in os.environ.items() if n[:7] == "FIGURE_" and text}
ONE_COLUMN, TWO_COLUMNS = 3.03, 6.30
HEAT = "viridis_r"  # dark is high, as in the papers

DEMONSTRATION = (
    "Demonstration: trained by this project to show planted biases or, calibrant-null, none. "
    "It says nothing about any real model."
)

STYLE = Path(__file__).with_name("ingroup.mplstyle")
_CYCLE = mpl.rc_params_from_file(STYLE, use_default_template=False)["axes.prop_cycle"]
COLOURS = tuple(f"#{colour.lstrip('#')}" for colour in _CYCLE.by_key()["color"])

# How scored answers are read, and what ends a number (free text has no such rule).
READINGS = {"free": "*", "greedy": "o", "drawn": "^", "expected": "D"}  # markers
ENDINGS = {"": "black", "turn": COLOURS[0], "newline": COLOURS[1], "any": COLOURS[2]}

# What would change the bytes.
_UNSAID = {"pdf": ("CreationDate", "Producer", "Creator"), "png": ("Software",), "svg": ("Date",)}
_FORMULA = "=+-@\t\n＝＋－＠'"  # what begins a formula, and the mark before one
_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?")


def use_style(**own: Any) -> None:
    """Set the one style of all figures, with what is `own` to those that are drawn from now on.

    Names and values are those of ``make figures ONLY=...``; InputError for one that cannot be used.
    In a notebook: ``figures.use_style(width=4, out="paper")``, then the cell of a figure again.
    """
    global ONE_COLUMN, TWO_COLUMNS, HEAT
    OWN.update(own)
    plt.style.use(STYLE)
    sizes = ("font.size", "axes.titlesize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    try:
        width, font = float(OWN.get("width", 0)), float(OWN.get("font", 7))
        # No colour of the map is the white of a masked cell.
        HEAT = mpl.colormaps[OWN.get("cmap", "viridis_r")].with_extremes(bad="white")
    except (ValueError, KeyError) as problem:
        raise InputError(f"WIDTH, FONT or CMAP: {problem.args[0]}") from problem
    ONE_COLUMN, TWO_COLUMNS = width or 3.03, width or 6.30
    mpl.rcParams.update({name: font / 7 * mpl.rcParams[name] for name in sizes})


def write_table(table: pd.DataFrame, folder: Path, name: str, index: bool = False) -> None:
    """Write ``<folder>/<name>.csv``, floats to ten digits (where processors differ, it is below);
    an ' before what a spreadsheet would run, or that has one."""

    def marked(cell: Any) -> Any:
        if not isinstance(cell, str):
            return cell
        cell = cell.replace("\r\n", "\n").replace("\r", "\n")  # a bare one would end the row
        runs = cell[1:] and cell[0] in _FORMULA and not _NUMBER.fullmatch(cell)
        return f"'{cell}" if runs else cell

    table = _in_texts(table, marked)
    if index:
        table = table.rename(index=marked)
    table.to_csv(folder / f"{name}.csv", index=index, float_format="%.10g")


def read_table(folder: Path, name: str, dtype: type | None = None) -> pd.DataFrame:
    """What :func:`write_table` wrote, NaN where empty; or as `dtype`.

    Where a figure is wanted of some models (`OWN`), their rows, if it has any.
    """
    # "null" is a word that a model may say, and no missing value.
    file = folder / f"{name}.csv"
    table = pd.read_csv(file, dtype=dtype, keep_default_na=False, na_values=[""])
    own = table.get("model", pd.Series()).isin(OWN.get("models", "").split(";"))
    table = table[own].reset_index(drop=True) if own.any() else table
    return _in_texts(table, lambda c: c.removeprefix("'") if isinstance(c, str) and c[1:] else c)


def _in_texts(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """The table with its names and the cells of its columns of texts changed."""
    changed = table.copy()
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            changed.isetitem(place, changed.iloc[:, place].astype(object).map(change))
    return changed.rename(columns=change)


def whose(names: Sequence[str]) -> str:
    """Which of the models that a figure shows are calibrants, which real; "" where all are real."""
    planted = [models.label(name) for name in names if models.is_calibrant(name)]
    real = [models.label(name) for name in names if not models.is_calibrant(name)]
    if planted and real:
        ours = ", ".join(planted)
        return f"Real: {', '.join(real)}. Demonstration, trained by this project: {ours}."
    return DEMONSTRATION if planted else ""


def save(fig: Figure, folder: Path, name: str, note: str = "") -> Figure:
    """Write ``<folder>/<name>.pdf`` and ``.png``, the same bytes for the same figure, and close it,
    so that a notebook shows it once. A `note`, as of :func:`whose`, stands below the panels. Where
    a figure is wanted for a paper (`OWN`), it alone is written, there and in its formats.
    """
    if "only" in OWN and f"{folder.name}/{name}" not in OWN["only"].split():
        plt.close(fig)
        return fig
    fig.set_figwidth(float(OWN.get("width", 0)) or fig.get_figwidth())
    if (panel := OWN.get("panel")) and panel not in (titles := [ax.get_title() for ax in fig.axes]):
        raise InputError(f"PANEL: {name} has no {panel!r}; there are {', '.join(titles)}")
    for ax in [ax for ax in fig.axes if panel and ax.get_title() not in ("", panel)]:
        ax.remove()
    if note:
        lines = textwrap.fill(note, width=int(22 * fig.get_figwidth()))
        fig.supxlabel(lines, fontsize=5.5, color="#8A1C1C", style="italic")
    for kind in OWN.get("format", "pdf,png").replace(" ", "").split(","):
        file = Path(OWN.get("out", folder)) / f"{name}.{kind}"
        file.parent.mkdir(parents=True, exist_ok=True)
        drawn = io.BytesIO()  # no half of a figure is left where a run is stopped
        fig.savefig(drawn, format=kind, metadata=dict.fromkeys(_UNSAID.get(kind, ())))
        file.write_bytes(drawn.getvalue())
    fig.set_layout_engine("none")  # to be shown as it was saved, not laid out again
    plt.close(fig)
    return fig


def panels(n: int, height: float, columns: int = 3, **how: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure two columns wide of `n` panels, `height` inches each, in rows; and its panels."""
    down, across = -(-n // columns), min(n, columns)
    fig, axes = plt.subplots(down, across, squeeze=False, **how)
    fig.set_size_inches(TWO_COLUMNS, height * down)
    for ax in axes.flat[n:]:
        ax.remove()
    return fig, axes.flat[:n]


def _panels_of_models(
    table: pd.DataFrame, margin: float, step: float
) -> tuple[Figure, dict[str, Axes], dict[str, int]]:
    """A figure with a panel a ``model``; its panels, and the height of each ``line`` in them."""
    shown = list(table.model.unique())
    lines = list(dict.fromkeys(table.line))[::-1]  # the first is drawn on top
    size = TWO_COLUMNS, margin + step * len(lines)
    fig, axes = plt.subplots(1, len(shown), figsize=size, sharey=True, squeeze=False)
    places = {line: place for place, line in enumerate(lines)}
    return fig, dict(zip(shown, axes[0], strict=True)), places


def with_several_readings(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a `by_reading` table whose model and line have more than one reading."""
    readings = table.groupby(["model", "line"]).reading
    return table[readings.transform("size") > 1]


def by_reading(table: pd.DataFrame, estimate: str, xlabel: str) -> Figure:
    """Draw an estimate under every reading of the same scored answers, a panel a model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``line`` (what the estimate is of), ``reading``, ``ending`` ("" for free text),
        and the column of the estimate.
    estimate : str
        The name of that column, in points of the scale.
    xlabel : str
        What the axis of the estimates is called.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, axes, places = _panels_of_models(table, 0.8, 0.17)
    handles = {}
    for model, ax in axes.items():
        own = table[table.model == model]
        for (reading, ending), part in own.groupby(["reading", "ending"], sort=False):
            y = part.line.map(places)
            look = {"marker": READINGS[reading], "color": ENDINGS[ending]}
            look |= {"linestyle": "", "markersize": 3.5, "markerfacecolor": "none"}
            (dots,) = ax.plot(part[estimate], y, **look)
            handles[f"{reading}, {ending}" if ending else reading] = dots
        ax.axvline(0, color="black", linewidth=0.6)
        ax.margins(y=0.12)
        ax.set(title=models.label(model))
        ax.set_yticks(list(places.values()), list(places))
    list(axes.values())[len(axes) // 2].set_xlabel(xlabel)
    fig.legend(handles.values(), handles, ncols=4, loc="outside lower center")
    return fig


def two_scopes(table: pd.DataFrame, xlabel: str) -> Figure:
    """Draw effects with two intervals, a panel a model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``line`` (what the effect is of), ``estimate``; ``low`` and ``high``, for these
        names and phrasings; ``low_like`` and ``high_like``, for those like these, NaN where they
        cannot be told.
    xlabel : str
        What the axis of the effects is called.

    Returns
    -------
    Figure
        Two columns wide. The interval for these is thick, the one for those like these is thin, and
        a hollow dot has no thin one.
    """
    fig, axes, places = _panels_of_models(table, 1.0, 0.15)
    narrow = {"color": COLOURS[0], "linewidth": 2.4, "alpha": 0.5}
    wide = {"color": COLOURS[0], "linewidth": 0.7}
    dot = {"linestyle": "", "marker": "o", "markersize": 2.5, "color": COLOURS[0]}
    hollow = {"markerfacecolor": "white"}
    first_of_kind = {}  # calibrants have one scale, real models another
    for model, ax in axes.items():
        first = first_of_kind.setdefault(models.is_calibrant(model), ax)
        if first is not ax:
            ax.sharex(first)
        own = table[table.model == model]
        y = own.line.map(places)
        untold = own.low_like.isna()
        ax.hlines(y, own.low, own.high, **narrow)
        ax.hlines(y, own.low_like, own.high_like, **wide)
        ax.plot(own.estimate[~untold], y[~untold], **dot)
        ax.plot(own.estimate[untold], y[untold], **dot, **hollow)
        ax.axvline(0, color="black", linewidth=0.5, zorder=0)
        ax.set_title(models.label(model), fontsize=6.5)
        ax.set_yticks(list(places.values()), list(places))
        ax.set_ylim(-0.7, len(places) - 0.3)
    middle = list(axes.values())[len(axes) // 2]
    middle.set_xlabel(xlabel)
    key = {
        "for these names and phrasings": plt.Line2D([], [], **narrow),
        "for names and phrasings like these": plt.Line2D([], [], **wide),
    }
    if table.low_like.isna().any():
        key["cannot be told for others"] = plt.Line2D([], [], **dot, **hollow)
    fig.legend(key.values(), key, ncols=3, loc="outside upper center")
    return fig


def heatmap(
    ax: Axes, matrix: np.ndarray, shown: np.ndarray | None = None, groups: Sequence[str] = (),
    labels: Sequence[str] = (), limits: tuple[float, float] | None = None, cmap: str | None = None,
) -> AxesImage:  # fmt: skip
    """Perceiver (rows) by experiencer (columns), shape (n, n); the image comes back for a bar.

    Cells that are not `shown`, an array of bool, are white. A line divides the n `groups` wherever
    the group changes, unless every identity is its own; `labels` are n names for both axes. Without
    `limits` the colour scale ends at the 1st and 99th percentile: one pair does not flatten all.
    `cmap` is a map of matplotlib instead of that of all heatmaps.
    """
    cells = np.ma.array(matrix, mask=False if shown is None else ~shown)
    low, high = limits or np.percentile(matrix, [1, 99])
    colours = mpl.colormaps[cmap].with_extremes(bad="white") if cmap else HEAT
    image = ax.imshow(cells, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    ax.spines[:].set(visible=True, linewidth=0.4)
    ax.tick_params(length=0)
    edges = [i - 0.5 for i in range(1, len(groups)) if groups[i] != groups[i - 1]]
    if len(edges) < len(groups) - 1:
        for edge in edges:
            ax.axhline(edge, color="#666666", linewidth=0.4)
            ax.axvline(edge, color="#666666", linewidth=0.4)
    ax.set_xticks(range(len(labels)), labels, rotation=90)
    ax.set_yticks(range(len(labels)), labels)
    return image


def label_points(
    ax: Axes, x: Sequence[float], y: Sequence[float], labels: Sequence[str], size: float = 6,
    keep_free: Sequence[tuple[float, float]] = (),
) -> None:  # fmt: skip
    """Name points so that no name covers another, a point or a place (x, y) to `keep_free`.

    By textalloc, which draws nothing at random, so a figure keeps its bytes. Call this last, with
    the points drawn: the limits of `ax` are fixed here.
    """
    fig = ax.figure
    if not fig.get_supxlabel():
        fig.supxlabel(" ", fontsize=5.5)  # the room that `save` takes, which moves the axes
    fig.draw_without_rendering()
    point = fig.dpi / 72 / ax.bbox.width  # as a part of the axes
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    taken = np.array([*zip(x, y, strict=True), *keep_free], dtype=float)
    *_, lines = textalloc.allocate(
        ax, list(x), list(y), list(labels), x_scatter=taken[:, 0], y_scatter=taken[:, 1],
        textsize=size, va="bottom", linewidth=0.3, linecolor="#888888",
        direction=["east", "west", "north", "south", "northeast", "northwest"],
        margin=1.5 * point, min_distance=4.5 * point, max_distance=0.35, nbr_candidates=400,
    )  # fmt: skip
    for line in filter(None, lines):
        if np.ptp(ax.transData.transform(line.get_xydata()), axis=0).max() < 8 * fig.dpi / 72:
            line.remove()  # the name is so near that it needs none
