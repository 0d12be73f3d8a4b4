"""What a student edits stays, and the notebooks stay as they are."""

import os
import sys

import pytest

from ingroup import paths
from ingroup.commands import lab


@pytest.fixture
def folders(tmp_path):
    """Two notebooks, and where their copies go."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    for name in ("00_map", "10_study"):
        (notebooks / f"{name}.ipynb").write_text(name)
    return notebooks, tmp_path / "lab"


def test_notebooks_are_copied_once_and_edits_stay(folders):
    notebooks, copies = folders
    assert lab.copy_notebooks(*folders) == []
    copy = copies / "10_study.ipynb"
    assert copy.read_text() == "10_study"

    copy.write_text("edited")
    assert lab.copy_notebooks(*folders) == []
    assert copy.read_text() == "edited"
    assert (notebooks / "10_study.ipynb").read_text() == "10_study"


def test_a_notebook_that_changed_is_copied_anew_unless_its_copy_was_edited(folders):
    notebooks, copies = folders
    lab.copy_notebooks(*folders)
    (copies / "10_study.ipynb").write_text("edited")
    for name in ("00_map", "10_study"):
        (notebooks / f"{name}.ipynb").write_text("newer")

    (sentence,) = lab.copy_notebooks(*folders)
    assert sentence.startswith("lab/10_study.ipynb has your edits, and its notebook has changed")
    assert (copies / "00_map.ipynb").read_text() == "newer"
    assert (copies / "10_study.ipynb").read_text() == "edited"

    (copies / "10_study.ipynb").unlink()
    assert lab.copy_notebooks(*folders) == []
    assert (copies / "10_study.ipynb").read_text() == "newer"


def test_a_foreign_copy_stays(folders):
    _, copies = folders
    copies.mkdir()
    (copies / "00_map.ipynb").write_text("mine")

    (sentence,) = lab.copy_notebooks(*folders)

    assert sentence.startswith("lab/00_map.ipynb has your edits")
    assert (copies / "00_map.ipynb").read_text() == "mine"


@pytest.mark.parametrize("user", [0, 1000])
def test_jupyterlab_has_the_repository_as_its_root(user, monkeypatch, capsys):
    """So that the links of the notebooks work; root is allowed, and told."""
    monkeypatch.setattr(lab, "copy_notebooks", lambda: [])
    monkeypatch.setattr(os, "geteuid", lambda: user)
    commands = []
    monkeypatch.setattr(os, "execv", lambda program, options: commands.append((program, options)))

    lab.main()

    ((program, options),) = commands
    assert program == sys.executable
    assert f"--ServerApp.root_dir={paths.ROOT}" in options
    assert ("--ServerApp.allow_root=True" in options) == (user == 0)
    assert ("as root" in capsys.readouterr().out) == (user == 0)
