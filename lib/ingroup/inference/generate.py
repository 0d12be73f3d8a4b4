"""The loop from design to responses, which asks an engine for the trials that a store lacks."""

import math
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
from ingroup.inference.cluster import Cluster
from ingroup.inference.cost import Budget, Prices
from ingroup.inference.engine import FAILED, LENGTH, Engine, Reply, Sampling
from ingroup.inference.ledger import LedgerTrials
from ingroup.inference.preparation import complete, prepare
from ingroup.inference.shards import Journal
from ingroup.inference.store import (
    BATCHES,
    JOURNAL,
    SPELLING,
    State,
    Store,
    parts,
    read_manifest,
)
from ingroup.models import checkpoint_caution, is_same_checkpoint
from ingroup.tables import shown

SHARD_SIZE = 4096
TOKENS = ("prompt_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")


def manifest_entries(
    design: Design, sampling: Sampling, shard_size: int = SHARD_SIZE
) -> dict[str, Any]:
    """Return the manifest's entries that follow from the design, the sampling and the shard size.

    Parameters
    ----------
    design : Design
        The prompts.
    sampling : Sampling
        How replies are drawn.
    shard_size : int
        How many trials a shard holds.

    Returns
    -------
    dict
        The sampling, the design's fingerprint and the sizes.
    """
    entries = {f"sampling_{name}": value for name, value in sampling.identity().items()}
    entries["prompts"] = design.fingerprint
    entries["trials"] = len(design)
    entries["shard_size"] = shard_size
    return entries


def open_store(
    folder: Path,
    design: Design,
    engine: Engine,
    sampling: Sampling,
    shard_size: int = SHARD_SIZE,
    budget: Budget | None = None,
) -> Store:
    """Open the store of one design. Its manifest pins all that can change a response.

    An engine that has to learn which arguments its model takes is given a stored manifest, and
    sends the same arguments again. If the store is new, the engine asks the design's first chat.
    That reply is kept at once, and paid from the budget.

    Parameters
    ----------
    folder : Path
        Where the store is, or will be.
    design : Design
        The trials.
    engine : Engine
        The engine that is to answer.
    sampling : Sampling
        How replies are drawn.
    shard_size : int
        Trials in a shard.
    budget : Budget, optional
        The budget that pays for a first call.

    Returns
    -------
    Store
        The store, in which :func:`fill` writes.

    Raises
    ------
    LimitReached
        The budget does not allow one call.
    StoreError
        The folder holds answers to something else.
    """
    file = folder / "manifest.json"
    has_answers = any(folder.glob("part-*.parquet"))
    has_calls = (folder / JOURNAL).exists() or (folder / BATCHES).exists()
    first_reply = None
    stored: dict[str, Any] | None = None
    # A manifest alone binds nobody: a run may have stopped before its first answer.
    if file.exists() and (has_answers or has_calls):
        stored = read_manifest(file)
        engine.recall(stored, sampling)
    else:
        # `prepare` may make a call, which costs money: LimitReached is raised before it.
        if budget is not None and engine.costs:
            budget.n_affordable([design[0].messages], sampling)
        first_reply = engine.prepare(design[0].messages, sampling)

    # The identity holds what `recall` or `prepare` has just learnt, so it is asked for now.
    manifest = engine.identity() | manifest_entries(design, sampling, shard_size)
    spelling = engine.spelling(sampling)
    # A store from before steps were kept has none, and goes on without them.
    is_older = stored is not None and SPELLING not in stored
    if spelling and not is_older:
        manifest[SPELLING] = spelling
    manifest["chats"] = design.chats_digest
    store = Store(folder, manifest, sampling.max_tokens)

    if first_reply is not None:
        # This reply is real and paid, so it must outlive a kill before the first shard.
        with store.writing():
            store.journal().add(0, first_reply)
        if budget is not None:
            budget.pay(first_reply, design[0].messages, sampling)
    return store


