"""The environment that a run needs, which make builds by the rules in the Makefile."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ingroup.commands import settings

# Providers whose clients are not in every environment.
PROVIDERS_WITH_OWN_CLIENT = ("anthropic", "google", "mistral")
# The answers of a server can fail, and recorded answers are in files that are not listed here.
ENGINES_ASKED_AGAIN = {"inspect", "replay"}


def _models_of(values: Mapping[str, str]) -> list[str]:
    """List the models that a command line names, each as it was typed."""
    names = []
    for entry in values.get("MODELS", "").split(";"):
        if entry.strip():
            names.append(entry)
    return names


def engines(values: Mapping[str, str]) -> set[str]:
    """Return the engines that a command line names or implies.

    Parameters
    ----------
    values : mapping of str to str
        The variables that were set on make's command line.

    Returns
    -------
    set of str
        The value of ``ENGINE`` and the engine of each model. Without ENGINE and MODELS it is empty.

    Raises
    ------
    InputError
        For an engine that does not exist.
    """
    if "MODELS" not in values and "ENGINE" not in values:
        return set()

    # This takes seconds to import, and only some commands need it.
    from ingroup import models

    typed = values.get("ENGINE", "")
    engine = models.FORMER_ENGINES.get(typed, typed)
    used = {engine} if engine else set()
    for entry in _models_of(values):
        _, its_engine = models.split_entry(entry, engine)
        used.add(its_engine)
    return used


def providers(values: Mapping[str, str]) -> set[str]:
    """Return the providers of the models that a command line names.

    Parameters
    ----------
    values : mapping of str
        The variables that were set on make's command line.

    Returns
    -------
    set of str
        The names of the providers, with "" for a model without a provider. Without MODELS it is
        empty.
    """
    if "MODELS" not in values:
        return set()

    # This takes seconds to import, and only some commands need it.
    from ingroup import models

    used = set()
    for entry in _models_of(values):
        name, _ = models.split_entry(entry)
        used.add(models.provider(name))
    return used


def needed_environment(
    values: Mapping[str, str], folder: str, has_gpu: bool
) -> tuple[str, list[str]]:
    """Choose the environment of a run.

    Parameters
    ----------
    values : mapping
        The variables that were set on make's command line.
    folder : str
        The studies' environment, e.g. ".venv".
    has_gpu : bool
        Whether this machine has a GPU, so that vllm can be added to it.

    Returns
    -------
    folder : str
        The environment's folder. An environment with vllm and no GPU has a folder of its own.
    files : list of str
        The targets of make for the parts to be added. No file if the run needs no further part.
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
    if not providers(values).isdisjoint(PROVIDERS_WITH_OWN_CLIENT):
        parts.append(".providers")
    return folder, [f"{folder}/{part}" for part in parts]


def prepare(values: Mapping[str, str]) -> None:
    """Build the environment that a run needs with make, and restart this program in it.

    Parameters
    ----------
    values : mapping of str to str
        The variables that were set on make's command line.

    Raises
    ------
    Refused
        If make failed, and has said why.
    """
    # An environment of conda, or of the user's own, is taken as it is.
    if "PY" in values:
        return

    default_folder = os.environ.get("VENV", ".venv")
    has_gpu = shutil.which("nvidia-smi") is not None
    folder, files = needed_environment(values, default_folder, has_gpu)
    if not files:
        return

    # Variables of this make would change the behaviour of the other make.
    variables = {}
    for name, value in os.environ.items():
        if not name.startswith(("MAKE", "MFLAGS", "GOALS")):
            variables[name] = value

    command = ["make", "--silent", *files, f"VENV={default_folder}"]
    program = subprocess.run(command, env=variables, cwd=settings.ROOT)
    if program.returncode != 0:
        raise settings.Refused(f"make {' '.join(files)} failed, so nothing was run")

    environment = settings.ROOT / folder
    python = environment / "bin" / "python"
    if Path(sys.prefix) != environment:
        os.execv(python, [str(python), "-m", "ingroup.commands.cli", *sys.argv[1:]])
