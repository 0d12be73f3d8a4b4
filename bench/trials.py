"""Attacks and accidents, by kind: how many were tried, and how many ended badly.

``python bench/trials.py`` writes the table into ``docs/trials.md``. A trial makes one change in one
place and checks the result. The trial ends ``well`` if the result is right, or if one sentence says
what is wrong. There are four bad endings.

``lost``
    A whole answer is asked again, or is gone.
``wrong``
    The result is not the right one.
``silent``
    A change or a request is passed over without a word.
``traceback``
    The error is not a sentence.

The counts of a kind are kept in ``build/bench/trials/<kind>.json``, also while the kind is tried,
so a stop loses nothing. ``python bench/trials.py`` tries the kinds without a whole result of this
commit. ``python bench/trials.py KIND ...`` tries these kinds alone and leaves the page. The draws
are the same each time. Each bad ending is printed with its trial.
"""

import gzip
import io
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

ROOT = Path(__file__).parents[1]
FOLDERS = ("lib", "tests/helpers", "tests/inference", "data/recordings", "bench")
sys.path[:0] = [str(ROOT / folder) for folder in FOLDERS]
os.environ.setdefault("NO_PROXY", "127.0.0.1")

import check_fire as fire  # noqa: E402

import clone  # noqa: E402
import inspect_logs  # noqa: E402
import record  # noqa: E402
import toy  # noqa: E402
from fake_openai import JSON, FakeOpenAI, completion, ok, text_of  # noqa: E402
from ingroup import latex, paths  # noqa: E402
from ingroup.commands import settings  # noqa: E402
from ingroup.commands.run_parameters import defaults, merged_parameters, study_of  # noqa: E402
from ingroup.inference import (  # noqa: E402
    EngineError,
    Job,
    Sampling,
    Store,
    StoreError,
    fill,
    inspect_engine,
    open_store,
    recordings,
    server_responses,
    stored,
)
from ingroup.inference.cluster import Cluster  # noqa: E402
from ingroup.inference.inspect_engine import InspectEngine  # noqa: E402
from ingroup.inference.replay_engine import ReplayEngine  # noqa: E402
from ingroup.inference.shards import replace_file  # noqa: E402
from ingroup.inference.store import read_manifest  # noqa: E402
from ingroup.inference.transformers_engine import TransformersEngine  # noqa: E402
from ingroup.studies.biased_samaritan.stimuli import load_scenarios  # noqa: E402
from ingroup.studies.empathy_gap.stimuli import load_events  # noqa: E402
from ingroup.studies.giebench.stimuli import load_questions  # noqa: E402
from ingroup.tables import InputError, read_json, read_table, shown  # noqa: E402

PAGE = ROOT / "docs" / "trials.md"
RESULTS = ROOT / "build" / "bench" / "trials"  # a file per kind
TRIED_PATHS = ("lib", "data", "Makefile", "dodo.py")
KEPT_EVERY = 50  # trials between two writings of a kind's file
BEGIN = "<!-- the table: python bench/trials.py -->\n"
ENDINGS = ("lost", "wrong", "silent", "traceback")
SENTENCES = (InputError, EngineError, StoreError, settings.Refused)
ENDED_WELL = "well"
SEED = 45
SHARD_SIZE = 4  # trials of a shard

Trials = Iterator[tuple[str, str]]  # the words for each trial, and its ending
Result = dict[str, Any]  # of a kind: its commit, whether it is whole, and its counts


# --- how a trial ends


def ending(act: Callable[[], Any], is_right: Callable[[Any], bool] = lambda _: True) -> str:
    """Call a function, and name how the call ends.

    Parameters
    ----------
    act : callable
        The function to call, without arguments.
    is_right : callable
        Tells whether its result is right.

    Returns
    -------
    str
        `ENDED_WELL`, "wrong" or "traceback".
    """
    try:
        result = act()
    except SENTENCES as error:
        return ENDED_WELL if is_sentence(str(error)) else "traceback"
    except Exception:
        # Any other error would reach the user as a traceback.
        return "traceback"
    return ENDED_WELL if is_right(result) else "wrong"


def is_sentence(text: str) -> bool:
    """Tell whether a message is one printable line of fewer than 5,000 characters."""
    return bool(text) and text.isprintable() and len(text) < 5000


# --- stores


