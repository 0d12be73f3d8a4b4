"""One style, one save function and the plots that several notebooks share.

Figures are drawn from tables, in inches of one or two columns of a page of the papers (ACL style).
"""

import io
import itertools
import json
import math
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import seaborn.objects as so
import textalloc
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from ingroup import canvas, models
from ingroup.tables import InputError, hint

FORMATS = sorted(FigureCanvasBase.get_supported_filetypes())


def _options() -> dict[str, Any]:
    """Read the options of `make figures`, e.g. ``width`` from the variable ``FIGURE_WIDTH``."""
    options = {}
    for variable, text in os.environ.items():
        # An option that was not given is an empty text.
        if variable.startswith("FIGURE_") and text:
            name = variable.removeprefix("FIGURE_").lower()
            options[name] = text
    return options


OPTIONS_GIVEN = _options()
COLUMN_INCHES = 3.03
PAGE_INCHES = 6.30
MIN_FIGURE_HEIGHT = (
    1.5  # inches: a legend, a title and the numbers of an axis leave room for a panel
)
DEFAULT_FONT_POINTS = 7  # points, as in the style sheet
ONE_COLUMN = COLUMN_INCHES  # these three follow `use_style`
TWO_COLUMNS = PAGE_INCHES
HEAT_CMAP = "viridis_r"  # dark is high, as in the papers

DEMONSTRATION_NOTE = (
    "Demonstration: trained by this project to show built-in biases or, calibrant-null, none. "
    "It says nothing about any real model."
)

STYLE = Path(__file__).with_name("ingroup.mplstyle")
_CYCLE = mpl.rc_params_from_file(STYLE, use_default_template=False)["axes.prop_cycle"]
COLOURS = tuple(f"#{colour.lstrip('#')}" for colour in _CYCLE.by_key()["color"])

MODEL_COLUMNS = ("model", "other_model")  # columns of tables

# How scored answers are read, and what ends a number (free text has no such rule).
READINGS = {"free": "*", "greedy": "o", "drawn": "^", "expected": "D"}  # markers
ENDINGS = {"": "black", "turn": COLOURS[0], "newline": COLOURS[1], "any": COLOURS[2]}

# Metadata that would change the bytes of a file.
_VARYING_METADATA = {
    "pdf": ("CreationDate", "Producer", "Creator"),
    "png": ("Software",),
    "svg": ("Date",),
}
_FORMULA = "=+-@\t\n＝＋－＠'"  # first characters of a formula, and the mark before one
_NUMBER = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?")
_REFERENCE = {"color": "#777777", "linewidth": 0.8, "linestyle": ":"}
_FONT_SIZES = (
    "font.size",
    "axes.titlesize",
    "xtick.labelsize",
    "ytick.labelsize",
    "legend.fontsize",
    "figure.titlesize",
)
NOTE_LETTERS_PER_INCH = 22  # of `NOTE_POINTS` type; a few more would fit
NOTE_POINTS = 5.5  # points where plain text has 7: notes
MIN_TYPE_POINTS = 5.25  # with FONT: points where plain text has 7, and so 6 where it has 8


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
        For a width, a font size, a colour map or a format that cannot be used.
    """
    global ONE_COLUMN, TWO_COLUMNS, HEAT_CMAP
    OPTIONS_GIVEN.update(own)
    plt.style.use(STYLE)
    width = _size("width", 0, "inches")
    font = _size("font", DEFAULT_FONT_POINTS, "points")
    cmap_name = OPTIONS_GIVEN.get("cmap", "viridis_r")
    if cmap_name not in mpl.colormaps:
        question = hint(cmap_name, list(mpl.colormaps))
        raise InputError(
            f"CMAP: found {cmap_name!r}, expected a colour map of matplotlib{question}"
        )
    for kind in _formats():
        if kind not in FORMATS:
            raise InputError(f"FORMAT: found {kind!r}, expected one of {', '.join(FORMATS)}")

    cmap = mpl.colormaps[cmap_name]
    ONE_COLUMN = width or COLUMN_INCHES
    TWO_COLUMNS = width or PAGE_INCHES
    # A masked cell is white, which is no colour of the usual map.
    HEAT_CMAP = cmap.with_extremes(bad="white")
    for name in _FONT_SIZES:
        # The style has just set the usual sizes, so a second call does not scale them twice.
        mpl.rcParams[name] = font / DEFAULT_FONT_POINTS * mpl.rcParams[name]


def points(usual: float) -> float:
    """Scale a size of type as `make figures FONT=...` scales plain text.

    Parameters
    ----------
    usual : float
        The size in points where plain text has `DEFAULT_FONT_POINTS`.

    Returns
    -------
    float
        The size in points. If a font size was asked for, smaller type is enlarged to
        `MIN_TYPE_POINTS`: a paper's template may refuse smaller type, and no screen makes it
        larger.

    Examples
    --------
    >>> use_style(font=14)
    >>> points(6)
    12.0
    """
    if "font" in OPTIONS_GIVEN:
        usual = max(usual, MIN_TYPE_POINTS)
    return usual * mpl.rcParams["font.size"] / DEFAULT_FONT_POINTS


def note_letters(width: float) -> int:
    """Count the letters of a note that fit on a line.

    Parameters
    ----------
    width : float
        The width of the line, in inches.

    Returns
    -------
    int
        The number of letters, at the size that ``points(NOTE_POINTS)`` gives.
    """
    return int(NOTE_LETTERS_PER_INCH * width * NOTE_POINTS / points(NOTE_POINTS))


def write_table(table: pd.DataFrame, folder: Path, name: str, index: bool = False) -> None:
    """Write ``<folder>/<name>.csv``.

    Floats get ten digits, as processors differ in later ones. A text that a spreadsheet would run
    as a formula gets an apostrophe before it, and so does a text that begins with an apostrophe. A
    model that is a folder is named without its place on this machine, by `models.without_place`.

    Parameters
    ----------
    table : DataFrame
        The table, whose columns may hold texts.
    folder : Path
        The folder of the file, which exists.
    name : str
        The table's name, without a suffix.
    index : bool
        Whether the index is written as the first columns.
    """
    marked = _in_texts(_without_places(table), _mark)
    if index:
        marked = marked.rename(index=_mark)
    marked.to_csv(folder / f"{name}.csv", index=index, float_format="%.10g")


def _without_places(table: pd.DataFrame) -> pd.DataFrame:
    """Name the models in a table's columns and index without their place on this machine."""
    named = table.copy()
    for column in MODEL_COLUMNS:
        if column in named:
            # Each model is looked up once, because the disk is asked whether it is a folder.
            of_cell = {cell: _without_place(cell) for cell in named[column].unique()}
            named[column] = named[column].map(of_cell)
        if column in named.index.names:
            named = named.rename(index=_without_place, level=column)
    return named


