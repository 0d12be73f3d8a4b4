"""``make view``: the stored answers of a run as logs of inspect_ai, opened in its own viewer.

The replies of a model are hostile text. The logs say so, and the viewer shows plain text.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog, EvalSample, bundle_log_dir, write_eval_log
from tqdm import tqdm

from ingroup import figures, notebook, paths
from ingroup.commands import settings
from ingroup.commands.run_parameters import command_line, jobs_of, parameters_of
from ingroup.design import named_values
from ingroup.inference import Job, StoreError, answered_jobs, parts, stored
from ingroup.inference.choices import most_probable_text, probabilities
from ingroup.inference.engine import LENGTH
from ingroup.parsing import Rule
from ingroup.tables import InputError

DEFAULT_SAMPLES = 200  # trials per log, unless the command line says otherwise
# Columns of a study's `load` with what parsing made of a reply; the others say what was asked.
READING_COLUMNS = ("status", "rating", "letter", "values", "keywords", "reasons", "list", "p_right")


def samples(
    job: Job, rule: Rule, size: int = DEFAULT_SAMPLES, linked: Collection[int] = ()
) -> Iterator[EvalSample]:
    """Turn trials of a job into samples of inspect_ai.

    Parameters
    ----------
    job : Job
        A job with stored answers.
    rule : str
        The parsing rule, ``"sound"`` or ``"released"``.
    size : int
        The number of trials that are drawn at random from the design, or 0 for all.
    linked : collection of int
        Trials to which pages of the report link, which are always among the samples.

    Yields
    ------
    EvalSample
        Its id is the trial's number, its epoch the repetition. Its scores are the values that the
        study's ``load`` read in the reply by the rule. Its metadata are labels, factors, the other
        columns of ``load``, and ``otherwise``: whether the released rule reads the reply
        differently. The reply to a scored trial is the most probable answer to each answer prefix.

    Raises
    ------
    StoreError
        If there are no stored answers.
    """
    table = notebook.read(job, rule)
    n_trials = len(job.design)
    chosen = np.arange(n_trials)
    if 0 < size < n_trials:
        rng = np.random.default_rng(0)
        drawn = rng.choice(chosen, size, replace=False)
        # The trials are sorted from here on, so readings and rows of the store go in step.
        chosen = np.union1d(drawn, np.array(linked, int))

    table = table.drop(columns="reply", errors="ignore")
    text = table.iloc[chosen].to_json(orient="records")
    # JSON gives plain values, and None for NaN.
    readings = iter(json.loads(text))
    for part in parts(stored(job)):
        rows = part[part.trial.isin(chosen)]
        replies = _most_probable(job, rows) if job.is_scored else rows.text.astype(object)
        for row, reply in zip(rows.itertuples(), replies, strict=True):
            yield _sample(job, row, reply, next(readings))


def _sample(job: Job, row: Any, reply: Any, reading: dict[str, Any]) -> EvalSample:
    """Make the sample of a trial from its row of the store, its reply and the parsed reading."""
    trial = job.design[row.trial]
    replies = []
    choices = []
    # A call that failed has no text; its error stands in the output below.
    if isinstance(reply, str):
        content = [{"type": "text", "text": reply}]
        if row.reasoning:
            content.insert(0, {"type": "reasoning", "reasoning": row.reasoning})
        message = {"role": "assistant", "content": content}
        replies.append(message)
        ended = "max_tokens" if row.finish_reason == LENGTH else "stop"
        choices.append({"message": message, "stop_reason": ended})

    scores = {}
    # This is a column of the viewer's list of samples, which has room for one line.
    answer = notebook.reply_beginning(reply)
    for name in READING_COLUMNS:
        value = reading.get(name)
        if value not in (None, "", {}, []):
            scores[name] = {"value": value, "answer": answer}

    asked = {name: value for name, value in reading.items() if name not in READING_COLUMNS}
    factors: dict = {}
    for name, level in trial.condition.items():
        factors |= named_values(name, level)

    sample = dict(
        id=row.trial,
        epoch=job.round,
        input=trial.messages,
        target=reading.get("correct", ""),
        messages=[*trial.messages, *replies],
        output={
            "model": row.model or job.model,
            "choices": choices,
            "error": row.error or None,
        },
        scores=scores,
        metadata={"mode": job.mode, **job.labels, **factors, **asked},
    )
    return EvalSample.model_validate(sample)


def _most_probable(job: Job, rows: pd.DataFrame) -> Iterator[str | None]:
    """Yield per row the most probable answer and the option mass, in a line for each answer prefix.

    A failed call yields None.
    """
    prefixes = job.sampling.leads
    answers = job.sampling.choices

    weights_of_rows = probabilities(rows, answers, len(prefixes))
    for weights_of_row, masses in zip(weights_of_rows, rows.mass, strict=True):
        lines = []
        # A failed call has no mass, and so no line.
        for prefix, weights, mass in zip(prefixes, weights_of_row, masses, strict=False):
            line = (
                f"{prefix.strip()} {most_probable_text(weights, answers)}; option mass {mass:.1%}"
            )
            lines.append(line.strip())
        yield "\n".join(lines) or None


def write(job: Job, rule: Rule, size: int, folder: Path, linked: Collection[int] = ()) -> Path:
    """Write the log of one job.

    Parameters
    ----------
    job : Job
        As in `samples`.
    rule : str
        As in `samples`.
    size : int
        As in `samples`.
    folder : Path
        Where the log is written, under the name of the job's address.
    linked : collection of int
        As in `samples`.

    Returns
    -------
    Path
        The log.
    """
    chosen = list(samples(job, rule, size, linked))
    n_trials = len(job.design)
    manifest = job.folder / "manifest.json"
    created = datetime.fromtimestamp(manifest.stat().st_mtime, UTC).isoformat()
    content = dict(
        status="success",
        eval={
            "created": created,
            "task": job.study,
            "model": job.model,
            "config": {},
            "task_args": {**job.labels, "mode": job.mode},
            "dataset": {"name": f"{job.source} {job.part}", "samples": n_trials},
            "metadata": {"parsing": rule, "trials": n_trials, "drawn": len(chosen)},
            "viewer": {"trust_content": False},
        },
        results={"total_samples": n_trials, "completed_samples": len(chosen)},
        stats={"started_at": created, "completed_at": created},
        samples=chosen,
    )
    log = EvalLog.model_validate(content)

    name = "--".join(job.address.parts)
    file = folder / f"{name}.eval"
    write_eval_log(log, file)
    return file


def trials_in_report(run: str) -> dict[tuple[str, str], list[int]]:
    """List the trials whose replies the run's report shows.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    dict of (str, str) to list of int
        The numbers of the trials by study and title of their job.
    """
    folder = paths.run_folder(run) / "tables" / "map"
    if not (folder / "replies.csv").exists():
        return {}
    replies = figures.read_table(folder, "replies")
    trials = replies.groupby(["study", "job"]).trial
    return trials.agg(list).to_dict()


def show(logs: Path, bundle: str | None) -> int:
    """Replace this program with the viewer of a folder of logs, or write files for a web server.

    Parameters
    ----------
    logs : Path
        The folder of logs.
    bundle : str or None
        A folder for the files of a web server, or None for the viewer.

    Returns
    -------
    int
        The exit status, 0, after the files for a web server are written. The viewer replaces this
        program, so then nothing is returned.
    """
    # The path is made absolute: one that begins with hf/ would be sent away.
    if bundle:
        bundle_log_dir(str(logs), os.path.abspath(bundle))
        return 0

    command = [sys.executable, "-m", "inspect_ai", "view", "start"]
    command += ["--no-trust-content", "--log-dir", str(logs)]
    return os.execl(sys.executable, *command)


def _rules(names: list[str], options: argparse.Namespace) -> dict[Job, Rule]:
    """Return the parsing rule of each job of some notebooks.

    The rule is taken from the last run, or from the command line with `--set` or without a run.
    """
    rule_by_job = {}
    for name in names:
        last = None if options.set else notebook.parameters_of_run(name, options.run)
        parameters = last or parameters_of(name, options)
        for job in jobs_of(name, parameters):
            rule_by_job[job] = parameters["PARSING"]
    return rule_by_job


def _write_logs(jobs: list[Job], rule_by_job: dict[Job, Rule], options: argparse.Namespace) -> Path:
    """Write the logs of some jobs, and return their folder."""
    trials_of = trials_in_report(options.run)
    logs = paths.run_folder(options.run) / "view"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    for job in tqdm(jobs, unit=" logs"):
        trials = trials_of.get((job.study, job.title), ())
        write(job, rule_by_job[job], options.samples, logs, trials)
    return logs


def main(arguments: list[str] | None = None) -> int:
    """Write the logs of a run and show them.

    Parameters
    ----------
    arguments : list of str, optional
        The command line; by default that of this program.

    Returns
    -------
    int
        The exit status: 0 when files for a web server are written, 2 for a mistake. The viewer
        replaces this program, so then nothing is returned.
    """
    parser = command_line(__doc__)
    parser.add_argument("notebooks", nargs="*", help="those of all studies, unless named")
    parser.add_argument(
        "--samples", type=int, default=DEFAULT_SAMPLES, help="to a log, at most; 0: all"
    )
    parser.add_argument("--bundle", help="a folder for a web server, in place of the viewer")
    options = parser.parse_args(arguments)
    names = options.notebooks or settings.first_notebooks()
    # A parameter is given for all notebooks, and a notebook may lack it.
    options.shared |= len(names) > 1

    try:
        if options.bundle and os.path.exists(options.bundle):
            raise InputError(
                f"BUNDLE must be a folder that is not there yet, found {options.bundle!r}"
            )
        rule_by_job = _rules(names, options)
        jobs = list(rule_by_job)
        # Jobs of the REWRITER write prompts, so no study reads their replies.
        answered = [job for job in answered_jobs(jobs) if job.labels.get("setting") != "rewrite"]
        if not answered:
            studies = ", ".join(names)
            raise InputError(
                f"none of the {len(jobs)} jobs of {studies} has stored answers: make ask first"
            )
        logs = _write_logs(answered, rule_by_job, options)
    except (InputError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2

    drawn = ""
    if options.samples > 0:
        drawn = f", {options.samples} trials at random and those that the report shows"
    print(f"{len(answered)} logs in {logs}, each a model in one setting{drawn}")
    left = len(jobs) - len(answered)
    if left:
        print(f"{left} jobs have no answers yet, or not all of them, and are left out")
    return show(logs, options.bundle)


if __name__ == "__main__":
    sys.exit(main())
