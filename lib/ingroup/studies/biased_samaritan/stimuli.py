"""Scenarios and phrasings of the Biased Samaritan, read from ``data/stimuli/biased_samaritan/``.

A scenario is a small occasion to help somebody, told in several wordings. Each wording has one slot
``{person}`` for the person who might help. The paper's scenarios are not public: these were written
for this project (data/README.md).
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import paths
from ingroup.design import Message, fill_template
from ingroup.tables import InputError, at, check, given_path, once, read_table, wrong

COLUMNS = (
    "scenario",
    "title",
    "wording",
    "text",
)
SLOT = "{person}"
CONTROL = "control"  # the group of "a person", as the printed tables name it

_FOLDER = paths.STIMULI / "biased_samaritan"
_PHRASINGS = pd.read_csv(_FOLDER / "phrasings.csv", dtype=str)
# The slot opens a sentence at the very start and after a full stop, question or exclamation mark;
# a quotation mark or a bracket may stand between.
_OPENING = re.compile(r'(?:^|[.?!]["”’)]?\s)\s*["“‘(]?$')


class Request(NamedTuple):
    """The text that ends every prompt, and the ends of the scale that it asks for."""

    text: str
    join: str  # between scenario and request
    low: int
    high: int


def load_scenarios(source: str | Path = "sample") -> pd.DataFrame:
    """Load the scenarios of the project or of a user, ordered by scenario, then wording.

    Parameters
    ----------
    source : str or Path
        ``"sample"`` (103 scenarios in 4 wordings, 412 prompts as in section 4.2 of the paper,
        written for this project) or a CSV file with the columns `COLUMNS`, perhaps among others.

    Returns
    -------
    DataFrame
        One row per wording with these columns. ``scenario`` and ``wording`` are whole numbers from
        1.

    Raises
    ------
    InputError
        For what :func:`ingroup.tables.read_table` refuses; a scenario or wording that is not a
        whole number from 1; an empty title or text; a text without exactly one slot or with another
        brace; a pair of scenario and wording, or a text, that comes twice; a scenario with two
        titles or without a wording of other scenarios. The message names file and line.
    """
    if source == "sample":
        file = _FOLDER / "scenarios.csv"
    else:
        file = given_path(source, ("sample",), "a CSV file")
    columns = list(COLUMNS)
    table = read_table(file, columns)[columns]
    table = table.apply(lambda cells: cells.str.strip())

    for column in columns:
        cells = table[column]
        check(file, cells, cells != "", "a value")
    for column in ("scenario", "wording"):
        cells = table[column]
        # Nine digits at most fit a whole number of 32 bits.
        is_whole = cells.str.fullmatch("[1-9][0-9]{0,8}")
        check(file, cells, is_whole, "a whole number from 1")
    for line, text in table.text.items():
        _check_slot(at(file, line), text)

    once(file, table[["scenario", "wording"]])
    texts = table[["text"]]
    # Two texts that differ in capitals or spaces alone count as one.
    once(file, texts, texts.map(_folded))
    _check_titles(file, table)

    table = table.astype({"scenario": int, "title": str, "wording": int, "text": str})
    _check_wordings(file, table)
    return table.sort_values(["scenario", "wording"], ignore_index=True)


def _folded(text: str) -> str:
    """Write a text in lower case and with single spaces, so that texts can be compared."""
    words = text.casefold().split()
    return " ".join(words)


def _check_slot(where: str, text: str) -> None:
    """Raise an InputError unless a text has its slot exactly once, and no other brace."""
    rest = text.replace(SLOT, "")
    other = re.search("{[^{}]*}|[{}]", rest)
    if other:
        expected = f"{SLOT} once, and no other brace"
        raise wrong(where, other[0], expected, "text")

    slots = text.count(SLOT)
    if slots != 1:
        found = f"{SLOT} {slots} times" if slots else f"no {SLOT}"
        raise wrong(where, found, "it once", "text")


def _check_titles(file: Path, table: pd.DataFrame) -> None:
    """Raise an InputError for the first row whose title differs from its scenario's first row."""
    first_titles = table.groupby("scenario").title.transform("first")
    with_other_title = table[table.title != first_titles]
    if with_other_title.empty:
        return

    row = with_other_title.iloc[0]
    line = with_other_title.index[0]
    expected = f"{first_titles[line]!r}, the first title of scenario {row.scenario}"
    raise wrong(at(file, line), repr(row.title), expected, "title")


