"""Tables that users write, read with their errors named by file, line and column."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from ingroup import RAW


class InputError(ValueError):
    """Something that a user gave cannot work. The message says what was found and expected."""


def wrong(file: Path, row: int, column: str, found: object, expected: str) -> InputError:
    """Make the error of one cell; `row` counts from 0, as the index of a table does."""
    return InputError(
        f"{file}, line {row + 2}, column {column}: found {found!r}, expected {expected}"
    )


def check(file: Path, cells: pd.Series, is_right: pd.Series, expected: str) -> None:
    """Refuse the first cell of a column that is not right.

    Parameters
    ----------
    file : Path
        The file that the table was read from.
    cells : Series
        The column, as `read_table` has it.
    is_right : Series of bool
        Which cells can work.
    expected : str
        What they must be, in words.

    Raises
    ------
    InputError
        A cell is not right.
    """
    for row in cells.index[~is_right]:
        raise wrong(file, row, cells.name, cells[row], expected)


def read_table(file: Path, columns: Iterable[str] = ()) -> pd.DataFrame:
    """Read a table of texts, whose first line names its columns.

    Parameters
    ----------
    file : Path
        A CSV file, or a TSV file by its ending, in UTF-8.
    columns : iterable of str
        Columns that it must have.

    Returns
    -------
    DataFrame of str
        One row for each line, with empty cells as "".

    Raises
    ------
    InputError
        The file cannot be read, or lacks a column.
    """
    separator = "\t" if file.suffix == ".tsv" else ","
    try:
        table = pd.read_csv(
            file, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig"
        )
    except (OSError, ValueError) as error:
        is_to_fetch = RAW in file.parents and not file.exists()
        hint = "make data fetches it" if is_to_fetch else error
        raise InputError(f"{file} cannot be read: {hint}") from error

    for column in columns:
        if column not in table:
            near = get_close_matches(column, table.columns, 1) or list(table.columns)
            raise InputError(
                f"{file}, line 1: column {column!r} is missing, found {', '.join(near)}"
            )
    return table


def read_texts(file: Path, columns: list[str]) -> pd.DataFrame:
    """Read a table as `read_table` does. An empty cell of these columns is an InputError."""
    table = read_table(file, columns)
    for column in columns:
        is_text = table[column].str.strip() != ""
        check(file, table[column], is_text, "a text")
    return table
