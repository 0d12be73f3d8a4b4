"""What the Biased Samaritan's printed numbers say about each other, counted by hand."""

import numpy as np
import pandas as pd
import pytest

from ingroup.studies.biased_samaritan import consistency

SCORES = pd.DataFrame(
    {
        "model": ["a", "a", "b", "b"],
        "group": ["control", "female", "control", "female"],
        "mean_score": [70.0, 72.5, 80.0, 79.0],
    }
)


def test_scores_and_differences_are_found_by_model_and_group():
    rows = pd.DataFrame({"model": ["b", "a", "a"], "group": ["female", "female", "male"]})

    scores = consistency.score_of(SCORES, rows)
    differences = consistency.score_minus_control(SCORES, rows)

    assert scores[:2].tolist() == [79.0, 72.5]
    assert differences[:2].tolist() == [-1.0, 2.5]
    assert np.isnan([scores[2], differences[2]]).all()


def test_the_largest_spread_is_that_of_scores_at_the_ends():
    ends = np.array([1, 1, 100, 100])

    spread = consistency.largest_spread(np.array([ends.mean(), 0.0, 100.0]), 4)

    assert spread.tolist() == pytest.approx([ends.std(ddof=1), 0.0, 0.0])


@pytest.fixture
def brittle():
    """Two models of one maker and one of another; the label of a table may differ."""
    gender = pd.DataFrame(
        {
            "model": ["gpt-x", "gpt-x", "gpt-y", "claude-z"],
            "mean_sd": [4.0, 5.0, 7.0, 9.0],
        }
    )
    age = pd.DataFrame({"model": ["gpt-x", "gpt-y"], "mean_sd": [4.4, 5.6]})
    return consistency.brittleness({"gender": gender, "age": age})


NAMES = pd.DataFrame(
    {
        "model": ["gpt-x", "gpt-x", "gpt-y", "claude-z"],
        "model_label": ["X", "X", "Y", "Z"],
    }
)


def test_the_maker_is_the_first_word_of_a_model(brittle):
    assert brittle["maker"].to_list() == ["gpt", "gpt", "gpt", "claude", "gpt", "gpt"]
    assert brittle["category"].to_list() == ["gender"] * 4 + ["age"] * 2


def test_averages_outside_a_range_are_named(brittle):
    shown, is_inside, why = consistency.check_range(brittle, ["gpt"], 4.2, 6.0, NAMES)

    # By model: X has 4.5 (gender) and 4.4 (age), Y has 7 and 5.6. By category: 5.75 and 5.
    assert shown == "4.40 to 7.00 by model and category, 4.0 to 7.0 by cell"
    assert not is_inside
    assert why == (
        "By model and category Y has 7.00 (gender); 2 of 5 cells are outside; "
        "only the mean of the 2 models is inside for each category."
    )


def test_a_mean_of_models_that_is_outside_too_is_not_called_inside(brittle):
    _, _, why = consistency.check_range(brittle, ["gpt"], 4.2, 5.5, NAMES)

    assert why == (
        "By model and category Y has 5.60 (age) and 7.00 (gender); 3 of 5 cells are outside."
    )


def test_a_range_that_holds_says_so(brittle):
    _, is_inside, why = consistency.check_range(brittle, ["claude", "gpt"], 4.0, 9.0, NAMES)

    assert is_inside
    assert why == "By model and category all are inside; 0 of 6 cells are outside."
