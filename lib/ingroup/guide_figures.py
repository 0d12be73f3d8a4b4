"""Figures of the guide: the own group's lead, and made-up data that explain a statistic."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ingroup import figures
from ingroup.models import label
from ingroup.stats.permutation import PermutationTest

Numbers = NDArray[np.float64]

GREY = "#777777"
BAND = "#E3E3E3"
MORE = "the own group gets more"
LESS = "others get more"
SAME = "no difference"
CHANCE_LEVEL = 0.05  # a lead with a p of this or more may be chance
# What a direction may depend on: the columns of the leads, and how the title names them.
FACTORS = {
    "model": "the model",
    "setting": "the wording",
    "read": "how its answer is read",
}
DIRECTIONS = {MORE: figures.COLOURS[0], LESS: figures.COLOURS[1], SAME: GREY}
# What the Stereotype Content Model expects on its map. A corner has (x, y) of its lower left end
# and a tint; an edge has what its groups are, and (x, y) of its text.
CORNERS = {
    "Pity": (1.0, 3.0, "#EAF3FA"),
    "Admire": (3.0, 3.0, "#EAF6F0"),
    "Contempt": (1.0, 1.0, "#F2F2F2"),
    "Envy": (3.0, 1.0, "#FBF1E6"),
}
EDGES = {
    "ActiveFacilitation": ("warm", 3, 4.95),
    "Active Harm": ("cold", 3, 1.05),
    "PassiveFacilitation": ("competent", 4.95, 3),
    "Passive Harm": ("not competent", 1.05, 3),
}
_CENTRED = {"ha": "center", "va": "center"}


def direction(points: float) -> str:
    """Tell which side gets more points.

    Parameters
    ----------
    points : float
        The own group's lead.

    Returns
    -------
    str
        A key of `DIRECTIONS`.
    """
    if points > 0:
        return MORE
    if points < 0:
        return LESS
    return SAME


def lead_range(points: pd.Series) -> str:
    """Write the smallest and the largest lead in words.

    Parameters
    ----------
    points : Series
        Leads of the own group, at least one.

    Returns
    -------
    str
        For example "0.5 less to 1.2 more".
    """
    low = points.min()
    high = points.max()
    if low == high == 0:
        return SAME
    if low == high:
        more_or_less = "more" if low > 0 else "less"
        return f"{abs(low):.1f} {more_or_less}"
    if low >= 0:
        return f"{low:.1f} to {high:.1f} more"
    if high <= 0:
        return f"{abs(high):.1f} to {abs(low):.1f} less"
    return f"{-low:.1f} less to {high:.1f} more"


def headline(lead: pd.DataFrame, kind: str) -> str:
    """Write the question of the first study and the answer of the leads.

    Parameters
    ----------
    lead : DataFrame
        ``model``, ``setting``, ``read``, ``points`` and ``p``, one row per wording and reading.
    kind : str
        The kind of groups, for example "religion".

    Returns
    -------
    str
        The question, broken into lines, and a last line with the answer.
    """
    models = lead.model.unique()
    name = label(models[0]) if len(models) == 1 else "a model"
    question = (
        f"Told to be somebody, does {name} rate the feelings of people of its own {kind} higher?"
    )
    lines = textwrap.fill(question, 95)
    answer = _answer(lead)
    return f"{lines}\n{answer}"


def _answer(lead: pd.DataFrame) -> str:
    """Write the direction of all leads, or its deciding factors, and whether all may be chance."""
    directions = lead.points.map(direction)
    if directions.nunique() == 1:
        n_wordings = lead.setting.nunique()
        wordings = "every wording" if n_wordings > 1 else "the one wording that was asked"
        answer = f"In {wordings}, {directions.iloc[0]}"
    else:
        factors = _deciding_factors(lead, directions)
        answer = f"That depends {factors}"

    # Without this, a sentence would claim a direction that no dot shows.
    if (lead.p >= CHANCE_LEVEL).all():
        return f"{answer}, which may be chance."
    return f"{answer}."


def _deciding_factors(lead: pd.DataFrame, directions: pd.Series) -> str:
    """Name in words the columns on which the direction depends."""
    varying = [column for column in FACTORS if lead[column].nunique() > 1]
    deciding = [column for column in varying if _decides(column, lead, directions)]
    # Where no two rows differ in one column alone, any of the columns may decide.
    columns = deciding or varying
    phrases = [f"on {FACTORS[column]}" for column in columns]
    if len(phrases) > 1:
        phrases[-1] = f"and {phrases[-1]}"
    return ", ".join(phrases)


def _decides(column: str, lead: pd.DataFrame, directions: pd.Series) -> bool:
    """Tell whether rows that differ in this column alone have several directions."""
    others = [lead[other] for other in FACTORS if other != column]
    n_directions = directions.groupby(others).nunique()
    are_several = n_directions > 1
    return bool(are_several.any())


def own_group(lead: pd.DataFrame, kind: str) -> Figure:
    """Draw the own group's lead, one line per model and reading, one dot per wording.

    Parameters
    ----------
    lead : DataFrame
        ``model``, ``setting``, ``read``, ``points`` and ``p``. A dot with a p from 0.05 is pale.
    kind : str
        The kind of groups, for example "religion".

    Returns
    -------
    Figure
        Two columns wide.
    """
    rows = lead.assign(
        line=lead.model.map(label) + ", " + lead.read,
        direction=lead.points.map(direction),
    )
    lines = list(rows.line.unique())
    height = 1.3 + 0.38 * len(lines)
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, height))

    # There are two swarms, because seaborn has one opacity for all dots of a swarm.
    may_be_chance = rows.p >= CHANCE_LEVEL
    swarms = (
        (rows[may_be_chance], 0.35),
        (rows[~may_be_chance], 0.9),
    )
    for swarm, opacity in swarms:
        sns.swarmplot(
            swarm,
            x="points",
            y="line",
            order=lines,
            hue="direction",
            palette=DIRECTIONS,
            size=3.6,
            legend=False,
            alpha=opacity,
            ax=ax,
        )
    ax.axvline(0, color="black", linewidth=0.7, zorder=0)
    for y, line in enumerate(lines):
        text = lead_range(rows.points[rows.line == line])
        # The text stands beside the panel: x is a share of the axes, y a line of the data.
        ax.text(1.02, y, text, transform=ax.get_yaxis_transform(), va="center")

    # The panel reaches at least a point to either side, so that zero is always in it.
    lowest = 1.1 * min(rows.points.min(), -1)
    highest = 1.15 * max(rows.points.max(), 1)
    ax.set(xlim=(lowest, highest), ylim=(len(lines) - 0.5, -0.5), ylabel="")
    ax.set_xlabel(f"points of 100 for the own {kind}, minus points for others")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))

    colours = DIRECTIONS | {"pale: may be chance": "#CCCCCC"}
    dot = {"linestyle": "", "marker": "o", "markersize": 4}
    looks = {name: dot | {"color": colour} for name, colour in colours.items()}
    figures.legend_of_lines(fig, looks, loc="lower")
    fig.suptitle(headline(rows, kind), fontsize=figures.points(9), x=0.01, ha="left")
    return fig


def delta(
    points: Numbers,
    z: Numbers,
    same: NDArray[np.bool_],
    groups: Sequence[str],
    names: Sequence[str],
) -> Figure:
    """Draw a matrix in points, its z-scores, and delta as the distance of two means.

    Parameters
    ----------
    points, z : array, (perceiver, experiencer)
        Mean ratings, and the same as z-scores.
    same : array of bool
        The in-group cells.
    groups, names : sequence of str
        The group and the name of each identity.

    Returns
    -------
    Figure
        Two columns wide, with three panels.
    """
    size = (figures.TWO_COLUMNS, 2.5)
    fig, axes = plt.subplots(1, 3, figsize=size, width_ratios=[1, 1, 0.75])
    in_points, as_z, distance = axes

    _number_cells(in_points, points, "{:.0f}", same, groups, names)
    in_points.set(title="mean ratings, points", xlabel="experiencer")
    # Adding zero takes the minus from a rounded -0.0.
    rounded = z.round(1) + 0.0
    _number_cells(as_z, rounded, "{:.1f}", same, groups, names)
    as_z.set(title="the same as z-scores", xlabel="experiencer")
    # seaborn lays the figure out for each heatmap, so a label set before the second one would move
    # all panels.
    in_points.set_ylabel("perceiver")
    _draw_distance(distance, z[same], z[~same])
    return fig


def _number_cells(
    ax: Axes,
    cells: Numbers,
    form: str,
    same: NDArray[np.bool_],
    groups: Sequence[str],
    names: Sequence[str],
) -> None:
    """Draw a heatmap with a number in each cell, bold within groups."""
    image = figures.heatmap(ax, cells, None, groups, names)
    size = figures.points(5.5)
    for (row, column), value in np.ndenumerate(cells):
        # The map is dark above its middle, where black could not be read.
        colour = "white" if image.norm(value) > 0.5 else "black"
        weight = "bold" if same[row, column] else "normal"
        # A cell is one unit wide, so its middle is half a unit from its corner.
        x = column + 0.5
        y = row + 0.5
        number = form.format(value)
        ax.text(x, y, number, fontsize=size, color=colour, fontweight=weight, **_CENTRED)


def _draw_distance(ax: Axes, within: Numbers, between: Numbers) -> None:
    """Draw cells within and between groups as dots, with the distance of their means."""
    columns = (
        (0, within, figures.COLOURS[1]),
        (1, between, figures.COLOURS[0]),
    )
    for x, values, colour in columns:
        # Dots are spread sideways, because equal values would cover each other.
        shifts = np.linspace(-0.17, 0.17, len(values))
        ax.plot(x + shifts, values, ".", color=colour, alpha=0.45, markersize=4)
        mean = values.mean()
        ax.plot(x, mean, "o", color=colour, markersize=8, markeredgecolor="black")

    mean_within = within.mean()
    mean_between = between.mean()
    means = [mean_within, mean_between]
    x_of_means = [0, 1]
    x_of_arrow = 1.4
    ax.hlines(means, x_of_means, x_of_arrow + 0.05, color=GREY, linewidth=0.5, linestyle=":")

    # A double arrow beside the dots spans the distance of the two means.
    upper_end = (x_of_arrow, mean_within)
    lower_end = (x_of_arrow, mean_between)
    arrow = {"arrowstyle": "<->", "lw": 0.8}
    ax.annotate("", upper_end, lower_end, arrowprops=arrow)

    distance = mean_within - mean_between
    middle = np.mean(means)
    ax.text(x_of_arrow + 0.07, middle, rf"$\delta$ = {distance:.2f}", va="center")
    ax.set(xlim=(-0.5, 2.3), ylabel="z-score", title="and their means")
    ax.set_xticks(x_of_means, ["in-group\n(bold)", "out-group"])


def null_intervals(tests: Mapping[str, PermutationTest]) -> Figure:
    """Draw null distributions with their intervals and the observed deltas.

    Parameters
    ----------
    tests : mapping of str to PermutationTest
        The test of each panel, by its title.

    Returns
    -------
    Figure
        Two columns wide.
    """
    fig, axes = plt.subplots(
        1,
        len(tests),
        figsize=(figures.TWO_COLUMNS, 2.2),
        sharex=True,
        sharey=True,
    )
    bins = np.arange(-2, 2, 0.05)
    pale_blue = figures.COLOURS[5]
    red = figures.COLOURS[1]

    for ax, (name, test) in zip(axes, tests.items(), strict=True):
        low, high = test.null_interval
        observed = test.statistic
        ax.axvspan(low, high, color=BAND, zorder=0, label="null interval")
        shuffled = "rows and columns shuffled"
        ax.hist(test.null_distribution, bins, color=pale_blue, label=shuffled)
        ax.axvline(observed, color=red, linewidth=1.5, label="observed delta")

        side = "inside" if low <= observed <= high else "outside"
        ax.set_title(f"{name}: {side}, p = {test.pvalue:.4f}")
        ax.set_xlabel(r"$\delta$")
        ax.set_xlim(-1.6, 1.6)

    axes[0].set_ylabel("shuffles")
    # All panels have the same three entries.
    handles, names = axes[0].get_legend_handles_labels()
    figures.legend(fig, handles, names, loc="lower")
    return fig


def biases(name: str, group: Numbers, control: Numbers, scores: pd.DataFrame) -> Figure:
    """Draw the ratings of a group and of the control, and the biases of several groups.

    Parameters
    ----------
    name : str
        The group of the left panel.
    group, control : array, (scenario, wording)
        The ratings of the left panel.
    scores : DataFrame
        ``bias``, ``low``, ``high`` and ``brittleness``, by group, from the top.

    Returns
    -------
    Figure
        Two columns wide, with two panels.
    """
    fig, axes = plt.subplots(1, 2, figsize=(figures.TWO_COLUMNS, 2.5))
    _draw_scenarios(axes[0], name, group, control)
    _draw_biases(axes[1], scores)
    handles = []
    names = []
    for ax in axes:
        # Each panel has entries of its own.
        handles_of_panel, names_of_panel = ax.get_legend_handles_labels()
        handles += handles_of_panel
        names += names_of_panel
    figures.legend(fig, handles, names, loc="lower")
    return fig


def _draw_scenarios(ax: Axes, name: str, group: Numbers, control: Numbers) -> None:
    """Draw the ratings in six scenarios as dots, and their means as strokes."""
    blue = figures.COLOURS[0]
    # The control is drawn a little above the group, as the axis runs downwards.
    sides = (
        (-0.14, control, GREY),
        (0.14, group, blue),
    )
    for scenario in range(6):
        for shift, ratings_of_scenarios, colour in sides:
            ratings = ratings_of_scenarios[scenario]
            height = scenario + 1 + shift
            heights = np.full_like(ratings, height)
            ax.plot(ratings, heights, ".", color=colour)
            ax.plot(ratings.mean(), height, "|", color=colour, markersize=8)

    # These empty lines are for the legend alone: every dot with a label would be an entry.
    ax.plot([], [], ".", color=blue, label=f"{name}, four wordings")
    ax.plot([], [], ".", color=GREY, label="control, four wordings")
    # The axis runs downwards, so that the first scenario is on top.
    ax.set(xlabel="rating", ylabel="scenario", title="six of the scenarios", ylim=(6.6, 0.4))


def _draw_biases(ax: Axes, scores: pd.DataFrame) -> None:
    """Draw each bias with its interval, before a bar from minus to plus the brittleness."""
    # Heights grow upwards, so the last group comes first.
    upwards = scores[::-1]
    blue = figures.COLOURS[0]
    size = figures.points(6)
    for y, row in enumerate(upwards.itertuples()):
        # The bar is centred at 0.
        left = -row.brittleness
        width = 2 * row.brittleness
        ax.barh(y, width, left=left, height=0.55, color=BAND, zorder=0)
        ax.hlines(y, row.low, row.high, color=blue, linewidth=1.4)
        ax.plot(row.bias, y, "o", color=blue, markersize=4)
        number = f"{row.bias:+.1f}"
        ax.text(row.bias, y + 0.16, number, ha="center", va="bottom", fontsize=size)

    ax.axvline(0, color="black", linewidth=0.5)
    # The ends of bars are sticky: the panel would end where the longest bar does.
    ax.use_sticky_edges = False
    ax.set_yticks(range(len(upwards)), list(upwards.index))
    ax.set(xlabel="bias: points above the control", title="all scenarios")
    ax.set_ylim(-0.6, len(upwards) - 0.4)
    # These empty marks are for the legend alone.
    ax.bar(0, 0, color=BAND, label="plus and minus the brittleness")
    ax.plot([], [], "o-", color=blue, markersize=4, label="bias, 95 % interval")


def warmth_and_competence(scores: pd.DataFrame, words: Mapping[str, str]) -> Figure:
    """Draw groups on a map, with the Stereotype Content Model's expectation for each part.

    Parameters
    ----------
    scores : DataFrame
        ``group``, ``Competence`` and ``Warmth``, one row per group and round.
    words : mapping
        The words of each corner and of each edge, by its name in Table 4 of the paper.

    Returns
    -------
    Figure
        One panel.
    """
    fig, ax = plt.subplots(figsize=(4.2, 3.9))
    _write_theory(ax, words)

    by_group = scores.groupby("group", sort=False)
    means = by_group[["Competence", "Warmth"]].mean()
    for (group, rows), colour in zip(by_group, cycle(figures.COLOURS), strict=False):
        ax.plot(rows.Competence, rows.Warmth, ".", color=colour, alpha=0.5, markersize=3)
        mean = means.loc[group]
        ax.plot(mean.Competence, mean.Warmth, "o", color=colour, markersize=6)

    # On the diagonal, warmth and competence are equal.
    ax.axline((1, 1), slope=1, color="#999999", linewidth=0.6, zorder=1)

    limits = (0.9, 5.1)
    ratings = range(1, 6)
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    ax.set_xlabel("Competence")
    ax.set_ylabel("Warmth")
    ax.set_xticks(ratings)
    ax.set_yticks(ratings)
    return fig


def _write_theory(ax: Axes, words: Mapping[str, str]) -> None:
    """Tint the corners of the map, and write the theory's words there and at the edges."""
    for name, (x, y, tint) in CORNERS.items():
        # Each corner is a quarter of the map, two points wide and high.
        ax.fill_between([x, x + 2], y, y + 2, color=tint, zorder=0)
        ax.text(x + 1, y + 1.7, words[name], fontweight="bold", **_CENTRED)

    small = figures.points(6)
    for name, (groups, x, y) in EDGES.items():
        # x is 3 in the middle of the lower and upper edge, where words lie level.
        rotation = 0 if x == 3 else 90
        text = f"{groups}: {words[name]}"
        ax.text(
            x,
            y,
            text,
            rotation=rotation,
            fontsize=small,
            style="italic",
            **_CENTRED,
        )


