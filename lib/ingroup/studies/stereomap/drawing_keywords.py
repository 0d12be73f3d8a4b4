"""Figures of the keywords of StereoMap, drawn from their tables."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from ingroup import figures, keywords
from ingroup.models import label

N_DIMENSIONS = 7  # of a pair of groups, in Figure 7
N_KEYWORDS = 5  # of each part of the two circles in Figure 7
N_LETTERS = 12  # longer keywords are written smaller


def dimension_name(dimension: str) -> str:
    """Write the name of a dimension with a capital, which the dictionary lacks in one name.

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
        The label of the axis of the scores.
    names : mapping
        The name of each model's cluster.

    Returns
    -------
    Figure
        Two columns wide: a row of panels for each model, a panel for each cluster.
    """
    strongest = {}
    for model, rows in table.groupby("model", sort=False):
        # `top` goes by the first column, which is the cluster without the model.
        by_cluster = rows.drop(columns="model").reset_index(drop=True)
        strongest[model] = keywords.top(by_cluster)
    all_rows = pd.concat(strongest)
    clusters = sorted(set(all_rows.cluster))

    n_models = len(strongest)
    size = (figures.TWO_COLUMNS, 1.7 * n_models + 0.2)
    fig, axes = plt.subplots(
        n_models,
        len(clusters),
        figsize=size,
        sharex=True,
        squeeze=False,
    )
    for (model, rows), row_of_panels in zip(strongest.items(), axes, strict=True):
        for ax, cluster in zip(row_of_panels, clusters, strict=True):
            is_of_cluster = rows.cluster == cluster
            _draw_bars(ax, rows[is_of_cluster], cluster)
            title = names[model, cluster].replace("near ", "near\n")
            ax.set_title(title, fontsize=figures.points(7))
        leftmost = row_of_panels[0]
        leftmost.set_ylabel(label(model), fontsize=figures.points(8))

    last_row = axes[-1]
    middle = len(clusters) // 2
    last_row[middle].set_xlabel(xlabel)
    return fig


def by_figure(table: pd.DataFrame, first: str, others: str) -> dict[str, pd.DataFrame]:
    """Split the models over two figures, the first model and all others, as the paper does.

    Parameters
    ----------
    table : DataFrame
        ``model`` and other columns.
    first, others : str
        The name of the figure of the first model, and of the figure of all others.

    Returns
    -------
    dict of DataFrame
        The rows by figure; a figure without a model is left out.
    """
    if table.empty:
        return {}
    is_first = table.model == table.model.iloc[0]
    rows_of = {first: table[is_first]}
    if not is_first.all():
        rows_of[others] = table[~is_first]
    return rows_of


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
        is_of_model = counts.model == model
        groups = set(counts.group[is_of_model])
        complete_pairs = [pair for pair in pairs if groups.issuperset(pair)]
        if complete_pairs:
            pairs_of[model] = complete_pairs
    return pairs_of


def _draw_bars(ax: Axes, rows: pd.DataFrame, cluster: int) -> None:
    """Draw a bar for each dimension of a cluster, the strongest on top."""
    heights = figures.heights(len(rows))
    n_colours = len(figures.COLOURS)
    colour = figures.COLOURS[cluster % n_colours]
    ax.barh(heights, rows.score, color=colour, height=0.65)
    ax.axvline(0, color="black", linewidth=0.5)
    ax.set_yticks(heights, rows.dimension.map(dimension_name))

    # There is room for the five bars of `top`, also where a cluster has fewer.
    ax.set_ylim(-0.6, 4.6)
    ax.locator_params(axis="x", nbins=3)
    ax.xaxis.set_major_formatter(_short_number)


def _short_number(x: float, _: int) -> str:
    """Write a number without the zero before its point, because five panels have little room."""
    digits = f"{abs(x):g}"
    if digits.startswith("0."):
        digits = digits.removeprefix("0")
    # A minus sign is as wide as a plus; a hyphen is not.
    return f"−{digits}" if x < 0 else digits


def keyword_pairs(
    pairs: Sequence[tuple[str, str]],
    counts: pd.DataFrame,
    dimensions: pd.DataFrame,
    value: str,
    xlabel: str,
) -> Figure:
    """Draw the keywords of pairs of groups, and the dimensions that they belong to: Figure 7.

    The keywords of a pair stand in two overlapping circles, and shared keywords in the overlap.

    Parameters
    ----------
    pairs : sequence of tuple
        The pairs, one per row of panels.
    counts : DataFrame
        ``group``, ``keyword`` and ``count`` of one model.
    dimensions : DataFrame
        ``model`` (one), and the columns of :func:`ingroup.keywords.scores` by group.
    value : str
        The column of `dimensions` that gives the length of the bars.
    xlabel : str
        The label of the axis below the bars.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, axes = plt.subplots(
        len(pairs),
        2,
        figsize=(figures.TWO_COLUMNS, 1.95 * len(pairs)),
        squeeze=False,
        width_ratios=[1.25, 1],
    )
    for pair, (circles, bars) in zip(pairs, axes, strict=True):
        _draw_circles(circles, pair, counts)
        _draw_pair_of_bars(bars, pair, dimensions, value)

    bottom_bars = axes[-1, 1]
    bottom_bars.set_xlabel(xlabel)
    model = dimensions.model.iloc[0]
    fig.suptitle(label(model))
    return fig


