"""Checks of the parameters of every notebook, to which a study's ``design`` adds its own.

The command line makes the checks before a kernel starts, and a notebook in its first cells.

This module checks types and ranges, and whether values fit together. Defaults stand in the
notebook's one cell of parameters. A field's description completes the sentence "NAME must be ...".
"""

import difflib
import glob
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from safetensors import SafetensorError, safe_open

from ingroup import models
from ingroup.tables import InputError, decoded, hint, read_json

LOADING_ENGINES = ("transformers", "vllm")  # engines for which a model may be a folder
# Files of which every tokenizer has one.
TOKENIZER_FILES = ("*token*", "vocab.*", "tekken.json", "*.model", "*.tiktoken")

_ADDRESS = (
    "the base URL must read like http://127.0.0.1:8000/v1 and hold no user, password or "
    "query: a key belongs in the environment"
)

# Values with which an option of an engine that loads the model changes nothing.
DEFAULT_OPTIONS = {
    "SYSTEM": "keep",
    "BOS": "template",
    "TEMPLATE": "chat",
    "DTYPE": "auto",
    "RAY_ADDRESS": "",
    "ENGINE_WORKERS": 1,
}

# What people type for a choice that has another name here.
CHOICE_BY_TYPED_NAME = {
    "READING": {"mean": "expected", "average": "expected", "text": "free"},
    "ENGINE": {
        **models.FORMER_ENGINES,
        "hf": "transformers",
        "huggingface": "transformers",
        "ollama": "inspect",
        "server": "inspect",
    },
    "DTYPE": {"fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32"},
}

# Types in words, for the sentence "NAME must be ...".
TYPES_IN_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
}

Count = Annotated[int, Field(ge=1, le=10**9, description="a whole number, 1 to 10^9")]
CountOrNone = Annotated[int, Field(ge=0, le=10**9, description="a whole number, 0 to 10^9")]
Zero = Annotated[int, Field(ge=0, le=0)]
TwoOrMore = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0, lt=2**32, description="a whole number, 0 to 2^32 - 1")]
Tokens = Annotated[int, Field(ge=1, le=10**7, description="a whole number, 1 to 10^7")]
Price = Annotated[float, Field(ge=0, description="a number of at least 0")]
Temperature = Annotated[float, Field(ge=0, le=2, description="a number from 0 to 2")]
TopP = Annotated[float, Field(gt=0, le=1, description="a number above 0 and at most 1")]
Empty = Annotated[str, Field(max_length=0)]
MinusOne = Annotated[float, Field(ge=-1, le=-1)]  # stands for what the paper's table has


def _parts_of_text(value: Any) -> Any:
    """Split a text at its semicolons, and drop empty parts. Return any other value unchanged."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(";") if part.strip()]


Texts = Annotated[list[str], BeforeValidator(_parts_of_text), Field(description="a list of texts")]


def readable(load: Callable[[Any], Any]) -> AfterValidator:
    """Make the check that a function accepts a value, with the function's error as message.

    Parameters
    ----------
    load : callable
        Takes the value of a parameter, and raises an error about a value that it refuses.

    Returns
    -------
    AfterValidator
        The check, for the annotation of a field. It leaves the value unchanged.
    """

    def check(value: Any) -> Any:
        load(value)
        return value

    return AfterValidator(check)


def existing(expected: str) -> AfterValidator:
    """Make the check that the files of a parameter are there.

    Parameters
    ----------
    expected : str
        What such a file is, for the message.

    Returns
    -------
    AfterValidator
        The check, for the annotation of a field with one path ("" names none) or a list of them.
    """

    def check(value: str | list[str]) -> None:
        files = [value] if isinstance(value, str) else value
        for file in files:
            path = Path(file).expanduser()
            if file and not os.path.exists(path):
                question = hint(path.name, _names_in(path.parent))
                raise InputError(f"found no file {file!r}, expected {expected}{question}")

    return readable(check)


def _names_in(folder: Path) -> list[str]:
    """List the names in a folder, none if the folder is absent or closed."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def formerly(name: str, values: Mapping[str, str]) -> BeforeValidator:
    """Accept a value under its former name, and print its new name to standard error.

    Parameters
    ----------
    name : str
        A parameter.
    values : mapping
        From former names of the parameter's values to their present names.

    Returns
    -------
    BeforeValidator
        Replaces former names. Any other value passes unchanged.
    """

    def renamed(value: Any) -> Any:
        if value not in values:
            return value

        note(f"{name}={value} is now {name}={values[value]}; the old name works for one release")
        return values[value]

    return BeforeValidator(renamed)


