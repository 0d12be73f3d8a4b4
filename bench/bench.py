"""Speed of each kernel against a named baseline, in one run: ``make bench``.

``bench.py PYTHON``: the Python that has vLLM, for the row that needs it.

Every ``bench_*.py`` beside this file has ``rows()``: name, ours and baseline in seconds (or in the
row's ``unit``), ratio, and one line that says what the baseline is. The table goes to
build/bench.json and is drawn as figures/bench.
"""

import importlib.util
import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ingroup import figures, paths

# How many times faster than its baseline each kernel has to be.
WANTED = {
    "permutation_race": 150,
    "permutation_nationality": 500,
    "permutation_religion": 100,
    "permutation_race_scipy": 2,
    "permutation_nationality_scipy": 2,
    "permutation_religion_scipy": 2,
    "paired_t": 20,
    "responses_to_matrix": 50,
    "keywords": 2,
    "dictionary_mapping": 4,
    "store_write": 1,
    "store_read": 1,
    "store_size": 20,
    "render_overhead": 1 / 1.5,  # at most half as long again as the bare tokenizer
    "render_rate": 1,
    "ray_scaling": 3.5,
    "engine_overhead": 1 / 1.1,  # at most 10 % slower than vLLM alone
}


def main() -> int:
    rows = []
    for file in sorted(Path(__file__).parent.glob("bench_*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        rows += module.rows()
    table = pd.DataFrame(rows)
    table["wanted"] = table.name.map(WANTED)
    table["unit"] = table.get("unit", pd.Series(dtype=str)).reindex(table.index).fillna("s")
    paths.BUILD.mkdir(exist_ok=True)
    (paths.BUILD / "bench.json").write_text(
        json.dumps(table.to_dict("records"), indent=1) + "\n", "utf8"
    )
    draw(table)
    shown = table.assign(
        ours=table.ours.map("{:.4f} ".format) + table.unit,
        baseline=table.baseline.map("{:.3f} ".format) + table.unit,
        ratio=table.ratio.map("{:.3g}x".format),
        wanted=table.wanted.map("{:.3g}x".format),
    ).drop(columns="unit")
    print(shown.to_string(index=False))
    print("Written to build/bench.json, drawn as figures/bench")
    slow = table[table.ratio < table.wanted]
    if len(slow):
        print("Slower than wanted:", ", ".join(slow.name), file=sys.stderr)
    return int(len(slow) > 0)


def draw(table: pd.DataFrame) -> None:
    """How many times better than its baseline each kernel is, and has to be at least."""
    figures.use_style()
    height = 0.32 * len(table) + 0.6
    fig, ax = plt.subplots(figsize=(figures.TWO_COLUMNS, height))
    places = np.arange(len(table))[::-1]
    ax.barh(places, table.ratio - 1, left=1, height=0.5, color=figures.COLOURS[5])
    ax.plot(table.wanted, places, "|", color=figures.COLOURS[1], markersize=9, label="wanted")
    ax.axvline(1, color="black", linewidth=0.6)
    ax.set_xscale("log")
    ax.set_yticks(places, [f"{row.name}\n" for row in table.itertuples(index=False)])
    ax.tick_params(axis="y", length=0)
    for place, row in zip(places, table.itertuples(), strict=True):
        ax.annotate(
            row.baseline_is,
            (0, place),
            (-4, -5.5),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=5,
            color="#555555",
            ha="right",
            va="center",
        )
        ax.annotate(
            f"{row.ratio:.3g}x  ({row.ours:.3g} against {row.baseline:.3g} {row.unit})",
            (np.nanmax([row.ratio, row.wanted, 1]), place),
            (5, 0),
            textcoords="offset points",
            fontsize=5,
            va="center",
        )
    ax.set_xlim(min(0.5, table.ratio.min() / 1.2), 60 * table.ratio.max())
    ax.set_xlabel("times its baseline (grey: what that is)")
    ax.legend(loc="lower right", frameon=False)
    figures.save(fig, paths.FIGURES, "bench")


if __name__ == "__main__":
    sys.exit(main())
