"""The models that a run can name, from ``data/models/models.csv``."""

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ingroup import BUILD, DATA
from ingroup.tables import InputError

REGISTRY = DATA / "models" / "models.csv"
MADE = BUILD / "models"
# Names that begin so are models of providers, except weights of the hub with other names.
PROVIDERS = re.compile(
    "(anthropic|azureai|bedrock|fireworks|google|grok|groq|mistral|ollama|openai|openai-api"
    "|openrouter|perplexity|together)/"
)
HUB_NAMES = ("google/*gemma*", "google/*t5*", "openai/gpt-oss-*")
ENGINES = ("transformers", "vllm", "inspect", "replay", "recorded")


class Model(NamedTuple):
    """One of a run's models.

    Attributes
    ----------
    name : str
        As the run gives it, without an engine.
    label : str
        For tables and figures.
    engine : str
        One of `ENGINES`.
    loaded : str
        The folder or the hub's name that an engine loads.
    reading : str
        How its answers become numbers: "free", "greedy" or "expected".
    """

    name: str
    label: str
    engine: str
    loaded: str
    reading: str

    @property
    def folder_name(self) -> str:
        """Return the name of the folder with its answers."""
        name = Path(self.name).name if Path(self.name).is_dir() else self.name
        return f"{name.replace('/', '--')}@{self.engine}"


@cache
def find(text: str) -> pd.Series | None:
    """Find a model of the registry by its name, its id at a hub or provider, or a paper's name."""
    last = text.strip().rstrip("/").lower().split("/")[-1]
    rows = pd.read_csv(REGISTRY, dtype=str, keep_default_na=False)
    for _, row in rows.iterrows():
        ids = [row.hub_id, *row.ids.split(";")]
        names = [row["name"], row.printed, *(known.split("/")[-1] for known in ids)]
        if last in [name.lower() for name in names if name]:
            return row
    return None


def label(name: str) -> str:
    """Return the name of a model for readers, of a folder its last part."""
    known = find(name)
    if known is not None:
        return known.label
    path = Path(name)
    return path.name if path.is_absolute() else name


def model(entry: str, parameters: dict[str, Any]) -> Model:
    """Read one entry of ``MODELS``, ``name`` or ``name@engine``.

    Parameters
    ----------
    entry : str
        The entry.
    parameters : dict
        The run's parameters, with ENGINE and READING.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    InputError
        The engine is unknown.
    """
    name, _, engine = entry.strip().partition("@")
    known = find(name)
    row: Any = {} if known is None else known

    engine = engine or parameters.get("ENGINE") or row.get("engine") or _usual_engine(name)
    if engine not in ENGINES:
        raise InputError(f"MODELS: found {entry!r}, expected name@engine with {', '.join(ENGINES)}")
    return Model(
        name=name,
        label=label(name),
        engine=engine,
        loaded=_loaded(name, row),
        reading=parameters.get("READING") or row.get("reading") or "free",
    )


def _usual_engine(name: str) -> str:
    """Choose the engine of a model that is not in the registry."""
    is_of_hub = any(fnmatch(name.lower(), pattern) for pattern in HUB_NAMES)
    is_of_provider = bool(PROVIDERS.match(name)) and not Path(name).is_dir()
    return "inspect" if is_of_provider and not is_of_hub else "transformers"


def _loaded(name: str, row: Any) -> str:
    """Find the folder of a model, or else its name at the hub."""
    for folder in (MADE / name, Path(name)):
        if (folder / "config.json").is_file():
            return str(folder)
    return row.get("hub_id") or name
