"""Answers over choices in a tiny store: their means by hand, and what is not there is left out."""

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.inference import Reply, StoreError, ask, call, rated, stored, there
from ingroup.inference.choices import agreement
from ingroup.studies.biased_samaritan import design, lens, stimuli
from ingroup.studies.biased_samaritan.answers import decimals, load
from toy import Toy

WHO = "somebody/else"
TWO = (30, 70)  # the only answers with any probability


class Chooser(Toy):
    """30 with probability 3/4; 1/2 about a senior citizen. Free text: "50", of a woman none."""

    def answer(self, conversations, sampling):
        return [self.of_one(chat[-1]["content"], sampling) for chat in conversations]

    def of_one(self, prompt, sampling):
        if not sampling.choices:
            return Reply("I would rather not say." if "woman" in prompt else "30", "stop")
        if "teenager" in prompt.lower() and "wording one" in prompt:
            return Reply(None, "failed", error="no net")
        one = 0.5 if "senior citizen" in prompt.lower() else 0.75
        given = dict(zip(TWO, (one, 1 - one), strict=True))
        found = [given.get(int(choice), 0.0) for choice in sampling.choices]
        return Reply("30", "stop", probabilities=found, mass=[0.25])


@pytest.fixture
def parameters(tmp_path, monkeypatch):
    """Two scenarios in two wordings, asked over choices; the first of them freely too."""
    told = [
        (n, "A glove", place, f"{{person}} sees glove {n}, wording {wording}.")
        for n in (1, 2)
        for place, wording in ((1, "one"), (2, "two"))
    ]
    file = tmp_path / "two.csv"
    pd.DataFrame(told, columns=stimuli.COLUMNS).to_csv(file, index=False)
    monkeypatch.setattr(paths, "RESPONSES", tmp_path / "responses")
    chooser = Chooser(say=None, engine="transformers", model=WHO)
    monkeypatch.setattr(call, "make_engine", lambda *_, **__: chooser)
    return {"MODELS": [f"{WHO}@transformers"], "ENGINE": "", "READING": "expected",
        "ENDING": "turn", "RUNS": 2,
            "SCENARIOS": str(file), "CROSSING": "full", "LATINO": False, "TEMPERATURE": -1.0,
            "TOP_P": -1.0, "MAX_TOKENS": 8, "REASONING": "", "SEED": 0, "ALPHA": 0.01,
            "REQUEST": "sample", "PARSING": "sound"}  # fmt: skip


def test_a_rating_over_choices_is_the_mean_of_its_distribution(parameters):
    asked = ask(design.calls(parameters), parameters)
    (age,) = (one for one in rated(asked) if one.labels["category"] == "Age")
    prompts = load(age)
    assert (prompts.rating[prompts.phrasing == "Senior citizen"] == 0.5 * 30 + 0.5 * 70).all()
    assert (prompts.rating[prompts.group == stimuli.CONTROL] == 0.75 * 30 + 0.25 * 70).all()
    lost = (prompts.group == "teenager") & (prompts.wording == 1)
    assert lost.sum() == 2
    assert prompts.rating.isna().tolist() == lost.tolist()
    assert prompts.status.map({"failed": True, "ok": False}).tolist() == lost.tolist()
    assert set(prompts.reply[~lost]) == {"30"}


def test_free_text_stands_beside_the_choices_of_the_same_prompts(parameters):
    asked = ask(design.calls(parameters), parameters)
    chosen, free = (one for one in asked if one.labels["category"] == "Gender")
    texts = load(free)
    mass = stored(chosen).read(columns=["mass"])["mass"].list[0]
    both = texts.merge(
        load(chosen).assign(mass=mass), on=list(design.Prompt._fields), suffixes=("", "_c")
    )
    assert len(both) == len(texts) == len(free.design) == 2 * 8  # the first of two scenarios
    found = agreement(both.rating, both.reply_c.astype(float), both["mass"].astype(float))
    assert (found["asked"], found["answered"], found["agree"]) == (16, 14, 14)
    assert found["mass"] == 25


def test_what_is_not_stored_is_left_out_or_named(parameters):
    calls = design.calls(parameters)
    race, _, age = rated(calls)
    assert there(calls) == []
    with pytest.raises(StoreError, match="holds no answers"):
        lens.portrait(parameters, WHO, {})
    ask([race, age], parameters)
    assert there(calls) == [race, age]
    of_race, of_age = lens.portrait(parameters, WHO, {"a senior citizen": "Older"})
    assert of_race.items.empty
    np.testing.assert_allclose(of_age.items.Older, 10)
    # One of the phrasings of "senior" is rated 50, the others 40 as the control.
    biases = lens.effects(parameters, WHO)
    phrasings = stimuli.phrasings("Age").group.eq("senior").sum()
    np.testing.assert_allclose(biases.senior, 10 / phrasings)
    found = lens.paths(parameters, WHO, {})
    assert set(found.claim) == {*load(race).group, *load(age).group} - {stimuli.CONTROL}
    assert set(found.parsing) == {"sound"}  # rules differ for texts alone
    assert set(found.run) == {1}
    stored_only = parameters | {"MODELS": [f"{WHO}@stored"]}
    asked = ask(design.calls(stored_only), stored_only)
    assert [one.labels["category"] for one in asked] == ["Race", "Age"]
    np.testing.assert_array_equal(load(asked[1]).rating, load(age).rating)


def test_a_store_that_is_not_whole_is_not_there(parameters):
    first = design.calls(parameters)[0]
    ask([first], parameters)
    (first.folder / stored(first).path(0).name).unlink()
    assert there([first]) == []


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
