"""The sentences of ``docs/findings.md`` that hold a number, and what each follows from.

``docs/claims.yaml`` lists them. The map shows them with the default run, and a test checks each
against tables that it makes anew.
"""

from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml

from ingroup import paths
from ingroup.stats.paired import adjust
from ingroup.tables import InputError

FILE = paths.ROOT / "docs" / "claims.yaml"


class Claim(NamedTuple):
    """A sentence about a result.

    Attributes
    ----------
    finding : int
        The number of its heading in ``docs/findings.md``.
    sentence : str
        As it stands there, without links.
    table : str
        ``<study>/<name>`` of a table of the default run.
    rows : str
        A query of the table, as pandas takes it: the rows that the sentence is about.
    rule : str
        What has to be true of these rows, ``t``.
    reading : str
        How answers became numbers.
    scope : str
        What the sentence holds for.
    """

    finding: int
    sentence: str
    table: str
    rows: str
    rule: str
    reading: str
    scope: str


def load(file: Path = FILE) -> list[Claim]:
    """Read the claims, in the order of the page.

    Raises
    ------
    InputError
        For a claim that lacks an entry, or has another one.
    """
    claims = []
    for number, entries in enumerate(yaml.safe_load(file.read_text("utf8")), start=1):
        if list(entries) != list(Claim._fields):
            expected = ", ".join(Claim._fields)
            raise InputError(f"{file}, claim {number}: found {', '.join(entries)}; {expected}")
        claims.append(Claim(**entries))
    return claims


def rows_of(claim: Claim, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of its table that a claim is about.

    Raises
    ------
    ValueError
        Where there is none.
    """
    rows = table.query(claim.rows)
    if rows.empty:
        raise ValueError(f"no row of {claim.table} is {claim.rows}")
    return rows


def holds(claim: Claim, table: pd.DataFrame) -> bool:
    """Tell whether a claim's rule is true of its rows.

    A rule is an expression over the rows ``t`` with `span`, ``holm`` (a corrected p of each row),
    ``len``, ``set`` and ``round``; it is this repository's own text.
    """
    known = {
        "t": rows_of(claim, table),
        "span": span,
        "holm": lambda p: adjust(list(p), "holm"),
        "len": len,
        "set": set,
        "round": round,
        "__builtins__": {},
    }
    return bool(eval(claim.rule, known))


def span(values: pd.Series, decimals: int) -> tuple[float, float]:
    """The least and the greatest of some values, rounded."""
    return round(float(values.min()), decimals), round(float(values.max()), decimals)
