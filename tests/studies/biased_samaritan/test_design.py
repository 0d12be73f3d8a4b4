"""The second paper's design: its numbers of prompts, and how wordings are dealt."""

import pandas as pd
import pytest

from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.biased_samaritan.design import trials as biased_samaritan_trials


@pytest.fixture(scope="module")
def told():
    return scenarios.load_scenarios()


@pytest.mark.parametrize(("category", "names"), [("Race", 11), ("Gender", 8), ("Age", 8)])
def test_the_samaritan_has_the_papers_numbers_of_prompts(told, category, names):
    printed = biased_samaritan_trials(told, category, "printed")
    assert len(printed) == {"Race": 1133, "Gender": 824, "Age": 824}[category]
    assert len(biased_samaritan_trials(told, category)) == 412 * names
    assert printed.fingerprint != biased_samaritan_trials(told, category).fingerprint


def test_printed_asks_each_phrasing_once_a_scenario_and_deals_the_wordings_evenly(told):
    (block,) = biased_samaritan_trials(told, "Age", "printed").blocks
    prompts = pd.DataFrame(block.factors["prompt"])
    assert (prompts.groupby(["scenario", "phrasing"]).size() == 1).all()
    dealt = prompts.groupby(["phrasing", "wording"]).size()
    assert dealt.min() >= 25
    assert dealt.max() <= 26


def test_a_samaritan_trial_is_its_scenario_and_the_request(told):
    plan = biased_samaritan_trials(told, "Gender", latino=True)
    trial = plan[8 * 4 * 6 + 8 + 7]  # the seventh scenario, second wording, last phrasing
    prompt = trial.condition["prompt"]
    assert (prompt.scenario, prompt.wording, prompt.phrase) == (7, 2, "an enby")
    assert trial.messages == scenarios.messages(prompt.text, "an enby")
    assert len(biased_samaritan_trials(told, "Race", latino=True)) == 412 * 13
    with pytest.raises(ValueError, match="crossing is 'half', expected 'full' or 'printed'"):
        biased_samaritan_trials(told, "Race", "half")
