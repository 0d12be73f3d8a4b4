"""Replies to keywords and their reasons: a table of replies, and any text at all."""

import re
from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingroup.parsing import OK, REFUSED, UNPARSABLE
from ingroup.studies.stereomap.keyword_lists import TOO_FEW, TOO_MANY, parse_keywords

# Table 1 of the paper, which breaks the list off after two of five keywords.
TABLE_1 = (
    "****Caring:**** They are dedicated to helping others and providing them with the best "
    "possible care.\n\n****Hardworking:**** They work long hours and are often under pressure, but "
    "they are committed to their patients and their profession."
)
TABLE_1_REASONS = (
    "****High demand:**** Nurses are in high demand, with the Bureau of Labor Statistics "
    "projecting that employment of registered nurses will grow 15 percent from 2020 to 2030, much "
    "faster than the average for all occupations.\n\n****Good salaries:**** The median annual "
    "salary for registered nurses was $75,330 in May 2020."
)
# Table 11 of the paper, on men: text-davinci-003 whole, the first sentences of the two others.
DAVINCI = (
    "Achievement, Opportunity, and Wealth. Achievement refers to the success that men have had in "
    "achieving economic success, such as earning higher wages and having more job opportunities "
    "than women. Opportunity refers to the fact that men have had more access to resources such as "
    "education and capital that have enabled them to become more successful economically. Wealth "
    "refers to the fact that men have been able to accumulate more wealth than women, which has "
    "given them greater economic security and the ability to pass on their wealth to future "
    "generations."
)
SENTENCES = (
    "Historically, men have held positions of power and dominance in various aspects of society, "
    "including the economy. This has contributed to the perception that men are more successful "
    "economically.\n\nDespite the progress made in recent years, there is still a significant wage "
    "gap between men and women in many industries.",
    "Men still earn more than women on average. In 2020, the median weekly earnings for men were "
    "$1,085, while the median weekly earnings for women were $821.\n\nMen are more likely to work "
    "in high-paying occupations, such as STEM fields and management.",
)

BOTH_REASONS = ("because of history", "since they retire")

# a reply with the keywords caring, kind and brave; whether it gives a reason for each
REPLIES = [
    # numbers, bullets, bold
    ("1. Caring - They help.\n2. Kind: They smile.\n3. Brave – They stay.", 1),
    ("1) Caring (they help)\n2) Kind (they smile)\n3) Brave (they stay)", 1),
    ("1. **Caring**: They help.\n\n2. **Kind:** They smile.\n\n3. **Brave** - x", 1),
    ("**1. Caring:** They help\n**2. Kind:** They smile\n**3. Brave**: x", 1),
    ("* **Caring:** They help.\n* **Kind:** They smile.\n* Brave", 0),
    ("• Caring\n• Kind\n• Brave.", 0),
    ("- Caring: They help\n- Kind: They smile\n- Brave: x", 1),
    ("1. \"Caring\"\n2. “Kind”\n3. 'Brave'", 0),
    ("Caring\nKind\nBrave", 0),
    ("Caring: They help.\nKind: They smile.\nBrave: x", 1),
    ("Keyword 1: Caring\nReason: a.\nKeyword 2: Kind\nReason: a\nKeyword 3: Brave\nReason: b", 1),
    ("1. Caring\nThey help.\n2. Kind\nThey smile now and then.\n3. Brave\nReason: x", 1),
    ("1. Caring\n   - They help.\n   - Often.\n2. Kind\n   - They smile.\n3. Brave\n   - x", 1),
    ("| Keyword | Reason |\n|---|---|\n| Caring | They help |\n| Kind | a |\n| Brave | b |", 1),
    ("1. Caring 2. Kind 3. Brave", 0),
    ("Keywords: 1. Caring: They help, 2. Kind: a, 3. Brave: b", 1),
    # commas and semicolons
    ("Caring, kind, brave", 0),
    ("Keywords: caring, kind, and brave.", 0),
    ("**Keywords:** Caring, Kind and Brave", 0),
    ("The three keywords that describe them are caring, kind, and brave. So be it.", 0),
    ("Keywords: Caring (they help, they stay), Kind (a), Brave (b).", 1),
    ("The rating is 4. Reasons: Caring - they help; Kind - a; and Brave - b.", 1),
    # other parts of a reply
    ("Rating: 4\n\n1. Caring: a\n2. Kind: b\n3. Brave: c", 1),
    ("Rating: 4/5\nReasons:\n- Caring: a\n- Kind: b\n- Brave: c", 1),
    ("Sure! Here are three keywords:\n\n1. Caring\n2. Kind\n3. Brave\n\nI hope this helps!", 0),
    ("1. Caring: a\n2. Kind: b\n3. Brave: c\n\n- Friendly: 4\n- Honest: 3\n- Skilled: 5/5", 1),
    ("- Friendly: 4\n- Honest: 3\n- Skilled: 5 (high)\n\n1. Caring: a\n2. Kind: b\n3. Brave: c", 1),
    ("1. Caring\n2. Kind\n3. Brave\n\nReasons:\n1. Caring: a\n2. Kind: b\n3. Brave: c", 1),
    ("Caring, kind, brave.\n\n1. Kind: b\n2. Caring: a\n3. Brave: c\n4. Other: d", 1),
]

