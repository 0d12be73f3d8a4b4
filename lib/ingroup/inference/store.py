"""Answers on disk, in files that are written once.

A store is a folder with a manifest and pieces. A shard is a range of trials, and a piece holds
answers to some trials of one shard. Trials that are asked again stand in a later piece, and the
latest answer that did not fail counts. The name of a piece holds a digest over the manifest and its
content, so that a changed, moved or foreign file is noticed.
"""

import hashlib
import json
import os
import reprlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from ingroup.inference.answers import FAILED, LENGTH, MISSING, Reply

SHARD_SIZE = 4096
SCHEMA = pa.schema(
    [
        ("trial", pa.int64()),
        ("prompt", pa.int64()),  # answers.prompt_key
        ("text", pa.string()),
        ("finish_reason", pa.string()),
        ("reasoning", pa.string()),
        ("error", pa.string()),
        ("model", pa.string()),
        ("prompt_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("reasoning_tokens", pa.int32()),
        ("max_tokens", pa.int32()),
        ("probabilities", pa.list_(pa.float16())),
        ("option_mass", pa.list_(pa.float16())),
    ]
)
TEXTS = ["text", "finish_reason", "reasoning", "error", "model"]


class StoreError(RuntimeError):
    """A store cannot be used for this run. The message says why, in one sentence."""


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a store, {} if there is none.

    Parameters
    ----------
    folder : Path
        A folder.

    Returns
    -------
    dict
        The manifest.
    """
    file = folder / "manifest.json"
    if not file.exists():
        return {}
    return json.loads(file.read_text("utf8"))


class Store:
    """The answers to one design.

    Parameters
    ----------
    folder : Path
        Where they are, or will be.
    manifest : mapping
        Everything that can change an answer, with ``trials``, their number. A larger
        ``max_tokens`` than the folder's is no other manifest: answers that were cut are asked
        again.

    Raises
    ------
    StoreError
        The folder holds answers to another manifest.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]):
        self.folder = folder
        self.manifest = {"shard_size": SHARD_SIZE, **manifest}
        self.max_tokens = manifest.get("max_tokens", 0)
        stored = read_manifest(folder)
        if stored and self.pieces():
            self._check_same(stored)
            self.manifest = stored
        self.trials = self.manifest["trials"]
        self.shard_size = self.manifest["shard_size"]
        self._n_pieces: dict[int, int] = {}

    def _check_same(self, stored: Mapping[str, Any]) -> None:
        """Raise a StoreError that names the first entry in which two manifests differ."""
        # An entry that both have says more than one that only goes with it.
        names = {*stored}
        in_both = sorted(names & {*self.manifest} - {"shard_size"})
        in_one = sorted(names ^ {*self.manifest})

        for name in [*in_both, *in_one]:
            found = stored.get(name)
            wanted = self.manifest.get(name)
            grows = name == "max_tokens" and found and wanted and found < wanted
            if found != wanted and not grows:
                raise StoreError(
                    f"{self.folder} holds answers with {name} {reprlib.repr(found)}, this run asks "
                    f"with {reprlib.repr(wanted)}: nothing was changed; set it back, or move the "
                    "folder away"
                )

    @property
    def n_shards(self) -> int:
        """Count the shards of the whole design."""
        return -(-self.trials // self.shard_size)

    def shard_trials(self, shard: int) -> range:
        """Return the trials of a shard.

        Parameters
        ----------
        shard : int
            The number of the shard.

        Returns
        -------
        range
            Its trials.
        """
        start = shard * self.shard_size
        return range(start, min(start + self.shard_size, self.trials))

    def pieces(self) -> dict[int, list[Path]]:
        """List the pieces of each shard, in the order in which they were written.

        Returns
        -------
        dict
            The files by shard.
        """
        pieces = defaultdict(list)
        for file in sorted(self.folder.glob("*.parquet")):
            shard, _, _ = file.name.partition("-")
            pieces[int(shard)].append(file)
        return pieces

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the store alone, and write its manifest.

        Raises
        ------
        StoreError
            Another run is writing to it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / ".lock", blocking=False):
                pieces = self.pieces()
                for shard, files in pieces.items():
                    self._n_pieces[shard] = len(files)
                if not pieces:
                    file = self.folder / "manifest.json"
                    content = json.dumps(self.manifest, indent=1, sort_keys=True)
                    _write_whole(file, content.encode())
                yield
        except Timeout as error:
            raise StoreError(f"another run is writing to {self.folder}: wait for it") from error

    def _digest(self, content: bytes) -> str:
        """Compute the digest that a piece of this store has in its name."""
        manifest = json.dumps(self.manifest, sort_keys=True).encode()
        digest = hashlib.sha256(manifest + content)
        return digest.hexdigest()[:16]

    def add(self, trials: Sequence[int], prompts: Sequence[int], replies: Sequence[Reply]) -> None:
        """Write answers to some trials of one shard, whole or not at all, inside `writing`.

        Parameters
        ----------
        trials : sequence of int
            Numbers of trials, ascending.
        prompts : sequence of int
            The key of each prompt (`answers.prompt_key`).
        replies : sequence of Reply
            One reply to each.
        """
        shard = trials[0] // self.shard_size
        fields = zip(*replies, strict=True)
        columns = dict(zip(Reply._fields, fields, strict=True))
        columns |= {
            "trial": trials,
            "prompt": prompts,
            "max_tokens": [self.max_tokens] * len(trials),
        }
        table = pa.Table.from_pydict(columns, schema=SCHEMA)
        stream = pa.BufferOutputStream()
        pq.write_table(table, stream, compression="zstd")

        content = stream.getvalue().to_pybytes()
        number = 1 + self._n_pieces.get(shard, 0)
        digest = self._digest(content)
        name = f"{shard:06d}-{number:04d}-{digest}.parquet"
        _write_whole(self.folder / name, content)
        self._n_pieces[shard] = number

    def shard(self, pieces: Sequence[Path], columns: Sequence[str]) -> pa.Table:
        """Read one shard: the answered trials in ascending order, one row each.

        Parameters
        ----------
        pieces : sequence of Path
            The pieces of the shard, from `pieces`.
        columns : sequence of str
            Names of ``SCHEMA``.

        Returns
        -------
        pyarrow.Table
            The answers.

        Raises
        ------
        StoreError
            A piece is damaged.
        """
        tables = []
        wanted = ["trial", "finish_reason", *columns]
        names = list(dict.fromkeys(wanted))
        texts = [name for name in TEXTS if name in names]
        for file in pieces:
            content = file.read_bytes()
            if not file.stem.endswith(self._digest(content)):
                raise StoreError(
                    f"{file} is damaged or another store's: move it away and run again"
                )
            reader = pa.BufferReader(content)
            options = {"columns": names, "read_dictionary": texts, "use_threads": False}
            tables.append(pq.read_table(reader, **options))
        if len(tables) == 1:
            return tables[0]

        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        trials = table["trial"].to_numpy()
        is_answered = pc.not_equal(table["finish_reason"], FAILED).to_numpy()
        # The last answered row of a trial stands last.
        order = np.lexsort((is_answered, trials))
        steps = np.diff(trials[order])
        changes = steps > 0
        is_last = np.append(changes, True)
        return table.take(order[is_last])

    def unanswered(self, asks_again: bool) -> Iterator[Sequence[int]]:
        """Yield the trials of each shard that are still to be asked.

        Parameters
        ----------
        asks_again : bool
            Whether trials that failed are among them. Trials that were cut are, if they may have
            more tokens now.
        """
        pieces = self.pieces()
        for shard in range(self.n_shards):
            trials = self.shard_trials(shard)
            if shard not in pieces:
                # A range takes no memory, however many trials are left.
                yield trials
                continue
            table = self.shard(pieces[shard], ["max_tokens"])
            reasons = table["finish_reason"]
            is_cut = pc.equal(reasons, LENGTH)
            had_less = pc.less(table["max_tokens"], self.max_tokens)
            again = pc.and_(is_cut, had_less)
            if asks_again:
                is_failed = pc.equal(reasons, FAILED)
                again = pc.or_(again, is_failed)

            done = table["trial"].filter(pc.invert(again))
            left = np.setdiff1d(trials, done.to_numpy())
            yield left.tolist()

    def shards(self, columns: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Read the store shard by shard, which takes the memory of one shard.

        Parameters
        ----------
        columns : sequence of str
            Names of ``SCHEMA`` beside ``trial`` and ``finish_reason``, all unless given.

        Yields
        ------
        pyarrow.Table
            One row for each answered trial of a shard, in their order. Texts are dictionary arrays.
        """
        for files in self.pieces().values():
            yield self.shard(files, columns or SCHEMA.names)

    def read(self, columns: Sequence[str] = ()) -> pd.DataFrame:
        """Read the whole store, with each distinct text once.

        Parameters
        ----------
        columns : sequence of str
            As for `shards`.

        Returns
        -------
        DataFrame
            One row for each trial, in order. A trial that was never asked has the finish reason
            "missing".
        """
        tables = list(self.shards(columns)) or [SCHEMA.empty_table()]
        table = pa.concat_tables(tables).unify_dictionaries()
        frame = table.to_pandas(types_mapper=_type_of_lists)
        if len(frame) < self.trials:
            frame = frame.set_index("trial").reindex(range(self.trials))
            frame = frame.reset_index(names="trial")
            reasons = frame.finish_reason.astype(object)
            reasons = reasons.fillna(MISSING)
            frame["finish_reason"] = reasons.astype("category")
        return frame


def _type_of_lists(kind: pa.DataType) -> pd.ArrowDtype | None:
    """Keep lists as Arrow has them, for pandas would make an array of each."""
    return pd.ArrowDtype(kind) if pa.types.is_list(kind) else None


def _write_whole(target: Path, content: bytes) -> None:
    """Write a file whole or not at all, even if the machine crashes."""
    name = f".{target.name}.tmp"
    temporary = target.with_name(name)
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(target)
