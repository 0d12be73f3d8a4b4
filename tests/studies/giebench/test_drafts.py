"""Replies to the construction prompts: lists of topics, dialogs, hostile texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingroup.studies.giebench.drafts import parse_dialog, parse_topics

LISTS = {
    "numbered": ("1. Is it?\n2) Was it?\n\n(3) Will it be?", ["Is it?", "Was it?", "Will it be?"]),
    "quoted": ('Here are two?\n"Is it?"\n“Was it?”', ["Is it?", "Was it?"]),
    "markdown": (
        "- **Is it?**\n* Marriage: **Was it?**\n1. **Law:** Is it?",
        ["Is it?", "Was it?"],
    ),
    "quoted in a line": ('1. Topic: "Is it, or not?" (law)\n', ["Is it, or not?"]),
    "bare": ("Topics:\nIs it?\nWas it?\nThat is all.", ["Is it?", "Was it?"]),
    "twice": ("1. Is it?\n2. IS IT?", ["Is it?"]),
    "formula": (
        "1. =cmd|' /C calc'!A0 is it?\n2. -+@Is it?",
        ["cmd|' /C calc'!A0 is it?", "Is it?"],
    ),
    "controls": ("1. Is\x00 it\ud800\u2028\n2. Was\x1b[0m\tit?", ["Was [0m it?"]),
    "years": ("Should the 1967 Act go?\n1967. Is it?", ["Should the 1967 Act go?", "1967. Is it?"]),
}


@pytest.mark.parametrize(("text", "topics"), LISTS.values(), ids=LISTS)
def test_topics_are_the_questions_of_a_list(text, topics):
    assert parse_topics(text) == (topics, "")


@pytest.mark.parametrize("text", ["", "I cannot help with that.", "1.\n2. ?\n3. ***?", "\x00" * 9])
def test_a_reply_without_a_question_says_so(text):
    assert parse_topics(text) == ([], "no line of the reply is a question")


DIALOGS = {
    "as asked": '"user": "Is it?", "assistant": "It is."',
    "lines": '"user": "Is it?",\n\n"assistant": "It is."',
    "json": '{"user": "Is it?", "assistant": "It is."}',
    "fenced": '```json\n{\n  "user": "Is it?",\n  "assistant": "It is."\n}\n```',
    "bold": "**User:** Is it?\n\n**Assistant:** It is.",
    "plain": "Sure.\n\nuser: Is it?\nassistant: It is.",
    "python": "{'user': 'Is it?', 'assistant': 'It is.'}",
    "curly": "“user”: “Is it?”, “assistant”: “It is.”",
    "after": '"user": "Is it?", "assistant": "It is."\n\nNote: this is "one" view.',
    "other order": '"assistant": "It is.", "user": "Is it?"',
    "spaces": '  "User" : "Is\tit?" ,\n "Assistant" :\n"It\n\n is."',
}


@pytest.mark.parametrize("text", DIALOGS.values(), ids=DIALOGS)
def test_a_dialog_is_read_in_the_forms_that_models_give_it(text):
    assert parse_dialog(text) == (["Is it?", "It is."], "")


ANSWERS = {
    r'"They say \"no\" – caf\u00e9\nSo be it."': 'They say "no" – café So be it.',
    '"They say "no" to it."': 'They say "no" to it.',
    '"No" is a word that ends it.': '"No" is a word that ends it.',
    '"It was never closed': "It was never closed",
    '"They say \\"no\\"\nand go."': 'They say "no" and go.',
    "One user: many views, {and} braces}": "One user: many views, {and} braces",
    r'"A path C:\users \"x\" here"': r'A path C:\users "x" here',
}


@pytest.mark.parametrize(("said", "answer"), ANSWERS.items())
def test_quotation_marks_inside_an_answer_stay(said, answer):
    assert parse_dialog(f'"user": "Is it?", "assistant": {said}') == (["Is it?", answer], "")


LACKING = {
    "": 'no "user": and no "assistant": in the reply',
    "I can't take that side.": 'no "user": and no "assistant": in the reply',
    '"user": "Is it?"': 'no "assistant": in the reply',
    '"assistant": "It is."': 'no "user": in the reply',
    '"user": "Is it?", "assistant": ""': 'nothing after "assistant":',
    '"user": , "assistant": "It is."': 'nothing after "user":',
    "user: a?\nassistant: b\nuser: c?\nassistant: d": "2 rounds in the reply, expected one",
    "user: a?\nassistant: best is [[B]]": "'[[B]]' in the answer, a mark of the evaluation prompts",
    "user: a?\nassistant: b [The End of Assistant A's Answer]": "'[The End of' in the answer, a "
    "mark of the evaluation prompts",
}


@pytest.mark.parametrize(("text", "missing"), LACKING.items())
def test_a_reply_without_a_dialog_says_what_is_missing(text, missing):
    assert parse_dialog(text).missing == missing


PIECES = st.sampled_from(
    ['"', "user", "assistant", ":", "{", "}", "\\", "\n", "?", "1. ", "“", "*"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES | st.text(st.characters(), max_size=5), max_size=30).map("".join))
def test_no_text_raises_and_what_is_found_can_be_written(text):
    topics, missing = parse_topics(text)
    assert bool(topics) != bool(missing)
    dialog = parse_dialog(text)
    assert dialog.missing or (len(dialog.texts) == 2 and all(dialog.texts))
    for found in (*topics, *dialog.texts):
        assert found == " ".join(found.encode("utf8").decode().split())


def test_long_hostile_texts_take_no_longer_than_they_must():
    for piece in ('"', '{"', " ", "\\", "user", '" ,', "1. ", "a: ", "[[", "\n{"):
        text = piece * 20_000
        parse_topics(text)
        parse_dialog(f'"user": "{text}", "assistant": "{text}')
