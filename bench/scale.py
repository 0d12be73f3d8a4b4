"""The first study at its full size on one machine, without a model: ``make bench-scale``.

A store of made-up answers is written for 1, 10 and 100 % of the 6,050 events, the last with
37,310,350 trials. The answers are numbers in the ways models write them, long replies and refusals.
Two processes read and parse every answer of each store. They compute Tables 2, 3, 6 and 7 with all
masks and intervals, a block at a time. Seconds include imports. Memory is the peak of each process,
summed. Stores go to a temporary folder (``TMPDIR``).
"""

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd

from ingroup import paths
from ingroup.design import Block, Design
from ingroup.inference import Engine, Reply, Sampling, Store, open_store, parts
from ingroup.stats.effects import bootstrap_interval
from ingroup.stats.paired import cell_pvalues, cells_to_show
from ingroup.stats.permutation import permutation_test
from ingroup.studies.empathy_gap import answers, statistics, stimuli
from ingroup.studies.empathy_gap.design import trials

CATEGORIES = ("Nationality", "Race or Ethnicity", "Religion")  # largest first: two share the work
SHARES = (0.01, 0.1, 1.0)
LIMITS = {"seconds": 90, "memory_mb": 2000, "store_mb": 400}
N_EVENTS = {"guilt": 275, "shame": 275}  # and 550 of each other emotion, as in crowd-enVent
FORMS = ("generated_text", "first_person_text", "third_person_text")
CORRECTIONS = ("released", "bonferroni", "holm")

# How models write a number, and how often.
TEMPLATES = {
    "{}": 0.969,
    "{}.": 0.01,
    "Intensity: {}": 0.01,
    "{}/{top}": 0.00595,
    "!!!!![]!!": 0.00005,
    "I can't answer that.": 0.001,
}
LONG_REPLY = "{}\n\nAs {}, I can relate to what {} tells here, event {}: it came without warning."
SHARE_LONG = 0.004


class MadeUp(Engine):
    """Engine that only names itself in a store's manifest."""

    def identity(self) -> dict[str, str]:
        return {"engine": "made up", "model": "none"}


def corpus(share: float) -> pd.DataFrame:
    """Make as many events as crowd-enVent has, or a share of them, from the sample's events.

    The sample's events come again and again, each time with another number.

    Parameters
    ----------
    share : float
        Above 0 and at most 1.

    Returns
    -------
    DataFrame
        Events in the form of `stimuli.load_events`.
    """
    events = []
    for emotion, sample in stimuli.load_events("sample").groupby("emotion", sort=False):
        n_events = N_EVENTS.get(emotion, 550)
        # The events of the sample come again and again, each time with another number.
        repeated = np.arange(n_events) % len(sample)
        of_emotion = sample.iloc[repeated].copy()
        number = np.arange(n_events).astype(str)
        for form in FORMS:
            of_emotion[form] += " (" + number + ")"
        of_emotion["text_id"] = number
        events.append(of_emotion)
    step = round(1 / share)
    return pd.concat(events).iloc[::step]


def store_of(folder: Path, setting: str, category: str, share: float) -> tuple[Design, Store]:
    """Open the store of one block.

    Parameters
    ----------
    folder : pathlib.Path
        Where all stores are.
    setting, category : str
        The setting and the category of the block.
    share : float
        The share of the events.

    Returns
    -------
    tuple of Design and Store
        The block's trials and their store.
    """
    design = trials(corpus(share), [setting], [category])
    store = open_store(folder / setting / category, design, MadeUp(), Sampling())
    return design, store


def made_up_replies(design: Design, high: int) -> Iterator[Reply]:
    """Write a reply to every trial.

    Parameters
    ----------
    design : Design
        Trials of the first study.
    high : int
        Top of the scale, 10 or 100.

    Yields
    ------
    Reply
        In the order of the trials.
    """
    rng = np.random.default_rng(0)
    shares = [*TEMPLATES.values(), SHARE_LONG]
    # Short replies by template and by twice the number, as some numbers are halves.
    numbers = [f"{twice / 2:g}" for twice in range(201)]
    short = []
    for template in TEMPLATES:
        short.append([template.format(number, top=high) for number in numbers])

    for block in design.blocks:
        people = block.factors["perceiver"]
        n_events = len(block.factors["event"])
        of_events = rng.normal(70, 15, n_events)
        of_cells = _cells(block, rng)
        for perceiver, experiencer in np.ndindex(of_cells.shape):
            noise = rng.normal(0, 6, n_events)
            ratings = of_events + of_cells[perceiver, experiencer] + noise
            ratings = np.clip(ratings, 0, 100)
            # Values are steps of five on 0 to 100 and halves on 0 to 10, so twice a value is whole.
            values = np.round(ratings / 5) * 5
            if high == 10:
                values = np.round(ratings / 5) / 2

            templates = rng.choice(len(shares), n_events, p=shares)
            for event in range(n_events):
                value = values[event]
                template = templates[event]
                if template < len(short):
                    text = short[template][int(2 * value)]
                else:
                    number = f"{value:g}"
                    text = LONG_REPLY.format(number, people[perceiver], people[experiencer], event)
                yield Reply(
                    text,
                    finish_reason="stop",
                    prompt_tokens=120,
                    cached_tokens=64,
                    output_tokens=1 + len(text) // 4,
                )


