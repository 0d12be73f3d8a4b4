"""Printed numbers beside those computed here."""

import pandas as pd

from ingroup.paths import PUBLISHED

FLOAT_ERROR = 1e-9  # of decimals in binary floats: 0.3 - 0.25 is a little more than half of 0.1


def load(study: str, table: int) -> pd.DataFrame:
    """Read a printed table, transcribed from the paper."""
    (file,) = (PUBLISHED / study).glob(f"table{table:02}_*.csv")
    return pd.read_csv(file)


def beside(
    printed: pd.DataFrame, here: pd.DataFrame, keys: list[str], columns: list[str]
) -> pd.DataFrame:
    """Join printed and computed numbers of the same models.

    Parameters
    ----------
    printed : DataFrame
        A printed table, with `keys` and `columns`.
    here : DataFrame
        The same numbers, computed; keys may be its index.
    keys : list of str
        What names a row in both.
    columns : list of str
        The numbers.

    Returns
    -------
    DataFrame
        The keys, ``number`` (a column's name), ``printed``, ``here``, ``difference`` (here minus
        printed), ``tolerance`` and ``agrees`` (within the tolerance). No rows where none of the
        printed models ran.
    """
    long = printed.melt(keys, columns, "number", "printed")
    tolerances = {column: tolerance(printed[column]) for column in columns}
    long["tolerance"] = long.number.map(tolerances)

    ours = here.reset_index().melt(keys, columns, "number", "here")
    both = long.merge(ours, on=[*keys, "number"])
    both["difference"] = both.here - both.printed
    both["agrees"] = both.difference.abs() <= both.tolerance + FLOAT_ERROR
    return both[[*keys, "number", "printed", "here", "difference", "tolerance", "agrees"]]


def tolerance(numbers: pd.Series) -> float:
    """Compute half a unit of the last printed digit of a column.

    Parameters
    ----------
    numbers : Series
        Printed numbers. Software drops zeros at the end, so the longest number counts.

    Returns
    -------
    float
        0.005 for 5.7 and 4.31, 0.5 for whole numbers.
    """
    texts = numbers.dropna().astype(float).map(repr)
    decimals = texts.str.partition(".")[2].str.rstrip("0").str.len()
    return 0.5 * 10.0 ** -decimals.max()