def name_means(ax: Axes, scores: pd.DataFrame) -> None:
    """Write the name of each group beside its mean, as the last step of the figure.

    Parameters
    ----------
    ax : Axes
        The panel of `warmth_and_competence`.
    scores : DataFrame
        The scores of that panel.
    """
    axes = ["Competence", "Warmth"]
    by_group = scores.groupby("group", sort=False)
    means = by_group[axes].mean()
    dots_of_rounds = scores[axes].to_numpy()
    names = list(means.index)
    figures.label_points(ax, means.Competence, means.Warmth, names, keep_free=dots_of_rounds)


def gallery(files: Sequence[Path]) -> Figure:
    """Show images side by side, reduced.

    Parameters
    ----------
    files : sequence of Path
        At most six PNG files, each in the folder of its study.

    Returns
    -------
    Figure
        Two rows of three panels. Panels without an image stay empty.
    """
    fig, axes = plt.subplots(2, 3, figsize=(9, 6))
    for ax in axes.flat:
        ax.axis("off")

    for ax, file in zip(axes.flat, files, strict=False):
        pixels = plt.imread(file)
        ax.imshow(reduce_image(pixels))
        study = file.parent.name
        ax.set_title(f"{study}: {file.stem}")
    return fig


def reduce_image(pixels: NDArray[Any], factor: int = 4) -> NDArray[Any]:
    """Make an image smaller.

    Parameters
    ----------
    pixels : array, (row, column, colour)
        An image. Transparency is left out.
    factor : int
        How many pixels of each side become one.

    Returns
    -------
    array, (row, column, colour)
        The mean of each square of pixels. Incomplete squares at the ends are left out.
    """
    height, width, _ = pixels.shape
    n_rows = height // factor
    n_columns = width // factor
    complete_height = n_rows * factor
    complete_width = n_columns * factor
    complete = pixels[:complete_height, :complete_width, :3]

    # Each side becomes two axes: which square, and which pixel inside it.
    squares = complete.reshape(n_rows, factor, n_columns, factor, 3)
    return squares.mean(axis=(1, 3))
