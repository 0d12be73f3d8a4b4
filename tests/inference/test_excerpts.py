"""Excerpts of recordings: the recorded answers, prompt by prompt, and no others."""

import json
from dataclasses import replace

import pytest

from ingroup import paths
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import (
    Job,
    Reply,
    Sampling,
    StoreError,
    answered_jobs,
    ask,
    count_stored,
    excerpts,
    stored,
)
from ingroup.inference import job as calling
from ingroup.inference.excerpts import SOURCE_ENTRY
from toy import Toy, religion, run

SCORED = Sampling(choices=("0", "100"))


def job_of(events, design=None, sampling=SCORED, **more):
    """A job to stored answers, to the prompts of so many events."""
    return Job(
        "empathy_gap",
        f"sample-{events}",
        "m",
        "stored",
        "P0",
        design or religion(events),
        sampling,
        {"setting": "P0,S0,T0"},
        **more,
    )


def score_chat(chat, *_):
    """A reply that depends on the chat alone."""
    characters = sum(map(ord, chat[-1]["content"]))
    probability = characters % 64 / 64
    text = "100" if probability >= 0.5 else "0"
    return Reply(text, "stop", 10, probabilities=[1 - probability, probability], mass=[0.5])


def score_0(*_):
    """Another reply, the same to every chat."""
    return Reply("0", "stop", 10, probabilities=[0.75, 0.25], mass=[0.5])


def answer(scored, folder, say):
    """Answer a job's prompts into a folder."""
    engine = Toy(say, engine="vllm", model="m")
    run(scored.design, folder, engine, 50, SCORED)


def contents(folder):
    """The bytes of every file below a folder."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Recorded answers to the prompts of four events."""
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recordings")
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    wide = job_of(4)
    source = replace(wide, engine="vllm", root=paths.RECORDINGS / "m")
    answer(wide, source.folder, score_chat)
    return wide


@pytest.fixture
def few(recorded):
    """A job to the answers to two of the four events."""
    return job_of(2, wider=recorded)


def test_fewer_events_have_the_answers_to_their_prompts(few):
    assert answered_jobs([few]) == [few]
    assert ask([few], {}) == [few]

    table = stored(few).read()

    assert len(table) == 72
    for trial in (0, 1, 35, 71):
        expected = score_chat(few.design[trial].messages)
        assert table.text[trial] == expected.text
        assert table.probabilities[trial] == list(expected.probabilities)
    assert "@vllm" in str(few.folder)
    assert count_stored([few]) == 0


def test_the_recordings_stay_as_they_are(few):
    before = contents(paths.RECORDINGS)

    ask([few], {})

    assert contents(paths.RECORDINGS) == before


def test_answers_recorded_anew_are_copied_anew(recorded, few):
    ask([few], {})
    before = stored(few).manifest[SOURCE_ENTRY]
    folder = recorded.folder
    for file in folder.iterdir():
        file.unlink()
    answer(recorded, folder, score_0)

    ask([few], {})

    assert stored(few).manifest[SOURCE_ENTRY] != before
    assert stored(few).read().text.eq("0").all()


def test_an_excerpt_that_is_there_is_found_without_its_prompts(few, monkeypatch):
    ask([few], {})

    def render(*_):
        raise AssertionError("every prompt was rendered again")

    monkeypatch.setattr(excerpts, "_trials", render)

    assert answered_jobs([few]) == [few]


def test_an_excerpt_that_was_killed_half_way_is_copied_anew(few):
    ask([few], {})
    next(few.folder.glob("part-00000*")).unlink()

    assert answered_jobs([few]) == [few]
    assert len(stored(few).read()) == 72


def test_nothing_is_copied_where_a_prompt_was_not_recorded(recorded):
    more_events = job_of(6, wider=recorded)
    other_prompts = job_of(2, wider=recorded, design=religion(2, "P0,S0,T1"))
    other_choices = replace(SCORED, choices=("0", "50", "100"))
    other_scale = job_of(2, wider=recorded, sampling=other_choices)

    assert answered_jobs([more_events]) == []
    assert answered_jobs([other_prompts]) == []
    assert answered_jobs([other_scale]) == []
    assert not (paths.RESPONSES / calling.EXCERPTS).exists()


def test_nothing_is_copied_of_half_a_recording(recorded, few):
    next(recorded.folder.glob("part-00001*")).unlink()

    assert answered_jobs([few]) == []


def test_answers_of_ones_own_are_read_first(few):
    of_run = replace(few, engine="vllm", wider=None)
    answer(few, of_run.folder, score_0)

    assert ask([few], {}) == [few]
    assert stored(few).read().text.eq("0").all()


SUBSETS = [
    ("10_empathy_gap", {"N_EVENTS": "6", "SETTINGS": "P2,S0,T0", "CATEGORIES": "Religion"}),
    ("20_biased_samaritan", {"CROSSING": "totals"}),
    ("20_biased_samaritan", {"N_SCENARIOS": "3"}),
    ("30_giebench", {"ORDER": "given"}),
    ("40_stereomap", {"GROUPS": "Nurses;Lawyers;Elderly;Homeless;Women;Men", "CLUSTERS": "2"}),
]


def demo_jobs(notebook, **given):
    """The jobs of a study's default run, with some parameters changed."""
    return jobs_of(notebook, merged_parameters(notebook, "demo", given))


def is_wider(job, few):
    """Whether a job asks the same model in the same way."""
    same_prompts = job.key == few.key and job.mode == few.mode
    return same_prompts and job.sampling.leads == few.sampling.leads


@pytest.mark.parametrize("model", ["smollm2-135m-instruct", "calibrant"])
@pytest.mark.parametrize(("notebook", "given"), SUBSETS)
def test_each_study_reads_part_of_what_is_recorded(notebook, given, model, tmp_path, monkeypatch):
    """The first job of the first real model, and of the calibrant: the recorded answers."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    few = next(job for job in demo_jobs(notebook, **given) if job.model == model and job.wider)
    wider = [job for job in demo_jobs(notebook) if is_wider(job, few)]
    assert len(wider) == 1

    assert answered_jobs([few]) == [few]
    texts = stored(few).read().text.astype(str)

    numbers = {json.dumps(trial.messages): trial.index for trial in wider[0].design}
    trials = [numbers[json.dumps(trial.messages)] for trial in few.design]
    expected = stored(wider[0]).read().text.astype(str).iloc[trials]
    assert texts.tolist() == expected.tolist()


@pytest.mark.parametrize("n_events", [2, 5, 11])
def test_fewer_events_have_the_real_models_numbers_and_texts(n_events, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    given = {"N_EVENTS": str(n_events), "MODELS": "smollm2-135m-instruct"}

    jobs = demo_jobs("10_empathy_gap", **given)

    assert {job.mode for job in jobs} == {"scored", "free text"}
    assert answered_jobs(jobs) == jobs


@pytest.mark.parametrize("notebook", [notebook for notebook, _ in SUBSETS])
def test_the_stimuli_of_the_recordings_are_those_of_the_default_run(notebook):
    """What `recorded_with` names in each design is what the demo profile and the notebooks say."""
    wider = [job.wider for job in demo_jobs(notebook)]

    assert wider == [None] * len(wider)


def test_more_events_are_not_asked_of_a_model_that_is_only_recorded(recorded):
    more_events = job_of(6, wider=recorded)

    with pytest.raises(StoreError, match="are not stored, and are not asked for in this run"):
        ask([more_events], {})
