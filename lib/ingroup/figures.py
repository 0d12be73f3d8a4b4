"""One style, one save function and the plots that several notebooks share.

Figures are drawn from tables, in inches of one or two columns of a page of the papers (ACL style).
"""

import io
import itertools
import math
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


def _options() -> dict[str, Any]:
    """Options of `make figures`: only, models, out, format, width, font, cmap, panel."""
    options = {}
    for variable, text in os.environ.items():
        if variable.startswith("FIGURE_") and text:
            name = variable.removeprefix("FIGURE_").lower()
            options[name] = text
    return options


OWN = _options()
COLUMN_INCHES = 3.03
PAGE_INCHES = 6.30
USUAL_FONT = 7  # points, as in the style sheet
ONE_COLUMN = COLUMN_INCHES  # these three follow `use_style`
TWO_COLUMNS = PAGE_INCHES
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

# Metadata that would change the bytes of a file.
_UNSAID = {
    "pdf": ("CreationDate", "Producer", "Creator"),
    "png": ("Software",),
    "svg": ("Date",),
}
_FORMULA = "=+-@\t\n＝＋－＠'"  # first characters of a formula, and the mark before one
_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?")
_FONT_SIZES = (
    "font.size",
    "axes.titlesize",
    "xtick.labelsize",
    "ytick.labelsize",
    "legend.fontsize",
)


def use_style(**own: Any) -> None:
    """Set the one style of all figures.

    Parameters
    ----------
    **own
        Options for figures that are drawn from now on, with the names and values of ``make figures
        ONLY=...``. In a notebook: ``figures.use_style(width=4, out="paper")``, then the cell of a
        figure again.

    Raises
    ------
    InputError
        For a width, a font size or a colour map that cannot be used.
    """
    global ONE_COLUMN, TWO_COLUMNS, HEAT
    OWN.update(own)
    plt.style.use(STYLE)
    try:
        width = float(OWN.get("width", 0))
        font = float(OWN.get("font", USUAL_FONT))
        cmap = mpl.colormaps[OWN.get("cmap", "viridis_r")]
    except (ValueError, KeyError) as problem:
        raise InputError(f"WIDTH, FONT or CMAP: {problem.args[0]}") from problem

    ONE_COLUMN = width or COLUMN_INCHES
    TWO_COLUMNS = width or PAGE_INCHES
    HEAT = cmap.with_extremes(bad="white")  # a masked cell has no colour of the map
    for name in _FONT_SIZES:
        mpl.rcParams[name] = font / USUAL_FONT * mpl.rcParams[name]


def write_table(table: pd.DataFrame, folder: Path, name: str, index: bool = False) -> None:
    """Write ``<folder>/<name>.csv``.

    Floats get ten digits, as processors differ in later ones. A text that a spreadsheet would run
    as a formula gets an apostrophe before it, and so does a text that begins with one.

    Parameters
    ----------
    table : DataFrame
        The table; its columns may hold texts.
    folder : Path
        The folder of the file, which exists.
    name : str
        The table's name, without a suffix.
    index : bool
        Whether the index is written as the first columns.
    """
    marked = _in_texts(table, _mark)
    if index:
        marked = marked.rename(index=_mark)
    marked.to_csv(folder / f"{name}.csv", index=index, float_format="%.10g")


def _mark(cell: Any) -> Any:
    """A text marked where a spreadsheet would run it; anything else as it is."""
    if not isinstance(cell, str):
        return cell

    text = cell.replace("\r\n", "\n").replace("\r", "\n")  # a bare one would end the row
    begins_formula = len(text) > 1 and text[0] in _FORMULA
    if begins_formula and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _unmark(cell: Any) -> Any:
    """A text without the mark of `_mark`; anything else as it is."""
    if isinstance(cell, str) and len(cell) > 1:
        return cell.removeprefix("'")
    return cell


def read_table(folder: Path, name: str, dtype: type | None = None) -> pd.DataFrame:
    """Read a table that :func:`write_table` wrote.

    Parameters
    ----------
    folder : Path
        As in :func:`write_table`.
    name : str
        As in :func:`write_table`.
    dtype : type, optional
        The type of all columns.

    Returns
    -------
    DataFrame
        NaN where a cell is empty. If a figure is made of some models only (`OWN`), the table has
        their rows only, if it has any.
    """
    # "null" is a word that a model may say, not a missing value.
    file = folder / f"{name}.csv"
    table = pd.read_csv(file, dtype=dtype, keep_default_na=False, na_values=[""])

    if "model" in table:
        chosen = OWN.get("models", "").split(";")
        is_chosen = table["model"].isin(chosen)
        if is_chosen.any():
            table = table[is_chosen].reset_index(drop=True)

    return _in_texts(table, _unmark)


