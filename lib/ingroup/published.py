"""The papers' printed tables, and printed numbers compared with numbers computed here.

A printed number is a text with a last digit: 5.70 was rounded to hundredths and 5.7 to tenths. So
every number column comes twice, as floats and, with ``_printed`` behind its name, as text. Software
may drop zeros at the end: Python's ``round`` makes "4.3" of 4.30. The number of decimals therefore
belongs to the column, or to the metric where a column holds several. ``columns.csv`` has this
number, and the texts get as many digits.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ingroup import models, paths
from ingroup.tables import InputError, at, check, read_table, wrong

# Comparisons of decimals in binary floats: 0.3 - 0.25 is a little more than half of 0.1.
FLOAT_ERROR = 1e-9
_COMPARISON_COLUMNS = [
    "table",
    "number",
    "row",
    "printed",
    "here",
    "difference",
    "tolerance",
    "verdict",
]


def load(study: str, table: int | str, folder: Path = paths.PUBLISHED) -> pd.DataFrame:
    """Read one printed table as a tidy frame, one observation for each row.

    Parameters
    ----------
    study : str
        A study, whose tables stand in the folder of its name.
    table : int or str
        The table's number in the paper, or the start of the file's name (``"appendix_b"``).
    folder : Path
        The folder that holds the studies' folders and ``columns.csv``, the schema.

    Returns
    -------
    DataFrame
        Columns as in the file: texts are str (``""`` where empty), counts and orders Int64, numbers
        float64 (NaN where empty). Each column of numbers or counts is followed by
        ``<column>_printed``, its text, with the ``decimals`` of the schema (:func:`decimals_of`,
        :func:`with_decimals`).

    Raises
    ------
    InputError
        If there is no such table, or where the table departs from the schema; the message then
        names file, line and column.
    """
    path = _file_of(study, table, folder)
    texts = read_table(path).astype(str)
    schema = pd.read_csv(folder / "columns.csv", dtype=str)
    is_of_file = (schema.study == study) & (schema.file == path.stem)
    schema = schema[is_of_file]
    names = texts.columns.to_list()
    # The schema has the columns of a file in their order.
    if names != schema.column.to_list():
        found = "the columns " + ", ".join(names)
        expected = ", ".join(schema.column) or "none: columns.csv does not name this file"
        raise wrong(at(path, 1), found, expected)

    columns = {}
    for entry in schema.itertuples():
        name = entry.column
        printed = texts[name]
        may_be_empty = entry.may_be_empty == "yes"
        columns[name] = _typed(printed, entry.kind, may_be_empty, path)
        if entry.kind not in ("number", "count"):
            continue

        # A file may lack the zeros at the end that the paper prints.
        if pd.notna(entry.decimals):
            decimals = decimals_of(entry.decimals, texts)
            printed = printed.combine(decimals, with_decimals)
        columns[f"{name}_printed"] = printed

    return pd.DataFrame(columns).reset_index(drop=True)


def _file_of(study: str, table: int | str, folder: Path) -> Path:
    """Find the file of a printed table. Raise an InputError unless exactly one file fits."""
    pattern = f"{table}*.csv"
    if isinstance(table, int):
        # The files are called tableNN_<what>.csv.
        pattern = f"table{table:02d}_*.csv"
    tables = folder / study
    files = sorted(tables.glob(pattern))
    if len(files) == 1:
        return files[0]

    names = sorted(path.name for path in tables.glob("*.csv"))
    if names:
        expected = "one of " + ", ".join(names)
    else:
        studies = sorted(path.name for path in folder.iterdir() if path.is_dir())
        expected = "a study out of " + ", ".join(studies)

    found = f"{len(files)} tables {table!r} of the study {study!r}"
    raise wrong(folder, found, expected)


def decimals_of(entry: str, rows: pd.DataFrame) -> pd.Series:
    """Read how many decimals a column has in each row of its table.

    Parameters
    ----------
    entry : str
        A cell of the schema. A number, and behind it the exceptions if the column holds several
        metrics, as in ``"3; metric=entropy_2: 2; metric=entropy_3: 2"``.
    rows : DataFrame
        The table as texts.

    Returns
    -------
    Series
        Whole numbers, with the index of `rows`.

    Raises
    ------
    KeyError
        For a column that the table does not have.
    """
    usual, *exceptions = entry.split("; ")
    decimals = pd.Series(int(usual), rows.index)

    for exception in exceptions:
        condition, number = exception.split(": ")
        column, value = condition.split("=")
        has_value = rows[column] == value
        decimals[has_value] = int(number)

    return decimals


def with_decimals(text: str, decimals: int) -> str:
    """Give a printed number the zeros at its end that its column has, and no more.

    Parameters
    ----------
    text : str
        A printed number, or an empty text.
    decimals : int
        How many digits stand behind the point.

    Returns
    -------
    str
        ``"4.30"`` for ``"4.3"`` and 2, and ``"65.4"`` for ``"65.40"`` and 1. Other digits than
        zeros stay, and an empty text stays empty.
    """
    if not text:
        return text

    whole, _, digits = text.partition(".")
    of_column = digits[:decimals].ljust(decimals, "0")
    # Digits beyond the column's stay, except for zeros at the end.
    beyond = digits[decimals:].rstrip("0")
    fraction = of_column + beyond
    return f"{whole}.{fraction}" if fraction else whole


def _typed(texts: pd.Series, kind: str, may_be_empty: bool, path: Path) -> pd.Series:
    """Convert a column to values of its kind. Raise an InputError for a cell of another kind."""
    is_empty = texts.eq("")
    is_bad = is_empty & (not may_be_empty)
    if kind == "text":
        check(path, texts, ~is_bad, "a text")
        return texts

    numbers = pd.to_numeric(texts.mask(is_empty), errors="coerce")
    numbers = numbers.astype("float64")
    is_bad |= numbers.isna() & ~is_empty
    if kind == "number":
        check(path, texts, ~is_bad, "a number")
        return numbers

    is_bad |= numbers.notna() & (numbers != numbers.round())
    check(path, texts, ~is_bad, f"a {kind}")
    # pandas' Int64 holds missing values, too.
    return numbers.astype("Int64")


def tolerance(printed: pd.Series) -> pd.Series:
    """Compute half a unit in the last printed digit of each text.

    Parameters
    ----------
    printed : Series
        Printed numbers as texts.

    Returns
    -------
    Series
        0.005 for ``"5.70"``, NaN for an empty text.

    Raises
    ------
    InputError
        If a text is not a decimal number.
    """
    texts = printed.fillna("")
    is_number = texts.str.fullmatch(r"(?:[+-]?\d+(?:\.\d*)?)?")
    if not is_number.all():
        first = texts[~is_number].iloc[0]
        raise InputError(f"{first!r} is not a printed decimal number.")

    digits = texts.str.extract(r"\.(\d*)")[0]
    # Without a point the last digit is the unit.
    n_digits = digits.str.len().fillna(0)
    half = 0.5 * 10.0**-n_digits
    return half.where(texts.ne(""))


def compare(printed: pd.Series, here: ArrayLike, spread: ArrayLike = 0.0) -> pd.DataFrame:
    """Compare printed numbers with numbers computed here.

    Parameters
    ----------
    printed : Series
        The n texts of a ``_printed`` column of :func:`load`.
    here : array_like
        The n numbers, or one, in the same order and unit.
    spread : array_like
        By how much chance may move the numbers `here`.

    Returns
    -------
    DataFrame
        ``printed``, ``here``, ``difference`` (here minus printed), ``tolerance`` (:func:`tolerance`
        and the spread together) and ``verdict``, with the index of `printed`. The verdict says
        where one of the two numbers is missing.
    """
    is_empty = printed.eq("")
    values = pd.to_numeric(printed.mask(is_empty))
    computed = np.broadcast_to(np.asarray(here, dtype=float), len(printed))
    difference = computed - values
    rounding = tolerance(printed)
    rounding_and_chance = rounding + np.asarray(spread, dtype=float)

    size = difference.abs()
    is_within_rounding = size <= rounding + FLOAT_ERROR
    is_within_chance = size <= rounding_and_chance + FLOAT_ERROR
    verdict = np.select(
        [is_within_rounding, is_within_chance],
        ["agrees within rounding", "agrees within chance"],
        "differs",
    )

    table = pd.DataFrame(
        {
            "printed": values,
            "here": computed,
            "difference": difference,
            "tolerance": rounding_and_chance,
            "verdict": verdict,
        }
    )
    table.loc[difference.isna(), "verdict"] = "nothing to compare"
    return table


def beside(study: str, model: str | None, sources: Iterable[tuple]) -> pd.DataFrame:
    """Compare the printed numbers of one model with the numbers of this run.

    Parameters
    ----------
    study : str
        The study.
    model : str or None
        The printed name of the model, from `model_of`.
    sources : iterable of tuple
        Each has a table as in :func:`load`, its column of numbers and the numbers of this run. The
        index of these is named as the columns that tell the table's rows apart, e.g. ``run`` and
        ``group``; printed rows that are not in it are left out. A fourth item is the spread of
        :func:`compare`, with the same index.

    Returns
    -------
    DataFrame
        ``table``, ``number`` (the column), ``row`` (the index, joined by commas), then the columns
        of :func:`compare`; no rows if `model` is None.

    Raises
    ------
    KeyError
        For a column that the table does not have.
    ValueError
        For a row that the table or the run has twice.
    """
    blocks = []
    if model:
        for source in sources:
            blocks.append(_compare_column(study, model, *source))
    if not blocks:
        return pd.DataFrame(columns=_COMPARISON_COLUMNS)
    return pd.concat(blocks, ignore_index=True)


def beside_each(study: str, sources: Mapping[str, Iterable[tuple]]) -> pd.DataFrame:
    """Compare the printed numbers of all models with the numbers of this run.

    Parameters
    ----------
    study : str
        The study.
    sources : mapping
        The tables, columns and numbers of each model of the run, as `beside` takes them.

    Returns
    -------
    DataFrame
        ``model``, then the columns of :func:`beside`. A line on standard output names the models
        that the paper did not print.
    """
    blocks = []
    for model, of_model in sources.items():
        printed = model_of(study, model)
        if printed is None:
            print(f"The paper did not print {models.label(model)}.")
            continue

        block = beside(study, printed, of_model)
        block.insert(0, "model", model)
        blocks.append(block)

    if not blocks:
        return pd.DataFrame(columns=["model", *_COMPARISON_COLUMNS])
    return pd.concat(blocks, ignore_index=True)


def _compare_column(
    study: str,
    model: str,
    table: int | str,
    column: str,
    here: pd.Series,
    spread: ArrayLike = 0.0,
) -> pd.DataFrame:
    """Compare a printed column with this run's values (``here``) for one model."""
    rows = load(study, table)
    # Some tables have models and earlier papers in one column, ``source``.
    for model_column in ("source", "model"):
        if model_column in rows:
            rows = rows[rows[model_column] == model]
            break

    # Rows are matched by their keys as text, whatever the types in the file and in the run.
    keys = here.index.to_frame()
    computed = pd.DataFrame({"here": here, "spread": spread})
    computed.index = _join_keys(keys)

    printed = f"{column}_printed"
    rows = rows.assign(row=_join_keys(rows[list(keys)]))
    rows = rows[rows.row.isin(computed.index)]
    # Table 9 of StereoMap has some groups at two ranks. Two different numbers stay, and raise an
    # error.
    rows = rows.drop_duplicates(["row", printed])
    rows = rows.merge(computed, left_on="row", right_index=True, validate="one_to_one")

    compared = compare(rows[printed], rows.here, rows.spread)
    block = compared.assign(table=table, number=column, row=rows.row)
    return block[_COMPARISON_COLUMNS]


