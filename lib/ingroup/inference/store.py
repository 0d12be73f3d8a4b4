"""Responses on disk: shards that are written once, and a manifest that says what they answer.

A shard is written to a temporary name and renamed, so a file that has its name is whole. A run
that was killed at any moment goes on with the shards that are missing; what is there is never
written again. What a later run got from trials that had failed stands in a file of its own
beside the shard (``part-00003.again-1.parquet``, then ``again-2``), and the latest file wins,
trial by trial. One run at a time writes to a store, or several that have a share each.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ingroup.inference import lock, shards
from ingroup.inference.engine import FAILED, Reply
from ingroup.inference.shards import SCHEMA, DamagedError, StoreError
from ingroup.inference.share import WHOLE, Share

FORMAT = 2  # what the shards look like
_ROOM = 2**16  # bytes that must be free before anything is asked
_AGAIN = re.compile(r"part-(\d{5,})\.again-(\d+)\.parquet")
_HALF_WRITTEN = re.compile(r"\.part-(\d{5,})\..*\.tmp")


class State(NamedTuple):
    """What a store lacks.

    Attributes
    ----------
    missing : list of int
        Shards that were not asked, or are damaged.
    failed : list of int
        Trials of the other shards whose call failed, and failed again if it was asked again.
    damaged : list of pathlib.Path
        Files that do not hold what was written.
    """

    missing: list[int]
    failed: list[int]
    damaged: list[Path]


def read_manifest(file: Path) -> dict[str, Any]:
    """What a store's ``manifest.json`` says.

    Raises
    ------
    StoreError
        Where it is no JSON object.
    """
    try:
        return dict(json.loads(file.read_text("utf8")))
    except (ValueError, TypeError) as error:
        raise StoreError(f"{file} is not readable as JSON; move its folder away") from error


class Store:
    """The responses of one model to one setting of one study.

    Parameters
    ----------
    folder : pathlib.Path
        From :func:`ingroup.inference.generation.response_folder`; made if missing.
    manifest : mapping
        Everything that can change a response, and ``trials`` and ``shard_size``.
    share : Share
        The shards that this run asks and writes; others may write theirs at the same time.

    Raises
    ------
    StoreError
        Where the folder already holds answers to something else, or shards of another format.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], share: Share = WHOLE):
        self.folder, self.manifest = folder, {**manifest, "format": FORMAT}
        self.trials, self.shard_size = manifest["trials"], manifest["shard_size"]
        self.share, self.own = share, share.shards(self.shards)
        file = folder / "manifest.json"
        text = (json.dumps(self.manifest, indent=1, sort_keys=True) + "\n").encode()
        if not self._is_begun(file, text):
            self._begin(file, text)
        self._check(file)

    def _holds_answers(self) -> bool:
        return any(self.folder.glob("part-*"))

    def _is_begun(self, file: Path, text: bytes) -> bool:
        return file.exists() and (self._holds_answers() or file.read_bytes() == text)

    def _begin(self, file: Path, text: bytes) -> None:
        """Write the manifest; one that no answer follows yet is replaced."""
        with lock.manifest(self.folder):
            if self._is_begun(file, text):  # another run, or another share of this, was quicker
                return
            with lock.alone(self.folder):
                if self._holds_answers():
                    if file.exists():  # a run that began with another manifest was quicker
                        return
                    raise StoreError(
                        f"{self.folder} holds shards but no manifest.json; move it away"
                    )
                shards.replace(file, text)

    def _check(self, file: Path) -> None:
        there = read_manifest(file)
        for name in sorted(there.keys() | self.manifest.keys()):
            old, new = there.get(name), self.manifest.get(name)
            if old != new and name == "prompts":
                raise StoreError(
                    f"{self.folder} holds answers to other prompts than this run has: an identity, "
                    "a text, an event or a template has changed since; nothing was changed: put it "
                    f"back, or move the folder away (mv {self.folder} {self.folder}.before) and "
                    "run again to ask anew"
                )
            if old != new:
                raise StoreError(
                    f"{self.folder} holds answers with {name} {old!r}, this run asks with {name} "
                    f"{new!r}; nothing was changed: move that folder away or set it back"
                )

    @contextmanager
    def writing(self) -> Iterator[State]:
        """Hold the store alone, or its own share of it, clear that up, and see what it lacks.

        What killed runs left half written is removed; a damaged file is moved aside as
        ``*.damaged``, so that its trials are asked again. A share leaves the others' files alone.

        Raises
        ------
        StoreError
            At once where another run is writing to any of these shards, or the disk takes no
            files.
        """
        with lock.alone(self.folder, self.own if self.share.of > 1 else None):
            self._check(self.folder / "manifest.json")  # another run may have begun meanwhile
            state = self.state()
            try:
                for leftover in self.folder.glob(".*.tmp"):
                    part = _HALF_WRITTEN.fullmatch(leftover.name)
                    if self.share.of == 1 or (part and int(part[1]) in self.own):
                        leftover.unlink()
                for path in state.damaged:
                    os.replace(path, path.with_name(f"{path.name}.damaged"))
                with TemporaryFile(dir=self.folder, prefix=".", suffix=".tmp") as probe:
                    probe.write(bytes(_ROOM))
            except OSError as error:
                raise shards.unwritable(self.folder, error) from error
            yield state

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

    def _supplements(self) -> dict[int, dict[int, Path]]:
        """Shard to number to file; numbers ascend."""
        names = [(_AGAIN.fullmatch(path.name), path) for path in self.folder.iterdir()]
        found: dict[int, dict[int, Path]] = {}
        for shard, number, path in sorted((int(n[1]), int(n[2]), path) for n, path in names if n):
            found.setdefault(shard, {})[number] = path
        return found

    def state(self) -> State:
        """What this store lacks in its own share; reads every file of it and changes none."""
        state, supplements = State([], [], []), self._supplements()
        for shard in self.own:
            again = supplements.get(shard, {}).values()
            table, damaged = self._load(shard, again, ["trial", "finish_reason"])
            state.damaged.extend(damaged)
            if table is None:
                state.missing.append(shard)
            else:
                failed = pc.equal(table["finish_reason"], FAILED)
                state.failed.extend(table["trial"].filter(failed).to_pylist())
        return state

    def missing(self) -> list[int]:
        """Shards still to be asked, as :meth:`state` has them."""
        return self.state().missing

    def elsewhere(self) -> int:
        """How many shards of the other shares are not there yet."""
        there = {path.name for path in self.folder.glob("part-*.parquet")}
        others = (shard for shard in range(self.shards) if shard not in self.own)
        return sum(self.path(shard).name not in there for shard in others)

    def _load(
        self, shard: int, again: Iterable[Path], columns: Sequence[str]
    ) -> tuple[pa.Table | None, list[Path]]:
        """Replies to the trials of one shard, in their order, and the files that are damaged.

        There are no replies where the shard itself is missing or damaged.
        """
        trials = range(*self.bounds(shard))
        if not self.path(shard).exists():
            return None, []
        tables, damaged = [], []
        for path in [self.path(shard), *again]:
            try:
                tables.append(shards.read(path, trials, columns))
            except DamagedError:
                damaged.append(path)
        if self.path(shard) in damaged:
            return None, damaged
        return shards.latest(tables, trials.start) if len(tables) > 1 else tables[0], damaged

    def write(self, shard: int, replies: Sequence[Reply]) -> None:
        """Write one shard, whole or not at all.

        Raises
        ------
        StoreError
            Where the number of replies is not the shard's, the shard is there already, or the
            disk does not take it.
        """
        trials = range(*self.bounds(shard))
        if len(replies) != len(trials):
            raise StoreError(f"shard {shard} takes {len(trials)} replies, found {len(replies)}")
        if self.path(shard).exists():
            raise StoreError(f"{self.path(shard)} is there already; answers are never overwritten")
        shards.write(self.path(shard), trials, replies)

    def batches(self, trials: Iterable[int]) -> Iterator[list[int]]:
        """Ascending trials in lists of up to ``shard_size``, those of one shard in one list."""
        batch: list[int] = []
        for _, group in groupby(trials, key=lambda trial: trial // self.shard_size):
            same = list(group)
            if len(batch) + len(same) > self.shard_size:
                yield batch
                batch = []
            batch += same
        if batch:
            yield batch

    def write_again(self, trials: Sequence[int], replies: Sequence[Reply]) -> None:
        """Write what trials that had failed were answered when they were asked again.

        Each of their shards gets one more supplement, unless all of its trials failed again.

        Parameters
        ----------
        trials : sequence of int
            One of :meth:`batches`.
        replies : sequence of Reply
            One a trial.

        Raises
        ------
        StoreError
            Where the disk does not take them.
        """
        supplements = self._supplements()
        pairs = zip(trials, replies, strict=True)
        for shard, group in groupby(pairs, key=lambda pair: pair[0] // self.shard_size):
            asked, answers = zip(*group, strict=True)
            if all(reply.finish_reason == FAILED for reply in answers):
                continue
            number = 1 + max(supplements.get(shard, {}), default=0)
            name = f"{self.path(shard).stem}.again-{number}.parquet"
            shards.write(self.folder / name, asked, answers)

    def read(
        self, start: int = 0, stop: int | None = None, columns: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Responses to trials ``start`` to ``stop``, ordered; ``trial`` counts from ``start``.

        Parameters
        ----------
        start, stop : int
            First trial, and the one behind the last; all unless given.
        columns : sequence of str
            Which of ``SCHEMA`` to read beside ``trial`` and ``finish_reason``; all unless given.

        Returns
        -------
        pandas.DataFrame
            Columns of ``SCHEMA`` in its order; ``text``, ``finish_reason`` and ``error`` are
            categories, ``text`` is missing where a call failed. ``top_logprobs`` is there only
            where the sampling asked for it, and stays an Arrow column.

        Raises
        ------
        StoreError
            Where a shard of this range is missing or damaged.
        """
        stop = self.trials if stop is None else stop
        needed = {"trial", "finish_reason", *columns} if columns else set(SCHEMA.names)
        if "sampling_logprobs" not in self.manifest:
            needed.discard("top_logprobs")
        read = [name for name in SCHEMA.names if name in needed]
        wanted = range(start // self.shard_size, -(-stop // self.shard_size))
        tables, supplements = [], self._supplements()
        for shard in wanted:
            table, damaged = self._load(shard, supplements.get(shard, {}).values(), read)
            if damaged:
                raise StoreError(f"{damaged[0]} is damaged; run the generation again")
            if table is None:
                raise StoreError(f"{self.path(shard)} is missing; run the generation again")
            tables.append(table)
        table = pa.concat_tables(tables).unify_dictionaries()
        table = table.slice(start - wanted.start * self.shard_size, stop - start)
        kept = {field.type: pd.ArrowDtype(field.type) for field in SCHEMA if field.type.num_fields}
        frame = table.to_pandas(types_mapper=kept.get)
        frame["trial"] -= start
        return frame
