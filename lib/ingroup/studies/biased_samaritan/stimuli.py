"""Scenarios and phrasings of the Biased Samaritan, read from ``data/stimuli/biased_samaritan/``.

A scenario is a small occasion to help somebody, told in several wordings; each wording has one slot
``{person}`` for whoever might help. The paper's scenarios are not public: these were written for
this project (data/README.md). Whoever has others gives a CSV with the same columns.
"""

import csv
import io
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import paths
from ingroup.design import Message, filled
from ingroup.tables import InputError, decoded

COLUMNS = ("scenario", "title", "wording", "text")
SLOT = "{person}"
CONTROL = "control"  # the group of "a person", as the printed tables name it

_FOLDER = paths.STIMULI / "biased_samaritan"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
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
    """Read the scenarios of the project or of a user.

    Parameters
    ----------
    source : str or Path
        ``"sample"`` (103 scenarios in 4 wordings, written for this project) or the path of a CSV
        file in UTF-8 with the columns `COLUMNS`; other columns are passed over.

    Returns
    -------
    pandas.DataFrame
        One row a wording with the columns `COLUMNS` (``scenario`` and ``wording`` are whole
        numbers from 1), ordered by scenario, then wording, whatever the order of the file.

    Raises
    ------
    InputError
        Naming file and line: for a file that cannot be read, is not UTF-8, is empty or has an
        open quote; a missing column or a wrong number of fields; a number that is none; an empty
        title or text; a text without its one slot or with another brace; a pair of scenario and
        wording, or a text, that comes twice; a scenario with two titles or without a wording that
        others have.

    Notes
    -----
    The paper has 103 scenarios with 4 wordings, 412 prompts (Fagan et al. 2025, section 4.2).
    Checked with a file for every sentence above (tests/studies).
    """
    file = _FOLDER / "scenarios.csv" if source == "sample" else Path(source).expanduser()
    pairs: dict[tuple[int, int], int] = {}
    texts: dict[str, int] = {}
    titles: dict[int, tuple[str, int]] = {}
    rows = []
    for line, row in _lines(file):
        scenario, wording, text = _check(f"{file}, line {line}", row)
        if (first := pairs.setdefault((scenario, wording), line)) != line:
            raise InputError(
                f"{file}, line {line}, column 'wording': found scenario {scenario}, wording "
                f"{wording} again, expected it once; it is there already in line {first}."
            )
        if (first := texts.setdefault(" ".join(text.casefold().split()), line)) != line:
            raise InputError(
                f"{file}, line {line}, column 'text': found the text of line {first} again, "
                "expected another."
            )
        title, first = titles.setdefault(scenario, (row["title"].strip(), line))
        if title != row["title"].strip():
            raise InputError(
                f"{file}, line {line}, column 'title': found {row['title'].strip()!r}, expected "
                f"{title!r} as in line {first}, which is scenario {scenario} too."
            )
        rows.append((scenario, title, wording, text))
    wordings = sorted({wording for _, wording in pairs})
    for scenario, (_, line) in titles.items():
        found = [wording for wording in wordings if (scenario, wording) in pairs]
        if found != wordings:
            raise InputError(
                f"{file}, line {line}, column 'wording': found scenario {scenario} in wording "
                f"{_listed(found)} only, expected {_listed(wordings)} as in the other scenarios."
            )
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values(["scenario", "wording"], ignore_index=True)


def categories() -> list[str]:
    """Categories of groups in the order of Table 4: Race, Gender, Age."""
    return list(_phrasings().category.unique())


