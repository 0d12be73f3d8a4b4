"""The models that a run can name (``data/models/models.csv``), with the calibrants.

A calibrant is to the pipeline as a reference weight is to a scale. It is a small Llama that answers
the studies' prompts with the biases in ``data/models/<name>/ground_truth.yaml``.

`ingroup.parameters` refuses a model that does not exist (`can_be_loaded`).
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ingroup import paths
from ingroup.parsing import Ending, How
from ingroup.tables import InputError, at, check, hint, once, read_table, read_yaml, wrong

STORED = "stored"  # in place of an engine: stored answers of any engine are only read
ENGINES = ("transformers", "vllm", "inspect", "replay", STORED)
SERVERS = ("inspect",)  # engines that ask a server, whose replies have a price
FORMER_ENGINES = {"openai": "inspect"}  # former names of engines, and the present names
# The first parts of inspect_ai's names of models.
PROVIDERS = (
    "anthropic",
    "azureai",
    "bedrock",
    "cloudflare",
    "deepseek",
    "fireworks",
    "google",
    "grok",
    "groq",
    "hf-inference-providers",
    "mistral",
    "moonshot",
    "ollama",
    "openai",
    "openai-api",
    "openrouter",
    "perplexity",
    "sambanova",
    "together",
)
# A checkpoint's mark in a name: a number or a date, as in -002, -2024-08-06, -20241022, -0613.
_MARK = r"00\d|\d{4}-\d\d-\d\d|\d{8}|\d{4}"
# The tail of a model's name that `find` may remove: a checkpoint's mark, -latest or -preview.
_TAIL = rf"-(latest|preview|{_MARK})$"
TENSORS = ".safetensors"  # the suffix of the files with a model's weights
# Configurations and tokenizers, chat templates, weights; vocabularies of older tokenizers.
READ_SUFFIXES = {".json", ".jinja", TENSORS, ".model", ".txt"}
_CAUTION = "this alone may explain a difference from the printed numbers."
_NUMBER = (r"|\d+(\.\d+)?", "a number, or nothing where none is printed")
# The pattern that each cell of a column has to match, and its description for an error.
_CELLS = {
    "name": (r"[a-z0-9][a-z0-9.-]*", "a name in a-z 0-9 . -"),
    "label": (r".+", "a text"),
    "series": (r".+", "a text"),
    "access": (r"open|closed", "open or closed"),
    "engine": ("|".join(ENGINES), f"one of {', '.join(ENGINES)}"),
    "reading": (r"free|greedy|expected", "free, greedy or expected"),
    "control": (r"|yes", "yes or nothing"),
    "temperature": _NUMBER,
    "top_p": _NUMBER,
}


class Model(NamedTuple):
    """The cells of the registry that are the same in every study.

    The README of data explains them.
    """

    name: str
    label: str
    series: str
    access: str
    hub_id: str
    ids: tuple[str, ...]
    engine: str
    reading: How
    control: bool


class Registry(NamedTuple):
    """The models of ``models.csv``.

    Attributes
    ----------
    rows : DataFrame
        One row for each model and study, as :func:`ingroup.tables.read_table` gives them
        (``data/README.md`` describes the columns).
    names, printed, ids : dict
        The models by their names, by their names in papers, and by the last parts of their ids. All
        keys are in lower case.
    """

    rows: pd.DataFrame
    names: dict[str, Model]
    printed: dict[str, Model]
    ids: dict[str, Model]


@cache
def registry(file: Path | None = None) -> Registry:
    """Read ``models.csv``, which has one row for each model and study that prints it.

    Parameters
    ----------
    file : Path, optional
        Another file like it.

    Returns
    -------
    Registry
        The rows, and the models by their names.

    Raises
    ------
    InputError
        As :func:`ingroup.tables.read_table`. Also for a cell that is invalid for its column, a
        model that comes twice in a study or with other facts than in a row above, and an id that
        two models have.
    """
    file = file or paths.MODELS / "models.csv"
    rows = read_table(file, [*Model._fields, *_CELLS, "study", "printed", "source"])
    for column, (pattern, meaning) in _CELLS.items():
        check(file, rows[column], rows[column].str.fullmatch(pattern), meaning)
    once(file, rows[["name", "study"]])

    known: dict[str, Model] = {}
    by_column: dict[str, dict[str, Model]] = {"name": {}, "printed": {}, "ids": {}}
    for line, row in rows.iterrows():
        model = _model(row)
        texts = [("name", model.name), ("printed", row["printed"])]
        for model_id in (model.hub_id, *model.ids):
            # Providers put different prefixes before one id, so its last part counts.
            texts.append(("ids", model_id.split("/")[-1]))

        for column, text in texts:
            if not text:
                continue
            key = text.lower()
            # Names of all three kinds share one dict, because no text may mean two models.
            first_meant = known.setdefault(key, model)
            if first_meant != model:
                expected = "the same facts in all rows of a model, and no id of another"
                raise wrong(at(file, line), f"{text!r} with other facts above", expected, column)
            by_column[column][key] = model

    return Registry(rows, by_column["name"], by_column["printed"], by_column["ids"])


def _model(row: pd.Series) -> Model:
    """Convert a row of the registry to its model."""
    facts = row[list(Model._fields)].to_dict()
    facts["ids"] = tuple(filter(None, facts["ids"].split(";")))
    facts["control"] = facts["control"] == "yes"
    return Model(**facts)


def find(text: str) -> Model | None:
    """Find a model of the registry by any of its names.

    Parameters
    ----------
    text : str
        A name, as the registry or a paper has it, or an id of a hub or a provider, or a folder
        whose last part is one of these. Capitals do not matter.

    Returns
    -------
    Model or None
        None for a model that is in no row.

    Notes
    -----
    A version's tail (``-latest``, ``-002``, ``-2024-08-06``) is removed until a row fits. Nothing
    else is removed, so a larger or smaller sister is never meant. A base model, at the hub under
    the short name of the chat model, is another model.
    """
    registered = registry()
    whole = text.strip().rstrip("/").lower()
    # A paper's name is no path, so it is compared as a whole.
    if whole in registered.printed:
        return registered.printed[whole]

    *before, last = whole.split("/")
    while last not in registered.ids and last not in registered.names:
        shorter = re.sub(_TAIL, "", last)
        if shorter == last:
            return None
        last = shorter

    if last in registered.ids:
        return registered.ids[last]

    model = registered.names[last]
    if model.hub_id and before:
        organisation = model.hub_id.lower().split("/")[0]
        if before[-1] == organisation:
            # At the hub the short name, after its organisation, is the base model.
            return None
    return model


@cache
def is_same_checkpoint(asked: str, named: str) -> bool:
    """Tell whether the name in a server's reply is a name of the model that was asked.

    An alias and its dated form are the same, and a provider's prefix of `asked` may be missing in
    `named`. Two names with different dates are not the same. Names that are in no row of the
    registry are compared as texts, in any case, without a version's tail.

    Parameters
    ----------
    asked : str
        The name of the model that was asked.
    named : str
        The name in the reply. "" counts as the same model.

    Returns
    -------
    bool
        True unless the names mean different models or checkpoints.
    """
    whole = asked.strip().lower()
    reply = named.strip().lower()
    if reply in ("", whole) or whole.endswith(f"/{reply}"):
        return True

    known = find(asked)
    if known != find(named):
        return False
    if known is None:
        whole = re.sub(_TAIL, "", whole)
        reply = re.sub(_TAIL, "", reply)
        if whole != reply and not whole.endswith(f"/{reply}"):
            return False

    # The model is the same. Its checkpoints have to agree where both names tell one.
    asked_marks = _marks(asked)
    named_marks = _marks(named)
    if not asked_marks or not named_marks:
        return True
    return _share_one(asked_marks, named_marks)


def checkpoint_caution(text: str) -> str:
    """Write a caution if a name means another checkpoint than the one that a paper asked.

    The paper's own checkpoints are the hub's id and the ``ids`` of the registry. Only two whole
    dates tell which of two checkpoints is later.

    Parameters
    ----------
    text : str
        The name of a model.

    Returns
    -------
    str
        One sentence, "" for the paper's own checkpoint, and for a name that :func:`find` does not
        know.
    """
    model = find(text)
    if model is None:
        return ""

    name = _last_part(text)
    tail = re.search(_TAIL, name)
    if tail is None or name in registry().ids:
        return ""

    marks_of_paper = set(_marks(model.hub_id))
    for model_id in model.ids:
        marks_of_paper.update(_marks(model_id))
    if _share_one(_marks(name), marks_of_paper):
        return ""

    relation = "may be another"
    # Without a mark or an id at the hub, nothing tells how the two checkpoints relate.
    if marks_of_paper or model.hub_id:
        relation = _relation(tail[1], marks_of_paper)
    as_spelt = text.strip().rstrip("/").split("/")[-1]
    return f"{as_spelt} {relation} checkpoint than the paper's: {_CAUTION}"


def _relation(tail: str, marks_of_paper: Collection[str]) -> str:
    """Describe how the checkpoint that a tail names relates to the paper's other checkpoints."""
    version = tail.replace("-", "")
    if not version.isdigit():
        # An alias such as -latest moves from one checkpoint to the next.
        return "may be another"

    # A mark of eight digits is a whole date, which sorts as a text.
    dates = sorted(mark for mark in marks_of_paper if len(mark) == 8)
    if len(version) < 8 or not dates:
        # Without a year on both sides nothing says which is later.
        return "is another"
    if version > dates[-1]:
        return "is a later"
    if version < dates[0]:
        return "is an earlier"
    return "is another"


