"""The sentences of ``docs/findings.md`` that hold a number, with the rows that support each.

``docs/claims.yaml`` lists them. The map shows them with the default run, and a test checks each
against newly made tables.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from ingroup import paths
from ingroup.stats.corrections import adjust
from ingroup.tables import read_yaml, wrong

FILE = paths.ROOT / "docs" / "claims.yaml"


class Claim(NamedTuple):
    """A sentence about a result.

    Attributes
    ----------
    finding : int
        The number of its heading in ``docs/findings.md``.
    sentence : str
        The text of the sentence there, without links.
    table : str
        ``<study>/<name>`` of a table of the default run.
    rows : str
        A pandas query of the table: the rows that the sentence is about.
    rule : str
        The condition that these rows, ``t``, have to meet.
    reading : str
        How answers became numbers.
    scope : str
        The scope of the sentence, e.g. these names and phrasings.
    alone : str
        The sentence for a reader without its context; "" where `sentence` serves.
    """

    finding: int
    sentence: str
    table: str
    rows: str
    rule: str
    reading: str
    scope: str
    alone: str = ""

    @property
    def whole(self) -> str:
        """Return the sentence in the form that can be read without its context.

        Returns
        -------
        str
            A sentence, or a few, without marks of code.
        """
        return (self.alone or self.sentence).replace("`", "")


def load(file: Path = FILE) -> list[Claim]:
    """Read the claims, in the order of the page.

    Parameters
    ----------
    file : Path
        A YAML list with the entries of `Claim`, in their order. ``alone`` may be left out.

    Returns
    -------
    list of Claim
        One claim per entry.

    Raises
    ------
    InputError
        For a claim that lacks an entry, has an unknown entry, or has another order of entries.
    """
    claims = []
    required = [name for name in Claim._fields if name not in Claim._field_defaults]
    for number, entries in enumerate(read_yaml(file), start=1):
        if list(entries) not in (required, list(Claim._fields)):
            expected = ", ".join(required) + " and, where needed, alone, in this order"
            raise wrong(f"{file}, claim {number}", ", ".join(entries), expected)
        claims.append(Claim(**entries))
    return claims


def rows_of(claim: Claim, table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of its table that a claim is about.

    Parameters
    ----------
    claim : Claim
        Its ``rows`` are the query.
    table : DataFrame
        The table that the claim names.

    Returns
    -------
    DataFrame
        The rows that the claim's query selects, at least one.

    Raises
    ------
    ValueError
        If the query selects no row.
    """
    rows = table.query(claim.rows)
    if rows.empty:
        raise ValueError(f"no row of {claim.table} is {claim.rows}")
    return rows


def holds(claim: Claim, table: pd.DataFrame) -> bool:
    """Tell whether a claim's rule is true of its rows.

    A rule is an expression over the rows ``t``. It may call `span`, ``holm`` (a corrected p of each
    row), ``len``, ``set`` and ``round``. Rules are this repository's own text, so `eval` is safe.

    Parameters
    ----------
    claim : Claim
        Its ``rows`` select the rows to which its ``rule`` is applied.
    table : DataFrame
        The table that the claim names, as the default run wrote it.

    Returns
    -------
    bool
        The value of the rule.

    Raises
    ------
    ValueError
        As `rows_of`.
    """
    # With an entry `__builtins__`, eval adds no built-ins, so a rule has these names alone.
    names = {
        "t": rows_of(claim, table),
        "span": span,
        "holm": lambda p: adjust(list(p), "holm"),
        "len": len,
        "set": set,
        "round": round,
        "__builtins__": {},
    }
    return bool(eval(claim.rule, names))


def supported_claims(tables: Path, claims: Sequence[Claim]) -> list[Claim]:
    """Select the claims that follow from the tables of a run.

    Parameters
    ----------
    tables : Path
        The folder of the run's tables.
    claims : sequence of Claim
        The claims to check.

    Returns
    -------
    list of Claim
        The claims whose rule is true. A claim without its table or its rows is left out.
    """
    following = []
    for claim in claims:
        file = tables / f"{claim.table}.csv"
        if not file.exists():
            continue
        try:
            if holds(claim, pd.read_csv(file)):
                following.append(claim)
        except ValueError:
            # The table lacks the rows that the claim is about.
            continue
    return following


def span(values: pd.Series, decimals: int) -> tuple[float, float]:
    """Return the smallest and the largest value, rounded.

    Parameters
    ----------
    values : Series
        Numbers. NaN is left out.
    decimals : int
        The number of decimals.

    Returns
    -------
    tuple of float
        The smallest value, then the largest.
    """
    smallest = float(values.min())
    largest = float(values.max())
    return round(smallest, decimals), round(largest, decimals)
