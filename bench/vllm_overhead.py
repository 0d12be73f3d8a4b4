"""What the pipeline adds to vLLM, run by ``rows_inference.py`` with a Python that has vLLM.

Bare is one ``LLM.generate`` of ready token ids. Ours is all from the design to the shards on disk
and back: chats, template, tokenizer, vLLM, replies, store. Two designs are asked:

- ``sample``: 12 events of the sample and all nationalities. Neighbours share their turns, which are
  tokenized once. It shows the cost of a run of a sample.
- ``full``: one persona and thousands of events, as in a shard of the full corpus. Each prompt has a
  turn of its own to tokenize. It shows the most that the pipeline adds.

Seconds are those of the CPU, of all threads: prompts that are made on another core while vLLM
computes count in full, a program that only waits does not count. CPU seconds still vary with what
else the machine does, because caches and clocks are shared. So bare and ours take turns in short
rounds, each goes first as often as the other, and each round of ours is compared with the bare
round beside it. The result is the median of these ratios, which one disturbed round does not move.
The fastest rounds of both sides are not compared, as they may lie a minute apart.

vLLM computes in one thread. With two, a small model spends up to half of the CPU's time where one
waits for the other, and how much depends on what else runs: that moved bare vLLM alone by a third.
Both start from an empty prefix cache. The cyclic garbage collector is off in both: it takes 1 to 2
per cent of either side, in a few long collections that fall on either by chance.
"""

import os

# Before torch is imported, which reads it then: a second thread of a small model mostly spins.
os.environ["OMP_NUM_THREADS"] = "1"

import gc
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import scale
from ingroup import paths
from ingroup.design import Design
from ingroup.inference import Sampling, fill, open_store
from ingroup.inference.generate import SHARD_SIZE
from ingroup.inference.prompts import Prompter
from ingroup.inference.vllm_engine import VLLMEngine
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.stimuli import load_events

SAMPLING = Sampling(max_tokens=128)  # the calibrant answers in two tokens
SETTING = "P0,S0,T0"
PAIRS = {"sample": 10, "full": 3}  # of rounds


def sample() -> Design:
    """Return 22 x 22 nationalities and 12 events."""
    return trials(load_events("sample", 12), [SETTING], ["Nationality"])


def full() -> Design:
    """Return one perceiver, one experiencer and as many events of a corpus as a shard holds."""
    events = scale.corpus(1.0)[:SHARD_SIZE]
    (block,) = trials(events, [SETTING], ["Nationality"]).blocks
    factors = dict(block.factors)
    for name in ("perceiver", "experiencer"):
        factors[name] = factors[name][:1]
    return Design([replace(block, factors=factors)])


def seconds(work: Callable[[], None], engine: VLLMEngine) -> float:
    """Return the CPU seconds of one round, which begins with an empty prefix cache."""
    # vLLM refuses while a request runs, and a warm cache would favour whoever comes second.
    assert engine.llm.reset_prefix_cache()
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(design: Design, engine: VLLMEngine, pairs: int) -> dict:
    """Time rounds of both sides.

    Parameters
    ----------
    design : Design
        What is asked.
    engine : VLLMEngine
        Who is asked.
    pairs : int
        Rounds of each side.

    Returns
    -------
    dict
        The number of ``trials``, and the CPU seconds of each round, ``ours`` and ``bare``.
    """
    prompts = engine.prompter.batch([trial.messages for trial in design])
    tokens = [engine.vllm.TokensPrompt(prompt_token_ids=ids) for ids in prompts]
    sampling = engine.vllm.SamplingParams(temperature=0, max_tokens=128, detokenize=False)

    def bare() -> None:
        engine.llm.generate(tokens, sampling, use_tqdm=False)

    def ours() -> None:
        # A new design has no fingerprint yet, and a new prompter has tokenized no turn.
        asked = Design(design.blocks)
        engine.prompter = Prompter(engine.tokenizer)
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(Path(folder), asked, engine, SAMPLING)
            # Reading back counts, too: a run is done when its tables can be made.
            fill(asked, engine, store, SAMPLING)
            store.read()

    # The first rounds warm up.
    seconds(bare, engine)
    seconds(ours, engine)
    took: dict[str, list[float]] = {"ours": [], "bare": []}
    for pair in range(pairs):
        # Whoever goes second finds warmer caches of the CPU, so they take turns.
        order = [ours, bare] if pair % 2 else [bare, ours]
        for work in order:
            took[work.__name__].append(round(seconds(work, engine), 3))
    return {"trials": len(design), **took}


def result(measured: dict) -> dict:
    """Reduce the rounds to one comparison.

    Parameters
    ----------
    measured : dict
        From `measure`.

    Returns
    -------
    dict
        ``trials``, the median seconds of ``ours``, and a ``baseline`` in the median ratio to them.
    """
    ratios = []
    for ours, bare in zip(measured["ours"], measured["bare"], strict=True):
        ratios.append(bare / ours)
    middle = median(measured["ours"])
    return {
        "trials": measured["trials"],
        "ours": middle,
        "baseline": median(ratios) * middle,
    }


def main() -> None:
    """Measure both designs and print the results as JSON, on the last line."""
    engine = VLLMEngine(str(paths.MODELS / "calibrant"))
    gc.disable()
    results = {}
    for name, design in (("sample", sample()), ("full", full())):
        measured = measure(design, engine, PAIRS[name])
        results[name] = result(measured) | {"rounds": measured}
    engine.close()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
