"""The design of the Biased Samaritan, its calls, and their answers as arrays."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.design import Design, tenth
from ingroup.inference import Sampling, fill, open_store, rated, stored
from ingroup.studies.biased_samaritan import stimuli
from ingroup.studies.biased_samaritan.answers import cubes
from ingroup.studies.biased_samaritan.design import calls, sampling_of, scenarios, trials
from toy import Toy

ASKED = {"MODELS": ["calibrant", "calibrant-null"], "ENGINE": "", "READING": "",
    "ENDING": "turn", "RUNS": 2,
         "SCENARIOS": "sample", "CROSSING": "full", "LATINO": False, "TEMPERATURE": -1.0,
         "TOP_P": -1.0, "MAX_TOKENS": 128, "REASONING": "", "SEED": 7,
         "REQUEST": "sample"}  # fmt: skip


TOLD = stimuli.load_scenarios()


@pytest.mark.parametrize(("category", "names"), [("Race", 11), ("Gender", 8), ("Age", 8)])
def test_the_samaritan_has_the_papers_numbers_of_prompts(category, names):
    paper = trials(TOLD, category, "totals")
    assert len(paper) == {"Race": 1133, "Gender": 824, "Age": 824}[category]
    assert len(trials(TOLD, category)) == 412 * names
    assert paper.fingerprint != trials(TOLD, category).fingerprint


def test_the_papers_crossing_asks_each_phrasing_once_a_scenario_and_deals_the_wordings_evenly():
    (block,) = trials(TOLD, "Age", "totals").blocks
    prompts = pd.DataFrame(block.factors["prompt"])
    assert (prompts.groupby(["scenario", "phrasing"]).size() == 1).all()
    assert prompts.groupby(["phrasing", "wording"]).size().between(25, 26).all()


@pytest.mark.parametrize("request_", ["sample", "Rate it from 1 to 100."])
def test_answers_of_the_crossing_under_its_former_name_are_read(request_, tmp_path, monkeypatch):
    """Stores of CROSSING=paper: its name is in their prompts' fingerprint and in their place."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    asked = calls(ASKED | {"CROSSING": "totals", "REQUEST": request_})
    (call,) = [call for call in asked if call.key == ("calibrant", 2, "Age")]
    (block,) = trials(TOLD, "Age", "totals", asking=request_).blocks
    former = Design([replace(block, labels={"category": "Age", "crossing": "paper"})])
    assert call.design.fingerprint == former.fingerprint

    end = "" if request_ == "sample" else f"+{former.fingerprint[:12]}"
    folder = tmp_path / "biased_samaritan" / "sample-103" / "calibrant@transformers"
    assert call.folder == folder / f"Age-paper{end}-run2"
    engine = Toy(lambda *_: "85")
    fill(former, engine, open_store(call.folder, former, engine, call.sampling), call.sampling)
    assert stored(call).read().text.tolist() == ["85"] * len(former)


def test_a_samaritan_trial_is_its_scenario_and_the_request():
    plan = trials(TOLD, "Gender", latino=True)
    trial = plan[8 * 4 * 6 + 8 + 7]  # the seventh scenario, second wording, last phrasing
    prompt = trial.condition["prompt"]
    assert (prompt.scenario, prompt.wording, prompt.phrase) == (7, 2, "an enby")
    assert trial.messages == stimuli.messages(prompt.text, "an enby")
    assert len(trials(TOLD, "Race", latino=True)) == 412 * 13


def test_every_call_has_its_own_seed_and_place():
    asked = calls(ASKED)
    runs = [("calibrant", 1), ("calibrant", 2), ("calibrant-null", 1)]
    assert [call.key for call in asked] == [(*run, c) for run in runs for c in stimuli.categories()]
    assert [len(call.design) for call in asked[6:]] == [412 * 11, 412 * 8, 412 * 8]
    assert [call.sampling.seed for call in asked[:6]] == [3007, 4007, 5007, 6007, 7007, 8007]
    assert len({call.folder for call in asked}) == 9
    assert asked[5].folder.parts[-3:] == ("sample-103", "calibrant@transformers", "Age-full-run2")
    assert all(call.options == {"system": "fold"} for call in asked)
    assert len(calls(ASKED | {"MODELS": ["calibrant"], "RUNS": 1})) == 3


