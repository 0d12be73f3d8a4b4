"""The first study at its full size on one machine, without a model: ``make bench-scale``.

A store of made-up answers (numbers in the ways models write them, long replies, refusals) is
written for 1, 10 and 100 % of the 6,050 events, the last with 37,310,350 trials. From each two
processes read and parse every answer and compute Tables 2, 3, 6 and 7 with all masks and intervals,
a block at a time. Seconds count imports too; memory is the most that each process ever held,
summed. Stores go to a temporary folder (``TMPDIR``).
"""

import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.design import Design
from ingroup.inference import Reply, Sampling, Store, open_store, parts
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.paired import paired_cells, significant_cells
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import answers, statistics, stimuli
from ingroup.studies.empathy_gap.design import trials

CATEGORIES = "Nationality", "Race or Ethnicity", "Religion"  # largest first: two share the work
SHARES = 0.01, 0.1, 1.0
LIMITS = {"seconds": 90, "memory_mb": 2000, "store_mb": 400}
N_EVENTS = {"guilt": 275, "shame": 275}  # and 550 of each other emotion, as in crowd-enVent
CORRECTIONS = "released", "bonferroni", "holm"
WAYS = "{}", "{}.", "Intensity: {}", "{}/{top}", "!!!!![]!!", "I can't answer that.", "long"
HOW_OFTEN = (0.969, 0.01, 0.01, 0.00595, 0.00005, 0.001, 0.004)
LONG = "{}\n\nAs {}, I can relate to what {} tells here, event {}: it came without warning."


class MadeUp:
    """Stands where the engine stands in a store's manifest."""

    def identity(self) -> dict[str, str]:
        return {"engine": "made up", "model": "none"}


def corpus(share: float) -> pd.DataFrame:
    """As many events as crowd-enVent has, or a share of them: the sample's, told again."""
    told = []
    for emotion, own in stimuli.load_events("sample").groupby("emotion", sort=False):
        again = own.iloc[np.arange(N_EVENTS.get(emotion, 550)) % len(own)].copy()
        number = np.arange(len(again)).astype(str)
        for form in ("generated_text", "first_person_text", "third_person_text"):
            again[form] += " (" + number + ")"
        told.append(again.assign(text_id=number))
    return pd.concat(told).iloc[:: round(1 / share)]


def store_of(folder: Path, setting: str, category: str, share: float) -> tuple[Design, Store]:
    design = trials(corpus(share), [setting], [category])
    return design, open_store(folder / setting / category, design, MadeUp(), Sampling())


def made_up(design: Design, high: int) -> Iterator[Reply]:
    """A reply to every trial, in their order."""
    rng = np.random.default_rng(0)
    short = [[way.format(f"{n / 2:g}", top=high) for n in range(201)] for way in WAYS]
    for block in design.blocks:
        people, events = block.factors["perceiver"], block.factors["event"]
        of_event, of_cell = rng.normal(70, 15, len(events)), rng.normal(0, 2, (len(people),) * 2)
        of_cell += 2 * statistics.same_group(stimuli.identities(block.labels["category"]).group)
        for p, x in np.ndindex(of_cell.shape):
            scale = np.clip(of_event + of_cell[p, x] + rng.normal(0, 6, len(events)), 0, 100)
            value = np.round(scale / 5) / 2 if high == 10 else np.round(scale / 5) * 5
            way = rng.choice(len(WAYS), len(events), p=HOW_OFTEN)
            for event, (w, number) in enumerate(zip(way.tolist(), value.tolist(), strict=True)):
                text = short[w][int(2 * number)]
                if w == len(WAYS) - 1:
                    text = LONG.format(f"{number:g}", people[p], people[x], event)
                yield Reply(text, "stop", 120, 64, 1 + len(text) // 4)


def write(folder: Path, setting: str, category: str, share: float) -> None:
    design, store = store_of(folder, setting, category, share)
    replies = made_up(design, stimuli.setting(setting).high)
    with store.writing():
        for shard in range(store.shards):
            start, stop = store.bounds(shard)
            store.write(shard, list(islice(replies, stop - start)))


def analyse(folder: Path, name: str, category: str, share: float) -> dict:
    """From the store to what notebook 10 has of one block in Tables 2, 3, 6 and 7."""
    design, store = store_of(folder, name, category, share)
    (block,), wording, begun = design.blocks, stimuli.setting(name), time.perf_counter()
    found = answers.from_parts(parts(store), block.shape, wording.low, wording.high)
    reading, rng = time.perf_counter() - begun, np.random.default_rng(0)
    same = statistics.same_group(stimuli.identities(category).group[1:])
    left = statistics.exclude(found.values)
    z = statistics.zscore(statistics.cell_means(left))
    permutation_test(z[1:, 1:], same, 10_000, rng)
    bootstrap_interval(left, same, rng=rng)
    statistics.empathy_gap(statistics.gap_matrix(found.values, **statistics.RELEASED), same)
    pvalues = paired_cells(left)
    for correction in CORRECTIONS:
        significant_cells(pvalues, correction)
    assert len(block) == found.counts.sum() < found.counts["ok"] / 0.99
    held = {"process": os.getpid(), "memory_mb": memory_mb()}
    return {"trials": len(block), "reading": reading, **held}


def memory_mb() -> float:
    """The most that this process ever held (resident set)."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes or KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def at_once(function, rows: list[tuple]) -> list:
    """The function's results by two processes that start empty and end with it."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return list(pool.map(function, *zip(*rows, strict=True)))


def measure(folder: Path, share: float) -> dict[str, float]:
    """One row of the result."""
    names = list(stimuli.prompts()["settings"])
    blocks = [(folder, name, category, share) for category, name in product(CATEGORIES, names)]
    at_once(write, blocks)
    written = time.perf_counter()
    table = pd.DataFrame(at_once(analyse, blocks))
    return {
        "trials": int(table.trials.sum()),
        "seconds": time.perf_counter() - written,
        "reading": table.reading.sum() / 2,
        "memory_mb": table.groupby("process").memory_mb.max().sum() + memory_mb(),
        "store_mb": sum(f.stat().st_size for f in folder.rglob("part-*.parquet")) / 1e6,
    }


def main(shares: list[float]) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of each of the two processes
    rows = []
    for share in shares:
        with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
            rows.append(measure(Path(folder), share))
        print({name: round(value, 1) for name, value in rows[-1].items()}, flush=True)
    table = pd.DataFrame(rows)
    (paths.BUILD / "bench").mkdir(parents=True, exist_ok=True)
    table.to_csv(paths.BUILD / "bench" / "scale.csv", index=False)
    over = [name for name, limit in LIMITS.items() if (table[name] > limit).any()]
    if over:
        print("Over the limit:", ", ".join(over), file=sys.stderr)
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main([float(share) for share in sys.argv[1:]] or list(SHARES)))
