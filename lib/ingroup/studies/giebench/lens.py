"""The third study as a lens: what naming an identity gains, and on which paths it does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ingroup.stats.multiverse import Result, attempt, evaluate
from ingroup.studies.biased_samaritan.statistics import bias
from ingroup.studies.giebench import design
from ingroup.studies.giebench.answers import load
from ingroup.studies.giebench.planted import Planted
from ingroup.studies.giebench.statistics import OVERALL, changes
from ingroup.synthesis import RULES, View

MEASURES = ("accuracy gained",)


def portrait(
    parameters: Mapping[str, Any],
    model: str,
    groups: Mapping[str, str],
    planted: Path | None = None,
) -> list[View]:
    """What is `gained` by item, one view; see :mod:`ingroup.synthesis`.

    Answers are planted to the sample's questions only: to others there is no view.
    """
    if planted and parameters["QUESTIONS"] != "sample":
        return []
    answers = read(parameters, model, parameters["PARSING"], planted)
    both = answers[answers.prompt != "COT"]
    sd = both.letter.eq(both.correct).std()
    return [View(*MEASURES, gained(answers, groups), sd, together=False)]


def read(
    parameters: Mapping[str, Any], model: str, rule: str, planted: Path | None = None
) -> pd.DataFrame:
    """Verdicts under the three prompts, as `load` gives them; with the planted ones in place."""
    tables = []
    for call in design.calls(parameters):
        if call.model == model and call.labels["plan"] in design.PROMPTS:
            table = load(call, rule)
            if planted:
                table["letter"] = Planted(planted).letters(*call.design.blocks)
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def gained(answers: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """Right under ID minus right under Raw, mean over the orders of an item's answers.

    Items by groups: -1 to 1, NaN outside the item's own group; no verdict is wrong.
    """
    right = answers.letter.eq(answers.correct).groupby([answers.key, answers.prompt]).mean()
    share = right.unstack("prompt")
    group = answers.drop_duplicates("key").set_index("key").identity.map(groups).dropna()
    gain = (share.ID - share.Raw).loc[group.index]
    return gain.to_frame("gain").set_index(group, append=True).gain.unstack()


def claims(
    answers: pd.DataFrame, order: str, silence: str, unit: str, shares: str
) -> dict[str, Result]:
    """ID, and COT, beat Raw (Wang et al.), in points of accuracy, by `changes`.

    Parameters
    ----------
    answers : DataFrame
        From `read`.
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
    if silence == "any":
        answers = answers[~answers.key.isin(answers[answers.letter.eq("")].key)]
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


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """`claims` on every path, by `evaluate`; nothing is drawn."""
    choices = {
        "silence": ["wrong", "pairwise", "any"],
        "order": ["0", "1", "2", "3", "all four"] if parameters["ORDER"] == "rotate" else ["0"],
        "unit": ["item", "category"],
        "shares": ["right / n", "as released"],
    }
    return evaluate(
        {"parsing": RULES}, lambda parsing: read(parameters, model, parsing), choices, claims, 0.05,
        lambda unit, shares, **_: (unit, shares) != ("item", "as released"),
    )  # fmt: skip


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
    pair = pair.assign(category="all") if unit == "item" else pair
    table = changes(pair, "Raw", prompt, denominator, decimals).set_index("category")
    if unit == "item":
        return Result(*table.loc[OVERALL, ["change", "low", "high", "p"]])
    rows = table.drop(OVERALL)
    test = bias(rows[["after"]].to_numpy(), rows[["before"]].to_numpy())
    return Result(test.bias, test.low, test.high, test.p)
