"""The plan of a run before it starts: prompts, tokens, shards, hours, price and power.

A plan loads a tokenizer and no model, and leaves every file unchanged. If a corpus is not fetched,
the sample's texts are repeated up to the size of the corpus.
"""

import argparse
import math
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from huggingface_hub import try_to_load_from_cache

from ingroup import corpora, models, paths
from ingroup.commands import settings
from ingroup.commands.run_parameters import (
    command_line,
    jobs_of,
    merged_parameters,
    parameters_of,
    study_of,
)
from ingroup.contract import Unfinished, module_of
from ingroup.inference import (
    EngineError,
    Job,
    Store,
    StoreError,
    answered_jobs,
    find_model,
    jobs_by_model,
    rated,
)
from ingroup.inference.cost import (
    BATCH_PRICE_SHARE,
    CHARACTERS_PER_TOKEN,
    CharacterEstimate,
    Prices,
    budget_of,
    max_output_tokens,
    money,
    prices_of,
)
from ingroup.inference.engine import Bos, SystemRole
from ingroup.inference.generate import SHARD_SIZE, manifest_entries
from ingroup.inference.job import copy_recorded, live_sentences
from ingroup.inference.prompts import Prompter, estimate_tokens
from ingroup.inference.store import read_manifest
from ingroup.stats.power import POWER
from ingroup.synthesis import PlannedTest
from ingroup.tables import InputError

N_SAMPLED_TRIALS = 1_000  # trials that are tokenized, over all lines of a plan


def _is_fetched(corpus: str) -> bool:
    """Tell whether every file of a corpus is on this machine, without a comparison of contents."""
    folder = paths.RAW / corpus
    return all((folder / name).is_file() for name in corpora.CORPORA[corpus].files)


def stand_ins(folder: Path) -> dict[str, str]:
    """Write a stand-in for each corpus that is not fetched.

    Parameters
    ----------
    folder : Path
        Where the files are written.

    Returns
    -------
    dict of str to str
        The path of each stand-in, by the name of its corpus. A stand-in repeats the items of the
        sample until there are as many as the corpus has.
    """
    files = {}
    for corpus, about in corpora.CORPORA.items():
        if "sample" not in vars(about) or _is_fetched(corpus):
            continue

        source = paths.SAMPLE / about.sample
        file = str(folder / corpus) + source.suffix
        if source.suffix == ".json":
            items = _repeat_rows(pd.read_json(source, orient="index"), about.size)
            items.to_json(file, orient="index")
        else:
            items = _repeat_rows(pd.read_table(source), about.size)
            # Repeated items need ids of their own, as two events of one emotion and id are refused.
            items["text_id"] = items.index
            items.to_csv(file, sep="\t", index=False)
        files[corpus] = file
    return files


def _repeat_rows(items: pd.DataFrame, size: int) -> pd.DataFrame:
    """Repeat rows in their order until there are `size` of them, numbered from 0."""
    positions = np.arange(size) % len(items)
    return items.take(positions).reset_index(drop=True)


def group_into_lines(notebook: str, jobs: list[Job]) -> dict[str, list[Job]]:
    """Group the jobs of a notebook into the lines of a plan.

    Parameters
    ----------
    notebook : str
        The name of a study's first notebook.
    jobs : list of Job
        Its jobs.

    Returns
    -------
    dict of str to list of Job
        The jobs of each line by the line's name. They share model, mode and design.
        Jobs that only read stored answers are left out. If their answers are not recorded, their
        ``live`` jobs take their place.
    """
    alike = defaultdict(list)
    for job in jobs:
        if job.engine == models.STORED:
            if job.live is None or answered_jobs([job]):
                continue
            job = job.live
        # Answers that are copied from recorded ones count as stored.
        copy_recorded(job)
        # Jobs of a model with the same prompts share one design, so its identity is enough.
        key = (job.model, job.mode, id(job.design))
        alike[key].append(job)

    lines = {}
    for of_line in alike.values():
        name = _line_name(notebook, of_line)
        # Two lines may share all their labels; the part of the study tells them apart.
        if name in lines:
            name = f"{name} {of_line[0].part}"
        lines[name] = of_line
    return lines


