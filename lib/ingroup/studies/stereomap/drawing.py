"""Figures of the maps of StereoMap, drawn from the tables of positions and of centroids."""

import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ingroup import figures
from ingroup.models import label

AXES = ["Competence", "Warmth"]
N_REFUSED = 10  # groups of each model in Figure 5
N_LETTERS = 52  # of a line in the list of groups, where plain text has 7 points


class Map(NamedTuple):
    """One map, of one model by one version of the prompts.

    Attributes
    ----------
    model, version : str
        Whose map it is.
    positions : DataFrame
        One row per group: ``group``, both axes, ``cluster``, and all other scores.
    centroids : DataFrame
        One row per cluster: ``cluster``, both axes and ``name``.
    """

    model: str
    version: str
    positions: pd.DataFrame
    centroids: pd.DataFrame


def maps(positions: pd.DataFrame, centroids: pd.DataFrame) -> dict[tuple[str, str], Map]:
    """Split the tables of all maps.

    Parameters
    ----------
    positions, centroids : DataFrame
        Those of `Map`, with ``model`` and ``version``. A group without a cluster is left out.

    Returns
    -------
    dict of Map
        By model and version.
    """
    placed = positions.dropna(subset="cluster").astype({"cluster": int})
    centres = dict(list(centroids.groupby(["model", "version"])))
    found = {}
    for key, rows in placed.groupby(["model", "version"], sort=False):
        model, version = key
        found[key] = Map(model, version, rows, centres[key])
    return found


def of_version(drawn: Mapping[tuple[str, str], Map], version: str) -> list[Map]:
    """Select the maps of one version of the prompts.

    Parameters
    ----------
    drawn : mapping
        From `maps`.
    version : {"EXTENDED", "ORIGINAL"}
        The version.

    Returns
    -------
    list of Map
        In their order.
    """
    return [of for of in drawn.values() if of.version == version]


def has_scores(of: Map, scores: Sequence[str]) -> bool:
    """Tell whether any group of a map has any of some scores.

    Parameters
    ----------
    of : Map
        The map.
    scores : sequence of str
        Columns of its positions.

    Returns
    -------
    bool
        False for a model that was not asked for them.
    """
    is_there = of.positions[list(scores)].notna()
    return bool(is_there.any(axis=None))


def colours_of(clusters: Collection[int]) -> list[str]:
    """Return the colour of each cluster.

    Parameters
    ----------
    clusters : collection of int
        Numbers of clusters.

    Returns
    -------
    list of str
        Colours of the style, from the first again where there are more clusters.
    """
    return [figures.COLOURS[int(number) % len(figures.COLOURS)] for number in clusters]


def draw_map(ax: Axes, of: Map, name: str = "") -> None:
    """Draw groups at competence and warmth, coloured by cluster, with the centroids.

    Parameters
    ----------
    ax : Axes
        The panel.
    of : Map
        The map.
    name : str
        What the title calls the map instead of its model and version.
    """
    clusters = of.centroids.cluster
    look = {
        "x": "Competence",
        "y": "Warmth",
        "hue": "cluster",
        "palette": dict(zip(clusters, colours_of(clusters), strict=True)),
        "legend": False,
        "ax": ax,
    }
    sns.scatterplot(of.positions, s=9, linewidth=0, zorder=3, **look)
    sns.scatterplot(of.centroids, s=22, marker="x", linewidth=1, zorder=4, **look)

    points = of.positions[AXES]
    # On the grey diagonal competence equals warmth.
    middle = points.mean().mean()
    ax.axline((middle, middle), slope=1, color="#CCCCCC", linewidth=0.6, zorder=0)
    widest = np.ptp(points.to_numpy(), axis=0).max()
    title = name or f"{label(of.model)}, {of.version}"
    ax.set_title(f"{title}\nspread over {widest:.1f} of the scale's 4 points")


def name_groups(ax: Axes, of: Map, size: float, some: Collection[str] | None = None) -> None:
    """Write the name of every group, or of some, beside its point; last, when all is drawn.

    Parameters
    ----------
    ax : Axes
        The panel.
    of : Map
        The map.
    size : float
        The size of the font, in points.
    some : collection of str, optional
        The groups to name.
    """
    named = of.positions
    if some is not None:
        named = named[named.group.isin(some)]
    # The names also keep clear of the crosses of the centroids.
    taken = pd.concat([of.positions[AXES], of.centroids[AXES]]).to_numpy()
    figures.label_points(ax, named.Competence, named.Warmth, list(named.group), size, taken)


def name_clusters(ax: Axes, of: Map, size: float) -> None:
    """Draw a legend of the centroids below a panel.

    Parameters
    ----------
    ax : Axes
        The panel.
    of : Map
        The map.
    size : float
        The size of the font, in points.
    """
    handles = []
    for colour in colours_of(of.centroids.cluster):
        cross = plt.Line2D([], [], color=colour, linestyle="", marker="x", markersize=4)
        handles.append(cross)
    ax.legend(
        handles,
        of.centroids.name,
        ncols=3,
        fontsize=size,
        handletextpad=0,
        columnspacing=0.8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.17),
    )


