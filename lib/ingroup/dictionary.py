"""The dictionary of stereotype content: which word speaks of which dimension, in which direction.

Two are at hand: a small one written for this project (data/sample) and the Stereotype Content
Dictionary (Nicolas, Bai and Fiske 2021), which ``make data`` fetches. What is odd in a dictionary
is neither repaired nor hidden: `oddities` lists it, and the scores leave it out.
"""

import csv
import io
import unicodedata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ingroup import corpora, paths
from ingroup.tables import InputError, decoded

SAMPLE = "sample"
RELEASED = "stereotype-content-dictionary"
LONG = ("word", "dimension", "direction")  # columns of the layout with a row a pair
# Columns of the released layout, which has a row a word.
WORD, LEMMA = "original word", "preprocessed word 3 (lemmatized)"
_MEMBER, _DIRECTION = " dictionary", " direction"
_DIRECTIONS = {"-1": -1.0, "0": 0.0, "1": 1.0, "NA": np.nan, "": np.nan}

ODDITIES = (
    "member without a direction",
    "membership -1",
    "direction without membership",
    "conflicting lemma",
)


class Lexicon(NamedTuple):
    """W words and D dimensions; the row of a word is its place in `words`."""

    words: pd.Index  # (W,) as the file spells them
    members: pd.DataFrame  # (W, D) bool, membership 1
    directions: pd.DataFrame  # (W, D) -1, 0 or 1; NaN where the file gives none
    odd: pd.DataFrame  # (W, D) bool, pairs that the scores leave out
    oddities: pd.DataFrame  # what `oddities` returns

    @property
    def directed(self) -> pd.Series:
        """(D,) bool: whether a dimension has directions; the others only count words."""
        return self.directions.notna().any()