def _draw_circles(ax: Axes, pair: tuple[str, str], counts: pd.DataFrame) -> None:
    """Draw two overlapping circles with the first keywords of each part."""
    by_group = counts.set_index("keyword").groupby("group")["count"]
    left_group, right_group = pair
    left = by_group.get_group(left_group)
    right = by_group.get_group(right_group)

    only_left = left.drop(right.index, errors="ignore")
    only_right = right.drop(left.index, errors="ignore")
    # pandas adds by keyword; a keyword that only one group has becomes NaN.
    sums = left + right
    shared = sums.dropna()
    shared = shared.sort_values(ascending=False, kind="stable")

    centres = (-0.45, 0.45)
    for x, colour in zip(centres, figures.COLOURS, strict=False):
        circle = Circle((x, 0), 0.85, facecolor=colour, alpha=0.15, edgecolor=colour)
        ax.add_patch(circle)
    _write_keywords(ax, -0.87, only_left)
    _write_keywords(ax, 0, shared)
    _write_keywords(ax, 0.87, only_right)

    size = figures.points(7)
    ax.text(-0.95, 0.85, left_group, ha="center", fontsize=size)
    ax.text(0.95, 0.85, right_group, ha="center", fontsize=size)
    ax.set(xlim=(-1.4, 1.4), ylim=(-0.95, 1.0), aspect="equal")
    ax.axis("off")


def _write_keywords(ax: Axes, x: float, counts: pd.Series) -> None:
    """Write the first keywords of one part of the circles in a column, frequent keywords larger."""
    first = counts.head(N_KEYWORDS)
    for line, (keyword, count) in enumerate(first.items()):
        size = 4.5 + min(count, 5) * 0.25
        if len(keyword) > N_LETTERS:
            # Long keywords are smaller in every font size, to fit into the circle.
            size -= 0.6
        else:
            size = figures.points(size)

        y = 0.38 - 0.19 * line
        # Nothing that a model wrote is read as a formula.
        text = keyword.replace("$", r"\$")
        ax.text(x, y, text, ha="center", va="center", fontsize=size)


def _draw_pair_of_bars(
    ax: Axes, pair: tuple[str, str], dimensions: pd.DataFrame, value: str
) -> None:
    """Draw the strongest dimensions of two groups, with a bar for each group."""
    is_of_pair = dimensions.group.isin(pair)
    # `top` goes by the first column, which is the group without the model.
    both = dimensions[is_of_pair].drop(columns="model")
    strongest = keywords.top(both).sort_values("rank", kind="stable")
    # By rank, the strongest of either group come first.
    drawn = strongest.dimension.unique()[:N_DIMENSIONS]

    heights = figures.heights(len(drawn))
    # The first group's bar stands above the second's.
    shifts = (0.18, -0.18)
    for group, shift, colour in zip(pair, shifts, figures.COLOURS, strict=False):
        is_of_group = both.group == group
        rows = both[is_of_group].set_index("dimension").reindex(drawn)
        rows["height"] = heights + shift
        _draw_bars_of_group(ax, rows, value, group, colour)

    ax.axvline(0, color="black", linewidth=0.5)
    names = [dimension_name(dimension) for dimension in drawn]
    ax.set_yticks(heights, names)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)


def _draw_bars_of_group(ax: Axes, rows: pd.DataFrame, value: str, group: str, colour: str) -> None:
    """Draw a bar at each ``height``, as long as its `value`.

    A bar of no length has the text "0", or "none" if the group has no such keywords.
    """
    lengths = rows[value].fillna(0)
    ax.barh(rows.height, lengths, height=0.34, color=colour, label=group)

    # A bar of no length says whether the group has such keywords.
    has_no_length = lengths == 0
    without_length = rows[has_no_length]
    size = figures.points(5)
    for height, share in zip(without_length.height, without_length.share, strict=True):
        text = "  0" if share > 0 else "  none"
        ax.text(0, height, text, color=colour, fontsize=size, va="center_baseline")
