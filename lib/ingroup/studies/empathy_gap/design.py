"""The design of Hou et al.: perceiver x experiencer x event, by setting.

The slowest factor comes first in the prompt: perceiver (the persona), then experiencer, then
emotion, then event. Neighbouring trials therefore share the longest prefix that the wording
allows, which is what a prefix cache saves.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ingroup import corpora
from ingroup.design import Block, Design, Message
from ingroup.inference import Call, EngineError, Sampling, stored
from ingroup.inference.engine import MOST_LOGPROBS
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.stimuli import Setting
from ingroup.tables import InputError


class Event(NamedTuple):
    """What one experiencer lived through, in the form that a setting shows."""

    emotion: str
    text_id: str
    narrative: str


def trials(
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
    ingroup.studies.empathy_gap.stimuli.StimulusError
        For an unknown setting or category, or a setting whose narrative form (a column of
        ``events``) the corpus does not have.
    """
    wordings = [stimuli.setting(name) for name in settings or stimuli.settings()]
    names = list(categories or stimuli.categories())
    return Design(_block(wording, name, events) for wording in wordings for name in names)


def _levels(events: pd.DataFrame, form: str) -> tuple[Event, ...]:
    if form not in events or events[form].isna().any():
        raise InputError(
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


def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks: ``MODEL`` in every setting, its ``CONTROL`` in the first.

    Where texts of a setting are still to be written by ``REWRITER`` that call comes first, and the
    settings that show them are not settled: ask, and take ``calls`` again. Settings whose form of
    the narrative the corpus lacks are left out.

    Parameters
    ----------
    parameters : mapping
        The notebook's.

    Returns
    -------
    list of Call
        One a model and setting, with the label ``setting``.
    """
    events = corpora.load_events(parameters["CORPUS"], parameters["N_EVENTS"] or None)
    source = f"{Path(parameters['CORPUS']).stem}-{len(events)}"
    engine, sampling = parameters["ENGINE"], Sampling(temperature=0.0, max_tokens=128)
    first, written = [], True
    if parameters["REWRITER"] and events.third_person_text.isna().any():
        labels = {"setting": "rewrite"}
        writer = Call(
            "empathy_gap", source, parameters["REWRITER"], engine, "rewrite", rewriting(events),
            sampling, labels,
        )  # fmt: skip
        written = writer.folder.exists() and not stored(writer).missing()
        if written:
            events = with_rewrites(events, stored(writer).read())
        else:  # stand-ins of about the same length, for a plan
            first, events = [writer], events.assign(third_person_text=events.first_person_text)
    shows = {
        name: stimuli.setting(name).narrative
        for name in parameters["SETTINGS"] or list(stimuli.settings())
    }
    names = [name for name, form in shows.items() if events[form].notna().all()]
    if parameters["RATING"] == "expected":  # the most probable first tokens come along
        sampling = Sampling(temperature=0.0, max_tokens=128, logprobs=MOST_LOGPROBS)
    asked = [(parameters["MODEL"], name) for name in names]
    asked += [(parameters["CONTROL"], name) for name in names[:1] if parameters["CONTROL"]]
    designs = {name: trials(events, [name]) for name in names}
    suffix = "+logprobs" if sampling.logprobs else ""
    return first + [
        Call(
            "empathy_gap", source, model, engine, name + suffix, designs[name], sampling,
            {"setting": name}, written or shows[name] != "third_person_text",
        )
        for model, name in asked
    ]  # fmt: skip


def with_rewrites(events: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Put the replies to :func:`rewriting` into a corpus (appendix A.2).

    Parameters
    ----------
    events : pandas.DataFrame
        From :func:`ingroup.corpora.load_events`.
    responses : pandas.DataFrame
        One row an event in the same order, with ``text`` and ``error``.

    Returns
    -------
    pandas.DataFrame
        A copy of ``events`` with ``third_person_text``.

    Raises
    ------
    EngineError
        Where a reply holds no text or a call failed; the message names the event.
    """
    texts = [stimuli.rewritten(text) if isinstance(text, str) else "" for text in responses.text]
    for event, text, error in zip(events.itertuples(), texts, responses.error, strict=True):
        if not text:
            raise EngineError(
                f"event {event.emotion} {event.text_id} has no third-person text in its reply"
                f"{': ' + error if error else ''}"
            )
    return events.assign(third_person_text=texts)
