"""Reasons by hand: what is listed, joined to documents, picked and marked."""

import pandas as pd

from ingroup.studies.stereomap import reasons


def reasons_of(*rows):
    return pd.DataFrame(rows, columns=["model", "group", "text"])


def test_each_reason_is_a_row_and_blank_ones_are_left_out():
    replies = pd.DataFrame({"model": "m", "reasons": [("They work.", " "), (), ("They help.",)]})
    table = reasons.list_reasons(replies)
    assert table.text.tolist() == ["They work.", "They help."]
    assert table.model.tolist() == ["m", "m"]


def test_a_model_has_one_document_and_one_for_each_cluster():
    table = reasons_of(
        ("m", "Men", "Men work."), ("m", "Nurses", "They help."), ("n", "Men", "Luck.")
    )
    placed = table.head(2).assign(cluster=[1, 0])
    texts = reasons.documents(table, placed, "sound")
    assert texts == {
        ("m", "all", "all groups"): "they work. they help.",
        ("m", "cluster", "0"): "they help.",
        ("m", "cluster", "1"): "they work.",
        ("n", "all", "all groups"): "luck.",
    }


def test_a_document_without_a_word_is_left_out():
    assert (
        reasons.documents(reasons_of(("m", "Men", "")), reasons_of().assign(cluster=[]), "sound")
        == {}
    )


def test_the_name_of_a_document_is_three_columns():
    table = pd.DataFrame({"document": [("m", "all", "all groups")], "phrase": ["work"]})
    named = reasons.with_document(table)
    assert named.to_dict("records") == [
        {"model": "m", "of": "all", "name": "all groups", "phrase": "work"}
    ]
    assert list(reasons.with_document(table.head(0))) == ["model", "of", "name", "phrase"]


def test_three_different_reasons_for_each_group_are_picked():
    rows = [("m", "Men", text) for text in "abacd"] + [("m", "Jews", "x"), ("n", "Women", "a")]
    picked = reasons.examples(reasons_of(*rows), ["Men", "Women"])
    assert picked.text.tolist() == ["a", "b", "c", "a"]
    assert picked.model.tolist() == ["m", "m", "m", "n"]


def test_phrases_are_marked_in_escaped_text_the_longest_first():
    text = "They <b>work</b> very hard & help."
    together = "<mark>hard &amp; help</mark>"
    marked = reasons.mark_phrases(text, ["work", "hard", "hard help", "WORK hard", "a.c"])
    assert marked == f"They &lt;b&gt;<mark>work</mark>&lt;/b&gt; very {together}."
    assert reasons.mark_phrases("abc", ["a.c"]) == "abc"
    assert reasons.mark_phrases("no <i>", []) == "no &lt;i&gt;"


def test_a_table_marks_the_phrases_of_the_model_alone():
    table = reasons_of(("<m>", "Men", "They work."), ("n", "Men", "They work."))
    html = reasons.marked_table(table, {"n": ["work"]})
    assert html.text.tolist() == ["They work.", "They <mark>work</mark>."]
    assert html.model.tolist() == ["&lt;m&gt;", "n"]
