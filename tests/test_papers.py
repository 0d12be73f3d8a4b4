"""docs/papers.md: every table and figure of the four papers, and names that the notebooks have."""

import re

import nbformat
import pytest

from ingroup import paths

TEXT = (paths.ROOT / "docs" / "papers.md").read_text("utf8")
PARTS = dict(zip(["Hou", "Fagan", "Wang", "Jeoung"], TEXT.split("\n## ")[1:], strict=True))
COUNTS = {"Hou": (13, 9), "Fagan": (14, 3), "Wang": (8, 3), "Jeoung": (15, 8)}


@pytest.mark.parametrize("paper", PARTS)
def test_every_table_and_figure_is_listed_and_its_name_is_made(paper):
    rows = re.findall(
        r"^\| (Table|Figure) (\d+) \| (\d\d) \|(?: (\S+))? \| (.+) \|$", PARTS[paper], re.M
    )
    listed = [[int(row[1]) for row in rows if row[0] == kind] for kind in ("Table", "Figure")]
    assert listed == [list(range(1, count + 1)) for count in COUNTS[paper]]
    for _, _, notebook, name, _ in rows:
        (file,) = paths.NOTEBOOKS.glob(f"{notebook}_*.ipynb")
        source = "\n".join(cell.source for cell in nbformat.read(file, as_version=4).cells)
        assert not name or f'"{name.strip("`")}' in source, (notebook, name)


@pytest.mark.parametrize("paper", PARTS)
def test_every_row_says_whether_it_is_the_papers(paper):
    rows = re.findall(r"^\| (Table|Figure) (\d+) \| \d\d \| .*?\| (.+) \|$", PARTS[paper], re.M)
    assert len(rows) == sum(COUNTS[paper])
    for kind, number, told in rows:
        own, _, layout = told.partition("LaTeX: ")
        assert re.match(r"(same|partial|ours|missing)\b", own), (kind, number)
        assert (kind == "Table") == bool(re.match(r"(same|partial|missing)\b", layout)), number
