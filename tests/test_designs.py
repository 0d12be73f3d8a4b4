"""Index -> condition -> index, and the size of the first paper's design."""

import sys
from itertools import islice, pairwise

import numpy as np
import pandas as pd
import pytest

from events import paper_size_events
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.design import trials as biased_samaritan_trials
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.empathy_gap.design import trials as empathy_gap_trials
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.studies.stereomap.design import trials as stereomap_trials
from ingroup.tables import InputError


@pytest.fixture(scope="module")
def full():
    return empathy_gap_trials(paper_size_events())


def test_index_to_condition_to_index_at_random_places(full):
    rng = np.random.default_rng(0)
    for index in [0, len(full) - 1, *rng.integers(len(full), size=300).tolist()]:
        trial = full[index]
        assert trial.index == index
        assert full.index(trial.condition) == index


def test_a_full_design_costs_no_more_memory_than_a_small_one(full):
    def size(plan):
        return sum(sys.getsizeof(value) for value in vars(plan).values()) + sum(
            sys.getsizeof(block) for block in plan.blocks
        )

    assert size(full) == size(empathy_gap_trials(paper_size_events().head(12)))


def test_a_slice_keeps_the_numbers_of_the_whole():
    plan = empathy_gap_trials(stimuli.load_events("sample", 12))
    part = plan.slice(5000, 5010)
    assert len(part) == 10
    assert [trial.index for trial in part] == list(range(5000, 5010))
    assert list(part) == [plan[i] for i in range(5000, 5010)]
    assert [t.index for t in part.slice(2, 4)] == [5002, 5003]
    assert len(plan.slice(len(plan) - 1, len(plan) + 50)) == 1
    with pytest.raises(IndexError, match="slice 4:2"):
        plan.slice(4, 2)


def test_iteration_gives_every_trial_once():
    plan = empathy_gap_trials(stimuli.load_events("sample", 12), ["P0,S0,T0"], ["Religion"])
    assert [trial.index for trial in plan] == list(range(len(plan)))
    assert all(b.index == a.index + 1 for a, b in pairwise(islice(plan, 100)))
    with pytest.raises(IndexError):
        plan[len(plan)]


def test_a_block_is_found_by_its_labels():
    plan = empathy_gap_trials(stimuli.load_events("sample", 12))
    block, numbers = plan.block_of(setting="P2,S0,T0", category="Religion")
    assert len(block) == len(numbers) == 6 * 6 * 12
    condition = plan[numbers.start].condition
    assert (condition["setting"], condition["category"]) == ("P2,S0,T0", "Religion")
    with pytest.raises(KeyError, match="7 blocks"):
        plan.block_of(category="Religion")


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


def test_stereomap_asks_every_group_under_every_prompt():
    """98 groups x 7 prompts of appendix B and Table 7, neighbours with one prompt."""
    groups, prompts = social_groups.names(), list(social_groups.prompts("EXTENDED"))
    whole = stereomap_trials(groups, prompts)
    assert len(whole) == 98 * 7
    first, second, last = whole[0], whole[1], whole[-1]
    assert first.condition["inquiry"] == ("Men", "EXTENDED/Warmth-Competence", "")
    assert second.condition["inquiry"].group == groups[1]
    assert last.condition["inquiry"] == (groups[-1], "EXTENDED/Behavior", "")
    assert last.messages == social_groups.messages(groups[-1], "EXTENDED/Behavior")
    assert first.condition["ablation"] == "Prompt (paper)"


def test_stereomap_in_separate_calls():
    """Three parts of the first prompt, each for all groups before the next; one of the second."""
    prompts = ["EXTENDED/Warmth-Competence", "EXTENDED/Prestige"]
    whole = stereomap_trials(["Men", "Nurses"], prompts, calls="separate")
    inquiries = [trial.condition["inquiry"] for trial in whole]
    assert [(one.group, one.part) for one in inquiries] == [
        (group, part)
        for part in ("keywords", "ratings", "overall", "ratings")
        for group in ("Men", "Nurses")
    ]
    for trial, one in zip(whole, inquiries, strict=True):
        chats = social_groups.separate_messages(one.group, one.prompt)
        assert trial.messages == chats[one.part]


def test_stereomap_designs_differ_where_a_text_does():
    ways = [
        {},
        {"form": "grammatical"},
        {"ablation": "w/o CoT"},
        {"calls": "separate"},
    ]
    prints = {
        stereomap_trials(["Men"], ["EXTENDED/Emotion"], **way).fingerprint for way in ways
    } | {stereomap_trials(["Men", "Women"], ["EXTENDED/Emotion"]).fingerprint}
    assert len(prints) == 5


def test_stereomap_refuses_what_it_cannot_ask():
    with pytest.raises(ValueError, match="calls is 'one'"):
        stereomap_trials(["Men"], ["EXTENDED/Emotion"], calls="one")
    with pytest.raises(InputError, match="unknown group 'Men and women'"):
        stereomap_trials(["Men", "Men and women"], ["EXTENDED/Emotion"])
    with pytest.raises(InputError, match="EXTENDED prompts only"):
        stereomap_trials(["Men"], ["ORIGINAL/warm"], "w/o CoT")
