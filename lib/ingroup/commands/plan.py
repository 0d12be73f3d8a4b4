"""What a run would ask, before anything starts: prompts, tokens, shards, hours.

``python -m ingroup.commands.plan 10_empathy_gap --profile full --set MODEL=... [--rate N]`` is what
``make plan`` calls. It loads a tokenizer and no model, and neither makes nor moves a file.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ingroup import corpora
from ingroup.commands.parameters import command_line, converted, parameters_of
from ingroup.design import Design
from ingroup.inference.engine import EngineError
from ingroup.inference.generation import SHARD_SIZE, find_model, response_folder
from ingroup.inference.prefix import BLOCK_SIZE, tokens
from ingroup.inference.prompts import Prompter
from ingroup.inference.store import FORMAT, StoreError, read_manifest
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import rewriting
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.tables import InputError

SAMPLE = 1_000  # trials that are tokenized, over all parts of a plan
SEED = 0  # of their draw
RATE = 1_000.0  # prompts a second; an assumption, and the output says so


class Part(NamedTuple):
    """What one store answers: a model, what it is asked, the design, the store's folder."""

    model: str
    name: str
    design: Design
    folder: Path
    settled: bool = True  # False where texts of the design are still to be written


@dataclass(frozen=True)
class Row:
    """One line of a plan; rows can be added.

    Attributes
    ----------
    name : str
        What is asked of whom.
    trials, trials_to_do : int
        Prompts of the design, and those of shards that are not stored.
    shards, shards_to_do : int
        The same in files.
    tokens, error, saved : float
        Prompt tokens of all trials, their standard error, and how many of them a prefix cache can
        save; NaN where unknown.
    """

    name: str
    trials: int
    trials_to_do: int
    shards: int
    shards_to_do: int
    tokens: float = math.nan
    error: float = math.nan
    saved: float = math.nan


def total(rows: Sequence[Row]) -> Row:
    """The sum of all rows; their errors are independent and add as squares."""
    added = ("trials", "trials_to_do", "shards", "shards_to_do", "tokens", "saved")
    sums = {name: sum(getattr(row, name) for row in rows) for name in added}
    return Row("total", error=math.hypot(*(row.error for row in rows)), **sums)


def stored(folder: Path, expected: Mapping[str, Any]) -> tuple[set[int], str]:
    """Numbers of the shards in a folder, and what keeps a run from going on with them.

    Only names are read, and manifest.json: a damaged shard or a failed call counts as done until
    a run reads it, and what only a started engine knows (versions, dtype, hash of weights) is not
    compared.

    Returns
    -------
    set of int
        Empty where the folder answers something else.
    str
        One sentence, empty where all is well.
    """
    if not folder.is_dir():
        return set(), ""
    found = (re.fullmatch(r"part-(\d{5,})\.parquet", file.name) for file in folder.iterdir())
    shards = {int(match[1]) for match in found if match}
    if not shards:  # a manifest that no answer follows is replaced
        return set(), ""
    file = folder / "manifest.json"
    if not file.exists():
        return set(), f"{folder} holds shards but no manifest.json; move it away."
    try:
        there = read_manifest(file)
    except StoreError as error:
        return set(), f"{error}."
    for name, value in expected.items():
        if there.get(name) != value:
            return set(), (
                f"{folder} holds answers with {name} {there.get(name)!r}, this run would ask with "
                f"{name} {value!r} and be refused: move that folder away or set it back."
            )
    return shards, ""


