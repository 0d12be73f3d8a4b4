"""Speed of the store, of prompts, of many engines on Ray, and of the pipeline around vLLM."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd
import torch

import scale
from bench import HERE, row, seconds
from ingroup import models
from ingroup.design import Block, Design
from ingroup.inference import Engine, Reply, Sampling, fill, make_engine, open_store
from ingroup.inference.cluster import Cluster
from ingroup.inference.prompts import batches
from ingroup.inference.transformers_engine import LEAST_SCORED_PROMPTS
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import trials

SETTING = "P0,S0,T0"
SHARD_SIZE = 4096
# Enough shards that the price of opening a store does not count.
N_SHARDS = 12
NUMBERS = tuple(map(str, range(101)))


def bench_store() -> Iterator[dict]:
    """Compare a checksummed store of 49,152 replies with prompts and replies in a TSV file."""
    design = trials(scale.corpus(0.03), [SETTING], ["Nationality"])
    n_trials = N_SHARDS * SHARD_SIZE
    replies = list(islice(scale.made_up_replies(design, 100), n_trials))
    rows = []
    for trial, reply in zip(islice(design, n_trials), replies, strict=True):
        system, user = trial.messages
        rows.append(
            {
                "system_prompt": system["content"],
                "user_input": user["content"],
                "response": reply.text,
            }
        )
    table = pd.DataFrame(rows)

    with tempfile.TemporaryDirectory() as folder:
        times = []
        # Each turn writes a store of its own, and the fastest counts.
        for turn in range(3):
            store = open_store(Path(folder) / str(turn), design, scale.MadeUp(), Sampling())
            started = time.perf_counter()
            with store.writing():
                for shard in range(N_SHARDS):
                    start, stop = store.bounds(shard)
                    store.write(shard, replies[start:stop])
            times.append(time.perf_counter() - started)
        stored = store.read(0, n_trials).text.astype(str)
        # A fast store that lost a reply would win, so the stored replies are compared first.
        assert stored.tolist() == table.response.tolist()

        # The baseline writes what a script usually does: each prompt in full beside its reply.
        file = Path(folder) / "results.tsv"
        baseline = seconds(lambda: table.to_csv(file, sep="\t", index=False), 2)
        yield row(
            "store_write",
            ours=min(times),
            baseline=baseline,
            baseline_is="DataFrame.to_csv of prompts and replies",
        )

        n_bytes = 0
        for part in store.folder.glob("part-*"):
            n_bytes += part.stat().st_size
        yield row(
            "store_size",
            ours=n_bytes / 1e6,
            baseline=file.stat().st_size / 1e6,
            baseline_is=f"that TSV file, {n_trials:,} trials",
            unit="MB",
        )


class Sleeper(Engine):
    """Engine that sleeps a hundredth of a second per token that it may write."""

    # A sleeper fails at nothing, so no prompt is asked a second time.
    asks_again = False

    def answer(self, conversations, sampling):
        time.sleep(sampling.max_tokens / 100)
        return [Reply("3", "stop", 100, 0, 3) for _ in conversations]

    def identity(self):
        return {"engine": "sleeper"}

    def close(self):
        pass


def bench_ray() -> Iterator[dict]:
    """Compare four workers that sleep with one, which measures the transport to them and back."""
    yield row(
        "ray_scaling",
        ours=_seconds_of_workers(4),
        baseline=_seconds_of_workers(1),
        baseline_is="one worker instead of 4, 24 shards of 1 s each",
    )


def _numbered_chat(condition: dict) -> list[dict]:
    """Make a chat whose only turn is the number of a condition."""
    return [{"role": "user", "content": str(condition["number"])}]


def _seconds_of_workers(workers: int) -> float:
    """Time 24 shards of one second each, on workers that have answered before."""
    # There are 24 shards of 256 prompts. `Sleeper` takes max_tokens / 100 seconds for a shard.
    design = Design([Block({}, {"number": range(24 * 256)}, _numbered_chat, "")])
    cluster = Cluster(Sleeper, workers)
    with tempfile.TemporaryDirectory() as folder:
        # A first run starts the workers, so that their start is not timed.
        _fill(design, cluster, Path(folder) / "warm", max_tokens=1)
        started = time.perf_counter()
        _fill(design, cluster, Path(folder) / "timed", max_tokens=100)
        took = time.perf_counter() - started
    cluster.close()
    return took


def _fill(design: Design, cluster: Cluster, folder: Path, max_tokens: int) -> None:
    """Ask a cluster all trials of a design, into a new store."""
    sampling = Sampling(max_tokens=max_tokens)
    store = open_store(folder, design, cluster, sampling, 256)
    fill(design, cluster, store, sampling)


def bench_engine() -> Iterator[dict]:
    """Compare the pipeline from design to shards with vLLM alone, in the Python that has vLLM."""
    run = subprocess.run(
        [sys.argv[1], HERE / "vllm_overhead.py"], stdout=subprocess.PIPE, check=True, text=True
    )
    # vLLM prints its messages before the result.
    measured = json.loads(run.stdout.splitlines()[-1])
    for name, kind in (("engine_overhead", "sample"), ("engine_overhead_full", "full")):
        result = measured[kind]
        yield row(
            name,
            ours=result["ours"],
            baseline=result["baseline"],
            baseline_is=f"LLM.generate of the same {result['trials']:,} prompts as token ids",
            unit="CPU s",
        )


def bench_choices() -> Iterator[dict]:
    """Time the scoring of study 1's 101 numbers.

    The model is a calibrant, then the real model where its weights have been made.
    """
    design = trials(stimuli.load_events("sample", 12), [SETTING], ["Religion"])
    yield from _rows_of_choices(design, models.calibrants()[0], "", len(design), n_slow=4)
    # The real model counts only on a machine where its weights have been made.
    real = next(iter(models.packaged_models()))
    if models.folder(real) is not None:
        yield from _rows_of_choices(design, real, "_real", 12, n_slow=1)


def _rows_of_choices(
    design: Design, model: str, suffix: str, n_prompts: int, n_slow: int
) -> Iterator[dict]:
    """Time scoring against two baselines, and count the tokens that shared prefixes save."""
    engine = make_engine("transformers", model)
    all_prompts = engine.prompter.batch([trial.messages for trial in design])
    prompts = all_prompts[:n_prompts]
    # The baseline needs the token ids of each choice alone.
    spellings = [engine.tokenizer.encode(text, add_special_tokens=False) for text in NUMBERS]

    def score() -> None:
        engine.complete(prompts, Sampling(choices=NUMBERS))

    def generate() -> None:
        engine.complete(prompts, Sampling())

    def pass_per_choice() -> None:
        with torch.inference_mode():
            for ids in prompts[:n_slow]:
                # Without a tree of tokens, scoring takes one pass for each of 101 numbers.
                for spelling in spellings:
                    engine._model(torch.tensor([[*ids, *spelling]]))

    ours = seconds(score, 1) / n_prompts
    prompt = f"a prompt of {model}, 101 choices"
    yield row(
        f"choices{suffix}",
        ours=ours,
        baseline=seconds(pass_per_choice, 1) / n_slow,
        baseline_is=f"a forward pass a choice; {prompt}",
    )
    yield row(
        f"choices_free{suffix}",
        ours=ours,
        baseline=seconds(generate, 1) / n_prompts,
        baseline_is=f"free greedy text; {prompt}",
    )

    # The shared prefix of a batch is computed for its first prompt alone.
    n_tokens = sum(map(len, all_prompts))
    n_computed = n_tokens
    for batch, n_shared in batches(all_prompts, engine.batch_size, LEAST_SCORED_PROMPTS):
        n_computed -= (len(batch) - 1) * n_shared
    saved = f"{1 - n_computed / n_tokens:.0%} not computed"
    yield row(
        f"prefixes{suffix}",
        ours=n_computed,
        baseline=n_tokens,
        baseline_is=f"all tokens of {len(all_prompts)} prompts: {saved}",
        unit="tokens",
    )
    engine.close()
