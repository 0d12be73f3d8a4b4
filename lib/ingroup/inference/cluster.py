"""Many engines on a Ray cluster, as one; a worker that dies is replaced, its shards go to others.

A worker gets the design once and then the numbers of a shard's trials, makes the prompts itself and
sends back the replies. Whoever asked writes them: the machines need no common disk, and a store has
one writer. Every machine needs this project in the same version, and the model.
"""

import logging
import os
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from ingroup.inference.ahead import complete, prepare
from ingroup.inference.engine import Engine, EngineError, Reply, Sampling

RETRIES = 3  # of one shard, when its worker dies or its engine breaks
AT_A_TIME = 2  # shards that a worker has: one is computed, the prompts of the next are made
PATIENCE = 300.0  # seconds without any worker; a node takes minutes to start again
STORED = "answers that are stored stay, run again to go on behind them"


class Worker:
    """A Ray actor that holds one engine, made when it is first needed.

    It takes two shards at a time: the prompts of one are made while the engine computes the other.
    """

    def __init__(self, factory: Callable[[], Engine]):
        self.factory = factory
        self.engine: Engine | None = None
        self.turn = threading.Lock()  # whose holder asks the engine
        self.making = threading.Lock()  # whose holder makes or drops it

    def ready(self) -> None:
        """Return as soon as the process is there."""

    def answer(self, design: Sequence, sampling: Sampling, numbers: Sequence[int]):
        """Who answered and the replies; an EngineError as a value: not to be retried."""
        try:
            prompts = prepare(self._made(), design, numbers)
            with self.turn:
                # A shard before this one may have broken the engine that made the prompts.
                engine = self._made()
                return engine.identity(), self._asked(engine, prompts, sampling)
        except EngineError as error:
            return {}, error

    def identity(self) -> dict[str, str]:
        """Who would answer."""
        return self._made().identity()

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """How its engine spells the choices."""
        return self._made().spelling(sampling)

    def _made(self) -> Engine:
        with self.making:
            if self.engine is None:
                self.engine = self.factory()
            return self.engine

    def _asked(self, engine: Engine, prompts: Sequence, sampling: Sampling) -> list[Reply]:
        try:
            return complete(engine, prompts, sampling)
        except EngineError:
            raise
        except Exception:
            with self.making:
                self.engine = None  # in a state that nobody knows
            raise


class _Shards:
    """The places of the shards that nobody has, and how often each was lost.

    A shard that was lost goes first, to another worker than the last, and has it for itself: if
    that one dies too, no second shard is blamed for it.
    """

    def __init__(self, number: int):
        self.fresh = deque(range(number))
        self.lost: deque[int] = deque()
        self.losses: Counter[int] = Counter()
        self._last: dict[int, Any] = {}

    def lose(self, place: int, worker: Any) -> None:
        """Take a shard back from a worker that died, or whose engine broke."""
        self.losses[place] += 1
        self._last[place] = worker
        self.lost.appendleft(place)

    def take(self, worker: Any, held: Sequence[int], alone: bool) -> int | None:
        """Give the next shard to a worker that holds others; None where it shall wait.

        A worker that is ``alone`` gets back even what it lost itself.
        """
        suspects = [place for place in held if self.losses[place] > 0]
        if len(held) == AT_A_TIME or len(suspects) > 0:
            return None

        for place in self.lost:
            if alone or self._last[place] is not worker:
                if len(held) > 0:
                    return None
                self.lost.remove(place)
                return place

        if len(self.fresh) > 0:
            return self.fresh.popleft()
        return None


