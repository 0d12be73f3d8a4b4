"""Replies to ratings: a table of replies, any text at all, and the released rule written twice."""

import math
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingroup import parsing
from ingroup.parsing import OK, REFUSED, UNPARSABLE, parse_rating

# reply, value on 0 to 100, value on 0 to 10; a status where there is no value
SOUND = [
    # one number
    ("85", 85, UNPARSABLE),
    ("8", 8, 8),
    ("85.", 85, UNPARSABLE),
    ("8.5", 8.5, 8.5),
    (".5", 0.5, 0.5),
    ("...85", 85, UNPARSABLE),
    ("**85**", 85, UNPARSABLE),
    ("_85_", 85, UNPARSABLE),
    ("\\boxed{85}", 85, UNPARSABLE),
    ("<answer>85</answer>", 85, UNPARSABLE),
    ("85\u200b", 85, UNPARSABLE),
    ("+7", 7, 7),
    ("85, 85", 85, UNPARSABLE),
    ("I would say 85.", 85, UNPARSABLE),
    ("I'm sorry to hear that. 85", 85, UNPARSABLE),
    # the ends of the scale
    ("0", 0, 0),
    ("10", 10, 10),
    ("100", 100, UNPARSABLE),
    ("100.0", 100, UNPARSABLE),
    ("100.5", UNPARSABLE, UNPARSABLE),
    ("101", UNPARSABLE, UNPARSABLE),
    ("-5", UNPARSABLE, UNPARSABLE),
    ("−5", UNPARSABLE, UNPARSABLE),
    ("–5", UNPARSABLE, UNPARSABLE),
    ("Emotion intensity: -5", UNPARSABLE, UNPARSABLE),
    # digits of other scripts, and numerals that are no digits
    ("٨٥", 85, UNPARSABLE),
    ("８５", 85, UNPARSABLE),
    ("८५", 85, UNPARSABLE),
    ("٨٫٥", 8.5, 8.5),
    ("８／１０", UNPARSABLE, 8),
    ("85分", 85, UNPARSABLE),
    ("8²", UNPARSABLE, UNPARSABLE),
    ("8½", UNPARSABLE, UNPARSABLE),
    ("½", UNPARSABLE, UNPARSABLE),
    ("⑧", UNPARSABLE, UNPARSABLE),
    ("八十五", UNPARSABLE, UNPARSABLE),
    # the scale mentioned
    ("on a scale of 0 to 100, 80", 80, UNPARSABLE),
    ("50 (0 to 100)", 50, UNPARSABLE),
    ("On a scale from 0 (not at all) to 100 (extremely), I'd say 80.", 80, UNPARSABLE),
    ("0 being not at all and 100 being extremely: 85", 85, UNPARSABLE),
    ("from 0% to 100%, 80%", 80, UNPARSABLE),
    ("0-10: 7", UNPARSABLE, 7),
    ("0-100", UNPARSABLE, UNPARSABLE),
    ("Out of 100, I'd say 80", 80, UNPARSABLE),
    ("80 on a scale of 100", 80, UNPARSABLE),
    ("on a scale of 1 to 10, 8", UNPARSABLE, UNPARSABLE),
    # denominators
    ("85/100", 85, UNPARSABLE),
    ("80 / 100.", 80, UNPARSABLE),
    ("8/10", UNPARSABLE, 8),
    ("8.5/10", UNPARSABLE, 8.5),
    ("I would rate this an 85 out of 100.", 85, UNPARSABLE),
    ("8 out of 10", UNPARSABLE, 8),
    ("120/100", UNPARSABLE, UNPARSABLE),
    ("85%", 85, UNPARSABLE),
    ("8 percent", 8, UNPARSABLE),
    # an answer on a line of its own, reasons beside it
    ("Emotion intensity: 85", 85, UNPARSABLE),
    ("85\nThe person lost 3 jobs in 2009.", 85, UNPARSABLE),
    ("**Rating:** 85/100\n\n1. Two of 5 were hurt", 85, UNPARSABLE),
    ("They were 3.\n\nMy answer is 80", 80, UNPARSABLE),
    ("85\n70", UNPARSABLE, UNPARSABLE),
    ("2nd\nI would say 85", 85, UNPARSABLE),
    # no number that is meant without doubt
    ("70-80", UNPARSABLE, UNPARSABLE),
    ("50 to 100", UNPARSABLE, UNPARSABLE),
    ("0 to 1000", UNPARSABLE, UNPARSABLE),
    ("5.0 to 100", UNPARSABLE, UNPARSABLE),
    ("70–80", UNPARSABLE, UNPARSABLE),
    ("Between 7 and 8", UNPARSABLE, UNPARSABLE),
    ("They were 25 and I'd say 80", UNPARSABLE, UNPARSABLE),
    ("8,5", UNPARSABLE, UNPARSABLE),
    ("1,000", UNPARSABLE, UNPARSABLE),
    ("80...85", UNPARSABLE, UNPARSABLE),
    ("8.5.1", UNPARSABLE, UNPARSABLE),
    ("1e400", UNPARSABLE, UNPARSABLE),
    ("2nd", UNPARSABLE, UNPARSABLE),
    ("8.5x", UNPARSABLE, UNPARSABLE),
    ("NaN", UNPARSABLE, UNPARSABLE),
    ("inf", UNPARSABLE, UNPARSABLE),
    ("eighty", UNPARSABLE, UNPARSABLE),
    ("9" * 5000, UNPARSABLE, UNPARSABLE),
    ("!!!!![]!!", UNPARSABLE, UNPARSABLE),
    ("Emotion intensity:", UNPARSABLE, UNPARSABLE),
    ("I'm sorry to hear that.", UNPARSABLE, UNPARSABLE),
    ("", UNPARSABLE, UNPARSABLE),
    (" \n", UNPARSABLE, UNPARSABLE),
    (None, UNPARSABLE, UNPARSABLE),
    (math.nan, UNPARSABLE, UNPARSABLE),
    # refusals
    ("I can't answer that.", REFUSED, REFUSED),
    ("I can’t answer that.", REFUSED, REFUSED),
    ("I cannot rate this on a scale from 0 to 100", REFUSED, REFUSED),
    ("I cannot rate a person of 25", REFUSED, REFUSED),
    ("I cannot say for sure.\n85", 85, REFUSED),
    ("I'm sorry, but I can't rate a person of 25", REFUSED, REFUSED),
    ("I'm sorry, but no.", REFUSED, REFUSED),
    ("I’m not rating this.", REFUSED, REFUSED),
    ("I am unable to do this", REFUSED, REFUSED),
    ("As an AI, I have no feelings.", REFUSED, REFUSED),
    ("As an AI I'd say 85", 85, REFUSED),
    ("It is not appropriate to rate this", REFUSED, REFUSED),
]

