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
        book = nbformat.read(file, as_version=4)
        drawing = []
        for cell in book.cells:
            if run.DRAWING_TAGS & set(cell.metadata.get("tags", [])):
                drawing.append(cell)
        book.cells = drawing
        nbformat.write(book, tmp_path / file.name)

    lint = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--no-cache"]
    ruff = subprocess.run([*lint, *tmp_path.iterdir()], capture_output=True, text=True)
    assert ruff.returncode == 0, ruff.stdout


def saves(source):
    """Whether code calls out.save (and does not only speak of it)."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = ast.unparse(node.func)
            if function in ("out.save", "figures.save"):
                return True
    return False


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
        new_code_cell("RUN = 'x'", metadata={"tags": ["parameters"]}),
        new_code_cell("open('no such table')", metadata={"tags": ["figure"]}),
    ]
    notebook = new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    committed = tmp_path / "committed" / "10_study.ipynb"
    committed.parent.mkdir()
    nbformat.write(notebook, committed)

    notebook.metadata["papermill"] = {"parameters": {"RUN": "y"}}
    copy = tmp_path / "notebooks" / "10_study.ipynb"
    copy.parent.mkdir()
    nbformat.write(notebook, copy)
    before = copy.read_bytes()

    assert run.main(["10_study", "--redraw"]) == 1

    (reason,) = capsys.readouterr().err.splitlines()
    assert reason.startswith("10_study: cell 3: FileNotFoundError: ")
    assert reason.endswith("; make 10 writes its tables")
    assert copy.read_bytes() == before
    assert list(copy.parent.iterdir()) == [copy]

    start = paths.started("10_study", "lab")
    start.parent.mkdir(parents=True)
    start.write_text('{"parameters": {"RUN": "lab"}}')
    assert run.main(["10_study", "--run", "lab", "--redraw"]) == 1
    (reason,) = capsys.readouterr().err.splitlines()
    assert reason.endswith("; its copy in JupyterLab writes its tables: run it to its end")
