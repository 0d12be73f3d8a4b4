"""A file comes back as it was written, or one sentence says what is wrong with it."""

import os
import pickle
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingroup.inference import EngineError, StoreError
from ingroup.tables import (
    MAX_MESSAGE_LENGTH,
    InputError,
    check,
    decoded,
    once,
    read_json,
    read_table,
    read_yaml,
    wrong,
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "a.txt"


def test_a_byte_order_mark_is_no_part_of_the_text(file):
    for encoding in ("utf-8", "utf-8-sig"):
        file.write_bytes("ä,\r\nb".encode(encoding))
        assert decoded(file) == "ä,\r\nb"


def test_an_unreadable_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"none\.csv cannot be read: No such file or directory\."):
        decoded(tmp_path / "none.csv")

    (tmp_path / "latin.csv").write_bytes(b"a\nb\n\xe4\n")
    with pytest.raises(InputError, match=r"latin\.csv, line 3: found a byte that is not UTF-8"):
        decoded(tmp_path / "latin.csv")

    (tmp_path / "book.csv").write_bytes(b"PK\x03\x04a\nb")
    with pytest.raises(InputError, match="found an Excel workbook or another zip file, expected"):
        decoded(tmp_path / "book.csv")
    for encoding in ("utf-16-le", "utf-16-be"):
        (tmp_path / "wide.csv").write_bytes("\ufeffa\nb\n".encode(encoding))
        with pytest.raises(InputError, match=r"wide\.csv: found UTF-16 text, expected UTF-8 text"):
            decoded(tmp_path / "wide.csv")

    os.mkfifo(tmp_path / "pipe.csv")  # to open it would wait for ever
    for name, kind in (("pipe.csv", "device"), (".", "folder")):
        with pytest.raises(InputError, match=f"cannot be read: it is a {kind}, expected a file"):
            decoded(tmp_path / name)


def test_a_row_is_numbered_by_the_line_on_which_it_begins(file):
    file.write_bytes(b'\nname,text\r\na,"two\nlines"\n\nb,\r\nc,"said ""no"", then"\n')
    table = read_table(file, ["text"])
    assert table.index.tolist() == [3, 6, 7]
    assert table.name.tolist() == ["a", "b", "c"]
    assert table.text.tolist() == ["two\nlines", "", 'said "no", then']

    file.write_text("name\ttext\na\tx, y\n", "utf8")
    table = read_table(file, ["text", "name"], "\t")
    assert table.columns.tolist() == ["name", "text"]
    assert table.loc[2].tolist() == ["a", "x, y"]


WRONG = {
    "": "line 1: found the end of the file, expected the columns a, b.",
    "a,b\n": "line 2: found the end of the file, expected a row.",
    "a,c\n1,2\n": "line 1: the column 'b' is missing, found a, c.",
    "a,b,b\n1,2,3\n": "line 1, column 'b': found it 2 times, expected it once.",
    "a,b,c,c\n1,2,3,4\n": "line 1, column 'c': found it 2 times, expected it once.",
    "a,b\n1\n": "line 2: found 1 cell, expected 2, one per column.",
    "a\tb\n1\t2\n": "line 1: found tabs between the columns, expected commas.",
    "a;b\n1;2\n": "line 1: found semicolons between the columns, expected commas.",
    "a,B\n1,2\n": "line 1: the column 'b' is missing, found a, B; should B be called b?",
    "a,b\n1,2\n\n1,2,3\n": "line 4: found 3 cells, expected 2, one per column; a text with commas "
    "has to be in quotes.",
    'a,b\n1,"2\n3,4\n': "line 2: found a quote that does not close at the end of its field",
    'a,b\n1,"2"3\n': "line 2: found a quote that does not close at the end of its field",
}


@pytest.mark.parametrize("content", WRONG, ids=repr)
def test_a_table_that_is_wrong_is_one_sentence(file, content):
    file.write_text(content, "utf8", newline="")
    with pytest.raises(InputError) as caught:
        read_table(file, ["a", "b"])
    assert str(caught.value).startswith(f"{file}, {WRONG[content]}")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_carriage_return_in_quotes_is_part_of_a_text(file, end):
    lines = ["name\ttext", 'a\t"one\rtwo"', '"b\r"\t"three\r\rfour"', "c\tfive"]
    file.write_bytes(end.join(lines).encode())

    table = read_table(file, (), "\t")

    assert table.index.tolist() == [2, 3, 4]
    assert table.name.tolist() == ["a", "b\r", "c"]
    assert table.text.tolist() == ["one\rtwo", "three\r\rfour", "five"]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"name,text\na,one\rtwo\n", 2),
        (b"name,text\r\na,one\r\nb\r,two\r\n", 3),
        (b'name,text\n"a\nb",one\rtwo\n', 3),  # the row begins in line 2
        (b"name,text\ra,one\rb,two\r", 1),
    ],
)
def test_a_carriage_return_alone_is_refused_with_its_line(file, content, line):
    file.write_bytes(content)

    with pytest.raises(InputError) as caught:
        read_table(file)

    assert str(caught.value) == (
        f"{file}, line {line}: found a carriage return within a text, or in the place of a "
        "newline, expected lines that end in newlines, and such a text in quotes."
    )


def test_a_number_of_5000_digits_in_json_is_a_number(file):
    longest = "9" * 4300  # that Python makes an int of
    longer = "9" * 5000
    file.write_text(f'{{"a": {longest}, "b": {longer}, "c": -12}}', "utf8")

    assert read_json(file) == {"a": int(longest), "b": float("inf"), "c": -12}


