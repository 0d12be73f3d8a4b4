"""Tables and figures of GIEBench with the printed models in them, theirs first."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ingroup import published
from ingroup.giebench import stimuli
from ingroup.giebench.accuracy import CELL, OVERALL, accuracy, changes
from ingroup.inference import models
from ingroup.style import TWO_COLUMNS

ACCURACY = {"COT": 1, "ID": 2, "Raw": 6}  # the printed table of each prompt
CHANGES = {"COT": 4, "ID": 5}
NAMES = {"accuracy_pct": "accuracy", "delta_pct": "change"}
GREY = "#999999"
CHANCE = 25  # percent


def label(model: str) -> str:
    """Return the label of a model in tables and figures."""
    return models.model(model, {}).label


def printed(tables: dict[str, int]) -> pd.DataFrame:
    """Read the printed tables of several prompts into one, with this study's names."""
    read = []
    for prompt, number in tables.items():
        table = published.load("giebench", number)
        table["prompt"] = prompt
        read.append(table)
    both = pd.concat(read)
    return both.rename(columns=NAMES)


def with_printed(here: pd.DataFrame, tables: dict[str, int]) -> pd.DataFrame:
    """Put the printed rows of several tables before those of a run.

    Parameters
    ----------
    here : DataFrame
        From `accuracy.accuracy` or `accuracy.changes`.
    tables : dict
        The printed table of each prompt, `ACCURACY` or `CHANGES`.

    Returns
    -------
    DataFrame
        ``source`` ("printed" or "here"), ``model`` (its label), ``series`` and the columns of
        `here`, one row per cell of the tables.
    """
    theirs = printed(tables)
    theirs["source"] = "printed"
    ours = here.reset_index()
    ours["source"] = "here"
    both = pd.concat([theirs, ours], ignore_index=True)
    both = both.drop(columns="model_label")

    # A model that is not in the registry is a series of its own.
    known = both.model.map(models.find)
    series = known.map(lambda row: row.series, na_action="ignore")
    both["series"] = series.fillna(both.model)
    both["model"] = both.model.map(label)
    return both


def layout(both: pd.DataFrame, prompt: str, column: str) -> pd.DataFrame:
    """Lay one prompt of `with_printed` out as the paper does: models by categories."""
    of_prompt = both[both.prompt == prompt]
    keys = ["source", "model", "category"]
    cells = of_prompt.set_index(keys)[column]
    table = cells.unstack(sort=False)
    categories = [*stimuli.categories(), OVERALL]
    return table[categories]


def mismatch_with_printed(here: pd.DataFrame) -> pd.DataFrame:
    """Put the printed mismatches of GPT-4 (Tables 7 and 3) before those of a run.

    Parameters
    ----------
    here : DataFrame
        From `accuracy.mismatch`.

    Returns
    -------
    DataFrame
        ``source``, ``model``, ``identity_tuple``, ``condition`` (as printed) and ``accuracy``.
    """
    theirs = printed({"COT": 7, "ID": 3})
    theirs["source"] = "printed"
    theirs["model"] = "GPT-4"

    cot = here.xs("COT", level="prompt")
    identity = here.xs("ID", level="prompt")
    conditions = {
        "cot_prompt_mismatch": cot.after,
        "id_prompt_mismatch": identity.after,
        "no_mismatch": cot.before,
    }
    wide = pd.DataFrame(conditions).rename_axis(columns="condition")
    ours = wide.stack().rename("accuracy")
    ours = ours.reset_index()
    ours["source"] = "here"

    both = pd.concat([theirs, ours])
    both["model"] = both.model.map(label)
    # Table 3 prints a pair of Table 7 in the other order, and others again.
    known = stimuli.pairs().identity_tuple
    is_known = both.identity_tuple.isin(known)
    columns = ["source", "model", "identity_tuple", "condition"]
    both = both[is_known].drop_duplicates(columns)
    return both[[*columns, "accuracy"]]


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
    theirs = printed(ACCURACY)
    ours = accuracy(answers, "released")
    levels = published.beside(theirs, ours, CELL, ["accuracy"])

    theirs = printed(CHANGES)
    ours = changes(answers, "released")
    columns = ["change", "gained", "lost"]
    differences = published.beside(theirs, ours, CELL, columns)
    return pd.concat([levels, differences])


