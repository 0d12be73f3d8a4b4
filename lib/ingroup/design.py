"""Factorial designs: a number for every trial, and the trial for every number.

A design is a list of blocks, and a block is a product of factors. A trial is built only when it is
asked for, so 37,310,350 trials take no more memory than 1,000.
"""

import hashlib
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ingroup.tables import InputError

Message = dict[str, str]
N_SAMPLED_CHATS = 64  # chats between the first and last of a design, as a sample of its rendering


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Fill the ``{placeholders}`` of a template in one pass.

    Braces inside a value are left as they are.

    Parameters
    ----------
    template : str
        A text with placeholders, e.g. ``{person}``.
    values : mapping of str
        The text for each placeholder, by its name.

    Returns
    -------
    str
        The filled text. A placeholder without a value stays.

    Raises
    ------
    InputError
        For a value whose placeholder the template does not have.
    """
    parts = list(_split_template(template, tuple(values)))
    # Every second part is a name, as `_split_template` splits a template.
    for position in range(1, len(parts), 2):
        parts[position] = values[parts[position]]
    return "".join(parts)


@lru_cache  # a design fills the same few templates millions of times
def _split_template(template: str, names: tuple[str, ...]) -> list[str]:
    """Split a template into texts and, between each two texts, the name of a placeholder.

    Raise an InputError if the template lacks the placeholder of a name.
    """
    if not names:
        return [template]

    for name in names:
        placeholder = f"{{{name}}}"
        if placeholder not in template:
            raise InputError(f"the template {template!r} has no placeholder {placeholder}")
    # The group in the pattern makes re.split keep the names.
    either = "|".join(map(re.escape, names))
    return re.split(f"{{({either})}}", template)


def tenth(levels: Sequence[Any], least: int = 1) -> list[Any]:
    """Choose a fixed random tenth of some levels, the same for every model and every run.

    Parameters
    ----------
    levels : sequence
        The levels to choose from.
    least : int
        The smallest number to choose, if there are as many.

    Returns
    -------
    list
        A tenth of the levels, rounded up, in their order.
    """
    n_levels = len(levels)
    rounded_up = math.ceil(n_levels / 10)
    number = min(n_levels, max(least, rounded_up))
    # The generator is new, so that a run's SEED changes nothing here.
    rng = np.random.default_rng(0)
    positions = rng.choice(n_levels, number, replace=False)
    return [levels[position] for position in sorted(positions)]


class Trial(NamedTuple):
    """One prompt.

    Attributes
    ----------
    index : int
        The number of the trial in the design.
    condition : dict
        The labels and levels of the trial's condition.
    messages : list of dict
        The chat of the trial.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which no trial needs
    condition: dict[str, Any]
    messages: list[Message]


def named_values(name: str, level: Any) -> dict[str, Any]:
    """Return the values that a level of a factor holds, by their names.

    Parameters
    ----------
    name : str
        The factor.
    level : object
        One of its levels.

    Returns
    -------
    dict
        The fields of a named tuple by their own names. Any other level has the factor's name.
    """
    if hasattr(level, "_asdict"):
        return level._asdict()
    return {name: level}


