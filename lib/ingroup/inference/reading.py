"""A store read in parts: a table of millions of responses is never there as a whole."""

from collections.abc import Iterator, Sequence

import pandas as pd

from ingroup.inference.store import Store

SHARDS = 16  # to a part; with shards of 4,096 trials a part takes a few megabytes


def parts(
    store: Store,
    start: int = 0,
    stop: int | None = None,
    shards: int = SHARDS,
    columns: Sequence[str] = (),
) -> Iterator[pd.DataFrame]:
    """Responses to trials ``start`` to ``stop`` of a store, a few shards at a time.

    Parameters
    ----------
    store : Store
        Where every shard of this range is there and whole.
    start, stop, columns
        As for :meth:`ingroup.inference.store.Store.read`.
    shards : int
        How many to a part, at least 1.

    Yields
    ------
    pandas.DataFrame
        As :meth:`ingroup.inference.store.Store.read` gives them, in order; ``trial`` counts from
        ``start`` through all of them. Concatenated they are the table that it reads.

    Raises
    ------
    StoreError
        When a shard that is missing or damaged is reached.
    """
    stop = store.trials if stop is None else stop
    size = shards * store.shard_size
    first = start
    while first < stop:
        last = min(first - first % size + size, stop)  # a part ends where a shard does
        part = store.read(first, last, columns)
        part["trial"] += first - start
        yield part
        first = last
