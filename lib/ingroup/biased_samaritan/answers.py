"""What is asked, and how an answer becomes a rating: one long table, one row for each prompt."""

import math
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from ingroup import published, ratings
from ingroup.biased_samaritan import stimuli
from ingroup.inference import models, parameters
from ingroup.inference.answers import Sampling
from ingroup.inference.jobs import Job

NUMBERS = tuple(map(str, range(stimuli.LOW, stimuli.HIGH + 1)))


class Parameters(parameters.Parameters):
    """Parameters of this study; the notebook says what they mean."""

    SCENARIOS: str = "sample"
    N_SCENARIOS: Annotated[int, Field(ge=0)] = 0
    CROSSING: Literal["full", "totals"] = "full"
    REQUEST: Annotated[str, Field(min_length=1)] = "sample"
    ROUNDS: parameters.Count = 2
    TEMPERATURE: Annotated[float, Field(ge=0, le=2)] | Literal["", "printed"] = "printed"
    TOP_P: Annotated[float, Field(gt=0, le=1)] | Literal["printed"] = "printed"


def jobs(parameters: Parameters) -> list[Job]:
    """List the jobs whose answers become the paper's numbers, one for each category and round.

    A scored model is asked once: its probabilities are the same in every round.
    """
    scenarios = stimuli.load_scenarios(parameters.SCENARIOS, parameters.N_SCENARIOS)
    scored = Sampling(choices=NUMBERS)
    listed = []
    for model in parameters.models:
        if model.reading == "free":
            free = _printed(parameters.sampling, model)
            for number in range(1, parameters.ROUNDS + 1):
                listed += _round(parameters, model, scenarios, free, number)
        else:
            listed += _round(parameters, model, scenarios, scored)
    return listed


def written(parameters: Parameters) -> list[Job]:
    """List the jobs in which scored models write, greedily, about a tenth of the scenarios."""
    scenarios = stimuli.load_scenarios(parameters.SCENARIOS, parameters.N_SCENARIOS)
    n_tenth = max(2, math.ceil(scenarios.scenario.nunique() / 10))
    tenth = stimuli.load_scenarios(parameters.SCENARIOS, n_tenth)
    greedy = Sampling(max_tokens=parameters.MAX_TOKENS)
    listed = []
    for model in parameters.models:
        if model.reading != "free":
            listed += _round(parameters, model, tenth, greedy)
    return listed


def _printed(sampling: Sampling, model: models.Model) -> Sampling:
    """Replace the numbers that are "printed" by those of Table 5, or by 1 for other models."""
    known = models.find(model.name)
    name = model.name if known is None else known["name"]
    table05 = published.load("biased_samaritan", 5).set_index("model")
    printed = table05[["temperature", "top_p"]].reindex([name]).fillna(1.0)

    for number, value in printed.iloc[0].items():
        if getattr(sampling, number) == "printed":
            sampling = replace(sampling, **{number: float(value)})
    return sampling


def _round(
    parameters: Parameters,
    model: models.Model,
    scenarios: pd.DataFrame,
    sampling: Sampling,
    number: int = 1,
) -> list[Job]:
    """List the jobs of one round, one for each category, each with its own seed."""
    listed = []
    for position, category in enumerate(stimuli.CATEGORIES):
        crossing = parameters.CROSSING
        seed = sampling.seed + 1000 * (3 * number + position)

        job = Job(
            study="biased_samaritan",
            part=f"{category}-{crossing}-run{number}",
            model=model,
            design=stimuli.design(scenarios, category, crossing, parameters.REQUEST),
            sampling=replace(sampling, seed=seed),
            labels={"round": number, "category": category},
            options={"bos": parameters.BOS},
        )
        listed.append(job)
    return listed


def load(
    job: Job, reading: str | None = None, rng: np.random.Generator | None = None
) -> pd.DataFrame:
    """Read the answers to a job as ratings.

    Parameters
    ----------
    job : Job
        A job of `jobs` or `written`.
    reading : {"expected", "greedy", "drawn"}, optional
        How scored answers become numbers: the mean of the distribution, the text that greedy
        decoding wrote, or a draw from the distribution. The model's own reading unless given.
    rng : numpy.random.Generator, optional
        The source of draws.

    Returns
    -------
    DataFrame
        As `ratings.load`, with the round, the category and the fields of `stimuli.Prompt`; ratings
        are 1 to 100, NaN without one.
    """
    (block,) = job.design.blocks
    prompts = pd.DataFrame(block.factors["prompt"]).assign(**job.labels)
    readings = [reading or job.model.reading]
    return ratings.load(job, prompts, stimuli.LOW, stimuli.HIGH, readings=readings, rng=rng)
