"""From design to responses: ask an engine what a store does not hold yet."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from ingroup.design import Design
from ingroup.inference.cluster import Cluster
from ingroup.inference.engine import FAILED, Engine, LocalEngine, Reply, Sampling, Server
from ingroup.inference.journal import Journal
from ingroup.inference.store import Store, parts

SHARD_SIZE = 4096
TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")


def manifest(
    design: Design, engine: Engine, sampling: Sampling, shard_size: int = SHARD_SIZE
) -> dict[str, Any]:
    """Everything that can change a response, as the store pins it."""
    return {
        **engine.identity(),
        **{f"sampling_{name}": value for name, value in sampling.identity().items()},
        "prompts": design.fingerprint,
        "trials": len(design),
        "shard_size": shard_size,
    }


def open_store(
    folder: Path, design: Design, engine: Engine, sampling: Sampling, shard_size: int = SHARD_SIZE
) -> Store:
    """The store of one design in ``folder``, refused where it holds answers to another one."""
    return Store(folder, manifest(design, engine, sampling, shard_size))


def fill(design: Design, engine: Engine, store: Store, sampling: Sampling, title: str = "") -> None:
    """Answer every trial of a design that the store does not hold, shard by shard.

    Trials whose call failed in an earlier run are asked again, many to a batch, where the engine
    says that this may help. A store that lacks nothing is only read. If calls failed, a line on
    standard error says how many and why. A :class:`ingroup.inference.cluster.Cluster` asks many
    engines at once; the shards are written here, in the order in which they come.

    The store is from :func:`open_store` and held alone while anything is asked; ``title`` stands
    before the progress bar.

    Raises
    ------
    EngineError
        Where the engine gives up; the store keeps what it has.
    StoreError
        Where another run is writing to this store, or the disk is full or read-only.
    """
    lacks = store.state()
    if lacks.missing or lacks.damaged or (lacks.failed and engine.asks_again):
        with store.writing() as lacks:
            todo = [range(*store.bounds(shard)) for shard in lacks.missing]
            again = batches(lacks.failed if engine.asks_again else (), store.shard_size)
            done = store.trials - sum(map(len, [*todo, *again]))
            with tqdm(
                total=store.trials, initial=done, desc=title, unit=" prompts", mininterval=5
            ) as progress:
                journal = store.journal()
                ask = partial(_replies, design, engine=engine, sampling=sampling, journal=journal)
                for place, replies in ask(todo, progress):
                    store.write(lacks.missing[place], replies)
                for place, replies in ask(again, progress):
                    store.write_again(again[place], replies)
                journal.drop(list(journal.kept))  # what a kill left of parts that were written
    for sentence in notes(parts(store, columns=["error", "model"]), store.manifest.get("model")):
        print(f"{title}: {sentence}" if title else sentence, file=sys.stderr)


def generate(
    design: Design, engine: Engine, store: Store, sampling: Sampling, title: str = ""
) -> pd.DataFrame:
    """:func:`fill` a store and read it as one table, which has to fit into memory."""
    fill(design, engine, store, sampling, title)
    return store.read()


def batches(trials: Iterable[int], size: int) -> list[list[int]]:
    """Ascending trials in lists of up to ``size``, those of one shard of that size in one list."""
    found: list[list[int]] = []
    for _, group in groupby(trials, key=lambda trial: trial // size):
        same = list(group)
        if not found or len(found[-1]) + len(same) > size:
            found.append([])
        found[-1] += same
    return found


def _replies(
    design: Design,
    todo: Sequence[Sequence[int]],
    progress: tqdm,
    engine: Engine,
    sampling: Sampling,
    journal: Journal,
) -> Iterator[tuple[int, list[Reply]]]:
    """The place of a part of the trials and its replies, each part once."""
    if isinstance(engine, Server):
        yield from _from_server(design, todo, progress, engine, sampling, journal)
        return
    ask = engine.replies if isinstance(engine, Cluster) else partial(_ahead, engine)
    for place, replies in ask(design, todo, sampling):
        progress.update(len(replies))
        yield place, replies


def _ahead(
    engine: Engine, design: Design, todo: Sequence[Sequence[int]], sampling: Sampling
) -> Iterator[tuple[int, list[Reply]]]:
    """While the engine computes a part, a thread makes the prompts of the next.

    As token ids, where the engine takes them: a GPU does not wait for a chat template.
    """
    local = isinstance(engine, LocalEngine)
    ask = engine.complete if local else engine.answer

    def prepared(numbers: Sequence[int]) -> list:
        chats = [design[number].messages for number in numbers]
        return engine.prompter.batch(chats) if local else chats

    with ThreadPoolExecutor(1) as ahead:
        made = ahead.submit(prepared, todo[0] if todo else ())
        for place in range(len(todo)):
            prompts = made.result()
            made = ahead.submit(prepared, todo[place + 1] if place + 1 < len(todo) else ())
            yield place, ask(prompts, sampling)


def _from_server(
    design: Design,
    todo: Sequence[Sequence[int]],
    progress: tqdm,
    engine: Server,
    sampling: Sampling,
    journal: Journal,
) -> Iterator[tuple[int, list[Reply]]]:
    """Each reply is kept as it comes, and nothing that is kept is asked again."""
    for place, numbers in enumerate(todo):
        rest = [number for number in numbers if number not in journal.kept]
        progress.update(len(numbers) - len(rest))

        def keep(index: int, reply: Reply, rest: Sequence[int] = rest) -> None:
            journal.add(rest[index], reply)
            progress.update()

        asked = engine.answer_each([design[n].messages for n in rest], sampling, keep)
        found = journal.kept | dict(zip(rest, asked, strict=True))
        yield place, [found[number] for number in numbers]
        journal.drop(numbers)  # whoever took them has written them


def notes(responses: Iterable[pd.DataFrame], model: str | None) -> list[str]:
    """Sentences: how many calls failed, and how many replies name another model than was asked.

    Each with its three most frequent reasons or names; without either there is no sentence.
    ``responses`` come in parts, as from :func:`ingroup.inference.store.parts`.
    """
    prompts, errors, models = 0, Counter(), Counter()
    for part in responses:
        prompts += len(part)
        errors.update(part.error[part.finish_reason == FAILED].astype(str))
        models.update(part.model[~part.model.isin(["", model])].astype(str))
    found = []
    for counts, what in ((errors, "prompts failed"), (models, "replies name another model")):
        most = [f"{count:,} x {reason}" for reason, count in counts.most_common(3)]
        others = counts.total() - sum(count for _, count in counts.most_common(3))
        most += [f"{others:,} x something else"] if others else []
        if counts:
            found.append(f"{counts.total():,} of {prompts:,} {what} ({'; '.join(most)})")
    return found


def usage(
    responses: pd.DataFrame, price_in: float = 0.0, price_out: float = 0.0, model: str = ""
) -> pd.DataFrame:
    """Tokens of all stored responses, and what they cost.

    ``cost`` = (prompt_tokens price_in + output_tokens price_out) / 10^6. It covers all runs that
    filled the store, is too much where cached tokens are cheaper, and leaves out the calls that
    broke off or failed before others took their place.

    One row: ``prompts``, ``prompt_tokens``, ``cached_tokens``, ``output_tokens``, ``failed``
    (calls), ``another_model`` (replies that name another than ``model``) and ``cost``.
    ``responses`` are those of :func:`ingroup.inference.store.parts`; prices
    are per million tokens of prompt and of reply.
    """
    tokens = {name: int(responses[name].sum()) for name in TOKENS}
    cost = (tokens["prompt_tokens"] * price_in + tokens["output_tokens"] * price_out) / 1e6
    failed = int((responses.finish_reason == FAILED).sum())
    other = int((~responses.model.isin(["", model])).sum()) if model else 0
    counts = {"prompts": len(responses), **tokens, "failed": failed, "another_model": other}
    return pd.DataFrame([counts | {"cost": cost}])
