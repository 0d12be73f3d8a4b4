"""Responses on disk: shards that are written once, and a manifest that says what they answer.

A shard is written to a temporary name and renamed, so a file that has its name is whole. A run
that was killed at any moment goes on with the shards that are missing; what is there is never
written again.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ingroup.inference.engine import Reply

SCHEMA = pa.schema(
    [
        ("trial", pa.int64()),
        ("text", pa.dictionary(pa.int32(), pa.string())),
        ("finish_reason", pa.dictionary(pa.int32(), pa.string())),
        ("prompt_tokens", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("error", pa.dictionary(pa.int32(), pa.string())),
    ]
)


class StoreError(RuntimeError):
    """A store cannot be used for this run; the message names the difference."""


class Store:
    """The responses of one model to one setting of one study.

    Parameters
    ----------
    folder : pathlib.Path
        ``build/responses/<study>/<corpus>-<events>/<model>/<setting>``; made if missing.
    manifest : mapping
        Everything that can change a response, and ``trials`` and ``shard_size``.

    Raises
    ------
    StoreError
        Where the folder already holds answers to something else.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]):
        self.folder, self.manifest = folder, dict(manifest)
        self.trials, self.shard_size = manifest["trials"], manifest["shard_size"]
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "manifest.json"
        if file.exists():
            self._check(file)
        elif any(folder.glob("part-*.parquet")):
            raise StoreError(f"{folder} holds shards but no manifest.json; move it away")
        else:
            text = json.dumps(self.manifest, indent=1, sort_keys=True) + "\n"
            _replace(file, lambda place: place.write_text(text, "utf8"))

    def _check(self, file: Path) -> None:
        try:
            there = json.loads(file.read_text("utf8"))
        except ValueError as error:
            raise StoreError(f"{file} is not readable as JSON; move its folder away") from error
        for name in sorted(there.keys() | self.manifest.keys()):
            old, new = there.get(name), self.manifest.get(name)
            if old != new:
                raise StoreError(
                    f"{self.folder} holds answers with {name} {old!r}, this run asks with {name} "
                    f"{new!r}; nothing was changed: move that folder away or set it back"
                )

    @property
    def shards(self) -> int:
        """Number of shards of the whole design."""
        return -(-self.trials // self.shard_size)

    def bounds(self, shard: int) -> tuple[int, int]:
        """First trial of a shard, and the one behind its last."""
        start = shard * self.shard_size
        return start, min(start + self.shard_size, self.trials)

    def path(self, shard: int) -> Path:
        return self.folder / f"part-{shard:05d}.parquet"

    def missing(self) -> list[int]:
        """Shards still to be asked.

        A shard that cannot be read (cut off, other bytes) is moved aside as ``*.damaged`` and
        counts as missing.
        """
        return [shard for shard in range(self.shards) if not self._is_whole(shard)]

    def _is_whole(self, shard: int) -> bool:
        path = self.path(shard)
        if not path.exists():
            return False
        start, stop = self.bounds(shard)
        try:
            trials = self._read(path)["trial"].to_pylist()
        except (pa.ArrowException, OSError):
            trials = None
        if trials == list(range(start, stop)):
            return True
        os.replace(path, path.with_suffix(".parquet.damaged"))
        return False

    @staticmethod
    def _read(path: Path) -> pa.Table:
        table = pq.read_table(path, page_checksum_verification=True, partitioning=None)
        return table.cast(SCHEMA)

    def write(self, shard: int, replies: Sequence[Reply]) -> None:
        """Write one shard, whole or not at all.

        Raises
        ------
        StoreError
            Where the number of replies is not the shard's, or the shard is there already.
        """
        start, stop = self.bounds(shard)
        if len(replies) != stop - start:
            raise StoreError(f"shard {shard} takes {stop - start} replies, found {len(replies)}")
        if self.path(shard).exists():
            raise StoreError(f"{self.path(shard)} is there already; answers are never overwritten")
        columns = {"trial": range(start, stop)} | {
            field: [getattr(reply, field) for reply in replies] for field in Reply._fields
        }
        table = pa.table({name: list(columns[name]) for name in SCHEMA.names}, schema=SCHEMA)
        _replace(
            self.path(shard),
            lambda place: pq.write_table(
                table, place, compression="zstd", write_page_checksum=True
            ),
        )

    def read(self, start: int = 0, stop: int | None = None) -> pd.DataFrame:
        """Responses to trials ``start`` to ``stop``, ordered; ``trial`` counts from ``start``.

        Returns
        -------
        pandas.DataFrame
            Columns of ``SCHEMA``; ``text`` and ``finish_reason`` are categories, ``text`` is
            missing where a call failed.

        Raises
        ------
        StoreError
            Where a shard of this range is missing.
        """
        stop = self.trials if stop is None else stop
        shards = range(start // self.shard_size, -(-stop // self.shard_size))
        absent = [shard for shard in shards if not self.path(shard).exists()]
        if absent:
            raise StoreError(f"{self.path(absent[0])} is missing; run the generation again")
        tables = [self._read(self.path(shard)) for shard in shards]
        table = pa.concat_tables(tables).unify_dictionaries()
        first = shards.start * self.shard_size
        table = table.slice(start - first, stop - start)
        frame = table.to_pandas()
        frame["trial"] -= start
        return frame


def _replace(target: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary file beside ``target``, then rename it."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