def missing_recordings(notebook: str, jobs: list[Job]) -> list[str]:
    """Name the models with missing recordings that a run would read.

    Parameters
    ----------
    notebook : str
        The name of a study's first notebook.
    jobs : list of Job
        Its jobs.

    Returns
    -------
    list of str
        A sentence for each model. It says how to ask the model, if a package carries its weights.
        Answers that the run asks live are not meant.
    """
    wanted = [job for job in rated(jobs) if job.engine == models.STORED]

    sentences = []
    for model, of_model in jobs_by_model(wanted).items():
        only_read = [job for job in of_model if job.live is None]
        n_lacking = len(only_read) - len(answered_jobs(only_read))
        if not n_lacking:
            continue

        sentence = (
            f"{models.label(model)}: {n_lacking} of {len(of_model)} parts of {notebook} are not "
            "recorded, and will be left out"
        )
        remedy = models.how_to_ask(model)
        if remedy:
            sentence += f" ({remedy} asks them)"
        sentences.append(f"{sentence}.")
    return sentences


def _line_name(notebook: str, jobs: list[Job]) -> str:
    """Name a line by its notebook, its model, and the labels that all of its jobs share."""
    first = jobs[0]
    words = [notebook[:2], first.model]
    for label in first.labels.items():
        if all(label in job.labels.items() for job in jobs):
            words.append(str(label[1]))

    if first.is_scored:
        words.append("scored")
    if len(jobs) > 1:
        words.append(f"x {len(jobs)}")
    return " ".join(words)


@cache
def load_prompter(model: str, engine: str, system: SystemRole, bos: Bos) -> Prompter | str:
    """Load the renderer and tokenizer of a model's prompts, without the model's weights.

    Parameters
    ----------
    model : str
        Name or folder of the model.
    engine : str
        An engine that loads the model itself, or ``"replay"``.
    system, bos : str
        The parameters SYSTEM and BOS of a notebook.

    Returns
    -------
    Prompter or str
        The prompts as the engine renders them, or a clause that says why this is impossible.
    """
    if engine == "replay":
        return "with ENGINE=replay no model is asked"
    # `find_model`, below, would fetch and make the weights.
    if models.folder(model) is None and model in models.packaged_models():
        return f"the weights of {model} are not here, make model makes them"

    # This takes seconds to import, and only some commands need it.
    from transformers import AutoTokenizer

    from ingroup.inference.weights import Weights

    try:
        files = Weights(find_model(model), tokenizer_alone=True)
        tokenizer = files.load(AutoTokenizer.from_pretrained)
        return Prompter(tokenizer, system, bos)
    except EngineError as error:
        return str(error).rstrip(".")


def _tokenizer_folder(model: str) -> Path | None:
    """Find the folder of a model's tokenizer on this machine, or return None."""
    if folder := models.folder(model):
        return folder

    entry = models.find(model)
    if entry is None or not entry.hub_id:
        return None

    file = try_to_load_from_cache(entry.hub_id, "tokenizer_config.json")
    return Path(file).parent if isinstance(file, str) else None


@cache
def load_counter(model: str) -> Prompter | CharacterEstimate:
    """Load the counter of prompt tokens for the model of a server.

    Parameters
    ----------
    model : str
        Name of the model, as a run has it.

    Returns
    -------
    Prompter or CharacterEstimate
        The model's tokenizer. If it is missing or cannot be loaded, an estimate by characters.
    """
    folder = _tokenizer_folder(model)
    if folder is None:
        return CharacterEstimate()

    # This takes seconds to import, and only some commands need it.
    from transformers import AutoTokenizer

    from ingroup.inference.weights import Weights

    try:
        return Prompter(Weights(str(folder)).load(AutoTokenizer.from_pretrained))
    except EngineError:
        return CharacterEstimate()


