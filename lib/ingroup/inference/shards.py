"""The files of a store: shards of replies, and finished calls that no shard holds yet.

A shard is Parquet, which any reader of Parquet reads, sealed and bound to the place where it
stands. The footer holds what it is bound to (its store's manifest, its own name) and a SHA-256 over
all its bytes, taken while 64 zeros stand in its place: Parquet's page checksums leave the pages'
headers and the footer open.
"""

import errno
import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingroup.inference.engine import FAILED, LENGTH, Reply
from ingroup.inference.reasoning import separate
from ingroup.tables import Sentence

TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("trial", pa.int64()),
        ("text", TEXT),
        ("finish_reason", TEXT),
        ("prompt_tokens", pa.int32()),
        ("cached_tokens", pa.int32()),
        ("output_tokens", pa.int32()),
        ("error", TEXT),
        ("model", TEXT),
        # Three digits, half the room: of 37 million answers over 101 choices, 7 GB.
        ("probabilities", pa.list_(pa.float16())),
        ("mass", pa.list_(pa.float16())),
        ("reasoning", TEXT),
        ("reasoning_tokens", pa.int32()),
        # The limit under which a reply was written: one that was cut is asked again with a higher.
        ("max_tokens", pa.int32()),
        ("price_share", pa.float32()),
        ("steps", pa.list_(pa.float16())),  # log-probabilities
    ]
)

SECONDS = 0.5  # from one sync to the next; a kill of the process costs nothing in between

_SEAL, _BLANK = b"sha256:", b"0" * 64
_REMEDIES = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "allow writing there") | {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room in your quota",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
}


class StoreError(Sentence, RuntimeError):
    """A store cannot be used for this run; the message says why and what to do."""


def write(
    path: Path, manifest: str, trials: Sequence[int], replies: Sequence[Reply], max_tokens: int = 0
) -> None:
    """Write replies to ascending trials, bound to a manifest's hash, by :func:`replace`."""
    columns = dict(zip(Reply._fields, zip(*replies, strict=True), strict=True))
    columns["trial"] = trials
    columns["max_tokens"] = [max_tokens] * len(replies)
    table = pa.Table.from_pydict(columns, schema=SCHEMA)
    table = table.replace_schema_metadata(_bound(path, manifest) | {b"seal": _SEAL + _BLANK})
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, compression="zstd")
    content = stream.getvalue().to_pybytes()
    assert content.rfind(_SEAL) == content.rfind(_SEAL + _BLANK) > 0, "where it is looked for"
    replace(path, _sealed(content))


def _bound(path: Path, manifest: str) -> dict[bytes, bytes]:
    return {b"manifest": manifest.encode(), b"file": path.name.encode()}


def _sealed(content: bytes) -> bytes:
    """The same bytes with the right digest behind the seal."""
    place = content.rfind(_SEAL) + len(_SEAL)
    head, tail = content[:place], content[place + len(_BLANK) :]
    return head + hashlib.sha256(head + _BLANK + tail).hexdigest().encode() + tail


def read(
    path: Path, manifest: str, trials: range, whole: bool, columns: Sequence[str]
) -> pa.Table | None:
    """Some columns of a file, ``trial`` among them, as ``SCHEMA`` has them; None if it is damaged.

    That is where a byte is not as it was written (checked by flipping every single bit of a shard),
    or it is not bound to ``manifest`` (a hash) and its name, or does not hold all ``trials`` of its
    shard, or some of them if it need not be ``whole``. The text of a file from before reasoning was
    stored apart is split here (:mod:`ingroup.inference.reasoning`), and its ``max_tokens`` are 0.
    Replies of a file from before the price was kept count at the whole price, and those of one from
    before steps were kept have none. StoreError where it cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    if content != _sealed(content):
        return None
    file = pq.ParquetFile(pa.BufferReader(content))
    table = _read_columns(file, columns)
    held = table["trial"].to_numpy()
    sound = len(held) == len(trials) if whole else len(held) > 0
    sound = sound and held[0] in trials and held[-1] in trials and (np.diff(held) > 0).all()
    if not (sound and _bound(path, manifest).items() <= file.schema_arrow.metadata.items()):
        return None
    return table.cast(pa.schema([SCHEMA.field(name) for name in columns]))


def _read_columns(file: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """The columns of a file; those that it is too old to have are made of its texts."""
    held = file.schema_arrow.names
    table = file.read([name for name in columns if name in held])
    nothing = pa.array(np.zeros(len(table), dtype=np.int32))
    made = {}
    if "price_share" not in held:
        made["price_share"] = pa.array(np.ones(len(table), dtype=np.float32))
    if "steps" not in held:
        made["steps"] = pa.array([[]] * len(table), SCHEMA.field("steps").type)
    if "reasoning" not in held:
        made |= {"reasoning_tokens": nothing, "max_tokens": nothing}
    if "reasoning" not in held and {"text", "reasoning"} & set(columns):
        texts = file.read(["text"])["text"].to_pandas().astype(object)
        pairs = [
            (None, "") if text is None else separate(text) for text in texts.replace(np.nan, None)
        ]
        made["text"] = pa.array([answer for answer, _ in pairs], pa.string()).dictionary_encode()
        made["reasoning"] = pa.array([thought for _, thought in pairs]).dictionary_encode()
    arrays = [made[name] if name in made else table[name] for name in columns]
    return pa.Table.from_arrays(arrays, names=list(columns))


def latest(tables: Sequence[pa.Table]) -> pa.Table:
    """Of a shard and its supplements one reply a trial: the latest, if any one did not fail."""
    if len(tables) == 1:
        return tables[0]
    # As plain texts, encoded anew: categories must not tell how often was asked.
    plain = [f.with_type(pa.string()) if f.type == TEXT else f for f in tables[0].schema]
    table = pa.concat_tables(tables).cast(pa.schema(plain)).combine_chunks()
    answered = pc.not_equal(table["finish_reason"], FAILED).to_numpy()
    trials = table["trial"].to_numpy()
    order = np.lexsort((answered, trials))  # stable: of equals the latest comes last
    last = np.append(np.diff(trials[order]) > 0, True)
    return table.take(order[last]).cast(tables[0].schema)


def replace(target: Path, content: bytes) -> None:
    """Write a temporary file, rename it, and sync both: whole or not at all, and there to stay.

    StoreError where the disk is full or does not allow it; the temporary file is removed.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        sync(target.parent)
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync(folder: Path) -> None:
    """See to it that what a folder lists is on the disk, where the disk knows this of folders."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:  # some network disks do not
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


def unwritable(path: Path, error: OSError) -> StoreError:
    """The sentence on a file that cannot be written."""
    remedy = _REMEDIES.get(error.errno, "look after that disk")
    return StoreError(
        f"{path} cannot be written: {error.strerror}; all shards that are there are whole and "
        f"stay, {remedy} and run again to go on behind them"
    )


def sealed_line(text: bytes, manifest: str) -> bytes:
    """A line that begins with a digest over a manifest's hash and the text."""
    return _digest(text, manifest) + b" " + text + b"\n"


