"""The parameters of the fourth study's notebooks, checked before a kernel starts."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ingroup import dictionary, parameters
from ingroup.parameters import Count, CountOrNone, MinusOne, Temperature, Texts, readable
from ingroup.studies.stereomap import human_evaluation, stimuli
from ingroup.tables import InputError


class Parameters(parameters.Parameters):
    """Types, ranges and choices; that groups are known, and dictionary and sheets can be read."""

    GROUPS: Annotated[Texts, readable(lambda groups: [*map(stimuli.text, groups)])]
    ORIGINAL_GROUPS: Literal["paper", "released"]
    ROUNDS: Count
    ABLATION_ROUNDS: CountOrNone
    FORM: Literal["released", "grammatical"]
    WORDING: Literal["paper", "released"]
    CALLS: Literal["together", "separate"]
    TEMPERATURE: Annotated[MinusOne | Temperature, Field(description="0 to 2, or -1")]
    INCOMPLETE: Literal["drop", "mean"]
    CLUSTERS: Count
    CLUSTER_SEED: CountOrNone
    N_INIT: Count
    DICTIONARY: Annotated[str, readable(dictionary.load_lexicon)]
    MAPPINGS: Annotated[Texts, readable(lambda files: dictionary.load_mappings(*files))]
    DOCUMENTS: Literal["sound", "released"]
    LOOKUP: Literal["sound", "paper"]
    LEMMAS: Literal["sound", "paper"]
    SHEETS: Annotated[Texts, readable(lambda files: files and human_evaluation.score(files))]

    @model_validator(mode="after")
    def _groups_make_clusters(self) -> Self:
        extended = set(stimuli.names("EXTENDED"))
        chosen = len(extended.intersection(self.GROUPS or extended))
        if chosen < (self.CLUSTERS or 0):
            raise InputError(
                f"GROUPS has {chosen} of the groups that the EXTENDED prompts are asked for, "
                f"expected at least as many as CLUSTERS, {self.CLUSTERS}"
            )
        return self
