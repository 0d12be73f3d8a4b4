"""Group profiles, second study: ratings of groups above "a person", and the bias on every path."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.design import Block
from ingroup.families import families
from ingroup.inference import Job, rated_by
from ingroup.parsing import Rule
from ingroup.stats.multiverse import Result, attempt, evaluate, mark_uninformative
from ingroup.stats.power import smallest_paired_effect
from ingroup.studies.biased_samaritan import design, stimuli
from ingroup.studies.biased_samaritan.answers import cubes, load
from ingroup.studies.biased_samaritan.ground_truth import GroundTruth
from ingroup.studies.biased_samaritan.statistics import bias, groups_and_control
from ingroup.synthesis import PlannedTest, View, rules, ways_to_read

MEASURES = ("helpfulness",)
# The choices of every path. `paths` adds the round, the rule of parsing and the reading, which
# depend on the jobs. data/choices.csv explains all of them.
CHOICES = {
    "unit": ["scenario", "prompt"],  # the paired unit
    "exclusion": ["step by step", "listwise"],  # a missing answer, or a scenario that has one
    "phrasing": ["all", "first"],  # of several names their mean, or the first of Table 4
    "control": ["its own", "all three"],  # that of the category, or the mean over categories
    "rounding": ["none", "whole numbers"],  # of the single ratings
}


def views(
    parameters: Mapping[str, Any], model: str, groups: Mapping[str, str], file: Path | None = None
) -> list[View]:
    """Compute `rating_minus_control` in the first round, as views for :mod:`ingroup.synthesis`.

    Parameters
    ----------
    parameters : mapping of str to any
        The parameters of the study's notebook.
    model : str
        A model of the notebook.
    groups : mapping of str to str
        The shared group of a phrase.
    file : Path, optional
        A ``ground_truth.yaml``, whose answers are taken in place of stored answers.

    Returns
    -------
    list of View
        One per category.
    """
    (measure,) = MEASURES
    views = []
    for job in _jobs(parameters, model, number=1):
        prompts = load(job, parameters["PARSING"])
        if file:
            (block,) = job.design.blocks
            prompts["rating"] = GroundTruth(file).answers(block)

        # The unit of all groups is the SD of the control's single ratings.
        of_control = prompts.rating[prompts.group == stimuli.CONTROL]
        items = rating_minus_control(prompts, groups)
        views.append(View(measure, items, of_control.std()))
    return views


def rating_minus_control(prompts: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """Subtract the control's rating from the ratings of groups in each scenario.

    Phrasings are averaged first, then the wordings of a scenario, as for the bias score.

    Parameters
    ----------
    prompts : DataFrame
        From `load`.
    groups : mapping of str to str
        The shared group of some phrases. Prompts with other phrases are left out.

    Returns
    -------
    DataFrame
        Scenarios by groups, in points.
    """
    # `groups` may hold the control's phrase; it stays the control.
    is_control = prompts.group == stimuli.CONTROL
    shared = prompts.phrase.map(groups).mask(is_control, stimuli.CONTROL)
    rows = prompts.assign(shared=shared).dropna(subset="shared")

    of_prompts = rows.groupby(["scenario", "wording", "shared"], sort=False).rating.mean()
    of_scenarios = of_prompts.groupby(["scenario", "shared"], sort=False).mean()
    by_group = of_scenarios.unstack("shared")
    names = [name for name in dict.fromkeys(groups.values()) if name in by_group]
    control = by_group[stimuli.CONTROL]
    return by_group[names].sub(control, axis=0)


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Compute the bias of each group in each scenario of the first round.

    Parameters
    ----------
    parameters : mapping
        The notebook's parameters, in capitals.
    model : str
        A name of the parameter ``MODELS``.

    Returns
    -------
    DataFrame
        Scenarios by groups, in points.
    """
    return pd.concat(_biases(parameters, model), axis=1)


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[PlannedTest]:
    """Plan the tests of the groups' biases over scenarios.

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
        One test. Holm's family is the category with the most groups.
    """
    # One series per category, with the variance of each group over scenarios.
    variances = [biases.var() for biases in _biases(recorded, model)]
    largest_family = max(map(len, variances))
    level = families()["biased_samaritan"].level / largest_family
    mean_variance = pd.concat(variances).mean()
    n = design.scenarios(planned).scenario.nunique()

    of_a_group = PlannedTest(
        effect="points of a group's bias",
        items="scenarios",
        n=n,
        name="paired t-test",
        level=level,
        smallest=smallest_paired_effect(n, level),
        spread=float(mean_variance**0.5),
    )
    return [of_a_group]