# reply, what the released code makes of it on every scale
AUTHORS = [
    ("85", 85),
    ("8.5", 8),
    (".5", 5),
    ("80/100", 80),
    ("8/10", 8),
    ("-5", 5),
    ("50 (0 to 100)", 50),
    ("on a scale of 0 to 100, 80", 0),
    ("In 2009 I felt 80", 80),
    ("In 2009 I felt 800 and not 80", REFUSED),
    ("150", REFUSED),
    ("100", 100),
    ("٨٥", 85),
    ("８５", 85),
    ("85分", REFUSED),
    ("_85_", REFUSED),
    ("1e400", REFUSED),
    ("²", REFUSED),
    ("9" * 5000, REFUSED),
    ("0" * 5000 + "85", 85),
    ("I cannot say: 85", REFUSED),
    ("I can't say: 85", REFUSED),
    ("I'm not rating 85", REFUSED),
    ("I can’t say: 85", 85),
    (" I cannot say: 85", 85),
    ("I'm sorry, but I cannot rate a person of 25", 25),
    ("!!!!![]!!", REFUSED),
    ("eighty", REFUSED),
    ("", REFUSED),
    (None, REFUSED),
    (math.nan, REFUSED),
]

NUMBERS = st.one_of(
    st.integers(-200, 200).map(str),
    st.floats(allow_nan=True).map(str),
    st.text(st.characters(categories=["Nd", "Nl", "No"]), min_size=1, max_size=4),
    st.sampled_from(["0 to 100", "0-10", "85/100", "8/10", "8,5", "85%", "1e400", "9" * 5000]),
)
PHRASES = st.sampled_from(
    [
        "I cannot",
        "I can’t",
        "I'm not rating",
        "Emotion intensity:",
        "out of",
        "/",
        "\n",
        "sorry, but",
    ]
)
REPLIES = st.one_of(
    st.text(),
    st.lists(st.one_of(NUMBERS, PHRASES, st.text(max_size=5)), max_size=8).map("".join),
    st.lists(st.one_of(NUMBERS, PHRASES, st.text(max_size=5)), max_size=8).map(" ".join),
)
SCALES = st.sampled_from([(0, 100), (0, 10), (1, 100), (0.0, 1.0)])


