"""Findings of the audit: a paper's printed numbers, checked against its other numbers.

The checks stand in notebooks 51 to 54. This module has the arithmetic behind a verdict, and the
`Findings`, in which each check is entered with its printed cells. The verdicts, from the mildest to
the worst:

``cannot be checked``
    The paper does not say enough.
``holds``
    The numbers agree within half a unit of the last printed digit.
``rounding``
    They agree within what the rounding of all operands can do, or the number was cut instead of
    rounded. A number in prose may also be one off ("over sixty" for 60).
``contradicts``
    No rounding explains the difference.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup import paths, published
from ingroup.published import FLOAT_ERROR

Reasons = str | Mapping[str, str] | Sequence[str]  # for all rows, for each verdict, for each row

VERDICTS = ("cannot be checked", "holds", "rounding", "contradicts")
FINDING_COLUMNS = [  # of findings.csv
    "paper",
    "place",
    "item",
    "check",
    "printed",
    "recomputed",
    "tolerance",
    "verdict",
    "explanation",
]
KEYS_OF_REPEATED_NUMBERS = (
    ["source", "cluster_order"],
    ["category", "n_topics"],
)  # a number down a column
PHRASE = "phrase against another place"
REFERENCE = "reference to another place"
MAX_FINDINGS_SHOWN = 15  # findings that are shown one by one
MAX_ITEMS_NAMED = 3  # items of a slip that are named


def judge(
    printed: pd.Series, recomputed: ArrayLike, operand_tolerance: ArrayLike = 0.0, cut: bool = False
) -> pd.DataFrame:
    """Compare printed numbers with the values that other numbers of the paper give.

    Parameters
    ----------
    printed : Series
        The n printed texts.
    recomputed : array_like
        The values that the other numbers give, n values or one.
    operand_tolerance : array_like
        How far rounding can move `recomputed`, n values or one. This is the sum of the operands'
        half units, each times the size of its coefficient.
    cut : bool
        Whether digits that were cut off count as rounding, for prose ("5 points" of 5.67).

    Returns
    -------
    DataFrame
        ``printed``, ``recomputed``, ``tolerance`` and ``verdict``, with the index of `printed`. The
        tolerance is `operand_tolerance` and half a unit of the printed number together. A number
        "cannot be checked" if the printed or the recomputed number is missing. It "holds" within
        half a unit of its last digit, is "rounding" within the tolerance, and else "contradicts".
    """
    table = published.compare(printed, recomputed)
    table = table.rename(columns={"here": "recomputed"})
    # Without a spread, the tolerance of `compare` is half a unit of the last printed digit.
    half = table["tolerance"]
    # The float error is taken off, so that a difference of exactly half a unit still holds.
    error = table["difference"].abs() - FLOAT_ERROR
    table["tolerance"] = half + np.asarray(operand_tolerance, dtype=float)
    is_near = error <= table["tolerance"]

    if cut:
        # The recomputed number is cut at the last printed digit. Its sign is taken off first:
        # floor would take -5.67 to -6.
        unit = 2 * half
        digits = np.floor((table["recomputed"].abs() + FLOAT_ERROR) / unit) * unit
        digits *= np.sign(table["recomputed"])
        is_near |= (digits - table["printed"]).abs() <= FLOAT_ERROR

    # One of the two numbers is missing.
    is_unknown = table["difference"].isna()
    conditions = [is_unknown, error <= half, is_near]
    table["verdict"] = np.select(conditions, VERDICTS[:3], "contradicts")
    return table[["printed", "recomputed", "tolerance", "verdict"]]


def read_judgements(name: str, paper: str, folder: Path = paths.JUDGEMENTS) -> pd.DataFrame:
    """Read this repository's judgements of a paper: its claims or its slips.

    Parameters
    ----------
    name : {"claims", "slips"}
        The checked sentences, or the consequences of some contradictions.
    paper : str
        The name of the paper's study, e.g. ``"stereomap"``.
    folder : Path
        A folder that may hold ``<name>.csv``: another transcription may bring claims of its own.
        Without this file, the file of ``data/judgements`` is read.

    Returns
    -------
    DataFrame
        The paper's rows, all cells as texts.
    """
    file = folder / f"{name}.csv"
    if not file.exists():
        file = paths.JUDGEMENTS / f"{name}.csv"
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    return table[table["paper"] == paper]


def counted(holds: ArrayLike) -> str:
    """Count the cells in which a check holds.

    Parameters
    ----------
    holds : array_like
        Truth values, e.g. a Series or a DataFrame.

    Returns
    -------
    str
        For example "7 of 10".
    """
    values = np.asarray(holds)
    return f"{values.sum()} of {values.size}"


def as_shown(value: Any) -> str:
    """Write a cell of the findings for readers, for example 18.0 as 18.

    Parameters
    ----------
    value : object
        A number, a text, or a list or dict at the end of a text.

    Returns
    -------
    str
        A number with at most ten digits, or the text, in which a list or dict has no quotes,
        brackets or trailing ".0". It is "" for NaN and "none" for an empty list or dict.
    """
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.10g}"

    # numpy writes its numbers as np.float64(1.5) inside a list or dict.
    text = re.sub(r"np\.float64\((.*?)\)", r"\1", str(value))
    # A list or dict as Python writes it, at the end of a text.
    collection = re.search(r"[\[{].*[\]}]$", text)
    if not collection:
        # Brackets inside a text stay: a phrase of a paper may have some.
        return text

    before = text[: collection.start()]
    plain = re.sub(r"[\[\]{}()'\"]|\.0\b", "", text[collection.start() :])
    plain = plain.replace("_", " ")
    return before + (plain or "none")


class Findings:
    """The checks of one paper, in the order in which they were entered.

    Parameters
    ----------
    paper : str
        The study.
    names : sequence of str
        Columns that name a row, where a table has them.
    folder : Path
        The printed tables, and claims or slips of its own (see `read_judgements`).

    Attributes
    ----------
    rows : list of dict
        An entry for each check and cell, with the keys :data:`FINDING_COLUMNS`.
    cells : dict
        The worst verdict on a printed number, by place, column and row.
    tables : dict
        The paper's tables by number, as :func:`ingroup.published.load` reads them.
    sentences : DataFrame
        The paper's rows of ``claims.csv``.
    said : Series
        The printed text of each of these sentences, by short name.
    """

    def __init__(self, paper: str, names: Sequence[str], folder: Path = paths.PUBLISHED):
        self.paper = paper
        self.names = names
        self.folder = folder
        self.rows: list[dict] = []
        self.cells: dict[tuple, str] = {}
        # How many of the rows `latest` has shown.
        self._n_shown = 0

        self.tables = {}
        for file in sorted(folder.glob(f"{paper}/table*.csv")):
            # The files are called tableNN_<what>.csv.
            number = int(file.stem[5:7])
            self.tables[number] = published.load(paper, number, folder)

        self.sentences = read_judgements("claims", paper, folder)
        self.said = self.sentences.set_index("claim")["printed"]

    def facts(
        self,
        place: int | str,
        frame: pd.DataFrame,
        columns: Sequence[str],
        holds: ArrayLike,
        check: str,
        because: Reasons,
        recomputed: ArrayLike = "",
        tolerance: ArrayLike = "",
        printed: ArrayLike | None = None,
    ) -> None:
        """Enter one finding for each row of a table.

        Parameters
        ----------
        place : int or str
            The number of the table, or a place as in ``claims.csv``.
        frame : DataFrame
            Rows of that table, index included.
        columns : sequence of str
            The columns whose printed numbers take part.
        holds : array_like
            Whether the check holds (``holds``) or not (``contradicts``), or the verdicts. One value
            or one for each row.
        check : str
            The name of the check.
        because : str, mapping or sequence
            A sentence for all rows, one for each verdict, or one for each row. A verdict without a
            sentence takes the sentence of ``holds``.
        recomputed, tolerance : array_like
            Shown as they are, one value or one for each row.
        printed : array_like, optional
            Shown instead of the printed texts of `columns`.
        """
        verdicts = np.broadcast_to(np.asarray(holds), len(frame))
        # Truth values become verdicts; texts are verdicts already.
        if verdicts.dtype.kind == "b":
            verdicts = np.where(verdicts, "holds", "contradicts")

        if printed is None:
            # A table of texts has no columns of printed texts: then its cells are shown.
            printed_columns = [f"{column}_printed" for column in columns]
            texts = frame.get(printed_columns, frame[list(columns)])
            printed = _join_cells(texts, " / ")

        explanation = because
        if isinstance(because, Mapping):
            explanation = [because.get(verdict, because["holds"]) for verdict in verdicts]

        # A table has only some of the columns that name rows in the paper's tables.
        names = [name for name in self.names if name in frame]
        entries = {
            "paper": self.paper,
            "place": _place(place),
            "item": _join_cells(frame[names], ", "),
            "check": check,
            "printed": printed,
            "recomputed": recomputed,
            "tolerance": tolerance,
            "verdict": verdicts,
            "explanation": explanation,
        }
        # One value is repeated for all rows, and a Series is aligned by the index of the frame.
        findings = pd.DataFrame(entries, index=frame.index)
        self.rows += findings.to_dict("records")
        # The printed cells remember their worst verdict, for the table of numbers.
        self.mark_used(place, frame, *columns, verdicts=verdicts)

    def numbers(
        self,
        place: int | str,
        frame: pd.DataFrame,
        column: str,
        recomputed: ArrayLike,
        check: str,
        because: Reasons,
        operand_tolerance: ArrayLike = 0.0,
    ) -> None:
        """Enter a column of printed numbers, with the verdicts of `judge`.

        Parameters
        ----------
        place : int or str
            As in `facts`.
        frame : DataFrame
            Rows of that table, index included.
        column : str
            The column of printed numbers; ``<column>_printed`` has their texts.
        recomputed : array_like
            As in :func:`judge`, in the unit of the column.
        check : str
            As in `facts`.
        because : str, mapping or sequence
            As in `facts`.
        operand_tolerance : array_like
            As in :func:`judge`.
        """
        table = judge(
            frame[f"{column}_printed"], np.asarray(recomputed, dtype=float), operand_tolerance
        )
        self.facts(
            place,
            frame,
            [column],
            table["verdict"].to_numpy(str),
            check,
            because,
            recomputed=table["recomputed"].round(4),
            tolerance=table["tolerance"].round(6),
        )

    def claim(
        self,
        name: str,
        recomputed: float | str | list | pd.Series | None = None,
        verdict: bool | str | None = None,
        because: str | Mapping[str, str] | None = None,
        check: str = "sentence against tables",
        operand_tolerance: float = 0.0,
    ) -> None:
        """Enter a sentence of the paper.

        Parameters
        ----------
        name : str
            The short name of the sentence in ``claims.csv``.
        recomputed : float, str, list or Series, optional
            The result of the tables, in the unit of the printed number or in words. A list or a
            Series is shown with its items. None takes the column ``against``.
        verdict : bool or str, optional
            As `holds` of `facts`. None compares the printed number with `recomputed`, where digits
            may be rounded or cut, or the printed phrase with the beginning of `recomputed`.
        because : str or mapping, optional
            As in `facts`. None takes the column ``because``.
        check : str
            As in `facts`.
        operand_tolerance : float
            As in :func:`judge`.

        Raises
        ------
        ValueError
            If ``claims.csv`` has no such sentence of the paper.
        """
        sentence = self.sentences[self.sentences["claim"] == name]
        if sentence.empty:
            raise ValueError(f"claims.csv has no claim {name!r} of the paper {self.paper!r}.")

        if because is None:
            because = sentence["because"].iloc[0]
        if recomputed is None:
            recomputed = sentence["against"].iloc[0]
        if isinstance(recomputed, pd.Series):
            recomputed = recomputed.to_dict()
        # Only single numbers stay numbers.
        if isinstance(recomputed, list | dict):
            recomputed = str(recomputed)

        shown = recomputed if isinstance(recomputed, str) else round(float(recomputed), 4)

        tolerance: ArrayLike = ""
        if verdict is None and isinstance(recomputed, str):
            verdict = recomputed.startswith(sentence["printed"].iloc[0])
        elif verdict is None:
            table = judge(sentence["printed"], recomputed, operand_tolerance, cut=True)
            verdict = table["verdict"].iloc[0]
            tolerance = table["tolerance"].round(6)

        # The short name of a sentence becomes the item of its finding.
        named = sentence.rename(columns={"claim": self.names[0]})
        place = sentence["place"].iloc[0]
        self.facts(place, named, ["printed"], verdict, check, because, shown, tolerance)

    def counts(
        self,
        name: str,
        holds: pd.Series | pd.DataFrame,
        needed: str = "all",
        because: str | None = None,
    ) -> None:
        """Enter a sentence about all cells, or about most cells, of a table.

        Parameters
        ----------
        name : str
            The short name of the sentence in ``claims.csv``.
        holds : Series or DataFrame
            Whether the sentence is true of each cell. The finding shows the count, e.g. "7 of 10".
        needed : {"all", "most"}
            How many cells the sentence is about. Most cells are more than half.
        because : str, optional
            As in `claim`.
        """
        values = np.asarray(holds)
        n_needed = values.size if needed == "all" else values.size // 2 + 1
        is_right = values.sum() >= n_needed
        self.claim(name, counted(values), bool(is_right), because)

    def left_open(self, name: str, because: str | None = None) -> None:
        """Enter a sentence that the paper's tables cannot check.

        Parameters
        ----------
        name : str
            The short name of the sentence in ``claims.csv``.
        because : str, optional
            As in `claim`.
        """
        self.claim(name, "", "cannot be checked", because)

    def extremes(self, name: str, numbers: pd.Series | pd.DataFrame) -> None:
        """Enter the two sentences on the lowest and the highest of some numbers.

        Parameters
        ----------
        name : str
            The sentences are "<name>: lowest" and "<name>: highest" in ``claims.csv``.
        numbers : Series or DataFrame
            The numbers, in the unit of the printed numbers.
        """
        values = numbers.to_numpy()
        self.claim(f"{name}: lowest", values.min())
        self.claim(f"{name}: highest", values.max())

    def references(self) -> None:
        """Enter each sentence that refers to another place in the paper.

        The column ``because`` of ``claims.csv`` explains references that miss.
        """
        is_reference = self.sentences["claim"].str.startswith("reference")
        for row in self.sentences[is_reference].itertuples():
            because = {
                "holds": "What the sentence announces is there.",
                "contradicts": row.because or "What the sentence announces is elsewhere.",
            }
            self.claim(row.claim, because=because, check=REFERENCE)

    def mark_used(
        self, place: int | str, frame: pd.DataFrame, *columns: str, verdicts: ArrayLike = "holds"
    ) -> None:
        """Note that printed numbers take part in a check.

        `facts` calls it for the numbers that are judged. A notebook calls it for the operands from
        which they are recomputed.

        Parameters
        ----------
        place : int or str
            As in `facts`.
        frame : DataFrame
            Rows of that table, index included.
        *columns : str
            The columns whose numbers take part.
        verdicts : array_like
            The verdict of each row, or one for all. A cell keeps its worst verdict.
        """
        of_rows = np.broadcast_to(np.asarray(verdicts), len(frame))
        for column in columns:
            for row, verdict in zip(frame.index, of_rows, strict=True):
                cell = (_place(place), column, row)
                # VERDICTS go from the mildest to the worst, so their positions compare them.
                earlier = self.cells.get(cell, VERDICTS[0])
                self.cells[cell] = max(earlier, str(verdict), key=VERDICTS.index)

    def latest(self) -> pd.DataFrame:
        """Tabulate the findings that were entered since the last call.

        Returns
        -------
        DataFrame
            One row per finding; for more than `MAX_FINDINGS_SHOWN` findings one row per check and
            place, with the number of each verdict.
        """
        new = self.findings()[self._n_shown :]
        self._n_shown = len(self.rows)
        if len(new) <= MAX_FINDINGS_SHOWN:
            return new[["place", "item", "printed", "recomputed", "verdict"]].map(as_shown)

        counts = new.groupby(["check", "place", "verdict"], sort=False).size()
        counts = counts.unstack(fill_value=0)
        # A verdict that did not occur becomes a column of NaN, which is dropped.
        worst_first = counts.reindex(columns=VERDICTS[::-1])
        occurring = worst_first.dropna(axis=1, how="all")
        return occurring.map(as_shown)

    def results(self) -> dict[str, pd.DataFrame]:
        """Gather the tables of the audit.

        Returns
        -------
        dict of DataFrame
            ``findings`` has one row per check of a number, as the method of this name returns them.
            ``numbers`` has one row per printed number, with its worst verdict: first the numbers in
            tables, then the numbers in sentences. A number that a table repeats down a column, such
            as a cluster's mean, has one row. ``slips`` has one row per error of the paper.
        """
        numbers = []
        for number, table in self.tables.items():
            place = _place(number)
            for column, row in _printed_cells(table):
                numbers.append(self._number(place, column, row, place))
        # Shown under the place "Text"; `cells` keys a verdict by the sentence's section.
        for row, place in self.sentences["place"].items():
            numbers.append(self._number("Text", "printed", row, place))

        columns = ["paper", "place", "column", "row", "verdict"]
        return {
            "findings": self.findings(),
            "numbers": pd.DataFrame(numbers, columns=columns),
            "slips": self.slips(),
        }

    def _number(
        self, shown_place: str, column: str, row: Any, place_of_verdict: str
    ) -> dict[str, Any]:
        """Make the row of one printed number, with its worst verdict or "no check"."""
        return {
            "paper": self.paper,
            "place": shown_place,
            "column": column,
            "row": row,
            "verdict": self.cells.get((place_of_verdict, column, row), "no check"),
        }

    def findings(self) -> pd.DataFrame:
        """Tabulate all findings so far.

        Returns
        -------
        DataFrame
            One row per finding, with the columns :data:`FINDING_COLUMNS`.
        """
        return pd.DataFrame(self.rows, columns=FINDING_COLUMNS)

    def slips(self) -> pd.DataFrame:
        """Gather contradictions by their cause.

        Returns
        -------
        DataFrame
            One row for each entry of ``slips.csv`` that covers a finding. An entry covers the
            findings whose check begins with its ``check`` and whose item contains its ``item``;
            findings that no entry covers come last. At most three items are named.
        """
        uncovered = self.findings().query("verdict == 'contradicts'")
        entries = read_judgements("slips", self.paper, self.folder).to_dict("records")
        # An empty text is in every check and item, so the last entry covers the rest.
        entries.append({"check": "", "item": "", "changes": "not yet judged", "why": ""})
        rows = []

        for entry in entries:
            has_check = uncovered["check"].str.startswith(entry["check"])
            has_item = uncovered["item"].str.contains(entry["item"], regex=False)
            covered = uncovered[has_check & has_item]
            # A contradiction belongs to the first entry that covers it.
            uncovered = uncovered.drop(covered.index)
            if covered.empty:
                continue

            row = {
                "paper": self.paper,
                "check": "; ".join(covered["check"].unique()),
                "items": _first_few(covered["place"] + ": " + covered["item"]),
                "findings": len(covered),
                "changes": entry["changes"],
                "why": entry["why"],
            }
            rows.append(row)

        return pd.DataFrame(rows, columns=["paper", "check", "items", "findings", "changes", "why"])


def _place(place: int | str) -> str:
    """Name a place as ``claims.csv`` does, e.g. "Table 3" for the number 3."""
    return f"Table {place}" if isinstance(place, int) else place


def _join_cells(cells: pd.DataFrame, separator: str) -> list[str]:
    """Join the cells of each row to one text."""
    return [separator.join(map(str, row)) for row in cells.values]


def _printed_cells(table: pd.DataFrame) -> Iterator[tuple[str, Any]]:
    """Yield the column and row of each printed number. A number repeated below comes once."""
    # In Table 2 of StereoMap, for example, all groups of a cluster carry the cluster's mean.
    for keys in KEYS_OF_REPEATED_NUMBERS:
        if keys[-1] in table:
            table = table.drop_duplicates(keys)
            break

    for column in table:
        # Only columns of numbers have one of printed texts beside them.
        texts = table.get(f"{column}_printed")
        if texts is None:
            continue
        is_printed = texts != ""
        for row in table.index[is_printed]:
            yield column, row


def _first_few(names: pd.Series) -> str:
    """List the first `MAX_ITEMS_NAMED` different names, and count the others."""
    different = names.unique()
    text = "; ".join(different[:MAX_ITEMS_NAMED])
    more = len(different) - MAX_ITEMS_NAMED
    return f"{text}; and {more} more" if more > 0 else text
