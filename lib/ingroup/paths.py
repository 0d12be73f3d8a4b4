"""Absolute places of everything the compendium reads and writes.

A *run* is one set of parameters: the default run writes the committed figures, every other run
writes below ``build/runs/<run>``, and so never overwrites what the repository shows.
"""

import os
import re
from pathlib import Path

from ingroup.tables import wrong

ROOT = Path(__file__).resolve().parents[2]

DATA = ROOT / "data"
STIMULI = DATA / "stimuli"
SAMPLE = DATA / "sample"
PUBLISHED = DATA / "published"
MODELS = DATA / "models"
RECORDINGS = DATA / "recordings"
RAW = DATA / "raw"

FIGURES = ROOT / "figures"
BUILD = Path(os.environ.get("INGROUP_BUILD", ROOT / "build"))  # tests have one of their own
RESPONSES = BUILD / "responses"
MADE = BUILD / "models"  # of weights that a package carries
NOTEBOOKS = ROOT / "notebooks"
PROFILES = NOTEBOOKS / "profiles"

DEFAULT_RUN = "default"


def executed(notebook: str, run: str = DEFAULT_RUN) -> Path:
    """Where the executed copy of a notebook goes."""
    return run_folder(run) / "notebooks" / f"{notebook}.ipynb"


def figure_folder(run: str) -> Path:
    """Where a run's figures go: ``figures/``, which is committed, or its own folder's."""
    return FIGURES if run == DEFAULT_RUN else run_folder(run) / "figures"


def run_folder(run: str) -> Path:
    """Where a run writes what is not committed; InputError for a name that is none of a folder."""
    if ".." in run or not re.fullmatch(r"[A-Za-z0-9_,+=][A-Za-z0-9_.,+=-]{0,199}", run):
        expected = "at most 200 of A-Z a-z 0-9 _ . , + = - without two dots; give RUN=<name>"
        raise wrong("RUN", repr(run), expected)
    return BUILD if run == DEFAULT_RUN else BUILD / "runs" / run
