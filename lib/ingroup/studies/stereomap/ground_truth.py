"""Ground truth of StereoMap: the position and the ratings that a calibrant gives each group."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from ingroup.models import ground_truth_file, is_calibrant
from ingroup.studies.stereomap import statistics, stimuli
from ingroup.studies.stereomap.design import FIRST_PROMPT
from ingroup.studies.stereomap.maps import ModelVersion
from ingroup.studies.stereomap.statistics import AXES


class Position(NamedTuple):
    """Position of a group: its ground-truth cluster, and warmth and competence from 1 to 5."""

    cluster: int
    warmth: float
    competence: float


class GroundTruth:
    """The ground truth of one model.

    Parameters
    ----------
    file : Path
        The model's ``data/models/<model>/ground_truth.yaml``.
    """

    def __init__(self, file: Path):
        text = file.read_text("utf8")
        self.table = yaml.safe_load(text)["stereomap"]
        self._positions = {}
        for cluster, groups in self.table["groups"].items():
            for people, (warmth, competence) in groups.items():
                self._positions[people] = Position(cluster, warmth, competence)

    def position(self, group: str) -> Position:
        """Return the ground-truth position of a group.

        The negative control gives all groups one position.

        Parameters
        ----------
        group : str
            A name as in ``groups.csv``.

        Returns
        -------
        Position
            The ground-truth cluster, warmth and competence.

        Raises
        ------
        KeyError
            For a group of ``groups.csv`` without a ground truth, except in the control.
        """
        # The file has groups in their grammatical form.
        people = stimuli.text(group, form="grammatical")
        if people not in self._positions and "elsewhere" in self.table:
            return Position(0, *self.table["elsewhere"])
        return self._positions[people]

    def rating(self, group: str, prompt: str, word: str) -> float:
        """Return the ground-truth mean rating of a word.

        Parameters
        ----------
        group : str
            A name as in ``groups.csv``.
        prompt : str
            The name of the prompt.
        word : str
            A word that the prompt asks about; "Rating" is the prompt's own.

        Returns
        -------
        float
            Points on 1 to 5, not rounded.
        """
        rule = self._rule(prompt, word)
        position = self.position(group)
        value = rule["base"]
        # A rule's slopes multiply the distance from 3, the middle of the scale.
        value += rule["warmth"] * (position.warmth - 3)
        value += rule["competence"] * (position.competence - 3)

        low = float(stimuli.LOW)
        high = float(stimuli.HIGH)
        return min(high, max(low, value))

    def _rule(self, prompt: str, word: str) -> dict[str, float]:
        """Find the rule of a rating: of the word, else of the prompt, else of its construct."""
        rules = self.table["ratings"]
        if word in rules:
            return rules[word]
        if rules.get(prompt):
            return rules[prompt]

        version = prompt.split("/")[0]
        construct = stimuli.prompts(version)[prompt].construct
        return rules[construct]


def sides(ground_truth: GroundTruth, means: pd.DataFrame) -> pd.DataFrame:
    """Set the ground-truth cluster and position of each group beside its position here.

    Parameters
    ----------
    ground_truth : GroundTruth
        The ground truth of the model.
    means : DataFrame
        From `group_means`.

    Returns
    -------
    DataFrame
        Index ``group``; ``Cluster ground truth``, and each axis with ``ground truth`` and ``here``
        behind its name, in points.
    """
    positions = [ground_truth.position(group) for group in means.index]
    ground_truth_side = pd.DataFrame(positions, means.index).rename(columns=str.capitalize)
    ground_truth_side = ground_truth_side.add_suffix(" ground truth")
    side_here = means[AXES].add_suffix(" here")
    return ground_truth_side.join(side_here)


def ground_truth_map(
    ground_truth: GroundTruth, ratings: pd.DataFrame, version: str, incomplete: str
) -> pd.DataFrame:
    """Compute the map of the ground-truth ratings, over the words that the model rated.

    Parameters
    ----------
    ground_truth : GroundTruth
        The ground truth of the model.
    ratings : DataFrame
        The ratings of the model.
    version : {"EXTENDED", "ORIGINAL"}
        The version of the prompts.
    incomplete : {"drop", "mean"}
        As in `round_scores`.

    Returns
    -------
    DataFrame
        Index ``group``; both axes, in points.
    """
    words = stimuli.words(version)
    ground_truth_ratings = ratings[["group", "round"]].copy()
    for word in words.word:
        prompt = FIRST_PROMPT
        name = word
        if version == "ORIGINAL":
            # Here a word is the name of a prompt, whose rating has no word.
            prompt = f"ORIGINAL/{word}"
            name = "Rating"
        ground_truth_ratings[word] = [
            ground_truth.rating(group, prompt, name) for group in ratings.group
        ]

    is_rated = ratings[ground_truth_ratings.columns].notna()
    ground_truth_ratings = ground_truth_ratings.where(is_rated)
    scores = statistics.round_scores(ground_truth_ratings, words, incomplete)
    return statistics.group_means(scores)[AXES]


def recovery(
    both: pd.DataFrame, through: pd.DataFrame, labels: pd.Series, tests: pd.DataFrame
) -> dict[str, float]:
    """Measure how much of a ground-truth map is recovered.

    Parameters
    ----------
    both : DataFrame
        From `sides`.
    through : DataFrame
        From `ground_truth_map`: the map that the pipeline makes of the ground-truth ratings.
    labels : Series
        The cluster of each group here.
    tests : DataFrame
        The tests of these clusters, with their ``finding``.

    Returns
    -------
    dict
        ``pipeline``, the largest difference of `through` from the ground-truth map; for each axis
        the ``error`` of the model (root mean square), the ``largest difference`` and the
        correlation ``r``, all in points but for r; ``adjusted Rand`` of true and found clusters;
        ``clusters that differ`` significantly. NaN where the truth has one position or cluster.
    """
    ground_truth_axes = _axes(both, "ground truth")
    axes_here = _axes(both, "here")
    pipeline_error = (through - ground_truth_axes).abs()
    row = {"pipeline": pipeline_error.max(axis=None)}

    difference = axes_here - ground_truth_axes
    for axis in AXES:
        mean_square = (difference[axis] ** 2).mean()
        row[f"error, {axis}"] = np.sqrt(mean_square)
    for axis in AXES:
        row[f"largest difference, {axis}"] = difference[axis].abs().max()
    for axis in AXES:
        # The null calibrant's map is one point, with which nothing correlates.
        r = np.nan
        if ground_truth_axes[axis].nunique() > 1:
            r = ground_truth_axes[axis].corr(axes_here[axis])
        row[f"r of {axis}"] = r

    clusters = both["Cluster ground truth"]
    rand = np.nan
    if clusters.nunique() > 1:
        rand = adjusted_rand_score(clusters[labels.index], labels)
    row["adjusted Rand"] = rand
    row["clusters that differ"] = (tests.finding == "significant").sum()
    return row


def _axes(both: pd.DataFrame, side: str) -> pd.DataFrame:
    """Select one side of the table of `sides`, under the names of the axes.

    Both sides then have the same names, so that pandas can subtract one from the other.
    """
    columns = [f"{axis} {side}" for axis in AXES]
    return both[columns].set_axis(AXES, axis=1)


def verdicts(recovered: pd.DataFrame) -> NDArray[np.str_]:
    """Put into words whether the ground truth of each map is recovered.

    Parameters
    ----------
    recovered : DataFrame
        Rows of `recovery`.

    Returns
    -------
    ndarray of str
        One verdict per map. An error of the pipeline comes first.
    """
    rand = recovered["adjusted Rand"]
    none_differs = recovered["clusters that differ"] == 0
    return np.select(
        [recovered.pipeline > 1e-6, rand.isna() & none_differs, rand == 1],
        [
            "the pipeline errs",
            "no cluster differs, as in the ground truth",
            "clusters of the ground truth",
        ],
        default="not all clusters of the ground truth",
    )


def compare(
    means: Mapping[ModelVersion, pd.DataFrame],
    ratings: Mapping[ModelVersion, pd.DataFrame],
    labels: Mapping[ModelVersion, pd.Series],
    tests: Mapping[ModelVersion, pd.DataFrame],
    incomplete: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare each map of a calibrant with the ground truth.

    Parameters
    ----------
    means, ratings, labels, tests : mapping
        By model and version: the `group_means`, the ratings, the cluster of each group, and the
        tests of these clusters with their ``finding``.
    incomplete : {"drop", "mean"}
        As in `round_scores`.

    Returns
    -------
    of_groups : DataFrame
        Index ``model``, ``version`` and ``group``; the columns of `sides`.
    of_maps : DataFrame
        ``model``, ``version``, the numbers of `recovery` and the ``verdict``. Both tables have no
        row if no map is of a calibrant.
    """
    of_groups = {}
    rows = []
    for key, of_map in labels.items():
        model, version = key
        if not is_calibrant(model):
            continue

        ground_truth = GroundTruth(ground_truth_file(model))
        both = sides(ground_truth, means[key])
        # The ground-truth ratings become scores and means in the same way as the model's ratings.
        through = ground_truth_map(ground_truth, ratings[key], version, incomplete)
        numbers = recovery(both, through, of_map, tests[key])
        of_groups[key] = both
        rows.append({"model": model, "version": version, **numbers})

    if not rows:
        return pd.DataFrame(), pd.DataFrame()
    of_maps = pd.DataFrame(rows)
    of_maps["verdict"] = verdicts(of_maps)
    return pd.concat(of_groups, names=["model", "version"]), of_maps
