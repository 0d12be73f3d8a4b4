"""How long a keyword, a list and a reason are at least and at most, each side of every limit."""

import pytest

from ingroup.parsing import UNPARSABLE
from ingroup.studies.stereomap.keyword_lists import parse_keywords


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1. One two three: a\n2. One two three four: b\n3. Kind: c", ("one two three", "kind")),
        ("Keywords: caring, kind", ("caring", "kind")),
        ("Caring, kind, old", ("caring", "kind", "old")),
        ("Caring\nKind", ("caring", "kind")),
        ("- Caring", ("caring",)),
        ("1. Sure\n2. Emotion\n3. Kind", ("sure", "emotion", "kind")),
    ],
)
def test_the_shortest_list_and_the_longest_keyword(text, words):
    assert parse_keywords(text, len(words)).words == words


@pytest.mark.parametrize(
    "text",
    [
        "Keywords: caring",
        "Caring, kind",
        "Caring",
        "1. Sure\n2. Emotion",  # nothing but headings
    ],
)
def test_what_is_too_short_to_be_a_list(text):
    found = parse_keywords(text, 1)

    assert found.words == ()
    assert found.status == UNPARSABLE


LISTED = "Caring, working class, old people here.\n\n"


@pytest.mark.parametrize(
    ("sentences", "reasons"),
    [
        ("Caring people help the others.", ("Caring people help the others.", "", "")),
        ("Caring people help others.", ("", "", "")),  # four words are no sentence
        (
            "Working class people earn less. Old people here earn more.",
            ("", "Working class people earn less.", "Old people here earn more."),
        ),
        (
            "Caring people help the others. Caring people are the best.",
            ("Caring people help the others.", "", ""),
        ),
        (
            "1. They help the sick.\n2. They work quite hard.\n3. They retire very early.",
            ("They help the sick.", "They work quite hard.", "They retire very early."),
        ),
        ("1. They help them.\n2. They work hard.\n3. They retire early.", ("", "", "")),
        ("1. They help the sick.\n2. They work quite hard.", ("", "", "")),
    ],
)
def test_sentences_that_are_reasons(sentences, reasons):
    assert parse_keywords(LISTED + sentences, 3).reasons == reasons


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3. Caring 4. Kind 5. Brave", ("caring", "kind", "brave")),
        ("They are: 1. Caring, 2. Kind; 3. Brave", ("caring", "kind", "brave")),
        ("1. Caring 2. Kind 4. Old", ("caring", "kind 4")),  # what does not count on is no mark
        (f"{' ' * 20}3. Caring 4. Kind", ("caring 4",)),  # too far in to be a line's number
    ],
)
def test_numbers_in_a_line_count_on(text, words):
    assert parse_keywords(text, len(words)).words == words


def test_a_number_may_begin_a_line_nineteen_blanks_in():
    """Its line is broken before 4; what is left of the indent makes two lists of it."""
    text = f"{' ' * 19}3. Caring 4. Kind 5. Brave"

    assert parse_keywords(text, 2).words == ("kind", "brave")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Further in, items go on with the list; further out, or from 1 on, they begin another.
        ("1. Caring\n  2. Kind\n  3. Old", ("caring", "kind", "old")),
        ("  - Caring\n  - Kind\n- Old\n- Shy\n- Bold", ("old", "shy", "bold")),
        ("1. Men\n2. Women\n1. Caring\n2. Kind\n3. Old", ("caring", "kind", "old")),
    ],
)
def test_where_a_list_begins(text, words):
    assert parse_keywords(text, 3).words == words


def test_commas_in_brackets_do_not_part_keywords():
    found = parse_keywords("Keywords: caring (a, b), kind, old (c and d, e).", 3)

    assert found.words == ("caring", "kind", "old")
    assert found.reasons == ("a, b", "", "c and d, e")


def test_a_bullet_beside_a_number_begins_another_list():
    """The first list has one keyword, and so has the second, but two were asked for."""
    assert parse_keywords("2. Old\n- Kind", 2).words == ("old",)


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("* Old\nWarm: 3", ("",)),  # behind bullets, ratings are another list
        ("2. Old\nWarm: 3", ("Warm: 3",)),  # behind a number, a line goes on with the item
        ("Kind\nPoor\nKeywords", ("", "")),  # a heading without a colon is no reason
    ],
)
def test_which_line_below_an_item_is_its_reason(text, reasons):
    assert parse_keywords(text, len(reasons)).reasons == reasons


def test_numbered_sentences_may_have_blank_lines_between_them():
    text = "Kind, old.\n\n1. They help the poor people.\n\n2. They are quite old today."

    found = parse_keywords(f"Keywords: {text}", 2)

    assert found.words == ("kind", "old")
    assert found.reasons == ("They help the poor people.", "They are quite old today.")
