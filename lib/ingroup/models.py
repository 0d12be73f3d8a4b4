"""The models that a run can name: ``data/models/models.csv``, and which of them demonstrate.

A calibrant is to the pipeline what a reference weight is to a scale: a small Llama that answers the
studies' prompts with the biases in ``data/models/<name>/planted.yaml``.
"""

import hashlib
import re
from collections import namedtuple
from collections.abc import Collection, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import yaml

from ingroup import paths
from ingroup.tables import InputError, at, check, once, read_table, wrong

STORED = "stored"  # in place of an engine: what is stored is read, and nothing is asked
ENGINES = ("transformers", "vllm", "inspect", "replay", STORED)
SERVERS = ("inspect",)  # engines that ask a server, whose replies have a price
FORMER = {"openai": "inspect"}  # engines under the names that they had
# What inspect_ai's names of models begin with.
PROVIDERS = (
    "anthropic", "azureai", "bedrock", "cloudflare", "deepseek", "fireworks", "google", "grok",
    "groq", "hf-inference-providers", "mistral", "moonshot", "ollama", "openai", "openai-api",
    "openrouter", "perplexity", "sambanova", "together",
)  # fmt: skip
# A checkpoint's mark in a name: a number or a date, as in -002, -2024-08-06, -20241022, -0613.
_MARK = r"00\d|\d{4}-\d\d-\d\d|\d{8}|\d{4}"
# A version's tail, which may fall away: a checkpoint's mark, -latest or -preview.
_TAIL = rf"-(latest|preview|{_MARK})$"
# Configurations and tokenizers, chat templates, weights; vocabularies of older tokenizers.
READ = {".json", ".jinja", ".safetensors", ".model", ".txt"}
_CAUTION = "this alone may explain a difference from the printed numbers."
_NUMBER = r"|\d+(\.\d+)?", "a number, or nothing where none is printed"
# What a cell of a column has to be: as a pattern, and in words.
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


# A row of the registry, as far as it is the same in every study: texts, a tuple of ids, a bool.
Model = namedtuple("Model", "name label series access hub_id ids engine reading control")


@cache
def registry(file: Path | None = None) -> SimpleNamespace:
    """``models.csv``, or a `file` like it: a row a model and study that prints it.

    Its ``rows`` as :func:`ingroup.tables.read_table` gives them (``data/README.md`` describes the
    columns), and each `Model` by what it is called, in lower case: ``names``, ``printed`` and
    ``ids``. Raises InputError for what that refuses; a cell that is none of its column; a model
    twice in a study, or with other facts than in a row above; an id that two models have.
    """
    file = file or paths.MODELS / "models.csv"
    rows = read_table(file, [*Model._fields, *_CELLS, "study", "printed", "source"])
    for column, (pattern, meaning) in _CELLS.items():
        check(file, rows[column], rows[column].str.fullmatch(pattern), meaning)
    once(file, rows[["name", "study"]])
    found, everything = SimpleNamespace(rows=rows, names={}, printed={}, ids={}), {}
    for line, row in rows.iterrows():
        facts = row[list(Model._fields)].to_dict()
        ids = tuple(filter(None, facts["ids"].split(";")))
        model = Model(**facts | {"ids": ids, "control": facts["control"] == "yes"})
        called = [("name", model.name, found.names), ("printed", row["printed"], found.printed)]
        called += [("ids", one.split("/")[-1], found.ids) for one in (model.hub_id, *ids)]
        for column, key, known in called:
            if key and everything.setdefault(key.lower(), model) != model:
                same = "the same facts in all rows of a model, and no id of another"
                raise wrong(at(file, line), f"{key!r} with other facts above", same, column)
            known |= {key.lower(): model} if key else {}
    return found


def find(text: str) -> Model | None:
    """The model that a text means, None for one that is in no row.

    The text is a name, as the registry or a paper has it, a hub's or a provider's id, or a folder
    whose last part is one, in any case. A version's tail falls away until a row fits
    (``-latest``, ``-002``, ``-2024-08-06``); nothing else does, so a larger or smaller sister is
    never meant. A base model, at the hub under the short name of the one that chats, is another.
    """
    known, whole = registry(), text.strip().rstrip("/").lower()
    *before, last = whole.split("/")
    if whole in known.printed:
        return known.printed[whole]
    while last not in known.ids and last not in known.names:
        last, longer = re.sub(_TAIL, "", last), last
        if last == longer:
            return None
    if model := known.ids.get(last):
        return model
    model = known.names[last]
    base = model.hub_id and before[-1:] == [model.hub_id.lower().split("/")[0]]
    return None if base else model


