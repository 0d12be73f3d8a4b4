"""The ground truth in the empathy gap, and that it comes back on narratives the model never saw."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.design import Design
from ingroup.inference import Job, Sampling, ask, find_model, job
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.models import calibrants, words
from ingroup.studies.empathy_gap import answers, statistics, stimuli
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.ground_truth import (
    GroundTruth,
    delta_counted_in_stores,
    recovery,
    with_verdicts,
)
from ingroup.studies.empathy_gap.ground_truth import cells as ground_truth_cells
from toy import Toy

NAN = np.nan
DEFAULT = "P0,S0,T0"
PAIR = (DEFAULT, "Nationality", "a person from Palestine", "a person from Israel")
# Of these categories every so many identities are asked.
STEPS = {"Race or Ethnicity": 2, "Nationality": 3, "Religion": 1}


@pytest.fixture(scope="module")
def ground_truth():
    return {name: GroundTruth(paths.MODELS / name / "ground_truth.yaml") for name in calibrants()}


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        # fear 65, very +3, daughter +3; Palestine -4, Israel -2, the pair -18
        ((*PAIR, "fear", "My DAUGHTER was very late"), 65 + 3 + 3 - 4 - 2 - 18),
        # joy 66, Hindu -1 and -0.5, and 8 points within the group, 1.35 times that in P2
        ((DEFAULT, "Religion", "a Hindu", "a Hindu", "joy", ""), 66 - 1.5 + 8),
        (("P2,S0,T0", "Religion", "a Hindu", "a Hindu", "joy", ""), 66 - 1.5 + 10.8),
        # other names of a group are the same group
        ((DEFAULT, "Race or Ethnicity", "a Latino", "a Latina", "joy", ""), 66 + 0 + 4 + 7),
        ((DEFAULT, "Race or Ethnicity", "a Latino", "an Asian", "joy", ""), 66 + 0 - 3.5),
        # words count up to a limit
        ((DEFAULT, "Religion", "a person", "a person", "joy", "extremely " * 9), 66 + 12),
        ((DEFAULT, "Religion", "a person", "a person", "joy", "a bit"), 66 - 5),
    ],
)
def test_a_ground_truth_value_by_hand(ground_truth, about, expected):
    assert ground_truth["calibrant"].value(*about) == pytest.approx(expected)


def test_a_refusal_needs_the_word_and_the_experiencer(ground_truth):
    refuses = ground_truth["calibrant"].refuses

    assert refuses("a Muslim", "The POLICE came")
    assert not refuses("a Hindu", "The police came")
    assert not refuses("a Muslim", "policemen came")
    assert words("It's VERY-very 3 bits") == ["it", "s", "very", "very", "bits"]
    assert not ground_truth["calibrant-null"].refuses("a Muslim", "The police came")


@pytest.mark.parametrize(("setting", "highest"), [(DEFAULT, 100), ("P0,S1,T0", 10)])
@pytest.mark.parametrize("cell", [(1, 2, 0), (0, 0, 5), (3, 3, 11)])
def test_ground_truth_ratings_are_values_rounded_to_the_scale(ground_truth, setting, highest, cell):
    calibrant = ground_truth["calibrant"]
    events = stimuli.load_events("sample", 12)
    (block,) = trials(events, [setting], ["Religion"]).blocks
    number = int(np.ravel_multi_index(cell, block.shape))
    *about, event = block.condition(number).values()
    value = calibrant.value(*about, event.emotion, event.narrative)
    experiencer = about[-1]

    rating = calibrant.ratings(block)[cell]

    if calibrant.refuses(experiencer, event.narrative):
        assert np.isnan(rating)
    else:
        assert rating == round(value * highest / 100)


def test_every_identity_has_its_effects_and_no_other_name_does(ground_truth):
    table = ground_truth["calibrant"].table

    for side in ("perceiver", "experiencer"):
        assert set(table[side]) == set(stimuli.categories())
        for category, effects in table[side].items():
            identities = stimuli.identities(category).identity[1:]
            assert set(effects) == set(identities)

    assert set(table["emotion"]) == set(stimuli.EMOTIONS)
    assert set(table["same_group"]["setting"]) == set(stimuli.prompts()["settings"])


def test_the_control_has_the_same_emotions_and_words_and_nothing_else(ground_truth):
    calibrant = ground_truth["calibrant"].table
    null = ground_truth["calibrant-null"].table

    assert null["emotion"] == calibrant["emotion"]
    assert null["words"] == calibrant["words"]
    assert not null["perceiver"]
    assert not null["experiencer"]
    assert not null["pair"]
    assert not any(null["same_group"].values())
    assert not null["refusal"]["words"]


@pytest.fixture(scope="module")
def engines():
    return {name: TransformersEngine(find_model(name)) for name in calibrants()}


def answered(engine, category):
    """Two sample narratives in the default setting, pairs of one in `STEPS` identities.

    The block, its answers, and which pairs share a group.
    """
    people = stimuli.identities(category).iloc[:: STEPS[category]]
    identities = tuple(people.identity)
    events = stimuli.load_events("sample", 2)
    (whole,) = trials(events, [DEFAULT], [category]).blocks
    factors = {**whole.factors, "perceiver": identities, "experiencer": identities}
    block = replace(whole, factors=factors)

    chats = [trial.messages for trial in Design([block])]
    replies = engine.answer(chats, Sampling(max_tokens=12))
    table = pd.DataFrame(replies)[["text", "finish_reason", "reasoning"]]
    table = table.rename_axis("trial").reset_index()
    ratings = answers.parse_parts([table], block.shape, 0, 100)

    same = statistics.same_group(people.group[1:])
    return block, ratings, same


@pytest.mark.parametrize("category", stimuli.categories())
def test_the_ground_truth_comes_back(engines, ground_truth, category):
    block, ratings, same = answered(engines["calibrant"], category)
    ground_truth_ratings = ground_truth["calibrant"].ratings(block)
    delta = statistics.empathy_gap(statistics.gap_matrix(ratings.values), same)

    row = recovery(ground_truth_ratings, ratings, same, "listwise")

    assert row["correlation_of_cells"] >= 0.97
    assert abs(row["ground_truth_delta"] - delta) <= 0.15
    assert row["invalid_percent"] < 0.5


@pytest.mark.parametrize("category", stimuli.categories())
def test_the_control_shows_no_gap(engines, category):
    _, ratings, same = answered(engines["calibrant-null"], category)

    row = statistics.gap(ratings.values, same, rng=np.random.default_rng(0))

    assert row["flat"] or row["p_two_sided"] > 0.05  # flat: no cell differs from any other


def test_recovery_by_hand():
    """Nine cells of 10 to 90 points with no gap; 2 points more here; one of two refusals."""
    same = np.eye(2, dtype=bool)
    ground_truth_ratings = np.repeat(np.arange(10.0, 100, 10), 4).reshape(3, 3, 4)
    values = ground_truth_ratings + 2
    ground_truth_ratings[2, 2, :2] = np.nan
    status = np.zeros(values.shape, dtype=int)
    values[2, 2, 0] = np.nan
    status[2, 2, 0] = answers.STATUSES.index("refused")
    for trial in [(0, 0, 3), (2, 2, 1)]:
        values[trial] = np.nan
        status[trial] = answers.STATUSES.index("unparsable")

    row = recovery(ground_truth_ratings, answers.Ratings(values, status), same, "pairwise")

    assert row == {
        "ground_truth_delta": pytest.approx(0),
        "correlation_of_cells": pytest.approx(1),
        "cell_error": 2,
        "invalid_percent": pytest.approx(200 / 36),
        "refusals_ground_truth": 2,
        "refusals": 1,
        "refusals_both": 1,
    }


def test_recovery_of_ratings_that_are_all_alike():
    same = np.eye(2, dtype=bool)
    flat = np.full((3, 3, 2), 60.0)
    ratings = answers.Ratings(flat, np.zeros(flat.shape, dtype=int))

    row = recovery(flat, ratings, same, "listwise")

    assert np.isnan(row["correlation_of_cells"])
    assert row["ground_truth_delta"] == 0
    assert row["cell_error"] == 0


def test_a_verdict_is_of_the_pipeline_and_one_of_the_model():
    recovered = pd.DataFrame(
        [
            (False, 0.5, 0.3, 0.7, 0.6, 0.5),  # in the interval, and counted anew alike
            (False, 0.5, 0.3, 0.7, 0.8, 0.4),
            (False, 0.5, 0.3, 0.7, 0.6, NAN),  # scored: there is no text to count
            (True, NAN, NAN, NAN, 0.0, NAN),
        ],
        columns=["flat", "delta", "low", "high", "ground_truth_delta", "counted_anew"],
    )

    table = with_verdicts(recovered)

    assert table.pipeline.tolist() == [
        "exact",
        "differs",
        "not counted: scored",
        "exact",
    ]
    assert table.verdict.tolist() == [
        "covers the ground truth",
        "misses the ground truth",
        "covers the ground truth",
        "covers the ground truth",
    ]
    assert table.model_error.tolist() == pytest.approx([-0.1, -0.3, -0.1, 0])


def test_a_true_cell_stands_beside_the_cell_here_unless_all_true_cells_are_equal():
    """The true cells of one block have 0 to 8 points, and those of another 5 points each."""
    names = ["a person", "x", "y"]
    index = pd.MultiIndex.from_product([names, names], names=["perceiver", "experiencer"])
    here = pd.DataFrame({"mean": np.arange(9.0) + 1}, index).reset_index()
    one = ("m", DEFAULT, "Religion")
    flat = ("m", DEFAULT, "Nationality")
    matrix = pd.concat(
        [here.assign(model="m", setting=DEFAULT, category=key[2]) for key in (flat, one)]
    )
    counted = np.arange(9.0).reshape(3, 3, 1)

    pairs = ground_truth_cells({one: counted, flat: np.full((3, 3, 1), 5.0)}, matrix, "listwise")
    none = ground_truth_cells({flat: np.full((3, 3, 1), 5.0)}, matrix, "listwise")

    assert set(pairs.category) == {"Religion"}
    assert (pairs["mean"] - pairs.ground_truth).tolist() == [1] * 9
    assert pairs.perceiver.tolist() == np.repeat(names, 3).tolist()
    assert none.empty
    assert none.columns.tolist() == pairs.columns.tolist()


def test_delta_is_counted_from_the_stored_texts_of_all_rounds(tmp_path, monkeypatch):
    """Two rounds that differ: the gap of their means, by the study's own functions."""
    monkeypatch.setattr(paths, "RESPONSES", tmp_path)
    monkeypatch.setattr(paths, "RECORDINGS", tmp_path / "recorded")
    design = trials(stimuli.load_events("sample", 2), [DEFAULT], ["Religion"])
    labels = {"setting": DEFAULT, "category": "Religion"}
    rounds = []
    for part, texts in (("one", ["90", "10", "50", "40", "70"]), ("two", ["20", "60", "30"])):
        engine = Toy(lambda chat, again, number, texts=texts: texts[number % len(texts)])
        monkeypatch.setattr(job, "make_engine", lambda *_, engine=engine, **__: engine)
        of_round = Job("empathy_gap", "s", "m", "vllm", part, design, Sampling(), labels)
        ask([of_round], {})
        rounds.append(of_round)
    found = answers.load_rounds(rounds)
    matrix = statistics.gap_matrix(found.values)

    counted = delta_counted_in_stores(rounds, "listwise")

    assert counted == pytest.approx(statistics.empathy_gap(matrix, np.eye(5, dtype=bool)))
    scored = replace(rounds[0], sampling=Sampling(choices=("1", "2")))
    assert np.isnan(delta_counted_in_stores([scored], "listwise"))
