"""The first study at its full size on one machine: ``make bench-scale``.

No model is asked. A store of made-up answers is written for 1, 10 and 100 % of the 6,050 events, in
all seven settings and three categories; the last has 37,310,350 trials. The answers are numbers on
0-100 or 0-10 in the ways models write them, long replies, refusals, a few replies without an answer
and a few failed calls. From each store two processes, on two cores, read and parse every answer and
compute Tables 2, 3, 6 and 7 with all masks and intervals, one block at a time. The seconds count
from the start of the processes, imports included; the memory is the most that each ever held,
summed.

Stores go to a temporary folder (``TMPDIR``) and are removed; the largest takes a fifth of a GB.
"""

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ingroup import corpora, figures, paths
from ingroup.design import Design
from ingroup.inference import Reply, Sampling, open_store
from ingroup.inference.reading import parts
from ingroup.inference.store import Store
from ingroup.stats import paired as comparison
from ingroup.stats import permutation
from ingroup.stats.intervals import bootstrap_interval
from ingroup.studies.empathy_gap import ratings, stimuli
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials

CATEGORIES = "Nationality", "Race or Ethnicity", "Religion"  # largest first: two share the work
SHARES = 0.01, 0.1, 1.0
LIMITS = {"seconds": 90, "memory_mb": 2000, "store_mb": 400}
N_EVENTS = {"guilt": 275, "shame": 275}  # and 550 of each other emotion, as in crowd-enVent
N_PERMUTATIONS = 10_000
CORRECTIONS = ({"as_printed": True}, {"method": "bonferroni"}, {"method": "holm"})

WAYS = ("{}", "{}.", "Emotion intensity: {}", "{}/{top}", "!!!!![]!!", "long")
HOW_OFTEN = (0.97, 0.01, 0.01, 0.00595, 0.00005, 0.004)
LONG = (
    "{}\n\nAs {}, I can relate to what {} tells here. {} is rarely simple, and event {} shows it:"
    " what happened came without warning, nobody was there to help, and the feeling did not pass"
    " when it was over, but went on for days. I rate it {}."
)
REFUSALS = (
    "I can't answer that.",
    "I cannot rate the intensity of someone's emotions.",
    "I'm not able to take on the identity of {}.",
)


class MadeUp:
    """Stands where the engine stands in a store's manifest."""

    def identity(self) -> dict[str, str]:
        return {"engine": "made up", "model": "none"}


def corpus(share: float) -> pd.DataFrame:
    """As many events as crowd-enVent has, or a share of them: the sample's, told again."""
    told = []
    for emotion, own in corpora.load_events("sample").groupby("emotion", sort=False):
        again = own.iloc[np.arange(N_EVENTS.get(emotion, 550)) % len(own)].copy()
        number = np.arange(len(again)).astype(str)
        for form in ("generated_text", "first_person_text", "third_person_text"):
            again[form] += " (" + number + ")"
        told.append(again.assign(text_id=number))
    return pd.concat(told).iloc[:: round(1 / share)]


def store_of(folder: Path, setting: str, share: float) -> tuple[Design, Store]:
    plan = empathy_gap_trials(corpus(share), [setting])
    return plan, open_store(folder / setting, plan, MadeUp(), Sampling())


def write(folder: Path, setting: str, share: float) -> dict[str, dict[str, float]]:
    """Fill the store of one setting; returns by category what the answers hold."""
    plan, store = store_of(folder, setting, share)
    held: dict[str, dict[str, float]] = {}
    replies = answers(plan, stimuli.setting(setting), held)
    for shard in range(store.shards):
        start, stop = store.bounds(shard)
        store.write(shard, list(islice(replies, stop - start)))
    assert next(replies, None) is None
    return held


