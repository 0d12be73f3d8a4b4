"""Claimed against actual: how often intervals hold the truth, and tests reject a true null.

``make calibration`` simulates data whose truth is known, a process a study, and writes
``coverage.csv`` to ``build/tables/calibration/``, and a figure a study. A row is an interval or a
test: ``what``, ``study``, ``n`` (events, names, ...), ``claimed`` and ``actual`` shares, and
``draws``, of how many simulations. ``calibrated/`` has a module a study: its ``ROWS`` are functions
that take a generator and yield rows, each with ``inside``, one bool a simulation (it held the
truth; it rejected).
"""

from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ingroup import figures, notebook, paths

STUDIES = sorted(file.stem for file in (Path(__file__).parent / "calibrated").glob("[a-z]*.py"))


def simulated(study: str) -> pd.DataFrame:
    """All rows of a study."""
    rows = []
    for simulate in import_module(f"calibrated.{study}").ROWS:
        rng = np.random.default_rng([0, *simulate.__name__.encode()])
        for row in simulate(rng):
            inside = row.pop("inside")
            told = {"study": study, "actual": np.mean(inside), "draws": len(inside)}
            rows.append(row | told)
        print(f"{study}: {simulate.__name__.replace('_', ' ')}", flush=True)
    return pd.DataFrame(rows)[["what", "study", "n", "claimed", "actual", "draws"]]


def drawn(table: pd.DataFrame) -> plt.Figure:
    """Claimed and actual shares of one study's intervals and tests, a line each."""
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 0.8 + 0.16 * len(table)))
    y = np.arange(len(table))
    error = 1.96 * np.sqrt(table.actual * (1 - table.actual) / table.draws)
    ax.errorbar(
        table.actual, y, xerr=error, fmt="o", markersize=3, linewidth=0.8, label="simulated"
    )
    ax.plot(table.claimed, y, "k|", markersize=8, label="as its documentation says")
    twice = table.what.duplicated(keep=False)
    ax.set_yticks(y, table.what.mask(twice, table.what + ", n = " + table.n.astype(str)))
    ax.invert_yaxis()
    ax.set_xlabel(
        "share of the simulations in which an interval\nholds the truth, or a test rejects "
        "a true null\n(line: 95 % of what so many can show)"
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return fig


def main() -> None:
    """Simulate all, write the table, draw the figures."""
    with ProcessPoolExecutor() as pool:
        tables = [*pool.map(simulated, STUDIES)]
    out = notebook.Output("calibration", paths.DEFAULT_RUN)
    print(out.write(pd.concat(tables), "coverage").to_string(index=False))
    figures.use_style()
    for study, table in zip(STUDIES, tables, strict=True):
        out.save(drawn(table), f"coverage_{study}")


if __name__ == "__main__":
    main()