def sealed_text(line: bytes, manifest: str) -> bytes | None:
    """The text of a sealed line; None where the line was torn or changed, or is another store's."""
    digest, _, text = line.removesuffix(b"\n").partition(b" ")
    return text if digest == _digest(text, manifest) else None


def _digest(text: bytes, manifest: str) -> bytes:
    return hashlib.sha256(manifest.encode() + text).hexdigest()[:16].encode()


class Journal:
    """The finished calls of one store, which is held alone meanwhile: ``kept``, by trial.

    The ``file`` is made at the first reply, and gone once every reply stands in a shard. A line is
    a digest over ``manifest`` (a hash) and what follows, then the trial with its reply as JSON; one
    that was torn or changed is passed over: its trial is asked again. A failed call is not kept,
    nor is a reply that was cut at fewer than ``max_tokens``.
    """

    def __init__(self, file: Path, manifest: str, max_tokens: int = 0):
        self.file = file
        self._manifest = manifest
        self._max_tokens = max_tokens
        self.kept: dict[int, Reply] = {}
        self._stream, self._synced = None, 0.0
        try:
            content = file.read_bytes() if file.exists() else b""
        except OSError as error:
            raise StoreError(f"{file} cannot be read: {error.strerror}; move it away") from error
        for line in content.split(b"\n"):
            text = sealed_text(line, manifest)
            if text is not None:
                values = json.loads(text)
                trial = values.pop("trial")
                limit = values.pop("max_tokens", max_tokens)
                if values["finish_reason"] == LENGTH and limit < max_tokens:
                    continue
                lists = {n: tuple(values.get(n, ())) for n in ("probabilities", "mass", "steps")}
                self.kept[trial] = Reply(**values | lists)

    def add(self, trial: int, reply: Reply) -> None:
        """Keep a reply, unless its call failed; a StoreError where the disk does not take it."""
        if reply.finish_reason == FAILED:
            return
        if self._stream is None:  # without what was torn
            replace(self.file, b"".join(map(self._line, self.kept, self.kept.values())))
        self.kept[trial] = reply
        try:
            self._stream = self._stream or self.file.open("ab")
            self._stream.write(self._line(trial, reply))
            self._stream.flush()
            if time.monotonic() - self._synced > SECONDS:
                os.fsync(self._stream.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise unwritable(self.file, error) from error

    def sync(self) -> None:
        """See to it that every reply is on the disk; a StoreError where the disk fails."""
        if self._stream is None:
            return
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise unwritable(self.file, error) from error

    def drop(self, trials: Iterable[int]) -> None:
        """Forget replies that stand in a shard now."""
        for trial in trials:
            self.kept.pop(trial, None)
        if not self.kept:
            if self._stream is not None:
                self._stream.close()
            self._stream = None
            self.file.unlink(missing_ok=True)

    def _line(self, trial: int, reply: Reply) -> bytes:
        limit = {"max_tokens": self._max_tokens}
        text = json.dumps({"trial": trial, **reply._asdict(), **limit}).encode()
        return sealed_line(text, self._manifest)
