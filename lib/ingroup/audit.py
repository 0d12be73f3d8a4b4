"""Findings of the audit: a paper's printed numbers against what its other numbers give.

The checks stand in notebooks 51 to 54; here are the arithmetic behind a verdict and the book in
which each is entered with the printed cells that took part. The verdicts, from the mildest:
``cannot be checked`` where the paper does not say enough; ``holds`` within half a unit of the last
printed digit; ``rounding`` within what the rounding of all operands can do, or cut instead of
rounded, in prose also one off ("over sixty" for 60); ``contradicts``.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup import paths, published
from ingroup.published import FLOAT_ERROR

VERDICTS = ("cannot be checked", "holds", "rounding", "contradicts")
COLUMNS = [  # of findings.csv
    "paper", "place", "item", "check", "printed", "recomputed", "tolerance", "verdict",
    "explanation",
]  # fmt: skip
REPEATED = (["source", "cluster_order"], ["category", "n_topics"])  # a number down a column
PHRASE = "phrase against another place"


def judge(
    printed: pd.Series, recomputed: ArrayLike, operands: ArrayLike = 0.0, cut: bool = False
) -> pd.DataFrame:
    """The verdict on n printed texts, given what other numbers of the paper make of them (n or 1).

    `operands` is how far rounding can move ``recomputed``: the sum of the operands' half units,
    each times the size of its coefficient; with half a unit of the printed number it is the
    ``tolerance``. With `cut`, for prose ("5 points" of 5.67), digits cut off count as rounding.
    """
    table = published.compare(printed, recomputed).rename(columns={"here": "recomputed"})
    half, error = table["tolerance"], table["difference"].abs() - FLOAT_ERROR
    table["tolerance"] = half + np.asarray(operands, dtype=float)
    near = error <= table["tolerance"]
    if cut:
        digits = np.floor((table["recomputed"].abs() + FLOAT_ERROR) / (2 * half)) * 2 * half
        near |= (digits - table["printed"].abs()).abs() <= FLOAT_ERROR
    table["verdict"] = np.select([error <= half, near], ["holds", "rounding"], "contradicts")
    return table[["printed", "recomputed", "tolerance", "verdict"]]


def notes(name: str, paper: str, folder: Path = paths.PUBLISHED) -> pd.DataFrame:
    """A paper's rows of ``claims``, the checked sentences, or ``slips``, what contradictions do."""
    table = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)
    return table[table["paper"] == paper]


