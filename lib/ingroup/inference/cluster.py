"""Many engines on a Ray cluster, used as one engine. A worker that dies is replaced.

A worker gets the design once and then the numbers of a shard's trials, makes the prompts itself and
sends back the replies. The process that asked writes them. So the machines need no common disk, and
a store has one writer. Every machine needs this project in the same version, and the model.
"""

import logging
import os
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ingroup.inference.engine import Engine, EngineError, Reply, Sampling
from ingroup.inference.preparation import complete, prepare

RETRIES = 3  # of one shard, when its worker dies or its engine breaks
SHARDS_PER_WORKER = 2  # shards that a worker has: one is computed, the prompts of the next are made
WORKER_TIMEOUT = 300.0  # seconds without any worker; a node takes minutes to start again
GO_ON_ADVICE = "run again, which keeps all stored answers and asks the rest"


class Worker:
    """A Ray actor that holds one engine, made when it is first needed.

    It takes two shards at a time: the prompts of one are made while the engine computes the other.

    Parameters
    ----------
    factory : callable
        Makes the engine.
    """

    def __init__(self, factory: Callable[[], Engine]):
        self.factory = factory
        self.engine: Engine | None = None
        # Whoever holds this asks the engine, which computes one shard at a time.
        self.engine_lock = threading.Lock()
        # Whoever holds this makes or drops the engine: two shards may need it at the same time.
        self.making_lock = threading.Lock()

    def ready(self) -> None:
        """Return as soon as the worker's process runs."""

    def answer(self, design: Sequence, sampling: Sampling, numbers: Sequence[int]):
        """Answer the trials of a shard.

        Ray would retry a shard whose EngineError was raised, so the error is returned.

        Parameters
        ----------
        design : sequence of Trial
            All trials of the job.
        sampling : Sampling
            How replies are drawn.
        numbers : sequence of int
            The shard's trials, by their numbers in the design.

        Returns
        -------
        tuple
            The engine's identity and the list of replies, or an empty dict and an EngineError.
        """
        try:
            # The prompts are made without the turn, while another shard is computed.
            prompts = prepare(self._ready_engine(), design, numbers)
            with self.engine_lock:
                # A shard before this one may have broken the engine that made the prompts.
                engine = self._ready_engine()
                replies = self._complete(engine, prompts, sampling)
                return engine.identity(), replies
        except EngineError as error:
            return {}, error

    def identity(self) -> dict[str, str]:
        """Return the identity of the engine.

        Returns
        -------
        dict of str
            The engine's identity.
        """
        return self._ready_engine().identity()

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """Return the engine's spelling of the choices.

        Parameters
        ----------
        sampling : Sampling
            The sampling with the choices and the answer prefixes.

        Returns
        -------
        dict
            By answer prefix, the token ids of each choice in the order of the choices. Empty
            without choices.
        """
        return self._ready_engine().spelling(sampling)

    def _ready_engine(self) -> Engine:
        """Return the engine. Make it first if the worker has none."""
        with self.making_lock:
            if self.engine is None:
                self.engine = self.factory()
            return self.engine

    def _complete(self, engine: Engine, prompts: Sequence, sampling: Sampling) -> list[Reply]:
        """Return the engine's replies. Drop the engine if it breaks."""
        try:
            return complete(engine, prompts, sampling)
        except EngineError:
            raise
        except Exception:
            with self.making_lock:
                # The engine broke in a state that nobody knows, so the next shard gets a new one.
                self.engine = None
            raise


class _Shards:
    """The shards that no worker has, by their index, and how often each was lost.

    A lost shard is handed out before the others, preferably to another worker. It is that worker's
    only shard: if this worker dies too, no second shard is blamed.
    """

    def __init__(self, number: int):
        self.fresh = deque(range(number))
        self.lost: deque[int] = deque()
        self.losses: Counter[int] = Counter()
        self._last: dict[int, Any] = {}

    def lose(self, shard: int, worker: Any) -> None:
        """Take a shard back from a worker that died, or whose engine broke."""
        self.losses[shard] += 1
        self._last[shard] = worker
        self.lost.appendleft(shard)

    def take(self, worker: Any, held: Sequence[int], alone: bool) -> int | None:
        """Return the next shard for a worker that holds others, or None for no shard now.

        A worker that is ``alone`` may get back a shard that it lost itself.
        """
        # A shard that was lost once may be what kills workers.
        suspects = [shard for shard in held if self.losses[shard] > 0]
        if len(held) == SHARDS_PER_WORKER or len(suspects) > 0:
            return None

        for shard in self.lost:
            # Another worker tells whether the shard or the machine is to blame.
            if alone or self._last[shard] is not worker:
                if len(held) > 0:
                    # This worker shall first be empty, so that only the suspect is lost if it dies.
                    return None
                self.lost.remove(shard)
                return shard

        if len(self.fresh) > 0:
            return self.fresh.popleft()
        return None


