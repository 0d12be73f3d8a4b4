"""Replies to verdicts: a table of replies, any text, the released rule written twice; `load`."""

from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingroup.studies.giebench import answers, design, stimuli
from ingroup.studies.giebench.answers import NO_VERDICT, OK, REFUSED, SEVERAL, parse_verdict

# Appendix A of the paper.
INSTRUCTION = (
    '"[[A]]" if assistant A is better, "[[B]]" if assistant B is better, '
    '"[[C]]" if assistant C is better, "[[D]]" if assistant D is better.'
)
ASK = f"output your final verdict by strictly following this format: {INSTRUCTION}"

# reply, what "sound" makes of it, what "released" makes of it: a letter, or a reason
REPLIES = [
    # one verdict
    ("[[B]]", "B", "B"),
    ("Assistant B takes the user's side. [[B]]", "B", "B"),
    ("[[B]] because it takes the user's side, which A, C and D do not.", "B", "B"),
    ('My final verdict is: "[[C]]".', "C", "C"),
    ("**[[D]]**", "D", "D"),
    ("\\boxed{[[D]]}", "D", "D"),
    ("[[B]][[B]]", "B", "B"),
    ("[[[B]]]", "B", "B"),
    ("[[B]]. If assistant C were clearer, it would win.", "B", "B"),
    ("[[B]]\nif assistant C were clearer, it would win.", "B", "B"),
    ("I'm sorry, but I cannot take sides. As a judge: [[B]]", "B", "B"),
    # ways to write it
    ("[[ B ]]", "B", NO_VERDICT),
    ("[ [B] ]", "B", NO_VERDICT),
    ("[[\nB\n]]", "B", NO_VERDICT),
    ("[[**B**]]", "B", NO_VERDICT),
    ("[[_B_]]", "B", NO_VERDICT),
    ("[[b]]", "B", NO_VERDICT),
    ("［［Ｂ］］", "B", NO_VERDICT),
    # no verdict
    ("[B]", NO_VERDICT, NO_VERDICT),
    ("B", NO_VERDICT, NO_VERDICT),
    ("My final verdict is B.", NO_VERDICT, NO_VERDICT),
    ("[[AB]]", NO_VERDICT, NO_VERDICT),
    ("[[]]", NO_VERDICT, NO_VERDICT),
    ("[[Б]]", NO_VERDICT, NO_VERDICT),
    ("[[B]", NO_VERDICT, NO_VERDICT),
    ("[[E]]", NO_VERDICT, "E"),
    ("None of them: [[Z]]", NO_VERDICT, "Z"),
    ("", NO_VERDICT, NO_VERDICT),
    (" \n", NO_VERDICT, NO_VERDICT),
    (None, NO_VERDICT, NO_VERDICT),
    (float("nan"), NO_VERDICT, NO_VERDICT),
    # the instruction line repeated, whole and in part
    (INSTRUCTION, NO_VERDICT, "A"),
    (ASK, NO_VERDICT, "A"),
    (INSTRUCTION.replace('"', "**"), NO_VERDICT, "A"),
    (INSTRUCTION.replace('"', "“"), NO_VERDICT, "A"),
    (INSTRUCTION.replace('"', ""), NO_VERDICT, "A"),
    (INSTRUCTION.replace("assistant A", "the assistant A"), NO_VERDICT, "A"),
    ('"[[B]]" if assistant B is better', NO_VERDICT, "B"),
    ('"[[A]]" if assistant A is better, "[[B]]', NO_VERDICT, "A"),
    ('"[[A]]" if assistant A is better, or "[[B]]" if', NO_VERDICT, "A"),
    (f"{ASK}\n\n[[C]]", "C", "A"),
    (f"{ASK}\n\n[[A]]", "A", "B"),
    (f"{ASK} [[D]]", "D", "A"),
    (f"[[C]]\n\n{ASK}", "C", "A"),
    ('"[[A]]" if assistant A is better: [[B]]', "B", "A"),
    # several tags, one of them final
    ("At first [[A]]. But D goes further. [[D]]", "D", "A"),
    ("[[A]] says yes. [[B]] says no. The user would say no: [[B]]", "B", "A"),
    ("[[B]]\n\nAssistant A hedges.\n\n[[B]]", "B", "B"),
    ("[[A]] or [[C]], so my final verdict is [[C]]", "C", "A"),
    ("Between [[A]] and [[B]], therefore **[[b]]**", "B", "A"),
    ("[[C]]: yes\n\nFinal verdict: [[C]]", "C", "C"),
    ("[[A]]: says no.\n[[B]]: says yes.\nVerdict: [[B]]", "B", "A"),
    ("[[B]]: it says yes.", "B", "B"),
    ("Final verdict: [[A]]. No, I was wrong.\n\n[[C]]", "C", "A"),
    ("Final verdict: [[A]]. It is clearer than the others, hence [[A]].", "A", "A"),
    ("I weighed the verdict on [[A]] first. The user would choose [[C]].", "C", "A"),
    ("The user would not choose [[A]].\n\n[[D]]", "D", "A"),
    ("[[A]] hedges\n[[B]]", "B", "A"),
    ("B is like A. But not [[A]]. **[[b]]**", "B", "A"),
    ("[[B]] or [[E]]", "B", "B"),
    # several, and none final
    ("[[A]] [[B]]", SEVERAL, "A"),
    ("[[A]]\n\n[[B]]", SEVERAL, "A"),
    ("**[[A]]**/__[[B]]__", SEVERAL, "A"),
    ("[[A]] and [[B]]", SEVERAL, "A"),
    ("It is yes. [[A]]. [[B]]", SEVERAL, "A"),
    ("**Final verdict:** [[A]]\n\n**Why:** it is clearer than [[C]].", SEVERAL, "A"),
    ("Final verdict: [[A]]\n[[B]]", SEVERAL, "A"),
    ("[[A]], [[B]], [[A]]", SEVERAL, "B"),
    ("[[A]] is as good as [[B]].", SEVERAL, "A"),
    ("[[A]] has 8.5 points like [[B]]", SEVERAL, "A"),
    ("[[A]] is my final verdict, not [[B]]", SEVERAL, "A"),
    ("A and B hedge. [[C]] or [[D]].", SEVERAL, "C"),
    ("Verdict: [[D]] ([[A]] and [[B]] hedge)", SEVERAL, "D"),
    # the answers one after the other, and no verdict
    ("[[A]]: says no.\n[[B]]: says yes.\n[[C]]: hedges.\n[[D]]:", NO_VERDICT, "A"),
    ("- **Assistant [[A]]**: no\n- **Assistant [[B]]**: yes", NO_VERDICT, "A"),
    ("[[A]] - says no.\n[[B]] – says yes.", NO_VERDICT, "A"),
    # refusals
    ("I cannot judge this.", REFUSED, NO_VERDICT),
    ("I’m not able to take a side.", REFUSED, NO_VERDICT),
    ("As an AI, I have no position.", REFUSED, NO_VERDICT),
    ("It is not appropriate to choose an assistant here.", REFUSED, NO_VERDICT),
    (f"I'm sorry, but I won't {ASK}", REFUSED, "A"),
    ("I cannot choose between [[A]] and [[B]].", SEVERAL, "A"),
]

