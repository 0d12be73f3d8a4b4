"""The papers' printed tables, and a printed number set against one computed here.

A printed number is a text with a last digit: 5.70 was rounded to hundredths and 5.7 to tenths. So
every number column comes twice, as floats and, with ``_printed`` behind its name, as text. Software
may drop zeros at the end: Python's ``round`` makes "4.3" of 4.30. The number of decimals therefore
belongs to the column, or to the metric in a column of several: ``columns.csv`` has it, and the
texts get as many.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup import models, paths
from ingroup.tables import InputError, at, check, read_table, wrong

# Comparisons of decimals in binary floats: 0.3 - 0.25 is a little more than half of 0.1.
FLOAT_ERROR = 1e-9
_BESIDE = "table number row printed here difference tolerance verdict"


def load(study: str, table: int | str, folder: Path = paths.PUBLISHED) -> pd.DataFrame:
    """One printed table as a tidy frame, one observation a row.

    `table` is its number in the paper, or the start of the file's name (``"appendix_b"``); `folder`
    has the studies' folders and ``columns.csv``, the schema. Columns as in the file: texts are str
    (``""`` where empty), counts and orders Int64, numbers float64 (NaN); behind each column of
    numbers or counts stands ``<column>_printed``, its text, with the ``decimals`` of the schema
    (:func:`decimals_of`, :func:`with_decimals`). Raises InputError if there is no such table, or
    where (file, line, column) one departs from the schema.
    """
    start = f"table{table:02d}_" if isinstance(table, int) else table
    found = sorted(folder.glob(f"{study}/{start}*.csv"))
    if len(found) != 1:
        known = sorted(path.name for path in folder.glob(f"{study}/*.csv"))
        studies = sorted(path.name for path in folder.iterdir() if path.is_dir())
        expected = f"one of {', '.join(known)}" if known else f"a study out of {', '.join(studies)}"
        raise wrong(folder, f"{len(found)} tables {table!r} of the study {study!r}", expected)
    (path,) = found
    texts = read_table(path).astype(str)
    schema = pd.read_csv(folder / "columns.csv", dtype=str)
    schema = schema[(schema["study"] == study) & (schema["file"] == path.stem)]
    if list(texts.columns) != list(schema["column"]):
        expected = ", ".join(schema["column"]) or "none: columns.csv does not name this file"
        raise wrong(at(path, 1), f"the columns {', '.join(texts.columns)}", expected)
    frame = {}
    for row in schema.itertuples():
        frame[row.column] = _typed(texts[row.column], row.kind, row.may_be_empty == "yes", path)
        if row.kind in ("number", "count"):
            printed = texts[row.column]
            if pd.notna(row.decimals):
                decimals = decimals_of(row.decimals, texts)
                printed = printed.combine(decimals, with_decimals)
            frame[f"{row.column}_printed"] = printed
    return pd.DataFrame(frame).reset_index(drop=True)


def decimals_of(told: str, rows: pd.DataFrame) -> pd.Series:
    """Read how many decimals a column has in each row of its table.

    `told` is a cell of the schema: a number, and behind it, where a column holds several metrics,
    those that have another: ``"3; metric=entropy_2: 2; metric=entropy_3: 2"``. `rows` is the table
    as texts. Returns whole numbers with its index. Raises KeyError for a column that it has not.
    """
    usual, *others = told.split("; ")
    decimals = pd.Series(int(usual), rows.index)
    for other in others:
        where, number = other.split(": ")
        column, value = where.split("=")
        decimals[rows[column] == value] = int(number)
    return decimals


def with_decimals(text: str, decimals: int) -> str:
    """Give a printed number the zeros at its end that its column has, and no more.

    Returns a text with `decimals` digits behind the point: ``"4.30"`` for ``"4.3"`` and 2, and
    ``"65.4"`` for ``"65.40"`` and 1. Other digits than zeros stay, and an empty text stays empty.
    """
    if not text:
        return text

    whole, _, digits = text.partition(".")
    digits = digits[:decimals].ljust(decimals, "0") + digits[decimals:].rstrip("0")
    return f"{whole}.{digits}" if digits else whole


def _typed(texts: pd.Series, kind: str, may_be_empty: bool, path: Path) -> pd.Series:
    """A column as values of its kind."""
    empty, values = texts.eq(""), texts
    bad = empty & (not may_be_empty)
    if kind != "text":
        values = pd.to_numeric(texts.mask(empty), errors="coerce").astype("float64")
        bad |= values.isna() & ~empty
    if kind in ("count", "order"):
        bad |= values.notna() & (values != values.round())
        values = values.where(~bad).astype("Int64")
    check(path, texts, ~bad, f"a {kind}")
    return values


def tolerance(printed: pd.Series) -> pd.Series:
    """Half a unit in the last printed digit of each text: 0.005 of ``"5.70"``, NaN of an empty one.

    Raises InputError if a text is no decimal number.
    """
    texts = printed.fillna("")
    for text in texts[~texts.str.fullmatch(r"(?:[+-]?\d+(?:\.\d*)?)?")]:
        raise InputError(f"{text!r} is not a printed decimal number.")
    digits = texts.str.extract(r"\.(\d*)")[0].str.len().fillna(0)
    return (0.5 * 10.0**-digits).where(texts.ne(""))


def compare(printed: pd.Series, here: ArrayLike, spread: ArrayLike = 0.0) -> pd.DataFrame:
    """Printed numbers against numbers computed here.

    `printed` are n texts (a ``_printed`` column of :func:`load`), whose index is kept; `here` n
    numbers, or one, in the same order and unit, and `spread` by how much chance may move them.
    Columns printed, here, difference (here minus printed), tolerance (:func:`tolerance` and the
    spread) and verdict; where one of the two is missing it says so.
    """
    table = pd.DataFrame({"printed": pd.to_numeric(printed.mask(printed.eq("")))})
    table["here"] = np.broadcast_to(np.asarray(here, dtype=float), len(printed))
    table["difference"] = table["here"] - table["printed"]
    rounding = tolerance(printed)
    table["tolerance"] = rounding + np.asarray(spread, dtype=float)
    near = [table["difference"].abs() <= t + FLOAT_ERROR for t in (rounding, table["tolerance"])]
    said = ["agrees within rounding", "agrees within chance"]
    table["verdict"] = np.select(near, said, "differs")
    table.loc[table["difference"].isna(), "verdict"] = "nothing to compare"
    return table


def beside(
    study: str, model: str | None, sources: Iterable[tuple[int | str, str, *tuple[pd.Series, ...]]]
) -> pd.DataFrame:
    """Printed numbers of one model, of one or several tables, beside those of this run.

    `model` is as of :func:`model_of`. A source is a table as in :func:`load`, its column of numbers
    and the numbers of this run, their index named as the columns that tell the table's rows apart,
    e.g. ``run`` and ``group``; printed rows that are not in it are left out. A fourth item is the
    spread of :func:`compare`, with the same index. Columns ``table``, ``number`` (the column),
    ``row`` (the index, joined by commas), then those of :func:`compare`. KeyError for a column that
    the table has not, ValueError for a row that the table or the run has twice.
    """
    blocks = [pd.DataFrame(columns=_BESIDE.split())]
    for table, column, here, *spread in sources if model else ():
        rows = load(study, table)
        whose = "source" if "source" in rows else "model"
        rows = rows[rows[whose] == model] if whose in rows else rows
        own = pd.DataFrame({"here": here, "spread": spread[0] if spread else 0.0})
        own.index = _joined(here.index.to_frame())
        rows = rows.assign(row=_joined(rows[list(here.index.names)]))
        rows = rows[rows["row"].isin(own.index)]
        rows = rows.drop_duplicates(["row", f"{column}_printed"])  # Table 9 of StereoMap has some
        rows = rows.merge(own, left_on="row", right_index=True, validate="one_to_one")
        compared = compare(rows[f"{column}_printed"], rows["here"], rows["spread"])
        block = compared.assign(table=table, number=column, row=rows["row"])
        blocks.append(block[blocks[0].columns])
    return pd.concat(blocks[1:] or blocks, ignore_index=True)


def with_checkpoints(versus: pd.DataFrame) -> pd.DataFrame:
    """Say in a comparison of printed numbers which models are other checkpoints than the paper's.

    `versus` names the ``model`` of a row in a column or a level of its index. The column
    ``checkpoint`` holds the sentence of :func:`ingroup.models.checkpoint` in the first row of each
    such model, and the sentence is printed. Without such a model the table comes back unchanged.
    """
    names = versus.reset_index()["model"]
    sentences = names.map(models.checkpoint).mask(names.duplicated(), "")
    said = sentences[sentences != ""]
    if said.empty:
        return versus

    print(*said, sep="\n")
    return versus.assign(checkpoint=sentences.to_numpy())


def _joined(keys: pd.DataFrame) -> list[str]:
    return [", ".join(map(str, key)) for key in keys.itertuples(index=False)]


def model_of(study: str, model_id: str) -> str | None:
    """The ``model`` (or ``source``) of a study's tables, by any of its ids; None if in none."""
    return next(iter(_rows(study, model_id)["printed"]), None)


def sampling(study: str, model_id: str) -> dict[str, float]:
    """The ``temperature`` and ``top_p`` that a paper prints for a model, 1 where it prints none."""
    printed = _rows(study, model_id)[["temperature", "top_p"]].replace("", "1").astype(float)
    return {name: next(iter(printed[name]), 1.0) for name in printed}


def _rows(study: str, model_id: str) -> pd.DataFrame:
    """The registry's row of a model and a study; no row if it is in none of its tables."""
    model, rows = models.find(model_id), models.registry().rows
    return rows[(rows["study"] == study) & (rows["name"] == (model.name if model else None))]
