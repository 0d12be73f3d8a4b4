"""The second study as a lens: who is rated more helpful than "a person", and on which paths."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Call, rated_by
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.stats.power import smallest_paired_effect
from ingroup.studies.biased_samaritan import design, stimuli
from ingroup.studies.biased_samaritan.answers import cubes, load
from ingroup.studies.biased_samaritan.planted import Planted
from ingroup.studies.biased_samaritan.statistics import bias
from ingroup.synthesis import Tested, View, rules, ways_to_read

MEASURES = ("helpfulness",)
CHOICES = {
    "unit": ["scenario", "prompt"],  # what is paired
    "exclusion": ["step by step", "listwise"],  # a missing answer, or a scenario that has one
    "phrasing": ["all", "first"],  # of several names their mean, or the first of Table 4
    "control": ["its own", "all three"],  # that of the category, or the mean over categories
    "rounding": ["none", "whole numbers"],  # of the single ratings
}


def portrait(
    parameters: Mapping[str, Any], model: str, groups: Mapping[str, str], file: Path | None = None
) -> list[View]:
    """`above_control` in the first run, a view a category; see :mod:`ingroup.synthesis`."""
    views = []
    for call in _calls(parameters, model, run=1):
        prompts = load(call, parameters["PARSING"])
        if file:
            prompts["rating"] = Planted(file).answers(*call.design.blocks)
        sd = prompts.rating[prompts.group == stimuli.CONTROL].std()
        views.append(View(*MEASURES, above_control(prompts, groups), sd))
    return views


def above_control(prompts: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """Rating of groups minus the control's, in points: scenarios by groups.

    As the bias score is made: phrasings are averaged first, then the wordings of a scenario.
    `groups` maps the phrases of some `prompts` (from `load`) to shared groups.
    """
    named = prompts.phrase.map(groups).where(prompts.group != stimuli.CONTROL, stimuli.CONTROL)
    asked = prompts.assign(named=named).dropna(subset="named")
    wordings = asked.groupby(["scenario", "wording", "named"], sort=False).rating.mean()
    table = wordings.groupby(["scenario", "named"], sort=False).mean().unstack("named")
    names = [name for name in dict.fromkeys(groups.values()) if name in table]
    return table[names].sub(table[stimuli.CONTROL], axis=0)


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Bias of each group in each scenario of the first run, in points: scenarios by groups."""
    return pd.concat(_biases(parameters, model), axis=1)


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[Tested]:
    """Biases of groups by scenario; Holm's family is the largest category's."""
    variances = [biases.var() for biases in _biases(recorded, model)]
    n = stimuli.load_scenarios(planned["SCENARIOS"]).scenario.nunique()
    level = planned["ALPHA"] / max(map(len, variances))
    spread = float(pd.concat(variances).mean() ** 0.5)
    smallest = smallest_paired_effect(n, level)
    effect = "points of a group's bias"
    return [Tested(effect, "scenarios", n, "paired t-test", level, smallest, spread)]


def claims(
    answers: tuple[Mapping[str, NDArray], Mapping[str, NDArray]],
    unit: str, exclusion: str, phrasing: str, control: str, rounding: str,
) -> dict[str, Result]:  # fmt: skip
    """Each group is rated more helpful than the control (Fagan et al.), by `bias`.

    `answers` are ratings (phrasing, scenario, wording): of the groups, and of the control by the
    options of `control`; the others are one of each of `CHOICES`.
    """
    (groups, controls), found = answers, {}
    for group, ratings in groups.items():
        ours, theirs = ratings[: 1 if phrasing == "first" else None], controls[control]
        if rounding == "whole numbers":
            ours, theirs = np.rint(ours), np.rint(theirs)
        if exclusion == "listwise":
            lost = np.isnan(ours).any(axis=(0, 2)) | np.isnan(theirs).any(axis=(0, 2))
            ours = np.where(lost[:, None], np.nan, ours)
        found[group] = attempt(_bias, ours, theirs, unit)
    return found


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; the groups of a category are a family."""
    calls = _calls(parameters, model)
    ways = ways_to_read(calls)

    def read(category, run, parsing, reading):
        found = {}
        for call in calls:
            if call.round == run:
                found[call.labels["category"]] = cubes(load(call, parsing, ways[reading]))
        every = [part[stimuli.CONTROL] for part in found.values()]
        own = found[category]
        return own, {"its own": own.pop(stimuli.CONTROL), "all three": np.concatenate(every)}

    runs: dict[str, list[int]] = {}
    for call in calls:
        runs.setdefault(call.labels["category"], []).append(call.labels["run"])
    tables = []
    for category, numbers in runs.items():
        choices = {"run": numbers, "parsing": rules(calls), "reading": list(ways)}
        own = partial(read, category)
        tables.append(evaluate(choices, own, CHOICES, claims, parameters["ALPHA"]))
    return pd.concat(tables, ignore_index=True)


def _biases(parameters: Mapping[str, Any], model: str) -> list[pd.DataFrame]:
    """`above_control` of the study's own groups in the first run, a table a category."""
    tables = []
    for call in _calls(parameters, model, run=1):
        prompts = load(call, parameters["PARSING"])
        phrases = prompts[prompts.group != stimuli.CONTROL].set_index("phrase").group.to_dict()
        tables.append(above_control(prompts, phrases))
    return tables


def _calls(parameters: Mapping[str, Any], model: str, run: int | None = None) -> list[Call]:
    """What this model is rated by, in one run or all."""
    calls = rated_by(model, design.calls(parameters))
    return [call for call in calls if run in (None, call.round)]


def _bias(ours: NDArray, theirs: NDArray, unit: str) -> Result:
    test = bias(ours, theirs, unit)
    return Result(test.bias, test.low, test.high, test.p, least=test.p_least)
