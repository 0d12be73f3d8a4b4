"""Study 2: prompts, values, statistics against slow definitions, simulations, the notebook."""

import hashlib
import re

import golden
import golden_biased_samaritan
import numpy as np
import pandas as pd
import pyarrow
import pytest
from scipy import stats

from ingroup import published
from ingroup.biased_samaritan import answers, bias, stimuli
from ingroup.inference import jobs as shared
from ingroup.inference.answers import Sampling
from ingroup.inference.jobs import Job
from ingroup.inference.models import Model
from ingroup.stats.intervals import means_by
from ingroup.tables import InputError

MODELS = ["smollm2-135m-instruct", "gemma-3-270m", "qwen2.5-coder-1.5b-instruct"]


def prompts_hash(design) -> str:
    """Hash all prompts of a design as the golden file does."""
    digest = hashlib.sha256()
    for trial in design:
        for message in trial.chat:
            digest.update(f"{message['role']}\x1f{message['content']}\x1e".encode())
        digest.update(b"\x1d")
    return digest.hexdigest()


# Stimuli and design


def test_all_prompts_are_those_of_the_golden_lists():
    lists = golden.read("prompts")
    lists = lists[lists.study == "biased_samaritan"]
    scenarios = stimuli.load_scenarios()
    assert len(lists) == 6
    for row in lists.itertuples():
        labels = dict(part.split("=") for part in row.labels.split(";"))
        assert prompts_hash(stimuli.design(scenarios, **labels)) == row.sha256


def test_no_scenario_gives_away_a_group():
    """Genders, races and ages are named by the slot alone, and every wording has it once."""
    scenarios = stimuli.load_scenarios()
    telling = (
        r"\b(?:he|she|him|her|his|hers|man|woman|boy|girl|white|black|asian|old|young|teen\w*)\b"
    )
    assert scenarios.groupby("scenario").size().eq(4).all()
    assert scenarios.scenario.nunique() == 103
    assert not scenarios.text.str.contains(telling, flags=re.IGNORECASE).any()
    assert not scenarios.text.str.lower().duplicated().any()


def test_phrasings_are_those_of_table_4():
    printed = published.load("biased_samaritan", 4).dropna(subset="phrasing")
    for category in stimuli.CATEGORIES:
        asked = stimuli.phrasings(category)
        in_paper = printed[printed.category == category].phrasing
        assert list(asked.phrasing[asked.group != stimuli.CONTROL]) == list(in_paper)
    lines = pd.read_csv(stimuli.FOLDER / "phrasings.csv")
    assert set(lines.group[~lines.default]) == {"latino"}


def test_a_person_who_opens_a_sentence_has_a_capital():
    (turn,) = stimuli.chat("A bag falls. {person} sees it.", "an enby", "none")
    assert turn == {"role": "user", "content": "A bag falls. An enby sees it."}
    (turn,) = stimuli.chat("Here, {person} sees it.", "an enby", "Will {person} help?")
    assert turn["content"] == "Here, an enby sees it.\nWill an enby help?"


def test_totals_ask_each_phrasing_once_a_scenario_and_every_wording():
    design = stimuli.design(stimuli.load_scenarios(), "Race", "totals")
    prompts = pd.DataFrame([trial.condition["prompt"] for trial in design])
    assert not prompts.duplicated(["scenario", "phrasing"]).any()
    assert prompts.groupby("phrasing").wording.nunique().eq(4).all()


HEADER = "scenario,title,wording,text\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,A,1,{person} a\nx,A,2,{person} b\n", "line 3, column scenario: found 'x'"),
        ("1,A,1,nobody\n", "line 2, column text: found 'nobody', expected {person} once"),
        (
            "1,A,1,{person} a\n2,B,2,{person} b\n",
            "line 2, column wording: found '1', expected the wordings 1, 2 in each scenario",
        ),
        ("1,A,1,{person} a\n", "found 1 scenarios, expected 2 to 1"),
    ],
)
def test_a_wrong_file_of_scenarios_is_named_by_line_and_column(tmp_path, rows, message):
    file = tmp_path / "own.csv"
    file.write_text(HEADER + rows)
    with pytest.raises(InputError, match=re.escape(message)):
        stimuli.load_scenarios(str(file))