def write(path: Path, draw: random.Random, strangers: list[Path]) -> str:
    """Change, remove or rename a file of a store.

    Parameters
    ----------
    path : Path
        The file.
    draw : random.Random
        Source of the change.
    strangers : list of Path
        Files of the same store or of others.

    Returns
    -------
    str
        The change, in words.
    """
    content = path.read_bytes()
    position = draw.randrange(len(content))
    change = draw.choice(["flip", "cut", "zero", "grow", "remove", "swap", "rename", "empty"])
    before = content[:position]

    if change == "flip":
        path.write_bytes(with_flipped_bit(content, position, draw.randrange(8)))
    elif change == "cut":
        path.write_bytes(before)
    elif change == "zero":
        size = draw.randrange(1, 64)
        path.write_bytes(before + bytes(size) + content[position + size :])
    elif change == "grow":
        size = draw.randrange(1, 64)
        path.write_bytes(before + draw.randbytes(size) + content[position:])
    elif change == "remove":
        path.unlink()
    elif change == "swap":
        other = draw.choice(strangers)
        path.write_bytes(other.read_bytes())
        return f"{path.name} is {other.name} of {other.parent.name}"
    elif change == "rename":
        name = draw.choice(["part-00001.parquet", "part-00009.parquet", "x"])
        path.rename(path.with_name(name))
    else:
        path.write_bytes(b"")
    return f"{change} {path.name} at {position}"


def with_flipped_bit(content: bytes, position: int, bit: int) -> bytes:
    """Change one bit of the byte at a position."""
    changed = bytearray(content)
    changed[position] ^= 1 << bit
    return bytes(changed)


def files_of(folder: Path) -> list[Path]:
    """List the files of a store."""
    return sorted(file for file in folder.iterdir() if not file.name.startswith("."))


class Again(toy.Toy):
    """Engine that gives a changed store the right answers, and keeps the chats that were asked."""

    keeps_each = True

    def __init__(self):
        super().__init__(lambda chat, *_: f"reply {int(chat[0]['content']) % 11}", True)
        # All have one identity, so that each may go on with a store of another.
        self.about = {"engine": "toy", "model": "m"}
        self.chats = []

    @property
    def trials(self) -> set[int]:
        """Trials whose prompts were asked."""
        return {int(chat[0]["content"]) for chat in self.chats}

    def answer(self, conversations, sampling):
        self.chats += conversations
        return super().answer(conversations, sampling)


def store_of_24(folder: Path) -> tuple[Path, pd.DataFrame]:
    """Write a store of 24 trials, three of which failed at first.

    Return its folder and its table.
    """
    store_folder = folder / "own"
    design = toy.numbers(24)
    engine = Again()
    right_answer = engine.say
    # The first trial of each of the first three shards fails.
    failing = {str(number) for number in range(0, 3 * SHARD_SIZE, SHARD_SIZE)}

    def fail_or_answer(chat: Any, *details: Any) -> str | None:
        # A prompt of `numbers` is the number of its trial.
        if chat[0]["content"] in failing:
            return None
        return right_answer(chat, *details)

    engine.say = fail_or_answer
    toy.run(design, store_folder, engine, SHARD_SIZE)

    # The second run asks the failed trials again.
    table = toy.run(design, store_folder, Again(), SHARD_SIZE)
    return store_folder, table


def spoilt_stores(folder: Path, draw: random.Random, n: int = 520) -> Trials:
    """Change a file of a store, then run on.

    The answers have to be right, and whole answers have to stay.
    """
    original, table = store_of_24(folder)
    design = toy.numbers(24)
    other = folder / "other"
    # This is the store of another model, whose files must not pass for those of the copy.
    stranger = Again()
    stranger.about = {"engine": "toy", "model": "another"}
    toy.run(design, other, stranger, SHARD_SIZE)

    for number in range(n):
        copy = Path(shutil.copytree(original, folder / f"copy {number}"))
        path = draw.choice(files_of(copy))
        change = write(path, draw, [*files_of(original), *files_of(other)])
        engine = Again()
        how = ending(lambda: toy.run(design, copy, engine, SHARD_SIZE), table.equals)  # noqa: B023

        # A spoilt manifest may cost the whole store, any other file its own trials alone. Whole
        # answers of other shards should not be asked again.
        is_manifest = path.name == "manifest.json"
        asked_too_many = not engine.trials <= touched_trials(path)
        if how == ENDED_WELL and not is_manifest and asked_too_many:
            how = "lost"
        yield change, how
        shutil.rmtree(copy)


def touched_trials(path: Path) -> set[int]:
    """Return the trials of the shard to which a file belongs, and the trials of shard 1."""
    # `write` may give a file the name of shard 1, in place of that shard's own file.
    shards = {1}
    if path.name.startswith("part-"):
        number = path.name[len("part-") : len("part-00000")]
        shards.add(int(number))

    trials = set()
    for shard in shards:
        first = shard * SHARD_SIZE
        trials.update(range(first, first + SHARD_SIZE))
    return trials


