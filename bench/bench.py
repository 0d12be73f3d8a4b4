"""Speed of each kernel against a named baseline: ``make bench``, or ``bench.py PYTHON NAME ...``.

``PYTHON`` has vLLM, for the rows that need it. ``NAME`` chooses rows. Every ``rows_*.py`` beside
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
# 0 is stated, nothing is wanted.
WANTED = {
    "paired_t": 2,
    "keywords": 2,
    "dictionary": 4,
    "store_write": 1,
    "store_size": 20,
    "ray_scaling": 3.8,
    "engine_overhead": 0.95,  # of the CPU's time around a small model 95 % are vLLM's own
    # This is the most that can be added, as each prompt has a turn of its own to tokenize.
    "engine_overhead_full": 0,
    "choices": 20,
    "choices_real": 20,
    "choices_free": 0,
    "choices_free_real": 0,
    "prefixes": 1,
    "prefixes_real": 1,
}


def row(name: str, ours: float, baseline: float, baseline_is: str, unit: str = "s") -> dict:
    """Make one row of the result.

    Parameters
    ----------
    name : str
        A key of `WANTED`.
    ours, baseline : float
        The time or size of the kernel and of its baseline.
    baseline_is : str
        The baseline in words.
    unit : str
        The unit of both numbers.

    Returns
    -------
    dict
        The arguments, the ratio of baseline to ours, and the ratio that is wanted.
    """
    return {
        "name": name,
        "ours": ours,
        "baseline": baseline,
        "unit": unit,
        "ratio": baseline / ours,
        "wanted": WANTED[name],
        "baseline_is": baseline_is,
    }


def seconds(call: Callable[[], Any], times: int = 3) -> float:
    """Time a call as the fastest of several runs, after a first run that does not count."""
    # The fastest of several runs is the one that other programs disturbed least.
    call()
    return min(repeat(call, number=1, repeat=times))


def measure(names: list[str]) -> pd.DataFrame:
    """Run the benchmarks with these names, or all of them."""
    rows = []
    for file in sorted(HERE.glob("rows_*.py")):
        module = importlib.import_module(file.stem)
        for attribute, function in vars(module).items():
            if not attribute.startswith("bench_"):
                continue
            if not names or attribute.removeprefix("bench_") in names:
                rows += list(function())
    return pd.DataFrame(rows)


def main(names: list[str]) -> int:
    """Measure, write the table, and return 1 if a kernel is slower than wanted."""
    table = measure(names)
    OUT.mkdir(parents=True, exist_ok=True)
    table.to_csv(OUT / "bench.csv", index=False)
    print(table.round(4).to_string(index=False))
    print(f"Written to {OUT.relative_to(paths.ROOT)}")

    # The table is written before anything is judged, so a slow kernel leaves its numbers.
    slow = table[table.ratio < table.wanted]
    if len(slow):
        print("Slower than wanted:", ", ".join(slow.name), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.modules["bench"] = sys.modules["__main__"]  # the rows import this module
    sys.exit(main(sys.argv[2:]))
