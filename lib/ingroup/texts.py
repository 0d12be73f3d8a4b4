"""Text files of users, read in one way."""

from pathlib import Path


def decoded(file: Path, error: type[ValueError]) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Raises
    ------
    error
        With one sentence: where the file cannot be read, or at which line it is not UTF-8.
    """
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise error(f"{file} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise error(
            f"{file}, line {line}: found a byte that is not UTF-8, expected UTF-8 text."
        ) from problem
