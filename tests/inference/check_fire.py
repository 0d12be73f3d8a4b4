"""Under fire: kills, flipped bytes, lost and swapped files, full disks, other runs, bad servers.

Each trial ends in the right answers or in one sentence. `make test-fire` runs them. Runs are real
processes. Those of a store alone are forked from a server that has imported everything and used
nothing of it, so that a run starts in milliseconds.
"""

import contextlib
import ctypes
import gzip
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import pandas as pd
import psutil
import pytest

import clone
import toy
from fake_openai import JSON, FakeOpenAI, completion, fault, ok, text_of
from fault_proxy import FaultProxy
from ingroup import paths
from ingroup.inference import (
    Engine,
    Reply,
    Store,
    StoreError,
    inspect_engine,
    open_store,
    server_responses,
)
from ingroup.inference.inspect_engine import InspectEngine
from toy import SAMPLING, numbers

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["ingroup.inference.inspect_engine", "fake_openai", "psutil", "pytest"]
)

# Trials: of sixty shards, of eight, and of one.
MANY = 240
FEW = 32
SHARD = 4
SEED = 4
KILLS = 20


class Scribe(Engine):
    """Writes down which trials it is asked, then answers after a millisecond.

    A multiple of five fails the first ``failures`` times that it is asked.
    """

    def __init__(self, log, failures=0):
        self.log = log
        self.failures = failures
        self.asks_again = failures > 0

    def answer(self, conversations, sampling):
        prompts = [chat[0]["content"] for chat in conversations]
        with self.log.open("a") as stream:
            stream.write(f"{os.getpid()}: {' '.join(prompts)}\n")

        times = times_asked(self.log)
        time.sleep(0.001)
        return [self._reply(int(prompt), times) for prompt in prompts]

    def _reply(self, number, times):
        if number % 5 == 0 and times[number] <= self.failures:
            return Reply(None, "failed", error="HTTP 500")
        return right_reply(number)

    def identity(self):
        return {"engine": "scribe"}


def right_reply(number):
    """The reply to a trial."""
    return Reply(f"reply {number % 11}", "stop", number, 0, 1)


def calls(log):
    """Who was asked what: process and trials, one pair per call."""
    if not log.exists():
        return []

    pairs = []
    for line in log.read_text().splitlines():
        process, prompts = line.split(": ")
        trials = [int(prompt) for prompt in prompts.split()]
        pairs.append((int(process), trials))

    return pairs


def times_asked(log):
    """How often each trial was asked."""
    times = Counter()
    for _, trials in calls(log):
        times.update(trials)

    return times


