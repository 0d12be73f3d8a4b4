"""Factorial designs: a number for every trial, and the trial for every number.

A design is never written out. It is a list of blocks (one setting and one category each), a
block is a product of factors, and a trial is built when it is asked for. So 37,310,350 trials
cost no more memory than 1,000.

The slowest factor comes first in the prompt: perceiver (the persona), then experiencer, then
emotion, then event. Neighbouring trials therefore share the longest prefix that the wording
allows, which is what a prefix cache saves.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ingroup import scenarios, stimuli
from ingroup.stimuli import Message, Setting

Crossing = Literal["full", "printed"]


class Trial(NamedTuple):
    """One prompt: its number in the design, the labels of its condition, its chat messages."""

    index: int
    condition: dict[str, Any]
    messages: list[Message]


@dataclass(frozen=True)
class Block:
    """All combinations of some factors under constant labels.

    Attributes
    ----------
    labels : mapping
        What is the same in the whole block, e.g. setting and category.
    factors : mapping of str to sequence
        Levels of each factor, slowest first; labels and levels together are a condition.
    render : callable
        Condition to chat messages; a pure function.
    templates : str
        The texts that ``render`` fills, for the fingerprint.
    """

    labels: Mapping[str, str]
    factors: Mapping[str, Sequence]
    render: Callable[[Mapping[str, Any]], list[Message]]
    templates: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(levels) for levels in self.factors.values())

    def __len__(self) -> int:
        return prod(self.shape)

    def condition(self, index: int) -> dict[str, Any]:
        """Labels and factor levels of the trial at ``index``, 0 <= index < len(block)."""
        condition = dict(self.labels) | dict.fromkeys(self.factors)
        for name, levels in reversed(self.factors.items()):  # fastest first
            index, place = divmod(index, len(levels))
            condition[name] = levels[place]
        return condition

    def index(self, condition: Mapping[str, Any]) -> int:
        """The number of a condition inside the block, the inverse of :meth:`condition`."""
        places = [list(levels).index(condition[name]) for name, levels in self.factors.items()]
        return int(np.ravel_multi_index(places, self.shape))


class Design(Sequence[Trial]):
    """A lazily indexed sequence of trials.

    Parameters
    ----------
    blocks : iterable of Block
        In prefix order.
    start, stop : int, optional
        The window of the whole design that this object shows; see :meth:`slice`.
    """

    def __init__(self, blocks: Iterable[Block], start: int = 0, stop: int | None = None):
        self.blocks = tuple(blocks)
        self._bounds = [0, *accumulate(len(block) for block in self.blocks)]
        self.start = start
        self.stop = self._bounds[-1] if stop is None else stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, index: int) -> Trial:
        if not -len(self) <= index < len(self):
            raise IndexError(f"trial {index} of a design of {len(self)} trials")
        number = self.start + index % len(self)
        place = bisect_right(self._bounds, number) - 1
        block = self.blocks[place]
        condition = block.condition(number - self._bounds[place])
        return Trial(number, condition, block.render(condition))

    def __iter__(self) -> Iterator[Trial]:
        return (self[index] for index in range(len(self)))

    def slice(self, start: int, stop: int) -> "Design":
        """Trials ``start`` to ``stop`` of this design; their numbers stay those of the whole."""
        stop = min(stop, len(self))
        if not 0 <= start <= stop:
            raise IndexError(f"slice {start}:{stop} of a design of {len(self)} trials")
        return Design(self.blocks, self.start + start, self.start + stop)

    def block_of(self, **labels: str) -> tuple[Block, range]:
        """The block with these labels and the numbers of its trials.

        Raises
        ------
        KeyError
            Where no block, or more than one, has these labels.
        """
        found = [
            (block, range(low, high))
            for block, (low, high) in zip(self.blocks, pairwise(self._bounds), strict=True)
            if labels.items() <= dict(block.labels).items()
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} blocks of the design have {labels}")
        return found[0]

    def index(self, condition: Mapping[str, Any]) -> int:
        """The number of a condition in the whole design: index -> condition -> index."""
        labels = {name: condition[name] for name in self.blocks[0].labels}
        block, numbers = self.block_of(**labels)
        return numbers.start + block.index(condition)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over templates, labels and levels: another text gives another fingerprint."""
        digest = hashlib.sha256()
        for block in self.blocks:
            content = [dict(block.labels), block.templates, dict(block.factors)]
            digest.update(json.dumps(content, default=list, ensure_ascii=False).encode())
        return digest.hexdigest()


