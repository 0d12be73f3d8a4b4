"""The loop from a design to its stored answers."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from tqdm import tqdm

from ingroup import RESPONSES
from ingroup.inference.answers import FAILED, Engine, EngineError, Reply, Sampling, prompt_key
from ingroup.inference.design import Design
from ingroup.inference.store import Store

# A thread that watches progress bars can abort a process that ends, which has stored all.
tqdm.monitor_interval = 0

Trials = Sequence[int]  # numbers of trials
Answers = Iterator[tuple[Trials, list[Reply]]]  # the replies to some trials, as they come
Ask = Callable[[Design, Iterable[Trials], Sampling], Answers]


@dataclass
class Budget:
    """What a run may spend, in the currency of the prices.

    All stored answers count, whichever notebook, run or process asked for them. A first piece can
    pass the limit, as no answer tells what it costs.

    Attributes
    ----------
    limit : float
        0 for none.
    price_in, price_out : float
        Of a million tokens.
    models : collection of str
        The folders of the models that cost (`Model.folder_name`).
    """

    limit: float = 0.0
    price_in: float = 0.0
    price_out: float = 0.0
    models: Collection[str] = ()
    _tokens: dict = field(default_factory=dict)  # answers and tokens of each piece

    def price(self, prompt_tokens: float, output_tokens: float) -> float:
        """Compute the price of some tokens.

        Parameters
        ----------
        prompt_tokens, output_tokens : float
            How many tokens.

        Returns
        -------
        float
            The price, in the currency of the prices.
        """
        return (prompt_tokens * self.price_in + output_tokens * self.price_out) / 1e6

    def spent(self) -> tuple[int, float]:
        """Count the stored answers, and add up their prices.

        Returns
        -------
        n_answers : int
            Stored answers. One that was asked again counts twice.
        price : float
            Their price.
        """
        for name in self.models:
            for file in RESPONSES.glob(f"*/{name}/*/*.parquet"):
                # A piece never changes, so it is read once.
                if file in self._tokens:
                    continue
                table = pq.read_table(file, columns=["prompt_tokens", "output_tokens"])
                tokens = table.to_pandas().sum()
                self._tokens[file] = len(table), tokens.prompt_tokens, tokens.output_tokens

        n_answers = 0
        price = 0.0
        for of_piece, *tokens in self._tokens.values():
            n_answers += of_piece
            price += self.price(*tokens)
        return n_answers, price

    def check(self, n_more: int) -> None:
        """Check that the budget suffices for some more answers, of the price of those before.

        Parameters
        ----------
        n_more : int
            How many answers are to be asked for.

        Raises
        ------
        EngineError
            They would pass the limit.
        """
        if not self.limit:
            return
        n_answers, spent = self.spent()
        of_one = spent / max(1, n_answers)
        if spent + n_more * of_one > self.limit:
            raise EngineError(
                f"COST_LIMIT={self.limit:g} stops this run, as {spent:.4g} is spent: all answers "
                "are stored, and the same command with a higher limit goes on"
            )


def ask_here(engine: Engine) -> Ask:
    """Make the function that asks an engine in this process.

    Parameters
    ----------
    engine : Engine
        Who answers.

    Returns
    -------
    callable
        The function, as `fill` takes it.
    """

    def ask(design: Design, parts: Iterable[Trials], sampling: Sampling) -> Answers:
        for trials in parts:
            chats = design.chats(trials)
            yield trials, engine.answer(chats, sampling)

    return ask


def open_store(folder: Path, design: Design, engine: Engine, sampling: Sampling) -> Store:
    """Open the store of a design. Its manifest pins everything that can change an answer.

    Parameters
    ----------
    folder : Path
        Where the store is, or will be.
    design : Design
        The trials.
    engine : Engine
        Who answers.
    sampling : Sampling
        How answers are drawn or scored.

    Returns
    -------
    Store
        The store.

    Raises
    ------
    StoreError
        The folder holds answers to something else.
    """
    prompts = {"prompts": design.digest, "trials": len(design)}
    manifest = engine.identity() | sampling.identity() | prompts
    return Store(folder, manifest)


def fill(
    design: Design,
    engine: Engine,
    store: Store,
    sampling: Sampling,
    title: str = "",
    budget: Budget | None = None,
    ask: Ask | None = None,
    known: Collection[int] = (),
) -> None:
    """Ask for every answer that a store lacks. A killed run goes on where it was.

    Parameters
    ----------
    design : Design
        The trials.
    engine : Engine
        Who answers.
    store : Store
        From `open_store`.
    sampling : Sampling
        How answers are drawn or scored.
    title : str
        The first words of the progress bar.
    budget : Budget, optional
        What the run may spend.
    ask : callable, optional
        Asks the engine, by default in this process (see also `distribute.ask_on_ray`).
    known : collection of int
        Trials that recordings answer, which are not asked.

    Raises
    ------
    EngineError
        The engine gives up, or the budget is spent. All answers so far are stored.
    StoreError
        Another run is writing to the store.
    """
    ask = ask or ask_here(engine)
    budget = budget or Budget()
    with store.writing():
        todo = []
        for trials in store.unanswered(engine.asks_again):
            if known:
                trials = [trial for trial in trials if trial not in known]
            todo.append(trials)

        n_left = sum(map(len, todo))
        pieces = _pieces(todo, engine.piece_size, budget)
        done = store.trials - n_left
        with tqdm(total=store.trials, initial=done, desc=title, unit=" answers") as bar:
            for trials, replies in ask(design, pieces, sampling):
                _check_answered(replies, engine, store)
                keys = [prompt_key(chat) for chat in design.chats(trials)]
                store.add(trials, keys, replies)
                bar.update(len(trials))
    for sentence in warnings(store):
        print(f"{title}: {sentence}", file=sys.stderr)


def _pieces(todo: Iterable[Trials], size: int, budget: Budget) -> Iterator[Trials]:
    """Cut the trials of each shard into pieces of at most this size, while the budget lasts."""
    for trials in todo:
        for start in range(0, len(trials), size):
            # A slice of a range is a range, which takes no memory.
            piece = trials[start : start + size]
            budget.check(len(piece))
            yield piece


def _check_answered(replies: Sequence[Reply], engine: Engine, store: Store) -> None:
    """Raise an EngineError if all calls fail, of the first ones or of a whole piece.

    A few trials that fail in every run must not keep a run from its other answers.
    """
    answered = [reply for reply in replies if reply.finish_reason != FAILED]
    is_whole = len(replies) == engine.piece_size
    is_first = not store.pieces()
    if not answered and (is_whole or is_first):
        model = engine.identity()["model"]
        raise EngineError(f"{model} does not answer: {replies[0].error}")


def warnings(store: Store) -> list[str]:
    """Say how many calls failed, and why.

    Parameters
    ----------
    store : Store
        Any store.

    Returns
    -------
    list of str
        One sentence, none if no call failed.
    """
    errors: Counter[str] = Counter()
    for table in store.shards(["error"]):
        is_failed = pc.equal(table["finish_reason"], FAILED)
        failed = table.filter(is_failed)
        errors.update(failed["error"].to_pylist())

    if not errors:
        return []
    reasons = [f"{count:,} x {error}" for error, count in errors.most_common(3)]
    listed = "; ".join(reasons)
    n_failed = f"{errors.total():,} of {store.trials:,} calls failed"
    return [f"{n_failed} ({listed})"]