def _check_printed_tables(folder: str) -> None:
    """Raise an InputError if a folder lacks printed tables. "" stands for this repository's."""
    if folder and not os.path.isfile(os.path.join(folder, "columns.csv")):
        expected = "a folder like data/published, which has a columns.csv"
        raise InputError(f"found {folder!r}, expected {expected}")


@cache
def note(sentence: str) -> None:
    """Print a sentence to standard error, once in a process.

    A run checks its parameters several times.

    Parameters
    ----------
    sentence : str
        The information for the user. The run goes on.
    """
    print(sentence, file=sys.stderr)


def address(url: str) -> SplitResult:
    """Split a server's base URL into its parts.

    Parameters
    ----------
    url : str
        The URL of a server, e.g. ``http://localhost:8000/v1``.

    Returns
    -------
    SplitResult
        Its scheme (http or https), host, port and path.

    Raises
    ------
    InputError
        If the text is not a base URL or may hold a secret. The message does not repeat the text, as
        there may be a password in it.
    """
    try:
        parts = urlsplit(url)
        # Reading the port raises a ValueError if it is not a number.
        port = parts.port
    except ValueError:
        # The error is not chained: the message of the ValueError repeats what may be a password.
        raise InputError(_ADDRESS) from None

    is_server = parts.scheme in ("http", "https") and parts.hostname and port != 0
    may_hold_secret = "@" in parts.netloc or parts.query or parts.fragment
    if not is_server or may_hold_secret:
        raise InputError(_ADDRESS)
    return parts


def _check_address(url: str) -> None:
    """Raise an InputError if a text is not an `address`. "" stands for a provider's own."""
    if url:
        address(url)