def by_category(both: pd.DataFrame) -> Figure:
    """Draw the accuracy of all models by category and prompt, with Wilson's intervals here.

    Parameters
    ----------
    both : DataFrame
        From `with_printed`.

    Returns
    -------
    Figure
        A panel for each prompt; the dotted line is guessing.
    """
    lines = [*stimuli.categories(), OVERALL]
    end = len(lines) - 0.5
    grid = sns.FacetGrid(
        both,
        col="prompt",
        col_order=stimuli.PROMPTS,
        height=4.6,
        aspect=0.45,
    )
    grid.map_dataframe(intervals, "accuracy", "category", lines)
    grid.refline(x=CHANCE, color="black", linewidth=0.6, linestyle=":")
    grid.refline(y=end - 1, color=GREY, linewidth=0.5, linestyle="-")
    grid.set(xlim=(-3, 103), ylim=(end, -0.5))
    grid.set_titles("{col_name}")
    grid.set_axis_labels("accuracy (%)", "")

    first = grid.axes.flat[0]
    handles, names = first.get_legend_handles_labels()
    grid.figure.legend(
        handles,
        names,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=4,
    )
    return grid.figure


def intervals(
    x: str, line: str, lines: list[str], data: pd.DataFrame, color: object = None
) -> None:
    """Draw printed models as marks, and below them a dot with its interval for each model here.

    Parameters
    ----------
    x, line : str
        The column of the estimate, and that of the line on which it stands.
    lines : list of str
        The lines, from top to bottom.
    data : DataFrame
        ``source``, ``model``, ``low``, ``high`` and these columns. It is drawn on the current axes.
    color : object
        Not used; `seaborn.FacetGrid` gives one.
    """
    ax = plt.gca()
    heights = data[line].map(lines.index)
    is_printed = data.source == "printed"
    theirs = data[is_printed]
    here = data[~is_printed]
    by_model = here.groupby("model", sort=False)
    n_rows = 1 + len(by_model)
    above, *offsets = np.linspace(-0.33, 0.33, n_rows)

    y = heights[theirs.index] + above
    look = {"color": GREY, "markersize": 4}
    ax.plot(theirs[x], y, "|", label="printed models", **look)
    for offset, (model, rows) in zip(offsets, by_model, strict=True):
        y = heights[rows.index] + offset
        (dots,) = ax.plot(rows[x], y, "o", markersize=2.8, label=model)
        color = dots.get_color()
        ax.hlines(
            y,
            rows.low,
            rows.high,
            color=color,
            linewidth=0.9,
        )
    places = range(len(lines))
    ax.set_yticks(places, lines)


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
    is_drawn = both.prompt == "COT"
    drawn = both[is_drawn]
    groups = drawn.groupby("series", sort=False)
    n_lines = math.ceil(len(groups) / 3)
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
    full_turn = 2 * np.pi
    angles = np.linspace(0, full_turn, len(closed))
    by_model = table.groupby(["source", "model"], sort=False)
    for (source, model), cells in by_model:
        rows = cells.set_index("category")
        percent = rows.accuracy.reindex(closed)
        look = {"linestyle": "--", "linewidth": 0.8}
        if source == "here":
            look = {"color": "black", "linewidth": 1.4}
        ax.plot(angles, percent, label=model, **look)

    guessing = np.full(len(angles), CHANCE)
    ax.plot(angles, guessing, ":", color=GREY, linewidth=0.8)
    # The first spoke is at the top, the next ones follow clockwise.
    top = full_turn / 4
    ax.set(theta_offset=top, theta_direction=-1, ylim=(0, 100))
    ax.set_yticks([50, 100], ["50", "100"], fontsize=5)
    ax.set_xticks(angles[:-1], spokes, fontsize=5)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), fontsize=5, ncols=2)