@dataclass(frozen=True)
class Block:
    """All combinations of some factors under constant labels, e.g. setting and category.

    Attributes
    ----------
    labels : mapping
        The labels that all trials of the block have.
    factors : mapping
        The levels of each factor. The last factor varies fastest.
    render : callable
        Makes the messages of a chat from a condition with its labels and levels.
    templates : str
        The texts that `render` fills, for the fingerprint.
    """

    labels: Mapping[str, str]
    factors: Mapping[str, Sequence]
    render: Callable[[Mapping[str, Any]], list[Message]]
    templates: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Count the levels of each factor.

        Returns
        -------
        tuple of int
            The numbers, in the order of the factors.
        """
        return tuple(map(len, self.factors.values()))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def condition(self, index: int) -> dict[str, Any]:
        """Return the labels and the factor levels of a trial.

        Parameters
        ----------
        index : int
            The number of the trial in the block, from 0 to ``len(block) - 1``.

        Returns
        -------
        dict
            The value of each label and the level of each factor.
        """
        # This line sets the order of the keys; the levels replace the factors below.
        condition = {**self.labels, **self.factors}
        remaining = index
        # The number is read digit by digit, from the factor that varies fastest.
        for name, levels in reversed(list(self.factors.items())):
            remaining, position = divmod(remaining, len(levels))
            condition[name] = levels[position]
        return condition

    def index(self, condition: Mapping[str, Any]) -> int:
        """Return the number of a condition inside the block, the inverse of `condition`.

        Parameters
        ----------
        condition : mapping
            A level of each factor. Other keys do not matter.

        Returns
        -------
        int
            The number, from 0.

        Raises
        ------
        KeyError
            Where a factor has no level.
        ValueError
            Where a level is not one of the block's.
        """
        positions = []
        for name, levels in self.factors.items():
            level = condition[name]
            positions.append(list(levels).index(level))
        # In numpy's default order the last factor varies fastest, as in `condition`.
        return int(np.ravel_multi_index(positions, self.shape))


class Design(Sequence[Trial]):
    """A lazily indexed sequence of trials: blocks in prefix order.

    Parameters
    ----------
    blocks : iterable of Block
        The blocks, in the order in which they are asked.
    """

    def __init__(self, blocks: Iterable[Block]):
        self.blocks = tuple(blocks)
        # Bound i is the number of block i's first trial; one more bound is the number of all
        # trials.
        sizes = map(len, self.blocks)
        self._bounds = list(accumulate(sizes, initial=0))

    def __len__(self) -> int:
        return self._bounds[-1]

    # A sequence would take slices, too, which nobody needs.
    def __getitem__(self, index: int) -> Trial:  # type: ignore[override]
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"trial {index} of a design of {size} trials")

        # The trial is in the last block that starts at or before its number. A negative number
        # counts from the end, as in a list.
        number = index % size
        position = bisect_right(self._bounds, number) - 1
        block = self.blocks[position]
        start = self._bounds[position]
        condition = block.condition(number - start)
        return Trial(number, condition, block.render(condition))

    # A sequence would look up a trial: here it is looked up by its condition.
    def index(self, condition: Mapping[str, Any]) -> int:  # type: ignore[override]
        """Return the number of a condition in the whole design.

        Parameters
        ----------
        condition : mapping
            The labels of a block, and a level of each of its factors.

        Returns
        -------
        int
            The number of the trial, from 0.

        Raises
        ------
        KeyError
            If no block of the design has the condition's labels.
        """
        # The zip is not strict, because there is one more bound than there are blocks.
        for block, start in zip(self.blocks, self._bounds, strict=False):
            if block.labels.items() <= condition.items():
                return start + block.index(condition)
        raise KeyError(f"no block of the design has {dict(condition)}")

    @cached_property
    def fingerprint(self) -> str:
        """Hash the templates, labels and levels. Any other text gives another fingerprint.

        Returns
        -------
        str
            The 64 hexadecimal digits of SHA-256.
        """
        digest = hashlib.sha256()
        for block in self.blocks:
            content = [dict(block.labels), block.templates, dict(block.factors)]
            text = json.dumps(content, default=list, ensure_ascii=False)
            digest.update(text.encode())
        return digest.hexdigest()

    @cached_property
    def chats_digest(self) -> str:
        """Hash the first chat, the last chat and `N_SAMPLED_CHATS` chats evenly between them.

        The `fingerprint` covers the texts that are rendered. This digest covers the code that
        renders them.

        Returns
        -------
        str
            The first 16 hexadecimal digits of SHA-256.
        """
        indices = np.linspace(0, len(self) - 1, N_SAMPLED_CHATS + 2).astype(int)
        chats = []
        # A design with fewer trials than the sample would give some numbers twice.
        for index in dict.fromkeys(indices.tolist()):
            trial = self[index]
            chats.append(trial.messages)
        text = json.dumps(chats)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
