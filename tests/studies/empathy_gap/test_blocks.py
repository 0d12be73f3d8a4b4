"""Tables over the blocks of a run, from ratings made by hand."""

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.inference import ask, job
from ingroup.studies.empathy_gap import answers, blocks, statistics, stimuli
from ingroup.studies.empathy_gap.design import jobs
from toy import ABOUT_RELIGION, Toy

NAN = np.nan
RELIGION = ("m", "P0,S0,T0", "Religion")
PEOPLE = stimuli.identities("Religion").identity.tolist()
PARAMETERS = ABOUT_RELIGION | {"ROUNDS": 2}


def ratings_of(values):
    """Ratings with these values; the reasons of missing ones do not matter here."""
    return answers.Ratings(values, np.zeros(values.shape, dtype=np.int8))


@pytest.fixture
def values():
    """36 cells that count up from 0, of two events; the second event lacks the last cell."""
    means = np.arange(36.0).reshape(6, 6)
    values = np.stack([means, means + 1], axis=-1)
    values[5, 5, 1] = NAN
    return values


def test_tables_of_blocks_stand_below_one_another_and_keep_their_index():
    table = pd.DataFrame({"x": [7, 8]})
    other = ("n", "P1,S0,T0", "Religion")

    together = blocks.stack_blocks({RELIGION: table, other: table})

    assert together.model.tolist() == ["m", "m", "n", "n"]
    assert together.setting.tolist() == ["P0,S0,T0"] * 2 + ["P1,S0,T0"] * 2
    assert together.x.tolist() == [7, 8, 7, 8]
    assert together.index.tolist() == [0, 1, 0, 1]


def test_without_a_table_there_are_columns_and_no_rows():
    nothing = blocks.stack_blocks({})

    assert nothing.columns.tolist() == blocks.KEY
    assert nothing.empty


def test_a_cell_has_its_mean_and_the_address_of_its_answers(values):
    """The second event lacks a rating, so the first alone is averaged, and both were asked."""
    ratings = {RELIGION: ratings_of(values)}

    cells = blocks.cells(ratings, "listwise", {RELIGION: "some/folder"})

    assert cells["mean"].tolist() == list(range(36))
    assert cells.loc[7, ["perceiver", "experiencer"]].tolist() == [PEOPLE[1], PEOPLE[1]]
    assert cells.first_trial.tolist() == list(range(0, 72, 2))
    assert set(cells.store) == {"some/folder"}
    assert cells.columns[:5].tolist() == [*blocks.KEY, "perceiver", "experiencer"]


@pytest.mark.parametrize(("exclusion", "lost"), [("listwise", 1), ("pairwise", 0)])
def test_losses_are_counted_by_the_rule_of_exclusion(values, exclusion, lost):
    table = blocks.losses({RELIGION: ratings_of(values)}, exclusion)

    assert table[["events", "events_lost"]].values.tolist() == [[2, lost]]
    assert table.percent_of_events.tolist() == [50 * lost]
    assert table.percent_of_answers.tolist() == pytest.approx([100 / 72])


def test_no_free_text_loses_nothing_under_the_same_columns(values):
    some = blocks.losses({RELIGION: ratings_of(values)}, "listwise")

    none = blocks.losses({}, "listwise")

    assert none.empty
    assert none.columns.tolist() == some.columns.tolist()


def test_the_pairs_that_lack_most_ratings_are_named_with_their_block(values):
    values[1, 2, :] = NAN
    whole = ("n", "P0,S0,T0", "Religion")

    pairs = blocks.least_rated_pairs(
        {RELIGION: ratings_of(values), whole: ratings_of(np.zeros((6, 6, 2)))}
    )

    assert set(pairs.model) == {"m"}
    first, second, *_ = pairs.itertuples()
    assert (first.perceiver, first.experiencer) == (PEOPLE[1], PEOPLE[2])
    assert first.percent_lost == 100
    assert (second.perceiver, second.experiencer) == (PEOPLE[5], PEOPLE[5])
    assert second.percent_lost == 50