def recorded_stores(engine: str) -> list[Path]:
    """List the recorded stores of an engine."""
    manifests = paths.RECORDINGS.glob(f"*/*/*/*@{engine}/*/manifest.json")
    return sorted(manifest.parent for manifest in manifests)


def read_store(folder: Path) -> pd.DataFrame:
    """Read all answers of a store without an engine."""
    return Store(folder, read_manifest(folder / "manifest.json")).read()


def spoilt_readings(folder: Path, draw: random.Random, stores: list[Path], n: int) -> Trials:
    """Change a file of a store, then read the store.

    A reading has to give the right answers, or one sentence.
    """
    tables = {store: read_store(store) for store in stores}
    strangers = [file for store in stores for file in files_of(store)]
    for number in range(n):
        store = draw.choice(stores)
        copy = Path(shutil.copytree(store, folder / f"copy {number}"))
        path = draw.choice(files_of(copy))
        change = write(path, draw, strangers)
        how = ending(lambda: read_store(copy), tables[store].equals)  # noqa: B023
        yield f"{change}, {store.name}", how
        shutil.rmtree(copy)


def vllm_stores(folder: Path, draw: random.Random, n: int = 700) -> Trials:
    """Change a file of a recorded store that vLLM answered, then read the store."""
    yield from spoilt_readings(folder, draw, recorded_stores("vllm"), n)


def ray_stores(folder: Path, draw: random.Random, n: int = 300) -> Trials:
    """Change a file of a store that two engines of a Ray wrote, then read the store."""
    # Without Ray the kind has no trials.
    if not find_spec("ray"):
        return
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    stores = []
    with closing(Cluster(Again, 2)) as cluster:
        # There are two stores, so that files can be exchanged between them.
        for size in (24, 32):
            design = toy.numbers(size)
            store = open_store(folder / str(size), design, cluster, toy.SAMPLING, SHARD_SIZE)
            fill(design, cluster, store, toy.SAMPLING)
            stores.append(store.folder)
    ray.shutdown()
    yield from spoilt_readings(folder, draw, stores, n)


# --- files of the user's own

# Each may break a reader: quotes and separators, no UTF-8, huge numbers, deep lists, formulas.
PIECES = [
    b'"',
    b"\t",
    b",",
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\\ud800",
    b"\x1b[2J",
    b"1e999",
    b"-1",
    b"NaN",
    b"9" * 5000,
    b"[" * 3000,
    b"{}",
    b"null",
    b"=cmd|' /C calc'!A0",
    "\u202e".encode(),
    "\u2028".encode(),
    b" " * 50,
    b"<script>",
    b"$(touch owned)",
]


def mutated_content(content: bytes, draw: random.Random) -> bytes:
    """Change the content of a file at one to three positions."""
    n_changes = draw.randrange(1, 4)
    for _ in range(n_changes):
        position = draw.randrange(len(content) + 1)
        n_removed = draw.choice([0, 1, 5, 200])
        inserted = draw.choice([b"", draw.randbytes(1), draw.choice(PIECES)])
        content = content[:position] + inserted + content[position + n_removed :]
    return content


def user_files(folder: Path, draw: random.Random, n: int = 1000) -> Trials:
    """Change a file that a user may give, then read the file.

    A reader has to succeed, or to say in one sentence what is wrong.
    """
    readers = {
        paths.SAMPLE / "narratives.tsv": lambda file: load_events(str(file)),
        paths.SAMPLE / "giebench.json": load_questions,
        paths.STIMULI / "biased_samaritan" / "scenarios.csv": load_scenarios,
        paths.SAMPLE / "giebench_sheet.csv": read_table,
        paths.MODELS / "models.csv": read_table,
        paths.MODELS / "calibrant" / "config.json": read_json,
        table_of_replies(folder): lambda file: ReplayEngine(file, "m"),
    }
    for number in range(n):
        source = draw.choice(list(readers))
        read = readers[source]
        file = folder / f"{number}{source.suffix}"
        file.write_bytes(mutated_content(source.read_bytes(), draw))
        how = ending(lambda: read(file))  # noqa: B023
        yield f"{source.name}, change {number}", how
        file.unlink()


def table_of_replies(folder: Path) -> Path:
    """Write a table of recorded replies."""
    file = folder / "replies.csv"
    rows = [("p", "50", 1), ('a "p"', "I cannot\nsay", 2), ("p", "51", 2)]
    pd.DataFrame(rows, columns=["prompt", "response", "run"]).to_csv(file, index=False)
    return file


