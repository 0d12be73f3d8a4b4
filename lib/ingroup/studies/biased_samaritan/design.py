"""The design of Fagan et al.: scenario x wording x phrasing, for one category; its parameters."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
from pydantic import Field, model_validator

from ingroup import models, published
from ingroup import parameters as shared
from ingroup.design import Block, Design, Message, tenth
from ingroup.inference import Call, Sampling, excerpts_of
from ingroup.inference.engine import free_sampling
from ingroup.inference.reading import Reading
from ingroup.parameters import Count, Empty, MinusOne, Temperature, TopP, formerly, readable
from ingroup.studies.biased_samaritan import stimuli
from ingroup.tables import InputError

Crossing = Literal["full", "totals"]
# Stores bear the name that a crossing had when they were written: nothing is asked again.
_STORED_AS = {"full": "full", "totals": "paper"}


class Parameters(shared.Parameters):
    """Types, ranges and choices; that scenarios can be read and tested, and prompts paired."""

    SCENARIOS: Annotated[str, readable(stimuli.load_scenarios)]
    CROSSING: Annotated[Crossing, formerly("CROSSING", {"paper": "totals"})]
    LATINO: bool
    REQUEST: Annotated[str, Field(min_length=1, description="a text, or none for no request")]
    RUNS: Count
    TEMPERATURE: Annotated[
        Empty | MinusOne | Temperature, Field(description="0 to 2, -1, or empty")
    ]
    TOP_P: Annotated[MinusOne | TopP, Field(description="above 0 and at most 1, or -1")]
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
        if (n := stimuli.load_scenarios(self.SCENARIOS).scenario.nunique()) < 2:
            raise InputError(f"SCENARIOS has {n} scenario, expected at least 2 (a test needs two)")
        return self


class Prompt(NamedTuple):
    """One wording of one scenario with one phrasing of a group."""

    scenario: int
    wording: int
    group: str
    phrasing: str
    text: str
    phrase: str


def trials(
    table: pd.DataFrame, category: str, crossing: Crossing = "full", latino: bool = False,
    asking: str = "sample",
) -> Design:  # fmt: skip
    """One block with the factor ``prompt``, a `Prompt` each, for one category (section 4.2).

    Scenarios (a table of :func:`~.stimuli.load_scenarios`) by wordings by phrasings; these change
    fastest, so neighbours share the text up to the slot. The "full" `crossing` puts every phrasing,
    the control among them, into every wording. "totals" asks as many prompts as section 4.2 counts,
    103 x (10 + 1), 103 x (7 + 1) and again 103 x (7 + 1): each phrasing once a scenario, in one of
    its wordings, by turns. It cannot be the paper's crossing: a group with one phrasing has no
    spread over wordings then, and Tables 9 to 11 print one. `category` and `latino` are those of
    :func:`~.stimuli.phrasings`, `asking` that of :func:`~.stimuli.request`.
    """
    phrasings = list(stimuli.phrasings(category, latino).itertuples(index=False))
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
        return stimuli.messages(condition["prompt"].text, condition["prompt"].phrase, asking)

    request = stimuli.request(asking)
    labels = {"category": category, "crossing": _STORED_AS[crossing]}
    return Design([Block(labels, {"prompt": prompts}, render, request.join + request.text)])


def sampling_of(parameters: Mapping[str, Any], model: str) -> Sampling:
    """Temperature and top_p as given, else those of Table 5, else 1 (not in the table)."""
    printed = published.sampling("biased_samaritan", model)
    drawn = {name: parameters[name.upper()] for name in printed}
    for name, given in drawn.items():
        if given == -1:
            drawn[name] = printed[name]
    if drawn["temperature"] == "":
        del drawn["temperature"]
    return free_sampling(parameters, model, **{name: float(x) for name, x in drawn.items()})


@excerpts_of(SCENARIOS="sample", CROSSING="full")
def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks: each category, ``RUNS`` times of each of ``MODELS``, once of a control.

    One call a model, run and category, with the labels ``run`` (from 1) and ``category``; each has
    a seed of its own. Over choices (the whole numbers of the scale) nothing is drawn and there is
    one run; such a model is asked freely as well, greedily, about a fixed random tenth of the
    scenarios.
    """
    p = parameters
    table, scale = stimuli.load_scenarios(p["SCENARIOS"]), stimuli.request()
    chosen = tenth(table.scenario.unique())
    tail = f"{_STORED_AS[p['CROSSING']]}{'+latino' if p['LATINO'] else ''}"
    choices = tuple(map(str, range(scale.low, scale.high + 1)))
    how, designs = (p["CROSSING"], p["LATINO"], p["REQUEST"]), {}
    for few, told in ((False, table), (True, table[table.scenario.isin(chosen)])):
        source = f"{Path(p['SCENARIOS']).stem}-{table.scenario.nunique()}{'-tenth' * few}"
        designs[few] = source, {c: trials(told, c, *how) for c in stimuli.categories()}
    found = []
    for model in models.asked(p):
        drawn = sampling_of(p, model.name)
        reading = Reading(model.reading, model.ending)
        ways = [(False, drawn)]  # whether a tenth is asked, and how
        if model.over_choices:
            scored = replace(drawn, choices=choices)
            ways = [(False, scored), (True, replace(drawn, temperature=0.0))]
        runs = 1 if model.over_choices or model.control else p["RUNS"]
        for few, sampling in ways:
            source, asked = designs[few]
            for run, (number, category) in product(range(1, runs + 1), enumerate(asked)):
                end = "" if p["REQUEST"] == "sample" else f"+{asked[category].fingerprint[:12]}"
                where = source, model.name, model.engine, f"{category}-{tail}{end}-run{run}"
                way = replace(sampling, seed=drawn.seed + 1000 * (3 * run + number))
                labels, options = {"run": run, "category": category}, {"system": "fold"}
                rest = asked[category], way, labels
                more = {"options": options, "reading": reading}
                found.append(Call("biased_samaritan", *where, *rest, **more))
    return found
