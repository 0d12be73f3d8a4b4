"""The files of a store: shards of replies, and finished calls that no shard holds yet.

A shard is a Parquet file, which any reader of Parquet reads. It is checksummed, and bound to its
store and its name. The footer holds the hash of the store's manifest, the file's own name, and a
SHA-256 over all bytes. That SHA-256 is taken while 64 zeros stand in its own place. Parquet's page
checksums would not cover the pages' headers and the footer.
"""

import errno
import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ingroup.inference.engine import FAILED, LENGTH, Reply
from ingroup.inference.reasoning import split_reasoning
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

SECONDS_BETWEEN_SYNCS = 0.5  # a kill of the process costs nothing in between

_CHECKSUM = b"sha256:"
_BLANK = b"0" * 64
_REMEDIES = {
    errno.EACCES: "allow writing there",
    errno.EPERM: "allow writing there",
    errno.EROFS: "allow writing there",
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room in your quota",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
}


class StoreError(Sentence, RuntimeError):
    """Error of a store that cannot be used for this run. The message says why, and the remedy."""


def write_shard(
    path: Path, manifest: str, trials: Sequence[int], replies: Sequence[Reply], max_tokens: int = 0
) -> None:
    """Write replies to ascending trials as a file that is bound to a manifest's hash.

    Parameters
    ----------
    path : Path
        The file of the shard. It is bound to its name.
    manifest : str
        The hash of the store's manifest.
    trials : sequence of int
        Numbers of the trials, ascending.
    replies : sequence of Reply
        One reply per trial.
    max_tokens : int
        How many tokens a reply could have.

    Raises
    ------
    StoreError
        As :func:`replace_file`.
    """
    columns: dict[str, Sequence] = {}
    for name in Reply._fields:
        columns[name] = [getattr(reply, name) for reply in replies]
    columns["trial"] = trials
    columns["max_tokens"] = [max_tokens] * len(replies)

    table = pa.Table.from_pydict(columns, schema=SCHEMA)
    metadata = _binding(path, manifest) | {b"seal": _CHECKSUM + _BLANK}
    table = table.replace_schema_metadata(metadata)
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, compression="zstd")
    content = stream.getvalue().to_pybytes()
    # A reply may hold this word, too, but the footer stands behind all replies.
    assert content.rfind(_CHECKSUM) == content.rfind(_CHECKSUM + _BLANK) > 0, (
        "where it is looked for"
    )
    replace_file(path, _with_checksum(content))


def _binding(path: Path, manifest: str) -> dict[bytes, bytes]:
    """Return the entries of a shard's footer that bind it to its store and its name."""
    return {b"manifest": manifest.encode(), b"file": path.name.encode()}


def _with_checksum(content: bytes) -> bytes:
    """Return the same bytes with the right digest after the last `_CHECKSUM`."""
    begin = content.rfind(_CHECKSUM) + len(_CHECKSUM)
    end = begin + len(_BLANK)
    head = content[:begin]
    tail = content[end:]
    digest = hashlib.sha256(head + _BLANK + tail).hexdigest()
    return head + digest.encode() + tail


def read_shard(
    path: Path, manifest: str, trials: range, whole: bool, columns: Sequence[str]
) -> pa.Table | None:
    """Read some columns of a file.

    A file counts as damaged if any byte has changed (checked by flipping every single bit of a
    shard). It is also damaged if it is bound to another manifest or name, or if it lacks trials.

    Older files lack some columns. Without ``reasoning``, the text is split here
    (`ingroup.inference.reasoning`), and ``max_tokens`` is 0. Without ``price_share``, replies count
    at the whole price. Without ``steps``, replies have no steps.

    Parameters
    ----------
    path : Path
        The shard, or one of its supplements.
    manifest : str
        The hash of the store's manifest.
    trials : range
        The trials of the shard.
    whole : bool
        Whether the file has to hold all of them, or only some.
    columns : sequence of str
        Names of ``SCHEMA``, ``trial`` among them.

    Returns
    -------
    pyarrow.Table or None
        The columns as ``SCHEMA`` has them, None if the file is damaged.

    Raises
    ------
    StoreError
        The file cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error
    # A file without a checksum gets other bytes here as well, and counts as damaged.
    if content != _with_checksum(content):
        return None

    file = pq.ParquetFile(pa.BufferReader(content))
    table = _read_columns(file, columns)
    if not _has_trials(table["trial"].to_numpy(), trials, whole):
        return None
    metadata = file.schema_arrow.metadata
    # A shard that was renamed, or copied from another store, answers other trials.
    if not _binding(path, manifest).items() <= metadata.items():
        return None

    schema = pa.schema([SCHEMA.field(name) for name in columns])
    return table.cast(schema)


def _has_trials(stored: NDArray[np.int64], trials: range, whole: bool) -> bool:
    """Tell whether stored trials ascend and are all of a shard's (some, if not ``whole``)."""
    has_enough = len(stored) == len(trials) if whole else len(stored) > 0
    if not has_enough:
        return False
    are_inside = stored[0] in trials and stored[-1] in trials
    are_ascending = bool((np.diff(stored) > 0).all())
    # Ascending numbers, as many as the shard has and between its bounds, are all of its trials.
    return are_inside and are_ascending


