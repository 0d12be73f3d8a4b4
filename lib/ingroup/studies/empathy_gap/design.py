"""The design of Hou et al. (perceiver x experiencer x event, by setting) and its parameters.

The slowest factor comes first in the prompt: perceiver (the persona), then experiencer, then
emotion, then event. Neighbouring trials therefore share the longest prefix that the wording
allows, and a prefix cache computes this prefix once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
from pydantic import Field, model_validator

from ingroup import models
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message
from ingroup.inference import EngineError, Job, answered_jobs, recorded_with, stored
from ingroup.inference.engine import FAILED, LENGTH, free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import Count, Texts, TwoOrMore, Zero, readable
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.stimuli import Setting
from ingroup.tables import InputError

_THIRD_PERSON = "third_person_text"  # the form of the narrative that `REWRITER` writes


def _read_settings(names: list[str]) -> None:
    """Raise an InputError if a setting is unknown."""
    for name in names:
        stimuli.setting(name)


def _read_categories(names: list[str]) -> None:
    """Raise an InputError if a category is unknown or its identities cannot be read."""
    for name in names:
        stimuli.identities(name)


class Parameters(shared.Parameters):
    """Types, ranges and choices of the study's parameters.

    The settings must be known, and the corpus must be readable.
    """

    REWRITER: str
    REWRITE_TOKENS: shared.Tokens
    CORPUS: Annotated[str, readable(stimuli.load_events)]
    N_EVENTS: Annotated[
        Zero | TwoOrMore,
        Field(description="a whole number, at least 2 (paired tests need two), or 0 for all"),
    ]
    SETTINGS: Annotated[Texts, readable(_read_settings)]
    CATEGORIES: Annotated[Texts, readable(_read_categories)]
    ROUNDS: Count
    EXCLUSION: Literal["listwise", "pairwise"]
    DRAWN: Literal["sound", "released"]

    @model_validator(mode="after")
    def _corpus_suffices(self) -> Self:
        n = len(stimuli.load_events(self.CORPUS))
        if (self.N_EVENTS or 0) > n:
            raise InputError(
                f"N_EVENTS is {self.N_EVENTS}, expected at most {n}, the number of events in the "
                f"corpus {self.CORPUS!r} (0 takes all)"
            )
        return self


class Event(NamedTuple):
    """An event with its narrative in the form that a setting shows."""

    emotion: str
    text_id: str
    narrative: str


class _Part(NamedTuple):
    """The prompts about one category in one setting."""

    setting: Setting
    category: str
    source: str  # the name of the events in the address of the answers
    design: Design
    free_design: Design | None  # the prompts that a scored model also answers in free text
    settled: bool  # whether all texts of the design are written


def trials(
    events: pd.DataFrame,
    settings: Iterable[str] | None = None,
    categories: Iterable[str] | None = None,
) -> Design:
    """Cross perceivers, experiencers and events in every setting and category (section 3.3).

    Parameters
    ----------
    events : DataFrame
        From :func:`~.stimuli.load_events`.
    settings : iterable of str, optional
        Names of settings, e.g. ``"P0,S0,T0"``; the paper's seven unless given.
    categories : iterable of str, optional
        Names of categories; the paper's three unless given.

    Returns
    -------
    Design
        One block per setting and category. The full corpus gives
        7 x (19^2 + 22^2 + 6^2) x 6,050 = 37,310,350 trials (footnote 4).

    Raises
    ------
    InputError
        For an unknown setting or category, or a setting whose narrative form (a column) some event
        lacks.
    """
    wordings = [stimuli.setting(name) for name in settings or stimuli.prompts()["settings"]]
    categories = list(categories or stimuli.categories())
    # Settings that show the same form of the narrative share their events.
    levels = {}
    for wording in wordings:
        if wording.narrative not in levels:
            levels[wording.narrative] = _levels(events, wording.narrative)

    blocks = []
    for wording in wordings:
        for category in categories:
            blocks.append(_block(wording, category, levels[wording.narrative]))
    return Design(blocks)


def _levels(events: pd.DataFrame, form: str) -> tuple[Event, ...]:
    """Return the events with one form of their narrative.

    Raise an InputError if an event lacks this form.
    """
    if form not in events or events[form].isna().any():
        raise InputError(
            f"this corpus does not have the column {form!r} for every event; leave the settings "
            "that show it out, or rewrite it (appendix A.2)"
        )

    columns = events[["emotion", "text_id", form]].astype(str)
    return tuple(map(Event._make, columns.itertuples(index=False)))


def _block(setting: Setting, category: str, events: tuple[Event, ...]) -> Block:
    """Cross all pairs of a category's identities with all events, in one setting."""
    people = tuple(stimuli.identities(category).identity)

    def render(condition: Mapping[str, Any]) -> list[Message]:
        event = condition["event"]
        return setting.messages(
            condition["perceiver"],
            condition["experiencer"],
            event.emotion,
            event.narrative,
        )

    return Block(
        labels={"setting": setting.name, "category": category},
        factors={"perceiver": people, "experiencer": people, "event": events},
        render=render,
        # The fingerprint of a design hashes these texts; \0 keeps their borders.
        templates="\0".join([setting.persona, setting.scale, setting.task, setting.join]),
    )