def with_checkpoints(versus: pd.DataFrame) -> pd.DataFrame:
    """Mark in a comparison the models that are other checkpoints than the paper's models.

    Parameters
    ----------
    versus : DataFrame
        The comparison, with the ``model`` of a row in a column or a level of its index.

    Returns
    -------
    DataFrame
        The comparison with the column ``checkpoint``: the sentence of
        :func:`ingroup.models.checkpoint_caution` in the first row of each such model. The sentences
        are printed, too. Without such a model the comparison comes back unchanged.
    """
    names = versus.reset_index()["model"]
    is_repeated = names.duplicated()
    sentences = names.map(models.checkpoint_caution)
    sentences = sentences.mask(is_repeated, "")
    different = sentences[sentences != ""]
    if different.empty:
        return versus

    print(*different, sep="\n")
    return versus.assign(checkpoint=sentences.to_numpy())


def _join_keys(keys: pd.DataFrame) -> list[str]:
    """Join the keys of each row to one text."""
    texts = []
    for row in keys.itertuples(index=False):
        texts.append(", ".join(map(str, row)))
    return texts


def model_of(study: str, model_id: str) -> str | None:
    """Find the name of a model in a study's printed tables.

    Parameters
    ----------
    study : str
        The name of a study's folder, e.g. ``"empathy_gap"``.
    model_id : str
        Any id of the model.

    Returns
    -------
    str or None
        The name, as the columns ``model`` and ``source`` have it; None if the study prints no such
        model.
    """
    rows = _rows(study, model_id)
    if rows.empty:
        return None
    return rows["printed"].iloc[0]


def sampling(study: str, model_id: str) -> dict[str, float]:
    """Look up the temperature and top_p that a paper prints for a model.

    Parameters
    ----------
    study : str
        The name of a study's folder, e.g. ``"empathy_gap"``.
    model_id : str
        Any id of the model.

    Returns
    -------
    dict
        ``temperature`` and ``top_p``; 1 for a number that the paper does not print.
    """
    rows = _rows(study, model_id)
    if rows.empty:
        return {"temperature": 1.0, "top_p": 1.0}

    printed = rows.iloc[0]
    return {
        "temperature": float(printed["temperature"] or 1),
        "top_p": float(printed["top_p"] or 1),
    }


def _rows(study: str, model_id: str) -> pd.DataFrame:
    """Select the registry's row of a model and a study, or no row if the study lacks the model."""
    rows = models.registry().rows
    model = models.find(model_id)
    if model is None:
        return rows.head(0)

    is_of_study = rows["study"] == study
    is_of_model = rows["name"] == model.name
    return rows[is_of_study & is_of_model]
