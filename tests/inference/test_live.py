"""A changed run asks live what the default run has recorded, if the weights are here."""

import json
from dataclasses import replace

import pytest

from ingroup import models, paths
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import (
    EngineError,
    Job,
    Reply,
    Sampling,
    StoreError,
    answered_jobs,
    ask,
    count_stored,
    recorded_with,
    stored,
)
from ingroup.inference import job as calling
from ingroup.inference.generate import SHARD_SIZE
from toy import Toy, religion, run

MODEL = "smollm2-135m-instruct"
SCORED = Sampling(choices=("0", "100"))
REAL_MODELS = [MODEL, "gemma-3-270m", "qwen2.5-coder-1.5b-instruct"]


@recorded_with(EVENTS=4, WORDING="paper")
def jobs(parameters):
    """Three jobs of each model; the default run has recorded the first two."""
    wording = "P0,S0,T0" if parameters["WORDING"] == "paper" else "P0,S0,T1"
    design = religion(parameters["EVENTS"], wording)
    source = f"sample-{parameters['EVENTS']}"

    planned = []
    for model in models.entries(parameters):
        for setting in ("first", "second", "third"):
            part = f"{setting}-{parameters['WORDING']}"
            labels = {"setting": setting}
            planned.append(
                Job("toy", source, model.name, model.engine, part, design, SCORED, labels)
            )
    return planned


def parameters(**changed):
    """The parameters of the default run, some of them changed."""
    default = {"EVENTS": 4, "WORDING": "paper", "ENGINE": "", "READING": "", "ENDING": "turn"}
    return {**default, "MODELS": [MODEL], "DTYPE": "auto", **changed}


def score(*_):
    return Reply("0", "stop", 10, probabilities=[0.75, 0.25], mass=[0.5])


def record(wide, dtype):
    """Record the answers to a job of the default run, as on another machine."""
    source = replace(wide, engine="vllm", root=paths.RECORDINGS / MODEL)
    engine = Toy(score, engine="vllm", model=MODEL, revision="recorded", dtype=dtype)
    run(source.design, source.folder, engine, 50, SCORED)


@pytest.fixture(autouse=True)
def recorded(tmp_path, monkeypatch):
    """Answers to the first two jobs of the default run."""
    for name in ("RESPONSES", "RECORDINGS", "MADE"):
        monkeypatch.setattr(paths, name, tmp_path / name)
    first, second, _ = jobs(parameters())
    record(first, "float32")
    record(second, "float32")


def make_weights(model=MODEL):
    """Make a folder as `make model` does, without tensors."""
    folder = paths.MADE / model
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def weights():
    """The folder of the model's weights."""
    return make_weights()


@pytest.fixture
def made(monkeypatch):
    """Which engines were made, with the type of their weights and the prompts that they had."""
    engines = []

    class OfFolder(Toy):
        """Answers every prompt alike, and gives each reply as it comes."""

        keeps_each = True

        def __init__(self, name, model, dtype="auto", say=score, **_):
            revision = models.revision(models.folder(model))
            super().__init__(say, engine=name, model=model, revision=revision, dtype=dtype)
            engines.append(self)

        def answer_each(self, conversations, sampling, keep, ledger_trials=None):
            replies = []
            for number, chat in enumerate(conversations):
                replies += self.answer([chat], sampling)
                keep(number, replies[-1])
            return replies

    monkeypatch.setattr(calling, "make_engine", OfFolder)
    return engines


def named(planned):
    """The labels of jobs."""
    return [job.labels["setting"] for job in planned]


def test_more_events_are_asked_of_the_weights(weights, made, capsys):
    changed = parameters(EVENTS=6)
    planned = jobs(changed)

    answered = ask(planned, changed)

    assert answered == planned[:2]
    (engine,) = made
    assert engine.about["engine"] == "transformers"
    assert engine.about["dtype"] == "float32"
    assert sum(engine.batches) == 2 * 216
    said = capsys.readouterr().err
    assert (
        "SmolLM2-135M: 432 prompts are not recorded and are asked now "
        f"(MODELS={MODEL}@stored only reads what is stored)"
    ) in said
    assert "SmolLM2-135M: scored answers (third) are not stored" in said


