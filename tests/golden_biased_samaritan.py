"""The golden quantities of study 2, from the tables of notebook 20."""

from pathlib import Path

import pandas as pd

# Quantity and column of tables with one row for each group.
COLUMNS = {
    "biases": {
        "bias": "estimate",
        "bias_t": "statistic",
        "bias_p": "p",
        "bias_p_prompts": "p_prompts",
        "bias_significant_at_01": "significant",
    },
    "helpfulness": {"helpfulness": "estimate"},
    "brittleness": {"brittleness_sample_sd": "estimate"},
    "readings": {"bias": "estimate"},
    "figures1_2_3": {
        "figure_helpfulness": "helpfulness",
        "figure_control": "control",
        "figure_share_of_models": "share",
    },
}


def rows(folder: Path) -> pd.DataFrame:
    """Return quantity, model, reading, category, group, round and value."""
    found = []
    for name, quantities in COLUMNS.items():
        table = pd.read_csv(folder / f"{name}.csv")
        if name == "figures1_2_3":
            table = table.assign(model="mean of the three", reading="expected", round=1)
        for quantity, column in quantities.items():
            labels = table[["model", "reading", "category", "group", "round"]]
            found.append(labels.assign(quantity=quantity, value=table[column].astype(object)))
    return pd.concat(found, ignore_index=True)
