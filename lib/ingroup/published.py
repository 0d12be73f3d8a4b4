"""Printed numbers beside those computed here."""

import pandas as pd

from ingroup import PUBLISHED

DIRECTIONS = ["same direction", "opposite"]
VERDICTS = [
    *DIRECTIONS,
    "no difference",
    "cannot be told",
    "depends on the reading",
]
FLOAT_ERROR = 1e-9  # of decimals in binary floats: 0.3 - 0.25 is a little more than half of 0.1


def load(study: str, table: int) -> pd.DataFrame:
    """Read a printed table, transcribed from the paper."""
    folder = PUBLISHED / study
    pattern = f"table{table:02}_*.csv"
    (file,) = folder.glob(pattern)
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
    theirs = printed.melt(keys, columns, "number", "printed")
    tolerances = printed[columns].apply(tolerance)
    theirs["tolerance"] = theirs.number.map(tolerances)
    ours = here.reset_index()
    ours = ours.melt(keys, columns, "number", "here")

    both = theirs.merge(ours)
    difference = both.here - both.printed
    allowed = both.tolerance + FLOAT_ERROR
    both["difference"] = difference
    both["agrees"] = difference.abs() <= allowed
    return both


def layout(
    printed: pd.DataFrame,
    here: pd.DataFrame,
    index: list[str],
    columns: list[str],
    template: str,
) -> pd.DataFrame:
    """Lay out printed numbers and ours in one table, the printed ones first.

    Parameters
    ----------
    printed, here : DataFrame
        A row for each cell of the table, with the same columns.
    index, columns : list of str
        What names the rows and the columns of the table.
    template : str
        The text of a cell, with columns in braces, e.g. ``{mean:.2f}±{std:.2f}``.

    Returns
    -------
    DataFrame of str
        "" where a cell has no row.
    """
    both = pd.concat([printed, here])
    rows = both.to_dict("records")
    both["cell"] = [template.format(**row) for row in rows]
    cells = both.set_index([*index, *columns]).cell
    return cells.unstack(columns, fill_value="", sort=False)


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
    floats = numbers.dropna().astype(float)
    texts = floats.map(repr)
    decimals = texts.str.extract(r"\.(\d*?)0*$", expand=False)
    n_digits = decimals.str.len()
    most = n_digits.max()
    return 0.5 / 10.0**most


def combined_verdict(of_readings: pd.Series) -> str:
    """Combine the verdicts of a model's readings about a paper's claim.

    Parameters
    ----------
    of_readings : Series of str
        A verdict for each reading that the model has; NaN for others.

    Returns
    -------
    str
        The verdict that all readings share. If they differ, "depends on the reading" where one has
        a direction, else "cannot be told".
    """
    different = set(of_readings.dropna())
    if len(different) == 1:
        return different.pop()
    has_direction = not different.isdisjoint(DIRECTIONS)
    return "depends on the reading" if has_direction else "cannot be told"
