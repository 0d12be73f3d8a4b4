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
from ingroup.studies.stereomap.statistics import AXES

N_REFUSED = 10  # groups of each model in Figure 5
LEAST_SPAN = 1.0  # of each axis of a map, in points of the scale, which has 4
N_LETTERS = 52  # of a line in the list of groups, where plain text has 7 points


class Map(NamedTuple):
    """One map, of one model by one version of the prompts.

    Attributes
    ----------
    model, version : str
        The model and the version of the prompts.
    positions : DataFrame
        One row per group: ``group``, both axes, ``cluster``, and all other scores.
    centroids : DataFrame
        One row per cluster: ``cluster``, both axes and ``name``.
    """

    model: str
    version: str
    positions: pd.DataFrame
    centroids: pd.DataFrame


def split_maps(positions: pd.DataFrame, centroids: pd.DataFrame) -> dict[tuple[str, str], Map]:
    """Split the tables of all maps into one `Map` per model and version.

    Parameters
    ----------
    positions, centroids : DataFrame
        The tables of `Map`, with ``model`` and ``version``. A group without a cluster is left out.

    Returns
    -------
    dict of Map
        By model and version.
    """
    placed = positions.dropna(subset="cluster").astype({"cluster": int})
    centroids_of = dict(list(centroids.groupby(["model", "version"])))
    split = {}
    for key, rows in placed.groupby(["model", "version"], sort=False):
        model, version = key
        split[key] = Map(model, version, rows, centroids_of[key])
    return split


def of_version(drawn: Mapping[tuple[str, str], Map], version: str) -> list[Map]:
    """Select the maps of one version of the prompts.

    Parameters
    ----------
    drawn : mapping
        From `split_maps`.
    version : {"EXTENDED", "ORIGINAL"}
        The version.

    Returns
    -------
    list of Map
        In their order.
    """
    return [group_map for group_map in drawn.values() if group_map.version == version]


def has_scores(group_map: Map, scores: Sequence[str]) -> bool:
    """Tell whether any group of a map has a value of any of these scores.

    Parameters
    ----------
    group_map : Map
        The map.
    scores : sequence of str
        Columns of its positions.

    Returns
    -------
    bool
        False for a model that was not asked for them.
    """
    has_value = group_map.positions[list(scores)].notna()
    return bool(has_value.any(axis=None))


def colours_of(clusters: Collection[int]) -> list[str]:
    """Return the colour of each cluster.

    Parameters
    ----------
    clusters : collection of int
        Cluster labels, from 0.

    Returns
    -------
    list of str
        Colours of the style, from the first again where there are more clusters.
    """
    n_colours = len(figures.COLOURS)
    return [figures.COLOURS[int(cluster) % n_colours] for cluster in clusters]


def draw_map(ax: Axes, group_map: Map, name: str = "") -> None:
    """Draw groups at competence and warmth, coloured by cluster, with the centroids as crosses.

    Parameters
    ----------
    ax : Axes
        The panel.
    group_map : Map
        The map.
    name : str
        The name of the map in the title, by default its model and version.
    """
    clusters = group_map.centroids.cluster
    palette = dict(zip(clusters, colours_of(clusters), strict=True))
    look = {
        "x": "Competence",
        "y": "Warmth",
        "hue": "cluster",
        "palette": palette,
        "legend": False,
        "ax": ax,
    }
    sns.scatterplot(group_map.positions, s=9, linewidth=0, zorder=3, **look)
    sns.scatterplot(group_map.centroids, s=22, marker="x", linewidth=1, zorder=4, **look)

    points = group_map.positions[AXES]
    # On the grey diagonal competence equals warmth.
    middle = points.mean().mean()
    ax.axline((middle, middle), slope=1, color="#CCCCCC", linewidth=0.6, zorder=0)

    # A panel that is filled by a tenth of a point looks like a finding.
    centre = (points.min() + points.max()) / 2
    ax.update_datalim([centre - LEAST_SPAN / 2, centre + LEAST_SPAN / 2])
    ax.autoscale_view()

    extents = points.max() - points.min()
    widest = extents.max()
    title = name or f"{label(group_map.model)}, {group_map.version}"
    ax.set_title(f"{title}\nspread over {widest:.1f} of the scale's 4 points")


def name_groups(ax: Axes, group_map: Map, size: float, some: Collection[str] | None = None) -> None:
    """Write the name of every group, or of some groups, beside its point.

    Call this function last, as the names keep clear of everything that is drawn before.

    Parameters
    ----------
    ax : Axes
        The panel.
    group_map : Map
        The map.
    size : float
        The size of the font, in points.
    some : collection of str, optional
        The groups to name.
    """
    named = group_map.positions
    if some is not None:
        named = named[named.group.isin(some)]

    # The names also keep clear of the crosses of the centroids.
    occupied = pd.concat([group_map.positions[AXES], group_map.centroids[AXES]])
    figures.label_points(
        ax,
        named.Competence,
        named.Warmth,
        list(named.group),
        size,
        occupied.to_numpy(),
    )


