"""Which number belongs to which word, where another stands near."""

import pytest

from ingroup.studies.stereomap.rating_lists import (
    NOT_RATED,
    OTHER_SCALE,
    OUTSIDE,
    SEVERAL_NUMBERS,
    parse_ratings,
)

TWO_WORDS = ["Friendly", "Sociable"]


def reads(text, words):
    """What stands for each word: a value, or a reason."""
    values, _, missing = parse_ratings(text, words)
    return [missing.get(word, value) for word, value in values.items()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A sentence about the rating comes before a number that stands alone.
        ("The rating would be a 4.\n3 out of 5 nurses agree.", 4),
        ("3 out of 5 nurses agree.\nThe rating would be a 4.", 4),
        ("3 out of 5\n4 out of 5", SEVERAL_NUMBERS),
        # "of" behind a number makes a rating of it only where it directly follows.
        ("A 4 is of course high.", NOT_RATED),
        ("I say 4 on a 5-point scale.", 4),
    ],
)
def test_a_rating_without_a_word(text, expected):
    assert reads(text, ["Rating"]) == [expected]


@pytest.mark.parametrize(
    ("text", "friendly", "sociable"),
    [
        # Numbers before words number a list where they count from 1, and there are several.
        ("1 - Friendly", 1, NOT_RATED),
        ("1 - Friendly, 3 - Sociable", 1, 3),
        ("2 - Friendly, 3 - Sociable", 2, 3),
        ("1 - Friendly, 2 - Sociable", NOT_RATED, NOT_RATED),
        # Behind other words a number needs a colon, and its label begins a part of the line.
        ("Sociable: 3; Friendly as far as we know: 4", 4, 3),
        ("Sociable: 3. Friendly as far as we know: 4", NOT_RATED, 3),
        ("Sociable: 3 Friendly as far as we know: 4", NOT_RATED, SEVERAL_NUMBERS),
        # A header has a row with as many numbers.
        ("| Friendly | Sociable |\n| 4 |", NOT_RATED, NOT_RATED),
        ("| Friendly | Sociable |\n| 4 | 3 | 2 |", NOT_RATED, NOT_RATED),
        # A label waits for the next line that has words or numbers, and for its first number.
        ("Friendly:\n---\n4", 4, NOT_RATED),
        ("Friendly:\nYes.\n4", NOT_RATED, NOT_RATED),
        ("Friendly:\nat 4", NOT_RATED, NOT_RATED),
        ("Friendly:\n4\n3", 4, NOT_RATED),
        # Another number in the same sentence leaves open which one is meant.
        ("Friendly: 4 (of 7) 3", SEVERAL_NUMBERS, NOT_RATED),
        ("Friendly: 4. Then 3.", 4, NOT_RATED),
        # In sentences, each has its own.
        ("They are friendly: 4. Sociable: 2.", 4, 2),
        ("They are friendly people with 4", 4, NOT_RATED),
        ("They are friendly and sociable people with 4", NOT_RATED, NOT_RATED),
        ("So 4 friendly and 3 sociable 2", NOT_RATED, 2),
        ("Friendly Sociable 3", NOT_RATED, 3),
        # The ends of the scale.
        ("Friendly: 0.9\nSociable: 5.1", OUTSIDE, OUTSIDE),
        ("Friendly: 1.0\nSociable: 5/5.0", 1, 5),
        ("Friendly: 4/5.5\nSociable: 4/50", OTHER_SCALE, OTHER_SCALE),
        ("Friendly: -4\nSociable - 4", OUTSIDE, 4),
    ],
)
def test_each_word_has_its_own_number(text, friendly, sociable):
    assert reads(text, TWO_WORDS) == [friendly, sociable]


def test_a_word_twice_in_one_line_is_one_word():
    """All numbers of a sentence belong to its only word."""
    assert reads("They are friendly, very friendly, and have a 4", ["Friendly"]) == [4]