def _last_part(text: str) -> str:
    """Return the last part of a name, in lower case, without a provider's prefix or a folder."""
    return text.strip().rstrip("/").lower().split("/")[-1]


def _marks(text: str) -> list[str]:
    """Find the marks of a checkpoint in a name, and write dates as digits alone."""
    marks = re.findall(rf"-({_MARK})(?=-|$)", _last_part(text))
    return [mark.replace("-", "") for mark in marks]


def _share_one(marks: Collection[str], others: Collection[str]) -> bool:
    """Tell whether two names share a mark. A date may lack its year."""
    for mark in marks:
        for other in others:
            if mark.endswith(other) or other.endswith(mark):
                return True
    return False


@cache
def _reasoning_pattern() -> re.Pattern[str]:
    """Compile the families of ``reasoning.yaml`` as one pattern."""
    families = read_yaml(paths.MODELS / "reasoning.yaml")
    # A family's name may begin at any word of a model's name, but not inside a word.
    either = "|".join(family["pattern"] for family in families)
    return re.compile(rf"(?<![a-z0-9])(?:{either})", re.IGNORECASE)


@cache
def is_reasoning_model(name: str) -> bool:
    """Tell whether a model reasons before it answers, by its name alone.

    ``data/models/reasoning.yaml`` lists the families. Case and a provider's prefix do not matter.

    Parameters
    ----------
    name : str
        The name of a model.

    Returns
    -------
    bool
        True for a model of a family that reasons.
    """
    return bool(_reasoning_pattern().search(_last_part(name)))


