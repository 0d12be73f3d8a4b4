"""Finished calls that no shard holds yet, a line each, so that a killed run costs none of them.

A line is a digest over the manifest's hash and what follows, then the trial with its reply as JSON.
A line that was torn or changed is passed over, and its trial is asked again.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from ingroup.inference import shards
from ingroup.inference.engine import FAILED, Reply

SECONDS = 0.5  # from one sync to the next; a kill of the process costs nothing in between


class Journal:
    """The finished calls of one store, which is held alone meanwhile: ``kept``, by trial.

    The ``file`` is made at the first reply, and gone once every reply stands in a shard;
    ``manifest`` is the hash of the store's. A failed call is not kept.
    """

    def __init__(self, file: Path, manifest: str):
        self.file, self._manifest = file, manifest.encode()
        self.kept: dict[int, Reply] = {}
        self._stream, self._synced = None, 0.0
        for line in file.read_bytes().split(b"\n") if file.exists() else ():
            digest, _, text = line.partition(b" ")
            if digest == self._digest(text):
                values = json.loads(text)
                trial = values.pop("trial")
                lists = {name: tuple(values[name]) for name in ("probabilities", "mass")}
                self.kept[trial] = Reply(**values | lists)

    def add(self, trial: int, reply: Reply) -> None:
        """Keep a reply, unless its call failed; a StoreError where the disk does not take it."""
        if reply.finish_reason == FAILED:
            return
        if self._stream is None:  # without what was torn
            shards.replace(self.file, b"".join(map(self._line, self.kept, self.kept.values())))
        self.kept[trial] = reply
        try:
            self._stream = self._stream or self.file.open("ab")
            self._stream.write(self._line(trial, reply))
            self._stream.flush()
            if time.monotonic() - self._synced > SECONDS:
                os.fsync(self._stream.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise shards.unwritable(self.file, error) from error

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
        text = json.dumps({"trial": trial, **reply._asdict()}).encode()
        return self._digest(text) + b" " + text + b"\n"

    def _digest(self, text: bytes) -> bytes:
        return hashlib.sha256(self._manifest + text).hexdigest()[:16].encode()
