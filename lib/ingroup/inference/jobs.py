"""A job: one design asked of one model with one sampling, answered into one store.

Recorded answers are stores below ``data/recordings/<model>/<study>/<part>``. They are found by
their prompt and how it was asked, so any subset and any order of the recorded prompts is answered.
Any store of a run can be moved there.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ingroup import RECORDINGS, RESPONSES
from ingroup.inference import weights
from ingroup.inference.answers import MISSING, Engine, Sampling
from ingroup.inference.design import Design
from ingroup.inference.distribute import ask_on_ray
from ingroup.inference.generate import Budget, fill, open_store
from ingroup.inference.models import Model
from ingroup.inference.parameters import Parameters
from ingroup.inference.store import SCHEMA, Store, read_manifest

Columns = Sequence[str]
# Options that change a prompt, and their defaults.
RENDERING = {"system": "keep", "bos": "template"}
SAMPLE_SIZE = 200  # trials of a job that a plan measures
CHARACTERS_PER_TOKEN = 4  # of English text
# Parameters of a run that each engine takes.
OPTIONS = {
    "transformers": ["batch_size", "dtype", "system", "bos", "reasoning"],
    "vllm": ["gpus", "dtype", "system", "bos", "reasoning"],
    "inspect": ["base_url", "in_flight", "timeout", "batch"],
    "replay": ["recordings"],
}


@dataclass(frozen=True, eq=False)
class Job:
    """A design that is asked of a model.

    Attributes
    ----------
    study, part : str
        The study, and the part of it that this job asks, e.g. ``P0,S0,T0-religion``. A recording
        of the same part is preferred.
    model : Model
        Who is asked.
    design : Design
        The prompts.
    sampling : Sampling
        How they are asked.
    labels : mapping
        Columns that tell this job's rows from those of other jobs.
    options : mapping
        Options of the engine, ``system`` and ``bos`` among them.
    """

    study: str
    part: str
    model: Model
    design: Design
    sampling: Sampling
    labels: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the name of the folder of the answers: the part, and whether it is scored."""
        return f"{self.part}+choices" if self.sampling.choices else self.part

    @property
    def folder(self) -> Path:
        """Return the folder of the answers that this machine asks for."""
        # Answers that were cut are asked again with more tokens, in the same store.
        sampling = self.sampling.identity() | {"max_tokens": 0}
        asked = json.dumps([sampling, self.design.digest, dict(self.options)])
        digest = hashlib.sha256(asked.encode()).hexdigest()
        name = f"{self.name}-{digest[:8]}"
        return RESPONSES / self.study / self.model.folder_name / name

    def recordings(self, model: str) -> list[Path]:
        """List the recordings that were asked as this job is, that of the same part first.

        Where a prompt was asked in several parts, as that of "a person" about "a person" was, its
        answers can differ in the last digit. So each part keeps its own.

        Parameters
        ----------
        model : str
            A name of the registry, "*" for any.

        Returns
        -------
        list of Path
            Their folders.
        """
        asked = self.sampling.identity()
        for name, usual in RENDERING.items():
            asked[name] = self.options.get(name, usual)

        same = []
        for folder, manifest in _manifests(model, self.study).items():
            if asked.items() <= manifest.items():
                same.append(folder)
        return sorted(same, key=lambda folder: folder.name != self.name)

    def recorded(self, columns: Columns = (), model: str = "") -> pd.DataFrame:
        """Find the recorded answers to the job, if its engine is "recorded".

        Parameters
        ----------
        columns : sequence of str
            Columns of a store.
        model : str
            Whose answers, the job's own model unless given, "*" for any.

        Returns
        -------
        DataFrame
            ``trial``, ``finish_reason`` and the columns, one row for each prompt that is recorded.
        """
        folders = []
        if self.model.engine == "recorded":
            folders = self.recordings(model or self.model.name)
        # The keys of 37 million prompts are not computed for nothing.
        prompts = self.design.keys if folders else ()
        trials = range(len(prompts))
        left = pd.DataFrame({"prompt": prompts, "trial": trials})
        found = []
        for folder in folders:
            if left.empty:
                break
            recorded = _read_recording(folder, tuple(columns))
            answered = left.merge(recorded, on="prompt")
            found.append(answered)
            left = left[~left.trial.isin(answered.trial)]

        if not found:
            return pd.DataFrame(columns=["trial", "finish_reason", *columns])
        return pd.concat(found, ignore_index=True).sort_values("trial", ignore_index=True)

    @property
    def is_left_out(self) -> bool:
        """Tell whether the model was not asked on purpose: another one has recorded its prompts."""
        return len(self.recorded(model="*")) > len(self.recorded())

    @property
    def title(self) -> str:
        """Name model and labels, for a progress bar."""
        labels = map(str, self.labels.values())
        return " ".join([self.model.label, *labels])