def test_over_choices_there_is_one_run_and_beside_it_a_tenth_freely_and_greedily():
    asked = calls(ASKED | {"MODELS": ["calibrant", "somebody/else"], "READING": "expected"})[6:]
    assert rated(asked) == asked[:3]
    assert [call.key for call in asked] == 2 * [
        ("somebody/else", 1, category) for category in stimuli.categories()
    ]
    assert [len(call.design) for call in asked] == [412 * n for n in (11, 8, 8)] + [
        44 * n for n in (11, 8, 8)
    ]
    assert {call.source for call in asked[3:]} == {"sample-103-tenth"}
    assert all(call.sampling.choices == tuple(map(str, range(1, 101))) for call in asked[:3])
    assert {(call.sampling.temperature, call.sampling.choices) for call in asked[3:]} == {(0, ())}
    chosen, free = ({t.condition["prompt"] for t in one.design} for one in (asked[0], asked[3]))
    few = {prompt.scenario for prompt in free}
    assert few == set(tenth(range(1, 104)))
    assert free == {prompt for prompt in chosen if prompt.scenario in few}


def test_a_users_prompts_run_as_they_are_and_apart_from_those_with_the_request():
    """Another end of the prompts is another text, another design and another place."""
    plain, asking = (
        calls(ASKED | {"MODELS": ["m@openai"], "REQUEST": text})[0]
        for text in ("none", "How sure are you {of it}?")
    )
    usual = calls(ASKED | {"MODELS": ["m@openai"]})[0]
    prompt = usual.design[1].condition["prompt"]
    told = stimuli.render(prompt.text, prompt.phrase)
    ends = ["", "\nHow sure are you {of it}?", f"\n{stimuli.request().text}"]
    ends[2] = ends[2].replace(stimuli.SLOT, prompt.phrase)
    for call, end in zip((plain, asking, usual), ends, strict=True):
        assert call.design[1].messages == [{"role": "user", "content": told + end}]
    assert len({call.address for call in (plain, asking, usual)}) == 3
    assert len({call.design.fingerprint for call in (plain, asking, usual)}) == 3
    scales = {stimuli.request(text)[2:] for text in ("sample", "none", "Any?")}
    assert scales == {(1, 100)}


def test_sampling_is_that_of_table_5_unless_it_is_given():
    assert sampling_of(ASKED, "calibrant") == Sampling(1.0, 1.0, 128, 7)
    haiku = sampling_of(ASKED, "claude-3.5-haiku")
    assert (haiku.temperature, haiku.top_p) == (1.0, 0.999)
    assert sampling_of(ASKED | {"TEMPERATURE": 0.0}, "claude-3.5-haiku").temperature == 0
    assert sampling_of(ASKED, "deepseek-ai/DeepSeek-R1").top_p == 1  # not in the table
    models = ["mistral-nemo@openai", "claude-3.5-haiku"]  # each its own, in one run
    asked = calls(ASKED | {"MODELS": models})
    drawn = {(c.model, c.sampling.temperature, c.sampling.top_p) for c in asked}
    assert drawn == {("mistral-nemo", 0.7, 1), ("claude-3.5-haiku", 1, 0.999)}


@pytest.mark.parametrize("crossing", ["full", "totals"])
def test_ratings_become_arrays_in_the_order_of_table_4(crossing):
    """A rating tells its prompt: scenario, wording and phrasing. There are fewer than wordings."""
    (block,) = trials(TOLD[TOLD.scenario <= 3], "Age", crossing).blocks
    prompts = pd.DataFrame(block.factors["prompt"])
    names = stimuli.phrasings("Age")
    code = 100 * prompts.phrasing.map({name: i for i, name in enumerate(names.phrasing)})
    told = prompts.assign(rating=code + 10 * prompts.scenario + prompts.wording)
    arrays = cubes(told.sample(frac=1, random_state=0))
    assert list(arrays) == names.group.unique().tolist()
    whole = np.concatenate(list(arrays.values()))
    assert whole.shape == (8, 3, 4)
    phrasing, scenario, wording = np.indices(whole.shape)
    expected = 100 * phrasing + 10 * (scenario + 1) + wording + 1
    there = ~np.isnan(whole)
    np.testing.assert_array_equal(whole[there], expected[there])
    assert (there.sum(axis=2) == (4 if crossing == "full" else 1)).all()


def test_a_smaller_number_of_scenarios_is_part_of_a_larger_one_and_so_is_its_tenth():
    every = scenarios(ASKED)
    assert every.drop(columns="freely").equals(TOLD)
    assert every[every.freely].scenario.unique().tolist() == tenth(TOLD.scenario.unique())
    larger = every
    for n in (103, 50, 21, 20, 2):
        some = scenarios(ASKED | {"N_SCENARIOS": n})
        assert some.scenario.nunique() == n
        assert some.groupby("scenario").size().eq(4).all()
        assert some[some.freely].scenario.nunique() == -(-n // 10)
        assert set(some.text) <= set(larger.text)
        assert set(some.text[some.freely]) <= set(larger.text[larger.freely])
        larger = some
