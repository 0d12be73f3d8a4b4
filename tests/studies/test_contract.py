"""What every study keeps: jobs that are counted without being written out, a load that never
raises, true answers for the whole design, printed tables that load."""

from itertools import cycle, islice

import numpy as np
import pytest

from ingroup import paths, published
from ingroup.commands import settings
from ingroup.commands.run_parameters import merged_parameters
from ingroup.contract import REQUIRED_NAMES, module_of
from ingroup.design import Design
from ingroup.inference import Engine, Reply, ask, job, stored
from ingroup.models import calibrants
from ingroup.studies.stereomap import stimuli as stereomap

# As small as a study can be, so that all of it is asked.
SMALL = {
    "10_empathy_gap": {"N_EVENTS": "2", "SETTINGS": "P0,S0,T0;P0,S1,T0"},
    "20_biased_samaritan": {"ROUNDS": "1"},
    "30_giebench": {"ORDER": "given"},
    "40_stereomap": {
        "GROUPS": "Men;Women;Nurses;Doctors;Homeless",
        "ROUNDS": "1",
        "ABLATION_ROUNDS": "1",
    },
}
STATUSES = {
    "ok",
    "refused",
    "unparsable",
    "failed",
    "missing",
    "no verdict",
    "several verdicts",
    "cut",
    "incomplete",
    "too few",
    "too many",
}
HOSTILE = [
    None,
    "",
    " \n\t",
    "\x00",
    "\u202e42",
    "9" * 5000,
    "1e999",
    "NaN",
    "-0",
    "[[",
    "[[A]][[B]]",
    "[[a]]" * 2000,
    "<script>alert(1)</script>",
    "{person}",
    "%s%n",
    "1." * 4000,
    "٤٢",
    "½",
    "I'm sorry, but I can't.",
    "Friendly: 6, Sincere: zero",
    "1) a: b\n" * 500,
    "=1+1",
    "\r",
    "Rating: 3\rHonest: 4",
    f"Honest: {'4' * 5000}",
    f"1. {'9' * 5000}\r2. b",
]


def modules(notebook):
    """The study's name and its modules design, answers and ground_truth."""
    study = notebook[3:]
    design = module_of(study, "design", "Parameters", "jobs")
    answers = module_of(study, "answers", "load")
    ground_truth = module_of(study, "ground_truth", "GroundTruth")
    return study, design, answers, ground_truth


@pytest.fixture(params=SMALL)
def study(request):
    """The study's name, its modules and small parameters of a run."""
    notebook = request.param
    parameters = merged_parameters(notebook, "demo", SMALL[notebook])
    return *modules(notebook), parameters


class Hostile(Engine):
    """An engine that answers with anything but an answer."""

    asks_again = False

    def __init__(self):
        self.texts = cycle(HOSTILE)

    def answer(self, conversations, sampling):
        texts = islice(self.texts, len(conversations))
        return [Reply(text, "failed" if text is None else "stop") for text in texts]

    def identity(self):
        return {}

    def close(self):
        pass


def test_every_study_is_here():
    first = settings.first_notebooks()
    assert list(SMALL) == first, "SMALL above has each study's first notebook, by number"


@pytest.mark.parametrize("file", REQUIRED_NAMES)
@pytest.mark.parametrize("notebook", SMALL)
def test_every_module_defines_what_the_others_take(notebook, file):
    module_of(notebook[3:], file, *REQUIRED_NAMES[file])


@pytest.mark.parametrize("notebook", SMALL)
def test_jobs_are_counted_and_indexed_without_being_written_out(notebook):
    """Of the default run: every address once, a trial for every number, the same prompts again."""
    _, design, *_ = modules(notebook)
    parameters = merged_parameters(notebook, "demo", {})
    jobs = design.jobs(parameters)
    jobs_again = design.jobs(parameters)
    models = {name.split("@")[0] for name in parameters["MODELS"]}

    assert len({one_job.address for one_job in jobs}) == len(jobs)
    assert {one_job.model for one_job in jobs} == models
    for one_job in jobs:
        assert list(one_job.labels) == list(jobs[0].labels)

    for one_job, again in zip(jobs, jobs_again, strict=True):
        assert isinstance(one_job.design, Design)
        assert one_job.settled
        assert one_job.design.fingerprint == again.design.fingerprint

        number = len(one_job.design) // 2
        trial = one_job.design[number]
        assert one_job.design[len(one_job.design) - 1] == one_job.design[-1]
        assert trial.index == number
        assert one_job.design.index(trial.condition) == number
        assert trial.messages[-1]["role"] == "user"


def test_load_never_raises_on_hostile_text(study, tmp_path, monkeypatch):
    _, design, answers, _, parameters = study
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: Hostile())
    jobs = design.jobs(parameters | {"MODELS": ["calibrant"]})
    ask(jobs, parameters)

    for one_job in jobs:
        loaded = answers.load(one_job)
        parts = loaded.values() if isinstance(loaded, dict) else [loaded]

        for part in parts:
            if hasattr(part, "counts"):  # arrays: every trial has one of the reasons
                assert part.counts.sum() == part.values.size
                assert (np.isnan(part.values) == (part.status != 0)).all()
                assert set(part.counts.index) <= STATUSES
            else:
                assert len(part) == len(one_job.design) == stored(one_job).trials
                assert set(part.status) <= STATUSES


def check_ground_truth(study, ground_truth, block):
    """Every trial of a block has a ground-truth answer, or a ground-truth refusal."""
    if study == "empathy_gap":
        assert ground_truth.ratings(block).shape == block.shape
    elif study == "biased_samaritan":
        assert len(ground_truth.answers(block)) == len(block)
    elif study == "giebench":
        assert set(ground_truth.letters(block)) <= {"A", "B", "C", "D", ""}
    elif study == "stereomap":
        for group_prompt in block.factors["inquiry"]:
            for word in stereomap.expected_prompt(group_prompt.prompt, group_prompt.part).words:
                assert 1 <= ground_truth.rating(group_prompt.group, group_prompt.prompt, word) <= 5
    else:
        raise NotImplementedError(f"{study}: say here what its calibrant is built to answer")


@pytest.mark.parametrize("model", calibrants())
def test_the_ground_truth_covers_the_design(study, model):
    name, design, _, ground_truth, parameters = study
    answers = ground_truth.GroundTruth(paths.MODELS / model / "ground_truth.yaml")

    for one_job in design.jobs(parameters):
        for block in one_job.design.blocks:
            check_ground_truth(name, answers, block)


@pytest.mark.parametrize("notebook", SMALL)
def test_every_printed_table_loads(notebook):
    study = notebook[3:]
    files = sorted((paths.PUBLISHED / study).glob("*.csv"))

    assert files
    for file in files:
        start = file.stem.split("_")[0]
        table = int(start.removeprefix("table")) if start.startswith("table") else file.stem
        assert len(published.load(study, table)) > 0
