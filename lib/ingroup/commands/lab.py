"""``make lab``: the notebooks in JupyterLab, as copies that may be edited freely.

JupyterLab saves on its own, and a notebook's parameters are those of the default run. So the copies
in ``lab/``, which git ignores, are opened in the place of the notebooks. Their links work, as the
folder stands beside ``notebooks/``.
"""

import os
import shutil
import sys
from pathlib import Path

from ingroup import paths

LAB = paths.ROOT / "lab"
ORIGINALS = ".originals"  # what each copy was made of


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
        has_changed = not original.exists() or original.read_bytes() != notebook.read_bytes()
        is_edited = not is_new and (
            not original.exists() or copy.read_bytes() != original.read_bytes()
        )
        if is_edited:
            if has_changed:
                shown = copy.relative_to(lab.parent)
                sentences.append(
                    f"{shown} has your edits, and its notebook has changed since: the copy was "
                    "left as it is (remove it to get the new one)"
                )
            continue
        if is_new or has_changed:
            shutil.copyfile(notebook, copy)
            shutil.copyfile(notebook, original)
    return sentences


def main() -> None:
    """Copy the notebooks and become JupyterLab, with the repository as its root."""
    for sentence in copy_notebooks():
        print(sentence, file=sys.stderr)
    print("JupyterLab opens copies in lab/; edit them freely, the notebooks stay as they are")

    options = [
        f"--ServerApp.root_dir={paths.ROOT}",
        "--LabApp.default_url=/lab/tree/lab/00_map.ipynb",
    ]
    if os.geteuid() == 0:
        print("JupyterLab runs as root here, as you are root")
        options.append("--ServerApp.allow_root=True")
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options])


if __name__ == "__main__":
    main()
