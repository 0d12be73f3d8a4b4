"""Redraw the figures of a run from its tables, byte for byte: ``make figures``. No model is asked.

Only cells with one of `TAGS` run: they need no answers, or draw from the tables of the full run.
"""

import argparse
import sys
import time

import nbformat
import papermill
from papermill.exceptions import PapermillExecutionError

from ingroup import notebook, paths
from ingroup.commands.run import KERNEL

TAGS = {"setup", "parameters", "figure"}


def drawing(whole: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A copy of a notebook with only its cells that have one of `TAGS`."""
    cells = [cell for cell in whole.cells if TAGS & set(cell.metadata.get("tags", []))]
    return nbformat.from_dict({**whole, "cells": cells})


def redraw(name: str, run: str = paths.DEFAULT_RUN) -> None:
    """Draw a notebook's figures, as it last ran; PapermillExecutionError where a cell fails."""
    source = nbformat.read(paths.NOTEBOOKS / f"{name}.ipynb", as_version=4)
    given = notebook.ran(name, run)
    papermill.execute_notebook(drawing(source), None, parameters=given, **KERNEL)


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when all that ran were redrawn, 1 when none ran or a cell failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", default=paths.DEFAULT_RUN, help="name of the run")
    run = parser.parse_args(arguments).run
    names = sorted(file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
    names = [name for name in names if paths.executed(name, run).exists()]
    if not names:
        print(f"no notebook of the run {run!r} is there; make all first", file=sys.stderr)
        return 1
    for name in names:
        started = time.monotonic()
        try:
            redraw(name, run)
        except PapermillExecutionError as error:
            again = f"make {name[:2]} writes its tables"
            print(f"{name}: {error.ename}: {error.evalue}; {again}", file=sys.stderr)
            return 1
        print(f"{name}: redrawn in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