def logs(folder: Path, draw: random.Random, n: int = 1000) -> Trials:
    """Change a log of inspect_ai, then read the log.

    A reading has to give the right replies, or one sentence. Each bit of the log is flipped, then
    further changes are drawn. `inspect_ai` writes times and random names into a log, so the bytes
    and their number differ from run to run.
    """
    good = folder / "good.eval"
    inspect_logs.write(good, 3)
    content = good.read_bytes()
    replies = replies_of(good)

    file = folder / "log.eval"
    for position, bit in product(range(len(content)), range(8)):
        file.write_bytes(with_flipped_bit(content, position, bit))
        how = ending(lambda: replies_of(file), replies.__eq__)
        yield f"bit {bit} of byte {position} of {len(content)}", how

    for number in range(n):
        file.write_bytes(mutated_content(content, draw))
        how = ending(lambda: replies_of(file), replies.__eq__)
        yield f"change {number}", how


def replies_of(file: Path) -> list[tuple[str, str | None]]:
    """List the prompts and replies of a file of recordings."""
    return [
        (recording.prompt, recording.reply.text) for recording in recordings.read_recordings(file)
    ]


# --- the command line

# Each of these may break a number, a path, a shell, a terminal or a template.
HOSTILE = [
    "",
    " ",
    "-1",
    "0",
    "1e999",
    "NaN",
    "inf",
    str(10**30),
    "9" * 5000,
    "1.5",
    "true",
    "None",
    "[]",
    "../..",
    "/dev/null",
    "/etc/passwd",
    "a;b;;c",
    ";",
    "\x00",
    "\x1b[2J\x07",
    "\ud800",
    "é",
    "\udcff",
    "\u202e",
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    "{{7*7}}",
    "%s%n",
    "<script>",
    "x" * 10**6,
    "calibrant@nobody",
    "@",
    "calibrant@transformers@vllm",
    "P9,S9,T9",
    "P0",
    "0,0",
    "1;1",
]


def parameters(folder: Path, draw: random.Random) -> Trials:
    """Give each parameter each hostile value, which has to be taken as typed or refused.

    The notebooks of a study have the same checks, so each name is tried once in each study.
    """
    # Without the cache each trial would parse the same profile.
    yaml.safe_load = cache(yaml.safe_load)
    names_tried: dict[str | None, set[str]] = defaultdict(set)
    for notebook in settings.notebooks():
        tried_in_study = names_tried[study_of(notebook)]
        names = set(defaults(notebook)) - tried_in_study
        tried_in_study |= names
        for name, value in product(sorted(names - {"RUN"}), HOSTILE):
            how = ending(
                lambda: merged_parameters(notebook, "demo", {name: value})[name],  # noqa: B023
                lambda taken: is_as_typed(taken, value),  # noqa: B023
            )
            yield f"{notebook} {name}={value[:40]!r}", how
    # Some of the values are commands that would make this file.
    yield "a file that a value names", "wrong" if Path("owned").exists() else ENDED_WELL


def is_as_typed(taken: Any, text: str) -> bool:
    """Tell whether a parameter took the value that was typed."""
    if isinstance(taken, bool):
        return taken == (text in ("1", "true"))
    if isinstance(taken, list):
        return taken == [entry.strip() for entry in text.split(";") if entry.strip()]
    if isinstance(taken, int | float):
        return taken == type(taken)(text)
    return taken == text


# Each of these may break LaTeX, a terminal, a path or a shell.
FRAGMENTS = [
    r"\input{secret}",
    "my_model_v2",
    "50%",
    "{",
    "}",
    "$x$",
    "~",
    "^",
    "#1",
    "&",
    "\\",
    "<b>",
    "--",
    "\x1b[31m",
    "\x07",
    "\u202e",
    "\n\n",
    "``",
    "?`",
    "中",
    "../",
    "$(touch owned)",
    ";rm -rf .",
    "é",
]


def injections(folder: Path, draw: random.Random, n: int = 400) -> Trials:
    """Put commands into names: into LaTeX, into a terminal, and into the name of a run's folder."""
    for number in range(n):
        n_fragments = draw.randrange(1, 6)
        text = "".join(draw.choices(FRAGMENTS, k=n_fragments))
        printed = latex.escape(text)
        yield f"LaTeX {text!r}", ENDED_WELL if is_harmless(printed) else "wrong"
        # A message may have line ends, which `shown` keeps.
        line = shown(text).replace("\n", "")
        yield f"terminal {text!r}", ENDED_WELL if line.isprintable() else "wrong"

        environment = {"MAKEFLAGS": " -- MODELS=x", "MODELS": text}
        run = ending(lambda: settings.run_name(environment), settings.is_folder_name)  # noqa: B023
        yield f"run {number} {text!r}", run