def count_stored_trials(
    job: Job, prompter: Prompter | CharacterEstimate | str
) -> tuple[list[int], str]:
    """Count the trials of each shard that a job has stored.

    Only names and manifest.json are read, so a damaged shard counts as done. Versions, dtype and
    the hash of weights, which only a started engine knows, are not compared.

    Parameters
    ----------
    job : Job
        The job, whose answers may be stored.
    prompter : Prompter, CharacterEstimate or str
        From `load_prompter` or `load_counter`. The identity of a `Prompter` is compared with the
        manifest, except for a server's model.

    Returns
    -------
    trials : list of int
        The number of trials of each stored shard. Empty if the stored answers are to another job.
    refusal : str
        A sentence that says why a run cannot go on with the stored answers, or "" where it can.
    """
    expected = {"engine": job.engine, **manifest_entries(job.design, job.sampling, SHARD_SIZE)}
    if isinstance(prompter, Prompter) and job.engine not in models.SERVERS:
        expected |= prompter.identity()
    # Its prompts still hold stand-ins, whose fingerprint says nothing.
    if not job.settled:
        del expected["prompts"]

    file = job.folder / "manifest.json"
    try:
        manifest = read_manifest(file) if file.exists() else {}
        # Entries that only the engine knows are taken from the manifest, and so never differ.
        store = Store(job.folder, manifest | expected)
    except StoreError as error:
        return [], f"{error}."

    trials = []
    for shard in store.files():
        first, stop = store.bounds(shard)
        trials.append(stop - first)
    return trials, ""


def power(
    notebook: str, parameters: Mapping[str, Any], answered: Mapping[str, Any] | None = None
) -> list[str]:
    """State the smallest effects that the reported tests of a study can find.

    Parameters
    ----------
    notebook : str
        The name of a study's first notebook.
    parameters : mapping
        The parameters of the planned run.
    answered : mapping, optional
        The parameters of a run whose stored answers give the spread. By default the parameters of
        the default run.

    Returns
    -------
    list of str
        One sentence per test (:class:`ingroup.synthesis.PlannedTest`). It names the smallest effect
        that most runs (`POWER`) find, at the level at which the study tests.

    Notes
    -----
    The spread is that of the answers of the run's first real model, or of its first model.
    """
    recorded = merged_parameters(notebook, "demo", {}) if answered is None else answered
    names = [models.split_entry(entry)[0] for entry in recorded["MODELS"]]
    real = [name for name in names if not models.is_calibrant(name)]
    model = [*real, *names][0]
    group_profile = module_of(str(study_of(notebook)), "group_profile", "power")

    tests = group_profile.power(parameters, recorded, model)
    label = Path(model).name
    return [f"{notebook[:2]} {_power_sentence(test, label)}" for test in tests]


def _power_sentence(test: PlannedTest, model: str) -> str:
    """State the smallest effect that a test finds, given the spread of a model's stored answers."""
    # A single item has no spread.
    if test.n < 2:
        return f"finds nothing: {test.n} {test.items}, expected at least 2."

    items = f"with {test.n:,} {test.items}"
    floor = f" {test.floor}" if test.floor else ""
    if math.isinf(test.smallest):
        return f"{items} cannot find an effect ({test.name}).{floor}"

    smallest = test.smallest * test.spread
    return (
        f"{items} finds {smallest:,.2g} {test.effect} in {POWER:.0%} of the runs "
        f"({test.name} at {test.level:.2g}; "
        f"{test.smallest:.2g} standard deviations of {test.spread:.2g}, "
        f"as the stored answers of {model} have it).{floor}"
    )


def duration(seconds: float) -> str:
    """Write a duration as days, hours, minutes and seconds, rounded up to whole seconds.

    Parameters
    ----------
    seconds : float
        The duration, not negative.

    Returns
    -------
    str
        E.g. ``"1 day, 2:00:00"``.
    """
    return str(timedelta(seconds=math.ceil(seconds)))


def plan_table(lines: pd.DataFrame, rate: float | None) -> str:
    """Write the lines of a plan and their total as aligned text.

    Parameters
    ----------
    lines : DataFrame
        One row per line, with ``trials``, ``answered`` trials, ``shards``, ``done`` shards, prompt
        ``tokens`` and their standard ``error`` (NaN where they are not known).
    rate : float or None
        Prompts per second, above 0. None where the rate is unknown.

    Returns
    -------
    str
        A header, the lines and their total. The total of tokens is unknown if the tokens of a line
        are, and times are unknown without a rate.
    """
    total = lines.sum(skipna=False).rename("total")
    # Errors of independent samples add as squares.
    total["error"] = math.hypot(*lines.error)
    rows = pd.concat([lines, total.to_frame().T])

    per_prompt = rows[["tokens", "error"]].div(rows.trials, axis=0).map("{:,.1f}".format)
    whole = rows.map("{:,.0f}".format)
    shards_left = rows.shards - rows.done
    trials_left = rows.trials - rows.answered

    text = whole[["trials"]].copy()
    text["tokens a prompt"] = per_prompt.tokens + " ± " + per_prompt.error
    text["prompt tokens"] = whole.tokens + " ± " + whole.error
    text["shards done"] = whole.done
    text["to do"] = shards_left.map("{:,.0f}".format)
    text["time to go"] = "unknown"
    if rate is not None:
        text["time to go"] = (trials_left / rate).map(duration)
    return _aligned(text.replace("nan ± nan", "unknown"))


