"""The designs of the studies: which trials there are, and in which order.

The slowest factor comes first in the prompt: perceiver (the persona), then experiencer, then
emotion, then event. Neighbouring trials therefore share the longest prefix that the wording
allows, which is what a prefix cache saves.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, Literal, NamedTuple

import pandas as pd

from ingroup import questions, scenarios, social_groups, stimuli
from ingroup.factorial import Block, Design, Selection, Trial
from ingroup.questions import Question
from ingroup.stimuli import Message, Setting

__all__ = [
    "Block",
    "Design",
    "Selection",
    "Trial",
    "biased_samaritan",
    "empathy_gap",
    "giebench",
    "mismatched",
    "rewriting",
    "stereomap",
]

Crossing = Literal["full", "printed"]
Order = Literal["given", "rotate"]
Calls = Literal["together", "separate"]


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


class Asked(NamedTuple):
    """One item under one prompt, its answers moved by ``shift`` places.

    ``identity`` stands in the prompt instead of the item's own; None: its own.
    """

    question: Question
    prompt: str
    shift: int
    identity: str | None


def giebench(
    items: Sequence[Question], prompt: str, order: Order = "given", raw: str = "appendix"
) -> Design:
    """The design of Wang et al. (section 3.2) under one prompt: item x order of the answers.

    Parameters
    ----------
    items : sequence of Question
        From :func:`ingroup.questions.load_questions`.
    prompt : str
        ``"COT"``, ``"ID"`` or ``"Raw"``.
    order : {"given", "rotate"}
        "rotate" asks each item four times, with its answers moved by 0, 1, 2 and 3 places.
    raw : {"appendix", "text"}
        See :func:`ingroup.questions.messages`.

    Returns
    -------
    Design
        One block with the factor ``asked`` (levels of :class:`Asked`), all items with the answers
        in the order given first, so that these are a prefix of the rotated design.

    Raises
    ------
    ValueError
        For another order.
    ingroup.questions.QuestionError
        For an unknown prompt, or a released item that cannot be taken apart to rotate it.
    """
    if order not in ("given", "rotate"):
        raise ValueError(f"order is {order!r}, expected 'given' or 'rotate'")
    shifts = range(len(questions.LETTERS)) if order == "rotate" else (0,)
    asked = [Asked(item, prompt, shift, None) for shift in shifts for item in items]
    return _asked(asked, {"prompt": prompt, "order": order}, raw)


def mismatched(items: Sequence[Question], prompt: str, pairs: pd.DataFrame) -> Design:
    """Items of either identity of a pair asked with the other one in the prompt (section 4.2).

    The paper's words are of one direction only; its shares of (Male, Female) are of the items of
    both (45 of 68 are 66.2 %, as in the whole category).

    Parameters
    ----------
    items : sequence of Question
        From :func:`ingroup.questions.load_questions`.
    prompt : str
        ``"COT"`` or ``"ID"``.
    pairs : pandas.DataFrame
        With the columns ``identity_i`` and ``identity_j``. See :func:`ingroup.questions.tuples`.
    """
    told = {
        (item.key, other): item  # a pair in both orders is one
        for pair in pairs.itertuples()
        for item in items
        for own, other in permutations((pair.identity_i, pair.identity_j))
        if item.identity == own
    }
    asked = [Asked(item, prompt, 0, other) for (_, other), item in told.items()]
    return _asked(asked, {"prompt": prompt, "order": "mismatch"}, "appendix")


def _asked(asked: Iterable[Asked], labels: Mapping[str, str], raw: str) -> Design:
    def render(condition: Mapping[str, Any]) -> list[Message]:
        one = condition["asked"]
        return questions.messages(one.question, one.prompt, raw, one.identity, one.shift)

    levels = tuple(asked)
    for one in levels:  # an item that cannot be asked so is said before anything is asked
        render({"asked": one})
    return Design([Block(labels, {"asked": levels}, render, raw)])


class Inquiry(NamedTuple):
    """One prompt about one group; ``part`` is what is asked of it, "" for all in one turn."""

    group: str
    prompt: str
    part: str


def stereomap(
    groups: Sequence[str],
    prompts: Sequence[str],
    ablation: str = "Prompt (paper)",
    form: str = "printed",
    calls: Calls = "together",
) -> Design:
    """The design of Jeoung et al. (section 3): prompt x group, for one round.

    Parameters
    ----------
    groups : sequence of str
        Names as in :func:`ingroup.social_groups.names`.
    prompts : sequence of str
        Names as in :func:`ingroup.social_groups.prompts`.
    ablation, form : str
        See :func:`ingroup.social_groups.messages`.
    calls : {"together", "separate"}
        "together" asks all parts of a prompt in one turn, as gpt-3.5-turbo was asked; "separate"
        each in a chat of its own, as text-davinci-003 was.

    Returns
    -------
    Design
        One block with the factor ``inquiry`` (levels of :class:`Inquiry`). Groups change fastest,
        so neighbours share the text up to the group. A round is this design under another seed.

    Raises
    ------
    ValueError
        For other calls.
    ingroup.social_groups.StimulusError
        For an unknown group, prompt, ablation or form.
    """
    if calls not in ("together", "separate"):
        raise ValueError(f"calls is {calls!r}, expected 'together' or 'separate'")

    def chats(group: str, prompt: str) -> Mapping[str, list[Message]]:
        if calls == "separate":
            return social_groups.separate_messages(group, prompt, ablation, form)
        return {"": social_groups.messages(group, prompt, ablation, form)}

    asked = {  # all of it, so that what cannot be asked is said before anything is
        Inquiry(group, prompt, part): chat
        for prompt in prompts
        for group in groups
        for part, chat in chats(group, prompt).items()
    }
    order = list(dict.fromkeys((one.prompt, one.part) for one in asked))
    inquiries = sorted(asked, key=lambda one: order.index((one.prompt, one.part)))

    def render(condition: Mapping[str, Any]) -> list[Message]:
        return asked[condition["inquiry"]]

    labels = {"ablation": ablation, "form": form, "calls": calls}
    texts = "\0".join(asked[one][0]["content"] for one in inquiries)
    return Design([Block(labels, {"inquiry": tuple(inquiries)}, render, texts)])
