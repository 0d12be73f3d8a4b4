"""The figure of the audit: every printed number of the papers, by its verdict."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ingroup import figures

# The colour and the height of a tick, by verdict. Ticks that contradict are taller, so that readers
# can find them without colour.
STYLE = {
    "holds": ("#A9CCE3", 0.62),
    "rounding": ("#0072B2", 0.62),
    "cannot be checked": ("#E69F00", 0.62),
    "no check": ("#C8C8C8", 0.62),
    "contradicts": ("#C03A00", 1.0),
}
WIDTH = 276  # ticks in a line: one GIEBench table of 23 models by 12 columns

_RED = STYLE["contradicts"][0]
# Where the columns of counts end, in ticks from the left.
_X_NUMBERS = WIDTH + 17
_X_SLIPS = WIDTH + 38


class _Line(NamedTuple):
    """A line of ticks: its height, its name, its numbers and all numbers of its place.

    Only the first line of a place has the numbers of the place, which are counted beside it.
    """

    y: float
    label: str
    numbers: pd.DataFrame
    of_place: pd.DataFrame | None


def table_names(folder: Path, words: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Name the content of each printed table, from the name of its file.

    Parameters
    ----------
    folder : Path
        The folder of the studies' printed tables.
    words : mapping
        The replacement of each part of a file's name. A part ends where a word ends.

    Returns
    -------
    dict
        For example "mean and SD Llama-3.1-8B", by study and place ("Table 3").
    """
    names = {}
    for file in folder.glob("*/table*.csv"):
        # The files are called tableNN_<what>.csv.
        table, _, what = file.stem.partition("_")
        number = int(table.removeprefix("table"))
        name = what.replace("_", " ")
        for part, word in words.items():
            name = re.sub(rf"{part}\b", word, name)

        study = file.parent.name
        place = f"Table {number}"
        names[study, place] = name
    return names


def printed_numbers(
    numbers: pd.DataFrame, titles: Mapping[str, str], names: Mapping[tuple[str, str], str]
) -> Figure:
    """Draw a tick for each printed number, in the order of its table.

    Parameters
    ----------
    numbers : DataFrame
        The audit's table ``numbers``.
    titles : mapping
        The title of each paper, by its study.
    names : mapping
        From `table_names`.

    Returns
    -------
    Figure
        One line per table, or per column of a table that is too wide, under the titles.
    """
    lines, tops = _lines(numbers, names)
    bottom = lines[-1].y
    height = 0.108 * bottom + 0.4
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, height))
    for line in lines:
        _draw_line(ax, line)

    for study, y in tops.items():
        ax.text(0, y, titles[study], fontweight="bold", va="center")
    ax.text(_X_NUMBERS, 1.0, "numbers", ha="right", **_small())
    ax.text(_X_SLIPS, 0.2, "contradict", ha="right", color=_RED, **_small())

    verdicts = numbers.verdict.unique()
    for verdict, (colour, _) in STYLE.items():
        if verdict in verdicts:
            # An empty line, which only the legend shows.
            ax.plot([], [], color=colour, linewidth=4, label=verdict)
    ax.legend(
        ncols=5,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        handlelength=1,
    )
    ax.set(xlim=(-95, _X_SLIPS), ylim=(bottom + 0.6, -0.4))
    ax.axis("off")
    return fig


def _small() -> dict[str, Any]:
    """Return the style of small text, in proportion to plain text, whose size readers choose."""
    return {"fontsize": figures.points(5.5), "va": "center"}


def _lines(
    numbers: pd.DataFrame, names: Mapping[tuple[str, str], str]
) -> tuple[list[_Line], dict[str, float]]:
    """List the lines of the figure from top to bottom, and the height of each paper's title."""
    lines = []
    tops: dict[str, float] = {}
    y = -0.6
    for (study, place), of_place in numbers.groupby(["paper", "place"], sort=False):
        if study not in tops:
            y += 1.6
            tops[study] = y

        name = names.get((study, place), "phrases and numbers")
        label = f"{name}   {place}"
        # A table that is too wide for a line has one line per column.
        by_line = "column" if len(of_place) > WIDTH else "place"
        parts = of_place.groupby(by_line, sort=False)
        for number, (column, part) in enumerate(parts):
            y += 1.0
            # Only the first line has the name and the counts of the place.
            line = _Line(y, str(column), part, None)
            if number == 0:
                line = _Line(y, label, part, of_place)
            lines.append(line)

    return lines, tops


def _draw_line(ax: Axes, line: _Line) -> None:
    """Draw the ticks of a line, its name on the left and its counts on the right."""
    y = line.y
    for verdict, (colour, height) in STYLE.items():
        is_verdict = line.numbers.verdict == verdict
        x = np.flatnonzero(is_verdict) + 0.5
        half = height / 2
        ax.vlines(x, y - half, y + half, colour, linewidth=0.72)
    ax.text(-4, y, line.label, ha="right", **_small())

    if line.of_place is None:
        return

    n_numbers = len(line.of_place)
    ax.text(_X_NUMBERS, y, n_numbers, ha="right", **_small())

    is_slip = line.of_place.verdict == "contradicts"
    # A place without a slip shows nothing, not 0.
    slips = is_slip.sum() or ""
    ax.text(_X_SLIPS, y, slips, ha="right", color=_RED, fontweight="bold", **_small())
