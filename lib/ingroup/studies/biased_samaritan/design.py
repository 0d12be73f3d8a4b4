"""The design of Fagan et al. (scenario x wording x phrasing, by category) and its parameters."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
from pydantic import Field, model_validator

from ingroup import models, published
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message, tenth
from ingroup.inference import Job, Sampling, recorded_with
from ingroup.inference.engine import free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import (
    Count,
    Empty,
    MinusOne,
    Temperature,
    TopP,
    TwoOrMore,
    Zero,
    formerly,
    readable,
)
from ingroup.studies.biased_samaritan import stimuli
from ingroup.tables import InputError

Crossing = Literal["full", "totals"]
# Stores bear the name that a crossing had when they were written: nothing is asked again.
_STORED_AS = {"full": "full", "totals": "paper"}


class Parameters(shared.Parameters):
    """Types, ranges and choices of the study's parameters.

    The scenarios must be readable and at least two, and UNIT must find prompts to pair.
    """

    SCENARIOS: Annotated[str, readable(stimuli.load_scenarios)]
    N_SCENARIOS: Annotated[
        Zero | TwoOrMore,
        Field(description="a whole number, at least 2 (a test needs two), or 0 for all"),
    ]
    CROSSING: Annotated[Crossing, formerly("CROSSING", {"paper": "totals"})]
    LATINO: bool
    REQUEST: Annotated[str, Field(min_length=1, description="a text, or none for no request")]
    ROUNDS: Count
    TEMPERATURE: Annotated[
        Empty | MinusOne | Temperature, Field(description="a number from 0 to 2, -1, or empty")
    ]
    TOP_P: Annotated[MinusOne | TopP, Field(description="a number above 0 and at most 1, or -1")]
    UNIT: Literal["scenario", "prompt"]
    BRITTLENESS: Literal["sample", "population"]
    POOLING: Literal["", "within", "averaged"]

    @model_validator(mode="after")
    def _prompts_pair(self) -> Self:
        if (self.CROSSING, self.UNIT) == ("totals", "prompt"):
            raise InputError(
                "CROSSING=totals asks a group and the control in different wordings, which leaves "
                "no prompt to pair: take UNIT=scenario"
            )

        n = stimuli.load_scenarios(self.SCENARIOS).scenario.nunique()
        if n < 2:
            raise InputError(f"SCENARIOS has {n} scenario, expected at least 2 (a test needs two)")
        if (self.N_SCENARIOS or 0) > n:
            raise InputError(
                f"N_SCENARIOS is {self.N_SCENARIOS}, expected at most {n}, the number of scenarios "
                f"in {self.SCENARIOS!r} (0 takes all)"
            )
        return self


class Prompt(NamedTuple):
    """One wording of one scenario with one phrasing of a group."""

    scenario: int
    wording: int
    group: str
    phrasing: str
    text: str
    phrase: str


class _Questions(NamedTuple):
    """The designs about some scenarios, by category, and the name of these scenarios in a store."""

    source: str
    designs: dict[str, Design]


def trials(
    table: pd.DataFrame,
    category: str,
    crossing: Crossing = "full",
    latino: bool = False,
    asking: str = "sample",
) -> Design:
    """Cross scenarios, wordings and phrasings, for one category (section 4.2).

    Parameters
    ----------
    table : DataFrame
        Scenarios, from :func:`~.stimuli.load_scenarios`.
    category : str
        As in :func:`~.stimuli.phrasings`.
    crossing : {"full", "totals"}
        "full" puts every phrasing, the control among them, into every wording. "totals" asks as
        many prompts as section 4.2 counts: 103 x (10 + 1), 103 x (7 + 1) and again 103 x (7 + 1).
        It asks each phrasing once per scenario, in one of its wordings, by turns.
    latino : bool
        As in :func:`~.stimuli.phrasings`.
    asking : str
        As in :func:`~.stimuli.request`.

    Returns
    -------
    Design
        One block with the factor ``prompt``, a `Prompt` each. Phrasings change fastest, so that
        neighbours share the text up to the slot.

    Raises
    ------
    InputError
        For an unknown category.

    Notes
    -----
    "totals" cannot be the paper's crossing. A group with one phrasing has no spread over wordings
    then, and Tables 9 to 11 print one.
    """

    def render(condition: Mapping[str, Any]) -> list[Message]:
        prompt = condition["prompt"]
        return stimuli.messages(prompt.text, prompt.phrase, asking)

    phrasings = stimuli.phrasings(category, latino)
    prompts = _crossed(table, phrasings, crossing)
    request = stimuli.request(asking)
    block = Block(
        labels={"category": category, "crossing": _STORED_AS[crossing]},
        factors={"prompt": tuple(prompts)},
        render=render,
        # Scenarios and phrases are levels of the factor: only what ends a prompt is a template.
        templates=request.join + request.text,
    )
    return Design([block])


def _crossed(table: pd.DataFrame, phrasings: pd.DataFrame, crossing: Crossing) -> list[Prompt]:
    """Cross the wordings of each scenario with the phrasings of the groups.

    Each phrasing takes all wordings of a scenario, or with "totals" one wording, by turns.
    """
    wordings = sorted(table.wording.unique())
    # A user's scenarios may have gaps in their numbers; turns need numbers without gaps.
    scenario_indices, _ = pd.factorize(table.scenario)

    prompts = []
    for scenario_index, row in zip(scenario_indices, table.itertuples(), strict=True):
        for phrasing_index, phrasing in enumerate(phrasings.itertuples()):
            # The next phrasing, and the same phrasing in the next scenario, take the next wording.
            turn = (scenario_index + phrasing_index) % len(wordings)
            if crossing == "totals" and row.wording != wordings[turn]:
                continue

            prompt = Prompt(
                scenario=int(row.scenario),
                wording=int(row.wording),
                group=phrasing.group,
                phrasing=phrasing.phrasing,
                text=row.text,
                phrase=phrasing.text,
            )
            prompts.append(prompt)
    return prompts


def scenarios(parameters: Mapping[str, Any]) -> pd.DataFrame:
    """Load the scenarios of a run: all, or ``N_SCENARIOS`` of them.

    Parameters
    ----------
    parameters : mapping of str to any
        The parameters of the study's notebook.

    Returns
    -------
    DataFrame
        As :func:`~.stimuli.load_scenarios` returns it, with ``free_text``. This marks a fixed
        random tenth of the scenarios, about which a scored model is also asked in free text.

    Raises
    ------
    InputError
        As :func:`~.stimuli.load_scenarios`.

    Notes
    -----
    A smaller number of scenarios is part of a larger one, and its tenth part of the larger tenth.
    So any number is read from recorded answers.
    """
    table = stimuli.load_scenarios(parameters["SCENARIOS"])
    numbers = list(table.scenario.unique())
    in_free_text = tenth(numbers)
    table["free_text"] = table.scenario.isin(in_free_text)

    # A run of an earlier version has no N_SCENARIOS.
    n = parameters.get("N_SCENARIOS")
    if not n:
        return table

    others = [number for number in numbers if number not in in_free_text]
    n_in_free_text = math.ceil(n / 10)
    n_others = n - n_in_free_text
    chosen = in_free_text[:n_in_free_text] + others[:n_others]
    is_chosen = table.scenario.isin(chosen)
    return table[is_chosen].reset_index(drop=True)


def sampling_of(parameters: Mapping[str, Any], model: str) -> Sampling:
    """Choose how a model is sampled.

    Temperature and top_p are as given. A -1 stands for the value in Table 5, or for 1 where the
    table lacks the model.

    Parameters
    ----------
    parameters : mapping
        The notebook's parameters, in capitals.
    model : str
        A name as in ``MODELS``, without an engine.

    Returns
    -------
    Sampling
        For free text. An empty temperature is not sent.
    """
    numbers = {}
    for name, printed in published.sampling("biased_samaritan", model).items():
        number = parameters[name.upper()]
        if number == "":
            continue
        if number == -1:
            number = printed
        numbers[name] = float(number)
    return free_sampling(parameters, model, **numbers)


@recorded_with(
    SCENARIOS="sample",
    N_SCENARIOS=0,
    REQUEST="sample",
    CROSSING="full",
    LATINO=False,
    TEMPERATURE=-1.0,
    TOP_P=-1.0,
    SEED=0,
)
def jobs(parameters: Mapping[str, Any]) -> list[Job]:
    """List the jobs of a run: one per model of ``MODELS``, round up to ``ROUNDS``, and category.

    Parameters
    ----------
    parameters : mapping of str to any
        The parameters of the study's notebook.

    Returns
    -------
    list of Job
        One per model, round and category, with the labels ``round`` (from 1) and ``category``. Each
        has a seed of its own. A control is asked once.

        A scored model (the whole numbers of the scale) has one round, as nothing is
        drawn. It is also asked for free text about a random tenth of the scenarios, always the
        same. These texts are decoded greedily.

    Raises
    ------
    InputError
        As `scenarios`.
    """
    table = scenarios(parameters)
    few = table[table.free_text]
    file = Path(parameters["SCENARIOS"])
    source = f"{file.stem}-{table.scenario.nunique()}"
    every_question = _Questions(source, _designs(table, parameters))
    few_questions = _Questions(f"{source}-tenth", _designs(few, parameters))

    # Every request has the same scale.
    scale = stimuli.request()
    numbers = tuple(map(str, range(scale.low, scale.high + 1)))

    of_all_models = []
    for model in models.entries(parameters):
        sampling = sampling_of(parameters, model.name)
        if model.is_scored:
            scored = replace(sampling, choices=numbers)
            greedy = replace(sampling, temperature=0.0)
            of_all_models += _jobs_of_round(1, model, every_question, scored, parameters)
            of_all_models += _jobs_of_round(1, model, few_questions, greedy, parameters)
            continue

        n_rounds = 1 if model.control else parameters["ROUNDS"]
        for number in range(1, n_rounds + 1):
            of_all_models += _jobs_of_round(number, model, every_question, sampling, parameters)
    return of_all_models


def _designs(table: pd.DataFrame, parameters: Mapping[str, Any]) -> dict[str, Design]:
    """Build the designs about these scenarios, one per category."""
    crossing = parameters["CROSSING"]
    latino = parameters["LATINO"]
    request = parameters["REQUEST"]
    designs = {}
    for category in stimuli.categories():
        designs[category] = trials(table, category, crossing, latino, request)
    return designs


def _jobs_of_round(
    number: int,
    model: models.ModelEntry,
    questions: _Questions,
    sampling: Sampling,
    parameters: Mapping[str, Any],
) -> list[Job]:
    """List the jobs of one round, one per category."""
    variant = _STORED_AS[parameters["CROSSING"]]
    if parameters["LATINO"]:
        variant = f"{variant}+latino"

    by_category = []
    for position, (category, design) in enumerate(questions.designs.items()):
        # The last part of the store's address.
        part = f"{category}-{variant}"
        if parameters["REQUEST"] != "sample":
            # A user's request has no short name, so a fingerprint tells its answers from others.
            part = f"{part}+{design.fingerprint[:12]}"

        # With three categories, 3 * number + position differs for every round and category.
        seed = sampling.seed + 1000 * (3 * number + position)
        job = Job(
            study="biased_samaritan",
            source=questions.source,
            model=model.name,
            engine=model.engine,
            # Recorded answers have this address, which never changes.
            part=f"{part}-run{number}",
            design=design,
            sampling=replace(sampling, seed=seed),
            labels={"round": number, "category": category},
            # No prompt has a system turn, so answers do not depend on SYSTEM.
            options={"system": "fold"},
            reading=Reading(model.reading, model.ending),
        )
        by_category.append(job)
    return by_category