def provider(text: str) -> str:
    """Return the provider with which a model's name begins.

    Parameters
    ----------
    text : str
        A name as in ``MODELS``, without an engine.

    Returns
    -------
    str
        One of `PROVIDERS`, "" for a name that means weights.

    Notes
    -----
    A name is a provider's if its first part is one of `PROVIDERS`. Organisations of the hub have
    some of these names, too. So three kinds of names mean weights: names of a folder, names of open
    models that ``models.csv`` has as their ids at the hub, and names that fit a pattern of
    ``hub_names.yaml``.
    """
    name = text.strip()
    first, _, rest = name.partition("/")
    if not rest or first not in PROVIDERS:
        return ""
    if _is_on_the_hub(name) or folder(name):
        return ""
    return first


def _is_on_the_hub(name: str) -> bool:
    """Tell whether a name that begins with a provider's name means weights on the hub."""
    lower = name.lower()
    model = find(name)
    if model and model.access == "open" and model.hub_id.lower() == lower:
        return True

    patterns = read_yaml(paths.MODELS / "hub_names.yaml")
    return any(fnmatch(lower, pattern) for pattern in patterns)


def split_entry(text: str, engine: str = "", parameter: str = "MODELS") -> tuple[str, str]:
    """Split an entry of ``MODELS`` into the model, spelt as it was, and its engine.

    Parameters
    ----------
    text : str
        ``name`` or ``name@engine``. An engine under its former name is taken as well.
    engine : str
        The engine of a name without one, unless the registry says "stored".
    parameter : str
        The parameter that has the entry, for the message.

    Returns
    -------
    tuple of str
        The name, and one of `ENGINES`. A name without an engine has "stored" if the registry says
        so and the name begins with no :func:`provider`. Else it has `engine`, if that is given.
        Else it has "inspect" if the name begins with a provider, or else the registry's engine. A
        model that is in no row has transformers.

    Raises
    ------
    InputError
        For another engine, or no name.
    """
    name, mark, after = text.rpartition("@")
    name = name.strip()
    chosen = after.strip()
    # The path of a folder may hold an @, and then a slash comes after it.
    if not mark or "/" in after:
        name = text.strip()
        chosen = _usual_engine(name, engine)

    chosen = FORMER_ENGINES.get(chosen, chosen)
    if not name or chosen not in ENGINES:
        expected = f"a name, or name@engine with one of {', '.join(ENGINES)}"
        question = "" if chosen in ENGINES else hint(chosen, ENGINES)
        raise InputError(f"{parameter}: found {text!r}, expected {expected}{question}")
    return name, chosen


