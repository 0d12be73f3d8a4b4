"""A notebook is run once in a session; tests compare its variables and tables."""

import json
import os
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import matplotlib
import matplotlib.pyplot as plt
import pytest
from filelock import FileLock

from ingroup import NOTEBOOKS, run_folder
from ingroup import notebook as shared

matplotlib.use("agg")
RUN = "tests"
SESSION = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))


def draw(figure: plt.Figure, file: Path) -> None:
    """Draw a figure, and write no file, which takes longer."""
    figure.canvas.draw()
    plt.close(figure)


@cache
def run_notebook(name: str) -> SimpleNamespace:
    """Execute a notebook, and leave a note that this session has its tables."""
    run_folder(RUN).mkdir(parents=True, exist_ok=True)
    with FileLock(run_folder(RUN) / f"{name}.lock"), patch.object(shared, "save_figure", draw):
        variables = execute(name)
        note_of(name).write_text(SESSION)
    return variables


def note_of(name: str) -> Path:
    """Return the file that says which session wrote the tables of a notebook."""
    return run_folder(RUN) / f"{name}.session"


def execute(name: str) -> SimpleNamespace:
    """Execute the code cells of a notebook, and return its variables."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf8"))["cells"]
    names = {"__name__": name, "display": lambda *shown: None}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        exec(compile(source, f"{name}.ipynb", "exec"), names)
        if "parameters" in cell["metadata"].get("tags", []):
            names["RUN"] = RUN
    return SimpleNamespace(**names)


@pytest.fixture(scope="session")
def notebook():
    """Run a notebook by its name, or return its variables if it has run."""
    return run_notebook


@pytest.fixture(scope="session")
def tables_of():
    """Run a notebook, unless this session has its tables or another process is writing them."""

    def wait_or_run(name: str) -> None:
        run_folder(RUN).mkdir(parents=True, exist_ok=True)
        with FileLock(run_folder(RUN) / f"{name}.lock"):
            is_there = note_of(name).exists() and note_of(name).read_text() == SESSION
        if not is_there:
            run_notebook(name)

    return wait_or_run


@pytest.fixture(scope="session")
def tables() -> Path:
    """Return the folder into which the notebooks of the tests write their tables."""
    return run_folder(RUN) / "tables"
