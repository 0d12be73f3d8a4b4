"""Records of a notebook's files by content: its outputs, and its inputs outside of git.

The record ``<notebook>.json`` stands beside the executed copy. It has a digest of each table and
figure that the notebook wrote. It also has the states of the answers, weights and user's files that
the notebook read. Other notebooks depend on the record.
"""

import hashlib
import json
import sys
from collections.abc import Iterable
from glob import glob
from pathlib import Path

from ingroup.commands.settings import ROOT

# A larger file (in bytes) is not read again where its time and size are as they were.
LARGE_BYTES = 64 * 2**20
FileState = list[str | int]


def digest(file: Path) -> str:
    """Return the SHA-256 of a file's content.

    Parameters
    ----------
    file : Path
        Any file.

    Returns
    -------
    str
        Hexadecimal digits; "" where there is no file.
    """
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_state(file: Path) -> FileState:
    """Return the state of a file, with which `is_changed` compares the file later.

    Parameters
    ----------
    file : Path
        A file, which may be missing.

    Returns
    -------
    list
        Its `digest`. For a file larger than `LARGE_BYTES`, its size in bytes and its time in ns
        follow.
    """
    if not file.is_file():
        return [""]
    about = file.stat()
    if about.st_size <= LARGE_BYTES:
        return [digest(file)]
    return [digest(file), about.st_size, about.st_mtime_ns]


def is_changed(file: Path, before: FileState) -> bool:
    """Tell whether the content of a file differs from an earlier state.

    Parameters
    ----------
    file : Path
        The file, which may be missing.
    before : list
        Its :func:`file_state` then. A large file with the same size and time is taken to be the
        same.

    Returns
    -------
    bool
        True also where the file is gone.
    """
    digest_before, *size_and_time = before
    if size_and_time and file.is_file():
        about = file.stat()
        if [about.st_size, about.st_mtime_ns] == size_and_time:
            return False
    return digest(file) != digest_before


def path_in_records(path: Path) -> str:
    """Return a path in the form that records use.

    Parameters
    ----------
    path : Path
        A file or folder, absolute or from the working directory.

    Returns
    -------
    str
        The path from the project's root for a file below it, or else the absolute path.
    """
    absolute = path.absolute()
    if absolute.is_relative_to(ROOT):
        return absolute.relative_to(ROOT).as_posix()
    return str(absolute)


def files_of(pattern: str) -> list[str]:
    """List the files that match a pattern.

    Parameters
    ----------
    pattern : str
        A pattern of `glob.glob`, from the project's root or absolute. ``*`` names no hidden files,
        which are locks.

    Returns
    -------
    list of str
        Sorted names.
    """
    files = []
    for name in sorted(glob(pattern, root_dir=ROOT, recursive=True)):
        if (ROOT / name).is_file():
            files.append(name)
    return files


def file_states(patterns: Iterable[str]) -> dict[str, dict[str, FileState]]:
    """Return the states of the files that match patterns.

    Parameters
    ----------
    patterns : iterable of str
        Patterns for :func:`files_of`.

    Returns
    -------
    dict of str to dict
        For each pattern, the :func:`file_state` of each file by its name. The dict of a pattern
        that no file matches is empty.
    """
    state_of_files = {}
    for pattern in sorted(set(patterns)):
        state_of_files[pattern] = {name: file_state(ROOT / name) for name in files_of(pattern)}
    return state_of_files


def record_file(executed: Path) -> Path:
    """Return the path of an executed notebook's record.

    Parameters
    ----------
    executed : Path
        The executed copy of the notebook.

    Returns
    -------
    Path
        The file, whether or not it exists.
    """
    return executed.with_suffix(".json")


def write(executed: Path, written: Iterable[Path], watched: dict[str, dict]) -> None:
    """Write the record of the files that a notebook wrote and read.

    Parameters
    ----------
    executed : Path
        The executed copy, beside which the record goes.
    written : iterable of Path
        Tables and figures that it wrote. Files that no longer exist are left out.
    watched : dict
        The :func:`file_states` of answers, weights and files of the user's own that it read.
    """
    digest_of = {}
    for file in sorted(written):
        if file.is_file():
            name = path_in_records(file)
            digest_of[name] = digest(file)

    content = {"wrote": digest_of, "read": watched}
    text = json.dumps(content, indent=1)
    record_file(executed).write_text(f"{text}\n", "utf8")


def read(executed: Path) -> dict[str, dict]:
    """Read the record of an executed notebook.

    Parameters
    ----------
    executed : Path
        The executed copy.

    Returns
    -------
    dict
        ``wrote`` and ``read``, as in :func:`write`. Both are empty if the record is missing or
        damaged.
    """
    try:
        content = json.loads(record_file(executed).read_text("utf8"))
        wrote = dict(content["wrote"])
        return {"wrote": wrote, "read": dict(content["read"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"wrote": {}, "read": {}}


def edited_outputs(executed: Path) -> list[str]:
    """List the tables and figures that were changed or deleted after the notebook wrote them.

    Parameters
    ----------
    executed : Path
        The executed copy of the notebook.

    Returns
    -------
    list of str
        Names as in its record.
    """
    names = []
    for name, digest_before in read(executed)["wrote"].items():
        if digest(ROOT / name) != digest_before:
            names.append(name)
    return names


def say_changed(notebook: str, names: list[str], when: str) -> None:
    """Say on standard error that a notebook runs again, because files changed.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    names : list of str
        The files; the sentence names the first.
    when : str
        How the notebook used the files before they changed: "written" or "read".
    """
    first, *others = names
    more = f" and {len(others)} more" if others else ""
    print(f"{notebook} runs again: {first}{more} changed after it was {when}", file=sys.stderr)


def changed_inputs(executed: Path) -> list[str]:
    """List the answers, weights and user's files that changed after the notebook read them.

    Parameters
    ----------
    executed : Path
        The executed copy.

    Returns
    -------
    list of str
        Names of files that came, went or changed, pattern by pattern.
    """
    names = []
    for pattern, state_before in read(executed)["read"].items():
        present = set(files_of(pattern))
        names += sorted(present.symmetric_difference(state_before))

        for name in sorted(present.intersection(state_before)):
            if is_changed(ROOT / name, state_before[name]):
                names.append(name)
    return names
