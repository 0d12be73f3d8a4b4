"""Comparison of files for doit, and the file of doit's state between runs."""

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
    """Return the digest that a file had at the first call in this program.

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


def remember_digests(names: Iterable[str]) -> None:
    """Take the digests of the files that a notebook is about to read.

    A file that is edited while the notebook runs then counts as changed.

    Parameters
    ----------
    names : iterable of str
        The files' paths from the project's root.
    """
    for name in names:
        digest(name)


class ContentChecker(FileChangedChecker):
    """Comparison of files by their contents, without their times and sizes."""

    def check_modified(self, file_path: str, file_stat: os.stat_result, state: str) -> bool:
        """Tell whether a file differs from its state in the last run.

        Parameters
        ----------
        file_path : str
            The file's path from the project's root.
        file_stat : os.stat_result
            Its times and size, which are not used.
        state : str
            The value of :meth:`get_state` in the last run.

        Returns
        -------
        bool
            True where the content differs.
        """
        return digest(file_path) != state

    def get_state(self, dep: str, current_state: str | None) -> str:
        """Return the state that is kept for the next run.

        Parameters
        ----------
        dep : str
            The file's path from the project's root.
        current_state : str or None
            The state in the last run, which is not used.

        Returns
        -------
        str
            The digest of the file.
        """
        return digest(dep)


class SavedState(JsonDB):
    """File of doit's state that is written after every task, so that a killed run can go on.

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
        """Replace the file with the present state."""
        unfinished = f"{self.name}.unfinished"
        Path(unfinished).write_text(self.codec.encode(self._db), "utf8")
        os.replace(unfinished, self.name)

    def set(self, task_id: str, dependency: str, value: Any) -> None:
        """Keep a value, and write the file after the last value of a task.

        Parameters
        ----------
        task_id : str
            The name of the task.
        dependency : str
            The key of the value. The last key of a task is "deps:".
        value : object
            A value that JSON can hold.
        """
        super().set(task_id, dependency, value)
        if dependency == "deps:":
            # A full disk stops no task: the end of the run writes again, and then says so.
            with contextlib.suppress(OSError):
                self.dump()
