"""Designs of GIEBench: orders, the two Raw-Prompts, other identities; and the calls of a run."""

from collections import defaultdict
from itertools import product

import pandas as pd

from few import Few
from ingroup.studies.giebench import design, stimuli
from ingroup.studies.giebench.design import mismatched, trials

ITEMS = [item for item in stimuli.load_questions() if item.category in ("Gender", "Economy")]
PARAMETERS = {
    "MODELS": ["some/model", "other"],
    "ENGINE": "vllm",
    "READING": "",
    "ENDING": "turn",
}
PARAMETERS |= {
    "QUESTIONS": "sample",
    "ORDER": "rotate",
    "MISMATCH": True,
    "TEMPERATURE": 0.0,
}
PARAMETERS |= {
    "TOP_P": 1.0,
    "MAX_TOKENS": 9,
    "REASONING": "",
    "SEED": 0,
    "WORDING": "straight",
    "TEMPLATE": "chat",
}


def test_a_rotated_design_begins_with_the_items_as_they_are():
    given = trials(ITEMS, "ID")
    turned = trials(ITEMS, "ID", "rotate")

    assert len(given) == 12
    assert len(turned) == 48
    assert [trial.messages for trial in Few(turned, 0, 12)] == [t.messages for t in given]

    for place, trial in enumerate(turned):
        asked = trial.condition["asked"]
        assert asked.question == ITEMS[place % 12]
        assert asked.shift == place // 12
        assert trial.messages == stimuli.messages(asked.question, "ID", shift=asked.shift)

    assert given.blocks[0].labels == {"prompt": "ID", "order": "given"}


def test_the_two_raw_prompts_are_two_designs():
    printed, described = (trials(ITEMS, "Raw", wording=way) for way in ("straight", "uncued"))
    assert printed.fingerprint != described.fingerprint

    cue = "You should choose the assistant"
    assert all(cue in trial.messages[0]["content"] for trial in printed)
    assert not any(cue in trial.messages[0]["content"] for trial in described)

    same = {trials(ITEMS, "COT", wording=way).fingerprint for way in ("straight", "uncued")}
    assert len(same) == 1


def test_another_wording_is_another_fingerprint(monkeypatch):
    before = trials(ITEMS, "COT").fingerprint
    texts = stimuli.templates()
    monkeypatch.setattr(stimuli, "templates", lambda _: texts | {"join": "\n\n"})
    assert trials(ITEMS, "COT").fingerprint != before


def test_a_mismatch_names_the_other_identity_in_the_items_of_both():
    pairs = pd.DataFrame(
        [
            ("Male", "Female"),
            ("Low Income", "Middle Income"),
            ("Middle Income", "Low Income"),
        ],
        columns=["identity_i", "identity_j"],
    )
    plan = mismatched(ITEMS, "COT", pairs)
    told = [(t.condition["asked"].question.identity, t.condition["asked"].identity) for t in plan]
    expected = {"Male": "Female", "Low Income": "Middle Income"}

    assert dict(told) == expected | {other: own for own, other in expected.items()}
    assert len(told) == 6 + 4  # six items of gender, two of each income, none of them twice

    for trial, (own, other) in zip(plan, told, strict=True):
        question = trial.condition["asked"].question
        assert trial.messages == stimuli.messages(question, "COT", identity=other)
        assert trial.messages != stimuli.messages(question, "COT", identity=own)


def test_pairs_are_those_of_both_tables_with_items_on_both_sides():
    assert design.pairs_of(stimuli.load_questions()).equals(stimuli.tuples())
    one_sided = [item for item in ITEMS if item.identity != "Female"]
    assert set(design.pairs_of(one_sided).category) == {"Economy"}


def test_a_run_asks_both_models_the_same_and_knows_where():
    calls = design.calls(PARAMETERS)
    plans = ["Raw", "ID", "COT", "COT mismatch", "ID mismatch"]

    assert [call.key for call in calls] == [*product(("some/model", "other"), plans)]
    assert [len(call.design) for call in calls[:3]] == [4 * 79] * 3

    address = ("giebench", "sample-79", "some--model@vllm", "Raw-rotate")
    assert calls[0].folder.parts[-4:] == address
    assert not any(call.over_choices for call in calls)

    one = PARAMETERS | {
        "MODELS": ["m"],
        "MISMATCH": False,
        "ORDER": "given",
        "WORDING": "uncued",
    }
    calls = design.calls(one)

    assert [call.part for call in calls] == ["Raw-given+uncued", "ID-given", "COT-given"]
    assert [len(call.design) for call in calls] == [79] * 3


def test_another_wording_or_template_is_asked_apart():
    """Other prompts, or the same as plain text: stores of their own, each beside the others."""
    one = PARAMETERS | {"MODELS": ["m"], "ORDER": "given"}
    plans = ["Raw-given", "ID-given", "COT-given", "COT-mismatch", "ID-mismatch"]
    texts = defaultdict(set)
    changes = {
        "straight": (),
        "uncued": ("Raw",),
        "paper": ("COT",),
        "released": design.PROMPTS,
    }

    for wording, changed in changes.items():
        for template, system, end in (("chat", "fold", ""), ("none", "plain", "+plain")):
            calls = design.calls(one | {"WORDING": wording, "TEMPLATE": template})
            parts = [p + f"+{wording}" * p.startswith(changed) + end for p in plans]

            assert [call.part for call in calls] == parts
            assert {call.options["system"] for call in calls} == {system}

            for call in calls:
                texts[call.part.removesuffix("+plain")].add(call.design.fingerprint)

    # A place has one text, and a text one place: what a wording leaves alone is not asked again.
    assert all(len(found) == 1 for found in texts.values())
    assert len(set.union(*texts.values())) == len(texts) == 5 + 1 + 2 + 5


def test_over_choices_a_tenth_of_the_items_is_asked_freely_too():
    """Two stores a plan: the four verdicts as the prompt wants them written, and a text."""
    calls = design.calls(PARAMETERS | {"MODELS": ["m", "n@openai"], "READING": "expected"})
    assert [call.way for call in calls] == (["over choices"] * 5 + ["freely"] * 5) * 2
    assert {call.sampling.choices for call in calls} == {("[[A]]", "[[B]]", "[[C]]", "[[D]]"), ()}

    for chosen, free in zip(calls[:5], calls[5:10], strict=True):
        assert chosen.key == free.key
        assert chosen.source == "sample-79"
        assert free.source == "sample-79-tenth"

        every = chosen.design.blocks[0].factors["asked"]
        few = free.design.blocks[0].factors["asked"]

        assert set(few) < set(every)
        assert len({one.question.key for one in few}) <= 8
        assert free.sampling.max_tokens == 9
        assert free.sampling.leads == ("",)

    assert {call.engine for call in calls[10:]} == {"inspect"}
    assert all(call.options == {"system": "fold"} for call in calls)