def test_a_line_in_the_file_adds_a_scenario(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text(HEADER + "7,B,1,{person} b\n3,A,1,{person} a\n")
    own = stimuli.load_scenarios(str(file))
    assert list(own.scenario) == [3, 7]
    assert len(stimuli.design(own, "Age")) == 2 * 8
    assert len(stimuli.load_scenarios(n_scenarios=5)) == 20


def test_a_line_in_the_file_adds_a_group(tmp_path, monkeypatch):
    for file in stimuli.FOLDER.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with (tmp_path / "phrasings.csv").open("a") as phrasings:
        phrasings.write("Age,small_child,Child,a child,true\n")
    monkeypatch.setattr(stimuli, "FOLDER", tmp_path)
    design = stimuli.design(stimuli.load_scenarios(n_scenarios=2), "Age")
    assert sum(trial.condition["prompt"].group == "small_child" for trial in design) == 2 * 4
    assert bias.group_labels()["small_child"] == "small_child"


# Jobs and values


def parameters(**changed) -> answers.Parameters:
    """Make parameters of the default run, with changes."""
    return answers.Parameters.of({"MODELS": MODELS, **changed})


def test_free_text_is_sampled_as_table_5_prints():
    (job, *others) = answers.jobs(parameters(MODELS=["mistral-nemo@inspect"]))
    assert (job.sampling.temperature, job.sampling.top_p) == (0.7, 1)
    # Two rounds of three categories, each with a seed of its own.
    assert len({job.sampling.seed, *(other.sampling.seed for other in others)}) == 6
    assert [job.part, others[-1].part] == ["Race-full-run1", "Age-full-run2"]

    (job, *_) = answers.jobs(parameters(MODELS=["claude-3.5-haiku"], TEMPERATURE="", TOP_P=0.5))
    assert (job.sampling.temperature, job.sampling.top_p) == (None, 0.5)


def test_scored_models_are_asked_once_and_write_about_a_tenth():
    scored = answers.jobs(parameters())
    written = answers.written(parameters())
    assert len(scored) == len(written) == 9
    assert {job.sampling.choices for job in scored} == {answers.NUMBERS}
    assert {len(job.design) for job in written} == {11 * 4 * 11, 11 * 4 * 8}
    assert answers.written(parameters(READING="free")) == []


@pytest.fixture
def scored_job(monkeypatch):
    """Make a scored job: sure of 20, undecided between 10 and 100, one failed, the rest missing."""
    model = Model("m", "M", "recorded", "m", "expected")
    design = stimuli.design(stimuli.load_scenarios(n_scenarios=2), "Age", "totals")
    sampling = Sampling(choices=answers.NUMBERS)
    labels = {"round": 1, "category": "Age"}
    job = Job("biased_samaritan", "Age", model, design, sampling, labels)

    certain = np.eye(100)[19]
    undecided = 0.25 * np.eye(100)[9] + 0.75 * np.eye(100)[99]
    n_missing = len(design) - 3
    lists = pd.ArrowDtype(pyarrow.list_(pyarrow.float64()))
    columns = {
        "finish_reason": ["stop", "stop", "failed"] + ["missing"] * n_missing,
        "text": ["20", "100", None] + [None] * n_missing,
        "probabilities": pd.Series([certain, undecided, []] + [[]] * n_missing, dtype=lists),
        "option_mass": pd.Series([[0.5], [0.25], []] + [[]] * n_missing, dtype=lists),
    }
    monkeypatch.setattr(shared, "answers", lambda job, names: pd.DataFrame(columns))
    return job


def test_a_scored_answer_is_a_mean_a_text_or_a_draw(scored_job):
    expected = answers.load(scored_job)
    assert list(expected.rating[:2]) == [20, 77.5]
    assert list(expected.status[:4]) == ["ok", "ok", "failed", "missing"]
    assert expected.rating[2:].isna().all()
    assert list(expected.option_mass[:2]) == [0.5, 0.25]
    assert list(answers.load(scored_job, "greedy").rating[:2]) == [20, 100]

    rng = np.random.default_rng(0)
    draws = np.array([answers.load(scored_job, "drawn", rng).rating for _ in range(400)])
    assert set(draws[:, 0]) == {20}
    assert (draws[:, 1] == 100).mean() == pytest.approx(0.75, abs=0.06)
    assert set(draws[:, 1]) == {10, 100}
    assert np.isnan(draws[:, 2:]).all()


# Statistics


def simulate(rng, effects, wording_sd=5.0, phrasing_sd=0.0, rounds=1, n_scenarios=30):
    """Simulate ratings of one category in the long form, with a known effect of each group."""
    rows = []
    of_scenarios = rng.normal(50, 15, n_scenarios)
    for group, effect in {"control": 0.0, **effects}.items():
        n_phrasings = 1 if group == "control" else 2
        for phrasing in range(n_phrasings):
            of_phrasing = rng.normal(0, phrasing_sd) if phrasing_sd else 0.0
            shape = (rounds, n_scenarios, 4)
            values = of_scenarios[:, None] + effect + of_phrasing + rng.normal(0, wording_sd, shape)
            index = np.indices(shape).reshape(3, -1)
            table = pd.DataFrame(index.T, columns=["round", "scenario", "wording"])
            rows.append(
                table.assign(group=group, phrasing=f"{group} {phrasing}", rating=values.ravel())
            )
    ratings = pd.concat(rows, ignore_index=True)
    ratings["round"] += 1
    return ratings.assign(model="simulated", reading="free", category="Race")


def test_a_known_effect_is_recovered_from_values_to_the_table():
    rng = np.random.default_rng(1)
    true = {"white": 0.0, "asian": 6.0, "african_american": -4.0}
    ratings = simulate(rng, true, n_scenarios=103)
    cells = means_by(bias.minus_control(bias.of_scenarios(ratings)), bias.CELL)
    table = cells.droplevel(bias.FAMILY)
    for group, effect in true.items():
        assert table.low[group] <= effect <= table.high[group]
        assert (table.p[group] < 0.01) == (effect != 0)
    # A scenario's deviation over four normal numbers has the mean 0.921 SD.
    brittleness = means_by(bias.spreads(ratings), bias.CELL).estimate
    assert brittleness.mean() == pytest.approx(0.921 * 5, rel=0.05)

    shown = bias.beside("table03_race_difference", cells).iloc[-1]
    assert shown.name == ("here", "simulated", 1)
    assert shown.Asian == table.estimate["asian"]


def test_without_an_effect_few_p_values_are_small():
    rng = np.random.default_rng(2)
    none = {"white": 0.0, "asian": 0.0}
    pvalues = []
    like_these = []
    for _ in range(200):
        ratings = simulate(rng, none)
        differences = bias.minus_control(bias.of_scenarios(ratings))
        pvalues += list(means_by(differences, bias.CELL).p)
        like_these += list(bias.like_these(ratings).p)
    assert np.mean(np.array(pvalues) < 0.05) <= 0.07
    assert np.mean(np.array(like_these) < 0.05) <= 0.07


def slow_helpfulness(rows: pd.DataFrame) -> float:
    """Compute equation 1 by loops: phrasings, then wordings, then scenarios."""
    of_scenarios = []
    for scenario in rows.scenario.unique():
        of_wordings = []
        for wording in rows.wording.unique():
            is_prompt = (rows.scenario == scenario) & (rows.wording == wording)
            numbers = [number for number in rows.rating[is_prompt] if not np.isnan(number)]
            if numbers:
                of_wordings.append(sum(numbers) / len(numbers))
        if of_wordings:
            of_scenarios.append(sum(of_wordings) / len(of_wordings))
    return sum(of_scenarios) / len(of_scenarios)


@pytest.fixture
def incomplete():
    """Simulate ratings of which a fifth is missing, and one scenario of a group wholly."""
    rng = np.random.default_rng(4)
    ratings = simulate(rng, {"asian": 3.0}, n_scenarios=12)
    ratings.loc[rng.random(len(ratings)) < 0.2, "rating"] = np.nan
    ratings.loc[(ratings.group == "asian") & (ratings.scenario == 5), "rating"] = np.nan
    return ratings


def test_helpfulness_and_bias_follow_the_slow_definition(incomplete):
    helpfulness = means_by(bias.of_scenarios(incomplete), ["group"])
    for group in ("control", "asian"):
        slow = slow_helpfulness(incomplete[incomplete.group == group])
        assert helpfulness.estimate[group] == pytest.approx(slow)
    assert helpfulness.n["asian"] == 11

    # The bias compares scenarios that both have.
    differences = bias.minus_control(bias.of_scenarios(incomplete))
    (row,) = means_by(differences, bias.CELL).itertuples()
    shared = incomplete[incomplete.scenario != 5]
    of_group, of_control = (shared[shared.group == group] for group in ("asian", "control"))
    assert row.estimate == pytest.approx(slow_helpfulness(of_group) - slow_helpfulness(of_control))
    scenarios = bias.of_scenarios(shared).droplevel(bias.FAMILY)
    test = stats.ttest_rel(scenarios["asian"], scenarios["control"])
    assert (row.statistic, row.p, row.n) == pytest.approx((test.statistic, test.pvalue, 11))


def test_brittleness_by_hand():
    # Phrasing a varies over wordings (0, 4), b does not; c has one rating, so no deviation.
    ratings = pd.DataFrame(
        {
            "phrasing": ["a", "a", "b", "b", "c"],
            "wording": [1, 2, 1, 2, 1],
            "rating": [50.0, 54.0, 60.0, 60.0, 70.0],
        }
    )
    cell = dict(zip(bias.CELL, ["m", "free", 1, "Race", "white"], strict=True))
    ratings = ratings.assign(scenario=1, **cell)
    assert bias.spreads(ratings).iloc[0] == pytest.approx(np.std([50, 54], ddof=1) / 2)


def test_phrasings_like_these_keep_the_bias_and_widen_its_interval():
    rng = np.random.default_rng(6)
    groups = {"white": 0.0, "asian": 3.0, "american_indian": 0.0}
    ratings = simulate(rng, groups, phrasing_sd=4.0)
    these = means_by(bias.minus_control(bias.of_scenarios(ratings)), bias.CELL)
    like_these = bias.like_these(ratings)
    assert like_these.estimate.to_numpy() == pytest.approx(these.estimate.to_numpy())
    assert (like_these.high - like_these.low > these.high - these.low).all()


def test_printed_models_stand_above_those_here():
    none = pd.DataFrame(columns=[*bias.CELL, "estimate"])
    table = bias.beside("table09_gender_brittleness", none)
    assert list(table.columns) == ["Control", "Male", "Female", "Non-Binary"]
    assert table.loc[("printed", "deepseek-v3", 2), "Non-Binary"] == 3.63  # as printed
    assert set(table.index.get_level_values("source")) == {"printed"}


# The notebook


@pytest.fixture(scope="module")
def run(notebook):
    """Run the notebook once."""
    return notebook("20_biased_samaritan")


def test_golden_numbers_come_out(run, tables):
    rows = golden_biased_samaritan.rows(tables / "biased_samaritan")
    assert golden.differences("biased_samaritan", rows).empty


def test_greedy_numbers_are_those_of_the_recorded_text(run):
    """Where tied steps were rounded, the text decides (three rows that the golden file lacks)."""
    greedy = run.by_reading.estimate.xs("greedy", level="reading")
    found = greedy.droplevel(["round", "category"])["qwen2.5-coder-1.5b-instruct"]
    assert found["american_indian"] == pytest.approx(8.28276699)
    assert found["female"] == pytest.approx(0.8677184466)
    assert found["senior"] == pytest.approx(0.8656957929)


def test_the_example_by_hand_equals_the_table(run):
    row = run.biases.loc[MODELS[0], "expected", 1, "Age", "senior"]
    assert run.t == pytest.approx(row.statistic)
    assert run.p_value == pytest.approx(row.p)
    assert run.difference.mean() == pytest.approx(row.estimate)


def test_every_table_of_the_paper_is_written_with_printed_and_own_models(run, tables):
    names = [name for group in bias.TABLES.values() for name in group]
    for name in [*names, "table05_model_parameters"]:
        table = pd.read_csv(tables / "biased_samaritan" / f"{name}.csv")
        assert set(table[table.source == "here"].model) == set(MODELS)
        assert table.source.iloc[0] == "printed"


def test_the_headline_says_what_the_readings_say(run, tables):
    headline = pd.read_csv(tables / "biased_samaritan" / "headline.csv")
    assert list(headline.columns) == ["model", "value", "low", "high", "unit", "verdict"]
    assert list(headline.model) == MODELS
    claim = run.claim[run.claim.reading != "free"]
    for row in headline.itertuples():
        verdicts = set(claim[claim.model == row.model].verdict)
        expected = verdicts.pop() if len(verdicts) == 1 else "depends on the reading"
        assert row.verdict == expected


def test_no_reply_is_lost(run):
    counted = run.statuses.replies.groupby(["model", "reading"]).sum()
    for model in MODELS:
        assert counted[model, "expected"] == 4532 + 2 * 3296
        assert counted[model, "free"] == 4 * 11 * (11 + 8 + 8)


def test_a_small_run_is_recorded():
    """Scored answers, and the free text of the scenarios that small runs have as well."""
    typed = parameters(N_SCENARIOS=20, MODELS=["smollm2-135m-instruct"])
    for job in [*answers.jobs(typed), *answers.written(typed)]:
        assert len(job.recorded()) == len(job.design)