def is_harmless(printed: str) -> bool:
    """Tell whether LaTeX reads no command in a text, except commands that print one sign."""
    # The commands that end in {} go first, because {} alone goes last.
    for sign in ("textbackslash", "textasciitilde", "textasciicircum", "textless", "textgreater"):
        printed = printed.replace(f"\\{sign}{{}}", "")
    for command in latex.ESCAPES.values():
        printed = printed.replace(str(command), "")
    printed = printed.replace("{}", "")
    return not set(printed) & set("\\{}$&#^_~%")


def environments(folder: Path, draw: random.Random, n: int = 300) -> Trials:
    """Start the program that make starts first, in an odd environment.

    The program has to work, or to say one sentence.
    """
    of_make = settings.MAKE_VARIABLES | settings.COMMAND_OPTIONS | settings.FIGURE_OPTIONS
    names = [*sorted(of_make), "MODELS", "N_EVENTS"]
    for number in range(n):
        chosen = {name: draw.choice(HOSTILE) for name in draw.sample(names, 3)}
        # make writes each variable of its command line there; only the names are read from it.
        assignments = [f"{name}={len(value)}" for name, value in chosen.items()]
        environment = {**chosen, "MAKEFLAGS": " -- " + " ".join(assignments)}
        goal = draw.choice(["all", "10", "figures", "plan", "view", "compare", "ask", "report"])
        how = ending(lambda: settings.check([goal], environment))  # noqa: B023
        yield f"{goal} {number}", how

    odd = {
        "PYTHONOPTIMIZE": "2",
        "LC_ALL": "C",
        "LANG": "xx_YY",
        "HOME": "/nowhere",
        "TMPDIR": "/nowhere",
        "PYTHONPATH": "/nowhere",
        "FOREIGN": "/nowhere",
        "MAKEFLAGS": "\udcff -- A=1",
        "TZ": "Mars",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
        "COLUMNS": "-1",
        "GOALS": "10",
        "RUN": "../x",
        "INGROUP_BUILD": "/dev/null",
        "PROFILE": "\x1b",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for name, value in odd.items():
        command = [sys.executable, ROOT / "lib" / "ingroup" / "commands" / "settings.py"]
        done = subprocess.run(command, env={name: value}, capture_output=True)
        is_well = done.returncode in (0, 2) and b"Traceback" not in done.stderr
        yield f"{name}={value}", ENDED_WELL if is_well else "traceback"


# --- stimuli, kills, models, servers


def stimuli(folder: Path, draw: random.Random, n: int = 560) -> Trials:
    """Change one sign of one prompt.

    One sentence has to refuse the answers to the old prompt.
    """
    design = toy.religion(1)
    engine = toy.Toy(lambda *_: "50", model="m")
    toy.run(design, folder / "store", engine)
    for number in range(n):
        changed = with_other_prompt(design, draw.randrange(len(design)), draw)
        how = ending(
            lambda: open_store(folder / "store", changed, engine, toy.SAMPLING, 50),  # noqa: B023
            # A store that opens took the answers to the old prompt, without a word.
            lambda store: False,
        )
        if how == "wrong":
            how = "silent"
        yield f"prompt {number}", how


def with_other_prompt(design: Any, trial: int, draw: random.Random) -> Any:
    """Return the same design with one sign of one prompt changed."""
    prompt = design[trial].messages[-1]["content"]
    position = draw.randrange(len(prompt))
    # The sign beside it in Unicode.
    other_sign = chr(ord(prompt[position]) ^ 1)
    changed_prompt = prompt[:position] + other_sign + prompt[position + 1 :]

    def with_changed_prompt(block):
        def render(condition):
            *turns, last_turn = block.render(condition)
            if last_turn["content"] == prompt:
                last_turn = {**last_turn, "content": changed_prompt}
            return [*turns, last_turn]

        return toy.replace(block, render=render)

    return toy.Design(map(with_changed_prompt, design.blocks))


def kills(folder: Path, draw: random.Random, n: int = 12) -> Trials:
    """Kill a run five times, then finish the run.

    The table has to be whole, and nothing may be asked needlessly.
    """
    whole = {fire.MANY: fire.run(folder / "whole", fire.Scribe(folder / "log"), fire.MANY)}
    for number in range(n):
        # In every second store some calls fail at first, and are asked again.
        failures = number % 2
        store = folder / f"store {number}"
        log = folder / f"log {number}"
        for _ in range(5):
            engine = fire.Mortal(log, failures, draw.randint(1, 6), draw.uniform(1e-6, 0.01))
            fire.died(fire.run, store, engine, fire.MANY)
            yield f"kill of store {number}", ENDED_WELL
        try:
            fire.check_finish(store, fire.Scribe(log, failures), whole, fire.MANY)
            how = ENDED_WELL
        except AssertionError as error:
            # The check names a trial that was asked too often.
            how = "lost" if "trial" in str(error) else "wrong"
        except Exception:
            how = "traceback"
        yield f"end of store {number}", how


def records(folder: Path, draw: random.Random, n: int = 40) -> Trials:
    """Kill `make record` three times at any moment, then finish the recording.

    All answers have to be stored, and counted in one row of the model's ``asked.csv``.
    """
    right = toy.run(toy.numbers(24), folder / "right", Again(), SHARD_SIZE)
    for number in range(n):
        root = folder / f"model {number}"
        root.mkdir()
        for _ in range(3):
            # The delay is never 0, which would set no timer.
            fire.died(record_and_die, root, draw.uniform(1e-6, 0.2))
            yield f"kill of record {number}", ENDED_WELL

        job = record_slowly(root)
        log = pd.read_csv(root / "asked.csv")
        is_counted = log["prompts"].to_list() == [24]
        is_whole = stored(job).read().equals(right)
        yield f"end of record {number}", ENDED_WELL if is_counted and is_whole else "wrong"


def record_and_die(root: Path, seconds: float) -> None:
    """Record a job, and die after some seconds at any point."""
    # Nothing catches the signal, so the process dies where it is.
    signal.setitimer(signal.ITIMER_REAL, seconds)
    record_slowly(root)


def record_slowly(root: Path) -> Job:
    """Record a job of 24 prompts below a folder, and return the job."""
    record.ask = answer_slowly
    design = toy.numbers(24)
    job = Job("study", "sample", "m", "toy", "part", design, toy.SAMPLING, root=root)
    record.record(job, {}, root / "asked.csv")
    return job


def answer_slowly(jobs: list[Job], parameters: dict[str, Any]) -> None:
    """Answer one job, in a hundredth of a second per shard."""
    engine = Again()
    say = engine.say

    def say_slowly(chat: Any, *asked: Any) -> str:
        time.sleep(0.01 / SHARD_SIZE)
        return say(chat, *asked)

    engine.say = say_slowly
    (job,) = jobs
    store = open_store(job.folder, job.design, engine, toy.SAMPLING, SHARD_SIZE)
    fill(job.design, engine, store, toy.SAMPLING)


def makes(folder: Path, draw: random.Random, n: int = 10) -> Trials:
    """Kill `make all`, whose notebooks are stubs, then run the command to its end.

    Either make alone is killed, or make with all processes that it started. All tables have to be
    there, and the next `make all` has to find nothing to do.
    """
    root = clone.with_stubs(folder / "clone")
    folder_of_tables = root / "build" / "tables" / "some"
    begin = time.monotonic()
    clone.make(root, "all")
    # The kills are drawn from the time that a whole run takes.
    seconds = time.monotonic() - begin
    tables = {file.name for file in folder_of_tables.iterdir()}

    command = ["make", "-C", str(root), "all", f"PY={sys.executable}", "READY="]
    for number in range(n):
        shutil.rmtree(root / "build")
        killed = subprocess.Popen(
            command,
            env=clone.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # It gets a session of its own, so that all processes of make can be killed together.
            start_new_session=True,
        )
        time.sleep(draw.uniform(0, seconds))
        is_alone = number % 2 == 1
        if is_alone:
            killed.kill()
        else:
            os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()

        first = clone.make(root, "all", check=False)
        # Reading the log empties it, so that it then has the notebooks of the second run alone.
        clone.ran(root)
        second = clone.make(root, "all", check=False)
        written = {file.name for file in folder_of_tables.iterdir()}

        is_whole = written == tables
        is_up_to_date = clone.ran(root) == []
        succeeded = first.returncode == second.returncode == 0
        how = ENDED_WELL if is_whole and is_up_to_date and succeeded else "wrong"
        if "Traceback" in first.stderr + second.stderr:
            how = "traceback"
        yield f"make {number}, alone: {is_alone}", how


def model_folders(folder: Path, draw: random.Random, n: int = 12) -> Trials:
    """Load a model whose files are changed, or hold code.

    The model has to answer, or one sentence says what is wrong. No code of the folder may run.
    """
    owned = folder / "owned"
    code = f"open({str(owned)!r}, 'w').write('x')\n"
    for number in range(n):
        copy = Path(shutil.copytree(paths.MODELS / "calibrant", folder / f"model {number}"))
        candidates = []
        for candidate in sorted(copy.iterdir()):
            if candidate.suffix in (".json", ".safetensors"):
                candidates.append(candidate)
        file = draw.choice(candidates)
        # The trials take turns: code in the folder, a file cut short, a file of other content.
        if number % 3 == 0:
            config = json.loads((copy / "config.json").read_text("utf8"))
            config["auto_map"] = {"AutoModelForCausalLM": "evil.Evil", "AutoConfig": "evil.Evil"}
            config["model_type"] = draw.choice(["evil", config["model_type"]])
            (copy / "config.json").write_text(json.dumps(config))
            (copy / "evil.py").write_text(code)
        elif number % 3 == 1:
            content = file.read_bytes()
            n_kept = draw.randrange(len(content))
            file.write_bytes(content[:n_kept])
        else:
            file.write_text(draw.choice(["", "[]", "{}", "null", "[" * 10**5, "\x00"]))
        how = ending(lambda: one_answer(copy))  # noqa: B023
        yield f"{file.name} of model {number}", "wrong" if owned.exists() else how


def one_answer(model: Path) -> None:
    """Ask a model one prompt."""
    with closing(TransformersEngine(str(model))) as engine:
        engine.answer([toy.religion(1)[0].messages], Sampling(max_tokens=1))


KEY = "sk-a-key-that-must-not-be-kept"


def spoilt_body(text: str, draw: random.Random) -> tuple[int, dict[str, str], bytes]:
    """Draw the reply of a hostile server.

    One reply in six is the right answer.
    """
    body = json.dumps(completion(text)).encode()
    odd = [None, 7, [], {}, "\x1b[2J", "\ud800", KEY, "x" * 10**5, "</script><script>"]
    attack = draw.randrange(6)
    if attack == 0:
        return 200, JSON, mutated_content(body, draw)
    if attack == 1:
        odd_text = draw.choice(odd)
        reason = draw.choice(["stop", "length", "odd", None, 3])
        return ok(completion(odd_text, reason))
    if attack == 2:
        status = draw.choice([400, 401, 404, 413, 500, 503])
        return status, JSON, mutated_content(body, draw)
    if attack == 3:
        # This small body unpacks to a megabyte of zeros.
        return 200, JSON | {"Content-Encoding": "gzip"}, gzip.compress(bytes(10**6))
    if attack == 4:
        # Eight bytes are repeated, which are no JSON.
        return 200, JSON, struct.pack(">Q", draw.getrandbits(64)) * 8
    return 200, JSON, body


def servers(folder: Path, draw: random.Random, n: int = 300) -> Trials:
    """Ask a hostile server.

    A failure must have a reason, and an answer must have no reason. No file may hold the key.
    """
    # Most replies are bad on purpose, so waiting before the next attempt would take most of the
    # time.
    server_responses.FIRST_PAUSE = server_responses.LONGEST_PAUSE = 0.01
    inspect_engine.ATTEMPTS = 2
    os.environ["OPENAI_API_KEY"] = KEY
    design = toy.numbers(n)
    server = FakeOpenAI(lambda call, before: spoilt_body(text_of(call.request["messages"]), draw))
    with server.running() as address:
        try:
            table = toy.run(design, folder / "store", InspectEngine("fake", f"{address}/v1"), 64)
        except SENTENCES as error:
            yield "the run", ENDED_WELL if is_sentence(str(error)) else "traceback"
            return
        except Exception as error:
            yield f"the run: {error!r}", "traceback"
            return
    for row in table.itertuples():
        # A failure has a reason, and an answer has none.
        is_named = (row.finish_reason == "failed") == (row.error != "")
        yield f"prompt {row.trial}", ENDED_WELL if is_named else "silent"
    # The hostile server repeats the key in some of its answers.
    written = b"".join(file.read_bytes() for file in files_of(folder / "store"))
    has_key = KEY.encode() in written.replace(b'"', b"")
    yield "the key in a file", "wrong" if has_key else ENDED_WELL


# --- the table

KINDS: dict[str, tuple[str, Callable[..., Trials]]] = {
    "injections": ("commands in names: LaTeX, terminal, folders", injections),
    "vllm": ("files of recorded vLLM stores changed, then read", vllm_stores),
    "stimuli": ("one sign of a prompt changed", stimuli),
    "logs": ("logs of inspect_ai changed", logs),
    "environments": ("odd environments and variables", environments),
    "stores": ("files of a store changed, then run on", spoilt_stores),
    "files": ("files of the user's own changed", user_files),
    "servers": ("replies of a hostile server", servers),
    "kills": ("a run killed five times, then ended", kills),
    "records": ("`make record` killed three times, then ended", records),
    "makes": ("`make all`, with stubs, killed and made again", makes),
    "ray": ("files of stores that a Ray wrote changed, then read", ray_stores),
    "models": ("hostile model folders", model_folders),
    "parameters": ("hostile values of parameters", parameters),
}


def try_kind(kind: str) -> Result:
    """Try one kind, and keep its result.

    Parameters
    ----------
    kind : str
        A key of `KINDS`.

    Returns
    -------
    Result
        The result, as `keep` writes it.
    """
    _, trials = KINDS[kind]
    # A process that is to be killed is a fork of one that imported this file, and begins at once.
    os.environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)
    fire.FORKS.set_forkserver_preload(["trials"])

    counts: Counter[str] = Counter()
    # Files lie in memory where there is such a folder, because a disk would sync each of them.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    scratch = tempfile.TemporaryDirectory(prefix="trials-", dir=memory)
    # The messages of runs on stderr are not part of a trial.
    with scratch as folder, redirect_stderr(io.StringIO()):
        for change, how in trials(Path(folder), random.Random(SEED)):
            counts.update(["trials", how])
            if how != ENDED_WELL:
                print(f"{kind}: {how}: {shown(change)}", flush=True)
            if counts["trials"] % KEPT_EVERY == 0:
                keep(kind, counts, whole=False)
    return keep(kind, counts, whole=True)


