"""The design of the Biased Samaritan, its jobs, and their answers as arrays."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.design import Design, tenth
from ingroup.inference import Sampling, fill, open_store, rated, stored
from ingroup.studies.biased_samaritan import stimuli
from ingroup.studies.biased_samaritan.answers import cubes
from ingroup.studies.biased_samaritan.design import jobs, sampling_of, scenarios, trials
from toy import Toy

PARAMETERS = {
    "MODELS": ["calibrant", "calibrant-null"],
    "ENGINE": "",
    "READING": "",
    "ENDING": "turn",
    "ROUNDS": 2,
    "SCENARIOS": "sample",
    "CROSSING": "full",
    "LATINO": False,
    "TEMPERATURE": -1.0,
    "TOP_P": -1.0,
    "MAX_TOKENS": 128,
    "REASONING": "",
    "SEED": 7,
    "REQUEST": "sample",
}


SCENARIOS = stimuli.load_scenarios()
CATEGORIES = ["Race", "Gender", "Age"]


@pytest.mark.parametrize(
    ("category", "phrasings", "prompts_of_the_paper"),
    [
        ("Race", 11, 1133),
        ("Gender", 8, 824),
        ("Age", 8, 824),
    ],
)
def test_the_samaritan_has_the_papers_numbers_of_prompts(category, phrasings, prompts_of_the_paper):
    full = trials(SCENARIOS, category)
    paper = trials(SCENARIOS, category, "totals")

    assert len(full) == 412 * phrasings
    assert len(paper) == prompts_of_the_paper
    assert paper.fingerprint != full.fingerprint


def test_the_papers_crossing_asks_a_phrasing_once_per_scenario_and_deals_wordings_evenly():
    (block,) = trials(SCENARIOS, "Age", "totals").blocks
    prompts = pd.DataFrame(block.factors["prompt"])

    per_scenario = prompts.groupby(["scenario", "phrasing"]).size()
    per_wording = prompts.groupby(["phrasing", "wording"]).size()

    assert (per_scenario == 1).all()
    assert per_wording.between(25, 26).all()


@pytest.mark.parametrize("request_", ["sample", "Rate it from 1 to 100."])
def test_answers_of_the_crossing_under_its_former_name_are_read(request_, tmp_path, monkeypatch):
    """Stores of CROSSING=paper: its name is in their prompts' fingerprint and in their place."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    all_jobs = jobs(PARAMETERS | {"CROSSING": "totals", "REQUEST": request_})
    (job,) = [job for job in all_jobs if job.key == ("calibrant", 2, "Age")]
    (block,) = trials(SCENARIOS, "Age", "totals", asking=request_).blocks
    former = Design([replace(block, labels={"category": "Age", "crossing": "paper"})])
    end = "" if request_ == "sample" else f"+{former.fingerprint[:12]}"
    model_folder = tmp_path / "biased_samaritan" / "sample-103" / "calibrant@transformers"

    assert job.design.fingerprint == former.fingerprint
    assert job.folder == model_folder / f"Age-paper{end}-run2"

    engine = Toy(lambda *_: "85")
    store = open_store(job.folder, former, engine, job.sampling)
    fill(former, engine, store, job.sampling)
    texts = stored(job).read().text.tolist()
    assert texts == ["85"] * len(former)


def test_a_samaritan_trial_is_its_scenario_and_the_request():
    design = trials(SCENARIOS, "Gender", latino=True)
    trial = design[8 * 4 * 6 + 8 + 7]  # the seventh scenario, second wording, last phrasing
    prompt = trial.condition["prompt"]

    assert prompt.scenario == 7
    assert prompt.wording == 2
    assert prompt.phrase == "an enby"
    assert trial.messages == stimuli.messages(prompt.text, "an enby")


def test_latino_adds_two_phrasings():
    assert len(trials(SCENARIOS, "Race", latino=True)) == 412 * 13


def test_every_job_has_its_own_seed_and_folder():
    all_jobs = jobs(PARAMETERS)

    assert [job.key for job in all_jobs] == [
        ("calibrant", 1, "Race"),
        ("calibrant", 1, "Gender"),
        ("calibrant", 1, "Age"),
        ("calibrant", 2, "Race"),
        ("calibrant", 2, "Gender"),
        ("calibrant", 2, "Age"),
        ("calibrant-null", 1, "Race"),
        ("calibrant-null", 1, "Gender"),
        ("calibrant-null", 1, "Age"),
    ]
    lengths = [len(job.design) for job in all_jobs[6:]]
    assert lengths == [412 * 11, 412 * 8, 412 * 8]
    seeds = [job.sampling.seed for job in all_jobs[:6]]
    assert seeds == [3007, 4007, 5007, 6007, 7007, 8007]
    folders = {job.folder for job in all_jobs}
    assert len(folders) == 9
    assert all_jobs[5].folder.parts[-3:] == (
        "sample-103",
        "calibrant@transformers",
        "Age-full-run2",
    )
    for job in all_jobs:
        assert job.options == {"system": "fold"}


def test_one_run_of_one_model_is_one_job_per_category():
    assert len(jobs(PARAMETERS | {"MODELS": ["calibrant"], "ROUNDS": 1})) == 3


def test_scored_there_is_one_run_and_beside_it_a_tenth_in_greedy_free_text():
    models = ["calibrant", "somebody/else"]
    all_jobs = jobs(PARAMETERS | {"MODELS": models, "READING": "expected"})
    of_model = all_jobs[6:]
    scored = of_model[:3]
    free = of_model[3:]

    keys = [("somebody/else", 1, category) for category in CATEGORIES]
    assert rated(of_model) == scored
    assert [job.key for job in scored] == keys
    assert [job.key for job in free] == keys
    assert [len(job.design) for job in scored] == [412 * 11, 412 * 8, 412 * 8]
    assert [len(job.design) for job in free] == [44 * 11, 44 * 8, 44 * 8]

    scale = tuple(str(number) for number in range(1, 101))
    for job in scored:
        assert job.sampling.choices == scale
    for job in free:
        assert job.source == "sample-103-tenth"
        assert job.sampling.choices == ()
        assert job.sampling.temperature == 0