class Parameters(BaseModel, extra="forbid", allow_inf_nan=False):
    """The parameters that notebooks share: models, the engine and its options, numbers."""

    MODELS: Annotated[Texts, Field(min_length=1, description="names of models, e.g. calibrant")]
    ENGINE: Literal["", "transformers", "vllm", "inspect", "openai", "replay"]
    READING: Literal["", "free", "greedy", "drawn", "expected"]
    ENDING: Literal["turn", "newline", "any"]
    TEMPERATURE: Annotated[Empty | Temperature, Field(description="a number from 0 to 2, or empty")]
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
    BASE_URL: Annotated[str, readable(_check_address)]
    IN_FLIGHT: CountOrNone  # 0: adaptive
    TIMEOUT: Count  # seconds
    BATCH: bool
    PRICE_IN: Price
    PRICE_OUT: Price
    COST_LIMIT: Price
    RECORDINGS: str
    FOLDER: Annotated[str, readable(_check_printed_tables)]
    RUN: str

    @model_validator(mode="after")
    def _check_models_and_engines(self) -> Self:
        """Raise an InputError unless models, engines and options fit together.

        A notebook without MODELS asks no model, so nothing has to fit.
        """
        if self.MODELS is None:
            return self
        if self.READING == "drawn" and self.TEMPERATURE == 0:
            raise InputError("READING=drawn needs a TEMPERATURE above 0: at 0 nothing is drawn")

        entries = models.entries(self.model_dump())
        self._check_models_differ(entries)
        self._check_models_exist(entries)

        for entry in entries:
            if entry.is_scored and entry.engine == "replay":
                raise InputError(
                    f"READING={entry.reading} needs the probabilities of all admissible answers, "
                    f"which {entry.engine} does not give: set READING=free"
                )

        self._check_options_fit(entries)
        return self

    def _check_models_differ(self, entries: list[models.ModelEntry]) -> None:
        """Raise an InputError if two models share a label, by which tables tell models apart."""
        names_by_label: dict[str, list[str]] = {}
        for entry in entries:
            names_by_label.setdefault(models.label(entry.name), []).append(entry.name)

        for label, names in names_by_label.items():
            # Two spellings of one path are one folder.
            folders = {os.path.normpath(name) for name in names if os.path.isdir(name)}
            if len(folders) > 1:
                raise InputError(
                    f"MODELS has two folders called {label!r}, which tables and figures cannot "
                    "tell apart: rename one"
                )
            if len(names) > 1:
                raise InputError(
                    f"MODELS names {label!r} twice, expected each model once, with one engine"
                )

    def _check_models_exist(self, entries: list[models.ModelEntry]) -> None:
        """Raise an InputError if an engine cannot load its model of MODELS or the REWRITER."""
        named = []
        for entry in entries:
            named.append(("MODELS", entry.name, entry.engine))
        # Only the empathy gap has this parameter.
        writer = getattr(self, "REWRITER", None)
        if writer:
            named.append(("REWRITER", *models.split_entry(writer, self.ENGINE, "REWRITER")))

        # Only GIEBench may ask without the model's chat template.
        needs_template = getattr(self, "TEMPLATE", None) != "none"
        for parameter, name, engine in named:
            if engine not in LOADING_ENGINES:
                continue
            try:
                if not models.can_be_loaded(name):
                    raise _cannot_be_loaded(parameter, name)
                _check_folder(name, needs_template)
            except InputError as error:
                raise InputError(f"{parameter}: {error}") from error

    def _check_options_fit(self, entries: list[models.ModelEntry]) -> None:
        """Raise an InputError for an option that no engine of the models takes.

        Models of the engine replay need their recordings, too.
        """
        engines = {entry.engine for entry in entries}
        listed = ", ".join(sorted(engines))
        for option, engine in (("RECORDINGS", "replay"), ("BASE_URL", "inspect")):
            if getattr(self, option) and engine not in engines:
                raise InputError(
                    f"{option} is for models of the engine {engine}, found only {listed}: write "
                    f"<name>@{engine} in MODELS, or leave {option} out"
                )

        if engines.isdisjoint(LOADING_ENGINES):
            for option, usual in DEFAULT_OPTIONS.items():
                # None stands for a parameter that the notebook does not take.
                if getattr(self, option) not in (usual, None):
                    loading = " or ".join(LOADING_ENGINES)
                    raise InputError(
                        f"{option} is for models of the engine {loading}, found only {listed}: "
                        f"leave {option} out"
                    )

        recorded = [entry.name for entry in entries if entry.engine == "replay"]
        if recorded:
            self._check_recordings_exist(recorded)

    def _check_recordings_exist(self, names: list[str]) -> None:
        """Raise an InputError unless each recorded model has its own place with files."""
        if not self.RECORDINGS:
            needed = "RECORDINGS=<file or folder> with the recorded answers"
            raise InputError(f"the engine replay needs {needed}")

        places = []
        examples = []
        for name in names:
            places.append(models.recorded_place(self.RECORDINGS, name))
            examples.append(f"{name}=<place>")

        # A place without a model's name, or a place given twice, leaves fewer places than models.
        of_one_model = set(places) - {"", self.RECORDINGS.strip()}
        are_shared = len(names) > 1 and len(of_one_model) < len(names)
        if "" in places or are_shared:
            expected = ";".join(examples)
            raise InputError(
                f"recordings have the answers of one model, found {', '.join(names)}: give each a "
                f'place of its own, RECORDINGS="{expected}"'
            )

        for place in places:
            # A place may be a pattern of files.
            if not glob.glob(place):
                expected = "a file, folder or pattern of files with recorded answers"
                raise InputError(f"RECORDINGS: found nothing at {place!r}, expected {expected}")


