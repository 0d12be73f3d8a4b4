"""The explained survivors of `make mutants` are still lines of the files that they are about."""

import csv

import pytest

from ingroup import paths

FILE = paths.ROOT / "tests" / "mutants.csv"
with FILE.open(encoding="utf8", newline="") as stream:
    ROWS = list(csv.DictReader(stream))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['file']}: {row['before']}")
def test_an_explained_line_is_there(row):
    file = paths.ROOT / "lib" / "ingroup" / f"{row['file']}.py"
    lines = file.read_text("utf8").splitlines()

    text = " ".join(line.strip() for line in lines)

    assert row["before"] in text
    assert row["after"] != row["before"]
    assert row["why"]
