"""Group profiles of GIEBench: the gain from naming an identity, and claims tested on every path."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ingroup.design import Block
from ingroup.families import families
from ingroup.inference import Job, StoreError, rated_by
from ingroup.parsing import Rule
from ingroup.stats.multiverse import Result, attempt, evaluate, mark_uninformative
from ingroup.stats.paired import PairedTest, paired_test
from ingroup.stats.power import smallest_paired_effect
from ingroup.studies.giebench import design, stimuli
from ingroup.studies.giebench.answers import load
from ingroup.studies.giebench.ground_truth import GroundTruth
from ingroup.studies.giebench.statistics import OVERALL, changes, share_right
from ingroup.synthesis import PlannedTest, View, rules, ways_to_read

MEASURES = ("accuracy gained",)
VERDICTS = ["prompt", "category", "key", "shift", "correct", "letter"]  # columns that claims need
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


def views(
    parameters: Mapping[str, Any], model: str, groups: Mapping[str, str], file: Path | None = None
) -> list[View]:
    """Return the gain of each item as this study's view for the synthesis.

    `ingroup.synthesis` explains views.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run.
    model : str
        The model's name.
    groups : mapping of str to str
        The shared group of each identity.
    file : Path, optional
        A calibrant's ground-truth answers, in place of its replies.

    Returns
    -------
    list of View
        One view. With a ``file``, there is none for other questions than the sample's, which have
        no ground truth.
    """
    if file and parameters["QUESTIONS"] != "sample":
        return []

    answers = _read(parameters, model, parameters["PARSING"], file)
    # The gain is that of ID over Raw, so its unit is the SD of verdicts under these two.
    raw_and_id = answers[answers.prompt != "COT"]
    is_right = raw_and_id.letter.eq(raw_and_id.correct)
    view = View(
        *MEASURES,
        items=gain_by_item(answers, groups),
        sd=is_right.std(),
        # Every group has items of its own.
        together=False,
    )
    return [view]


def gain_by_item(answers: pd.DataFrame, groups: Mapping[str, str]) -> pd.DataFrame:
    """Compute the gain of each item: its share right under ID minus its share right under Raw.

    Parameters
    ----------
    answers : DataFrame
        Answers of `load` under Raw and ID. An answer without a verdict is wrong.
    groups : mapping of str to str
        The group of each identity; items of other identities are left out.

    Returns
    -------
    DataFrame
        Items by groups: the gain, -1 to 1. A share right is over the orders of an item's answers.
        The gain is NaN outside the item's own group.
    """
    right = share_right(answers)
    identity = answers.drop_duplicates("key").set_index("key").identity
    group = identity.map(groups).dropna()
    gain = (right.ID - right.Raw)[group.index]
    table = pd.DataFrame({"gain": gain, "group": group})
    return table.pivot(columns="group", values="gain")


def effects(parameters: Mapping[str, Any], model: str) -> pd.DataFrame:
    """Compute the share right of each item under each prompt, and the gains of ID and COT.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run.
    model : str
        The model's name.

    Returns
    -------
    DataFrame
        Items by "right under Raw", "right under ID", "right under COT", "ID over Raw" and "COT over
        Raw", in percent: means over the orders of an item's answers.
    """
    answers = _read(parameters, model, parameters["PARSING"])
    by_prompt = 100 * share_right(answers)[list(design.PROMPTS)]
    gains = by_prompt[["ID", "COT"]].sub(by_prompt.Raw, axis=0)
    return by_prompt.add_prefix("right under ").join(gains.add_suffix(" over Raw"))


def power(planned: Mapping[str, Any], recorded: Mapping[str, Any], model: str) -> list[PlannedTest]:
    """Plan the test of COT's gain over Raw, by item, over the orders of its answers.

    Parameters
    ----------
    planned : mapping
        Parameters of the planned run, whose items count.
    recorded : mapping
        Parameters of the recorded run, whose answers give the spread.
    model : str
        The recorded model's name.

    Returns
    -------
    list of Tested
        One test, in points of 100 more right verdicts.
    """
    answers = _read(recorded, model, recorded["PARSING"])
    right = 100 * share_right(answers)
    other_prompts = right.columns.drop("Raw")

    n = len(stimuli.load_questions(planned["QUESTIONS"]))
    # By Holm's correction, the smallest p of the tests over Raw has to be below this level.
    level = families()["giebench"].level / len(other_prompts)
    test = PlannedTest(
        effect="points of 100 more right verdicts",
        items="items",
        n=n,
        name="paired t-test",
        level=level,
        smallest=smallest_paired_effect(n, level),
        spread=float((right.COT - right.Raw).std()),
    )
    return [test]


def claims(
    answers: pd.DataFrame, silence: str, order: str, unit: str, shares: str
) -> dict[str, Result]:
    """Test whether ID, and COT, beat Raw (Wang et al.), in points of accuracy.

    Parameters
    ----------
    answers : DataFrame
        Answers of `load` under all three prompts.
    silence, order, unit, shares : str
        One option of each of `CHOICES`.

    Returns
    -------
    dict of str to Result
        "ID over Raw" and "COT over Raw". The reason of a result says where so few items could not
        have been significant, and where the verdict is the same for every question: which answer
        is right differs from question to question, so that such verdicts show nothing of it.
    """
    # This comes before one order is chosen: no verdict in any order or prompt takes the item out.
    if silence == "listwise":
        answers = _without_silent(answers)
    if order != "mean":
        answers = answers[answers["shift"] == int(order)]

    results = {}
    for prompt in ("ID", "COT"):
        pair = answers[answers.prompt.isin(["Raw", prompt])]
        if silence == "pairwise":
            pair = _without_silent(pair)
        if order == "mean":
            result = attempt(_mean_change, pair, prompt, unit)
        elif unit == "item":
            result = attempt(_item_change, pair, prompt, shares)
        else:
            result = attempt(_category_change, pair, prompt, shares)
        if _ignores_the_question(pair):
            result = mark_uninformative(result, "all questions get the same verdict or none")
        results[f"{prompt} over Raw"] = result
    return results


def _ignores_the_question(answers: pd.DataFrame) -> bool:
    """Tell whether all questions have the same verdict, or none, under each prompt and order."""
    n_letters = answers.groupby(["prompt", "shift"]).letter.nunique()
    return len(n_letters) > 0 and bool((n_letters == 1).all())


def paths(parameters: Mapping[str, Any], model: str, options: Mapping[str, Any]) -> pd.DataFrame:
    """Test `claims` on every path, by `evaluate`.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run.
    model : str
        The model's name.
    options : mapping
        Not used: this study has no draws.

    Returns
    -------
    DataFrame
        As :func:`ingroup.stats.multiverse.evaluate` makes it.
    """
    choices = dict(CHOICES)
    if parameters["ORDER"] != "rotate":
        choices["order"] = ["0"]

    # Only `VERDICTS` are read, as why a reply has no verdict changes no claim.
    def read(parsing, reading):
        return _read(parameters, model, parsing)[VERDICTS]

    # The released shares change p only in a test over categories, in one order of the answers.
    def applies(unit, shares, order, **_):
        return shares == "paper" or (unit == "category" and order != "mean")

    jobs = _jobs(parameters, model)
    # Letters are the same under every reading.
    first_reading = next(iter(ways_to_read(jobs)))
    readings = {"parsing": rules(jobs), "reading": [first_reading]}
    level = families()["giebench"].level
    return evaluate(readings, read, choices, claims, level, applies)


def _read(
    parameters: Mapping[str, Any], model: str, rule: Rule, file: Path | None = None
) -> pd.DataFrame:
    """Read the verdicts under the three prompts, of the replies or of a ground-truth file."""
    tables = []
    for job in _jobs(parameters, model):
        table = load(job, rule)
        if file:
            table["letter"] = GroundTruth(file).letters(*job.design.blocks)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _jobs(parameters: Mapping[str, Any], model: str) -> list[Job]:
    """Select the jobs that give a model's verdicts under the three prompts.

    Raise a StoreError if a prompt has no stored answers.
    """
    jobs = []
    missing = set(design.PROMPTS)
    for job in rated_by(model, design.jobs(parameters)):
        plan = job.labels["plan"]
        if plan in design.PROMPTS:
            jobs.append(job)
            missing.discard(plan)

    if missing:
        absent = ", ".join(sorted(missing))
        raise StoreError(f"{model} has no stored answers under {absent}; run the study again")
    return jobs


def _without_silent(answers: pd.DataFrame) -> pd.DataFrame:
    """Leave out the items that lack a verdict in any of their answers."""
    silent = answers.key[answers.letter.eq("")]
    return answers[~answers.key.isin(silent)]


def _item_change(pair: pd.DataFrame, prompt: str, shares: str) -> Result:
    """Test the change in one order, by McNemar's test of the items."""
    # Only Overall is read, so the items are taken as one category.
    overall = _changes(pair.assign(category="all"), prompt, shares).loc[OVERALL]
    reason = ""
    if overall.finding.startswith("could not"):
        reason = f"{overall.finding}: p of {overall.n} items is at least {overall.p_least:g}"

    return Result(
        estimate=overall.change,
        low=overall.low,
        high=overall.high,
        p=overall.p,
        reason=reason,
        least=overall.p_least,
    )


