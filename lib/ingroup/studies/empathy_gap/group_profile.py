"""Group profiles, first study: empathy that groups receive and give, and the gap on every path."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.design import Block
from ingroup.families import families
from ingroup.inference import Job, rated_by
from ingroup.parsing import Rule
from ingroup.sizes import n_items, n_prompts
from ingroup.stats.effects import (
    BootstrapInterval,
    bootstrap_interval,
    bootstrap_pvalue,
    relative_to_others,
)
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.stats.paired import nan_mean
from ingroup.stats.permutation import permutation_test
from ingroup.stats.power import (
    groups_for_permutation,
    permutation_floor,
    smallest_own_group_effect,
    smallest_paired_effect,
)
from ingroup.studies.empathy_gap import design, statistics, stimuli
from ingroup.studies.empathy_gap.answers import by_block, load_rounds
from ingroup.studies.empathy_gap.ground_truth import GroundTruth
from ingroup.synthesis import PlannedTest, View, rules, ways_to_read

MEASURES = ("empathy received", "empathy given")
CHOICES = {
    "exclusion": ["listwise", "pairwise"],  # see `exclude`
    "matrix": ["with a person", "without"],  # whose z-scores they are: the paper's way, or released
    "rounding": ["none", "cell means"],  # to 2 decimals, as released
    "unit": ["identities", "groups", "events"],  # rearranged by permutation, or by bootstrap
}


def views(
    parameters: Mapping[str, Any], model: str, groups: Mapping[str, str], file: Path | None = None
) -> list[View]:
    """Compute `empathy` in the first setting, as views for :mod:`ingroup.synthesis`.

    Parameters
    ----------
    parameters : mapping of str to any
        The parameters of the study's notebook.
    model : str
        A model of the notebook.
    groups : mapping of str to str
        The shared group of an identity. Other identities keep the study's own group.
    file : Path, optional
        A ``ground_truth.yaml``, whose answers are taken in place of stored answers.

    Returns
    -------
    list of View
        Two per category, one for each of `MEASURES`.
    """
    views = []
    for category, rounds in _first_setting(parameters, model).items():
        if file:
            ratings = GroundTruth(file).ratings(rounds[0].design.blocks[0])
        else:
            ratings = load_rounds(rounds, parameters["PARSING"]).values
        values = statistics.exclude(ratings, parameters["EXCLUSION"])

        people = stimuli.identities(category)
        is_named = people.group != stimuli.UNSPECIFIED
        shared_groups = people.identity.map(groups).fillna(people.group)
        # `empathy` leaves out the group "".
        shared_groups = shared_groups.where(is_named, "")
        tables = empathy(values, list(shared_groups))

        named_values = values[is_named][:, is_named]
        sd = float(np.nanstd(named_values))
        # Both measures of a category take the same draws of events.
        for measure, items in zip(MEASURES, tables, strict=True):
            views.append(View(measure, items, sd, draw=category))
    return views


def empathy(values: NDArray, groups: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compute the empathy that groups receive, and give, relative to the other groups.

    Parameters
    ----------
    values : ndarray, (n, n, events)
        Ratings in points, NaN where a rating is missing.
    groups : sequence of str
        The group of each of the n identities. Identities of the group "" are left out.

    Returns
    -------
    received : DataFrame
        Events by groups, in points: the empathy that each group receives as experiencer.
    given : DataFrame
        Events by groups, in points: the empathy that each group gives as perceiver.

    Notes
    -----
    Cells are averaged within pairs of groups first, so that a group with many names has no more
    in-group cells than one with few. With B[g, h] the mean rating by perceivers of g of
    experiencers of h in one event::

        received(h) = mean_g B[g, h] - mean over the other h' of mean_g B[g, h']

    and given(g) likewise with rows and columns exchanged.
    """
    in_a_group = [index for index, group in enumerate(groups) if group]
    named_groups = [groups[index] for index in in_a_group]
    named_values = values[np.ix_(in_a_group, in_a_group)]
    pair_means = statistics.pair_means(named_values, named_groups)

    # `pair_means` keeps the order in which the groups first appear.
    names = list(dict.fromkeys(named_groups))
    # The mean over perceivers is the empathy that a group receives; after turning, rows are events.
    received = pd.DataFrame(nan_mean(pair_means, axis=0).T, columns=names)
    given = pd.DataFrame(nan_mean(pair_means, axis=1).T, columns=names)
    return relative_to_others(received), relative_to_others(given)


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Compute the own-group effect of each event in the first setting.

    Parameters
    ----------
    parameters : mapping
        The notebook's parameters, in capitals.
    model : str
        A name of the parameter ``MODELS``.

    Returns
    -------
    DataFrame
        Events by categories, in points.
    """
    columns = {}
    for category, rounds in _first_setting(parameters, model).items():
        # The first perceiver and experiencer is "a person", who is in no group.
        values = load_rounds(rounds, parameters["PARSING"]).values[1:, 1:]
        groups = stimuli.identities(category).group[1:]
        by_event = statistics.own_group_by_event(values, groups)

        events = rounds[0].design.blocks[0].factors["event"]
        # By these names two models are compared over the events that both have.
        names = [f"{event.emotion} {event.text_id}" for event in events]
        columns[category] = pd.Series(by_event, names)
    return pd.DataFrame(columns)


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[PlannedTest]:
    """Plan the reported tests: the gap over events, and the gap of each category.

    Parameters
    ----------
    planned : mapping of str to any
        Parameters of the run that is planned.
    recorded : mapping of str to any
        Parameters of the run whose stored answers give the spread.
    model : str
        The model that gave these answers.

    Returns
    -------
    list of Tested
        First the gap over events, for these names. Then the gap of each category with answers, for
        groups like these, by :func:`ingroup.stats.crossed.own_group`; its floor is the smallest p
        of whole groups in random order, in Table 2. The categories of a setting are Holm's family.
    """
    ratings = {}
    variances = []
    for category, rounds in _first_setting(recorded, model).items():
        values = load_rounds(rounds, recorded["PARSING"]).values[1:, 1:]
        same = statistics.same_group(stimuli.identities(category).group[1:])
        # Pairs are averaged, which leaves one gap per event, in points.
        gaps = nan_mean(values[same]) - nan_mean(values[~same])
        ratings[category] = values
        variances.append(np.nanvar(gaps, ddof=1))

    events = stimuli.load_events(planned["CORPUS"], planned["N_EVENTS"] or None)
    alpha = families()["empathy_gap"].level
    over_events = PlannedTest(
        effect="points of gap",
        items="events",
        n=len(events),
        name="interval over events",
        level=alpha,
        smallest=smallest_paired_effect(len(events), alpha),
        spread=float(np.mean(variances) ** 0.5),
    )

    tests = [over_events]
    categories = planned["CATEGORIES"] or stimuli.categories()
    for category in categories:
        # A category that was not recorded has no spread to plan with.
        if category in ratings:
            tests.append(_own_group(category, ratings[category], len(categories)))
    return tests


def _own_group(category: str, values: NDArray, family: int) -> PlannedTest:
    """Plan the test of a category for groups like these, in a family of `family` tests."""
    alpha = families()["empathy_gap"].level
    groups = stimuli.identities(category).group[1:]
    n = groups.nunique()
    least = permutation_floor(n)
    floor = f"{n} groups in random order cannot give a p below {least:.2g}."
    if least >= alpha:
        floor += f" It takes {groups_for_permutation(alpha)} groups to reach {alpha:g}."

    return PlannedTest(
        effect="points more for one's own group",
        items=f"groups ({category})",
        n=n,
        name="social relations model",
        level=alpha / family,
        smallest=smallest_own_group_effect(n, alpha / family),
        spread=statistics.relationship_sd(values, groups),
        floor=floor,
    )


def claims(
    answers: Mapping[str, NDArray], same: Mapping[str, NDArray[np.bool_]], **path: Any
) -> dict[str, Result]:
    """Test the claim of Hou et al. that the gap of each category is above 0, on one path.

    Parameters
    ----------
    answers : mapping of str to ndarray
        The ratings of each category, as in `gap`.
    same : mapping of str to ndarray of bool
        The in-group pairs of each category, as in `gap`.
    **path
        The other arguments of `gap`.

    Returns
    -------
    dict of str to Result
        One per category, with a reason where its gap is not defined.
    """
    results = {}
    for category, values in answers.items():
        results[category] = attempt(gap, values, same[category], **path)
    return results


def gap(
    values: NDArray,
    same: NDArray[np.bool_],
    exclusion: statistics.Exclusion,
    matrix: str,
    rounding: str,
    unit: str,
    n_resamples: int,
    seed: int,
) -> Result:
    """Test delta of one category on one path.

    Parameters
    ----------
    values : ndarray, (1 + n, 1 + n, events)
        Ratings in points, "a person" first.
    same : ndarray of bool, (n, n)
        The in-group pairs, without "a person".
    exclusion, matrix, rounding, unit : str
        One option each of `CHOICES`.
    n_resamples : int
        How many arrangements the permutation test draws.
    seed : int
        Every path draws from it anew, so that none depends on the paths before.

    Returns
    -------
    Result
        The interval comes from the bootstrap over events, which never rounds cell means. p comes
        from arrangements of identities or of whole groups, and over events from the bootstrap.

    Raises
    ------
    ValueError
        As `exclude`, `gap_matrix` and :func:`ingroup.stats.effects.bootstrap_interval`.
    """
    separate = matrix == "without"
    # As in the released code, "a person" is dropped before events are excluded, so that no event
    # is lost for lack of their ratings.
    rated = values[1:, 1:] if separate else values
    kept = statistics.exclude(rated, exclusion)
    interval = _cached_interval(kept.tobytes(), len(kept), same.tobytes(), seed)
    if unit == "events":
        n_events = kept.shape[2]
        # Draws that are all on one side of 0 give the smallest p.
        all_above_zero = np.ones_like(interval.draws)
        return Result(
            estimate=interval.statistic,
            low=interval.low,
            high=interval.high,
            p=bootstrap_pvalue(interval.draws, n_events),
            least=bootstrap_pvalue(all_above_zero, n_events),
        )

    decimals = 2 if rounding == "cell means" else None
    z = statistics.gap_matrix(values, exclusion, decimals, separate)
    if unit == "groups":
        by_group = statistics.matrix_of_groups(z, same)
        # Among means by group, the in-group cells are the diagonal.
        test = permutation_test(by_group, np.eye(len(by_group)), n_resamples, seed)
    else:
        test = permutation_test(z, same, n_resamples, seed)

    return Result(
        estimate=statistics.empathy_gap(z, same),
        low=interval.low,
        high=interval.high,
        p=test.pvalue,
        least=test.least,
    )


@lru_cache(maxsize=8)
def _cached_interval(kept: bytes, n: int, same: bytes, seed: int) -> BootstrapInterval:
    """Draw a `bootstrap_interval` once for all paths with equal ratings of n identities.

    Arrays cannot be keys of a cache, so they come as bytes.
    """
    values = np.frombuffer(kept).reshape(n, n, -1)
    is_same = np.frombuffer(same, dtype=bool)
    n_named = isqrt(is_same.size)
    return bootstrap_interval(values, is_same.reshape(n_named, n_named), rng=seed)


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """Test `claims` on every path, by `evaluate`.

    Parameters
    ----------
    parameters : mapping of str to any
        The parameters of the study's notebook.
    model : str
        A model of the notebook.
    options : mapping of str to any
        The parameters of the synthesis, of which N_RESAMPLES and SEED are taken.

    Returns
    -------
    DataFrame
        As `evaluate`, in the order of the categories. A category whose answers do not allow a
        reading is not among the claims of its paths.
    """
    by_setting = _jobs(parameters, model)
    jobs = list(chain.from_iterable(by_setting.values()))
    blocks = by_block(jobs)
    readings_of_block = {key: ways_to_read(rounds) for key, rounds in blocks.items()}

    def read(setting: str, parsing: Rule, reading: str) -> dict[str, NDArray]:
        """Load the ratings of each category whose block in this setting allows this reading."""
        values = {}
        for key, rounds in blocks.items():
            _, setting_of_block, category = key
            readings = readings_of_block[key]
            if setting_of_block == setting and reading in readings:
                ratings = load_rounds(rounds, parsing, readings[reading])
                values[category] = ratings.values
        return values

    # The block with the most readings gives their order; each name once.
    most = max(readings_of_block.values(), key=len)
    names = dict.fromkeys(chain(most, *readings_of_block.values()))
    reading_choices = {
        "setting": list(by_setting),
        "parsing": rules(jobs),
        "reading": list(names),
    }

    categories = stimuli.categories()
    same = {}
    for category in categories:
        groups = stimuli.identities(category).group[1:]
        same[category] = statistics.same_group(groups)
    of_path = partial(
        claims,
        same=same,
        n_resamples=options["N_RESAMPLES"],
        seed=options["SEED"],
    )

    level = families()["empathy_gap"].level
    table = evaluate(reading_choices, read, CHOICES, of_path, level, _applies)
    # The claims are categories, which get the order of Table 1.
    return table.sort_values(
        "claim",
        key=lambda claim: claim.map(categories.index),
        kind="stable",
    )


def _applies(unit: str, rounding: str, **others: str) -> bool:
    """Tell whether a path is tested. The unit "events" never rounds, so it has one path."""
    return unit != "events" or rounding != "cell means"


def _first_setting(parameters: Mapping[str, Any], model: str) -> dict[str, list[Job]]:
    """List the jobs of the first setting by category: a job per round."""
    by_setting = _jobs(parameters, model)
    first = next(iter(by_setting.values()))
    by_category = {}
    for key, rounds in by_block(first).items():
        _, _, category = key
        by_category[category] = rounds
    return by_category


def _jobs(parameters: Mapping[str, Any], model: str) -> dict[str, list[Job]]:
    """List the jobs with this model's ratings by setting: a job per category and round."""
    # Replies of the rewriter are texts of the design, not ratings.
    with_ratings = [job for job in design.jobs(parameters) if job.labels["setting"] != "rewrite"]
    by_setting = defaultdict(list)
    for job in rated_by(model, with_ratings):
        setting = job.labels["setting"]
        by_setting[setting].append(job)
    return dict(by_setting)


def items(block: Block) -> list[tuple[str, str]]:
    """List the items of a block of the design, its events.

    Parameters
    ----------
    block : Block
        A block of the study's design.

    Returns
    -------
    list of tuple
        Emotion and number of each event.
    """
    return [(event.emotion, event.text_id) for event in block.factors["event"]]


def extent(jobs: Sequence[Job], printed: Mapping[str, str]) -> tuple[int, int]:
    """Count the paper's prompts and events for a model, with the prompts per event of a design.

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
    n_events = int(printed["events used"])
    n_per_event = n_prompts(jobs) // n_items(jobs)
    return n_per_event * n_events, n_events
