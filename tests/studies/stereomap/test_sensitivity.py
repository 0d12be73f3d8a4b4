"""How much answers vary, by hand on a few rounds of two forms of the first prompt."""

import numpy as np
import pandas as pd
import pytest

from ingroup.studies.stereomap import sensitivity, stimuli
from ingroup.studies.stereomap.statistics import reason_diversity

WORDS = stimuli.words("EXTENDED")
COMPETENCE = list(WORDS.word[WORDS.family == "Competence"])
WARMTH = list(WORDS.word[WORDS.family == "Warmth"])


def replies(*rounds, status="ok"):
    """Replies about two groups that give all words of an axis one rating in a round."""
    rows = []
    for number, (competence, warmth) in enumerate(rounds, start=1):
        for group in ("Men", "Women"):
            values = dict.fromkeys(COMPETENCE, competence) | dict.fromkeys(WARMTH, warmth)
            rows.append((group, number, "Warmth-Competence", values, f"They are {number}.", status))
    columns = ["group", "round", "prompt", "values", "reply", "status"]
    return pd.DataFrame(rows, columns=columns)


def test_both_axes_are_scored():
    scores = sensitivity.axis_scores(replies((4.0, 2.0)), "drop")
    assert scores[["group", "round", "Competence", "Warmth"]].values.tolist() == [
        ["Men", 1, 4, 2],
        ["Women", 1, 4, 2],
    ]


def test_variation_over_the_first_rounds_by_hand():
    """Competence of 2 and 4: the sample's sd is the root of 2, the mean 3. Warmth is the same."""
    replies_with_ratings = replies((2.0, 3.0), (4.0, 3.0), (5.0, 1.0))
    row = sensitivity.variation(replies_with_ratings, 2, "drop")
    assert row == {
        "Competence CV mean": pytest.approx(2**0.5 / 3),
        "Competence CV max": pytest.approx(2**0.5 / 3),
        "Warmth CV mean": 0,
        "Warmth CV max": 0,
    }
    assert np.isnan(list(sensitivity.variation(replies_with_ratings, 1, "drop").values())).all()


def test_a_row_of_table_14_has_variation_diversity_and_refusals():
    replies_with_ratings = replies((2.0, 3.0), (4.0, 3.0), (5.0, 1.0))
    refused = replies((2.0, 3.0), status="refused").assign(round=4)
    cut = replies((2.0, 3.0), status="cut").assign(round=5)
    replies_with_text = pd.concat([replies_with_ratings, refused, cut], ignore_index=True)
    row = sensitivity.table14_row(replies_with_text, replies_with_ratings, 2, "drop", all_rounds=3)
    assert row["refuse to answer"] == 25
    assert row["Warmth CV mean"] == 0
    assert row["Warmth CV mean, all rounds"] > 0
    texts = replies_with_ratings.rename(columns={"reply": "text"})[["group", "text"]]
    diversity = reason_diversity(texts, per_group=2)
    assert {name: row[name] for name in diversity} == diversity
    usual = sensitivity.table14_row(replies_with_text, replies_with_ratings, 2, "drop")
    assert not [name for name in usual if "all rounds" in name]


def test_two_forms_of_a_prompt_vary_as_two_rounds():
    """Mean competence of 3 and of 5 over two rounds each; a third round does not count."""
    one = replies((2.0, 3.0), (4.0, 3.0), (1.0, 1.0))
    other = replies((5.0, 3.0), (5.0, 3.0))
    table = sensitivity.between_prompts(one, other, 2, "drop").set_index("score")
    assert table.cv_mean["Competence"] == pytest.approx(2**0.5 / 4)
    assert table.cv_mean["Warmth"] == 0
    with pytest.raises(ValueError, match="no group has 2 rounds"):
        sensitivity.between_prompts(one, other.assign(values=[{}] * 4), 2, "drop")


PAPER, *REDUCED = stimuli.ablations()


def of_forms(*forms):
    """Replies of a model to several forms: two rounds that rate competence and warmth alike."""
    tables = []
    for model, form, rounds in forms:
        table = replies(*rounds)
        tables.append(table.assign(model=model, ablation=form))
    return pd.concat(tables, ignore_index=True)


def test_each_form_of_each_model_is_a_row():
    """The cv of 2 and 4 is the root of 2 over 3; a form without ratings has no row."""
    replies_with_ratings = of_forms(
        ("m", PAPER, [(2.0, 3.0), (4.0, 3.0), (4.0, 3.0)]),
        ("m", REDUCED[0], [(3.0, 3.0), (3.0, 3.0)]),
        ("n", PAPER, [(3.0, 3.0), (3.0, 3.0)]),
    )
    unrated = of_forms(("m", REDUCED[1], [(3.0, 3.0)]))
    table = sensitivity.table14(
        pd.concat([replies_with_ratings, unrated]), replies_with_ratings, 2, "drop", 3
    )
    assert table.index.tolist() == [("m", PAPER), ("m", REDUCED[0]), ("n", PAPER)]
    row = table.loc[("m", PAPER)]
    assert row["Competence CV mean"] == pytest.approx(2**0.5 / 3)
    assert row["Competence CV mean, all rounds"] == pytest.approx((4 / 3) ** 0.5 / (10 / 3))
    assert np.isnan(table.loc[("m", REDUCED[0]), "Competence CV mean, all rounds"])
    assert sensitivity.reduced_forms(table) == [("m", REDUCED[0])]
    assert sensitivity.reduced_forms(table.drop(("m", PAPER))) == []


def test_a_form_is_compared_within_a_model():
    replies_with_ratings = of_forms(("m", PAPER, [(2.0, 3.0)]), ("n", PAPER, [(5.0, 3.0)]))
    other_prompt = replies_with_ratings.assign(prompt="Emotion")
    selected = sensitivity.replies_to_prompt(
        pd.concat([replies_with_ratings, other_prompt]), "n", PAPER
    )
    assert len(selected) == 2
    assert set(selected.model) == {"n"}
    assert set(selected.prompt) == {"Warmth-Competence"}


def test_the_variation_between_prompts_is_averaged_over_the_axes():
    varied = pd.DataFrame({"score": ["Competence", "Warmth"], "cv_mean": [0.1, 0.3]})
    table = sensitivity.table_of_forms({("m", REDUCED[0]): varied, ("n", REDUCED[0]): varied})
    assert table.index.tolist() == [("m", REDUCED[0])] * 2 + [("n", REDUCED[0])] * 2
    averages = sensitivity.mean_of_axes(table)
    assert averages.values.tolist() == [
        ["m", REDUCED[0], pytest.approx(0.2)],
        ["n", REDUCED[0], pytest.approx(0.2)],
    ]
    none = sensitivity.mean_of_axes(sensitivity.table_of_forms({}))
    assert none.columns.tolist() == ["model", "prompt", "cv_mean"]
    assert none.empty