def map_with_list(of: Map) -> Figure:
    """Draw a map with its outermost groups named, and all groups in a list: Figure 6.

    Parameters
    ----------
    of : Map
        The map.

    Returns
    -------
    Figure
        Two columns wide; in one column the list stands below the map.
    """
    # Larger type makes the list longer.
    longer = figures.points(5) / 5
    if figures.in_a_row(2, least_inches=2.2) == 2:
        fig, (ax, beside) = plt.subplots(1, 2, width_ratios=[1.7, 1])
        fig.set_size_inches(figures.TWO_COLUMNS, 4.2 * max(longer, 1))
    else:
        fig, (ax, beside) = plt.subplots(2, 1, height_ratios=[1, longer])
        fig.set_size_inches(figures.ONE_COLUMN, 3.5 + 3.5 * longer)
    ax.margins(0.14)
    draw_map(ax, of)
    _list_groups(beside, of)

    points = of.positions.set_index("group")[AXES]
    # A cluster without an anchor is called "near" a group, which the map then names.
    anchors = of.centroids.name.str.removeprefix("near ")
    name_groups(ax, of, figures.points(5.5), {*anchors, *points.idxmin(), *points.idxmax()})
    return fig


def _list_groups(ax: Axes, of: Map) -> None:
    """The groups of each cluster, the most competent first, below its name and in its colour."""
    by_competence = of.positions.sort_values("Competence", ascending=False, kind="stable")
    n_letters = int(N_LETTERS * 5 / figures.points(5))
    lines = 0.0
    for centre in of.centroids.itertuples():
        groups = by_competence.group[by_competence.cluster == centre.cluster]
        # No name is broken over two lines.
        unbroken = groups.str.replace(" ", "\N{NO-BREAK SPACE}")
        text = textwrap.fill(", ".join(unbroken), n_letters, break_on_hyphens=False)
        (colour,) = colours_of([centre.cluster])
        head = f"{centre.name} ({len(groups)} groups)"
        large = figures.points(6.5)
        small = figures.points(5)
        ax.text(0, -lines, head, va="top", color=colour, fontsize=large, weight="bold")
        ax.text(0, -lines - 1.2, text, fontsize=small, linespacing=1.25, va="top")
        # The next cluster begins below the head, the lines of the list, and a gap.
        lines += 2.4 + text.count("\n") + 1
    ax.set(xlim=(0, 1), ylim=(-max(lines, 34), 0))
    ax.axis("off")


def scores_by_cluster(of: Map, scores: Sequence[str], seed: int) -> Figure:
    """Draw scores of the groups of each cluster, one panel per score: Figure 3.

    Parameters
    ----------
    of : Map
        The map.
    scores : sequence of str
        Columns of its positions; a score that no group has is left out.
    seed : int
        Seed of how far aside the points stand.

    Returns
    -------
    Figure
        Two columns wide.
    """
    clusters = sorted(of.positions.cluster.unique())
    names = of.centroids.set_index("cluster").name[clusters]
    asked = [score for score in scores if of.positions[score].notna().any()]
    fig, axes = figures.panels(len(asked), 1.95, 4, sharex=True, sharey=True)
    for ax, score in zip(axes, asked, strict=True):
        _draw_boxes(ax, of.positions, score, clusters, seed)
        ax.set_xticks(range(len(clusters)), names, rotation=40, ha="right", rotation_mode="anchor")
    figures.label_outer(axes)
    fig.suptitle(label(of.model))
    return fig


def _draw_boxes(
    ax: Axes, positions: pd.DataFrame, score: str, clusters: Sequence[int], seed: int
) -> None:
    """A score of the groups of each cluster: a box, and a point for each group."""
    palette = dict(zip(clusters, colours_of(clusters), strict=True))
    line = {"color": "black", "linewidth": 0.6}
    sns.boxplot(
        positions,
        x="cluster",
        y=score,
        order=clusters,
        hue="cluster",
        palette=palette,
        width=0.6,
        medianprops=line,
        whiskerprops=line,
        capprops=line,
        boxprops={"alpha": 0.35, "linewidth": 0.6},
        showfliers=False,
        legend=False,
        ax=ax,
    )

    rng = np.random.default_rng(seed)
    for place, cluster in enumerate(clusters):
        values = positions[score][positions.cluster == cluster].dropna()
        aside = place + rng.uniform(-0.15, 0.15, len(values))
        ax.plot(aside, values, ".", markersize=2, color=palette[cluster])
    # Table 4 prints "ActiveFacilitation" as one word.
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", score)
    ax.set(title=title, ylim=(0.8, 5.2), xlabel="", ylabel="mean rating")


