"""Answers that somebody recorded: one small reader a layout, each yielding prompt and reply."""

import csv
import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from ingroup.design import Design
from ingroup.inference import shards
from ingroup.inference.engine import STOP, EngineError, Reply
from ingroup.inference.shards import StoreError

EXPECTED = "a .tsv, .csv or .json file, a folder of them, or stores, each with its manifest.json"

# Delimiter, column of the system turn, of the user turn, and the columns that must be there.
_TABLES = {
    ".tsv": ("\t", "system_prompt", "user_input", ("system_prompt", "user_input", "response")),
    ".csv": (",", "system", "prompt", ("prompt", "response")),
}

# A shard, and what a later run got for trials of it that had failed.
_SHARD = re.compile(r"part-(\d+)(?:\.again-(\d+))?\.parquet")


class Recording(NamedTuple):
    """One recorded answer, and the file and line (key, trial) where it stands."""

    where: str
    prompt: str
    reply: Reply


def prompt_text(*turns: str) -> str:
    """A chat as one text: its turns, one to a line, without those that are empty."""
    return "\n".join(turn for turn in turns if turn)


def find(place: Path) -> list[Path]:
    """The tables and results of a folder (also those further down), one file, or a pattern's.

    Returns
    -------
    list of pathlib.Path
        In the order of their names. Hidden files and those of other kinds are left out.

    Raises
    ------
    EngineError
        Where there is none.
    """
    files = sorted(place.rglob("*") if place.is_dir() else place.parent.glob(place.name))
    kinds = (*_TABLES, ".json")
    files = [file for file in files if file.suffix.lower() in kinds and file.name[0] != "."]
    if not files or not files[0].is_file():
        raise EngineError(f"there are no recordings at {place}; expected {EXPECTED}")
    return files


class StoredAnswers(NamedTuple):
    """A store of this project: its folder, its manifest, the design that it answered."""

    folder: Path
    manifest: dict[str, Any]
    design: Design

    @property
    def files(self) -> list[Path]:
        """Shards in order, each before what later runs got for trials of it that had failed."""
        found = ((_SHARD.fullmatch(file.name), file) for file in self.folder.iterdir())
        places = {file: (int(at[1]), int(at[2] or 0)) for at, file in found if at}
        return sorted(places, key=places.__getitem__)

    def read(self) -> Iterator[Recording]:
        """All its recordings in the order of trials; a call that failed is none.

        Raises
        ------
        EngineError
            Where a shard is damaged or of another design.
        """
        for _, files in groupby(self.files, lambda file: _SHARD.fullmatch(file.name)[1]):
            recordings = {}
            for file in files:
                recordings |= _shard(file, self.design)
            yield from (recordings[trial] for trial in sorted(recordings))


def stores(place: Path, designs: Sequence[Design]) -> list[StoredAnswers]:
    """The stores in a folder that answered one of these designs, in the order of their paths.

    Parameters
    ----------
    place : pathlib.Path
        A store, a folder with stores further down, or anything else: then there are none.
    designs : sequence of ingroup.design.Design
        Whole ones. Stores hold trials and no prompts.

    Raises
    ------
    EngineError
        Where there are stores, but none answered any of the designs, or a manifest is none.
    """
    manifests = sorted(place.rglob("manifest.json")) if place.is_dir() else []
    if manifests and not designs:
        raise EngineError(f"{manifests[0].parent} is a store; its design is needed for its prompts")
    known = {(design.fingerprint, len(design)): design for design in designs}
    found = {file: _manifest(file) for file in manifests}
    answered = {file: (there.get("prompts"), there.get("trials")) for file, there in found.items()}
    matching = [
        StoredAnswers(file.parent, there, known[answered[file]])
        for file, there in found.items()
        if answered[file] in known
    ]
    if manifests and not matching:
        there, here = (
            " or ".join(f"{str(prompts)[:16]} ({trials} trials)" for prompts, trials in pairs)
            for pairs in (dict.fromkeys(answered.values()), known)
        )
        raise EngineError(
            f"{place} holds answers to prompts {there}, expected {here}: the design has another "
            "corpus, size, setting or wording"
        )
    return matching


