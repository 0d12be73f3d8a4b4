"""Many copies of an engine on the GPUs and machines of a Ray cluster, through Ray Data.

Ray Data starts the workers, hands out the trials, and starts a worker that dies anew. The process
that asks is the only one that writes to the store.
"""

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ingroup.inference.answers import Engine, EngineError, Sampling
from ingroup.inference.design import Design
from ingroup.inference.generate import Answers, Ask, Trials


class Worker:
    """One copy of an engine, in a process of Ray Data.

    Parameters
    ----------
    make_engine : callable
        Makes the engine.
    design : Design
        All trials.
    sampling : Sampling
        How they are asked.
    pieces : sequence of sequence of int
        The trials of each piece.
    expected : dict
        The identity of the engine in the process that asks.
    """

    def __init__(
        self,
        make_engine: Callable[[], Engine],
        design: Design,
        sampling: Sampling,
        pieces: Sequence[Trials],
        expected: dict[str, Any],
    ):
        self.engine = make_engine()
        self.design = design
        self.sampling = sampling
        self.pieces = pieces
        identity = self.engine.identity()
        for name in expected:
            if identity.get(name) != expected[name]:
                raise EngineError(
                    f"a worker's {name} is {identity.get(name)!r}, expected {expected[name]!r}: "
                    "give all machines the same software and model"
                )

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list]:
        """Answer one piece, given by its number."""
        number = int(batch["id"][0])
        chats = self.design.chats(self.pieces[number])
        replies = self.engine.answer(chats, self.sampling)
        return {"id": [number], "replies": [pickle.dumps(replies)]}


def ask_on_ray(
    engine: Engine,
    make_engine: Callable[[], Engine],
    workers: int,
    gpus: int = 0,
    address: str = "",
) -> Ask:
    """Make the function that asks copies of an engine on a Ray cluster.

    Parameters
    ----------
    engine : Engine
        The engine in this process, for its identity. It need not load its model.
    make_engine : callable
        Makes the engine in a worker.
    workers : int
        How many workers there are.
    gpus : int
        GPUs of each worker.
    address : str
        The cluster's head ("auto" on one of its machines), "" for this machine alone.

    Returns
    -------
    callable
        The function, as `generate.fill` takes it.
    """
    import ray
    import ray.data

    def ask(design: Design, parts: Iterable[Trials], sampling: Sampling) -> Answers:
        if not ray.is_initialized():
            ray.init(address or "local", log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        pieces = list(parts)

        numbers = ray.data.range(len(pieces), override_num_blocks=len(pieces))
        answered = numbers.map_batches(
            Worker,
            fn_constructor_args=(make_engine, design, sampling, pieces, engine.identity()),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
            # Without a claim on CPUs, workers do not keep Ray Data's own tasks from running.
            num_cpus=0,
            num_gpus=gpus,
        )

        try:
            for row in answered.iter_rows():
                yield pieces[row["id"]], pickle.loads(row["replies"])
        except ray.exceptions.RayError as error:
            reason = str(getattr(error, "cause", None) or error).strip().split("\n")[-1]
            raise EngineError(f"the Ray cluster gave up: {reason}") from error

    return ask
