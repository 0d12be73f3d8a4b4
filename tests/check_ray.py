"""Several engines on a real Ray (``make test-ray``): a killed worker loses nothing."""

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from ingroup.inference.answers import Engine, EngineError, Reply, Sampling
from ingroup.inference.design import Block, Design
from ingroup.inference.distribute import ask_on_ray
from ingroup.inference.generate import fill, open_store

ray = pytest.importorskip("ray")
N_TRIALS = 4000
PIECE = 50


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Start Ray once, with workers that find these tests."""
    folders = [Path(__file__).parent, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init("local", num_cpus=2, log_to_driver=False, include_dashboard=False)
    yield
    ray.shutdown()


class Sleeper(Engine):
    """Takes its time for each piece, and notes which process answered it."""

    piece_size = PIECE

    def __init__(self, log: Path, model: str = "sleeper"):
        self.log = log
        self.model = model

    def identity(self):
        return {"engine": "sleeper", "model": self.model}

    def answer(self, chats, sampling):
        with self.log.open("a") as stream:
            stream.write(f"{os.getpid()} {time.time()}\n")
        time.sleep(0.5)
        return [Reply(chat[0]["content"]) for chat in chats]


def render(condition):
    """Make the chat of a number."""
    return [{"role": "user", "content": str(condition["n"])}]


def asked(log):
    """Read which process was asked for each piece, and when."""
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def run(folder, log, workers=2, make_engine=None):
    """Fill a store through Ray, and return its texts."""
    design = Design([Block({}, {"n": range(N_TRIALS)}, render)])
    engine = Sleeper(log)
    store = open_store(folder, design, engine, Sampling())
    ask = ask_on_ray(engine, make_engine or partial(Sleeper, log), workers)
    fill(design, engine, store, Sampling(), ask=ask)
    return store.read(["text"]).text.astype(object).tolist()


def test_a_killed_worker_loses_nothing(tmp_path):
    log = tmp_path / "asked.log"

    def kill_one():
        while len(asked(log)) < 6:
            time.sleep(0.05)
        os.kill(int(asked(log)[-1][0]), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    texts = run(tmp_path / "store", log)
    killer.join()

    assert texts == [str(number) for number in range(N_TRIALS)]
    assert len({process for process, _ in asked(log)}) == 3
    # The piece under way was asked again, and perhaps one that waited.
    assert N_TRIALS / PIECE <= len(asked(log)) <= N_TRIALS / PIECE + 2


def test_four_workers_answer_four_times_as_fast(tmp_path):
    rates = {}
    for workers in (1, 4):
        log = tmp_path / f"{workers}.log"
        run(tmp_path / f"store{workers}", log, workers)
        lines = asked(log)
        # Workers start one after the other, so the rate is that of all of them.
        seen = [len({process for process, _ in lines[: row + 1]}) for row in range(len(lines))]
        together = [float(moment) for _, moment in lines[seen.index(workers) :]]
        rates[workers] = (len(together) - workers) / (together[-workers] - together[0])
    print(f"\n{rates[4] / rates[1]:.2f} times as fast")
    assert rates[4] / rates[1] > 3.5


def test_workers_with_another_model_are_refused(tmp_path):
    other = partial(Sleeper, tmp_path / "log", model="other")
    with pytest.raises(EngineError, match="a worker's model is 'other', expected 'sleeper'"):
        run(tmp_path / "store", tmp_path / "log", make_engine=other)
