"""What was found: ranges, estimates and sentences, from tables made by hand."""

import pandas as pd
import pytest

from ingroup import claim_verdicts, figures
from ingroup.models import label


@pytest.mark.parametrize(
    ("model", "role"),
    [
        ("some/own", "real"),
        ("calibrant", "positive control: biases were built in"),
        ("calibrant-null", "negative control: nothing was built in"),
    ],
)
def test_a_model_is_real_or_a_control(model, role):
    assert claim_verdicts.role(model) == role


def test_the_printed_range_is_that_of_the_rows_of_the_claim():
    """Table 2 prints 1.97, 0.46, 1.26 and -0.19 for religion."""
    rows = "category == 'Religion' and prompt_setting == 'P0,S0,T0'"
    text = claim_verdicts.printed_range("empathy_gap", "2", rows, "delta")
    assert text == "-0.19 to 1.97, 4 models (Table 2)"


def paths_walked():
    return pd.DataFrame(
        {
            "model": ["m", "m", "m", "n"],
            "claim": ["Religion"] * 4,
            "reason": [None, "too few", "flat", None],
        }
    )


def test_a_reason_is_the_first_of_the_paths_without_an_estimate():
    m, n = claim_verdicts.reasons_by_claim(paths_walked()).itertuples()
    assert m.reason == "too few"
    assert pd.isna(n.reason)


def test_a_claim_has_its_sentence_verdict_and_estimates(tmp_path):
    shares = pd.DataFrame(
        {
            "model": ["m", "m"],
            "study": ["empathy_gap"] * 2,
            "claim": ["Religion", "an_own_claim"],
            "paths": [4, 4],
            "undefined": [0, 0],
            "testable": [4, 4],
            "stands": [100, 25],
            "reversed": [0, 75],
            "median": [2, -1],
            "lowest": [1, -3],
            "highest": [5, 0],
        }
    )
    figures.write_table(shares, tmp_path, "multiverse_shares")
    other = paths_walked().assign(claim="an_own_claim")
    walked = pd.concat([paths_walked(), other])
    figures.write_table(walked, tmp_path, "multiverse_empathy_gap")

    options = shares.loc[[1, 1, 0]].assign(
        choice=["reading", "reading", "unit"],
        option=["greedy", "mean", "event"],
        stands=[0, 50, 100],
        reversed=[90, 50, 0],
    )
    figures.write_table(options, tmp_path, "multiverse_options")

    religion, own = claim_verdicts.by_claim(tmp_path).itertuples()
    assert religion.verdict == "stands"
    assert (religion.estimate, religion.low, religion.high) == (2, 1, 5)
    assert religion.printed == "-0.19 to 1.97, 4 models (Table 2)"
    assert religion.source == "multiverse_shares.csv, line 2"
    assert "robust positive intergroup gap" in religion.sentence
    assert (own.name, own.way, own.printed) == ("an own claim", "above", "")
    assert own.verdict == "depends"
    assert own.estimate == -1
    assert pd.isna(religion.choice)
    assert (own.choice, own.share_from, own.share_to) == ("reading", 0, 50)


def test_the_deciding_choice_is_the_one_whose_options_lie_farthest_apart():
    """By the share that bears the sentence out, here below 0. An option without paths says none."""
    rows = [
        ("reading", "greedy", 8, 5, 30),
        ("reading", "mean", 8, 90, 60),
        ("reading", "drawn", 0, None, None),
        ("unit", "event", 8, 0, 40),
        ("unit", "group", 8, 0, 75),
        ("correction", "none", 8, 0, 50),
    ]
    table = pd.DataFrame(rows, columns=["choice", "option", "testable", "stands", "reversed"])
    table = table.assign(model="m", study="s", claim="c", way="below", paths=8, undefined=0)
    table[["stands", "reversed"]] = table[["stands", "reversed"]].astype(float)

    (decides,) = claim_verdicts.deciding_choices(table).itertuples()
    assert (decides.choice, decides.share_from, decides.share_to) == ("unit", 40, 75)
    assert claim_verdicts.deciding_choices(table[table.choice == "correction"]).empty


@pytest.mark.parametrize(
    ("rows", "choice"),
    [
        ([("reading", 5, 50.1)], "reading"),
        ([("reading", 5.1, 100)], ""),  # found by more than chance under each option
        ([("reading", 0, 50)], ""),  # by most under none
        ([("reading", 0, 100), ("unit", 0, 100)], ""),  # half of the claims
        ([("reading", 0, 100), ("unit", 0, 100), ("reading", 0, 80)], "reading"),
        ([(None, None, None)], ""),
    ],
)
def test_a_choice_decides_a_paper_if_it_decides_most_of_its_claims(rows, choice):
    table = pd.DataFrame(rows, columns=["choice", "share_from", "share_to"])
    shares = table.astype({"share_from": float, "share_to": float})

    assert claim_verdicts.main_deciding_choice(shares) == choice


@pytest.mark.parametrize(
    ("share_from", "word"), [(5.0, "depends on the reading"), (5.1, "mostly holds")]
)
def test_a_choice_that_decides_stands_in_the_word_on_a_paper(share_from, word):
    """Two claims mostly stand. The reading decides them if one option shows no more than chance."""
    rows = [("mostly stands", "reading", share_from, 100.0)] * 2
    table = pd.DataFrame(rows, columns=["verdict", "choice", "share_from", "share_to"])
    assert claim_verdicts.verdict_on_paper(table) == word


def test_without_the_synthesis_there_is_no_claim(tmp_path):
    assert claim_verdicts.by_claim(tmp_path).empty


def test_verdicts_of_all_models_stand_side_by_side_in_the_order_of_claims():
    claims = pd.DataFrame(
        [
            ("some/z", "s", "Late", "depends", 33.4, 3),
            ("some/z", "s", "Early", "undefined", None, 0),
            ("some/a", "s", "Late", "stands", 100.0, 2),
        ],
        columns=["model", "study", "name", "verdict", "share", "counted"],
    )
    table = claim_verdicts.side_by_side(claims)
    assert table.columns.tolist() == ["study", "name", "a", "z"]
    assert table.name.tolist() == ["Late", "Early"]
    assert table.z.tolist() == ["depends, on 33 %", "undefined"]
    assert table.a.tolist() == ["stands, on 100 %", "not asked"]


def test_only_slips_that_change_a_claim_are_named():
    slips = pd.DataFrame(
        {
            "paper": ["a", "b", "a"],
            "items": ["Table 1", "Table 2", "Figure 3"],
            "changes": ["a claim", "a number", "a claim"],
        }
    )
    sentence = claim_verdicts.sentence_on_slips(slips, {"a": "Paper A", "b": "Paper B"})
    assert sentence == "2 slips of the papers change a claim: Paper A, Table 1; Paper A, Figure 3."


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("some/own", "a real model"),
        ("calibrant", "built-in biases"),
        ("calibrant-null", "nothing was built in"),
    ],
)
def test_a_sentence_counts_the_verdicts_of_a_model(model, kind):
    verdicts = pd.Series(["depends", "stands", "depends"])
    sentence = claim_verdicts.sentence_on_model(model, verdicts)
    counts = "of 3 sentences of the papers: depends 2, stands 1."
    assert sentence == f"{label(model)} ({kind}), {counts}"
