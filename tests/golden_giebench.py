"""The golden quantities of GIEBench, from the tables that notebook 30 writes."""

from pathlib import Path

import pandas as pd

LABELS = ["model", "prompt", "category", "identity_i", "identity_j"]
QUANTITIES = {
    "table01_02_06_accuracy": {
        "accuracy": "accuracy_percent",
        "right": "n_right",
        "n": "n_items",
    },
    "table04_05_changes": {
        "change": "change_points",
        "gained": "gained",
        "lost": "lost",
    },
    "table03_07_mismatch": {
        "after": "mismatch_accuracy_percent",
        "before": "no_mismatch_accuracy_percent",
        "n": "mismatch_n_items",
    },
    "figure1_shares": {"here": "share_of_questions_percent"},
}


def rows(folder: Path) -> pd.DataFrame:
    """Read ``quantity``, ``reading``, `LABELS` and ``value`` from the tables of a run."""
    tables = []
    for name, columns in QUANTITIES.items():
        table = pd.read_csv(folder / f"{name}.csv").rename(columns=columns)
        labels = [label for label in LABELS if label in table]
        long = table.melt(labels, list(columns.values()), "quantity", "value")
        tables.append(long.assign(reading="greedy" if "model" in long else ""))
    return pd.concat(tables, ignore_index=True)
