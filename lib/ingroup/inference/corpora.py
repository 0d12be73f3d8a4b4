"""External corpora, fetched once and verified by hash, through pooch."""

import hashlib
from pathlib import Path
from typing import Any

import pooch
import yaml

from ingroup import DATA, RAW

REGISTRY = DATA / "corpora.yaml"


def corpora() -> dict[str, dict[str, Any]]:
    """Read the registry of corpora: addresses, files and their hashes.

    Returns
    -------
    dict
        What the registry says about each corpus, by its name.
    """
    return yaml.safe_load(REGISTRY.read_text("utf8"))


def fetch(corpus: str) -> list[Path]:
    """Bring all files of a corpus to ``data/raw``, and verify each.

    A machine without the net is given the files by hand, in the same folder.

    Parameters
    ----------
    corpus : str
        A corpus of the registry.

    Returns
    -------
    list of Path
        Its files.

    Raises
    ------
    ValueError
        A file has another hash, or cannot be fetched.
    """
    about = corpora()[corpus]
    files = []
    for name, expected in about["files"].items():
        scheme, _, digest = expected.partition(":")
        # git's ids of files are no hashes of their content alone, which pooch could verify.
        known = expected if scheme == "sha256" else None
        file = Path(pooch.retrieve(f"{about['address']}/{name}", known, name, RAW / corpus))
        if scheme == "git" and _git_id(file) != digest:
            raise ValueError(f"{file} is not the published file: remove it, and fetch it again")
        files.append(file)
    return files


def _git_id(file: Path) -> str:
    """Compute the id that git gives to a file's content."""
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


if __name__ == "__main__":
    for named in corpora():
        print(named, len(fetch(named)), "files")
