"""How much is asked: counted by hand, from the papers' numbers and our designs."""

import pandas as pd
import pytest

from ingroup import paths, sizes
from ingroup.commands.run_parameters import jobs_of, merged_parameters
from ingroup.inference import Job, Sampling
from toy import religion


@pytest.fixture(scope="module")
def printed():
    table = pd.read_csv(paths.JUDGEMENTS / "claims.csv", dtype=str, keep_default_na=False)
    return table.set_index(["paper", "claim"]).printed


def whole(notebook, **given):
    values = merged_parameters(notebook, "demo", {"MODELS": "calibrant", **given})
    return jobs_of(notebook, values)


def test_an_item_that_two_jobs_ask_about_counts_once():
    jobs = []
    for setting in ("P0,S0,T0", "P1,S0,T0"):
        design = religion(3, setting)
        jobs.append(Job("empathy_gap", "sample-3", "m", "toy", setting, design, Sampling()))
    assert sizes.n_prompts(jobs) == 2 * 3 * 36
    assert sizes.n_items(jobs) == 3


def test_the_first_paper_asks_as_many_prompts_per_event_as_we_do(printed):
    """36 pairs of religions for each of 6,050 events."""
    jobs = whole("10_empathy_gap", SETTINGS="P0,S0,T0", CATEGORIES="Religion")
    assert sizes.sizes_of_paper("empathy_gap", jobs, printed["empathy_gap"]) == (36 * 6050, 6050)


def test_the_second_paper_prints_its_prompts(printed):
    """1133 prompts for races, 824 for genders and 824 for ages; 412 texts in 4 wordings."""
    jobs = whole("20_biased_samaritan")
    counts = sizes.sizes_of_paper("biased_samaritan", jobs, printed["biased_samaritan"])
    assert counts == (1133 + 824 + 824, 412 // 4)


def test_the_third_paper_asks_each_question_in_three_conditions(printed):
    jobs = whole("30_giebench")
    assert sizes.sizes_of_paper("giebench", jobs, printed["giebench"]) == (3 * 999, 999)


def test_the_fourth_paper_asks_ten_rounds_of_its_own_prompts(printed):
    """Seven prompts on each of 98 groups, 21 on each of 24; the paper names 10 groups alike."""
    jobs = whole("40_stereomap")
    counts = sizes.sizes_of_paper("stereomap", jobs, printed["stereomap"])
    assert counts == (10 * (7 * 98 + 21 * 24), 98 + 24 - 10)