def _aligned(text: pd.DataFrame) -> str:
    """Write a table as aligned text, with a wider gap before each name than pandas leaves."""
    widths = text.columns.str.len() + 1
    return text.to_string(col_space=widths.tolist())


def bill(job: Job, row: Mapping[str, float], its_prices: Prices, new_stores: int) -> dict[str, Any]:
    """Estimate the prompts left to ask of a server in one line of a plan, and their highest cost.

    Parameters
    ----------
    job : Job
        One of the line's jobs, which are alike.
    row : mapping
        ``trials``, ``answered`` and prompt ``tokens`` of all jobs of the line.
    its_prices : Prices
        Prices per million tokens.
    new_stores : int
        Jobs that have no answers yet. The first prompt of each new store goes alone, at the whole
        price.

    Returns
    -------
    dict
        ``model``, number of ``prompts``, ``prompt tokens``, ``reply tokens`` (the most possible),
        and the most that they cost: the ``price``, and the price ``in batches``. Both prices are
        NaN without prices.
    """
    left = row["trials"] - row["answered"]
    # Prompts that are left are taken to be as long as the others.
    prompt_tokens = row["tokens"] * left / row["trials"]
    reply_tokens = max_output_tokens(job.sampling) * left
    price = math.nan
    if its_prices.are_given:
        price = its_prices.cost(prompt_tokens, reply_tokens)
    alone = price * new_stores / max(left, 1)

    return {
        "model": job.model,
        "prompts": left,
        "prompt tokens": prompt_tokens,
        "reply tokens": reply_tokens,
        "price": price,
        "in batches": alone + (price - alone) * BATCH_PRICE_SHARE,
    }


def _bill_table(bills: list[dict[str, Any]]) -> str:
    """Write tokens and price of the prompts that are left for each server model as aligned text."""
    # With min_count an unknown price stays unknown; a sum of NaN alone would be 0.
    by_model = pd.DataFrame(bills).groupby("model", sort=False).sum(min_count=1)
    if len(by_model) > 1:
        by_model.loc["all servers"] = by_model.sum(min_count=1)

    counts = ["prompts", "prompt tokens", "reply tokens"]
    text = by_model[counts].map("{:,.0f}".format)
    text["reply tokens"] = "at most " + text["reply tokens"]
    for column in ("price", "in batches"):
        text[column] = "at most " + by_model[column].map(money)

    lines = _aligned(text.replace("at most nan", "unknown").rename_axis(None))
    if by_model.price.isna().all():
        return f"{lines}\nThe price is unknown: set PRICE_IN and PRICE_OUT (per million tokens)."
    return (
        f"{lines}\nThe price is that of PRICE_IN and PRICE_OUT; batches (BATCH) cost half of it, "
        "but for the first prompt of each store."
    )


class _Line(NamedTuple):
    """One line of a plan."""

    numbers: dict[str, float]  # a row of `plan_table`
    notes: list[str]  # sentences on how its tokens were counted
    refusals: list[str]  # sentences on stored answers that a run cannot go on with
    bill: dict[str, Any] | None  # for a server's model


