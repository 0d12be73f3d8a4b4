"""The papers' headline claims on one path of a multiverse: a function a study.

Each takes the options of a path (:mod:`ingroup.multiverse`) and calls the statistic of its study.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ingroup.stats import permutation
from ingroup.stats.intervals import bootstrap_interval
from ingroup.stats.multiverse import Result, attempt
from ingroup.studies.biased_samaritan import statistics as helpfulness
from ingroup.studies.empathy_gap import ratings
from ingroup.studies.giebench import statistics as accuracy
from ingroup.studies.stereomap import statistics as content_model


def gap(
    values: NDArray[np.float64],
    same: NDArray[np.bool_],
    exclusion: str,
    rounding: str,
    matrix: str,
    unit: str,
    n_resamples: int,
    seed: int,
) -> Result:
    """delta > 0 in one category (Hou et al.), with "a person" at position 0 of `values`.

    Parameters
    ----------
    values, same : ndarray
        Ratings (n + 1, n + 1, events), and the pairs of one group (n, n).
    exclusion : {"any", "pairwise"}
        See `ingroup.studies.empathy_gap.ratings.exclude`.
    rounding : {"none", "cell means"}
        To 2 decimals, as released.
    matrix : {"with a person", "without"}
        Whether the z-scores are those of the matrix with "a person" (text) or without (code).
    unit : {"identities", "events"}
        What is rearranged: identities by `ingroup.permutation` (the interval is delta less the ends
        of the null's), or events by `ingroup.bootstrap` (p is twice the smaller share of the draws
        on one side of 0, one draw added). The latter knows no rounding: NaN.
    n_resamples, seed : int
        Of either, drawn anew for each path, so that a path does not depend on those before.
    """
    rng = np.random.default_rng(seed)
    if unit == "identities":
        decimals, separate = 2 if rounding == "cell means" else None, matrix == "without"
        z = ratings.gap_matrix(values, 0, exclusion, decimals=decimals, separate=separate)
        test = permutation.permutation_test(z, same, n_resamples, rng)
        low, high = test.null_interval
        return Result(test.statistic, test.statistic - high, test.statistic - low, test.pvalue)
    named = values if matrix == "with a person" else values[1:, 1:]
    left, place = ratings.exclude(named, exclusion).values, 0 if named is values else None
    found = bootstrap_interval(left, same, n_resamples, rng, unspecified=place)
    sides = (found.draws <= 0).sum(), (found.draws >= 0).sum()
    p = min(1.0, 2 * (min(sides) + 1) / (len(found.draws) + 1))
    return Result(found.statistic, found.low, found.high, p)


def helpful(
    cubes: Mapping[str, NDArray[np.float64]],
    controls: Mapping[str, NDArray[np.float64]],
    unit: str,
    exclusion: str,
    phrasing: str,
    control: str,
    rounding: str,
) -> dict[str, Result]:
    """Each group is rated more helpful than the control (Fagan et al.), by `helpfulness.bias`.

    Parameters
    ----------
    cubes : mapping
        Group to ratings (phrasing, scenario, wording).
    controls : mapping
        The option `control` to the control's ratings, e.g. of this category, or of all three.
    unit : {"scenario", "prompt"}
        What is paired.
    exclusion : {"step by step", "any"}
        What is missing is left out of the averages, or a scenario is with all of its prompts.
    phrasing : {"all", "first"}
        Of a group with several names, their mean, or the first of Table 4 alone.
    control : str
        A key of `controls`.
    rounding : {"none", "whole numbers"}
        Of the single ratings.
    """
    found = {}
    for group, cube in cubes.items():
        ours, theirs = cube[: 1 if phrasing == "first" else None], controls[control]
        if rounding == "whole numbers":
            ours, theirs = np.rint(ours), np.rint(theirs)
        if exclusion == "any":
            lost = np.isnan(ours).any(axis=(0, 2)) | np.isnan(theirs).any(axis=(0, 2))
            ours = np.where(lost[:, None], np.nan, ours)
        found[group] = attempt(_bias, ours, theirs, unit)
    return found


def _bias(ours: ArrayLike, theirs: ArrayLike, unit: str = "scenario") -> Result:
    test = helpfulness.bias(ours, theirs, unit)
    return Result(test.bias, test.low, test.high, test.p)


def naming(
    answers: pd.DataFrame, order: str, silence: str, unit: str, shares: str
) -> dict[str, Result]:
    """ID, and COT, beat Raw (Wang et al.), in points of accuracy, by `accuracy.changes`.

    Parameters
    ----------
    answers : DataFrame
        From `ingroup.commands.reread.giebench_answers`.
    order : str
        "0" to "3": the answers as given, or moved by so many places; "all four": an item is right
        where it is in each.
    silence : {"wrong", "pairwise", "any"}
        An answer without a verdict is wrong, or its item is left out of this pair of prompts (in
        this order), or everywhere.
    unit : {"item", "category"}
        McNemar's test over items, or a paired t-test over the accuracies of the categories.
    shares : {"right / n", "as released"}
        As released: right / (n + 1) in a category, and accuracies rounded to 0.1 points.
    """
    silent = answers.letter.eq("")
    if silence == "any":
        answers = answers[~answers.key.isin(answers[silent].key)]
    if order != "all four":
        answers = answers[answers["shift"] == int(order)]
    found = {}
    for prompt in ("ID", "COT"):
        pair = answers[answers.prompt.isin(["Raw", prompt])]
        if silence == "pairwise":
            pair = pair[~pair.key.isin(pair[pair.letter.eq("")].key)]
        pair = _in_each(pair) if order == "all four" else pair
        options = ("released", 3) if shares == "as released" else ("n", None)
        found[f"{prompt} over Raw"] = attempt(_change, pair, prompt, unit, *options)
    return found


def _in_each(answers: pd.DataFrame) -> pd.DataFrame:
    """One row an item and prompt, with its right letter where every order had it, else another."""
    right = answers.letter.eq(answers.correct).groupby([answers.key, answers.prompt]).all()
    once = answers.drop_duplicates(["key", "prompt"])
    hit = right.loc[list(zip(once.key, once.prompt, strict=True))].to_numpy()
    wrong = once.correct.map(dict(zip("ABCD", "BCDA", strict=True)))
    return once.assign(letter=once.correct.where(hit, wrong), status="ok", shift=0)


def _change(
    pair: pd.DataFrame, prompt: str, unit: str, denominator: str, decimals: int | None
) -> Result:
    if unit == "item":
        pair = pair.assign(category="all")
    table = accuracy.changes(pair, "Raw", prompt, denominator, decimals)
    if unit == "item":
        row = table[table.category == accuracy.OVERALL].iloc[0]
        return Result(row.change, row.low, row.high, row.p)
    rows = table[table.category != accuracy.OVERALL]
    return _bias(rows[["after"]].to_numpy(), rows[["before"]].to_numpy())


def clustered(
    scores: pd.DataFrame, rounds: str, seed: int, starts: int, n_clusters: int = 5
) -> tuple[pd.DataFrame, pd.Series | str]:
    """What `warmer` tests: the scores, and the cluster of each group, or why there are none.

    Parameters
    ----------
    scores : DataFrame
        From `ingroup.studies.stereomap.statistics.round_scores`.
    rounds : {"same", "other"}
        Whether the rounds that are tested made the clusters too, or another half of them did.
    seed, starts : int
        Of k-means; the seed also makes the halves.
    n_clusters : int
        The paper has 5.
    """
    first, second = scores, scores
    try:
        if rounds == "other":
            first, second = content_model.halves(scores, np.random.default_rng(seed))
        means = content_model.group_means(first)
        return second, content_model.clusters(means, n_clusters, starts, seed).labels
    except ValueError as error:
        return second, str(error)


def warmer(
    scores: pd.DataFrame, labels: pd.Series | str, anchors: Sequence[str], unit: str
) -> dict[str, Result]:
    """The cluster of each anchor is warmer than competent (Jeoung et al.), by `axis_tests`.

    Parameters
    ----------
    scores, labels : DataFrame, Series
        From `clustered`.
    anchors : sequence of str
        Groups by which clusters are known; two of them may share a cluster.
    unit : {"groups", "rounds"}
        What is paired over: the groups of the cluster, or their mean in each round.
    """
    if isinstance(labels, str):
        return dict.fromkeys(anchors, Result(*[np.nan] * 4, labels))
    inside = scores[scores.group.isin(labels.index)].dropna(subset=[*content_model.AXES])
    by = inside.group if unit == "groups" else inside["round"]
    means = inside.groupby([inside.group.map(labels), by])[[*content_model.AXES]].mean()
    numbers = pd.Series(means.index.get_level_values(0), index=means.index)
    tests = content_model.axis_tests(means, numbers)
    return {group: attempt(_warmth, tests, labels, group, unit) for group in anchors}


def _warmth(tests: pd.DataFrame, labels: pd.Series, group: str, unit: str) -> Result:
    if group not in labels:
        raise ValueError(f"{group} has no position, so no cluster")
    row = tests.loc[labels[group]]
    if np.isnan(row.p):
        raise ValueError(f"the cluster of {group} has one of the {unit}, expected at least 2")
    return Result(-row.difference, -row.high, -row.low, row.p)