def fill(
    design: Design,
    engine: Engine,
    store: Store,
    sampling: Sampling,
    title: str = "",
    budget: Budget | None = None,
) -> None:
    """Answer every trial of a design that the store does not hold, shard by shard.

    The store is held alone while anything is asked. Trials whose call failed in an earlier run are
    asked again if the engine says that this may help. Replies that were cut are asked again if the
    sampling now allows more tokens. Standard error says how many calls failed and why.

    Parameters
    ----------
    design : Design
        The trials.
    engine : Engine
        The engine that is to answer.
    store : Store
        The store that :func:`open_store` returns.
    sampling : Sampling
        How replies are drawn.
    title : str
        The first words of the progress bar and of the sentences on standard error.
    budget : Budget, optional
        The budget that pays for calls, without a limit unless given.

    Raises
    ------
    EngineError
        The engine gives up. The store keeps the answers that it has.
    LimitReached
        A further call to a server could pass the limit of the budget (a subclass of EngineError).
    StoreError
        Another run is writing to this store, or the disk is full or read-only.
    """
    budget = budget or Budget()
    state = store.state()
    # A prompt that is too long fails each time, so the engine says whether asking again helps.
    repeats = state.cut or (state.failed and engine.asks_again)
    if state.missing or state.damaged or store.has_unwritten or repeats:
        for path in state.damaged:
            print(f"{path} was damaged: it is moved aside and asked again", file=sys.stderr)
        # Another run may have written since, so the state is taken anew under the lock.
        with store.writing() as state:
            _write_missing(design, engine, store, sampling, title, budget, state)

    # Failures of earlier runs are reported, too, so the whole store is read.
    columns = ["error", "model", "text", "reasoning"]
    sentences = reply_warnings(parts(store, columns=columns), store.manifest.get("model"))
    for sentence in sentences:
        print(shown(f"{title}: {sentence}" if title else sentence), file=sys.stderr)


def _write_missing(
    design: Design,
    engine: Engine,
    store: Store,
    sampling: Sampling,
    title: str,
    budget: Budget,
    state: State,
) -> None:
    """Ask for the trials that a store lacks (``state``) and write them.
    The caller holds the store.
    """
    # Whole shards come first; trials that failed or were cut go into supplements of their shards.
    whole_shards = [range(*store.bounds(shard)) for shard in state.missing]
    failed = state.failed if engine.asks_again else []
    repeated = sorted([*failed, *state.cut])
    supplements = []
    # Repeated trials of many shards are asked together, up to a shard's size at once.
    for start in range(0, len(repeated), store.shard_size):
        supplements.append(repeated[start : start + store.shard_size])

    todo = [*whole_shards, *supplements]
    n_done = store.trials - sum(map(len, todo))
    n_kept = _count_kept(store, state.missing, repeated)
    # The bar stays, as its last state has the speed of the whole job.
    with tqdm(
        total=store.trials,
        initial=n_done + n_kept,
        desc=title,
        bar_format="{desc} {n:,} of {total:,} {bar:20} {remaining} left, {rate_noinv_fmt}",
        unit=" prompts",
        # After the first reply of a group alone, the speed would look far too low.
        miniters=engine.group_size,
        maxinterval=math.inf,
    ) as progress:
        # All three ways yield the index of a part of `todo` with its replies, in any order.
        if isinstance(engine, Cluster):
            ask = engine.replies
        elif engine.keeps_each:
            ask = partial(_keep_each_reply, engine, store, progress, budget)
        else:
            ask = partial(_prepare_ahead, engine)

        for index, replies in ask(design, todo, sampling):
            if index < len(whole_shards):
                store.write(state.missing[index], replies)
            else:
                store.write_supplements(todo[index], replies)

            n_done += len(replies)
            # Engines that keep each reply have counted it as it came.
            if not engine.keeps_each:
                for reply in replies:
                    budget.count(reply)
            # An engine that keeps each reply moves the bar itself, so only the difference is added.
            progress.update(n_done - progress.n)


def _count_kept(store: Store, missing: Iterable[int], repeated: Iterable[int]) -> int:
    """Count the replies in the journal whose trials are still to be written to a shard.

    After a kill the journal may also hold replies that are in a shard already.
    """
    missing_shards = set(missing)
    repeated_trials = set(repeated)
    n_kept = 0
    for trial in store.journal().kept:
        if trial // store.shard_size in missing_shards or trial in repeated_trials:
            n_kept += 1
    return n_kept


