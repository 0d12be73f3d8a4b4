"""Responses on disk, in shards that are written once.

A manifest names the prompts, the sampling and the engine of the responses. By the manifest,
`ingroup.inference.job._is_answered` tells whether stored answers may be reused.

After a kill at any moment the next run goes on with the missing shards. A shard that exists is
whole, and is never written again. A later run's replies to trials that had failed stand in a
supplement beside the shard (``part-00003.again-1.parquet``, then ``again-2``). If a trial has
several replies, the latest that did not fail counts. One run at a time writes to a store.
"""

import hashlib
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
from filelock import FileLock, Timeout

from ingroup.inference import shards
from ingroup.inference.choices import are_valid_scores
from ingroup.inference.engine import FAILED, LENGTH, Reply
from ingroup.inference.ledger import Ledger
from ingroup.inference.shards import SCHEMA, Journal, StoreError

JOURNAL = "journal.jsonl"
BATCHES = "batches.json"
SPELLING = "spelling"  # of the choices, in the manifest of a store whose replies have steps
FORMAT = 5  # what the files look like
SHARDS_PER_PART = 16  # of a table that is read in parts: a few megabytes

_BYTES_NEEDED = 2**16  # bytes that must be free before anything is asked
_NAME = re.compile(r"part-(\d{5}|[1-9]\d{5,})(?:\.again-(\d+))?\.parquet")
# Columns of lists stay Arrow's in pandas.
_LISTS = {field.type: pd.ArrowDtype(field.type) for field in SCHEMA if field.type.num_fields}