def refusals(rates: pd.DataFrame) -> Figure:
    """Draw the groups with the highest refusal rates, one panel per model: Figure 5.

    Parameters
    ----------
    rates : DataFrame
        ``model``, ``group``, ``rate``, ``low`` and ``high``, the highest rate of a model first.

    Returns
    -------
    Figure
        Two columns wide.
    """
    highest = rates.groupby("model", sort=False).head(N_REFUSED)
    most = highest.model.value_counts().max()
    fig, axes = figures.facets(highest, 0.7 + 0.16 * most, columns=2, least=2.2)
    for ax, rows in axes:
        lowest_first = rows.iloc[::-1]
        y = np.arange(len(rows))
        colour = figures.COLOURS[0]
        ax.hlines(y, lowest_first.low, lowest_first.high, color=colour, linewidth=1)
        ax.plot(lowest_first.rate, y, "o", markersize=3.5, color=colour)
        ax.set_yticks(y, lowest_first.group)
        ax.set(xlim=(0, None), xlabel="refused (mean of four shares)")
        # Fewer groups leave room below, so that lines are as far apart in all panels.
        ax.set_ylim(len(rows) - most - 0.6, len(rows) - 0.4)
    return fig


def planted_beside_here(sides: pd.DataFrame, recovered: pd.DataFrame) -> Figure:
    """Draw the position of each group here against the planted one, one panel per version.

    Parameters
    ----------
    sides : DataFrame
        ``version`` and the columns of `planted.sides`, of one model.
    recovered : DataFrame
        ``version`` and the columns of `planted.recovery`, of this model.

    Returns
    -------
    Figure
        Two columns wide.
    """
    errors = recovered.set_index("version")
    versions = dict(list(sides.groupby("version", sort=False)))
    grid: dict = {"columns": 2, "least": 2.2, "sharex": True, "sharey": True}
    fig, axes = figures.panels(len(versions), 3.0, **grid)
    for ax, (version, rows) in zip(axes, versions.items(), strict=True):
        for axis, colour, marker in zip(AXES, figures.COLOURS, "o^", strict=False):
            look = {"markersize": 2.5, "color": colour, "label": axis}
            ax.plot(rows[f"{axis} planted"], rows[f"{axis} here"], marker, **look)
        ax.axline((3, 3), slope=1, color="black", linewidth=0.5)
        of_axes = [f"{axis} {errors.loc[version, f'error, {axis}']:.2f}" for axis in AXES]
        text = f"the model's error in points:\n{', '.join(of_axes)}"
        ax.set(xlabel="planted mean rating", title=version)
        ax.text(0.98, 0.02, text, ha="right", fontsize=figures.points(6), transform=ax.transAxes)
    axes[0].set_ylabel("mean rating here")
    axes[0].legend()
    return fig


def maps_beside_each_other(of: Sequence[Map], averaged: Sequence[str]) -> Figure:
    """Draw maps of the ORIGINAL prompts, one panel per map: Figure 2.

    Parameters
    ----------
    of : sequence of Map
        The maps; the model "ALL" is a mean of models.
    averaged : sequence of str
        These models.

    Returns
    -------
    Figure
        Two columns wide.
    """
    is_single = len(of) == 1
    fig, axes = figures.panels(len(of), 4.6 if is_single else 3.05, columns=2, least=2.2)
    mean_of = f"ALL: mean of {', '.join(map(label, averaged))}"
    # Several maps have no room for names that follow the font.
    of_clusters = figures.points(5) if is_single else 5
    of_groups = figures.points(6) if is_single else 4.5
    for ax, one in zip(axes, of, strict=True):
        ax.margins(0.12)
        draw_map(ax, one, mean_of if one.model == "ALL" else "")
        name_clusters(ax, one, of_clusters)
    # Names come last: they are placed around all that is drawn.
    for ax, one in zip(axes, of, strict=True):
        name_groups(ax, one, of_groups)
    return fig


def maps_on_one_scale(of: Sequence[Map]) -> Figure:
    """Draw the maps of several models on one scale, without names.

    Parameters
    ----------
    of : sequence of Map
        The maps.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, axes = figures.panels(len(of), 2.6, sharex=True, sharey=True)
    for ax, one in zip(axes, of, strict=True):
        draw_map(ax, one)
        is_left = ax.get_subplotspec().is_first_col()
        ax.set(title=label(one.model), ylabel="Warmth" if is_left else "")
        ax.tick_params(labelbottom=True)
    return fig


def rating_distribution(shares: pd.DataFrame) -> Figure:
    """Draw which numbers a model gives as scored answers and as text, one panel per model.

    Parameters
    ----------
    shares : DataFrame
        From `both_ways.rating_distribution`.

    Returns
    -------
    Figure
        Two columns wide.
    """
    ways = shares.way.map({"over choices": "scored", "freely": "free text"})
    counted = ways + " (" + shares.n.map("{:,}".format) + ")"
    fig, axes = figures.facets(shares.assign(of=counted), 1.9, columns=2, sharey=True)
    for ax, rows in axes:
        palette = figures.COLOURS[: rows.of.nunique()]
        look = {"hue": "of", "palette": palette, "saturation": 1}
        sns.barplot(rows, x="rating", y="share", ax=ax, **look)
        ax.set(ylim=(0, 1), ylabel="share of the ratings")
        ax.legend()
    return fig
