"""The kernel of a notebook: this Python, with this project's lib, and notes of written files.

Jupyter would take the first kernelspec called python3, which may belong to another environment. The
notes tell a run its own tables and figures, for every function that writes files.
"""

import os
import sys
from pathlib import Path
from typing import Any

NOTES_VARIABLE = "INGROUP_NOTES"  # names the file of notes; nothing is noted without it
LIBRARY = Path(__file__).resolve().parents[2]


def manager_class(notes: Path) -> type:
    """Return the class of kernel managers whose kernels note the files that they write.

    Parameters
    ----------
    notes : Path
        The file in which the kernel notes the files that it writes.

    Returns
    -------
    type
        A subclass of `jupyter_client.AsyncKernelManager`.
    """
    # This import would delay the sentence on a wrong parameter.
    from jupyter_client import AsyncKernelManager
    from jupyter_client.kernelspec import KernelSpec

    command = [sys.executable, "-m", "ingroup.commands.kernel", "-f", "{connection_file}"]
    variables = {"PYTHONPATH": str(LIBRARY), NOTES_VARIABLE: str(notes)}

    class OwnKernel(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(
                argv=command, env=variables, display_name="Ingroup", language="python"
            )

    return OwnKernel


def written_files(notes: Path) -> set[Path]:
    """Return the files that the kernel noted and that still exist.

    Parameters
    ----------
    notes : Path
        The file of notes.

    Returns
    -------
    set of Path
        Absolute paths.
    """
    text = notes.read_bytes().decode("utf8", "surrogateescape")
    files = set()
    for name in text.split("\n"):
        if name and Path(name).is_file():
            files.add(Path(name))
    return files


def _take_notes(notes: str) -> None:
    """Append the name of each file that Python opens for writing to the file of notes."""
    # Appending keeps the lines whole where several processes of the kernel write.
    stream = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    writing = os.O_WRONLY | os.O_RDWR

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open":
            return

        path, _, flags = arguments
        if isinstance(path, str) and flags & writing:
            name = os.path.abspath(path)
            os.write(stream, f"{name}\n".encode("utf8", "surrogateescape"))

    # The hook sees every file that Python opens, by any function.
    sys.addaudithook(note)


if __name__ == "__main__":
    if Path(sys.path[0]) == Path.cwd():  # python -m puts it before the library
        del sys.path[0]
    if NOTES_VARIABLE in os.environ:
        _take_notes(os.environ[NOTES_VARIABLE])

    from ipykernel import kernelapp

    kernelapp.launch_new_instance()
