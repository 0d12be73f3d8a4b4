"""Designs and calls of StereoMap: which prompts, in which order, with which seeds."""

import pytest

from ingroup.inference import Sampling
from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.design import FIRST, calls, over_choices, trials

ASKED = {
    "MODELS": ["calibrant"], "ENGINE": "", "READING": "",
    "ENDING": "turn", "GROUPS": ["Men", "Nurses"],
    "ORIGINAL_GROUPS": "paper", "ROUNDS": 3, "ABLATION_ROUNDS": 2, "FORM": "released",
    "WORDING": "paper", "CALLS": "together", "TEMPERATURE": -1.0, "TOP_P": 1.0,
    "MAX_TOKENS": 800, "REASONING": "", "SEED": 7,
}  # fmt: skip


def test_every_group_is_asked_under_every_prompt():
    """98 groups x 7 prompts of appendix B and Table 7, neighbours with one prompt."""
    groups = stimuli.names()
    prompts = list(stimuli.prompts("EXTENDED"))
    whole = trials(groups, prompts)

    assert len(whole) == 98 * 7

    asked = [whole[place].condition["inquiry"] for place in (0, 1, -1)]
    assert asked == [
        ("Men", FIRST, ""),
        (groups[1], FIRST, ""),
        (groups[-1], prompts[-1], ""),
    ]
    assert whole[-1].messages == stimuli.chats(groups[-1], "EXTENDED/Behavior")[""]
    assert whole[0].condition["ablation"] == "Prompt (paper)"


def test_separate_calls():
    """Three parts of the first prompt, each for all groups before the next; one of the second."""
    whole = trials(["Men", "Nurses"], [FIRST, "EXTENDED/Prestige"], calls="separate")
    inquiries = [trial.condition["inquiry"] for trial in whole]
    parts = ("keywords", "ratings", "overall", "ratings")
    expected = [(group, part) for part in parts for group in ("Men", "Nurses")]

    assert [(one.group, one.part) for one in inquiries] == expected
    for trial, one in zip(whole, inquiries, strict=True):
        assert trial.messages == stimuli.chats(one.group, one.prompt, calls="separate")[one.part]


def test_designs_differ_where_a_text_does():
    ways = [{}, {"form": "grammatical"}, {"ablation": "w/o CoT"}, {"calls": "separate"}]
    designs = [trials(["Men"], ["EXTENDED/Emotion"], **way) for way in ways]
    designs.append(trials(["Men", "Women"], ["EXTENDED/Emotion"]))
    assert len({design.fingerprint for design in designs}) == 5


def test_calls_are_versions_ablations_and_rounds_with_seeds_of_their_own():
    found = calls(ASKED)
    assert [len(call.design) for call in found] == [2 * 7] * 3 + [1 * 21] * 3 + [2] * 3 * 2
    assert len({call.folder for call in found}) == len(found) == 12
    assert [call.sampling.seed for call in found[:4]] == [1007, 2007, 3007, 1008]
    assert found[3].labels == {"version": "ORIGINAL", "ablation": "Prompt (paper)", "round": 1}
    assert found[-1].labels["ablation"] == "w/o CoT+Instructions"
    assert found[0].folder.parts[-3:] == (
        "2-groups", "calibrant@transformers", "EXTENDED-Prompt-(paper)-released-together-round1"
    )  # fmt: skip

    sent = calls(ASKED | {"WORDING": "released"})
    assert sent[0].folder.name == "EXTENDED-Prompt-(paper)-released-together-as-sent-round1"
    assert sent[0].design[0].messages == stimuli.chats("Men", FIRST, wording="released")[""]
    assert len({call.folder for call in [*found, *sent]}) == 2 * len(found)

    everybody = calls(ASKED | {"GROUPS": [], "ORIGINAL_GROUPS": "released"})
    assert {call.source for call in everybody} == {"groups"}
    assert {len(call.design) for call in everybody} == {98 * 7, 37 * 21, 98}


@pytest.mark.parametrize(
    ("change", "number"),
    [
        ({"MODELS": ["calibrant", "calibrant-null"]}, 24),
        ({"ABLATION_ROUNDS": 0}, 6),
        ({"GROUPS": ["Rich"]}, 9),
    ],
)
def test_how_many_calls_there_are(change, number):
    assert len(calls(ASKED | change)) == number


@pytest.mark.parametrize(("model", "own"), [("text-davinci-003", 0.5), ("gpt-3.5-turbo", 1.0)])
def test_davinci_is_asked_at_its_own_temperature(model, own):
    found = calls(ASKED | {"MODELS": [model]})
    assert {call.sampling.temperature for call in found} == {own}


def test_over_choices_prompts_that_rate_the_same_words_are_one_call_of_one_round():
    """Of EXTENDED the axes, the four of status and competition, emotions, behaviours; of ORIGINAL
    all 21; a call for each reduced prompt. What is asked freely stands beside them, as ever."""
    found = calls(ASKED | {"READING": "expected"})
    chosen = [call for call in found if call.over_choices]

    assert [len(call.design) for call in chosen] == [2, 2 * 4, 2, 2, 21, 2, 2, 2]

    asked = [{i.prompt for i in call.design.blocks[0].factors["inquiry"]} for call in chosen[:5]]
    assert set.union(*asked) == {*stimuli.prompts("EXTENDED"), *stimuli.prompts("ORIGINAL")}
    assert {call.labels["round"] for call in chosen} == {1}
    assert len({call.folder for call in found}) == len(found) == 8 + 12

    freely = [call for call in found if not call.over_choices]
    assert [call.key for call in freely] == [call.key for call in calls(ASKED)]

    none = calls(ASKED | {"READING": "expected", "ABLATION_ROUNDS": 0})
    assert sum(call.over_choices for call in none) == 5


def test_leads_are_the_words_in_their_order_and_choices_the_scale():
    chosen = [call for call in calls(ASKED | {"READING": "expected"}) if call.over_choices]
    lines = [lead.strip("\n -:") for lead in chosen[0].sampling.leads]

    assert tuple(lines) == stimuli.prompts()[FIRST].words
    assert chosen[0].sampling.leads[:2] == ("- Friendly:", "\n- Sociable:")
    assert chosen[0].sampling.leads[-1] == "\nRating:"
    assert chosen[0].sampling.choices == (" 1", " 2", " 3", " 4", " 5")
    assert chosen[1].sampling.leads == over_choices(["Rating"], Sampling()).leads == ("Rating:",)
