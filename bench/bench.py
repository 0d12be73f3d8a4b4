"""Measure three things: ``python bench/bench.py [tables] [choices] [vllm]``, all unless named.

Times are CPU seconds of the process and its children, which other work on the machine hardly
changes. Each row says what it is compared with, and the bar that it has to clear.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from ingroup import BUILD, ROOT
from ingroup.inference.answers import Reply, Sampling
from ingroup.inference.design import Block, Design
from ingroup.inference.store import Store
from ingroup.parsing import parse_rating

FOLDER = BUILD / "bench"
# The first study: 37,310,350 prompts of a model.
N_CELLS = 6167
N_EVENTS = 6050
SMALL = str(ROOT / "tests" / "model")
CHOICES = tuple(map(str, range(101)))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has ended."""
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + of_children.ru_utime + of_children.ru_stime


def measure(work: Callable[[], object]) -> tuple[float, object]:
    """Return the CPU seconds of some work, and its result."""
    start = cpu_seconds()
    result = work()
    return cpu_seconds() - start, result


def show(name: str, value: str, bar: str) -> None:
    """Print a row."""
    print(f"{name:44} {value:44} bar: {bar}", flush=True)


# ---- 37.3 million answers to the means of cells ------------------------------------------------


def make_store(n_trials: int) -> Store:
    """Write a store of ratings as texts, once."""
    store = Store(FOLDER / f"ratings-{n_trials}", {"model": "bench", "trials": n_trials})
    n_written = len(store.pieces())
    if n_written == store.n_shards:
        return store

    rng = np.random.default_rng(0)
    texts = [*CHOICES, "I cannot rate that.", "Rating: 50"]
    different = [Reply(text, prompt_tokens=200, output_tokens=3) for text in texts]
    with store.writing():
        for shard in range(store.n_shards):
            trials = store.shard_trials(shard)
            n = len(trials)
            drawn = rng.integers(len(texts), size=n)
            replies = [different[one] for one in drawn]
            store.add(trials, trials, replies)
    return store


def cell_means(store: Store) -> np.ndarray:
    """Parse each distinct text of a shard once, and average the ratings of each cell."""
    n_cells = store.trials // N_EVENTS
    sums = np.zeros(n_cells)
    counts = np.zeros(n_cells)
    ratings: dict[str | None, float] = {}
    for table in store.shards(["text"]):
        column = table["text"].combine_chunks()
        texts = column.dictionary.to_pylist()
        for text in texts:
            if text not in ratings:
                ratings[text] = parse_rating(text, 0, 100).value
        of_texts = np.array([ratings[text] for text in texts])
        number = column.indices.to_numpy()
        values = of_texts[number]

        trials = table["trial"].to_numpy()
        is_rated = np.isfinite(values)
        cells = trials[is_rated] // N_EVENTS
        sums += np.bincount(cells, values[is_rated], minlength=n_cells)
        counts += np.bincount(cells, minlength=n_cells)
    return sums / counts


def tables() -> None:
    """Read the answers of a whole study, in a process of its own for the peak of memory."""
    store = make_store(N_CELLS * N_EVENTS)
    files = store.folder.glob("*.parquet")
    size = sum(file.stat().st_size for file in files) / 1e6
    command = [sys.executable, __file__, "read", str(store.trials)]
    output = subprocess.check_output(command, text=True)
    seconds, peak, mean = output.split()

    name = f"{store.trials:,} answers to means of cells"
    value = f"{seconds} CPU s, {peak} MB peak, {size:.0f} MB stored, mean {mean}"
    show(name, value, "15 CPU s, 600 MB")


def read(n_trials: int) -> None:
    """Print CPU seconds, peak memory (MB) and the mean of all cells."""
    store = make_store(n_trials)
    seconds, means = measure(lambda: cell_means(store))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    peak = usage.ru_maxrss / 1024
    mean = means.mean()
    print(f"{seconds:.1f} {peak:.0f} {mean:.4f}")


# ---- scores over 101 choices -------------------------------------------------------------------


def prompts(n: int) -> Design:
    """Make a design of short prompts that share their beginning."""

    def render(condition: dict) -> list[dict[str, str]]:
        text = f"Rate the joy from 0 to 100. A person found {condition['n']} coins in the street."
        return [{"role": "user", "content": text}]

    return Design([Block({}, {"n": range(n)}, render)])


def choices() -> None:
    """Compare scored answers with one pass for each choice."""
    import torch

    from ingroup.inference.transformers_engine import TransformersEngine

    torch.set_num_threads(1)  # threads that wait for a core would count
    engine = TransformersEngine(SMALL)
    design = prompts(32)
    chats = design.chats(range(32))
    sampling = Sampling(choices=CHOICES)
    engine.answer(chats[:2], sampling)
    fast, _ = measure(lambda: engine.answer(chats, sampling))

    @torch.inference_mode()
    def slow() -> None:
        (ids,) = engine.renderer.token_ids(chats[:1])
        for choice in CHOICES:
            spelled = engine.tokenizer.encode(choice, add_special_tokens=False)
            tokens = torch.tensor([[*ids, *spelled]])
            engine._model(tokens)

    a_prompt, _ = measure(slow)
    ratio = a_prompt * len(chats) / fast
    show("scores over 101 choices, to a pass per choice", f"{ratio:.0f} times as fast", "50")


# ---- vLLM with everything around it ------------------------------------------------------------


def vllm() -> None:
    """Compare a run of SmolLM2 into a store with vLLM's generate on the same prompts."""
    import shutil

    from vllm import SamplingParams

    from ingroup.inference import weights
    from ingroup.inference.generate import fill, open_store
    from ingroup.inference.vllm_engine import VLLMEngine

    folder = FOLDER / "vllm"
    model = weights.available("smollm2-135m-instruct")
    engine = VLLMEngine(str(model), dtype="float32")
    design = prompts(128)
    chats = design.chats(range(128))
    ids = engine.renderer.token_ids(chats)
    ours = Sampling(max_tokens=4)
    theirs = SamplingParams(temperature=0, max_tokens=4)

    def alone() -> None:
        engine.llm.reset_prefix_cache()
        tokens = [{"prompt_token_ids": one} for one in ids]
        engine.llm.generate(tokens, theirs, use_tqdm=False)

    def whole() -> None:
        engine.llm.reset_prefix_cache()
        shutil.rmtree(folder, ignore_errors=True)
        store = open_store(folder, design, engine, ours)
        fill(design, engine, store, ours)

    whole()
    ratios = []
    for _ in range(10):
        seconds_alone, _ = measure(alone)
        seconds_whole, _ = measure(whole)
        ratios.append(seconds_alone / seconds_whole)
    median = statistics.median(ratios)
    show("vLLM's generate alone, to a run into a store", f"{median:.2f} of the CPU time", "0.95")


if __name__ == "__main__":
    rows = {
        "tables": tables,
        "choices": choices,
        "vllm": vllm,
    }
    match sys.argv[1:]:
        case ["read", n_trials]:
            read(int(n_trials))
        case named:
            for row in named or rows:
                rows[row]()
