"""Lists of StereoMap: ratings of words, and keywords with their reasons."""

import math
from pathlib import Path

import pandas as pd
import pytest
from growth import growth

from ingroup.stereomap.lists import parse_keywords, parse_ratings

TESTS = Path(__file__).parent
REPLIES = pd.read_csv(TESTS / "replies" / "lists.csv", keep_default_na=False, dtype=str)
WORDS = ["Friendly", "Sociable", "Trustworthy", "Honest", "Rating"]


def ratings(text, words, rule="sound"):
    """Write the ratings of a reply as in the tables of replies: "4;;3.5"."""
    values = parse_ratings(text, words, rule).values.values()
    return ";".join("" if math.isnan(value) else f"{value:g}" for value in values)


@pytest.mark.parametrize(
    ("words", "reply", "expected", "status"),
    REPLIES[REPLIES.parser == "ratings"].iloc[:, 1:].values.tolist(),
)
def test_ratings_whose_values_were_set_first(words, reply, expected, status):
    assert ratings(reply, words.split(";")) == expected
    assert parse_ratings(reply, words.split(";")).status == status


@pytest.mark.parametrize(
    ("n", "reply", "expected", "status"),
    REPLIES[REPLIES.parser == "keywords"].iloc[:, 1:].values.tolist(),
)
def test_keywords_whose_values_were_set_first(n, reply, expected, status):
    keywords = parse_keywords(reply, int(n))
    assert ";".join(keywords.words) == expected
    assert keywords.status == status


def test_golden_replies():
    golden = pd.read_csv(TESTS / "golden" / "parses_stereomap.csv.gz", keep_default_na=False)
    read = [ratings(row.reply, row.words.split(";")) for row in golden.itertuples()]
    assert read == golden.ratings.tolist()


def test_released_list_needs_its_first_word():
    reply = "- Sociable: 3\n- Trustworthy: 4-5\nOverall Rating: 4/5"
    assert ratings(reply, WORDS, "released") == ";;;;"
    # The greedy pattern of the released code takes the last number of "4/5".
    assert ratings("- Friendly: 2\n" + reply, WORDS, "released") == "2;3;4;;5"
    # A behaviour is the word before the group.
    behaviours = "-Help nurses: 4\n-Fight with nurses: 2"
    assert ratings(behaviours, ["Help", "Fight"], "released") == "4;2"


@pytest.mark.parametrize(
    ("reply", "expected"), [("85", "85"), ("I rate it as a 4.", "4"), ("3 or 4 out of 5", "")]
)
def test_released_rating_alone(reply, expected):
    assert ratings(reply, ["Rating"], "released") == expected


def test_reasons_stand_behind_or_below():
    below = "1. **Kind**\n   - They help.\n2. **Poor**\n   - They earn little."
    behind = "- Kind: They help.\n- Poor: They earn little."
    assert parse_keywords(below, 2).reasons == ("They help.", "They earn little.")
    assert parse_keywords(behind, 2).reasons == ("They help.", "They earn little.")


def test_list_with_the_number_asked_wins():
    reply = "- Help\n- Ignore\n\n1. Skill\n2. Trust\n3. Demand"
    assert parse_keywords(reply, 3).words == ("skill", "trust", "demand")
    assert parse_keywords(reply, 5).words == ("help", "ignore")
    assert parse_keywords("They are seen so.\nKind\nThat is it.", 1).status == "unparsable"


@pytest.mark.parametrize(
    "part", ["Friendly: 4 ", "4, ", "4\n", "- Kind\n", "Kind, ", "1. Kind ", "| a | b |\n", " "]
)
def test_work_grows_with_length_not_its_square(part):
    assert growth(lambda text: parse_ratings(text, WORDS), part) < 9
    assert growth(lambda text: parse_keywords(text, 5), part) < 9
