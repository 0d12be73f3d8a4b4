"""Speed of each kernel against a named baseline: ``make bench``, or ``bench.py PYTHON NAME ...``.

``PYTHON`` has vLLM, for the row that needs it; names choose some rows. Every ``rows_*.py`` beside
this file has functions ``bench_<name>()`` that yield :func:`row`, for build/bench/bench.csv.
"""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from timeit import repeat
from typing import Any

import pandas as pd

from ingroup import paths

HERE = Path(__file__).parent
OUT = paths.BUILD / "bench"

# How many times better than its baseline each kernel has to be, in every run on two free cores.
WANTED = {
    "paired_t": 2,
    "keywords": 2,
    "dictionary": 4,
    "store_write": 1,
    "store_size": 20,
    "ray_scaling": 3.8,
    "engine_overhead": 0.95,  # of the CPU's time around a small model 95 % are vLLM's own
    "engine_overhead_full": 0,  # stated, nothing is wanted
    "choices": 20,
    "choices_real": 20,
    **dict.fromkeys(("choices_free", "choices_free_real"), 0),  # stated, nothing is wanted
    **dict.fromkeys(("prefixes", "prefixes_real"), 1),
}


def row(name: str, ours: float, baseline: float, baseline_is: str, unit: str = "s") -> dict:
    """One line of the result: ours and baseline in a unit, their ratio, and what is wanted."""
    return {
        "name": name, "ours": ours, "baseline": baseline, "unit": unit,
        "ratio": baseline / ours, "wanted": WANTED[name], "baseline_is": baseline_is,
    }  # fmt: skip


def seconds(call: Callable[[], Any], times: int = 3) -> float:
    """Best of several runs, after one that does not count."""
    call()
    return min(repeat(call, number=1, repeat=times))


def main(names: list[str]) -> int:
    rows = []
    for file in sorted(HERE.glob("rows_*.py")):
        module = importlib.import_module(file.stem)
        for name, function in vars(module).items():
            if name.startswith("bench_") and (not names or name.removeprefix("bench_") in names):
                rows += list(function())
    table = pd.DataFrame(rows)
    OUT.mkdir(parents=True, exist_ok=True)
    table.to_csv(OUT / "bench.csv", index=False)
    print(table.round(4).to_string(index=False))
    print(f"Written to {OUT.relative_to(paths.ROOT)}")
    slow = table[table.ratio < table.wanted]
    if len(slow):
        print("Slower than wanted:", ", ".join(slow.name), file=sys.stderr)
    return int(len(slow) > 0)


if __name__ == "__main__":
    sys.modules["bench"] = sys.modules["__main__"]  # what the rows import is this
    sys.exit(main(sys.argv[2:]))
