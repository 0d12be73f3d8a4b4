"""A share of the work: ``SHARD=3/8`` asks the third of eight parts of every store."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ingroup.inference.store import Store


class ShareDone(Exception):
    """A share has all its answers, and other shares have not; the message says what is missing."""


class Share(NamedTuple):
    """The ``number``-th of ``of`` shares, counted from 1; the whole unless given."""

    number: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Share":
        """``"3/8"`` as a share; empty: the whole.

        Raises
        ------
        ValueError
            Where the text is none.
        """
        if not text:
            return cls()
        found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
        share = cls(*map(int, found.groups())) if found else None
        if share is None or not 1 <= share.number <= share.of:
            raise ValueError(f"SHARD must read 1/8, 2/8, ... or 8/8, found {text!r}")
        return share

    def shards(self, total: int) -> range:
        """Its shards of ``total``: neighbours, which share prefixes; shares differ by one at most.

        Every shard is in exactly one of the ``of`` shares.
        """
        return range((self.number - 1) * total // self.of, self.number * total // self.of)


WHOLE = Share()


class Waiting(NamedTuple):
    """Stands for a store of which other shares are not done, or its table; see :func:`all_shares`.

    Attributes
    ----------
    store : Store
        Its own share is done.
    title : str
        What the store is about, for the sentence.
    read : callable
        Gives the store or its table, once all shares are done.
    """

    store: "Store"
    title: str
    read: Callable[[], Any]


def all_shares(tables: Mapping[Any, Any]) -> dict[Any, Any]:
    """The tables (or stores) themselves, where every share of each is done by now.

    A run without a share gets them as they are. Of the runs with one, the last to end finds all
    there and goes on; the others end here.

    Parameters
    ----------
    tables : mapping
        To results of :func:`ingroup.inference.generation.generate` or ``fill``.

    Raises
    ------
    ShareDone
        Where other shares are not done: no mistake, but nothing is left to do for this one.
    """
    waiting = [table for table in tables.values() if isinstance(table, Waiting)]
    missing = [(table.title, count) for table in waiting if (count := table.store.elsewhere())]
    if missing:
        listed = "; ".join(f"{title}: {count:,}" for title, count in missing)
        raise ShareDone(
            f"SHARD={waiting[0].store.share} is done; of the other shares "
            f"{sum(count for _, count in missing):,} shards are missing ({listed}): the one that "
            "ends last goes on from here, or the same run without SHARD"
        )
    return {
        name: table.read() if isinstance(table, Waiting) else table
        for name, table in tables.items()
    }
