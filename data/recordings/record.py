"""``make record``: ask the real models what ``data/recordings`` holds of them.

``data/recordings/recordings.yaml`` lists, for each model, what its notebooks ask, by which engine.
Stored answers are not asked again: remove a store to make it anew, and its row of ``asked.csv``,
which counts the prompts and seconds of each job. Jobs of an engine that this environment lacks
wait for the one that has it.

``python data/recordings/record.py --chats`` writes ``chats.csv``: to which rendered chats stores
are answers, where their manifest does not say. Call it only where they were asked these chats.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ingroup import paths
from ingroup.commands.parameters import jobs_of, merged
from ingroup.inference import EngineError, Job, StoreError, ask
from ingroup.inference.shards import replace as replace_file
from ingroup.inference.store import Store, read_manifest
from ingroup.tables import InputError


def listed() -> dict[str, list[dict[str, Any]]]:
    """Read what ``recordings.yaml`` says of each model."""
    return yaml.safe_load((paths.RECORDINGS / "recordings.yaml").read_text("utf8"))


def recorded(model: str) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield the jobs that are recorded of a model.

    Parameters
    ----------
    model : str
        A model in ``recordings.yaml``.

    Yields
    ------
    tuple of Job and dict
        A job and its notebook's parameters.
    """
    for entry in listed()[model]:
        notebook = entry["notebook"]
        given = {"MODELS": f"{model}@{entry['engine']}"}
        for name, value in entry["parameters"].items():
            given[name] = str(value)
        parameters = merged(notebook, "demo", given)
        for job in jobs_of(notebook, parameters):
            if job.way in entry["ways"]:
                yield replace(job, root=paths.RECORDINGS / model), parameters


def chats() -> pd.DataFrame:
    """Digest the chats of each recorded store whose manifest names none.

    Returns
    -------
    DataFrame
        One row per store: its ``job``, and the digest of the ``chats`` as they are rendered now.
    """
    rows = []
    for model in listed():
        for job, _ in recorded(model):
            folder = paths.RECORDINGS / model / job.address
            file = folder / "manifest.json"
            if file.exists() and "chats" not in read_manifest(file):
                address = folder.relative_to(paths.RECORDINGS).as_posix()
                rows.append({"job": address, "chats": job.design.chats_digest})
    return pd.DataFrame(rows, columns=["job", "chats"])


def record(job: Job, parameters: dict[str, Any], log: Path) -> None:
    """Ask one job, and count what it took in the log; a killed run's shards are counted first.

    Parameters
    ----------
    job : Job
        From `recorded`.
    parameters : dict
        Of its notebook.
    log : pathlib.Path
        The model's ``asked.csv``.
    """
    count(job, log)
    ask([job], parameters)
    count(job, log)


def count(job: Job, log: Path) -> None:
    """Add to a job's row of the log the stored prompts that it lacks, and their seconds.

    The seconds are those from the store's manifest, or from the last change of the log where that
    is later, to the last shard. So a pause between two runs does not count.

    Parameters
    ----------
    job, log
        See `record`.
    """
    manifest = job.folder / "manifest.json"
    if not manifest.exists():
        return

    rows = pd.read_csv(log).to_dict("records") if log.exists() else []
    row = {"job": str(job.address), "prompts": 0, "seconds": 0}
    for counted in rows:
        if counted["job"] == row["job"]:
            row = counted

    store = Store(job.folder, read_manifest(manifest))
    shards = store.files()
    n_new = sum(len(range(*store.bounds(shard))) for shard in shards) - row["prompts"]
    if n_new <= 0:
        return

    begin = max(file.stat().st_mtime for file in (manifest, log) if file.exists())
    end = max(store.path(shard).stat().st_mtime for shard in shards)
    row["prompts"] += n_new
    row["seconds"] += max(1, round(end - begin))
    if row not in rows:
        rows.append(row)
    text = pd.DataFrame(rows).to_csv(index=False)
    replace_file(log, text.encode())  # whole or not at all


def main() -> int:
    """Record, job by job; 1 where an engine or a store gives up, with its sentence."""
    try:
        for model in listed():
            for job, parameters in recorded(model):
                if find_spec(job.engine):
                    record(job, parameters, paths.RECORDINGS / model / "asked.csv")
    except (InputError, EngineError, StoreError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--chats"]:
        chats().to_csv(paths.RECORDINGS / "chats.csv", index=False)
        sys.exit()
    sys.exit(main())
