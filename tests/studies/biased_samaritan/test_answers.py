"""Scored answers in a tiny store: their means by hand, and what is not there is left out."""

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.inference import Reply, StoreError, answered_jobs, ask, job, rated, stored
from ingroup.inference.choices import agreement
from ingroup.studies.biased_samaritan import design, group_profile, stimuli
from ingroup.studies.biased_samaritan.answers import (
    decimals,
    every_reading,
    free_beside_choices,
    load,
    mean_distribution,
)
from toy import Toy

MODEL = "somebody/else"
REFUSAL = "I would rather not say."


class Chooser(Toy):
    """30 with probability 3/4, else 70; 1/2 about a senior citizen. Free text: "30"."""

    def answer(self, conversations, sampling):
        return [self.reply(chat[-1]["content"], sampling) for chat in conversations]

    def reply(self, prompt, sampling):
        if not sampling.choices:
            return Reply(REFUSAL if "woman" in prompt else "30", "stop")

        if "teenager" in prompt.lower() and "wording one" in prompt:
            return Reply(None, "failed", error="no net")

        p_of_30 = 0.5 if "senior citizen" in prompt.lower() else 0.75
        distribution = {"30": p_of_30, "70": 1 - p_of_30}
        probabilities = [distribution.get(choice, 0.0) for choice in sampling.choices]
        return Reply("30", "stop", probabilities=probabilities, mass=[0.25])


@pytest.fixture
def parameters(tmp_path, monkeypatch):
    """Two scenarios in two wordings, scored; the first of them free too."""
    rows = [
        (1, "A glove", 1, "{person} sees glove 1, wording one."),
        (1, "A glove", 2, "{person} sees glove 1, wording two."),
        (2, "A glove", 1, "{person} sees glove 2, wording one."),
        (2, "A glove", 2, "{person} sees glove 2, wording two."),
    ]
    file = tmp_path / "two.csv"
    pd.DataFrame(rows, columns=stimuli.COLUMNS).to_csv(file, index=False)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    chooser = Chooser(say=None, engine="transformers", model=MODEL)
    monkeypatch.setattr(job, "make_engine", lambda *_, **__: chooser)
    return {
        "MODELS": [f"{MODEL}@transformers"],
        "ENGINE": "",
        "READING": "expected",
        "ENDING": "turn",
        "ROUNDS": 2,
        "SCENARIOS": str(file),
        "CROSSING": "full",
        "LATINO": False,
        "TEMPERATURE": -1.0,
        "TOP_P": -1.0,
        "MAX_TOKENS": 8,
        "REASONING": "",
        "SEED": 0,
        "ALPHA": 0.01,
        "REQUEST": "sample",
        "PARSING": "sound",
    }


def test_a_scored_rating_is_the_mean_of_its_distribution(parameters):
    asked_jobs = ask(design.jobs(parameters), parameters)
    (of_age,) = [one_job for one_job in rated(asked_jobs) if one_job.labels["category"] == "Age"]

    prompts = load(of_age)

    is_senior_citizen = prompts.phrasing == "Senior citizen"
    is_control = prompts.group == stimuli.CONTROL
    assert (prompts.rating[is_senior_citizen] == 0.5 * 30 + 0.5 * 70).all()
    assert (prompts.rating[is_control] == 0.75 * 30 + 0.25 * 70).all()

    is_failed = (prompts.group == "teenager") & (prompts.wording == 1)
    assert is_failed.sum() == 2
    assert prompts.rating.isna().tolist() == is_failed.tolist()
    assert prompts.status.tolist() == np.where(is_failed, "failed", "ok").tolist()
    assert set(prompts.reply[~is_failed]) == {"30"}


def test_free_text_stands_beside_the_choices_of_the_same_prompts(parameters):
    asked_jobs = ask(design.jobs(parameters), parameters)
    scored, free = [one_job for one_job in asked_jobs if one_job.labels["category"] == "Gender"]
    mass = stored(scored).read(columns=["mass"])["mass"].list[0]
    texts = load(free)
    choices = load(scored).assign(option_mass=mass)

    both = texts.merge(choices, on=list(design.Prompt._fields), suffixes=("", "_of_choices"))
    most_probable = both.reply_of_choices.astype(float)
    compared = agreement(both.rating, most_probable, both["option_mass"].astype(float))

    assert len(free.design) == 2 * 8  # the first of two scenarios
    assert len(texts) == 2 * 8
    assert len(both) == 2 * 8
    assert compared["asked"] == 16
    assert compared["answered"] == 14
    assert compared["agree"] == 14
    assert compared["option_mass"] == 25


