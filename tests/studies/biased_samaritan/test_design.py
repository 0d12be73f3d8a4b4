"""The design of the Biased Samaritan, its calls, and their answers as arrays."""

import numpy as np
import pandas as pd
import pytest

from ingroup.inference import Sampling
from ingroup.studies.biased_samaritan import stimuli
from ingroup.studies.biased_samaritan.answers import cubes
from ingroup.studies.biased_samaritan.design import calls, sampling_of, trials

ASKED = {"MODEL": "calibrant", "CONTROL": "calibrant-null", "ENGINE": "transformers", "RUNS": 2,
         "SCENARIOS": "sample", "CROSSING": "full", "LATINO": False, "TEMPERATURE": -1.0,
         "TOP_P": -1.0, "MAX_TOKENS": 128, "SEED": 7}  # fmt: skip


TOLD = stimuli.load_scenarios()


@pytest.mark.parametrize(("category", "names"), [("Race", 11), ("Gender", 8), ("Age", 8)])
def test_the_samaritan_has_the_papers_numbers_of_prompts(category, names):
    paper = trials(TOLD, category, "paper")
    assert len(paper) == {"Race": 1133, "Gender": 824, "Age": 824}[category]
    assert len(trials(TOLD, category)) == 412 * names
    assert paper.fingerprint != trials(TOLD, category).fingerprint


def test_the_papers_crossing_asks_each_phrasing_once_a_scenario_and_deals_the_wordings_evenly():
    (block,) = trials(TOLD, "Age", "paper").blocks
    prompts = pd.DataFrame(block.factors["prompt"])
    assert (prompts.groupby(["scenario", "phrasing"]).size() == 1).all()
    dealt = prompts.groupby(["phrasing", "wording"]).size()
    assert dealt.min() >= 25
    assert dealt.max() <= 26


def test_a_samaritan_trial_is_its_scenario_and_the_request():
    plan = trials(TOLD, "Gender", latino=True)
    trial = plan[8 * 4 * 6 + 8 + 7]  # the seventh scenario, second wording, last phrasing
    prompt = trial.condition["prompt"]
    assert (prompt.scenario, prompt.wording, prompt.phrase) == (7, 2, "an enby")
    assert trial.messages == stimuli.messages(prompt.text, "an enby")
    assert len(trials(TOLD, "Race", latino=True)) == 412 * 13


def test_every_call_has_its_own_seed_and_place():
    asked = calls(ASKED)
    assert [call.key for call in asked[:4]] == [
        ("calibrant", 1, "Race"), ("calibrant", 1, "Gender"), ("calibrant", 1, "Age"),
        ("calibrant", 2, "Race"),
    ]  # fmt: skip
    assert [len(call.design) for call in asked[6:]] == [412 * 11, 412 * 8, 412 * 8]
    assert asked[6].key == ("calibrant-null", 1, "Race")
    assert [call.sampling.seed for call in asked[:6]] == [3007, 4007, 5007, 6007, 7007, 8007]
    assert len({call.folder for call in asked}) == 9
    assert asked[5].folder.parts[-3:] == ("sample-103", "calibrant@transformers", "Age-full-run2")
    assert len(calls(ASKED | {"CONTROL": "", "RUNS": 1})) == 3


def test_sampling_is_that_of_table_5_unless_it_is_given():
    assert sampling_of(ASKED) == Sampling(1.0, 1.0, 128, 7)
    haiku = ASKED | {"MODEL": "claude-3.5-haiku"}
    assert (sampling_of(haiku).temperature, sampling_of(haiku).top_p) == (1.0, 0.999)
    assert sampling_of(haiku | {"TEMPERATURE": 0.0}).temperature == 0
    deepseek = ASKED | {"MODEL": "deepseek-ai/DeepSeek-R1"}
    assert sampling_of(deepseek).top_p == 1  # not in the table


@pytest.mark.parametrize("crossing", ["full", "paper"])
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
