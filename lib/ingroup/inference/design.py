"""Factorial designs: a number for every trial, and a trial for every number.

A trial is made when it is asked for, so 37 million trials take no more memory than a thousand.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ingroup.inference.answers import Chat, prompt_key

CHATS_IN_DIGEST = 64


class Trial(NamedTuple):
    """One prompt: its number in the design, its labels and levels, and its chat."""

    number: int
    condition: dict[str, Any]
    chat: Chat


@dataclass(frozen=True)
class Block:
    """All combinations of some factors. The last factor varies fastest.

    Attributes
    ----------
    labels : mapping
        What all trials of the block share, e.g. the setting.
    factors : mapping
        The levels of each factor.
    render : callable
        Makes the chat of a condition (labels and levels).
    """

    labels: Mapping[str, Any]
    factors: Mapping[str, Sequence]
    render: Callable[[Mapping[str, Any]], Chat]

    @property
    def shape(self) -> tuple[int, ...]:
        """Count the levels of each factor."""
        return tuple(map(len, self.factors.values()))

    def condition(self, number: int) -> dict[str, Any]:
        """Return labels and levels of a trial of the block.

        Parameters
        ----------
        number : int
            The trial, counted from the block's first.

        Returns
        -------
        dict
            Labels first, then levels.
        """
        positions = np.unravel_index(number, self.shape)
        levels = zip(self.factors.items(), positions, strict=True)
        return {**self.labels, **{name: values[place] for (name, values), place in levels}}


class Design(Sequence[Trial]):
    """A sequence of trials that are made one by one.

    Parameters
    ----------
    blocks : sequence of Block
        The blocks, in the order in which they are asked.
    """

    def __init__(self, blocks: Sequence[Block]):
        self.blocks = list(blocks)
        sizes = [prod(block.shape) for block in self.blocks]
        self._starts = list(accumulate(sizes, initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, number: int) -> Trial:
        if not 0 <= number < len(self):
            raise IndexError(f"trial {number} of a design of {len(self)} trials")
        position = bisect_right(self._starts, number) - 1
        block = self.blocks[position]
        condition = block.condition(number - self._starts[position])
        return Trial(number, condition, block.render(condition))

    def chats(self, numbers: Sequence[int]) -> list[Chat]:
        """Make the chats of some trials.

        Parameters
        ----------
        numbers : sequence of int
            The trials.

        Returns
        -------
        list of chat
            One chat for each.
        """
        return [self[number].chat for number in numbers]

    @cached_property
    def keys(self) -> list[int]:
        """Hash each prompt (`answers.prompt_key`), in the order of the trials."""
        return [prompt_key(trial.chat) for trial in self]

    @cached_property
    def digest(self) -> str:
        """Hash all labels and levels, and a sample of the chats, which the code renders."""
        texts = [[dict(block.labels), dict(block.factors)] for block in self.blocks]
        sample = np.linspace(0, len(self) - 1, CHATS_IN_DIGEST).astype(int)
        content = json.dumps([texts, self.chats(sample.tolist())], default=list)
        return hashlib.sha256(content.encode()).hexdigest()
