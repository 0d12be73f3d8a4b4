"""Figures redrawn from tables: every notebook has what its drawing cells need."""

import ast
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from ingroup import paths
from ingroup.commands import run

ALL = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))


def test_drawing_cells_use_no_name_of_a_cell_that_is_left_out(tmp_path):
    for file in ALL:
        whole = nbformat.read(file, as_version=4)
        whole.cells = [c for c in whole.cells if run.DRAWING & set(c.metadata.get("tags", []))]
        nbformat.write(whole, tmp_path / file.name)
    lint = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--no-cache"]
    found = subprocess.run([*lint, *tmp_path.iterdir()], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def saves(source):
    """Whether code calls out.save (and does not only speak of it)."""
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return any(ast.unparse(function) in ("out.save", "figures.save") for function in calls)


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_every_cell_that_saves_a_figure_is_tagged(file):
    for cell in nbformat.read(file, as_version=4).cells:
        if cell.cell_type == "code" and saves(cell.source):
            assert "figure" in cell.metadata.get("tags", []), cell.source[:80]


def test_a_run_that_is_not_there_is_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    assert run.main(["10_empathy_gap", "--redraw", "--run", "none"]) == 2
    assert capsys.readouterr().err == "10_empathy_gap has not run in 'none': make all first\n"


def test_a_table_that_is_missing_is_named_with_the_command_that_writes_it(
    capsys, monkeypatch, tmp_path
):
    """An executed copy without tables: nothing is drawn, and nothing is asked."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "committed")
    cells = [
        new_code_cell(source, metadata={"tags": [tag]})
        for source, tag in (("RUN = 'x'", "parameters"), ("open('no such table')", "figure"))
    ]
    notebook = new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    for folder in ("notebooks", "committed"):
        (tmp_path / folder).mkdir()
    nbformat.write(notebook, tmp_path / "committed" / "10_study.ipynb")
    notebook.metadata["papermill"] = {"parameters": {"RUN": "y"}}
    copy = tmp_path / "notebooks" / "10_study.ipynb"
    nbformat.write(notebook, copy)
    before = copy.read_bytes()
    assert run.main(["10_study", "--redraw"]) == 1
    why = capsys.readouterr().err.splitlines()[-1]
    assert why.startswith("cell 3: FileNotFoundError: ")
    assert why.endswith("; make 10 writes its tables")
    assert copy.read_bytes() == before
    assert [*copy.parent.iterdir()] == [copy]