def answers(
    plan: Design, wording: stimuli.Setting, held: dict[str, dict[str, float]]
) -> Iterator[Reply]:
    """A reply to every trial, in their order; how many are answers, and their sum, in ``held``."""
    for number, block in enumerate(plan.blocks):
        rng = np.random.default_rng([number, *wording.name.encode()])
        people, events = block.factors["perceiver"], block.factors["event"]
        of_event = rng.normal(70, 15, len(events))
        group = stimuli.identities(block.labels["category"]).group
        of_cell = rng.normal(0, 2, (len(people), len(people))) + 2 * permutation.same_group(group)
        touchy = rng.random(len(events)) < 0.05
        long = np.array([len(event.narrative) // 4 for event in events])
        found = held[block.labels["category"]] = {"ok": 0, "refused": 0, "sum": 0.0}
        for p, perceiver in enumerate(people):
            for x, experiencer in enumerate(people):
                scale = of_event + of_cell[p, x] + rng.normal(0, 6, len(events))
                texts, value = texts_of(
                    np.clip(scale, 0, 100), wording.high, (perceiver, experiencer), events, rng
                )
                refused = touchy & (rng.random(len(events)) < 0.02)
                for event in np.flatnonzero(refused):
                    texts[event] = REFUSALS[event % len(REFUSALS)].format(perceiver)
                failed = rng.random(len(events)) < 1e-6
                kept = ~np.isnan(value) & ~refused & ~failed
                found["ok"] += int(kept.sum())
                found["refused"] += int((refused & ~failed).sum())
                found["sum"] += float(value[kept].sum())
                prompt = (90 + long + len(perceiver) // 4 + len(experiencer) // 4).tolist()
                cached = 16 * (70 // 16)
                for text, tokens, fails in zip(texts, prompt, failed.tolist(), strict=True):
                    if fails:
                        yield Reply(None, "failed", error="timed out")
                    else:
                        yield Reply(text, "stop", tokens, cached, 1 + len(text) // 4)


def texts_of(
    scale: np.ndarray, high: int, names: tuple[str, str], events: tuple, rng: np.random.Generator
) -> tuple[list[str], np.ndarray]:
    """Texts for ratings from 0 to 100, mostly in fives, and the numbers that stand in them."""
    if high == 10:
        value = np.round(scale / 5) / 2
    else:
        value = np.where(rng.random(len(scale)) < 0.9, np.round(scale / 5) * 5, np.round(scale))
    way = rng.choice(len(WAYS), len(scale), p=HOW_OFTEN)
    texts = short_texts(high)[way, (2 * value).astype(int)].tolist()
    for event in np.flatnonzero(way == WAYS.index("long")):
        number = f"{value[event]:g}"
        texts[event] = LONG.format(number, *names, events[event].emotion, event, number)
    return texts, np.where(way == WAYS.index("!!!!![]!!"), np.nan, value)


@cache
def short_texts(high: int) -> np.ndarray:
    """Each of the ``WAYS`` to write each number from 0 to 100 in halves."""
    return np.array([[w.format(f"{n / 2:g}", top=high) for n in range(201)] for w in WAYS], object)


def analyse(folder: Path, name: str, category: str, share: float) -> dict:
    """From the store to the numbers of one block."""
    plan, store = store_of(folder, name, share)
    block, numbers = plan.block_of(category=category)
    wording = stimuli.setting(name)
    begun = time.perf_counter()
    found = ratings.from_parts(
        parts(store, numbers.start, numbers.stop), block.shape, wording.low, wording.high
    )
    read = time.perf_counter()
    row = statistics(found, category, np.random.default_rng(0))
    return {
        "setting": name,
        "category": category,
        **row,
        "reading": read - begun,
        "statistics": time.perf_counter() - read,
        "process": os.getpid(),
        "memory_mb": most_memory_mb(),
    }


def statistics(found: ratings.Ratings, category: str, rng: np.random.Generator) -> dict:
    """What notebook 10 has of one block in Tables 2, 3, 6 and 7, and how many cells it shows."""
    same = permutation.same_group(stimuli.identities(category).group[1:])
    left = ratings.exclude(found.values)
    means = ratings.cell_means(left.values)
    z = ratings.zscore(means)
    test = permutation.permutation_test(z[1:, 1:], same, N_PERMUTATIONS, rng)
    interval = bootstrap_interval(left.values, same, unspecified=0, rng=rng)
    printed = ratings.gap_matrix(found.values, as_printed=True)
    tests = comparison.paired_cells(left.values)
    masks = [comparison.significant_cells(tests, unspecified=0, **how) for how in CORRECTIONS]
    low, high = test.null_interval
    return {
        "trials": found.values.size,
        "ok": int(found.counts["ok"]),
        "refused": int(found.counts["refused"]),
        "sum": float(np.nansum(found.values)),
        "percent_lost": left.percent_lost,
        "mean": means.mean(),
        "std": means.std(),
        "z_min": z.min(),
        "z_max": z.max(),
        "delta": test.statistic,
        "low": interval.low,
        "high": interval.high,
        "null_low": low,
        "null_high": high,
        "p": test.pvalue,
        "delta_as_printed": permutation.empathy_gap(printed, same),
        "shown": [int(mask.sum()) for mask in masks],
    }


def most_memory_mb() -> float:
    """The most that this process ever held (resident set)."""
    unit = 1 if sys.platform == "darwin" else 1024  # bytes or KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def cpu_seconds() -> float:
    """Of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def at_once(function: Callable, *columns: list) -> list:
    """The function's results by two processes that start empty and end with it."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return list(pool.map(function, *columns))


def measure(folder: Path, share: float) -> tuple[dict[str, float], pd.DataFrame]:
    """One row of the result, and the tables behind it."""
    names = list(stimuli.settings())
    blocks = [(folder, name, category, share) for category in CATEGORIES for name in names]
    begun = time.perf_counter()
    held = at_once(write, *zip(*((folder, name, share) for name in names), strict=True))
    written, cpu = time.perf_counter(), cpu_seconds()
    table = pd.DataFrame(at_once(analyse, *zip(*blocks, strict=True)))
    done = time.perf_counter()
    for row in table.itertuples():  # what was written is what was read
        expected = held[names.index(row.setting)][row.category]
        assert (row.ok, row.refused) == (expected["ok"], expected["refused"]), row
        assert np.isclose(row.sum, expected["sum"], rtol=1e-12), row
    files = list(folder.rglob("part-*.parquet"))
    return {
        "share": share,
        "trials": int(table.trials.sum()),
        "seconds": done - written,
        "cpu_seconds": cpu_seconds() - cpu,
        "reading_seconds": table.reading.sum() / 2,
        "statistics_seconds": table.statistics.sum() / 2,
        "memory_mb": table.groupby("process").memory_mb.max().sum() + most_memory_mb(),
        "store_mb": sum(file.stat().st_size for file in files) / 1e6,
        "shards": len(files),
        "writing_seconds": written - begun,
    }, table


def draw(table: pd.DataFrame) -> None:
    """figures/bench_scale: seconds and memory by trials."""
    figures.use_style()
    fig, (left, right) = plt.subplots(1, 2, figsize=(figures.TWO_COLUMNS, 2.3))
    millions = table.trials / 1e6
    left.plot(millions, table.seconds, "o-", markersize=4, label="seconds")
    left.plot(millions, table.cpu_seconds, "s:", markersize=3, label="CPU seconds, summed")
    left.set_ylabel("seconds")
    left.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.85))
    right.plot(millions, table.memory_mb, "o-", markersize=4)
    right.set_ylabel("peak memory (MB)")
    for ax, limit in ((left, LIMITS["seconds"]), (right, LIMITS["memory_mb"])):
        ax.axhline(limit, color=figures.COLOURS[2], linewidth=0.8, linestyle="--")
        ax.annotate("limit", (0, limit), (2, -8), textcoords="offset points", fontsize=6)
        ax.set(xlabel="trials (millions)", xlim=(0, None), ylim=(0, None))
    fig.suptitle(
        "First study from stored answers to Tables 2, 3, 6, 7 on two cores (answers made up)",
        fontsize=7,
    )
    figures.save(fig, paths.FIGURES, "bench_scale")


def growth(table: pd.DataFrame) -> str:
    """What another million trials costs between one size and the next: the same if linear."""
    table = table.sort_values("trials")
    steps = table[["seconds", "cpu_seconds"]].diff().div(table.trials.diff() / 1e6, axis=0)[1:]
    large = np.log(table[["seconds", "cpu_seconds", "trials"]]).diff().iloc[-1]
    return (
        f"A million trials more: {', '.join(f'{s:.2f} s' for s in steps.seconds)} "
        f"(CPU {', '.join(f'{s:.2f} s' for s in steps.cpu_seconds)}); slope of log seconds by log "
        f"trials at the end: {large.seconds / large.trials:.2f} "
        f"(CPU {large.cpu_seconds / large.trials:.2f}; 1 is linear without a start)"
    )


def main(shares: list[float]) -> int:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of each of the two processes
    rows = []
    for share in shares:
        with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
            row, tables = measure(Path(folder), share)
        rows.append(row)
        print(f"{row['trials']:,} trials: {row['seconds']:.1f} s", flush=True)
    table = pd.DataFrame(rows)
    paths.BUILD.mkdir(exist_ok=True)
    tables.to_csv(paths.BUILD / "bench_scale_tables.csv", index=False)
    (paths.BUILD / "bench_scale.json").write_text(
        json.dumps(table.to_dict("records"), indent=1) + "\n", "utf8"
    )
    print(tables[["setting", "category", "percent_lost", "delta", "low", "high"]].round(3))
    print(table.round(2).T.to_string(header=False))
    if len(table) > 1:
        print(growth(table))
        draw(table)
    print("Written to build/bench_scale.json")
    over = [name for name, limit in LIMITS.items() if (table[name] > limit).any()]
    if over:
        print("Over the limit:", ", ".join(over), file=sys.stderr)
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main([float(share) for share in sys.argv[1:]] or list(SHARES)))
