"""Tables for a phone: each cell has the name of its column, whatever a model wrote."""

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from ingroup.commands import book, report_html, report_tables

LONG = "a text that needs more room than a phone has"
HOSTILE = '"><script>alert(1)</script> onload=x class="y" \''


def stacked(source):
    """The first table of a source, prepared for a phone."""
    table = BeautifulSoup(source, "html.parser").table
    report_tables.stack_table(table)
    return table


def shown(frame):
    """The table of a frame as the report has it."""
    return BeautifulSoup(report_html.output_html(frame.to_html()), "html.parser").table


def labels(table):
    """What stands before each cell of the body on a phone, row by row."""
    rows = table.select("tbody tr")
    return [[cell.get("data-label") for cell in row.find_all(["th", "td"])] for row in rows]


def texts(table):
    rows = table.select("tbody tr")
    return [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in rows]


def test_a_cell_has_all_heads_of_its_column_and_a_row_label_its_own():
    columns = pd.MultiIndex.from_tuples(
        [("model a", "mean_of"), ("model a", "p"), ("model b", "p")], names=["model", None]
    )
    groups = pd.Index(["one", "two"], name="group")
    frame = pd.DataFrame([[1, 2, LONG], [3, 4, LONG]], index=groups, columns=columns)

    of_row = ["group", "model a, mean of", "model a, p", "model b, p"]
    assert labels(shown(frame)) == [of_row, of_row]


def test_an_index_without_a_name_has_no_label_and_a_numbered_one_no_place():
    frame = pd.DataFrame({"n": [1, 2], "text": [LONG, LONG]})
    assert labels(shown(frame)) == [["n", "text"]] * 2

    named = frame.set_axis(["one", "two"])
    assert labels(shown(named)) == [[None, "n", "text"]] * 2


def test_a_label_that_spans_rows_is_repeated_in_each():
    index = pd.MultiIndex.from_tuples(
        [("m", "a", "x"), ("m", "a", "y"), ("m", "b", "z")], names=["model", "group", "name"]
    )
    table = shown(pd.DataFrame({"text": [LONG, "two", "three"]}, index=index))

    assert texts(table) == [["m", "a", "x", LONG], ["m", "a", "y", "two"], ["m", "b", "z", "three"]]
    assert labels(table) == [["model", "group", "name", "text"]] * 3
    copies = [cell.get_text() for cell in table.select(".again")]
    assert copies == ["m", "a", "m"]
    assert not table.select(".again[rowspan]")
    assert [cell["rowspan"] for cell in table.select("[rowspan]")] == ["3", "2"]


def test_a_cell_in_the_middle_that_spans_rows_keeps_its_place():
    source = f"""<table><thead><tr><th>a</th><th>b</th><th>{"c" * 40}</th></tr></thead>
    <tbody><tr><td>1</td><td rowspan="2">2</td><td>3</td></tr>
    <tr><td>4</td><td>5</td></tr></tbody></table>"""
    assert texts(stacked(source)) == [["1", "2", "3"], ["4", "2", "5"]]


def test_hostile_text_of_a_head_is_a_label_and_nothing_else():
    frame = pd.DataFrame({HOSTILE: ["one", "two"], "text": [LONG, LONG]})
    table = shown(frame)
    assert labels(table) == [[HOSTILE, "text"]] * 2

    names = {name for tag in table.find_all(True) for name in tag.attrs}
    assert names <= {"class", "role", "data-label"}
    assert table.find("script") is None
    assert table.select_one("tbody td")["class"] == ["s"]  # a name, kept on one line


def test_a_cell_that_stays_in_view_has_no_other_class():
    frame = pd.DataFrame({"n": ["1", "2"], "finding": [LONG, LONG * 2]})
    assert [cell["class"] for cell in shown(frame).select("tbody td")] == [["n"], ["verdict"]] * 2


def test_roles_say_what_blocks_no_longer_do():
    frame = pd.DataFrame({"text": [LONG]}, index=pd.Index(["one"], name="name"))
    table = shown(frame)
    assert table["role"] == "table"
    assert {part["role"] for part in table.find_all(["thead", "tbody"])} == {"rowgroup"}
    assert {row["role"] for row in table.find_all("tr")} == {"row"}
    assert {cell["role"] for cell in table.select("thead th")} == {"columnheader"}
    assert [cell["role"] for cell in table.select("tbody tr > *")] == ["rowheader", "cell"]


@pytest.mark.parametrize(
    ("head", "cell", "is_wide"),
    [
        ("n", "1", False),
        ("n", "x" * 29, False),  # 36 characters, with the other head and the edges
        ("n", "x" * 30, True),
        (" ".join(["head"] * 10), "1", False),  # a head may break between words
        ("x" * 27, "1", False),
        ("x" * 28, "1", True),
    ],
)
def test_a_table_that_fits_a_phone_stays_as_it_is(head, cell, is_wide):
    heads = f"<thead><tr><th>{head}</th><th>n</th></tr></thead>"
    body = f"<tbody><tr><td>{cell}</td><td>1</td></tr></tbody>"
    source = f"<table>{heads}{body}</table>"
    table = stacked(source)
    assert (table.get("class") == "wide") == is_wide
    assert (str(table) == source) != is_wide


def test_a_span_of_any_size_costs_no_memory_and_gives_no_label():
    source = f"""<table><thead><tr><th>a</th><th>b</th></tr></thead>
    <tbody><tr><td colspan="9999999999">{LONG}</td></tr>
    <tr><td rowspan="x">{LONG}</td><td colspan="0"></td></tr></tbody></table>"""
    table = stacked(source)
    assert labels(table) == [[None], ["a", "b"]]
    assert [cell.get("class") for cell in table.select("td")] == [None, None, "blank"]


def test_a_table_inside_a_cell_keeps_its_own_rows():
    inner = "<table><tr><td>inner</td></tr></table>"
    source = f"<table><tr><td>{LONG}</td><td>{inner}</td></tr></table>"
    assert inner in str(stacked(source))


def test_tables_of_prose_and_of_the_first_page_are_prepared_too():
    prose = f"""<table class="table"><thead><tr><th class="head"><p>what &amp; who</p></th></tr>
    </thead><tbody><tr><td><p>{LONG}</p></td></tr></tbody></table>"""
    own = """<table class="claims"><tbody><tr><th scope="row">a</th>
    <td data-label="m">1</td></tr></tbody></table>"""
    page = book.finish(f"<head></head>{prose}{own}")

    first, second = BeautifulSoup(page, "html.parser").find_all("table")
    assert first["class"] == ["table", "wide"]
    assert labels(first) == [["what & who"]]
    assert second["class"] == ["claims"]
    assert labels(second) == [[None, "m"]]
    assert [cell["role"] for cell in second.select("tr > *")] == ["rowheader", "cell"]
