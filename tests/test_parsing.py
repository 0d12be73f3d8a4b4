"""Replies with the rating, or the reason why there is none, that a careful reader takes."""

import math
import time
from pathlib import Path

import pandas as pd
import pytest

from ingroup.parsing import (
    is_refusal,
    parse_rating,
    parse_rating_released,
    plain,
    without_loop,
)

REPLIES = pd.read_csv(Path(__file__).parent / "replies" / "ratings.csv", keep_default_na=False)


def read(text: str, low: float = 0, high: float = 100) -> str:
    """Return the rating, or the reason why there is none, as the table of replies writes it."""
    value, status = parse_rating(text, low, high)
    return status if math.isnan(value) else f"{value:g}"


@pytest.mark.parametrize(
    ("text", "low", "high", "expected"),
    list(REPLIES[["text", "low", "high", "expected"]].itertuples(index=False, name=None)),
)
def test_replies_are_read_as_a_careful_reader_does(text, low, high, expected):
    assert read(text, low, high) == expected


@pytest.mark.parametrize(
    "text",
    [
        "A bag contains 10 red balls.",
        "A 100-year-old woman crosses the street.",
        "She earned a score of 95 on her test.",
        "I'd say it was 10 years ago.",
        "The answer has 3 parts.",
        "等了30分钟",
        "4 ⭐",
        "The odds are 3 to 1.",
        "Sadness: high\nAge: 40",
        "80 or higher",
        "max. 90",
        "I gave it a nine.",
        "mid-80s",
        "Rating: 90. No, lower.",
    ],
)
def test_numbers_that_the_reply_does_not_claim_are_no_ratings(text):
    assert read(text) == "unparsable"


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("| Emotion | Intensity |\n|---|---|\n| Grief | 85 |", 85),
        ('{"step": 1, "rating": 85, "confidence": 0.9}', 85),
        ("<|im_start|>assistant\n85<|im_end|>", 85),
        ("4/5 = 80%", 80),
        ("Initial rating: 50. Final rating: 77", 77),
        ("P(help) = 85%", 85),
        ("The two steps give 0.5. So, the probability is 50%.", 50),
        ("۸۵ از ۱۰۰", 85),
        ("60? No, 70.", 70),
    ],
)
def test_claims_stand_out_from_other_numbers(text, rating):
    assert parse_rating(text, 0, 100) == (rating, "ok")


@pytest.mark.parametrize("unit", ["1 ", "I would say ", "rating is ", "a ", "((", '"', "| 1 |\n"])
def test_ten_thousand_repetitions_take_a_moment(unit):
    start = time.process_time()
    parse_rating(unit * 10_000 + "x", 0, 100)
    # A pattern of quadratic cost would take minutes.
    assert time.process_time() - start < 10


def test_a_text_that_is_one_loop_is_cut():
    assert read("100\n" * 60) == "cut"
    assert read("20\n20\n20") == "20"
    assert without_loop("Yes!\n" + "No way out here.\n" * 3 + "No w") == "Yes!"
    assert without_loop("1000000") == "1000000"
    assert without_loop("a" * 20) == ""
    assert without_loop("a" * 19) == "a" * 19


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("I can’t, in good conscience, assign a number.", True),
        ("Because of my guidelines, I cannot assign a probability.", True),
        ("Je suis désolé, mais je ne peux pas vous aider.", True),
        ("죄송합니다. 답변할 수 없습니다.", True),
        ("I cannot imagine her pain.", False),
        ("The doctor said, “I'm sorry, I can't help you.”", False),
        ("No puedo imaginar su dolor.", False),
        ("As an assistant, she was often overlooked.", False),
        ("He refused to answer.", False),
    ],
)
def test_refusals_are_said_in_the_first_person(text, refuses):
    assert is_refusal(text) == refuses


def test_released_rule_takes_the_first_number_up_to_100():
    assert parse_rating_released("On a scale of 0 to 100, 80") == (0, "ok")
    assert parse_rating_released("150, or 85") == (85, "ok")
    assert parse_rating_released("8.5") == (8, "ok")
    assert parse_rating_released("I cannot say. 80").status == "refused"
    assert parse_rating_released(None).status == "refused"


def test_plain_text_has_ascii_digits_and_no_speech_of_others():
    assert plain('**８５**  "is what he said"') == "85 ,"
    assert plain('{"score": "7"}') == "score: 7"
