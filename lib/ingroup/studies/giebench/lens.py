"""The third study as a lens: what naming an identity gains, and on which paths it does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ingroup.inference import Call, StoreError, rated_by
from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.stats.paired import paired_test
from ingroup.studies.giebench import design, stimuli
from ingroup.studies.giebench.answers import load
from ingroup.studies.giebench.planted import Planted
from ingroup.studies.giebench.statistics import OVERALL, changes
from ingroup.synthesis import Tested, View, rules, ways_to_read

MEASURES = ("accuracy gained",)
VERDICTS = ["prompt", "category", "key", "shift", "correct", "letter"]  # what claims are made of
CHOICES = {
    # An answer without a verdict is wrong, or its item is left out of this pair of prompts (in this
    # order), or everywhere.
    "silence": ["wrong", "pairwise", "listwise"],
    # The answers as given, or moved by so many places; or an item is right where it is in each.
    "order": ["0", "1", "2", "3", "all four"],
    "unit": ["item", "category"],  # McNemar's test, or a t-test of the categories' accuracies
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
    right = _share_right(answers)
    group = answers.drop_duplicates("key").set_index("key").identity.map(groups).dropna()
    table = pd.DataFrame({"gain": (right.ID - right.Raw)[group.index], "group": group})
    return table.set_index("group", append=True).gain.unstack("group")


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Right answers of each item under each prompt, and what ID and COT add, in percent.

    Items by "right under Raw", "right under ID", "right under COT", "ID over Raw" and "COT over
    Raw"; means over the orders of an item's answers.
    """
    answers = _read(parameters, model, parameters["PARSING"])
    by_prompt = 100 * _share_right(answers)[list(design.PROMPTS)]
    gains = by_prompt[["ID", "COT"]].sub(by_prompt.Raw, axis=0).add_suffix(" over Raw")
    return by_prompt.add_prefix("right under ").join(gains)


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> Tested:
    """What ID gains over Raw in the probability of the right letter, by item, in percent."""
    answers = _read(recorded, model, recorded["PARSING"])
    right = 100 * answers.groupby(["key", "prompt"]).p_right.mean().unstack("prompt")
    n, spread = len(stimuli.load_questions(planned["QUESTIONS"])), (right.ID - right.Raw).std()
    return Tested("points of 100 more of the right letter's p", "items", n, 0.05, float(spread))


def claims(
    answers: pd.DataFrame, silence: str, order: str, unit: str, shares: str
) -> dict[str, Result]:
    """ID, and COT, beat Raw (Wang et al.), in points of accuracy, by `changes`.

    `answers` are those of `load` under all three prompts, the others one of each of `CHOICES`. The
    reason of a result says where so few items could not have been significant.
    """
    silent = answers.key[answers.letter.eq("")]
    answers = answers[~answers.key.isin(silent)] if silence == "listwise" else answers
    if order != "all four":
        answers = answers[answers["shift"] == int(order)]
    found = {}
    for prompt in ("ID", "COT"):
        pair = answers[answers.prompt.isin(["Raw", prompt])]
        if silence == "pairwise":
            pair = pair[~pair.key.isin(pair.key[pair.letter.eq("")])]
        if order == "all four":  # an item once, with its right letter where every order had it
            right = pair.letter.eq(pair.correct).groupby([pair.key, pair.prompt]).transform("all")
            pair = pair.assign(letter=pair.correct.where(right, ""))
            pair = pair.drop_duplicates(["key", "prompt"])
        found[f"{prompt} over Raw"] = attempt(_change, pair, prompt, unit, shares)
    return found


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; nothing is drawn."""
    choices = CHOICES if parameters["ORDER"] == "rotate" else CHOICES | {"order": ["0"]}

    def read(parsing, reading):  # why a reply has no verdict changes no claim
        return _read(parameters, model, parsing)[VERDICTS]

    def applies(unit, shares, **_):
        return (unit, shares) != ("item", "released")

    calls = _calls(parameters, model)
    one_way = next(iter(ways_to_read(calls)))  # letters are the same under every reading
    reading = {"parsing": rules(calls), "reading": [one_way]}
    return evaluate(reading, read, choices, claims, 0.05, applies)


def _share_right(answers: pd.DataFrame) -> pd.DataFrame:
    """Share of an item's orders in which the verdict is right: items by prompts."""
    right = answers.letter.eq(answers.correct)
    return right.groupby([answers.key, answers.prompt]).mean().unstack("prompt")


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
    pair = pair.assign(category="all") if unit == "item" else pair
    decimals = 3 if shares == "released" else None
    table = changes(pair, "Raw", prompt, shares, decimals).set_index("category")
    if unit == "item":
        whole = table.loc[OVERALL]
        floor = f"{whole.finding}: p of {whole.n} items is at least {whole.p_least:g}"
        reason = floor if whole.finding.startswith("could not") else ""
        return Result(*whole[["change", "low", "high", "p"]], reason)
    rows = table.drop(OVERALL)
    if len(rows) < 2:
        raise ValueError(f"there is {len(rows)} category to pair, expected at least 2")
    test = paired_test(rows.after, rows.before)
    return Result(test.difference, test.low, test.high, test.pvalue)
