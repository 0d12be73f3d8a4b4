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


def engines(values: Mapping[str, str]) -> set[str]:
    """Return the engines that a command line names or implies."""
    from ingroup import models  # a run that sets no model does not wait for it

    engine = models.FORMER.get(values.get("ENGINE", ""), values.get("ENGINE", ""))
    found = {engine} if engine else set()
    for entry in values.get("MODELS", "").split(";"):
        if entry.strip():
            found.add(models.split(entry, engine)[1])
    return found


def providers(values: Mapping[str, str]) -> set[str]:
    """Return the providers of the models that a command line names."""
    from ingroup import models

    names = [models.split(entry)[0] for entry in values.get("MODELS", "").split(";") if entry]
    return {models.provider(name) for name in names}


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
    if not {"MODELS", "ENGINE", "ENGINE_WORKERS", "RAY_ADDRESS"} & set(values):
        return folder, []

    parts = []
    if "vllm" in engines(values):
        if has_gpu:
            parts.append(".vllm")
        else:
            folder = f"{folder}-vllm"
            parts.append(".ready")
    if values.get("ENGINE_WORKERS") or values.get("RAY_ADDRESS"):
        parts.append(".ray")
    if providers(values) & set(WITH_OWN_CLIENT):
        parts.append(".providers")
    return folder, [f"{folder}/{part}" for part in parts]


def prepare(values: Mapping[str, str]) -> None:
    """Let make make what a run needs, and go on in that environment."""
    folder = os.environ.get("VENV", ".venv")
    chosen, parts = needed(values, folder, shutil.which("nvidia-smi") is not None)
    missing = [part for part in parts if not Path(part).exists()]
    if parts and (missing or "PY" not in values):  # an environment of conda is not make's
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
        command = [os.environ.get("MAKE", "make"), "--silent", *parts, f"VENV={folder}"]
        subprocess.run(command, env=environment, cwd=settings.ROOT, check=True)

    python = Path(chosen) / "bin" / "python"
    if chosen != folder and Path(sys.prefix) != python.absolute().parents[1]:
        os.execv(python, [str(python), "-m", "ingroup.commands.cli", *sys.argv[1:]])
