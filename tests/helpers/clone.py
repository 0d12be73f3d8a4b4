"""A copy of the project in which stubs replace notebooks, the report and the appendix."""

import os
import shutil
import subprocess
import sys

from ingroup import paths
from weights import NO_TENSORS

STUB = '''
"""Stands in for a run: a table of the notebook, its copy and record, and a line in log.txt."""

import argparse
import os
from pathlib import Path

from ingroup.commands import digests, settings

parser = argparse.ArgumentParser()
parser.add_argument("notebook")
parser.add_argument("--set", action="append", default=[])
for flag in ("--run", "--profile"):
    parser.add_argument(flag, default="")
for flag in ("--shared", "--again", "--redraw", "--ask"):
    parser.add_argument(flag, action="store_true")
options = parser.parse_args()

with Path("log.txt").open("a") as log:
    how = [flag for flag in ("again", "redraw", "ask") if getattr(options, flag)]
    values = [f"{name}={os.environ[name]!r}" for name in options.set]
    print(options.notebook, options.run, *how, *values, file=log)

if os.environ.get("FAILS") == options.notebook:
    raise SystemExit(1)
if not options.redraw and not options.ask:
    folder = settings.run_folder(options.run)
    copy = folder / "notebooks" / f"{options.notebook}.ipynb"
    table = folder / "tables" / "some" / f"{options.notebook}.csv"
    for file in (copy, table):
        file.parent.mkdir(parents=True, exist_ok=True)
    table.write_text(os.environ.get("TABLE", "1"))
    copy.write_text(f"{os.getpid()}")  # it has times, so it is never the same
    copy.with_suffix(".txt").write_text(f"{options.notebook}: ran\\n")
    digests.write(copy, [table], digests.file_states(["build/responses/*/*"]))
'''
REPORT = """
import os
from pathlib import Path

with Path("log.txt").open("a") as log:
    print("report", file=log)
Path("build/report").mkdir(parents=True, exist_ok=True)
Path("build/report/index.html").write_text("pages")
"""

APPENDIX = """
import sys
from pathlib import Path

with Path("log.txt").open("a") as log:
    print("appendix", *sys.argv[1:], file=log)
folder = Path("build/appendix", sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
(folder / "appendix.html").write_text("a document")
"""


LARGE = ("*.parquet", "*.safetensors", "*.npz", "tokenizer.json")  # recordings and weights


def copy(root, left_out=LARGE):
    """Copy the files that make and notebooks need, without files of some patterns."""
    unneeded = shutil.ignore_patterns("raw", "__pycache__", *left_out)
    for name in ("lib", "notebooks", "data", "docs", "locks"):
        shutil.copytree(paths.ROOT / name, root / name, ignore=unneeded)
    for name in ("Makefile", "dodo.py", "pyproject.toml", "requirements.lock", "CITATION.cff"):
        shutil.copy(paths.ROOT / name, root)
    return root


def with_stubs(root):
    """Copy the project, with stubs for the programs of notebooks, report and appendix."""
    copy(root)
    # A folder without weights would be refused; no stub reads them.
    for config in (root / "data/models").glob("*/config.json"):
        config.with_name("model.safetensors").write_bytes(NO_TENSORS)
    (root / "lib/ingroup/commands/run.py").write_text(STUB)
    (root / "lib/ingroup/commands/report.py").write_text(REPORT)
    (root / "lib/ingroup/commands/appendix.py").write_text(APPENDIX)
    return root


def environment(**more):
    """Return the shell's environment without the variables of pytest's make, and with ``more``."""
    ours = ("MAKE", "MFLAGS", "INGROUP_", "PYTHONPATH", "GOALS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYTHON": sys.executable, **more}


def make(root, *arguments, check=True, **more):
    """Call make with this Python as its environment, so that make builds no environment."""
    command = [
        "make",
        "--no-print-directory",
        "-C",
        str(root),
        *arguments,
        f"PY={sys.executable}",
        "READY=",
    ]

    return subprocess.run(
        command, capture_output=True, text=True, check=check, env=environment(**more)
    )


def ran(root):
    """Read and remove the log, which has a line for each program that ran."""
    log = root / "log.txt"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def names(root):
    """List the notebooks that ran since the log was last read."""
    return [line.split()[0] for line in ran(root)]
