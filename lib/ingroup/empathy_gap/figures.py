"""The heatmaps of Hou et al., drawn from a table of cells."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from ingroup.empathy_gap.gap import matrix
from ingroup.empathy_gap.stimuli import identities
from ingroup.style import TWO_COLUMNS

SMALL = 5  # points
NAMED = 1.2  # inches of a panel from which on its identities are named


def heatmaps(cells: pd.DataFrame, row: str, col: str) -> Figure:
    """Draw M as a heatmap for each value of two columns (Figures 2, 3 and 5 to 9).

    Parameters
    ----------
    cells : DataFrame
        From `gap.cells`, one block for each panel. Cells with ``is_shown`` False stay white.
    row, col : str
        The columns of `cells` that name the rows and columns of panels.

    Returns
    -------
    Figure
        All panels have one range of colours, in which dark is high. Lines part groups of several
        names.
    """
    rows = cells[row].unique()
    columns = cells[col].unique()
    size = (TWO_COLUMNS - 0.6) / max(len(columns), 2)
    has_names = size > NAMED
    height = size * len(rows) + (1.2 if has_names else 0.6)
    fig, axes = plt.subplots(
        len(rows),
        len(columns),
        figsize=(TWO_COLUMNS, height),
        sharey="row",
        layout="constrained",
        squeeze=False,
    )
    # A few cells far out would leave no colours for the others.
    limit = cells.z.abs().quantile(0.99)
    colours = plt.cm.ScalarMappable(plt.Normalize(-limit, limit), "crest")
    for (i, j), ax in np.ndenumerate(axes):
        panel = cells[(cells[row] == rows[i]) & (cells[col] == columns[j])]
        ax.set(xticks=[], yticks=[])
        if panel.empty:
            ax.axis("off")
        else:
            _draw_matrix(ax, panel, colours, has_names)

    for ax, name in zip(axes[0], columns, strict=True):
        ax.set_title(name, fontsize=SMALL + 1)
    for ax, name in zip(axes[:, 0], rows, strict=True):
        ax.set_ylabel(name, fontsize=SMALL)

    bar = fig.colorbar(
        colours,
        ax=axes,
        location="bottom",
        shrink=0.4,
        aspect=40,
        extend="both",
    )
    meaning = "z of the mean rating; rows are perceivers, columns are experiencers"
    bar.set_label(meaning, fontsize=SMALL + 1)
    bar.ax.tick_params(labelsize=SMALL)
    return fig


def _draw_matrix(ax: Axes, panel: pd.DataFrame, colours: ScalarMappable, has_names: bool) -> None:
    """Draw the matrix of one block, the first perceiver on top."""
    is_hidden = matrix(panel, "is_shown") == 0
    shown = np.ma.array(matrix(panel), mask=is_hidden)
    ax.pcolormesh(shown, cmap=colours.cmap, norm=colours.norm)
    ax.set(aspect="equal", ylim=(len(shown), 0))

    groups = identities(panel.category.iloc[0]).group
    if groups.duplicated().any():
        borders = groups.index[groups != groups.shift()]
        ax.hlines(borders, 0, len(groups), color="grey", linewidth=0.3)
        ax.vlines(borders, 0, len(groups), color="grey", linewidth=0.3)
    if has_names:
        names = [name.removeprefix("a person from ") for name in panel.perceiver.unique()]
        middles = np.arange(len(names)) + 0.5
        ax.set_xticks(middles, names, rotation=90)
        ax.set_yticks(middles, names)
        ax.tick_params(labelsize=SMALL, length=1, pad=1)
