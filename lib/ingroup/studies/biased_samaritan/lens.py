"""The second study as a lens: who is rated more helpful than "a person", and on which paths."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ingroup.inference import Call
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.studies.biased_samaritan import design, stimuli
from ingroup.studies.biased_samaritan.answers import load
from ingroup.studies.biased_samaritan.planted import Planted
from ingroup.studies.biased_samaritan.statistics import bias
from ingroup.synthesis import RULES, View

MEASURES = ("helpfulness",)


def portrait(
    parameters: Mapping[str, Any],
    model: str,
    groups: Mapping[str, str],
    planted: Path | None = None,
) -> list[View]:
    """`above_control` in the first run, a view a category; `groups` maps phrase to shared group."""
    views = []
    for call in _calls(parameters, model, run=1):
        prompts = load(call, parameters["PARSING"])
        if planted:
            prompts["rating"] = Planted(planted).answers(*call.design.blocks)
        sd = prompts.rating[prompts.group == stimuli.CONTROL].std()
        views.append(View(*MEASURES, above_control(prompts, groups), sd))
    return views


def above_control(prompts: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """Rating of each group minus the control's, in points: scenarios by groups.

    As the bias score is made: phrasings are averaged first, then the wordings of a scenario.
    `prompts` has ``scenario``, ``wording``, ``group``, ``phrase`` and ``rating``.
    """
    named = prompts.phrase.map(groups).where(prompts.group != stimuli.CONTROL, stimuli.CONTROL)
    asked = prompts.assign(named=named).dropna(subset="named")
    wordings = asked.groupby(["scenario", "wording", "named"], sort=False).rating.mean()
    table = wordings.groupby(["scenario", "named"], sort=False).mean().unstack("named")
    names = [name for name in dict.fromkeys(groups.values()) if name in table]
    return table[names].sub(table[stimuli.CONTROL], axis=0)


def claims(
    answers: tuple[Mapping[str, NDArray], Mapping[str, NDArray]],
    unit: str,
    exclusion: str,
    phrasing: str,
    control: str,
    rounding: str,
) -> dict[str, Result]:
    """Each group is rated more helpful than the control (Fagan et al.), by `bias`.

    Parameters
    ----------
    answers : pair of mappings
        Group to ratings (phrasing, scenario, wording), and the option `control` to the control's:
        of this category, or of all three.
    unit : {"scenario", "prompt"}
        What is paired.
    exclusion : {"step by step", "any"}
        What is missing is left out of the averages, or a scenario is with all of its prompts.
    phrasing : {"all", "first"}
        Of a group with several names, their mean, or the first of Table 4 alone.
    rounding : {"none", "whole numbers"}
        Of the single ratings.
    """
    (groups, controls), found = answers, {}
    for group, cube in groups.items():
        ours, theirs = cube[: 1 if phrasing == "first" else None], controls[control]
        if rounding == "whole numbers":
            ours, theirs = np.rint(ours), np.rint(theirs)
        if exclusion == "any":
            lost = np.isnan(ours).any(axis=(0, 2)) | np.isnan(theirs).any(axis=(0, 2))
            ours = np.where(lost[:, None], np.nan, ours)
        found[group] = attempt(_bias, ours, theirs, unit)
    return found


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; the groups of a category are a family."""

    def read(category, run, parsing):
        calls = _calls(parameters, model, run)
        found = {c.labels["category"]: cubes(load(c, parsing)) for c in calls}
        own = found[category]
        every = [found[name][stimuli.CONTROL] for name in found]
        return own, {"its own": own.pop(stimuli.CONTROL), "all three": np.concatenate(every)}

    runs = list(dict.fromkeys(call.labels["run"] for call in _calls(parameters, model)))
    choices = {
        "unit": ["scenario", "prompt"],
        "exclusion": ["step by step", "any"],
        "phrasing": ["all", "first"],
        "control": ["its own", "all three"],
        "rounding": ["none", "whole numbers"],
    }
    tables = [
        evaluate(
            {"run": runs, "parsing": RULES},
            partial(read, category),
            choices,
            claims,
            parameters["ALPHA"],
        )
        for category in stimuli.categories()
    ]
    return pd.concat(tables, ignore_index=True)


def cubes(prompts: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Ratings (phrasing, scenario, wording) by group, phrasings as in the paper's table."""
    found = {}
    for group, rows in prompts.groupby("group", sort=False):
        wide = rows.pivot(index=["phrasing", "scenario"], columns="wording", values="rating")
        wide = wide.loc[list(dict.fromkeys(rows.phrasing))]
        found[group] = wide.to_numpy().reshape(rows.phrasing.nunique(), -1, wide.shape[1])
    return found


def _calls(parameters: Mapping[str, Any], model: str, run: int | None = None) -> list[Call]:
    """What this model was asked, in one run or in all, a call a category."""
    calls = (call for call in design.calls(parameters) if call.model == model)
    return [call for call in calls if run in (None, call.labels["run"])]


def _bias(ours: NDArray, theirs: NDArray, unit: str) -> Result:
    test = bias(ours, theirs, unit)
    return Result(test.bias, test.low, test.high, test.p)
