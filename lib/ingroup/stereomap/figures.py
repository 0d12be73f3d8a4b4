"""The paper's tables in its own layout, its models first, and Figures 2, 3 and 6."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ingroup import published
from ingroup.stereomap.answers import MAP
from ingroup.stereomap.maps import AXES, printed_groups
from ingroup.stereomap.stimuli import PAPER
from ingroup.style import TWO_COLUMNS, write_names

WORDS = {  # Table 8 has other words than Table 4
    "Admire": "Admiration",
    "ActiveFacilitation": "Active facilitation",
    "Active Harm": "Active harm",
    "PassiveFacilitation": "Passive facilitation",
    "Passive Harm": "Passive harm",
}
LEVELS = [-1, 0.001, 0.01, 0.05, 1]  # of p, and Table 8's marks between them
STARS = ["***", "**", "*", ""]
LEAST_SPAN = 0.4  # points; a panel that is filled by a tenth of a point looks like a finding


# ---- tables


def cluster_table(version: str, clustered: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 2 or 5: the groups of each source by cluster.

    Parameters
    ----------
    version : {"ORIGINAL", "EXTENDED"}
        The version of the prompts.
    clustered, tests : DataFrame
        From `maps.cluster_maps` and `maps.cluster_tests`, one reading for each model.

    Returns
    -------
    DataFrame
        For each source the group and, in the first row of a cluster, the centroid, such as
        "3.86>3.08". Of our models, only groups that the paper's table has are shown.
    """
    theirs = printed_groups(version)
    groups = clustered[[*MAP, "cluster", "group"]]
    centroids = tests[tests.version == version]
    ours = groups.merge(centroids).sort_values("cluster", kind="stable")

    printed_names = theirs.group.str.casefold()
    is_printed = ours.group.str.casefold().isin(printed_names)
    ours = ours[is_printed].rename(columns={"model": "source"})
    # A single group has no test.
    ours["sign"] = ours.sign.replace("", "?")

    both = pd.concat([theirs, ours])
    template = "{Competence:.2f}{sign}{Warmth:.2f}"
    centroid = both.apply(template.format_map, axis=1)
    has_position = both.Warmth.notna()
    centroid = centroid.where(has_position, "-")
    is_further = both.duplicated(["source", "cluster"])
    both["C, W"] = centroid.mask(is_further, "")

    columns = {}
    for source, rows in both.groupby("source", sort=False):
        shown = rows[["group", "C, W"]]
        columns[source] = shown.reset_index(drop=True)
    table = pd.concat(columns, axis=1)
    return table.fillna("")