def _read_columns(file: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """Read columns of a file.
    Columns that an older file lacks are made from defaults or its texts.
    """
    stored = file.schema_arrow.names
    table = file.read([name for name in columns if name in stored])
    length = len(table)

    made = {}
    if "price_share" not in stored:
        made["price_share"] = pa.array(np.ones(length, dtype=np.float32))
    if "steps" not in stored:
        made["steps"] = pa.array([[]] * length, SCHEMA.field("steps").type)
    if "reasoning" not in stored:
        zeros = pa.array(np.zeros(length, dtype=np.int32))
        made["reasoning_tokens"] = zeros
        made["max_tokens"] = zeros
        if "text" in columns or "reasoning" in columns:
            made |= _split_texts(file)

    arrays = [made[name] if name in made else table[name] for name in columns]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _split_texts(file: pq.ParquetFile) -> dict[str, pa.Array]:
    """Split the texts of a file that holds text and reasoning in one column."""
    answers = []
    thoughts = []
    # Texts are categories; as objects the missing ones become None.
    texts = file.read(["text"])["text"].to_pandas().astype(object)
    for text in texts.replace(np.nan, None):
        answer, thought = (None, "") if text is None else split_reasoning(text)
        answers.append(answer)
        thoughts.append(thought)
    return {
        "text": pa.array(answers, pa.string()).dictionary_encode(),
        "reasoning": pa.array(thoughts).dictionary_encode(),
    }


def latest_replies(tables: Sequence[pa.Table]) -> pa.Table:
    """Choose one reply to each trial of a shard and its supplements.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        The shard's rows, then the rows of its supplements in the order in which they were written.

    Returns
    -------
    pyarrow.Table
        One row for each trial: the latest that did not fail, else the latest that failed.
    """
    if len(tables) == 1:
        return tables[0]

    # Texts are encoded anew, so that the result does not show in how many files they stood.
    schema = tables[0].schema
    plain_fields = []
    for field in schema:
        is_text = field.type == TEXT
        plain_fields.append(field.with_type(pa.string()) if is_text else field)
    table = pa.concat_tables(tables).cast(pa.schema(plain_fields)).combine_chunks()

    is_answered = pc.not_equal(table["finish_reason"], FAILED).to_numpy()
    trials = table["trial"].to_numpy()
    # lexsort sorts by its last key first: by trial, then by whether it is answered. The sort is
    # stable, so the latest comes last, and it is the row before the next trial begins.
    order = np.lexsort((is_answered, trials))
    trial_changes = np.diff(trials[order]) > 0
    is_last = np.append(trial_changes, True)
    return table.take(order[is_last]).cast(schema)


def replace_file(target: Path, content: bytes) -> None:
    """Write a file whole or not at all, so that a crash of the machine does not undo it.

    A temporary file is written and renamed, and the file and its folder are synced.

    Parameters
    ----------
    target : Path
        The file, which may exist.
    content : bytes
        The content that the file is to hold.

    Raises
    ------
    StoreError
        Where the disk is full or does not allow it. The temporary file is removed.
    """
    # The process's number keeps two runs from writing to one temporary file.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            # Without this the new name may be on the disk before the content is.
            os.fsync(stream.fileno())
        os.replace(temporary, target)
        sync_folder(target.parent)
    except OSError as error:
        raise unwritable_error(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Sync the list of a folder's files to the disk, if the disk can do so.

    Parameters
    ----------
    folder : Path
        A folder in which files were made, renamed or removed.

    Raises
    ------
    OSError
        Where the disk fails. A disk that cannot sync folders, as some network disks, is passed
        over.
    """
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:  # some network disks do not
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


def unwritable_error(path: Path, error: OSError) -> StoreError:
    """Make the error that says that a file cannot be written, why, and how to go on.

    Parameters
    ----------
    path : Path
        The file that was to be written.
    error : OSError
        Why it could not be written.

    Returns
    -------
    StoreError
        The error, to be raised.
    """
    remedy = _REMEDIES.get(error.errno or 0, "check that disk")
    return StoreError(
        f"{path} cannot be written: {error.strerror}; {remedy} and run again, which keeps all "
        "stored answers and asks the rest"
    )


def checksummed_line(text: bytes, manifest: str) -> bytes:
    """Make a line that begins with a digest over a manifest's hash and the text.

    Parameters
    ----------
    text : bytes
        One line of JSON, without its end.
    manifest : str
        The hash of the store's manifest.

    Returns
    -------
    bytes
        The digest, a space, the text and a newline.
    """
    return _digest(text, manifest) + b" " + text + b"\n"


def checksummed_text(line: bytes, manifest: str) -> bytes | None:
    """Read the text of a checksummed line.

    Parameters
    ----------
    line : bytes
        The line, with or without its end.
    manifest : str
        The hash of the store's manifest.

    Returns
    -------
    bytes or None
        The text, None where the line was torn or changed, or is another store's.
    """
    digest, _, text = line.removesuffix(b"\n").partition(b" ")
    return text if digest == _digest(text, manifest) else None


def _digest(text: bytes, manifest: str) -> bytes:
    """Compute 16 hexadecimal digits of the SHA-256 over a manifest's hash and a text."""
    digest = hashlib.sha256(manifest.encode() + text).hexdigest()
    return digest[:16].encode()


class Journal:
    """The finished calls of one store that no shard holds yet.

    The store is held alone meanwhile. The file is made at the first reply, and is removed once
    every reply is in a shard. A line is a digest over the manifest's hash and the rest of the line,
    then the trial with its reply as JSON. A line that was torn or changed is skipped, so that its
    trial is asked again.

    Parameters
    ----------
    file : Path
        Where the journal is, or will be.
    manifest : str
        The hash of the store's manifest.
    max_tokens : int
        How many tokens a reply may have now.

    Attributes
    ----------
    kept : dict of Reply
        The replies by their trials. Failed calls are not kept, nor are replies that were cut at
        fewer than ``max_tokens``.

    Raises
    ------
    StoreError
        The file cannot be read.
    """

    def __init__(self, file: Path, manifest: str, max_tokens: int = 0):
        self.file = file
        self._manifest = manifest
        self._max_tokens = max_tokens
        self.kept: dict[int, Reply] = {}
        self._stream: BinaryIO | None = None
        self._synced = 0.0
        try:
            content = file.read_bytes() if file.exists() else b""
        except OSError as error:
            raise StoreError(f"{file} cannot be read: {error.strerror}; move it away") from error

        # A kill may leave half a line at the end, whose digest does not fit.
        for line in content.split(b"\n"):
            text = checksummed_text(line, manifest)
            if text is not None:
                self._take(json.loads(text))

    def _take(self, values: dict[str, Any]) -> None:
        """Keep the reply of one line, unless it was cut at a lower limit than the present limit."""
        trial = values.pop("trial")
        limit = values.pop("max_tokens", self._max_tokens)
        if values["finish_reason"] == LENGTH and limit < self._max_tokens:
            return

        for name in ("probabilities", "mass", "steps"):
            values[name] = tuple(values.get(name, ()))
        self.kept[trial] = Reply(**values)

    def add(self, trial: int, reply: Reply) -> None:
        """Keep a reply, unless its call failed.

        Parameters
        ----------
        trial : int
            The trial's number.
        reply : Reply
            The reply to the trial.

        Raises
        ------
        StoreError
            Where the disk does not take it.
        """
        if reply.finish_reason == FAILED:
            return
        # The first reply of a run rewrites the file without the lines that were torn.
        if self._stream is None:
            lines = map(self._line, self.kept, self.kept.values())
            replace_file(self.file, b"".join(lines))

        self.kept[trial] = reply
        try:
            self._stream = self._stream or self.file.open("ab")
            self._stream.write(self._line(trial, reply))
            self._stream.flush()
            # A sync can take longer than a call; a crash of the machine costs half a second of
            # replies.
            if time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS:
                os.fsync(self._stream.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise unwritable_error(self.file, error) from error

    def sync(self) -> None:
        """Sync every reply to the disk. Raise a StoreError if the disk fails."""
        if self._stream is None:
            return
        try:
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise unwritable_error(self.file, error) from error

    def drop(self, trials: Iterable[int]) -> None:
        """Forget replies that are in a shard now.

        Parameters
        ----------
        trials : iterable of int
            The trials of the replies, by number.
        """
        for trial in trials:
            self.kept.pop(trial, None)
        if self.kept:
            return

        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self.file.unlink(missing_ok=True)

    def _line(self, trial: int, reply: Reply) -> bytes:
        """Write a reply as one checksummed line of the file."""
        values = {"trial": trial, **reply._asdict(), "max_tokens": self._max_tokens}
        return checksummed_line(json.dumps(values).encode(), self._manifest)
