"""One style for all figures, and one way to save them."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
import textalloc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

ONE_COLUMN = 3.03  # inches of a page of the ACL
TWO_COLUMNS = 6.30
PADDING = 0.05  # inches
PRINTED = "printed models"
GREY = "#999999"


def use_style() -> None:
    """Set small type, embedded fonts and colours that the colour-blind can tell apart."""
    options = {"pdf.fonttype": 42, "savefig.bbox": "tight"}
    sns.set_theme("paper", "ticks", "colorblind", font_scale=0.8, rc=options)


def write_names(ax: Axes, places: pd.DataFrame) -> None:
    """Write names beside points, none over another name or a point.

    Parameters
    ----------
    ax : Axes
        A panel of final size, with one scatter plot.
    places : DataFrame
        x and y in two columns, by name.
    """
    # Lines to the names would widen the panel.
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    x, y = ax.collections[0].get_offsets().T

    in_order = places.sort_index()
    textalloc.allocate(
        ax,
        *in_order.to_numpy().T,
        in_order.index,
        x_scatter=x,
        y_scatter=y,
        textsize=5,
        linecolor="grey",
        linewidth=0.25,
        margin=0.012,
        max_distance=0.5,
    )


def intervals(
    x: str,
    y: str,
    hue: str,
    lines: Sequence[str],
    names: Sequence[str],
    data: pd.DataFrame,
    **of_grid: object,
) -> None:
    """Draw estimates with their intervals on the current axes.

    Parameters
    ----------
    x, y, hue : str
        The columns of the estimate, of its line and of its name.
    lines : sequence of str
        The lines, from top to bottom.
    names : sequence of str
        The names, drawn one under another in each line. `PRINTED` has grey marks.
    data : DataFrame
        These columns, ``low`` and ``high``, NaN for an estimate without an interval.
    **of_grid : object
        Not used; `seaborn.FacetGrid` gives a colour.
    """
    ax = plt.gca()
    n = len(names)
    places = pd.Series(range(len(lines)), lines)
    for number, name in enumerate(names):
        rows = data[data[hue] == name]
        look = {"marker": "o", "markersize": 3}
        if name == PRINTED:
            look = {"marker": "|", "markersize": 4, "color": GREY}

        heights = places[rows[y]].to_numpy() + (number - (n - 1) / 2) * 0.8 / n
        (marks,) = ax.plot(rows[x], heights, linestyle="none", label=name, **look)
        ax.hlines(heights, rows.low, rows.high, color=marks.get_color(), linewidth=1)

    ax.set_yticks(range(len(lines)), lines)
    ax.set_ylim(len(lines) - 0.5, -0.5)


def save_figure(figure: Figure, file: Path) -> None:
    """Write ``file.pdf`` and ``file.png``, the same bytes every time, and close the figure."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # The layout is computed once, for both files.
    figure.canvas.draw()
    figure.set_layout_engine("none")
    box = figure.get_tightbbox().padded(PADDING)

    undated = {"CreationDate": None, "Creator": None, "Producer": None}
    pdf = file.with_name(f"{file.name}.pdf")
    figure.savefig(pdf, bbox_inches=box, metadata=undated)
    png = file.with_name(f"{file.name}.png")
    figure.savefig(png, bbox_inches=box, dpi=200, metadata={"Software": None})
    plt.close(figure)
