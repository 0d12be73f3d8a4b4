"""The stereotype dictionary: files, the rules that find a word, and scores of dimensions."""

import numpy as np
import pandas as pd
import pytest

from ingroup import dictionary
from ingroup.tables import InputError

ROWS = """word,dimension,direction
friendly,Sociability,1
cold,Sociability,-1
kind,Sociability,1
kind,Morality,1
hardworking,Ability,1
risk taker,Agency,1
poor,Status,-1
doctor,Occupation,
disadvantaged,Status,-1
"""
WIDE = """original word,Warmth dictionary,Warmth direction,Art dictionary
Kind,1,-1,0
warm,1,NA,0
odd,-1,NA,0
stray,0,1,0
painter,0,NA,1
nice,1,1,0
"""


def written(folder, text):
    """Load a dictionary with this text."""
    file = folder / "dictionary.csv"
    file.write_text(text, "utf8")
    return dictionary.load_lexicon(str(file))


@pytest.fixture
def lexicon(tmp_path):
    """Return a small dictionary."""
    return written(tmp_path, ROWS)


def found(keyword, lexicon, **options):
    """Return the word and the step of one keyword, None where there is none."""
    row = dictionary.find([keyword], lexicon, **options).iloc[0]
    return tuple(None if pd.isna(value) else value for value in (row.word, row.step))


@pytest.mark.parametrize(
    ("keyword", "word", "step"),
    [
        ("Friendly", "friendly", "exact"),
        ("**Friendly:**", "friendly", "exact"),
        ("risk  taker", "risk taker", "exact"),
        ("hard-working", "hardworking", "joined or split"),
        ("hard working", "hardworking", "joined or split"),
        ("risk‑taker", "risk taker", "joined or split"),
        ("doctors", "doctor", "lemma"),
        ("risk takers", "risk taker", "lemma"),
        ("very friendly", "friendly", "last word"),
        ("marginalized", "disadvantaged", "by hand"),
        ("not friendly", None, None),
        ("very very friendly", None, None),
        ("un-friendly", None, None),
        ("unheard", None, None),
        ("**", None, None),
    ],
)
def test_five_rules_look_up_a_keyword(keyword, word, step, lexicon):
    assert found(keyword, lexicon) == (word, step)


@pytest.mark.parametrize(
    ("keyword", "word", "step"),
    [
        ("Friendly", "friendly", "exact"),
        ("doctors", "doctor", "lemma"),
        ("marginalized", "disadvantaged", "by hand"),
        ("**Friendly:**", None, None),
        ("hard-working", None, None),
        ("risk takers", None, None),
        ("very friendly", None, None),
    ],
)
def test_the_paper_has_three_stages(keyword, word, step, lexicon):
    assert found(keyword, lexicon, way="paper") == (word, step)


def test_a_lemma_is_guessed_only_behind_an_ending_of_nouns_and_verbs():
    assert "risk" in dictionary.lemmas("risks")
    assert "blorp" in dictionary.lemmas("blorped")
    assert dictionary.lemmas("blorpest") == []


def test_spacy_reads_the_last_part_of_a_word():
    lemmas = dictionary.spacy_lemmas()
    assert lemmas("doctors") == ["doctor"]


def test_of_two_words_that_fit_the_first_counts(tmp_path):
    text = "word,dimension,direction\nhard-working,Ability,1\nhard working,Agency,1\n"
    assert found("hardworking", written(tmp_path, text)) == ("hard-working", "joined or split")


def test_every_word_of_the_sample_finds_itself():
    sample = dictionary.load_lexicon()
    lookups = dictionary.find(sample.word, sample)
    assert lookups.word.tolist() == sample.word.tolist()
    assert (lookups.step == "exact").all()


def test_lookups_keep_the_index_of_the_keywords(lexicon):
    keywords = pd.Series(["kind", "kind", "nothing"], index=[7, 8, 9])
    lookups = dictionary.find(keywords, lexicon)
    assert lookups.index.tolist() == [7, 8, 9]
    assert lookups.step.tolist()[:2] == ["exact", "exact"]
    assert lookups.word.isna().tolist() == [False, False, True]


def test_a_released_table_has_a_row_for_each_word(tmp_path):
    wide = written(tmp_path, WIDE)
    pairs = wide.dropna(subset="dimension")
    # "stray" has a direction, but is no member, and -1 is no membership.
    assert pairs.word.tolist() == ["kind", "warm", "nice", "painter"]
    assert pairs.is_directed.tolist() == [True, True, True, False]
    assert set(wide.word) == {"kind", "warm", "odd", "stray", "painter", "nice"}