class Cluster(Engine):
    """Engines of one kind on a Ray cluster. Trials reach them through `replies` alone.

    Parameters
    ----------
    factory : callable
        Makes a worker's engine, in the worker's process.
    workers : int
        How many workers there are.
    address : str
        The cluster's head, ``"host:6379"``, or ``"auto"`` on one of its machines, empty for this
        machine alone.
    gpus : int
        GPUs of each worker, on one machine. A cluster without GPUs gives them none.

    Raises
    ------
    EngineError
        No cluster can be reached, Ray is not installed, or the GPUs are too few.
    """

    asks_again = False

    def __init__(
        self, factory: Callable[[], Engine], workers: int, address: str = "", gpus: int = 1
    ):
        self._factory = factory
        self._workers = workers
        self._address = address
        self._actors: list[Any] = []
        ray, self._own = _connect(address)

        alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus_of_nodes = [int(resources.get("GPU", 0)) for resources in alive]
        total = sum(gpus_of_nodes)
        self._gpus = gpus if total > 0 else 0
        # On a cluster without GPUs any number of workers fits.
        if total == 0:
            return
        # A worker's GPUs are on one machine, so those left over on each machine do not count.
        room = sum(n_gpus // gpus for n_gpus in gpus_of_nodes)
        if room < workers:
            raise EngineError(
                f"{workers} workers with {gpus} GPUs each, on one machine each, are too many for "
                f"this cluster: it has {total} GPUs and room for {room}"
            )

    def _start_worker(self) -> Any:
        """Start a new worker, in a process of its own."""
        ray, _ = _connect(self._address)
        as_actor = ray.remote(
            max_concurrency=SHARDS_PER_WORKER,
            # Ray neither restarts nor retries by itself: it would spend all tries on a lost node.
            max_restarts=0,
            max_task_retries=0,
            # No claim on CPUs: an actor that waits for one that another holds waits for ever.
            num_cpus=0,
            num_gpus=self._gpus,
            scheduling_strategy="SPREAD",
        )

        worker = as_actor(Worker).remote(self._factory)
        self._actors.append(worker)
        return worker

    def _drop(self, worker: Any) -> None:
        """Give up a worker that died or that cannot start."""
        ray, _ = _connect(self._address)
        ray.kill(worker)
        self._actors.remove(worker)

    def _running_workers(self) -> list[Any]:
        """List the workers. Start them first if none runs."""
        if len(self._actors) == 0:
            for _ in range(self._workers):
                self._start_worker()
        return list(self._actors)

    def identity(self) -> dict[str, str]:
        """Return the identity that all engines share, as one worker states it.

        Returns
        -------
        dict of str
            The identity.

        Raises
        ------
        EngineError
            No worker can be started, or the engine cannot.
        """
        return self._first_answer(lambda worker: worker.identity.remote())

    def spelling(self, sampling: Sampling) -> dict[str, list[list[int]]]:
        """Return the spelling that all engines share, as one worker states it.

        Parameters
        ----------
        sampling : Sampling
            The sampling with the choices and the answer prefixes.

        Returns
        -------
        dict
            By answer prefix, the token ids of each choice in the order of the choices. Empty
            without choices.

        Raises
        ------
        EngineError
            As :meth:`identity`.
        """
        return self._first_answer(lambda worker: worker.spelling.remote(sampling))

    def _first_answer(self, ask: Callable[[Any], Any]) -> Any:
        """Return one worker's answer. Replace a worker that dies, up to `RETRIES` times."""
        ray, _ = _connect(self._address)
        # Any worker may answer, since all engines are the same, so one that dies is replaced.
        for _ in range(1 + RETRIES):
            worker = self._running_workers()[0]
            try:
                return ray.get(ask(worker))
            except ray.exceptions.RayTaskError as error:  # its text is a traceback
                raise EngineError(str(error.cause)) from error
            except ray.exceptions.RayError as error:
                # Python deletes `error` at the end of this block, so its words are kept.
                reason = _one_line(error)
                self._drop(worker)
                self._start_worker()
        raise EngineError(
            f"{1 + RETRIES} workers of the Ray cluster died ({reason}); {GO_ON_ADVICE}"
        )

    def replies(
        self, design: Sequence, todo: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, list[Reply]]]:
        """Answer parts of a design, in the order in which their replies come.

        Parameters
        ----------
        design : sequence
            The trials.
        todo : sequence of sequence of int
            The parts: numbers of trials.
        sampling : Sampling
            How replies are drawn.

        Yields
        ------
        int
            The index of a part, each once.
        list of Reply
            The replies to its trials.

        Raises
        ------
        EngineError
            An engine gives up, two engines are not the same, a part was lost ``RETRIES`` + 1 times
            on any workers, or no worker is ready for ``WORKER_TIMEOUT`` seconds.
        """
        is_complete = False
        first: dict[str, str] = {}

        try:
            for part, engine, replies in self._answers(design, todo, sampling):
                # A worker returns this error, since Ray would ask again for one that is raised.
                if isinstance(replies, EngineError):
                    raise replies
                # Two workers with other versions or weights must not answer into one store.
                first = first or engine
                _check_same(first, engine)
                yield part, replies
            is_complete = True
        finally:
            if not is_complete:
                # Nobody takes the replies that are still computed.
                self.close()

    def _answers(
        self, design: Sequence, todo: Sequence[Sequence[int]], sampling: Sampling
    ) -> Iterator[tuple[int, dict[str, str], list[Reply] | EngineError]]:
        """Yield the index, identity and replies of each shard. Replace workers that die."""
        ray, _ = _connect(self._address)
        # The design goes to each machine once, and not along with each shard.
        shared = ray.put(design)
        shards = _Shards(len(todo))
        workers = _Workers()
        for worker in self._running_workers():
            workers.add_starting(worker)

        n_answered = 0
        while n_answered < len(todo):
            # A sole worker gets back what it lost, as no other can take it.
            alone = len(workers.ready) == 1
            # In this order no worker gets a second shard before every worker has one.
            for worker in workers.emptiest_first() * SHARDS_PER_WORKER:
                shard = shards.take(worker, workers.held_by(worker), alone)
                if shard is not None:
                    task = worker.answer.remote(shared, sampling, todo[shard])
                    workers.answering[task] = (worker, shard)

            # Take what happens next: a worker has started, or a shard is answered or lost.
            task = _next_ended(ray, workers)
            # Nothing happened for a while, but there are workers: their shards may take long.
            if task is None:
                continue
            if task in workers.starting:
                self._register(ray, workers, task)
                continue

            worker, shard = workers.answering.pop(task)
            try:
                engine, replies = ray.get(task)
            except ray.exceptions.RayError as error:
                shards.lose(shard, worker)
                if shards.losses[shard] > RETRIES:
                    raise _lost_shard_error(error) from error
                # Where the error is a task's, the engine broke and its worker lives.
                is_dead = not isinstance(error, ray.exceptions.RayTaskError)
                # A worker that dies loses up to `SHARDS_PER_WORKER` shards, and each comes here.
                # Only the first still finds it ready and replaces it.
                if is_dead and worker in workers.ready:
                    workers.ready.remove(worker)
                    self._drop(worker)
                    workers.add_starting(self._start_worker())
                continue
            n_answered += 1
            yield shard, engine, replies

    def _register(self, ray: ModuleType, workers: "_Workers", task: Any) -> None:
        """Register a worker that has started. Replace a worker that failed, up to a bound."""
        worker = workers.starting.pop(task)
        try:
            ray.get(task)
            workers.ready.append(worker)
        except ray.exceptions.RayError as error:
            self._drop(worker)
            workers.failed_starts += 1
            workers.reason = _one_line(error)
            # The bound ends starts that can never succeed, e.g. without the project on the
            # machines.
            if workers.failed_starts <= RETRIES * self._workers:
                workers.add_starting(self._start_worker())

    def close(self) -> None:
        """End the workers. They are started again when something is asked again.

        A Ray that began here ends too: the end of a notebook would kill it, and say so at length.
        """
        if not self._actors:
            return

        ray, _ = _connect(self._address)
        while self._actors:
            ray.kill(self._actors.pop())
        # A cluster that someone else started goes on.
        if self._own:
            ray.shutdown()


