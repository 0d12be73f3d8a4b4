"""Who may write which shards: locks on single bytes of one file.

Byte 0 of ``.lock`` is the manifest's, byte k + 1 is shard k's. Runs whose shards differ write side
by side, on several machines too where the disk carries POSIX locks (NFS, Lustre, GPFS do); the
system frees the bytes of a killed process.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingroup.inference import shards
from ingroup.inference.shards import StoreError

_held: set[Path] = set()


@contextmanager
def alone(folder: Path, numbers: range | None = None) -> Iterator[None]:
    """Hold some shards of a folder, made if missing, against all others; None for all.

    Raises
    ------
    StoreError
        At once where another run holds any of them, or the folder takes no files.
    """
    start, length = (1, 0) if numbers is None else (1 + numbers.start, len(numbers))
    if numbers is not None and not numbers:  # a length of 0 would reach to the end of the file
        yield
        return
    # The system keeps processes apart; within one, a second lock would succeed, and free the first.
    place = folder.resolve()
    if place in _held:
        raise _busy(folder)
    with _open(folder) as descriptor:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except (BlockingIOError, PermissionError) as error:
            raise _busy(folder) from error
        except OSError as error:
            raise shards.unwritable(folder, error) from error
        _held.add(place)
        try:
            yield
        finally:
            _held.remove(place)


@contextmanager
def manifest(folder: Path) -> Iterator[None]:
    """Hold the manifest of a folder, made if missing; waits for who looks at it just now.

    Inside, :func:`alone` may be taken once; when it ends, so does this.

    Raises
    ------
    StoreError
        Where the folder takes no files.
    """
    with _open(folder) as descriptor:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, 0)
        except OSError as error:
            raise shards.unwritable(folder, error) from error
        yield


@contextmanager
def _open(folder: Path) -> Iterator[int]:
    """The lock file; closing it frees what this process holds of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / ".lock").open("ab")
    except OSError as error:
        raise shards.unwritable(folder, error) from error
    with stream:
        yield stream.fileno()


def _busy(folder: Path) -> StoreError:
    return StoreError(f"another run is writing to {folder}; wait for it or stop it")
