"""Figures 1 to 3 of Fagan et al., and biases with their intervals."""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ingroup import style
from ingroup.biased_samaritan.bias import group_labels


def helpfulness(rows: pd.DataFrame) -> Figure:
    """Draw helpfulness against the share of models in which a group differs (Figures 1 to 3).

    Parameters
    ----------
    rows : DataFrame
        Groups of one category: ``group``, ``share``, ``helpfulness`` and ``control``, means over
        models in points.
    """
    named = rows.assign(group=rows.group.map(group_labels()))
    control = rows.control.mean()

    fig, ax = plt.subplots(figsize=(style.ONE_COLUMN, 2.2), layout="constrained")
    sns.scatterplot(named, x="share", y="helpfulness", hue="group", style="group", s=45, ax=ax)
    ax.axhline(control, color="grey", linestyle="--", linewidth=0.8, label="Control")
    ax.set(xlabel="share of models that differ", ylabel="helpfulness (points)")
    ax.set(xlim=(-0.05, 1.05), xticks=[0, 0.5, 1])
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return fig


def intervals(table: pd.DataFrame, hue: str) -> sns.FacetGrid:
    """Draw biases with their 95 % intervals, one panel for each model.

    Parameters
    ----------
    table : DataFrame
        ``model``, ``group``, ``estimate``, ``low`` and ``high``. If it has ``brittleness``, a grey
        bar shows it on both sides of 0.
    hue : str
        The column whose values lie side by side in a line, in colours.
    """
    labels = group_labels()
    is_drawn = labels.index.isin(table.group)
    lines = labels[is_drawn].tolist()
    names = table[hue].unique()
    named = table.assign(group=table.group.map(labels))

    height = 0.8 + 0.2 * len(lines)
    width = max(2, 6 / table.model.nunique())  # inches of a panel
    grid = sns.FacetGrid(named, col="model", height=height, aspect=width / height)
    grid.map_dataframe(style.intervals, "estimate", "group", hue, lines, names)
    if len(names) > 1:
        handles, _ = grid.axes.flat[0].get_legend_handles_labels()
        legend = zip(names, handles, strict=True)
        grid.add_legend(dict(legend), title=hue)

    if "brittleness" in table:
        for model, ax in grid.axes_dict.items():
            rows = named[named.model == model]
            width = rows.brittleness
            places = rows.group.map(lines.index)
            ax.barh(places, 2 * width, left=-width, color="0.9", zorder=0)
    grid.refline(x=0)
    grid.set_titles("{col_name}")
    grid.set_axis_labels("bias (points)", "")
    return grid
