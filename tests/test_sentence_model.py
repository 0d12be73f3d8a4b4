"""The sentence model: where it comes from, and that nothing but the known files is loaded."""

import hashlib
import re
import sys

import huggingface_hub
import pytest
from packaging.requirements import Requirement

from ingroup import sentence_model
from ingroup.sentence_model import FILES, load_model, verify
from ingroup.tables import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files of the model, each with its own name as text."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, "utf-8")
        monkeypatch.setitem(FILES, name, hashlib.sha256(name.encode()).hexdigest())
    return tmp_path


def test_every_file_of_the_package_is_the_known_one():
    verify(sentence_model._package())
    assert Requirement(sentence_model.PACKAGE).name.replace("-", "_") not in sys.modules


@pytest.mark.parametrize("name", FILES)
def test_one_other_byte_and_the_model_is_not_loaded(folder, monkeypatch, name):
    monkeypatch.setattr(sentence_model, "_package", lambda: folder)
    verify(folder)
    (folder / name).write_text(name + ".", "utf-8")
    found = hashlib.sha256(f"{name}.".encode()).hexdigest()[:12]
    sentence = rf"{re.escape(name)} has SHA-256 {found}\.\.\., expected {FILES[name][:12]}"
    with pytest.raises(InputError, match=sentence):
        load_model()


def test_a_file_that_is_not_there(folder):
    (folder / "vocab.txt").unlink()
    with pytest.raises(InputError, match=r"vocab.txt cannot be read: No such file"):
        verify(folder)


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(sentence_model, "PACKAGE", "no-such-model==1.0")
    with pytest.raises(InputError, match=r"no-such-model.*`pip install no-such-model==1"):
        load_model()


def test_the_hub_is_asked_for_one_revision_and_checked_like_the_package(folder, monkeypatch):
    asked = []

    def snapshot(repository, revision, allow_patterns):
        asked.append((repository, revision, allow_patterns))
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    (folder / "model.safetensors").write_text("other weights", "utf-8")
    with pytest.raises(InputError, match=r"model\.safetensors has SHA-256"):
        load_model("hub")
    assert asked == [(sentence_model.REPOSITORY, sentence_model.REVISION, [*FILES])]
    assert re.fullmatch("[0-9a-f]{40}", sentence_model.REVISION)


def test_a_hub_out_of_reach(monkeypatch):
    def snapshot(*_, **__):
        raise huggingface_hub.errors.LocalEntryNotFoundError("offline")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(InputError, match=r"fetched \(LocalEntryNotFoundError\); `pip inst"):
        load_model("hub")


def test_another_source():
    with pytest.raises(InputError, match="package or hub, not 'disk'"):
        load_model("disk")