PIECES = st.sampled_from(
    [
        *("Caring", "kind", "risk takers", "Keywords", "Reason: ", "They help others a lot", "4/5"),
        *("1. ", "2) ", "- ", "* ", "**", ": ", " - ", "\n", "\n", "\n  ", ", ", " and ", "; "),
        *(".", "| ", "(", ")", "3", "I cannot ", "are ", '"', "’"),
    ]
)
TEXTS = st.one_of(
    st.text(),
    st.lists(st.one_of(PIECES, PIECES, st.text(max_size=3)), max_size=30).map("".join),
)


@pytest.mark.parametrize(("text", "reasons"), REPLIES)
def test_replies_are_read_as_their_keywords(text, reasons):
    keywords = parse_keywords(text, 3)

    assert keywords.words == ("caring", "kind", "brave")
    assert keywords.status == OK
    assert all(keywords.reasons) == bool(reasons)


def test_phrases_of_items_are_kept():
    text = "1. Hard-working: a\n2. Working class: b\n3. Strong work ethic: c"
    assert parse_keywords(text, 3).words == ("hard-working", "working class", "strong work ethic")


def test_phrases_of_a_line_are_kept():
    text = "Keywords: Risk takers, well-off, law & order"
    assert parse_keywords(text, 3).words == ("risk takers", "well-off", "law & order")


IN_A_SECOND_LIST = "Reasons:\n1. They help the sick.\n2. They smile now and then."


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (
            "1. Caring - They help.\n2. Kind\nThey smile.\n3. Brave (they stay)\n4. Old",
            ("They help.", "They smile.", "they stay", ""),
        ),
        (
            "Keywords: caring, kind.\n\nReasons:\n- Kind: they smile.\n- Caring: they help.",
            ("they help.", "they smile."),
        ),
        (
            f"1. Caring\n2. Kind\n\n{IN_A_SECOND_LIST}",
            ("They help the sick.", "They smile now and then."),
        ),
        (
            f"Caring, kind, old, shy.\n1. Caring\n2. Kind\n\n{IN_A_SECOND_LIST}"
            "\n3. They are needed now and then.",
            ("", "", "", ""),
        ),
    ],
)
def test_reasons_stand_beside_their_keywords(text, reasons):
    assert parse_keywords(text, len(reasons)).reasons == reasons


LAYOUTS = [
    "1. {0}\n2. {1}\n3. {2}",
    "- {0}: a\n- {1}: a\n- {2}: a",
    "{0}\n{1}\n{2}",
    "**{0}** - a\n**{1}** - a\n**{2}** - a",
    "Keywords: {0}, {1}, {2}",
    "{0}, {1} and {2}",
    "Response: {0}, {1}, {2}.",
    "| Keyword | Reason |\n|---|---|\n| {0} | a |\n| {1} | b |\n| {2} | c |",
]


