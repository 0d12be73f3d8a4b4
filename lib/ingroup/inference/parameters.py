"""The parameters that all notebooks share, checked by pydantic before a model is asked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from ingroup.inference.answers import Sampling
from ingroup.inference.models import Model, model
from ingroup.inference.replay_engine import logged
from ingroup.tables import InputError

ENGINES = Path(__file__).with_name("engines.yaml")


def _parts(value: Any) -> Any:
    """Split a text at its semicolons."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(";")]
        return [part for part in parts if part]
    return value


Texts = Annotated[list[str], BeforeValidator(_parts)]
Count = Annotated[int, Field(ge=1, le=10**9)]
AtLeast0 = Annotated[int, Field(ge=0)]
Price = Annotated[float, Field(ge=0)]


class Parameters(BaseModel, extra="forbid", allow_inf_nan=False):
    """Models, their engine and its options, and numbers. A study's class adds its own.

    Defaults of the engines stand in ``engines.yaml``; a notebook's cell of
    parameters has those that a student changes.
    """

    MODELS: Annotated[Texts, Field(min_length=1)]
    ENGINE: Literal["", "transformers", "vllm", "inspect", "replay"] = ""
    READING: Literal["", "free", "greedy", "expected"] = ""
    TEMPERATURE: Annotated[float, Field(ge=0, le=2)] | Literal[""] = 0.0
    TOP_P: Annotated[float, Field(gt=0, le=1)] = 1.0
    MAX_TOKENS: Annotated[int, Field(ge=1, le=10**7)] = 128
    REASONING: Annotated[str, Field(pattern=r"^(none|minimal|low|medium|high|[1-9]\d{0,6})?$")] = ""
    SEED: Annotated[int, Field(ge=0, lt=2**32)] = 0
    PARSING: Literal["sound", "released"] = "sound"
    RUN: str = "lab"
    SYSTEM: Literal["keep", "fold", "plain"] = "keep"
    BOS: Literal["template", "released"] = "template"
    BATCH_SIZE: Count = 64
    DTYPE: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    GPUS: AtLeast0 = 0
    ENGINE_WORKERS: Count = 1
    RAY_ADDRESS: str = ""
    BASE_URL: str = ""
    IN_FLIGHT: AtLeast0 = 0
    TIMEOUT: Count = 600
    BATCH: bool = False
    PRICE_IN: Price = 0.0
    PRICE_OUT: Price = 0.0
    COST_LIMIT: Price = 0.0
    RECORDINGS: str = ""

    @classmethod
    def of(cls, names: Mapping[str, Any]) -> Self:
        """Select the parameters among a notebook's ``globals()``, and check them.

        Raises
        ------
        InputError
            The first value that cannot work, in one sentence.
        """
        values = yaml.safe_load(ENGINES.read_text("utf8"))
        for name in cls.model_fields:
            if name in names:
                values[name] = names[name]
        if Path(values["RECORDINGS"] or "-").is_dir():
            values |= logged(values["RECORDINGS"], values["MODELS"])

        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            text = first["msg"].removeprefix("Value error, ")
            if name:
                text = f"{name} {first['input']!r}: {text}"
            raise InputError(text) from error

    @property
    def models(self) -> list[Model]:
        """List the models of the run."""
        values = self.model_dump()
        return [model(entry, values) for entry in self.MODELS]

    @property
    def sampling(self) -> Sampling:
        """Return how free text is asked for. With TEMPERATURE "" a server uses its own."""
        return Sampling(
            temperature=None if self.TEMPERATURE == "" else self.TEMPERATURE,
            top_p=self.TOP_P,
            max_tokens=self.MAX_TOKENS,
            seed=self.SEED,
            reasoning=self.REASONING,
        )

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        """Refuse models and options that do not fit together."""
        found = self.models
        labels = [one.label for one in found]
        for one in found:
            if labels.count(one.label) > 1:
                raise InputError(f"MODELS names {one.label!r} twice, expected each model once")
            if one.engine in ("transformers", "vllm") and "/" not in one.loaded:
                raise InputError(
                    f"MODELS: found {one.name!r}, expected a name in data/models/models.csv, a "
                    "model's folder, or organisation/name of the model hub"
                )

        if self.COST_LIMIT and not (self.PRICE_IN and self.PRICE_OUT):
            raise InputError("COST_LIMIT needs PRICE_IN and PRICE_OUT, of a million tokens")
        return self
