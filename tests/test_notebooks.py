"""Notebooks: the same headings, no outputs, cells that fit a screen; and the first one runs."""

import json
import re

import nbformat
import pandas as pd
import pytest

from ingroup import paths, run

HEADINGS = [
    "Question", "Parameters", "Stimuli", "Generation", "Parsing", "Statistics", "Figures",
    "Printed versus here", "Limits",
]  # fmt: skip
ALL = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
STUDIES = [file for file in ALL if re.match("[1-4]0_", file.name)]


def cells(file, kind):
    return [c for c in nbformat.read(file, as_version=4).cells if c.cell_type == kind]


@pytest.mark.parametrize("file", STUDIES, ids=lambda file: file.stem)
def test_a_study_has_the_nine_headings(file):
    text = "\n".join(cell.source for cell in cells(file, "markdown"))
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_a_notebook_is_committed_clean_and_readable(file):
    nbformat.validate(nbformat.read(file, as_version=4))
    tagged = [c for c in cells(file, "code") if "parameters" in c.metadata.get("tags", [])]
    assert len(tagged) == 1
    for cell in cells(file, "code"):
        assert not cell.outputs
        assert cell.execution_count is None
        assert cell.source.count("\n") < 40
        assert "../" not in cell.source


SMALL = {
    "MODEL": "calibrant",
    "CONTROL": "calibrant-null",
    "N_EVENTS": "2",
    "SETTINGS": "P0,S0,T0",
    "N_RESAMPLES": "200",
}


@pytest.fixture(scope="module")
def executed():
    parameters = run.merged("10_empathy_gap", "demo", SMALL, run="test")
    return run.execute("10_empathy_gap", parameters)


def test_the_empathy_gap_runs_from_prompt_to_figure(executed):
    folder = paths.BUILD / "runs" / "test"
    figures = {file.name for file in (folder / "figures" / "empathy_gap").iterdir()}
    names = [f"figure{number}" for number in range(2, 7)] + ["gap_overview", "planted_versus_here"]
    assert {f"{name}.{suffix}" for name in names for suffix in ("pdf", "png")} <= figures
    tables = folder / "tables" / "empathy_gap"
    gaps = pd.read_csv(tables / "table02_delta.csv")
    assert len(gaps) == 3 * 2
    assert (gaps[gaps.model == "calibrant"].p_two_sided < 0.05).all()
    counts = pd.read_csv(tables / "responses.csv")
    assert counts[["ok", "refused", "unparsable", "failed", "missing"]].sum().sum() == 2 * 881 * 2


def test_an_executed_notebook_has_no_widgets_and_no_errors(executed):
    text = executed.read_text("utf8")
    assert "application/vnd.jupyter.widget" not in text
    outputs = [o for c in json.loads(text)["cells"] for o in c.get("outputs", [])]
    assert not [o for o in outputs if o["output_type"] == "error"]
    assert not [o for o in outputs if "Warning" in "".join(o.get("text", []))]