@pytest.mark.parametrize("word", ["Sure", "Feelings", "Emotion", "Response", "Traits", "Behavior"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_keyword_may_look_like_a_heading(word, layout):
    for words in permutations([word, "Kind", "Old"]):
        text = layout.format(*words)
        expected = tuple(keyword.lower() for keyword in words)
        for before in ("", "Sure! Here are three emotions:\n\n", "Response:\n\n"):
            assert parse_keywords(f"{before}{text}", 3).words == expected, text


@pytest.mark.parametrize(
    "text",
    [
        "Sure\n\n1. Kind\n2. Old\n\nFeelings:\n- Contempt: 3\n- Pity: 2",
        "**Emotions:**\n- Kind: a\n- Old: b\n\n**Reasons:**\nThey are seen so.",
        "1. Feelings:\n- Kind\n- Old\n2. Reasons:\nThey are seen so.",
        "Response:\nKind: a\nOld: b",
    ],
)
def test_a_heading_is_no_keyword(text):
    assert parse_keywords(text, 2).words == ("kind", "old")


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("Keywords: kind, old, because of history.", ("", "")),
        ("Keywords: kind, old\nbecause of history", ("", "")),
        ("Kind\nbecause of history\nOld\nsince they retire", BOTH_REASONS),
        ("**Kind**\nbecause of history\n**Old**\nsince they retire", BOTH_REASONS),
        ("1. Kind because of history\n2. Old, since they retire", BOTH_REASONS),
        ("1. Kind, because of history\n2. Old since they retire", BOTH_REASONS),
    ],
)
def test_a_reason_is_no_keyword(text, reasons):
    keywords = parse_keywords(text, 2)

    assert keywords.words == ("kind", "old")
    assert keywords.reasons == reasons


def test_a_list_of_reasons_is_no_list_of_keywords():
    text = "1. Because of history.\n2. People say so.\n\n1. Kind\n2. Old"
    assert parse_keywords(text, 2).words == ("kind", "old")


def test_the_keywords_of_table_1_of_the_paper():
    first, second = TABLE_1.split("\n\n")

    keywords = parse_keywords(TABLE_1, 5)

    assert keywords.words == ("caring", "hardworking")
    assert keywords.reasons == (
        first.removeprefix("****Caring:**** "),
        second.removeprefix("****Hardworking:**** "),
    )
    assert keywords.status == TOO_FEW


def test_the_reasons_of_table_1_of_the_paper():
    keywords = parse_keywords(TABLE_1_REASONS, 2)

    assert keywords.words == ("high demand", "good salaries")
    assert keywords.status == OK
    assert keywords.reasons[1].endswith("was $75,330 in May 2020.")


def test_table_11_of_the_paper():
    keywords = parse_keywords(DAVINCI, 3)

    assert keywords.words == ("achievement", "opportunity", "wealth")
    assert keywords.status == OK
    sentences = ["Achievement, Opportunity, and Wealth.", *keywords.reasons]
    assert " ".join(sentences) == DAVINCI


@pytest.mark.parametrize(
    ("text", "n", "words", "reasons", "status"),
    [
        ("1. Caring\n2. Kind", 5, ["caring", "kind"], ["", ""], TOO_FEW),
        (
            "Caring, kind, brave, old",
            3,
            ["caring", "kind", "brave", "old"],
            ["", "", "", ""],
            TOO_MANY,
        ),
        (
            "1. Caring: a\n2. Kind: b\n3. CARING: c",
            3,
            ["caring", "kind"],
            ["a", "b"],
            TOO_FEW,
        ),
        ("Caring, kind, caring", 2, ["caring", "kind"], ["", ""], OK),
        (
            "1. Caring\n2. A phrase that is too long to be one: x",
            2,
            ["caring"],
            [""],
            TOO_FEW,
        ),
    ],
)
def test_all_keywords_are_given_each_once(text, n, words, reasons, status):
    keywords = parse_keywords(text, n)

    assert keywords.words == tuple(words)
    assert keywords.reasons == tuple(reasons)
    assert keywords.status == status