@pytest.mark.parametrize(
    "cells", ["kind,Warmth,1.0\nchair,Warmth,nan", "kind , Warmth, 1\nchair,Warmth,N/A"]
)
def test_directions_are_read_as_other_programs_write_them(cells, tmp_path):
    lexicon = written(tmp_path, f"word,dimension,direction\n{cells}\n")
    assert lexicon.word.tolist() == ["kind", "chair"]
    assert lexicon.dimension.tolist() == ["Warmth", "Warmth"]
    assert lexicon.direction[0] == 1
    assert np.isnan(lexicon.direction[1])


@pytest.mark.parametrize(
    "row", ["friend*,Warmth,1", ",Warmth,1", "cold,Warmth,2", "a,Warmth,1\nA,Warmth,1"]
)
def test_a_wrong_cell_is_named(row, tmp_path):
    with pytest.raises(InputError, match=r"dictionary\.csv"):
        written(tmp_path, f"word,dimension,direction\n{row}\n")


def test_only_the_released_dictionary_is_to_be_fetched():
    with pytest.raises(InputError, match=r"nowhere\.csv") as refused:
        dictionary.load_lexicon("nowhere.csv")
    assert "make data" not in str(refused.value)
    with pytest.raises(InputError, match="make data fetches it"):
        dictionary.load_lexicon(dictionary.RELEASED)


def slow_score(rows, lexicon, dimension):
    """Score a dimension by its definition: one keyword with a word after the other."""
    directions = lexicon[lexicon.dimension == dimension].set_index("word").direction
    total = 0.0
    for word in rows.word:
        if word in directions:
            total += directions[word]
    return total / len(rows)


def test_scores_equal_the_slow_definition():
    lexicon = dictionary.load_lexicon()
    generator = np.random.default_rng(0)
    rows = pd.DataFrame({"word": generator.choice(lexicon.word, 60)})
    rows["group"] = generator.choice(["Men", "Women", "Poor"], 60)
    rows["cluster"] = (rows.group == "Poor").astype(int)
    rows.loc[::7, "word"] = np.nan

    scored = dictionary.scores(rows, lexicon, "cluster")
    scored = scored.set_index(["cluster", "dimension"])
    by_group = dict(list(rows.dropna().groupby("group")))
    for dimension in lexicon.dimension[lexicon.is_directed].unique():
        men, women = (slow_score(by_group[name], lexicon, dimension) for name in ("Men", "Women"))
        # A dimension of no keyword has no row.
        score = scored.score.get((0, dimension), 0)
        assert score == pytest.approx((men + women) / 2)
        poor = slow_score(by_group["Poor"], lexicon, dimension)
        assert scored.score.get((1, dimension), 0) == pytest.approx(poor)


def test_scores_leave_odd_pairs_out_and_only_count_without_directions(tmp_path):
    wide = written(tmp_path, WIDE)
    rows = pd.DataFrame({"group": "Men", "word": ["stray", "warm", "nice", "painter"]})
    scored = dictionary.scores(rows, wide, "group").set_index("dimension")
    assert scored.share.to_dict() == {"Warmth": 0.25, "Art": 0.25}
    assert scored.score["Warmth"] == 0.25
    assert np.isnan(scored.score["Art"])


def test_released_scores_count_each_pair_of_a_cluster_once(lexicon):
    keywords = ["kind", "Kind ", "cold", "doctor", "risk taker", "unheard"]
    rows = pd.DataFrame({"cluster": 3, "keyword": keywords})
    scored = dictionary.released_scores(rows, lexicon).set_index("dimension")
    # Four pairs: kind in two dimensions, cold, doctor.
    assert scored.share["Sociability"] == 0.5
    assert scored.score.to_dict() == {"Sociability": 0, "Morality": 0.25, "Occupation": 0.25}


def test_a_released_pair_without_direction_makes_its_score_missing(tmp_path):
    wide = written(tmp_path, WIDE)
    rows = pd.DataFrame({"cluster": 0, "keyword": ["warm", "nice", "painter"]})
    scored = dictionary.released_scores(rows, wide).set_index("dimension").score
    assert np.isnan(scored["Warmth"])
    assert scored["Art"] == pytest.approx(1 / 3)
