"""Reasoning is never read as an answer."""

import pytest

from ingroup.inference.reasoning import split_reasoning, text_before_answer


@pytest.mark.parametrize(
    "text",
    [
        "<think>Maybe 60.</think>85",
        "Maybe 60.</think>\n85",
        "<think>Maybe 60. The tag </think> ends it.</think>85",
        "<reason>Maybe 60.</reason>85",
        "<think_fast>Maybe 60.</think_fast>85",
        "<seed:think>Maybe 60.</seed:think>85",
        "&lt;think&gt;Maybe 60.&lt;/think&gt;85",
        "<|inner_prefix|>Maybe 60.<|inner_suffix|>85",
        "◁think▷Maybe 60.◁/think▷85",
        "<|channel>thought\nMaybe 60.<channel|>85",
        "<|channel|>analysis<|message|>Maybe 60.<|end|><|start|>assistant<|channel|>final"
        "<|constrain|>number<|message|>85<|return|>",
        "<|message|>Maybe 60.<|end|><|start|>assistant<|channel|>final<|message|>85",
        "Maybe 60.assistantfinal85",
        "<think>\nIt could be 60 or 80.\nMaybe 60.\n</think>\n\n85",
        "Thinking Process:\n1. The scale is 0 to 100.\n2. Maybe 60.\n\n85",
    ],
)
def test_the_answer_stands_behind_the_reasoning(text):
    answer, reasoning = split_reasoning(text)
    assert answer == "85"
    assert "Maybe 60." in reasoning


@pytest.mark.parametrize(
    "text",
    [
        "<think>Maybe 60",
        "analysisMaybe 60",
        "<|channel|>analysis<|message|>Maybe 60",
        "Thinking Process:\n1. Analyse 60",
        "<think>One</think>\n<think>Two: 60",
    ],
)
def test_a_reply_that_ends_in_its_reasoning_has_no_answer(text):
    answer, reasoning = split_reasoning(text, ended=False)
    assert answer == ""
    assert "60" in reasoning or "Analyse" in reasoning


def test_an_open_prompt_makes_all_text_reasoning_until_the_mark():
    assert split_reasoning("Maybe 60", opened=True) == ("", "Maybe 60")
    assert split_reasoning("Maybe 60</think>85", opened=True)[0] == "85"


@pytest.mark.parametrize("text", ["85", "analysis: it is 85", "I think it is 85.", " 85\n"])
def test_a_text_without_marks_is_unchanged(text):
    assert split_reasoning(text) == (text, "")


@pytest.mark.parametrize(
    ("end_of_prompt", "closing"),
    [
        ("<think>\n", "\n</think>\n\n"),
        ('<think effort="low">', "\n</think>\n\n"),
        ("[THINK]", "\n[/THINK]\n\n"),
        ("<|channel>thought", "\n<channel|>\n\n"),
        ("<|START_THINKING|>", "\n<|END_THINKING|>\n\n"),
        ("<|start|>assistant", "<|channel|>final<|message|>"),
        ("<think></think>", ""),
        ("Assistant:", ""),
    ],
)
def test_an_opened_reasoning_is_closed_before_an_answer_is_scored(end_of_prompt, closing):
    assert text_before_answer(f"Rate it.{end_of_prompt}") == closing