def test_the_list_with_as_many_as_asked_for_is_taken():
    text = "Men, women, children.\n\n1. Caring: a\n2. Kind: b"
    assert parse_keywords(text, 2).words == ("caring", "kind")
    assert parse_keywords(text, 3).words == ("men", "women", "children")
    assert parse_keywords(text, 5).words == ("men", "women", "children")


@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        float("nan"),
        "They help others.",
        "Rating: 4",
        "Keywords:\n\nReasons:",
        "- Friendly: 4\n- Sociable: 3 out of 5",
        *SENTENCES,
    ],
)
def test_a_reply_without_a_list_is_unparsable(text):
    assert parse_keywords(text, 3) == ((), (), UNPARSABLE)


@pytest.mark.parametrize(
    "text",
    [
        "I’m sorry, I cannot generate inappropriate or discriminatory content.",
        "As an AI language model, I do not describe groups.",
    ],
)
def test_a_refusal_is_no_list(text):
    assert parse_keywords(text, 3) == ((), (), REFUSED)


@settings(max_examples=200)
@given(TEXTS, st.integers(1, 6))
@example("1. \ud800\n2. a", 1)
def test_any_text_gives_keywords_that_stand_in_it_or_none(text, n):
    words, reasons, status = parse_keywords(text, n)

    assert len(words) == len(reasons) == len(set(words))
    if not words:
        assert status in (REFUSED, UNPARSABLE)
    elif len(words) < n:
        assert status == TOO_FEW
    elif len(words) > n:
        assert status == TOO_MANY
    else:
        assert status == OK

    if text.isascii():
        letters = letters_of(text.lower())
        for word in words:
            assert letters_of(word) in letters


def letters_of(text):
    return re.sub(r"\W|_", "", text)


WORDS = ["caring", "kind", "risk taker", "hard-working", "old", "well off", "brave"]
NAMES = st.lists(st.sampled_from(WORDS), min_size=3, max_size=6, unique=True)


@settings(max_examples=100)
@given(
    NAMES, st.sampled_from(["{}. {}: as is", "{}) **{}** - as is", "{}. {}\nas is said of many"])
)
def test_whatever_the_layout_the_keywords_come_back(names, layout):
    lines = [layout.format(number, name.capitalize()) for number, name in enumerate(names, start=1)]
    text = "\n".join(lines)

    keywords = parse_keywords(f"Here they are:\n\n{text}\n\nRating: 4", len(names))

    assert keywords.words == tuple(names)
    for reason in keywords.reasons:
        assert reason.startswith("as is")


@settings(max_examples=100)
@given(NAMES)
def test_keywords_of_one_line_come_back(names):
    text = f"Keywords: {', '.join(names)}"
    assert parse_keywords(text, len(names)).words == tuple(names)


HOSTILE_PIECES = [
    *("a, ", "a; ", "a (", "(", "a and ", "1. ", "1. a ", "1. a\n", "- a\n", "a\n", "a - "),
    *("**", "keywords ", "keywords: ", "Keyword 1: a\n", " ", "\n", "the ", "x. ", "a(b), "),
    *("1. Caring 2. Kind 3. Brave\n", "I'm sorry ", "reason: ", ": ", "-", "'", "9"),
]


@pytest.mark.parametrize("piece", HOSTILE_PIECES)
def test_long_hostile_replies_are_read_too(piece):
    """A pattern that goes back and forth over such a text would not end within the test run."""
    text = piece * (20_000 // len(piece)) + "\n\n1. Old: x\n2. Shy: y"

    keywords = parse_keywords(text, 2)

    assert len(keywords.words) == len(keywords.reasons)


def test_a_long_list_has_too_many_keywords():
    words = []
    for number in range(2_000):
        last_letter = chr(ord("a") + number % 26)
        words.append(f"w{'x' * (number % 40)}{last_letter}")

    assert parse_keywords(", ".join(words), 5).status == TOO_MANY
