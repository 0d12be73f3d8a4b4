"""What a run would ask, before anything starts: prompts, tokens, shards, hours, price, power.

It loads a tokenizer and no model, and leaves every file as it is. A corpus that nobody has fetched
is counted with the sample's texts, as many as the corpus has.
"""

import math
import re
import sys
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from huggingface_hub import try_to_load_from_cache

from ingroup import corpora, models, paths
from ingroup.commands.parameters import calls_of, command_line, merged, parameters_of, study_of
from ingroup.inference import Call, EngineError, Store, StoreError, find_model
from ingroup.inference.cost import (
    BATCHED,
    CHARACTERS,
    Characters,
    Prices,
    budget_of,
    money,
    most_output,
    prices,
)
from ingroup.inference.generate import SHARD_SIZE, pinned
from ingroup.inference.prompts import Prompter, tokens
from ingroup.inference.store import read_manifest
from ingroup.stats.power import POWER
from ingroup.synthesis import Tested
from ingroup.tables import InputError

SAMPLE = 1_000  # trials that are tokenized, over all lines of a plan
RATE = 1_000.0  # prompts a second; an assumption, and the output says so


def plannable() -> list[str]:
    """The notebooks that ask: one a study, of its name."""
    names = sorted(file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb"))
    return [name for name in names if name.partition("_")[2] == study_of(name)]


def is_fetched(corpus: str) -> bool:
    """Tell whether every file of a corpus is on this machine; their contents are not compared."""
    files = corpora.CORPORA[corpus].files
    return all((paths.RAW / corpus / name).is_file() for name in files)


def stand_ins(folder: Path) -> dict[str, str]:
    """For each corpus that nobody fetched a file of the sample's items, as many as it has."""
    made = {}
    for corpus, about in corpora.CORPORA.items():
        if "sample" not in vars(about) or is_fetched(corpus):
            continue
        source, is_json = paths.SAMPLE / about.sample, about.sample.endswith(".json")
        items = pd.read_json(source, orient="index") if is_json else pd.read_table(source)
        items = items.take(np.arange(about.size) % len(items)).reset_index(drop=True)
        made[corpus] = str(folder / f"{corpus}{source.suffix}")
        if is_json:
            items.to_json(made[corpus], orient="index")
        else:
            items.assign(text_id=items.index).to_csv(made[corpus], sep="\t", index=False)
    return made


def asked(notebook: str, parameters: Mapping[str, Any]) -> dict[str, list[Call]]:
    """What a notebook asks, by model, way and design, under the names of a plan's lines."""
    alike: dict[tuple[str, str, int], list[Call]] = {}
    for call in calls_of(notebook, parameters):
        if call.engine != models.STORED:  # of stored answers nothing is asked
            alike.setdefault((call.model, call.way, id(call.design)), []).append(call)
    lines = {}
    for (model, way, _), calls in alike.items():
        same = set.intersection(*(set(call.labels.items()) for call in calls))
        labels = [str(item[1]) for item in calls[0].labels.items() if item in same]
        times = [f"x {len(calls)}"] if len(calls) > 1 else []
        how = [way] if calls[0].over_choices else []
        name = " ".join([notebook[:2], model, *labels, *how, *times])
        lines[f"{name} {calls[0].part}" if name in lines else name] = calls
    return lines


@cache
def load_prompter(model: str, engine: str, system: str, bos: str) -> Prompter | str:
    """The prompts of a model as its engine renders them, without the model; or why not."""
    if engine == "replay":
        return "with ENGINE=replay no model is asked"
    if models.folder(model) is None and model in models.carried():
        return f"the weights of {model} are not here, make model makes them"
    from transformers import AutoTokenizer  # seconds, which only those wait who need it

    from ingroup.inference.weights import Weights

    try:
        return Prompter(Weights(find_model(model)).load(AutoTokenizer.from_pretrained), system, bos)
    except EngineError as error:
        return str(error).rstrip(".")


def tokenizer_folder(model: str) -> Path | None:
    """Where a model's tokenizer is on this machine: its own folder, or the hub's cache.

    None where it is not here, or where no row of the registry names the hub's files.
    """
    if folder := models.folder(model):
        return folder

    known = models.find(model)
    if known is None or not known.hub_id:
        return None

    file = try_to_load_from_cache(known.hub_id, "tokenizer_config.json")
    return Path(file).parent if isinstance(file, str) else None


@cache
def load_counter(model: str) -> Prompter | Characters:
    """What counts the prompt tokens of a model behind a server: its tokenizer, or characters."""
    folder = tokenizer_folder(model)
    if folder is None:
        return Characters()

    from transformers import AutoTokenizer  # seconds, which only those wait who need it

    from ingroup.inference.weights import Weights

    try:
        return Prompter(Weights(str(folder)).load(AutoTokenizer.from_pretrained))
    except EngineError:
        return Characters()


def stored(call: Call, prompter: Prompter | Characters | str) -> tuple[list[int], str]:
    """Trials of each shard that a call has stored, and what keeps a run from going on with them.

    Only names and manifest.json are read: a damaged shard counts as done, and what only a started
    engine knows (versions, dtype, hash of weights) is not compared.
    """
    known = {"engine": call.engine, **pinned(call.design, call.sampling, SHARD_SIZE)}
    if isinstance(prompter, Prompter) and call.engine not in models.SERVERS:
        known |= prompter.identity()
    if not call.settled:  # they are of stand-ins
        del known["prompts"]
    file = call.folder / "manifest.json"
    try:
        there = read_manifest(file) if file.exists() else {}
        store = Store(call.folder, there | known)
    except StoreError as error:
        return [], f"{error}."
    return [stop - start for start, stop in map(store.bounds, store.files())], ""


def power(notebook: str, parameters: Mapping[str, Any]) -> list[str]:
    """Say what the reported tests of a study can find: a sentence for each.

    It is the smallest effect that most runs (`POWER`) find, at the level at which the study tests.
    The spread is that of the answers which the repository holds of a real model
    (:class:`ingroup.synthesis.Tested`).
    """
    recorded = merged(notebook, "demo", {})
    model = next(name for name in recorded["MODELS"] if not models.is_calibrant(name))
    lens = import_module(f"ingroup.studies.{study_of(notebook)}.lens")
    return [
        f"{notebook[:2]} {found_by(test, model)}"
        for test in lens.power(parameters, recorded, model)
    ]


def found_by(test: Tested, model: str) -> str:
    """Say in a sentence what a test finds, given the spread of a model's recorded answers."""
    if test.n < 2:
        return f"finds nothing: {test.n} {test.items}, expected at least 2."

    floor = f" {test.floor}" if test.floor else ""
    if math.isinf(test.smallest):
        return f"with {test.n:,} {test.items} cannot find an effect ({test.name}).{floor}"
    return (
        f"with {test.n:,} {test.items} finds {test.smallest * test.spread:,.2g} {test.effect} in "
        f"{POWER:.0%} of the runs ({test.name} at {test.level:.2g}; {test.smallest:.2g} standard "
        f"deviations of {test.spread:.2g}, as the recorded answers of {model} have it).{floor}"
    )


def duration(seconds: float) -> str:
    """Days, hours, minutes and seconds, e.g. ``"1 day, 2:00:00"``, no less than it is."""
    return str(timedelta(seconds=math.ceil(seconds)))


def table(lines: pd.DataFrame, rate: float) -> str:
    """A plan's lines and their total as aligned text; tokens that are not known are NaN."""
    whole = lines.sum(skipna=False).rename("total")
    whole["error"] = math.hypot(*lines.error)  # independent errors add as squares
    every = pd.concat([lines, whole.to_frame().T])
    a_prompt = every[["tokens", "error"]].div(every.trials, axis=0).map("{:,.1f}".format)
    numbers = every.map("{:,.0f}".format)
    text = numbers[["trials"]].assign(**{
        "tokens a prompt": a_prompt.tokens + " ± " + a_prompt.error,
        "prompt tokens": numbers.tokens + " ± " + numbers.error,
        "shards done": numbers.done,
        "to do": (every.shards - every.done).map("{:,.0f}".format),
        "time to go": ((every.trials - every.answered) / rate).map(duration),
    }).replace("nan ± nan", "unknown")  # fmt: skip
    return text.to_string(col_space=[len(name) + 1 for name in text])


def bill(
    call: Call, row: Mapping[str, float], its_prices: Prices, new_stores: int
) -> dict[str, Any]:
    """What is left to ask of a server in one line of a plan, and the most that it can cost.

    ``row`` has ``trials``, ``answered`` and prompt ``tokens`` of calls that are like ``call``. The
    first prompt of each new store goes alone, at the whole price.
    """
    left = row["trials"] - row["answered"]
    prompt_tokens = row["tokens"] * left / row["trials"]
    reply_tokens = most_output(call.sampling) * left
    price = its_prices.cost(prompt_tokens, reply_tokens) if its_prices.are_given else math.nan
    alone = price * new_stores / max(left, 1)
    return {
        "model": call.model,
        "prompts": left,
        "prompt tokens": prompt_tokens,
        "reply tokens": reply_tokens,
        "price": price,
        "in batches": alone + (price - alone) * BATCHED,
    }


def bill_table(bills: list[dict[str, Any]]) -> str:
    """Tokens and price of what is left to ask of each server's model, as aligned text."""
    by_model = pd.DataFrame(bills).groupby("model", sort=False).sum(min_count=1)
    if len(by_model) > 1:
        by_model.loc["all servers"] = by_model.sum(min_count=1)

    counts = ["prompts", "prompt tokens", "reply tokens"]
    text = by_model[counts].map("{:,.0f}".format)
    text["reply tokens"] = "at most " + text["reply tokens"]
    for column in ("price", "in batches"):
        text[column] = "at most " + by_model[column].map(money)

    text = text.replace("at most nan", "unknown")
    lines = text.rename_axis(None).to_string(col_space=[len(name) + 1 for name in text])
    if by_model.price.isna().all():
        return f"{lines}\nThe price is unknown: set PRICE_IN and PRICE_OUT (per million tokens)."
    return (
        f"{lines}\nThe price is that of PRICE_IN and PRICE_OUT; batches (BATCH) cost half of it, "
        "but for the first prompt of each store."
    )


def plan(notebooks: Mapping[str, Mapping[str, Any]], rate: float | None = None) -> str:
    """The plan of some notebooks, by their parameters, at ``rate`` prompts a second (or `RATE`)."""
    every = {name: asked(name, parameters) for name, parameters in notebooks.items()}
    size, rng = max(2, SAMPLE // sum(map(len, every.values()))), np.random.default_rng(0)
    rows, notes, refused, bills = {}, [], [], []
    for notebook, lines in every.items():
        for name, calls in lines.items():
            first, given = calls[0], notebooks[notebook]
            system = first.options.get("system", given.get("SYSTEM"))
            if first.engine in models.SERVERS:
                prompter = load_counter(first.model)
            else:
                prompter = load_prompter(first.model, first.engine, system, given["BOS"])
            if isinstance(prompter, str):
                found = dict.fromkeys(("tokens", "error"), math.nan)
                notes.append(f"Prompt tokens are unknown: {prompter}.")
            else:
                found = tokens(first.design, prompter, size, rng)
                how = f"on up to {size:,} random trials a line, ± one standard error"
                notes.append(f"Tokens are counted {how}.")
            if isinstance(prompter, Characters):
                notes.append(
                    f"Prompt tokens of {first.model} are estimated from {CHARACTERS} characters a "
                    "token: its tokenizer is not here."
                )
            found |= {"trials": len(first.design), "shards": -(-len(first.design) // SHARD_SIZE)}
            there, problems = zip(*(stored(call, prompter) for call in calls), strict=True)
            rows[name] = {key: value * len(calls) for key, value in found.items()}
            rows[name] |= {"answered": sum(map(sum, there)), "done": sum(map(len, there))}
            if first.engine in models.SERVERS:
                new_stores = sum(not shards_done for shards_done in there)
                bills.append(bill(first, rows[name], prices(given), new_stores))
            refused += filter(None, problems)
            if not first.settled:
                notes.append("Texts that are still to be written are counted with stand-ins.")
    numbers, speed = pd.DataFrame.from_dict(rows, "index"), rate or RATE
    trials, answered, shards = numbers[["trials", "answered", "shards"]].sum()
    headline = f"Nothing is left to ask: all {shards:,} shards are stored."
    if left := trials - answered:
        headline = (
            f"{left:,}{f' of {trials:,}' if answered else ''} prompts are to be asked: "
            f"{duration(left / speed)} at {speed:,.10g} prompts a second"
            f"{'' if rate else ' (an assumption; RATE=<number> sets another)'}."
        )
    more = [f"So it is with {len(refused) - 3} more folders."] if refused[3:] else []
    said = dict.fromkeys([*notes, *refused[:3], *more])  # once each
    priced = ["", bill_table(bills), ""] if bills else []
    return "\n".join([table(numbers, speed), "", headline, *priced, *said])


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the plan is printed, 2 for a wrong parameter."""
    parser = command_line(__doc__)
    parser.add_argument("notebooks", nargs="*", help="those of all studies, unless named")
    parser.add_argument("--rate", metavar="PROMPTS_A_SECOND")
    options = parser.parse_args(arguments)
    names = options.notebooks or plannable()
    options.shared |= len(names) > 1
    try:
        for name in set(names) - set(plannable()):
            raise InputError(f"there is no plan of {name}; there are of {', '.join(plannable())}")
        if not re.fullmatch(r"(?=.*[1-9])\d*\.?\d*", options.rate or "1"):
            raise InputError(f"RATE must be prompts a second, above 0, found {options.rate!r}")
        rate = float(options.rate) if options.rate else None
        with TemporaryDirectory() as folder:
            instead = stand_ins(Path(folder))
            values = {name: parameters_of(name, options, instead=instead) for name in names}
            for given in values.values():
                budget_of(given)  # a limit without prices is said here, too
            print(plan(values, rate))
            for name, given in values.items():
                print(*power(name, given), sep="\n")
        for corpus, file in instead.items():
            if any(file in given.values() for given in values.values()):
                items = f"its {corpora.CORPORA[corpus].size:,} items are counted"
                print(f"{corpus} is not here (make data): {items} with the sample's texts.")
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
