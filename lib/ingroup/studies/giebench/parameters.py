"""The parameters of the third study's notebooks, checked before a kernel starts."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ingroup import parameters
from ingroup.parameters import readable
from ingroup.studies.giebench import stimuli
from ingroup.studies.giebench.construction import read_topics


class Parameters(parameters.Parameters):
    """Types, ranges and choices; that the questions, topics and sheets can be read."""

    QUESTIONS: Annotated[str, readable(stimuli.load_questions)]
    ORDER: Literal["given", "rotate"]
    WORDING: Literal["straight", "uncued", "paper", "released"]
    MISMATCH: bool
    DENOMINATOR: Literal["paper", "released"]
    TOPICS: Annotated[str, readable(lambda file: file and read_topics(Path(file)))]
    SHEET: Annotated[str, readable(lambda file: file and read_topics(Path(file), annotated=True))]
    ANNOTATORS: Annotated[int, Field(ge=2, description="a whole number, at least 2")]
