"""Many engines on a Ray cluster, as one: Ray's own pool, restarts and retries do the work.

A worker gets the design once and then the numbers of a shard's trials, makes the prompts itself and
sends back the replies. Whoever asked writes them: the machines need no common disk, and a store has
one writer. Every machine needs this project in the same version, and the model.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from ingroup.inference.engine import Engine, EngineError, Reply, Sampling

RETRIES = 3  # of one shard, when its worker dies or its engine breaks


class Worker:
    """A Ray actor that holds one engine, made when it is first needed."""

    def __init__(self, factory: Callable[[], Engine]):
        self.factory, self.engine = factory, None

    def answer(self, design: Sequence, sampling: Sampling, place: int, numbers: Sequence[int]):
        """The place, who answered and the replies; an EngineError as a value: not to be retried."""
        try:
            about, chats = self.identity(), [design[number].messages for number in numbers]
            return place, about, self.engine.answer(chats, sampling)
        except EngineError as error:
            return place, {}, error
        except Exception:
            self.engine = None  # in a state that nobody knows
            raise

    def identity(self) -> dict[str, str]:
        """Who would answer."""
        self.engine = self.engine or self.factory()
        return self.engine.identity()


class Cluster:
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

    def _crew(self) -> list[Any]:
        """The workers; started, a process each, where they are not there."""
        ray, _ = _connect(self._address)
        if not self._actors:
            # No claim on CPUs: an actor that waits for one that another holds waits for ever.
            spread = {"num_cpus": 0, "num_gpus": self._gpus, "scheduling_strategy": "SPREAD"}
            worker = ray.remote(max_restarts=-1, max_task_retries=RETRIES, **spread)(Worker)
            self._actors = [worker.remote(self._factory) for _ in range(self._workers)]
        return self._actors

    def identity(self) -> dict[str, str]:
        """The one that all its engines have."""
        first, ray = self._crew()[0], _connect(self._address)[0]
        try:
            return ray.get(first.identity.remote())
        except Exception as error:  # as Ray raises it, its text is a traceback
            raise EngineError(str(getattr(error, "cause", error))) from error

    def replies(
        self, design: Sequence, todo: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Reply]]]:
        """Each part's place and the replies to its trials, once, in the order in which they come.

        EngineError where an engine gives up, two engines are not the same, or a part was lost each
        time that it was asked.
        """
        crew, (ray, _) = self._crew(), _connect(self._address)
        from ray.util import ActorPool

        # Each worker twice: the next part waits there while it computes one.
        pool, shared, first, all_are_here = ActorPool(crew * 2), ray.put(design), None, False

        def ask(worker: Any, part: tuple[int, Sequence[int]]) -> Any:
            return worker.answer.options(retry_exceptions=True).remote(shared, sampling, *part)

        try:
            for place, engine, replies in pool.map_unordered(ask, enumerate(todo)):
                if isinstance(replies, EngineError):
                    raise replies
                first = first or engine
                for name in engine.keys() | first.keys():
                    if (one := first.get(name)) != (other := engine.get(name)):
                        raise EngineError(
                            f"the workers' engines differ: {name} is {one!r} with one and "
                            f"{other!r} with another; give all machines the same software and model"
                        )
                yield place, replies
            all_are_here = True
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            reason = f"{type(cause).__name__}: {cause}" if cause else error
            raise EngineError(
                f"a shard was lost {1 + RETRIES} times ({_one_line(reason)}); answers that are "
                "stored stay, run again to go on behind them"
            ) from error
        finally:
            if not all_are_here:
                self.close()  # what is still computed is nobody's

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