@dataclass
class _Workers:
    """State of each worker while `Cluster.replies` runs, with the shards that it holds."""

    # Workers that are not there yet, by the Ray task that returns when they are.
    starting: dict[Any, Any] = field(default_factory=dict)
    ready: list[Any] = field(default_factory=list)
    # Workers and the shards that they answer, by the Ray task that returns the replies.
    answering: dict[Any, tuple[Any, int]] = field(default_factory=dict)
    failed_starts: int = 0
    reason: str = ""  # why the latest start failed

    def add_starting(self, worker: Any) -> None:
        """Add a worker that is starting."""
        self.starting[worker.ready.remote()] = worker

    def held_by(self, worker: Any) -> list[int]:
        """List the shards that a worker holds."""
        return [shard for other, shard in self.answering.values() if other is worker]

    def emptiest_first(self) -> list[Any]:
        """List the workers that are ready, from the fewest to the most shards held."""
        return sorted(self.ready, key=lambda worker: len(self.held_by(worker)))


def _next_ended(ray: ModuleType, workers: _Workers) -> Any:
    """Return the next task that has ended, None if none ended within `WORKER_TIMEOUT`.

    Raise an EngineError instead of None if no worker is ready.
    """
    waiting = [*workers.answering, *workers.starting]
    ended = []
    if waiting:
        ended, _ = ray.wait(waiting, timeout=WORKER_TIMEOUT)
    if ended:
        return ended[0]

    if workers.ready:
        return None
    if waiting:
        raise EngineError(
            f"no worker of the Ray cluster was there for {WORKER_TIMEOUT:g} s; {GO_ON_ADVICE}"
        )
    raise EngineError(
        f"{workers.failed_starts} workers of the Ray cluster did not start "
        f"({workers.reason}); {GO_ON_ADVICE}"
    )


