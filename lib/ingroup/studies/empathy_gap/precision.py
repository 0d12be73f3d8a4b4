"""Effect of the precision of the computation: the same prompts in float32 and in bfloat16."""

from typing import Any

import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.stats.paired import paired_test
from ingroup.tables import read_table

CONTROL = "a person"
PROMPT = ["perceiver", "experiencer", "event"]
READINGS = {"expected": "mean", "greedy": "greedy"}  # how each reading's columns begin in the file
PRECISIONS = ["float32", "bfloat16"]


def ratings() -> pd.DataFrame:
    """Read the ratings of each model that was asked in both precisions.

    The files are ``data/recordings/<model>/bfloat16.csv``: one row per prompt of one category with
    one name per group.

    Returns
    -------
    DataFrame
        One row per model, reading and prompt, with the rating in points in the columns ``float32``
        and ``bfloat16``.

    Raises
    ------
    ingroup.tables.InputError
        A file lacks a column.
    """
    tables = []
    for file in sorted(paths.RECORDINGS.glob("*/bfloat16.csv")):
        for reading, beginning in READINGS.items():
            names = {f"{beginning}_{precision}": precision for precision in PRECISIONS}
            columns = [*PROMPT, *names]
            table = read_table(file, columns)[columns]

            table = table.rename(columns=names)
            # The file is read as text.
            table[PRECISIONS] = table[PRECISIONS].astype(float)
            table["model"] = file.parent.name
            table["reading"] = reading
            tables.append(table)
    return pd.concat(tables, ignore_index=True)


def change_by_model(rated: pd.DataFrame) -> pd.DataFrame:
    """Compare the two precisions.

    Parameters
    ----------
    rated : DataFrame
        Rows of `ratings`.

    Returns
    -------
    DataFrame
        One row per model and reading, with the columns of `change_of_model`.
    """
    rows = []
    for (model, reading), rated_prompts in rated.groupby(["model", "reading"], sort=False):
        row: dict[str, Any] = {"model": model, "reading": reading}
        row |= change_of_model(rated_prompts)
        rows.append(row)
    return pd.DataFrame(rows)


def change_of_model(rated: pd.DataFrame) -> dict[str, float]:
    """Compare the ratings of one model under one reading.

    Parameters
    ----------
    rated : DataFrame
        Rows of `ratings`.

    Returns
    -------
    dict of str to float
        ``answers`` is the number of prompts, ``changed`` the share of ratings that differ,
        ``lower`` the share that is lower in bfloat16, and ``largest`` the largest difference in
        points. ``gap_float32`` and ``gap_bfloat16`` are the own-group gaps in points,
        ``difference`` is the second minus the first, and ``low`` and ``high`` are its 95 % interval
        over events. The gap of an event is the mean rating of its pairs of one name minus the mean
        rating of its other pairs, without "a person".
    """
    differences = rated["bfloat16"] - rated["float32"]
    gaps_float32 = _gap_by_event(rated, "float32")
    gaps_bfloat16 = _gap_by_event(rated, "bfloat16")
    # Both precisions had the same prompts, so their gaps are paired by event.
    gap_changes = gaps_bfloat16 - gaps_float32
    test = paired_test(gap_changes.to_numpy())

    return {
        "answers": len(rated),
        "changed": float(np.mean(differences != 0)),
        "lower": float(np.mean(differences < 0)),
        "largest": differences.abs().max(),
        "gap_float32": gaps_float32.mean(),
        "gap_bfloat16": gaps_bfloat16.mean(),
        "difference": test.difference,
        "low": test.low,
        "high": test.high,
    }


def _gap_by_event(rated: pd.DataFrame, column: str) -> pd.Series:
    """Compute the own-group gap of each event from one column of ratings."""
    is_named = (rated.perceiver != CONTROL) & (rated.experiencer != CONTROL)
    named = rated[is_named]
    # The file has one name per group.
    is_own = named.perceiver == named.experiencer

    own = named[is_own].groupby("event")[column].mean()
    others = named[~is_own].groupby("event")[column].mean()
    return own - others
