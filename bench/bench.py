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

from ingroup.inference.answers import Reply, Sampling
from ingroup.inference.design import Block, Design
from ingroup.inference.store import Store
from ingroup.parsing import parse_rating
from ingroup.paths import BUILD, ROOT

FOLDER = BUILD / "bench"
N_CELLS, N_EVENTS = 6167, 6050  # the first study: 37,310,350 prompts of a model
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
    if len(store.pieces()) == store.n_shards:
        return store
    rng = np.random.default_rng(0)
    texts = [str(number) for number in range(101)] + ["I cannot rate that.", "Rating: 50"]
    with store.writing():
        for shard in range(store.n_shards):
            trials = store.shard_trials(shard)
            drawn = rng.integers(len(texts), size=len(trials))
            replies = [Reply(texts[one], prompt_tokens=200, output_tokens=3) for one in drawn]
            store.add(trials, trials, replies)
    return store


def cell_means(store: Store, n_events: int) -> np.ndarray:
    """Parse each distinct text of a shard once, and average the ratings of each cell."""
    sums = np.zeros(store.trials // n_events)
    counts = np.zeros(store.trials // n_events)
    ratings: dict[str | None, float] = {}
    for table in store.shards(["text"]):
        column = table["text"].combine_chunks()
        texts = column.dictionary.to_pylist()
        for text in texts:
            if text not in ratings:
                ratings[text] = parse_rating(text, 0, 100).value
        of_texts = np.array([ratings[text] for text in texts])
        values = of_texts[column.indices.to_numpy()]

        cells = table["trial"].to_numpy() // n_events
        is_rated = np.isfinite(values)
        sums += np.bincount(cells[is_rated], values[is_rated], minlength=len(sums))
        counts += np.bincount(cells[is_rated], minlength=len(counts))
    return sums / counts


def tables(n_cells: int = N_CELLS) -> None:
    """Read the answers of a whole study, in a process of its own for the peak of memory."""
    store = make_store(n_cells * N_EVENTS)
    size = sum(file.stat().st_size for file in store.folder.glob("*.parquet"))
    command = [sys.executable, __file__, "read", str(store.trials)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, peak, mean = output.split()
    show(
        f"{store.trials:,} answers to means of cells",
        f"{seconds} CPU s, {peak} MB peak, {size / 1e6:.0f} MB stored, mean {mean}",
        "15 CPU s, 600 MB",
    )


def read(n_trials: int) -> None:
    """Print CPU seconds, peak memory (MB) and the mean of all cells."""
    store = make_store(n_trials)
    seconds, means = measure(lambda: cell_means(store, N_EVENTS))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{seconds:.1f} {peak:.0f} {means.mean():.4f}")


# ---- scores over 101 choices -------------------------------------------------------------------


def prompts(n: int) -> Design:
    """Make a design of short prompts that share their beginning."""

    def render(condition: dict) -> list[dict[str, str]]:
        text = f"Rate the joy from 0 to 100. A person found {condition['n']} coins in the street."
        return [{"role": "user", "content": text}]

    return Design([Block({}, {"n": range(n)}, render)])


def choices(n_prompts: int = 32) -> None:
    """Compare scored answers with one pass for each choice."""
    import torch

    from ingroup.inference.transformers_engine import TransformersEngine

    torch.set_num_threads(1)  # threads that wait for a core would count
    engine = TransformersEngine(SMALL)
    chats = prompts(n_prompts).chats(range(n_prompts))
    sampling = Sampling(choices=CHOICES)
    engine.answer(chats[:2], sampling)
    fast, _ = measure(lambda: engine.answer(chats, sampling))

    @torch.inference_mode()
    def slow() -> None:
        (ids,) = engine.renderer.token_ids(chats[:1])
        for choice in CHOICES:
            spelled = engine.tokenizer.encode(choice, add_special_tokens=False)
            engine._model(torch.tensor([[*ids, *spelled]]))

    a_prompt, _ = measure(slow)
    ratio = a_prompt * n_prompts / fast
    show("scores over 101 choices, to a pass per choice", f"{ratio:.0f} times as fast", "50")


# ---- vLLM with everything around it ------------------------------------------------------------


def vllm(n_prompts: int = 128, n_pairs: int = 10) -> None:
    """Compare a run of SmolLM2 into a store with vLLM's generate on the same prompts."""
    import shutil

    from vllm import SamplingParams

    from ingroup.inference import weights
    from ingroup.inference.generate import fill, open_store
    from ingroup.inference.vllm_engine import VLLMEngine

    engine = VLLMEngine(str(weights.available("smollm2-135m-instruct")), dtype="float32")
    design = prompts(n_prompts)
    ids = engine.renderer.token_ids(design.chats(range(n_prompts)))
    sampling = Sampling(max_tokens=4)

    def alone() -> None:
        engine.llm.reset_prefix_cache()
        tokens = [{"prompt_token_ids": one} for one in ids]
        engine.llm.generate(tokens, SamplingParams(temperature=0, max_tokens=4), use_tqdm=False)

    def whole() -> None:
        engine.llm.reset_prefix_cache()
        folder = FOLDER / "vllm"
        shutil.rmtree(folder, ignore_errors=True)
        fill(design, engine, open_store(folder, design, engine, sampling), sampling)

    whole()
    ratios = [measure(alone)[0] / measure(whole)[0] for _ in range(n_pairs)]
    median = statistics.median(ratios)
    show("vLLM's generate alone, to a run into a store", f"{median:.2f} of the CPU time", "0.95")


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        read(int(sys.argv[2]))
    else:
        rows = {"tables": tables, "choices": choices, "vllm": vllm}
        for row in sys.argv[1:] or rows:
            rows[row]()
