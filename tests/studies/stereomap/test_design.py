"""Designs and calls of StereoMap: which prompts, in which order, with which seeds."""

import pytest

from ingroup.studies.stereomap import stimuli
from ingroup.studies.stereomap.design import calls, trials
from ingroup.tables import InputError

ASKED = {
    "MODEL": "calibrant", "CONTROL": "", "ENGINE": "transformers", "GROUPS": ["Men", "Nurses"],
    "ORIGINAL_GROUPS": "paper", "ROUNDS": 3, "ABLATION_ROUNDS": 2, "FORM": "released",
    "CALLS": "together", "TEMPERATURE": -1.0, "TOP_P": 1.0, "MAX_TOKENS": 800, "SEED": 7,
}  # fmt: skip


def test_every_group_is_asked_under_every_prompt():
    """98 groups x 7 prompts of appendix B and Table 7, neighbours with one prompt."""
    groups, prompts = stimuli.names(), list(stimuli.prompts("EXTENDED"))
    whole = trials(groups, prompts)
    assert len(whole) == 98 * 7
    first, second, last = whole[0], whole[1], whole[-1]
    assert first.condition["inquiry"] == ("Men", "EXTENDED/Warmth-Competence", "")
    assert second.condition["inquiry"].group == groups[1]
    assert last.condition["inquiry"] == (groups[-1], "EXTENDED/Behavior", "")
    assert last.messages == stimuli.messages(groups[-1], "EXTENDED/Behavior")
    assert first.condition["ablation"] == "Prompt (paper)"


def test_separate_calls():
    """Three parts of the first prompt, each for all groups before the next; one of the second."""
    prompts = ["EXTENDED/Warmth-Competence", "EXTENDED/Prestige"]
    whole = trials(["Men", "Nurses"], prompts, calls="separate")
    inquiries = [trial.condition["inquiry"] for trial in whole]
    assert [(one.group, one.part) for one in inquiries] == [
        (group, part)
        for part in ("keywords", "ratings", "overall", "ratings")
        for group in ("Men", "Nurses")
    ]
    for trial, one in zip(whole, inquiries, strict=True):
        chats = stimuli.separate_messages(one.group, one.prompt)
        assert trial.messages == chats[one.part]


def test_designs_differ_where_a_text_does():
    ways = [{}, {"form": "grammatical"}, {"ablation": "w/o CoT"}, {"calls": "separate"}]
    prints = {trials(["Men"], ["EXTENDED/Emotion"], **way).fingerprint for way in ways} | {
        trials(["Men", "Women"], ["EXTENDED/Emotion"]).fingerprint
    }
    assert len(prints) == 5


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(ValueError, match="calls is 'one'"):
        trials(["Men"], ["EXTENDED/Emotion"], calls="one")
    with pytest.raises(InputError, match="unknown group 'Men and women'"):
        trials(["Men", "Men and women"], ["EXTENDED/Emotion"])
    with pytest.raises(InputError, match="EXTENDED prompts only"):
        trials(["Men"], ["ORIGINAL/warm"], "w/o CoT")


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
    assert {call.sampling.temperature for call in found} == {1.0}


@pytest.mark.parametrize(
    ("change", "number"),
    [({"CONTROL": "calibrant-null"}, 24), ({"ABLATION_ROUNDS": 0}, 6), ({"GROUPS": ["Rich"]}, 9)],
)
def test_how_many_calls_there_are(change, number):
    assert len(calls(ASKED | change)) == number


def test_every_group_is_asked_where_none_is_named():
    found = calls(ASKED | {"GROUPS": [], "ORIGINAL_GROUPS": "released"})
    assert {call.source for call in found} == {"groups"}
    assert {len(call.design) for call in found} == {98 * 7, 37 * 21, 98}


def test_davinci_is_asked_at_its_own_temperature():
    for model in ("text-davinci-003", "gpt-3.5-turbo"):
        temperature = calls(ASKED | {"MODEL": model})[0].sampling.temperature
        assert temperature == (0.5 if model.startswith("text") else 1.0)
