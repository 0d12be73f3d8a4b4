"""Claimed and actual shares of intervals that hold the truth, and of tests that reject a true null.

``make calibration`` simulates data whose truth is known, one process per module of ``calibrated/``.
It writes ``coverage.csv`` and figures of all its rows to ``figures/calibration/``. ``python
bench/calibration.py MODULE ...`` simulates these modules and keeps the file's other rows. A row is
an interval or a test, with these columns.

``what``, ``study``, ``n``
    The interval or test, its study, and the number of events, names and so on.
``condition``
    The truth of the simulated data in words, where ``what`` does not say it.
``scope``
    "these" names, phrasings and groups, or names, phrasings and groups "like these".
``nominal``
    The share that its level promises.
``claimed``
    The share that its documentation states under this condition.
``actual``
    The share in ``draws`` simulations.

The ``ROWS`` of a module are functions that take a generator and yield rows. Each row has
``inside``, one bool per simulation: whether the interval held the truth, or the test rejected. A
row without ``nominal`` gets .95 for an interval and .05 for a test.
"""

import math
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ingroup import figures, notebook, paths

MODULES = sorted(file.stem for file in (Path(__file__).parent / "calibrated").glob("[a-z]*.py"))
WIDTH = 62  # characters of a line beside an axis
PAGE = 9.2  # inches: no figure is higher
COLUMNS = [
    "module",
    "what",
    "study",
    "condition",
    "scope",
    "n",
    "nominal",
    "claimed",
    "actual",
    "draws",
]
X_LABEL = (
    "share of the simulations in which an interval\n"
    "holds the truth, or a test rejects a true null\n"
    "(line: 95 % of what so many can show)"
)


def simulate(module: str) -> pd.DataFrame:
    """Simulate all rows of a module.

    Parameters
    ----------
    module : str
        One of `MODULES`.

    Returns
    -------
    DataFrame
        One row per interval or test, with the columns `COLUMNS`.

    Notes
    -----
    The name of a function is the seed of its random numbers, so a renamed function draws others.
    """
    rows = []
    for function in import_module(f"calibrated.{module}").ROWS:
        rng = np.random.default_rng([0, *function.__name__.encode()])
        for row in function(rng):
            inside = row.pop("inside")
            defaults = {
                "study": module,
                "condition": "",
                "scope": "these",
                "nominal": 0.95 if row["what"].startswith("interval") else 0.05,
            }
            result = {
                "module": module,
                "actual": np.mean(inside),
                "draws": len(inside),
            }
            rows.append(defaults | row | result)
        print(f"{module}: {function.__name__.replace('_', ' ')}", flush=True)
    return pd.DataFrame(rows)[COLUMNS]


def labels(table: pd.DataFrame) -> pd.Series:
    """Name each row of a table in the words that tell the row from all others.

    Parameters
    ----------
    table : DataFrame
        Rows of one module.

    Returns
    -------
    Series
        Text of one or more lines for each row.
    """
    has_condition = table.condition != ""
    label = table.what.where(~has_condition, table.what + ": " + table.condition)
    # "these" is the usual scope, so only the other one is named.
    label = label.where(table.scope == "these", label + " (like these)")
    is_ambiguous = label.duplicated(keep=False)
    label = label.mask(is_ambiguous, label + ", n = " + table.n.astype(str))
    if has_condition.any():
        label = label.map(lambda text: textwrap.fill(text, WIDTH))
    return label


def draw(table: pd.DataFrame, label: pd.Series) -> plt.Figure:
    """Draw claimed and actual shares of one module's intervals and tests.

    Parameters
    ----------
    table : DataFrame
        Rows of one module.
    label : Series
        The name of each row (:func:`labels`).

    Returns
    -------
    Figure
        One line per row, from top to bottom.
    """
    n_lines = label.str.count("\n") + 1

    # Each row is as high as its label.
    y = np.cumsum(n_lines) - n_lines / 2
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, _height(label)))
    # The bars show what so many simulations can tell of a share, as a normal interval.
    error = 1.96 * np.sqrt(table.actual * (1 - table.actual) / table.draws)
    ax.errorbar(
        table.actual,
        y,
        xerr=error,
        fmt="o",
        markersize=3,
        linewidth=0.8,
        label="simulated",
    )
    ax.plot(table.claimed, y, "k|", markersize=8, label="as its documentation says")

    ax.set_yticks(y, label)
    ax.margins(y=0.5 / n_lines.sum())
    ax.invert_yaxis()
    ax.set_xlabel(X_LABEL)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return fig


def _height(label: pd.Series) -> float:
    """Compute the height of a figure with these labels, in inches."""
    n_lines = label.str.count("\n") + 1
    return 0.8 + 0.04 * len(label) + 0.12 * n_lines.sum()


def merge(tables: Sequence[pd.DataFrame], file: Path) -> pd.DataFrame:
    """Replace the file's rows of the simulated modules.

    Parameters
    ----------
    tables : sequence of DataFrame
        New rows of some modules.
    file : pathlib.Path
        Table of an earlier simulation, if there is one.

    Returns
    -------
    DataFrame
        New rows and the file's rows of other modules, sorted by module.
    """
    table = pd.concat(tables)
    if file.exists():
        # A row without a condition has an empty text, not NaN.
        old = pd.read_csv(file, keep_default_na=False)
        kept = old[~old.module.isin(table.module)]
        table = pd.concat([kept, table])
    return table.sort_values("module", kind="stable").reset_index(drop=True)


def main(modules: Sequence[str]) -> None:
    """Simulate, write the table, draw the figures."""
    with ProcessPoolExecutor() as pool:
        tables = list(pool.map(simulate, modules))

    out = notebook.Output("calibration", paths.DEFAULT_RUN)
    file = out.figures / "coverage.csv"
    table = merge(tables, file)
    # The file is committed, so it has few digits and the same line ends everywhere.
    table.to_csv(file, index=False, float_format="%.6g", lineterminator="\n")
    print(out.write(table, "coverage").to_string(index=False))

    draw_all(table, out)


def draw_all(table: pd.DataFrame, out: notebook.Output) -> None:
    """Save a figure of each module and study, in parts that fit on a page.

    Parameters
    ----------
    table : DataFrame
        All rows.
    out : Output
        Where the figures go.
    """
    figures.use_style()
    for (module, study), rows in table.groupby(["module", "study"], sort=False):
        name = module if module == study else f"{module}_{study}"
        label = labels(rows)
        n_parts = math.ceil(_height(label) / PAGE)
        for number, part in enumerate(np.array_split(rows.index, n_parts), start=1):
            figure = draw(rows.loc[part], label.loc[part])
            suffix = f"_{number}" if n_parts > 1 else ""
            out.save(figure, f"coverage_{name}{suffix}")


if __name__ == "__main__":
    main(sys.argv[1:] or MODULES)
