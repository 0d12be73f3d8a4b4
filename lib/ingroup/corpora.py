"""External corpora: fetched once, verified by hash, read into tables.

``python -m ingroup.corpora [--mirror FOLDER]`` is what ``make data`` runs. A corpus is declared in
`CORPORA` with the address and the SHA-256 of every file; the files come to ``data/raw/<corpus>/``.
A mirror is a folder with the same layout, for machines that cannot reach the net.
"""

import argparse
import csv
import shutil
import sys
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pooch

from ingroup import paths

REQUIRED = ("emotion", "text_id", "generated_text")
COLUMNS = (*REQUIRED, "first_person_text", "third_person_text")


class CorpusError(ValueError):
    """A corpus that cannot be fetched or read; the message is one sentence for the user."""


class Corpus(NamedTuple):
    """Whose data it is, and where its files come from."""

    source: str
    address: str  # folder on the web, pinned to a commit, without a final slash
    files: dict[str, str]  # file name to SHA-256


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

CORPORA = {
    "crowd-envent": Corpus(
        source="Troiano et al. 2023, with the rewritten forms of Hou et al. 2025",
        address="https://raw.githubusercontent.com/houyu0930/intergroup-empathy-bias"
        "/cdfd1a6e6b460f1d3ef12905c28e1c6ba7a40401/data",
        files={f"crowd-enVent_{emotion}.tsv": sha for emotion, sha in _ENVENT_SHA256.items()},
    ),
}


def fetch(corpus: str, mirror: Path | None = None, folder: Path | None = None) -> list[Path]:
    """Bring the files of a corpus to this machine, and verify them.

    A file that is there with the right hash is left alone and nothing is asked of the net. Any
    other file goes to a temporary name first and takes its own only once its hash is right.

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
    CorpusError
        For an unknown corpus, a mirror that is not a folder or lacks a file, an address that
        cannot be reached, a wrong hash, or a folder that cannot be written.
    """
    if corpus not in CORPORA:
        raise CorpusError(f"{corpus!r} is no corpus to fetch; there is {', '.join(CORPORA)}.")
    if mirror is not None and not mirror.is_dir():
        raise CorpusError(f"The mirror {str(mirror)!r} is not a folder.")
    _, address, files = CORPORA[corpus]
    home = (folder or paths.RAW) / corpus
    pooch.get_logger().setLevel("WARNING")  # it announces every file otherwise
    fetched = []
    for name, sha256 in files.items():
        try:
            place = pooch.retrieve(
                url=f"{address}/{name}",
                known_hash=sha256,
                fname=name,
                path=home,
                downloader=_downloader(corpus, name, sha256, mirror),
            )
        except OSError as problem:
            reason = type(problem).__name__  # pooch puts several sentences into the message
            raise CorpusError(f"{home / name} cannot be written or read ({reason}).") from problem
        fetched.append(Path(place))
    return fetched


def _downloader(
    corpus: str, name: str, sha256: str, mirror: Path | None
) -> Callable[[str, str, object], None]:
    """What pooch calls to fill its temporary file, with our own sentences."""

    def download(url: str, temporary: str, _: object) -> None:
        copy = mirror and mirror / corpus / name
        if copy and not copy.is_file():
            raise CorpusError(f"The mirror {str(mirror)!r} has no {corpus}/{name}.")
        origin = copy or url
        try:
            if copy:
                shutil.copyfile(copy, temporary)
            else:
                pooch.HTTPDownloader()(url, temporary, None)
        except OSError as problem:  # every error of the HTTP client is one
            reply = getattr(problem, "response", None)
            reason = type(problem).__name__ if reply is None else f"HTTP {reply.status_code}"
            raise CorpusError(
                f"{origin} could not be fetched ({reason}); if the net cannot be reached, "
                f"`make data DATA_MIRROR=<folder>` takes {corpus}/{name} from a folder."
            ) from problem
        found = pooch.file_hash(temporary)
        if found != sha256:
            raise CorpusError(
                f"{name} from {origin} has SHA-256 {found[:12]}..., expected {sha256[:12]}...; "
                "it was not kept."
            )

    return download


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
    CorpusError
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
        raise CorpusError(
            f"n_events is {n_events!r}; corpus {corpus!r} gives a whole number from 1 to "
            f"{len(events)}."
        )
    turn = events.groupby("emotion").cumcount().sort_values(kind="stable")
    return events.loc[turn.index[:n_events].sort_values()].reset_index(drop=True)