def test_the_tenth_in_free_text_has_the_prompts_of_its_scenarios():
    parameters = PARAMETERS | {"MODELS": ["somebody/else"], "READING": "expected"}
    scored, _, _, free, _, _ = jobs(parameters)
    all_prompts = {trial.condition["prompt"] for trial in scored.design}
    free_prompts = {trial.condition["prompt"] for trial in free.design}

    free_scenarios = {prompt.scenario for prompt in free_prompts}
    expected = {prompt for prompt in all_prompts if prompt.scenario in free_scenarios}

    assert free_scenarios == set(tenth(range(1, 104)))
    assert free_prompts == expected


def test_a_users_prompts_run_as_they_are_and_apart_from_those_with_the_request():
    """Another end of the prompts is another text, another design and another place."""
    parameters = PARAMETERS | {"MODELS": ["m@openai"]}
    usual = jobs(parameters)[0]
    without_request = jobs(parameters | {"REQUEST": "none"})[0]
    own_request = jobs(parameters | {"REQUEST": "How sure are you {of it}?"})[0]
    prompt = usual.design[1].condition["prompt"]
    scenario = stimuli.render(prompt.text, prompt.phrase)
    usual_request = stimuli.request().text.replace(stimuli.SLOT, prompt.phrase)

    content_of = {
        usual: f"{scenario}\n{usual_request}",
        without_request: scenario,
        own_request: scenario + "\nHow sure are you {of it}?",
    }

    for job, content in content_of.items():
        assert job.design[1].messages == [{"role": "user", "content": content}]
    assert len({job.address for job in content_of}) == 3
    assert len({job.design.fingerprint for job in content_of}) == 3


@pytest.mark.parametrize("text", ["sample", "none", "Any?"])
def test_every_request_has_the_scale_from_1_to_100(text):
    assert stimuli.request(text)[2:] == (1, 100)


def test_sampling_is_that_of_table_5_unless_it_is_given():
    assert sampling_of(PARAMETERS, "calibrant") == Sampling(1.0, 1.0, 128, 7)

    haiku = sampling_of(PARAMETERS, "claude-3.5-haiku")
    assert haiku.temperature == 1.0
    assert haiku.top_p == 0.999

    haiku_at_zero = sampling_of(PARAMETERS | {"TEMPERATURE": 0.0}, "claude-3.5-haiku")
    assert haiku_at_zero.temperature == 0

    not_in_the_table = sampling_of(PARAMETERS, "deepseek-ai/DeepSeek-R1")
    assert not_in_the_table.top_p == 1


def test_each_model_of_a_run_has_its_own_sampling():
    models = ["mistral-nemo@openai", "claude-3.5-haiku"]

    sampled = set()
    for job in jobs(PARAMETERS | {"MODELS": models}):
        sampled.add((job.model, job.sampling.temperature, job.sampling.top_p))

    assert sampled == {
        ("mistral-nemo", 0.7, 1),
        ("claude-3.5-haiku", 1, 0.999),
    }


@pytest.mark.parametrize(("crossing", "wordings"), [("full", 4), ("totals", 1)])
def test_ratings_become_arrays_in_the_order_of_table_4(crossing, wordings):
    """A rating is a code of its prompt: phrasing, scenario and wording."""
    three_scenarios = SCENARIOS[SCENARIOS.scenario <= 3]
    (block,) = trials(three_scenarios, "Age", crossing).blocks
    prompts = pd.DataFrame(block.factors["prompt"])
    phrasings = stimuli.phrasings("Age")
    number_of = {name: number for number, name in enumerate(phrasings.phrasing)}
    codes = 100 * prompts.phrasing.map(number_of) + 10 * prompts.scenario + prompts.wording
    shuffled = prompts.assign(rating=codes).sample(frac=1, random_state=0)

    arrays = cubes(shuffled)

    assert list(arrays) == phrasings.group.unique().tolist()
    joined = np.concatenate(list(arrays.values()))
    assert joined.shape == (8, 3, 4)

    phrasing, scenario, wording = np.indices(joined.shape)
    expected = 100 * phrasing + 10 * (scenario + 1) + wording + 1
    is_rated = ~np.isnan(joined)
    np.testing.assert_array_equal(joined[is_rated], expected[is_rated])
    assert (is_rated.sum(axis=2) == wordings).all()


def test_a_run_has_every_scenario_and_asks_a_tenth_of_them_in_free_text():
    every = scenarios(PARAMETERS)

    free = every[every.free_text].scenario.unique().tolist()

    assert every.drop(columns="free_text").equals(SCENARIOS)
    assert free == tenth(SCENARIOS.scenario.unique())


def test_a_smaller_number_of_scenarios_is_part_of_a_larger_one_and_so_is_its_tenth():
    larger = scenarios(PARAMETERS)
    for n in (103, 50, 21, 20, 2):
        smaller = scenarios(PARAMETERS | {"N_SCENARIOS": n})
        free = smaller[smaller.free_text]
        free_of_larger = larger[larger.free_text]

        assert smaller.scenario.nunique() == n
        assert smaller.groupby("scenario").size().eq(4).all()
        assert free.scenario.nunique() == math.ceil(n / 10)
        assert set(smaller.text) <= set(larger.text)
        assert set(free.text) <= set(free_of_larger.text)

        larger = smaller