def rewriting_design(events: pd.DataFrame) -> Design:
    """Build the design that asks for each event in the third person (appendix A.2).

    The prompt shows the full first-person narrative, or the text written for the corpus where it
    has none.

    Parameters
    ----------
    events : DataFrame
        Rows of the corpus, with ``first_person_text`` and ``generated_text``.

    Returns
    -------
    Design
        One block with the factor ``event``.
    """
    shown = events.first_person_text.astype(object).fillna(events.generated_text)
    levels = _levels(events.assign(first_person_text=shown), "first_person_text")

    def render(condition: Mapping[str, Any]) -> list[Message]:
        return stimuli.rewrite_messages(condition["event"].narrative)

    block = Block(
        labels={"setting": "rewrite"},
        factors={"event": levels},
        render=render,
        templates=stimuli.rewrite_messages("")[0]["content"],
    )
    return Design([block])


@recorded_with(CORPUS="sample", N_EVENTS=12, TEMPERATURE=0.0, SEED=0)
def jobs(parameters: Mapping[str, Any]) -> list[Job]:
    """List the jobs of a run: each of ``MODELS`` in every setting, a control only in the first.

    Parameters
    ----------
    parameters : mapping of str to any
        The parameters of the study's notebook.

    Returns
    -------
    list of Job
        One per model, setting and category, which are its labels.

        With several ``ROUNDS`` a model that answers in free text, and is not a control, is asked
        that many times. The label ``round`` counts from 1, and each round has a seed of its own.

        A scored model (the choices are the whole numbers of the scale) is also asked in free text
        in the first setting, about a fixed random tenth of the events, at least two.

        Where ``REWRITER`` has still to write texts of a setting, its job comes first, and the
        settings that show them are not settled: ask it, and take ``jobs`` again. Settings whose
        form of the narrative the corpus lacks are left out.

    Raises
    ------
    InputError
        As ``load_events``, and where no setting is left.
    EngineError
        Where a reply of the ``REWRITER`` holds no text.
    """
    events = stimuli.load_events(parameters["CORPUS"], parameters["N_EVENTS"] or None)
    # The source names the folder of answers, so another number of events has another.
    source = f"{Path(parameters['CORPUS']).stem}-{len(events)}"
    names = parameters["SETTINGS"] or stimuli.prompts()["settings"]
    # A setting or category that is given twice is asked once.
    settings = [stimuli.setting(name) for name in dict.fromkeys(names)]

    unwritten = []
    if _needs_rewriting(parameters, events, settings):
        writer = _writer(parameters, events, source)
        replies = _replies(writer)
        if replies is None:
            # A plan counts stand-ins of about the same length.
            events = events.assign(third_person_text=events.generated_text)
            unwritten.append(writer)
        else:
            events = with_rewrites(events, replies)

    parts = _parts(parameters, events, settings, source, settled=not unwritten)
    of_models = []
    for model in models.entries(parameters):
        for part in parts:
            if not model.control or part.setting == parts[0].setting:
                of_models += _jobs_of(model, part, parameters)
    return unwritten + of_models


def _needs_rewriting(
    parameters: Mapping[str, Any], events: pd.DataFrame, settings: list[Setting]
) -> bool:
    """Tell whether the settings need third-person texts that ``REWRITER`` writes."""
    forms = [setting.narrative for setting in settings]
    if not parameters["REWRITER"] or _THIRD_PERSON not in forms:
        return False
    return bool(events[_THIRD_PERSON].isna().any())


def _writer(parameters: Mapping[str, Any], events: pd.DataFrame, source: str) -> Job:
    """Build the job that asks ``REWRITER`` for the events in the third person."""
    model, engine = models.split_entry(parameters["REWRITER"], parameters["ENGINE"])
    tokens = parameters["REWRITE_TOKENS"]
    # The texts must not vary, whatever TEMPERATURE the study has.
    greedy = {**parameters, "TEMPERATURE": 0.0, "MAX_TOKENS": tokens}

    return Job(
        study="empathy_gap",
        source=source,
        model=model,
        engine=engine,
        part=f"rewrite-{tokens}",
        design=rewriting_design(events),
        sampling=free_sampling(greedy, model),
        labels={"setting": "rewrite", "category": ""},
    )


def _replies(writer: Job) -> pd.DataFrame | None:
    """Read the stored replies of the rewriter. Return None if a reply is missing or failed."""
    if not answered_jobs([writer]):
        return None
    replies = stored(writer).read()
    # Failed replies are asked for again, so the texts are not complete.
    if (replies.finish_reason == FAILED).any():
        return None
    return replies


