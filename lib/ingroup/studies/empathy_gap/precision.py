"""What the precision of the computation changes: the same prompts in float32 and in bfloat16."""

import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.stats.paired import paired_test
from ingroup.tables import read_table

CONTROL = "a person"
READINGS = {"expected": "mean", "greedy": "greedy"}  # a reading, and its columns in the file
PROMPT = ["perceiver", "experiencer", "event"]
RATINGS = ["mean_float32", "greedy_float32", "mean_bfloat16", "greedy_bfloat16"]


def changes() -> pd.DataFrame:
    """Compare the ratings of each model that was asked in both precisions.

    The files are ``data/recordings/<model>/bfloat16.csv``: one row per prompt of one category with
    one name per group.

    Returns
    -------
    DataFrame
        One row per model and reading. ``answers`` is the number of prompts, ``changed`` the share
        of ratings that differ, and ``largest`` the largest difference in points. ``gap_float32``
        and ``gap_bfloat16`` are the own-group gaps in points, ``difference`` is the second minus
        the first, and ``low`` and ``high`` are its 95 % interval over events.

    Raises
    ------
    ingroup.tables.InputError
        A file lacks a column.
    """
    rows = []
    for file in sorted(paths.RECORDINGS.glob("*/bfloat16.csv")):
        ratings = read_table(file, PROMPT + RATINGS)
        ratings[RATINGS] = ratings[RATINGS].astype(float)
        for reading, column in READINGS.items():
            of_reading = change(ratings, f"{column}_float32", f"{column}_bfloat16")
            rows.append({"model": file.parent.name, "reading": reading} | of_reading)
    return pd.DataFrame(rows)


def change(ratings: pd.DataFrame, first: str, second: str) -> dict[str, float]:
    """Compare two columns of ratings of the same prompts.

    Parameters
    ----------
    ratings : DataFrame
        One row per prompt, with ``perceiver``, ``experiencer`` and ``event``.
    first, second : str
        Columns with ratings.

    Returns
    -------
    dict of str to float
        The columns of `changes`, from ``answers`` on. The gap of an event is the mean rating of its
        pairs of one name minus that of its other pairs, without "a person".
    """
    differences = ratings[second] - ratings[first]

    gaps = {}
    for column in (first, second):
        gaps[column] = _gap_by_event(ratings, column)
    of_gap = paired_test((gaps[second] - gaps[first]).to_numpy())

    return {
        "answers": len(ratings),
        "changed": float(np.mean(differences != 0)),
        "largest": differences.abs().max(),
        "gap_float32": gaps[first].mean(),
        "gap_bfloat16": gaps[second].mean(),
        "difference": of_gap.difference,
        "low": of_gap.low,
        "high": of_gap.high,
    }


def _gap_by_event(ratings: pd.DataFrame, column: str) -> pd.Series:
    """The own-group gap of each event in one column of ratings."""
    is_named = ratings["perceiver"].ne(CONTROL) & ratings["experiencer"].ne(CONTROL)
    named = ratings[is_named]
    is_own = named["perceiver"].eq(named["experiencer"])

    own = named[is_own].groupby("event")[column].mean()
    others = named[~is_own].groupby("event")[column].mean()
    return own - others
