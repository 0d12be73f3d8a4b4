"""The parameters of the first study's notebook, checked before a kernel starts."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ingroup import parameters
from ingroup.parameters import Count, Texts, readable
from ingroup.studies.empathy_gap import stimuli
from ingroup.tables import InputError


class Parameters(parameters.Parameters):
    """Types, ranges and choices; that the settings are known and the corpus can be read."""

    REWRITER: str
    REWRITE_TOKENS: Count
    CORPUS: str
    N_EVENTS: Annotated[
        Annotated[int, Field(ge=0, le=0)] | Annotated[int, Field(ge=2)],
        Field(description="a whole number, at least 2 (paired tests need two), or 0 for all"),
    ]
    SETTINGS: Annotated[Texts, readable(lambda names: list(map(stimuli.setting, names)))]
    CATEGORIES: Annotated[Texts, readable(lambda names: list(map(stimuli.identities, names)))]
    EXCLUSION: Literal["listwise", "pairwise"]
    DRAWN: Literal["sound", "released"]

    @model_validator(mode="after")
    def _answers_and_corpus_suffice(self) -> Self:
        try:
            stimuli.load_events(self.CORPUS, self.N_EVENTS or None)
        except InputError as error:
            place = f"CORPUS {self.CORPUS!r}, N_EVENTS {self.N_EVENTS}"
            raise InputError(f"{place}: {error}") from error
        return self