def run(folder, engine, trials=FEW):
    """One whole run, in this process or in another."""
    return toy.run(numbers(trials), folder, engine, SHARD)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of an uninterrupted run of an engine that never fails."""
    folder = tmp_path_factory.mktemp("whole")

    tables = {}
    for trials in (MANY, FEW):
        engine = Scribe(folder / f"log {trials}")
        tables[trials] = run(folder / str(trials), engine, trials)

    return tables


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


def died(target, *arguments):
    """The signal that ended a process."""
    with process(target, *arguments) as child:
        child.join()
    return -child.exitcode


def finish(folder, engine, trials=FEW):
    """Run without a kill until nothing is left to ask."""
    table = run(folder, engine, trials)
    while engine.asks_again and "failed" in set(table.finish_reason):
        table = run(folder, engine, trials)
    return table


def check_finish(folder, engine, whole, trials=FEW):
    """The table is whole, no file is left over, and no trial was asked more often than it failed,
    except those of a call that was cut off."""
    table = finish(folder, engine, trials)

    pd.testing.assert_frame_equal(table, whole[trials])
    assert list(folder.glob(".*.tmp")) == []
    assert list(folder.glob("*.damaged")) == []

    asked = times_asked(engine.log)
    assert set(asked) == set(range(trials))
    in_flight = count_in_flight(engine.log)
    for number, times in asked.items():
        failures = engine.failures if number % 5 == 0 else 0
        needed = 1 + failures
        assert needed <= times <= needed + in_flight[number], f"trial {number}: {times} times"


def count_in_flight(log):
    """How often each trial stood in the last call of a process that was killed."""
    last_calls = {}
    for process, trials in calls(log):
        if process != os.getpid():
            last_calls[process] = trials

    in_flight = Counter()
    for trials in last_calls.values():
        in_flight.update(trials)

    return in_flight


class Mortal(Scribe):
    """Dies some seconds after its n-th call begins, by its own clock and wherever it is then."""

    def __init__(self, log, failures, call, seconds):
        super().__init__(log, failures)
        self.left = call
        self.seconds = seconds

    def answer(self, conversations, sampling):
        self.left -= 1
        if self.left == 0:
            signal.setitimer(signal.ITIMER_REAL, self.seconds)  # nothing catches its signal
        return super().answer(conversations, sampling)


@pytest.mark.parametrize("failures", [0, 2], ids=["sound engine", "failing engine"])
def test_twenty_kills_change_nothing(tmp_path, whole, failures):
    draw = random.Random(SEED)
    folder = tmp_path / "fire"
    log = tmp_path / "log"

    for _ in range(KILLS):
        call = draw.randint(1, 2)
        seconds = draw.uniform(1e-6, 0.004)  # about what a shard takes
        engine = Mortal(log, failures, call, seconds)
        assert died(run, folder, engine, MANY) == signal.SIGALRM, "it ended before it was killed"

    check_finish(folder, Scribe(log, failures), whole, MANY)


def run_and_die(folder, engine, function, call, after):
    """A run that is killed at one call of the operating system, before or after it."""
    real = getattr(os, function)
    left = call

    def deadly(*arguments):
        nonlocal left
        left -= 1
        if left > 0 or after:
            real(*arguments)
        if left == 0:
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
    """Of the n-th file, the first being the manifest; each and its folder are synced, and before
    them the folder in which a new store stands."""
    folder = tmp_path / "fire"
    engine = Scribe(tmp_path / "log", failures=1)
    call = file if function == "replace" else 2 * file - begun
    if begun:
        run(folder, engine)

    assert died(run_and_die, folder, engine, function, call, after) == signal.SIGKILL
    check_finish(folder, engine, whole)


class Patient(Scribe):
    """Never gets to an answer."""

    def answer(self, conversations, sampling):
        super().answer(conversations, sampling)
        signal.pause()


def test_a_second_run_is_refused_while_the_first_lives(tmp_path, whole):
    folder = tmp_path / "store"
    log = tmp_path / "log"

    with process(run, folder, Patient(log)) as first:
        while not calls(log):
            assert first.is_alive(), "the run ended too early"
            time.sleep(0.0005)

        second = Scribe(tmp_path / "log of the second")
        with pytest.raises(StoreError) as caught:
            run(folder, second)
        assert str(caught.value) == f"another run is writing to {folder}; wait for it or stop it"
        assert calls(second.log) == []

        first.kill()
        first.join()
        table = run(folder, second)  # at once
        pd.testing.assert_frame_equal(table, whole[FEW])


def test_a_finished_store_is_read_while_another_run_holds_it(tmp_path):
    folder = tmp_path / "store"
    engine = Scribe(tmp_path / "log")
    table = run(folder, engine)

    store = open_store(folder, numbers(FEW), engine, SAMPLING, SHARD)
    with store.writing():
        pd.testing.assert_frame_equal(run(folder, engine), table)


def begin_store(folder, model):
    """Write the one trial of a store; gives the sentence of what prevents it."""
    try:
        store = Store(folder, {"model": model, "trials": 1, "shard_size": 1})
        with store.writing():
            store.write(0, [Reply(model, "stop")])
    except StoreError as error:
        return str(error)

    return None


def begin(folders, model, barrier, results):
    """Begin each store at the same moment as other processes."""
    for folder in folders:
        barrier.wait()
        error = begin_store(folder, model)
        while error and error.startswith("another run"):  # it looks at the manifest: wait
            error = begin_store(folder, model)
        results.put((folder, model, error))


def begin_at_once(folders, models):
    """Begin stores by several processes; the sentences that they end with, by folder and model."""
    barrier = FORKS.Barrier(len(models))
    results = FORKS.Queue()
    children = []
    for model in models:
        child = FORKS.Process(target=begin, args=(folders, model, barrier, results))
        child.start()
        children.append(child)

    errors = {folder: {} for folder in folders}
    for _ in range(len(folders) * len(models)):
        folder, model, error = results.get(timeout=600)
        errors[folder][model] = error
    for child in children:
        child.join()

    return errors


def test_a_store_that_several_runs_begin_at_once_has_one_owner(tmp_path):
    folders = [tmp_path / str(number) for number in range(10)]
    models = ["a", "b", "c"]

    errors = begin_at_once(folders, models)

    for folder in folders:
        owners = [model for model, error in errors[folder].items() if error is None]
        assert len(owners) == 1
        owner = owners[0]
        texts = pd.read_parquet(folder / "part-00000.parquet").text
        assert f'"model": "{owner}"' in (folder / "manifest.json").read_text()
        assert texts.tolist() == [owner]

        for model in set(models) - {owner}:
            # Which of the others it met does not matter: their manifests may have come and gone.
            others = "|".join(set(models) - {model})
            assert re.fullmatch(
                f"{folder} holds answers with model '({others})', this run asks with model "
                f"'{model}'; nothing was changed: move that folder away or set it back",
                errors[folder][model],
            )


def limit_files():
    """From now on files may not grow beyond a kilobyte: a disk that is full."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, most))


