"""The fourth study as a lens: how warm and able groups are, and which clusters on which paths."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup import published
from ingroup.families import families
from ingroup.inference import Call, rated_by
from ingroup.inference.reading import Reading
from ingroup.stats.effects import relative
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.studies.stereomap import clustering, design, statistics, stimuli
from ingroup.studies.stereomap.answers import load, rating_table
from ingroup.studies.stereomap.planted import Planted
from ingroup.studies.stereomap.statistics import AXES
from ingroup.synthesis import Tested, View, ways_to_read

MEASURES = ("warmth", "competence")
EXCHANGED = "axes exchanged"
OVER_GROUPS = "paired t over groups"
OVER_ROUNDS = "paired t over rounds"
DRAWS = 499  # exchanged maps of a path


def portrait(
    parameters: Mapping[str, Any], model: str, groups: Mapping[str, str], file: Path | None = None
) -> list[View]:
    """`position` by round on each axis; see :mod:`ingroup.synthesis`."""
    table, words, views = _ratings(parameters, model), published.load("stereomap", 4), []
    if file:
        table, said = table.loc[table["round"] == 1, ["group", "round"]], Planted(file)
        for word in words.word:
            table[word] = [said.rating(group, design.FIRST, word) for group in table.group]
    scores = statistics.round_scores(table, words, parameters["INCOMPLETE"])
    for measure in MEASURES:
        axis = measure.capitalize()
        sd = float(np.nanstd(table[list(words.word[words.family == axis])]))
        views.append(View(measure, position(scores, axis, groups), sd))
    return views


def position(scores: pd.DataFrame, axis: str, groups: Mapping[str, str]) -> pd.DataFrame:
    """Warmth or competence relative to all other groups that were asked, in points.

    Rounds by shared groups, NaN where a round has no score. `scores` are from `round_scores`.
    """
    table = relative(scores.pivot(index="round", columns="group", values=axis))
    known = [name for name in groups if name in table]
    return table[known].rename(columns=groups).T.groupby(level=0, sort=False).mean().T


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Warmth and competence of each group, and their difference, in points: groups by scores."""
    means = _group_means(parameters, model)[list(AXES)]
    difference = (means.Warmth - means.Competence).rename("Warmth minus Competence")
    return means.join(difference)


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[Tested]:
    """Competence minus warmth over the groups of a cluster of mean size, the axes exchanged.

    The null is that of the recorded map, as far as it has as many clusters and groups.
    """
    means = _group_means(recorded, model)
    clusters = planned["CLUSTERS"]
    level = families()["stereomap"].level
    null = clustering.exchange_null(means, clusters, np.random.default_rng(0))
    n = len(planned["GROUPS"] or stimuli.names()) // clusters
    least = clustering.exchange_floor(null, n)
    floor = f"On the recorded map {n} groups cannot give a p below {least:.2g}."
    if least >= level:
        needed = clustering.groups_for_exchange(null, level)
        floor += f" It takes {needed} groups to reach {level:g}."
    return [
        Tested(
            effect="points between warmth and competence",
            items="groups of a cluster",
            n=n,
            name="axes exchanged, all clusters together",
            level=level,
            smallest=clustering.smallest_difference(null, n, level),
            spread=_spread_within(means, clusters),
            floor=floor,
        )
    ]


def _spread_within(means: pd.DataFrame, n_clusters: int) -> float:
    """Standard deviation of competence minus warmth within the clusters of a map, pooled."""
    found = clustering.clusters(means, n_clusters)
    if found is None:
        return float("nan")
    differences = (means[AXES[0]] - means[AXES[1]]).loc[found.labels.index]
    within = differences - differences.groupby(found.labels).transform("mean")
    freedom = len(within) - found.labels.nunique()
    return float(np.sqrt((within**2).sum() / freedom))


def clustered(
    scores: pd.DataFrame, rounds: str, seed: int, starts: int, n_clusters: int
) -> tuple[pd.DataFrame, pd.Series | str]:
    """What `claims` tests: the scores, and the cluster of each group, or why there are none.

    Clusters are made by the "same" `rounds` or an "other" half; `seed` is of halves and k-means.
    """
    first, second = scores, scores
    try:
        if rounds == "other":
            first, second = clustering.halves(scores, np.random.default_rng(seed))
    except ValueError as error:
        return second, str(error)
    found = clustering.clusters(statistics.group_means(first), n_clusters, starts, seed)
    return second, found.labels if found else f"fewer than {n_clusters} distinct positions"


