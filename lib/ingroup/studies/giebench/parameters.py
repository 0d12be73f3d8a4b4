"""The parameters of the third study's notebooks, checked before a kernel starts."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ingroup import models, parameters
from ingroup.parameters import readable
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.construction import read_topics
from ingroup.tables import InputError


class Parameters(parameters.Parameters):
    """Types, ranges and choices; that the questions, topics and sheets can be read."""

    QUESTIONS: Annotated[str, readable(stimuli.load_questions)]
    ORDER: Literal["given", "rotate"]
    RAW: Literal["released", "paper"]
    WORDING: Literal["straight", "paper", "released"]
    TEMPLATE: Literal["chat", "none"]
    MISMATCH: bool
    DENOMINATOR: Literal["paper", "released"]
    TOPICS: Annotated[str, readable(lambda file: file and read_topics(Path(file)))]
    SHEET: Annotated[str, readable(lambda file: file and read_topics(Path(file), annotated=True))]
    ANNOTATORS: Annotated[int, Field(ge=2, description="a whole number, at least 2")]

    @model_validator(mode="after")
    def _a_server_has_its_template(self) -> Self:
        if self.TEMPLATE == "none":
            served = [m.name for m in models.asked(self.model_dump()) if m.engine == "openai"]
            if served:
                raise InputError(f"TEMPLATE=none is not for {served[0]}: a server renders chats")
        return self
