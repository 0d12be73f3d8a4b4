"""The fourth study as a lens: how warm and able groups are, and which clusters on which paths."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ingroup import published
from ingroup.stats.effects import relative
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.studies.stereomap import design, stimuli
from ingroup.studies.stereomap.answers import load, rating_table
from ingroup.studies.stereomap.planted import Planted
from ingroup.studies.stereomap.statistics import (
    AXES, axis_tests, clusters, group_means, halves, round_scores,
)  # fmt: skip
from ingroup.synthesis import View

MEASURES = ("warmth", "competence")
ANCHORS = ("Homeless", "Lower-class", "Lawyers", "Elderly", "Nurses")


def portrait(
    parameters: Mapping[str, Any],
    model: str,
    groups: Mapping[str, str],
    planted: Path | None = None,
) -> list[View]:
    """`position` by round on each axis; `groups` maps a name of the study to a shared group."""
    answers, words = ratings(parameters, model), published.load("stereomap", 4)
    if planted:
        answers, said = answers.loc[answers["round"] == 1, ["group", "round"]], Planted(planted)
        for word in words.word:
            answers[word] = [said.rating(group, design.FIRST, word) for group in answers.group]
    scores = round_scores(answers, words, parameters["INCOMPLETE"])
    return [
        View(
            measure,
            position(scores, axis := measure.capitalize(), groups),
            float(np.nanstd(answers[list(words.word[words.family == axis])])),
        )
        for measure in MEASURES
    ]


def ratings(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Ratings of the EXTENDED prompts as the paper has them: ``group``, ``round``, the words."""
    asked = {"version": "EXTENDED", "ablation": stimuli.ablations()[0]}
    calls = [call for call in design.calls(parameters) if call.model == model]
    calls = [call for call in calls if asked.items() <= call.labels.items()]
    return rating_table(pd.concat(map(load, calls)))


def position(scores: pd.DataFrame, axis: str, groups: Mapping[str, str]) -> pd.DataFrame:
    """Warmth or competence relative to all other groups that were asked, in points.

    Rounds by groups, NaN where a round has no score. `scores` are from `round_scores`.
    """
    table = relative(scores.pivot(index="round", columns="group", values=axis))
    known = [name for name in groups if name in table]
    return table[known].rename(columns=groups).T.groupby(level=0, sort=False).mean().T


def clustered(
    scores: pd.DataFrame, rounds: str, seed: int, starts: int, n_clusters: int
) -> tuple[pd.DataFrame, pd.Series | str]:
    """What `claims` tests: the scores, and the cluster of each group, or why there are none.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.
    rounds : {"same", "other"}
        Whether the rounds that are tested made the clusters too, or another half of them did.
    seed, starts, n_clusters : int
        Of k-means; the seed also makes the halves.
    """
    first, second = scores, scores
    try:
        if rounds == "other":
            first, second = halves(scores, np.random.default_rng(seed))
        return second, clusters(group_means(first), n_clusters, starts, seed).labels
    except ValueError as error:
        return second, str(error)


def claims(
    answers: tuple[pd.DataFrame, pd.Series | str], unit: str, anchors: Sequence[str] = ANCHORS
) -> dict[str, Result]:
    """The cluster of each anchor is warmer than competent (Jeoung et al.), by `axis_tests`.

    Parameters
    ----------
    answers : tuple
        From `clustered`.
    unit : {"groups", "rounds"}
        What is paired over: the groups of the cluster, or their mean in each round.
    anchors : sequence of str
        Groups by which clusters are known, those that were asked; two may share a cluster.
    """
    scores, labels = answers
    if isinstance(labels, str):
        return dict.fromkeys(anchors, Result(reason=labels))
    inside = scores[scores.group.isin(labels.index)].dropna(subset=[*AXES])
    by = inside.group if unit == "groups" else inside["round"]
    means = inside.groupby([inside.group.map(labels), by])[[*AXES]].mean()
    numbers = pd.Series(means.index.get_level_values(0), index=means.index)
    tests = axis_tests(means, numbers)
    return {group: attempt(_warmer, tests, labels, group, unit) for group in anchors}


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; of the options CLUSTER_SEEDS is taken."""
    table, words = ratings(parameters, model), published.load("stereomap", 4)
    words = words[words.family.isin(AXES)]
    scores = {rule: round_scores(table, words, rule) for rule in ("drop", "mean")}
    anchors = [group for group in ANCHORS if group in set(table.group)]

    def read(incomplete, **path):
        return clustered(scores[incomplete], n_clusters=parameters["CLUSTERS"], **path)

    reading = {
        "incomplete": list(scores),
        "rounds": ["same", "other"] if parameters["ROUNDS"] > 1 else ["same"],
        "seed": list(range(options["CLUSTER_SEEDS"])),
        "starts": [1, 10],
    }
    tested = partial(claims, anchors=anchors)
    return evaluate(reading, read, {"unit": ["groups", "rounds"]}, tested, parameters["ALPHA"])


def _warmer(tests: pd.DataFrame, labels: pd.Series, group: str, unit: str) -> Result:
    if group not in labels:
        raise ValueError(f"{group} has no position, so no cluster")
    row = tests.loc[labels[group]]
    if np.isnan(row.p):
        raise ValueError(f"the cluster of {group} has one of the {unit}, expected at least 2")
    return Result(-row.difference, -row.high, -row.low, row.p)