def phrasings(category: str, latino: bool = False) -> pd.DataFrame:
    """How the groups of one category are named in a prompt, the control first (Table 4).

    Parameters
    ----------
    category : str
        ``"Race"``, ``"Gender"`` or ``"Age"``.
    latino : bool
        Whether to add the Latino phrasings, which section 4.1 of the paper names and no table has.

    Returns
    -------
    pandas.DataFrame
        ``group`` as in the column of that name in the printed tables, ``phrasing`` as printed,
        ``text`` as it stands in a sentence, with its article. Row 0 is `CONTROL`.

    Raises
    ------
    InputError
        For an unknown category.
    """
    table = _phrasings()
    rows = table[(table.category == category) & ((table.default == "true") | latino)]
    if rows.empty:
        known = ", ".join(repr(name) for name in categories())
        raise InputError(f"unknown category {category!r}; known are {known}")
    return rows[["group", "phrasing", "text"]].reset_index(drop=True)


def render(text: str, phrase: str) -> str:
    """Put a phrase into the slot of a wording, with a capital letter where it opens a sentence.

    Raises
    ------
    InputError
        Where the text has no slot.
    """
    if _OPENING.search(text.partition(SLOT)[0]):
        phrase = phrase[:1].upper() + phrase[1:]
    return filled(text, {"person": phrase})


@cache
def request() -> Request:
    """The question for a probability that ends every prompt; written for this project."""
    prompts = yaml.safe_load((_FOLDER / "prompts.yaml").read_text("utf8"))
    return Request(prompts["request"], prompts["join"], prompts["low"], prompts["high"])


def messages(text: str, phrase: str) -> list[Message]:
    """The chat of one trial: a single user turn with the rendered scenario, then the request."""
    end = request()
    return [{"role": "user", "content": f"{render(text, phrase)}{end.join}{end.text}"}]


def _phrasings() -> pd.DataFrame:
    return pd.read_csv(_FOLDER / "phrasings.csv", dtype=str)


def _lines(file: Path) -> list[tuple[int, dict[str, str]]]:
    """Every record with the number of the line on which it begins; blank lines are left out."""
    content = decoded(file)
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    header, records, line = None, [], 1
    try:
        for cells in reader:
            if header is None:
                header = _header(file, cells)
            elif cells:
                if len(cells) != len(header):
                    raise InputError(
                        f"{file}, line {line}: found {len(cells)} fields, expected {len(header)}; "
                        "a text with a comma has to be in quotes."
                    )
                records.append((line, dict(zip(header, cells, strict=True))))
            line = reader.line_num + 1
    except csv.Error as problem:
        raise InputError(
            f"{file}, line {line}: found a quote that does not close at the end of its field, "
            "expected texts in quotes, their own quotes doubled."
        ) from problem
    if not records:
        raise InputError(
            f"{file}, line {line}: found the end of the file, expected "
            f"{'a scenario' if header else 'the columns ' + ', '.join(COLUMNS)}."
        )
    return records


def _header(file: Path, cells: list[str]) -> list[str]:
    for column in COLUMNS:
        if cells.count(column) != 1:
            raise InputError(
                f"{file}, line 1, column {column!r}: found it {cells.count(column)} times among "
                f"{', '.join(cells) or 'nothing'}, expected it once."
            )
    return cells


def _check(where: str, row: dict[str, str]) -> tuple[int, int, str]:
    """Scenario, wording and text of one record, each looked at by itself."""
    for column in COLUMNS:
        if not row[column].strip():
            raise InputError(f"{where}, column {column!r}: found nothing, expected a value.")
    for column in ("scenario", "wording"):
        if not _NUMBER.fullmatch(row[column].strip()):
            raise InputError(
                f"{where}, column {column!r}: found {row[column]!r}, expected a whole number "
                "from 1."
            )
    text = row["text"].strip()
    if (slots := text.count(SLOT)) != 1:
        raise InputError(
            f"{where}, column 'text': found {slots} slots {SLOT}, expected exactly one."
        )
    if brace := re.search("[{}]", text.replace(SLOT, "")):
        raise InputError(
            f"{where}, column 'text': found a stray brace {brace.group()!r}, expected none but "
            f"those of {SLOT}."
        )
    return int(row["scenario"]), int(row["wording"]), text


def _listed(numbers: list[int]) -> str:
    return ", ".join(str(number) for number in numbers)
