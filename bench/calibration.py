"""Claimed against actual: how often intervals hold the truth, and tests reject a true null.

``make calibration`` simulates data whose truth is known, a process a module of ``calibrated/``, and
writes ``coverage.csv`` and figures of all its rows to ``figures/calibration/``; ``python
bench/calibration.py MODULE ...`` simulates some and keeps the other rows of the file. A row is an
interval or a test:

- ``what``, ``study``, ``n`` (events, names, ...);
- ``condition``, in words: what is true in the simulated data, where ``what`` does not say it;
- ``scope``: "these" names, phrasings and groups, or names, phrasings and groups "like these";
- ``nominal``: what its level promises, ``claimed``: what its documentation says under this
  condition, ``actual``: the share in ``draws`` simulations.

The ``ROWS`` of a module are functions that take a generator and yield rows, each with ``inside``,
one bool a simulation (the interval held the truth; the test rejected). Where a row gives no
``nominal``, it is .95 for an interval and .05 for a test.
"""

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
COLUMNS = ["module", "what", "study", "condition", "scope"]
COLUMNS += ["n", "nominal", "claimed", "actual", "draws"]


def simulated(module: str) -> pd.DataFrame:
    """Simulate all rows of a module."""
    rows = []
    for simulate in import_module(f"calibrated.{module}").ROWS:
        rng = np.random.default_rng([0, *simulate.__name__.encode()])
        for row in simulate(rng):
            inside = row.pop("inside")
            nominal = 0.95 if row["what"].startswith("interval") else 0.05
            usual = {"study": module, "condition": "", "scope": "these", "nominal": nominal}
            told = {"module": module, "actual": np.mean(inside), "draws": len(inside)}
            rows.append(usual | row | told)
        print(f"{module}: {simulate.__name__.replace('_', ' ')}", flush=True)
    return pd.DataFrame(rows)[COLUMNS]


def drawn(table: pd.DataFrame) -> plt.Figure:
    """Draw claimed and actual shares of one module's intervals and tests, a line each."""
    label = table.what.where(table.condition == "", table.what + ": " + table.condition)
    label = label.where(table.scope == "these", label + " (like these)")
    twice = label.duplicated(keep=False)
    label = label.mask(twice, label + ", n = " + table.n.astype(str))
    if (table.condition != "").any():
        label = label.map(lambda text: textwrap.fill(text, WIDTH))
    lines = label.str.count("\n") + 1

    height = 0.8 + 0.04 * len(table) + 0.12 * lines.sum()
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, height))
    y = np.cumsum(lines) - lines / 2
    error = 1.96 * np.sqrt(table.actual * (1 - table.actual) / table.draws)
    ax.errorbar(
        table.actual, y, xerr=error, fmt="o", markersize=3, linewidth=0.8, label="simulated"
    )
    ax.plot(table.claimed, y, "k|", markersize=8, label="as its documentation says")
    ax.set_yticks(y, label)
    ax.margins(y=0.5 / lines.sum())
    ax.invert_yaxis()
    ax.set_xlabel(
        "share of the simulations in which an interval\nholds the truth, or a test rejects "
        "a true null\n(line: 95 % of what so many can show)"
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return fig


def merged(tables: Sequence[pd.DataFrame], file: Path) -> pd.DataFrame:
    """Put new rows in the place of those of the same module in the file, by module."""
    new = pd.concat(tables)
    if file.exists():
        old = pd.read_csv(file, keep_default_na=False)
        new = pd.concat([old[~old.module.isin(new.module)], new])
    return new.sort_values("module", kind="stable").reset_index(drop=True)


def main(modules: Sequence[str]) -> None:
    """Simulate, write the table, draw the figures."""
    with ProcessPoolExecutor() as pool:
        tables = [*pool.map(simulated, modules)]
    out = notebook.Output("calibration", paths.DEFAULT_RUN)
    file = out.figures / "coverage.csv"
    table = merged(tables, file)
    table.to_csv(file, index=False, float_format="%.6g", lineterminator="\n")
    print(out.write(table, "coverage").to_string(index=False))
    figures.use_style()
    for (module, study), rows in table.groupby(["module", "study"], sort=False):
        name = module if module == study else f"{module}_{study}"
        out.save(drawn(rows.reset_index(drop=True)), f"coverage_{name}")


if __name__ == "__main__":
    main(sys.argv[1:] or MODULES)