def _manifest(file: Path) -> dict[str, Any]:
    try:
        there = json.loads(file.read_bytes())
        hash(tuple(there.get(name) for name in ("prompts", "trials", "model")))
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise EngineError(f"{file} is not the manifest of a store") from error
    return there


def read(files: Iterable[Path]) -> Iterator[Recording]:
    """All recordings of some tables and results, in their order.

    Raises
    ------
    EngineError
        Where a file is not what its name says; the message names the line or key.
    """
    for file in files:
        yield from (_table if file.suffix.lower() in _TABLES else _results)(file)


def _table(file: Path) -> Iterator[Recording]:
    """A delimited table with quoted cells, as pandas writes them."""
    delimiter, system, user, needed = _TABLES[file.suffix.lower()]
    header: list[str] = []
    end = 0  # last line of the row before; a row may have several
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, delimiter=delimiter, strict=True)
            for row in rows:
                where, end = f"{file}, line {end + 1}", rows.line_num
                if not header:
                    header = row
                    if absent := [name for name in needed if name not in header]:
                        names = ", ".join(map(repr, header))
                        raise EngineError(f"{where}: no column {absent[0]!r}, found {names}")
                elif row:
                    if len(row) != len(header):
                        raise EngineError(f"{where}: {len(row)} columns, expected {len(header)}")
                    cells = dict(zip(header, row, strict=True))
                    prompt = prompt_text(cells.get(system, ""), cells[user])
                    yield Recording(where, prompt, Reply(cells["response"], STOP))
    except csv.Error as error:
        raise EngineError(f"{file}, line {end + 1}: a cell is not quoted right, {error}") from error
    except UnicodeDecodeError as error:
        raise EngineError(f"{file}, line {_undecodable(file)}: the text is not UTF-8") from error
    if not header:
        raise EngineError(f"{file}, line 1: the file is empty, expected {', '.join(needed)}")


def _undecodable(file: Path) -> int:
    with file.open("rb") as lines:
        return next(
            n for n, raw in enumerate(lines, 1) if raw.decode(errors="ignore").encode() != raw
        )


def _results(file: Path) -> Iterator[Recording]:
    """GIEBench's results; an item without an answer is a call that failed."""
    try:
        items = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{file} is not readable as JSON: {error}") from error
    if not isinstance(items, dict):
        raise EngineError(f"{file}: found a {type(items).__name__}, expected an object of items")
    for key, item in items.items():
        where = f"{file}, key {key!r}"
        if not isinstance(item, dict) or not isinstance(item.get("prompt"), str):
            raise EngineError(f"{where}: found {reprlib.repr(item)}, expected an item with prompt")
        answer = item.get("answer")
        if answer is None:
            continue
        if not isinstance(answer, str):
            raise EngineError(f"{where}: found answer {reprlib.repr(answer)}, expected a text")
        # JSON can spell half a surrogate pair, which UTF-8 (and so a shard) cannot hold.
        prompt, answer = (t.encode(errors="replace").decode() for t in (item["prompt"], answer))
        yield Recording(where, prompt, Reply(answer, STOP))


def _shard(file: Path, design: Design) -> dict[int, Recording]:
    """Trial to recording, of one file of :class:`ingroup.inference.store.Store`."""
    try:
        table = shards.read(file, range(len(design)), ("trial", "text", "finish_reason"))
    except (StoreError, OSError) as error:
        raise EngineError(f"{file} is no whole shard of this design") from error
    found = {}
    for number, text, reason in zip(*table.to_pydict().values(), strict=True):
        if text is not None:
            prompt = prompt_text(*(message["content"] for message in design[number].messages))
            found[number] = Recording(f"{file}, trial {number}", prompt, Reply(text, reason))
    return found
