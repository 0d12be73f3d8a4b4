"""Group profiles of StereoMap: warmth and competence of groups, and claims tested on every path."""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup import published
from ingroup.design import Block
from ingroup.families import families
from ingroup.inference import Job, rated_by
from ingroup.inference.reading import Reading
from ingroup.sizes import n_items, n_prompts
from ingroup.stats.effects import relative_to_others
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.studies.stereomap import clustering, design, statistics, stimuli
from ingroup.studies.stereomap.answers import load, rating_table
from ingroup.studies.stereomap.ground_truth import GroundTruth
from ingroup.studies.stereomap.statistics import AXES
from ingroup.synthesis import PlannedTest, View, ways_to_read

MEASURES = ("warmth", "competence")
EXCHANGED = "axes exchanged"
OVER_GROUPS = "paired t over groups"
OVER_ROUNDS = "paired t over rounds"
N_EXCHANGED_MAPS = 499  # exchanged maps of a path


def views(
    parameters: Mapping[str, Any],
    model: str,
    groups: Mapping[str, str],
    file: Path | None = None,
) -> list[View]:
    """Compute the warmth and competence of each shared group in each round.

    `ingroup.synthesis` explains views.

    Parameters
    ----------
    parameters : mapping
        The notebook's parameters.
    model : str
        Name of the model.
    groups : mapping
        The shared group of each group of this study.
    file : Path, optional
        A ``ground_truth.yaml``, whose mean ratings stand in one round in place of the model's.

    Returns
    -------
    list of View
        One per measure, warmth and competence.
    """
    words = published.load("stereomap", 4)
    ratings = _ratings(parameters, model)
    if file:
        ground_truth = GroundTruth(file)
        ratings = ratings.loc[ratings["round"] == 1, ["group", "round"]]
        for word in words.word:
            ratings[word] = [
                ground_truth.rating(group, design.FIRST_PROMPT, word) for group in ratings.group
            ]
    scores = statistics.round_scores(ratings, words, parameters["INCOMPLETE"])

    views = []
    for measure in MEASURES:
        axis = measure.capitalize()
        axis_words = words.word[words.family == axis]
        sd = float(np.nanstd(ratings[list(axis_words)]))
        views.append(View(measure, position(scores, axis, groups), sd))
    return views