def test_a_cell_may_be_long(file):
    file.write_text("a,b\n1," + "x" * 200_000 + "\n", "utf8")
    assert len(read_table(file).b[2]) == 200_000


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1))
def test_a_table_written_by_pandas_is_read_unchanged(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("csv") / "a.csv"
    written = pd.DataFrame(rows, columns=["a", "b"])
    written.to_csv(file, index=False, quoting=1)

    read = read_table(file, ["a", "b"])

    assert list(read.itertuples(index=False, name=None)) == rows


WRONG_JSON = {
    " ": ": found an empty file, expected JSON.",
    '{"a": [1],\n}': ", line 1, column 10: found a comma behind the last entry, expected a closing",
    "[1, 2, ]": ", line 1, column 6: found a comma behind the last entry, expected a",
    '{"a": 1,\nb}': ", line 2, column 1: found a mistake (",
    '[{"a": 1, "b": 2, "a": 3}]': ", key 'a': found it 2 times in one object, expected it once.",
    "[" * 100_000: ": found lists or objects that are nested too deeply, expected JSON.",
}


@pytest.mark.parametrize("content", WRONG_JSON, ids=lambda text: text[:20])
def test_json_that_is_wrong_is_one_sentence(file, content):
    file.write_text(content, "utf8")
    with pytest.raises(InputError) as caught:
        read_json(file)
    assert str(caught.value).startswith(f"{file}{WRONG_JSON[content]}")
    file.write_text('{"a": [1, {"b": null}]}', "utf8")
    assert read_json(file) == {"a": [1, {"b": None}]}


WRONG_YAML = {
    "a: [1\nb: }\n": ", line 2, column 2: found a mistake (expected ',' or ']'",
    "a: 1\n\tb: 2\n": ", line 2, column 1: found a mistake (found character",
    "a: \x01\n": ": found a character that YAML does not allow, expected YAML.",
}


@pytest.mark.parametrize("content", WRONG_YAML, ids=repr)
def test_yaml_that_is_wrong_is_one_sentence(file, content):
    file.write_text(content, "utf8")
    with pytest.raises(InputError) as caught:
        read_yaml(file)
    assert str(caught.value).startswith(f"{file}{WRONG_YAML[content]}")
    assert "\n" not in str(caught.value)
    file.write_text("a: [1, {b: null}]", "utf8")
    assert read_yaml(file) == {"a": [1, {"b": None}]}


def test_the_first_wrong_cell_and_the_first_repeated_row_are_named(file):
    file.write_text("name,size\na,1\nb,x\n\nc,y\nA,1\n", "utf8")
    table = read_table(file)
    once(file, table)
    check(file, table.name, table.name != "", "a name")

    is_number = table["size"].str.isdigit()
    with pytest.raises(InputError, match=r"line 3, column 'size': found 'x', expected a number\."):
        check(file, table["size"], is_number, "a number")

    again = r"line 6: found name 'A', size '1' again, expected it once; it is .* in line 2\."
    with pytest.raises(InputError, match=again):
        once(file, table, table.map(str.lower))


@pytest.mark.parametrize("error", [InputError, EngineError, StoreError])
def test_a_message_is_short_and_moves_no_cursor(error):
    hostile = "a.csv, line 2: found '\x1b[2J\x07\x9b1m\u202e', expected ⏎ or ä.\n"
    message = str(error(hostile))
    assert message == "a.csv, line 2: found '\\x1b[2J\\x07\\x9b1m\\u202e', expected ⏎ or ä.\n"

    long_cell = "x" * 10_000_000
    message = str(error(f"a.csv, line 2: found {long_cell}, expected a number."))
    assert len(message) < 2 * MAX_MESSAGE_LENGTH
    assert message.startswith("a.csv, line 2: found x")
    assert message.endswith("x, expected a number.")

    copy = pickle.loads(pickle.dumps(error("one")))
    assert str(copy) == "one"


def test_a_long_cell_is_a_short_message(file):
    long_cell = "y" * 10_000_000
    file.write_text(f"size\n{long_cell}\n", "utf8")
    table = read_table(file)
    is_number = table["size"].str.isdigit()

    expected = r"line 2, column 'size': .*, expected a number"
    with pytest.raises(InputError, match=expected) as caught:
        check(file, table["size"], is_number, "a number")
    assert len(str(caught.value)) < 2 * MAX_MESSAGE_LENGTH


def test_the_sentence_names_line_and_column():
    text = str(wrong("items.csv, line 3", "'x'", "a number", "size"))
    assert text == "items.csv, line 3, column 'size': found 'x', expected a number."


def test_a_bad_cell_is_named_with_the_nearest_good_one():
    column = pd.Series(["anger", "joi"], pd.Index([2, 3], name="line"), name="emotion")
    emotions = ["anger", "joy"]

    with pytest.raises(InputError) as caught:
        check(Path("a.tsv"), column, column.isin(emotions), "anger or joy", emotions)

    sentence = "a.tsv, line 3, column 'emotion': found 'joi', expected anger or joy"
    assert str(caught.value) == f"{sentence}; did you mean joy?"
    with pytest.raises(InputError) as caught:
        check(Path("a.tsv"), column, column.isin(emotions), "anger or joy")
    assert str(caught.value) == f"{sentence}."