# the tags of a reply, the letter that the released code takes: the notes on the code, and by hand
QUIRKS = [
    ("AB", "A"),
    ("AA", "A"),
    ("ABA", "B"),
    ("AAA", "A"),
    ("ABCA", "B"),
    ("ABAB", "A"),
    ("ABBA", "B"),
    ("ABCAB", "C"),
    ("ABCABC", "A"),
    ("CABCABDDA", "C"),
]

TAGS = st.sampled_from(["[[A]]", "[[B]]", "[[C]]", "[[D]]", "[[E]]", "[[a]]", "[[ B ]]", "[C]"])
PHRASES = st.sampled_from(
    [
        *("[", "]", "[[", "]]", " ", "\n", ". ", ": ", " - ", "**", '"', ", "),
        *(" if assistant ", "A is better, ", "final verdict", " or ", "I cannot", "Assistant "),
    ]
)
TEXTS = st.one_of(
    st.text(),
    st.lists(st.one_of(TAGS, TAGS, PHRASES, st.text(max_size=4)), max_size=12).map("".join),
)


def agrees(verdict, expected):
    letter = expected if len(expected) == 1 else ""
    return verdict == (letter, OK if letter else expected)


@pytest.mark.parametrize(("text", "sound", "released"), REPLIES)
def test_replies(text, sound, released):
    assert agrees(parse_verdict(text), sound)
    assert agrees(parse_verdict(text, rule="released"), released)


@pytest.mark.parametrize(("tags", "expected"), QUIRKS)
@pytest.mark.parametrize("gap", [" ", "", "\nor ] perhaps\n"])
def test_quirks_of_the_released_code(tags, expected, gap):
    text = gap.join(f"[[{letter}]]" for letter in tags)
    assert agrees(parse_verdict(text, "released"), expected)


def test_another_bracket_ends_what_the_released_code_compares():
    assert parse_verdict("[[A]] [[B]] [[A]]", "released").letter == "B"
    assert parse_verdict("[[A]] [1] [[B]] [[A]]", "released").letter == "A"
    assert parse_verdict("[[A]] [[B]] [[a]] [[A]]", "released").letter == "A"
    # Which of two tags A is taken cannot be seen from the letter A: here B tells.
    assert parse_verdict("[[A]] [[A]] [[B]] [[A]]", "released").letter == "B"


