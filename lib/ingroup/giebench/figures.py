"""Tables and figures of GIEBench with the printed models in them, theirs first."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ingroup import published
from ingroup.giebench import stimuli
from ingroup.giebench.accuracy import CELL, accuracy, changes, released_accuracy
from ingroup.inference.models import find, label
from ingroup.style import GREY, TWO_COLUMNS

ACCURACY = {"COT": 1, "ID": 2, "Raw": 6}  # the printed table of each prompt
CHANGES = {"COT": 4, "ID": 5}
NAMES = {"accuracy_pct": "accuracy", "delta_pct": "change"}
CHANCE = 25  # percent


def printed(tables: dict[str, int]) -> pd.DataFrame:
    """Read the printed tables of several prompts into one, with this study's names."""
    read = [published.load("giebench", number) for number in tables.values()]
    both = pd.concat(read, keys=tables, names=["prompt"])
    both = both.reset_index("prompt")
    return both.rename(columns=NAMES)


def with_printed(here: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Put printed rows before those of a run, and name models by their labels.

    Parameters
    ----------
    here : DataFrame
        From `accuracy.accuracy` or `accuracy.changes`.
    theirs : DataFrame
        From `printed`.

    Returns
    -------
    DataFrame
        ``source`` ("printed" or "here"), ``model`` (its label), ``series`` and the columns of
        `here`, one row per cell of the tables.
    """
    theirs = theirs.assign(source="printed")
    ours = here.reset_index()
    ours["source"] = "here"
    both = pd.concat([theirs, ours], ignore_index=True)
    both = both.drop(columns="model_label")

    # A model that is not in the registry is a series of its own.
    known = both.model.map(find)
    series = known.map(lambda row: row.series, na_action="ignore")
    both["series"] = series.fillna(both.model)
    both["model"] = both.model.map(label)
    return both


def beside(answers: pd.DataFrame) -> pd.DataFrame:
    """Compare a run's numbers with the printed ones of the same models, cell by cell.

    Parameters
    ----------
    answers : DataFrame
        Answers in the order given, read by the released rule.

    Returns
    -------
    DataFrame
        As `published.beside`, of Tables 1, 2, 4, 5 and 6; the numbers here are computed as by the
        released script.
    """
    ours = accuracy(answers)
    ours["accuracy"] = released_accuracy(ours)
    theirs = printed(ACCURACY)
    levels = published.beside(theirs, ours, CELL, ["accuracy"])

    raw = ours.xs("Raw", level="prompt")
    changed = changes(answers)
    changed["change"] = ours.accuracy - raw.accuracy
    theirs = printed(CHANGES)
    columns = ["change", "gained", "lost"]
    differences = published.beside(theirs, changed, CELL, columns)
    return pd.concat([levels, differences])


def radars(both: pd.DataFrame) -> Figure:
    """Draw accuracy under COT by category, a radar for each series of models: Figure 3.

    Parameters
    ----------
    both : DataFrame
        From `with_printed`.

    Returns
    -------
    Figure
        Printed models are broken lines, models here are black; the dotted circle is guessing.
    """
    drawn = both[both.prompt == "COT"]
    groups = drawn.groupby("series", sort=False)
    n_series = len(groups)
    n_lines = math.ceil(n_series / 3)
    size = (TWO_COLUMNS, 2.5 * n_lines)
    fig = plt.figure(figsize=size, layout="constrained")
    for number, (series, table) in enumerate(groups, start=1):
        ax = fig.add_subplot(n_lines, 3, number, projection="polar")
        _radar(ax, table)
        ax.set_title(series, fontsize=7)
    return fig


def _radar(ax, table):
    """Draw the models of one series as closed lines."""
    spokes = stimuli.categories()
    closed = [*spokes, spokes[0]]
    n_corners = len(closed)
    full_turn = 2 * np.pi
    angles = np.linspace(0, full_turn, n_corners)
    by_model = table.groupby(["source", "model"], sort=False)
    for (source, model), cells in by_model:
        rows = cells.set_index("category")
        percent = rows.accuracy.reindex(closed)
        look = {"linestyle": "--", "linewidth": 0.8}
        if source == "here":
            look = {"color": "black", "linewidth": 1.4}
        ax.plot(angles, percent, label=model, **look)

    ax.axhline(CHANCE, color=GREY, linestyle=":", linewidth=0.8)
    # The first spoke is at the top, the next ones follow clockwise.
    ax.set(
        theta_zero_location="N",
        theta_direction=-1,
        ylim=(0, 100),
        yticks=[50, 100],
    )
    corners = angles[:-1]
    ax.set_xticks(corners, spokes)
    ax.tick_params(labelsize=5)
    below = (0.5, -0.17)
    ax.legend(loc="upper center", bbox_to_anchor=below, fontsize=5, ncols=2)