class Cluster(Engine):
    """Engines of one kind on a Ray cluster, asked by :meth:`replies` alone.

    Each of the ``workers`` calls ``factory`` for its engine and has ``gpus`` on one machine, where
    there are any. ``address`` is the cluster's head, ``"host:6379"``, or ``"auto"`` on one of its
    machines; empty for this machine alone. EngineError where none can be reached, Ray is not
    installed or the GPUs are too few.
    """

    asks_again = False

    def __init__(
        self, factory: Callable[[], Engine], workers: int, address: str = "", gpus: int = 1
    ):
        self._factory, self._workers, self._address = factory, workers, address
        self._actors: list[Any] = []
        ray, self._own = _connect(address)
        there = [int(n["Resources"].get("GPU", 0)) for n in ray.nodes() if n["Alive"]]
        self._gpus = gpus if any(there) else 0
        if any(there) and (room := sum(n // gpus for n in there)) < workers:
            raise EngineError(
                f"{workers} workers with {gpus} GPUs each, on one machine each, are too many for "
                f"this cluster: it has {sum(there)} GPUs and room for {room}"
            )

    def _started(self) -> Any:
        """A new worker, in a process of its own."""
        ray, _ = _connect(self._address)
        # No claim on CPUs: an actor that waits for one that another holds waits for ever.
        claims = {"num_cpus": 0, "num_gpus": self._gpus, "scheduling_strategy": "SPREAD"}
        # Ray neither restarts nor retries: to reach a lost node it would use up the retries.
        alone = {"max_restarts": 0, "max_task_retries": 0}
        kind = ray.remote(max_concurrency=AT_A_TIME, **alone, **claims)(Worker)
        worker = kind.remote(self._factory)
        self._actors.append(worker)
        return worker

    def _dropped(self, worker: Any) -> None:
        """Give up a worker that died, or that cannot be reached."""
        ray, _ = _connect(self._address)
        ray.kill(worker)
        self._actors.remove(worker)

    def _crew(self) -> list[Any]:
        """The workers; started, a process each, where they are not there."""
        if len(self._actors) == 0:
            for _ in range(self._workers):
                self._started()
        return list(self._actors)

    def identity(self) -> dict[str, str]:
        """The one that all its engines have, as a worker says that is there."""
        return self._said_by_one(lambda worker: worker.identity.remote())

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """The one that all its engines have, as a worker says that is there."""
        return self._said_by_one(lambda worker: worker.spelling.remote(sampling))

    def _said_by_one(self, asked: Callable[[Any], Any]) -> Any:
        """What the first worker that does not die says."""
        ray, _ = _connect(self._address)
        for _ in range(1 + RETRIES):
            worker = self._crew()[0]
            try:
                return ray.get(asked(worker))
            except ray.exceptions.RayTaskError as error:  # its text is a traceback
                raise EngineError(str(error.cause)) from error
            except ray.exceptions.RayError as error:
                reason = _one_line(error)
                self._dropped(worker)
                self._started()
        raise EngineError(f"{1 + RETRIES} workers of the Ray cluster died ({reason}); {STORED}")

    def replies(
        self, design: Sequence, todo: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Reply]]]:
        """Each part's place and the replies to its trials, once, in the order in which they come.

        EngineError where an engine gives up, two engines are not the same, a part was lost
        ``RETRIES`` + 1 times on whatever worker, or no worker is there for ``PATIENCE`` seconds.
        """
        all_are_here = False
        first: dict[str, str] = {}
        try:
            for place, engine, replies in self._answered(design, todo, sampling):
                if isinstance(replies, EngineError):
                    raise replies
                first = first or engine
                _same(first, engine)
                yield place, replies
            all_are_here = True
        finally:
            if not all_are_here:
                self.close()  # what is still computed is nobody's

    def _answered(
        self, design: Sequence, todo: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, dict[str, str], list[Reply] | EngineError]]:
        """Hand out shards and take back replies; who dies is replaced and its shards go on."""
        ray, _ = _connect(self._address)
        shared = ray.put(design)
        shards = _Shards(len(todo))
        starting = {worker.ready.remote(): worker for worker in self._crew()}
        there: list[Any] = []
        asked: dict[Any, tuple[Any, int]] = {}  # a call: its worker, its shard's place
        answers = 0
        failed_starts = 0
        reason = ""  # why the latest start failed

        while answers < len(todo):
            for worker in _emptiest_first(there, asked):
                held = _held(asked, worker)
                place = shards.take(worker, held, alone=len(there) == 1)
                if place is not None:
                    call = worker.answer.remote(shared, sampling, todo[place])
                    asked[call] = (worker, place)

            waiting = [*asked, *starting]
            ready, _ = ray.wait(waiting, timeout=PATIENCE) if waiting else ([], [])
            if not waiting and len(there) == 0:
                raise EngineError(
                    f"{failed_starts} workers of the Ray cluster did not start ({reason}); {STORED}"
                )
            if len(ready) == 0:
                if len(there) == 0:
                    raise EngineError(
                        f"no worker of the Ray cluster was there for {PATIENCE:g} s; {STORED}"
                    )
                continue
            call = ready[0]

            if call in starting:
                worker = starting.pop(call)
                try:
                    ray.get(call)
                    there.append(worker)
                except ray.exceptions.RayError as error:
                    self._dropped(worker)
                    failed_starts += 1
                    reason = _one_line(error)
                    if failed_starts <= RETRIES * self._workers:
                        worker = self._started()
                        starting[worker.ready.remote()] = worker
                continue

            worker, place = asked.pop(call)
            try:
                engine, replies = ray.get(call)
            except ray.exceptions.RayError as error:
                shards.lose(place, worker)
                if shards.losses[place] > RETRIES:
                    raise _lost(error) from error
                broke = isinstance(error, ray.exceptions.RayTaskError)  # an engine, in its worker
                if worker in there and not broke:
                    there.remove(worker)
                    self._dropped(worker)
                    worker = self._started()
                    starting[worker.ready.remote()] = worker
                continue
            answers += 1
            yield place, engine, replies

    def close(self) -> None:
        """End the workers; they are started anew when something is asked again.

        So does a Ray that began here: the end of a notebook would kill it, and say so at length.
        """
        if self._actors:
            ray, _ = _connect(self._address)
            while self._actors:
                ray.kill(self._actors.pop())
            if self._own:
                ray.shutdown()


