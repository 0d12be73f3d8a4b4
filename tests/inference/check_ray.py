"""Many engines on a real Ray of this machine: ``make test-ray``, as Ray is an extra."""

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
import ray

from ingroup import corpora
from ingroup.design import Block, Design
from ingroup.inference import (
    EngineError,
    Reply,
    Sampling,
    ShareDone,
    all_shares,
    generate,
    open_store,
)
from ingroup.inference.cluster import RESTARTS, Cluster
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials

SAMPLING, TRIALS, SHARD = Sampling(), 62, 4  # sixteen shards, the last one half full
SHARDS = 16


@pytest.fixture(scope="module", autouse=True)
def local():
    """One Ray for all tests; four engines on however many cores."""
    here = Path(__file__).parent  # workers find Scribe, and the bench's engine
    folders = [str(here), str(here.parent / "bench"), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8
    )
    yield
    ray.shutdown()


def plan():
    """Trials whose prompt is their number."""

    def render(condition):
        return [{"role": "user", "content": str(condition["number"])}]

    return Design([Block({}, {"number": range(TRIALS)}, render, "")])


class Scribe:
    """Writes down who was asked what; at some shards something happens, a number of times.

    ``falls`` and ``raises`` are shard to how often its worker dies or its engine breaks, ``slow``
    are seconds that the first to be asked a shard takes. ``pause`` is what any shard takes, and
    none is answered before a ``crew`` has been asked.
    """

    asks_again = False

    def __init__(
        self, log, falls=(), raises=(), slow=(), pause=0.0, crew=1, gives_up=False, model="a"
    ):
        self.log, self.pause, self.crew, self.model = log, pause, crew, model
        self.gives_up = gives_up
        self.falls, self.raises, self.slow = dict(falls), dict(raises), dict(slow)

    def answer(self, conversations, sampling):
        numbers = [int(chat[0]["content"]) for chat in conversations]
        shard = numbers[0] // SHARD
        with self.log.open("a") as stream:
            stream.write(f"{os.getpid()} {shard}\n")
        times = Counter(shard for _, shard in calls(self.log))[shard]
        if times <= self.falls.get(shard, 0):
            os.kill(os.getpid(), signal.SIGKILL)
        if times <= self.raises.get(shard, 0):
            raise RuntimeError("the card fell off the bus")
        if self.gives_up:
            raise EngineError("this prompt has no system role")
        while len({process for process, _ in calls(self.log)}) < self.crew:
            time.sleep(0.01)
        time.sleep(self.slow.get(shard, self.pause) if times == 1 else self.pause)
        return [Reply(f"reply {number % 11}", "stop", number, 0, 1) for number in numbers]

    def identity(self):
        return {"engine": "scribe", "model": self.model}

    def close(self):
        pass


def calls(log):
    """Process and shard of each call."""
    if not log.exists():
        return []
    return [tuple(map(int, line.split())) for line in log.read_text().splitlines()]


def run(folder, engine, share=""):
    work = plan()
    store = open_store(folder, work, engine, SAMPLING, SHARD, share)
    return generate(work, engine, store, SAMPLING, "P0")


def many(folder, workers=4, **how):
    """A run on several workers, and who was asked what."""
    log = folder / "log"
    cluster = Cluster(lambda: Scribe(log, **how), workers)
    try:
        return run(folder / "store", cluster), calls(log)
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """One engine in one process."""
    folder = tmp_path_factory.mktemp("alone")
    return run(folder / "store", Scribe(folder / "log")), folder / "store"


def check(folder, alone):
    """The store is the one of a single process: manifest, names and, byte by byte, the shards."""
    table, first = alone
    names = sorted(path.name for path in first.iterdir())
    assert sorted(path.name for path in (folder / "store").iterdir()) == names
    for name in names:
        assert (folder / "store" / name).read_bytes() == (first / name).read_bytes(), name
    read = run(folder / "store", Scribe(folder / "nobody"))
    pd.testing.assert_frame_equal(read, table)
    assert calls(folder / "nobody") == []


def test_several_workers_give_what_one_process_gives(tmp_path, alone):
    table, asked = many(tmp_path, crew=4)
    pd.testing.assert_frame_equal(table, alone[0])
    check(tmp_path, alone)
    assert sorted(shard for _, shard in asked) == list(range(SHARDS))
    assert len({process for process, _ in asked}) == 4
    assert os.getpid() not in {process for process, _ in asked}


def test_a_real_engine_gives_what_it_gives_in_one_process(tmp_path):
    from ingroup.inference import make_engine

    work = empathy_gap_trials(corpora.load_events("sample", 12), ["P0,S0,T0"], ["Nationality"])
    work, tables = work.slice(0, 24), []
    one = make_engine("transformers", "calibrant", batch_size=8)
    two = Cluster(lambda: make_engine("transformers", "calibrant", batch_size=8), 2)
    assert two.identity() == one.identity()
    for name, engine in (("one", one), ("two", two)):
        store = open_store(tmp_path / name, work, engine, SAMPLING, 8)
        tables.append(generate(work, engine, store, SAMPLING))
        engine.close()
    pd.testing.assert_frame_equal(*tables)
    chats = [trial.messages for trial in work.slice(0, 3)]
    assert two.answer(chats, SAMPLING) == one.answer(chats, SAMPLING)  # both begin anew
    two.close()


