"""Four workers on a Ray of this machine against one, with an engine that sleeps.

What a shard takes is therefore the same with one and with four, on however many cores; what is
measured is the way there and back. Ray is an extra: without it there is no row, and a line says so.
"""

import importlib.util
import tempfile
import time
from pathlib import Path

from ingroup.design import Block, Design
from ingroup.inference import Reply, Sampling, generate, open_store
from ingroup.inference.cluster import Cluster

WORKERS, SHARDS, SHARD, SECONDS = 4, 24, 256, 1


class Sleeper:
    """Sleeps a hundredth of a second for each token it may write, whatever it is asked."""

    asks_again = False

    def __init__(self, folder: Path):
        self.sign = folder / f"{time.time_ns()}"

    def answer(self, conversations, sampling):
        self.sign.touch()
        time.sleep(sampling.max_tokens / 100)
        return [Reply(chat[0]["content"], "stop", 100, 0, 3) for chat in conversations]

    def identity(self):
        return {"engine": "sleeper"}

    def close(self):
        pass


def rows() -> list[dict]:
    """One row, ``ray_scaling``, or none."""
    if importlib.util.find_spec("ray") is None:
        print("ray_scaling is left out: Ray is not installed (make test-ray adds it)")
        return []
    ours, baseline = _seconds(WORKERS), _seconds(1)
    return [
        {
            "name": "ray_scaling",
            "ours": ours,
            "baseline": baseline,
            "ratio": baseline / ours,
            "baseline_is": f"one worker instead of {WORKERS}, {SHARDS} shards of an engine that "
            f"sleeps {SECONDS} s a shard",
        }
    ]


def _seconds(workers: int) -> float:
    """Of a run on workers that have all started."""

    def render(condition):
        return [{"role": "user", "content": str(condition["number"])}]

    work = Design([Block({}, {"number": range(SHARDS * SHARD)}, render, "")])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "signs").mkdir()
        cluster, turn = Cluster(lambda: Sleeper(folder / "signs"), workers), 0
        while len(list((folder / "signs").iterdir())) < workers:  # each has been asked
            turn += 1
            _run(work, cluster, Sampling(max_tokens=1), folder / f"warm {turn}")
        start = time.perf_counter()
        _run(work, cluster, Sampling(max_tokens=100 * SECONDS), folder / "store")
        took = time.perf_counter() - start
        cluster.close()
    return took


def _run(work: Design, cluster: Cluster, sampling: Sampling, folder: Path) -> None:
    generate(work, cluster, open_store(folder, work, cluster, sampling, SHARD), sampling)