def _prepare_ahead(
    engine: Engine, design: Design, todo: Sequence[Sequence[int]], sampling: Sampling
) -> Iterator[tuple[int, list[Reply]]]:
    """Answer parts in order. A thread prepares the next part while the engine computes one."""
    with ThreadPoolExecutor(1) as thread:
        # With the empty part at the end, the last real part is computed like the others.
        parts = iter([*todo, ()])
        next_prompts = thread.submit(prepare, engine, design, next(parts))
        for index, next_part in enumerate(parts):
            prompts = next_prompts.result()
            next_prompts = thread.submit(prepare, engine, design, next_part)
            yield index, complete(engine, prompts, sampling)


def _keep_each_reply(
    engine: Engine,
    store: Store,
    progress: tqdm,
    budget: Budget,
    design: Design,
    todo: Sequence[Sequence[int]],
    sampling: Sampling,
) -> Iterator[tuple[int, list[Reply]]]:
    """Answer parts in order, and keep each reply in the journal as it comes.

    A trial is not asked again if its reply is kept or if it is in a batch.
    """
    journal = store.journal()
    ledger = store.ledger()
    # A kill may have come between the reply's line in the journal and its end in the ledger.
    ledger.drop(journal.kept)
    engine.find_batches(ledger)
    pay = partial(_pay, engine, budget, sampling)

    for index, trials in enumerate(todo):
        reply_of = dict(journal.kept)
        rest = [trial for trial in trials if trial not in reply_of]

        while rest:
            # Trials in a batch are paid for already: they are read first, whatever the limit.
            group = ledger.trials_in_batches(rest)
            if not group:
                group = _affordable_trials(engine, budget, design, rest, sampling)

            chats = _chats(design, group)
            keep = partial(_keep, journal, progress, pay, group, chats)
            replies = engine.answer_each(chats, sampling, keep, LedgerTrials(ledger, group))
            # The order matters: a trial may leave the ledger only when its reply is on the disk.
            journal.sync()
            ledger.drop(group)
            reply_of |= dict(zip(group, replies, strict=True))
            rest = [trial for trial in rest if trial not in reply_of]

        yield index, [reply_of[trial] for trial in trials]
        # Whoever took these replies has written them by now.
        journal.drop(trials)

    # What is left belongs to shards that were written just before a kill.
    journal.drop(list(journal.kept))
    ledger.clear()


def _affordable_trials(
    engine: Engine, budget: Budget, design: Design, trials: list[int], sampling: Sampling
) -> list[int]:
    """Return the first trials, as many as may be asked at once under the budget's limit."""
    if not engine.costs:
        return trials
    chats = _chats(design, trials)
    return trials[: budget.n_affordable(chats, sampling, engine.batch)]


def _chats(design: Design, trials: Sequence[int]) -> list[Sequence[Message]]:
    """List the chats of trials."""
    return [design[trial].messages for trial in trials]


def _keep(
    journal: Journal,
    progress: tqdm,
    pay: Callable[[Reply, Sequence[Message]], None],
    trials: Sequence[int],
    chats: Sequence[Sequence[Message]],
    index: int,
    reply: Reply,
) -> None:
    """Add a reply to the journal, pay for it, and move the progress bar."""
    journal.add(trials[index], reply)
    pay(reply, chats[index])
    progress.update()


def _pay(
    engine: Engine, budget: Budget, sampling: Sampling, reply: Reply, chat: Sequence[Message]
) -> None:
    """Count the tokens of a reply, and its cost if the engine costs money."""
    if engine.costs:
        budget.pay(reply, chat, sampling)
    else:
        budget.count(reply)


def _count_other_models(responses: pd.DataFrame, model: str | None) -> dict[str, int]:
    """Count the replies that a server labels with another model's name, by name."""
    others = {}
    for category, count in responses.model.value_counts(sort=False).items():
        name = str(category)
        # A dated name of the model that was asked is the same model.
        if count > 0 and name and not is_same_checkpoint(model or "", name):
            others[name] = int(count)
    return others


def _count_reasoning_alone(responses: pd.DataFrame) -> int:
    """Count the replies that were cut within their reasoning, before any text of the answer."""
    if not {"text", "reasoning"}.issubset(responses.columns):
        return 0
    is_cut = responses.finish_reason == LENGTH
    has_text = responses.text.notna() & (responses.text != "")
    has_reasoning = responses.reasoning.notna() & (responses.reasoning != "")
    return int((is_cut & has_reasoning & ~has_text).sum())


