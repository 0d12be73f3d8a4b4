"""What a student edits stays, and the notebooks stay as they are."""

import os
import sys

import nbformat
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
    monkeypatch.setenv(paths.IN_LAB, "")

    lab.main()

    ((program, options),) = commands
    assert program == sys.executable
    assert f"--ServerApp.root_dir={paths.ROOT}" in options
    assert ("--ServerApp.allow_root=True" in options) == (user == 0)
    assert ("as root" in capsys.readouterr().out) == (user == 0)


# ---- the run of a copy ---------------------------------------------------------------------------

OWN = {"N_EVENTS": 12, "SETTINGS": [], "ENGINE": "", "RUN": "lab"}


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        ({}, "lab"),
        ({"N_EVENTS": 6}, "lab+N_EVENTS-6"),
        ({"SETTINGS": ["P0,S0,T0"], "N_EVENTS": 6}, "lab+N_EVENTS-6+SETTINGS-P0,S0,T0"),
        ({"RUN": "old", "out": 1}, "lab"),
    ],
)
def test_the_run_of_a_copy_is_named_by_what_was_changed(changed, run, monkeypatch):
    monkeypatch.setattr(lab.parameters, "own", lambda notebook: OWN)
    assert lab.run_of("10_study", OWN | changed) == run


def test_a_model_of_ones_own_is_named_without_its_place(monkeypatch):
    """Two folders of one name have two runs."""
    monkeypatch.setattr(lab.parameters, "own", lambda notebook: {"MODELS": ["calibrant"]})
    runs = [lab.run_of("10_study", {"MODELS": [f"/{place}/net"]}) for place in ("a", "b")]
    assert len(set(runs)) == 2
    for run in runs:
        assert paths.run_folder(run).name.startswith("lab+MODELS-net-")


@pytest.mark.parametrize("notebook", ["10_empathy_gap", "40_stereomap", "31_giebench_construction"])
def test_a_copy_as_it_is_committed_writes_to_lab_and_a_changed_one_elsewhere(notebook, tmp_path):
    """Its cell of parameters is run as JupyterLab runs it."""
    lab.copy_notebooks(paths.NOTEBOOKS, tmp_path / "lab")
    book = nbformat.read(tmp_path / "lab" / f"{notebook}.ipynb", as_version=4)
    (cell,) = [c for c in book.cells if "parameters" in c.metadata.get("tags", ())]
    names = {}
    exec(cell.source, names)
    assert names["RUN"] == "lab"
    exec(cell.source.replace("\nSEED = 0", "\nSEED = 1"), names)
    assert names["RUN"] == "lab+SEED-1"


def test_a_notebook_about_a_run_keeps_the_run_that_it_reports_on(tmp_path):
    lab.copy_notebooks(paths.NOTEBOOKS, tmp_path / "lab")
    copy = tmp_path / "lab" / "60_synthesis.ipynb"
    assert copy.read_bytes() == (paths.NOTEBOOKS / "60_synthesis.ipynb").read_bytes()


def test_figures_of_the_default_run_are_not_written_from_jupyterlab(monkeypatch):
    """A copy that reports on the default run may have another SEED; its figures are committed."""
    assert paths.figure_folder("default") == paths.FIGURES

    monkeypatch.setattr(lab, "copy_notebooks", lambda: [])
    monkeypatch.setattr(os, "execv", lambda program, options: None)
    monkeypatch.setenv(paths.IN_LAB, "")
    lab.main()

    assert paths.figure_folder("default") == paths.run_folder("lab") / "figures"