def read_manifest(file: Path) -> dict[str, Any]:
    """Read a store's ``manifest.json``.

    Parameters
    ----------
    file : Path
        A ``manifest.json``.

    Returns
    -------
    dict
        Everything that can change a response, ``trials`` and ``shard_size``.

    Raises
    ------
    StoreError
        Where the file cannot be read, is not a JSON object, or lacks the number of trials or the
        size of a shard.
    """
    try:
        manifest = dict(json.loads(file.read_text("utf8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"{file} cannot be read as JSON; move its folder away") from error

    for name in ("trials", "shard_size"):
        value = manifest.get(name)
        if type(value) is not int or value < 1:
            found = f"found {name} {value!r}, expected a whole number from 1"
            raise StoreError(f"{file}: {found}; move its folder away")
    return manifest


def check_chats(folder: Path, stored: str, rendered: str) -> None:
    """Raise a StoreError if stored answers are to other chats than are rendered now.

    Parameters
    ----------
    folder : Path
        The folder of the store, for the message.
    stored : str
        The `Design.chats_digest` in its manifest, "" for a store from before there was one.
    rendered : str
        The digest of the design as it is now, "" where it is not known.

    Raises
    ------
    StoreError
        Where both are known and differ.
    """
    if stored and rendered and stored != rendered:
        raise StoreError(
            f"{folder} holds answers to other chats than this run renders: the code that renders "
            "prompts has changed since; nothing was changed: put it back, or move the folder away "
            "and run again to ask anew"
        )


class State(NamedTuple):
    """Gaps of a store: missing shards, trials to be asked again, and damaged files."""

    missing: list[int]  # shards that were not asked, or are damaged
    failed: list[int]  # trials whose call failed
    cut: list[int]  # trials whose reply was cut at fewer tokens than it may have now
    damaged: list[Path]  # files that do not hold what was written


class Store:
    """The responses of one model to one design. Files are written inside `writing` alone.

    Parameters
    ----------
    folder : Path
        Where the files are, or will be.
    manifest : mapping
        Everything that can change a response, and ``trials`` and ``shard_size``. A manifest with
        more ``sampling_max_tokens`` than the folder's counts as the same. Only replies that were
        cut can differ then, and they are asked again.
    max_tokens : int
        How many tokens a reply may have now, the manifest's unless given. The manifest of scored
        answers holds none.

    Raises
    ------
    StoreError
        The folder holds answers to something else, or shards of another format.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], max_tokens: int = 0):
        self.folder = folder
        self.manifest = {**manifest, "format": FORMAT}
        self.max_tokens = max_tokens or manifest.get("sampling_max_tokens") or 0
        self.trials = manifest["trials"]
        self.shard_size = manifest["shard_size"]
        self._adopt_manifest()

    def _adopt_manifest(self) -> bool:
        """Take over the manifest of stored answers. Return False if there are no answers.

        Raise a StoreError if the manifests differ so that answers could change.
        """
        if not any(self.folder.glob("part-*")) and not self.has_unwritten:
            return False
        file = self.folder / "manifest.json"
        if not file.exists():
            raise StoreError(f"{self.folder} holds shards but no manifest.json; move it away")

        stored = read_manifest(file)
        for name in sorted(stored.keys() | self.manifest.keys()):
            self._check_same(name, stored.get(name), self.manifest.get(name))
        # Compared last: where the prompts' texts differ too, the error names these.
        rendered = self.manifest.get("chats", "")
        check_chats(self.folder, stored.get("chats", ""), rendered)

        # The stored form is kept (0 or 0.0), as shards are bound to its hash.
        self.manifest = stored
        return True

    def _check_same(self, name: str, stored: Any, new: Any) -> None:
        """Raise a StoreError if a value of the manifest differs so that answers could change."""
        # Older stores have no chats in their manifest; `check_chats` allows for that.
        if stored == new or name == "chats":
            return
        # More tokens change only replies that were cut, and `state` lists these to be asked again.
        if name == "sampling_max_tokens" and stored and new and stored < new:
            return

        if name == "prompts":
            raise StoreError(
                f"{self.folder} holds answers to other prompts than this run has: an identity, "
                "a text, an event or a template has changed since; nothing was changed: put it "
                f"back, or move the folder away (mv {self.folder} {self.folder}.before) and "
                "run again to ask anew"
            )
        raise StoreError(
            f"{self.folder} holds answers with {name} {stored!r}, this run asks with {name} "
            f"{new!r}; nothing was changed: move that folder away or set it back"
        )

    @property
    def _text(self) -> bytes:
        """Write the content of ``manifest.json``."""
        return (json.dumps(self.manifest, indent=1, sort_keys=True) + "\n").encode()

    @property
    def _hash(self) -> str:
        return hashlib.sha256(self._text).hexdigest()

    @contextmanager
    def writing(self) -> Iterator[State]:
        """Hold the store alone, write its manifest, clear it up, and find its gaps.

        Files that killed runs left half written are removed. A damaged file is moved aside as
        ``*.damaged``, so that its trials are asked again.

        Yields
        ------
        State
            The missing shards and trials.

        Raises
        ------
        StoreError
            At once, where another run or thread is writing to the store, the folder's manifest is
            another by now, or the disk takes no files.
        """
        try:
            folders = (self.folder, *self.folder.parents)
            new_folders = [folder for folder in folders if not folder.exists()]
            self.folder.mkdir(parents=True, exist_ok=True)
            # A new folder lasts only once the folder above it is synced.
            for folder in new_folders:
                shards.sync_folder(folder.parent)
            lock = FileLock(self.folder / ".lock", blocking=False).acquire()
        except Timeout as error:
            raise StoreError(
                f"another run is writing to {self.folder}; wait for it or stop it"
            ) from error
        except OSError as error:
            raise shards.unwritable_error(self.folder, error) from error

        with lock:
            # Another run may have made this store since it was opened. A manifest that no answer
            # follows is replaced.
            if not self._adopt_manifest():
                shards.replace_file(self.folder / "manifest.json", self._text)
            state = self.state()
            try:
                for leftover in self.folder.glob(".*.tmp"):
                    leftover.unlink()
                for path in state.damaged:
                    os.replace(path, path.with_name(f"{path.name}.damaged"))
                # A full disk is found out here, before anything is asked and paid.
                with TemporaryFile(dir=self.folder, prefix=".", suffix=".tmp") as probe:
                    probe.write(bytes(_BYTES_NEEDED))
            except OSError as error:
                raise shards.unwritable_error(self.folder, error) from error
            yield state

    @property
    def has_unwritten(self) -> bool:
        """Tell whether there are finished calls or batches whose replies are in no shard yet.

        Returns
        -------
        bool
            True where the journal or the ledger of batches is not empty.
        """
        for name in (JOURNAL, BATCHES):
            file = self.folder / name
            if file.exists() and file.stat().st_size > 0:
                return True
        return False

    def journal(self) -> Journal:
        """Open the journal of finished calls that no shard holds yet, inside `writing`.

        Returns
        -------
        Journal
            The journal. Its file may not exist yet.

        Raises
        ------
        StoreError
            Its file cannot be read.
        """
        return Journal(self.folder / JOURNAL, self._hash, self.max_tokens)

    def ledger(self) -> Ledger:
        """Open the ledger of batches whose replies were not read yet, inside `writing`.

        Returns
        -------
        Ledger
            The ledger. Its file may not exist yet.

        Raises
        ------
        StoreError
            Its file is damaged, or cannot be read.
        """
        return Ledger(self.folder / BATCHES, self._hash)

    @property
    def n_shards(self) -> int:
        """Count the shards of the whole design.

        Returns
        -------
        int
            The number of shards, whether or not they are stored.
        """
        # The division rounds up, as the last shard may be short.
        return -(-self.trials // self.shard_size)

    @property
    def is_complete(self) -> bool:
        """Tell whether all shards are stored.

        Returns
        -------
        bool
            False as well where a shard is damaged and was moved aside.
        """
        return len(self.files()) == self.n_shards

    def bounds(self, shard: int) -> tuple[int, int]:
        """Return the number of a shard's first trial, and the number after its last trial.

        Parameters
        ----------
        shard : int
            The shard's number, from 0.

        Returns
        -------
        tuple of int
            The two numbers, as ``range`` takes them.
        """
        start = shard * self.shard_size
        return start, min(start + self.shard_size, self.trials)

    def path(self, shard: int) -> Path:
        """Return the file of a shard.

        Parameters
        ----------
        shard : int
            The shard's number, from 0.

        Returns
        -------
        Path
            The file, whether or not it exists.
        """
        return self.folder / f"part-{shard:05d}.parquet"

    def files(self) -> dict[int, list[Path]]:
        """List the files of each stored shard: first the shard, then its supplements in order.

        Supplements without their shard, and files beyond the design, are left out.

        Returns
        -------
        dict of list of Path
            By the shard's number, ascending.
        """
        names = os.listdir(self.folder) if self.folder.is_dir() else []
        parts = []
        for name in names:
            match = _NAME.fullmatch(name)
            if match:
                shard = int(match[1])
                again = int(match[2] or 0)
                parts.append((shard, again, name))

        files: dict[int, list[Path]] = {}
        # The shard itself has number 0, so it comes before its supplements.
        for shard, again, name in sorted(parts):
            if shard in files or (again == 0 and shard < self.n_shards):
                files.setdefault(shard, []).append(self.folder / name)
        return files

    def tables(
        self, numbers: Iterable[int], columns: Sequence[str]
    ) -> Iterator[tuple[int, pa.Table | None, list[Path]]]:
        """Read shards one by one.

        Parameters
        ----------
        numbers : iterable of int
            The shards.
        columns : sequence of str
            Names of ``SCHEMA``, with ``trial`` and ``finish_reason`` among them.

        Yields
        ------
        int
            The shard.
        pyarrow.Table or None
            Its replies in the order of its trials, None where the shard itself is missing or
            damaged.
        list of Path
            The shard's damaged files.
        """
        files = self.files()
        for shard in numbers:
            trials = range(*self.bounds(shard))
            tables = []
            damaged = []
            for path in files.get(shard, ()):
                whole = path == self.path(shard)
                table = shards.read_shard(path, self._hash, trials, whole, columns)
                if table is None:
                    damaged.append(path)
                else:
                    tables.append(table)

            # Supplements alone are no shard: they hold only trials that failed or were cut.
            is_lacking = not tables or self.path(shard) in damaged
            yield shard, None if is_lacking else shards.latest_replies(tables), damaged

    def state(self) -> State:
        """Find the gaps of this store. Every file is read, and none is changed.

        Returns
        -------
        State
            Missing shards, failed and cut trials, damaged files.
        """
        state = State([], [], [], [])
        first_limit = self.manifest.get("sampling_max_tokens") or 0
        columns = ["trial", "finish_reason", "max_tokens"]
        for shard, table, files in self.tables(range(self.n_shards), columns):
            state.damaged.extend(files)
            if table is None:
                state.missing.append(shard)
                continue

            trials = table["trial"]
            endings = table["finish_reason"]
            failed = pc.equal(endings, FAILED)
            state.failed.extend(trials.filter(failed).to_pylist())

            # A shard from before the column was there has the limit of the manifest.
            limits = pc.max_element_wise(table["max_tokens"], first_limit)
            had_fewer_tokens = pc.less(limits, self.max_tokens)
            cut = pc.and_(pc.equal(endings, LENGTH), had_fewer_tokens)
            state.cut.extend(trials.filter(cut).to_pylist())
        return state

    def write(self, shard: int, replies: Sequence[Reply]) -> None:
        """Write one shard, whole or not at all, inside `writing`.

        Parameters
        ----------
        shard : int
            The shard's number, from 0.
        replies : sequence of Reply
            One reply per trial of the shard.

        Raises
        ------
        StoreError
            The replies are not as many as the shard's trials, the shard exists already, or the disk
            does not take it.
        """
        path = self.path(shard)
        trials = range(*self.bounds(shard))
        if len(replies) != len(trials):
            expected = f"expected {len(trials)}, one per trial of shard {shard}"
            raise StoreError(f"found {len(replies)} replies for {path}, {expected}")
        if path.exists():
            raise StoreError(f"{path} is there already; answers are never overwritten")
        shards.write_shard(path, self._hash, trials, replies, self.max_tokens)

    def write_supplements(self, trials: Sequence[int], replies: Sequence[Reply]) -> None:
        """Write replies to ascending trials that had failed or were cut, and were asked again.

        Each of their shards gets one more supplement, unless all of its trials failed.

        Parameters
        ----------
        trials : sequence of int
            Numbers of the trials, ascending. Their shards are stored.
        replies : sequence of Reply
            One reply per trial.

        Raises
        ------
        StoreError
            The disk does not take a file.
        """
        files = self.files()
        pairs = zip(trials, replies, strict=True)
        for shard, group in groupby(pairs, key=lambda pair: pair[0] // self.shard_size):
            trials_of_shard, answers = zip(*group, strict=True)
            if all(reply.finish_reason == FAILED for reply in answers):
                continue

            last_file = files[shard][-1]
            match = _NAME.fullmatch(last_file.name)
            assert match is not None  # as `files` chooses them
            number = 1 + int(match[2] or 0)
            file = self.folder / f"{self.path(shard).stem}.again-{number}.parquet"
            shards.write_shard(file, self._hash, trials_of_shard, answers, self.max_tokens)

    def read(
        self, start: int = 0, stop: int | None = None, columns: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Read responses to trials.

        Parameters
        ----------
        start, stop : int
            The first trial, and the trial after the last. All trials are read unless given.
        columns : sequence of str
            Names of ``SCHEMA`` beside ``trial`` and ``finish_reason``. Without names all columns
            are read.

        Returns
        -------
        DataFrame
            One row for each trial, ordered. ``trial`` counts from ``start``. Texts are categories,
            and ``text`` is missing where a call failed. ``probabilities`` and ``mass`` are Arrow
            columns, only where the sampling has choices; so is ``steps``, where they were stored.

        Raises
        ------
        StoreError
            A shard of this range is missing or damaged, or a scored answer cannot be right (see
            :func:`ingroup.inference.choices.are_valid_scores`).
        """
        if stop is None:
            stop = self.trials
        first_shard = start // self.shard_size
        end_shard = -(-stop // self.shard_size)

        tables = []
        names = self._columns_to_read(columns)
        for shard, table, damaged in self.tables(range(first_shard, end_shard), names):
            if damaged:
                raise StoreError(f"{damaged[0]} is damaged; run the generation again")
            if table is None:
                raise StoreError(f"{self.path(shard)} is missing; run the generation again")
            self._check_scores(shard, table)
            tables.append(table)

        # Each shard has its own dictionary of texts, and a category column needs one for all.
        table = pa.concat_tables(tables).unify_dictionaries()
        # Shards are read whole, so the first and the last may reach beyond the range.
        table = table.slice(start - first_shard * self.shard_size, stop - start)
        frame = table.to_pandas(types_mapper=_LISTS.get)
        frame["trial"] -= start
        return frame

    def _columns_to_read(self, columns: Sequence[str]) -> list[str]:
        """List the columns to read, in the order of ``SCHEMA``.
        Columns that the store lacks are left out.
        """
        names = {"trial", "finish_reason", *columns} if columns else set(SCHEMA.names)
        if "sampling_choices" not in self.manifest:
            names -= {"probabilities", "mass"}
        if SPELLING not in self.manifest:
            names -= {"steps"}
        return [name for name in SCHEMA.names if name in names]

    def _check_scores(self, shard: int, table: pa.Table) -> None:
        """Raise a StoreError if stored probabilities or option masses cannot be right."""
        choices = len(self.manifest.get("sampling_choices", ()))
        leads = len(self.manifest.get("sampling_leads", [""]))
        for name, width in {"probabilities": choices, "mass": 1}.items():
            if name in table.column_names and not are_valid_scores(table[name], leads, width):
                raise StoreError(
                    f"{self.path(shard)} holds scored answers whose {name} are not from 0 to 1, do "
                    "not sum to 1 or are not as many as were asked; move it away and run again"
                )


def parts(store: Store, columns: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
    """Read a store in parts, so that no large table is held.

    A part has `SHARDS_PER_PART` shards. ``trial`` counts through all parts. Concatenated, the parts
    are the table that `Store.read` returns at once.

    Parameters
    ----------
    store : Store
        A store whose shards are all there.
    columns : sequence of str
        As in :meth:`Store.read`.

    Yields
    ------
    DataFrame
        The next part.

    Raises
    ------
    StoreError
        As :meth:`Store.read`.
    """
    size = SHARDS_PER_PART * store.shard_size
    for start in range(0, store.trials, size):
        part = store.read(start, min(start + size, store.trials), columns)
        # `read` counts from its start, and the parts are to count on.
        part["trial"] += start
        yield part