def higher_within(points):
    """An engine that gives pairs of one name more points than other pairs."""

    def say(chat, again, number):
        persona, event = chat[0]["content"], chat[1]["content"]
        for name in PEOPLE[1:]:
            if name in persona and name in event:
                return str(50 + points)
        return "50"

    return Toy(say, model="org/one")


@pytest.fixture
def rounds(tmp_path, monkeypatch):
    """Two rounds about Religion: the first has a gap, the second has the opposite one."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recorded")
    rounds = jobs(PARAMETERS)
    for of_round, points in zip(rounds, [20, -20], strict=True):
        engine = higher_within(points)
        monkeypatch.setattr(job, "make_engine", lambda *_, engine=engine, **__: engine)
        ask([of_round], PARAMETERS)
    return rounds


def test_each_round_has_its_gap(rounds):
    first = answers.load(rounds[0])
    same = np.eye(5, dtype=bool)
    delta = statistics.empathy_gap(statistics.gap_matrix(first.values), same)
    key = ("org/one", "P0,S0,T0", "Religion")

    table = blocks.gaps_by_round(rounds, {key}, "sound", "listwise")

    assert delta > 1
    assert table["round"].tolist() == [1, 2]
    assert table.delta.tolist() == pytest.approx([delta, -delta])
    assert table[blocks.KEY].drop_duplicates().values.tolist() == [list(key)]


def test_blocks_of_one_round_and_blocks_that_are_not_analysed_have_no_gaps_by_round(rounds):
    key = ("org/one", "P0,S0,T0", "Religion")

    assert blocks.gaps_by_round(rounds[:1], {key}, "sound", "listwise").empty
    assert blocks.gaps_by_round(rounds, set(), "sound", "listwise").empty


def test_the_widest_range_of_gaps_comes_first():
    rows = [
        ("m", "P0,S0,T0", "Religion", 1, 0.5),
        ("m", "P0,S0,T0", "Religion", 2, 0.7),
        ("n", "P0,S0,T0", "Religion", 1, 1.0),
        ("n", "P0,S0,T0", "Religion", 2, -1.0),
        ("n", "P0,S0,T0", "Religion", 3, 0.6),
    ]
    by_round = pd.DataFrame(rows, columns=[*blocks.KEY, "round", "delta"])

    ranges = blocks.ranges_of_gaps(by_round)

    assert ranges.index.get_level_values("model").tolist() == ["n", "m"]
    assert ranges["count"].tolist() == [3, 2]
    assert ranges["range"].tolist() == pytest.approx([2.0, 0.2])
    assert ranges["mean"].tolist() == pytest.approx([0.2, 0.6])


def test_effects_over_settings_are_those_of_all_settings_of_a_model_and_category():
    rng = np.random.default_rng(5)
    ratings = {}
    for model, setting in [("m", "P0,S0,T0"), ("m", "P1,S0,T0"), ("n", "P0,S0,T0")]:
        ratings[model, setting, "Religion"] = ratings_of(rng.normal(50, 9, (6, 6, 3)))
    of_m = [found.values for key, found in ratings.items() if key[0] == "m"]
    groups = stimuli.identities("Religion").group[1:]
    expected = statistics.over_settings(of_m, groups, "listwise")

    table = blocks.over_settings(ratings, "listwise")

    first, second = table.itertuples()
    assert (first.model, first.category, first.settings) == ("m", "Religion", 2)
    assert first.estimate == pytest.approx(expected["estimate"])
    assert first.least < first.estimate < first.greatest
    assert (second.model, second.settings) == ("n", 1)
    assert second.reason == "cannot be told: one setting"
    assert np.isnan(second.estimate)


def test_one_setting_alone_has_all_columns():
    ratings = {RELIGION: ratings_of(np.random.default_rng(5).normal(50, 9, (6, 6, 3)))}

    table = blocks.over_settings(ratings, "listwise")

    assert table.columns.tolist()[2:5] == ["settings", "estimate", "low"]
