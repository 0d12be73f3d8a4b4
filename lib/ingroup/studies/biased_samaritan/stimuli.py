"""Scenarios and phrasings of the Biased Samaritan, read from ``data/stimuli/biased_samaritan/``.

A scenario is a small occasion to help somebody, told in several wordings; each wording has one slot
``{person}`` for whoever might help. The paper's scenarios are not public: these were written for
this project (data/README.md).
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import paths
from ingroup.design import Message, filled
from ingroup.tables import InputError, at, check, once, read_table, wrong

COLUMNS = ("scenario", "title", "wording", "text")
SLOT = "{person}"
CONTROL = "control"  # the group of "a person", as the printed tables name it

_FOLDER = paths.STIMULI / "biased_samaritan"
_PHRASINGS = pd.read_csv(_FOLDER / "phrasings.csv", dtype=str)
# The slot opens a sentence at the very start and after a full stop, question or exclamation mark;
# a quotation mark or a bracket may stand between.
_OPENING = re.compile(r'(?:^|[.?!]["”’)]?\s)\s*["“‘(]?$')


class Request(NamedTuple):
    """How every prompt ends, and the ends of the scale that it asks for."""

    text: str
    join: str  # between scenario and request
    low: int
    high: int


def load_scenarios(source: str | Path = "sample") -> pd.DataFrame:
    """The scenarios of the project or of a user, ordered by scenario, then wording.

    `source` is ``"sample"`` (103 scenarios in 4 wordings, 412 prompts as in section 4.2 of the
    paper, written for this project) or a CSV file with the columns `COLUMNS`, perhaps among others.
    One row a wording with these columns; ``scenario`` and ``wording`` are whole numbers from 1.

    InputError names file and line: of what :func:`ingroup.tables.read_table` refuses; a number that
    is none; an empty title or text; a text without its one slot or with another brace; a pair of
    scenario and wording, or a text, that comes twice; a scenario with two titles or without a
    wording that others have. Checked with a file for each.
    """
    file = _FOLDER / "scenarios.csv" if source == "sample" else Path(source).expanduser()
    told = read_table(file, COLUMNS)[list(COLUMNS)].apply(lambda texts: texts.str.strip())
    for column in COLUMNS:
        check(file, told[column], told[column] != "", "a value")
    for column in ("scenario", "wording"):
        whole = told[column].str.fullmatch("[1-9][0-9]{0,8}")
        check(file, told[column], whole, "a whole number from 1")
    for line, text in told.text.items():
        if (slots := text.count(SLOT)) != 1:
            raise wrong(at(file, line), f"{slots} slots {SLOT}", "exactly one", "text")
        if brace := re.search("[{}]", text.replace(SLOT, "")):
            expected = f"none but those of {SLOT}"
            raise wrong(at(file, line), f"a stray brace {brace[0]!r}", expected, "text")
    once(file, told[["scenario", "wording"]])
    once(file, told[["text"]], told[["text"]].map(lambda text: " ".join(text.casefold().split())))
    title = told.groupby("scenario").title.transform("first")
    for line in told.index[told.title != title]:
        expected = f"{title[line]!r}, the first title of scenario {told.scenario[line]}"
        raise wrong(at(file, line), repr(told.title[line]), expected, "title")
    told = told.astype({"scenario": int, "title": str, "wording": int, "text": str})
    wordings = sorted(told.wording.unique())
    for scenario, rows in told.groupby("scenario", sort=False):
        if (here := sorted(rows.wording)) != wordings:
            some, every = (", ".join(map(str, these)) for these in (here, wordings))
            found = f"scenario {scenario} in wording {some} only"
            expected = f"{every} as in the other scenarios"
            raise wrong(at(file, rows.index[0]), found, expected, "wording")
    return told.sort_values(["scenario", "wording"], ignore_index=True)


def categories() -> list[str]:
    """Categories of groups in the order of Table 4: Race, Gender, Age."""
    return list(_PHRASINGS.category.unique())


def phrasings(category: str, latino: bool = False) -> pd.DataFrame:
    """How the groups of one category are named in a prompt, the control first (Table 4).

    ``group`` is as in the column of that name in the printed tables, ``phrasing`` as printed,
    ``text`` as it stands in a sentence, with its article. `latino` adds the phrasings that section
    4.1 names and no table has. InputError for an unknown category.
    """
    table = _PHRASINGS[(_PHRASINGS.default == "true") | latino]
    rows = table[table.category == category]
    if rows.empty:
        known = ", ".join(repr(name) for name in categories())
        raise InputError(f"unknown category {category!r}; known are {known}")
    return rows[["group", "phrasing", "text"]].reset_index(drop=True)


def render(text: str, phrase: str) -> str:
    """Put a phrase into the slot of a wording, with a capital letter where it opens a sentence.

    InputError where the text has no slot.
    """
    if _OPENING.search(text.partition(SLOT)[0]):
        phrase = phrase[:1].upper() + phrase[1:]
    return filled(text, {"person": phrase})


@cache
def request(text: str = "sample") -> Request:
    """What ends every prompt: "sample", this project's question for a probability; "none", where
    the scenarios ask by themselves; or a question of a user's. It may hold the slot {person}, and
    the scale is the same."""
    prompts = yaml.safe_load((_FOLDER / "prompts.yaml").read_text("utf8"))
    end = {"sample": prompts["request"], "none": ""}.get(text, text)
    return Request(end, prompts["join"] if end else "", prompts["low"], prompts["high"])


def messages(text: str, phrase: str, asking: str = "sample") -> list[Message]:
    """The chat of one trial: a user turn with the rendered scenario, then :func:`request`.

    The request names the person with the same `phrase` as the scenario.
    """
    end = request(asking)
    asked = end.text.replace(SLOT, phrase)
    return [{"role": "user", "content": f"{render(text, phrase)}{end.join}{asked}"}]