def keep(kind: str, counts: Counter[str], whole: bool) -> Result:
    """Write the counts of a kind so far, with the commit.

    Parameters
    ----------
    kind : str
        A key of `KINDS`.
    counts : Counter
        How many trials there were (``trials``), and how many had each ending.
    whole : bool
        Whether the kind came to its end.

    Returns
    -------
    Result
        The written result.
    """
    result = {"commit": commit(), "whole": whole, **counts}
    RESULTS.mkdir(parents=True, exist_ok=True)
    replace_file(RESULTS / f"{kind}.json", json.dumps(result).encode())
    return result


def read_results() -> dict[str, Result]:
    """Read the results that `keep` wrote, in the order of the kinds."""
    results = {}
    for kind in KINDS:
        file = RESULTS / f"{kind}.json"
        if file.exists():
            results[kind] = json.loads(file.read_text())
    return results


@cache
def commit() -> str:
    """Name the last commit of the tried files, followed by "-dirty" if a file has changed since."""
    command = ["git", "log", "-1", "--format=%h", "--abbrev=12", "--", *TRIED_PATHS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *TRIED_PATHS], cwd=ROOT)
    return done.stdout.strip() + ("-dirty" if changed.returncode else "")


def table(results: dict[str, Result]) -> str:
    """Write the results as a table of Markdown, with a last row of sums."""
    lines = [f"| what is tried | trials | {' | '.join(ENDINGS)} | commit |"]
    lines.append(f"| --- |{' ---: |' * 5} --- |")
    total: Counter[str] = Counter()
    for kind, result in results.items():
        name, _ = KINDS[kind]
        if not result["whole"]:
            name += " (stopped)"
        lines.append(row(name, result))
        for column in ("trials", *ENDINGS):
            total[column] += result.get(column, 0)
    lines.append(row("all", {**total, "commit": ""}))
    return "\n".join(lines) + "\n"


