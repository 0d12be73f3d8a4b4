"""From design to responses: ask an engine what a store does not hold yet."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from ingroup.design import Design
from ingroup.inference.ahead import complete, prepare
from ingroup.inference.cluster import Cluster
from ingroup.inference.engine import FAILED, Engine, Reply, Sampling
from ingroup.inference.store import Store, parts

SHARD_SIZE = 4096
TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens")


def pinned(design: Design, sampling: Sampling, shard_size: int = SHARD_SIZE) -> dict[str, Any]:
    """What a store's manifest holds beside the engine's identity."""
    asked = {f"sampling_{name}": value for name, value in sampling.identity().items()}
    return asked | {"prompts": design.fingerprint, "trials": len(design), "shard_size": shard_size}


def open_store(
    folder: Path, design: Design, engine: Engine, sampling: Sampling, shard_size: int = SHARD_SIZE
) -> Store:
    """The store of one design in ``folder``; its manifest pins all that can change a response."""
    return Store(folder, engine.identity() | pinned(design, sampling, shard_size))


def fill(design: Design, engine: Engine, store: Store, sampling: Sampling, title: str = "") -> None:
    """Answer every trial of a design that the store does not hold, shard by shard.

    The store, from :func:`open_store`, is held alone while anything is asked. Trials whose call
    failed in an earlier run are asked again where the engine says that this may help. Standard
    error says how many calls failed and why, behind ``title``, as the progress bar. EngineError
    where the engine gives up (the store keeps what it has); StoreError where another run is writing
    to this store, or the disk is full or read-only.
    """
    missing, failed, damaged = store.state()
    if missing or damaged or store.has_journal or (failed and engine.asks_again):
        for path in damaged:
            print(f"{path} was damaged: it is moved aside and asked again", file=sys.stderr)
        with store.writing() as (missing, failed):
            new = [range(*store.bounds(shard)) for shard in missing]
            starts = range(0, len(failed), store.shard_size) if engine.asks_again else ()
            again = [failed[start : start + store.shard_size] for start in starts]
            done = store.trials - sum(map(len, [*new, *again]))
            there = done + len(store.journal().kept)
            with tqdm(
                total=store.trials, initial=there, desc=title, leave=False,
                bar_format="{desc} {n:,} of {total:,} {bar:20} {remaining} left, {rate_noinv_fmt}",
                unit=" prompts",
            ) as progress:  # fmt: skip
                if isinstance(engine, Cluster):
                    ask = engine.replies
                elif hasattr(engine, "answer_each"):
                    ask = partial(_each, engine, store, progress)
                else:
                    ask = partial(_ahead, engine)
                for place, replies in ask(design, [*new, *again], sampling):
                    if place < len(new):
                        store.write(missing[place], replies)
                    else:
                        store.write_again(again[place - len(new)], replies)
                    done += len(replies)
                    progress.update(done - progress.n)  # some count each reply themselves
    for sentence in notes(parts(store, columns=["error", "model"]), store.manifest.get("model")):
        print(f"{title}: {sentence}" if title else sentence, file=sys.stderr)


def _ahead(
    engine: Engine, design: Design, todo: Sequence[Sequence[int]], sampling: Sampling
) -> Iterator[tuple[int, list[Reply]]]:
    """While the engine computes a part, a thread makes the prompts of the next."""
    with ThreadPoolExecutor(1) as thread:
        parts = iter([*todo, ()])
        made = thread.submit(prepare, engine, design, next(parts))
        for place, after in enumerate(parts):
            prompts = made.result()
            made = thread.submit(prepare, engine, design, after)
            yield place, complete(engine, prompts, sampling)


def _each(
    engine: Engine, store: Store, progress: tqdm, design: Design, todo: Sequence[Sequence[int]],
    sampling: Sampling,
) -> Iterator[tuple[int, list[Reply]]]:  # fmt: skip
    """Each reply is kept as it comes, and nothing that is kept is asked again."""
    journal = store.journal()
    for place, numbers in enumerate(todo):
        rest = [number for number in numbers if number not in journal.kept]

        def keep(index: int, reply: Reply, rest: Sequence[int] = rest) -> None:
            journal.add(rest[index], reply)
            progress.update()

        asked = engine.answer_each([design[n].messages for n in rest], sampling, keep)
        found = journal.kept | dict(zip(rest, asked, strict=True))
        yield place, [found[number] for number in numbers]
        journal.drop(numbers)  # whoever took them has written them
    journal.drop(list(journal.kept))  # what a kill left of parts that were written


def notes(responses: Iterable[pd.DataFrame], model: str | None) -> list[str]:
    """Sentences: how many calls failed, and how many replies name another model than was asked.

    Each with its three most frequent reasons or names; none for what did not happen.
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


def usage(responses: pd.DataFrame, price_in: float, price_out: float, model: str) -> pd.DataFrame:
    """One row: ``prompts``, their ``TOKENS``, ``failed`` calls and ``cost`` of stored responses.

    ``another_model`` are replies that name another than ``model``. ``cost`` = (prompt_tokens
    price_in + output_tokens price_out) / 10^6, with prices per million tokens. It covers all runs
    that filled the store, is too much where cached tokens are cheaper, and leaves out the calls
    that broke off or failed before others took their place.
    """
    tokens = {name: int(responses[name].sum()) for name in TOKENS}
    cost = (tokens["prompt_tokens"] * price_in + tokens["output_tokens"] * price_out) / 1e6
    failed = int((responses.finish_reason == FAILED).sum())
    other = int((~responses.model.isin(["", model])).sum())
    counts = {"prompts": len(responses), **tokens, "failed": failed, "another_model": other}
    return pd.DataFrame([counts | {"cost": cost}])