def position(scores: pd.DataFrame, axis: str, groups: Mapping[str, str]) -> pd.DataFrame:
    """Compute warmth or competence relative to all other groups that were asked, in points.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.
    axis : {"Warmth", "Competence"}
        The score to take.
    groups : mapping
        The shared group of each group of this study.

    Returns
    -------
    DataFrame
        Rounds by shared groups, NaN where a round has no score. A shared group has the mean of its
        groups.
    """
    by_round = scores.pivot(index="round", columns="group", values=axis)
    table = relative_to_others(by_round)
    present = [name for name in groups if name in table]
    renamed = table[present].rename(columns=groups)
    # The table is turned, as pandas averages groups of rows, and turned back.
    return renamed.T.groupby(level=0, sort=False).mean().T


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Compute the warmth and competence of each group, and their difference.

    Parameters
    ----------
    parameters : mapping
        The notebook's parameters, in capitals.
    model : str
        A name of the parameter ``MODELS``.

    Returns
    -------
    DataFrame
        One row per group, in points: the columns ``Competence`` and ``Warmth``, and ``Warmth minus
        Competence``.
    """
    means = _group_means(parameters, model)
    means = means[AXES]
    difference = means.Warmth - means.Competence
    return means.join(difference.rename("Warmth minus Competence"))


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[PlannedTest]:
    """Plan the test of competence minus warmth over the groups of a cluster of mean size.

    Parameters
    ----------
    planned : mapping
        The notebook's parameters, with the planned groups and clusters.
    recorded : mapping
        The parameters of recorded answers.
    model : str
        The model whose recorded answers give the spread and the null.

    Returns
    -------
    list of Tested
        One test, that of exchanged axes. Its null is that of the recorded map, which may have
        another number of groups.
    """
    means = _group_means(recorded, model)
    n_clusters = planned["CLUSTERS"]
    groups = planned["GROUPS"] or stimuli.names()
    n_groups = len(groups) // n_clusters

    level = families()["stereomap"].level
    # The seed is fixed, so that a plan stays the same.
    null = clustering.exchange_null(means, n_clusters, np.random.default_rng(0))
    smallest_p = clustering.exchange_floor(null, n_groups)
    floor = f"On the stored map {n_groups} groups cannot give a p below {smallest_p:.2g}."
    if smallest_p >= level:
        needed = clustering.groups_for_exchange(null, level)
        floor += f" It takes {needed} groups to reach {level:g}."
    return [
        PlannedTest(
            effect="points between warmth and competence",
            items="groups of a cluster",
            n=n_groups,
            name="axes exchanged, all clusters together",
            level=level,
            smallest=clustering.smallest_standardised_difference(null, n_groups, level),
            spread=_spread_within(means, n_clusters),
            floor=floor,
        )
    ]


def _spread_within(means: pd.DataFrame, n_clusters: int) -> float:
    """Pool the standard deviation of competence minus warmth within the clusters of a map.

    The result is NaN if the map has too few positions for the clusters.
    """
    partition = clustering.clusters(means, n_clusters)
    if partition is None:
        return float("nan")

    labels = partition.labels
    clustered_means = means.loc[labels.index]
    differences = clustered_means.Competence - clustered_means.Warmth
    cluster_mean = differences.groupby(labels).transform("mean")
    within = differences - cluster_mean

    sum_of_squares = (within**2).sum()
    degrees_of_freedom = len(within) - labels.nunique()
    return float(np.sqrt(sum_of_squares / degrees_of_freedom))


def scores_and_clusters(
    scores: pd.DataFrame, rounds: str, seed: int, starts: int, n_clusters: int
) -> tuple[pd.DataFrame, pd.Series | str]:
    """Cluster the groups, and select the scores that `claims` tests.

    Parameters
    ----------
    scores : DataFrame
        From `round_scores`.
    rounds : str
        "other" makes the clusters from one half of the rounds and leaves the other half to the
        test. Otherwise the same rounds serve for both.
    seed : int
        Seed of the halves and of k-means.
    starts : int
        Starts of k-means.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    scores : DataFrame
        The scores to test.
    labels : Series or str
        The cluster of each group, or a sentence that says why there are none.
    """
    to_cluster = scores
    to_test = scores
    if rounds == "other":
        try:
            to_cluster, to_test = clustering.halves(scores, np.random.default_rng(seed))
        except ValueError as error:
            return scores, str(error)

    means = statistics.group_means(to_cluster)
    partition = clustering.clusters(means, n_clusters, starts, seed)
    if partition is None:
        return to_test, f"fewer than {n_clusters} distinct positions"
    return to_test, partition.labels


def claims(
    answers: tuple[pd.DataFrame, pd.Series | str],
    test: str,
    anchors: Sequence[str],
    n_clusters: int = 5,
    seed: int = 0,
) -> dict[str, Result]:
    """Test whether the cluster of each anchor is warmer than competent (Jeoung et al.).

    Parameters
    ----------
    answers : tuple
        From `scores_and_clusters`.
    test : str
        `EXCHANGED`: the axes are exchanged in random groups, which are clustered anew. Or the
        paper's paired t-test: `OVER_GROUPS` of the cluster, or `OVER_ROUNDS`, whose pairs are the
        means of its groups in each round.
    anchors : sequence of str
        Names of groups. Two of them may share a cluster.
    n_clusters : int
        Clusters that each draw of `EXCHANGED` makes.
    seed : int
        Seed of the draws of `EXCHANGED`.

    Returns
    -------
    dict
        The result of each anchor: warmth minus competence in points, its interval, p and the least
        p. The result has a reason instead if the anchor has no position, or if its cluster has a
        single group or round.
    """
    scores, labels = answers
    # A sentence in place of labels is the reason of every claim.
    if isinstance(labels, str):
        return dict.fromkeys(anchors, Result(reason=labels))

    has_cluster = scores.group.isin(labels.index)
    clustered_scores = scores[has_cluster].dropna(subset=AXES)
    cluster = clustered_scores.group.map(labels)

    # A pair of competence and warmth belongs to a group of the cluster, or to a round.
    unit = "rounds" if test == OVER_ROUNDS else "groups"
    pair = clustered_scores["round"] if unit == "rounds" else clustered_scores.group
    means = clustered_scores.groupby([cluster, pair])[AXES].mean()

    tests = _tests(means, test, n_clusters, seed)
    return {group: attempt(_warmer, group, labels, tests, unit) for group in anchors}


def _tests(means: pd.DataFrame, test: str, n_clusters: int, seed: int) -> pd.DataFrame:
    """Test each cluster, and return the numbers of its `Result`, one row per cluster.

    The index of `means` has the cluster first, then the group or the round.
    """
    clusters = pd.Series(means.index.get_level_values(0), index=means.index)
    if test == EXCHANGED:
        # Without labels and in one order, equal maps find their null in the cache.
        points = means.droplevel(0).sort_index().to_numpy()
        null = _null(points.tobytes(), len(points), n_clusters, seed)
        tests = clustering.axis_tests(means, clusters, null=null)
        p = tests.p_exchanged
        least = tests.p_least
    else:
        tests = clustering.axis_tests(means, clusters)
        p = tests.p
        # Where all differences are the same, the paired test is a sign test.
        least = np.where(np.isinf(tests.statistic), 2.0 ** (1 - tests.n), 0.0)

    # The tests take competence minus warmth, the claim is about the opposite difference.
    return pd.DataFrame(
        {
            "estimate": -tests.difference,
            "low": -tests.high,
            "high": -tests.low,
            "p": p,
            "least": least,
        }
    )


def _warmer(group: str, labels: pd.Series, tests: pd.DataFrame, unit: str) -> Result:
    """Return the result of the cluster of a group: warmth minus competence.

    Raise a ValueError if the group has no cluster, or if the cluster has no test.
    """
    if group not in labels:
        raise ValueError(f"{group} has no position, so no cluster")

    row = tests.loc[labels[group]]
    if np.isnan(row.p):
        raise ValueError(f"the cluster of {group} has one of the {unit}, expected at least 2")
    return Result(**row)


@lru_cache(maxsize=64)
def _null(points: bytes, n: int, n_clusters: int, seed: int) -> NDArray:
    """Draw `exchange_null` for n points, once for all paths on the same map."""
    # The cache needs arguments that can be hashed: bytes can, an array cannot.
    positions = np.frombuffer(points).reshape(n, len(AXES))
    means = pd.DataFrame(positions, columns=AXES)
    rng = np.random.default_rng(seed)
    return clustering.exchange_null(means, n_clusters, rng, N_EXCHANGED_MAPS)


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """Test `claims` on every path, by `evaluate`.

    Parameters
    ----------
    parameters : mapping
        The notebook's parameters.
    model : str
        Name of the model.
    options : mapping
        CLUSTER_SEEDS, how many seeds of clusters are tried, and SEED, that of the draws.

    Returns
    -------
    DataFrame
        As returned by `evaluate`. A claim is named by its anchor and EXTENDED, the only prompts
        that it is about.

    Notes
    -----
    The p of exchanged axes is of all clusters together, which is their correction. It is of the
    rounds that made the clusters, and has the level of ``data/families.yaml``. The paper's paired
    t-test has ALPHA. Where a model answered a single round, there is no other half of the rounds
    and no test over rounds: these paths are left out, and ``rounds`` is "the only one".
    """
    words = published.load("stereomap", 4)
    words = words[words.family.isin(AXES)]
    readings = ways_to_read(_jobs(parameters, model))
    ratings = {name: _ratings(parameters, model, way) for name, way in readings.items()}
    scores = {}
    for name, of_reading in ratings.items():
        for rule in ("drop", "mean"):
            scores[name, rule] = statistics.round_scores(of_reading, words, rule)

    # Groups and rounds are the same in every reading.
    any_ratings = next(iter(ratings.values()))
    rated_groups = set(any_ratings.group)
    anchors = [group for group in stimuli.ANCHORS["EXTENDED"] if group in rated_groups]
    n_clusters = parameters["CLUSTERS"]

    def read(reading, incomplete, **path):
        return scores_and_clusters(scores[reading, incomplete], n_clusters=n_clusters, **path)

    tested = partial(claims, anchors=anchors, n_clusters=n_clusters, seed=options["SEED"])
    if any_ratings["round"].nunique() > 1:
        exchanged_rounds = ["same"]
        paired_rounds = ["same", "other"]
        paired_tests = [OVER_GROUPS, OVER_ROUNDS]
    else:
        exchanged_rounds = ["the only one"]
        paired_rounds = ["the only one"]
        paired_tests = [OVER_GROUPS]

    choices: dict[str, Sequence[Any]] = {
        "reading": list(readings),
        "incomplete": ["drop", "mean"],
        "rounds": exchanged_rounds,
        "seed": list(range(options["CLUSTER_SEEDS"])),
        "starts": [1, 10],
    }
    # There are two tables, as the two kinds of test have other rounds, levels and corrections.
    exchanged = evaluate(
        choices,
        read,
        {"test": [EXCHANGED]},
        tested,
        alpha=families()["stereomap"].level,
        # This p is of all clusters together already.
        corrections=["none"],
    )
    exchanged["correction"] = "all clusters together"

    choices["rounds"] = paired_rounds
    paired = evaluate(choices, read, {"test": paired_tests}, tested, parameters["ALPHA"])

    table = pd.concat([exchanged, paired], ignore_index=True)
    return table.assign(claim=table.claim + " (EXTENDED)")


def _group_means(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Compute the mean scores of each group from a model's EXTENDED ratings."""
    words = published.load("stereomap", 4)
    ratings = _ratings(parameters, model)
    scores = statistics.round_scores(ratings, words, parameters["INCOMPLETE"])
    return statistics.group_means(scores)