def name_clusters(ax: Axes, group_map: Map, size: float) -> None:
    """Draw a legend of the centroids below a panel.

    Parameters
    ----------
    ax : Axes
        The panel.
    group_map : Map
        The map.
    size : float
        The size of the font, in points.
    """
    handles = []
    for colour in colours_of(group_map.centroids.cluster):
        cross = plt.Line2D([], [], color=colour, linestyle="", marker="x", markersize=4)
        handles.append(cross)

    ax.legend(
        handles,
        group_map.centroids.name,
        ncols=3,
        fontsize=size,
        handletextpad=0,
        columnspacing=0.8,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.17),
    )


def map_with_list(group_map: Map) -> Figure:
    """Draw a map with its outermost groups named, and all groups in a list: Figure 6.

    Parameters
    ----------
    group_map : Map
        The map.

    Returns
    -------
    Figure
        Two columns wide; in one column the list stands below the map.
    """
    # Larger type makes the list longer.
    longer = figures.points(5) / 5
    if figures.n_panels_in_row(2, least_inches=2.2) == 2:
        fig, (map_panel, list_panel) = plt.subplots(1, 2, width_ratios=[1.7, 1])
        fig.set_size_inches(figures.TWO_COLUMNS, 4.2 * max(longer, 1))
    else:
        fig, (map_panel, list_panel) = plt.subplots(2, 1, height_ratios=[1, longer])
        fig.set_size_inches(figures.ONE_COLUMN, 3.5 + 3.5 * longer)

    map_panel.margins(0.14)
    draw_map(map_panel, group_map)
    _list_groups(list_panel, group_map)

    points = group_map.positions.set_index("group")[AXES]
    outermost = [*points.idxmin(), *points.idxmax()]
    # A cluster without an anchor is called "near" a group, which the map then names.
    anchors = group_map.centroids.name.str.removeprefix("near ")
    name_groups(map_panel, group_map, figures.points(5.5), {*anchors, *outermost})
    return fig


def _list_groups(ax: Axes, group_map: Map) -> None:
    """List the groups of each cluster below its coloured name, the most competent first."""
    by_competence = group_map.positions.sort_values("Competence", ascending=False, kind="stable")
    large = figures.points(6.5)
    small = figures.points(5)
    n_letters = int(N_LETTERS * 5 / small)

    # Heights in the panel are counted in lines, from the top down.
    lines = 0.0
    for centre in group_map.centroids.itertuples():
        groups = by_competence.group[by_competence.cluster == centre.cluster]
        # No name is broken over two lines.
        unbroken = groups.str.replace(" ", "\N{NO-BREAK SPACE}")
        text = textwrap.fill(", ".join(unbroken), n_letters, break_on_hyphens=False)
        (colour,) = colours_of([centre.cluster])
        head = f"{centre.name} ({len(groups)} groups)"
        ax.text(0, -lines, head, va="top", color=colour, fontsize=large, weight="bold")
        ax.text(0, -lines - 1.2, text, fontsize=small, linespacing=1.25, va="top")
        # The next cluster begins below the head, the lines of the list, and a gap.
        lines += 2.4 + text.count("\n") + 1

    ax.set(xlim=(0, 1), ylim=(-max(lines, 34), 0))
    ax.axis("off")


def scores_by_cluster(group_map: Map, scores: Sequence[str], seed: int) -> Figure:
    """Draw the scores of each cluster's groups as boxes, one panel per score: Figure 3.

    Parameters
    ----------
    group_map : Map
        The map.
    scores : sequence of str
        Columns of its positions; a score that no group has is left out.
    seed : int
        Seed of the random distance that moves each point sideways.

    Returns
    -------
    Figure
        Two columns wide.
    """
    positions = group_map.positions
    clusters = sorted(positions.cluster.unique())
    names = group_map.centroids.set_index("cluster").name[clusters]

    drawn = [score for score in scores if positions[score].notna().any()]
    fig, axes = figures.panels(len(drawn), 1.95, 4, sharex=True, sharey=True)
    for ax, score in zip(axes, drawn, strict=True):
        _draw_boxes(ax, positions, score, clusters, seed)
        ax.set_xticks(
            range(len(clusters)),
            names,
            rotation=40,
            ha="right",
            rotation_mode="anchor",
        )
    figures.label_outer(axes)
    fig.suptitle(label(group_map.model))
    return fig


def _draw_boxes(
    ax: Axes, positions: pd.DataFrame, score: str, clusters: Sequence[int], seed: int
) -> None:
    """Draw a score of the groups of each cluster as a box, and as a point for each group."""
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
    for i, cluster in enumerate(clusters):
        values = positions[score][positions.cluster == cluster].dropna()
        # Points beside each other do not hide each other.
        x = i + rng.uniform(-0.15, 0.15, len(values))
        ax.plot(x, values, ".", markersize=2, color=palette[cluster])

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
    colour = figures.COLOURS[0]
    fig, axes = figures.facets(highest, 0.7 + 0.16 * most, columns=2, least=2.2)
    for ax, rows in axes:
        # Heights grow upwards, so the lowest rate comes first.
        lowest_first = rows.iloc[::-1]
        y = np.arange(len(rows))
        ax.hlines(y, lowest_first.low, lowest_first.high, color=colour, linewidth=1)
        ax.plot(lowest_first.rate, y, "o", markersize=3.5, color=colour)
        ax.set_yticks(y, lowest_first.group)
        ax.set(xlim=(0, None), xlabel="refused (mean of four shares)")

        # Fewer groups leave room below, so that lines are as far apart in all panels.
        ax.set_ylim(len(rows) - most - 0.6, len(rows) - 0.4)
    return fig


