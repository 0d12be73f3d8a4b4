"""What the parameters of every notebook are checked for; a study's ``design`` adds its own.

Here are types, ranges and what has to fit together; defaults stand in the notebook's one cell of
parameters. A field's description completes the sentence "NAME must be ...".
"""

import glob
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from ingroup import models
from ingroup.tables import InputError

SERVED, LOADING = ("inspect", "replay"), ("transformers", "vllm")  # a name to them, or a folder

Count = Annotated[int, Field(ge=1, le=10**9, description="a whole number, 1 to 10^9")]
CountOrNone = Annotated[int, Field(ge=0, le=10**9, description="a whole number, 0 to 10^9")]
Seed = Annotated[int, Field(ge=0, lt=2**32, description="a whole number, 0 to 2^32 - 1")]
Tokens = Annotated[int, Field(ge=1, le=10**7, description="a whole number, 1 to 10^7")]
Price = Annotated[float, Field(ge=0, description="a number, not negative")]
Temperature = Annotated[float, Field(ge=0, le=2, description="0 to 2")]
TopP = Annotated[float, Field(gt=0, le=1, description="above 0 and at most 1")]
Empty = Annotated[str, Field(max_length=0)]
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


def formerly(name: str, values: Mapping[str, str]) -> BeforeValidator:
    """Take a value under its former name, and say the new one on standard error.

    `values` maps former names of values of the parameter `name` to their names now. Returns a
    validator that replaces them; any other value passes unchanged.
    """

    def renamed(value: Any) -> Any:
        if value not in values:
            return value

        note(f"{name}={value} is now {name}={values[value]}; the old name works for one release")
        return values[value]

    return BeforeValidator(renamed)


@cache
def note(sentence: str) -> None:
    """Print a sentence once, however often a run checks its parameters."""
    print(sentence, file=sys.stderr)


def address(url: str) -> SplitResult:
    """The parts of a server's base URL; InputError where it is none or may hold a secret."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound or "@" in parts.netloc or parts.query or parts.fragment:
        # The address is not repeated: there may be a password in it.
        raise InputError(
            "the base URL must read like http://127.0.0.1:8000/v1 and hold no user, password or "
            "query: a key belongs in the environment"
        )
    return parts


class Parameters(BaseModel, extra="forbid", allow_inf_nan=False):
    """The parameters that notebooks share: models, the engine and its options, numbers."""

    MODELS: Annotated[Texts, Field(min_length=1, description="names of models, e.g. calibrant")]
    ENGINE: Literal["", "transformers", "vllm", "inspect", "openai", "replay"]
    READING: Literal["", "free", "greedy", "drawn", "expected"]
    ENDING: Literal["turn", "newline", "any"]
    TEMPERATURE: Annotated[Empty | Temperature, Field(description="0 to 2, or empty")]
    REASONING: Annotated[
        str,
        Field(
            pattern=r"^(none|minimal|low|medium|high|[1-9]\d{0,6})?$",
            description="empty, none, minimal, low, medium, high, or a number of tokens",
        ),
    ]
    TOP_P: TopP
    MAX_TOKENS: Tokens
    N_RESAMPLES: Count
    CLUSTER_SEEDS: Count
    ALPHA: Annotated[float, Field(gt=0, lt=1, description="a number between 0 and 1")]
    SEED: Seed
    PARSING: Literal["sound", "released"]
    SYSTEM: Literal["keep", "fold"]
    BOS: Literal["template", "released"]
    TEMPLATE: Literal["chat", "none"]
    BATCH_SIZE: Count
    DTYPE: Literal["auto", "float32", "bfloat16", "float16"]
    GPUS: Count
    ENGINE_WORKERS: Count
    RAY_ADDRESS: str
    BASE_URL: Annotated[str, readable(lambda url: url and address(url))]
    IN_FLIGHT: CountOrNone  # 0: adaptive
    TIMEOUT: Count  # seconds
    BATCH: bool
    PRICE_IN: Price
    PRICE_OUT: Price
    COST_LIMIT: Price
    RECORDINGS: str
    RUN: str

    @model_validator(mode="after")
    def _models_and_engines_fit(self) -> Self:
        """A notebook without MODELS reads what others asked."""
        if self.MODELS is None:
            return self
        if self.READING == "drawn" and self.TEMPERATURE == 0:
            raise InputError("READING=drawn needs a TEMPERATURE above 0: at 0 nothing is drawn")
        asked = models.asked(self.model_dump())
        names = [models.label(model.name) for model in asked]
        for name in (name for name in names if names.count(name) > 1):
            raise InputError(f"MODELS names {name!r} twice: one engine of a model to a run")
        writer = getattr(self, "REWRITER", None)
        named = [(m.name, m.engine) for m in asked]
        for name, engine in [*named, *([models.split(writer, self.ENGINE)] if writer else [])]:
            if engine in LOADING and not models.is_there(name):
                raise InputError(
                    f"{name!r} is neither a model in data/models ({', '.join(models.here())}), nor "
                    "in models.csv, nor a folder with a config.json, nor a hub name such as "
                    "organisation/name"
                )
        for model in asked:
            if model.over_choices and model.engine == "replay":
                raise InputError(
                    f"READING={model.reading} needs the probabilities of all admissible answers, "
                    f"which {model.engine} does not give: set READING=free"
                )
        self._options_fit(named)
        return self

    def _options_fit(self, named: list[tuple[str, str]]) -> None:
        """Options that only one kind of engine takes, beside the models with their engines."""
        engines = {engine for _, engine in named}
        found = ", ".join(sorted(engines))
        for name, its in (("RECORDINGS", "replay"), ("BASE_URL", "inspect")):
            if getattr(self, name) and its not in engines:
                raise InputError(f"{name} is for the engine {its}, found {found}")
        plain = {"SYSTEM": "keep", "BOS": "template", "TEMPLATE": "chat", "DTYPE": "auto"}
        for name, value in {**plain, "RAY_ADDRESS": "", "ENGINE_WORKERS": 1}.items():
            if not engines & {*LOADING} and getattr(self, name) not in (value, None):
                raise InputError(f"{name} is for an engine that loads the model, found {found}")
        recorded = [name for name, engine in named if engine == "replay"]
        if recorded:
            self._recordings_are_there(recorded)

    def _recordings_are_there(self, names: list[str]) -> None:
        """Each of the models whose answers are recorded has a place with files."""
        if not self.RECORDINGS:
            needed = "RECORDINGS=<file or folder> with the recorded answers"
            raise InputError(f"the engine replay needs {needed}")
        places = [models.recordings(self.RECORDINGS, name) for name in names]
        own = set(places) - {"", self.RECORDINGS.strip()}
        if "" in places or (len(names) > 1 and len(own) < len(names)):
            expected = ";".join(f"{name}=<place>" for name in names)
            raise InputError(
                f"recordings have the answers of one model, found {', '.join(names)}: give each a "
                f'place of its own, RECORDINGS="{expected}"'
            )
        for place in places:
            if not glob.glob(place):
                raise InputError(f"RECORDINGS: there is nothing at {place!r}")
