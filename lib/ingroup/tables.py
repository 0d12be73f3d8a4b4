"""Users' CSV, TSV and JSON files, read in one way: whatever is wrong is one sentence.

A sentence names the file, the line or key, the column, what was found and what was expected.
"""

import csv
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

csv.field_size_limit(sys.maxsize)  # a long text is no reason to refuse a file
_LINE_END = re.compile(r"\r++\n?|\n")


LONGEST = 2000  # characters of a message


class Sentence(Exception):
    """An error whose message a terminal shows as it is: see :func:`shown`."""

    def __init__(self, message: object = ""):
        super().__init__(shown(str(message)))


class InputError(Sentence, ValueError):
    """Input that cannot be used; the message is one sentence: where, what was found, expected."""


def shown(text: str) -> str:
    """Write a text of anyone's for a terminal, at most `LONGEST` characters of it.

    A character that moves the cursor, rings or colours becomes its code, e.g. ``\\x1b``; of a long
    text the middle is left out, so that a sentence keeps its place and what was expected.
    """
    half = LONGEST // 2
    if len(text) > LONGEST:
        text = f"{text[:half]} ... {text[-half:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def wrong(where: object, found: object, expected: object, column: str = "") -> InputError:
    """The error ``<where>, column '<column>': found ..., expected ...``; `where` is a file, or at
    a line of one (:func:`at`)."""
    place = f"{where}, column {column!r}" if column else where
    return InputError(f"{place}: found {found}, expected {expected}.")


def at(file: Path, line: int) -> str:
    """A line of a file, for :func:`wrong`."""
    return f"{file}, line {line}"


def decoded(file: Path) -> str:
    """The text of a UTF-8 file; InputError where it cannot be read or at which line it is not."""
    try:
        if file.exists() and not file.is_file():
            raise InputError(f"{file} cannot be read: it is no file.")
        return file.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise InputError(f"{file} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise wrong(at(file, line), "a byte that is not UTF-8", "UTF-8 text") from problem


def read_table(file: Path, columns: Sequence[str] = (), delimiter: str = ",") -> pd.DataFrame:
    """A table of texts, each row under the number of the line on which it begins, from 1.

    The first line names the columns, of which `columns` have to be there; blank lines are passed
    over. Cells are as written (str, "" where empty), a carriage return in one, quoted or not, too,
    unless one ends the first line. InputError as :func:`decoded`, for a file without columns or
    rows; a column missing or twice; a row too long or short; an open quote.
    """
    text, mark = decoded(file), "\r"
    if (end := _LINE_END.search(text)) and end[0].endswith("\n"):
        mark = next(c for c in map(chr, range(0xE000, 0xF900)) if c not in text)
        text = _LINE_END.sub(lambda e: e[0] if e[0][-1] == "\n" else mark * len(e[0]), text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    rows: dict[int, list[str]] = {}
    line = 1
    try:
        for cells in reader:
            if cells and not header:
                header = _header(at(file, line), cells, columns)
            elif cells:
                if len(cells) != len(header):
                    expected = f"{len(header)}; a text that holds the delimiter has to be in quotes"
                    raise wrong(at(file, line), f"{len(cells)} fields", expected)
                rows[line] = [cell.replace(mark, "\r") for cell in cells]
            line = reader.line_num + 1
    except csv.Error as problem:
        found = "a quote that does not close at the end of its field"
        expected = "texts in quotes, their own quotes doubled"
        raise wrong(at(file, line), found, expected) from problem
    if not rows:
        named = f"the columns {', '.join(columns)}" if columns else "a line with the columns"
        raise wrong(at(file, line), "the end of the file", "a row" if header else named)
    return pd.DataFrame([*rows.values()], pd.Index(rows, name="line"), header, dtype=object)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn a disk's refusal to write below a place into an InputError."""
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"{problem.filename or place} cannot be written: {problem.strerror}; make room on that "
            "disk, or allow writing there, and run again."
        ) from problem


def check(file: Path, column: pd.Series, good: pd.Series, expected: str) -> None:
    """InputError for the first cell of a column of a file's table that is not `good`."""
    for line in column.index[~good]:
        raise wrong(at(file, line), repr(column[line]), expected, column.name)


def once(file: Path, rows: pd.DataFrame, same: pd.DataFrame | None = None) -> None:
    """InputError for the first row of a file's table that is there already, as it or as `same`."""
    same = rows if same is None else same
    for line in same.index[same.duplicated()]:
        first = (same == same.loc[line]).all(axis=1).idxmax()
        found = ", ".join(f"{name} {cell!r}" for name, cell in rows.loc[line].items())
        expected = f"it once; it is there already in line {first}"
        raise wrong(at(file, line), f"{found} again", expected)


def _header(where: str, cells: list[str], columns: Sequence[str]) -> list[str]:
    """The names of the columns, each there once."""
    for column in dict.fromkeys([*columns, *cells]):
        if (times := cells.count(column)) != 1:
            found = f"it {times} times" if times else f"only {', '.join(cells)}"
            raise wrong(where, found, "it once", column)
    return cells


def read_json(file: Path) -> Any:
    """What a JSON file holds.

    InputError as :func:`decoded`, for an empty file, what is not JSON, a key twice in an object.
    """
    text = decoded(file)
    if not text.strip():
        raise wrong(file, "an empty file", "JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(made := dict(pairs)) < len(pairs):
            ((twice, times),) = Counter(name for name, _ in pairs).most_common(1)
            raise wrong(f"{file}, key {twice!r}", f"it {times} times in one object", "it once")
        return made

    try:
        whole = lambda n: int(n) if len(n) <= 4300 else float(n)  # noqa: E731 (more, int refuses)
        return json.loads(text, object_pairs_hook=once, parse_int=whole)
    except json.JSONDecodeError as problem:
        where = f"{at(file, problem.lineno)}, column {problem.colno}"
        raise wrong(where, f"what is not JSON ({problem.msg})", "JSON") from problem
    except RecursionError as problem:
        raise wrong(file, "lists or objects that are nested too deeply", "JSON") from problem