def row(name: str, result: Result) -> str:
    """Write one row of the table."""
    cells = [f"{result.get(column, 0):,}" for column in ("trials", *ENDINGS)]
    return f"| {name} | {' | '.join(cells)} | {result['commit']} |"


def write_page(results: dict[str, Result]) -> None:
    """Write the table into the page, with the date."""
    head, _, _ = PAGE.read_text("utf8").partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\nOn {datetime.now(UTC).date()}:\n\n{table(results)}", "utf8")


def main(kinds: list[str]) -> int:
    """Try the named kinds, or else the kinds that lack a result.

    The page is written only if no kind is named.

    Returns
    -------
    int
        1 where a trial of a kind ended badly.
    """
    # `commit` keeps what it finds now, as files may change while kinds are tried.
    print(f"at commit {commit()}")
    before = read_results()
    for kind in kinds or KINDS:
        result = before.get(kind)
        # A kind that is named is tried again, even if its result was kept.
        if kinds or not is_of_now(result):
            result = try_kind(kind)
        name, _ = KINDS[kind]
        print(row(name, result), flush=True)

    results = read_results()
    if not kinds:
        write_page(results)
    n_bad = 0
    for kind in kinds or KINDS:
        for bad_ending in ENDINGS:
            n_bad += results[kind].get(bad_ending, 0)
    return 1 if n_bad else 0


def is_of_now(result: Result | None) -> bool:
    """Tell whether a kept result is whole and of this commit."""
    return result is not None and result["whole"] and result["commit"] == commit()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
