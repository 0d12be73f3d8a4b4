"""Free text beside scored answers of StereoMap, by hand."""

import numpy as np
import pandas as pd
import pytest

from ingroup.studies.stereomap import both_ways, stimuli

nan = np.nan
PAPER = stimuli.ablations()[0]
ABOUT = {"model": "m", "version": "EXTENDED", "ablation": PAPER}


def rating_probabilities():
    """Two words of the first prompt about one group, sure of 1 and of 4."""
    words = pd.DataFrame(
        {"group": "Men", "prompt": "Warmth-Competence", "word": ["Friendly", "Honest"]}
    )
    scored = pd.DataFrame(
        {1.0: [1.0, 0.0], 4.0: [0.0, 1.0], "most_probable": [1.0, 4.0], "option_mass": [0.5, 0.7]}
    )
    return words.join(scored).assign(**ABOUT)


def replies():
    """A reply in each of two rounds, one that was scored, and one of a model without scores."""
    rows = pd.DataFrame(
        {
            "group": "Men",
            "prompt": "Warmth-Competence",
            "part": "",
            "mode": ["free text", "free text", "scored", "free text"],
            "round": [1, 2, 1, 1],
            "values": [{"Friendly": 1.0, "Honest": nan, "Rating": 3.0}] * 4,
            "keywords": [("kind", "old")] * 4,
        }
    )
    return rows.assign(**ABOUT).assign(model=["m", "m", "m", "other"])


def test_only_the_first_round_of_a_scored_model_is_set_beside():
    once = both_ways.first_round_replies(replies(), rating_probabilities())
    assert once.index.tolist() == [0]
    (row,) = once.to_dict("records")
    prompt = stimuli.prompts()["EXTENDED/Warmth-Competence"]
    assert row["construct"] == prompt.construct
    assert (row["keywords asked"], row["keywords given"]) == (prompt.n_keywords, 2)


def test_each_word_has_its_free_and_its_scored_rating():
    once = both_ways.first_round_replies(replies(), rating_probabilities())
    both = both_ways.ratings(once, rating_probabilities())
    assert both.word.tolist() == ["Friendly", "Honest"]
    np.testing.assert_array_equal(both.free, [1, nan])
    table = both_ways.agreement_by_construct(both, once)
    (row,) = table.reset_index().to_dict("records")
    assert (row["asked"], row["answered"], row["agree"]) == (2, 1, 1)
    assert row["option_mass"] == pytest.approx(60)
    assert row["keywords given"] == 2

    shares = both_ways.rating_distribution(both)
    assert shares["mode"].tolist() == ["scored"] * 2 + ["free text"] * 2
    assert shares.n.tolist() == [2, 2, 1, 1]
    assert shares.share.tolist() == [0.5, 0.5, 1, 0]


def test_without_scored_answers_the_tables_have_no_row():
    nothing = both_ways.rating_probabilities_of_jobs([])
    once = both_ways.first_round_replies(replies(), nothing)
    both = both_ways.ratings(once, nothing)
    assert len(both) == len(both_ways.agreement_by_construct(both, once)) == 0
    assert both_ways.rating_distribution(both).columns.tolist() == [
        "model",
        "mode",
        "n",
        "rating",
        "share",
    ]
