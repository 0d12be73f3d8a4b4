"""Excerpts of recordings: the recorded answers, prompt by prompt, and no others."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from ingroup import paths
from ingroup.commands.parameters import calls_of, merged
from ingroup.inference import Call, Reply, Sampling, StoreError, ask, excerpts, kept, stored, there
from ingroup.inference import call as calling
from ingroup.inference.excerpts import SOURCE
from toy import Toy, religion, run

SCORED = Sampling(choices=("0", "100"))


def call(events, design=None, engine="stored", sampling=SCORED, **more):
    return Call(
        "empathy_gap", f"sample-{events}", "m", engine, "P0", design or religion(events), sampling,
        {"setting": "P0,S0,T0"}, **more,
    )  # fmt: skip


def scored(chat, *_):
    """A reply that depends on the chat alone."""
    share = sum(map(ord, chat[-1]["content"])) % 64 / 64
    text = "100" if share >= 0.5 else "0"
    return Reply(text, "stop", 10, probabilities=[1 - share, share], mass=[0.5])


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Recorded answers to the prompts of four events."""
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recordings")
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    wide = call(4)
    source = replace(wide, engine="vllm", root=paths.RECORDINGS / "m")
    run(wide.design, source.folder, Toy(scored, engine="vllm", model="m"), 50, SCORED)
    return wide


def test_fewer_events_have_the_answers_to_their_prompts(recorded):
    few = call(2, wider=recorded)
    assert there([few]) == [few]
    assert ask([few], {}) == [few]
    table = stored(few).read()
    assert len(table) == 72
    for trial in (0, 1, 35, 71):
        expected = scored(few.design[trial].messages)
        assert table.text[trial] == expected.text
        assert table.probabilities[trial] == list(expected.probabilities)
    assert "@vllm" in str(few.folder)
    assert kept([few]) == 0


def test_the_recordings_stay_as_they_are(recorded):
    before = {file: file.read_bytes() for file in paths.RECORDINGS.rglob("*") if file.is_file()}
    ask([call(2, wider=recorded)], {})
    after = {file: file.read_bytes() for file in paths.RECORDINGS.rglob("*") if file.is_file()}
    assert after == before


def test_answers_recorded_anew_are_copied_anew(recorded):
    few = call(2, wider=recorded)
    ask([few], {})
    before = stored(few).manifest[SOURCE]
    folder = recorded.folder
    for file in folder.iterdir():
        file.unlink()

    def otherwise(chat, *_):
        return Reply("0", "stop", 10, probabilities=[0.75, 0.25], mass=[0.5])

    toy = Toy(otherwise, engine="vllm", model="m")
    run(recorded.design, folder, toy, 50, SCORED)
    ask([few], {})
    assert stored(few).manifest[SOURCE] != before
    assert stored(few).read().text.eq("0").all()


def test_an_excerpt_that_is_there_is_told_without_its_prompts(recorded, monkeypatch):
    few = call(2, wider=recorded)
    ask([few], {})

    def rendered(*_):
        raise AssertionError("every prompt was rendered again")

    monkeypatch.setattr(excerpts, "_trials", rendered)
    assert there([few]) == [few]


def test_an_excerpt_that_was_killed_half_way_is_copied_anew(recorded):
    few = call(2, wider=recorded)
    ask([few], {})
    next(few.folder.glob("part-00000*")).unlink()
    assert there([few]) == [few]
    assert len(stored(few).read()) == 72


def test_nothing_is_copied_where_a_prompt_was_not_recorded(recorded, capsys):
    more = call(6, wider=recorded)
    assert there([more]) == []
    other = call(2, wider=recorded, design=religion(2, "P0,S0,T1"))
    assert there([other]) == []
    drawn = call(2, wider=recorded, sampling=replace(SCORED, choices=("0", "50", "100")))
    assert there([drawn]) == []
    assert not (paths.RESPONSES / calling.EXCERPTS).exists()


def test_nothing_is_copied_of_half_a_recording(recorded):
    next(recorded.folder.glob("part-00001*")).unlink()
    assert there([call(2, wider=recorded)]) == []


def test_answers_of_ones_own_are_read_first(recorded):
    few = call(2, wider=recorded)
    own = replace(few, engine="vllm", wider=None)
    toy = Toy(
        lambda *_: Reply("0", "stop", 10, probabilities=[1, 0], mass=[1]), engine="vllm", model="m"
    )
    run(few.design, own.folder, toy, 50, SCORED)
    assert ask([few], {}) == [few]
    assert stored(few).read().text.eq("0").all()


SUBSETS = [
    ("10_empathy_gap", {"N_EVENTS": "6", "SETTINGS": "P2,S0,T0", "CATEGORIES": "Religion"}),
    ("20_biased_samaritan", {"CROSSING": "totals"}),
    ("20_biased_samaritan", {"N_SCENARIOS": "3"}),
    ("30_giebench", {"ORDER": "given"}),
    ("40_stereomap", {"GROUPS": "Nurses;Lawyers;Elderly;Homeless;Women;Men", "CLUSTERS": "2"}),
]


@pytest.mark.parametrize(("notebook", "given"), SUBSETS)
def test_each_study_reads_part_of_what_is_recorded(notebook, given, tmp_path, monkeypatch):
    """The first call of the first real model, and of the calibrant: the recorded answers."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    wide = calls_of(notebook, merged(notebook, "demo", {}))
    asked = calls_of(notebook, merged(notebook, "demo", given))
    for model in ("smollm2-135m-instruct", "calibrant"):
        few = next(call for call in asked if call.model == model and call.wider)
        (same,) = [
            call
            for call in wide
            if (call.key, call.way, call.sampling.leads) == (few.key, few.way, few.sampling.leads)
        ]
        assert there([few]) == [few]
        answers = stored(few).read().text.astype(str)
        numbers = {json.dumps(trial.messages): trial.index for trial in same.design}
        trials = [numbers[json.dumps(trial.messages)] for trial in few.design]
        expected = stored(same).read().text.astype(str).iloc[trials]
        pd.testing.assert_series_equal(
            answers.reset_index(drop=True), expected.reset_index(drop=True), check_names=False
        )


def test_the_stimuli_of_the_recordings_are_those_of_the_default_run():
    """What `excerpts_of` names in each design is what the demo profile and the notebooks say."""
    for notebook, _ in SUBSETS:
        asked = calls_of(notebook, merged(notebook, "demo", {}))
        assert all(call.wider is None for call in asked)


def test_more_events_are_not_asked_of_who_is_only_recorded(recorded):
    with pytest.raises(StoreError, match="are not stored, and this run only reads"):
        ask([call(6, wider=recorded)], {})
