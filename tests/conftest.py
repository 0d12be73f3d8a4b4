"""A notebook is run once, in this process; tests compare its variables and tables."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import pytest

from ingroup.paths import NOTEBOOKS, run_folder

matplotlib.use("agg")
RUN = "tests"


@cache
def run_notebook(name: str) -> SimpleNamespace:
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
def tables() -> Path:
    """Return the folder into which the notebooks of the tests write their tables."""
    return run_folder(RUN) / "tables"
