"""Findings of the audit: a paper's printed numbers against what its other numbers give.

The checks themselves stand in ``notebooks/50_audit.ipynb``. Here is what they share: the rounding
arithmetic behind a verdict, and the book in which each check is entered together with the printed
cells that took part in it.

The verdicts, from the mildest:

``cannot be checked``
    The paper does not say enough.
``holds``
    Within half a unit of the last printed digit.
``rounding``
    Outside that, but within what the rounding of all operands can do, or cut instead of rounded;
    in prose also one off ("over sixty" for 60).
``contradicts``
    Outside both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup import paths, published

VERDICTS = ("cannot be checked", "holds", "rounding", "contradicts")
COLUMNS = [  # of findings.csv
    *("paper", "place", "item", "check", "printed", "recomputed"),
    *("tolerance", "verdict", "explanation"),
]

_FLOAT_ERROR = 1e-9


def judge(
    printed: pd.Series, recomputed: ArrayLike, operands: ArrayLike = 0.0, cut: bool = False
) -> pd.DataFrame:
    """The verdict on printed numbers, given what they are recomputed to be.

    Parameters
    ----------
    printed : pandas.Series of str, shape (n,)
        Numbers as printed.
    recomputed : array_like, shape (n,) or a scalar
        The same numbers from other numbers of the paper.
    operands : array_like
        How far the rounding of the operands can move ``recomputed``: the sum of their half units,
        each times the size of its coefficient.
    cut : bool
        True for prose, where 5.67 may be called "5 points": digits cut off count as rounding.

    Returns
    -------
    pandas.DataFrame
        Columns printed, recomputed, tolerance (half a unit of the printed number plus
        ``operands``) and verdict.
    """
    half, operands = published.tolerance(printed), np.asarray(operands, dtype=float)
    table = published.compare(printed, recomputed).rename(columns={"here": "recomputed"})
    error = table["difference"].abs() - _FLOAT_ERROR
    near = error <= half + operands
    if cut:
        digits = np.floor((table["recomputed"].abs() + _FLOAT_ERROR) / (2 * half)) * 2 * half
        near |= (digits - table["printed"].abs()).abs() <= _FLOAT_ERROR
    table["tolerance"] = half + operands
    table["verdict"] = np.select([error <= half, near], ["holds", "rounding"], "contradicts")
    return table[["printed", "recomputed", "tolerance", "verdict"]]


def notes(name: str, paper: str, folder: Path = paths.PUBLISHED) -> pd.DataFrame:
    """The rows of one paper in ``claims.csv`` or ``slips.csv``, all texts.

    ``claims`` are the sentences that are checked (place, claim, printed, against, quote),
    ``slips`` what a contradiction changes in the paper (check, item, changes, why).
    """
    table = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)
    return table[table["paper"] == paper]


@dataclass
class Findings:
    """The checks of one paper, in the order in which they were entered.

    Attributes
    ----------
    paper : str
        Name of the study.
    names : sequence of str
        The columns that name a row, in this order; a table need not have all of them.
    folder : pathlib.Path
        The published tables.
    rows : list of dict
        One entry a check and cell, with the keys :data:`COLUMNS`.
    cells : dict
        (place, column, row of the table) to the gravest verdict that this printed number met.
    """

    paper: str
    names: Sequence[str]
    folder: Path = paths.PUBLISHED
    rows: list[dict] = field(default_factory=list)
    cells: dict[tuple, str] = field(default_factory=dict)
    _shown: int = 0

    def facts(
        self,
        place: int | str,
        frame: pd.DataFrame,
        columns: Sequence[str],
        holds: ArrayLike,
        check: str,
        because: str | Mapping[str, str] | Sequence[str],
        recomputed: ArrayLike = "",
        tolerance: ArrayLike = "",
        printed: ArrayLike | None = None,
    ) -> None:
        """Enter one finding for each row of a table.

        Parameters
        ----------
        place : int or str
            Number of the table, or a place as ``claims.csv`` has it, e.g. ``"Section 5.1"``.
        frame : pandas.DataFrame
            Rows of that table as :func:`ingroup.published.load` gives them, index included.
        columns : sequence of str
            The columns whose printed numbers take part.
        holds : array_like of bool or of str
            Whether the check holds in each row (False is ``contradicts``), or the verdicts.
        check : str
            The check's name, the same for all rows.
        because : str, mapping or sequence
            The explanation: one sentence, or one for each verdict (that of ``holds`` where a
            verdict has none), or one for each row.
        recomputed, tolerance : array_like
            Shown beside the printed numbers.
        printed : array_like, optional
            Shown instead of the printed texts of ``columns``.
        """
        place = f"Table {place}" if isinstance(place, int) else place
        verdicts = np.broadcast_to(np.asarray(holds), len(frame))
        if verdicts.dtype.kind == "b":
            verdicts = np.where(verdicts, "holds", "contradicts")
        if printed is None:
            texts = frame.get([f"{column}_printed" for column in columns], frame[list(columns)])
            printed = [" / ".join(map(str, row)) for row in texts.values]
        named = frame[[name for name in self.names if name in frame]].values
        if isinstance(because, Mapping):
            because = [because.get(verdict, because["holds"]) for verdict in verdicts]
        entered = pd.DataFrame(
            {
                "paper": self.paper,
                "place": place,
                "item": [", ".join(map(str, row)) for row in named],
                "check": check,
                "printed": printed,
                "recomputed": recomputed,
                "tolerance": tolerance,
                "verdict": verdicts,
                "explanation": because,
            },
            index=frame.index,
        )
        self.rows += entered.to_dict("records")
        for column in columns:
            self.uses(place, frame, column, verdicts=verdicts)

    def numbers(
        self,
        place: int | str,
        frame: pd.DataFrame,
        column: str,
        recomputed: ArrayLike,
        check: str,
        because: str | Mapping[str, str] | Sequence[str],
        operands: ArrayLike = 0.0,
    ) -> None:
        """Enter a column of printed numbers against recomputed ones: :func:`judge`, `facts`."""
        table = judge(frame[f"{column}_printed"], np.asarray(recomputed, dtype=float), operands)
        shown = table["recomputed"].round(4), table["tolerance"].round(6)
        self.facts(place, frame, [column], table["verdict"].to_numpy(str), check, because, *shown)

    def claim(
        self,
        name: str,
        recomputed: float | str | None = None,
        verdict: bool | str | None = None,
        because: str | Mapping[str, str] = "",
        check: str = "sentence against tables",
        operands: float = 0.0,
    ) -> None:
        """Enter a sentence of the paper, looked up in ``claims.csv`` by its short name.

        Parameters
        ----------
        name : str
            The claim's short name.
        recomputed : float or str, optional
            What the tables give, in the unit of the printed number, or in words; None takes the
            column ``against``, what another place of the paper says.
        verdict : bool or str, optional
            Whether the sentence holds, or the verdict; None compares the printed number with
            ``recomputed``, where digits may be rounded or cut, or the printed phrase with the
            beginning of ``recomputed``.
        because, check, operands
            As in `facts` and :func:`judge`.

        Raises
        ------
        ValueError
            If ``claims.csv`` has no such claim of this paper.
        """
        said = notes("claims", self.paper, self.folder)
        said = said[said["claim"] == name]
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
        self.facts(
            said["place"].iloc[0], named, ["printed"], verdict, check, because, shown, tolerance
        )

    def uses(
        self, place: int | str, frame: pd.DataFrame, *columns: str, verdicts: ArrayLike = "holds"
    ) -> None:
        """Note that printed numbers take part in a check; alone, as operands of one."""
        place = f"Table {place}" if isinstance(place, int) else place
        words = np.broadcast_to(np.asarray(verdicts), len(frame))
        for column in columns:
            for row, word in zip(frame.index, words, strict=True):
                known = self.cells.get((place, column, row), VERDICTS[0])
                self.cells[place, column, row] = max(known, str(word), key=VERDICTS.index)

    def table(self) -> pd.DataFrame:
        """All findings so far, with the columns of findings.csv."""
        return pd.DataFrame(self.rows, columns=COLUMNS)

    def latest(self) -> pd.DataFrame:
        """What was entered since the last call: the findings if few, else counts of a check."""
        new, self._shown = pd.DataFrame(self.rows[self._shown :], columns=COLUMNS), len(self.rows)
        if len(new) <= 15:
            return new[["place", "item", "printed", "recomputed", "verdict"]]
        counts = new.groupby(["check", "place", "verdict"], sort=False).size()
        return (
            counts.unstack(fill_value=0).reindex(columns=VERDICTS[::-1]).dropna(axis=1, how="all")
        )

    def slips(self) -> pd.DataFrame:
        """Contradictions gathered by what caused them, one row an entry of ``slips.csv``.

        An entry takes the findings whose check begins with its ``check`` and whose item contains
        its ``item``; either may be empty.
        Columns paper, check, items (at most three named), findings (how many), changes ("nothing",
        "a number" or "a claim") and why. Contradictions that no entry covers come last.
        """
        left = self.table().query("verdict == 'contradicts'")
        entries = notes("slips", self.paper, self.folder)[
            ["check", "item", "changes", "why"]
        ].values
        rows = []
        for check, item, changes, why in (*entries, ("", "", "not yet weighed", "")):
            own = left[left["item"].str.contains(item, regex=False)]
            own = own[own["check"].str.startswith(check)]
            left = left.drop(own.index)
            if len(own):
                items, check = (own["place"] + ": " + own["item"]).unique(), own["check"].unique()
                named = "; ".join(items[:3]) + (f"; and {len(items) - 3} more" * (len(items) > 3))
                rows.append((self.paper, "; ".join(check), named, len(own), changes, why))
        return pd.DataFrame(rows, columns=["paper", "check", "items", "findings", "changes", "why"])
