"""Many engines on a Ray cluster, as one: shards are the unit of work.

Each worker is a Ray actor that holds one engine. It gets the design once and then the numbers of a
shard's trials, makes the prompts itself and sends back the replies. Whoever asked writes them: the
machines need no common disk, a store has one writer, and a shard of replies is a fraction of a
megabyte. Every machine needs this project in the same version, and the model.
"""

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from ingroup.design import Design, Message
from ingroup.inference.backlog import Backlog
from ingroup.inference.engine import Engine, EngineError, Reply, Sampling

RESTARTS = 3  # of one worker, without a finished part in between
TICK = 0.5  # seconds between two looks for stragglers
PATIENCE = 10  # seconds until an address that does not answer is given up


class Worker:
    """Holds one engine; an actor, so its methods run one after another, somewhere else."""

    def start(self, factory: Callable[[], Engine]) -> tuple[dict[str, str], bool]:
        """Make the engine; what it is, and whether it asks failed calls again."""
        self.engine = factory()
        return self.engine.identity(), self.engine.asks_again

    def answer(self, design: Design, numbers: Sequence[int], sampling: Sampling) -> list[Reply]:
        """The replies to some trials of a design."""
        return self.engine.answer([design[number].messages for number in numbers], sampling)


class Cluster:
    """Engines of one kind on a Ray cluster; itself an engine, that holds none.

    The first worker is started when the identity is asked for, the others when there is work for
    them. A worker that dies, or whose engine raises anything but an ``EngineError``, is started
    anew, ``RESTARTS`` times without a finished shard in between; its shard goes to another. See
    :class:`ingroup.inference.backlog.Backlog` for what a worker gets.

    Parameters
    ----------
    factory : callable
        Makes an engine; called in each worker, e.g. a ``functools.partial`` of ``make_engine``.
    workers : int
        How many, at most.
    address : str
        Of the cluster's head, ``"host:6379"``, or ``"auto"`` on one of its machines; empty for
        this machine alone.
    gpus : int
        For each worker, on one machine; without effect where the cluster has none.

    Raises
    ------
    EngineError
        Where Ray is not installed, the address cannot be reached or the GPUs are too few.
    """

    def __init__(
        self, factory: Callable[[], Engine], workers: int, address: str = "", gpus: int = 1
    ):
        self._factory, self._workers = factory, workers
        self._address = address
        _, self._own = _connect(address)
        there = int(self._ray.cluster_resources().get("GPU", 0))
        self._gpus = gpus if there else 0
        if self._room() < workers:
            raise EngineError(
                f"{workers} workers with {gpus} GPUs each need {workers * gpus} GPUs, each "
                f"worker's on one machine; the cluster has {there} and room for {self._room()}"
            )
        self._actors: dict[int, Any] = {}
        self._idle: set[int] = set()
        # What was asked of whom: the worker, and the backlog its part is from, None for a start.
        self._asked: dict[Any, tuple[int, Backlog | None]] = {}
        self._falls: Counter[int] = Counter()
        self._reason = ""
        self._about: tuple[dict[str, str], bool] | None = None

    @property
    def _ray(self) -> Any:
        """Ray, connected anew where :meth:`close` has ended it."""
        return _connect(self._address)[0]

    def _room(self) -> float:
        """For how many workers the cluster has GPUs."""
        if not self._gpus:
            return float("inf")
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(int(resources.get("GPU", 0)) // self._gpus for resources in nodes)

    def identity(self) -> dict[str, str]:
        """The one that all its engines have."""
        return dict(self._first()[0])

    @property
    def asks_again(self) -> bool:
        """As its engines."""
        return self._first()[1]

    def _first(self) -> tuple[dict[str, str], bool]:
        while self._about is None:
            self._hire(1)
            list(self._heard(None))
        return self._about

    def answer(self, conversations: Sequence[Sequence[Message]], sampling: Sampling) -> list[Reply]:
        """One reply a conversation, in the same order; one worker answers them all."""
        trials = [SimpleNamespace(messages=chat) for chat in conversations]
        ((_, replies),) = self.replies(trials, [range(len(trials))], sampling)
        return replies

    def replies(
        self, design: Sequence, parts: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Reply]]]:
        """Each part's place and the replies to its trials, once, in the order in which they come.

        Raises
        ------
        EngineError
            Where an engine gives up, two engines are not the same, or no worker is left.
        """
        backlog, shared, finished = Backlog(len(parts)), self._ray.put(design), []
        while True:
            if not backlog.done:
                self._hire(min(self._workers, len(parts)))
            for number in sorted(self._idle):
                place = backlog.take(number, time.monotonic())
                if place is not None:
                    ask = self._actors[number].answer.remote(shared, parts[place], sampling)
                    self._asked[ask] = number, backlog
                    self._idle.discard(number)
            yield from finished  # after the workers have got something to do
            if backlog.done:
                return
            finished = list(self._heard(backlog))

    def _hire(self, wanted: int) -> None:
        """Start workers that are not there, but for those that fell too often."""
        for number in range(wanted):
            fit = number not in self._actors and self._falls[number] <= RESTARTS
            if fit and len(self._actors) < self._room():
                # Without a claim on CPUs: how many there are is the user's choice, and an actor
                # that waits for a CPU that another holds waits for ever.
                actor = self._ray.remote(Worker).options(
                    num_cpus=0, num_gpus=self._gpus, scheduling_strategy="SPREAD"
                )
                self._actors[number] = actor.remote()
                self._asked[self._actors[number].start.remote(self._factory)] = number, None
        if not self._actors:
            raise EngineError(
                f"the cluster lost its last worker ({self._reason}); answers that are stored "
                "stay, run again to go on behind them"
            )

    def _heard(self, backlog: Backlog | None) -> Iterator[tuple[int, list[Reply]]]:
        """Wait for the next message of a worker, a moment at most; what of it is new."""
        for ask in self._ray.wait(list(self._asked), num_returns=1, timeout=TICK)[0]:
            number, asked = self._asked.pop(ask)
            try:
                found = self._ray.get(ask)
            except EngineError as error:  # as Ray raises it, its text is a traceback
                raise EngineError(str(getattr(error, "cause", error))) from error
            except Exception as error:
                self._lose(number, error)
                if asked is not None:
                    asked.lose(number)
                continue
            self._idle.add(number)
            if asked is None:
                self._welcome(found)
                continue
            self._falls[number] = 0
            place = asked.finish(number, time.monotonic())
            if asked is backlog and place is not None:
                yield place, found

    def _welcome(self, about: tuple[dict[str, str], bool]) -> None:
        """Compare a new engine with the first."""
        self._about = self._about or about
        for name, first in self._about[0].items():
            if (other := about[0].get(name)) != first:
                raise EngineError(
                    f"the workers' engines differ: {name} is {first!r} with one and {other!r} with "
                    "another; give all machines the same software and model"
                )

    def _lose(self, number: int, error: Exception) -> None:
        """A worker is gone, or its engine is in a state that nobody knows."""
        self._ray.kill(self._actors.pop(number))
        self._falls[number] += 1
        cause = getattr(error, "cause", None)
        text = f"{type(cause).__name__}: {cause}" if cause else str(error)
        self._reason = text.strip().split("\n")[0].rstrip(".")

    def close(self) -> None:
        """End the workers; they are started anew when something is asked again.

        A Ray that this cluster started or reached ends as well: left to the end of a notebook it
        would be killed there, and say so at length.
        """
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors, self._asked, self._idle = {}, {}, set()
        if self._own:
            import ray  # an extra; not `self._ray`, which would start what has ended already

            ray.shutdown()


def _connect(address: str) -> tuple[Any, bool]:
    """Ray, connected, and whether it was not before; a connection that is there is used."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at the import
    try:
        import ray
    except ImportError as error:
        raise EngineError(
            "ENGINE_WORKERS and RAY_ADDRESS need Ray, which is not installed: "
            ".venv/bin/uv pip install -e '.[ray]'"
        ) from error
    new = not ray.is_initialized()
    if new:
        try:
            host, _, port = address.split("://")[-1].rpartition(":")
            if host:  # Ray itself would try for five minutes
                socket.create_connection((host, int(port)), PATIENCE).close()
            ray.init(address or "local", log_to_driver=False, logging_level="ERROR")
        except Exception as error:
            reason = str(error).strip().split("\n")[0].rstrip(".")
            raise EngineError(
                f"no Ray cluster can be reached at RAY_ADDRESS={address!r} ({reason}); start one "
                "with .venv/bin/ray start --head --port=6379, and where it asks for a token export "
                "RAY_AUTH_MODE=token on every machine"
                if address
                else f"Ray cannot start on this machine ({reason})"
            ) from error
    return ray, new
