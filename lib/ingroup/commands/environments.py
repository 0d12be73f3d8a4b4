"""Which environment a run needs: make makes it, by the rules in the Makefile."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ingroup.commands import settings

# Providers whose clients are not in every environment.
WITH_OWN_CLIENT = ("anthropic", "google", "mistral")
# The answers of a server can fail, and recorded ones are in files that nobody lists here.
ASKED_AGAIN = {"inspect", "replay"}


def models_of(values: Mapping[str, str]) -> list[str]:
    """List the models that a command line names, each as it was typed."""
    entries = values.get("MODELS", "").split(";")
    return list(filter(str.strip, entries))


def engines(values: Mapping[str, str]) -> set[str]:
    """Return the engines that a command line names or implies; InputError for an unknown one."""
    if not {"MODELS", "ENGINE"} & set(values):
        return set()

    from ingroup import models  # seconds, which only those wait who set a model

    engine = values.get("ENGINE", "")
    engine = models.FORMER.get(engine, engine)
    used = {engine} - {""}
    for entry in models_of(values):
        _, its_engine = models.split(entry, engine)
        used.add(its_engine)
    return used


def providers(values: Mapping[str, str]) -> set[str]:
    """Return the providers of the models that a command line names."""
    if "MODELS" not in values:
        return set()

    from ingroup import models

    used = set()
    for entry in models_of(values):
        name, _ = models.split(entry)
        used.add(models.provider(name))
    return used


def needed(values: Mapping[str, str], folder: str, has_gpu: bool) -> tuple[str, list[str]]:
    """Say which environment a run takes.

    Parameters
    ----------
    values : mapping
        What is set on the command line.
    folder : str
        The studies' environment, e.g. ".venv".
    has_gpu : bool
        Whether this machine has a GPU, so that vllm can be added to it.

    Returns
    -------
    tuple
        The environment's folder, and the files by which make knows its parts.
    """
    parts = []
    if "vllm" in engines(values):
        if has_gpu:
            parts.append(".vllm")
        else:
            folder = f"{folder}-vllm"
            parts.append(".ready")
    if values.get("ENGINE_WORKERS") or values.get("RAY_ADDRESS"):
        parts.append(".ray")
    if not providers(values).isdisjoint(WITH_OWN_CLIENT):
        parts.append(".providers")
    return folder, [f"{folder}/{part}" for part in parts]


def prepare(values: Mapping[str, str]) -> None:
    """Let make make what a run needs, and go on in that environment.

    Raises
    ------
    Refused
        If make failed, and has said why.
    """
    if "PY" in values:  # an environment of conda, or of the user's own
        return

    folder = os.environ.get("VENV", ".venv")
    chosen, parts = needed(values, folder, shutil.which("nvidia-smi") is not None)
    if not parts:
        return

    ours = ("MAKE", "MFLAGS", "GOALS")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = ["make", "--silent", *parts, f"VENV={folder}"]
    if subprocess.run(command, env=outside, cwd=settings.ROOT).returncode != 0:
        raise settings.Refused(f"make {' '.join(parts)} failed, so nothing was run")

    python = settings.ROOT / chosen / "bin" / "python"
    if Path(sys.prefix) != python.parents[1]:
        os.execv(python, [str(python), "-m", "ingroup.commands.cli", *sys.argv[1:]])
