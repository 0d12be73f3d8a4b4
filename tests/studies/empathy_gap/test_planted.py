"""What is planted in the empathy gap, and that it comes back on narratives the model never saw."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ingroup import paths
from ingroup.design import Design
from ingroup.inference import Sampling, find_model
from ingroup.inference.transformers_engine import TransformersEngine
from ingroup.models import calibrants, words
from ingroup.studies.empathy_gap import answers, statistics, stimuli
from ingroup.studies.empathy_gap.design import trials
from ingroup.studies.empathy_gap.planted import Planted, recovery, with_verdicts

DEFAULT = "P0,S0,T0"
PAIR = (DEFAULT, "Nationality", "a person from Palestine", "a person from Israel")
EVERY = {"Race or Ethnicity": 2, "Nationality": 3, "Religion": 1}


@pytest.fixture(scope="module")
def planted():
    return {name: Planted(paths.MODELS / name / "planted.yaml") for name in calibrants()}


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
def test_a_planted_value_by_hand(planted, about, expected):
    assert planted["calibrant"].value(*about) == pytest.approx(expected)


def test_a_refusal_needs_the_word_and_the_experiencer(planted):
    refuses = planted["calibrant"].refuses
    assert refuses("a Muslim", "The POLICE came")
    assert not refuses("a Hindu", "The police came")
    assert not refuses("a Muslim", "policemen came")
    assert words("It's VERY-very 3 bits") == ["it", "s", "very", "very", "bits"]
    assert not planted["calibrant-null"].refuses("a Muslim", "The police came")


def test_planted_ratings_are_values_rounded_to_the_scale(planted):
    events = stimuli.load_events("sample", 12)
    for setting, high in ((DEFAULT, 100), ("P0,S1,T0", 10)):
        (block,) = trials(events, [setting], ["Religion"]).blocks
        array = planted["calibrant"].ratings(block)
        for place in ((1, 2, 0), (0, 0, 5), (3, 3, 11)):
            number = int(np.ravel_multi_index(place, block.shape))
            *about, event = block.condition(number).values()
            value = planted["calibrant"].value(*about, event.emotion, event.narrative)
            refused = planted["calibrant"].refuses(about[-1], event.narrative)
            assert np.isnan(array[place]) if refused else array[place] == round(value * high / 100)


def test_every_identity_has_its_effects_and_no_other_name_does(planted):
    table = planted["calibrant"].table
    for side in ("perceiver", "experiencer"):
        assert {category: set(effects) for category, effects in table[side].items()} == {
            c: set(stimuli.identities(c).identity[1:]) for c in stimuli.categories()
        }
    assert set(table["emotion"]) == set(stimuli.EMOTIONS)
    assert set(table["same_group"]["setting"]) == set(stimuli.prompts()["settings"])


def test_the_control_has_the_same_emotions_and_words_and_nothing_else(planted):
    own, null = (planted[name].table for name in calibrants())
    for part in ("emotion", "words"):
        assert own[part] == null[part]
    assert not any([null["perceiver"], null["experiencer"], null["pair"]])
    assert not any(null["same_group"].values())
    assert not null["refusal"]["words"]


@pytest.fixture(scope="module")
def engines():
    return {name: TransformersEngine(find_model(name)) for name in calibrants()}


def answered(engine, category):
    """Two sample narratives in the default setting, pairs of one in `EVERY` identities.

    The block, its answers, and which pairs share a group.
    """
    people = stimuli.identities(category).iloc[:: EVERY[category]]
    (block,) = trials(stimuli.load_events("sample", 2), [DEFAULT], [category]).blocks
    both = dict.fromkeys(("perceiver", "experiencer"), tuple(people.identity))
    block = replace(block, factors={**block.factors, **both})
    chats = [trial.messages for trial in Design([block])]
    replies = engine.answer(chats, Sampling(max_tokens=12))
    table = (
        pd.DataFrame(replies)[["text", "finish_reason", "reasoning"]]
        .rename_axis("trial")
        .reset_index()
    )
    found = answers.from_parts([table], block.shape, 0, 100)
    return block, found, statistics.same_group(people.group[1:])


@pytest.mark.parametrize("category", stimuli.categories())
def test_what_was_planted_comes_back(engines, planted, category):
    block, ratings, same = answered(engines["calibrant"], category)
    back = recovery(planted["calibrant"].ratings(block), ratings, same, "listwise")
    assert back["correlation_of_cells"] >= 0.97
    here = statistics.empathy_gap(statistics.gap_matrix(ratings.values), same)
    assert abs(back["planted_delta"] - here) <= 0.15
    assert back["invalid_percent"] < 0.5


@pytest.mark.parametrize("category", stimuli.categories())
def test_the_control_shows_no_gap(engines, category):
    _, ratings, same = answered(engines["calibrant-null"], category)
    row = statistics.gap(ratings.values, same, rng=np.random.default_rng(0))
    assert row["flat"] or row["p_two_sided"] > 0.05  # flat: no cell differs from any other


def test_recovery_by_hand():
    """Nine cells of 10 to 90 points with no gap; 2 points more here; one of two refusals."""
    wanted = np.repeat(np.arange(10.0, 100, 10), 4).reshape(3, 3, 4)
    here, same = wanted + 2, np.eye(2, dtype=bool)
    wanted[2, 2, :2] = np.nan
    here[2, 2, 0], here[0, 0, 3] = np.nan, np.nan
    status = np.where(np.isnan(here), answers.STATUSES.index("refused"), 0)
    status[0, 0, 3] = answers.STATUSES.index("unparsable")
    assert recovery(wanted, answers.Ratings(here, status), same, "pairwise") == {
        "planted_delta": pytest.approx(0), "correlation_of_cells": pytest.approx(1),
        "cell_error": 2, "invalid_percent": pytest.approx(100 / 36),
        "refusals_planted": 2, "refusals": 1, "refusals_both": 1,
    }  # fmt: skip
    flat = np.full((3, 3, 2), 60.0)
    back = recovery(flat, answers.Ratings(flat, np.zeros_like(flat, dtype=int)), same, "listwise")
    assert np.isnan(back["correlation_of_cells"])
    assert back["planted_delta"] == back["cell_error"] == 0


def test_a_verdict_is_of_the_pipeline_and_one_of_the_model():
    nan = np.nan
    rows = pd.DataFrame(
        [
            (False, 0.5, 0.3, 0.7, 0.6, 0.5),  # as planted, and counted anew alike
            (False, 0.5, 0.3, 0.7, 0.8, 0.4),
            (False, 0.5, 0.3, 0.7, 0.6, nan),  # scored: there is no text to count
            (True, nan, nan, nan, 0.0, nan),
        ],
        columns=["flat", "delta", "low", "high", "planted_delta", "counted_anew"],
    )
    table = with_verdicts(rows)
    assert table.pipeline.tolist() == [
        "exact",
        "differs",
        "not counted: asked over choices",
        "exact",
    ]
    assert table.verdict.tolist() == ["as planted", "not as planted", "as planted", "as planted"]
    assert table.model_error.tolist() == pytest.approx([-0.1, -0.3, -0.1, 0])
