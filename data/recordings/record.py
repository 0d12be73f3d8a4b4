"""``make record``: ask the real models for the answers that ``data/recordings`` holds.

``data/recordings/recordings.yaml`` lists each model's jobs: notebook, engine, parameters and modes.
Stored answers are not asked again. Remove a job's store and its row of ``asked.csv`` to record the
job anew. This file counts the prompts and seconds of each job. Jobs of an engine that this
environment lacks are left to an environment that has it.

``python data/recordings/record.py --chats`` writes ``chats.csv``. It has the digest of the chats of
each store whose manifest has none. Call it only if the stores were asked the chats that are
rendered now.
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
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import EngineError, Job, StoreError, ask
from ingroup.inference.shards import replace_file
from ingroup.inference.store import Store, read_manifest
from ingroup.tables import InputError


def entries_by_model() -> dict[str, list[dict[str, Any]]]:
    """Read the entries of ``recordings.yaml`` by model."""
    return yaml.safe_load((paths.RECORDINGS / "recordings.yaml").read_text("utf8"))


def recorded_jobs(model: str) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Yield the recorded jobs of a model.

    Parameters
    ----------
    model : str
        A model in ``recordings.yaml``.

    Yields
    ------
    tuple of Job and dict
        A job and its notebook's parameters.
    """
    for entry in entries_by_model()[model]:
        notebook = entry["notebook"]
        given = {"MODELS": f"{model}@{entry['engine']}"}
        for name, value in entry["parameters"].items():
            given[name] = str(value)
        parameters = merged_parameters(notebook, "demo", given)
        for job in jobs_of(notebook, parameters):
            if job.mode in entry["modes"]:
                yield replace(job, root=paths.RECORDINGS / model), parameters


def chat_digests() -> pd.DataFrame:
    """Compute the digest of the chats of each recorded store whose manifest has none.

    Returns
    -------
    DataFrame
        One row per store: its ``job``, and the digest of the ``chats`` as they are rendered now.
    """
    rows = []
    for model in entries_by_model():
        for job, _ in recorded_jobs(model):
            manifest = paths.RECORDINGS / model / job.address / "manifest.json"
            if manifest.exists() and "chats" not in read_manifest(manifest):
                address = manifest.parent.relative_to(paths.RECORDINGS).as_posix()
                rows.append({"job": address, "chats": job.design.chats_digest})
    return pd.DataFrame(rows, columns=["job", "chats"])


def record(job: Job, parameters: dict[str, Any], log: Path) -> None:
    """Ask one job, and count its prompts and seconds in the log.

    Shards of a killed run are counted first.

    Parameters
    ----------
    job : Job
        A job that `recorded_jobs` yields.
    parameters : dict
        The parameters of its notebook.
    log : pathlib.Path
        The model's ``asked.csv``.
    """
    log_stored_prompts(job, log)
    ask([job], parameters)
    log_stored_prompts(job, log)


def log_stored_prompts(job: Job, log: Path) -> None:
    """Add the stored prompts that the log lacks to a job's row, with their seconds.

    The seconds end with the last shard. They begin with the store's manifest, or with the last
    change of the log if that is later. So a pause between two runs does not count.

    Parameters
    ----------
    job, log
        See `record`.
    """
    manifest = job.folder / "manifest.json"
    if not manifest.exists():
        return

    rows = []
    begin = manifest.stat().st_mtime
    if log.exists():
        rows = pd.read_csv(log).to_dict("records")
        begin = max(begin, log.stat().st_mtime)

    address = str(job.address)
    row_of_job = {"job": address, "prompts": 0, "seconds": 0}
    for row in rows:
        if row["job"] == address:
            row_of_job = row

    store = Store(job.folder, read_manifest(manifest))
    n_stored = 0
    end = begin
    for shard in store.files():
        start, stop = store.bounds(shard)
        n_stored += stop - start
        end = max(end, store.path(shard).stat().st_mtime)
    if n_stored <= row_of_job["prompts"]:
        return

    row_of_job["seconds"] += max(1, round(end - begin))
    row_of_job["prompts"] = n_stored
    # A job that has a row already was changed in place.
    if row_of_job not in rows:
        rows.append(row_of_job)
    text = pd.DataFrame(rows).to_csv(index=False)
    replace_file(log, text.encode())  # whole or not at all


def main() -> int:
    """Record job by job. Print the error and return 1 if an engine or a store gives up."""
    try:
        for model in entries_by_model():
            for job, parameters in recorded_jobs(model):
                if find_spec(job.engine):
                    record(job, parameters, paths.RECORDINGS / model / "asked.csv")
    except (InputError, EngineError, StoreError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--chats"]:
        chat_digests().to_csv(paths.RECORDINGS / "chats.csv", index=False)
        sys.exit()
    sys.exit(main())
