"""The notebooks of a model that was asked under some of the prompts only, and of real ones."""

import re

import matplotlib.pyplot as plt
import nbformat
import pytest

from cells import run
from ingroup import paths
from ingroup.commands.executed import introduce
from ingroup.commands.run_parameters import merged_parameters


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    yield tmp_path
    plt.close("all")


def test_without_raw_there_are_accuracies_and_no_changes(build, capsys):
    """With this wording, the recordings hold ID and COT alone."""
    given = {"WORDING": "straight", "MODELS": "smollm2-135m-instruct", "MISMATCH": "false"}
    names = run("30_giebench", **merged_parameters("30_giebench", "demo", given, "straight"))

    tables = build / "runs" / "straight" / "tables" / "giebench"
    figures = build / "runs" / "straight" / "figures" / "giebench"
    assert set(names["table01_02_06"].prompt) == {"ID", "COT"}
    assert not (tables / "over_orders.csv").exists()
    assert not (tables / "table04_05_changes.csv").exists()
    assert (figures / "accuracy.pdf").exists()
    assert not (figures / "over_orders.pdf").exists()

    said = capsys.readouterr().out
    assert "SmolLM2-135M has no answers under Raw: no changes are shown." in said
    assert "so there are no Tables 4 and 5." in said
    assert "so there is no test over all orders." in said


@pytest.mark.parametrize("notebook", ["30_giebench", "32_giebench_beyond"])
def test_without_calibrants_no_text_speaks_of_them(notebook):
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    introduce(book, {"MODELS": ["gemma-3-270m"]}, {"MODELS": ["calibrant"]})

    for cell in book.cells:
        if cell.cell_type == "markdown":
            assert "calibrant" not in cell.source
            assert not re.search("ground.truth", cell.source, re.IGNORECASE)
        else:
            printed = [line for line in cell.source.splitlines() if "print(" in line]
            assert "calibrant" not in "".join(printed)