def fold(text: str) -> str:
    """The form in which words are compared: without capitals, doubled spaces, typographic marks."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_PLAIN).casefold().split())


_PLAIN = str.maketrans("‐‑–—’‘", "----''")


def load_lexicon(source: str | Path = SAMPLE, folder: Path | None = None) -> Lexicon:
    """Read a dictionary and check every cell of it.

    Parameters
    ----------
    source : str or Path
        ``"sample"``, ``"stereotype-content-dictionary"`` (needs ``make data``) or the path of a
        CSV file in UTF-8 of one of two layouts. Long: the columns `LONG`, a row for each pair of
        word and dimension, direction -1, 0, 1 or empty. Wide, as released: a row a word, columns
        ``original word``, ``<dimension> dictionary`` (membership 0 or 1) and, for dimensions with
        directions, ``<dimension> direction`` (-1, 0, 1 or NA); optionally the lemma of each word
        in ``preprocessed word 3 (lemmatized)``. Other columns are passed over.
    folder : Path, optional
        Where `corpora.fetch` wrote ``<corpus>/<file>``; by default ``data/raw``.

    Returns
    -------
    Lexicon

    Raises
    ------
    InputError
        Naming file, line and column: for a file that cannot be read, is not UTF-8 or is empty; a
        missing column, a wrong number of fields, an open quote; a word or dimension that is empty
        or comes twice (capitals aside); a membership or direction of another kind ("7").
    InputError
        Where the fetched dictionary is not there or was changed.

    Notes
    -----
    A pair of word and dimension is odd, and out of the scores, where

    - a member has no direction though its dimension has directions,
    - the membership is -1,
    - there is a direction and no membership,
    - the lemma conflicts: words of one lemma are members with direction 1 and with -1, as
      "sustain" (-1) and "sustained" (1) in Agency. All members of that lemma and dimension that
      have either direction are odd. Known only where the file names lemmas.

    Checked on the released file against counts by hand: 14,449 words, 28 dimensions, 12 of them
    with directions; oddities in the order of `ODDITIES`: 2, 1, 3 and 28.
    """
    if source == SAMPLE:
        file = paths.SAMPLE / "stereotype_dictionary.csv"
    elif source == RELEASED:
        file = corpora.file(RELEASED, "Full Dictionaries.csv", folder)
    else:
        file = Path(source).expanduser()
    table = read_table(file)
    if WORD in table.columns:
        return _from_wide(file, table)
    for column in LONG:
        if column not in table.columns:
            raise InputError(
                f"{file}, line 1, column {column!r}: found only {_some(table.columns)}, expected "
                f"{', '.join(LONG)}, or the released layout with {WORD!r}."
            )
    return _from_long(file, table)


def oddities(lexicon: Lexicon) -> pd.DataFrame:
    """Every odd pair: word, dimension, oddity (one of `ODDITIES`), membership, direction, line.

    ``oddities(lexicon).oddity.value_counts(sort=False)`` counts the kinds, those without a case
    too. Membership and direction are as the file spells them.
    """
    return lexicon.oddities.copy()


def read_table(file: Path) -> pd.DataFrame:
    """A CSV file as text, its index the numbers of the lines on which the rows begin.

    Raises
    ------
    InputError
        For a file that cannot be read, is not UTF-8 or has no row; a column that comes twice, a
        wrong number of fields, a quote that does not close. Blank lines are passed over.
    """
    text = decoded(file)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, lines, line = [], [], 1
    try:
        for cells in reader:
            if cells:
                rows.append(cells)
                lines.append(line)
                if len(cells) != len(rows[0]):
                    raise InputError(
                        f"{file}, line {line}: found {len(cells)} fields, expected {len(rows[0])}."
                    )
            line = reader.line_num + 1
    except csv.Error as problem:
        raise InputError(
            f"{file}, line {line}: found a quote that does not close at the end of its field, "
            "expected a value in quotes to have its own quotes doubled."
        ) from problem
    if len(rows) < 2:
        raise InputError(
            f"{file}, line {line}: found the end of the file, expected "
            f"{'a row' if rows else 'a line with the names of the columns'}."
        )
    for column in rows[0]:
        if rows[0].count(column) > 1:
            raise InputError(
                f"{file}, line {lines[0]}, column {column!r}: found it {rows[0].count(column)} "
                "times, expected it once."
            )
    return pd.DataFrame(rows[1:], columns=rows[0], index=lines[1:], dtype=str)


def check_unique(file: Path, table: pd.DataFrame, columns: list[str]) -> None:
    """Raise where a cell of `columns` is empty or a row of them comes twice, capitals aside."""
    same = table[columns].map(fold)
    for column in columns:
        check(file, table[column], same[column] != "", "a value")
    again = same.duplicated()
    if again.any():
        line = again.idxmax()
        first = (same == same.loc[line]).all(axis=1).idxmax()
        raise InputError(
            f"{file}, line {line}, column {columns[0]!r}: found "
            f"{', '.join(map(repr, table.loc[line, columns]))} again, expected it once; it is "
            f"there already in line {first}."
        )


def _from_wide(file: Path, table: pd.DataFrame) -> Lexicon:
    check_unique(file, table, [WORD])
    names = {kind: [column.removesuffix(kind) for column in table if column.endswith(kind)]
             for kind in (_MEMBER, _DIRECTION)}  # fmt: skip
    for name in names[_DIRECTION] or ["<dimension>"]:
        if name not in names[_MEMBER]:
            raise InputError(
                f"{file}, line 1, column {name + _MEMBER!r}: found only {_some(table.columns)}, "
                "expected it too."
            )
    for name in names[_MEMBER]:
        column = table[name + _MEMBER]
        check(file, column, column.isin(["0", "1", "-1"]), "0 or 1")
    for name in names[_DIRECTION]:
        column = table[name + _DIRECTION]
        check(file, column, column.isin(_DIRECTIONS), "-1, 0, 1 or NA")
    membership = table[[name + _MEMBER for name in names[_MEMBER]]].set_axis(names[_MEMBER], axis=1)
    told = table.reindex(columns=[name + _DIRECTION for name in names[_MEMBER]], fill_value="NA")
    told = told.set_axis(names[_MEMBER], axis=1)
    return _lexicon(table[WORD], membership, told, table.get(LEMMA))


def _from_long(file: Path, table: pd.DataFrame) -> Lexicon:
    check_unique(file, table, ["word", "dimension"])
    check(file, table.direction, table.direction.isin(_DIRECTIONS), "-1, 0, 1 or nothing")
    row = pd.factorize(table.word.map(fold))[0]
    firsts = table.loc[~pd.Series(row, table.index).duplicated(), "word"]
    column, names = pd.factorize(table.dimension)
    membership = np.full((len(firsts), len(names)), "0", dtype=object)
    told = np.full_like(membership, "NA")
    membership[row, column], told[row, column] = "1", table.direction
    frames = [pd.DataFrame(cells, firsts.index, names) for cells in (membership, told)]
    return _lexicon(firsts, *frames, None)


def _lexicon(
    words: pd.Series, membership: pd.DataFrame, told: pd.DataFrame, lemmas: pd.Series | None
) -> Lexicon:
    """Find the oddities of checked cells; all rows are indexed by the lines of the file."""
    members, directions = membership == "1", told.replace(_DIRECTIONS).astype(float)
    directed = directions.notna()
    masks = [
        members & ~directed & directed.any(),
        membership == "-1",
        directed & (membership == "0"),
        _conflicts(members, directions, lemmas),
    ]
    rows = []
    for oddity, mask in zip(ODDITIES, masks, strict=True):
        for row, column in zip(*np.nonzero(mask.to_numpy()), strict=True):
            found = membership.iat[row, column], told.iat[row, column], words.index[row]
            rows.append((words.iat[row], membership.columns[column], oddity, *found))
    table = pd.DataFrame(
        rows, columns=["word", "dimension", "oddity", "membership", "direction", "line"]
    )
    table["oddity"] = pd.Categorical(table.oddity, ODDITIES)
    odd = masks[0] | masks[1] | masks[2] | masks[3]
    index = pd.Index(words, name="word")
    frames = [frame.set_axis(index, axis=0) for frame in (members, directions, odd)]
    return Lexicon(index, *frames, table)


def _conflicts(
    members: pd.DataFrame, directions: pd.DataFrame, lemmas: pd.Series | None
) -> pd.DataFrame:
    if lemmas is None:
        return members & False
    up, down = members & (directions == 1), members & (directions == -1)
    both = [sign.groupby(lemmas.map(fold)).transform("any") for sign in (up, down)]
    return (up | down) & both[0] & both[1]


def check(file: Path, column: pd.Series, good: pd.Series, expected: str) -> None:
    """Raise for the first cell that is not good; `column` is indexed by line."""
    if not good.all():
        line = good.idxmin()
        raise InputError(
            f"{file}, line {line}, column {column.name!r}: found "
            f"{column[line] or 'nothing'!r}, expected {expected}."
        )


def _some(columns: pd.Index) -> str:
    return ", ".join(columns[:5]) + (", ..." if len(columns) > 5 else "")