def test_live_answers_are_those_of_this_run(weights, made):
    """They are counted, and they are where `@transformers` would look for them."""
    changed = parameters(EVENTS=6)
    ask(jobs(changed), changed)

    first, second, _ = jobs(changed)

    assert answered_jobs(jobs(changed)) != []
    assert not calling.is_recorded(first.folder)
    assert count_stored([first, second]) == 432
    assert stored(first).manifest["engine"] == "transformers"
    by_name, _, _ = jobs(parameters(EVENTS=6, MODELS=[f"{MODEL}@transformers"]))
    assert by_name.folder == first.folder
    assert first.folder.parent.name == f"{MODEL}@transformers"


def test_what_was_asked_live_is_not_asked_again(weights, made, capsys):
    changed = parameters(EVENTS=6)
    ask(jobs(changed), changed)
    capsys.readouterr()

    assert named(ask(jobs(changed), changed)) == ["first", "second"]

    for given in (f"{MODEL}@stored", f"{MODEL}@transformers"):
        same = parameters(EVENTS=6, MODELS=[given])
        assert named(ask(jobs(same)[:2], same)) == ["first", "second"]
    assert len(made) == 1
    assert "asked now" not in capsys.readouterr().err


def test_a_run_that_was_killed_goes_on(weights, made, capsys):
    """Of the first job's 216 answers 100 are there, of the second's none."""

    def say_100(chat, times, n_asked):
        if n_asked == 100:
            raise EngineError("the machine stops")
        return score()

    changed = parameters(EVENTS=6)
    live = jobs(changed)[0].live
    engine = calling.make_engine("transformers", MODEL, "float32", say=say_100)
    with pytest.raises(EngineError, match="the machine stops"):
        run(live.design, live.folder, engine, SHARD_SIZE, SCORED)
    made.clear()

    ask(jobs(changed), changed)

    (engine,) = made
    assert sum(engine.batches) == 116 + 216
    assert "SmolLM2-135M: 332 prompts are not recorded" in capsys.readouterr().err


def test_another_wording_is_asked(weights, made):
    changed = parameters(WORDING="own")

    assert named(ask(jobs(changed), changed)) == ["first", "second"]

    (engine,) = made
    assert sum(engine.batches) == 2 * 144


def test_fewer_events_are_read_and_not_asked(weights, made):
    changed = parameters(EVENTS=2)

    answered = ask(jobs(changed), changed)

    assert named(answered) == ["first", "second"]
    assert all(calling.is_recorded(job.folder) for job in answered)
    assert made == []


def test_the_default_run_asks_nothing(weights, made):
    default = parameters()

    assert [job.live for job in jobs(default)] == [None, None, None]
    assert named(ask(jobs(default), default)) == ["first", "second"]
    assert made == []


def test_answers_of_another_run_are_no_recording(weights):
    """The third job is left out by the default run, though somebody asked it by name."""
    _, _, third = jobs(parameters())
    by_name = replace(third, engine="transformers")
    run(by_name.design, by_name.folder, Toy(score, engine="transformers", model=MODEL), 50, SCORED)

    planned = jobs(parameters(EVENTS=6))

    assert [job.live is None for job in planned] == [False, False, True]


def test_nothing_is_asked_of_a_model_that_only_reads(weights, made):
    changed = parameters(EVENTS=6, MODELS=[f"{MODEL}@stored"])

    with pytest.raises(StoreError, match="and are not asked for in this run"):
        ask(jobs(changed), changed)
    assert made == []


def test_nothing_is_asked_without_weights(made):
    changed = parameters(EVENTS=6)

    with pytest.raises(StoreError, match=r"\(make model, then MODELS=\S+@transformers asks it now"):
        ask(jobs(changed), changed)
    assert made == []


def test_weights_have_the_type_in_which_each_job_was_recorded(weights, made):
    """And each type is loaded once."""
    _, _, third = jobs(parameters())
    record(third, "bfloat16")
    changed = parameters(EVENTS=6, MODELS=[MODEL])

    ask(jobs(changed), changed)

    asked = [(engine.about["dtype"], sum(engine.batches)) for engine in made]
    assert asked == [("float32", 432), ("bfloat16", 216)]


def test_a_type_that_the_run_names_is_taken(weights, made):
    changed = parameters(EVENTS=6, DTYPE="bfloat16")

    ask(jobs(changed), changed)

    assert [engine.about["dtype"] for engine in made] == ["bfloat16"]


