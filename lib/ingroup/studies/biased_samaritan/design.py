"""The design of Fagan et al.: scenario x wording x phrasing, for one category."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from ingroup import published
from ingroup.design import Block, Design, Message
from ingroup.inference import Call, Sampling
from ingroup.studies.biased_samaritan import stimuli

Crossing = Literal["full", "paper"]


class Prompt(NamedTuple):
    """One wording of one scenario with one phrasing of a group."""

    scenario: int
    wording: int
    group: str
    phrasing: str
    text: str
    phrase: str


def trials(
    table: pd.DataFrame, category: str, crossing: Crossing = "full", latino: bool = False
) -> Design:
    """One block with the factor ``prompt``, a `Prompt` each, for one category (section 4.2).

    Scenarios (a table of :func:`~.stimuli.load_scenarios`) by wordings by phrasings; these change
    fastest, so neighbours share the text up to the slot. The "full" `crossing` puts every phrasing,
    the control among them, into every wording. "paper" asks each once a scenario, in one of its
    wordings, by turns: 103 x (10 + 1), 103 x (7 + 1) and again 103 x (7 + 1) prompts as in section
    4.2, which does not say how wordings were dealt out. `category` and `latino` are those of
    :func:`~.stimuli.phrasings`.
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
        return stimuli.messages(condition["prompt"].text, condition["prompt"].phrase)

    request = stimuli.request()
    labels = {"category": category, "crossing": crossing}
    return Design([Block(labels, {"prompt": prompts}, render, request.join + request.text)])


def sampling_of(parameters: Mapping[str, Any]) -> Sampling:
    """Temperature and top_p as given, else those of Table 5, else 1 (not in the table)."""
    printed = published.sampling("biased_samaritan", parameters["MODEL"])
    given = {name: parameters[name.upper()] for name in printed}
    drawn = {name: float(x if x >= 0 else printed[name]) for name, x in given.items()}
    return Sampling(**drawn, max_tokens=parameters["MAX_TOKENS"], seed=parameters["SEED"])


def calls(parameters: Mapping[str, Any]) -> list[Call]:
    """What a run asks: each category, ``RUNS`` times of ``MODEL`` and once of its ``CONTROL``.

    One call a model, run and category, with the labels ``run`` (from 1) and ``category``; each has
    a seed of its own.
    """
    table, crossing = stimuli.load_scenarios(parameters["SCENARIOS"]), parameters["CROSSING"]
    source = f"{Path(parameters['SCENARIOS']).stem}-{table.scenario.nunique()}"
    designs = {c: trials(table, c, crossing, parameters["LATINO"]) for c in stimuli.categories()}
    sampling = sampling_of(parameters)
    tail = f"{crossing}{'+latino' if parameters['LATINO'] else ''}"
    runs = {parameters["MODEL"]: parameters["RUNS"]}
    runs |= {parameters["CONTROL"]: 1} if parameters["CONTROL"] else {}
    return [
        Call(
            "biased_samaritan", source, model, parameters["ENGINE"], f"{category}-{tail}-run{run}",
            design, replace(sampling, seed=sampling.seed + 1000 * (3 * run + number)),
            {"run": run, "category": category},
        )
        for model, times in runs.items()
        for run in range(1, times + 1)
        for number, (category, design) in enumerate(designs.items())
    ]  # fmt: skip
