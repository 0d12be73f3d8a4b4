"""The design of Hou et al.: perceiver x experiencer x event, by setting; its parameters.

The slowest factor comes first in the prompt: perceiver (the persona), then experiencer, then
emotion, then event. Neighbouring trials therefore share the longest prefix that the wording
allows, which is what a prefix cache saves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
from pydantic import Field, model_validator

from ingroup import models
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message, tenth
from ingroup.inference import Call, EngineError, excerpts_of, stored, there
from ingroup.inference.engine import FAILED, LENGTH, free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import Count, Texts, readable
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.stimuli import Setting
from ingroup.tables import InputError


class Parameters(shared.Parameters):
    """Types, ranges and choices; that the settings are known and the corpus can be read."""

    REWRITER: str
    REWRITE_TOKENS: shared.Tokens
    CORPUS: str
    N_EVENTS: Annotated[
        Annotated[int, Field(ge=0, le=0)] | Annotated[int, Field(ge=2)],
        Field(description="a whole number, at least 2 (paired tests need two), or 0 for all"),
    ]
    SETTINGS: Annotated[Texts, readable(lambda names: list(map(stimuli.setting, names)))]
    CATEGORIES: Annotated[Texts, readable(lambda names: list(map(stimuli.identities, names)))]
    ROUNDS: Count
    EXCLUSION: Literal["listwise", "pairwise"]
    DRAWN: Literal["sound", "released"]

    @model_validator(mode="after")
    def _corpus_suffices(self) -> Self:
        try:
            stimuli.load_events(self.CORPUS, self.N_EVENTS or None)
        except InputError as error:
            place = f"CORPUS {self.CORPUS!r}, N_EVENTS {self.N_EVENTS}"
            raise InputError(f"{place}: {error}") from error
        return self


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
    """The paper's seven settings and three categories, unless others are given (section 3.3).

    `events` are from :func:`~.stimuli.load_events`. On the full corpus these are
    7 x (19^2 + 22^2 + 6^2) x 6,050 = 37,310,350 trials (footnote 4). InputError for an unknown
    setting or category, or a setting whose narrative form (a column) the events do not have.
    """
    wordings = [stimuli.setting(name) for name in settings or stimuli.prompts()["settings"]]
    names = list(categories or stimuli.categories())
    told = {form: _levels(events, form) for form in {wording.narrative for wording in wordings}}
    return Design(_block(w, name, told[w.narrative]) for w in wordings for name in names)


def _levels(events: pd.DataFrame, form: str) -> tuple[Event, ...]:
    if form not in events or events[form].isna().any():
        raise InputError(
            f"this corpus does not have the column {form!r} for every event; leave the settings "
            "that show it out, or rewrite it (appendix A.2)"
        )
    columns = events[["emotion", "text_id", form]].astype(str)
    return tuple(map(Event._make, columns.itertuples(index=False)))


def _block(setting: Setting, category: str, events: tuple[Event, ...]) -> Block:
    people = tuple(stimuli.identities(category).identity)

    def render(condition: Mapping[str, Any]) -> list[Message]:
        event = condition["event"]
        return setting.messages(
            condition["perceiver"], condition["experiencer"], event.emotion, event.narrative
        )

    labels = {"setting": setting.name, "category": category}
    factors = {"perceiver": people, "experiencer": people, "event": events}
    templates = "\0".join([setting.persona, setting.scale, setting.task, setting.join])
    return Block(labels, factors, render, templates)


def rewriting(events: pd.DataFrame) -> Design:
    """One trial an event: the prompt that puts it into the third person (appendix A.2).

    It shows the full first-person narrative, or what was written where the corpus has none.
    """
    shown = events.first_person_text.astype(object).fillna(events.generated_text)

    def render(condition: Mapping[str, Any]) -> list[Message]:
        return stimuli.rewrite_messages(condition["event"].narrative)

    levels = {"event": _levels(events.assign(first_person_text=shown), "first_person_text")}
    template = stimuli.rewrite_messages("")[0]["content"]
    return Design([Block({"setting": "rewrite"}, levels, render, template)])


@excerpts_of(CORPUS="sample", N_EVENTS=12)
def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks: each of ``MODELS`` in every setting, a control in the first alone.

    One call a model, setting and category, which are its labels. With several ``ROUNDS`` a model
    that answers freely, and is no control, is asked as often; the label ``round`` counts from 1,
    and each round has a seed of its own. A model that is asked over choices
    (the whole numbers of the scale) is asked freely as well in the first setting, about a fixed
    random tenth of the events, at least two.
    Where texts of a setting are still to be written by ``REWRITER`` that call comes first, and the
    settings that show them are not settled: ask it, and take ``calls`` again. Settings whose form
    of the narrative the corpus lacks are left out. InputError as ``load_events`` and where no
    setting is left, EngineError where a reply of the ``REWRITER`` holds no text.
    """
    p = parameters
    events = stimuli.load_events(p["CORPUS"], p["N_EVENTS"] or None)
    source = f"{Path(p['CORPUS']).stem}-{len(events)}"
    names = list(p["SETTINGS"] or stimuli.prompts()["settings"])
    shows = {name: stimuli.setting(name).narrative for name in names}
    found, written = [], True
    needs_rewrites = "third_person_text" in shows.values()
    if p["REWRITER"] and needs_rewrites and events.third_person_text.isna().any():
        labels, design = {"setting": "rewrite", "category": ""}, rewriting(events)
        who, tokens = models.split(p["REWRITER"], p["ENGINE"]), p["REWRITE_TOKENS"]
        writing = free_sampling({**p, "TEMPERATURE": 0.0, "MAX_TOKENS": tokens}, who[0])
        at = "empathy_gap", source, *who, f"rewrite-{tokens}"
        writer = Call(*at, design, writing, labels)
        replies = stored(writer).read() if there([writer]) else None
        written = replies is not None and not (replies.finish_reason == FAILED).any()
        if written:  # else asked again, the failed too
            events = with_rewrites(events, replies)
        else:  # stand-ins of about the same length, for a plan
            found, events = [writer], events.assign(third_person_text=events.generated_text)
    names = [name for name in names if events[shows[name]].notna().all()]
    if not names:
        forms = ", ".join(sorted(set(shows.values())))
        raise InputError(f"the corpus {p['CORPUS']} lacks the form that SETTINGS show ({forms})")
    blocks = [(name, c) for name in names for c in p["CATEGORIES"] or stimuli.categories()]
    designs = {(name, c): trials(events, [name], [c]) for name, c in blocks}
    few_events = events.iloc[tenth(range(len(events)), least=2)]
    few = {c: trials(few_events, names[:1], [c]) for name, c in blocks if name == names[0]}
    rounds = p.get("ROUNDS", 1)
    for model in models.asked(p):
        reading = Reading(model.reading, model.ending)
        for (name, category), design in designs.items():
            first, scale = name == names[0], stimuli.setting(name)
            numbers = tuple(map(str, range(scale.low, scale.high + 1)))
            free = free_sampling(p, model.name)
            ways = [(source, design, free)]
            if model.over_choices:
                ways = [(source, design, replace(free, choices=numbers))]
                if first:
                    ways.append((f"{source}-tenth", few[category], free))
            part = f"{name}-{'-'.join(category.lower().split())}"
            labels = {"setting": name, "category": category}
            settled = written or shows[name] != "third_person_text"
            if model.control and not first:
                continue
            once = model.control or model.over_choices
            turns = range(1, 2 if once else rounds + 1)
            for turn, (asked_about, asked, how) in product(turns, ways):
                # The address of the only round is also that of the first of several.
                place = part if turn == 1 else f"{part}-round{turn}"
                sampling = replace(how, seed=how.seed + 1000 * (turn - 1))
                told = labels | {"round": turn} if rounds > 1 else labels
                at = "empathy_gap", asked_about, model.name, model.engine, place
                found.append(Call(*at, asked, sampling, told, settled, reading=reading))
    return found


def with_rewrites(events: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """The events with the ``third_person_text`` of the replies to `rewriting` them.

    `responses` have ``text``, ``error`` and ``finish_reason``. EngineError, which names the event,
    where a call failed, a reply holds no text, or one was cut before its brace closed.
    """
    texts = [stimuli.rewritten(text) if isinstance(text, str) else "" for text in responses.text]
    for event, text, reply in zip(events.itertuples(), texts, responses.itertuples(), strict=True):
        where = f"event {event.emotion} {event.text_id} has"
        if not text:
            why = f": {reply.error}" if reply.error else ""
            raise EngineError(f"{where} no third-person text in its reply{why}")
        if reply.finish_reason == LENGTH and "}" not in reply.text:
            raise EngineError(f"{where} a rewritten text that was cut; give more REWRITE_TOKENS")
    return events.assign(third_person_text=texts)
