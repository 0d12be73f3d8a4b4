"""The first paper's design: its size and order, what its jobs are, and rewriting (A.2)."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from events import paper_size_events
from ingroup import models, paths
from ingroup.inference import EngineError, Sampling, rated
from ingroup.studies.empathy_gap import design, stimuli
from ingroup.studies.empathy_gap.design import jobs, rewriting_design, trials, with_rewrites
from ingroup.tables import InputError
from toy import ABOUT_RELIGION


@pytest.fixture
def events():
    return stimuli.load_events("sample", 12)


def test_the_full_design_has_the_papers_number_of_trials_and_renders_any():
    full = trials(paper_size_events())
    trial = full[20_000_000]
    condition = trial.condition
    event = condition["event"]
    setting = stimuli.setting(condition["setting"])
    people = (condition["perceiver"], condition["experiencer"])

    assert len(full) == 7 * (19**2 + 22**2 + 6**2) * 6050 == 37_310_350
    assert trial.messages == setting.messages(*people, event.emotion, event.narrative)


def test_neighbours_differ_in_the_fastest_factor_first(events):
    identities = stimuli.identities("Religion").identity.tolist()

    plan = trials(events, ["P0,S0,T0"], ["Religion"])

    keys = []
    for trial in plan:
        condition = trial.condition
        perceiver = identities.index(condition["perceiver"])
        experiencer = identities.index(condition["experiencer"])
        keys.append((perceiver, experiencer, condition["event"].emotion))
    assert keys == sorted(keys)
    assert list(plan[0].condition)[2:] == ["perceiver", "experiencer", "event"]
    assert len(plan) == 6 * 6 * 12


def test_another_text_gives_another_fingerprint(events):
    changed = events.copy()
    changed.loc[3, "generated_text"] += "!"
    designs = [
        trials(events),
        trials(changed),
        trials(events, ["P1,S0,T0"]),
        trials(events, None, ["Religion"]),
        rewriting_design(events),
    ]

    fingerprints = [design.fingerprint for design in designs]

    assert len(set(fingerprints)) == 5
    assert trials(events.copy()).fingerprint == fingerprints[0]


def test_a_setting_without_its_narrative_is_refused(events):
    without_third_person = events.assign(third_person_text=np.nan)

    with pytest.raises(InputError, match=r"'third_person_text'.*appendix A\.2"):
        trials(without_third_person, ["P0,S0,T2"])


def test_a_setting_with_its_narrative_is_asked_where_another_form_is_missing(events):
    without_third_person = events.assign(third_person_text=np.nan)
    assert len(trials(without_third_person, ["P0,S0,T1"], ["Religion"])) == 432


def rewritten(events):
    return "The person " + events.first_person_text.str.removeprefix("I ")


def replies(events, error=None):
    """What a model that follows the prompt answers: the text, then the closing brace."""
    texts = [None] * len(events) if error else rewritten(events) + "} Text: {"
    reason = "failed" if error else "stop"
    return pd.DataFrame({"text": texts, "error": error, "finish_reason": reason})


def test_a_corpus_without_third_person_texts_is_rewritten_once_an_event(events):
    without_third_person = events.assign(third_person_text=np.nan)

    plan = rewriting_design(events)
    whole = with_rewrites(without_third_person, replies(events))

    assert len(plan) == 12
    assert events.first_person_text[7] in plan[7].messages[0]["content"]
    assert whole.third_person_text.tolist() == rewritten(events).tolist()
    assert len(trials(whole, ["P0,S0,T2"], ["Religion"])) == 432


def test_a_reply_without_a_text_names_its_event(events):
    failed = replies(events, "no net")
    with pytest.raises(EngineError, match="anger 1 has no third-person text in its reply: no net"):
        with_rewrites(events, failed)

    empty = replies(events).assign(text="}")
    with pytest.raises(EngineError, match=r"anger 1 has no third-person text in its reply$"):
        with_rewrites(events, empty)


def test_a_cut_text_is_refused_and_one_that_goes_on_behind_its_brace_is_not(events):
    goes_on = replies(events).assign(finish_reason="length")
    whole = with_rewrites(events, goes_on)
    assert whole.third_person_text.tolist() == rewritten(events).tolist()

    cut = goes_on.copy()
    cut.loc[4, "text"] = "The person felt sad when they"
    with pytest.raises(EngineError, match=r"guilt \d+ has a .* was cut; give more REWRITE_TOKENS"):
        with_rewrites(events, cut)


def test_rewritten_texts_are_drawn_to_be_checked(events):
    """The same seed draws the same texts, and another seed others."""
    sample = design.rewrites_to_check(events, replies(events), 1, 4)
    again = design.rewrites_to_check(events, replies(events), 1, 4)
    other = design.rewrites_to_check(events, replies(events), 2, 4)
    all_of_them = design.rewrites_to_check(events, replies(events), 1)

    assert len(sample) == 4
    assert sample.equals(again)
    assert set(sample.index) != set(other.index)
    assert sorted(all_of_them.index) == list(range(12))
    assert sample.third_person_text.tolist() == rewritten(events)[sample.index].tolist()
    assert set(sample.faithful) == {""}
    assert "text_id" not in sample


def test_a_trial_is_named_by_its_pair_and_its_event(events):
    (block,) = trials(events, ["P0,S0,T0"], ["Religion"]).blocks

    about = design.trial_labels(block.condition(12))

    assert about == {
        "perceiver": "a person",
        "experiencer": stimuli.identities("Religion").identity[1],
        "event": f"anger: {events.generated_text[0]}",
    }


def test_without_the_first_person_what_was_written_is_rewritten(events):
    without_first_person = events.assign(first_person_text=np.nan)

    plan = rewriting_design(without_first_person)

    assert events.generated_text[7] in plan[7].messages[0]["content"]


# --- jobs

CONTROL = "calibrant-null"
SETTINGS = list(stimuli.prompts()["settings"])
CATEGORIES = list(stimuli.categories())
# All settings and categories of twelve events, asked greedily.
PARAMETERS = ABOUT_RELIGION | {
    "N_EVENTS": 12,
    "SETTINGS": [],
    "CATEGORIES": [],
    "TEMPERATURE": 0.0,
}


def test_the_control_is_registered_as_one():
    assert models.registry().names[CONTROL].control


@pytest.fixture
def own_corpus(events, tmp_path):
    """Parameters with a corpus without the third person."""
    file = tmp_path / "own.tsv"
    events.drop(columns="third_person_text").to_csv(file, sep="\t", index=False)
    return PARAMETERS | {"CORPUS": str(file), "N_EVENTS": 0}


def test_a_job_is_one_setting_and_category_and_a_control_is_asked_in_the_first_setting():
    all_jobs = jobs(PARAMETERS | {"MODELS": ["org/one", CONTROL]})

    keys = [job.key for job in all_jobs]
    of_control = [(CONTROL, "P0,S0,T0", category) for category in CATEGORIES]
    assert keys[:-3] == list(product(["org/one"], SETTINGS, CATEGORIES))
    assert keys[-3:] == of_control
    for job in all_jobs:
        assert job.settled
        assert not job.is_scored


def test_a_job_has_the_design_and_the_folder_of_its_setting_and_category():
    race, nationality, religion, *_ = jobs(PARAMETERS)

    assert len(race.design) == 19**2 * 12
    assert len(nationality.design) == 22**2 * 12
    assert len(religion.design) == 6**2 * 12
    folder = race.folder.relative_to(paths.RESPONSES).as_posix()
    assert folder == "empathy_gap/sample-12/org--one@vllm/P0,S0,T0-race-or-ethnicity"
    assert religion.folder.name == "P0,S0,T0-religion"
    assert race.sampling == Sampling(temperature=0.0, max_tokens=128)


OF_RELIGION = PARAMETERS | {
    "CATEGORIES": ["Religion"],
    "SETTINGS": ["P0,S0,T0"],
    "TEMPERATURE": 1.0,
}


def test_rounds_ask_the_same_design_again_with_a_seed_and_a_folder_of_their_own():
    first, second, third = jobs(OF_RELIGION | {"ROUNDS": 3, "SEED": 5})

    assert first.key == ("org/one", "P0,S0,T0", "Religion", 1)
    assert second.key == ("org/one", "P0,S0,T0", "Religion", 2)
    assert third.key == ("org/one", "P0,S0,T0", "Religion", 3)
    rounds = [first, second, third]
    assert [job.round for job in rounds] == [1, 2, 3]
    assert [job.sampling.seed for job in rounds] == [5, 1005, 2005]
    assert [job.folder.name for job in rounds] == [
        "P0,S0,T0-religion",
        "P0,S0,T0-religion-round2",
        "P0,S0,T0-religion-round3",
    ]
    assert first.design is second.design is third.design


def test_a_control_is_asked_once_whatever_the_rounds():
    *of_model, of_control = jobs(
        OF_RELIGION | {"MODELS": ["org/one", CONTROL], "ROUNDS": 3, "SEED": 5}
    )

    assert len(of_model) == 3
    assert of_control.key == (CONTROL, "P0,S0,T0", "Religion", 1)
    assert of_control.sampling.seed == 5
    assert of_control.round == 1


def test_what_was_asked_once_is_the_first_of_several_rounds():
    (once,) = jobs(OF_RELIGION | {"ROUNDS": 1})
    first, *_ = jobs(OF_RELIGION | {"ROUNDS": 3})

    assert once.key == ("org/one", "P0,S0,T0", "Religion")
    assert first.folder == once.folder


def test_scored_nothing_is_drawn_in_rounds():
    all_jobs = jobs(OF_RELIGION | {"ROUNDS": 3, "READING": "expected"})
    assert [job.mode for job in all_jobs] == ["scored", "free text"]
    assert [job.round for job in all_jobs] == [1, 1]


def test_only_the_categories_that_are_named_are_asked():
    settings = ["P1,S0,T0", "P0,S0,T0"]

    all_jobs = jobs(PARAMETERS | {"CATEGORIES": ["Religion"], "SETTINGS": settings})

    assert [job.key for job in all_jobs] == [
        ("org/one", "P1,S0,T0", "Religion"),
        ("org/one", "P0,S0,T0", "Religion"),
    ]
    for job in all_jobs:
        assert job.design.blocks[0].labels["category"] == "Religion"


SCORED = PARAMETERS | {
    "CATEGORIES": ["Religion"],
    "READING": "expected",
    "SETTINGS": ["P0,S0,T0", "P0,S1,T0"],
}


def test_a_scored_model_is_asked_in_free_text_too_in_the_first_setting_only():
    all_jobs = jobs(SCORED)

    assert [(job.labels["setting"], job.mode) for job in all_jobs] == [
        ("P0,S0,T0", "scored"),
        ("P0,S0,T0", "free text"),
        ("P0,S1,T0", "scored"),
    ]
    assert [job.mode for job in rated(all_jobs)] == ["scored", "scored"]
    assert len({job.folder for job in all_jobs}) == 3
    assert all_jobs[0].folder.name == "P0,S0,T0-religion+choices"


def test_choices_are_the_whole_numbers_of_the_scale():
    to_100, _, to_10 = jobs(SCORED)
    assert to_100.sampling.choices == tuple(str(number) for number in range(101))
    assert to_10.sampling.choices == tuple(str(number) for number in range(11))


def test_in_free_text_a_scored_model_is_asked_about_two_of_the_events():
    scored, free, _ = jobs(SCORED)
    all_events = scored.design.blocks[0].factors["event"]
    some_events = free.design.blocks[0].factors["event"]

    assert len(some_events) == 2
    assert set(some_events) <= set(all_events)
    assert free.source == f"{scored.source}-tenth"


def test_a_scored_control_is_asked_in_the_first_setting_only():
    all_jobs = jobs(SCORED | {"MODELS": [CONTROL]})

    assert [(job.labels["setting"], job.mode) for job in all_jobs] == [
        ("P0,S0,T0", "scored"),
        ("P0,S0,T0", "free text"),
    ]


def test_a_setting_whose_form_the_corpus_lacks_is_left_out(own_corpus):
    settings = dict.fromkeys(job.labels["setting"] for job in jobs(own_corpus))

    assert list(settings) == [name for name in SETTINGS if not name.endswith("T2")]
    with pytest.raises(InputError, match=r"lacks the form that SETTINGS show \(third_person_text"):
        jobs(own_corpus | {"SETTINGS": ["P0,S0,T2"]})


REWRITER = {
    "REWRITER": "writer",
    "SETTINGS": ["P0,S0,T2", "P0,S0,T0"],
    "CATEGORIES": ["Religion"],
}


def test_nothing_is_rewritten_for_settings_that_do_not_show_it(own_corpus, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)

    all_jobs = jobs(own_corpus | REWRITER | {"SETTINGS": ["P0,S0,T0"]})

    assert [job.model for job in all_jobs] == ["org/one"]


@pytest.fixture
def store_rewrites(monkeypatch, tmp_path):
    """A function that stores these replies of the rewriter, as a whole store or a part of it."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)

    def store(table, whole=True):
        stored = SimpleNamespace(read=lambda: table)
        monkeypatch.setattr(design, "answered_jobs", lambda jobs: jobs if whole else [])
        monkeypatch.setattr(design, "stored", lambda job: stored)

    return store


