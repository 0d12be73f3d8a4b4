"""Claimed against actual: how often intervals hold the truth, and tests reject a true null.

``make calibration`` simulates data whose truth is known and writes ``coverage.csv`` to
``build/tables/calibration/``, and a figure. A row is an interval or a test: ``what``, ``study``,
``n`` (events, names, ...), ``claimed`` and ``actual`` shares, and ``draws``, of how many
simulations. ``calibrated/`` has a module a study: its ``ROWS`` are functions that take a generator
and yield rows, each with ``inside``, one bool a simulation (it held the truth; it rejected).
"""

from importlib import import_module
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from tqdm import tqdm

from ingroup import figures, notebook, paths

STUDIES = sorted(file.stem for file in (Path(__file__).parent / "calibrated").glob("[a-z]*.py"))


def main() -> None:
    """Simulate all, write the table, draw the figure."""
    rows = []
    for study in STUDIES:
        for simulate in tqdm(import_module(f"calibrated.{study}").ROWS, desc=study):
            rng = np.random.default_rng([0, *simulate.__name__.encode()])
            for row in simulate(rng):
                inside = row.pop("inside")
                told = {"study": study, "actual": np.mean(inside), "draws": len(inside)}
                rows.append(row | told)
    out = notebook.Output("calibration", paths.DEFAULT_RUN)
    columns = ["what", "study", "n", "claimed", "actual", "draws"]
    table = out.write(pd.DataFrame(rows)[columns], "coverage")
    print(table.to_string(index=False))
    figures.use_style()
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, 0.8 + 0.2 * len(table)))
    y = np.arange(len(table))
    error = 1.96 * np.sqrt(table.actual * (1 - table.actual) / table.draws)
    ax.errorbar(table.actual, y, xerr=error, fmt="o", markersize=3, linewidth=0.8, label="actual")
    ax.plot(table.claimed, y, "k|", markersize=8, label="claimed")
    ax.set_yticks(y, [f"{row.study}: {row.what}" for row in table.itertuples()])
    ax.invert_yaxis()
    ax.set_xlabel("share of the simulations (line: 95 % of what so many can show)")
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    out.save(fig, "coverage")


if __name__ == "__main__":
    main()