def _cannot_be_loaded(parameter: str, name: str) -> InputError:
    """Write the error for a model that is neither here nor on the hub."""
    if os.path.isfile(os.path.join(name, "adapter_config.json")):
        return InputError(
            f"the folder {name!r} has an adapter alone: merge it into the model that "
            "it was trained on (merge_and_unload of peft), and give the folder of both"
        )

    if os.path.isdir(name):
        expected = "a model's folder with config.json, weights and tokenizer"
        return InputError(f"found no config.json in the folder {name!r}, expected {expected}")

    names = [part.strip() for part in re.split("[,;]", name)]
    if len(names) > 1:
        listed = ";".join(names)
        separated = f'expected semicolons between models, {parameter}="{listed}"'
        expected = separated if parameter == "MODELS" else "expected one model"
        return InputError(f"found {name!r}, {expected}")

    expected = "a model's folder with config.json, weights and tokenizer"
    if os.path.isfile(name):
        return InputError(f"found the file {name!r}, expected {expected}")
    if name.startswith((".", "/", "~")):
        return InputError(f"found no folder {name!r}, expected {expected}")

    local = models.local_models()
    known = [*local, *models.registry().names]
    return InputError(
        f"found {name!r}, expected one of {', '.join(local)}, a name in data/models/models.csv, a "
        f"model's folder, or organisation/name of the model hub{hint(name, known)}"
    )


def _check_folder(name: str, needs_template: bool) -> None:
    """Raise an InputError if a model's folder lacks weights, a tokenizer or its chat template."""
    folder = models.folder(name)
    if folder is None:
        return

    # Loaders look for tensors in the folder itself, and not in folders below it.
    if not any(folder.glob(f"*{models.TENSORS}")):
        raise InputError(
            f"the folder {name!r} has a config.json and no weights: expected "
            f"model{models.TENSORS}, or several files that end in {models.TENSORS}, beside it"
        )

    _check_tensors(folder)

    # Which files there are depends on the kind of tokenizer.
    has_tokenizer = any(any(folder.glob(pattern)) for pattern in TOKENIZER_FILES)
    if not has_tokenizer:
        raise InputError(
            f"the folder {name!r} has no tokenizer: expected tokenizer.json or tokenizer.model "
            "beside the weights"
        )
    read_json(folder / "config.json")

    has_template = any(folder.glob("*chat_template*"))
    # Older tokenizers have the template in their settings.
    settings = folder / "tokenizer_config.json"
    if not has_template and settings.is_file():
        has_template = "chat_template" in decoded(settings)

    if needs_template and not has_template:
        raise InputError(
            f"the folder {name!r} has no chat template: an instruction-tuned model is needed, or "
            "chat_template.jinja beside the weights"
        )


def _check_tensors(folder: Path) -> None:
    """Raise an InputError if a file of tensors lacks the length that its header says."""
    for file in sorted(folder.glob(f"*{models.TENSORS}")):
        try:
            # This reads the header alone, and compares it with the size of the file.
            with safe_open(file, "numpy"):
                pass
        except (OSError, SafetensorError) as error:
            # A link may lead nowhere.
            size = file.stat().st_size if file.exists() else 0
            raise InputError(
                f"the weights in {str(file)!r} are not whole: found {size:,} bytes ({error}); copy "
                "or fetch this file again"
            ) from error


class ComparisonParameters(Parameters):
    """The parameters of a comparison, where one model through two engines is two models."""

    def _check_models_differ(self, entries: list[models.ModelEntry]) -> None:
        """Raise an InputError if two models of one engine share a label."""
        by_engine: dict[str, list[models.ModelEntry]] = {}
        for entry in entries:
            by_engine.setdefault(entry.engine, []).append(entry)
        for of_one_engine in by_engine.values():
            super()._check_models_differ(of_one_engine)