def _category_change(pair: pd.DataFrame, prompt: str, shares: str) -> Result:
    """Test the change in one order, by a t-test of the categories' accuracies."""
    categories = _changes(pair, prompt, shares).drop(OVERALL)
    if len(categories) < 2:
        raise ValueError(f"found {len(categories)} categories to pair, expected at least 2")
    return _result(paired_test(categories.after, categories.before))


def _changes(pair: pd.DataFrame, prompt: str, shares: str) -> pd.DataFrame:
    """Compute the `changes` from Raw to another prompt, by category."""
    if pair.empty:
        raise ValueError("no item has a verdict under both prompts")
    # The released code rounds shares to three decimals.
    decimals = 3 if shares == "released" else None
    return changes(pair, "Raw", prompt, shares, decimals).set_index("category")


def _mean_change(pair: pd.DataFrame, prompt: str, unit: str) -> Result:
    """Test the change in an item's share of right orders, over items or categories."""
    right = 100 * share_right(pair)
    if unit == "category":
        category = pair.drop_duplicates("key").set_index("key").category
        right = right.groupby(category, sort=False).mean()
    if len(right) < 2:
        raise ValueError(f"found {len(right)} pairs, one per {unit}, expected at least 2")
    return _result(paired_test(right[prompt], right.Raw))


def _result(test: PairedTest) -> Result:
    """Turn a paired test into the result of a claim."""
    return Result(
        estimate=float(test.difference),
        low=float(test.low),
        high=float(test.high),
        p=float(test.pvalue),
        least=float(test.least),
    )


def items(block: Block) -> list[Hashable]:
    """List the items of a block of the design, its questions.

    Parameters
    ----------
    block : Block
        A block of the study's design.

    Returns
    -------
    list of hashable
        The key of each question.
    """
    return [asked.question.key for asked in block.factors["asked"]]


def extent(jobs: Sequence[Job], printed: Mapping[str, str]) -> tuple[int, int]:
    """Count the paper's prompts for a model, and its questions.

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
    # The paper prints no number for questions about another identity.
    n_questions = int(printed["questions"])
    matching = [job for job in jobs if "mismatch" not in job.labels["plan"]]
    return n_questions * len(matching), n_questions
