"""Many engines on a real Ray of this machine: ``make test-ray``, as Ray is an extra."""

import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pandas as pd
import psutil
import pytest
import ray
from ray.cluster_utils import Cluster as Nodes

import toy
from few import Few
from ingroup.inference import Engine, EngineError, Reply, make_engine
from ingroup.inference import cluster as cluster_module
from ingroup.inference.cluster import RETRIES, SHARDS_PER_WORKER, Cluster, _Shards
from toy import SAMPLING, numbers, religion

TRIALS, SHARD = 62, 4  # sixteen shards, the last one half full
SHARDS = 16
BEFORE_GATE = 3


@pytest.fixture(scope="module", autouse=True)
def nodes():
    """One Ray for all tests: this process is on its first node, which has no GPU."""
    here = Path(__file__).parent  # workers find Scribe and the helpers
    folders = [here, here.parent / "helpers"]
    known = filter(None, [*map(str, folders), os.environ.get("PYTHONPATH")])
    os.environ["PYTHONPATH"] = os.pathsep.join(known)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Nodes()
    while nodes.head_node is None:
        try:
            nodes.add_node(num_cpus=2, object_store_memory=10**8, include_dashboard=False)
        except Exception as error:
            if "timed out during startup" not in str(error):  # a busy machine: Ray gives it 30 s
                raise
    ray.init(nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


class Scribe(Engine):
    """Writes down who was asked what; at some shards something happens, a number of times.

    ``falls`` and ``raises`` are shard to how often its worker dies or its engine breaks. None is
    answered before a ``crew`` has been asked. From ``BEFORE_GATE`` on none is answered before the
    ``gate``, a file, is there.
    """

    asks_again = False

    def __init__(self, log, falls=(), raises=(), crew=1, gives_up=False, model="a", gate=None):
        self.log, self.crew, self.model, self.gives_up = log, crew, model, gives_up
        self.gate = gate or log
        self.falls, self.raises = dict(falls), dict(raises)

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
        while len(processes(self.log)) < self.crew:
            time.sleep(0.01)
        while shard >= BEFORE_GATE and not self.gate.exists():
            time.sleep(0.01)
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


def processes(log):
    """Who was asked anything."""
    return {process for process, _ in calls(log)}


def run(folder, engine):
    return toy.run(numbers(TRIALS), folder, engine, SHARD)


def many(folder, workers=4, **how):
    """Who was asked what in a run on several workers."""
    log = folder / "log"
    with closing(Cluster(lambda: Scribe(log, **how), workers)) as cluster:
        run(folder / "store", cluster)
        return calls(log)


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
    asked = many(tmp_path, crew=4)
    check(tmp_path, alone)
    assert sorted(shard for _, shard in asked) == list(range(SHARDS))
    assert len({process for process, _ in asked}) == 4
    assert os.getpid() not in {process for process, _ in asked}


def test_a_real_engine_gives_what_it_gives_in_one_process(tmp_path):
    work, tables = Few(religion(), 0, 24), []
    one = make_engine("transformers", "calibrant", batch_size=8)
    two = Cluster(lambda: make_engine("transformers", "calibrant", batch_size=8), 2)
    assert two.identity() == one.identity()
    for name, engine in (("one", one), ("two", two)):
        tables.append(toy.run(work, tmp_path / name, engine, 8))
        engine.close()
    pd.testing.assert_frame_equal(*tables)
    few = Few(work, 0, 3)
    ((_, begun_anew),) = two.replies(few, [range(3)], SAMPLING)
    assert begun_anew == one.answer([trial.messages for trial in few], SAMPLING)
    two.close()


def check_asked_again(asked, most):
    """Every shard was asked, and no more than ``most`` once more: what lost workers had."""
    counts = Counter(shard for _, shard in asked)
    assert sorted(counts) == list(range(SHARDS))
    assert counts.total() - SHARDS <= most, counts


@pytest.mark.parametrize(
    "falls",
    [{5: 1}, {5: 1, 6: 1}, {5: 2}],
    ids=["one is killed", "two are killed", "a shard kills twice"],
)
def test_a_dead_worker_costs_only_the_shards_that_it_had(tmp_path, alone, falls):
    asked = many(tmp_path, crew=3, falls=falls)
    check(tmp_path, alone)
    deaths = sum(falls.values())
    check_asked_again(asked, deaths * SHARDS_PER_WORKER)
    counts = Counter(shard for _, shard in asked)
    assert all(counts[shard] > times for shard, times in falls.items())


def test_the_shard_of_a_broken_engine_is_asked_again_and_no_other(tmp_path, alone):
    raises = {3: 1, 15: 2}
    asked = many(tmp_path, crew=3, raises=raises)
    check(tmp_path, alone)
    assert Counter(shard for _, shard in asked) == Counter(range(SHARDS)) + Counter(raises)
    first, second = [process for process, shard in asked if shard == 3]
    assert first != second, "another worker"


def test_what_was_lost_goes_first_to_another_worker_and_alone():
    shards = _Shards(4)
    assert shards.take("a", [], alone=False) == 0
    assert shards.take("a", [0], alone=False) == 1
    assert shards.take("a", [0, 1], alone=False) is None
    shards.lose(0, "a")
    shards.lose(1, "a")
    assert shards.take("a", [], alone=False) == 2, "what it lost itself is for others"
    assert shards.take("b", [3], alone=False) is None, "it first ends what it has"
    assert shards.take("b", [], alone=False) == 1
    assert shards.take("b", [1], alone=False) is None
    assert shards.take("c", [], alone=False) == 0
    shards.lose(0, "c")
    assert shards.take("c", [], alone=False) == 3
    assert shards.take("c", [], alone=False) is None
    assert shards.take("c", [], alone=True) == 0
    assert shards.losses == {0: 2, 1: 1}


@pytest.mark.parametrize("how", ["falls", "raises"])
def test_a_shard_that_is_always_lost_is_a_sentence_and_the_store_goes_on(tmp_path, alone, how):
    """Shard 9 kills whoever takes it, or breaks its engine, as often as it is asked."""
    with pytest.raises(EngineError) as caught:
        many(tmp_path, workers=2, **{how: {9: 99}})
    text = str(caught.value)
    reason = "The actor" if how == "falls" else r"RuntimeError: the card fell off the bus"
    assert text.startswith(f"a shard was lost {1 + RETRIES} times ({reason}")
    assert text.endswith("run again, which keeps all stored answers and asks the rest")
    assert "\n" not in text
    asked = Counter(shard for _, shard in calls(tmp_path / "log"))
    assert asked[9] == 1 + RETRIES
    # Beside it another may have been lost once, and is not asked beside it again.
    others = asked - Counter({9: 1 + RETRIES})
    assert max(others.values()) <= 2
    stored = sorted((tmp_path / "store").glob("part-*"))
    assert len(stored) >= 9, "those before it were done"
    log = tmp_path / "log of the second"
    run(tmp_path / "store", Scribe(log))
    assert len(calls(log)) == SHARDS - len(stored)
    check(tmp_path, alone)


def test_workers_that_are_killed_from_outside(tmp_path, alone):
    """Two of three, while they wait for each other."""
    log = tmp_path / "log"

    def kill():
        while len(processes(log)) < 2:
            time.sleep(0.01)
        for process in sorted(processes(log))[:2]:
            os.kill(process, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    asked = many(tmp_path, workers=3, crew=4)
    thread.join()
    check(tmp_path, alone)
    check_asked_again(asked, 2 * SHARDS_PER_WORKER)


class Machines:
    """Nodes with two GPUs each, as Ray counts them, and a run with a worker for every GPU.

    Most is not answered before :meth:`answer`, so that a node which is lost computes something.
    """

    def __init__(self, nodes, folder):
        self.nodes = nodes
        self.log = folder / "log"
        self.gate = folder / "gate"
        self.store = folder / "store"
        self.thread = ThreadPoolExecutor(1)
        self.lost = []

    def add(self):
        return self.nodes.add_node(num_gpus=2, object_store_memory=10**8)

    def start(self, workers):
        """Begin a run in a thread; each of its workers was asked when this returns."""
        self.ended = self.thread.submit(self.run, workers)
        self.wait(lambda: len(processes(self.log)) == workers)

    def run(self, workers):
        with closing(Cluster(partial(Scribe, self.log, gate=self.gate), workers)) as cluster:
            run(self.store, cluster)

    def wait(self, condition):
        while not condition():
            assert not self.ended.done(), self.ended.result()
            time.sleep(0.05)

    def lose(self, node, how=signal.SIGKILL):
        """End, or freeze, all processes of a node; returns which of them were asked."""
        (raylet,) = node.all_processes["raylet"]
        there = psutil.Process(raylet.process.pid)
        there = [there, *there.children(recursive=True)]
        for process in there:
            process.send_signal(how)
        self.lost.extend(there)
        return processes(self.log) & {process.pid for process in there}

    def answer(self):
        self.gate.touch()

    def all_wait(self, workers):
        """Whether each worker computes a shard that waits for the gate."""
        latest = dict(calls(self.log))
        return len(latest) == workers and min(latest.values()) >= BEFORE_GATE

    def stored(self):
        """The shards whose answers are there."""
        return {int(file.stem.split("-")[1]) for file in self.store.glob("part-*")}

    def close(self):
        self.answer()
        for process in self.lost:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for node in self.nodes.worker_nodes.copy():
            self.nodes.remove_node(node, allow_graceful=False)
        self.thread.shutdown()
        # The next test would count GPUs that Ray has not missed yet.
        while sum(node["Alive"] for node in ray.nodes()) > 1:
            time.sleep(0.1)


@pytest.fixture
def machines(nodes, tmp_path):
    with closing(Machines(nodes, tmp_path)) as machines:
        yield machines


def check_cost(log, lost):
    """What lost processes were asked may have been asked again, and nothing else."""
    asked = calls(log)
    counts = Counter(shard for _, shard in asked)
    again = {shard for shard, times in counts.items() if times > 1}
    assert again <= {shard for process, shard in asked if process in lost}
    assert set(counts) == set(range(SHARDS))


def check_goes_on(machines, folder, alone, lost):
    """The run ends with what one process gives; only what lost processes had is asked again."""
    machines.answer()
    machines.ended.result()
    check(folder, alone)
    check_cost(machines.log, lost)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
def test_a_lost_node_costs_only_what_it_computed(machines, tmp_path, alone, how):
    """The others go on; Ray notices after a minute that one hangs."""
    first, _, _ = [machines.add() for _ in range(3)]
    machines.start(6)
    lost = machines.lose(first, how)
    assert len(lost) == 2
    check_goes_on(machines, tmp_path, alone, lost)


def test_one_node_of_three_is_left(machines, tmp_path, alone):
    first, second, _ = [machines.add() for _ in range(3)]
    machines.start(6)
    lost = machines.lose(first) | machines.lose(second)
    assert len(lost) == 4
    check_goes_on(machines, tmp_path, alone, lost)


def test_a_run_goes_on_with_a_node_that_joins(machines, tmp_path, alone):
    """Its only node is lost, and another comes while the run waits."""
    first = machines.add()
    machines.start(2)
    lost = machines.lose(first)
    machines.add()
    check_goes_on(machines, tmp_path, alone, lost)
    assert processes(machines.log) > lost


def test_the_last_node_is_lost_and_the_same_line_goes_on(machines, tmp_path, alone, monkeypatch):
    node = machines.add()
    machines.start(2)
    machines.wait(lambda: machines.all_wait(2) and machines.stored())
    with monkeypatch.context() as patch:
        patch.setattr(cluster_module, "WORKER_TIMEOUT", 0.5)
        machines.lose(node)
        with pytest.raises(EngineError) as caught:
            machines.ended.result()
    assert str(caught.value) == (
        "no worker of the Ray cluster was there for 0.5 s; run again, which keeps all stored "
        "answers and asks the rest"
    )
    # A worker takes two shards, and one before the gate may be behind one that waits for it.
    before = machines.stored()
    assert before <= {*range(BEFORE_GATE)}
    machines.add()
    machines.answer()
    machines.log.unlink()
    machines.run(2)
    check(tmp_path, alone)
    asked = sorted(shard for _, shard in calls(machines.log))
    assert asked == sorted({*range(SHARDS)} - before)


def test_a_run_that_no_worker_joins_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "WORKER_TIMEOUT", 0.5)
    cluster = Cluster(lambda: Scribe(tmp_path / "log"), 2)
    monkeypatch.setattr(cluster, "_gpus", 1)  # which this machine does not have: nobody starts
    with pytest.raises(EngineError, match=r"^no worker of the Ray cluster was there for 0.5 s; "):
        list(cluster.replies(numbers(TRIALS), [range(4)], SAMPLING))
    assert calls(tmp_path / "log") == []


def test_the_prompts_of_the_next_shard_are_made_while_one_is_computed(tmp_path):
    """A shard is answered only once the prompts of one more are there, as long as one is left."""
    log = tmp_path / "log"

    class Prepares:
        def __init__(self):
            self.prompter = self
            self.answered = 0

        def batch(self, conversations):
            made = [int(chat[0]["content"]) for chat in conversations]
            with log.open("a") as stream:
                stream.write(f"{made[0]}\n")
            return made

        def complete(self, prompts, sampling):
            needed = min(4, self.answered + 2)
            while len(log.read_text().splitlines()) < needed:
                time.sleep(0.01)
            self.answered += 1
            return [Reply(str(number), "stop") for number in prompts]

        def identity(self):
            return {"engine": "prepares"}

    with closing(Cluster(Prepares, 1)) as cluster:
        told = dict(cluster.replies(numbers(4), [[0], [1], [2], [3]], SAMPLING))
    assert {place: reply.text for place, (reply,) in told.items()} == {
        0: "0",
        1: "1",
        2: "2",
        3: "3",
    }


def test_a_run_that_stops_reading_leaves_no_answer_for_the_next(tmp_path, alone):
    """What was in work when the caller broke off is not taken for a part of what is asked next."""
    cluster = Cluster(lambda: Scribe(tmp_path / "log"), 2)
    asked = cluster.replies(
        numbers(TRIALS), [range(start, start + SHARD) for start in range(0, 40, SHARD)], SAMPLING
    )
    next(asked)
    asked.close()
    pd.testing.assert_frame_equal(run(tmp_path / "store", cluster), alone[0])
    cluster.close()


def test_an_engine_that_gives_up_ends_the_run_with_its_own_sentence(tmp_path):
    with pytest.raises(EngineError, match=r"^this prompt has no system role$"):
        many(tmp_path, gives_up=True)


def test_an_engine_that_cannot_start_ends_the_run_with_its_own_sentence():
    def cannot():
        raise EngineError("there is no model 'x'")

    with pytest.raises(EngineError, match=r"^there is no model 'x'$"):
        Cluster(cannot, 2).identity()


@pytest.mark.parametrize("deaths", [1, 1 + RETRIES])
def test_a_worker_that_dies_before_the_run_is_replaced(tmp_path, deaths):
    """As often as a shard is; the last sentence is one line."""
    died = tmp_path / "died"
    died.touch()

    def dies():
        if died.stat().st_size < deaths:
            died.write_bytes(died.read_bytes() + b"x")
            os.kill(os.getpid(), signal.SIGKILL)
        return Scribe(tmp_path / "log")

    with closing(Cluster(dies, 1)) as cluster:
        if deaths == 1:
            assert cluster.identity() == Scribe(tmp_path / "log").identity()
        else:
            with pytest.raises(EngineError, match=r"^4 workers of the Ray cluster died \(.*; answ"):
                cluster.identity()


def test_engines_that_differ_are_refused(tmp_path):
    place = tmp_path / "turn"

    def another():
        place.write_text(place.read_text() + "x" if place.exists() else "x")
        return Scribe(tmp_path / "log", crew=2, model=str(len(place.read_text())))

    with pytest.raises(
        EngineError, match=r"engines differ: model is '[12]' with one and '[12]' with"
    ):
        run(tmp_path / "store", Cluster(another, 2))