def correlation_table(here: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 8: predictors by source and behaviour, with stars of uncorrected p.

    Parameters
    ----------
    here : DataFrame
        ``model`` and the columns of `maps.correlations`.
    """
    theirs = published.load("stereomap", 8)
    names = {
        "source": "model",
        "behavior": "outcome",
        "spearman_rho": "rho",
        "significance": "stars",
    }
    theirs = theirs.rename(columns=names)
    theirs = theirs.fillna({"stars": ""})
    ours = here.replace({"predictor": WORDS, "outcome": WORDS})
    stars = pd.cut(ours.p, LEVELS, right=False, labels=STARS)
    ours["stars"] = stars.astype("str").fillna("")

    index = ["predictor"]
    columns = ["model", "outcome"]
    return published.layout(theirs, ours, index, columns, "{rho:.2f}{stars}")


def extremes_table(here: pd.DataFrame) -> pd.DataFrame:
    """Lay out Table 9: the ends of each word by model, the variance over rounds in parentheses.

    Parameters
    ----------
    here : DataFrame
        ``model`` and the columns of `maps.extremes`.
    """
    theirs = published.load("stereomap", 9)
    # The print has "High-Status", which the prompt writes as "High-status".
    theirs["item"] = theirs.dimension.str.capitalize()
    index = ["item", "end", "rank"]
    template = "{group} {mean:.2f} ({variance:.2f})"
    table = published.layout(theirs, here, index, ["model"], template)
    # Scored answers have one round, which has no variance.
    return table.replace(r" \(nan\)", "", regex=True)


def sensitivity_table() -> pd.DataFrame:
    """Read Tables 13 and 14 as one: index ``model`` and ``ablation``, a column for each measure."""
    table13 = published.load("stereomap", 13)
    table13 = table13.melt(["model", "dimension"], var_name="measure")
    table13["metric"] = table13.dimension.str.lower() + "_" + table13.measure
    # Table 14 repeats the numbers of GPT-3.5.
    others = table13[table13.model != "GPT-3.5"]
    others = others.assign(ablation=PAPER)

    table14 = published.load("stereomap", 14)
    table14 = table14.rename(columns={"prompt_type": "ablation"})
    table14 = table14.assign(model="GPT-3.5")
    both = pd.concat([others, table14])
    cells = both.set_index(["model", "ablation", "metric"]).value
    return cells.unstack("metric", sort=False)


# ---- figures


def maps(version: str, here: pd.DataFrame, columns: int, named: Sequence[str] = ()) -> Figure:
    """Draw maps of the groups: printed centroids first (black), then the maps of this run.

    Parameters
    ----------
    version : {"ORIGINAL", "EXTENDED"}
        The version of the prompts.
    here : DataFrame
        ``model``, ``group``, ``cluster`` and `AXES`.
    columns : int
        How many maps stand in a row.
    named : sequence of str
        The groups whose names are written besides the outermost ones, all if empty.

    Returns
    -------
    Figure
        On the grey line warmth equals competence. A colour is a cluster of this run. A printed
        cluster has the name of a group, and how many others it has.

    Notes
    -----
    Where both axes are printed alike (1.78 = 1.78), the released code gave competence the warmth.
    """
    printed = _centroids(version).assign(colour="black")
    number = here.cluster.astype(int)
    ours = here.assign(colour="C" + number.astype(str))
    both = pd.concat([printed, ours])
    # A difference in the last digits moves no name.
    both[AXES] = both[AXES].round(4)

    width = TWO_COLUMNS / columns
    height = min(width, 2.5)
    grid = sns.FacetGrid(
        both,
        col="model",
        col_wrap=columns,
        sharex=False,
        sharey=False,
        height=height,
        aspect=width / height,
    )
    grid.map_dataframe(_map, *AXES)

    # Names need the final size of the panels. Each printed cluster has its name.
    chosen = {*printed.group, *(named or here.group)}
    for model, points in both.groupby("model", sort=False):
        axes = points.set_index("group")[AXES]
        names = chosen.union(axes.idxmin(), axes.idxmax())
        is_named = axes.index.isin(names)
        write_names(grid.axes_dict[model], axes[is_named])
    return grid.figure


def _centroids(version):
    """List the printed clusters by a group, and how many others it has."""
    groups = printed_groups(version).dropna()
    clusters = groups.groupby(["source", "cluster"], sort=False)
    printed = clusters[["group", *AXES]].first()
    n_others = clusters.size() - 1
    printed["group"] += " +" + n_others.astype(str)
    return printed.rename_axis(["model", "cluster"]).reset_index()


def _map(x, y, data, **of_grid):
    """Draw one map, as wide as high in points."""
    ax = plt.gca()
    ax.scatter(data[x], data[y], s=7, c=data.colour, linewidth=0)
    ax.axline((3, 3), slope=1, color="lightgrey", linewidth=0.6, zorder=0)
    lowest = data[AXES].min()
    highest = data[AXES].max()
    spread = max(highest - lowest)
    what = f"spread over {spread:.2f} of 4 points"
    first = data.iloc[0]
    if first.colour == "black":
        what = "printed centroids"
    ax.set_title(f"{first.model}\n{what}", fontsize=6.5)

    span = max(LEAST_SPAN, 1.2 * spread)
    left, bottom = (lowest + highest - span) / 2
    ax.set(xlim=(left, left + span), ylim=(bottom, bottom + span))
    ax.tick_params(labelsize=6)


def by_cluster(positions: pd.DataFrame, scores: list[str]) -> Figure:
    """Draw the scores of the groups of each cluster (Figure 3), a panel for each score.

    Parameters
    ----------
    positions : DataFrame
        ``model``, ``cluster`` and the scores of each group.
    scores : list of str
        Emotions and behaviours of Table 4.
    """
    clustered = positions.astype({"cluster": int})
    long = clustered.melt(["model", "cluster"], scores, "score", "mean rating")

    grid = sns.catplot(
        long,
        kind="box",
        x="cluster",
        y="mean rating",
        hue="model",
        col="score",
        col_wrap=4,
        height=1.5,
        linewidth=0.5,
        fliersize=0.8,
        legend_out=False,
    )
    grid.set(ylim=(0.8, 5.2)).set_titles("{col_name}")
    sns.move_legend(grid, "upper center", bbox_to_anchor=(0.5, 0), ncol=3, title="")
    return grid.tight_layout().figure
