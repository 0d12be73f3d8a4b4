"""Figures redrawn from tables: every notebook has what its drawing cells need."""

import ast
import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ingroup import paths
from ingroup.commands import redraw

ALL = sorted(paths.NOTEBOOKS.glob("[0-9]*.ipynb"))


def tagged(source, *tags):
    return new_code_cell(source, metadata={"tags": list(tags)})


def test_only_cells_that_draw_and_what_they_need_are_kept_in_order():
    cells = [
        tagged("import a", "setup"),
        new_markdown_cell("prose"),
        tagged("MODELS = 1", "parameters"),
        tagged("ask()"),
        tagged("draw()", "figure"),
        tagged("answer", "solution"),
    ]
    whole = new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})
    kept = redraw.drawing(whole)
    assert [cell.source for cell in kept.cells] == ["import a", "MODELS = 1", "draw()"]
    assert kept.metadata == whole.metadata
    assert len(whole.cells) == 6


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_drawing_cells_use_no_name_of_a_cell_that_is_left_out(file, tmp_path):
    kept = redraw.drawing(nbformat.read(file, as_version=4))
    nbformat.write(kept, tmp_path / "kept.ipynb")
    lint = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "--no-cache"]
    found = subprocess.run([*lint, tmp_path / "kept.ipynb"], capture_output=True, text=True)
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
    assert redraw.main(["--run", "none"]) == 1
    assert capsys.readouterr().err == "no notebook of the run 'none' is there; make all first\n"


def test_a_table_that_is_missing_is_named_with_the_command_that_writes_it(
    capsys, monkeypatch, tmp_path
):
    """An executed copy without tables: nothing is drawn, and nothing is asked."""
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    notebook = new_notebook(cells=[tagged("RUN = 'x'", "parameters")])
    notebook.cells.append(tagged("open('no such table')", "figure"))
    for folder in ("notebooks", "committed"):
        (tmp_path / folder).mkdir()
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, tmp_path / "committed" / "10_study.ipynb")
    notebook.metadata["papermill"] = {"parameters": {"RUN": "y"}}
    nbformat.write(notebook, tmp_path / "notebooks" / "10_study.ipynb")
    monkeypatch.setattr(paths, "NOTEBOOKS", tmp_path / "committed")
    assert redraw.main([]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith("10_study: FileNotFoundError: ")
    assert told.endswith("make 10 writes its tables")