def claims(
    answers: tuple[pd.DataFrame, pd.Series | str], test: str, anchors: Sequence[str],
    n_clusters: int = 5, seed: int = 0,
) -> dict[str, Result]:  # fmt: skip
    """The cluster of each anchor is warmer than competent (Jeoung et al.).

    `answers` are from `clustered`. The `test` is `EXCHANGED`: the axes are exchanged in random
    groups, which are clustered anew (drawn from `seed`). Or it is the paper's paired t-test,
    `OVER_GROUPS` of the cluster or `OVER_ROUNDS`, whose pairs are the means of its groups in each
    round. Two of the `anchors` may share a cluster.
    """
    scores, labels = answers
    if isinstance(labels, str):
        return dict.fromkeys(anchors, Result(reason=labels))

    inside = scores[scores.group.isin(labels.index)].dropna(subset=AXES)
    unit = "rounds" if test == OVER_ROUNDS else "groups"
    by = inside["round"] if unit == "rounds" else inside.group
    means = inside.groupby([inside.group.map(labels), by])[AXES].mean()
    numbers = pd.Series(means.index.get_level_values(0), index=means.index)
    null: Sequence[float] = ()
    if test == EXCHANGED:
        points = means.droplevel(0).sort_index().to_numpy()  # labels change no draw
        null = _null(points.tobytes(), len(points), n_clusters, seed)
    tests = clustering.axis_tests(means, numbers, null=null)
    p = tests.p_exchanged if test == EXCHANGED else tests.p
    # Where all differences are the same, the paired test is a sign test.
    of_signs = np.where(np.isinf(tests.statistic), 2.0 ** (1 - tests.n), 0.0)
    least = tests.p_least if test == EXCHANGED else pd.Series(of_signs, tests.index)

    def warmer(group: str) -> Result:
        if group not in labels:
            raise ValueError(f"{group} has no position, so no cluster")
        row = tests.loc[labels[group]]
        if np.isnan(row.p):
            raise ValueError(f"the cluster of {group} has one of the {unit}, expected at least 2")
        numbers = (-row.difference, -row.high, -row.low, p[labels[group]])
        return Result(*numbers, least=least[labels[group]])

    return {group: attempt(warmer, group) for group in anchors}


@lru_cache(maxsize=64)
def _null(points: bytes, n: int, n_clusters: int, seed: int) -> NDArray[np.float64]:
    """`exchange_null` of n points, drawn once for all paths on the same map."""
    means = pd.DataFrame(np.frombuffer(points).reshape(n, len(AXES)), columns=AXES)
    rng = np.random.default_rng(seed)
    return clustering.exchange_null(means, n_clusters, rng, DRAWS)


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; of the options CLUSTER_SEEDS and SEED are taken.

    A claim is named by its anchor and EXTENDED, the only prompts that it is of. The p of exchanged
    axes is of all clusters together, which is their correction; it is of the rounds that made the
    clusters, and has the level of ``data/families.yaml``. The paper's paired t-test has ALPHA.
    Where a model answered a single round there is no other half of the rounds and no test over
    rounds: these paths are left out, and ``rounds`` is "the only one".
    """
    words = published.load("stereomap", 4)
    words = words[words.family.isin(AXES)]
    ways = ways_to_read(_calls(parameters, model))
    scores = {}
    for name, way in ways.items():
        table = _ratings(parameters, model, way)
        for rule in ("drop", "mean"):
            scores[name, rule] = statistics.round_scores(table, words, rule)
    anchors = [g for g in stimuli.ANCHORS["EXTENDED"] if g in set(table.group)]

    def read(reading, incomplete, **path):
        return clustered(scores[reading, incomplete], n_clusters=parameters["CLUSTERS"], **path)

    several = table["round"].nunique() > 1
    reading = {
        "reading": list(ways),
        "incomplete": ["drop", "mean"],
        "rounds": ["same"] if several else ["the only one"],
        "seed": list(range(options["CLUSTER_SEEDS"])),
        "starts": [1, 10],
    }
    k = parameters["CLUSTERS"]
    tested = partial(claims, anchors=anchors, n_clusters=k, seed=options["SEED"])
    level = families()["stereomap"].level
    exchanged = evaluate(reading, read, {"test": [EXCHANGED]}, tested, level, corrections=["none"])
    exchanged["correction"] = "all clusters together"

    reading["rounds"] = ["same", "other"] if several else ["the only one"]
    paired = {"test": [OVER_GROUPS, OVER_ROUNDS] if several else [OVER_GROUPS]}
    printed = evaluate(reading, read, paired, tested, parameters["ALPHA"])
    printed["result"] += exchanged.result.max() + 1
    table = pd.concat([exchanged, printed], ignore_index=True)
    return table.assign(claim=table.claim + " (EXTENDED)")


def _group_means(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Mean scores of each group, as :func:`~.statistics.group_means` has them."""
    words = published.load("stereomap", 4)
    scores = statistics.round_scores(_ratings(parameters, model), words, parameters["INCOMPLETE"])
    return statistics.group_means(scores)


def _calls(parameters: Mapping[str, Any], model: str) -> list[Call]:
    """What this model is rated by, under the EXTENDED prompts as the paper has them."""
    asked = {"version": "EXTENDED", "ablation": stimuli.ablations()[0]}.items()
    calls = (call for call in design.calls(parameters) if asked <= call.labels.items())
    return rated_by(model, calls)


def _ratings(
    parameters: Mapping[str, Any], model: str, reading: Reading | None = None
) -> pd.DataFrame:
    """Ratings of the EXTENDED prompts: ``group``, ``round``, the words."""
    calls = _calls(parameters, model)
    tables = [load(call, parameters["PARSING"], reading) for call in calls]
    return rating_table(pd.concat(tables))
