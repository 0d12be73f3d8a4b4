"""From design to responses: ask an engine what a store does not hold yet."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from ingroup.design import Design, Message
from ingroup.inference.ahead import complete, prepare
from ingroup.inference.cluster import Cluster
from ingroup.inference.cost import Budget, Prices
from ingroup.inference.engine import FAILED, Engine, Reply, Sampling
from ingroup.inference.ledger import Asked
from ingroup.inference.shards import Journal
from ingroup.inference.store import BATCHES, JOURNAL, SPELLING, Store, parts, read_manifest
from ingroup.models import checkpoint, same
from ingroup.tables import shown

SHARD_SIZE = 4096
TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")


def pinned(design: Design, sampling: Sampling, shard_size: int = SHARD_SIZE) -> dict[str, Any]:
    """What a store's manifest holds beside the engine's identity and `Design.chats_digest`."""
    asked = {f"sampling_{name}": value for name, value in sampling.identity().items()}
    return asked | {"prompts": design.fingerprint, "trials": len(design), "shard_size": shard_size}


def open_store(
    folder: Path, design: Design, engine: Engine, sampling: Sampling, shard_size: int = SHARD_SIZE,
    budget: Budget | None = None,
) -> Store:  # fmt: skip
    """The store of one design in ``folder``; its manifest pins all that can change a response.

    An engine that has to learn which arguments its model takes is given the manifest that is there,
    and sends what was sent before; for a new store it asks the design's first chat. That reply is
    kept at once, and paid from the ``budget``. LimitReached where that does not allow one call.
    """
    first = None
    file = folder / "manifest.json"
    has_answers = any(folder.glob("part-*.parquet"))
    has_calls = (folder / JOURNAL).exists() or (folder / BATCHES).exists()
    goes_on = file.exists() and (has_answers or has_calls)
    if goes_on:
        before = read_manifest(file)
        engine.recall(before, sampling)
    else:
        if budget is not None and engine.costs:  # it may make a call
            budget.affordable([design[0].messages], sampling)
        first = engine.prepare(design[0].messages, sampling)

    manifest = engine.identity() | pinned(design, sampling, shard_size)
    spelling = engine.spelling(sampling)
    if spelling and not (goes_on and SPELLING not in before):  # an older store has no steps
        manifest[SPELLING] = spelling
    manifest["chats"] = design.chats_digest
    store = Store(folder, manifest, sampling.max_tokens)
    if first is not None:
        with store.writing():
            store.journal().add(0, first)
        if budget is not None:
            budget.pay(first, design[0].messages, sampling)
    return store


def fill(
    design: Design, engine: Engine, store: Store, sampling: Sampling, title: str = "",
    budget: Budget | None = None,
) -> None:  # fmt: skip
    """Answer every trial of a design that the store does not hold, shard by shard.

    The store, from :func:`open_store`, is held alone while anything is asked. Trials whose call
    failed in an earlier run are asked again where the engine says that this may help; replies that
    were cut are asked again where the sampling now allows more tokens. Standard
    error says how many calls failed and why, behind ``title``, as the progress bar. EngineError
    where the engine gives up (the store keeps what it has), its subclass LimitReached where a
    further call to a server could pass the limit of the ``budget``; StoreError where another run is
    writing to this store, or the disk is full or read-only.
    """
    budget = budget or Budget()
    state = store.state()
    repeats = state.cut or (state.failed and engine.asks_again)
    if state.missing or state.damaged or store.has_journal or repeats:
        for path in state.damaged:
            print(f"{path} was damaged: it is moved aside and asked again", file=sys.stderr)
        with store.writing() as state:
            missing = state.missing
            new = [range(*store.bounds(shard)) for shard in missing]
            failed = state.failed if engine.asks_again else []
            repeated = sorted([*failed, *state.cut])
            starts = range(0, len(repeated), store.shard_size)
            again = [repeated[start : start + store.shard_size] for start in starts]
            done = store.trials - sum(map(len, [*new, *again]))
            there = done + len(store.journal().kept)
            with tqdm(
                total=store.trials, initial=there, desc=title, leave=False,
                bar_format="{desc} {n:,} of {total:,} {bar:20} {remaining} left, {rate_noinv_fmt}",
                unit=" prompts",
            ) as progress:  # fmt: skip
                if isinstance(engine, Cluster):
                    ask = engine.replies
                elif engine.keeps_each:
                    ask = partial(_each, engine, store, progress, budget)
                else:
                    ask = partial(_ahead, engine)
                for place, replies in ask(design, [*new, *again], sampling):
                    if place < len(new):
                        store.write(missing[place], replies)
                    else:
                        store.write_again(again[place - len(new)], replies)
                    done += len(replies)
                    if not engine.keeps_each:  # else each was counted as it came
                        for reply in replies:
                            budget.count(reply)
                    progress.update(done - progress.n)  # some count each reply themselves
    for sentence in notes(parts(store, columns=["error", "model"]), store.manifest.get("model")):
        print(shown(f"{title}: {sentence}" if title else sentence), file=sys.stderr)


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
    engine: Engine, store: Store, progress: tqdm, budget: Budget, design: Design,
    todo: Sequence[Sequence[int]], sampling: Sampling,
) -> Iterator[tuple[int, list[Reply]]]:  # fmt: skip
    """Each reply is kept as it comes, and nothing that is kept or in a batch is asked again."""
    journal = store.journal()
    ledger = store.ledger()
    ledger.drop(journal.kept)  # a kill came between the two
    engine.find_batches(ledger)
    for place, numbers in enumerate(todo):
        found = dict(journal.kept)
        rest = [number for number in numbers if number not in found]

        # What stands in a batch is paid, so the limit does not count: it is read before the rest.
        # Calls in flight count at their most: as many are asked at once as the limit then allows.
        while rest:
            asked = ledger.covered(rest)
            if not asked:
                asked = rest
                if engine.costs:
                    chats = [design[number].messages for number in rest]
                    asked = rest[: budget.affordable(chats, sampling, engine.batch)]
            chats = [design[number].messages for number in asked]
            pay = partial(_pay, engine, budget, sampling)
            keep = partial(_keep, journal, progress, pay, asked, chats)
            replies = engine.answer_each(chats, sampling, keep, Asked(ledger, asked))
            journal.sync()
            ledger.drop(asked)
            found |= dict(zip(asked, replies, strict=True))
            rest = [number for number in rest if number not in found]

        yield place, [found[number] for number in numbers]
        journal.drop(numbers)  # whoever took them has written them
    journal.drop(list(journal.kept))  # what a kill left of parts that were written
    ledger.clear()


def _keep(
    journal: Journal, progress: tqdm, pay: Callable[[Reply, Sequence[Message]], None],
    asked: Sequence[int], chats: Sequence[Sequence[Message]], place: int, reply: Reply,
) -> None:  # fmt: skip
    """Keep the reply to the chat at a place, and pay for it."""
    journal.add(asked[place], reply)
    pay(reply, chats[place])
    progress.update()


def _pay(
    engine: Engine, budget: Budget, sampling: Sampling, reply: Reply, chat: Sequence[Message]
) -> None:
    """Count the tokens of a reply, and what it cost where the engine costs money."""
    if engine.costs:
        budget.pay(reply, chat, sampling)
    else:
        budget.count(reply)


def _other_models(responses: pd.DataFrame, model: str | None) -> dict[str, int]:
    """How many replies name each model that is another than was asked."""
    named = responses.model.value_counts(sort=False)
    named = named[(named > 0) & (named.index != "")]
    return {str(name): int(n) for name, n in named.items() if not same(model or "", str(name))}


def notes(responses: Iterable[pd.DataFrame], model: str | None) -> list[str]:
    """Sentences: how many calls failed, and how many replies name another model than was asked.

    Each with its three most frequent reasons or names; none for what did not happen. One sentence
    more names each checkpoint that served an alias and is another than the paper's.
    """
    prompts, errors, models = 0, Counter(), Counter()
    served = set()
    for part in responses:
        prompts += len(part)
        errors.update(part.error[part.finish_reason == FAILED].astype(str))
        models.update(_other_models(part, model))
        served.update(part.model.astype(str).unique())
    found = []
    for counts, what in ((errors, "prompts failed"), (models, "replies name another model")):
        most = [f"{count:,} x {reason}" for reason, count in counts.most_common(3)]
        others = counts.total() - sum(count for _, count in counts.most_common(3))
        most += [f"{others:,} x something else"] if others else []
        if counts:
            found.append(f"{counts.total():,} of {prompts:,} {what} ({'; '.join(most)})")

    # Where the name that was asked is another checkpoint itself, the tables say so.
    if not checkpoint(model or ""):
        for name in sorted(served - models.keys()):
            sentence = checkpoint(name)
            if sentence:
                found.append(sentence)
    return found


def usage(responses: pd.DataFrame, price_in: float, price_out: float, model: str) -> pd.DataFrame:
    """One row: ``prompts``, their ``TOKENS``, ``failed`` calls and ``cost`` of stored responses.

    ``reasoning_tokens`` are part of ``output_tokens`` (0 for stores that have no such column);
    ``another_model`` are replies that name another than ``model``. ``cost`` = sum over replies of
    (prompt_tokens price_in + output_tokens price_out) price_share / 10^6, with prices per million
    tokens; the share is 1 where there is no such column. It covers all runs that filled the store,
    is too much where cached tokens are cheaper, and leaves out the calls that broke off or failed
    before others took their place.
    """
    tokens = dict.fromkeys(TOKENS, 0)
    for name in responses.columns.intersection(TOKENS):
        tokens[name] = int(responses[name].sum())

    share = responses.get("price_share", 1.0)
    prompt_tokens = (responses.prompt_tokens * share).sum()
    output_tokens = (responses.output_tokens * share).sum()
    cost = Prices(price_in, price_out).cost(prompt_tokens, output_tokens)
    failed = int((responses.finish_reason == FAILED).sum())
    other = sum(_other_models(responses, model).values())
    counts = {"prompts": len(responses), **tokens, "failed": failed, "another_model": other}
    return pd.DataFrame([counts | {"cost": cost}])