def listed(parameters):
    """Model, part and whether its texts are known, of each job."""
    return [(job.model, job.part, job.settled) for job in jobs(parameters)]


BEFORE_REWRITING = [
    ("writer", "rewrite-300", True),
    ("org/one", "P0,S0,T2-religion", False),
    ("org/one", "P0,S0,T0-religion", True),
]


@pytest.mark.usefixtures("store_rewrites")
def test_rewritten_texts_are_asked_for_before_the_jobs_that_show_them(own_corpus):
    parameters = own_corpus | REWRITER
    assert listed(parameters) == BEFORE_REWRITING
    assert jobs(parameters)[0].sampling.max_tokens == 300


def test_texts_that_are_not_all_stored_are_asked_for_again(own_corpus, events, store_rewrites):
    store_rewrites(replies(events), whole=False)
    assert listed(own_corpus | REWRITER) == BEFORE_REWRITING


def test_texts_that_failed_are_asked_for_again(own_corpus, events, store_rewrites):
    store_rewrites(replies(events, "no net"))
    assert listed(own_corpus | REWRITER) == BEFORE_REWRITING


def test_stored_texts_are_shown(own_corpus, events, store_rewrites):
    store_rewrites(replies(events))
    parameters = own_corpus | REWRITER

    assert listed(parameters) == [
        ("org/one", "P0,S0,T2-religion", True),
        ("org/one", "P0,S0,T0-religion", True),
    ]
    first_trial = jobs(parameters)[0].design[0]
    assert "The person felt anger when" in first_trial.messages[1]["content"]


def test_a_stored_text_that_is_empty_names_its_event(own_corpus, events, store_rewrites):
    store_rewrites(replies(events).assign(text="}"))
    with pytest.raises(EngineError, match="event anger 1"):
        jobs(own_corpus | REWRITER)