class Glutton(Scribe):
    """The disk is full from its fourth call on."""

    def answer(self, conversations, sampling):
        if len(calls(self.log)) == 3:
            limit_files()
        return super().answer(conversations, sampling)


def run_and_report(results, folder, engine, prepare):
    """A run that reports the sentence that it ended with."""
    prepare()
    try:
        run(folder, engine)
        results.put("done")
    except StoreError as error:
        results.put(str(error))


def sentence_of_run(folder, engine, prepare=bool):
    """The sentence that a run in a process of its own ended with."""
    results = FORKS.Queue()
    with process(run_and_report, results, folder, engine, prepare):
        return results.get(timeout=600)


def test_a_full_disk_keeps_what_is_whole(tmp_path, whole):
    folder = tmp_path / "store"
    log = tmp_path / "log"

    sentence = sentence_of_run(folder, Glutton(log))

    names = sorted(file.name for file in folder.iterdir())
    shards = ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    assert names == [".lock", "manifest.json", *shards]
    assert sentence == (
        f"{folder}/part-00003.parquet cannot be written: File too large; raise the limit on "
        "the size of a file (ulimit -f) and run again, which keeps all stored answers and asks "
        "the rest"
    )

    completed = run(folder, Scribe(log))

    asked_again = [number for number, times in times_asked(log).items() if times > 1]
    pd.testing.assert_frame_equal(completed, whole[FEW])
    assert asked_again == list(range(12, 16))


def test_a_disk_that_is_full_from_the_start_is_found_before_anything_is_asked(tmp_path):
    folder = tmp_path / "store"
    engine = Scribe(tmp_path / "log")
    open_store(folder, numbers(FEW), engine, SAMPLING, SHARD)

    sentence = sentence_of_run(folder, engine, limit_files)

    assert "File too large" in sentence
    assert calls(engine.log) == []


