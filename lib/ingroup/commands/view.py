"""``make view``: the stored answers of a run as logs of inspect_ai, opened in its own viewer.

What a model wrote is hostile text: the logs say so, and the viewer shows it as plain text.
"""

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
from ingroup.commands.parameters import calls_of, command_line, parameters_of
from ingroup.commands.plan import plannable
from ingroup.inference import Call, StoreError, parts, stored, there
from ingroup.inference.choices import probabilities
from ingroup.inference.engine import LENGTH
from ingroup.tables import InputError

SAMPLES = 200  # trials to a log, unless told otherwise
# What parsing made of a reply, of the columns of a study's `load`; the others say what was asked.
READ = ("status", "rating", "letter", "values", "keywords", "reasons", "list", "p_right")


def samples(
    call: Call, rule: str, size: int = SAMPLES, linked: Collection[int] = ()
) -> Iterator[EvalSample]:
    """At most `size` trials of a call, drawn at random over its design (0: all), and those linked.

    The id of a sample is the trial's number, the epoch its round. Its scores are what the study's
    ``load`` made of the reply by the parsing `rule`; its metadata labels, factors, what else
    ``load`` says, and whether the released rule reads it ``otherwise``. Over choices the reply is
    the five most probable answers to each lead. StoreError without stored answers.
    """
    read = notebook.read(call, rule)
    chosen = np.arange(len(call.design))
    if 0 < size < len(chosen):
        drawn = np.random.default_rng(0).choice(chosen, size, replace=False)
        chosen = np.union1d(drawn, np.array(linked, int))
    read = read.drop(columns="reply", errors="ignore").iloc[chosen]
    told = iter(json.loads(read.to_json(orient="records")))  # plain values, None for NaN
    for part in parts(stored(call)):
        rows = part[part.trial.isin(chosen)]
        texts = _most_probable(call, rows) if call.over_choices else rows.text.astype(object)
        for row, text in zip(rows.itertuples(), texts, strict=True):
            yield _sample(call, row, text, next(told))


def _sample(call: Call, row: Any, text: Any, read: dict[str, Any]) -> EvalSample:
    """One trial: its row of the store, the reply as it is shown, what the study read in it."""
    trial = call.design[row.trial]
    content = [{"type": "reasoning", "reasoning": row.reasoning}] if row.reasoning else []
    content.append({"type": "text", "text": text})
    said = [{"role": "assistant", "content": content}] if isinstance(text, str) else []
    ended = "max_tokens" if row.finish_reason == LENGTH else "stop"
    choices = [{"message": message, "stop_reason": ended} for message in said]
    found = {name: read.pop(name, None) for name in READ}
    asked = {}
    for name, level in trial.condition.items():  # those of a named tuple by its own names
        asked |= level._asdict() if hasattr(level, "_asdict") else {name: level}
    return EvalSample(
        id=row.trial, epoch=call.round, input=trial.messages, target=read.get("correct", ""),
        messages=[*trial.messages, *said],
        output={"model": row.model or call.model, "choices": choices, "error": row.error or None},
        scores={
            name: {"value": value, "answer": notebook.one_line(text)}  # a column of the list
            for name, value in found.items()
            if value not in (None, "", {}, [])
        },
        metadata={"asked": call.way, **call.labels, **asked, **read},
    )  # fmt: skip


def _most_probable(call: Call, rows: pd.DataFrame) -> Iterator[str | None]:
    """A line a lead, with what the model, left alone, gives to admissible first tokens (mass)."""
    leads, choices = call.sampling.leads, call.sampling.choices
    for found, masses in zip(probabilities(rows, choices, len(leads)), rows.mass, strict=True):
        lines = []
        for lead, weights, mass in zip(leads, found, masses, strict=False):
            best = [f"{choices[k].strip()} ({weights[k]:.1%})" for k in np.argsort(-weights)[:5]]
            lines.append(f"{lead.strip()} {', '.join(best)}; mass {mass:.1%}".strip())
        yield "\n".join(lines) or None


def write(call: Call, rule: str, size: int, folder: Path, linked: Collection[int] = ()) -> Path:
    """The log of one call in `folder`, under the name of its address; see `samples`."""
    chosen, every = list(samples(call, rule, size, linked)), len(call.design)
    when = datetime.fromtimestamp((call.folder / "manifest.json").stat().st_mtime, UTC).isoformat()
    about = {
        "created": when, "task": call.study, "model": call.model, "config": {},
        "task_args": {**call.labels, "asked": call.way},
        "dataset": {"name": f"{call.source} {call.part}", "samples": every},
        "metadata": {"parsing": rule, "trials": every, "drawn": len(chosen)},
        "viewer": {"trust_content": False},
    }  # fmt: skip
    sizes = {"total_samples": every, "completed_samples": len(chosen)}
    times = {"started_at": when, "completed_at": when}
    log = EvalLog(status="success", eval=about, results=sizes, stats=times, samples=chosen)
    file = folder / f"{'--'.join(call.address.parts)}.eval"
    write_eval_log(log, file)
    return file


def linked(run: str) -> dict[tuple[str, str], list[int]]:
    """The trials whose replies the run's report shows, by study and title of their call."""
    folder = paths.run_folder(run) / "tables" / "map"
    if not (folder / "replies.csv").exists():
        return {}
    shown = figures.read_table(folder, "replies")
    return shown.groupby(["study", "call"]).trial.agg(list).to_dict()


def show(logs: Path, bundle: str | None) -> int:
    """Become the viewer of a folder of logs, or write it as files for any web server."""
    if bundle:  # an absolute path: one that begins with hf/ would be sent away
        bundle_log_dir(str(logs), os.path.abspath(bundle))
        return 0
    start = ("-m", "inspect_ai", "view", "start", "--no-trust-content", "--log-dir", str(logs))
    return os.execl(sys.executable, sys.executable, *start)


def main(arguments: list[str] | None = None) -> int:
    """Write the logs of a run and show them; 2 for a mistake."""
    parser = command_line(__doc__)
    parser.add_argument("notebooks", nargs="*", help="those of all studies, unless named")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="to a log, at most; 0: all")
    parser.add_argument("--bundle", help="a folder for a web server, in place of the viewer")
    options = parser.parse_args(arguments)
    names = options.notebooks or plannable()
    options.shared |= len(names) > 1
    try:
        if options.bundle and os.path.exists(options.bundle):
            raise InputError(f"BUNDLE is a new folder, found {options.bundle}: give another name")
        rule_of = {}
        for name in names:
            ran = None if options.set else notebook.ran(name, options.run)
            asked = ran or parameters_of(name, options)
            rule_of |= dict.fromkeys(calls_of(name, asked), asked["PARSING"])
        here = [call for call in there(rule_of) if call.labels.get("setting") != "rewrite"]
        if not here:
            raise InputError(f"nothing is stored of the {len(rule_of)} calls of {', '.join(names)}")
        shown, logs = linked(options.run), paths.run_folder(options.run) / "view"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        for call in tqdm(here, unit=" logs"):
            more = shown.get((call.study, call.title), ())
            write(call, rule_of[call], options.samples, logs, more)
    except (InputError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2
    drawn = f", {options.samples} trials at random and those that the report shows"
    print(f"{len(here)} logs in {logs}, each a model in one setting{drawn * (options.samples > 0)}")
    if left := len(rule_of) - len(here):
        print(f"{left} calls have no answers yet, or not all of them, and are left out")
    return show(logs, options.bundle)


if __name__ == "__main__":
    sys.exit(main())
