"""Replies to ratings: a table of replies, any text at all, and the released rule written twice."""

import math
import re

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingroup import parsing
from ingroup.parsing import (
    CUT,
    FAILED,
    OK,
    REFUSED,
    UNPARSABLE,
    ends_in_cut_number,
    final_status,
    parse_rating,
)

# value on 0 to 100, value on 0 to 10, replies; a status where there is no value
SOUND = [
    # one number
    (
        85,
        UNPARSABLE,
        [
            "85",
            "85.",
            "...85",
            "**85**",
            "_85_",
            "\\boxed{85}",
            "<answer>85</answer>",
            "85\u200b",
            "85, 85",
            "I would say 85.",
            "I'm sorry to hear that. 85",
        ],
    ),
    (8, 8, ["8"]),
    (8.5, 8.5, ["8.5"]),
    (0.5, 0.5, [".5"]),
    (7, 7, ["+7"]),
    # the ends of the scale
    (0, 0, ["0"]),
    (10, 10, ["10"]),
    (100, UNPARSABLE, ["100", "100.0"]),
    (UNPARSABLE, UNPARSABLE, ["100.5", "101", "-5", "−5", "–5", "Emotion intensity: -5"]),
    # digits of other scripts, and numerals that are no digits
    (85, UNPARSABLE, ["٨٥", "８５", "८५", "85分"]),
    (8.5, 8.5, ["٨٫٥"]),
    (UNPARSABLE, 8, ["８／１０"]),
    (UNPARSABLE, UNPARSABLE, ["8²", "8½", "½", "⑧", "八十五"]),
    # the scale mentioned
    (
        80,
        UNPARSABLE,
        [
            "on a scale of 0 to 100, 80",
            "On a scale from 0 (not at all) to 100 (extremely), I'd say 80.",
            "from 0% to 100%, 80%",
            "Out of 100, I'd say 80",
            "80 on a scale of 100",
        ],
    ),
    (50, UNPARSABLE, ["50 (0 to 100)"]),
    (85, UNPARSABLE, ["0 being not at all and 100 being extremely: 85"]),
    (UNPARSABLE, 7, ["0-10: 7"]),
    (UNPARSABLE, UNPARSABLE, ["0-100", "on a scale of 1 to 10, 8"]),
    # denominators
    (85, UNPARSABLE, ["85/100", "I would rate this an 85 out of 100.", "85%"]),
    (80, UNPARSABLE, ["80 / 100."]),
    (UNPARSABLE, 8, ["8/10", "8 out of 10"]),
    (UNPARSABLE, 8.5, ["8.5/10"]),
    (UNPARSABLE, UNPARSABLE, ["120/100"]),
    (8, UNPARSABLE, ["8 percent"]),
    # an answer on a line of its own, reasons beside it
    (
        85,
        UNPARSABLE,
        [
            "Emotion intensity: 85",
            "85\nThe person lost 3 jobs in 2009.",
            "**Rating:** 85/100\n\n1. Two of 5 were hurt",
            "2nd\nI would say 85",
        ],
    ),
    (80, UNPARSABLE, ["They were 3.\n\nMy answer is 80"]),
    (UNPARSABLE, UNPARSABLE, ["85\n70"]),
    # no number that is meant without doubt
    (
        UNPARSABLE,
        UNPARSABLE,
        [
            "70-80",
            "50 to 100",
            "0 to 1000",
            "5.0 to 100",
            "70–80",
            "Between 7 and 8",
            "They were 25 and I'd say 80",
            "8,5",
            "1,000",
            "80...85",
            "8.5.1",
            "1e400",
            "2nd",
            "8.5x",
            "NaN",
            "inf",
            "eighty",
            "9" * 5000,
            "!!!!![]!!",
            "Emotion intensity:",
            "I'm sorry to hear that.",
            "",
            " \n",
            None,
            math.nan,
        ],
    ),
    # refusals
    (
        REFUSED,
        REFUSED,
        [
            "I can't answer that.",
            "I can’t answer that.",
            "I cannot rate this on a scale from 0 to 100",
            "I cannot rate a person of 25",
            "I'm sorry, but I can't rate a person of 25",
            "I'm sorry, but no.",
            "I’m not rating this.",
            "I am unable to do this",
            "As an AI, I have no feelings.",
            "It is not appropriate to rate this",
        ],
    ),
    (85, REFUSED, ["I cannot say for sure.\n85", "As an AI I'd say 85"]),
]

