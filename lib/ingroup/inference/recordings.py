"""Answers that somebody recorded: one small reader a layout, each yielding prompt and reply."""

import csv
import json
import reprlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ingroup.design import Design
from ingroup.inference.engine import STOP, EngineError, Reply
from ingroup.inference.store import SCHEMA

EXPECTED = "a .tsv, .csv or .json file, a folder of them, or a store with its manifest.json"

# Delimiter, column of the system turn, of the user turn, and the columns that must be there.
_TABLES = {
    ".tsv": ("\t", "system_prompt", "user_input", ("system_prompt", "user_input", "response")),
    ".csv": (",", "system", "prompt", ("prompt", "response")),
}

_COLUMNS = pa.schema([SCHEMA.field(name) for name in ("trial", "text", "finish_reason")])


class Recording(NamedTuple):
    """One recorded answer, and the file and line (key, trial) where it stands."""

    where: str
    prompt: str
    reply: Reply


def prompt_text(*turns: str) -> str:
    """A chat as one text: its turns, one to a line, without those that are empty."""
    return "\n".join(turn for turn in turns if turn)


def find(place: Path) -> list[Path]:
    """The files of a store, of a folder (also those further down), or one file.

    Returns
    -------
    list of pathlib.Path
        In the order of their names. Hidden files and those of other kinds are left out.

    Raises
    ------
    EngineError
        Where there is none.
    """
    kinds = (".parquet",) if is_store(place) else (*_TABLES, ".json")
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    files = [file for file in files if file.suffix.lower() in kinds and file.name[0] != "."]
    if not files or not files[0].is_file():
        raise EngineError(f"there are no recordings at {place}; expected {EXPECTED}")
    return files


def is_store(place: Path) -> bool:
    """Whether a place is a store of this project."""
    return (place / "manifest.json").is_file()


def store_model(folder: Path, design: Design | None) -> str | None:
    """The model whose answers a store holds.

    Raises
    ------
    EngineError
        Where the store answered another design than this one, or its manifest is none.
    """
    if design is None:
        raise EngineError(f"{folder} is a store; its design is needed to know its prompts")
    try:
        manifest = dict(json.loads((folder / "manifest.json").read_bytes()))
    except (ValueError, TypeError) as error:
        raise EngineError(f"{folder / 'manifest.json'} is not the manifest of a store") from error
    for name, value in {"prompts": design.fingerprint, "trials": len(design)}.items():
        if manifest.get(name) != value:
            raise EngineError(
                f"{folder} holds answers to {name} {manifest.get(name)!r}, expected {value!r}: "
                "the design has another corpus, size, setting or wording"
            )
    return manifest.get("model")


def read(files: Iterable[Path], design: Design | None = None) -> Iterator[Recording]:
    """All recordings of some files, in their order.

    Parameters
    ----------
    files : iterable of pathlib.Path
        From :func:`find`.
    design : ingroup.design.Design, optional
        What a store answered, as shards hold trials and no prompts.

    Raises
    ------
    EngineError
        Where a file is not what its name says; the message names the line, key or trial.
    """
    for file in files:
        kind = file.suffix.lower()
        if kind == ".parquet":
            yield from _shard(file, design)
        else:
            yield from (_table if kind in _TABLES else _results)(file)


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


def _shard(file: Path, design: Design) -> Iterator[Recording]:
    """One shard of :class:`ingroup.inference.store.Store`; a failed call is no recording."""
    try:
        table = pq.read_table(
            file, columns=_COLUMNS.names, page_checksum_verification=True, partitioning=None
        )
        columns = table.cast(_COLUMNS).to_pydict()
        trials = [design[number] for number in columns["trial"]]
    except (pa.ArrowException, OSError, LookupError) as error:
        reason = str(error).split("\n")[0]
        raise EngineError(f"{file} is no whole shard of this design: {reason}") from error
    for trial, text, reason in zip(trials, columns["text"], columns["finish_reason"], strict=True):
        if text is not None:
            prompt = prompt_text(*(message["content"] for message in trial.messages))
            yield Recording(f"{file}, trial {trial.index}", prompt, Reply(text, reason))