def _files(corpus: str, folder: Path) -> list[Path]:
    """The files of a corpus in a fixed order; those of a fetched one with the right hashes."""
    if corpus == "sample":
        return [paths.SAMPLE / "narratives.tsv"]
    if corpus in CORPORA:
        files = {folder / corpus / name: sha for name, sha in CORPORA[corpus].files.items()}
        for file, sha256 in files.items():
            if not file.is_file():
                raise CorpusError(f"{file} is not there; `make data` fetches {corpus}.")
            if pooch.file_hash(str(file)) != sha256:
                raise CorpusError(f"{file} was changed; `make data` fetches the published one.")
        return sorted(files)
    place = Path(corpus).expanduser()
    files = sorted(place.glob("*.tsv")) if place.is_dir() else [place]
    if not files:
        raise CorpusError(f"The folder {corpus!r} holds no .tsv file.")
    if not files[0].is_file():
        raise CorpusError(
            f"The corpus {corpus!r} is neither sample nor {' nor '.join(CORPORA)} nor a file or "
            "folder that exists."
        )
    return files


def _read(file: Path, seen: dict[tuple[str, str], str]) -> list[dict[str, str]]:
    """One row a line; `seen` remembers where each event was read, over all files of a corpus."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise CorpusError(f"{file} cannot be read: {problem.strerror}.") from problem
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise CorpusError(f"{file}, line {line}: the text is not UTF-8.") from problem
    # Split at \n alone: other separators that str.splitlines knows may be part of a text.
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    header = lines[0].split("\t")
    if not text.strip():
        raise CorpusError(f"{file}, line 1: the file is empty, expected {', '.join(COLUMNS)}.")
    for column in REQUIRED:
        if column not in header:
            raise CorpusError(f"{file}, line 1: no column {column!r}, found {', '.join(header)}.")
    if len(lines) == 1:
        raise CorpusError(f"{file}, line 2: expected an event, the file ends after its header.")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        where = f"{file}, line {number}"
        try:
            # A text with quotes in it is quoted, its own quotes doubled, as pandas writes it.
            (cells,) = csv.reader([line], delimiter="\t", strict=True)
        except (csv.Error, ValueError) as problem:
            raise CorpusError(
                f"{where}: a quote is opened and not closed; expected a text with quotes to be "
                "quoted, its own quotes doubled."
            ) from problem
        if len(cells) != len(header):
            raise CorpusError(f"{where}: {len(cells)} fields, expected {len(header)}.")
        row = {
            column: cell for column, cell in zip(header, cells, strict=True) if column in COLUMNS
        }
        for column, cell in row.items():
            if not cell.strip():
                raise CorpusError(f"{where}: {column} is empty.")
        if row["emotion"] not in EMOTIONS:
            raise CorpusError(
                f"{where}: unknown emotion {row['emotion']!r}, expected {', '.join(EMOTIONS)}."
            )
        event = row["emotion"], row["text_id"]
        if event in seen:
            raise CorpusError(f"{where}: {' '.join(event)} is there already, in {seen[event]}.")
        seen[event] = where
        rows.append(row)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Fetch every corpus; print a line for each; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m ingroup.corpora", description="Fetch and verify the external corpora."
    )
    parser.add_argument("--mirror", metavar="FOLDER", help="copy the files from this folder")
    mirror = parser.parse_args(arguments).mirror
    try:
        for corpus in CORPORA:
            files = fetch(corpus, Path(mirror).expanduser() if mirror else None)
            print(f"{corpus}: {len(files)} files verified in {files[0].parent}")
    except CorpusError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
