"""The first paper's design: its size and order, what its calls are, and rewriting (A.2)."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from events import paper_size_events
from ingroup import models, paths
from ingroup.inference import EngineError, Sampling, rated
from ingroup.studies.empathy_gap import design, stimuli
from ingroup.studies.empathy_gap.design import calls, rewriting, trials, with_rewrites
from ingroup.tables import InputError


@pytest.fixture
def events():
    return stimuli.load_events("sample", 12)


def test_the_full_design_has_the_papers_number_of_trials_and_renders_any():
    full = trials(paper_size_events())
    assert len(full) == 7 * (19**2 + 22**2 + 6**2) * 6050 == 37_310_350

    trial = full[20_000_000]
    condition = trial.condition
    event = trial.condition["event"]

    assert trial.messages == stimuli.setting(condition["setting"]).messages(
        condition["perceiver"], condition["experiencer"], event.emotion, event.narrative
    )


def test_neighbours_differ_in_the_fastest_factor_first(events):
    plan = trials(events, ["P0,S0,T0"], ["Religion"])
    people = stimuli.identities("Religion").identity.tolist()
    keys = [
        (people.index(c["perceiver"]), people.index(c["experiencer"]), c["event"].emotion)
        for c in (trial.condition for trial in plan)
    ]

    assert keys == sorted(keys)
    assert list(plan[0].condition)[2:] == ["perceiver", "experiencer", "event"]
    assert len(plan) == 6 * 6 * 12


def test_another_text_gives_another_fingerprint(events):
    same = trials(events.copy()).fingerprint
    assert trials(events).fingerprint == same

    changed = events.copy()
    changed.loc[3, "generated_text"] += "!"
    others = trials(changed), trials(events, ["P1,S0,T0"]), trials(events, None, ["Religion"])

    assert len({same, *(one.fingerprint for one in (*others, rewriting(events)))}) == 5


def test_a_setting_without_its_narrative_is_refused(events):
    events = events.assign(third_person_text=np.nan)
    with pytest.raises(InputError, match=r"'third_person_text'.*appendix A\.2"):
        trials(events, ["P0,S0,T2"])
    assert len(trials(events, ["P0,S0,T1"], ["Religion"])) == 432


def rewritten(events):
    return "The person " + events.first_person_text.str.removeprefix("I ")


def replies(events, error=None):
    """What a model that follows the prompt answers: the text, then the closing brace."""
    texts = [None] * len(events) if error else rewritten(events) + "} Text: {"
    reason = "failed" if error else "stop"
    return pd.DataFrame({"text": texts, "error": error, "finish_reason": reason})


def test_a_corpus_without_third_person_texts_is_rewritten_once_an_event(events):
    plan = rewriting(events)
    assert len(plan) == 12
    assert events.first_person_text[7] in plan[7].messages[0]["content"]

    done = with_rewrites(events.assign(third_person_text=np.nan), replies(events))
    assert done.third_person_text.tolist() == rewritten(events).tolist()
    assert len(trials(done, ["P0,S0,T2"], ["Religion"])) == 432


def test_a_reply_without_a_text_names_its_event(events):
    with pytest.raises(EngineError, match="anger 1 has no third-person text in its reply: no net"):
        with_rewrites(events, replies(events, "no net"))
    with pytest.raises(EngineError, match=r"anger 1 has no third-person text in its reply$"):
        with_rewrites(events, replies(events).assign(text="}"))


def test_a_cut_text_is_refused_and_one_that_goes_on_behind_its_brace_is_not(events):
    cut = replies(events).assign(finish_reason="length")
    assert with_rewrites(events, cut).third_person_text.tolist() == rewritten(events).tolist()

    cut.loc[4, "text"] = "The person felt sad when they"
    with pytest.raises(EngineError, match=r"guilt \d+ has a .* was cut; give more REWRITE_TOKENS"):
        with_rewrites(events, cut)


def test_without_the_first_person_what_was_written_is_rewritten(events):
    plan = rewriting(events.assign(first_person_text=np.nan))
    assert events.generated_text[7] in plan[7].messages[0]["content"]


# --- calls

CONTROL = next(one.name for one in models.registry().names.values() if one.control)
GIVEN = {
    "MODELS": ["org/one"], "ENGINE": "vllm", "CORPUS": "sample", "N_EVENTS": 12,
    "SETTINGS": [], "CATEGORIES": [], "REASONING": "", "TEMPERATURE": 0.0, "MAX_TOKENS": 128,
    "SEED": 0, "READING": "", "ENDING": "turn", "REWRITER": "", "REWRITE_TOKENS": 300,
}  # fmt: skip


@pytest.fixture
def own(events, tmp_path):
    """A corpus without the third person."""
    file = tmp_path / "own.tsv"
    events.drop(columns="third_person_text").to_csv(file, sep="\t", index=False)
    return GIVEN | {"CORPUS": str(file), "N_EVENTS": 0}


def test_a_call_is_one_setting_and_category_and_a_control_is_asked_in_the_first_setting():
    asked = calls(GIVEN | {"MODELS": ["org/one", CONTROL]})
    settings = list(stimuli.prompts()["settings"])
    categories = stimuli.categories()

    assert [call.key for call in asked] == [
        *(("org/one", name, category) for name in settings for category in categories),
        *((CONTROL, "P0,S0,T0", category) for category in categories),
    ]
    assert [len(call.design) for call in asked[:3]] == [19**2 * 12, 22**2 * 12, 6**2 * 12]
    assert all(call.settled and not call.over_choices for call in asked)

    folders = [call.folder.relative_to(paths.RESPONSES).as_posix() for call in asked[:3]]
    assert folders[0] == "empathy_gap/sample-12/org--one@vllm/P0,S0,T0-race-or-ethnicity"
    assert folders[2].endswith("/P0,S0,T0-religion")
    assert asked[0].sampling == Sampling(temperature=0.0, max_tokens=128)


def test_rounds_ask_the_same_design_again_with_a_seed_and_a_place_of_their_own():
    given = GIVEN | {"CATEGORIES": ["Religion"], "SETTINGS": ["P0,S0,T0"], "TEMPERATURE": 1.0}
    once = calls(given | {"MODELS": ["org/one"], "ROUNDS": 1})
    asked = calls(given | {"MODELS": ["org/one", CONTROL], "ROUNDS": 3, "SEED": 5})

    assert [call.key for call in asked] == [
        *(("org/one", "P0,S0,T0", "Religion", turn) for turn in (1, 2, 3)),
        (CONTROL, "P0,S0,T0", "Religion", 1),  # once, whatever ROUNDS is
    ]
    assert [call.sampling.seed for call in asked] == [5, 1005, 2005, 5]
    assert [call.round for call in asked] == [1, 2, 3, 1]

    names = [call.folder.name for call in asked]
    assert names[:3] == [
        "P0,S0,T0-religion",
        "P0,S0,T0-religion-round2",
        "P0,S0,T0-religion-round3",
    ]
    assert asked[0].folder == once[0].folder  # what was asked once is the first of several rounds
    assert once[0].key == ("org/one", "P0,S0,T0", "Religion")
    assert asked[0].design is asked[1].design is asked[2].design

    # Over choices nothing is drawn.
    over = calls(given | {"ROUNDS": 3, "READING": "expected"})
    assert [(call.way, call.round) for call in over] == [("over choices", 1), ("freely", 1)]


def test_only_the_categories_that_are_named_are_asked():
    settings = ["P1,S0,T0", "P0,S0,T0"]
    asked = calls(GIVEN | {"CATEGORIES": ["Religion"], "SETTINGS": settings})
    assert [call.key for call in asked] == [("org/one", name, "Religion") for name in settings]
    assert {call.design.blocks[0].labels["category"] for call in asked} == {"Religion"}


def test_a_model_over_choices_is_asked_freely_too_in_the_first_setting_only():
    given = {"READING": "expected", "SETTINGS": ["P0,S0,T0", "P0,S1,T0"]}
    asked = calls(GIVEN | given | {"CATEGORIES": ["Religion"]})

    assert [(call.labels["setting"], call.way) for call in asked] == [
        ("P0,S0,T0", "over choices"), ("P0,S0,T0", "freely"), ("P0,S1,T0", "over choices"),
    ]  # fmt: skip

    # The whole numbers of each scale: 0 to 100, and 0 to 10.
    assert asked[0].sampling.choices == tuple(str(number) for number in range(101))
    assert asked[2].sampling.choices == tuple(str(number) for number in range(11))
    assert len({call.folder for call in asked}) == 3

    # Freely about two of the events.
    every, few = (call.design.blocks[0].factors["event"] for call in asked[:2])
    assert len(few) == 2
    assert set(few) <= set(every)
    assert asked[1].source == f"{asked[0].source}-tenth"
    assert asked[0].folder.name == "P0,S0,T0-religion+choices"
    assert [call.way for call in rated(asked)] == ["over choices"] * 2

    control = calls(GIVEN | given | {"MODELS": [CONTROL], "CATEGORIES": ["Religion"]})
    assert [(call.labels["setting"], call.way) for call in control] == [
        ("P0,S0,T0", "over choices"), ("P0,S0,T0", "freely"),
    ]  # fmt: skip


def test_a_setting_whose_form_the_corpus_lacks_is_left_out(own):
    names = list(dict.fromkeys(call.labels["setting"] for call in calls(own)))
    assert names == [name for name in stimuli.prompts()["settings"] if not name.endswith("T2")]
    with pytest.raises(InputError, match=r"lacks the form that SETTINGS show \(third_person_text"):
        calls(own | {"SETTINGS": ["P0,S0,T2"]})


def test_nothing_is_rewritten_for_settings_that_do_not_show_it(own, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    own |= {"REWRITER": "writer", "SETTINGS": ["P0,S0,T0"], "CATEGORIES": ["Religion"]}
    assert [call.model for call in calls(own)] == ["org/one"]


def test_texts_are_asked_for_before_what_shows_them(own, events, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    own |= {"REWRITER": "writer", "SETTINGS": ["P0,S0,T2", "P0,S0,T0"], "CATEGORIES": ["Religion"]}

    def answered(told, whole=True):
        store = SimpleNamespace(read=lambda: told)
        monkeypatch.setattr(design, "there", lambda calls: calls if whole else [])
        monkeypatch.setattr(design, "stored", lambda call: store)

    def listed():
        return [(call.model, call.part, call.settled) for call in calls(own)]

    unsettled = ("org/one", "P0,S0,T2-religion", False)
    first = ("org/one", "P0,S0,T0-religion", True)
    before = [("writer", "rewrite-300", True), unsettled, first]

    assert listed() == before
    assert calls(own)[0].sampling.max_tokens == 300

    for told, whole in ((replies(events), False), (replies(events, "no net"), True)):
        answered(told, whole)
        assert listed() == before  # asked again

    answered(replies(events))
    assert listed() == [("org/one", "P0,S0,T2-religion", True), first]

    shown = calls(own)[0].design[0].messages[1]["content"]
    assert "The person felt anger when" in shown

    answered(replies(events).assign(text="}"))
    with pytest.raises(EngineError, match="event anger 1"):
        calls(own)