def plan(notebooks: Mapping[str, Mapping[str, Any]], rate: float | None = None) -> str:
    """Write the plan of some notebooks.

    Parameters
    ----------
    notebooks : mapping of str to mapping
        The checked parameters of each notebook, by its name.
    rate : float, optional
        Prompts per second. Without it the plan says no times, because a rate depends on the model,
        the machine and the mode.

    Returns
    -------
    str
        The lines and their total (`plan_table`), how many prompts are left and how long they take,
        the price where a server is asked (`_bill_table`), and notes.
    """
    jobs_by_line = {}
    lacking = []
    live = []
    counted: set[Path] = set()
    for name, parameters in notebooks.items():
        jobs, problem = _jobs_left(name, parameters, counted)
        lacking += problem
        jobs_by_line[name] = group_into_lines(name, jobs)
        lacking += missing_recordings(name, jobs)

        planned = set(chain(*jobs_by_line[name].values()))
        live += [job.live for job in jobs if job.live in planned]

    n_lines = sum(map(len, jobs_by_line.values()))
    if n_lines == 0:
        return "\n".join(["Nothing is asked: stored answers of these models are read.", *lacking])

    # The standard error of a line needs two trials at least.
    sample_size = max(2, N_SAMPLED_TRIALS // n_lines)
    rng = np.random.default_rng(0)

    rows = {}
    bills = []
    notes = []
    refusals = []
    for notebook, parameters in notebooks.items():
        for name, jobs in jobs_by_line[notebook].items():
            line = _plan_line(jobs, parameters, sample_size, rng)
            rows[name] = line.numbers
            notes += line.notes
            refusals += line.refusals
            if line.bill:
                bills.append(line.bill)

    numbers = pd.DataFrame.from_dict(rows, "index")
    parts = [plan_table(numbers, rate), "", _headline(numbers, rate)]
    if bills:
        parts += ["", _bill_table(bills), ""]

    notes += refusals[:3]
    if len(refusals) > 3:
        notes.append(f"So it is with {len(refusals) - 3} more folders.")
    notes += [f"{sentence}." for sentence in live_sentences(live, "will be asked live")]
    notes += lacking
    # Each sentence stands once, in the order of its first line.
    parts += dict.fromkeys(notes)
    return "\n".join(parts)


def _jobs_left(
    notebook: str, parameters: Mapping[str, Any], counted: set[Path]
) -> tuple[list[Job], list[str]]:
    """List a notebook's jobs whose addresses are not in ``counted``, and add the addresses there.

    If a study's further notebook would stop, return a sentence and no job.
    """
    try:
        jobs = jobs_of(notebook, parameters)
    except InputError as error:
        # A study's further notebook stops alone; without its first one there is no plan.
        if notebook in settings.first_notebooks():
            raise
        return [], [f"{notebook} will stop: {error}."]

    # A study's notebooks share most of their answers.
    left = [job for job in jobs if job.address not in counted]
    counted.update(job.address for job in left)
    return left, []


def _plan_line(
    jobs: list[Job], parameters: Mapping[str, Any], sample_size: int, rng: np.random.Generator
) -> _Line:
    """Plan the jobs of one line, which are alike, and count their stored answers."""
    first = jobs[0]
    prompter = _prompter(first, parameters)
    estimate, notes = _estimate(first, prompter, sample_size, rng)
    if not first.settled:
        notes.append("Texts that are still to be written are counted with stand-ins.")

    n_trials = len(first.design)
    estimate |= {"trials": n_trials, "shards": math.ceil(n_trials / SHARD_SIZE)}
    # The jobs of a line have one design, so one estimate serves all of them.
    numbers = {name: value * len(jobs) for name, value in estimate.items()}
    numbers |= {"answered": 0, "done": 0}
    refusals = []
    new_stores = 0
    for job in jobs:
        trials_done, refusal = count_stored_trials(job, prompter)
        numbers["answered"] += sum(trials_done)
        numbers["done"] += len(trials_done)
        new_stores += not trials_done
        if refusal:
            refusals.append(refusal)

    price = None
    if first.engine in models.SERVERS:
        price = bill(first, numbers, prices_of(parameters), new_stores)
    return _Line(numbers, notes, refusals, price)


def _prompter(job: Job, parameters: Mapping[str, Any]) -> Prompter | CharacterEstimate | str:
    """Load the counter of a job's prompt tokens, by `load_counter` or `load_prompter`."""
    if job.engine in models.SERVERS:
        return load_counter(job.loaded)
    # A study that fixes how a system turn is rendered overrides the run.
    system = job.options.get("system", parameters.get("SYSTEM"))
    return load_prompter(job.loaded, job.engine, system, parameters["BOS"])


def _estimate(
    job: Job,
    prompter: Prompter | CharacterEstimate | str,
    sample_size: int,
    rng: np.random.Generator,
) -> tuple[dict[str, float], list[str]]:
    """Estimate the prompt tokens of one job and their standard error, with notes on the method."""
    if isinstance(prompter, str):
        unknown = {"tokens": math.nan, "error": math.nan}
        return unknown, [f"Prompt tokens are unknown: {prompter}."]

    estimate = estimate_tokens(job.design, prompter, sample_size, rng)
    notes = [
        f"Tokens are counted on up to {sample_size:,} random trials a line, ± one standard error."
    ]
    if isinstance(prompter, CharacterEstimate):
        notes.append(
            f"Prompt tokens of {job.model} are estimated from {CHARACTERS_PER_TOKEN} characters a "
            "token: its tokenizer is not here."
        )
    return estimate, notes


def _headline(numbers: pd.DataFrame, rate: float | None) -> str:
    """State how many prompts are left and how long they take."""
    trials, answered, shards = numbers[["trials", "answered", "shards"]].sum()
    left = trials - answered
    if not left:
        return f"Nothing is left to ask: all {shards:,} shards are stored."

    of_all = f" of {trials:,}" if answered else ""
    asked_sentence = f"{left:,}{of_all} prompts are to be asked"
    if rate is None:
        return (
            f"{asked_sentence}. The time is unknown, as no rate of these models on this machine is "
            "known: RATE=<prompts a second> computes it. Each progress bar of a short run "
            "(make 10 N_EVENTS=2) ends with your rate; docs/performance.md and docs/running.md "
            "have those of other models."
        )
    return f"{asked_sentence}: {duration(left / rate)} at {rate:,.10g} prompts a second."


def _asking_notebooks() -> list[str]:
    """List the notebooks of studies, which are the notebooks that ask models."""
    return [name for name in settings.notebooks() if study_of(name)]


def _print_power(notebooks: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the smallest effects that the tests of each study can find.

    The tests of a study are the tests of its first notebook.
    """
    for name, parameters in notebooks.items():
        if name not in settings.first_notebooks():
            continue
        try:
            sentences = power(name, parameters)
        except Unfinished as error:
            # The study's prompts are counted even so.
            sentences = [f"{name[:2]} cannot say what its tests find: {error}."]
        print(*sentences, sep="\n")


def _print_plan(names: list[str], options: argparse.Namespace) -> None:
    """Print the plan, the power of its tests, and the corpora that are not fetched."""
    planned = _asking_notebooks()
    for name in names:
        if name not in planned:
            raise InputError(f"there is no plan of {name}, only of {', '.join(planned)}")
    # Digits with at most one point, and a digit above 0 among them.
    if not re.fullmatch(r"(?=.*[1-9])\d*\.?\d*", options.rate or "1"):
        raise InputError(
            f"RATE must be prompts per second, a number above 0, found {options.rate!r}"
        )
    rate = float(options.rate) if options.rate else None

    with TemporaryDirectory() as folder:
        instead = stand_ins(Path(folder))
        values = {}
        for name in names:
            values[name] = parameters_of(name, options, instead=instead)
            # This refuses a cost limit without prices.
            budget_of(values[name])
        print(plan(values, rate))
        _print_power(values)

    # Only corpora that a notebook of this plan reads are worth a sentence.
    used: set[str] = set()
    for parameters in values.values():
        used.update(map(str, parameters.values()))
    for corpus, file in instead.items():
        if file in used:
            n_items = corpora.CORPORA[corpus].size
            print(
                f"{corpus} is not here (make data): its {n_items:,} items are counted with the "
                "sample's texts."
            )


def main(arguments: list[str] | None = None) -> int:
    """Plan the notebooks that the command line names.

    Parameters
    ----------
    arguments : list of str, optional
        The command line; by default that of this program.

    Returns
    -------
    int
        The exit status: 0 when the plan is printed, 2 for a wrong parameter.
    """
    parser = command_line(__doc__)
    parser.add_argument("notebooks", nargs="*", help="all of a run, unless named")
    parser.add_argument("--rate", metavar="PROMPTS_A_SECOND")
    options = parser.parse_args(arguments)
    names = options.notebooks or _asking_notebooks()
    options.shared |= len(names) > 1

    try:
        _print_plan(names, options)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
