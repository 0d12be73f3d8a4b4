"""A wrong parameter starts nothing, and only a whole notebook is kept."""

import json
import re

import nbformat
import pytest

from ingroup import paths
from ingroup.commands import run

NOTEBOOK = "10_empathy_gap"


def test_the_command_line_prints_the_sentence_and_nothing_else(capsys):
    assert run.main([NOTEBOOK, "--set", "N_EVENTS=x"]) == 2
    written = capsys.readouterr()
    assert (written.out, written.err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    "name", ["../..", "", "a b", "/tmp/x", "a;b", "..", "a/../b", "é", ".", "x" * 201]
)
def test_a_run_stays_in_its_folder(name, capsys):
    assert run.main([NOTEBOOK, "--run", name]) == 2
    assert capsys.readouterr().err == (
        f"RUN: found {name!r}, expected at most 200 of A-Z a-z 0-9 _ . , + = - without two dots; "
        "give RUN=<name>.\n"
    )


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A project of one notebook, whose one cell divides by a parameter."""
    cells = [
        nbformat.v4.new_code_cell("BY = 1\nRUN = ''", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("print(6 / BY)"),
    ]
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    book.metadata["language_info"] = {"name": "python"}
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "demo.yaml").write_text("tiny:\n  BY: 2\n")
    nbformat.write(book, tmp_path / "tiny.ipynb")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(paths, "PROFILES", tmp_path / "profiles")
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tmp_path / "build" / "notebooks"


def test_an_executed_notebook_is_moved_into_place(tiny):
    assert run.main(["tiny"]) == 0
    assert "3.0" in json.dumps(json.loads((tiny / "tiny.ipynb").read_text())["cells"])
    assert re.fullmatch(r"tiny: \d+ s, BY=2\n", (tiny / "tiny.txt").read_text())
    assert not (tiny / "tiny.unfinished.ipynb").exists()


def test_a_failing_notebook_leaves_no_result(tiny, capsys):
    assert run.main(["tiny", "--set", "BY=0"]) == 1
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err
    assert not (tiny / "tiny.ipynb").exists()