def ground_truth_versus_here(sides: pd.DataFrame, recovered: pd.DataFrame) -> Figure:
    """Draw the position of each group here against the ground truth, one panel per version.

    Parameters
    ----------
    sides : DataFrame
        ``version`` and the columns of `ground_truth.sides`, of one model.
    recovered : DataFrame
        ``version`` and the columns of `ground_truth.recovery`, of this model.

    Returns
    -------
    Figure
        Two columns wide.
    """
    recovered_by_version = recovered.set_index("version")
    by_version = sides.groupby("version", sort=False)
    fig, axes = figures.panels(
        len(by_version),
        3.0,
        columns=2,
        least=2.2,
        sharex=True,
        sharey=True,
    )
    for ax, (version, rows) in zip(axes, by_version, strict=True):
        errors = []
        for axis, colour, marker in zip(AXES, figures.COLOURS, "o^", strict=False):
            ground_truth = rows[f"{axis} ground truth"]
            here = rows[f"{axis} here"]
            ax.plot(ground_truth, here, marker, markersize=2.5, color=colour, label=axis)
            error = recovered_by_version.loc[version, f"error, {axis}"]
            errors.append(f"{axis} {error:.2f}")

        # On the diagonal the position here is the ground truth.
        ax.axline((3, 3), slope=1, color="black", linewidth=0.5)
        ax.set(xlabel="ground-truth mean rating", title=version)
        text = f"the model's error in points:\n{', '.join(errors)}"
        ax.text(0.98, 0.02, text, ha="right", fontsize=figures.points(6), transform=ax.transAxes)

    axes[0].set_ylabel("mean rating here")
    axes[0].legend()
    return fig


def maps_beside_each_other(group_maps: Sequence[Map], averaged: Sequence[str]) -> Figure:
    """Draw maps of the ORIGINAL prompts, one panel per map: Figure 2.

    Parameters
    ----------
    group_maps : sequence of Map
        The maps; the model "ALL" is a mean of models.
    averaged : sequence of str
        The models of the mean.

    Returns
    -------
    Figure
        Two columns wide.
    """
    if len(group_maps) == 1:
        height = 4.6
        cluster_font = figures.points(5)
        group_font = figures.points(6)
    else:
        height = 3.05
        # Several maps have no room for names that follow the font.
        cluster_font = 5
        group_font = 4.5

    fig, axes = figures.panels(len(group_maps), height, columns=2, least=2.2)
    name_of_mean = f"ALL: mean of {', '.join(map(label, averaged))}"
    for ax, group_map in zip(axes, group_maps, strict=True):
        ax.margins(0.12)
        name = name_of_mean if group_map.model == "ALL" else ""
        draw_map(ax, group_map, name)
        name_clusters(ax, group_map, cluster_font)

    # Names come last: they are placed around all that is drawn.
    for ax, group_map in zip(axes, group_maps, strict=True):
        name_groups(ax, group_map, group_font)
    return fig


def maps_on_one_scale(group_maps: Sequence[Map]) -> Figure:
    """Draw the maps of several models on one scale, without names.

    Parameters
    ----------
    group_maps : sequence of Map
        The maps.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, axes = figures.panels(len(group_maps), 2.6, sharex=True, sharey=True)
    for ax, group_map in zip(axes, group_maps, strict=True):
        draw_map(ax, group_map)
        is_left = ax.get_subplotspec().is_first_col()
        ylabel = "Warmth" if is_left else ""
        ax.set(title=label(group_map.model), ylabel=ylabel)
        ax.tick_params(labelbottom=True)
    return fig


def rating_distribution(shares: pd.DataFrame) -> Figure:
    """Draw the share of each number among a model's ratings, scored and in free text.

    Parameters
    ----------
    shares : DataFrame
        From `both_ways.rating_distribution`.

    Returns
    -------
    Figure
        One panel per model, two columns wide.
    """
    modes = shares["mode"]
    mode_with_n = modes + " (" + shares.n.map("{:,}".format) + ")"
    counted = shares.assign(mode_with_n=mode_with_n)

    fig, axes = figures.facets(counted, 1.9, columns=2, sharey=True)
    for ax, rows in axes:
        n_modes = rows.mode_with_n.nunique()
        sns.barplot(
            rows,
            x="rating",
            y="share",
            hue="mode_with_n",
            palette=figures.COLOURS[:n_modes],
            saturation=1,
            ax=ax,
        )
        ax.set(ylim=(0, 1), ylabel="share of the ratings")
        ax.legend()
    return fig
