"""What the parameters of every notebook are checked for; a study's ``parameters`` adds its own.

Here are types, ranges and what has to fit together; defaults stand in the notebook's one cell of
parameters. A field's description completes the sentence "NAME must be ...".
"""

import glob
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from ingroup import models
from ingroup.inference.engine import EngineError, address
from ingroup.tables import InputError

SERVED = ("openai", "replay")  # engines to which a model is a name; the others load it

Count = Annotated[int, Field(ge=1, description="a whole number, at least 1")]
CountOrNone = Annotated[int, Field(ge=0, description="a whole number, not negative")]
Price = Annotated[float, Field(ge=0, description="a number, not negative")]
Level = Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")]
Temperature = Annotated[float, Field(ge=0, le=2, description="0 to 2")]
TopP = Annotated[float, Field(gt=0, le=1, description="above 0 and at most 1")]
MinusOne = Annotated[float, Field(ge=-1, le=-1)]  # stands for what the paper's table has


def _divided(value: Any) -> Any:
    """A text's parts between semicolons; whatever else as it is."""
    is_text = isinstance(value, str)
    return [part.strip() for part in value.split(";") if part.strip()] if is_text else value


Texts = Annotated[list[str], BeforeValidator(_divided), Field(description="a list of texts")]


def readable(load: Callable[[Any], Any]) -> AfterValidator:
    """The check that a function takes a value; what it raises says what is wrong."""

    def check(value: Any) -> Any:
        load(value)
        return value

    return AfterValidator(check)


class Parameters(BaseModel, extra="forbid", allow_inf_nan=False):
    """The parameters that notebooks share: models, the engine and its options, numbers."""

    MODEL: Annotated[str, Field(min_length=1, description="the name of a model, e.g. calibrant")]
    CONTROL: str
    ENGINE: Literal["transformers", "vllm", "openai", "replay"]
    TEMPERATURE: Temperature
    TOP_P: TopP
    MAX_TOKENS: Count
    N_RESAMPLES: Count
    CLUSTER_SEEDS: Count
    ALPHA: Level
    SEED: CountOrNone
    PARSING: Literal["sound", "released"]
    SYSTEM: Literal["keep", "fold"]
    BOS: Literal["template", "released"]
    BATCH_SIZE: Count
    DTYPE: Literal["auto", "float32", "bfloat16", "float16"]
    GPUS: Count
    ENGINE_WORKERS: Count
    RAY_ADDRESS: str
    BASE_URL: str
    IN_FLIGHT: Count
    PRICE_IN: Price
    PRICE_OUT: Price
    RECORDINGS: str
    RUN: str

    @model_validator(mode="after")
    def _models_and_engine_fit(self) -> Self:
        """A notebook without ENGINE reads what others asked, and a model is only a name to it."""
        engine, loads = self.ENGINE, self.ENGINE is not None and self.ENGINE not in SERVED
        for name in ("MODEL", "CONTROL", "REWRITER"):
            model = getattr(self, name, None)
            if model and loads and not models.is_there(model):
                raise InputError(
                    f"{name} {model!r} is neither a model in data/models "
                    f"({', '.join(models.here())}), nor a folder with a config.json, nor a hub "
                    "name such as organisation/name"
                )
            if name != "MODEL" and model and engine == "replay":
                raise InputError(f"ENGINE=replay has the answers of one model: leave {name} empty")
        for name, its in (("RECORDINGS", "replay"), ("BASE_URL", "openai")):
            if getattr(self, name) and engine != its:
                raise InputError(f"{name} is for ENGINE={its}, found ENGINE={engine}")
        plain = {"SYSTEM": "keep", "BOS": "template", "DTYPE": "auto", "RAY_ADDRESS": ""}
        for name, value in (plain | {"ENGINE_WORKERS": 1}).items():
            if not loads and getattr(self, name) not in (value, None):
                loading = "an engine that loads the model"
                raise InputError(f"{name} is for {loading}, found ENGINE={engine}")
        if engine == "replay" and not self.RECORDINGS:
            needed = "RECORDINGS=<file or folder> with the recorded answers"
            raise InputError(f"ENGINE=replay needs {needed}")
        if self.RECORDINGS and not glob.glob(self.RECORDINGS):
            raise InputError(f"RECORDINGS: there is nothing at {self.RECORDINGS!r}")
        if self.BASE_URL:
            try:
                address(self.BASE_URL)
            except EngineError as error:
                raise InputError(f"BASE_URL: {error}") from error
        return self
