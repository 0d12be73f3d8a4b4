"""What a run has asked and was answered, read again: no model, no engine, nothing is written.

The synthesis looks at all four studies, and more closely than their tables allow (single events,
another parsing rule). It finds a study's parameters in its executed notebook, builds the design
with them as the notebook does, and reads the stored answers in the folder that follows.

`values` are the parameters of an executed notebook, from `parameters`; `model` is one that the run
asked, from `models`. Everything that reads answers raises StoreError for a folder without them, or
with the answers to something else.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ingroup import corpora, paths
from ingroup.design import Design
from ingroup.inference import Store, StoreError, response_folder
from ingroup.inference.reading import parts
from ingroup.inference.store import read_manifest
from ingroup.parsing import Rule, parse_rating, parse_ratings, parse_verdict
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.design import trials as biased_samaritan_trials
from ingroup.studies.empathy_gap import ratings, stimuli
from ingroup.studies.empathy_gap.design import rewriting, with_rewrites
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.design import trials as giebench_trials
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.design import trials as stereomap_trials

Values = Mapping[str, Any]


def parameters(notebook: str, run: str = paths.DEFAULT_RUN) -> dict[str, Any] | None:
    """What an executed notebook was run with, which papermill wrote into it; None without one."""
    file = paths.executed(notebook, run)
    if not file.exists():
        return None
    return json.loads(file.read_text("utf8"))["metadata"]["papermill"]["parameters"]


def models(values: Values) -> list[str]:
    """The model that a run asked, and its control where there was one."""
    return [values["MODEL"]] + ([values["CONTROL"]] if values["CONTROL"] else [])


def stored(folder: Path, plan: Design) -> Store:
    """The store in a folder, as its own manifest describes it, for reading.

    Parameters
    ----------
    folder : pathlib.Path
        From :func:`ingroup.inference.response_folder`.
    plan : Design
        What it should answer: its fingerprint has to be the manifest's.

    Raises
    ------
    StoreError
        Where there is no manifest, an unreadable one, or answers to other prompts.
    """
    file = folder / "manifest.json"
    if not file.exists():
        raise StoreError(f"{folder} holds no answers; run the study again")
    manifest = read_manifest(file)
    if manifest.get("prompts") != plan.fingerprint:
        raise StoreError(
            f"{folder} holds answers to other prompts than the study would ask now; run it again"
        )
    manifest.pop("format", None)  # the store adds its own, and refuses another one
    return Store(folder, manifest)


# ---- the four studies --------------------------------------------------------------------------


def gap_settings(values: Values) -> list[str]:
    """Settings of the first study that the run asked its model; its control has the first only."""
    names = values["SETTINGS"] or list(stimuli.settings())
    events = _events(values)
    return [name for name in names if events[stimuli.setting(name).narrative].notna().all()]


def gap_design(values: Values, setting: str) -> Design:
    """Design of the first study in one setting."""
    return empathy_gap_trials(_events(values), [setting])


def gap_ratings(
    values: Values, model: str, setting: str, category: str, rule: Rule = "sound"
) -> ratings.Ratings:
    """Greedy ratings of one block of the first study, read in parts.

    A run with RATING="expected" has greedy replies too: these are what is read.
    """
    plan = gap_design(values, setting)
    corpus = f"{Path(values['CORPUS']).stem}-{len(plan.blocks[0].factors['event'])}"
    part = setting + ("+logprobs" if values["RATING"] == "expected" else "")
    store = stored(response_folder("empathy_gap", corpus, model, values["ENGINE"], part), plan)
    block, numbers = plan.block_of(category=category)
    wording = stimuli.setting(setting)
    read = parts(store, numbers.start, numbers.stop)
    return ratings.from_parts(read, block.shape, wording.low, wording.high, rule)


def samaritan_design(values: Values, category: str) -> Design:
    """Design of the second study in one category."""
    told = scenarios.load_scenarios(values["SCENARIOS"])
    return biased_samaritan_trials(told, category, values["CROSSING"], values["LATINO"])


def samaritan_ratings(
    values: Values, model: str, category: str, turn: int = 1, rule: Rule = "sound"
) -> pd.DataFrame:
    """The prompts of the second study (fields of `Prompt`), ``reply``, ``rating``.

    `turn` counts the runs of the study's RUNS, from 1; NaN where a reply has no rating.
    """
    plan = samaritan_design(values, category)
    prompts = pd.DataFrame(plan.blocks[0].factors["prompt"])
    source = f"{Path(values['SCENARIOS']).stem}-{prompts.scenario.nunique()}"
    part = f"{category}-{values['CROSSING']}{'+latino' if values['LATINO'] else ''}-run{turn}"
    folder = response_folder("biased_samaritan", source, model, values["ENGINE"], part)
    texts, scale = stored(folder, plan).read().text.astype(object), scenarios.request()
    texts = texts.where(texts.notna(), None)  # a call that failed has no text
    read = {text: parse_rating(text, scale.low, scale.high, rule).value for text in set(texts)}
    return prompts.assign(reply=texts, rating=[read[text] for text in texts])


def giebench_design(values: Values, prompt: str) -> Design:
    """Design of the third study under one prompt."""
    items = questions.load_questions(values["QUESTIONS"])
    return giebench_trials(items, prompt, values["ORDER"], values["RAW"])


def giebench_answers(values: Values, model: str, rule: Rule = "sound") -> pd.DataFrame:
    """Verdicts of the third study under its three prompts, as `ingroup.accuracy` takes them.

    With one more column, ``identity``: whose item it is.
    """
    return pd.concat(
        [_verdicts(values, model, prompt, rule) for prompt in ("Raw", "ID", "COT")],
        ignore_index=True,
    )


def _verdicts(values: Values, model: str, prompt: str, rule: Rule) -> pd.DataFrame:
    plan = giebench_design(values, prompt)
    asked = plan.blocks[0].factors["asked"]
    source = f"{Path(values['QUESTIONS']).stem}-{len({one.question.key for one in asked})}"
    part = f"{prompt}-{values['ORDER']}"
    part += "-text" if (prompt, values["RAW"]) == ("Raw", "text") else ""
    folder = response_folder("giebench", source, model, values["ENGINE"], part)
    table = stored(folder, plan).read()
    rows = []
    for one, text, reason in zip(asked, table.text, table.finish_reason, strict=True):
        item, verdict = questions.rotate(one.question, one.shift), parse_verdict(text, rule)
        status = "failed" if reason == "failed" else verdict.status
        rows.append((prompt, item.category, item.key, one.shift, item.correct, verdict.letter,
                     status, item.identity))  # fmt: skip
    columns = "prompt category key shift correct letter status identity"
    return pd.DataFrame(rows, columns=columns.split())


def stereomap_ratings(values: Values, model: str) -> pd.DataFrame:
    """Ratings of the fourth study's EXTENDED prompts: ``group``, ``round``, a column a word."""
    names = [g for g in social_groups.names("EXTENDED") if g in (values["GROUPS"] or [g])]
    paper = social_groups.ablations()[0]
    known = social_groups.prompts("EXTENDED")
    plan = stereomap_trials(names, list(known), paper, values["FORM"], values["CALLS"])
    source = f"{len(values['GROUPS'])}-groups" if values["GROUPS"] else "groups"
    name = "-".join(["EXTENDED", *paper.replace("/", "").split(), values["FORM"], values["CALLS"]])
    cells: dict[tuple[str, int], dict[str, float]] = {}
    for turn in range(1, values["ROUNDS"] + 1):
        part = f"{name}-round{turn}"
        folder = response_folder("stereomap", source, model, values["ENGINE"], part)
        texts = stored(folder, plan).read().text
        for asked, text in zip(plan.blocks[0].factors["inquiry"], texts, strict=True):
            wanted, about = social_groups.expected(asked.prompt, asked.part), known[asked.prompt]
            if wanted.words:
                rated = parse_ratings(text, wanted.words, about.low, about.high).values
                own = {w: x for w, x in rated.items() if w != "Rating"}
                cells.setdefault((asked.group, turn), {}).update(own)
    table = pd.DataFrame.from_dict(cells, orient="index").astype(float)
    return table.rename_axis(["group", "round"]).reset_index()


def _events(values: Values) -> pd.DataFrame:
    """Events of the first study, with the third-person texts that a model wrote, if it did."""
    events = corpora.load_events(values["CORPUS"], values["N_EVENTS"] or None)
    if values["REWRITER"] and events.third_person_text.isna().any():
        corpus, plan = f"{Path(values['CORPUS']).stem}-{len(events)}", rewriting(events)
        folder = response_folder(
            "empathy_gap", corpus, values["REWRITER"], values["ENGINE"], "rewrite"
        )
        events = with_rewrites(events, stored(folder, plan).read())
    return events
