"""Golden numbers: what a run of the notebooks has to give, recomputed independently of this code.

``python tests/golden.py TABLES FOLDER`` writes the numbers of a run in the golden form.
"""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

GOLDEN = Path(__file__).parent / "golden"
STUDIES = ("empathy_gap", "biased_samaritan", "giebench", "stereomap")


def read(name: str) -> pd.DataFrame:
    """Read a golden file as texts."""
    return pd.read_csv(GOLDEN / f"{name}.csv.gz", dtype=str, keep_default_na=False)


def _labels(table: pd.DataFrame, names: list[str]) -> pd.MultiIndex:
    """Return the labels of all rows, with "1" and "1.0" as one spelling."""
    columns = []
    for name in names:
        column = table[name] if name in table else pd.Series("", table.index)
        column = column.astype(object).fillna("").astype(str).str.strip()
        columns.append(column.str.replace(r"^(\d+)\.0+$", r"\1", regex=True))
    return pd.MultiIndex.from_arrays(columns, names=names)


def _tolerances(tolerance: pd.Series, numbers: pd.Series) -> np.ndarray:
    """Return the absolute tolerance of each row."""
    is_relative = tolerance.str.startswith("rel ")
    given = pd.to_numeric(tolerance.str.removeprefix("rel "), errors="coerce")
    allowed = given.where(~is_relative, given * numbers.abs() + 1e-300)
    return allowed.fillna(1e-7 * numbers.abs() + 1e-9).to_numpy() * (1 + 1e-9)


def differences(study: str, rows: pd.DataFrame, quantities: tuple[str, ...] = ()) -> pd.DataFrame:
    """Compare rows with the golden ones.

    Parameters
    ----------
    study : str
        The name of a golden file.
    rows : DataFrame
        ``quantity``, ``model``, ``reading``, labels and ``value``; further rows are ignored.
    quantities : tuple of str
        The quantities that are compared, all unless given.

    Returns
    -------
    DataFrame
        The golden rows that are missing or different, with ``found``.
    """
    golden = read(study)
    changes = Path(__file__).parent / "golden_changed.csv"
    names = [name for name in golden if name not in ("value", "tolerance")]
    golden.index = _labels(golden, names)
    if changes.exists():
        changed = pd.read_csv(changes, dtype=str, keep_default_na=False)
        changed = changed[changed.study == study]
        changed.index = _labels(changed, names)
        assert (golden.value[changed.index].astype(float) == changed.was.astype(float)).all()
        golden.loc[changed.index, "value"] = changed.value
    if quantities:
        golden = golden[golden.quantity.isin(quantities)]

    found = rows.value.astype(object).where(rows.value.notna(), "").astype(str)
    found.index = _labels(rows, names)
    found = found[~found.index.duplicated()].reindex(golden.index).fillna("")
    numbers = pd.to_numeric(golden.value, errors="coerce")
    distance = (numbers - pd.to_numeric(found, errors="coerce")).abs().to_numpy()
    is_equal = distance <= _tolerances(golden.tolerance, numbers)
    is_equal |= (golden.value == found).to_numpy()
    return golden[~is_equal].assign(found=found[~is_equal])


def rows_of(study: str, tables: Path) -> pd.DataFrame:
    """Read the golden quantities of a study from the tables of a run."""
    return import_module(f"golden_{study}").rows(tables / study)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for name in STUDIES:
        rows_of(name, source).to_csv(target / f"{name}.csv", index=False, float_format="%.12g")