def reply_warnings(responses: Iterable[pd.DataFrame], model: str | None) -> list[str]:
    """Describe failed calls, replies with reasoning alone, and replies of another model.

    Parameters
    ----------
    responses : iterable of DataFrame
        Parts of a store, with ``error``, ``finish_reason`` and ``model``. Reasoning counts where
        there are ``text`` and ``reasoning``, too.
    model : str or None
        The model that was asked.

    Returns
    -------
    list of str
        One sentence for failed calls, one for replies with reasoning alone, and one for replies
        that a server labels with another model's name, each only if there are any. They list the
        most frequent reasons or names. One more sentence per checkpoint names a checkpoint that is
        not the paper's.
    """
    prompts = 0
    reasoning_alone = 0
    errors: Counter[str] = Counter()
    other_models: Counter[str] = Counter()
    served: set[str] = set()
    for part in responses:
        prompts += len(part)
        reasoning_alone += _count_reasoning_alone(part)
        # A reply that a filter declined has an error, too, but did not fail.
        errors.update(part.error[part.finish_reason == FAILED].astype(str))
        other_models.update(_count_other_models(part, model))
        served.update(part.model.astype(str).unique())

    sentences = []
    if errors:
        reasons = _most_frequent(errors)
        sentences.append(f"{errors.total():,} of {prompts:,} prompts failed ({reasons})")
    if reasoning_alone:
        sentences.append(
            f"{reasoning_alone:,} of {prompts:,} replies ended before the model had ended its "
            "reasoning: a larger MAX_TOKENS asks these again"
        )
    if other_models:
        count = other_models.total()
        names = _most_frequent(other_models)
        sentences.append(f"{count:,} of {prompts:,} replies name another model ({names})")

    # Where the name that was asked is another checkpoint itself, the tables say so.
    if not checkpoint_caution(model or ""):
        for name in sorted(served - other_models.keys()):
            sentence = checkpoint_caution(name)
            if sentence:
                sentences.append(sentence)
    return sentences


def _most_frequent(counts: Counter[str]) -> str:
    """List the three most frequent texts with their counts, and the count of the others."""
    listed = []
    others = counts.total()
    for word, count in counts.most_common(3):
        listed.append(f"{count:,} x {word}")
        others -= count
    if others:
        listed.append(f"{others:,} x something else")
    return "; ".join(listed)


def usage(responses: pd.DataFrame, price_in: float, price_out: float, model: str) -> pd.DataFrame:
    """Sum up the tokens and the cost of stored responses.

    Parameters
    ----------
    responses : DataFrame
        Rows of a store.
    price_in, price_out : float
        Prices of a million tokens of prompts and of replies.
    model : str
        The model that was asked.

    Returns
    -------
    DataFrame
        One row: ``prompts``, their ``TOKENS``, ``failed`` calls, ``another_model`` (replies that
        name another than ``model``) and ``cost``. ``reasoning_tokens`` are part of
        ``output_tokens``, and 0 for stores that have no such column.

    Notes
    -----
    ``cost`` = sum over replies of (prompt_tokens price_in + output_tokens price_out) price_share /
    10^6. The share is 1 where there is no such column. The cost covers all runs that filled the
    store. It is too high where cached tokens are cheaper. It leaves out calls that broke off or
    failed before others took their place.
    """
    tokens = dict.fromkeys(TOKENS, 0)
    for name in responses.columns.intersection(TOKENS):
        tokens[name] = int(responses[name].sum())

    # Stores from before shares were kept were asked at the whole price.
    share = responses.get("price_share", 1.0)
    prompt_tokens = (responses.prompt_tokens * share).sum()
    output_tokens = (responses.output_tokens * share).sum()
    cost = Prices(price_in, price_out).cost(prompt_tokens, output_tokens)
    failed = int((responses.finish_reason == FAILED).sum())
    row = {
        "prompts": len(responses),
        **tokens,
        "failed": failed,
        "another_model": sum(_count_other_models(responses, model).values()),
        "cost": cost,
    }
    return pd.DataFrame([row])