def _without_place(cell: Any) -> Any:
    """Name a model without its place on this machine. Keep a cell that is not a text."""
    return models.without_place(cell) if isinstance(cell, str) else cell


def _mark(cell: Any) -> Any:
    """Mark a text that a spreadsheet would run, and unify line ends. Keep all other cells."""
    if not isinstance(cell, str):
        return cell

    # A carriage return alone would end the row.
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    # A sign alone, as in the column ``sign`` of keywords, is no formula, and a number is none.
    begins_formula = len(text) > 1 and text[0] in _FORMULA
    if begins_formula and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _unmark(cell: Any) -> Any:
    """Remove the mark of `_mark` from a text. Keep all other cells."""
    # A lone apostrophe was never marked.
    if isinstance(cell, str) and len(cell) > 1:
        return cell.removeprefix("'")
    return cell


def read_table(folder: Path, name: str, dtype: type | None = None) -> pd.DataFrame:
    """Read a table that `write_table` wrote.

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
        NaN where a cell is empty. If figures are made of some models only (`OPTIONS_GIVEN`), the
        table has only the rows of these models, provided that it has any.
    """
    # "null" is a word that a model may say, not a missing value.
    file = folder / f"{name}.csv"
    table = pd.read_csv(file, dtype=dtype, keep_default_na=False, na_values=[""])

    if "model" in table:
        typed = OPTIONS_GIVEN.get("models", "").split(";")
        chosen = [models.without_place(name.strip()) for name in typed]
        is_chosen = table["model"].isin(chosen)
        if is_chosen.any():
            table = table[is_chosen].reset_index(drop=True)

    return _in_texts(table, _unmark)