def row(
    part: Part,
    engine: str,
    prompter: Prompter | None,
    size: int,
    rng: np.random.Generator,
    block_size: int = BLOCK_SIZE,
) -> tuple[Row, str]:
    """One line of a plan, and the sentence of :func:`stored`; no tokens without a prompter."""
    trials = len(part.design)
    shards = -(-trials // SHARD_SIZE)
    expected = {"engine": engine, "trials": trials, "shard_size": SHARD_SIZE, "format": FORMAT}
    expected |= prompter.identity() if prompter else {}
    if part.settled and part.folder.exists():  # a fingerprint reads all texts
        expected["prompts"] = part.design.fingerprint
    there, problem = stored(part.folder, expected)
    done = there & set(range(shards))
    answered = sum(min(SHARD_SIZE, trials - shard * SHARD_SIZE) for shard in done)
    counted = tokens(part.design, prompter, size, rng, block_size) if prompter else {}
    name = f"{Path(part.model).name} {part.name}"
    return Row(name, trials, trials - answered, shards, shards - len(done), **counted), problem


def load_prompter(model: str, engine: str, system: str, bos: str) -> Prompter:
    """The prompts of a model as its engine renders them, without the model.

    Raises
    ------
    EngineError
        Where the prompts are not rendered here, or the tokenizer cannot be loaded.
    """
    if engine == "openai":
        raise EngineError("with ENGINE=openai the server makes the tokens")
    if engine == "replay":
        raise EngineError("with ENGINE=replay no model is asked")
    from transformers import AutoTokenizer  # seconds, which only those wait who need it

    from ingroup.inference.weights import Weights

    return Prompter(Weights(find_model(model)).load(AutoTokenizer.from_pretrained), system, bos)


def empathy_gap(parameters: Mapping[str, Any]) -> tuple[list[Part], list[str]]:
    """What 10_empathy_gap asks, part by part, and what has to be said about it."""
    engine, model = parameters["ENGINE"], parameters["MODEL"]
    names = parameters["SETTINGS"] or list(stimuli.settings())
    events = corpora.load_events(parameters["CORPUS"], parameters["N_EVENTS"] or None)
    corpus = f"{Path(parameters['CORPUS']).stem}-{len(events)}"

    def part(model: str, name: str, asked: Design, folder: str, settled: bool = True) -> Part:
        place = response_folder("empathy_gap", corpus, model, engine, folder)
        return Part(model, name, asked, place, settled)

    asked = [(model, name) for name in names]
    asked += [(parameters["CONTROL"], names[0])] if parameters["CONTROL"] else []
    shows = {name: stimuli.setting(name).narrative for name in names}
    parts, notes, unwritten = [], [], None
    if events.third_person_text.isna().any():
        if writer := parameters["REWRITER"]:
            parts.append(part(writer, "rewrite", rewriting(events), "rewrite"))
            unwritten = "third_person_text"
            events = events.assign(third_person_text=events.first_person_text)
            notes.append(
                "The third-person texts are still to be written; their prompts are counted with "
                "the first-person ones."
            )
        else:
            asked = [(who, name) for who, name in asked if events[shows[name]].notna().all()]
            left = ", ".join(dict.fromkeys(name for _, name in asked)) or "none"
            notes.append(f"This corpus lacks a form of the narrative; settings left: {left}.")
    suffix = "+logprobs" if parameters["RATING"] == "expected" else ""
    for who, name in asked:
        plan = empathy_gap_trials(events, [name])
        parts.append(part(who, name, plan, name + suffix, shows[name] != unwritten))
    return parts, notes


STUDIES: dict[str, Callable[[Mapping[str, Any]], tuple[list[Part], list[str]]]] = {
    "10_empathy_gap": empathy_gap,
}


def duration(seconds: float) -> str:
    """Time in its two largest units, e.g. ``"6 h 20 min"``; ``"under 1 s"`` at the least."""
    if seconds < 1:
        return "under 1 s" if seconds else "0 s"
    for unit, small, names in ((86_400, 3600, "d h"), (3600, 60, "h min"), (60, 1, "min s")):
        # Rounded first: 59 min 59.6 s is an hour.
        large, rest = divmod(round(seconds / small), unit // small)
        if large:
            first, second = names.split()
            return f"{large} {first} {rest} {second}" if rest else f"{large} {first}"
    return f"{round(seconds)} s"


def with_error(value: float, error: float) -> str:
    """``"1,230,000 ± 45,000"``: the error to two digits and the value to the same place."""
    place = max(0, math.floor(math.log10(error)) - 1) if error > 0 else 0
    return f"{round(value, -place):,.0f} ± {round(error, -place):,.0f}"


def table(rows: Sequence[Row], rate: float) -> str:
    """The rows and their total as aligned text."""
    head = "|trials|tokens a prompt|prompt tokens|cache saves|shards done|to do|time to go"
    lines = [head.split("|")]
    for row in [*rows, total(rows)]:
        counted = ["unknown", "unknown", "unknown"]
        if not math.isnan(row.tokens):
            counted = [
                f"{row.tokens / row.trials:,.1f} ± {row.error / row.trials:,.1f}",
                with_error(row.tokens, row.error),
                f"{row.saved / row.tokens:.0%}",
            ]
        shards = [f"{row.shards - row.shards_to_do:,}", f"{row.shards_to_do:,}"]
        left = duration(row.trials_to_do / rate)
        lines.append([row.name, f"{row.trials:,}", *counted, *shards, left])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])])
        for line in lines
    )


