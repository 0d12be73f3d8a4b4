"""Store, prompts, many engines on Ray, and what the pipeline adds to vLLM."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path

import pandas as pd
import torch

import scale
from bench import HERE, row, seconds
from ingroup import models
from ingroup.design import Block, Design
from ingroup.inference import Reply, Sampling, fill, make_engine, open_store
from ingroup.inference.cluster import Cluster
from ingroup.inference.prompts import batches
from ingroup.inference.transformers_engine import LEAST
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import trials

SETTING, SHARD, N_SHARDS = "P0,S0,T0", 4096, 12


def bench_store() -> Iterator[dict]:
    """49,152 replies with their seal, on disk, against prompts and replies in a TSV file."""
    design = trials(scale.corpus(0.03), [SETTING], ["Nationality"])
    number = N_SHARDS * SHARD
    replies = list(islice(scale.made_up(design, 100), number))
    chats = [[turn["content"] for turn in trial.messages] for trial in islice(design, number)]
    table = pd.DataFrame(chats, columns=["system_prompt", "user_input"])
    table["response"] = [reply.text for reply in replies]
    with tempfile.TemporaryDirectory() as folder:
        file, times = Path(folder) / "results.tsv", []
        for turn in range(3):
            store = open_store(Path(folder) / str(turn), design, scale.MadeUp(), Sampling())
            begun = time.perf_counter()
            with store.writing():
                for shard in range(N_SHARDS):
                    store.write(shard, replies[slice(*store.bounds(shard))])
            times.append(time.perf_counter() - begun)
        assert store.read(0, number).text.astype(str).tolist() == table.response.tolist()
        baseline = seconds(lambda: table.to_csv(file, sep="\t", index=False), 2)
        yield row("store_write", min(times), baseline, "DataFrame.to_csv of prompts and replies")
        size = sum(part.stat().st_size for part in store.folder.glob("part-*")) / 1e6
        tsv = f"that TSV file, {number:,} trials"
        yield row("store_size", size, file.stat().st_size / 1e6, tsv, "MB")


class Sleeper:
    """Sleeps a hundredth of a second for each token it may write, whatever it is asked."""

    asks_again = False

    def answer(self, conversations, sampling):
        time.sleep(sampling.max_tokens / 100)
        return [Reply("3", "stop", 100, 0, 3) for _ in conversations]

    def identity(self):
        return {"engine": "sleeper"}

    def close(self):
        pass


def bench_ray() -> Iterator[dict]:
    """Four workers that sleep against one: what is measured is the way there and back."""
    render = lambda condition: [{"role": "user", "content": str(condition["number"])}]  # noqa: E731
    design = Design([Block({}, {"number": range(24 * 256)}, render, "")])

    def took(workers: int) -> float:
        cluster = Cluster(Sleeper, workers)
        with tempfile.TemporaryDirectory() as folder:
            for name, tokens in (("warm", 1), ("asked", 100)):
                begun, sampling = time.perf_counter(), Sampling(max_tokens=tokens)
                store = open_store(Path(folder) / name, design, cluster, sampling, 256)
                fill(design, cluster, store, sampling)
        ended = time.perf_counter()
        cluster.close()
        return ended - begun

    ours = took(4)
    yield row("ray_scaling", ours, took(1), "one worker instead of 4, 24 shards of 1 s each")


def bench_engine() -> Iterator[dict]:
    """From design to shards with vLLM, against vLLM alone; by the Python that has it."""
    run = subprocess.run(
        [sys.argv[1], HERE / "vllm_overhead.py"], stdout=subprocess.PIPE, check=True, text=True
    )
    measured = json.loads(run.stdout.splitlines()[-1])
    for name, kind in (("engine_overhead", "sample"), ("engine_overhead_full", "full")):
        found = measured[kind]
        baseline = f"LLM.generate of the same {found['trials']:,} prompts as token ids"
        yield row(name, found["ours"], found["baseline"], baseline, "CPU s")


def bench_choices() -> Iterator[dict]:
    """Study 1 over its 101 numbers, on a calibrant and on the real model where its weights are."""
    chats = [t.messages for t in trials(stimuli.load_events("sample", 12), [SETTING], ["Religion"])]
    for kind, name, number, few in (
        ("", models.calibrants()[0], len(chats), 4),
        ("_real", next(iter(models.carried())), 12, 1),
    ):
        if models.folder(name) is None:
            continue
        engine = make_engine("transformers", name)
        prompts, numbers = engine.prompter.batch(chats), tuple(map(str, range(101)))
        some = prompts[:number]

        def a_pass_each(engine=engine, some=some[:few], numbers=numbers) -> None:
            for ids, choice in product(some, numbers):
                with torch.inference_mode():
                    engine._model(torch.tensor([[*ids, *engine._spelt(choice)]]))

        asked = {"choices": Sampling(choices=numbers), "freely": Sampling()}
        took = {way: seconds(lambda: engine.complete(some, how), 1) for way, how in asked.items()}  # noqa: B023
        ours, slow = took["choices"] / number, seconds(a_pass_each, 1) / few
        what = f"a prompt of {name}, 101 choices"
        yield row(f"choices{kind}", ours, slow, f"a forward pass a choice; {what}")
        yield row(f"choices_free{kind}", ours, took["freely"] / number, f"free greedy text; {what}")
        computed = whole = sum(map(len, prompts))
        computed -= sum((len(b) - 1) * n for b, n in batches(prompts, engine.batch_size, LEAST))
        told = f"all tokens of {len(prompts)} prompts: {1 - computed / whole:.0%} not computed"
        yield row(f"prefixes{kind}", computed, whole, told, "tokens")
        engine.close()
