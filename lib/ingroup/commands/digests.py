"""What a notebook wrote, and what it read outside of git, by content: ``<notebook>.json``.

The file stands beside the executed copy. It has a digest of each table and figure that the notebook
wrote, and of answers, weights and files of the user's own. Other notebooks depend on it.
"""

import hashlib
import json
import sys
from collections.abc import Iterable
from glob import glob
from pathlib import Path

from ingroup.commands.settings import ROOT

# Of a larger file with the time and size that it had, the content is not read again.
LARGE = 64 * 2**20


def digest(file: Path) -> str:
    """Return the SHA-256 of a file's content, "" where there is no file."""
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def state(file: Path) -> list[str | int]:
    """Return digest, size and time of a file; of a small file only the digest."""
    if not file.is_file():
        return [""]
    about = file.stat()
    if about.st_size <= LARGE:
        return [digest(file)]
    return [digest(file), about.st_size, about.st_mtime_ns]


def is_changed(file: Path, before: list[str | int]) -> bool:
    """Tell whether a file has another content than when :func:`state` was taken."""
    if len(before) > 1 and file.is_file():
        about = file.stat()
        if [about.st_size, about.st_mtime_ns] == before[1:]:
            return False
    return digest(file) != before[0]


def name_of(path: Path) -> str:
    """Return a path as it stands in the file: from the project's root, if it is below it."""
    path = path.absolute()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def files_of(pattern: str) -> list[str]:
    """List the files that a pattern names, in the order of their names; hidden ones are locks."""
    names = glob(pattern, root_dir=ROOT, recursive=True)
    return sorted(name for name in names if (ROOT / name).is_file())


def states(patterns: Iterable[str]) -> dict[str, dict[str, list[str | int]]]:
    """Take the :func:`state` of the files that each pattern names."""
    taken = {}
    for pattern in sorted(set(patterns)):
        taken[pattern] = {}
        for name in files_of(pattern):
            taken[pattern][name] = state(ROOT / name)
    return taken


def record(executed: Path) -> Path:
    """Return the file that says what an executed notebook wrote and read."""
    return executed.with_suffix(".json")


def write(executed: Path, written: Iterable[Path], watched: dict[str, dict]) -> None:
    """Record the files that a notebook wrote, and the :func:`states` of what else it read."""
    wrote = {}
    for file in sorted(written):
        if file.is_file():
            wrote[name_of(file)] = digest(file)

    text = json.dumps({"wrote": wrote, "read": watched}, indent=1)
    record(executed).write_text(f"{text}\n", "utf8")


def read(executed: Path) -> dict[str, dict]:
    """Return the record of an executed notebook, an empty one where there is none."""
    try:
        found = json.loads(record(executed).read_text("utf8"))
        return {"wrote": dict(found["wrote"]), "read": dict(found["read"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"wrote": {}, "read": {}}


def edited(executed: Path) -> list[str]:
    """List tables and figures that changed, or went, after the notebook had written them."""
    found = []
    for name, before in read(executed)["wrote"].items():
        if digest(ROOT / name) != before:
            found.append(name)
    return found


def say_changed(notebook: str, names: list[str], when: str) -> None:
    """Say on standard error that a notebook runs again, as files changed after they were `when`."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    print(f"{notebook} runs again: {names[0]}{more} changed after it was {when}", file=sys.stderr)


def changed(executed: Path) -> list[str]:
    """List answers, weights and files of the user's own that differ from what the notebook read."""
    found = []
    for pattern, before in read(executed)["read"].items():
        now = set(files_of(pattern))
        found += sorted(now.symmetric_difference(before))
        for name in sorted(now.intersection(before)):
            if is_changed(ROOT / name, before[name]):
                found.append(name)
    return found
