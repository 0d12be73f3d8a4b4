"""The parameters of the third study's notebooks, checked before a kernel starts."""

from typing import Annotated, Literal

from ingroup import parameters
from ingroup.parameters import readable
from ingroup.studies.giebench import stimuli


class Parameters(parameters.Parameters):
    """Types, ranges and choices; that the questions can be read."""

    QUESTIONS: Annotated[str, readable(stimuli.load_questions)]
    ORDER: Literal["given", "rotate"]
    RAW: Literal["released", "paper"]
    MISMATCH: bool
    DENOMINATOR: Literal["paper", "released"]
