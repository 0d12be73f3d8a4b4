"""Speed of each kernel against a named baseline, in one run: ``make bench``.

``bench.py PYTHON``: the Python that has vLLM, for the row that needs it.

Every ``bench_*.py`` beside this file has ``rows()``: name, ours and baseline in seconds, ratio,
and one line that says what the baseline is.
"""

import importlib.util
import json
import sys
from pathlib import Path

import pandas as pd

from ingroup import paths

# How many times faster than its baseline each kernel has to be.
WANTED = {
    "permutation_race": 150,
    "permutation_nationality": 500,
    "permutation_religion": 100,
    "paired_t": 20,
    "responses_to_matrix": 50,
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
    paths.BUILD.mkdir(exist_ok=True)
    (paths.BUILD / "bench.json").write_text(
        json.dumps(table.to_dict("records"), indent=1) + "\n", "utf8"
    )
    shown = table.assign(
        ours=table.ours.map("{:.4f} s".format),
        baseline=table.baseline.map("{:.3f} s".format),
        ratio=table.ratio.map("{:.3g}x".format),
        wanted=table.wanted.map("{:.3g}x".format),
    )
    print(shown.to_string(index=False))
    print("Written to build/bench.json")
    slow = table[table.ratio < table.wanted]
    if len(slow):
        print("Slower than wanted:", ", ".join(slow.name), file=sys.stderr)
    return int(len(slow) > 0)


if __name__ == "__main__":
    sys.exit(main())
