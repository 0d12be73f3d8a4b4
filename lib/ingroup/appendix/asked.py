"""Sections on models, prompts, stores of answers, sampling, dates, tokens and cost."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from ingroup import figures, models
from ingroup.appendix.content import (
    DASH,
    Block,
    Heading,
    Items,
    Missing,
    Paragraph,
    Prompt,
    Table,
)
from ingroup.appendix.run import UNREADABLE, Run, Stored, range_text
from ingroup.commands.executed import as_typed
from ingroup.commands.run_parameters import defaults
from ingroup.design import Block as Trials
from ingroup.design import Trial
from ingroup.inference.cost import money

DIGEST_LENGTH = 16  # signs of a digest that are shown; the manifest has all

# Further entries of manifests, in the words of a reader.
SETTING_CAPTIONS = {
    "bos": "token that begins a text",
    "system": "system turn",
    "tensor_parallel_size": "GPUs for one engine",
    "left_out": "arguments that the server did not take",
}

# Columns of responses.csv that say what became of a reply, in the words of a reader.
OUTCOME_CAPTIONS = {
    "ok": "with an answer",
    "refused": "refused",
    "unparsable": "no answer in the text",
    "no verdict": "no answer in the text",
    "incomplete": "part of the answer",
    "cut": "ended too early",
    "failed": "no reply",
    "missing": "not asked",
}


def overview(run: Run) -> list[Block]:
    """Name the models of the run, and list its notebooks with their start and duration.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        A paragraph, a note on controls where there are any, and a table.
    """
    labels = run.model_names_text or "none"
    blocks: list[Block] = [
        Paragraph(
            f"This document describes {run.title_of_run}, made with Ingroup. It was written from "
            "the run's tables, from the manifests of its stored answers and from its notebooks. No "
            f"number was typed in by hand. Models: {labels}."
        ),
    ]
    note = figures.models_note(run.models)
    if note:
        blocks.append(Paragraph(note))

    rows = []
    for notebook in run.notebooks:
        # The first line reads "10_empathy_gap: 52 s, MODELS=...", see `ingroup.commands.run`.
        first, *_ = run.summary(notebook) or [""]
        _, _, settings = first.partition(": ")
        seconds, _, changed = settings.partition(", ")
        rows.append(
            {
                "Notebook": f"{notebook[:2]} {run.title(notebook)}",
                "Began (UTC)": run.started(notebook) or DASH,
                "Took": seconds or DASH,
                "Settings": changed or DASH,
            }
        )
    blocks.append(Table("What ran.", pd.DataFrame(rows)))
    return blocks


def by_study(run: Run) -> list[Block]:
    """Describe the prompts, the stores and the cost of each study.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        A heading and its blocks for each study.
    """
    blocks: list[Block] = []
    if not run.studies:
        blocks.append(Missing("No notebook of this run asked a model."))
    for study, notebook in run.studies.items():
        blocks.append(Heading(run.title(notebook), 2))
        blocks += _of_study(run, study, notebook)
    return blocks


def stored_answers(run: Run) -> list[Block]:
    """List every store of answers with the digests that pin its prompts.

    Parameters
    ----------
    run : Run
        The run that the appendix is about.

    Returns
    -------
    list of Block
        A paragraph, then a table for each study.
    """
    roots: dict[str, None] = {}
    for stores, _ in run.stored_by_study.values():
        roots |= dict.fromkeys(stored.root for stored in stores)
    where = ""
    if roots:
        where = f" Stores lie below {' and '.join(roots)}, each in the folder of its study."

    blocks: list[Block] = [
        Paragraph(
            "A digest of the prompts covers their templates and all that fills them. A digest of "
            "the chats covers the rendered turns. A store with other digests is refused."
            f"{where}"
        ),
    ]
    for study, notebook in run.studies.items():
        stores, _ = run.stored_by_study[study]

        rows = []
        for stored in stores:
            manifest = stored.manifest
            rows.append(
                {
                    # The heading above the table names the study, so the address need not.
                    "Store": stored.address.removeprefix(f"{study}/"),
                    "Prompts": _count(manifest.get("trials")),
                    "Digest of prompts": _digest(manifest.get("prompts")),
                    "Digest of chats": _digest(stored.chats),
                }
            )
        if rows:
            caption = f"{run.title(notebook)}: stored answers."
            blocks.append(Table(caption, pd.DataFrame(rows)))
        else:
            blocks.append(Missing(f"{run.title(notebook)}: no stored answers were found."))
    return blocks


def _of_study(run: Run, study: str, notebook: str) -> list[Block]:
    """Describe the stores, cost, replies, parameters and prompts of one study."""
    title = run.title(notebook)
    stores, absent = run.stored_by_study[study]
    blocks: list[Block] = []
    if stores:
        caption = (
            f"{title}: stored answers by model. Scored: the probabilities of all admissible "
            "answers; text: the model's own words. Answered: the days on which this machine "
            "asked, or “recorded” for answers that the repository brought. Revision: the digest of "
            "the weights, or the model’s name in a server’s replies."
        )
        blocks.append(Table(caption, engines(stores)))
        blocks += _other_settings(stores)
    else:
        blocks.append(Missing("No manifest of stored answers was found for this study."))
    for sentence in absent:
        blocks.append(Missing(sentence))

    blocks += _usage(run, study, title)
    blocks += _responses(run, study, title)
    blocks += _parameters(run, notebook)
    blocks += prompts(stores)
    return blocks


def engines(stores: Iterable[Stored]) -> pd.DataFrame:
    """Count prompts by model, engine and sampling.

    Parameters
    ----------
    stores : iterable of Stored
        Stored answers.

    Returns
    -------
    DataFrame
        A row for each model with one engine, version, revision, precision and sampling.
    """
    groups: dict[tuple[str, str, str, str, str], list[Stored]] = {}
    for stored in stores:
        manifest = stored.manifest
        is_pinned = "revision" in manifest
        # A name, unlike a digest, is shown whole.
        revision = _digest(manifest["revision"]) if is_pinned else stored.revision
        # Seeds are not part of the key: repetitions, which differ in their seeds, share a row.
        key = (
            models.label(stored.job.model),
            _sampling(manifest),
            stored.engine,
            revision,
            "recorded" if stored.is_recorded else stored.written or DASH,
        )
        groups.setdefault(key, []).append(stored)

    rows = []
    for key, alike in groups.items():
        model, sampling, engine, revision, written = key
        trials = sum(int(stored.manifest.get("trials", 0)) for stored in alike)
        rows.append(
            {
                "Model": model,
                "Prompts": f"{trials:,}",
                "Answer": sampling,
                "Seeds": _seeds(alike),
                "Engine": engine,
                "Revision": revision or DASH,
                "Answered": written,
            }
        )
    return pd.DataFrame(rows)


def _sampling(manifest: dict[str, Any]) -> str:
    """Describe in words how the answers of a manifest were sampled."""
    choices = manifest.get("sampling_choices") or []
    if choices:
        # Nothing is drawn where answers are scored, so their number says enough.
        return f"scored, {len(choices)} answers"
    temperature = manifest.get("sampling_temperature", DASH)
    words = [f"text, temperature {temperature}"]
    # A greedy answer has no top-p.
    if manifest.get("sampling_top_p") is not None:
        words.append(f"top-p {manifest['sampling_top_p']}")
    words.append(f"at most {manifest.get('sampling_max_tokens', DASH)} tokens")
    if manifest.get("sampling_reasoning"):
        words.append(f"reasoning {manifest['sampling_reasoning']}")
    return ", ".join(words)


def _seeds(stores: Iterable[Stored]) -> str:
    """Write the smallest and the largest seed, or a dash where nothing was drawn."""
    seeds = set()
    for stored in stores:
        if "sampling_seed" in stored.manifest:
            seeds.add(int(stored.manifest["sampling_seed"]))
    # Several seeds are a range, as each repetition has a seed of its own.
    return range_text(seeds) or DASH


def _other_settings(stores: Iterable[Stored]) -> list[Block]:
    """List further settings in manifests, and arguments that a server did not take."""
    values: dict[str, dict[str, None]] = {}
    for stored in stores:
        for name, value in stored.manifest.items():
            # A name with sent_ is that of an argument of the request to a server.
            if (name in SETTING_CAPTIONS or name.startswith("sent_")) and value != []:
                setting = SETTING_CAPTIONS.get(name, name.replace("_", " "))
                # The inner dict serves as an ordered set: each value once, in the order of the
                # stores.
                values.setdefault(setting, {})[str(value)] = None
    if not values:
        return []

    parts = [f"{setting}: {', '.join(texts)}" for setting, texts in values.items()]
    return [Paragraph(f"Also pinned by the manifests: {'; '.join(parts)}.")]


def _usage(run: Run, study: str, title: str) -> list[Block]:
    """Tabulate the tokens and cost of a study by model."""
    table = run.table(study, "usage")
    if table is None:
        return [Missing("This run has no table of tokens and cost (usage.csv) for this study.")]

    rows = []
    # The row "all" is the sum of the others, so it may not be summed with them.
    total = table[table["model"] == "all"]
    jobs = table[table["model"] != "all"]
    for (model, mode), alike in jobs.groupby(["model", "mode"], sort=False):
        rows.append({"Model": models.label(model), "Answer": mode, **_sums(alike)})
    if not total.empty:
        rows.append({"Model": "all", "Answer": "", **_sums(total)})
    caption = (
        f"{title}: what it took. Cached tokens were not computed again. A model on one's own "
        "machine costs 0."
    )
    return [Table(caption, pd.DataFrame(rows))]


def _sums(rows: pd.DataFrame) -> dict[str, str]:
    """Write the sums of some rows of usage.csv as texts."""
    # An older table may lack a column of counts, which is then shown as a dash.
    sums = rows.sum(numeric_only=True)
    return {
        "Prompts": _count(sums.get("prompts")),
        "Prompt tokens": _count(sums.get("prompt_tokens")),
        "Cached": _count(sums.get("cached_tokens")),
        "Output tokens": _count(sums.get("output_tokens")),
        "Failed": _count(sums.get("failed")),
        "Cost": money(float(sums.get("cost", 0))),
    }


def _responses(run: Run, study: str, title: str) -> list[Block]:
    """Count the replies of a study by model and outcome."""
    table = run.table(study, "responses")
    if table is None:
        return [Missing("This run has no counts of replies (responses.csv) for this study.")]

    counts: dict[str, dict[str, float]] = {}
    for row in table.to_dict("records"):
        of_model = counts.setdefault(models.label(row["model"]), {})
        for column, words in OUTCOME_CAPTIONS.items():
            if column in row:
                # Two columns may have the same words, such as two kinds of text without an answer.
                of_model[words] = of_model.get(words, 0) + row[column]

    rows = []
    for model, of_model in counts.items():
        texts = {words: _count(number) for words, number in of_model.items()}
        rows.append({"Model": model, **texts})
    caption = f"{title}: what became of the replies that are read as values."
    return [Table(caption, pd.DataFrame(rows).fillna(DASH))]


def _parameters(run: Run, notebook: str) -> list[Block]:
    """List the parameters that differ from the committed values, and the statistics' parameters."""
    parameters = run.parameters(notebook)
    if not parameters:
        return [Missing(f"The parameters of {notebook} are not known: it has none, or is older.")]
    try:
        usual = defaults(notebook)
    # Without the committed parameters, e.g. of a renamed notebook, all are listed.
    except UNREADABLE:
        usual = {}

    changed = []
    for name, value in parameters.items():
        # The name of the run is in the title.
        if name != "RUN" and value != usual.get(name):
            changed.append(f"{name} = {as_typed(name, value)}")
    statistics = []
    for name in ("SEED", "N_RESAMPLES", "ALPHA", "EXCLUSION", "PARSING"):
        if parameters.get(name) not in (None, ""):
            statistics.append(f"{name} = {as_typed(name, parameters[name])}")

    differing = "; ".join(changed) or "none"
    rows = [
        "Parameters that differ from the committed ones, under their names in docs/running.md: "
        + differing
    ]
    if statistics:
        rows.append(f"Parameters of the statistics: {'; '.join(statistics)}")
    return [Items([f"{row}." for row in rows])]


