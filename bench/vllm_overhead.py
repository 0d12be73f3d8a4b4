"""CPU time that the pipeline adds to vLLM, measured by a Python that has vLLM.

``rows_inference.py`` runs this file. Bare is one ``LLM.generate`` of ready token ids. Ours is the
way from the design to the shards on disk and back: chats, template, tokenizer, vLLM, replies,
store. Two designs are asked.

``sample``
    12 events of the sample and all nationalities. Neighbours share their turns, which are tokenized
    once. This design shows the cost of a run of a sample.
``full``
    One persona and thousands of events, as in a shard of the full corpus. Each prompt has a turn of
    its own to tokenize. This design shows the most that the pipeline adds.

The CPU seconds of all threads count. Prompts that are made on another core while vLLM computes
count in full, and a program that only waits does not count. CPU seconds still vary with the other
work of the machine, because caches and clocks are shared. So bare and ours take turns in short
rounds, and each goes first as often as the other. Each round of ours is compared with the bare
round beside it. The result is the median of these ratios, which one disturbed round does not move.
The fastest rounds of both sides are not compared, as they may lie a minute apart.

vLLM computes in one thread. If there are two, one thread of a small model waits for the other
during up to half of the CPU's time. The share depends on the other programs, and moved bare vLLM
alone by a third. Both sides start from an empty prefix cache. The cyclic garbage collector is off.
It would take 1 to 2 per cent of either side, in a few long collections that fall on either by
chance.
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
    """Make the design of 22 x 22 nationalities and 12 events."""
    return trials(load_events("sample", 12), [SETTING], ["Nationality"])


def full() -> Design:
    """Make the design of one perceiver, one experiencer and as many events as a shard holds."""
    events = scale.corpus(1.0)[:SHARD_SIZE]
    (block,) = trials(events, [SETTING], ["Nationality"]).blocks
    factors = dict(block.factors)
    for name in ("perceiver", "experiencer"):
        factors[name] = factors[name][:1]
    return Design([replace(block, factors=factors)])


def seconds(work: Callable[[], None], engine: VLLMEngine) -> float:
    """Time one round in CPU seconds, from an empty prefix cache on."""
    # vLLM refuses while a request runs, and a warm cache would favour the second round.
    assert engine.llm.reset_prefix_cache()
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(design: Design, engine: VLLMEngine, pairs: int) -> dict:
    """Time rounds of the pipeline and of bare vLLM.

    Parameters
    ----------
    design : Design
        The design to ask.
    engine : VLLMEngine
        The engine to ask.
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
    """Measure both designs, and print the results as JSON on the last line."""
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
