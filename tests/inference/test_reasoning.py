"""Reasoning and answer: a table by hand, and 10,000 replies with values in their reasoning."""

import random

import pandas as pd
import pytest

from ingroup.inference.engine import LENGTH, STOP, Reply
from ingroup.inference.reasoning import (
    closing_text,
    ends_in_reasoning,
    is_mark,
    split_reasoning,
    split_reply,
)
from ingroup.parsing import CUT, OK, final_status, parse_rating
from ingroup.studies.giebench.answers import NO_VERDICT, parse_verdict
from ingroup.studies.stereomap.keyword_lists import parse_keywords
from ingroup.studies.stereomap.rating_lists import parse_ratings

FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        ("72", "72", ""),
        (" 72\n", " 72\n", ""),
        ("<think>Perhaps 99?</think>\n\n72", "72", "Perhaps 99?"),
        ("<think> a first guess is 72. But wait", "", "a first guess is 72. But wait"),
        (
            "<think>70 would be stereotyping</think> I'm sorry",
            "I'm sorry",
            "70 would be stereotyping",
        ),
        ("maybe 90? </think> 65", "65", "maybe 90?"),
        ("72 <think>or 80?</think>", "72", "or 80?"),
        ("<think>", "", "<think>"),
        ("<think>a</think><think>b</think>c", "c", "a\nb"),
        ("<THINK>a</THINK>c", "c", "a"),
        ("[THINK]9[/THINK]5", "5", "9"),
        ("◁think▷9◁/think▷5", "5", "9"),
        ("<|begin_of_thought|>9<|end_of_thought|>5", "5", "9"),
        ("<|channel|>analysis<|message|>72?<|end|>" + FINAL + "65<|return|>", "65", "72?"),
        ("<|channel|>analysis<|message|>72", "", "72"),
        ("<|channel|>final<|message|>65", "65", ""),
        ("analysis ... maybe 90.assistantfinal65", "65", "analysis ... maybe 90."),
        ("analysisWe think 72", "", "analysisWe think 72"),
        ("analysis: 72", "analysis: 72", ""),
        ("<|START_THINKING|>9<|END_THINKING|>5", "5", "9"),
        ("<|START_THINKING|>perhaps 72", "", "perhaps 72"),
        ("<|channel>thought\nperhaps 72", "", "perhaps 72"),
        ("<|channel>thought\n9<channel|>5", "5", "9"),
        ("<longcat_think>9</longcat_think>5", "5", "9"),
        ('<think effort="low">9</think>5', "5", "9"),
        ("<|think|>9<|/think|>5", "5", "9"),
        ("<scratchpad>perhaps 72", "", "perhaps 72"),
        ("analysis\n\n**72**", "", "analysis\n\n**72**"),
        ("assistantanalysis 72", "", "assistantanalysis 72"),
        ("analysis 9assistantfinal65assistantanalysis 80", "65", "analysis 9assistantanalysis 80"),
        ("7<think>hm</think>2", "7\n2", "hm"),
        ("Friendly: 4 [reason: kind]", "Friendly: 4 [reason: kind]", ""),
        ("", "", ""),
    ],
)
def test_a_reply_is_split_into_answer_and_reasoning(text, answer, reasoning):
    assert split_reasoning(text) == (answer, reasoning)


def test_a_prompt_that_opens_the_reasoning_makes_all_before_its_end_reasoning():
    assert split_reasoning("perhaps 72", opened=True) == ("", "perhaps 72")
    assert split_reasoning("perhaps 72</think>65", opened=True) == ("65", "perhaps 72")
    assert split_reasoning("<think>perhaps 72</think>65", opened=True) == ("65", "perhaps 72")


def test_a_mark_that_the_reasoning_mentions_hides_the_answer_only_where_the_reply_was_cut():
    text = "<think>I put it in <think> marks</think> 65"
    assert split_reasoning(text, ended=True)[0] == "65"
    assert split_reasoning(text, ended=False)[0] == ""


def test_a_failed_reply_stays_as_it_is_and_reasoning_of_a_server_is_kept():
    failed = Reply(None, "failed", error="no net")

    assert split_reply(failed) is failed

    served = Reply("<think>b</think>65", STOP, reasoning="a")
    assert split_reply(served) == Reply("65", STOP, reasoning="a\nb")


