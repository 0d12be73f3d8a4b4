"""Scores of dimensions: both ways by hand, the sound one against plain loops."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup.dictionary import find, load_lexicon
from ingroup.studies.stereomap.dimensions import released_scores, scores, top

TOY = """original word,preprocessed word 3 (lemmatized),A dictionary,A direction,\
B dictionary,B direction,C dictionary
good,good,1,1,0,NA,0
bad,bad,1,-1,1,-1,0
plain,plain,1,0,0,NA,1
lost,lost,1,NA,1,1,0
Up,up,1,1,0,NA,1
two words,twowords,1,1,0,NA,1
press,press,0,NA,1,1,0
pressed,press,1,1,1,-1,0
stray,stray,0,1,0,NA,0
"""
WORDS = ["good", "bad", "plain", "lost", "Up", "two words", "press", "pressed", "stray"]
NOTHING = dict.fromkeys("ABC", (None,) * 3)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    file = tmp_path_factory.mktemp("toy") / "toy.csv"
    file.write_text(TOY, "utf-8")
    return load_lexicon(file)


def table(toy, given: dict[str, list[str]]) -> pd.DataFrame:
    rows = pd.DataFrame([(g, k) for g, ks in given.items() for k in ks], columns=["group", "k"])
    return find(rows.k, toy, lambda word: [], {}).assign(group=rows.group)


def values(rows: pd.DataFrame, group) -> dict[str, tuple]:
    """Share, direction and score by dimension; None where one is missing."""
    rows = rows[rows[rows.columns[0]] == group].set_index("dimension")
    rows = rows[["share", "direction", "score"]].round(9)
    return {row[0]: tuple(None if pd.isna(v) else v for v in row[1:]) for row in rows.itertuples()}


def test_scores_by_hand(toy):
    found = table(toy, {"x": ["good", "Good", "bad", "plain", "nothing"], "y": ["nothing"]})
    rows = scores(found, toy)
    assert rows.columns.tolist() == ["group", "dimension", "share", "direction", "score", "n"]
    assert rows.group.tolist() == ["x"] * 3 + ["y"] * 3
    assert rows.n.tolist() == [4] * 3 + [0] * 3  # the keyword without a word does not count
    expected = {"A": (1, 0.25, 0.25), "B": (0.25, -1, -0.25), "C": (0.25, None, None)}
    assert values(rows, "x") == expected
    assert values(rows, "y") == NOTHING


def test_odd_pairs_are_left_out_and_the_word_still_counts(toy):
    rows = scores(table(toy, {"x": ["lost", "pressed", "stray", "good"]}), toy)
    # lost has no direction in A; pressed and press point opposite ways in B; stray is no member.
    assert values(rows, "x") == {"A": (0.5, 1, 0.5), "B": (0.25, 1, 0.25), "C": (0, None, None)}
    assert rows.n.tolist() == [4] * 3


def test_a_cluster_is_the_mean_of_its_groups(toy):
    given = {"x": ["good"] * 3, "y": ["bad"], "z": ["plain", "bad"], "none": ["nothing"]}
    found = table(toy, given)
    found["cluster"] = found.group.map({"x": 0, "y": 0, "none": 0, "z": 1})
    pooled, even = scores(found, toy, "cluster"), scores(found, toy, "cluster", "group")
    assert values(pooled, 0) == {"A": (1, 0.5, 0.5), "B": (0.25, -1, -0.25), "C": (0, None, None)}
    assert values(even, 0) == {"A": (1, 0, 0), "B": (0.5, -1, -0.5), "C": (0, None, None)}
    assert values(even, 1) == values(pooled, 1) == values(scores(found, toy), "z")
    assert even.n.tolist() == [4] * 3 + [2] * 3


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from([*WORDS, "no"])), max_size=20))
def test_scores_against_plain_loops(toy, rows):
    given = {g: [k for h, k in rows if h == g] for g, _ in rows}
    result = scores(table(toy, given), toy)
    assert result.group.unique().tolist() == list(given)
    for row in result.itertuples():
        words = [word for word in given[row.group] if word in WORDS]
        told = [
            toy.directions.loc[word, row.dimension]
            for word in words
            if toy.members.loc[word, row.dimension] and not toy.odd.loc[word, row.dimension]
        ]
        assert row.n == len(words)
        assert pd.isna(row.score) == (not words or row.dimension == "C")
        if words:
            assert row.share == pytest.approx(len(told) / len(words))
        if words and row.dimension != "C":
            assert row.score == pytest.approx(sum(told) / len(words))
            assert told == [] or row.direction == pytest.approx(np.mean(told))


def test_released_scores_by_hand(toy):
    # Five of these are dropped: two repeats, a capital of the file, a space, and what no word is.
    keywords = [" Good ", "good", "bad", "plain", "Up", "two words", "nothing", "pressed", "good"]
    found = table(toy, {"x": keywords}).rename(columns={"group": "cluster"})
    rows = released_scores(found, toy)
    # good A+; bad A-, B-; plain A0, C; pressed A+, B-: seven pairs.
    expected = {"A": (4, 1), "B": (2, -2), "C": (1, 1)}
    assert values(rows, "x") == {
        d: (round(n / 7, 9), round(s / n, 9), round(s / 7, 9)) for d, (n, s) in expected.items()
    }
    assert rows.n.tolist() == [4] * 3


def test_a_missing_direction_makes_a_released_score_missing(toy):
    found = table(toy, {"x": ["good", "lost", "press"], "y": ["good"], "z": ["Up"]})
    rows = released_scores(found, toy, "group")
    assert values(rows, "x") == {"A": (0.5, None, None), "B": (0.5, 1, 0.5), "C": (0, None, 0)}
    assert values(rows, "y") == {"A": (1, 1, 1), "B": (0, None, 0), "C": (0, None, 0)}
    assert values(rows, "z") == NOTHING
    assert rows.n.tolist() == [3] * 3 + [1] * 3 + [0] * 3


def test_the_two_ways_differ_by_frequency(toy):
    found = table(toy, {"x": ["good"] * 9 + ["bad"]})
    assert values(scores(found, toy), "x")["A"] == (1, 0.8, 0.8)
    assert values(released_scores(found, toy, "group"), "x")["A"][2] == 0


def test_top_takes_the_greatest_either_way():
    cells = {"cluster": [2] * 6 + [1] * 2, "dimension": [*"ABCDEF", *"AB"]}
    cells["share"] = [0.3, 0.5, 0.2, 0.4, 0.0, 0.9, 0.1, 0.2]
    cells["score"] = [0.1 + 0.2, -0.5, -0.3, 0.0, 0.0, np.nan, 0.1, 0.2]
    rows = pd.DataFrame(cells)
    best = top(rows, 3)
    assert best[["cluster", "dimension", "rank", "sign"]].to_numpy().tolist() == [
        [2, "B", 1, "-"],
        [2, "A", 2, "+"],  # equal to C but for rounding: in the order of the dictionary
        [2, "C", 3, "-"],
        [1, "B", 1, "+"],
        [1, "A", 2, "+"],
    ]
    assert top(rows).sign.tolist() == ["-", "+", "-", "0", "+", "+"]
    assert best.columns.tolist() == [*rows.columns, "rank", "sign"]