def _cells(block: Block, rng: np.random.Generator) -> np.ndarray:
    """Draw the mean of each pair of identities, two points more within a group."""
    category = block.labels["category"]
    people = stimuli.identities(category)
    same = statistics.same_group(people.group)
    return rng.normal(0, 2, same.shape) + 2 * same


def write(folder: Path, setting: str, category: str, share: float) -> None:
    """Write the store of one block, whose parameters are those of `store_of`."""
    design, store = store_of(folder, setting, category, share)
    # This is a generator, so that only one shard of replies is held at a time.
    replies = made_up_replies(design, stimuli.setting(setting).high)
    with store.writing():
        for shard in range(store.n_shards):
            start, stop = store.bounds(shard)
            store.write(shard, list(islice(replies, stop - start)))


def analyse(folder: Path, setting: str, category: str, share: float) -> dict[str, float]:
    """Time the analysis of one block, as notebook 10 makes it for Tables 2, 3, 6 and 7.

    Parameters
    ----------
    folder, setting, category, share
        As in `store_of`.

    Returns
    -------
    dict
        ``trials``, seconds of ``reading``, number of the ``process``, and its ``memory_mb``.
    """
    design, store = store_of(folder, setting, category, share)
    (block,) = design.blocks
    scale = stimuli.setting(setting)

    started = time.perf_counter()
    ratings = answers.parse_parts(parts(store), block.shape, scale.low, scale.high)
    reading = time.perf_counter() - started
    # Every trial was read, and nearly all made-up replies have a rating.
    assert len(block) == ratings.counts.sum() < ratings.counts["ok"] / 0.99

    rng = np.random.default_rng(0)
    people = stimuli.identities(category)
    # "A person", the first identity, is left out.
    same = statistics.same_group(people.group[1:])
    values = statistics.exclude(ratings.values)
    means = statistics.cell_means(values)
    z = statistics.zscore(means)
    permutation_test(z[1:, 1:], same, 10_000, rng)
    bootstrap_interval(values, same, rng=rng)
    matrix = statistics.gap_matrix(ratings.values, **statistics.RELEASED)
    statistics.empathy_gap(matrix, same)
    pvalues = cell_pvalues(values)
    for correction in CORRECTIONS:
        cells_to_show(pvalues, correction)

    return {
        "trials": len(block),
        "reading": reading,
        "process": os.getpid(),
        "memory_mb": memory_mb(),
    }


def memory_mb() -> float:
    """Return the peak of this process's resident memory, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS gives bytes, Linux KiB.
    unit = 1 if sys.platform == "darwin" else 1024
    return peak * unit / 1e6


def in_two_processes(function: Callable, calls: list[tuple]) -> list:
    """Call a function in two new processes, which end after the calls.

    Parameters
    ----------
    function : callable
        Any function of a module.
    calls : list of tuple
        The arguments of each call.

    Returns
    -------
    list
        The results, in the order of the calls.
    """
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return list(pool.map(function, *zip(*calls, strict=True)))


def measure(folder: Path, share: float) -> dict[str, float]:
    """Write the stores of one share of the events, then time their analysis.

    Parameters
    ----------
    folder : pathlib.Path
        An empty folder.
    share : float
        The share of the events.

    Returns
    -------
    dict of str to float
        ``trials``, ``seconds``, the seconds that ``reading`` took, ``memory_mb``, ``store_mb``.
    """
    blocks = []
    for category, setting in product(CATEGORIES, stimuli.prompts()["settings"]):
        blocks.append((folder, setting, category, share))
    in_two_processes(write, blocks)

    started = time.perf_counter()
    table = pd.DataFrame(in_two_processes(analyse, blocks))
    seconds = time.perf_counter() - started
    of_processes = table.groupby("process").memory_mb.max()
    n_bytes = 0
    for file in folder.rglob("part-*.parquet"):
        n_bytes += file.stat().st_size
    return {
        "trials": int(table.trials.sum()),
        "seconds": seconds,
        # Two processes read side by side.
        "reading": table.reading.sum() / 2,
        "memory_mb": of_processes.sum() + memory_mb(),
        "store_mb": n_bytes / 1e6,
    }


def main(shares: list[float]) -> int:
    """Measure each share, write the table, and return 1 if a limit is exceeded."""
    # Each of the two processes gets one thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    rows = []
    for share in shares:
        with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
            row = measure(Path(folder), share)
        rounded = {name: round(value, 1) for name, value in row.items()}
        print(rounded, flush=True)
        rows.append(row)

    table = pd.DataFrame(rows)
    file = paths.BUILD / "bench" / "scale.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False)
    over = [name for name, limit in LIMITS.items() if table[name].max() > limit]
    if over:
        print("Over the limit:", ", ".join(over), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    shares = [float(share) for share in sys.argv[1:]]
    sys.exit(main(shares or list(SHARES)))
