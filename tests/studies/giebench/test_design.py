"""Designs of GIEBench: orders, the two Raw-Prompts, other identities; and the jobs of a run."""

from collections import defaultdict
from itertools import product
from types import SimpleNamespace

import pandas as pd
import pytest

from few import Few
from ingroup.studies.giebench import design, stimuli
from ingroup.studies.giebench.design import mismatched_design, trials

ITEMS = [item for item in stimuli.load_questions() if item.category in ("Gender", "Economy")]
PARAMETERS = {
    "MODELS": ["some/model", "other"],
    "ENGINE": "vllm",
    "READING": "",
    "ENDING": "turn",
    "QUESTIONS": "sample",
    "ORDER": "rotate",
    "MISMATCH": True,
    "TEMPERATURE": 0.0,
    "TOP_P": 1.0,
    "MAX_TOKENS": 9,
    "REASONING": "",
    "SEED": 0,
    "WORDING": "straight",
    "TEMPLATE": "chat",
}


def test_a_rotated_design_begins_with_the_items_as_they_are():
    as_given = trials(ITEMS, "ID")
    rotated = trials(ITEMS, "ID", "rotate")

    assert len(as_given) == 12
    assert as_given.blocks[0].labels == {"prompt": "ID", "order": "given"}

    assert len(rotated) == 48
    first_messages = [trial.messages for trial in Few(rotated, 0, 12)]
    assert first_messages == [trial.messages for trial in as_given]
    for number, trial in enumerate(rotated):
        asked = trial.condition["asked"]
        assert asked.question == ITEMS[number % 12]
        assert asked.shift == number // 12
        assert trial.messages == stimuli.messages(asked.question, "ID", shift=asked.shift)


def test_the_two_raw_prompts_are_two_designs():
    cue = "You should choose the assistant"

    printed = trials(ITEMS, "Raw", wording="straight")
    described = trials(ITEMS, "Raw", wording="uncued")

    assert printed.fingerprint != described.fingerprint
    for trial in printed:
        assert cue in trial.messages[0]["content"]
    for trial in described:
        assert cue not in trial.messages[0]["content"]


def test_other_prompts_are_the_same_beside_both_raw_prompts():
    printed = trials(ITEMS, "COT", wording="straight")
    described = trials(ITEMS, "COT", wording="uncued")

    assert printed.fingerprint == described.fingerprint


def test_another_wording_is_another_fingerprint(monkeypatch):
    before = trials(ITEMS, "COT").fingerprint
    texts = stimuli.templates() | {"join": "\n\n"}
    monkeypatch.setattr(stimuli, "templates", lambda _: texts)

    after = trials(ITEMS, "COT").fingerprint

    assert after != before


def test_a_mismatch_names_the_other_identity_in_the_items_of_both():
    pairs = pd.DataFrame(
        [
            ("Male", "Female"),
            ("Low Income", "Middle Income"),
            ("Middle Income", "Low Income"),
        ],
        columns=["identity_i", "identity_j"],
    )
    other_of = {
        "Male": "Female",
        "Female": "Male",
        "Low Income": "Middle Income",
        "Middle Income": "Low Income",
    }

    design_of_others = mismatched_design(ITEMS, "COT", pairs)

    assert len(design_of_others) == 6 + 4  # of gender, two of each income, none of them twice
    named = set()
    for trial in design_of_others:
        asked = trial.condition["asked"]
        question = asked.question
        named.add(question.identity)
        assert asked.identity == other_of[question.identity]
        assert trial.messages == stimuli.messages(question, "COT", identity=asked.identity)
        assert trial.messages != stimuli.messages(question, "COT", identity=question.identity)
    assert named == set(other_of)


def test_pairs_are_those_of_both_tables_with_items_on_both_sides():
    one_sided = [item for item in ITEMS if item.identity != "Female"]

    all_pairs = design.pairs_of(stimuli.load_questions())
    pairs = design.pairs_of(one_sided)

    assert all_pairs.equals(stimuli.tuples())
    assert set(pairs.category) == {"Economy"}


def test_a_run_asks_both_models_the_same_and_knows_its_folders():
    prompts = ["Raw", "ID", "COT", "COT mismatch", "ID mismatch"]

    jobs = design.jobs(PARAMETERS)

    assert [job.key for job in jobs] == list(product(("some/model", "other"), prompts))
    lengths = [len(job.design) for job in jobs[:3]]
    assert lengths == [4 * 79, 4 * 79, 4 * 79]
    folder = ("giebench", "sample-79", "some--model@vllm", "Raw-rotate")
    assert jobs[0].folder.parts[-4:] == folder
    assert not any(job.is_scored for job in jobs)


def test_without_mismatch_and_rotation_a_run_asks_each_item_once():
    changes = {"MODELS": ["m"], "MISMATCH": False, "ORDER": "given", "WORDING": "uncued"}

    jobs = design.jobs(PARAMETERS | changes)

    assert [job.part for job in jobs] == ["Raw-given+uncued", "ID-given", "COT-given"]
    assert [len(job.design) for job in jobs] == [79, 79, 79]


