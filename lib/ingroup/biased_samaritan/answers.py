"""What is asked, and how an answer becomes a rating: one long table, one row for each prompt."""

from dataclasses import replace
from typing import Annotated, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from ingroup import parsing, published
from ingroup.biased_samaritan import stimuli
from ingroup.inference import models, parameters, scoring
from ingroup.inference.answers import Sampling
from ingroup.inference.jobs import Job, answers

NUMBERS = tuple(map(str, range(stimuli.LOW, stimuli.HIGH + 1)))


class Parameters(parameters.Parameters):
    """Parameters of this study; the notebook says what they mean."""

    SCENARIOS: str = "sample"
    N_SCENARIOS: Annotated[int, Field(ge=0)] = 0
    CROSSING: Literal["full", "totals"] = "full"
    LATINO: bool = False
    REQUEST: Annotated[str, Field(min_length=1)] = "sample"
    ROUNDS: Annotated[int, Field(ge=1)] = 2
    TEMPERATURE: Annotated[float, Field(ge=0, le=2)] | Literal["", "printed"] = "printed"
    TOP_P: Annotated[float, Field(gt=0, le=1)] | Literal["printed"] = "printed"
    UNIT: Literal["scenario", "prompt"] = "scenario"
    ALPHA: Annotated[float, Field(gt=0, lt=1)] = 0.01
    BRITTLENESS: Literal["sample", "population"] = "sample"
    POOLING: Literal["within", "averaged"] = "within"

    @model_validator(mode="after")
    def _check_study(self) -> Self:
        """Refuse scenarios that cannot be read, and a unit that has no pairs."""
        stimuli.load_scenarios(self.SCENARIOS, self.N_SCENARIOS)
        if (self.CROSSING, self.UNIT) == ("totals", "prompt"):
            raise ValueError("CROSSING=totals leaves no prompt to pair, expected UNIT=scenario")
        return self


def sampling(parameters: Parameters, model: models.Model) -> Sampling:
    """Choose how a model writes free text; "printed" numbers are those of Table 5, or else 1."""
    table05 = published.load("biased_samaritan", 5).set_index("model")
    known = models.find(model.name)
    name = model.name if known is None else known["name"]
    printed = table05.reindex([name]).iloc[0].fillna(1.0)

    temperature = parameters.TEMPERATURE
    if temperature == "printed":
        temperature = float(printed.temperature)
    top_p = parameters.TOP_P
    if top_p == "printed":
        top_p = float(printed.top_p)
    return Sampling(
        temperature=None if temperature == "" else temperature,
        top_p=top_p,
        max_tokens=parameters.MAX_TOKENS,
        seed=parameters.SEED,
        reasoning=parameters.REASONING,
    )


def jobs(parameters: Parameters) -> list[Job]:
    """List the jobs whose answers become the paper's numbers, one for each category and round.

    A scored model is asked once: its probabilities are the same in every round.
    """
    scenarios = stimuli.load_scenarios(parameters.SCENARIOS, parameters.N_SCENARIOS)
    scored = Sampling(choices=NUMBERS)
    found = []
    for model in parameters.models:
        if model.reading != "free":
            found += _round(parameters, model, scenarios, scored, 1)
            continue
        free = sampling(parameters, model)
        for number in range(1, parameters.ROUNDS + 1):
            found += _round(parameters, model, scenarios, free, number)
    return found


def written(parameters: Parameters) -> list[Job]:
    """List the jobs in which scored models write, greedily, about a tenth of the scenarios."""
    scenarios = stimuli.load_scenarios(parameters.SCENARIOS, parameters.N_SCENARIOS)
    tenth = stimuli.random_tenth(scenarios)
    greedy = Sampling(max_tokens=parameters.MAX_TOKENS)
    found = []
    for model in parameters.models:
        if model.reading != "free":
            found += _round(parameters, model, tenth, greedy, 1)
    return found


def _round(
    parameters: Parameters,
    model: models.Model,
    scenarios: pd.DataFrame,
    sampling: Sampling,
    number: int,
) -> list[Job]:
    """List the jobs of one round, one for each category, each with its own seed."""
    found = []
    for position, category in enumerate(stimuli.CATEGORIES):
        design = stimuli.design(
            scenarios,
            category,
            parameters.CROSSING,
            parameters.LATINO,
            parameters.REQUEST,
        )
        seed = sampling.seed + 1000 * (3 * number + position)

        job = Job(
            study="biased_samaritan",
            part=f"{category}-{parameters.CROSSING}-run{number}",
            model=model,
            design=design,
            sampling=replace(sampling, seed=seed),
            labels={"round": number, "category": category},
            options={"bos": parameters.BOS},
        )
        found.append(job)
    return found


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
        One row for each prompt: ``model``, ``reading``, ``round``, ``category``, the fields of
        `stimuli.Prompt`, ``reply``, ``rating`` (1 to 100, or NaN), ``status`` (why there is no
        rating) and ``option_mass`` (the probability of all admissible first tokens, unconstrained).
    """
    (block,) = job.design.blocks
    table = pd.DataFrame(block.factors["prompt"])
    table = table.assign(model=job.model.name, **job.labels)
    if not job.sampling.choices:
        given = answers(job, ["text", "reasoning"])
        read = parsing.read_ratings(given, stimuli.LOW, stimuli.HIGH)
        return table.assign(
            reading="free",
            reply=given.text,
            rating=read.value,
            status=read.status,
            option_mass=np.nan,
        )

    reading = reading or job.model.reading
    given = answers(job, ["text", "probabilities", "option_mass"])
    if reading == "drawn":
        rating = _draw(given, rng)
    else:
        rating = scoring.ratings(given, job.sampling, reading)[0]
    return table.assign(
        reading=reading,
        reply=given.text,
        rating=rating,
        # Without a rating, the finish reason tells why: failed, or missing.
        status=given.finish_reason.where(rating.isna(), "ok"),
        option_mass=scoring.matrix(given.option_mass, 1)[:, 0],
    )


def _draw(given: pd.DataFrame, rng: np.random.Generator | None) -> pd.Series:
    """Draw a number from each stored distribution, as a model at temperature 1 would."""
    rng = np.random.default_rng(rng)
    weights = scoring.matrix(given.probabilities, len(NUMBERS))
    cumulative = weights.cumsum(axis=1)
    # Stored probabilities have three digits, so their sum is not exactly 1.
    totals = cumulative[:, -1]
    thresholds = rng.random(len(weights)) * totals

    n_below = (cumulative < thresholds[:, None]).sum(axis=1)
    drawn = pd.Series(stimuli.LOW + n_below, given.index, dtype=float)
    return drawn.where(~np.isnan(totals))