def read_only_models(entries: Iterable[str]) -> set[str]:
    """List the models that are given as ``name@stored``, whose stored answers are only read.

    Parameters
    ----------
    entries : iterable of str
        The ``MODELS`` of a run.

    Returns
    -------
    set of str
        Their names, spelt as they were.
    """
    names = set()
    for entry in entries:
        name, mark, engine = entry.rpartition("@")
        if mark and engine.strip() == STORED:
            names.add(name.strip())
    return names


def _usual_engine(name: str, engine: str) -> str:
    """Choose the engine of a name without an engine (see `split_entry`)."""
    model = find(name)
    registered = model.engine if model else ENGINES[0]
    is_served = provider(name) != ""

    # Stored answers are those of the weights, and a provider may serve others under the name.
    if registered == STORED and not is_served:
        return STORED
    if engine:
        return engine
    return "inspect" if is_served else registered


class ModelEntry(NamedTuple):
    """One of a run's ``MODELS``, with its engine and its reading.

    Attributes
    ----------
    name : str
        The model.
    engine : str
        One of `ENGINES`.
    reading : str
        How an answer becomes a number, as the parameter READING has it.
    ending : str
        The end of a scored number, as the parameter ENDING has it.
    control : bool
        Whether the model is asked in the first setting and run only.
    """

    name: str
    engine: str
    reading: How
    ending: Ending
    control: bool

    @property
    def is_scored(self) -> bool:
        """Tell whether the model is asked for the probabilities of all admissible answers.

        Returns
        -------
        bool
            False where it is asked for a text.
        """
        return self.reading != "free"


