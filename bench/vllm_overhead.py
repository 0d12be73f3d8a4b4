"""What the pipeline adds to vLLM, run by ``rows_inference.py`` with a Python that has vLLM.

Bare is one ``LLM.generate`` of token ids that are there already, ours is all from the design to the
shards on disk. They take turns, each from an empty prefix cache; the fastest round of each counts.
Seconds are those of the CPU, of all threads: other programs on the machine change them little, and
prompts that are made on another core while vLLM computes count in full. vLLM computes on one core.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ingroup import paths
from ingroup.inference import Sampling, fill, open_store
from ingroup.inference.vllm_engine import VLLMEngine
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.stimuli import load_events

os.environ["OMP_NUM_THREADS"] = "1"  # read when vLLM starts
SAMPLING = Sampling(max_tokens=128)  # the calibrant answers in two tokens
ROUNDS = 3


def seconds(work: Callable, engine: VLLMEngine) -> float:
    assert engine.llm.reset_prefix_cache()
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    engine = VLLMEngine(str(paths.MODELS / "calibrant"))
    plan = trials(load_events("sample", 36), ["P0,S0,T0"], ["Nationality"])
    prompts = engine.prompter.batch([trial.messages for trial in plan])
    tokens = [engine.vllm.TokensPrompt(prompt_token_ids=ids) for ids in prompts]
    drawn = engine.vllm.SamplingParams(temperature=0, max_tokens=128, detokenize=False)

    def bare() -> None:
        engine.llm.generate(tokens, drawn, use_tqdm=False)

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(Path(folder), plan, engine, SAMPLING)
            fill(plan, engine, store, SAMPLING)
            store.read()

    seconds(bare, engine)  # the first round warms up
    rounds = [(seconds(ours, engine), seconds(bare, engine)) for _ in range(ROUNDS)]
    fastest = [min(side) for side in zip(*rounds, strict=True)]
    engine.close()
    print(json.dumps({"trials": len(plan), "ours": fastest[0], "baseline": fastest[1]}))


if __name__ == "__main__":
    main()