# what the released code makes of replies on every scale
AUTHORS = [
    (85, ["85", "٨٥", "８５", "0" * 5000 + "85", "I can’t say: 85", " I cannot say: 85"]),
    (8, ["8.5", "8/10"]),
    (5, [".5", "-5"]),
    (80, ["80/100", "In 2009 I felt 80"]),
    (50, ["50 (0 to 100)"]),
    (0, ["on a scale of 0 to 100, 80"]),
    (
        REFUSED,
        [
            "In 2009 I felt 800 and not 80",
            "150",
            "85分",
            "_85_",
            "1e400",
            "²",
            "9" * 5000,
            "I cannot say: 85",
            "I can't say: 85",
            "I'm not rating 85",
            "!!!!![]!!",
            "eighty",
            "",
            None,
            math.nan,
        ],
    ),
    (100, ["100"]),
    (25, ["I'm sorry, but I cannot rate a person of 25"]),
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
PIECES = st.lists(NUMBERS | PHRASES | st.text(max_size=5), max_size=8)
REPLIES = st.text() | PIECES.map("".join) | PIECES.map(" ".join)
SCALES = st.sampled_from([(0, 100), (0, 10), (1, 100), (0.0, 1.0)])


def agrees(parsed, expected):
    if isinstance(expected, str):
        return parsed.status == expected and math.isnan(parsed.value)
    return parsed.status == OK and parsed.value == expected


@pytest.mark.parametrize(("of_100", "of_10", "texts"), SOUND)
def test_sound_reads_a_reply(of_100, of_10, texts):
    for text in texts:
        assert agrees(parse_rating(text, 0, 100), of_100), text
        assert agrees(parse_rating(text, 0, 10), of_10), text


@pytest.mark.parametrize(("expected", "texts"), AUTHORS)
@pytest.mark.parametrize("high", [10, 100])
def test_authors_reads_a_reply_as_the_released_code(expected, texts, high):
    for text in texts:
        assert agrees(parse_rating(text, 0, high, rule="released"), expected), text


def test_bare_numbers_read_the_same_under_both_rules():
    for number in range(101):
        for rule in ("sound", "released"):
            assert parse_rating(f"{number}", 0, 100, rule) == (number, OK)


@settings(max_examples=200)
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


@settings(max_examples=200)
@given(st.text(st.characters(categories=["L", "P", "Zs"]), max_size=30), st.integers(0, 100))
def test_sound_takes_no_number_that_the_text_does_not_hold(noise, number):
    """Words around one bare number may hide it, but never turn it into another."""
    value, status = parse_rating(f"{noise} {number} {noise}", 0, 100)
    assert status != OK or value == number


@settings(max_examples=200)
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
    numbers = []
    for word in "".join(c if c.isalnum() or c == "_" else " " for c in text).split():
        if all(char.isdecimal() for char in word):
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
    pieces = ["1.1", "1...1", "0 ", "- ", "out of ", "I'm sorry ", "i must ", "rating ", "1 out "]
    for piece in pieces:
        assert parse_rating(piece * 20_000, 0, 100).status in (OK, UNPARSABLE, REFUSED)


_LABEL = r"[a-z' ]{0,60}\b(?:intensity|rating|score|answer)\b(?: is\b)?"
_PIECES = ["my", " ", "rating", "Score", "is", ":", "80", "out of 100", "'", "x" * 40, "answers"]


@given(st.lists(st.sampled_from([*_PIECES, "-", "é"]), max_size=12).map("".join))
def test_the_label_of_a_number_is_found_as_by_the_slow_search(line):
    bare = re.sub(_LABEL, "", line, count=1, flags=re.IGNORECASE)
    rest, found = parsing._RATED.subn(lambda match: match["glue"] or "", bare)
    assert parsing._is_answer(line) == (found > 0 and not re.search(r"\w", rest))


def test_a_lone_carriage_return_ends_a_line_as_a_line_feed_does():
    for _, _, replies in SOUND:
        for reply in (text for text in replies if isinstance(text, str) and "\n" in text):
            for end in ("\r", "\r\n"):
                other = parse_rating(reply.replace("\n", end), 0, 100)
                assert repr(other) == repr(parse_rating(reply, 0, 100)), reply


@pytest.mark.parametrize(
    ("text", "ending", "reasoning", "parsed", "status"),
    [
        ("72", "stop", "", OK, OK),
        ("72", "stop", "perhaps 90", OK, OK),
        ("72 is", "length", "", OK, OK),  # its answer stands before the end
        ("", "stop", "", UNPARSABLE, UNPARSABLE),
        ("I like", "stop", "", UNPARSABLE, UNPARSABLE),
        ("I like", "length", "", UNPARSABLE, CUT),
        ("", "length", "", UNPARSABLE, CUT),  # its reasoning is hidden
        (" \n", "length", "perhaps 90", UNPARSABLE, CUT),
        ("", "stop", "perhaps 90", UNPARSABLE, CUT),
        ("", "stop", "perhaps 90", REFUSED, CUT),  # as the released rule calls an empty text
        ("I cannot", "stop", "perhaps 90", REFUSED, REFUSED),
        ("I cannot", "length", "", REFUSED, REFUSED),
        ("", "filtered", "", UNPARSABLE, REFUSED),
        ("72", "filtered", "", OK, REFUSED),
        (None, "failed", "", UNPARSABLE, FAILED),
    ],
)
@pytest.mark.parametrize("kind", ["object", "category"])
def test_why_there_is_no_answer_is_one_of_four_reasons(
    text, ending, reasoning, parsed, status, kind
):
    row = {"text": text, "finish_reason": ending, "reasoning": reasoning}
    other = {"text": "50", "finish_reason": "stop", "reasoning": ""}
    responses = pd.DataFrame([row, other, row], dtype=kind)
    assert final_status(responses, [parsed, OK, parsed]).tolist() == [status, OK, status]


@pytest.mark.parametrize("kind", ["object", "category"])
def test_a_number_at_the_limit_may_be_half_a_number(kind):
    replies = [
        ("7", "length", True),
        ("Rating: 8.", "length", True),
        ("85, because of 19", "length", True),
        *[(f"70{end}", "length", True) for end in ("-", " –", "/", " to", " or ", " out of", "．")],
        ("between 70 and", "length", True),
        ("85, because", "length", False),
        ("70 together", "length", False),
        ("85\n", "length", False),
        ("7", "stop", False),
        (None, "length", False),
        ("", "length", False),
    ]
    columns = ["text", "finish_reason", "cut"]
    responses = pd.DataFrame(replies, columns=columns)
    typed = responses.astype({"text": kind, "finish_reason": kind})
    assert ends_in_cut_number(typed).tolist() == responses["cut"].tolist()


# --- characters


@pytest.mark.parametrize(
    ("character", "expected"),
    [
        ("7", "7"),
        ("٧", "7"),
        ("７", "7"),
        ("½", "x"),
        ("²", "x"),
        ("八", "x"),
        ("％", "%"),
        ("−", "-"),
        ("／", "/"),
        ("’", "'"),
        ("a", "a"),
        ("é", "é"),
    ],
)
def test_a_character_is_ascii_where_it_is_a_digit_or_a_sign(character, expected):
    assert parsing.as_ascii(character) == expected


def test_a_text_on_one_line_has_nothing_that_utf_8_or_a_spreadsheet_refuses():
    text = " a\x00b\tc\r\n\n d\x1fe\x7ff\x9fg\ud800h\udfffi\xa0j é "

    assert parsing.one_line(text) == "a b c d e f g h i j é"


def test_a_label_has_at_most_sixty_letters_before_its_word():
    """The sixty-first letter stands before the label, and so beside the number in its line."""
    label = f"{'so ' * 20}rating: 80"
    longer = f"x{label}"

    assert parse_rating(f"{label}\nThey were 25.", 0, 100).value == 80
    assert parse_rating(f"{longer}\nThey were 25.", 0, 100).status == UNPARSABLE


def test_a_released_rating_takes_the_second_number_alone():
    """The third number does not count, though it is on the scale."""
    assert agrees(parse_rating("In 2009, 800, 80", 0, 100, rule="released"), REFUSED)
    assert agrees(parse_rating("100 or 80", 0, 100, rule="released"), 100)
    assert agrees(parse_rating("101 or 80", 0, 100, rule="released"), 80)
    assert agrees(parse_rating("0 or 80", 0, 100, rule="released"), 0)