def checked_parameters(
    base: type[Parameters],
    values: Mapping[str, Any],
    usual: Mapping[str, Any],
    strict: bool = False,
) -> dict[str, Any]:
    """Check the parameters of a notebook, and give each its type.

    Parameters
    ----------
    base : type of Parameters
        The ``Parameters`` of the notebook's study.
    values : mapping
        The values by name.
    usual : mapping
        The notebook's own values. A parameter that ``base`` does not have takes its type from here.
        A parameter of ``base`` that is not here belongs to another notebook.
    strict : bool
        Whether a text is refused that could be read as a number or divided into a list.

    Returns
    -------
    dict
        The values, each in its type.

    Raises
    ------
    InputError
        For the first value that cannot work. The message says which values are expected.
    """
    kind = _class_for_notebook(base, usual)
    try:
        model = kind.model_validate(dict(values), strict=strict)
    except ValidationError as error:
        first, *_ = error.errors()
        raise InputError(_refusal_sentence(kind, first)) from error

    typed = {name: getattr(model, name) for name in values}
    if strict:
        # Even when strict, `_parts_of_text` makes a list of a text before pydantic looks at it.
        for name, value in typed.items():
            untyped = values[name]
            if isinstance(value, list) and isinstance(untyped, str):
                expected = f"must be a list of texts, found {untyped!r}: write {value!r}"
                raise InputError(f"{name} {expected}")
    return typed


def _class_for_notebook(base: type[Parameters], usual: Mapping[str, Any]) -> type[Parameters]:
    """Make a subclass of a study's ``Parameters`` for the parameters of one of its notebooks."""
    fields: dict = {}
    for name in base.model_fields:
        # Only other notebooks of the study take it, so here it may be missing.
        if name not in usual:
            fields[name] = (Any, None)
    for name, value in usual.items():
        # Only this notebook takes it, so the notebook's own value gives the type.
        if name not in base.model_fields:
            kind = Texts if isinstance(value, list) else type(value)
            fields[name] = (kind, ...)
    return create_model("Parameters", __base__=base, **fields)


def _choices(name: str, problem: Mapping[str, Any]) -> list[str]:
    """List the values that a parameter can have, without "" and former names of engines."""
    left_out = {""}
    if name == "ENGINE":
        left_out |= set(models.FORMER_ENGINES)
    choices = re.findall(r"'([^']*)'", problem["ctx"]["expected"])
    return [choice for choice in choices if choice not in left_out]


def _hint(name: str, problem: Mapping[str, Any]) -> str:
    """Ask for the choice that an unknown value probably means. Return "" without such a choice."""
    typed = str(problem["input"]).lower()
    choices = _choices(name, problem)
    meant = CHOICE_BY_TYPED_NAME.get(name, {})
    near = difflib.get_close_matches(typed, [*choices, *meant], 1)
    if not near:
        return ""

    choice = meant.get(near[0], near[0])
    return f"; did you mean {name}={choice}?"


def _refusal_sentence(kind: type[Parameters], problem: Mapping[str, Any]) -> str:
    """Write the message about a value that pydantic refused."""
    # A check of all parameters together names no field.
    name = next(iter(problem["loc"]), "")
    value = repr(problem["input"])
    context = problem.get("ctx", {})
    category = problem["type"]

    # One of our own checks raised it, in words of its own.
    if category == "value_error":
        words = str(context["error"])
        return f"{name}: {words}" if name else words

    if category == "literal_error":
        *first, last = _choices(name, problem)
        listed = f"{', '.join(first)} or {last}"
        return f"{name} {value} is unknown; expected {listed}{_hint(name, problem)}"

    field = kind.model_fields[name]
    words = field.description or TYPES_IN_WORDS.get(field.annotation, "text")
    return f"{name} must be {words}, found {value}"
