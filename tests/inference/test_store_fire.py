"""The store under fire: runs that are killed, run out of disk, or meet another run.

Runs are real processes. They are forked from a server that has imported everything and used
nothing of it, so that a run starts in milliseconds.
"""

import ctypes
import multiprocessing
import os
import random
import resource
import signal
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from ingroup.design import Block, Design
from ingroup.inference import Reply, Sampling, Store, StoreError, generate, open_store

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["ingroup.inference", "pytest"])

SAMPLING = Sampling()
MANY, FEW, SHARD = 240, 32, 4  # trials: sixty shards, eight, and what one holds
SEED = 4
KILLS = 20


def plan(trials):
    """Trials whose prompt is their number."""

    def render(condition):
        return [{"role": "user", "content": str(condition["number"])}]

    return Design([Block({}, {"number": range(trials)}, render, "")])


class Scribe:
    """Writes down which trials it is asked, then answers after a millisecond.

    A multiple of five fails the first ``failures`` times that it is asked.
    """

    def __init__(self, log, failures=0):
        self.log, self.failures, self.asks_again = log, failures, failures > 0

    def answer(self, conversations, sampling):
        numbers = [int(chat[0]["content"]) for chat in conversations]
        with self.log.open("a") as stream:
            stream.write(f"{os.getpid()}: {' '.join(map(str, numbers))}\n")
        times = Counter(number for _, asked in calls(self.log) for number in asked)
        time.sleep(0.001)
        return [
            Reply(None, "failed", error="HTTP 500")
            if number % 5 == 0 and times[number] <= self.failures
            else Reply(f"reply {number % 11}", "stop", number, 0, 1)
            for number in numbers
        ]

    def identity(self):
        return {"engine": "scribe"}


def calls(log):
    """Who was asked what: process and trials, one pair a call."""
    lines = log.read_text().splitlines() if log.exists() else []
    pairs = (line.split(": ") for line in lines)
    return [(int(process), [int(number) for number in asked.split()]) for process, asked in pairs]


