"""The parameters of the second study's notebook, checked before a kernel starts."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ingroup import parameters
from ingroup.parameters import Count, MinusOne, Temperature, TopP, readable
from ingroup.studies.biased_samaritan import stimuli
from ingroup.tables import InputError


class Parameters(parameters.Parameters):
    """Types, ranges and choices; that scenarios can be read and tested, and prompts paired."""

    SCENARIOS: Annotated[str, readable(stimuli.load_scenarios)]
    CROSSING: Literal["full", "paper"]
    LATINO: bool
    REQUEST: Annotated[str, Field(min_length=1, description="a text, or none for no request")]
    RUNS: Count
    TEMPERATURE: Annotated[MinusOne | Temperature, Field(description="0 to 2, or -1")]
    TOP_P: Annotated[MinusOne | TopP, Field(description="above 0 and at most 1, or -1")]
    UNIT: Literal["scenario", "prompt"]
    BRITTLENESS: Literal["sample", "population"]
    POOLING: Literal["", "within", "averaged"]

    @model_validator(mode="after")
    def _prompts_pair(self) -> Self:
        if (self.CROSSING, self.UNIT) == ("paper", "prompt"):
            raise InputError(
                "CROSSING=paper asks a group and the control in different wordings, which leaves "
                "no prompt to pair: take UNIT=scenario"
            )
        if (n := stimuli.load_scenarios(self.SCENARIOS).scenario.nunique()) < 2:
            raise InputError(f"SCENARIOS has {n} scenario, expected at least 2 (a test needs two)")
        return self
