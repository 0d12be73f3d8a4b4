"""Recorded answers, found by their prompt and how it was asked.

A recording is a store below ``data/recordings/<model>/<study>/<part>``. Any store of a run can be
moved there. A job is answered by the recordings of its model that were asked with its sampling, so
any subset and any order of the recorded prompts is answered.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ingroup.inference.answers import Sampling
from ingroup.inference.store import Store, read_manifest
from ingroup.paths import RECORDINGS

# Options that change a prompt, and their defaults.
RENDERING = {"system": "keep", "bos": "template"}


@cache
def _manifests(model: str, study: str) -> dict[Path, dict[str, Any]]:
    """Read the manifests of all recordings of a model for a study, by their folders."""
    folders = sorted((RECORDINGS / model / study).glob("*/manifest.json"))
    return {file.parent: read_manifest(file.parent) for file in folders}


def folders(
    model: str, study: str, part: str, sampling: Sampling, options: dict[str, Any]
) -> list[Path]:
    """List the recordings that may answer a job, that of the same part first.

    Where a prompt was asked in several parts, as that of "a person" about "a person" was, its
    answers can differ in the last digit. So each part keeps its own.

    Parameters
    ----------
    model, study, part : str
        The registry's name, and the names of the study and of the job.
    sampling : Sampling
        How the job is asked.
    options : dict
        Options of the job, ``system`` and ``bos`` among them.

    Returns
    -------
    list of Path
        The folders.
    """
    asked = sampling.identity()
    rendering = {name: options.get(name, usual) for name, usual in RENDERING.items()}
    same = []
    for folder, manifest in _manifests(model, study).items():
        if asked.items() <= manifest.items() and rendering.items() <= manifest.items():
            same.append(folder)
    return sorted(same, key=lambda folder: folder.name != part)


@cache
def _read(folder: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Read a recording once in a process."""
    return Store(folder, read_manifest(folder)).read(["prompt", *columns])


def find(
    folders: Sequence[Path], prompts: Sequence[int], columns: Sequence[str] = ()
) -> pd.DataFrame:
    """Find the recorded answers to some prompts.

    Parameters
    ----------
    folders : sequence of Path
        Recordings, from `folders`. The first that holds a prompt answers it.
    prompts : sequence of int
        The key of each prompt (`answers.prompt_key`), in the order of the trials.
    columns : sequence of str
        Columns of a store.

    Returns
    -------
    DataFrame
        ``trial`` (the position in `prompts`), ``finish_reason`` and the columns, one row for each
        prompt that is recorded.
    """
    left = pd.DataFrame({"prompt": prompts, "trial": np.arange(len(prompts))})
    found = []
    for folder in folders:
        if left.empty:
            break
        recorded = _read(folder, tuple(columns)).drop(columns="trial").drop_duplicates("prompt")
        answered = left.merge(recorded, on="prompt")
        found.append(answered)
        left = left[~left.trial.isin(answered.trial)]
    if not found:
        return pd.DataFrame(columns=["trial", "finish_reason", *columns])
    return pd.concat(found, ignore_index=True).sort_values("trial", ignore_index=True)