def _in_texts(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """The table with its names and the cells of its columns of texts changed."""
    changed = table.copy()
    for position, dtype in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            cells = changed.iloc[:, position].astype(object)
            changed.isetitem(position, cells.map(change))
    return changed.rename(columns=change)


def whose(names: Sequence[str]) -> str:
    """Say which models of a figure are calibrants and which are real.

    Parameters
    ----------
    names : sequence of str
        The models of the figure.

    Returns
    -------
    str
        One or two sentences; "" if all models are real.
    """
    calibrants = []
    real = []
    for name in names:
        kind = calibrants if models.is_calibrant(name) else real
        kind.append(models.label(name))

    if not calibrants:
        return ""
    if not real:
        return DEMONSTRATION
    ours = ", ".join(calibrants)
    return f"Real: {', '.join(real)}. Demonstration, trained by this project: {ours}."


def save(fig: Figure, folder: Path, name: str, note: str = "") -> Figure:
    """Write ``<folder>/<name>.pdf`` and ``.png``, and close the figure.

    The same figure gives the same bytes. It is closed so that a notebook shows it once.

    Parameters
    ----------
    fig : Figure
        The figure.
    folder : Path
        The folder of a study's figures.
    name : str
        The name of the figure.
    note : str
        A note below the panels, as of :func:`whose`.

    Returns
    -------
    Figure
        The same figure. If some figures are made for a paper (`OWN`), only those are written, with
        the folder and formats that were asked for.

    Raises
    ------
    InputError
        If the panel that was asked for is not in the figure; the message lists the panels.
    """
    if "only" in OWN and f"{folder.name}/{name}" not in OWN["only"].split():
        plt.close(fig)
        return fig

    width = float(OWN.get("width", 0)) or fig.get_figwidth()
    fig.set_figwidth(width)
    panel = OWN.get("panel")
    if panel:
        _keep_panel(fig, name, panel)
    if note:
        lines = textwrap.fill(note, width=int(22 * width))
        fig.supxlabel(lines, fontsize=5.5, color="#8A1C1C", style="italic")

    formats = OWN.get("format", "pdf,png").replace(" ", "")
    for kind in formats.split(","):
        file = Path(OWN.get("out", folder)) / f"{name}.{kind}"
        file.parent.mkdir(parents=True, exist_ok=True)

        # Drawn in memory first: a run that is stopped leaves no half of a figure.
        drawn = io.BytesIO()
        unsaid = dict.fromkeys(_UNSAID.get(kind, ()))
        fig.savefig(drawn, format=kind, metadata=unsaid)
        file.write_bytes(drawn.getvalue())

    fig.set_layout_engine("none")  # to be shown as it was saved, not laid out again
    plt.close(fig)
    return fig


def _keep_panel(fig: Figure, name: str, panel: str) -> None:
    """Remove the panels with other titles than the one that was asked for."""
    titles = [ax.get_title() for ax in fig.axes]
    if panel not in titles:
        raise InputError(f"PANEL: {name} has no {panel!r}; there are {', '.join(titles)}")

    for ax, title in zip(fig.axes, titles, strict=True):
        if title not in ("", panel):
            ax.remove()


def panels(n: int, height: float, columns: int = 3, **how: Any) -> tuple[Figure, Sequence[Axes]]:
    """Make a figure two columns wide with panels in rows.

    Parameters
    ----------
    n : int
        How many panels.
    height : float
        The height of a panel, in inches.
    columns : int
        How many panels stand in a row.
    **how
        Options of :func:`matplotlib.pyplot.subplots`.

    Returns
    -------
    Figure, sequence of Axes
        The figure and its n panels.
    """
    n_rows = math.ceil(n / columns)
    n_columns = min(n, columns)
    fig, axes = plt.subplots(n_rows, n_columns, squeeze=False, **how)
    fig.set_size_inches(TWO_COLUMNS, height * n_rows)

    in_order = axes.flat
    for ax in in_order[n:]:
        ax.remove()
    return fig, in_order[:n]


def _panels_of_models(
    table: pd.DataFrame, margin: float, step: float
) -> tuple[Figure, dict[str, Axes], dict[str, int]]:
    """A figure with a panel for each ``model``: its panels, and the height of each ``line``."""
    names = table.model.unique()
    lines = list(dict.fromkeys(table.line))
    lines.reverse()  # the first is drawn on top
    heights = {line: height for height, line in enumerate(lines)}

    fig, axes = plt.subplots(
        1,
        len(names),
        figsize=(TWO_COLUMNS, margin + step * len(lines)),
        sharey=True,
        squeeze=False,
    )
    panel_of = dict(zip(names, axes[0], strict=True))
    return fig, panel_of, heights


def with_several_readings(table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of a `by_reading` table whose model and line have more than one reading.

    Parameters
    ----------
    table : DataFrame
        As for `by_reading`, with ``model``, ``line`` and ``reading``.

    Returns
    -------
    DataFrame
        These rows, with all columns.
    """
    readings = table.groupby(["model", "line"]).reading
    n_readings = readings.transform("size")
    return table[n_readings > 1]


def by_reading(table: pd.DataFrame, estimate: str, xlabel: str) -> Figure:
    """Draw an estimate under every reading of the same scored answers, one panel for each model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``line`` (what the estimate is of), ``reading``, ``ending`` ("" for free text),
        and the column of the estimate.
    estimate : str
        The name of that column, in points of the scale.
    xlabel : str
        The label of the axis of the estimates.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, axes, heights = _panels_of_models(table, 0.8, 0.17)
    handles = {}
    for model, ax in axes.items():
        rows = table[table.model == model]
        for (reading, ending), part in rows.groupby(["reading", "ending"], sort=False):
            (dots,) = ax.plot(
                part[estimate],
                part.line.map(heights),
                marker=READINGS[reading],
                color=ENDINGS[ending],
                linestyle="",
                markersize=3.5,
                markerfacecolor="none",
            )
            label = f"{reading}, {ending}" if ending else reading
            handles[label] = dots

        ax.axvline(0, color="black", linewidth=0.6)
        ax.margins(y=0.12)
        ax.set(title=models.label(model))
        ax.set_yticks(list(heights.values()), list(heights))

    _middle(axes).set_xlabel(xlabel)
    fig.legend(handles.values(), handles, ncols=4, loc="outside lower center")
    return fig


def _middle(axes: dict[str, Axes]) -> Axes:
    """The panel in the middle of a row."""
    in_order = list(axes.values())
    return in_order[len(in_order) // 2]


def two_scopes(table: pd.DataFrame, xlabel: str, sampled: str = "names and phrasings") -> Figure:
    """Draw effects with two intervals, one panel for each model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``line`` (what the effect is of), ``estimate``; ``low`` and ``high``, for these
        names, phrasings or words; ``low_like`` and ``high_like``, for those like these, NaN where
        they cannot be told.
    xlabel : str
        The label of the axis of the effects.
    sampled : str
        What the wide interval takes as a sample, for the legend.

    Returns
    -------
    Figure
        Two columns wide. The interval for these is thick, the one for those like these is thin, and
        a hollow dot has no thin one.
    """
    fig, axes, heights = _panels_of_models(table, 1.0, 0.15)
    colour = COLOURS[0]
    narrow = {"color": colour, "linewidth": 2.4, "alpha": 0.5}
    wide = {"color": colour, "linewidth": 0.7}
    dot = {"color": colour, "linestyle": "", "marker": "o", "markersize": 2.5}
    hollow_dot = {**dot, "markerfacecolor": "white"}
    first_of_kind = {}  # calibrants have one scale, real models another

    for model, ax in axes.items():
        first = first_of_kind.setdefault(models.is_calibrant(model), ax)
        if first is not ax:
            ax.sharex(first)

        rows = table[table.model == model].copy()
        rows["y"] = rows.line.map(heights)
        has_wide = rows.low_like.notna()
        with_wide = rows[has_wide]
        without_wide = rows[~has_wide]
        ax.hlines(rows.y, rows.low, rows.high, **narrow)
        ax.hlines(rows.y, rows.low_like, rows.high_like, **wide)
        ax.plot(with_wide.estimate, with_wide.y, **dot)
        ax.plot(without_wide.estimate, without_wide.y, **hollow_dot)

        ax.axvline(0, color="black", linewidth=0.5, zorder=0)
        ax.set_title(models.label(model), fontsize=6.5)
        ax.set_yticks(list(heights.values()), list(heights))
        ax.set_ylim(-0.7, len(heights) - 0.3)

    _middle(axes).set_xlabel(xlabel)
    key = {
        f"for these {sampled}": plt.Line2D([], [], **narrow),
        f"for {sampled} like these": plt.Line2D([], [], **wide),
    }
    if table.low_like.isna().any():
        key["cannot be told for others"] = plt.Line2D([], [], **hollow_dot)
    fig.legend(key.values(), key, ncols=3, loc="outside upper center")
    return fig


def heatmap(
    ax: Axes,
    matrix: np.ndarray,
    shown: np.ndarray | None = None,
    groups: Sequence[str] = (),
    labels: Sequence[str] = (),
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
) -> AxesImage:
    """Draw perceiver (rows) by experiencer (columns).

    Parameters
    ----------
    ax : Axes
        The panel.
    matrix : array
        The (n, n) values.
    shown : array, optional
        An (n, n) array of bool: the cells to show. Other cells are white.
    groups : sequence of str
        The n groups of the identities. A line divides them wherever the group changes, unless every
        identity is its own group.
    labels : sequence of str
        The n names for both axes.
    limits : tuple of float, optional
        The ends of the colour scale. By default these are the 1st and 99th percentile, so that one
        extreme pair does not flatten all others.
    cmap : str, optional
        A map of matplotlib instead of the map of all heatmaps.

    Returns
    -------
    AxesImage
        The image, for a colour bar.
    """
    mask = False if shown is None else ~shown
    low, high = limits or np.percentile(matrix, [1, 99])
    colours = mpl.colormaps[cmap].with_extremes(bad="white") if cmap else HEAT
    cells = np.ma.array(matrix, mask=mask)
    image = ax.imshow(cells, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    ax.spines[:].set(visible=True, linewidth=0.4)
    ax.tick_params(length=0)

    # Without groups of several identities a line would stand between all cells.
    edges = []
    for position, (before, group) in enumerate(itertools.pairwise(groups)):
        if group != before:
            edges.append(position + 0.5)
    if len(edges) < len(groups) - 1:
        for edge in edges:
            ax.axhline(edge, color="#666666", linewidth=0.4)
            ax.axvline(edge, color="#666666", linewidth=0.4)

    ax.set_xticks(range(len(labels)), labels, rotation=90)
    ax.set_yticks(range(len(labels)), labels)
    return image


def label_points(
    ax: Axes,
    x: Sequence[float],
    y: Sequence[float],
    labels: Sequence[str],
    size: float = 6,
    keep_free: Sequence[tuple[float, float]] = (),
) -> None:
    """Name points so that no name covers another name, a point or a position to keep free.

    Parameters
    ----------
    ax : Axes
        The panel, with the points drawn. Call this last: the limits of the axes are fixed here.
    x, y : sequence of float
        The points.
    labels : sequence of str
        Their names.
    size : float
        The size of the font, in points.
    keep_free : sequence of tuple
        Further positions (x, y) to keep free.

    Notes
    -----
    textalloc places the names; it draws nothing at random, so a figure keeps its bytes.
    """
    fig = ax.figure
    if not fig.get_supxlabel():
        fig.supxlabel(" ", fontsize=5.5)  # the room that `save` takes, which moves the axes
    fig.draw_without_rendering()
    point = fig.dpi / 72 / ax.bbox.width  # as a share of the axes
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())

    points = zip(x, y, strict=True)
    taken = np.array([*points, *keep_free], dtype=float)
    *_, lines = textalloc.allocate(
        ax,
        list(x),
        list(y),
        list(labels),
        x_scatter=taken[:, 0],
        y_scatter=taken[:, 1],
        textsize=size,
        va="bottom",
        linewidth=0.3,
        linecolor="#888888",
        direction=["east", "west", "north", "south", "northeast", "northwest"],
        margin=1.5 * point,
        min_distance=4.5 * point,
        max_distance=0.35,
        nbr_candidates=400,
    )

    for line in filter(None, lines):
        ends = ax.transData.transform(line.get_xydata())
        length = np.ptp(ends, axis=0).max()
        if length < 8 * fig.dpi / 72:
            line.remove()  # the name is so near that it needs none