def _held(asked: dict[Any, tuple[Any, int]], worker: Any) -> list[int]:
    """The places of the shards that a worker has."""
    return [place for other, place in asked.values() if other is worker]


def _emptiest_first(there: Sequence[Any], asked: dict[Any, tuple[Any, int]]) -> list[Any]:
    """Each worker as often as it takes shards, in rounds, so that all have one before any has two.

    Who has least comes first.
    """
    workers = sorted(there, key=lambda worker: len(_held(asked, worker)))
    return workers * AT_A_TIME


def _same(first: dict[str, str], engine: dict[str, str]) -> None:
    """Raise an EngineError where two engines are not the same."""
    for name in engine.keys() | first.keys():
        one = first.get(name)
        other = engine.get(name)
        if one != other:
            raise EngineError(
                f"the workers' engines differ: {name} is {one!r} with one and "
                f"{other!r} with another; give all machines the same software and model"
            )


def _lost(error: Exception) -> EngineError:
    """The sentence on a shard that was lost each time that it was asked."""
    cause = getattr(error, "cause", None)
    reason = error if cause is None else f"{type(cause).__name__}: {cause}"
    return EngineError(f"a shard was lost {1 + RETRIES} times ({_one_line(reason)}); {STORED}")


def _one_line(text: object) -> str:
    return str(text).strip().split("\n")[0].rstrip(".")


def _connect(address: str) -> tuple[ModuleType, bool]:
    """Ray, connected, and whether it was not before; a connection that is there is used."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at the import
    logging.getLogger("ray.widgets").setLevel("ERROR")  # it misses a package that nothing needs
    try:
        import ray
    except ImportError as error:
        raise EngineError(
            "ENGINE_WORKERS and RAY_ADDRESS need Ray, which is not installed: "
            ".venv/bin/uv pip install -e '.[ray]'"
        ) from error
    if ray.is_initialized():
        return ray, False
    try:
        host, _, port = address.split("://")[-1].rpartition(":")
        if host:  # Ray itself would try for five minutes
            socket.create_connection((host, int(port)), 10).close()
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        raise EngineError(
            f"no Ray cluster can be reached at RAY_ADDRESS={address!r} ({_one_line(error)}); start "
            "one with .venv/bin/ray start --head --port=6379, and where it asks for a token export "
            "RAY_AUTH_MODE=token on every machine"
            if address
            else f"Ray cannot start on this machine ({_one_line(error)})"
        ) from error
    return ray, True
