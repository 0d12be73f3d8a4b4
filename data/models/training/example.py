"""The training example of a calibrant, and draws of its parts."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from ingroup.design import Message

Item = TypeVar("Item")


class Example(NamedTuple):
    """One training example: a chat and the ground-truth reply to it.

    Attributes
    ----------
    messages : list of Message
        The prompt.
    reply : str
        The reply that the model shall write.
    numbers : tuple of float
        The ground-truth value of each number in the reply, in their order. Its decimals tell the
        training how far each neighbouring number is off. It is empty if the reply has no number.
    spread : float
        Width of the target around each of ``numbers``, in points. With 0 the target is the two
        whole numbers beside the value, weighted so that their mean is the value.
    """

    messages: list[Message]
    reply: str
    numbers: tuple[float, ...] = ()
    spread: float = 1.0


def pick(rng: np.random.Generator, items: Sequence[Item]) -> Item:
    """Draw an item, each with the same chance."""
    return items[rng.integers(len(items))]


def position_in(rng: np.random.Generator, tokens: Sequence[str]) -> int:
    """Draw a position for one more token, from before the first to after the last."""
    return int(rng.integers(len(tokens) + 1))
