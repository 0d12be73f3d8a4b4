"""How doit compares files, and how it keeps what it knows."""

import contextlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from doit.dependency import DatabaseException, FileChangedChecker, JsonDB

from ingroup.commands import digests


@cache
def digest(name: str) -> str:
    """Return the digest of a file, as it was when this program first needed it.

    Parameters
    ----------
    name : str
        The file's path from the project's root.

    Returns
    -------
    str
        The hexadecimal digits of SHA-256; "" where there is no file.
    """
    return digests.digest(digests.ROOT / name)


def take(names: Iterable[str]) -> None:
    """Take the digests of the files that a notebook is about to read.

    A file that is edited while the notebook runs then counts as changed.

    Parameters
    ----------
    names : iterable of str
        The files' paths from the project's root.
    """
    for name in names:
        digest(name)


class Content(FileChangedChecker):
    """Two files are the same where their contents are; times and sizes do not count."""

    def check_modified(self, file_path: str, file_stat: os.stat_result, state: str) -> bool:
        """Compare a file with its state in the last run.

        Parameters
        ----------
        file_path : str
            The file's path from the project's root.
        file_stat : os.stat_result
            Its times and size, which are not used.
        state : str
            What :meth:`get_state` returned in the last run.

        Returns
        -------
        bool
            True where the content is another.
        """
        return digest(file_path) != state

    def get_state(self, dep: str, current_state: str | None) -> str:
        """Return the state that is kept for the next run.

        Parameters
        ----------
        dep : str
            The file's path from the project's root.
        current_state : str or None
            What doit knows of the last run, which is not used.

        Returns
        -------
        str
            The digest of the file.
        """
        return digest(dep)


class Kept(JsonDB):
    """A file that is written whole after every task, so that a killed run goes on where it was.

    Parameters
    ----------
    name : str
        The path of the file, whose folder is made.
    *arguments : object
        Further arguments of doit's JsonDB.
    **options : object
        Further options of doit's JsonDB.
    """

    def __init__(self, name: str, *arguments: Any, **options: Any):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        try:
            super().__init__(name, *arguments, **options)
        except (DatabaseException, UnicodeDecodeError):  # damaged: everything runs again
            self._db: dict[str, Any] = {}
        # A damaged file can still be JSON.
        if not isinstance(self._db, dict):
            self._db = {}

    def dump(self) -> None:
        """Replace the file."""
        unfinished = f"{self.name}.unfinished"
        Path(unfinished).write_text(self.codec.encode(self._db), "utf8")
        os.replace(unfinished, self.name)

    def set(self, task_id: str, dependency: str, value: Any) -> None:
        """Keep a value; with the last one of a task the file is written.

        Parameters
        ----------
        task_id : str
            The name of the task.
        dependency : str
            The key of the value; "deps:" is a task's last one.
        value : object
            What doit keeps, as JSON can hold it.
        """
        super().set(task_id, dependency, value)
        if dependency == "deps:":
            # A full disk stops no task: the end of the run writes again, and then says so.
            with contextlib.suppress(OSError):
                self.dump()
