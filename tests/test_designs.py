"""Index -> condition -> index, and the size of the first paper's design."""

import sys
from itertools import islice, pairwise

import numpy as np
import pandas as pd
import pytest

from events import paper_size_events
from ingroup import corpora
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.design import trials as biased_samaritan_trials
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import rewriting
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.giebench.design import mismatched
from ingroup.studies.giebench.design import trials as giebench_trials
from ingroup.tables import InputError


@pytest.fixture(scope="module")
def full():
    return empathy_gap_trials(paper_size_events())


def test_the_full_design_has_the_papers_number_of_trials(full):
    assert len(full) == 7 * (19**2 + 22**2 + 6**2) * 6050 == 37_310_350


def test_index_to_condition_to_index_at_random_places(full):
    rng = np.random.default_rng(0)
    for index in [0, len(full) - 1, *rng.integers(len(full), size=300).tolist()]:
        trial = full[index]
        assert trial.index == index
        assert full.index(trial.condition) == index


def test_a_trial_is_rendered_from_its_condition(full):
    trial = full[20_000_000]
    condition = trial.condition
    assert trial.messages == stimuli.setting(condition["setting"]).messages(
        condition["perceiver"],
        condition["experiencer"],
        condition["event"].emotion,
        condition["event"].narrative,
    )


def test_a_full_design_costs_no_more_memory_than_a_small_one(full):
    def size(plan):
        return sum(sys.getsizeof(value) for value in vars(plan).values()) + sum(
            sys.getsizeof(block) for block in plan.blocks
        )

    assert size(full) == size(empathy_gap_trials(paper_size_events().head(12)))


def test_neighbours_differ_in_the_fastest_factor_first():
    events = corpora.load_events("sample", 12)
    plan = empathy_gap_trials(events, ["P0,S0,T0"], ["Religion"])
    factors = ["perceiver", "experiencer", "event"]
    people = stimuli.identities("Religion").identity.tolist()
    keys = [
        (people.index(c["perceiver"]), people.index(c["experiencer"]), c["event"].emotion)
        for c in (trial.condition for trial in plan)
    ]
    assert keys == sorted(keys)
    assert [list(plan[0].condition)[2:], len(plan)] == [factors, 6 * 6 * 12]


def test_a_slice_keeps_the_numbers_of_the_whole():
    plan = empathy_gap_trials(corpora.load_events("sample", 12))
    part = plan.slice(5000, 5010)
    assert len(part) == 10
    assert [trial.index for trial in part] == list(range(5000, 5010))
    assert list(part) == [plan[i] for i in range(5000, 5010)]
    assert [t.index for t in part.slice(2, 4)] == [5002, 5003]
    assert len(plan.slice(len(plan) - 1, len(plan) + 50)) == 1
    with pytest.raises(IndexError, match="slice 4:2"):
        plan.slice(4, 2)


def test_iteration_gives_every_trial_once():
    plan = empathy_gap_trials(corpora.load_events("sample", 12), ["P0,S0,T0"], ["Religion"])
    assert [trial.index for trial in plan] == list(range(len(plan)))
    assert all(b.index == a.index + 1 for a, b in pairwise(islice(plan, 100)))
    with pytest.raises(IndexError):
        plan[len(plan)]


def test_a_block_is_found_by_its_labels():
    plan = empathy_gap_trials(corpora.load_events("sample", 12))
    block, numbers = plan.block_of(setting="P2,S0,T0", category="Religion")
    assert len(block) == len(numbers) == 6 * 6 * 12
    condition = plan[numbers.start].condition
    assert (condition["setting"], condition["category"]) == ("P2,S0,T0", "Religion")
    with pytest.raises(KeyError, match="7 blocks"):
        plan.block_of(category="Religion")


def test_another_text_gives_another_fingerprint():
    events = corpora.load_events("sample", 12)
    same = empathy_gap_trials(events.copy()).fingerprint
    assert empathy_gap_trials(events).fingerprint == same
    changed = events.copy()
    changed.loc[3, "generated_text"] += "!"
    prints = {
        same,
        empathy_gap_trials(changed).fingerprint,
        empathy_gap_trials(events, ["P1,S0,T0"]).fingerprint,
        empathy_gap_trials(events, None, ["Religion"]).fingerprint,
        rewriting(events).fingerprint,
    }
    assert len(prints) == 5


def test_a_setting_without_its_narrative_is_refused():
    events = corpora.load_events("sample", 12).assign(third_person_text=np.nan)
    with pytest.raises(InputError, match=r"'third_person_text'.*appendix A\.2"):
        empathy_gap_trials(events, ["P0,S0,T2"])
    assert len(empathy_gap_trials(events, ["P0,S0,T1"], ["Religion"])) == 432