def _jobs(parameters: Mapping[str, Any], model: str) -> list[Job]:
    """Select the jobs that rate this model by the paper's form of the EXTENDED prompts."""
    paper = stimuli.ablations()[0]
    jobs = []
    for job in design.jobs(parameters):
        if job.labels["version"] == "EXTENDED" and job.labels["ablation"] == paper:
            jobs.append(job)
    return rated_by(model, jobs)


def _ratings(
    parameters: Mapping[str, Any], model: str, reading: Reading | None = None
) -> pd.DataFrame:
    """Load the ratings of the EXTENDED prompts: ``group``, ``round`` and a column per word."""
    jobs = _jobs(parameters, model)
    tables = [load(job, parameters["PARSING"], reading) for job in jobs]
    return rating_table(pd.concat(tables))


def items(block: Block) -> list[Hashable]:
    """List the items of a block of the design, its groups.

    Parameters
    ----------
    block : Block
        A block of the study's design.

    Returns
    -------
    list of hashable
        The group of each prompt.
    """
    return [group_prompt.group for group_prompt in block.factors["inquiry"]]


def extent(jobs: Sequence[Job], printed: Mapping[str, str]) -> tuple[int, int]:
    """Count the paper's prompts for a model, and its groups.

    Parameters
    ----------
    jobs : sequence of Job
        All jobs of the whole design, for one model.
    printed : mapping
        The numbers in the paper's text, by their names in ``data/judgements/claims.csv``.

    Returns
    -------
    tuple of int
        The prompts and the items.
    """
    # Later rounds repeat the first, and the paper prints how many `runs` there are.
    first_round = [job for job in jobs if job.labels["round"] == 1]
    # Ablations shorten the paper's prompts, so they are no prompts of its own.
    unabridged = [job for job in first_round if "paper" in job.labels["ablation"]]
    n_runs = int(printed["runs"])
    return n_prompts(unabridged) * n_runs, n_items(jobs)
