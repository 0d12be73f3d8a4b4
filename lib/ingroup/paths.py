"""Absolute paths of everything that the compendium reads and writes.

A *run* is one set of parameters. The default run writes the committed figures. Every other run
writes below ``build/runs/<run>``, so it never overwrites the committed figures.
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
JUDGEMENTS = DATA / "judgements"
MODELS = DATA / "models"
RECORDINGS = DATA / "recordings"
RAW = DATA / "raw"

FIGURES = ROOT / "figures"
BUILD = Path(os.environ.get("INGROUP_BUILD", ROOT / "build"))  # tests have their own
RESPONSES = BUILD / "responses"
MADE = BUILD / "models"  # models made of weights that a package carries
NOTEBOOKS = ROOT / "notebooks"
PROFILES = NOTEBOOKS / "profiles"

DEFAULT_RUN = "default"
LAB_RUN = "lab"
IN_LAB = "INGROUP_LAB"  # set for the kernels of `make lab`


def executed(notebook: str, run: str = DEFAULT_RUN) -> Path:
    """Return the path of the executed copy of a notebook.

    Parameters
    ----------
    notebook : str
        The notebook's name without a suffix, e.g. ``"10_empathy_gap"``.
    run : str
        The name of the run.

    Returns
    -------
    Path
        The path, whether or not the file is there.

    Raises
    ------
    InputError
        As `run_folder`.
    """
    return run_folder(run) / "notebooks" / f"{notebook}.ipynb"


def started(notebook: str, run: str) -> Path:
    """Return the path of the file with the parameters of a copy that JupyterLab started.

    Parameters
    ----------
    notebook : str
        The notebook's name without a suffix, e.g. ``"10_empathy_gap"``.
    run : str
        The name of the run.

    Returns
    -------
    Path
        The path, whether or not the file is there.

    Raises
    ------
    InputError
        As `run_folder`.
    """
    return run_folder(run) / "lab" / f"{notebook}.json"


def executed_notebooks(run: str) -> list[str]:
    """List the notebooks that ran to their end, in the order of their numbers.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    list of str
        Names without a suffix, e.g. ``"10_empathy_gap"``.

    Raises
    ------
    InputError
        As `run_folder`.
    """
    files = (run_folder(run) / "notebooks").glob("[0-9]*.ipynb")
    return sorted(file.stem for file in files if not file.stem.endswith(".unfinished"))


def figure_folder(run: str) -> Path:
    """Return the folder of a run's figures.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    Path
        For the default run ``figures/``, which is committed.

    Raises
    ------
    InputError
        As `run_folder`.
    """
    if run == DEFAULT_RUN:
        return FIGURES
    return run_folder(run) / "figures"


def written_run(run: str) -> str:
    """Name the run into which a notebook writes.

    Parameters
    ----------
    run : str
        The value of the notebook's parameter ``RUN``.

    Returns
    -------
    str
        The same run. In JupyterLab, where the parameters may have been changed, "lab" in the place
        of the default run.
    """
    if run == DEFAULT_RUN and os.environ.get(IN_LAB):
        return LAB_RUN
    return run


def run_folder(run: str) -> Path:
    """Return the folder where a run writes files that are not committed.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    Path
        The folder ``build/`` for the default run, or else ``build/runs/<run>``.

    Raises
    ------
    InputError
        For a name that cannot be the name of a folder.
    """
    # The first character is no dot or hyphen: the folder is neither hidden nor taken for an option.
    if ".." in run or not re.fullmatch(r"[A-Za-z0-9_,+=][A-Za-z0-9_.,+=-]{0,199}", run):
        expected = "at most 200 of A-Z a-z 0-9 _ . , + = - without two dots; give RUN=<name>"
        raise wrong("RUN", repr(run), expected)

    if run == DEFAULT_RUN:
        return BUILD
    return BUILD / "runs" / run