def _check_same(first: dict[str, str], engine: dict[str, str]) -> None:
    """Raise an EngineError if two engines have different identities."""
    for name in engine.keys() | first.keys():
        expected = first.get(name)
        value = engine.get(name)
        if value != expected:
            raise EngineError(
                f"the workers' engines differ: {name} is {expected!r} with one and "
                f"{value!r} with another; give all machines the same software and model"
            )


def _lost_shard_error(error: Exception) -> EngineError:
    """Make the error of a shard that was lost in each attempt."""
    # A task's error has as its cause what the worker raised; its own text is a traceback.
    cause = getattr(error, "cause", None)
    text = str(error) if cause is None else f"{type(cause).__name__}: {cause}"
    reason = _one_line(text)
    return EngineError(f"a shard was lost {1 + RETRIES} times ({reason}); {GO_ON_ADVICE}")


def _one_line(text: object) -> str:
    """Return the first line of a text or an error, without its full stop."""
    first_line, *_ = str(text).strip().split("\n")
    return first_line.rstrip(".")


def _connect(address: str) -> tuple[ModuleType, bool]:
    """Import Ray and connect it. Return the module, and whether this call made the connection."""
    # Ray reads this when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray would miss ipywidgets aloud, which nothing here needs.
    logging.getLogger("ray.widgets").setLevel("ERROR")
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
        # Only an address with a port can be tried; "auto" and "" have none.
        host, _, port = address.split("://")[-1].rpartition(":")
        # Without this test Ray itself would try for five minutes.
        if host:
            socket.create_connection((host, int(port)), 10).close()
        # The workers' output stays out of the notebook.
        ray.init(address or "local", log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        if not address:
            message = f"Ray cannot start on this machine ({_one_line(error)})"
            raise EngineError(message) from error
        raise EngineError(
            f"no Ray cluster can be reached at RAY_ADDRESS={address!r} ({_one_line(error)}); start "
            "one with .venv/bin/ray start --head --port=6379, and where it asks for a token export "
            "RAY_AUTH_MODE=token on every machine"
        ) from error
    return ray, True
