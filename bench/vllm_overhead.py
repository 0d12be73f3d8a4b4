"""What the pipeline adds to vLLM, run by ``rows_inference.py`` with a Python that has vLLM.

Bare is one ``LLM.generate`` of token ids that are there already. Ours is all from the design to the
shards on disk and back: chats, template, tokenizer, vLLM, replies, store. Two designs are asked:

- ``sample``: 12 events of the sample and all nationalities. Neighbours share their turns, which are
  tokenized once, and this is what a run of a sample costs.
- ``full``: one persona and thousands of events, as in a shard of the full corpus. Each prompt has a
  turn of its own to tokenize, and this is the most that the pipeline adds.

Seconds are those of the CPU, of all threads: prompts that are made on another core while vLLM
computes count in full, a program that only waits does not count. CPU seconds still vary with what
else the machine does, because caches and clocks are shared. So bare and ours take turns in short
rounds, each goes first as often as the other, and each round of ours is compared with the bare
round beside it. The result is the median of these ratios, which one disturbed round does not move.
The fastest round of each side, which stood here before, compares two that may lie a minute apart.

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
    """22 x 22 nationalities and 12 events."""
    return trials(load_events("sample", 12), [SETTING], ["Nationality"])


def full() -> Design:
    """One perceiver, one experiencer and as many events of a corpus as a shard holds."""
    events = scale.corpus(1.0)[:SHARD_SIZE]
    (block,) = trials(events, [SETTING], ["Nationality"]).blocks
    one = {name: block.factors[name][:1] for name in ("perceiver", "experiencer")}
    return Design([replace(block, factors=block.factors | one)])


def seconds(work: Callable[[], None], engine: VLLMEngine) -> float:
    """CPU seconds of one round."""
    assert engine.llm.reset_prefix_cache()
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def measure(design: Callable[[], Design], engine: VLLMEngine, pairs: int) -> dict:
    """Trials, and the seconds of each round."""
    plan = design()
    prompts = engine.prompter.batch([trial.messages for trial in plan])
    tokens = [engine.vllm.TokensPrompt(prompt_token_ids=ids) for ids in prompts]
    drawn = engine.vllm.SamplingParams(temperature=0, max_tokens=128, detokenize=False)

    def bare() -> None:
        engine.llm.generate(tokens, drawn, use_tqdm=False)

    def ours() -> None:
        asked = Design(plan.blocks)  # which has no fingerprint yet
        engine.prompter = Prompter(engine.tokenizer)  # which knows no turn yet
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(Path(folder), asked, engine, SAMPLING)
            fill(asked, engine, store, SAMPLING)
            store.read()

    seconds(bare, engine)  # the first rounds warm up
    seconds(ours, engine)
    took: dict[str, list[float]] = {"ours": [], "bare": []}
    for pair in range(pairs):
        order = [ours, bare] if pair % 2 else [bare, ours]
        for work in order:
            took[work.__name__].append(round(seconds(work, engine), 3))
    return {"trials": len(plan), **took}


def result(measured: dict) -> dict:
    """Trials, median seconds of ours, and the baseline in the median ratio to them."""
    pairs = zip(measured["ours"], measured["bare"], strict=True)
    ratio = median(bare / ours for ours, bare in pairs)
    middle = median(measured["ours"])
    return {"trials": measured["trials"], "ours": middle, "baseline": ratio * middle}


def main() -> None:
    engine = VLLMEngine(str(paths.MODELS / "calibrant"))
    gc.disable()
    found = {}
    for design in (sample, full):
        name = design.__name__
        measured = measure(design, engine, PAIRS[name])
        found[name] = result(measured) | {"rounds": measured}
    engine.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