@cache
def same(asked: str, named: str) -> bool:
    """Tell whether the name in a server's reply means the model that was asked.

    An alias and its dated form are the same, and a provider's prefix of `asked` may be missing in
    `named`. Two names with different dates are not the same. Names that are in no row of the
    registry are compared as texts, in any case, without a version's tail.
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

    asked_marks = _marks(asked)
    named_marks = _marks(named)
    if not asked_marks or not named_marks:
        return True
    return _share_one(asked_marks, named_marks)


def checkpoint(text: str) -> str:
    """Say where a name is not that of the checkpoint whose numbers a paper prints.

    One sentence; "" for the paper's own checkpoint, and for a name that :func:`find` does not know.
    The paper's own are the hub's id and the ``ids`` of the registry. Only two whole dates tell
    which of two checkpoints is later.
    """
    model = find(text)
    if model is None:
        return ""

    name = _last(text)
    tail = re.search(_TAIL, name)
    if tail is None or name in registry().ids:
        return ""

    own = set(_marks(model.hub_id))
    for one in model.ids:
        own.update(_marks(one))
    if _share_one(_marks(name), own):
        return ""

    is_known = own or model.hub_id
    relation = _relation(tail[1], own) if is_known else "may be another"
    as_spelt = text.strip().rstrip("/").split("/")[-1]
    return f"{as_spelt} {relation} checkpoint than the paper's: {_CAUTION}"


def _relation(tail: str, own: Collection[str]) -> str:
    """How the checkpoint that a tail names relates to the paper's `own`, which are others."""
    version = tail.replace("-", "")
    if not version.isdigit():
        return "may be another"  # an alias moves

    dates = sorted(mark for mark in own if len(mark) == 8)
    if len(version) < 8 or not dates:
        return "is another"  # a year is missing
    if version > dates[-1]:
        return "is a later"
    if version < dates[0]:
        return "is an earlier"
    return "is another"


def _last(text: str) -> str:
    """The last part of a name, in lower case, without a provider's prefix or a folder."""
    return text.strip().rstrip("/").lower().split("/")[-1]


def _marks(text: str) -> list[str]:
    """The marks of a checkpoint in a name, dates as digits alone."""
    found = re.findall(rf"-({_MARK})(?=-|$)", _last(text))
    return [mark.replace("-", "") for mark in found]


def _share_one(marks: Collection[str], others: Collection[str]) -> bool:
    """Whether two names share a mark, where a date may lack its year."""
    for mark in marks:
        for other in others:
            if mark.endswith(other) or other.endswith(mark):
                return True
    return False


@cache
def _reasoning() -> re.Pattern[str]:
    """The families of ``reasoning.yaml`` as one pattern."""
    families = yaml.safe_load((paths.MODELS / "reasoning.yaml").read_text("utf8"))
    either = "|".join(family["pattern"] for family in families)
    return re.compile(rf"(?<![a-z0-9])(?:{either})", re.IGNORECASE)


@cache
def reasons(name: str) -> bool:
    """Tell whether a model reasons before it answers, by its name alone.

    ``data/models/reasoning.yaml`` lists the families. Case and a provider's prefix do not matter.
    """
    return bool(_reasoning().search(_last(name)))


def _hub_names() -> list[str]:
    """Patterns of names that mean weights of the hub, though a provider has its organisation's."""
    return yaml.safe_load((paths.MODELS / "hub_names.yaml").read_text("utf8"))


def provider(text: str) -> str:
    """The provider whose server a name means, ``""`` for a name without one.

    A name is a provider's where its first part is one of `PROVIDERS`. Organisations of the hub have
    some of these names, too. So a name means weights where a folder has it, where ``models.csv``
    has it as a hub's name of an open model, or where ``hub_names.yaml`` has a pattern for it.
    """
    first, mark, rest = text.strip().partition("/")
    if not (mark and rest and first in PROVIDERS):
        return ""
    known = find(text)
    of_the_hub = known and known.access == "open" and known.hub_id.lower() == text.strip().lower()
    patterned = any(fnmatch(text.strip().lower(), pattern) for pattern in _hub_names())
    return "" if of_the_hub or patterned or folder(text.strip()) else first


