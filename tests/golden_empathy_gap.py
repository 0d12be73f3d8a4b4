"""The golden quantities of study 1, from the tables that notebook 10 writes."""

from pathlib import Path

import pandas as pd

BLOCK = ["model", "reading", "setting", "category"]
OF_TABLE_2 = {
    "delta": "delta",
    "delta_released": "delta_released",
    "highlight": "highlight",
    "null_low": "null_low_{kind}",
    "null_high": "null_high_{kind}",
    "null_low_released": "null_low_released_{kind}",
    "null_high_released": "null_high_released_{kind}",
    "p": "p_two_sided_{kind}",
}
OF_CELLS = {"mean": "cell_mean", "z": "cell_z", "is_shown": "cell_shown_released"}


def rows(folder: Path) -> pd.DataFrame:
    """Name the numbers of a run as the golden file does: quantity, labels and value."""

    def read(name):
        return pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)

    def long(table, labels, names):
        renamed = table.rename(columns=names)
        return renamed.melt(labels, list(names.values()), "quantity")

    gaps = long(read("table02_gap"), BLOCK, OF_TABLE_2)
    # The five religions have 120 orders, which are all taken.
    kind = gaps.category.map(lambda category: "exact" if category == "Religion" else "drawn")
    gaps["quantity"] = [
        name.format(kind=how) for name, how in zip(gaps.quantity, kind, strict=True)
    ]

    spread = read("table03_07_spread")
    names = {name: f"spread_{name}" for name in spread.columns.drop(BLOCK)}
    losses = read("table06_refusals")
    percents = [name for name in losses if name.startswith("percent")]
    refusals = {name: f"refusal_{name}" for name in percents}
    shares = {"released": "share_shown_released"}
    sides = {side: f"group_mean_z_as_{side}" for side in ("perceiver", "experiencer")}
    groups = read("section5_groups").assign(reading="expected", setting="P0,S0,T0")

    tables = [
        gaps,
        long(spread, BLOCK, names),
        long(losses, BLOCK, refusals),
        long(read("cells_shown"), BLOCK, shares),
        long(groups, [*BLOCK, "group"], sides),
        long(read("matrix"), [*BLOCK, "perceiver", "experiencer"], OF_CELLS),
    ]
    return pd.concat(tables).fillna("")