@cache
def _manifests(model: str, study: str) -> dict[Path, dict[str, Any]]:
    """Read the manifests of all recordings of a model for a study, by their folders."""
    files = sorted(RECORDINGS.glob(f"{model}/{study}/*/manifest.json"))
    return {file.parent: read_manifest(file.parent) for file in files}


@cache
def _read_recording(folder: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Read a recording once in a process, each prompt once."""
    store = Store(folder, read_manifest(folder))
    answers = store.read(["prompt", *columns])
    return answers.drop(columns="trial").drop_duplicates("prompt")


def make_engine(job: Job, options: Mapping[str, Any]) -> Engine:
    """Make the engine that a job names. Its library is imported here.

    Parameters
    ----------
    job : Job
        The job.
    options : mapping
        The run's parameters in lower case.

    Returns
    -------
    Engine
        The engine.

    Raises
    ------
    EngineError
        The engine cannot start.
    """
    known = {**options, **job.options}
    given = {}
    for name in OPTIONS[job.model.engine]:
        given[name] = known[name]

    if job.model.engine == "transformers":
        from ingroup.inference.transformers_engine import TransformersEngine

        return TransformersEngine(job.model.loaded, **given)
    if job.model.engine == "vllm":
        from ingroup.inference.vllm_engine import VLLMEngine

        return VLLMEngine(job.model.loaded, **given)
    if job.model.engine == "inspect":
        from ingroup.inference.inspect_engine import InspectEngine

        return InspectEngine(job.model.name, **given, calls=job.folder.parent / "calls")
    from ingroup.inference.replay_engine import from_files

    return from_files(given["recordings"], job.model.name, job.labels)


def answers(job: Job, columns: Columns = ()) -> pd.DataFrame:
    """Read the answers to a job: recorded ones, and those that this machine asked for.

    Parameters
    ----------
    job : Job
        The job. No engine is needed.
    columns : sequence of str
        Columns of a store (`store.SCHEMA`), all unless given.

    Returns
    -------
    DataFrame
        One row for each trial, in the order of the design: ``trial``, ``finish_reason`` and the
        columns. A trial that was never asked has the finish reason "missing".
    """
    every_table = ["trial", "finish_reason"]
    others = [name for name in columns or SCHEMA.names if name not in (*every_table, "prompt")]
    columns = every_table + others
    answered = job.recorded(others)
    n_trials = len(job.design)
    manifest = read_manifest(job.folder)
    if manifest and len(answered) < n_trials:
        stored = Store(job.folder, manifest).read(others)
        if answered.empty:
            return stored[columns].astype({"finish_reason": object})
        is_asked = stored.finish_reason != MISSING
        answered = pd.concat([answered, stored[is_asked]])

    table = answered.drop_duplicates("trial").set_index("trial").reindex(range(n_trials))
    table["finish_reason"] = table.finish_reason.astype(object).fillna(MISSING)
    return table.reset_index(names="trial")[columns]


def ask(jobs: Sequence[Job], parameters: Parameters) -> None:
    """Ask for the answers that the stores of jobs lack.

    Parameters
    ----------
    jobs : sequence of Job
        The jobs. An engine starts only if an answer is missing.
    parameters : Parameters
        The run's parameters.

    Raises
    ------
    EngineError
        An engine cannot start or gives up.
    StoreError
        A store answers something else.
    """
    options = {name.lower(): value for name, value in parameters.model_dump().items()}
    asked_for_money = {job.model.folder_name for job in jobs if job.model.engine == "inspect"}
    budget = Budget(
        parameters.COST_LIMIT,
        parameters.PRICE_IN,
        parameters.PRICE_OUT,
        asked_for_money,
    )
    kind: tuple = ()
    left_out: Counter[tuple[str, str]] = Counter()
    with ExitStack() as opened:
        for job in jobs:
            known = set(job.recorded().trial)
            left = n_left(job, known)
            # Other files of recordings are noticed even if all was answered.
            if not left and job.model.engine != "replay":
                continue
            remedy = _remedy(job)
            if remedy:
                left_out[job.model.label, remedy] += left
                continue
            live = _live(job, left)
            # Jobs of one model share its engine, whose start can take a minute.
            wanted = _kind_of_engine(live)
            if wanted != kind:
                opened.close()
                engine = make_engine(live, options)
                opened.callback(engine.close)
                kind = wanted

            store = open_store(job.folder, job.design, engine, job.sampling)
            asks = None
            if parameters.ENGINE_WORKERS > 1:
                asks = ask_on_ray(
                    engine,
                    partial(make_engine, live, options),
                    parameters.ENGINE_WORKERS,
                    parameters.GPUS,
                    parameters.RAY_ADDRESS,
                )
            costs = budget if live.model.engine == "inspect" else None
            fill(job.design, engine, store, job.sampling, job.title, costs, asks, known)

    for (label, remedy), n_prompts in left_out.items():
        sentence = f"{label}: {n_prompts:,} prompts are not recorded and are left out"
        print(f"{sentence}. {remedy}.", file=sys.stderr)


def n_left(job: Job, known: set[int]) -> int:
    """Count the trials of a job that are still to be asked. No engine starts for none.

    Parameters
    ----------
    job : Job
        The job.
    known : set of int
        The trials that recordings answer.

    Returns
    -------
    int
        Trials that neither a recording nor the store answers.
    """
    manifest = read_manifest(job.folder)
    n_unknown = len(job.design) - len(known)
    if not manifest or not n_unknown:
        return n_unknown
    store = Store(job.folder, manifest | job.sampling.identity())
    left = store.unanswered(asks_again=job.model.engine == "inspect")
    total = 0
    for trials in left:
        total += len(trials) - len(known.intersection(trials))
    return total


def _kind_of_engine(job: Job) -> tuple:
    """List what an engine is made of, which is the same for most jobs of a model."""
    labels = job.labels if job.model.engine == "replay" else {}
    return job.model, job.options, labels


def _remedy(job: Job) -> str:
    """Say how to ask a job that a run leaves out, "" for a job that is asked."""
    name = job.model.name
    if job.model.engine != "recorded":
        return ""
    if job.is_left_out:
        return f"To ask the model itself for all prompts, write {name}@transformers in MODELS"
    return "" if weights.available(name) else "To ask them, type `make model` first"


def _live(job: Job, left: int) -> Job:
    """Return a job as an engine can ask it."""
    if job.model.engine != "recorded":
        return job
    n_prompts = f"{job.title}: {left:,} prompts are not recorded"
    print(f"{n_prompts}, so the model itself is asked", file=sys.stderr)
    folder = weights.available(job.model.name)
    return replace(job, model=job.model._replace(engine="transformers", loaded=str(folder)))


def plan(jobs: Iterable[Job], parameters: Parameters) -> pd.DataFrame:
    """Estimate what a run will ask. No engine is needed.

    Parameters
    ----------
    jobs : iterable of Job
        The jobs of the run.
    parameters : Parameters
        The run's parameters, for the prices.

    Returns
    -------
    DataFrame
        One row for each job: ``prompts``, and how many a run would ask (``left``). These have
        ``prompt_tokens`` (four characters each), at most ``reply_tokens``, and the highest
        ``price``, in the currency of PRICE_IN and PRICE_OUT if one is given.
    """
    budget = Budget(price_in=parameters.PRICE_IN, price_out=parameters.PRICE_OUT)
    rng = np.random.default_rng(0)
    rows = {}
    for job in jobs:
        n_trials = len(job.design)
        drawn = rng.choice(n_trials, min(SAMPLE_SIZE, n_trials), replace=False)
        lengths = []
        for chat in job.design.chats(drawn.tolist()):
            turns = [len(turn["content"]) for turn in chat]
            lengths.append(sum(turns))

        left = n_left(job, set(job.recorded().trial))
        if left and _remedy(job):
            left = 0
        prompt_tokens = left * np.mean(lengths) / CHARACTERS_PER_TOKEN
        reply_tokens = left * (1 if job.sampling.choices else job.sampling.max_tokens)
        rows[job.title, job.name] = {
            "prompts": n_trials,
            "left": left,
            "prompt_tokens": round(prompt_tokens),
            "reply_tokens": round(reply_tokens),
            "price": budget.price(prompt_tokens, reply_tokens),
        }

    table = pd.DataFrame.from_dict(rows, orient="index")
    table = table.rename_axis(["model", "job"])
    if parameters.PRICE_IN or parameters.PRICE_OUT:
        return table
    return table.drop(columns="price")