def entries(parameters: Mapping[str, Any]) -> list[ModelEntry]:
    """List the ``MODELS`` of a run with their engines and readings.

    Parameters
    ----------
    parameters : mapping
        The run's parameters. ``ENGINE`` and ``READING`` count where they are set.

    Returns
    -------
    list of ModelEntry
        In the order of ``MODELS``.
    """
    model_entries = []
    for text in parameters["MODELS"]:
        name, engine = split_entry(text, parameters["ENGINE"])
        model = find(name)
        usual_reading = model.reading if model else "free"

        entry = ModelEntry(
            name=name,
            engine=engine,
            reading=parameters["READING"] or usual_reading,
            ending=parameters["ENDING"],
            control=model is not None and model.control,
        )
        model_entries.append(entry)
    return model_entries


def recorded_place(text: str, name: str) -> str:
    """Find the place of a model's recorded answers.

    Parameters
    ----------
    text : str
        A value of ``RECORDINGS``: the place of one model's answers, or ``name=place`` for each of
        several models, with semicolons between.
    name : str
        The model.

    Returns
    -------
    str
        The place, "" where the text names other models alone. A single ``name=place`` counts as a
        place unless the registry has the name.

    Raises
    ------
    InputError
        If the text names the model twice.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    places = []
    for part in parts:
        named, mark, place = part.partition("=")
        if mark and _is_same_model(name, named):
            places.append(place.strip())

    if len(places) > 1:
        raise InputError(f"RECORDINGS: found {name!r} twice, expected one place per model")
    if places:
        return places[0]
    if len(parts) != 1:
        return ""

    # A single place may hold an equals sign itself ("results/temperature=0"). Where a model of the
    # registry stands before the sign, the answers are that model's.
    named, mark, _ = text.partition("=")
    if mark and find(named.strip()) is not None:
        return ""
    return text.strip()


def _is_same_model(name: str, other: str) -> bool:
    """Tell whether two texts name one model."""
    if name == other.strip():
        return True
    model = find(name)
    return model is not None and model == find(other)


def folder(model: str) -> Path | None:
    """Find the files of a model.

    Parameters
    ----------
    model : str
        A model of ``data/models``, one that ``make model`` made, or the path of a folder.

    Returns
    -------
    Path or None
        The first folder with a ``config.json``, None if there is none.
    """
    for candidate in (paths.MODELS / model, paths.MADE / model, Path(model)):
        # isfile is False, and raises nothing, where the name is too long for a path.
        if os.path.isfile(candidate / "config.json"):
            return candidate
    return None


def files(folder: Path) -> list[Path]:
    """List all files of a model's folder that a loader may read, in the order of their paths.

    Parameters
    ----------
    folder : Path
        The folder, which is searched with all folders below it.

    Returns
    -------
    list of Path
        Files with a suffix of `READ_SUFFIXES`.
    """
    readable = []
    for file in sorted(folder.rglob("*")):
        if file.suffix in READ_SUFFIXES and file.is_file():
            readable.append(file)
    return readable


def revision(folder: Path) -> str:
    """Hash names and contents of all files that a loader may read.

    Parameters
    ----------
    folder : Path
        The folder of a model.

    Returns
    -------
    str
        The first 16 hexadecimal digits of SHA-256.
    """
    digest = hashlib.sha256()
    for file in files(folder):
        digest.update(str(file.relative_to(folder)).encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def packaged_models() -> dict[str, dict[str, Any]]:
    """Read the models whose weights come as Python packages, and the entries for `make model`.

    Returns
    -------
    dict
        The entries of ``packaged.yaml`` by the model's name.
    """
    return read_yaml(paths.MODELS / "packaged.yaml")


def how_to_ask(model: str) -> str:
    """Write how to ask a model whose weights come in a package.

    Parameters
    ----------
    model : str
        The name of a model.

    Returns
    -------
    str
        The command and the parameter, "" for any other model.
    """
    if model not in packaged_models():
        return ""
    return f"make model, then MODELS={model}@transformers"


def local_models() -> list[str]:
    """List the models whose files are in ``data/models``, or can be made.

    Returns
    -------
    list of str
        Their names, sorted.
    """
    names = set(packaged_models())
    for file in paths.MODELS.glob("*/config.json"):
        names.add(file.parent.name)
    return sorted(names)


def can_be_loaded(model: str) -> bool:
    """Tell whether a model can be loaded: its files are here, or it has a name on the hub.

    Parameters
    ----------
    model : str
        A name as in ``MODELS``, without an engine.

    Returns
    -------
    bool
        True for files, for packaged weights, and for a name on the hub, which is not asked.
    """
    if model in packaged_models() or folder(model):
        return True
    if re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", model):
        return True
    known = find(model)
    return known is not None and known.hub_id != ""


def is_calibrant(model: str) -> bool:
    """Tell whether a model is a calibrant, whose results are no findings.

    Parameters
    ----------
    model : str
        The model's name, or a folder of that name.

    Returns
    -------
    bool
        True where ``data/models`` has a ``ground_truth.yaml`` of that name.
    """
    return ground_truth_file(model).is_file()


def ground_truth_file(model: str) -> Path:
    """Return the path of the file that holds a calibrant's ground truth.

    Parameters
    ----------
    model : str
        The model's name, or a folder of that name.

    Returns
    -------
    Path
        The path, whether or not the file is there.
    """
    name = model.rstrip("/").split("/")[-1]
    return paths.MODELS / name / "ground_truth.yaml"


def label(model: str) -> str:
    """Name a model for a figure.

    Parameters
    ----------
    model : str
        The name of a model, or its folder.

    Returns
    -------
    str
        The label in the registry, or else the last part of the name.
    """
    known = find(model)
    if known is None:
        return Path(model).name
    return known.label


def without_place(text: str) -> str:
    """Name a model as the column ``model`` of tables does: a folder by the last part of its path.

    Parameters
    ----------
    text : str
        A value of ``MODELS``, with or without an engine.

    Returns
    -------
    str
        The text itself, unless it is the path of a folder. No two models of a run have one label,
        so no two folders of a run end in the same part.
    """
    name, mark, engine = text.rpartition("@")
    ending = f"{mark}{engine}"
    # What stands behind this @ is no engine, so the @ is part of the name.
    if engine not in ENGINES:
        name = text
        ending = ""

    # An absolute path is a folder even if it is not there, as in another machine's table.
    if os.path.isabs(name) or os.path.isdir(name):
        name = os.path.basename(os.path.normpath(name))
    return f"{name}{ending}"


def answer_folder(model: str) -> str:
    """Name the folder of a model's answers.

    Parameters
    ----------
    model : str
        A value of ``MODELS`` without an engine.

    Returns
    -------
    str
        The name itself. The path of a folder becomes its last part and a checksum of the whole
        path, so that two folders never share answers and no address shows a place.
    """
    name = without_place(model)
    if name == model.rstrip("/"):
        return name
    place = os.fsencode(os.path.abspath(model))
    checksum = hashlib.sha256(place).hexdigest()[:10]
    return f"{name}-{checksum}"


def calibrants() -> list[str]:
    """List the models with a ground truth.

    Returns
    -------
    list of str
        Their names, sorted.
    """
    return sorted(file.parent.name for file in paths.MODELS.glob("*/ground_truth.yaml"))


def words(text: str) -> list[str]:
    """Split a text into words, the unit to which a ground truth gives points.

    Parameters
    ----------
    text : str
        A prompt, or a part of one.

    Returns
    -------
    list of str
        Lower-case words of the letters a to z, in their order.
    """
    return re.findall(r"[a-z]+", text.lower())


def points_of_words(rule: Mapping[str, Any], words_of_text: Iterable[str]) -> float:
    """Sum the points that a ground truth gives to the words of a text.

    Parameters
    ----------
    rule : mapping
        ``points`` by word, and the ``limit`` of their sum in either direction.
    words_of_text : iterable of str
        The `words` of a text; a repeated word counts again.

    Returns
    -------
    float
        The sum, within the limit.
    """
    points = rule["points"]
    limit = rule["limit"]
    total = sum(points.get(word, 0) for word in words_of_text)
    return max(-limit, min(limit, total))
