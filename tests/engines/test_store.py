"""Shards: whole or absent, resumed, never overwritten."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from ingroup import corpora, design
from ingroup.inference import Reply, Sampling, Store, StoreError, generate, open_store

SAMPLING = Sampling()


class Parrot:
    """Answers with the length of the prompt and remembers what it was asked."""

    def __init__(self, model="parrot", fail=False):
        self.model, self.fail, self.asked = model, fail, []

    def answer(self, conversations, sampling):
        self.asked += [chat[1]["content"] for chat in conversations]
        if self.fail:
            return [Reply(None, "failed", error="no net") for _ in conversations]
        return [
            Reply(str(len(chat[1]["content"]) % 101), "stop", 10, 4, 1) for chat in conversations
        ]

    def identity(self):
        return {"engine": "parrot", "model": self.model}


@pytest.fixture
def plan():
    return design.empathy_gap(corpora.load_events("sample", 12), ["P0,S0,T0"], ["Religion"])


def run(plan, folder, engine, shard_size=50):
    store = open_store(folder, plan, engine, SAMPLING, shard_size)
    return generate(plan, engine, store, SAMPLING)


def test_all_trials_are_answered_in_order(plan, tmp_path):
    table = run(plan, tmp_path, Parrot())
    assert table.trial.tolist() == list(range(432))
    wanted = [str(len(trial.messages[1]["content"]) % 101) for trial in plan]
    assert table.text.astype(str).tolist() == wanted
    assert (table.cached_tokens == 4).all()


def test_a_finished_store_is_not_asked_again(plan, tmp_path):
    first, engine = run(plan, tmp_path, Parrot()), Parrot()
    pd.testing.assert_frame_equal(run(plan, tmp_path, engine), first)
    assert engine.asked == []


def test_failed_calls_have_no_text_and_a_reason(plan, tmp_path):
    table = run(plan, tmp_path, Parrot(fail=True))
    assert table.text.isna().all()
    assert set(table.finish_reason) == {"failed"}
    assert set(table.error) == {"no net"}


def test_a_part_is_read_across_shards(plan, tmp_path):
    whole = run(plan, tmp_path, Parrot())
    store = open_store(tmp_path, plan, Parrot(), SAMPLING, 50)
    part = store.read(40, 260)
    assert part.trial.tolist() == list(range(220))
    assert part.text.astype(str).tolist() == whole.text.astype(str).tolist()[40:260]


@pytest.mark.parametrize("damage", ["truncate", "flip"])
def test_a_damaged_shard_alone_is_asked_again(plan, tmp_path, damage):
    whole = run(plan, tmp_path, Parrot())
    shard = tmp_path / "part-00003.parquet"
    content = bytearray(shard.read_bytes())
    if damage == "truncate":
        content = content[: len(content) // 2]
    else:
        content[40] ^= 0xFF
    shard.write_bytes(content)
    engine = Parrot()
    pd.testing.assert_frame_equal(run(plan, tmp_path, engine), whole)
    assert len(engine.asked) == 50
    assert (tmp_path / "part-00003.parquet.damaged").exists()


def test_another_model_is_refused_by_name_and_nothing_changes(plan, tmp_path):
    run(plan, tmp_path, Parrot("small"))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(StoreError, match="model 'small', this run asks with model 'large'"):
        run(plan, tmp_path, Parrot("large"))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_another_prompt_text_or_sampling_is_refused(plan, tmp_path):
    run(plan, tmp_path, Parrot())
    other = design.empathy_gap(corpora.load_events("sample", 12), ["P1,S0,T0"], ["Religion"])
    with pytest.raises(StoreError, match="holds answers with prompts"):
        run(other, tmp_path, Parrot())
    warm = Sampling(temperature=1.0, seed=3)
    with pytest.raises(StoreError, match="holds answers with sampling_seed None"):
        open_store(tmp_path, plan, Parrot(), warm, 50)


def test_a_greedy_store_does_not_mind_the_seed(plan, tmp_path):
    run(plan, tmp_path, Parrot())
    open_store(tmp_path, plan, Parrot(), Sampling(seed=9), 50)


def test_answers_are_never_overwritten(plan, tmp_path):
    run(plan, tmp_path, Parrot())
    store = open_store(tmp_path, plan, Parrot(), SAMPLING, 50)
    with pytest.raises(StoreError, match="never overwritten"):
        store.write(0, [Reply("1", "stop")] * 50)
    with pytest.raises(StoreError, match="shard 1 takes 50 replies, found 49"):
        store.write(1, [Reply("1", "stop")] * 49)


def test_reading_an_unfinished_store_names_the_shard(plan, tmp_path):
    store = open_store(tmp_path, plan, Parrot(), SAMPLING, 50)
    with pytest.raises(StoreError, match=r"part-00000\.parquet is missing"):
        store.read()


def test_a_broken_or_lost_manifest_is_one_sentence(tmp_path):
    manifest = {"trials": 3, "shard_size": 2}
    Store(tmp_path / "a", manifest).write(0, [Reply("1", "stop")] * 2)
    (tmp_path / "a" / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="not readable as JSON"):
        Store(tmp_path / "a", manifest)
    (tmp_path / "a" / "manifest.json").unlink()
    with pytest.raises(StoreError, match=r"shards but no manifest\.json"):
        Store(tmp_path / "a", manifest)


def test_the_manifest_pins_what_can_change_a_response(plan, tmp_path):
    run(plan, tmp_path, Parrot())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest == {
        "engine": "parrot",
        "model": "parrot",
        "sampling_temperature": 0.0,
        "sampling_max_tokens": 128,
        "prompts": plan.fingerprint,
        "trials": 432,
        "shard_size": 50,
    }


SLOW = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_store import Parrot, SAMPLING
from ingroup import corpora, design
from ingroup.inference import generate, open_store

class Slow(Parrot):
    def answer(self, conversations, sampling):
        time.sleep(0.05)
        return super().answer(conversations, sampling)

plan = design.empathy_gap(corpora.load_events("sample", 12), ["P0,S0,T0"], ["Religion"])
engine = Slow()
generate(plan, engine, open_store(Path({folder!r}), plan, engine, SAMPLING, 10), SAMPLING)
"""


def test_a_killed_run_resumes_to_the_table_of_an_uninterrupted_one(plan, tmp_path):
    folder = tmp_path / "killed"
    script = SLOW.format(tests=str(Path(__file__).parent), folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
    while len(list(folder.glob("part-*.parquet"))) < 3:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    there = {file: file.stat().st_mtime_ns for file in folder.glob("part-*.parquet")}
    assert 3 <= len(there) < 44
    engine = Parrot()
    resumed = run(plan, folder, engine, shard_size=10)
    pd.testing.assert_frame_equal(resumed, run(plan, tmp_path / "whole", Parrot(), shard_size=10))
    assert len(engine.asked) == 432 - 10 * len(there)
    assert {file: file.stat().st_mtime_ns for file in there} == there