def give_up_privileges():
    """What the permissions forbid is forbidden to root as well (Linux), in this process alone."""
    if os.geteuid() == 0:
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        no_capabilities = (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset(header, no_capabilities) == 0


@pytest.mark.parametrize("name", ["store/new", "store"], ids=["above", "itself"])
def test_a_read_only_folder_is_found_before_anything_is_asked(name, tmp_path):
    folder = tmp_path / name
    engine = Scribe(tmp_path / "log")
    closed = tmp_path / "store"
    closed.mkdir()
    closed.chmod(0o555)

    sentence = sentence_of_run(folder, engine, give_up_privileges)

    assert sentence == (
        f"{folder} cannot be written: Permission denied; allow writing there and run again, "
        "which keeps all stored answers and asks the rest"
    )
    assert calls(engine.log) == []


def test_a_finished_store_in_a_read_only_folder_is_read(tmp_path):
    folder = tmp_path / "store"
    engine = Scribe(tmp_path / "log")
    run(folder, engine)
    folder.chmod(0o555)
    engine.log.unlink()

    sentence = sentence_of_run(folder, engine, give_up_privileges)

    assert sentence == "done"
    assert calls(engine.log) == []


# --- bytes that change


LITTLE = 16  # trials: four shards


class Keeper(Scribe):
    """A server: its replies are kept one by one, and what was kept is not asked again."""

    keeps_each = True


@pytest.fixture(scope="module")
def burnt(tmp_path_factory):
    """A store with supplements and a journal, and the answers to all of its trials."""
    root = tmp_path_factory.mktemp("burnt")
    folder = root / "store"
    engine = Scribe(root / "log", 1)
    table = finish(folder, engine, LITTLE)

    store = open_store(folder, numbers(LITTLE), engine, SAMPLING, SHARD)
    with store.writing():
        journal = store.journal()
        for trial in range(8, 12):
            journal.add(trial, right_reply(trial))
    store.path(2).unlink()  # what the journal holds
    return folder, table


def outcome_of_run(folder, table, log):
    """What a run makes of a store that was spoilt: the right answers, or one sentence."""
    try:
        completed = finish(folder, Keeper(log, 1), LITTLE)
    except StoreError as error:
        sentence = str(error)
        assert str(folder) in sentence
        assert "\n" not in sentence
        return "refused"

    pd.testing.assert_frame_equal(completed, table)
    return "right"


def files_of(folder):
    return sorted(file for file in folder.iterdir() if file.name != ".lock")


def spoil(content, position, how):
    """Cut a file at a position, or flip a bit there."""
    if how == "cut":
        return content[:position]

    spoilt = bytearray(content)
    spoilt[position] ^= 1 << position % 8
    return bytes(spoilt)


@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_byte_that_changes_anywhere_is_found(burnt, tmp_path, how):
    """Twenty places of every file and more: what is read is right, or is asked again."""
    folder, table = burnt
    outcomes = Counter()

    for file in files_of(folder):
        content = file.read_bytes()
        step = max(1, len(content) // 24)
        for position in range(0, len(content), step):
            copy = shutil.copytree(folder, tmp_path / f"{file.name} {position}")
            (copy / file.name).write_bytes(spoil(content, position, how))
            outcome = outcome_of_run(copy, table, tmp_path / "log")
            outcomes[file.name, outcome] += 1
            shutil.rmtree(copy)

    assert outcomes.total() > 200

    # A manifest is not mended; nor is the supplement of a shard that is lost, by the first run.
    refused = {name for name, outcome in outcomes if outcome == "refused"}
    assert refused <= {"manifest.json", "part-00002.again-1.parquet"}
    assert ("manifest.json", "right") not in outcomes


def test_files_that_changed_places_are_found(burnt, tmp_path):
    """Every pair of files of a store, and every file of the store of another engine."""
    folder, table = burnt
    other = tmp_path / "other"
    other_engine = Scribe(tmp_path / "other log", 1)
    other_engine.identity = lambda: {"engine": "another"}
    finish(other, other_engine, LITTLE)

    files = files_of(folder)
    swaps = random.Random(SEED).sample(list(permutations(files, 2)), 50)
    for file in files:
        of_other = other / file.name
        if file.suffix != ".jsonl" and of_other.exists():
            swaps.append((of_other, file))

    outcomes = Counter()
    for number, (source, target) in enumerate(swaps):
        copy = shutil.copytree(folder, tmp_path / str(number))
        shutil.copy(source, copy / target.name)
        outcome = outcome_of_run(copy, table, tmp_path / "log")
        outcomes[outcome] += 1
        shutil.rmtree(copy)

    assert outcomes["right"] > 30
    assert outcomes["refused"] > 3  # where the manifest or shard 2's supplement went


# --- disks


OWN_SPACE = ["unshare", "--user", "--map-root-user", "--mount"]
HAS_SPACE = shutil.which("unshare") and not subprocess.run([*OWN_SPACE, "true"]).returncode


@pytest.mark.skipif(not HAS_SPACE, reason="no file system of one's own can be mounted here")
@pytest.mark.parametrize("limit", ["size=128k", "nr_inodes=8"])
def test_a_disk_without_room_keeps_what_is_whole(tmp_path, whole, limit):
    """A real file system of that size, in a name space of its own (Linux)."""
    script = (
        "import sys; from pathlib import Path; import check_fire as f\n"
        "folder, log = Path(sys.argv[1]), Path(sys.argv[2])\n"
        "try:\n f.run(folder, f.Scribe(log), f.MANY); print('done')\n"
        "except f.StoreError as error:\n print(error)\n"
        "import shutil; shutil.copytree(folder, sys.argv[3])"
    )
    small = tmp_path / "small"
    kept = tmp_path / "kept"
    log = tmp_path / "log"
    small.mkdir()

    inner = f'mount -t tmpfs -o {limit} none {small} && exec {sys.executable} -c "$0" $1 $2 $3'
    space = [*OWN_SPACE, "sh", "-c", inner]
    arguments = [script, str(small / "store"), str(log), str(kept)]
    path = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run([*space, *arguments], capture_output=True, text=True, env=environment)

    before = len(calls(log))
    assert "No space left on device; make room on that disk and run again" in done.stdout, done
    assert before > 0

    completed = run(kept, Scribe(log), MANY)

    pd.testing.assert_frame_equal(completed, whole[MANY])
    assert len(calls(log)) - before <= MANY // SHARD - before + 1


# --- servers


def other_model(call):
    """The right answer, of a cheaper model than was asked."""
    text = text_of(call.request["messages"])
    return ok(completion(text) | {"model": "cheaper"})


FAULTS = {
    "overloaded": lambda call: fault(429, "slow down", Retry_After="0.01"),
    "broken": lambda call: fault(500),
    "gateway": lambda call: (502, {"Content-Type": "text/html"}, b"<html>bad gateway</html>"),
    "too early": lambda call: fault(409),
    "refused": lambda call: fault(400, "the prompt is not allowed"),
    "empty": lambda call: (200, JSON, b""),
    "half": lambda call: (200, JSON, ok(completion("50"))[2][:40]),
    "page": lambda call: (200, {"Content-Type": "text/html"}, b"<html>log in first</html>"),
    "error in 200": lambda call: ok({"error": {"message": "provider down"}}),
    "no text": lambda call: ok(completion(None)),
    "bomb": lambda call: (200, JSON | {"Content-Encoding": "gzip"}, gzip.compress(bytes(10**7))),
    "endless": lambda call: (200, JSON, b" " * 2**26),
    "redirect": lambda call: (307, {"Location": "http://127.0.0.1:9/v1/chat/completions"}, b""),
    "other model": other_model,
    "odd charset": lambda call: (400, {"Content-Type": "text/plain; charset=undefined"}, b"x"),
}
NOT_TRIED_AGAIN = {
    "too early",
    "refused",
    "error in 200",
    "bomb",
    "endless",
    "redirect",
    "odd charset",
}
FAULT_NAMES = [*FAULTS, "none"]


def fault_of(number):
    """The fault that the first call with a number meets."""
    return FAULT_NAMES[number % len(FAULT_NAMES)]


def test_a_server_with_every_fault_gives_right_answers_or_named_failures(tmp_path, monkeypatch):
    """Each prompt meets one fault at its first call, and a proxy spoils a third of all calls."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(server_responses, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(server_responses, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(inspect_engine, "ATTEMPTS", 12)

    def script(call, before):
        name = fault_of(int(call.prompt))
        if name == "none" or before > 0:
            return None
        return FAULTS[name](call)

    design = numbers(MANY)
    with FakeOpenAI(script).running() as upstream, FaultProxy(upstream, 1).running() as address:
        engine = InspectEngine("fake", address + "/v1")
        first = toy.run(design, tmp_path, engine, 64)
        second = toy.run(design, tmp_path, engine, 64)

    for table in (first, second):
        answered = table.finish_reason == "stop"
        for number, text in zip(table.trial[answered], table.text[answered], strict=True):
            # inspect_ai makes an empty answer of none.
            is_empty = text == "" and fault_of(number) == "no text"
            assert is_empty or text == text_of(design[number].messages)
        assert (table.error.astype(str) == "").tolist() == answered.tolist()

    faults = first.trial.map(fault_of)
    assert set(faults[first.finish_reason == "failed"]) == NOT_TRIED_AGAIN
    assert set(faults[first.model == "cheaper"]) == {"other model"}
    assert (second.finish_reason == "stop").all()


def ask_server(folder, url):
    os.environ["NO_PROXY"] = "127.0.0.1"
    return toy.run(numbers(MANY), folder, InspectEngine("fake", url, in_flight=8), MANY)


def test_a_killed_run_costs_no_call_that_was_answered(tmp_path):
    """Of 240 calls of one shard 100 were made; the second run asks for the rest."""
    folder = tmp_path / "store"

    def script(call, before):
        if len(server.calls) == 100:
            os.kill(child.pid, signal.SIGKILL)

    server = FakeOpenAI(script)
    with server.running() as address:
        with process(ask_server, folder, f"{address}/v1") as child:
            child.join()
            assert child.exitcode == -signal.SIGKILL

        table = ask_server(folder, f"{address}/v1")
    assert len(server.calls) <= MANY + 8  # those that were in flight
    names = {".lock", "manifest.json", "part-00000.parquet"}
    assert {path.name for path in folder.iterdir()} == names
    assert table.text.tolist() == [text_of(trial.messages) for trial in numbers(MANY)]


# --- a whole study: make, its program and the kernel


def tree(folder):
    """The project, without what was built; the environment is this one."""
    clone.copy(folder, left_out=())
    shutil.copytree(paths.ROOT / "figures", folder / "figures")
    return folder


def make(folder):
    """A small run of the first study, with its own copy of everything."""
    small = ["N_EVENTS=2", "SETTINGS=P0,S0,T0", "N_RESAMPLES=50", "RUN=fire"]
    python = [f"PY={sys.executable}", "READY="]
    environment = {"PYTHON": sys.executable}
    for name, value in os.environ.items():
        if not name.startswith(("MAKE", "INGROUP_")):
            environment.setdefault(name, value)

    return subprocess.Popen(
        ["make", "-C", str(folder), "10", *small, *python],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


VICTIMS = ["", "ingroup.commands.run", "", "ingroup.commands.kernel"]  # what stands in its command


def kill_all_in(folder):
    """Kill every process that works in a folder; kernels have a session of their own."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder):
                process.kill()


def written(folder):
    """How many files a run has written."""
    return sum(file.is_file() for file in (folder / "build").rglob("*"))


def content(file):
    """Its bytes; of answers what was said: other batches, behind a kill, share other beginnings."""
    if file.suffix != ".parquet":
        return file.read_bytes()
    return pd.read_parquet(file).drop(columns="cached_tokens").to_csv()


def results_of(folder):
    """The tables, figures and answers of a run, except what it took."""
    root = folder / "build"

    contents = {}
    for file in root.rglob("*"):
        is_result = file.suffix in (".csv", ".png", ".pdf", ".parquet")
        if is_result and file.name != "usage.csv":
            contents[file.relative_to(folder)] = content(file)

    return contents


def make_and_kill(folder, victim, after):
    """Run make, and kill its processes of that name once it has written so many files."""
    child = make(folder)
    while written(folder) <= after and child.poll() is None:
        time.sleep(0.01)
    assert child.poll() is None, child.communicate()[0]

    for process in psutil.Process(child.pid).children(recursive=True):
        if victim in " ".join(process.cmdline()):
            process.kill()
    said, _ = child.communicate()
    kill_all_in(folder)  # what was started behind the list above, too

    return child.returncode, said


def test_a_killed_make_or_kernel_goes_on_where_it_was(tmp_path):
    """Killed once so many files are there. A kernel that dies is started again by the program."""
    draw = random.Random(SEED)
    whole = tree(tmp_path / "whole")
    folder = tree(tmp_path / "fire")
    undisturbed = make(whole)
    said, _ = undisturbed.communicate()
    assert undisturbed.returncode == 0, said

    steps = written(whole) // len(VICTIMS)
    for number, victim in enumerate(VICTIMS):
        after = draw.randrange(steps * number, steps * (number + 1))
        returncode, said = make_and_kill(folder, victim, after)

        goes_on = victim == "ingroup.commands.kernel"
        notebooks = list((folder / "build").rglob("10_empathy_gap.ipynb"))
        assert (returncode == 0) == goes_on, said
        assert len(notebooks) == goes_on

    assert results_of(folder) == results_of(whole)
