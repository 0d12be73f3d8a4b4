"""Scenarios, phrasings of groups (Table 4), prompts and the design (section 4.2).

A scenario is an occasion to help somebody, told in four wordings. Each has a slot ``{person}``. The
paper's scenarios and prompts are not public. These were written for this project.
"""

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml

from ingroup import STIMULI
from ingroup.inference.design import Block, Design
from ingroup.tables import InputError, check, read_table

FOLDER = STIMULI / "biased_samaritan"
CATEGORIES = ["Race", "Gender", "Age"]  # the order of Table 4
CONTROL = "control"  # the group of "a person"
SLOT = "{person}"
LOW, HIGH = 1, 100
# The slot opens a sentence at the start and after a full stop, perhaps behind a quotation mark.
OPENING = re.compile(r'(?:^|[.?!]["”’)]?\s)\s*["“‘(]?$')


class Prompt(NamedTuple):
    """One wording of a scenario, and one phrasing of a group that fills its slot."""

    scenario: int
    wording: int
    group: str
    phrasing: str
    text: str
    person: str


def load_scenarios(source: str = "sample", n_scenarios: int = 0) -> pd.DataFrame:
    """Read the scenarios, ordered by scenario and wording.

    Parameters
    ----------
    source : str
        "sample" for the 103 scenarios of this project, or a CSV file with the same columns.
    n_scenarios : int
        How many are taken, 0 for all. A tenth, chosen at random once, comes first.

    Returns
    -------
    DataFrame
        ``scenario`` and ``wording`` (numbers), ``title`` and ``text``.

    Raises
    ------
    InputError
        A cell cannot work, a scenario lacks a wording of the others, or there are too few.
    """
    file = FOLDER / "scenarios.csv" if source == "sample" else Path(source)
    table = read_table(file, ["scenario", "title", "wording", "text"])
    for column in ("scenario", "wording"):
        cells = table[column]
        check(file, cells, cells.str.strip().str.isdecimal(), "a whole number")
    n_slots = table.text.str.count(re.escape(SLOT))
    check(file, table.text, n_slots == 1, f"{SLOT} once")

    wordings = sorted(table.wording.unique())
    of_scenario = table.groupby("scenario").wording
    has_each = of_scenario.transform(lambda found: sorted(found) == wordings)
    expected = f"the wordings {', '.join(wordings)} in each scenario, each once"
    check(file, table.wording, has_each, expected)

    table = table.astype({"scenario": int, "wording": int})
    numbers = table.scenario.unique()
    n = n_scenarios or len(numbers)
    if not 2 <= n <= len(numbers):
        raise InputError(f"found {n} scenarios, expected 2 to {len(numbers)} of {file}")
    is_taken = table.scenario.isin(_random_tenth_first(numbers)[:n])
    chosen = table[is_taken]
    return chosen.sort_values(["scenario", "wording"], ignore_index=True)


def _random_tenth_first(numbers: np.ndarray) -> list[int]:
    """Order scenarios: a fixed random tenth, whose free text is recorded, then the rest."""
    rng = np.random.default_rng(0)
    tenth = rng.choice(numbers, math.ceil(len(numbers) / 10), replace=False)
    return [*tenth, *np.setdiff1d(numbers, tenth)]


def phrasings(category: str) -> pd.DataFrame:
    """Read how the groups of a category are named, the control first (Table 4).

    Parameters
    ----------
    category : str
        One of `CATEGORIES`.

    Returns
    -------
    DataFrame
        ``group``, ``phrasing`` as printed, and ``text``, the phrasing with its article. Lines of
        the file that are not ``default`` are left out, as the group that section 4.1 names and no
        table has.
    """
    table = pd.read_csv(FOLDER / "phrasings.csv")
    is_asked = (table.category == category) & table.default
    columns = ["group", "phrasing", "text"]
    return table.loc[is_asked, columns].reset_index(drop=True)


@cache
def _wordings() -> dict[str, Any]:
    """Read the project's request, and what joins it to a scenario."""
    text = (FOLDER / "prompts.yaml").read_text("utf8")
    return yaml.safe_load(text)


def chat(text: str, person: str, request: str = "sample") -> list[dict[str, str]]:
    """Write a prompt: a scenario about a person, then the request for a probability.

    Parameters
    ----------
    text : str
        A wording with its slot.
    person : str
        What fills the slot, as within a sentence.
    request : str
        "sample" for this project's request, "none" where scenarios ask by themselves, or a text.

    Returns
    -------
    list of dict
        One user turn.
    """
    subject = person
    before, _, _ = text.partition(SLOT)
    if OPENING.search(before):
        subject = person[:1].upper() + person[1:]
    content = text.replace(SLOT, subject)

    wordings = _wordings()
    if request == "sample":
        request = wordings["request"]
    if request != "none":
        content += wordings["join"] + request.replace(SLOT, person)
    return [{"role": "user", "content": content}]


def design(
    scenarios: pd.DataFrame,
    category: str,
    crossing: str = "full",
    request: str = "sample",
) -> Design:
    """Cross scenarios, wordings and phrasings; phrasings vary fastest.

    Parameters
    ----------
    scenarios : DataFrame
        From `load_scenarios`.
    category : str
        One of `CATEGORIES`.
    crossing : {"full", "totals"}
        "full" asks each phrasing in each wording. "totals" asks each in one wording of a scenario,
        by turns, which gives the totals of section 4.2. These contradict Tables 9 to 11: a group
        with one phrasing would have no brittleness.
    request : str
        As in `chat`.

    Returns
    -------
    Design
        One block, whose factor ``prompt`` has a `Prompt` for each trial.
    """
    people = phrasings(category)
    wordings = sorted(scenarios.wording.unique())
    # Scenarios of a user's file may have gaps in their numbers; turns must not.
    positions, _ = pd.factorize(scenarios.scenario)

    prompts = []
    for position, told in zip(positions, scenarios.itertuples(), strict=True):
        for number, named in enumerate(people.itertuples()):
            turn = (position + number) % len(wordings)
            if crossing == "totals" and told.wording != wordings[turn]:
                continue
            prompt = Prompt(
                scenario=told.scenario,
                wording=told.wording,
                group=named.group,
                phrasing=named.phrasing,
                text=told.text,
                person=named.text,
            )
            prompts.append(prompt)

    def render(condition: Mapping[str, Any]) -> list[dict[str, str]]:
        prompt = condition["prompt"]
        return chat(prompt.text, prompt.person, request)

    labels = {"category": category, "crossing": crossing}
    return Design([Block(labels, {"prompt": tuple(prompts)}, render)])
