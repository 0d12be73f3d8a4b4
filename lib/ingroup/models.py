"""The models that a run can name, and which of them demonstrate.

A calibrant is to the pipeline what a reference weight is to a scale: a small Llama that answers the
studies' prompts with the biases in ``data/models/<name>/planted.yaml``.
"""

import re
from pathlib import Path

from ingroup import paths


def here() -> list[str]:
    """Names of the models in ``data/models``."""
    return sorted(file.parent.name for file in paths.MODELS.glob("*/config.json"))


def is_there(model: str) -> bool:
    """Whether a model is in ``data/models``, is another folder, or is named as on the hub."""
    folders = paths.MODELS / model, Path(model)
    return any((folder / "config.json").exists() for folder in folders) or bool(
        re.fullmatch(r"[\w.-]+/[\w.-]+", model)
    )


def is_calibrant(model: str) -> bool:
    """Whether a model (name or folder) is a calibrant, whose results demonstrate."""
    return (paths.MODELS / model.rstrip("/").split("/")[-1] / "planted.yaml").is_file()


def calibrants() -> list[str]:
    """Names of the models with planted answers."""
    return sorted(file.parent.name for file in paths.MODELS.glob("*/planted.yaml"))


def words(text: str) -> list[str]:
    """Lower-case words of a text, letters only: the unit that planted points attach to."""
    return re.findall(r"[a-z]+", text.lower())
