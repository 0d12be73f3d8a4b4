"""Shares of a store: several runs write it at the same time, each its own shards.

Runs are real processes, as in test_store_fire.py.
"""

import multiprocessing
import time

import pandas as pd
import pytest

from ingroup.design import Block, Design
from ingroup.inference import (
    Reply,
    Sampling,
    ShareDone,
    StoreError,
    all_shares,
    generate,
    open_store,
)

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["ingroup.inference", "pytest"])
SAMPLING, TRIALS, SHARD = Sampling(), 46, 4  # twelve shards, the last one half full


def plan(trials=TRIALS):
    """Trials whose prompt is their number."""

    def render(condition):
        return [{"role": "user", "content": str(condition["number"])}]

    return Design([Block({}, {"number": range(trials)}, render, "")])


class Scribe:
    """Writes down what it is asked; waits for a file ``go`` where there is to be one."""

    asks_again = False

    def __init__(self, log, patient=False):
        self.log, self.patient = log, patient

    def answer(self, conversations, sampling):
        numbers = [int(chat[0]["content"]) for chat in conversations]
        with self.log.open("a") as stream:
            stream.write(" ".join(map(str, numbers)) + "\n")
        while self.patient and not self.log.with_name("go").exists():
            time.sleep(0.001)
        return [Reply(f"reply {number % 11}", "stop", number, 0, 1) for number in numbers]

    def identity(self):
        return {"engine": "scribe"}


def asked(log):
    return [int(number) for number in log.read_text().split()] if log.exists() else []


def run(folder, engine, share=""):
    design = plan()
    store = open_store(folder, design, engine, SAMPLING, SHARD, share)
    return generate(design, engine, store, SAMPLING, "P0")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one run without shares gives."""
    folder = tmp_path_factory.mktemp("alone")
    return run(folder / "store", Scribe(folder / "log"))


def test_the_share_that_ends_last_goes_on_and_the_others_say_what_is_missing(tmp_path, alone):
    engine = Scribe(tmp_path / "log")
    tables = {share: run(tmp_path / "store", engine, share) for share in ("2/3", "3/3")}
    for share, table in tables.items():
        with pytest.raises(ShareDone) as caught:
            all_shares({"P0": table, "P1": alone})
        assert str(caught.value) == (
            f"SHARD={share} is done; of the other shares 4 shards are missing (P0: 4): the one "
            "that ends last goes on from here, or the same run without SHARD"
        )
    pd.testing.assert_frame_equal(run(tmp_path / "store", engine, "1/3"), alone)
    assert asked(engine.log) == [*range(16, 46), *range(16)]
    pd.testing.assert_frame_equal(all_shares(tables)["2/3"], alone)  # all are there by now
    pd.testing.assert_frame_equal(run(tmp_path / "store", engine), alone)
    assert len(asked(engine.log)) == TRIALS


def test_more_shares_than_shards(tmp_path, alone):
    engine = Scribe(tmp_path / "log")
    for number in range(1, 30):
        table = run(tmp_path / "store", engine, f"{number}/29")
    pd.testing.assert_frame_equal(table, alone)
    assert asked(engine.log) == list(range(TRIALS))


def in_a_share(folder, share, barrier, results):
    """A run of one share that starts with the others and on a folder that is not there."""
    engine = Scribe(folder.with_name(f"log {share[0]}"))
    barrier.wait()
    try:
        results.put((share, isinstance(run(folder, engine, share), pd.DataFrame)))
    except StoreError as error:
        results.put((share, str(error)))


def test_shares_begin_and_write_one_store_at_the_same_time(tmp_path, alone):
    shares, engine = ["1/3", "2/3", "3/3"], Scribe(tmp_path / "log")
    for turn in range(3):
        (tmp_path / str(turn)).mkdir()
        folder = tmp_path / str(turn) / "store"
        barrier, results = FORKS.Barrier(len(shares)), FORKS.Queue()
        children = [
            FORKS.Process(target=in_a_share, args=(folder, share, barrier, results))
            for share in shares
        ]
        for child in children:
            child.start()
        ends = dict(results.get(timeout=60) for _ in shares)
        for child in children:
            child.join()
        assert set(ends) == set(shares)
        assert set(ends.values()) <= {True, False}, ends
        assert True in ends.values(), "nobody found all shards there"
        numbers = [n for s in shares for n in asked(folder.with_name(f"log {s[0]}"))]
        assert sorted(numbers) == list(range(TRIALS))
        pd.testing.assert_frame_equal(run(folder, engine), alone)
    assert asked(engine.log) == []


def test_a_share_refuses_itself_what_overlaps_it_and_a_whole_run(tmp_path, alone):
    folder, log = tmp_path / "store", tmp_path / "log"
    sentence = f"another run is writing to {folder}; wait for it or stop it"
    first = FORKS.Process(target=run, args=(folder, Scribe(log, patient=True), "2/3"))
    first.start()
    try:
        while not asked(log):
            assert first.is_alive()
            time.sleep(0.001)
        (half := folder / ".part-00004.parquet.17.tmp").write_bytes(b"PAR1")
        other = Scribe(tmp_path / "log of others")
        for share in ("2/3", "1/2", "2/2", "", "5/10"):
            with pytest.raises(StoreError) as caught:
                run(folder, other, share)
            assert str(caught.value) == sentence
        assert asked(other.log) == []
        for share, missing in (("1/3", 8), ("3/3", 4)):
            with pytest.raises(ShareDone, match=f" {missing} shards are missing"):
                all_shares({"": run(folder, other, share)})
        assert half.exists(), "one share removed what another is writing"
    finally:
        first.kill()
        first.join()
    pd.testing.assert_frame_equal(run(folder, other, "2/3"), alone)  # at once
    assert not half.exists()
    assert sorted(asked(other.log)) == list(range(TRIALS))


def test_a_whole_run_refuses_shares(tmp_path):
    engine = Scribe(tmp_path / "log")
    store = open_store(tmp_path / "store", plan(), engine, SAMPLING, SHARD)
    with store.writing(), pytest.raises(StoreError, match="another run is writing to"):
        run(tmp_path / "store", engine, "1/2")


def test_a_damaged_shard_is_its_own_shares(tmp_path, alone):
    engine, folder = Scribe(tmp_path / "log"), tmp_path / "store"
    run(folder, engine)
    (folder / "part-00007.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"part-00007\.parquet is damaged; run the generation"):
        run(folder, engine, "1/2")
    pd.testing.assert_frame_equal(run(folder, engine, "2/2"), alone)
    assert asked(engine.log)[TRIALS:] == [28, 29, 30, 31]
