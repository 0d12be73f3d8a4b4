"""``make lab``: the notebooks in JupyterLab, as copies that may be edited freely.

JupyterLab saves on its own, and a notebook's parameters are those of the default run. So copies in
``lab/``, which git ignores, are opened in place of the notebooks. Their links work, as the folder
stands beside ``notebooks/``. A copy names its run by the parameters that the reader changed. A
notebook that reports on a run has the name of that run in ``RUN``. Its copy reads the same run, but
writes into a run of its own.
"""

import ast
import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ingroup import paths
from ingroup.commands import run_parameters, settings
from ingroup.commands.executed import as_typed
from ingroup.inference import shards
from ingroup.tables import InputError, writing

LAB = paths.ROOT / "lab"
ORIGINALS = ".originals"  # each copy as it was made
# The line of a notebook's file that names the run of all copies.
RUN_LINE = re.compile(r'"RUN = \\"lab\\"(?:[^"\\]|\\.)*"')
# The last parameter of a notebook that reports on a run, and where such a notebook writes.
READ_LINE = re.compile(r'"(RUN = \\"default\\"(?:[^"\\]|\\.)*)"(?=\s*\])')
OUTPUT = re.compile(r'(notebook\.Output\(\\"\w+\\", )RUN\)')
OWN_RUN = "OWN_RUN"  # the name in a copy of the run that it writes


def copy_notebooks(notebooks: Path = paths.NOTEBOOKS, lab: Path = LAB) -> list[str]:
    """Copy the notebooks that have no copy yet, or whose copy was not edited.

    Parameters
    ----------
    notebooks, lab : Path
        Where the notebooks are, and where the copies go.

    Returns
    -------
    list of str
        A sentence for each copy that was edited and whose notebook has changed since: the copy
        stays as it is.
    """
    originals = lab / ORIGINALS
    originals.mkdir(parents=True, exist_ok=True)
    sentences = []
    for notebook in sorted(notebooks.glob("*.ipynb")):
        copy = lab / notebook.name
        original = originals / notebook.name
        is_new = not copy.exists()
        content = _as_copied(notebook)
        before = original.read_bytes() if original.exists() else None
        has_changed = before != content
        # Without its original, a copy may or may not be edited, so it stays.
        is_edited = not is_new and copy.read_bytes() != before
        if is_edited and has_changed:
            shown = copy.relative_to(lab.parent)
            sentences.append(
                f"{shown} has your edits, and its notebook has changed since: the copy was "
                "left as it is (remove it to get the new one)"
            )
        # An open copy that stays the same is not written, as JupyterLab would ask about it.
        if is_new or (has_changed and not is_edited):
            copy.write_bytes(content)
            original.write_bytes(content)
    return sentences


def _as_copied(notebook: Path) -> bytes:
    """Return the file of a notebook's copy, in which `run_of` names the run."""
    takes = r'"from ingroup.commands.lab import run_of\n"'
    call = rf"run_of(\"{notebook.stem}\", globals())"
    own = [takes, rf'"RUN = {call}  # build/runs/lab, or one named after your changes"']
    reading = [takes, rf'"{OWN_RUN} = {call}  # what this copy writes; it reads RUN"']

    text = notebook.read_text("utf8")
    text = RUN_LINE.sub(lambda _: _lines(own), text)
    if READ_LINE.search(text):
        text = READ_LINE.sub(lambda line: _lines([rf'"{line[1]}\n"', *reading]), text)
        text = OUTPUT.sub(rf"\1{OWN_RUN})", text)
    return text.encode("utf8")


def _lines(texts: list[str]) -> str:
    """Join the lines of a cell as a notebook's file has them."""
    return ",\n    ".join(texts)


def run_of(notebook: str, names: Mapping[str, Any]) -> str:
    """Name the run of a copy by its changed parameters, and note these parameters in the run.

    Parameters
    ----------
    notebook : str
        The name of the notebook that was copied.
    names : mapping
        The names of the copy and their values, ``globals()``.

    Returns
    -------
    str
        "lab" where no parameter was changed, or else, for example, "lab+N_EVENTS-6". Copies with
        the same changes have the same run, and no other copies do.

    Raises
    ------
    InputError
        For a name in the cell that is not a parameter, for a parameter that is missing, and for the
        first value that cannot work.
    """
    committed = run_parameters.cell_parameters(notebook)
    _check_names(names, set(committed) - {"RUN"})
    values = {name: names[name] for name in committed if name != "RUN"}
    values = run_parameters.check_cell_parameters(notebook, values)
    # A notebook that reports on a run reads the one that is named; no other reads RUN.
    if committed["RUN"] == paths.DEFAULT_RUN:
        values["RUN"] = _checked_run(names)

    changed = {}
    shown = {}
    for name in sorted(values):
        if values[name] != committed[name]:
            changed[name] = settings.value_text(values[name])
            shown[name] = as_typed(name, values[name])

    run = settings.name_of(paths.LAB_RUN, changed)
    # The figures are drawn again from the tables of the run that the copy writes.
    start = {"changed": shown, "parameters": {**values, "RUN": run}}
    _note_start(paths.started(notebook, run), start)
    return run


def _check_names(names: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse a name in the running cell that is not a parameter, and a missing parameter."""
    *_, source = names["In"]  # IPython's list of the cells that ran: the last one runs now
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            name = ast.unparse(target)
            if name not in ("RUN", OWN_RUN) and name not in known:
                raise InputError(settings.unknown_parameter_message(name, known))

    for name in sorted(known):
        if name not in names:
            raise InputError(f"{name} is missing among the parameters: write {name} = <value>")


def _checked_run(names: Mapping[str, Any]) -> str:
    """Return the run that a copy reads. Raise an InputError if no run has this name."""
    run = names.get("RUN")
    runs = [paths.DEFAULT_RUN]
    for name in settings.runs():
        if name != paths.DEFAULT_RUN:
            runs.append(name)
    if run not in runs:
        raise InputError(
            f"there is no run {run!r} to read; RUN can be {', '.join(map(repr, runs))}"
        )
    return run


def _note_start(file: Path, start: Mapping[str, Any]) -> None:
    """Write the changed parameters and all parameters of a copy into a file of its run."""
    with writing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(start, indent=1)
    shards.replace_file(file, text.encode("utf8"))


def main() -> None:
    """Copy the notebooks, then replace this program with JupyterLab in the repository's root."""
    for sentence in copy_notebooks():
        print(sentence, file=sys.stderr)
    print("JupyterLab opens copies in lab/; edit them freely, the notebooks stay as they are")

    options = [
        f"--ServerApp.root_dir={paths.ROOT}",
        "--LabApp.default_url=/lab/tree/lab/00_map.ipynb",
    ]
    # JupyterLab refuses to start as root unless it is told to, and containers often have no other
    # user.
    if os.geteuid() == 0:
        print("JupyterLab runs as root here, as you are root")
        options.append("--ServerApp.allow_root=True")
    # The kernels inherit this, and `ingroup.paths` keeps them from writing into the default run.
    os.environ[paths.IN_LAB] = "1"
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options])


if __name__ == "__main__":
    main()
