"""Figures 1 to 3 of Fagan et al., and biases with their intervals."""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ingroup.biased_samaritan.bias import group_labels
from ingroup.style import ONE_COLUMN


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

    fig, ax = plt.subplots(figsize=(ONE_COLUMN, 2.2), layout="constrained")
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
    labels = labels[labels.index.isin(table.group)]
    named = table.assign(group=table.group.map(labels))
    has_several = table[hue].nunique() > 1
    height = 0.8 + 0.2 * len(labels)
    width = max(2, 6 / table.model.nunique())  # inches of a panel
    numbers = ["low", "estimate", "high"]
    long = named.melt(["model", "group", hue], numbers, value_name="bias")
    grid = sns.catplot(
        long,
        x="bias",
        y="group",
        hue=hue,
        col="model",
        order=labels,
        kind="point",
        # The median of the three numbers is the estimate, and their range is the interval.
        estimator="median",
        errorbar=("pi", 100),
        linestyle="none",
        markersize=3,
        linewidth=1,
        dodge=0.4 if has_several else False,
        legend=has_several,
        height=height,
        aspect=width / height,
    )

    if "brittleness" in table:
        for model, ax in grid.axes_dict.items():
            rows = named[named.model == model]
            width = rows.brittleness
            ax.barh(rows.group, 2 * width, left=-width, color="0.9", zorder=0)
    grid.refline(x=0)
    grid.set_titles("{col_name}")
    grid.set_axis_labels("bias (points)", "")
    return grid