def claims(
    answers: tuple[Mapping[str, NDArray], Mapping[str, NDArray]],
    unit: str,
    exclusion: str,
    phrasing: str,
    control: str,
    rounding: str,
) -> dict[str, Result]:
    """Test the claim of Fagan et al. that each group is rated more helpful than the control.

    Parameters
    ----------
    answers : tuple of two mappings of str to ndarray, (phrasing, scenario, wording)
        Ratings of the groups, and ratings of the control by the options of `control`.
    unit, exclusion, phrasing, control, rounding : str
        One option each of `CHOICES`.

    Returns
    -------
    dict of str to Result
        The `bias` of each group. It has a reason where the bias is not defined, and where group and
        control have one rating in all prompts.
    """
    groups, controls = answers
    results = {}
    for group, ratings in groups.items():
        # The phrasings stand in the order of Table 4.
        ours = ratings[:1] if phrasing == "first" else ratings
        theirs = controls[control]
        if rounding == "whole numbers":
            ours = np.rint(ours)
            theirs = np.rint(theirs)

        if exclusion == "listwise":
            is_lost = _lacks_a_rating(ours) | _lacks_a_rating(theirs)
            # A scenario counts only if both group and control have ratings of it. So it is enough
            # to blank the group's: `bias` pairs the two and leaves out a pair that lacks one.
            ours = np.where(is_lost[:, None], np.nan, ours)

        result = attempt(_bias, ours, theirs, unit)
        if _ignores_the_prompt(ours, theirs):
            result = mark_uninformative(result, "all prompts get the same rating")
        results[group] = result
    return results


def _lacks_a_rating(ratings: NDArray) -> NDArray[np.bool_]:
    """Mark the scenarios that lack the rating of any phrasing in any wording."""
    phrasings_and_wordings = (0, 2)
    return np.any(np.isnan(ratings), axis=phrasings_and_wordings)


def _ignores_the_prompt(ours: NDArray, theirs: NDArray) -> bool:
    """Tell whether a group and its control have one rating in all prompts."""
    both = np.concatenate([ours.ravel(), theirs.ravel()])
    ratings = both[~np.isnan(both)]
    if not ratings.size:
        return False
    return bool((ratings == ratings[0]).all())


def _bias(ours: NDArray, theirs: NDArray, unit: str) -> Result:
    """Compute the `bias` of a group as a `Result`."""
    test = bias(ours, theirs, unit)
    return Result(
        estimate=test.bias,
        low=test.low,
        high=test.high,
        p=test.p,
        least=test.p_least,
    )


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """Test `claims` on every path, by `evaluate`.

    Parameters
    ----------
    parameters : mapping of str to any
        The parameters of the study's notebook.
    model : str
        A model of the notebook.
    options : mapping of str to any
        The parameters of the synthesis, which this study does not use.

    Returns
    -------
    DataFrame
        As `evaluate`. The groups of a category are a family.
    """
    jobs = _jobs(parameters, model)
    readings = ways_to_read(jobs)

    def read(category: str, round: int, parsing: Rule, reading: str) -> tuple[dict, dict]:
        """Load the ratings of a category's groups and of its control, as `claims` takes them."""
        ratings = {}
        for job in jobs:
            if job.round == round:
                prompts = load(job, parsing, readings[reading])
                ratings[job.labels["category"]] = cubes(prompts)

        groups, own_control = groups_and_control(ratings[category])
        all_controls = [cells[stimuli.CONTROL] for cells in ratings.values()]
        controls = {
            "its own": own_control,
            # They are stacked as phrasings, which `bias` averages first.
            "all three": np.concatenate(all_controls),
        }
        return groups, controls

    # Where a model was stopped halfway, its categories differ in their stored rounds.
    rounds_of = defaultdict(list)
    for job in jobs:
        category = job.labels["category"]
        rounds_of[category].append(job.round)

    level = families()["biased_samaritan"].level
    tables = []
    for category, rounds in rounds_of.items():
        reading_choices = {
            "round": rounds,
            "parsing": rules(jobs),
            "reading": list(readings),
        }
        of_category = partial(read, category)
        table = evaluate(reading_choices, of_category, CHOICES, claims, level)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _biases(parameters: Mapping[str, Any], model: str) -> list[pd.DataFrame]:
    """Compute `rating_minus_control` for the study's own groups in the first round, by category."""
    tables = []
    for job in _jobs(parameters, model, number=1):
        prompts = load(job, parameters["PARSING"])
        of_groups = prompts[prompts.group != stimuli.CONTROL]
        groups = of_groups.set_index("phrase").group.to_dict()
        tables.append(rating_minus_control(prompts, groups))
    return tables


def _jobs(parameters: Mapping[str, Any], model: str, number: int | None = None) -> list[Job]:
    """List the jobs with this model's ratings, of one round or of all rounds."""
    jobs = rated_by(model, design.jobs(parameters))
    if number is None:
        return jobs
    return [job for job in jobs if job.round == number]


def items(block: Block) -> list[Hashable]:
    """List the items of a block of the design, its scenarios.

    Parameters
    ----------
    block : Block
        A block of the study's design.

    Returns
    -------
    list of hashable
        The scenario of each prompt.
    """
    return [prompt.scenario for prompt in block.factors["prompt"]]


def extent(jobs: Sequence[Job], printed: Mapping[str, str]) -> tuple[int, int]:
    """Count the paper's prompts for a model, and its scenarios.

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
    n_prompts = 0
    for kind in ("races", "genders", "ages"):
        n_prompts += int(printed[f"prompts for {kind}"])

    # The paper prints how many texts it has, and each scenario has one text per wording.
    n_texts = int(printed["prompts in the data set"])
    prompts = jobs[0].design.blocks[0].factors["prompt"]
    n_wordings = len({prompt.wording for prompt in prompts})
    return n_prompts, n_texts // n_wordings