def agrees(parsed, expected):
    if isinstance(expected, str):
        return parsed.status == expected and math.isnan(parsed.value)
    return parsed.status == OK and parsed.value == expected


@pytest.mark.parametrize(("text", "of_100", "of_10"), SOUND)
def test_sound_reads_a_reply(text, of_100, of_10):
    assert agrees(parse_rating(text, 0, 100), of_100)
    assert agrees(parse_rating(text, 0, 10), of_10)


@pytest.mark.parametrize(("text", "expected"), AUTHORS)
@pytest.mark.parametrize("high", [10, 100])
def test_authors_reads_a_reply_as_the_released_code(text, expected, high):
    assert agrees(parse_rating(text, 0, high, rule="released"), expected)


@pytest.mark.parametrize("number", range(101))
def test_bare_numbers_read_the_same_under_both_rules(number):
    assert parse_rating(f"{number}", 0, 100) == (number, OK)
    assert parse_rating(f"{number}", 0, 100, rule="released") == (number, OK)


@settings(max_examples=400, deadline=None)
@given(REPLIES, SCALES)
@example("1e400", (0, 100))
@example("0/0", (0, 100))
@example("\ud800" + "85", (0, 100))
def test_sound_gives_a_value_in_range_or_a_reason_whatever_the_text(text, scale):
    value, status = parse_rating(text, *scale)
    assert status in (OK, REFUSED, UNPARSABLE)
    if status == OK:
        assert scale[0] <= value <= scale[1]
    else:
        assert math.isnan(value)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(categories=["L", "P", "Zs"]), max_size=30), st.integers(0, 100))
def test_sound_takes_no_number_that_the_text_does_not_hold(noise, number):
    """Words around one bare number may hide it, but never turn it into another."""
    value, status = parse_rating(f"{noise} {number} {noise}", 0, 100)
    assert status != OK or value == number


@settings(max_examples=400, deadline=None)
@given(REPLIES)
@example("9" * 5000)
@example("I'm not rating")
def test_authors_equals_a_second_transcription(text):
    expected = slow_authors(text)
    parsed = parse_rating(text, 0, 100, rule="released")
    assert agrees(parsed, REFUSED if expected == -1 else expected)


def slow_authors(text):
    """The rule of code_vs_paper.md character by character: an intensity, or -1."""
    for opening in "I cannot", "I can't", "I'm not rating":
        if text[: len(opening)] == opening:
            return -1
    words, word = [], ""
    for char in text + " ":
        if char.isalnum() or char == "_":
            word += char
        else:
            words.append(word)
            word = ""
    numbers = []
    for word in words:
        if word and all(char.isdecimal() for char in word):
            number = 0
            for char in word:
                number = min(10 * number + int(char), 101)
            numbers.append(number)
    if not numbers:
        return -1
    number = numbers[0]
    if len(numbers) > 1 and number > 100:
        number = numbers[1]
    return number if number <= 100 else -1


def test_long_hostile_replies_are_read_too():
    """A pattern that goes back and forth over such a text would not end within the test run."""
    for piece in (
        "1.1",
        "1...1",
        "0 ",
        "- ",
        "out of ",
        "I'm sorry ",
        "i must ",
        "rating ",
        "1 out ",
    ):
        assert parse_rating(piece * 20_000, 0, 100).status in (OK, UNPARSABLE, REFUSED)


def test_mistakes_of_the_caller_are_errors():
    with pytest.raises(ValueError, match=r'"sound" or "released", found \'strict\''):
        parse_rating("85", 0, 100, rule="strict")
    with pytest.raises(ValueError, match="low=100 and high=0"):
        parse_rating("85", 100, 0)
    with pytest.raises(ValueError, match="low=5 and high=5"):
        parse_rating("85", 5, 5, rule="released")


_LABEL = r"[a-z' ]{0,60}\b(?:intensity|rating|score|answer)\b(?: is\b)?"
_PIECES = st.sampled_from(
    [
        "my",
        " ",
        "rating",
        "Score",
        "is",
        ":",
        "80",
        "out of 100",
        "'",
        "x" * 40,
        "answers",
        "-",
        "é",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join))
def test_the_label_of_a_number_is_found_as_by_the_slow_search(line):
    bare = re.sub(_LABEL, "", line, count=1, flags=re.IGNORECASE)
    rest, found = parsing._RATED.subn(lambda match: match["glue"] or "", bare)
    assert parsing._is_answer(line) == (found > 0 and not re.search(r"\w", rest))