def _parts(
    parameters: Mapping[str, Any],
    events: pd.DataFrame,
    settings: list[Setting],
    source: str,
    settled: bool,
) -> list[_Part]:
    """List the prompts of each category in each setting whose form of narrative the corpus has.

    Raise an InputError if the corpus has the form of no setting.
    """
    shown = [setting for setting in settings if events[setting.narrative].notna().all()]
    if not shown:
        forms = ", ".join(sorted({setting.narrative for setting in settings}))
        corpus = parameters["CORPUS"]
        raise InputError(f"the corpus {corpus} lacks the form that SETTINGS show ({forms})")

    few_events = events[events.free_text]
    categories = parameters["CATEGORIES"] or stimuli.categories()
    parts = []
    for setting in shown:
        for category in dict.fromkeys(categories):
            free_design = None
            if setting == shown[0]:
                free_design = trials(few_events, [setting.name], [category])
            part = _Part(
                setting=setting,
                category=category,
                source=source,
                design=trials(events, [setting.name], [category]),
                free_design=free_design,
                # Only settings that show the rewritten form wait for it.
                settled=settled or setting.narrative != _THIRD_PERSON,
            )
            parts.append(part)
    return parts


def _jobs_of(model: models.ModelEntry, part: _Part, parameters: Mapping[str, Any]) -> list[Job]:
    """List the jobs that ask one model about one category in one setting."""
    free = free_sampling(parameters, model.name)
    setting = part.setting
    # The category is a part of the folder's name.
    category = "-".join(part.category.lower().split())
    rounds = parameters.get("ROUNDS", 1)
    labels: dict[str, Any] = {"setting": setting.name, "category": part.category}
    if rounds > 1:
        labels["round"] = 1

    first_round = Job(
        study="empathy_gap",
        source=part.source,
        model=model.name,
        engine=model.engine,
        part=f"{setting.name}-{category}",
        design=part.design,
        sampling=free,
        labels=labels,
        settled=part.settled,
        reading=Reading(model.reading, model.ending),
    )

    if model.is_scored:
        numbers = tuple(map(str, range(setting.low, setting.high + 1)))
        scored = replace(first_round, sampling=replace(free, choices=numbers))
        if part.free_design is None:
            return [scored]
        # Another source gives these answers a folder of their own.
        source = f"{part.source}-tenth"
        return [scored, replace(first_round, source=source, design=part.free_design)]

    if model.control:
        return [first_round]

    # The address of the only round is also that of the first of several.
    every_round = [first_round]
    for number in range(2, rounds + 1):
        again = replace(
            first_round,
            part=f"{first_round.part}-round{number}",
            sampling=replace(free, seed=free.seed + 1000 * (number - 1)),
            labels={**labels, "round": number},
        )
        every_round.append(again)
    return every_round


def with_rewrites(events: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Take the events' ``third_person_text`` from the replies to `rewriting_design` them.

    Parameters
    ----------
    events : DataFrame
        From :func:`~.stimuli.load_events`.
    responses : DataFrame
        One row per event, with ``text``, ``error`` and ``finish_reason``.

    Returns
    -------
    DataFrame
        The events with this column.

    Raises
    ------
    EngineError
        Where a call failed, a reply holds no text, or a reply was cut before its brace closed. The
        message names the event.
    """
    texts = []
    for event, reply in zip(events.itertuples(), responses.itertuples(), strict=True):
        name = f"event {event.emotion} {event.text_id}"
        # A failed call has no text.
        text = stimuli.rewritten_narrative(reply.text) if isinstance(reply.text, str) else ""
        if not text:
            reason = f": {reply.error}" if reply.error else ""
            raise EngineError(f"{name} has no third-person text in its reply{reason}")
        # Where no brace closes, the first line is taken, so a cut text would pass for a whole one.
        if reply.finish_reason == LENGTH and "}" not in reply.text:
            raise EngineError(f"{name} has a rewritten text that was cut; give more REWRITE_TOKENS")
        texts.append(text)
    return events.assign(third_person_text=texts)


def rewrites_to_check(
    events: pd.DataFrame, responses: pd.DataFrame, seed: int, n: int = 24
) -> pd.DataFrame:
    """Draw rewritten texts for a person to compare with the originals, as the authors did.

    Parameters
    ----------
    events : DataFrame
        As in `with_rewrites`.
    responses : DataFrame
        As in `with_rewrites`.
    seed : int
        Draws the sample.
    n : int
        How many texts are drawn, or all if there are fewer.

    Returns
    -------
    DataFrame
        Events with their ``third_person_text``, and the empty column ``faithful``.

    Raises
    ------
    EngineError
        As `with_rewrites`.
    """
    written = with_rewrites(events, responses)
    sample = written.sample(min(n, len(written)), random_state=seed)
    return sample.drop(columns="text_id").assign(faithful="")


def trial_labels(condition: Mapping[str, Any]) -> dict[str, str]:
    """Name what a trial asks about, for a table of replies.

    Parameters
    ----------
    condition : mapping
        The condition of a trial of `trials`.

    Returns
    -------
    dict
        ``perceiver``, ``experiencer`` and ``event``, which is its emotion and its narrative.
    """
    event = condition["event"]
    return {
        "perceiver": condition["perceiver"],
        "experiencer": condition["experiencer"],
        "event": f"{event.emotion}: {event.narrative}",
    }
