"""One shard: replies as a Parquet file that carries a checksum over all of its own bytes.

Parquet's page checksums leave the pages' headers and the footer open: a bit flipped there can
give a table of impossible values, or an error from anywhere. So the footer holds a SHA-256 of
the whole file, taken while 64 zeros stand in its place. Any reader of Parquet still reads it.
"""

import errno
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingroup.inference.engine import FAILED, Reply

SCHEMA = pa.schema(
    [
        ("trial", pa.int64()),
        ("text", pa.dictionary(pa.int32(), pa.string())),
        ("finish_reason", pa.dictionary(pa.int32(), pa.string())),
        ("prompt_tokens", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("error", pa.dictionary(pa.int32(), pa.string())),
        ("top_logprobs", pa.list_(pa.struct([("token", pa.string()), ("logprob", pa.float32())]))),
    ]
)

_ENCODED = [field.name for field in SCHEMA if pa.types.is_dictionary(field.type)]
_SEAL, _OPEN = b"sha256:", b"0" * 64
_READ_ONLY = "allow writing there"
_REMEDIES = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room in your quota",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
    errno.EACCES: _READ_ONLY,
    errno.EPERM: _READ_ONLY,
    errno.EROFS: _READ_ONLY,
}


class StoreError(RuntimeError):
    """A store cannot be used for this run; the message says why and what to do."""


class DamagedError(StoreError):
    """A shard holds other bytes than those that were written."""


def write(path: Path, trials: Sequence[int], replies: Sequence[Reply]) -> None:
    """Write the replies to some trials, whole or not at all.

    Raises
    ------
    StoreError
        Where the disk does not take them; see :func:`replace`.
    """
    columns: dict[str, Sequence] = {
        field: [getattr(reply, field) for reply in replies] for field in Reply._fields
    }
    columns["trial"] = trials
    columns["top_logprobs"] = [
        [{"token": token, "logprob": logprob} for token, logprob in reply.top_logprobs] or None
        for reply in replies
    ]
    table = pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)
    table = table.replace_schema_metadata({"seal": _SEAL + _OPEN})
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, compression="zstd", write_page_checksum=True)
    head, digest, tail = _unseal(stream.getvalue().to_pybytes())
    assert digest == _OPEN, "the seal stands where it is looked for"
    replace(path, head + _sha256(head, tail) + tail)


def _unseal(content: bytes) -> tuple[bytes, bytes, bytes]:
    """What stands before the digest, the digest, and what stands behind it."""
    place = content.rfind(_SEAL) + len(_SEAL)
    return content[:place], content[place : place + len(_OPEN)], content[place + len(_OPEN) :]


def _sha256(head: bytes, tail: bytes) -> bytes:
    return hashlib.sha256(head + _OPEN + tail).hexdigest().encode()


def read(path: Path, trials: range, columns: Sequence[str] = tuple(SCHEMA.names)) -> pa.Table:
    """Some columns of a shard of these trials, ``trial`` among them, as ``SCHEMA`` has them.

    ``trials`` has a step of 1.

    Checked by flipping every single bit of a shard: each flip is found.

    Raises
    ------
    DamagedError
        Where a byte is not as it was written, or the file holds other trials.
    """
    content = path.read_bytes()
    head, digest, tail = _unseal(content)
    if digest != _sha256(head, tail):
        raise DamagedError(f"{path} is damaged; run the generation again")
    table = pq.read_table(pa.BufferReader(content), columns=list(columns))
    found = pc.min_max(table["trial"]).as_py()
    if len(table) and not (found["min"] in trials and found["max"] in trials):
        raise DamagedError(f"{path} holds trials of another shard; run the generation again")
    return table.cast(pa.schema([SCHEMA.field(name) for name in columns]))


def latest(tables: Sequence[pa.Table], start: int) -> pa.Table:
    """Of a shard and its supplements one reply a trial: the latest, if any one did not fail."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    trials = table["trial"].to_numpy()
    failed = pc.equal(table["finish_reason"], FAILED).to_numpy(zero_copy_only=False)
    rows = np.empty(len(tables[0]), dtype=np.int64)
    for row in [*np.flatnonzero(failed), *np.flatnonzero(~failed)]:
        rows[trials[row] - start] = row
    # Encoded anew: the order of the categories must not tell how often was asked.
    plain = [
        field.with_type(field.type.value_type) if field.name in _ENCODED else field
        for field in table.schema
    ]
    return table.take(pa.array(rows)).cast(pa.schema(plain)).cast(table.schema)


def replace(target: Path, content: bytes) -> None:
    """Write a temporary file beside ``target``, then rename it: whole or not at all.

    Raises
    ------
    StoreError
        Where the disk is full or does not allow it; the temporary file is removed.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError) -> StoreError:
    """The sentence on a file that cannot be written."""
    remedy = _REMEDIES.get(error.errno, "look after that disk")
    return StoreError(
        f"{path} cannot be written: {error.strerror}; all shards that are there are whole and "
        f"stay, {remedy} and run again to go on behind them"
    )
