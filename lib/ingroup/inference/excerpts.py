"""Excerpts: stores of answers to some of the prompts that another store answers."""

import hashlib
import json
import shutil
from functools import lru_cache
from pathlib import Path

from filelock import FileLock

from ingroup.design import Design
from ingroup.inference.engine import Reply, Sampling
from ingroup.inference.generate import SHARD_SIZE, manifest_entries
from ingroup.inference.shards import SCHEMA
from ingroup.inference.store import Store, StoreError, read_manifest

SOURCE_ENTRY = "excerpt_of"  # in a manifest: digest of the store from which the answers were copied
# Entries of a manifest on the design. The other entries are on the sampling and the engine.
DESIGN_ENTRIES = ("prompts", "trials", "shard_size", "chats")


def write_excerpt(
    source: Store,
    source_design: Design,
    design: Design,
    sampling: Sampling,
    folder: Path,
) -> bool:
    """Copy the answers to a design from a store that answers all of its prompts.

    An excerpt that is already in the folder is kept while the source has not changed. Otherwise the
    answers are copied again, which costs nothing. Two processes may call this at the same time.

    Parameters
    ----------
    source : Store
        Complete answers to `source_design`. It is not changed.
    source_design : Design
        The prompts that the source answers.
    design : Design
        The prompts whose answers are wanted.
    sampling : Sampling
        How the prompts are asked.
    folder : Path
        Where the excerpt goes.

    Returns
    -------
    bool
        False where the source lacks a prompt or a shard, or was asked with another sampling.

    Raises
    ------
    StoreError
        Where the source is damaged, or the disk does not take the excerpt.
    """
    # Half a recording would make an excerpt with gaps that nothing fills.
    if not source.is_complete:
        return False
    if not _has_sampling(source, design, sampling):
        return False
    digest = _digest(source)
    # This comes before the trials are looked up, which renders every prompt of both designs.
    if _is_current(folder, digest, design):
        return True
    trials = _trials(source_design, design)
    if trials is None:
        return False

    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        # Another process may have made the excerpt while this one waited for the lock.
        if _is_current(folder, digest, design):
            return True
        # A kill left half of it, or the source has changed.
        if folder.exists():
            shutil.rmtree(folder)

        # The entries on the engine are the source's, and those on the prompts are this design's.
        manifest = dict(source.manifest)
        manifest |= manifest_entries(design, sampling, SHARD_SIZE)
        manifest["chats"] = design.chats_digest
        manifest[SOURCE_ENTRY] = digest
        _copy(source, trials, Store(folder, manifest, source.max_tokens))
    return True


def _is_current(folder: Path, digest: str, design: Design) -> bool:
    """Tell whether a folder holds a design's complete excerpt of the source with this digest."""
    file = folder / "manifest.json"
    if not file.exists():
        return False
    manifest = read_manifest(file)
    expected = {
        SOURCE_ENTRY: digest,
        "prompts": design.fingerprint,
        "chats": design.chats_digest,
    }
    # The sampling needs no comparison: the digest covers the source's manifest, which holds it.
    if not expected.items() <= manifest.items():
        return False
    return Store(folder, manifest).is_complete


def _has_sampling(source: Store, design: Design, sampling: Sampling) -> bool:
    """Tell whether a store was asked with this sampling, for this or another design."""
    expected = manifest_entries(design, sampling)
    for name in DESIGN_ENTRIES:
        expected.pop(name, None)
    # Only entries on the sampling are left; the source's manifest says more.
    return expected.items() <= source.manifest.items()


def _trials(source_design: Design, design: Design) -> list[int] | None:
    """Find the source's trial with each prompt of a design, None if the source lacks a prompt."""
    numbers = _trial_by_prompt(source_design)
    trials = []
    for trial in design:
        # Prompts are found by their text: the same prompt has other numbers in other designs.
        number = numbers.get(json.dumps(trial.messages))
        if number is None:
            return None
        trials.append(number)
    return trials


@lru_cache(maxsize=4)  # the same design is asked of several models
def _trial_by_prompt(design: Design) -> dict[str, int]:
    """Map each prompt, as JSON, to the number of its first trial."""
    numbers: dict[str, int] = {}
    for trial in design:
        numbers.setdefault(json.dumps(trial.messages), trial.index)
    return numbers


def _digest(store: Store) -> str:
    """Compute SHA-256 over a store's manifest and the files of its shards."""
    digest = hashlib.sha256((store.folder / "manifest.json").read_bytes())
    for files in store.files().values():
        for file in files:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _copy(source: Store, trials: list[int], target: Store) -> None:
    """Write the replies to these trials of one store into another store, in this order."""
    replies = _replies(source)
    with target.writing():
        # Replies of one shard here may come from any shards of the source.
        for shard in range(target.n_shards):
            start, stop = target.bounds(shard)
            target.write(shard, [replies[trial] for trial in trials[start:stop]])


def _replies(store: Store) -> list[Reply]:
    """Read all replies of a complete store, by trial. Raise a StoreError if a file is damaged."""
    replies = []
    for _, table, damaged in store.tables(range(store.n_shards), SCHEMA.names):
        if table is None or damaged:
            raise StoreError(f"{damaged[0]} is damaged; put it back")
        for row in table.select(Reply._fields).to_pylist():
            # Arrow gives a list or nothing where a reply without scores has an empty tuple.
            lists = {name: row[name] or () for name in ("probabilities", "mass", "steps")}
            replies.append(Reply(**row | lists))
    return replies