def plan(notebook: str, parameters: Mapping[str, Any], rate: float | None = None) -> str:
    """The whole plan of a notebook as text: a table, then sentences.

    Parameters
    ----------
    notebook : str
        A key of ``STUDIES``.
    parameters : mapping
        From :func:`ingroup.commands.parameters.merged`.
    rate : float, optional
        Prompts a second; ``RATE`` unless given.

    Raises
    ------
    InputError
        For a notebook without a plan, or parameters that leave nothing to ask.
    """
    if notebook not in STUDIES:
        raise InputError(f"{notebook} has no plan; there are plans for {', '.join(STUDIES)}")
    try:
        parts, notes = STUDIES[notebook](parameters)
    except InputError as error:
        raise InputError(str(error)) from error
    if not parts:
        raise InputError(f"nothing is left to ask. {' '.join(notes)}")
    engine = parameters["ENGINE"]
    prompters: dict[str, Prompter | None] = {}
    for model in dict.fromkeys(part.model for part in parts):
        try:
            prompters[model] = load_prompter(model, engine, parameters["SYSTEM"], parameters["BOS"])
        except EngineError as error:
            prompters[model] = None
            notes.append(f"Prompt tokens are unknown: {str(error).rstrip('.')}.")
    share, rng = max(2, SAMPLE // len(parts)), np.random.default_rng(SEED)
    found = [row(part, engine, prompters[part.model], share, rng) for part in parts]
    rows, problems = zip(*found, strict=True)
    if any(prompters.values()):
        notes.insert(
            0,
            f"Tokens are counted on up to {share:,} random trials a line, ± one standard error. A "
            f"prefix cache saves at least the share given, in blocks of {BLOCK_SIZE} tokens and in "
            "the order of the design.",
        )
    notes = dict.fromkeys([headline(total(rows), rate), *notes, *filter(None, problems)])
    return "\n".join([table(rows, rate or RATE), "", *notes])


def headline(whole: Row, rate: float | None) -> str:
    """How much is left to ask, and how long it takes."""
    if not whole.trials_to_do:
        return f"Nothing is left to ask: all {whole.shards:,} shards are stored."
    of = f"of {whole.trials:,} " if whole.trials_to_do < whole.trials else ""
    return (
        f"{whole.trials_to_do:,} {of}prompts are to be asked: "
        f"{duration(whole.trials_to_do / (rate or RATE))} at {rate or RATE:,.10g} prompts a second"
        f"{'' if rate else ' (an assumption; RATE=<number> sets another)'}."
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the plan is printed, 2 for a wrong parameter."""
    parser = command_line(__doc__)
    parser.add_argument("--rate", metavar="PROMPTS_A_SECOND")
    options = parser.parse_args(arguments)
    try:
        rate = None if options.rate is None else converted("RATE", options.rate, RATE)
        if rate is not None and not 0 < rate < math.inf:
            raise InputError(f"RATE must be above 0 prompts a second, found {options.rate!r}")
        parameters = parameters_of(options)
        print(plan(options.notebook, parameters, rate))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
