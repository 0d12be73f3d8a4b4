"""The papers' printed tables, and a printed number set against one computed here.

A printed number is a text with a last digit: 5.70 was rounded to hundredths and 5.7 to tenths.
So every number column comes twice, as floats under its name and as text under the name with
``_printed`` behind it, and the tolerance of a comparison follows from the text.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup import paths

# Comparisons of decimals in binary floats: 0.3 - 0.25 is a little more than half of 0.1.
_FLOAT_ERROR = 1e-9


def load(study: str, table: int | str, folder: Path = paths.PUBLISHED) -> pd.DataFrame:
    """One printed table as a tidy frame, one observation a row.

    Parameters
    ----------
    study : str
        ``"empathy_gap"``, ``"biased_samaritan"``, ``"giebench"`` or ``"stereomap"``.
    table : int or str
        The table's number in the paper, or the start of the file's name (``"appendix_b"``).
    folder : pathlib.Path
        Where the studies' folders and ``columns.csv`` (the schema) are.

    Returns
    -------
    pandas.DataFrame
        The columns of the file in its order. Texts are str (an empty cell is ``""``), counts and
        orders are Int64, numbers are float64 (an empty cell is NaN); behind each column of numbers
        or counts stands ``<column>_printed``, the printed text.

    Raises
    ------
    ValueError
        If there is no such table, or a file departs from the schema: the sentence names the file,
        the column and the line (the header is line 1).
    """
    path = _find(study, table, folder)
    where = f"{study}/{path.name}"
    try:
        texts = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8")
    except pd.errors.ParserError as error:
        found = str(error).rpartition(": ")[2].strip()
        raise ValueError(f"{where} is not a table: {found}.") from None
    schema = pd.read_csv(folder / "columns.csv", dtype=str)
    schema = schema[(schema["study"] == study) & (schema["file"] == path.stem)]
    if list(texts.columns) != list(schema["column"]):
        raise ValueError(
            f"{where} has the columns {', '.join(texts.columns)}, but columns.csv expects "
            f"{', '.join(schema['column']) or 'none (it does not name this file)'}."
        )
    frame = {}
    for column, kind, may_be_empty in schema[["column", "kind", "may_be_empty"]].values:
        frame[column] = _typed(texts[column], kind, may_be_empty == "yes", where)
        if kind in ("number", "count"):
            frame[f"{column}_printed"] = texts[column]
    return pd.DataFrame(frame)


def _find(study: str, table: int | str, folder: Path) -> Path:
    start = f"table{table:02d}_" if isinstance(table, int) else table
    found = sorted(folder.glob(f"{study}/{start}*.csv"))
    if len(found) != 1:
        known = sorted(path.name for path in folder.glob(f"{study}/*.csv"))
        studies = sorted(path.name for path in folder.iterdir() if path.is_dir())
        expected = f"one of {', '.join(known)}" if known else f"a study out of {', '.join(studies)}"
        raise ValueError(
            f"data/published has {len(found)} tables {table!r} of the study {study!r}, "
            f"expected {expected}."
        )
    return found[0]


def _typed(texts: pd.Series, kind: str, may_be_empty: bool, where: str) -> pd.Series:
    empty = texts.eq("")
    if kind == "text":
        values, wrong = texts, pd.Series(False, texts.index)
    else:
        values = pd.to_numeric(texts.mask(empty), errors="coerce").astype("float64")
        wrong = values.isna() & ~empty
        if kind in ("count", "order"):
            wrong |= values.notna() & (values != values.round())
            values = values.where(~wrong).astype("Int64")
    if not may_be_empty:
        wrong |= empty
    if wrong.any():
        line = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{where}, column {texts.name}, line {line + 2}: found {texts.iloc[line]!r}, "
            f"expected a {kind}."
        )
    return values


def tolerance(printed: str | pd.Series) -> float | pd.Series:
    """Half a unit in the last printed digit.

    Parameters
    ----------
    printed : str or pandas.Series of str
        Numbers as printed; trailing zeros count, so ``"5.70"`` has 0.005 and ``"5.7"`` has 0.05.

    Returns
    -------
    float or pandas.Series of float64
        In the unit of the number; NaN for an empty text.

    Raises
    ------
    ValueError
        If a text is no decimal number.
    """
    texts = pd.Series([printed]) if isinstance(printed, str) else printed.fillna("")
    digits = texts.str.extract(r"^[+-]?\d+(?:\.(\d*))?$|^$")
    wrong = ~texts.str.fullmatch(r"(?:[+-]?\d+(?:\.\d*)?)?")
    if wrong.any():
        raise ValueError(f"{texts[wrong].iloc[0]!r} is not a printed decimal number.")
    half = 0.5 * 10.0 ** -digits[0].str.len().fillna(0)
    half = half.where(texts.ne(""))
    return float(half.iloc[0]) if isinstance(printed, str) else half


def compare(printed: pd.Series, here: ArrayLike, spread: ArrayLike = 0.0) -> pd.DataFrame:
    """Printed numbers against numbers computed here.

    Parameters
    ----------
    printed : pandas.Series of str, shape (n,)
        Numbers as printed (a ``_printed`` column of :func:`load`); the index is kept.
    here : array_like, shape (n,) or a scalar
        The numbers of this run, in the same order and unit.
    spread : array_like
        How far ``here`` itself may be off, e.g. half the width of its interval; added to the
        tolerance.

    Returns
    -------
    pandas.DataFrame
        Columns printed, here, difference (here minus printed), tolerance and verdict:
        ``"agrees within rounding"`` where ``|difference| <= tolerance``, ``"differs"`` where not,
        and ``"nothing to compare"`` where one of the two is missing.
    """
    table = pd.DataFrame({"printed": pd.to_numeric(printed.mask(printed.eq("")))})
    table["here"] = np.broadcast_to(np.asarray(here, dtype=float), len(printed))
    table["difference"] = table["here"] - table["printed"]
    table["tolerance"] = tolerance(printed) + np.asarray(spread, dtype=float)
    agrees = table["difference"].abs() <= table["tolerance"] + _FLOAT_ERROR
    table["verdict"] = np.where(agrees, "agrees within rounding", "differs")
    table.loc[table["difference"].isna(), "verdict"] = "nothing to compare"
    return table


def model_of(study: str, model_id: str, folder: Path = paths.PUBLISHED) -> str | None:
    """The name under which a study's tables print a model.

    Parameters
    ----------
    study : str
        Name of the study, as in :func:`load`.
    model_id : str
        A hub or provider id, e.g. as given to an engine; case does not matter.
    folder : pathlib.Path
        Where ``models.csv`` is; it says for each id where it comes from.

    Returns
    -------
    str or None
        The value of the tables' ``model`` column (``source`` in some), or None if the paper did
        not print this model.
    """
    models = pd.read_csv(folder / "models.csv", dtype=str)
    same = (models["study"] == study) & (models["hub_id"].str.lower() == model_id.lower())
    return models.loc[same, "model"].iloc[0] if same.any() else None
