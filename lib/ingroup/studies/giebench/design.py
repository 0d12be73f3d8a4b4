"""The design of Wang et al.: item x order of the answers, under one prompt; its parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
from pydantic import Field

from ingroup import models
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message, tenth
from ingroup.inference import Call, excerpts_of
from ingroup.inference.engine import free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import readable
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.construction import read_topics
from ingroup.studies.giebench.stimuli import Question

PROMPTS = ("Raw", "ID", "COT")
VERDICTS = tuple(f"[[{letter}]]" for letter in stimuli.LETTERS)


class Parameters(shared.Parameters):
    """Types, ranges and choices; that the questions, topics and sheets can be read."""

    QUESTIONS: Annotated[str, readable(stimuli.load_questions)]
    ORDER: Literal["given", "rotate"]
    WORDING: Literal["straight", "uncued", "paper", "released"]
    MISMATCH: bool
    DENOMINATOR: Literal["paper", "released"]
    ROUNDING: Literal["none", "released"]
    TOPICS: Annotated[str, readable(lambda file: file and read_topics(Path(file)))]
    SHEET: Annotated[str, readable(lambda file: file and read_topics(Path(file), annotated=True))]
    ANNOTATORS: Annotated[int, Field(ge=2, description="a whole number, at least 2")]


class Asked(NamedTuple):
    """One item under one prompt."""

    question: Question
    prompt: str
    shift: int  # places by which its answers are moved
    identity: str | None  # in the prompt, instead of the item's own; None: its own


def trials(
    items: Sequence[Question], prompt: str, order: str = "given", wording: str = "straight"
) -> Design:
    """The design of Wang et al. (section 3.2) under one prompt, one block of :class:`Asked`.

    Order "rotate" asks each item four times, with its answers moved by 0, 1, 2 and 3 places;
    "given" once, which is a prefix of the rotated design. Raises InputError as
    :func:`ingroup.studies.giebench.stimuli.messages`.
    """
    shifts = range(len(stimuli.LETTERS)) if order == "rotate" else (0,)
    asked = [Asked(item, prompt, shift, None) for shift in shifts for item in items]
    return _asked(asked, {"prompt": prompt, "order": order}, wording)


def mismatched(
    items: Sequence[Question], prompt: str, pairs: pd.DataFrame, wording: str = "straight"
) -> Design:
    """Items of either identity of a pair asked with the other one in the prompt (section 4.2).

    The paper's words are of one direction only; its shares of (Male, Female) are of the 67 items of
    both: 32 of 67 are the 47.8 %, 29 the 43.3 % after the mismatch. (Without one it prints Table
    1's share of the category, 45 over n + 1.) The pairs are those of :func:`pairs_of`.
    """
    told = {
        (item.key, other): item  # a pair in both orders is one
        for pair in pairs.itertuples()
        for item in items
        for own, other in permutations((pair.identity_i, pair.identity_j))
        if item.identity == own
    }
    asked = [Asked(item, prompt, 0, other) for (_, other), item in told.items()]
    return _asked(asked, {"prompt": prompt, "order": "mismatch"}, wording)


def _asked(asked: Sequence[Asked], labels: Mapping[str, str], wording: str) -> Design:
    def render(condition: Mapping[str, Any]) -> list[Message]:
        one = condition["asked"]
        return stimuli.messages(one.question, one.prompt, wording, one.identity, one.shift)

    # An item that cannot be asked so is said before anything is asked; and the fingerprint is that
    # of the prompts themselves.
    texts = [render({"asked": one})[0]["content"] for one in asked]
    return Design([Block(labels, {"asked": tuple(asked)}, render, "\n".join(texts))])


def pairs_of(items: Sequence[Question]) -> pd.DataFrame:
    """The tuples of :func:`ingroup.studies.giebench.stimuli.tuples` with items on both sides."""
    pairs, there = stimuli.tuples(), {item.identity for item in items}
    return pairs[pairs[["identity_i", "identity_j"]].isin(there).all(axis=1)]


@excerpts_of(QUESTIONS="sample", ORDER="rotate")
def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks of each of ``MODELS``: a call a plan, which is its label.

    Plans are "Raw", "ID", "COT" and, with ``MISMATCH``, "COT mismatch" and "ID mismatch", where the
    prompt names another identity. Over choices the four verdicts are asked for as the prompt wants
    them written, and the prompts of a fixed random tenth of the items freely as well.
    """
    items, order = stimuli.load_questions(parameters["QUESTIONS"]), parameters["ORDER"]
    source = f"{Path(parameters['QUESTIONS']).stem}-{len(items)}"
    wording, plain = parameters["WORDING"], parameters["TEMPLATE"] == "none"
    own = stimuli.templates()["wordings"][wording]  # what it changes: the layout, or some prompts

    def place(prompt: str, kind: str) -> str:
        other = "question" in own or prompt in own.get("prompts", ())
        return f"{prompt}-{kind}" + f"+{wording}" * other + "+plain" * plain

    def plans(items: Sequence[Question]) -> dict[str, tuple[str, Design]]:
        """By plan, the part of a call's address and what is asked."""
        asked = {q: (place(q, order), trials(items, q, order, wording)) for q in PROMPTS}
        pairs = pairs_of(items) if parameters["MISMATCH"] else ()
        for q in ("COT", "ID") if len(pairs) else ():
            asked[f"{q} mismatch"] = place(q, "mismatch"), mismatched(items, q, pairs, wording)
        return asked

    everything = plans(items)
    few = plans(tenth(items))
    options = {"system": "plain" if plain else "fold"}  # no prompt has a system turn
    found = []
    for model in models.asked(parameters):
        who = model.name, model.engine
        free = free_sampling(parameters, model.name)
        more = {"options": options, "reading": Reading(model.reading, model.ending)}
        ways = [(source, everything, free)]
        if model.over_choices:
            scored = replace(free, choices=VERDICTS)
            ways = [(source, everything, scored), (f"{source}-tenth", few, free)]
        for asked_about, asked, sampling in ways:
            for plan, (part, design) in asked.items():
                at = "giebench", asked_about, *who, part
                found.append(Call(*at, design, sampling, {"plan": plan}, **more))
    return found