def run(folder, engine, trials=FEW):
    """One whole run, in this process or in another."""
    design = plan(trials)
    return generate(design, engine, open_store(folder, design, engine, SAMPLING, SHARD), SAMPLING)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of an uninterrupted run of an engine that never fails."""
    folder = tmp_path_factory.mktemp("whole")
    return {
        trials: run(folder / str(trials), Scribe(folder / f"log {trials}"), trials)
        for trials in (MANY, FEW)
    }


@contextmanager
def process(target, *arguments):
    """A run in a process of its own, killed at the end if it still runs."""
    child = FORKS.Process(target=target, args=arguments)
    child.start()
    try:
        yield child
    finally:
        child.kill()
        child.join()


def wait_until(condition, child):
    while not condition():
        assert child.is_alive(), "the run ended too early"
        time.sleep(0.0005)


def finish(folder, engine, trials=FEW):
    """Run without a kill until nothing is left to ask."""
    table = run(folder, engine, trials)
    while engine.asks_again and "failed" in set(table.finish_reason):
        table = run(folder, engine, trials)
    return table


def check_asked(log, trials, failures):
    """No trial was asked more often than it failed, except those of a call that was cut off."""
    asked = Counter(number for _, numbers in calls(log) for number in numbers)
    assert set(asked) == set(range(trials))
    last = {process: numbers for process, numbers in calls(log) if process != os.getpid()}
    in_flight = Counter(number for numbers in last.values() for number in numbers)
    for number, times in asked.items():
        needed = 1 + (failures if number % 5 == 0 else 0)
        assert needed <= times <= needed + in_flight[number], f"trial {number}: {times} times"


class Mortal(Scribe):
    """Dies some seconds after its n-th call begins, by its own clock and wherever it is then."""

    def __init__(self, log, failures, call, seconds):
        super().__init__(log, failures)
        self.left, self.seconds = call, seconds

    def answer(self, conversations, sampling):
        self.left -= 1
        if self.left == 0:
            signal.setitimer(signal.ITIMER_REAL, self.seconds)  # nothing catches its signal
        return super().answer(conversations, sampling)


@pytest.mark.parametrize("failures", [0, 2], ids=["sound engine", "failing engine"])
def test_twenty_kills_change_nothing(tmp_path, whole, failures):
    draw = random.Random(SEED)
    folder, log = tmp_path / "fire", tmp_path / "log"
    for _ in range(KILLS):
        # About what a shard takes.
        engine = Mortal(log, failures, draw.randint(1, 2), draw.uniform(1e-6, 0.004))
        with process(run, folder, engine, MANY) as child:
            child.join()
            assert child.exitcode == -signal.SIGALRM, "the run ended before it was killed"
    table = finish(folder, Scribe(log, failures), MANY)
    pd.testing.assert_frame_equal(table, whole[MANY])
    assert list(folder.glob(".*.tmp")) == list(folder.glob("*.damaged")) == []
    check_asked(log, MANY, failures)


def run_and_die(folder, engine, function, call, after):
    """A run that is killed at one call of the operating system, before or after it."""
    real, left = getattr(os, function), [call]

    def deadly(*arguments):
        left[0] -= 1
        if left[0] == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        real(*arguments)
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(os, function, deadly)
    run(folder, engine)


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("begun", "file"),
    [(False, 1), (False, 2), (False, 9), (True, 3)],
    ids=["manifest", "first shard", "last shard", "second supplement"],
)
def test_a_kill_around_each_step_of_writing(tmp_path, whole, function, after, begun, file):
    """Of the n-th file, the first being the manifest; each and its folder are synced."""
    folder, engine = tmp_path / "fire", Scribe(tmp_path / "log", failures=1)
    call = file if function == "replace" else 2 * file - 1
    if begun:
        run(folder, engine)
    with process(run_and_die, folder, engine, function, call, after) as child:
        child.join()
        assert child.exitcode == -signal.SIGKILL
    pd.testing.assert_frame_equal(finish(folder, engine), whole[FEW])
    assert list(folder.glob(".*.tmp")) == list(folder.glob("*.damaged")) == []
    check_asked(engine.log, FEW, failures=1)


class Patient(Scribe):
    """Answers only once a file is there."""

    def answer(self, conversations, sampling):
        replies = super().answer(conversations, sampling)
        while not self.log.with_name("go").exists():
            time.sleep(0.001)
        return replies


def test_a_second_run_is_refused_while_the_first_lives(tmp_path, whole):
    folder, log = tmp_path / "store", tmp_path / "log"
    with process(run, folder, Patient(log)) as first:
        wait_until(lambda: calls(log), first)
        second = Scribe(tmp_path / "log of the second")
        sentence = f"another run is writing to {folder}; wait for it or stop it"
        with pytest.raises(StoreError) as caught:
            run(folder, second)
        assert str(caught.value) == sentence
        assert calls(second.log) == []
        first.kill()
        first.join()
        table = run(folder, second)  # at once
    pd.testing.assert_frame_equal(table, whole[FEW])


def test_a_finished_store_is_read_while_another_run_holds_it(tmp_path):
    folder, engine = tmp_path / "store", Scribe(tmp_path / "log")
    table = run(folder, engine)
    store = open_store(folder, plan(FEW), engine, SAMPLING, SHARD)
    with store.writing():
        pd.testing.assert_frame_equal(run(folder, engine), table)


def begin(folders, model, barrier, results):
    for folder in folders:
        barrier.wait()
        error = "another run"
        while error and error.startswith("another run"):  # it looks at the manifest: wait
            try:
                store = Store(folder, {"model": model, "trials": 1, "shard_size": 1})
                with store.writing():
                    store.write(0, [Reply(model, "stop")])
                error = None
            except StoreError as problem:
                error = str(problem)
        results.put((folder, model, error))


def test_a_store_that_several_runs_begin_at_once_has_one_owner(tmp_path):
    folders, models = [tmp_path / str(number) for number in range(10)], ["a", "b", "c"]
    barrier, results = FORKS.Barrier(len(models)), FORKS.Queue()
    children = [
        FORKS.Process(target=begin, args=(folders, model, barrier, results)) for model in models
    ]
    for child in children:
        child.start()
    found = [results.get(timeout=60) for _ in folders for _ in models]
    for child in children:
        child.join()
    for folder in folders:
        here = {model: error for place, model, error in found if place == folder}
        (owner,) = [model for model, error in here.items() if error is None]
        assert f'"model": "{owner}"' in (folder / "manifest.json").read_text()
        (text,) = pd.read_parquet(folder / "part-00000.parquet").text
        assert text == owner
        for model in set(models) - {owner}:
            # Which of the others it met does not matter: their manifests may have come and gone.
            assert here[model] in {
                f"{folder} holds answers with model {other!r}, this run asks with model {model!r};"
                " nothing was changed: move that folder away or set it back"
                for other in models
                if other != model
            }


class Glutton(Scribe):
    """From its fourth call on, files may not grow beyond a kilobyte: a disk that is full."""

    def answer(self, conversations, sampling):
        if len(calls(self.log)) == 3:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, most))
        return super().answer(conversations, sampling)


def tell(results, folder, engine):
    """A run that reports the sentence that it ended with."""
    try:
        run(folder, engine)
        results.put("done")
    except StoreError as error:
        results.put(str(error))


def told(folder, engine, before=None):
    results = FORKS.Queue()
    with process(before or tell, results, folder, engine):
        return results.get(timeout=60)


def test_a_full_disk_keeps_what_is_whole(tmp_path, whole):
    folder, log = tmp_path / "store", tmp_path / "log"
    sentence = told(folder, Glutton(log))
    assert sentence == (
        f"{folder}/part-00003.parquet cannot be written: File too large; all shards that are "
        "there are whole and stay, raise the limit on the size of a file (ulimit -f) and run "
        "again to go on behind them"
    )
    assert sorted(file.name for file in folder.iterdir()) == [".lock", "manifest.json"] + [
        f"part-0000{shard}.parquet" for shard in range(3)
    ]
    table = run(folder, Scribe(log))
    pd.testing.assert_frame_equal(table, whole[FEW])
    asked = Counter(number for _, numbers in calls(log) for number in numbers)
    assert [number for number, times in asked.items() if times > 1] == list(range(12, 16))


def tell_from_a_full_disk(results, folder, engine):
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, most))
    tell(results, folder, engine)


def test_a_disk_that_is_full_from_the_start_is_found_before_anything_is_asked(tmp_path):
    folder, engine = tmp_path / "store", Scribe(tmp_path / "log")
    open_store(folder, plan(FEW), engine, SAMPLING, SHARD)
    assert "File too large" in told(folder, engine, tell_from_a_full_disk)
    assert calls(engine.log) == []


def tell_without_privilege(results, folder, engine):
    """A run that may not write where the permissions forbid it, not even as root."""
    if os.geteuid() == 0:  # gives up all capabilities (Linux), for this process alone
        header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset(header, none) == 0
    tell(results, folder, engine)


@pytest.fixture
def read_only():
    """Takes the right to write from a folder, and gives it back for the clearing up."""
    taken: list[Path] = []

    def take(folder):
        folder.chmod(0o555)
        taken.append(folder)

    yield take
    for folder in taken:
        folder.chmod(0o755)


def test_a_read_only_folder_is_found_before_anything_is_asked(tmp_path, read_only):
    new, begun = tmp_path / "closed" / "new", tmp_path / "begun"
    engine = Scribe(tmp_path / "log")
    new.parent.mkdir()
    begun.mkdir()
    for folder, closed in ((new, new.parent), (begun, begun)):
        read_only(closed)
        assert told(folder, engine, tell_without_privilege) == (
            f"{folder} cannot be written: Permission denied; all shards that are there are whole "
            "and stay, allow writing there and run again to go on behind them"
        )
    assert calls(engine.log) == []


def test_a_finished_store_in_a_read_only_folder_is_read(tmp_path, read_only):
    folder, engine = tmp_path / "store", Scribe(tmp_path / "log")
    run(folder, engine)
    read_only(folder)
    engine.log.unlink()
    assert told(folder, engine, tell_without_privilege) == "done"
    assert calls(engine.log) == []