class Selection(Sequence[Trial]):
    """Some trials of a design, in an order of their own; their numbers stay those of the whole.

    Parameters
    ----------
    design : Design
        The whole.
    numbers : array of int
        Which of its trials, in which order.
    """

    def __init__(self, design: Design, numbers: np.ndarray):
        self.design, self.numbers = design, np.asarray(numbers, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Trial:
        return self.design[int(self.numbers[index])]

    def slice(self, start: int, stop: int) -> "Selection":
        """Places ``start`` to ``stop`` of this selection."""
        return Selection(self.design, self.numbers[start:stop])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the design's fingerprint and the numbers."""
        content = self.design.fingerprint.encode() + self.numbers.astype("<i8").tobytes()
        return hashlib.sha256(content).hexdigest()


class Event(NamedTuple):
    """What one experiencer lived through, in the form that a setting shows."""

    emotion: str
    text_id: str
    narrative: str


def empathy_gap(
    events: pd.DataFrame,
    settings: Iterable[str] | None = None,
    categories: Iterable[str] | None = None,
) -> Design:
    """The design of Hou et al. (section 3.3): perceiver x experiencer x event, by setting.

    Parameters
    ----------
    events : pandas.DataFrame
        From :func:`ingroup.corpora.load_events`, ordered by emotion.
    settings : iterable of str, optional
        E.g. ``["P0,S0,T0"]``; the paper's seven unless given.
    categories : iterable of str, optional
        All three unless given.

    Returns
    -------
    Design
        With all settings and categories on the full corpus
        7 x (19^2 + 22^2 + 6^2) x 6,050 = 37,310,350 trials (footnote 4).

    Raises
    ------
    ingroup.stimuli.StimulusError
        For an unknown setting or category, or a setting whose narrative form (a column of
        ``events``) the corpus does not have.
    """
    wordings = [stimuli.setting(name) for name in settings or stimuli.settings()]
    names = list(categories or stimuli.categories())
    return Design(_block(wording, name, events) for wording in wordings for name in names)


def _levels(events: pd.DataFrame, form: str) -> tuple[Event, ...]:
    if form not in events or events[form].isna().any():
        raise stimuli.StimulusError(
            f"this corpus does not have the column {form!r} for every event; leave the settings "
            "that show it out, or rewrite it (appendix A.2)"
        )
    columns = (events[name].astype(str) for name in ("emotion", "text_id", form))
    return tuple(Event(*row) for row in zip(*columns, strict=True))


def _block(setting: Setting, category: str, events: pd.DataFrame) -> Block:
    people = tuple(stimuli.identities(category).identity)
    levels = {
        "perceiver": people,
        "experiencer": people,
        "event": _levels(events, setting.narrative),
    }

    def render(condition: Mapping[str, Any]) -> list[Message]:
        event = condition["event"]
        return setting.messages(
            condition["perceiver"], condition["experiencer"], event.emotion, event.narrative
        )

    return Block(
        labels={"setting": setting.name, "category": category},
        factors=levels,
        render=render,
        templates="\0".join([setting.persona, setting.scale, setting.task, setting.join]),
    )


def rewriting(events: pd.DataFrame) -> Design:
    """One trial an event: the prompt that puts it into the third person (appendix A.2)."""

    def render(condition: Mapping[str, Any]) -> list[Message]:
        return stimuli.rewrite_messages(condition["event"].narrative)

    template = stimuli.rewrite_messages("")[0]["content"]
    return Design(
        [
            Block(
                {"setting": "rewrite"},
                {"event": _levels(events, "first_person_text")},
                render,
                template,
            )
        ]
    )


class Prompt(NamedTuple):
    """One wording of one scenario with one phrasing of a group."""

    scenario: int
    wording: int
    group: str
    phrasing: str
    text: str
    phrase: str


def biased_samaritan(
    table: pd.DataFrame, category: str, crossing: Crossing = "full", latino: bool = False
) -> Design:
    """The design of Fagan et al. (section 4.2): scenario x wording x phrasing, for one category.

    Parameters
    ----------
    table : pandas.DataFrame
        From :func:`ingroup.scenarios.load_scenarios`.
    category : str
        ``"Race"``, ``"Gender"`` or ``"Age"``.
    crossing : {"full", "printed"}
        "full" puts every phrasing, the control among them, into every wording. "printed" asks each
        phrasing once a scenario, in one of its wordings, by turns: 103 x (10 + 1), 103 x (7 + 1)
        and again 103 x (7 + 1) prompts as in section 4.2, which does not say how the wordings
        were dealt out.
    latino : bool
        See :func:`ingroup.scenarios.phrasings`.

    Returns
    -------
    Design
        One block with the factor ``prompt`` (levels of :class:`Prompt`); phrasings change fastest,
        so neighbours share the text up to the slot.

    Raises
    ------
    ValueError
        For another crossing.
    ingroup.stimuli.StimulusError
        For an unknown category.
    """
    if crossing not in ("full", "printed"):
        raise ValueError(f"crossing is {crossing!r}, expected 'full' or 'printed'")
    phrasings = list(scenarios.phrasings(category, latino).itertuples(index=False))
    wordings = sorted(table.wording.unique())
    place = {scenario: i for i, scenario in enumerate(table.scenario.unique())}
    prompts = tuple(
        Prompt(int(row.scenario), int(row.wording), name.group, name.phrasing, row.text, name.text)
        for row in table.itertuples()
        for turn, name in enumerate(phrasings)
        if crossing == "full"
        or wordings[(place[row.scenario] + turn) % len(wordings)] == row.wording
    )

    def render(condition: Mapping[str, Any]) -> list[Message]:
        return scenarios.messages(condition["prompt"].text, condition["prompt"].phrase)

    request = scenarios.request()
    labels = {"category": category, "crossing": crossing}
    return Design([Block(labels, {"prompt": prompts}, render, request.join + request.text)])
