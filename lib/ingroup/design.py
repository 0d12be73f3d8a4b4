"""Factorial designs: a number for every trial, and the trial for every number.

A design is a list of blocks, a block is a product of factors, and a trial is built when it is asked
for: 37,310,350 trials cost no more memory than 1,000.
"""

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ingroup.tables import InputError

Message = dict[str, str]
SAMPLED = 64  # chats of a design between its first and last, which stand for its rendering


def filled(template: str, values: Mapping[str, str]) -> str:
    """Values put for ``{placeholders}`` in one pass; InputError for one that is not there."""
    parts = [*_cut(template, tuple(values))]
    parts[1::2] = [values[name] for name in parts[1::2]]
    return "".join(parts)


@lru_cache  # a design fills the same few templates millions of times
def _cut(template: str, names: tuple[str, ...]) -> list[str]:
    """The template's texts and, between each and the next, the name of a placeholder."""
    for name in names:
        if f"{{{name}}}" not in template:
            raise InputError(f"the template {template!r} has no placeholder {{{name}}}")
    either = "|".join(map(re.escape, names))
    return re.split(f"{{({either})}}", template) if names else [template]


def tenth(levels: Sequence[Any], least: int = 1) -> list[Any]:
    """Choose a fixed random tenth of some levels, the same for every model and every run.

    Parameters
    ----------
    levels : sequence
        What to choose from.
    least : int
        How many are chosen at least, if there are as many.

    Returns
    -------
    list
        A tenth of the levels, rounded up, in their order.
    """
    number = min(len(levels), max(least, -(-len(levels) // 10)))
    places = np.random.default_rng(0).choice(len(levels), number, replace=False)
    return [levels[place] for place in sorted(places)]


class Trial(NamedTuple):
    """One prompt: its number in the design, the labels of its condition, its chat messages."""

    index: int
    condition: dict[str, Any]
    messages: list[Message]


@dataclass(frozen=True)
class Block:
    """All combinations of some factors under constant labels, e.g. setting and category."""

    labels: Mapping[str, str]
    factors: Mapping[str, Sequence]  # levels of each, the slowest first
    render: Callable[[Mapping[str, Any]], list[Message]]  # of a condition: labels and levels
    templates: str  # the texts that ``render`` fills, for the fingerprint

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.factors.values()))

    def __len__(self) -> int:
        return prod(self.shape)

    def condition(self, index: int) -> dict[str, Any]:
        """Labels and factor levels of the trial at ``index``, 0 <= index < len(block)."""
        condition = {**self.labels, **self.factors}  # in this order
        for name, levels in reversed(self.factors.items()):
            index, place = divmod(index, len(levels))
            condition[name] = levels[place]
        return condition

    def index(self, condition: Mapping[str, Any]) -> int:
        """The number of a condition inside the block, the inverse of :meth:`condition`."""
        places = [list(levels).index(condition[name]) for name, levels in self.factors.items()]
        return int(np.ravel_multi_index(places, self.shape))


class Design(Sequence[Trial]):
    """A lazily indexed sequence of trials: blocks in prefix order."""

    def __init__(self, blocks: Iterable[Block]):
        self.blocks = tuple(blocks)
        self._bounds = [0, *accumulate(len(block) for block in self.blocks)]

    def __len__(self) -> int:
        return self._bounds[-1]

    def __getitem__(self, index: int) -> Trial:
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"trial {index} of a design of {size} trials")
        number = index % size
        place = bisect_right(self._bounds, number) - 1
        block = self.blocks[place]
        condition = block.condition(number - self._bounds[place])
        return Trial(number, condition, block.render(condition))

    def index(self, condition: Mapping[str, Any]) -> int:
        """The number of a condition in the whole design: index -> condition -> index."""
        for block, start in zip(self.blocks, self._bounds, strict=False):
            if block.labels.items() <= condition.items():
                return start + block.index(condition)
        raise KeyError(f"no block of the design has {dict(condition)}")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over templates, labels and levels: another text gives another fingerprint."""
        digest = hashlib.sha256()
        for block in self.blocks:
            content = [dict(block.labels), block.templates, dict(block.factors)]
            digest.update(json.dumps(content, default=list, ensure_ascii=False).encode())
        return digest.hexdigest()

    @cached_property
    def chats_digest(self) -> str:
        """SHA-256 over the first chat, the last and `SAMPLED` evenly between; 16 digits.

        The `fingerprint` covers what is rendered, this the code that renders it.
        """
        places = np.linspace(0, len(self) - 1, SAMPLED + 2).astype(int)
        chats = [self[place].messages for place in dict.fromkeys(places.tolist())]
        return hashlib.sha256(json.dumps(chats).encode()).hexdigest()[:16]