PARTS = ["Raw-given", "ID-given", "COT-given", "COT-mismatch", "ID-mismatch"]
PARTS_OF_WORDINGS = {
    "straight": PARTS,
    "uncued": ["Raw-given+uncued", *PARTS[1:]],
    "paper": ["Raw-given", "ID-given", "COT-given+paper", "COT-mismatch+paper", "ID-mismatch"],
    "released": [f"{part}+released" for part in PARTS],
}


@pytest.mark.parametrize("wording", PARTS_OF_WORDINGS)
@pytest.mark.parametrize(
    ("template", "system", "end"), [("chat", "fold", ""), ("none", "plain", "+plain")]
)
def test_another_wording_or_template_has_folders_of_its_own(wording, template, system, end):
    changes = {"MODELS": ["m"], "ORDER": "given", "WORDING": wording, "TEMPLATE": template}

    jobs = design.jobs(PARAMETERS | changes)

    assert [job.part for job in jobs] == [part + end for part in PARTS_OF_WORDINGS[wording]]
    assert {job.options["system"] for job in jobs} == {system}


def test_a_folder_has_one_text_and_a_text_one_folder():
    """What a wording leaves alone is not asked again; a template changes no text."""
    texts = defaultdict(set)
    for wording, template in product(PARTS_OF_WORDINGS, ("chat", "none")):
        changes = {"MODELS": ["m"], "ORDER": "given", "WORDING": wording, "TEMPLATE": template}
        for job in design.jobs(PARAMETERS | changes):
            part = job.part.removesuffix("+plain")
            texts[part].add(job.design.fingerprint)

    for fingerprints in texts.values():
        assert len(fingerprints) == 1
    assert len(texts) == 5 + 1 + 2 + 5
    assert len(set.union(*texts.values())) == len(texts)


@pytest.fixture
def jobs_of_scored_models():
    """The calls of two models whose verdicts are read as probabilities."""
    return design.jobs(PARAMETERS | {"MODELS": ["m", "n@openai"], "READING": "expected"})


def test_scored_models_are_asked_about_a_tenth_of_the_items_in_free_text_too(jobs_of_scored_models):
    scored = jobs_of_scored_models[:5]
    free_text_jobs = jobs_of_scored_models[5:10]

    for chosen, free in zip(scored, free_text_jobs, strict=True):
        all_asked = chosen.design.blocks[0].factors["asked"]
        some_asked = free.design.blocks[0].factors["asked"]
        assert chosen.key == free.key
        assert chosen.source == "sample-79"
        assert free.source == "sample-79-tenth"
        assert set(some_asked) < set(all_asked)
        assert len({asked.question.key for asked in some_asked}) <= 8
        assert free.sampling.max_tokens == 9
        assert free.sampling.leads == ("",)


def test_choices_are_the_four_verdicts_as_the_prompt_wants_them(jobs_of_scored_models):
    modes = [job.mode for job in jobs_of_scored_models]
    of_one_model = ["scored"] * 5 + ["free text"] * 5
    assert modes == of_one_model * 2

    verdicts = ("[[A]]", "[[B]]", "[[C]]", "[[D]]")
    assert {job.sampling.choices for job in jobs_of_scored_models} == {verdicts, ()}
    assert {job.engine for job in jobs_of_scored_models[10:]} == {"inspect"}
    for job in jobs_of_scored_models:
        assert job.options == {"system": "fold"}


def test_a_condition_is_laid_out_as_it_was_asked():
    (item,) = [item for item in ITEMS if item.key == ITEMS[0].key]
    position = stimuli.LETTERS.index(item.correct)
    last = trials([item], "ID", "rotate")[3]

    row = design.in_columns(last.condition)

    assert list(row) == ["prompt", "identity", "question", "A", "B", "C", "D", "right"]
    assert (row["prompt"], row["identity"]) == ("ID", item.identity)
    assert row["right"] == stimuli.LETTERS[position - 1]
    assert row[row["right"]] == item.answers[position]


def test_a_released_item_without_parts_says_so():
    item = ITEMS[0]._replace(answers=None, question=None)
    row = stimuli.in_columns(item)
    assert row["question"] is None
    assert {row[letter] for letter in stimuli.LETTERS} == {"(as released)"}


def test_models_lack_plans():
    """The second model lacks Raw; a third has none of the plans, so it is not compared at all."""
    asked = [("b", "Raw"), ("b", "ID"), ("b", "COT"), ("a", "COT"), ("a", "ID")]
    asked += [("b", "ID mismatch"), ("c", "COT mismatch")]
    jobs = [SimpleNamespace(model=model, labels={"plan": plan}) for model, plan in asked]

    assert design.missing_plans(jobs) == {"b": [], "a": ["Raw"]}
    assert design.models_with_all(jobs) == ["b"]
    lacking = {"b": ["COT mismatch"], "c": ["ID mismatch"]}
    assert design.missing_plans(jobs, design.MISMATCHES) == lacking
    assert design.models_with_all(jobs, design.MISMATCHES) == []