def prompts(stores: Iterable[Stored]) -> list[Block]:
    """Show the first prompt of each wording, and one prompt about an in-group pair, word for word.

    Parameters
    ----------
    stores : iterable of Stored
        Stores of one study.

    Returns
    -------
    list of Block
        One `Prompt` for each set of templates. The first design with two roles that groups take
        (perceiver and experiencer) has a further `Prompt`, in which both are of the same group.
    """
    wordings = set()
    has_pair = False
    blocks: list[Block] = []
    for stored in stores:
        design = stored.job.design
        templates = str([block.templates for block in design.blocks])
        # Models and rounds share the wordings, and each is shown once.
        if templates in wordings or len(design) == 0:
            continue

        wordings.add(templates)
        labels = " ".join(map(str, stored.job.labels.values()))
        about = f"({labels}; answered as {stored.job.mode})"
        blocks.append(Prompt(f"An example prompt {about}", _turns(design[0])))

        pair = in_group_pair(design.blocks[0])
        if pair is not None and not has_pair:
            has_pair = True
            title = f"An example prompt with an in-group pair {about}"
            blocks.append(Prompt(title, _turns(design[pair])))
    return blocks


def _turns(trial: Trial) -> list[tuple[str, str]]:
    """List the role and the text of each turn of a prompt."""
    return [(turn["role"], turn["content"]) for turn in trial.messages]


def in_group_pair(block: Trials) -> int | None:
    """Find a trial in which two roles are of the same group.

    Parameters
    ----------
    block : Block
        A block of a design.

    Returns
    -------
    int or None
        The number of a trial in which two factors with the same levels both have the second level,
        as the first level is the control. None where no two factors have the same levels.
    """
    all_levels = list(block.factors.values())
    for first, second in combinations(range(len(all_levels)), 2):
        levels = all_levels[first]
        if len(levels) > 1 and tuple(levels) == tuple(all_levels[second]):
            # All other factors have their first level.
            positions = np.zeros(len(all_levels), dtype=int)
            positions[[first, second]] = 1
            # Trials are numbered like the cells of an array with an axis for each factor.
            return int(np.ravel_multi_index(positions, block.shape))
    return None


def _count(number: Any) -> str:
    """Write a whole number as text, or a dash where the number is missing."""
    return DASH if number is None or pd.isna(number) else f"{number:,.0f}"


def _digest(text: Any) -> str:
    """Shorten a digest to its first `DIGEST_LENGTH` signs. Return a dash without a digest."""
    return str(text)[:DIGEST_LENGTH] if text else DASH
