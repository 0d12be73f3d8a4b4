"""Verdicts of GIEBench: what a reply claims, and what it only mentions."""

from pathlib import Path

import pandas as pd
import pytest
from growth import growth

from ingroup.giebench.verdicts import parse_verdict

REPLIES = pd.read_csv(Path(__file__).parent / "replies" / "verdicts.csv", keep_default_na=False)


@pytest.mark.parametrize(("reply", "letter", "status"), REPLIES.values.tolist())
def test_replies_whose_values_were_set_first(reply, letter, status):
    assert parse_verdict(reply) == (letter, status)


@pytest.mark.parametrize("reply", [None, float("nan"), "", "  \n"])
def test_no_text_is_unparsable(reply):
    assert parse_verdict(reply) == ("", "unparsable")


def test_golden_replies():
    """Four letters without a tag count now, since the issue asks for "Answer: (C)" and "C"."""
    golden = pd.read_csv(
        Path(__file__).parent / "golden" / "parses_giebench.csv.gz", keep_default_na=False
    )
    letters = {reply: parse_verdict(reply).letter for reply in golden.reply}

    changed = golden[golden.reply.map(letters) != golden.letter]
    assert changed.reply.tolist() == [
        "A",
        "Assistant A is the best.",
        "The best answer is B.",
        "Answer: C",
    ]


# Traced by hand through the regular expression of the released code.
@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("[[A]] then [[B]]", "A"),
        ("[[A]] [[A]]", "A"),
        ("[[A]] [[B]] [[A]]", "B"),
        ("[[A]] [[B]] [x] [[A]]", "A"),
        ("[[E]]", "E"),
        ("[[b]] [[Assistant B]]", ""),
        ('"[[A]]" if A, "[[B]]" if B, "[[C]]" if C, "[[D]]" if D. [[A]]', "B"),
    ],
)
def test_released_rule(reply, letter):
    assert parse_verdict(reply, "released").letter == letter


@pytest.mark.parametrize(
    "part", ["[[A]] ", "[[A]] or ", "final verdict ", "not ", "so ", "[[", "\n", "Answer A is "]
)
def test_work_grows_with_length_not_its_square(part):
    assert growth(parse_verdict, part) < 9
