"""One reader for users' CSV, TSV, JSON and YAML files, and its errors of one sentence each.

A sentence names the file, the line or key, the column, the content, and what was expected instead.
"""

import csv
import difflib
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

csv.field_size_limit(sys.maxsize)  # a long text is no reason to refuse a file

# What a table may have between two cells, in words.
_DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons"}

# What a file is instead of UTF-8 text, by its first bytes.
_OTHER_FILES = {
    b"PK\x03\x04": "an Excel workbook or another zip file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}

MAX_MESSAGE_LENGTH = 2000  # characters of a message


class Sentence(Exception):
    """An error whose message a terminal or a notebook can show, made safe by :func:`shown`.

    Parameters
    ----------
    message : object
        What is wrong, as one sentence.
    """

    def __init__(self, message: object = ""):
        super().__init__(shown(str(message)))

    def _render_traceback_(self) -> list[str]:
        """Return the sentence alone, which IPython shows in the place of a traceback."""
        return [str(self)]


class InputError(Sentence, ValueError):
    """Input that cannot be used. The message names the place, what was found and expected."""


def shown(text: str) -> str:
    """Make any text safe for a terminal.

    Parameters
    ----------
    text : str
        A text, perhaps of a user or a model.

    Returns
    -------
    str
        About `MAX_MESSAGE_LENGTH` characters at most: the middle of a longer text is left out, so
        that a sentence keeps its place and what was expected. A character that moves the cursor,
        rings or colours becomes its code, e.g. ``\\x1b``.
    """
    half = MAX_MESSAGE_LENGTH // 2
    if len(text) > MAX_MESSAGE_LENGTH:
        text = f"{text[:half]} ... {text[-half:]}"
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    """Return a character, or its code if a terminal would not print it."""
    if character.isprintable() or character == "\n":
        return character
    return ascii(character).strip("'")


def wrong(
    where: object, found: object, expected: object, column: str = "", question: str = ""
) -> InputError:
    """Make the error ``<where>, column '<column>': found ..., expected ...``.

    Parameters
    ----------
    where : object
        A file, or a line of one (:func:`at`).
    found, expected : object
        The content, and what it should be.
    column : str
        The name of a column, if the content is a cell.
    question : str
        The end of the sentence, from :func:`hint`.

    Returns
    -------
    InputError
        The error, to be raised.
    """
    place = where
    if column:
        place = f"{where}, column {column!r}"
    return InputError(f"{place}: found {found}, expected {expected}{question or '.'}")


def hint(name: str, known: Collection[str]) -> str:
    """Ask whether the nearest known name was meant.

    Parameters
    ----------
    name : str
        An unknown name.
    known : collection of str
        The known names.

    Returns
    -------
    str
        The end of a sentence, ``; did you mean ...?``; "" where no name is near.
    """
    by_lower = {known_name.lower(): known_name for known_name in known}
    nearest = difflib.get_close_matches(name.lower(), by_lower, n=1)
    if not nearest:
        return ""
    return f"; did you mean {by_lower[nearest[0]]}?"


def given_path(value: str | Path, known: Sequence[str], kind: str) -> Path:
    """Return the path that a parameter gives instead of the name of this project's data.

    Parameters
    ----------
    value : str or Path
        What was given.
    known : sequence of str
        The names that stand for data of this project, for the message.
    kind : str
        What the path may lead to, e.g. ``"a JSON file"``, for the message.

    Returns
    -------
    Path
        The path of a file or folder.

    Raises
    ------
    InputError
        If nothing is there.
    """
    path = Path(value).expanduser()
    # An empty text would be the folder of the project. Path.exists may raise for a name that is
    # too long, where os.path.exists is False.
    if str(value) and os.path.exists(path):
        return path

    found = f"no file or folder {str(value)!r}" if str(value) else "''"
    names = ", ".join(known)
    question = hint(str(value), known)
    raise InputError(f"found {found}, expected {names}, or the path of {kind}{question}")


def at(file: Path, line: int) -> str:
    """Name a line of a file, as :func:`wrong` takes it.

    Parameters
    ----------
    file : Path
        The file as it is to be named.
    line : int
        The number of the line, from 1.

    Returns
    -------
    str
        The text ``<file>, line <line>``.
    """
    return f"{file}, line {line}"


def decoded(file: Path) -> str:
    """Read the text of a UTF-8 file, without its byte order mark.

    Parameters
    ----------
    file : Path
        A text file; its name may have any ending.

    Returns
    -------
    str
        Its whole text.

    Raises
    ------
    InputError
        If the file cannot be read, is a zip file or UTF-16 text, or has a byte that is not UTF-8
        (the message names its line).
    """
    try:
        if file.is_dir():
            raise InputError(f"{file} cannot be read: it is a folder, expected a file.")
        # A device might never end.
        if file.exists() and not file.is_file():
            raise InputError(f"{file} cannot be read: it is a device, expected a file.")
        content = file.read_bytes()
        for mark, found in _OTHER_FILES.items():
            if content.startswith(mark):
                raise wrong(file, found, "UTF-8 text")
        return content.decode("utf-8-sig")
    except OSError as problem:
        raise InputError(f"{file} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError as problem:
        before = problem.object[: problem.start]
        line = before.count(b"\n") + 1
        raise wrong(at(file, line), "a byte that is not UTF-8", "UTF-8 text") from problem


def read_table(file: Path, columns: Sequence[str] = (), delimiter: str = ",") -> pd.DataFrame:
    """Read a table of texts.

    Parameters
    ----------
    file : Path
        A CSV or TSV file. Its first line names the columns; blank lines are ignored.
    columns : sequence of str
        Columns that the table must have.
    delimiter : str
        The character between two cells.

    Returns
    -------
    DataFrame
        Cells as written (str, "" where empty). The index, ``line``, is the number of the line on
        which the row begins, from 1.

    Raises
    ------
    InputError
        As :func:`decoded`; for a file without columns or rows; for a column that is missing or
        comes twice; for a row that is too long or too short; for an open quote; for a carriage
        return that neither ends a line, before a newline, nor stands in quotes.
    """
    # Only a newline ends a line, so that the reader meets, and refuses, a carriage return alone.
    lines = io.StringIO(decoded(file), newline="\n")
    # The reader is strict, as an open quote would take the rest of the file into one cell.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] = []
    rows: dict[int, list[str]] = {}
    line = 1

    try:
        for cells in reader:
            # A blank line has no cells.
            if cells and not header:
                header = _header(at(file, line), cells, columns, delimiter)
            elif cells:
                _check_length(at(file, line), cells, header, delimiter)
                rows[line] = cells
            # The next row begins here: a text in quotes may run over several lines.
            line = reader.line_num + 1
    except csv.Error as problem:
        if str(problem).startswith("new-line character"):
            found = "a carriage return within a text, or in the place of a newline"
            expected = "lines that end in newlines, and such a text in quotes"
            raise wrong(at(file, reader.line_num), found, expected) from problem
        found = "a quote that does not close at the end of its field"
        expected = "texts in quotes, their own quotes doubled"
        raise wrong(at(file, line), found, expected) from problem

    if not rows:
        if header:
            expected = "a row"
        elif columns:
            expected = "the columns " + ", ".join(columns)
        else:
            expected = "a line with the columns"
        raise wrong(at(file, line), "the end of the file", expected)

    index = pd.Index(rows, name="line")
    return pd.DataFrame([*rows.values()], index, header, dtype=object)


def _header(where: str, cells: list[str], columns: Sequence[str], delimiter: str) -> list[str]:
    """Check that each column is named once, and return the names."""
    for column in dict.fromkeys([*columns, *cells]):
        times = cells.count(column)
        if times == 0:
            _check_delimiter(where, cells, delimiter)
            raise _missing(where, column, cells, columns)
        if times > 1:
            raise wrong(where, f"it {times} times", "it once", column)
    return cells


def _missing(where: str, column: str, cells: list[str], columns: Sequence[str]) -> InputError:
    """Make the error for a missing column, with the name that may be a misspelling of it."""
    # A name that begins otherwise is another column, as "A dictionary" and "C dictionary" are.
    similar = {}
    for cell in cells:
        if cell not in columns and cell[:1].lower() == column[:1].lower():
            similar[cell.lower()] = cell
    end = "."
    nearest = difflib.get_close_matches(column.lower(), similar, n=1, cutoff=0.85)
    if nearest:
        end = f"; should {similar[nearest[0]]} be called {column}?"
    found = ", ".join(cells)
    return InputError(f"{where}: the column {column!r} is missing, found {found}{end}")


def _check_delimiter(where: str, cells: list[str], delimiter: str) -> None:
    """Raise an InputError if the first line is undivided and holds another delimiter."""
    if len(cells) > 1:
        return
    for other, words in _DELIMITERS.items():
        if other != delimiter and other in cells[0]:
            raise wrong(where, f"{words} between the columns", _DELIMITERS[delimiter])


def _check_length(where: str, cells: list[str], header: list[str], delimiter: str) -> None:
    """Raise an InputError if a row has more or fewer cells than the table has columns."""
    found = f"{len(cells)} cells" if len(cells) > 1 else "1 cell"
    expected = f"{len(header)}, one per column"
    if len(cells) < len(header):
        raise wrong(where, found, expected)
    if len(cells) > len(header):
        expected = f"{expected}; a text with {_DELIMITERS[delimiter]} has to be in quotes"
        raise wrong(where, found, expected)


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn a disk's refusal to write below a place into an InputError.

    Parameters
    ----------
    place : Path
        The file or folder that is written. The message names it where the system names none.

    Yields
    ------
    None
        Nothing; the body of the ``with`` statement writes.

    Raises
    ------
    InputError
        Where the body raises an OSError. The message says why and what to do.
    """
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"{problem.filename or place} cannot be written: {problem.strerror}; make room on that "
            "disk, or allow writing there, and run again."
        ) from problem


def check(
    file: Path, column: pd.Series, good: pd.Series, expected: str, known: Collection[str] = ()
) -> None:
    """Raise an InputError for the first cell that is not good.

    Parameters
    ----------
    file : Path
        The file of the table.
    column : Series
        A column of the table, with lines as its index.
    good : Series
        Whether each cell is good.
    expected : str
        What a good cell is, for the message.
    known : collection of str
        The good cells, if they can be listed. The message asks whether the nearest was meant.
    """
    bad_lines = column.index[~good]
    if len(bad_lines) > 0:
        line = bad_lines[0]
        cell = column[line]
        raise wrong(at(file, line), repr(cell), expected, column.name, hint(cell, known))


def once(file: Path, rows: pd.DataFrame, same: pd.DataFrame | None = None) -> None:
    """Raise an InputError for the first row that comes again.

    Parameters
    ----------
    file : Path
        The file of the table.
    rows : DataFrame
        Columns of the table, with lines as their index; the message shows them.
    same : DataFrame, optional
        What is compared instead of `rows`, e.g. the cells without capitals.
    """
    compared = rows if same is None else same
    repeated_lines = compared.index[compared.duplicated()]
    if repeated_lines.empty:
        return

    line = repeated_lines[0]
    row = compared.loc[line]
    is_equal = (compared == row).all(axis=1)
    first = is_equal.idxmax()

    cells = []
    for name, cell in rows.loc[line].items():
        cells.append(f"{name} {cell!r}")
    found = ", ".join(cells)
    expected = f"it once; it is there already in line {first}"
    raise wrong(at(file, line), f"{found} again", expected)


def read_json(file: Path) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    file : Path
        A UTF-8 file that holds one JSON value.

    Returns
    -------
    object
        The content; every object is a dict.

    Raises
    ------
    InputError
        As :func:`decoded`; for an empty file; for a text that is not JSON; for a key twice in an
        object.
    """
    text = decoded(file)
    if not text.strip():
        raise wrong(file, "an empty file", "JSON")

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # json would keep the last of two equal keys without a word.
        made = dict(pairs)
        if len(made) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            ((key, times),) = counts.most_common(1)
            where = f"{file}, key {key!r}"
            raise wrong(where, f"it {times} times in one object", "it once")
        return made

    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_int=_whole_number)
    except json.JSONDecodeError as problem:
        comma = _last_comma(text, problem.pos)
        if comma is not None:
            line = text.count("\n", 0, comma) + 1
            line_start = text.rfind("\n", 0, comma)
            where = f"{at(file, line)}, column {comma - line_start}"
            found = "a comma behind the last entry"
            raise wrong(where, found, "a closing bracket") from problem
        where = f"{at(file, problem.lineno)}, column {problem.colno}"
        raise wrong(where, f"a mistake ({problem.msg})", "valid JSON") from problem
    except RecursionError as problem:
        raise wrong(file, "lists or objects that are nested too deeply", "JSON") from problem


def read_yaml(file: Path) -> Any:
    """Read a YAML file.

    Parameters
    ----------
    file : Path
        A UTF-8 file that holds one YAML document.

    Returns
    -------
    object
        The content; every mapping is a dict.

    Raises
    ------
    InputError
        As :func:`decoded`; for a text that is not YAML (the message names line and column).
    """
    try:
        return yaml.safe_load(decoded(file))
    except yaml.MarkedYAMLError as problem:
        where = str(file)
        mark = problem.problem_mark
        if mark is not None:
            where = f"{at(file, mark.line + 1)}, column {mark.column + 1}"
        raise wrong(where, f"a mistake ({problem.problem})", "valid YAML") from problem
    except yaml.YAMLError as problem:
        raise wrong(file, "a character that YAML does not allow", "YAML") from problem


def _last_comma(text: str, position: int) -> int | None:
    """Find a comma before the closing bracket at which JSON is refused. None if there is none."""
    # The position is the bracket's or the comma's, which depends on the version of Python.
    before = text[: position + 1].rstrip("]} \t\r\n")
    after = text[len(before) :].lstrip()
    if before.endswith(",") and after.startswith(("]", "}")):
        return len(before) - 1
    return None


def _whole_number(digits: str) -> int | float:
    """Convert the digits of a number without a point."""
    # Python refuses to make an int of more digits.
    if len(digits) > 4300:
        return float(digits)
    return int(digits)