@pytest.mark.parametrize(
    ("prompt", "closed"),
    [
        ("<|im_start|>assistant\n<think>\n", "\n</think>\n\n"),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", ""),
        ("<|im_start|>assistant\n", ""),
        ("Say <think> when you think.<|assistant|>", ""),
        ("[/INST][THINK]", "\n[/THINK]\n\n"),
        ("<|START_THINKING|>", "\n<|END_THINKING|>\n\n"),
        ('<think effort="low">', "\n</think>\n\n"),
        ("<|think|>", "\n<|/think|>\n\n"),
        ("<|channel>thought\n", "\n<channel|>\n\n"),
        ("<|begin_of_thought|>", "\n<|end_of_thought|>\n\n"),
        ("<|start|>assistant", "<|channel|>final<|message|>"),
    ],
)
def test_what_ends_the_reasoning_that_a_prompt_opens(prompt, closed):
    assert closing_text(prompt) == closed
    assert ends_in_reasoning(prompt) == (closed != "" and "|channel|" not in closed)


def test_marks_among_special_tokens():
    for mark in ("<think>", "</think>", "[THINK]", "<|channel|>"):
        assert is_mark(mark)
    for other in ("<s>", "</s>", "<|im_end|>", "thinking", "[INST]"):
        assert not is_mark(other)


# ---- 10,000 replies of twelve shapes ---------------------------------------------------------

INSIDE = {
    "rating": "Perhaps {n}. On a scale of 0 to 100 I would say {n}\n{n}\nbut wait",
    "verdict": "[[{letter}]] seems best, but [[{letter}]]. Final verdict: [[{letter}]]",
    "words": "Friendly: {n5}\nSociable: {n5}\n1. greedy: they are\n2. cold: so I hear\n",
}
OUTSIDE = {
    "rating": "The answer is 65.",
    "verdict": "My verdict: [[B]]",
    "words": "Friendly: 2",
}
VALUES = {
    "rating": 65,
    "verdict": "B",
    "words": 2,
}
MARKS = [
    ("<think>", "</think>"),
    ("<think>\n", "\n</think>\n\n"),
    ("<Thinking>", "</Thinking>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<reasoning>", "</reasoning>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("< think >", "</ think >"),
    ("", "</think>"),
    ("<|channel|>analysis<|message|>", "<|end|>" + FINAL),
    ("analysis", "assistantfinal"),
]


def shaped(rng, thought, answer):
    """A reply in one of the shapes of today's models: text, finish reason, whether it answers."""
    opening, closed = rng.choice(MARKS)
    whole = f"{opening}{thought}{closed}{answer}"
    if rng.random() < 0.5 or not opening:
        return whole, STOP, True

    # Cut anywhere before the end of the closing mark.
    end = rng.randint(len(opening) + 1, len(whole) - len(answer) - 1)
    return whole[:end], rng.choice([LENGTH, STOP]), False


def value_of(read, kind):
    """The value that a parser read."""
    if kind == "rating":
        return read.value
    if kind == "verdict":
        return read.letter
    return read.values["Friendly"]


def parser_of(kind):
    """The function that reads a value out of a text."""
    if kind == "rating":
        return lambda text: parse_rating(text, 0, 100)
    if kind == "verdict":
        return parse_verdict
    return lambda text: parse_ratings(text, ("Friendly", "Sociable"))


def random_thought(rng, kind):
    """A reasoning that holds values, in one of three shapes."""
    values = {"n": rng.randint(0, 64), "n5": rng.randint(3, 5), "letter": rng.choice("ACD")}
    thought = INSIDE[kind].format(**values)
    return rng.choice([thought, f"We weigh it.\n{thought}", thought * 3])


@pytest.mark.parametrize("kind", INSIDE)
def test_no_value_is_read_out_of_reasoning(kind):
    rng = random.Random(0)
    parse = parser_of(kind)
    outcomes = {"answered": 0, "cut": 0}

    for _ in range(10_000):
        thought = random_thought(rng, kind)
        text, ending, answers = shaped(rng, thought, OUTSIDE[kind])

        reply = split_reply(Reply(text, ending))
        read = parse(reply.text)
        row = pd.DataFrame([reply._asdict()])
        (status,) = final_status(row, [read.status], unread=["unparsable", NO_VERDICT])

        if answers:
            assert value_of(read, kind) == VALUES[kind], text
            assert status in (OK, "incomplete"), text
            outcomes["answered"] += 1
        else:
            assert status == CUT, (text, reply)
            assert reply.text.strip() == "" or read.status != OK, text
            assert parse_keywords(reply.text, 5).words == () or kind != "words", text
            outcomes["cut"] += 1

    assert min(outcomes.values()) > 3_000