def _in_texts(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """Apply a function to the names of a table's columns and to the cells of columns of texts."""
    changed = table.copy()
    for position, dtype in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            cells = changed.iloc[:, position].astype(object)
            # The column is set by position, as two may have one name.
            changed.isetitem(position, cells.map(change))
    return changed.rename(columns=change)


def models_note(names: Sequence[str] | Mapping[str, Sequence[str]]) -> str:
    """Say which models of a figure are calibrants and which are real.

    Parameters
    ----------
    names : sequence of str, or mapping
        The models of the figure, or the models of each panel by its title. If one panel was asked
        for (`OPTIONS_GIVEN`), only its models count.

    Returns
    -------
    str
        One or two sentences; "" if all models are real.
    """
    shown: Iterable[str] = names
    if isinstance(names, Mapping):
        panel = OPTIONS_GIVEN.get("panel", "")
        panels_shown = [names[panel]] if panel in names else names.values()
        shown = itertools.chain.from_iterable(panels_shown)

    calibrants = []
    real = []
    for name in shown:
        if models.is_calibrant(name):
            calibrants.append(models.label(name))
        else:
            real.append(models.label(name))

    if not calibrants:
        return ""
    if not real:
        return DEMONSTRATION_NOTE
    ours = ", ".join(calibrants)
    return f"Real: {', '.join(real)}. Demonstration, trained by this project: {ours}."


def own_names(figure: str, names: Sequence[str]) -> dict[str, str]:
    """Name the figures of the models, where each model has a figure.

    Parameters
    ----------
    figure : str
        The paper's name for the figure.
    names : sequence of str
        The models.

    Returns
    -------
    dict of str to str
        The name of the figure by model: for the first model the paper's name, for each other model
        the paper's name followed by the model's.

    Examples
    --------
    >>> own_names("figure6", ["first", "somebody/second"])
    {'first': 'figure6', 'somebody/second': 'figure6_second'}
    """
    figure_names: dict[str, str] = {}
    for model in names:
        is_first = not figure_names
        figure_names[model] = figure if is_first else f"{figure}_{Path(model).name}"
    return figure_names


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
        A note below the panels, as of :func:`models_note`.

    Returns
    -------
    Figure
        The same figure. If some figures are made for a paper (`OPTIONS_GIVEN`), only these are
        written, with the folder and formats that were asked for. `make figures` records the written
        files, and the figures that cannot be drawn at their size. It goes on with the next figure.

    Raises
    ------
    InputError
        If the panel that was asked for is not in the figure; the message lists the panels. Also if
        the text does not fit the width and font that were asked for.
    """
    # `make figures` runs all cells of figures, and most of these were not asked for.
    if "only" in OPTIONS_GIVEN and f"{folder.name}/{name}" not in OPTIONS_GIVEN["only"].split():
        _drop(fig)
        return fig

    try:
        finish(fig, name, note)
        # At another size than the figure's own its text may not fit.
        if _is_for_paper():
            _check_size(fig, f"{folder.name}/{name}")
    except InputError as problem:
        _drop(fig)
        if "record" not in OPTIONS_GIVEN:
            raise
        _record(figure=f"{folder.name}/{name}", problem=str(problem))
        return fig

    # Two studies may call their figures alike, as the papers do.
    if "out" in OPTIONS_GIVEN:
        folder = Path(OPTIONS_GIVEN["out"]) / folder.name

    for kind in _formats():
        file = folder / f"{name}.{kind}"
        file.parent.mkdir(parents=True, exist_ok=True)

        # The figure is drawn in memory first, so that a stopped run leaves no half of a file.
        drawn = io.BytesIO()
        # None takes an entry out of the metadata.
        without = dict.fromkeys(_VARYING_METADATA.get(kind, ()))
        fig.savefig(drawn, format=kind, metadata=without)
        file.write_bytes(drawn.getvalue())
        _record(
            figure=f"{folder.name}/{name}", file=str(file), inches=fig.get_size_inches().tolist()
        )

    # It is to be shown as it was saved, not laid out again.
    fig.set_layout_engine("none")
    plt.close(fig)
    return fig


def _formats() -> list[str]:
    """List the formats in which figures are written."""
    formats = OPTIONS_GIVEN.get("format", "pdf,png").replace(" ", "")
    return formats.split(",")


def _size(name: str, usual: float, unit: str) -> float:
    """Read a positive number from `OPTIONS_GIVEN`, by default `usual`, or raise an InputError."""
    if name not in OPTIONS_GIVEN:
        return usual
    try:
        size = float(OPTIONS_GIVEN[name])
    except ValueError:
        size = 0
    if not 0 < size < math.inf:
        raise InputError(
            f"{name.upper()}: found {OPTIONS_GIVEN[name]!r}, expected a number of {unit} above 0"
        )
    return size


def _drop(fig: Figure) -> None:
    """Close a figure that is not written."""
    # The notebook shows it all the same, and matplotlib would warn of one without room.
    fig.set_layout_engine("none")
    plt.close(fig)


def _record(**entry: Any) -> None:
    """Append an entry to the record of `make figures`, if there is one."""
    if "record" in OPTIONS_GIVEN:
        # Two notebooks may write at a time: a line that is appended at once stays whole.
        with open(OPTIONS_GIVEN["record"], "a", encoding="utf8") as record:
            record.write(json.dumps(entry) + "\n")


def finish(fig: Figure, name: str, note: str = "") -> None:
    """Give a figure the width and the panel that were asked for, and its note.

    Parameters
    ----------
    fig : Figure
        The figure, which is changed.
    name : str
        The name of the figure, for a message.
    note : str
        A note below the panels.
    """
    width = float(OPTIONS_GIVEN.get("width", 0)) or fig.get_figwidth()
    fig.set_figwidth(width)
    panel = OPTIONS_GIVEN.get("panel")
    if panel:
        _keep_panel(fig, name, panel)
    if note:
        lines = textwrap.fill(note, width=note_letters(width))
        fig.supxlabel(lines, fontsize=points(NOTE_POINTS), color="#8A1C1C", style="italic")
    engine = fig.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        fig.set_layout_engine(_RoundedLayout(**engine.get()))
    # This comes last, because the width and the removed panels decide how much room titles have.
    canvas.wrap_titles(fig)


class _RoundedLayout(ConstrainedLayoutEngine):
    """Constrained layout with rounded positions of axes.

    Its solver orders constraints by their place in memory, so its last digits differ between runs,
    and so would the bytes of a PDF.
    """

    def execute(self, fig: Figure) -> Any:
        """Lay a figure out, and round the positions of its axes."""
        grids = super().execute(fig)
        for axes in fig.axes:
            corners = axes.get_position(original=True).get_points()
            # Parts of the figure's size: a millionth is less than a thousandth of a point.
            rounded = Bbox(corners.round(6))
            is_in_layout = axes.get_in_layout()
            axes.set_position(rounded)
            # Axes whose position is set leave the layout, and figures are laid out per format.
            axes.set_in_layout(is_in_layout)
        return grids


def _check_size(fig: Figure, name: str) -> None:
    """Raise an InputError if text of a figure does not fit the width and font asked for."""
    problems = canvas.misfits(fig)
    if not problems:
        return

    width = fig.get_figwidth()
    if width < PAGE_INCHES:
        remedy = f"needs two columns: WIDTH={PAGE_INCHES:g}"
    else:
        remedy = "needs a smaller FONT, fewer MODELS or one PANEL"
    raise InputError(f"{name} {remedy}; at {width:g} in {problems[0]}")


def _keep_panel(fig: Figure, name: str, panel: str) -> None:
    """Remove all panels with a title other than `panel`. Raise an InputError if no title is."""
    titles = [ax.get_title() for ax in fig.axes]
    if panel not in titles:
        raise InputError(f"PANEL: {name} has no {panel!r}; there are {', '.join(titles)}")

    for ax, title in zip(fig.axes, titles, strict=True):
        # A panel without a title, such as a colour bar, belongs to the others and stays.
        if title not in ("", panel):
            ax.remove()

    # A panel without a colour bar or a further panel fills the figure.
    if len(fig.axes) == 1:
        (ax,) = fig.axes
        n_rows = ax.get_subplotspec().get_gridspec().nrows
        fig.set_figheight(fig.get_figheight() / n_rows)
        ax.set_subplotspec(fig.add_gridspec(1, 1)[0])
        # A panel beside or below it may have had the labels.
        ax.tick_params(labelleft=True, labelbottom=True)
        for text in (ax.xaxis.label, ax.yaxis.label, *ax.texts):
            text.set_visible(True)


def legend(
    fig: Figure, handles: Sequence[Any], labels: Sequence[str], loc: str = "upper", **how: Any
) -> None:
    """Add a legend above or below all panels, in as many columns as the figure is wide.

    Parameters
    ----------
    fig : Figure
        The figure, of its final width.
    handles, labels : sequence
        What the legend shows, as :meth:`matplotlib.figure.Figure.legend` takes it.
    loc : {"upper", "lower"}
        Above or below the panels. If a note or a title is there, the legend needs the other side,
        because matplotlib leaves no room for both. A title of the legend can replace the figure's.
    **how
        Further options of the legend.
    """
    n_entries = len(labels)
    # Only a legend that is there can be measured, so one with a further row is tried after another.
    for n_rows in range(1, n_entries + 1):
        n_columns = math.ceil(n_entries / n_rows)
        key = fig.legend(handles, labels, loc=f"outside {loc} center", ncols=n_columns, **how)
        extent = key.get_window_extent()
        if n_columns == 1 or extent.width <= fig.bbox.width:
            break
        key.remove()

    if _is_for_paper():
        # The panels keep their height, whatever the rows of the legend.
        further_rows = extent.height / fig.dpi * (n_rows - 1) / n_rows
        fig.set_figheight(_limited_to_page(fig.get_figheight() + further_rows))


def legend_of_lines(fig: Figure, looks: Mapping[str, Mapping[str, Any]], **how: Any) -> None:
    """Add a :func:`legend` with one line per name.

    Parameters
    ----------
    fig : Figure
        The figure, of its final width.
    looks : mapping of mapping
        By the name of each line, its look, as :class:`matplotlib.lines.Line2D` takes it.
    **how
        Further options of :func:`legend`.
    """
    handles = []
    for look in looks.values():
        handles.append(plt.Line2D([], [], **look))
    legend(fig, handles, list(looks), **how)


def n_panels_in_row(most: int, least_inches: float = 1.4) -> int:
    """Count the panels that fit side by side.

    Parameters
    ----------
    most : int
        The largest number.
    least_inches : float
        The smallest width of a panel.

    Returns
    -------
    int
        The number, at least 1.
    """
    n_fitting = int(TWO_COLUMNS / least_inches)
    return max(1, min(most, n_fitting))


def panels(
    n: int, height: float, columns: int = 3, least: float = 1.4, **how: Any
) -> tuple[Figure, Sequence[Axes]]:
    """Make a figure two columns wide with panels in rows.

    Parameters
    ----------
    n : int
        How many panels.
    height : float
        The height of a panel in inches, or less if the rows of a figure for a paper would be
        higher than a page.
    columns : int
        How many panels stand in a row, if the figure is wide enough.
    least : float
        The smallest width of a panel, in inches.
    **how
        Options of :func:`matplotlib.pyplot.subplots`.

    Returns
    -------
    Figure, sequence of Axes
        The figure and its n panels.
    """
    n_columns = n_panels_in_row(min(n, columns), least)
    n_rows = math.ceil(n / n_columns)
    # Without squeezing, the panels are an array even if there is only one.
    fig, axes = plt.subplots(n_rows, n_columns, squeeze=False, **how)
    fig.set_size_inches(TWO_COLUMNS, _limited_to_page(height * n_rows))

    in_order = axes.flat
    for ax in in_order[n:]:
        ax.remove()
    return fig, in_order[:n]


def _limited_to_page(inches: float) -> float:
    """Limit the height of a figure to a page, if a width or a font size was asked for.

    The rows of the figure then move closer. Many models may need more on screens. A figure for a
    paper that is too crowded is refused.
    """
    return min(inches, canvas.MAX_HEIGHT_INCHES) if _is_for_paper() else inches


def _is_for_paper() -> bool:
    """Tell whether a width or a font size was asked for."""
    return "width" in OPTIONS_GIVEN or "font" in OPTIONS_GIVEN


def facets(
    table: pd.DataFrame, height: float, by: str = "model", columns: int = 3, **how: Any
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """Make a figure with one titled panel per value of a column.

    Parameters
    ----------
    table : DataFrame
        The rows of all panels.
    height : float
        The height of a panel, in inches.
    by : str
        The column with one panel per value.
    columns : int
        How many panels stand in a row, if the figure is wide enough.
    **how
        Options of :func:`panels`.

    Returns
    -------
    Figure, list of tuple
        The figure, and each panel with its rows. A single panel is one column wide.
    """
    parts = table.groupby(by, sort=False)
    fig, axes = panels(len(parts), height, columns, **how)
    if len(parts) == 1:
        fig.set_figwidth(ONE_COLUMN)

    panels_with_rows = []
    for ax, (name, rows) in zip(axes, parts, strict=True):
        ax.set_title(models.label(name) if by == "model" else name)
        panels_with_rows.append((ax, rows))
    return fig, panels_with_rows


def _panels_of_models(
    table: pd.DataFrame, margin: float, step: float
) -> tuple[Figure, dict[str, Axes], dict[str, int]]:
    """Make a figure with a panel per ``model``, and return the height of each ``line`` too."""
    names = table.model.unique()
    lines = list(dict.fromkeys(table.line))
    # Heights grow upwards, so the last line comes first and the first is drawn on top.
    lines.reverse()
    heights = {line: height for height, line in enumerate(lines)}

    height = margin + step * len(lines)
    fig, axes = panels(len(names), height, len(names), least=1.2, sharey=True)
    panel_of = dict(zip(names, axes, strict=True))
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
            # The marker tells the reading, the colour the ending; hollow, so that equal ones show.
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
        # Room for half a line above the first and below the last, however many there are.
        ax.set(title=models.label(model), ylim=(-0.7, len(heights) - 0.3))
        ax.set_yticks(list(heights.values()), list(heights))

    _share_scales(list(axes.values()), list(axes))
    label_below(list(axes.values()), xlabel)
    legend(fig, list(handles.values()), list(handles))
    return fig


def heights(n: int) -> NDArray[np.int_]:
    """Give n lines of a panel their heights, so that the first line is on top.

    Parameters
    ----------
    n : int
        How many lines.

    Returns
    -------
    array of int
        From n - 1 down to 0, because an axis grows upwards.
    """
    return np.arange(n)[::-1]


def label_below(axes: Sequence[Axes], xlabel: str) -> None:
    """Give panels that share an axis one label, below the middle of the last row.

    Parameters
    ----------
    axes : sequence of Axes
        The panels.
    xlabel : str
        The label.
    """
    last_row = max(ax.get_subplotspec().rowspan.stop for ax in axes)
    in_last_row = [ax for ax in axes if ax.get_subplotspec().rowspan.stop == last_row]
    middle = in_last_row[len(in_last_row) // 2]
    # The middle of an even number of panels is the left end of the panel at its right.
    is_even = len(in_last_row) % 2 == 0
    middle.set_xlabel(xlabel, x=0 if is_even else 0.5)


def label_outer(axes: Sequence[Axes]) -> None:
    """Remove the labels of inner panels that share their axes.

    A panel above an empty place is the last panel of its column, so it keeps its horizontal labels.
    Matplotlib's function of this name would remove them.

    Parameters
    ----------
    axes : sequence of Axes
        The panels, row by row.
    """
    lowest = {ax.get_subplotspec().colspan.start: ax for ax in axes}
    for ax in axes:
        place = ax.get_subplotspec()
        is_lowest = lowest[place.colspan.start] is ax
        ax.tick_params(labelbottom=is_lowest, labelleft=place.is_first_col())
        if not is_lowest:
            ax.set_xlabel("")
        if not place.is_first_col():
            ax.set_ylabel("")


def intervals(
    table: pd.DataFrame,
    x: str,
    y: str,
    hue: str | None = None,
    facet: str | None = "model",
    lines: Sequence[str] = (),
    filled: str | None = None,
    colours: Mapping[str, Any] | None = None,
    xlabel: str = "",
    reference: float = 0,
    reference_name: str = "",
    limits: tuple[float, float] | None = None,
    step: float = 0.17,
    columns: int = 3,
    least: float = 1.4,
    margin: float = 0.75,
    further: Mapping[str, Any] | None = None,
) -> Figure:
    """Draw dots with intervals, one panel for each value of `facet`.

    All panels share one scale, so that equal effects look equal. Calibrants have a scale of their
    own if `limits` are not given, because known biases are larger than biases of real models.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``low`` and ``high``, and the columns that the other parameters name. With
        ``low_like_these`` and ``high_like_these`` a dot has a second, wider interval.
    x, y : str
        The columns of the estimate, and of the lines from top to bottom.
    hue : str, optional
        The column with one colour per value. The values of a line are dodged.
    facet : str or None
        The column with one panel per value; None for a single panel.
    lines : sequence of str
        The order of the lines, by default as in the table.
    filled : str, optional
        A column of truth values. A dot is hollow where the value is False.
    colours : mapping, optional
        The colour of each value of `hue`, in the order of the legend. Other values are left out.
    xlabel : str
        The label of the axis of the estimates.
    reference : float
        Where a vertical line stands, such as no effect or chance.
    reference_name : str
        The name of this line in the legend; "" leaves it out.
    limits : tuple of float, optional
        The ends of the axis of the estimates.
    step : float
        The height of a line, in inches.
    columns : int
        How many panels stand in a row, if the figure is wide enough.
    least : float
        The smallest width of a panel, in inches.
    margin : float
        The height of a panel above and below its lines, in inches.
    further : mapping, optional
        Further entries of the legend, such as those of `scopes_key`: the look of each line.

    Returns
    -------
    Figure
        Two columns wide, or one column for a single panel.
    """
    if colours:
        table = table[table[hue].isin(list(colours))]
    # Only lines that the table has are kept; seaborn would leave room for the others.
    in_order = [line for line in lines or dict.fromkeys(table[y]) if line in set(table[y])]
    n_panels = table[facet].nunique() if facet else 1
    n_columns = n_panels_in_row(min(columns, n_panels), least)
    fig = _figure_of_panels(n_panels, n_columns, margin + step * len(in_order))

    # A line without an estimate keeps its place, as `in_order` has it.
    plot = _dots_and_ranges(table.dropna(subset=x), x, y, hue, filled)
    plot = plot.scale(
        y=so.Nominal(order=in_order),
        color=so.Nominal(dict(colours)) if colours else None,
        fill=so.Boolean(),
    )
    has_own_scales = facet == "model" and not limits
    if facet:
        in_row = list(dict.fromkeys(table[facet]))
        title = models.label if facet == "model" else None
        plot = plot.facet(col=facet, order=in_row, wrap=n_columns).label(title=title)
    if limits:
        plot = plot.limit(x=limits)
    if has_own_scales:
        # seaborn's panels share one axis or none, so `_share_scales` scales the two groups of them.
        plot = plot.share(x=False)
    # seaborn.objects draws in a theme of its own unless it is given matplotlib's settings.
    plot.label(x="", y="").theme(mpl.rcParams).on(fig).plot()

    if has_own_scales:
        # The panels come in the order of `in_row`.
        _share_scales(fig.axes, in_row)
    for ax in fig.axes:
        ax.axvline(reference, zorder=0, **_REFERENCE)
    label_below(fig.axes, xlabel)
    _add_legend(fig, colours or {}, reference_name, further or {})
    return fig


def _figure_of_panels(n_panels: int, n_columns: int, height: float) -> Figure:
    """Make an empty figure for panels of a height in inches, one column wide for a single panel."""
    n_rows = math.ceil(n_panels / n_columns)
    width = TWO_COLUMNS if n_panels > 1 else ONE_COLUMN
    total = _limited_to_page(max(n_rows * height, MIN_FIGURE_HEIGHT))
    return plt.figure(figsize=(width, total))


def _dots_and_ranges(
    table: pd.DataFrame, x: str, y: str, hue: str | None, filled: str | None
) -> so.Plot:
    """Plot dots with their intervals, as `intervals` describes them."""
    # Without a hue there is nothing to dodge, and one colour. Hollow dots stay on their intervals.
    aside = [so.Dodge(by=["color"])] if hue else []
    plain = {} if hue else {"color": COLOURS[0]}

    plot = so.Plot(table, x=x, y=y, color=hue)
    if "low_like_these" in table:
        narrow = so.Range(linewidth=2.4, alpha=0.5, **plain)
        wide = so.Range(linewidth=0.7, **plain)
        plot = plot.add(narrow, *aside, xmin="low", xmax="high", legend=False)
        plot = plot.add(wide, *aside, xmin="low_like_these", xmax="high_like_these", legend=False)
    else:
        only = so.Range(linewidth=0.8, **plain)
        plot = plot.add(only, *aside, xmin="low", xmax="high", legend=False)

    dot = so.Dot(pointsize=3.2, stroke=0.8, **plain)
    return plot.add(dot, *aside, fill=filled, legend=False)


def _add_legend(
    fig: Figure, colours: Mapping[str, Any], reference_name: str, further: Mapping[str, Any]
) -> None:
    """Add the legend of `intervals`, if it has an entry."""
    looks: dict[str, Mapping[str, Any]] = {}
    for name, colour in colours.items():
        looks[name] = {"color": colour, "marker": "o", "markersize": 3, "linewidth": 0.8}
    if reference_name:
        looks[reference_name] = _REFERENCE
    looks |= further
    if looks:
        legend_of_lines(fig, looks)


def _share_scales(axes: Sequence[Axes], names: Sequence[str]) -> None:
    """Give panels of calibrants one horizontal scale, and panels of real models another."""
    of_calibrants = []
    of_real_models = []
    for ax, name in zip(axes, names, strict=True):
        if models.is_calibrant(name):
            of_calibrants.append(ax)
        else:
            of_real_models.append(ax)

    for alike in (of_calibrants, of_real_models):
        ends = [end for ax in alike for end in ax.get_xlim()]
        for ax in alike:
            # Without this air a dot could lie on the end of the axis.
            air = 0.03 * (max(ends) - min(ends))
            ax.set_xlim(min(ends) - air, max(ends) + air)


def two_scopes(table: pd.DataFrame, xlabel: str, sampled: str = "names and phrasings") -> Figure:
    """Draw effects with two intervals, one panel for each model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``line`` (what the effect is of), ``estimate``; ``low`` and ``high``, for these
        names, phrasings or words; ``low_like_these`` and ``high_like_these``, for names, phrasings
        or words like these, NaN where they cannot be told.
    xlabel : str
        The label of the axis of the effects.
    sampled : str
        The name of the things that the wide interval takes as a sample, for the legend.

    Returns
    -------
    Figure
        Two columns wide. The first interval is thick, the second (``low_like_these``) is thin, and
        a hollow dot has no thin interval.
    """
    drawn = table.assign(has_wide=table.low_like_these.notna())
    hollow = "" if drawn.has_wide.all() else "cannot be told for others"
    return intervals(
        drawn,
        x="estimate",
        y="line",
        filled="has_wide",
        xlabel=xlabel,
        step=0.15,
        columns=table.model.nunique(),
        least=1.2,
        further=scopes_key(sampled, COLOURS[0], hollow),
    )


def scopes_key(sampled: str, colour: str, hollow: str = "") -> dict[str, Any]:
    """Make the entries of a legend that explain the two intervals of `intervals`.

    Parameters
    ----------
    sampled : str
        The name of the things that the wide interval takes as a sample.
    colour : str
        The colour of the entries.
    hollow : str
        The meaning of a hollow dot; "" leaves the entry out.

    Returns
    -------
    dict of dict
        The look of the line for each text, as :func:`legend_of_lines` takes it.
    """
    looks = {
        f"for these {sampled}": {"color": colour, "linewidth": 2.4, "alpha": 0.5},
        f"for {sampled} like these": {"color": colour, "linewidth": 0.7},
    }
    if hollow:
        dot = {"linestyle": "", "marker": "o", "markersize": 3, "markerfacecolor": "white"}
        looks[hollow] = dot | {"color": colour}
    return looks


def heatmap(
    ax: Axes,
    matrix: np.ndarray,
    shown: np.ndarray | None = None,
    groups: Sequence[str] = (),
    labels: Sequence[str] = (),
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
) -> QuadMesh:
    """Draw a matrix of perceivers (rows) by experiencers (columns).

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
    QuadMesh
        The cells, for a colour bar.
    """
    low, high = limits or np.percentile(matrix, [1, 99])
    sns.heatmap(
        matrix,
        mask=None if shown is None else ~shown,
        vmin=low,
        vmax=high,
        cmap=mpl.colormaps[cmap].with_extremes(bad="white") if cmap else HEAT_CMAP,
        cbar=False,
        square=True,
        xticklabels=labels if len(labels) else False,
        yticklabels=labels if len(labels) else False,
        ax=ax,
    )
    # seaborn removes the frame of a heatmap.
    ax.spines[:].set(visible=True, linewidth=0.4)
    ax.tick_params(length=0)

    # Without groups of several identities a line would stand between all cells.
    edges = []
    for position, (before, group) in enumerate(itertools.pairwise(groups), start=1):
        if group != before:
            edges.append(position)
    if len(edges) < len(groups) - 1:
        for edge in edges:
            ax.axhline(edge, color="#666666", linewidth=0.4)
            ax.axvline(edge, color="#666666", linewidth=0.4)

    # seaborn turns labels only where they overlap; here all heatmaps are alike.
    ax.tick_params(axis="x", rotation=90)
    ax.tick_params(axis="y", rotation=0)
    return ax.collections[-1]


def label_points(
    ax: Axes,
    x: Sequence[float],
    y: Sequence[float],
    labels: Sequence[str],
    size: float | None = None,
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
    size : float, optional
        The size of the font, in points. The default is 6 where plain text has
        `DEFAULT_FONT_POINTS`.
    keep_free : sequence of tuple
        Further positions (x, y) to keep free.

    Notes
    -----
    textalloc places the names. It draws nothing at random, so a figure keeps its bytes.
    """
    fig = ax.figure
    if not fig.get_supxlabel():
        # The note that `save` may add takes room and moves the axes, so that room is taken now.
        fig.supxlabel(" ", fontsize=points(NOTE_POINTS))
    canvas.lay_out(fig)
    # This is a point as a share of the panel's width, the unit of textalloc's distances.
    point = fig.dpi / 72 / ax.bbox.width
    nearest = 4.5 * point
    farthest = 0.35
    if nearest > farthest:
        # `canvas.misfits` names a panel that is so narrow, if this figure is asked for at all.
        return
    # From here on the limits are fixed, as the lines to the names would move them.
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())

    positions = zip(x, y, strict=True)
    taken = np.array([*positions, *keep_free], dtype=float)
    drawn: Sequence[Any] = textalloc.allocate(
        ax,
        list(x),
        list(y),
        list(labels),
        x_scatter=taken[:, 0],
        y_scatter=taken[:, 1],
        textsize=size or points(6),
        va="bottom",
        linewidth=0.3,
        linecolor="#888888",
        direction=["east", "west", "north", "south", "northeast", "northwest"],
        margin=1.5 * point,
        min_distance=nearest,
        max_distance=farthest,
        nbr_candidates=400,
    )

    for line in filter(None, drawn[-1]):
        ends = ax.transData.transform(line.get_xydata())
        length = np.ptp(ends, axis=0).max()
        if length < 8 * fig.dpi / 72:
            # The name is so near its point that it needs no line.
            line.remove()