@pytest.mark.parametrize(
    "how",
    [{"falls": {5: 1}}, {"falls": {5: 1, 6: 1}}, {"falls": {5: 2}}, {"raises": {3: 1, 15: 2}}],
    ids=["one is killed", "two are killed", "a shard kills twice", "engines break"],
)
def test_the_shard_of_a_lost_worker_goes_to_another(tmp_path, alone, how):
    table, asked = many(tmp_path, crew=3, **how)
    pd.testing.assert_frame_equal(table, alone[0])
    check(tmp_path, alone)
    (broken,) = how.values()
    expected = Counter(range(SHARDS)) + Counter(broken)
    assert Counter(shard for _, shard in asked) == expected


def test_a_straggler_is_overtaken_and_never_overwrites(tmp_path, alone):
    """Its worker would sleep for ten minutes; the next store begins while it still does."""
    log, begun = tmp_path / "log", time.monotonic()
    cluster = Cluster(lambda: Scribe(log, slow={2: 600.0, 7: 12.0}, pause=0.1, crew=4), 4)
    table = run(tmp_path / "store", cluster)
    pd.testing.assert_frame_equal(table, alone[0])
    check(tmp_path, alone)
    times = Counter(shard for _, shard in calls(log))
    assert times[2] == times[7] == 2
    assert set(times) == set(range(SHARDS))
    assert max(times.values()) == 2
    pd.testing.assert_frame_equal(run(tmp_path / "second" / "store", cluster), alone[0])
    check(tmp_path / "second", alone)
    assert time.monotonic() - begun < 300, "waited for the straggler"
    cluster.close()


def test_a_lost_last_worker_is_a_sentence_and_the_store_goes_on(tmp_path, alone):
    """Shard 9 kills whoever takes it, as often as it takes."""
    with pytest.raises(EngineError) as caught:
        many(tmp_path, workers=2, falls={9: 99})
    text = str(caught.value)
    assert text.startswith("the cluster lost its last worker (The actor died")
    assert text.endswith("answers that are stored stay, run again to go on behind them")
    assert "\n" not in text
    killed = Counter(shard for _, shard in calls(tmp_path / "log"))
    # Each worker falls so often in a row; who answers another shard in between counts anew.
    assert 2 * (1 + RESTARTS) <= killed[9] < 2 * (1 + RESTARTS) + SHARDS
    stored = sorted((tmp_path / "store").glob("part-*"))
    assert len(stored) == SHARDS - 1, "the others were done before"
    log = tmp_path / "log of the second"
    run(tmp_path / "store", Scribe(log))
    assert [shard for _, shard in calls(log)] == [9]
    check(tmp_path, alone)


def test_workers_that_are_killed_from_outside(tmp_path, alone):
    """Two of three, while they compute."""
    log = tmp_path / "log"

    def kill():
        while len({process for process, _ in calls(log)}) < 3:
            time.sleep(0.01)
        for process in sorted({process for process, _ in calls(log)})[:2]:
            os.kill(process, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    table, asked = many(tmp_path, workers=3, pause=0.2, crew=3)
    thread.join()
    pd.testing.assert_frame_equal(table, alone[0])
    check(tmp_path, alone)
    assert SHARDS + 1 <= len(asked) <= SHARDS + 3  # two were cut off, a late one asked twice


def test_an_engine_that_gives_up_ends_the_run_with_its_own_sentence(tmp_path):
    with pytest.raises(EngineError, match=r"^this prompt has no system role$"):
        many(tmp_path, gives_up=True)


def test_an_engine_that_cannot_start_ends_the_run_with_its_own_sentence():
    def cannot():
        raise EngineError("there is no model 'x'")

    with pytest.raises(EngineError, match=r"^there is no model 'x'$"):
        Cluster(cannot, 2).identity()


def test_engines_that_differ_are_refused(tmp_path):
    place = tmp_path / "turn"

    def another():
        place.write_text(place.read_text() + "x" if place.exists() else "x")
        return Scribe(tmp_path / "log", crew=2, model=str(len(place.read_text())))

    with pytest.raises(EngineError, match=r"engines differ: model is '1' with one and '2' with"):
        run(tmp_path / "store", Cluster(another, 2))


def test_a_share_on_a_cluster(tmp_path, alone):
    log = tmp_path / "log"
    cluster = Cluster(lambda: Scribe(log), 2)
    with pytest.raises(ShareDone, match=r"SHARD=2/2 is done; of the other shares 8 shards"):
        all_shares({"": run(tmp_path / "store", cluster, "2/2")})
    pd.testing.assert_frame_equal(run(tmp_path / "store", cluster, "1/2"), alone[0])
    cluster.close()
    check(tmp_path, alone)


def test_four_workers_are_at_least_three_and_a_half_times_as_fast_as_one(monkeypatch):
    """Engines that sleep, so that what is measured is the way around them."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "bench")
    import bench_ray

    (row,) = bench_ray.rows()
    assert row["ratio"] >= 3.5, row