def test_free_text_is_compared_with_the_choices_in_one_row(parameters):
    """Texts say 30, the most probable number; those about a woman have no number."""
    scored, free = [
        one_job
        for one_job in ask(design.jobs(parameters), parameters)
        if one_job.labels["category"] == "Gender"
    ]
    texts = load(free)

    row = free_beside_choices(scored, load(scored), texts)

    assert row["asked"] == 16
    assert row["answered"] == row["agree"] == row["begin"] == 14
    assert row["mean_above"] == 10  # 0.75 * 30 + 0.25 * 70, above 30
    assert row["option_mass"] == 25
    assert row["unparsable"] == 2
    assert row["refused"] == row["cut"] == row["failed"] == 0


def test_scored_answers_are_read_in_every_way_behind_the_texts(parameters):
    """These answers are stored without steps, so only their mean can be read."""
    scored, free = [
        one_job
        for one_job in ask(design.jobs(parameters), parameters)
        if one_job.labels["category"] == "Gender"
    ]
    texts = load(free)

    assert list(every_reading(scored)) == [("expected", "turn")]
    read_as = every_reading(scored, texts=texts)
    assert list(read_as) == [("free", ""), ("expected", "turn")]
    assert read_as["free", ""] is texts
    assert (read_as["expected", "turn"].rating == 40).all()


def test_a_mean_distribution_counts_every_category_the_same(parameters):
    """Only age has prompts about a senior citizen, with a probability of 1/2 in place of 3/4."""
    asked_jobs = ask(design.jobs(parameters), parameters)
    (of_age,) = [job for job in rated(asked_jobs) if job.labels["category"] == "Age"]
    prompts = load(of_age)
    is_senior_citizen = prompts.phrasing == "Senior citizen"
    share = is_senior_citizen[prompts.status == "ok"].mean()

    table = mean_distribution(asked_jobs)

    assert table.index.tolist() == list(range(1, 101))
    assert table.columns.tolist() == [MODEL]
    in_age = 0.75 - 0.25 * share
    assert table.loc[30, MODEL] == pytest.approx((0.75 + 0.75 + in_age) / 3, abs=1e-4)
    assert table[MODEL].sum() == pytest.approx(1)


def test_a_model_without_answers_is_named(parameters):
    assert answered_jobs(design.jobs(parameters)) == []
    with pytest.raises(StoreError, match="holds no answers"):
        group_profile.views(parameters, MODEL, {})


@pytest.fixture
def jobs(parameters):
    """All jobs; those about race and age are asked."""
    jobs = design.jobs(parameters)
    race, _, age = rated(jobs)
    ask([race, age], parameters)
    return jobs


def test_what_is_not_stored_is_left_out(parameters, jobs):
    race, _, age = rated(jobs)
    of_race, of_age = group_profile.views(parameters, MODEL, {"a senior citizen": "Older"})
    table = group_profile.paths(parameters, MODEL, {})

    groups = {*load(race).group, *load(age).group}
    assert answered_jobs(jobs) == [race, age]
    assert of_race.items.empty
    np.testing.assert_allclose(of_age.items.Older, 10)
    assert set(table.claim) == groups - {stimuli.CONTROL}
    assert set(table.parsing) == {"sound"}  # rules differ for texts alone
    assert set(table["round"]) == {1}


@pytest.mark.usefixtures("jobs")
def test_effects_are_the_biases_of_groups(parameters):
    """One of the phrasings of "senior" is rated 50, the others 40 as the control."""
    n_phrasings = stimuli.phrasings("Age").group.eq("senior").sum()

    biases = group_profile.effects(parameters, MODEL)

    np.testing.assert_allclose(biases.senior, 10 / n_phrasings)


def test_the_engine_stored_reads_what_another_engine_asked(parameters, jobs):
    _, _, age = rated(jobs)
    stored_only = parameters | {"MODELS": [f"{MODEL}@stored"]}

    of_race, of_age = ask(design.jobs(stored_only), stored_only)

    assert of_race.labels["category"] == "Race"
    assert of_age.labels["category"] == "Age"
    np.testing.assert_array_equal(load(of_age).rating, load(age).rating)


def test_a_store_that_is_not_whole_is_not_there(parameters):
    first = design.jobs(parameters)[0]
    ask([first], parameters)
    part = first.folder / stored(first).path(0).name

    part.unlink()

    assert answered_jobs([first]) == []


def test_decimals_are_counted_by_group_and_over_names():
    """Two names of a group: 50 and 51 have the mean 50.5, 66.66 repeats a digit."""
    rows = [
        ("male", 1, "50", 50.0, "ok"),
        ("male", 1, "51", 51.0, "ok"),
        ("male", 2, "66.66", 66.66, "ok"),
        ("male", 2, "no", np.nan, "refused"),
        ("female", 1, "2.5", 2.5, "ok"),
    ]
    columns = ["group", "scenario", "reply", "rating", "status"]
    table = decimals(pd.DataFrame(rows, columns=columns).assign(wording=1))
    assert table.columns.tolist() == ["a decimal", "a repeating one", "mean over names", "answers"]
    assert table.loc["male"].tolist() == pytest.approx([100 / 3, 100 / 3, 100, 3])
    assert table.loc["female"].tolist() == [100, 0, 100, 1]
