"""The figures of Hou et al., drawn from tables, in panels by model, setting and category."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
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
    width = (TWO_COLUMNS - 0.6) / len(columns)
    has_names = width > NAMED
    height = width * len(rows) + (1.2 if has_names else 0.6)
    fig, axes = plt.subplots(
        len(rows),
        len(columns),
        figsize=(TWO_COLUMNS, height),
        layout="constrained",
        squeeze=False,
    )
    # A few cells far out would leave no colours for the others.
    limit = cells.z.abs().quantile(0.99)
    for (i, j), ax in np.ndenumerate(axes):
        panel = cells[(cells[row] == rows[i]) & (cells[col] == columns[j])]
        ax.set(xticks=[], yticks=[])
        if i == 0:
            ax.set_title(columns[j], fontsize=SMALL + 1)
        if i == len(rows) - 1:
            ax.set_xlabel("experiencer", fontsize=SMALL)
        if j == 0:
            ax.set_ylabel(rows[i], fontsize=SMALL)
        if panel.empty:
            ax.axis("off")
            continue
        mesh = _draw_matrix(ax, panel, limit)
        if has_names:
            _name_identities(ax, panel, is_first=j == 0)

    fig.supylabel("perceiver", fontsize=SMALL + 1)
    bar = fig.colorbar(mesh, ax=axes, location="bottom", shrink=0.4, aspect=40, extend="both")
    bar.set_label("z of the mean rating", fontsize=SMALL + 1)
    bar.ax.tick_params(labelsize=SMALL)
    return fig


def _draw_matrix(ax: Axes, panel: pd.DataFrame, limit: float):
    """Draw the matrix of one block, the first perceiver on top."""
    is_hidden = ~matrix(panel, "is_shown").astype(bool)
    shown = np.ma.array(matrix(panel), mask=is_hidden)
    mesh = ax.pcolormesh(shown, cmap="mako_r", vmin=-limit, vmax=limit)
    ax.set_aspect("equal")
    ax.invert_yaxis()

    groups = identities(panel.category.iloc[0]).group
    if groups.duplicated().any():
        borders = np.flatnonzero(groups[1:].to_numpy() != groups[:-1].to_numpy()) + 1
        ax.hlines(borders, 0, len(groups), color="grey", linewidth=0.3)
        ax.vlines(borders, 0, len(groups), color="grey", linewidth=0.3)
    return mesh


def _name_identities(ax: Axes, panel: pd.DataFrame, is_first: bool) -> None:
    """Write the identities below a panel, and left of the first one."""
    names = [name.removeprefix("a person from ") for name in panel.perceiver.unique()]
    middles = np.arange(len(names)) + 0.5
    ax.set_xticks(middles, names, rotation=90)
    ax.set_yticks(middles, names if is_first else [""] * len(names))
    ax.tick_params(labelsize=SMALL, length=1, pad=1)


def countries(positions: pd.DataFrame) -> Figure:
    """Draw the countries of each model, coloured by cultural cluster (Figure 4).

    Parameters
    ----------
    positions : DataFrame
        ``model``, ``label``, ``cluster``, ``x`` and ``y``.

    Returns
    -------
    Figure
        One panel for each model. Only neighbours can be compared.
    """
    models = positions.model.unique()
    size = (TWO_COLUMNS, TWO_COLUMNS / max(len(models), 2) + 0.3)
    fig, axes = plt.subplots(1, len(models), figsize=size, layout="constrained", squeeze=False)
    for model, ax in zip(models, axes[0], strict=True):
        of_model = positions[positions.model == model]
        sns.scatterplot(of_model, x="x", y="y", hue="cluster", style="cluster", s=14, ax=ax)
        for country in of_model.itertuples():
            place = (country.x, country.y)
            ax.annotate(country.label, place, (2, 2), textcoords="offset points", fontsize=4)
        ax.margins(0.15)
        ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
        ax.set_title(model, fontsize=SMALL + 1)
        handles, clusters = ax.get_legend_handles_labels()
        ax.get_legend().remove()

    fig.legend(handles, clusters, loc="outside lower center", ncol=4, fontsize=SMALL)
    return fig