def as_shown(value: Any) -> str:
    """A cell of the findings as people write it: 18.0 as 18, "{'Men': 1.5}" as Men: 1.5."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.10g}"
    text = re.sub(r"np\.float64\((.*?)\)", r"\1", str(value))
    start = re.search(r"[\[{].*[\]}]$", text)
    if not start:
        return text  # a phrase of a paper may have brackets too
    plain = re.sub(r"[\[\]{}()'\"]|\.0\b", "", text[start.start() :]).replace("_", " ")
    return text[: start.start()] + (plain or "none")


class Findings:
    """The checks of one paper, in the order in which they were entered.

    ``rows`` has an entry a check and cell, with the keys :data:`COLUMNS`; ``cells`` the gravest
    verdict that a printed number met, by place, column and row; ``tables`` those of the paper by
    number (:func:`ingroup.published.load`); ``said`` what its sentences print, by short name.
    `names` are the columns that name a row, where a table has them.
    """

    def __init__(self, paper: str, names: Sequence[str], folder: Path = paths.PUBLISHED):
        self.paper, self.names, self.folder = paper, names, folder
        self.rows: list[dict] = []
        self.cells: dict[tuple, str] = {}
        self._shown = 0
        numbers = sorted(int(file.stem[5:7]) for file in folder.glob(f"{paper}/table*.csv"))
        self.tables = {number: published.load(paper, number, folder) for number in numbers}
        self.sentences = notes("claims", paper, folder)
        self.said = self.sentences.set_index("claim")["printed"]

    def facts(
        self, place: int | str, frame: pd.DataFrame, columns: Sequence[str], holds: ArrayLike,
        check: str, because: str | Mapping[str, str] | Sequence[str], recomputed: ArrayLike = "",
        tolerance: ArrayLike = "", printed: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Enter one finding for each row of a table.

        `place` is the number of the table, or as in ``claims.csv``; `frame` has rows of it, index
        included, `columns` are those whose printed numbers take part. `holds` is whether the check
        holds in each row (else it ``contradicts``), or the verdicts; `because` a sentence, one for
        each verdict (that of ``holds`` where one has none), or for each row. The rest is shown,
        `printed` instead of the printed texts of `columns`.
        """
        verdicts = np.broadcast_to(np.asarray(holds), len(frame))
        if verdicts.dtype.kind == "b":
            verdicts = np.where(verdicts, "holds", "contradicts")
        if printed is None:
            texts = frame.get([f"{column}_printed" for column in columns], frame[list(columns)])
            printed = [" / ".join(map(str, row)) for row in texts.values]
        if isinstance(because, Mapping):
            because = [because.get(verdict, because["holds"]) for verdict in verdicts]
        named = frame[[name for name in self.names if name in frame]].values
        item = [", ".join(map(str, row)) for row in named]
        values = (self.paper, _place(place), item, check, printed, recomputed, tolerance, verdicts)
        entered = dict(zip(COLUMNS, (*values, because), strict=True))
        self.rows += pd.DataFrame(entered, index=frame.index).to_dict("records")
        self.uses(place, frame, *columns, verdicts=verdicts)

    def numbers(
        self, place: int | str, frame: pd.DataFrame, column: str, recomputed: ArrayLike,
        check: str, because: str | Mapping[str, str] | Sequence[str], operands: ArrayLike = 0.0,
    ) -> None:  # fmt: skip
        """Enter a column of printed numbers against recomputed ones: :func:`judge`, `facts`."""
        table = judge(frame[f"{column}_printed"], np.asarray(recomputed, dtype=float), operands)
        shown = table["recomputed"].round(4), table["tolerance"].round(6)
        self.facts(place, frame, [column], table["verdict"].to_numpy(str), check, because, *shown)

    def claim(
        self, name: str, recomputed: float | str | None = None, verdict: bool | str | None = None,
        because: str | Mapping[str, str] = "", check: str = "sentence against tables",
        operands: float = 0.0,
    ) -> None:  # fmt: skip
        """Enter a sentence of the paper by its short name in ``claims.csv``; see `facts`, `judge`.

        `recomputed` is what the tables give, in the unit of the printed number or in words; None
        takes the column ``against``. Without a `verdict` the printed number is compared with it
        (digits may be rounded or cut), or the printed phrase with its beginning. Raises ValueError
        for a sentence that ``claims.csv`` has not.
        """
        said = self.sentences[self.sentences["claim"] == name]
        if said.empty:
            raise ValueError(f"claims.csv has no claim {name!r} of the paper {self.paper!r}.")
        tolerance: ArrayLike = ""
        recomputed = said["against"].iloc[0] if recomputed is None else recomputed
        if verdict is None and isinstance(recomputed, str):
            verdict = recomputed.startswith(said["printed"].iloc[0])
        elif verdict is None:
            table = judge(said["printed"], recomputed, operands, cut=True)
            verdict, tolerance = table["verdict"].iloc[0], table["tolerance"].round(6)
        shown = recomputed if isinstance(recomputed, str) else round(float(recomputed), 4)
        named = said.rename(columns={"claim": self.names[0]})
        place = said["place"].iloc[0]
        self.facts(place, named, ["printed"], verdict, check, because, shown, tolerance)

    def references(self, elsewhere: Mapping[str, str]) -> None:
        """Enter all references of the paper to its places; `elsewhere` explains those that miss."""
        for claim in self.said.index[self.said.index.str.startswith("reference")]:
            why = {"holds": "What the sentence announces is there."}
            why["contradicts"] = elsewhere.get(claim, "What the sentence announces is elsewhere.")
            self.claim(claim, because=why, check="reference to another place")

    def uses(
        self, place: int | str, frame: pd.DataFrame, *columns: str, verdicts: ArrayLike = "holds"
    ) -> None:
        """Note that printed numbers take part in a check; alone, as operands of one."""
        words = np.broadcast_to(np.asarray(verdicts), len(frame))
        for column in columns:
            for row, word in zip(frame.index, words, strict=True):
                known = self.cells.get((_place(place), column, row), VERDICTS[0])
                self.cells[_place(place), column, row] = max(known, str(word), key=VERDICTS.index)

    def latest(self) -> pd.DataFrame:
        """What was entered since the last call: the findings if few, else counts of a check."""
        new, self._shown = self.table()[self._shown :], len(self.rows)
        if len(new) <= 15:
            return new[["place", "item", "printed", "recomputed", "verdict"]].map(as_shown)
        counts = new.groupby(["check", "place", "verdict"], sort=False).size()
        counts = counts.unstack(fill_value=0).reindex(columns=VERDICTS[::-1])
        return counts.dropna(axis=1, how="all").map(as_shown)

    def results(self) -> dict[str, pd.DataFrame]:
        """``findings``, `slips` and ``numbers``: every printed number, once where a table repeats
        it down a column (a cluster's means), then the sentences, with their verdict.
        """
        rows = []
        for number, table in self.tables.items():
            keys = next((keys for keys in REPEATED if keys[-1] in table), None)
            once = table.drop_duplicates(keys) if keys else table
            for column in [name for name in table if f"{name}_printed" in table]:
                printed = once.index[once[f"{column}_printed"] != ""]
                rows += [(_place(number), column, row, _place(number)) for row in printed]
        rows += [("Text", "printed", row, at) for row, at in self.sentences["place"].items()]
        met = (self.cells.get((at, *cell), "no check") for _, *cell, at in rows)
        numbers = [(self.paper, *row[:3], word) for row, word in zip(rows, met, strict=True)]
        numbers = pd.DataFrame(numbers, columns=["paper", "place", "column", "row", "verdict"])
        return {"findings": self.table(), "numbers": numbers, "slips": self.slips()}

    def table(self) -> pd.DataFrame:
        """All findings so far."""
        return pd.DataFrame(self.rows, columns=COLUMNS)

    def slips(self) -> pd.DataFrame:
        """Contradictions gathered by what caused them, one row an entry of ``slips.csv``.

        It takes the findings whose check begins with its ``check`` and whose item contains its
        ``item``; those that no entry covers come last. At most three items are named.
        """
        left = self.table().query("verdict == 'contradicts'")
        entries = notes("slips", self.paper, self.folder)[["check", "item", "changes", "why"]]
        rows = []
        for check, item, changes, why in (*entries.values, ("", "", "not yet weighed", "")):
            own = left[left["item"].str.contains(item, regex=False)]
            own = own[own["check"].str.startswith(check)]
            left = left.drop(own.index)
            if len(own):
                items, checks = (own["place"] + ": " + own["item"]).unique(), own["check"].unique()
                named = "; ".join(items[:3]) + (f"; and {len(items) - 3} more" * (len(items) > 3))
                rows.append((self.paper, "; ".join(checks), named, len(own), changes, why))
        return pd.DataFrame(rows, columns=["paper", "check", "items", "findings", "changes", "why"])


def _place(place: int | str) -> str:
    return f"Table {place}" if isinstance(place, int) else place