def test_rewriting_asks_once_an_event():
    events = corpora.load_events("sample", 12)
    plan = rewriting(events)
    assert len(plan) == 12
    assert events.first_person_text[7] in plan[7].messages[0]["content"]


@pytest.fixture(scope="module")
def told():
    return scenarios.load_scenarios()


@pytest.mark.parametrize(("category", "names"), [("Race", 11), ("Gender", 8), ("Age", 8)])
def test_the_samaritan_has_the_papers_numbers_of_prompts(told, category, names):
    printed = biased_samaritan_trials(told, category, "printed")
    assert len(printed) == {"Race": 1133, "Gender": 824, "Age": 824}[category]
    assert len(biased_samaritan_trials(told, category)) == 412 * names
    assert printed.fingerprint != biased_samaritan_trials(told, category).fingerprint


def test_printed_asks_each_phrasing_once_a_scenario_and_deals_the_wordings_evenly(told):
    (block,) = biased_samaritan_trials(told, "Age", "printed").blocks
    prompts = pd.DataFrame(block.factors["prompt"])
    assert (prompts.groupby(["scenario", "phrasing"]).size() == 1).all()
    dealt = prompts.groupby(["phrasing", "wording"]).size()
    assert dealt.min() >= 25
    assert dealt.max() <= 26


def test_a_samaritan_trial_is_its_scenario_and_the_request(told):
    plan = biased_samaritan_trials(told, "Gender", latino=True)
    trial = plan[8 * 4 * 6 + 8 + 7]  # the seventh scenario, second wording, last phrasing
    prompt = trial.condition["prompt"]
    assert (prompt.scenario, prompt.wording, prompt.phrase) == (7, 2, "an enby")
    assert trial.messages == scenarios.messages(prompt.text, "an enby")
    assert len(biased_samaritan_trials(told, "Race", latino=True)) == 412 * 13
    with pytest.raises(ValueError, match="crossing is 'half', expected 'full' or 'printed'"):
        biased_samaritan_trials(told, "Race", "half")


@pytest.fixture(scope="module")
def asked_items():
    return [item for item in questions.load_questions() if item.category in ("Gender", "Economy")]


def test_a_rotated_design_begins_with_the_items_as_they_are(asked_items):
    given = giebench_trials(asked_items, "ID")
    turned = giebench_trials(asked_items, "ID", "rotate")
    assert (len(given), len(turned)) == (12, 48)
    assert [trial.messages for trial in turned.slice(0, 12)] == [t.messages for t in given]
    for place, trial in enumerate(turned):
        asked = trial.condition["asked"]
        assert (asked.question, asked.shift) == (asked_items[place % 12], place // 12)
        assert trial.messages == questions.messages(asked.question, "ID", shift=asked.shift)
    assert given.blocks[0].labels == {"prompt": "ID", "order": "given"}
    with pytest.raises(ValueError, match="order is 'both', expected 'given' or 'rotate'"):
        giebench_trials(asked_items, "ID", "both")
    with pytest.raises(InputError, match="found 'Id'"):
        giebench_trials(asked_items, "Id")


def test_the_two_raw_prompts_are_two_designs(asked_items):
    printed, described = (
        giebench_trials(asked_items, "Raw", raw=raw) for raw in ("appendix", "text")
    )
    assert printed.fingerprint != described.fingerprint
    cue = "You should choose the assistant"
    assert all(cue in trial.messages[0]["content"] for trial in printed)
    assert not any(cue in trial.messages[0]["content"] for trial in described)


def test_a_mismatch_names_the_other_identity_in_the_items_of_both(asked_items):
    pairs = pd.DataFrame(
        [("Male", "Female"), ("Low Income", "Middle Income"), ("Middle Income", "Low Income")],
        columns=["identity_i", "identity_j"],
    )
    plan = mismatched(asked_items, "COT", pairs)
    told = [(t.condition["asked"].question.identity, t.condition["asked"].identity) for t in plan]
    expected = {"Male": "Female", "Low Income": "Middle Income"}
    expected |= {other: own for own, other in expected.items()}
    assert dict(told) == expected
    assert len(told) == 6 + 4  # six items of gender, two of each income, none of them twice
    for trial, (own, other) in zip(plan, told, strict=True):
        text = trial.messages[0]["content"]
        named = {i: questions.messages(trial.condition["asked"].question, "COT", identity=i)
                 for i in (own, other)}  # fmt: skip
        assert text == named[other][0]["content"] != named[own][0]["content"]