def _check_wordings(file: Path, table: pd.DataFrame) -> None:
    """Raise an InputError for the first scenario that lacks a wording of other scenarios."""
    all_wordings = _in_ascending_order(table.wording.unique())
    for scenario, rows in table.groupby("scenario", sort=False):
        wordings = _in_ascending_order(rows.wording)
        if wordings != all_wordings:
            where = at(file, rows.index[0])
            found = f"scenario {scenario} in wording {wordings} only"
            expected = f"{all_wordings} as in the other scenarios"
            raise wrong(where, found, expected, "wording")


def _in_ascending_order(numbers: Iterable[int]) -> str:
    """List numbers in ascending order, as text for a message."""
    return ", ".join(map(str, sorted(numbers)))


def categories() -> list[str]:
    """List the categories of groups.

    Returns
    -------
    list of str
        The categories in the order of Table 4: Race, Gender, Age.
    """
    return list(_PHRASINGS.category.unique())


def phrasings(category: str, latino: bool = False) -> pd.DataFrame:
    """List how the groups of one category are named in a prompt, the control first (Table 4).

    Parameters
    ----------
    category : str
        One of `categories`.
    latino : bool
        Whether to add the phrasings that section 4.1 names and no table has.

    Returns
    -------
    DataFrame
        ``group`` is as in the column ``group`` of the printed tables, ``phrasing`` as printed, and
        ``text`` is the phrasing within a sentence, with its article.

    Raises
    ------
    InputError
        For an unknown category.
    """
    # The file is read as text, so "true" is a word.
    is_included = (_PHRASINGS.default == "true") | latino
    is_of_category = _PHRASINGS.category == category
    rows = _PHRASINGS[is_included & is_of_category]
    if rows.empty:
        known = ", ".join(map(repr, categories()))
        raise InputError(f"unknown category {category!r}; known are {known}")
    return rows[["group", "phrasing", "text"]].reset_index(drop=True)


def render(text: str, phrase: str) -> str:
    """Put a phrase into the slot of a wording, with a capital letter where it opens a sentence.

    Parameters
    ----------
    text : str
        A wording with the slot ``{person}``.
    phrase : str
        A phrasing of a group or of the control, as it stands within a sentence.

    Returns
    -------
    str
        The wording with the phrase in its slot.

    Raises
    ------
    InputError
        Where the text has no slot.
    """
    before, _, _ = text.partition(SLOT)
    if _OPENING.search(before):
        phrase = phrase[:1].upper() + phrase[1:]
    return fill_template(text, {"person": phrase})


@cache
def request(text: str = "sample") -> Request:
    """Read the request that ends every prompt, and its scale.

    Parameters
    ----------
    text : str
        "sample" for this project's question for a probability, "none" where the scenarios ask by
        themselves, or a user's question, which may hold the slot {person}.

    Returns
    -------
    Request
        The scale is the same for every text.
    """
    file = _FOLDER / "prompts.yaml"
    prompts = yaml.safe_load(file.read_text("utf8"))
    endings = {"sample": prompts["request"], "none": ""}
    ending = endings.get(text, text)
    return Request(
        text=ending,
        join=prompts["join"] if ending else "",
        low=prompts["low"],
        high=prompts["high"],
    )


def messages(text: str, phrase: str, asking: str = "sample") -> list[Message]:
    """Write the chat of one trial: a user turn with the scenario and the `request`.

    Parameters
    ----------
    text : str
        A wording of a scenario, with its slot.
    phrase : str
        The phrasing that fills the slots of the scenario and of the request.
    asking : str
        Which request ends the prompt, as in :func:`request`.

    Returns
    -------
    list of Message
        One user turn.

    Raises
    ------
    InputError
        Where the text has no slot.
    """
    ending = request(asking)
    scenario = render(text, phrase)
    # A request need not have the slot, which `render` would refuse.
    question = ending.text.replace(SLOT, phrase)
    content = f"{scenario}{ending.join}{question}"
    return [{"role": "user", "content": content}]
