"""The third study as a lens: what naming an identity gains, and on which paths it does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ingroup.families import families
from ingroup.inference import Call, StoreError, rated_by
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.stats.paired import PairedTest, paired_test
from ingroup.stats.power import smallest_paired_effect
from ingroup.studies.giebench import design, stimuli
from ingroup.studies.giebench.answers import load
from ingroup.studies.giebench.planted import Planted
from ingroup.studies.giebench.statistics import OVERALL, changes, share_right
from ingroup.synthesis import Tested, View, rules, ways_to_read

MEASURES = ("accuracy gained",)
VERDICTS = ["prompt", "category", "key", "shift", "correct", "letter"]  # what claims are made of
CHOICES = {
    # An answer without a verdict is wrong, or its item is left out of this pair of prompts (in this
    # order), or everywhere.
    "silence": ["wrong", "pairwise", "listwise"],
    # The share of an item's four orders in which it is right; or one order: the answers as given,
    # or moved by so many places.
    "order": ["mean", "0", "1", "2", "3"],
    # Items, by a t-test of their shares or by McNemar's test of one order; or a t-test of the
    # categories' accuracies.
    "unit": ["item", "category"],
    # right / n, or / (n + 1) by category and rounded to 0.1 points
    "shares": ["paper", "released"],
}


def portrait(
    parameters: Mapping[str, Any], model: str, groups: Mapping[str, str], file: Path | None = None
) -> list[View]:
    """What is `gained` by item, one view; see :mod:`ingroup.synthesis`.

    Answers are planted to the sample's questions only: to others there is no view.
    """
    if file and parameters["QUESTIONS"] != "sample":
        return []
    answers = _read(parameters, model, parameters["PARSING"], file)
    both = answers[answers.prompt != "COT"]
    sd = both.letter.eq(both.correct).std()
    return [View(*MEASURES, gained(answers, groups), sd, together=False)]


def gained(answers: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """Right under ID minus right under Raw, mean over the orders of an item's answers.

    Items by groups: -1 to 1, NaN outside the item's own group; no verdict is wrong.
    """
    right = share_right(answers)
    group = answers.drop_duplicates("key").set_index("key").identity.map(groups).dropna()
    table = pd.DataFrame({"gain": (right.ID - right.Raw)[group.index], "group": group})
    return table.set_index("group", append=True).gain.unstack("group")


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Right answers of each item under each prompt, and what ID and COT add, in percent.

    Items by "right under Raw", "right under ID", "right under COT", "ID over Raw" and "COT over
    Raw"; means over the orders of an item's answers.
    """
    answers = _read(parameters, model, parameters["PARSING"])
    by_prompt = 100 * share_right(answers)[list(design.PROMPTS)]
    gains = by_prompt[["ID", "COT"]].sub(by_prompt.Raw, axis=0).add_suffix(" over Raw")
    return by_prompt.add_prefix("right under ").join(gains)


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[Tested]:
    """What COT gains over Raw in right verdicts, by item, over the orders of its answers."""
    right = 100 * share_right(_read(recorded, model, recorded["PARSING"]))
    spread = float((right.COT - right.Raw).std())
    n = len(stimuli.load_questions(planned["QUESTIONS"]))
    level = families()["giebench"].level / len(right.columns.drop("Raw"))
    smallest = smallest_paired_effect(n, level)
    effect = "points of 100 more right verdicts"
    return [Tested(effect, "items", n, "paired t-test", level, smallest, spread)]


def claims(
    answers: pd.DataFrame, silence: str, order: str, unit: str, shares: str
) -> dict[str, Result]:
    """ID, and COT, beat Raw (Wang et al.), in points of accuracy.

    `answers` are those of `load` under all three prompts, the others one of each of `CHOICES`. The
    reason of a result says where so few items could not have been significant.
    """
    silent = answers.key[answers.letter.eq("")]
    answers = answers[~answers.key.isin(silent)] if silence == "listwise" else answers
    if order != "mean":
        answers = answers[answers["shift"] == int(order)]
    found = {}
    for prompt in ("ID", "COT"):
        pair = answers[answers.prompt.isin(["Raw", prompt])]
        if silence == "pairwise":
            pair = pair[~pair.key.isin(pair.key[pair.letter.eq("")])]
        if order == "mean":
            result = attempt(_mean_change, pair, prompt, unit)
        else:
            result = attempt(_change, pair, prompt, unit, shares)
        found[f"{prompt} over Raw"] = result
    return found


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; nothing is drawn."""
    choices = CHOICES if parameters["ORDER"] == "rotate" else CHOICES | {"order": ["0"]}

    def read(parsing, reading):  # why a reply has no verdict changes no claim
        return _read(parameters, model, parsing)[VERDICTS]

    def applies(unit, shares, order, **_):
        return shares == "paper" or (unit == "category" and order != "mean")

    calls = _calls(parameters, model)
    one_way = next(iter(ways_to_read(calls)))  # letters are the same under every reading
    reading = {"parsing": rules(calls), "reading": [one_way]}
    level = families()["giebench"].level
    return evaluate(reading, read, choices, claims, level, applies)


def _read(
    parameters: Mapping[str, Any], model: str, rule: str, file: Path | None = None
) -> pd.DataFrame:
    """Verdicts under the three prompts; with a file of planted ones, these."""
    tables = []
    for call in _calls(parameters, model):
        table = load(call, rule)
        said = Planted(file).letters(*call.design.blocks) if file else table.letter
        tables.append(table.assign(letter=said))
    return pd.concat(tables, ignore_index=True)


def _calls(parameters: Mapping[str, Any], model: str) -> list[Call]:
    """What this model is rated by under the three prompts; StoreError where one is not there."""
    calls = rated_by(model, design.calls(parameters))
    found = [call for call in calls if call.labels["plan"] in design.PROMPTS]
    if missing := {*design.PROMPTS} - {call.labels["plan"] for call in found}:
        absent = ", ".join(sorted(missing))
        raise StoreError(f"{model} has no stored answers under {absent}; run the study again")
    return found


def _change(pair: pd.DataFrame, prompt: str, unit: str, shares: str) -> Result:
    if pair.empty:
        raise ValueError("no item has a verdict under both prompts")
    pair = pair.assign(category="all") if unit == "item" else pair
    decimals = 3 if shares == "released" else None
    table = changes(pair, "Raw", prompt, shares, decimals).set_index("category")
    if unit == "item":
        whole = table.loc[OVERALL]
        floor = f"{whole.finding}: p of {whole.n} items is at least {whole.p_least:g}"
        reason = floor if whole.finding.startswith("could not") else ""
        return Result(*whole[["change", "low", "high", "p"]], reason, whole.p_least)
    rows = table.drop(OVERALL)
    if len(rows) < 2:
        raise ValueError(f"found {len(rows)} categories to pair, expected at least 2")
    return _result(paired_test(rows.after, rows.before))


def _mean_change(pair: pd.DataFrame, prompt: str, unit: str) -> Result:
    """The change in the share of an item's orders that are right, over items or categories."""
    right = 100 * share_right(pair)
    if unit == "category":
        category = pair.drop_duplicates("key").set_index("key").category
        right = right.groupby(category, sort=False).mean()
    if len(right) < 2:
        raise ValueError(f"found {len(right)} of what is paired ({unit}), expected at least 2")
    return _result(paired_test(right[prompt], right.Raw))


def _result(test: PairedTest) -> Result:
    """A paired test as a claim's result."""
    numbers = (test.difference, test.low, test.high, test.pvalue)
    return Result(*map(float, numbers), least=float(test.least))
