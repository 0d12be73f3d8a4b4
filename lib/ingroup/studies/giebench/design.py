"""Design and parameters of Wang et al.: item x order of the answers, under each prompt."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
from pydantic import Field

from ingroup import models
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message, tenth
from ingroup.inference import Job, recorded_with
from ingroup.inference.engine import free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import existing, readable
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.construction import examples_of, filled_sheet
from ingroup.studies.giebench.stimuli import Question

PROMPTS = ("Raw", "ID", "COT")
MISMATCHES = ("COT mismatch", "ID mismatch")
VERDICTS = tuple(f"[[{letter}]]" for letter in stimuli.LETTERS)


class Parameters(shared.Parameters):
    """Types, ranges and choices of the parameters, and checks of questions, topics and sheets."""

    QUESTIONS: Annotated[str, readable(stimuli.load_questions)]
    ORDER: Literal["given", "rotate"]
    WORDING: Literal["straight", "uncued", "paper", "released"]
    MISMATCH: bool
    DENOMINATOR: Literal["paper", "released"]
    ROUNDING: Literal["none", "released"]
    TOPICS: Annotated[
        str,
        existing("a CSV file with the columns category, identity and topic"),
        readable(lambda file: file and examples_of(file)),
    ]
    SHEET: Annotated[
        str,
        existing("a filled copy of the sheet of make 31"),
        readable(lambda file: file and filled_sheet(file)),
    ]
    ANNOTATORS: Annotated[int, Field(ge=2, le=1000, description="a whole number, 2 to 1,000")]


class ItemPrompt(NamedTuple):
    """One item under one prompt."""

    question: Question
    prompt: str
    shift: int  # places by which its answers are moved
    identity: str | None  # that the prompt names instead of the item's own, None for its own


def trials(
    items: Sequence[Question], prompt: str, order: str = "given", wording: str = "straight"
) -> Design:
    """Make the design of Wang et al. (section 3.2) under one prompt.

    Parameters
    ----------
    items : sequence of Question
        The items.
    prompt : {"Raw", "ID", "COT"}
        The prompt.
    order : {"given", "rotate"}
        "rotate" asks each item four times, with its answers moved by 0, 1, 2 and 3 places. "given"
        asks it once, which is a prefix of the rotated design.
    wording : str
        A wording of prompts.yaml.

    Returns
    -------
    Design
        One block of :class:`ItemPrompt`.

    Raises
    ------
    InputError
        As :func:`ingroup.studies.giebench.stimuli.messages` does.
    """
    shifts = range(len(stimuli.LETTERS)) if order == "rotate" else range(1)
    in_order = []
    for shift in shifts:
        for item in items:
            in_order.append(ItemPrompt(item, prompt, shift, None))
    return _design(in_order, {"prompt": prompt, "order": order}, wording)


def mismatched_design(
    items: Sequence[Question], prompt: str, pairs: pd.DataFrame, wording: str = "straight"
) -> Design:
    """Ask items of either identity of a pair with the other identity in the prompt (section 4.2).

    Parameters
    ----------
    items : sequence of Question
        The items.
    prompt : {"ID", "COT"}
        The prompt.
    pairs : DataFrame
        The pairs of :func:`pairs_of`.
    wording : str
        A wording of prompts.yaml.

    Returns
    -------
    Design
        One block of :class:`ItemPrompt`.

    Raises
    ------
    InputError
        As :func:`ingroup.studies.giebench.stimuli.messages` does.

    Notes
    -----
    The paper's words are of one direction only. Its shares of (Male, Female) are of the 67 items of
    both: 32 of 67 are the 47.8 %, 29 the 43.3 % after the mismatch. (Without a mismatch it prints
    Table 1's share of the category, 45 over n + 1.)
    """
    # Trials go by item and identity, as a pair that is listed in both orders is one.
    by_identity = {}
    for pair in pairs.itertuples():
        others = {pair.identity_i: pair.identity_j, pair.identity_j: pair.identity_i}
        for item in items:
            if item.identity in others:
                other = others[item.identity]
                by_identity[item.key, other] = ItemPrompt(item, prompt, 0, other)
    return _design(list(by_identity.values()), {"prompt": prompt, "order": "mismatch"}, wording)


def _design(in_order: Sequence[ItemPrompt], labels: Mapping[str, str], wording: str) -> Design:
    """Make a design of one block with these trials."""

    def render(condition: Mapping[str, Any]) -> list[Message]:
        item_prompt = condition["asked"]
        return stimuli.messages(
            item_prompt.question,
            item_prompt.prompt,
            wording,
            item_prompt.identity,
            item_prompt.shift,
        )

    # All prompts are written here: an item that cannot be asked so is named before any is asked,
    # and the fingerprint is that of the prompts themselves.
    texts = []
    for item_prompt in in_order:
        (message,) = render({"asked": item_prompt})
        texts.append(message["content"])
    block = Block(labels, {"asked": tuple(in_order)}, render, "\n".join(texts))
    return Design([block])


def pairs_of(items: Sequence[Question]) -> pd.DataFrame:
    """List the identity tuples that have items of both identities.

    Parameters
    ----------
    items : sequence of Question
        The items.

    Returns
    -------
    DataFrame
        Rows of :func:`ingroup.studies.giebench.stimuli.tuples`.
    """
    pairs = stimuli.tuples()
    identities = {item.identity for item in items}
    have_items = pairs[["identity_i", "identity_j"]].isin(identities)
    return pairs[have_items.all(axis=1)]


def in_columns(condition: Mapping[str, Any]) -> dict[str, str | None]:
    """Lay out the prompt and the item of a trial as a row of a table.

    Parameters
    ----------
    condition : mapping
        The condition of a trial of this design.

    Returns
    -------
    dict
        ``prompt``, and the columns of :func:`ingroup.studies.giebench.stimuli.in_columns` with the
        answers in the order that was asked.
    """
    item_prompt = condition["asked"]
    item = stimuli.rotate(item_prompt.question, item_prompt.shift)
    return {"prompt": item_prompt.prompt, **stimuli.in_columns(item)}


def missing_plans(jobs: Iterable[Job], plans: Sequence[str] = PROMPTS) -> dict[str, list[str]]:
    """List the plans under which a model has no answers.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs with answers.
    plans : sequence of str
        Plans that an analysis needs.

    Returns
    -------
    dict of str to list of str
        The plans that each model lacks, for every model that has one of them at least.
    """
    answered: dict[str, set[str]] = {}
    for job in jobs:
        plan = job.labels["plan"]
        if plan in plans:
            answered.setdefault(job.model, set()).add(plan)

    missing: dict[str, list[str]] = {}
    for model, plans_of_model in answered.items():
        missing[model] = [plan for plan in plans if plan not in plans_of_model]
    return missing


def models_with_all(jobs: Iterable[Job], plans: Sequence[str] = PROMPTS) -> list[str]:
    """Select the models that have answers under all of some plans.

    Parameters
    ----------
    jobs : iterable of Job
        Jobs with answers.
    plans : sequence of str
        Plans that an analysis needs.

    Returns
    -------
    list of str
        The models, in the order of the jobs.
    """
    return [model for model, missing in missing_plans(jobs, plans).items() if not missing]


@recorded_with(
    QUESTIONS="sample",
    ORDER="rotate",
    WORDING="uncued",
    TEMPLATE="chat",
    TEMPERATURE=0.0,
    TOP_P=1.0,
    SEED=0,
)
def jobs(parameters: Mapping[str, Any]) -> list[Job]:
    """Plan the jobs for each of ``MODELS``: three prompts and, with ``MISMATCH``, other identities.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run, see :class:`Parameters`.

    Returns
    -------
    list of Job
        One job per model and plan; the plan is its label. Plans are "Raw", "ID", "COT" and, with
        ``MISMATCH``, "COT mismatch" and "ID mismatch", where the prompt names another identity.
        Scored answers are the four verdicts, written as the prompt wants them. A scored model is
        also asked about a fixed random tenth of the items in free text.
    """
    items = stimuli.load_questions(parameters["QUESTIONS"])
    source = f"{Path(parameters['QUESTIONS']).stem}-{len(items)}"
    plans = _plans(parameters, items)
    few_plans = _plans(parameters, tenth(items))
    # No prompt has a system turn.
    options = {"system": "plain" if parameters["TEMPLATE"] == "none" else "fold"}

    planned = []
    for model in models.entries(parameters):
        free = free_sampling(parameters, model.name)
        batches = [(source, plans, free)]
        if model.is_scored:
            scored = replace(free, choices=VERDICTS)
            batches = [(source, plans, scored), (f"{source}-tenth", few_plans, free)]

        for batch_source, batch_plans, sampling in batches:
            for plan in batch_plans:
                job = Job(
                    study="giebench",
                    source=batch_source,
                    model=model.name,
                    engine=model.engine,
                    part=plan.part,
                    design=plan.design,
                    sampling=sampling,
                    labels={"plan": plan.name},
                    options=options,
                    reading=Reading(model.reading, model.ending),
                )
                planned.append(job)
    return planned


class _Plan(NamedTuple):
    """One prompt, with the identity of each item or with another identity."""

    name: str
    part: str  # of a job's address
    design: Design


def _plans(parameters: Mapping[str, Any], items: Sequence[Question]) -> list[_Plan]:
    """Make the plans of a run, each with its design."""
    order = parameters["ORDER"]
    wording = parameters["WORDING"]

    plans = []
    for prompt in PROMPTS:
        part = _part(parameters, prompt, order)
        plans.append(_Plan(prompt, part, trials(items, prompt, order, wording)))

    if not parameters["MISMATCH"]:
        return plans
    pairs = pairs_of(items)
    # A user's items may have no two identities of one tuple.
    if len(pairs):
        for prompt in ("COT", "ID"):
            part = _part(parameters, prompt, "mismatch")
            design = mismatched_design(items, prompt, pairs, wording)
            plans.append(_Plan(f"{prompt} mismatch", part, design))
    return plans


def _part(parameters: Mapping[str, Any], prompt: str, kind: str) -> str:
    """Name the part of a job's address that tells prompt, order, wording and template."""
    part = f"{prompt}-{kind}"
    wording = parameters["WORDING"]
    changed = stimuli.templates()["wordings"][wording]
    # A wording changes the layout of all prompts, or some of the prompts. A prompt that it does
    # not change keeps its address.
    if "question" in changed or prompt in changed.get("prompts", ()):
        part = f"{part}+{wording}"
    if parameters["TEMPLATE"] == "none":
        part = f"{part}+plain"
    return part