def split(text: str, engine: str = "") -> tuple[str, str]:
    """An entry of ``MODELS`` as the model, spelt as it was, and its engine, one of `ENGINES`.

    ``name@engine`` names the engine; without it, it is "stored" where the registry says so, else
    `engine`, else "inspect" where the name begins with a :func:`provider`, else the registry's, or
    transformers for a model that is in no row. An engine under its former name is taken as well.
    InputError for another engine, or no name.
    """
    name, mark, given = (part.strip() for part in text.rpartition("@"))
    if not mark or "/" in given:  # a folder's name may hold the mark
        name, known = text.strip(), find(text)
        given = known.engine if known else ENGINES[0]
        given = "inspect" if provider(name) else given
        given = engine if engine and given != STORED else given
    given = FORMER.get(given, given)
    if not name or given not in ENGINES:
        expected = f"a name, or name@engine with one of {', '.join(ENGINES)}"
        raise InputError(f"MODELS: found {text!r}, expected {expected}.")
    return name, given


class Asked(NamedTuple):
    """One of a run's ``MODELS``, and how it is asked."""

    name: str
    engine: str
    reading: str  # how an answer becomes a number, as the parameter READING has it
    ending: str  # what ends a scored number, as the parameter ENDING has it
    control: bool  # asked in the first setting and run only

    @property
    def over_choices(self) -> bool:
        """Whether the probabilities of all admissible answers are asked for, not a text."""
        return self.reading != "free"


def asked(parameters: Mapping[str, Any]) -> list[Asked]:
    """The ``MODELS`` of a run, by its ``ENGINE`` and ``READING`` where these are not empty."""
    found = []
    for entry in parameters["MODELS"]:
        name, engine = split(entry, parameters["ENGINE"])
        known = find(name)
        reading = parameters["READING"] or (known.reading if known else "free")
        control = bool(known and known.control)
        found.append(Asked(name, engine, reading, parameters["ENDING"], control))
    return found


def recordings(text: str, name: str) -> str:
    """Find where the recorded answers of a model are.

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
        The place, "" where the text names other models alone.

    Raises
    ------
    InputError
        If the text names the model twice.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    places = []
    for part in parts:
        named, mark, place = part.partition("=")
        if mark and _is(name, named):
            places.append(place.strip())

    if len(places) > 1:
        raise InputError(f"RECORDINGS: found {name!r} twice, expected one place a model")
    if places:
        return places[0]
    return text.strip() if len(parts) == 1 else ""


def _is(name: str, other: str) -> bool:
    """Whether two texts name one model."""
    known = find(name)
    return name == other.strip() or (known is not None and known == find(other))


def folder(model: str) -> Path | None:
    """Where the files of a model are: in ``data/models``, or made by ``make model``, or its own."""
    places = (paths.MODELS / model, paths.MADE / model, Path(model))
    return next((place for place in places if (place / "config.json").is_file()), None)


def files(folder: Path) -> list[Path]:
    """All files of a model's folder that a loader may read, in the order of their paths."""
    return [f for f in sorted(folder.rglob("*")) if f.suffix in READ and f.is_file()]


def revision(folder: Path) -> str:
    """Hash over names and contents of all files that a loader may read."""
    digest = hashlib.sha256()
    for file in files(folder):
        digest.update(str(file.relative_to(folder)).encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:16]


def carried() -> dict[str, dict[str, str]]:
    """Models whose weights a registry's package carries, with what ``make model`` needs of it."""
    return yaml.safe_load((paths.MODELS / "carried.yaml").read_text("utf8"))


def here() -> list[str]:
    """Names of the models whose files are in ``data/models``, or can be made."""
    return sorted({*(f.parent.name for f in paths.MODELS.glob("*/config.json")), *carried()})


def is_there(model: str) -> bool:
    """Whether a model can be loaded: its files are here, or it has a name on the hub."""
    known = find(model)
    named = model in carried() or re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", model)
    return bool(folder(model) or named or (known and known.hub_id))


def is_calibrant(model: str) -> bool:
    """Whether a model (name or folder) is a calibrant, whose results demonstrate."""
    return (paths.MODELS / model.rstrip("/").split("/")[-1] / "planted.yaml").is_file()


def label(model: str) -> str:
    """How a model is named in a figure: as the registry says, or the last part of its name."""
    known = find(model)
    return known.label if known else Path(model).name


def calibrants() -> list[str]:
    """Names of the models with planted answers."""
    return sorted(file.parent.name for file in paths.MODELS.glob("*/planted.yaml"))


def words(text: str) -> list[str]:
    """Lower-case words of a text, letters only: the unit that planted points attach to."""
    return re.findall(r"[a-z]+", text.lower())