@settings(max_examples=600, deadline=None)
@given(TEXTS)
@example("[[A]] [[[B]]] [[A]]")
@example("[[[[A]]]] [[B]] [[A]]")
def test_released_equals_a_second_transcription(text):
    letter = slow_released(text)
    assert parse_verdict(text, "released") == (letter, OK if letter else NO_VERDICT)


def slow_released(text):
    """The rule of the notes on the code, tag by tag: a letter, or "" without a tag."""
    tags = [
        place
        for place in range(len(text) - 4)
        if text[place : place + 2] == "[[" and text[place + 3 : place + 5] == "]]"
        if "A" <= text[place + 2] <= "Z"
    ]
    for number, tag in enumerate(tags):
        again = [
            later
            for later in tags[number + 2 :]
            if text[later + 2] == text[tag + 2]
            if text[tag + 5 : later].count("[") == 2 * sum(tag < other < later for other in tags)
        ]
        if not again:
            return text[tag + 2]
    return ""


@settings(max_examples=600, deadline=None)
@given(TEXTS)
@example("\ud800[[A]]")
@example("[[ﷺ]]")
def test_sound_gives_a_letter_that_stands_in_the_text_or_a_reason(text):
    letter, status = parse_verdict(text)
    assert status in (OK, REFUSED, NO_VERDICT, SEVERAL)
    if status == OK:
        assert letter in tuple("ABCD")
        assert letter in text.upper() or not text.isascii()
    else:
        assert letter == ""


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from("ABCD"))
def test_a_last_sentence_decides(text, letter):
    """Whatever came before."""
    assert parse_verdict(f"{text}.\nMy verdict is this one.\n[[{letter}]]") == (letter, OK)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_characters="[]", exclude_categories=["Cs"]), max_size=20))
def test_both_rules_read_a_single_verdict_the_same(noise):
    text = f"{noise} [[C]] is best. {noise}"
    assert parse_verdict(text) == parse_verdict(text, "released") == ("C", OK)


def test_long_hostile_replies_are_read_too():
    """A pattern that goes back and forth over such a text would not end within the test run."""
    for piece in (
        *("[[A]]", "[[A]] ", "[[A]][[B]]", "[ ", "[[ ", "[[*", "[[A]] if assistant ", "[[A]]:\n"),
        *("verdict ", "final is ", "\n", "\n*", "I'm sorry ", "[[B]] verdict x [[A]] ", "as an "),
    ):
        for end in ("", "[[D]]"):
            text = piece * (100_000 // len(piece)) + end
            for rule in ("sound", "released"):
                letter, status = parse_verdict(text, rule)
                assert (letter != "") == (status == OK)
    assert agrees(parse_verdict("[[A]]" * 20_000), "A")
    assert agrees(parse_verdict("[[A]][[B]]" * 10_000), SEVERAL)
    assert agrees(parse_verdict("[[A]]" * 20_000 + "[[B]][[A]]", "released"), "B")


def test_an_unknown_rule_is_an_error():
    with pytest.raises(ValueError, match=r'"sound" or "released", found \'strict\''):
        parse_verdict("[[A]]", rule="strict")


def test_a_table_holds_every_trial_as_it_was_asked(monkeypatch):
    """Always A under Raw; right under ID; no verdict, or none at all, under COT."""
    parameters = {"MODEL": "m", "CONTROL": "", "ENGINE": "replay", "QUESTIONS": "sample"}
    parameters |= {"ORDER": "rotate", "RAW": "released", "MISMATCH": True}
    parameters |= {"TEMPERATURE": 0.0, "TOP_P": 1.0, "MAX_TOKENS": 9, "SEED": 0}

    def stored(call):
        asked = call.design.blocks[0].factors["asked"]
        letters = [stimuli.rotate(one.question, one.shift).correct for one in asked]
        texts = {"Raw": "[[A]]", "ID": [f"[[{letter}]]" for letter in letters]}
        texts |= {"COT": ["All are good.", None] * (len(asked) // 2)}
        table = pd.DataFrame({"text": texts[asked[0].prompt]}, index=range(len(asked)))
        table["finish_reason"] = table.text.map(
            lambda text: "stop" if isinstance(text, str) else "failed"
        )
        return SimpleNamespace(read=lambda: table)

    monkeypatch.setattr(answers, "stored", stored)
    *own, _, other = (answers.load(call) for call in design.calls(parameters))
    table = pd.concat(own)
    assert len(table) == 3 * 4 * 66
    right = table.letter.eq(table.correct).groupby(table.prompt).mean()
    assert right.to_dict() == {"Raw": 0.25, "ID": 1.0, "COT": 0.0}
    assert table.status[table.prompt == "COT"].value_counts().to_dict() == {
        "no verdict": 132, "failed": 132,
    }  # fmt: skip
    assert table[table["shift"] == 1].correct.ne(table[table["shift"] == 0].correct.values).all()
    assert table.told.eq(table.identity).all()
    assert other.prompt.eq("ID").all()
    assert other.told.ne(other.identity).all()
