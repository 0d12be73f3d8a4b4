"""What a notebook wrote and read, by content."""

import os

import pytest

from ingroup.commands import digests


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of one notebook that wrote a table, read one answer, and looked for more."""
    monkeypatch.setattr(digests, "ROOT", tmp_path)
    table = tmp_path / "table.csv"
    table.write_text("1")
    answers = tmp_path / "answers"
    answers.mkdir()
    (answers / "part-0").write_text("yes")
    (answers / ".lock").touch()

    copy = tmp_path / "10.ipynb"
    digests.write(copy, [table], digests.file_states(["answers/*", "more/**"]))
    return copy


def test_unchanged_files_are_not_named(run, tmp_path):
    answers = tmp_path / "answers"
    os.utime(tmp_path / "table.csv", (1, 1))
    os.utime(answers / "part-0", (1, 1))
    (answers / ".lock").write_text("taken")

    assert digests.edited_outputs(run) == []
    assert digests.changed_inputs(run) == []


def test_an_edited_or_deleted_table_is_named(run, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("2")
    assert digests.edited_outputs(run) == ["table.csv"]

    table.unlink()
    assert digests.edited_outputs(run) == ["table.csv"]


def test_changed_deleted_and_added_answers_are_named(run, tmp_path):
    answers = tmp_path / "answers"
    (answers / "part-0").write_text("no")
    assert digests.changed_inputs(run) == ["answers/part-0"]

    (answers / "part-0").rename(answers / "part-1")
    assert digests.changed_inputs(run) == ["answers/part-0", "answers/part-1"]

    (answers / "part-1").unlink()
    below = tmp_path / "more" / "below"
    below.mkdir(parents=True)
    (below / "file").touch()
    assert digests.changed_inputs(run) == ["answers/part-0", "more/below/file"]


def test_a_large_file_is_compared_by_content_where_its_time_differs(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "LARGE_BYTES", 3)
    weights = tmp_path / "weights"
    weights.write_text("1234")
    before = digests.file_state(weights)

    os.utime(weights, (1, 1))
    assert not digests.is_changed(weights, before)

    weights.write_text("1243")
    assert digests.is_changed(weights, before)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"wrote": 1}', "null", "\udcff"])
def test_a_damaged_record_counts_as_empty(run, text):
    digests.record_file(run).write_bytes(text.encode("utf8", "surrogateescape"))
    assert digests.read(run) == {"wrote": {}, "read": {}}
