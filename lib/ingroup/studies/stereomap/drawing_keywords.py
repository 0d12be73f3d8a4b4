"""Figures of the keywords of StereoMap, drawn from their tables."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from ingroup import figures, keywords
from ingroup.models import label

N_DIMENSIONS = 7  # of a pair of groups, in Figure 7


def dimension_name(dimension: str) -> str:
    """Name a dimension as a figure does: the dictionary has one in lower case.

    Parameters
    ----------
    dimension : str
        The dictionary's name.

    Returns
    -------
    str
        The name with a capital.
    """
    return dimension[:1].upper() + dimension[1:]


def dimensions_by_cluster(
    table: pd.DataFrame, xlabel: str, names: Mapping[tuple[str, int], str]
) -> Figure:
    """Draw the strongest dimensions of each cluster: Figures 4 and 8.

    Parameters
    ----------
    table : DataFrame
        ``model``, then the columns of :func:`ingroup.keywords.scores` by cluster.
    xlabel : str
        What a score is.
    names : mapping
        The name of each model's cluster.

    Returns
    -------
    Figure
        Two columns wide: a row of panels for each model, a panel for each cluster.
    """
    strongest = {}
    for model, rows in table.groupby("model", sort=False):
        strongest[model] = keywords.top(rows.drop(columns="model").reset_index(drop=True))
    clusters = sorted(set(pd.concat(strongest).cluster))

    height = 1.7 * len(strongest) + 0.2
    size = (figures.TWO_COLUMNS, height)
    grid = {"figsize": size, "sharex": True, "squeeze": False}
    fig, axes = plt.subplots(len(strongest), len(clusters), **grid)
    for (model, rows), line in zip(strongest.items(), axes, strict=True):
        for ax, cluster in zip(line, clusters, strict=True):
            _draw_bars(ax, rows[rows.cluster == cluster], cluster)
            ax.set_title(
                names[model, cluster].replace("near ", "near\n"), fontsize=figures.points(7)
            )
        line[0].set_ylabel(label(model), fontsize=figures.points(8))
    axes[-1, len(clusters) // 2].set_xlabel(xlabel)
    return fig


def by_figure(table: pd.DataFrame, first: str, others: str) -> dict[str, pd.DataFrame]:
    """Split the models over two figures, as the paper does.

    Parameters
    ----------
    table : DataFrame
        A table with ``model``.
    first, others : str
        The name of the figure of the first model, and of the figure of all others.

    Returns
    -------
    dict of DataFrame
        The rows of each figure; a figure without a model is left out.
    """
    if table.empty:
        return {}
    is_first = table.model == table.model.iloc[0]
    figures_of = {first: table[is_first], others: table[~is_first]}
    return {name: rows for name, rows in figures_of.items() if len(rows)}


def pairs_with_keywords(
    counts: pd.DataFrame, models: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> dict[str, list[tuple[str, str]]]:
    """Select the pairs of groups for which a model gave keywords of both groups.

    Parameters
    ----------
    counts : DataFrame
        ``model``, ``group`` and ``keyword``.
    models : sequence of str
        The models.
    pairs : sequence of tuple
        Pairs of groups.

    Returns
    -------
    dict of list
        The pairs by model; models without a pair are left out.
    """
    pairs_of = {}
    for model in models:
        groups = set(counts.group[counts.model == model])
        own = [pair for pair in pairs if set(pair) <= groups]
        if own:
            pairs_of[model] = own
    return pairs_of


def _draw_bars(ax: Axes, rows: pd.DataFrame, cluster: int) -> None:
    """A bar for each dimension of a cluster, the strongest on top."""
    y = np.arange(len(rows))[::-1]
    colour = figures.COLOURS[cluster % len(figures.COLOURS)]
    ax.barh(y, rows.score, color=colour, height=0.65)
    ax.axvline(0, color="black", linewidth=0.5)
    ax.set_yticks(y, rows.dimension.map(dimension_name))
    # There is room for the five bars of `top`, also where a cluster has fewer.
    ax.set_ylim(-0.6, 4.6)
    ax.locator_params(axis="x", nbins=3)
    ax.xaxis.set_major_formatter(_short_number)


def _short_number(x: float, _: int) -> str:
    """A number without the zero before its point: five panels have little room."""
    return f"{x:g}".replace("0.", ".").replace("-", "−")


def keyword_pairs(
    pairs: Sequence[tuple[str, str]],
    counts: pd.DataFrame,
    dimensions: pd.DataFrame,
    value: str,
    xlabel: str,
) -> Figure:
    """Draw the keywords of pairs of groups, and the dimensions that they belong to: Figure 7.

    The keywords of a pair stand in two overlapping circles, and shared ones in the overlap.

    Parameters
    ----------
    pairs : sequence of tuple
        The pairs, one per row of panels.
    counts : DataFrame
        ``group``, ``keyword`` and ``count`` of one model.
    dimensions : DataFrame
        ``model`` (one), and the columns of :func:`ingroup.keywords.scores` by group.
    value : str
        The column of `dimensions` that the bars have.
    xlabel : str
        What the bars show.

    Returns
    -------
    Figure
        Two columns wide.
    """
    layout = {"squeeze": False, "width_ratios": [1.25, 1]}
    size = (figures.TWO_COLUMNS, 1.95 * len(pairs))
    fig, axes = plt.subplots(len(pairs), 2, figsize=size, **layout)
    by_group = dict(list(counts.set_index("keyword").groupby("group")["count"]))
    for pair, (circles, bars) in zip(pairs, axes, strict=True):
        _draw_circles(circles, pair, *(by_group[group] for group in pair))
        _draw_pair_of_bars(bars, pair, dimensions, value)
    axes[-1, 1].set_xlabel(xlabel)
    fig.suptitle(label(dimensions.model.iloc[0]))
    return fig


def _draw_circles(ax: Axes, pair: tuple[str, str], left: pd.Series, right: pd.Series) -> None:
    """Two overlapping circles with the most frequent keywords of each part."""
    only_left = left.drop(right.index, errors="ignore")
    only_right = right.drop(left.index, errors="ignore")
    # pandas adds by keyword; what only one group has becomes NaN.
    shared = (left + right).dropna().sort_values(ascending=False, kind="stable")

    for x, colour in ((-0.45, figures.COLOURS[0]), (0.45, figures.COLOURS[1])):
        ax.add_patch(Circle((x, 0), 0.85, facecolor=colour, alpha=0.15, edgecolor=colour))
    for x, part in ((-0.87, only_left), (0, shared), (0.87, only_right)):
        for place, (word, count) in enumerate(part.head(5).items()):
            # Nothing that a model wrote is read as a formula.
            text = word.replace("$", r"\$")
            # Frequent words are larger.
            size = 4.5 + min(count, 5) * 0.25
            # Long ones are smaller whatever the font, to fit into the circle.
            size = size - 0.6 if len(word) > 12 else figures.points(size)
            look = {"ha": "center", "va": "center", "fontsize": size}
            ax.text(x, 0.38 - 0.19 * place, text, **look)
    for x, group in ((-0.95, pair[0]), (0.95, pair[1])):
        ax.text(x, 0.85, group, ha="center", fontsize=figures.points(7))
    ax.set(xlim=(-1.4, 1.4), ylim=(-0.95, 1.0), aspect="equal")
    ax.axis("off")


def _draw_pair_of_bars(
    ax: Axes, pair: tuple[str, str], dimensions: pd.DataFrame, value: str
) -> None:
    """The strongest dimensions of two groups, a bar for each group."""
    # `top` goes by the first column, which is now the group.
    both = dimensions[dimensions.group.isin(pair)].drop(columns="model")
    strongest = keywords.top(both).sort_values("rank", kind="stable")
    # By rank, the strongest of either group come first.
    shown = list(dict.fromkeys(strongest.dimension))[:N_DIMENSIONS]
    y = np.arange(len(shown))[::-1]
    for group, shift, colour in zip(pair, (0.18, -0.18), figures.COLOURS, strict=False):
        own = dimensions[dimensions.group == group].set_index("dimension").reindex(shown)
        score = own[value].fillna(0)
        ax.barh(y + shift, score, height=0.34, color=colour, label=group)
        # A bar of no length says whether the group has such keywords.
        smallest = figures.points(5)
        look = {"color": colour, "fontsize": smallest, "va": "center_baseline"}
        for place, length, share in zip(y + shift, score, own.share.fillna(0), strict=True):
            if length == 0:
                ax.text(0, place, "  0" if share else "  none", **look)
    ax.axvline(0, color="black", linewidth=0.5)
    ax.set_yticks(y, [dimension_name(dimension) for dimension in shown])
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