def test_a_job_whose_place_holds_other_answers_is_left_out(weights, made, capsys):
    changed = parameters(EVENTS=6)
    live = jobs(changed)[0].live
    engine = calling.make_engine("transformers", MODEL, "float32")
    run(religion(5), live.folder, engine, 50, SCORED)
    made.clear()

    assert named(ask(jobs(changed), changed)) == ["second"]

    assert sum(made[0].batches) == 216
    said = capsys.readouterr().err
    assert "holds answers to other prompts than this run has" in said
    assert "SmolLM2-135M: scored answers (first; third) are not stored" in said


def test_half_of_an_answer_does_not_hide_what_is_recorded(weights, made):
    """A run of another engine that was killed before any answer came left its store."""
    changed = parameters(EVENTS=2)
    first = jobs(changed)[0]
    half = replace(first, engine="inspect", wider=None)
    run(half.design, half.folder, Toy(score, engine="inspect", model=MODEL), 50, SCORED)
    next(half.folder.glob("part-00001*")).unlink()

    first, *_ = ask(jobs(changed), changed)

    assert calling.is_recorded(first.folder)
    assert len(stored(first).read()) == 72
    assert made == []


# ---- the studies ---------------------------------------------------------------------------------


NOTEBOOKS = ["10_empathy_gap", "20_biased_samaritan", "30_giebench", "40_stereomap"]


@pytest.fixture
def real_recordings(monkeypatch):
    """The recordings of this repository, with the weights of every real model."""
    monkeypatch.setattr(paths, "RECORDINGS", paths.DATA / "recordings")
    for model in REAL_MODELS:
        make_weights(model)


def study_jobs(notebook, **given):
    return jobs_of(notebook, merged_parameters(notebook, "demo", given))


@pytest.mark.usefixtures("real_recordings")
@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_no_study_asks_more_in_its_default_run(notebook):
    """So a default run is the same with weights and without."""
    planned = study_jobs(notebook)

    lacking = [job for job in planned if not job.folders and job.engine == "stored"]
    assert lacking or notebook != "40_stereomap"
    assert [job.live for job in planned] == [None] * len(planned)


CHANGED = [
    # Gemma was not asked about race and nationality in six settings.
    ("10_empathy_gap", {"N_EVENTS": "24"}, [21 + 3, 9 + 3, 21 + 3]),
    # Only free text is drawn.
    ("10_empathy_gap", {"TEMPERATURE": "0.7"}, [3, 3, 3]),
    ("20_biased_samaritan", {"REQUEST": "Why?"}, [3 + 3, 3 + 3, 3 + 3]),
    # The other prompts have the words of the default run.
    ("30_giebench", {"WORDING": "straight"}, [2, 2, 2]),
    ("30_giebench", {"TEMPLATE": "none"}, [10, 10, 10]),
    # Text of two rounds is recorded of SmolLM2 alone, and no ablation of any model.
    ("40_stereomap", {"FORM": "grammatical"}, [5 + 4, 5, 5]),
    ("40_stereomap", {"SEED": "7"}, [4, 0, 0]),
]


@pytest.mark.usefixtures("real_recordings")
@pytest.mark.parametrize(("notebook", "given", "expected"), CHANGED)
def test_each_study_asks_what_its_default_run_has(notebook, given, expected):
    """As many jobs of each real model, and none of a model that the run asks anyway."""
    planned = study_jobs(notebook, **given)

    lives = [job.live for job in planned if job.live]

    assert [sum(live.model == model for live in lives) for model in REAL_MODELS] == expected
    assert {live.engine for live in lives} == {"transformers"}
    for live in lives:
        assert live.wider is None
        assert live.options["dtype"] in ("float32", "bfloat16")


@pytest.mark.usefixtures("real_recordings")
def test_the_type_is_that_of_the_recorded_job():
    """Qwen's answers about race and nationality in six settings were asked on a GPU."""
    planned = study_jobs("10_empathy_gap", N_EVENTS="24", MODELS=REAL_MODELS[2])

    types = {}
    for job in planned:
        if job.live.is_scored:
            types[job.live.part] = job.live.options["dtype"]

    halves = {part for part, dtype in types.items() if dtype == "bfloat16"}
    assert len(halves) == 12
    assert "P1,S0,T0-race-or-ethnicity" in halves
    manifest = paths.RECORDINGS / REAL_MODELS[2] / "empathy_gap/sample-12"
    file = manifest / f"{REAL_MODELS[2]}@transformers/P1,S0,T0-religion+choices/manifest.json"
    assert types["P1,S0,T0-religion"] == json.loads(file.read_text())["dtype"] == "float32"
