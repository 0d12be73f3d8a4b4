"""docs/papers.md: every table and figure of the four papers, and names that the notebooks have."""

import re

import nbformat
import pytest

from ingroup import paths

TEXT = (paths.ROOT / "docs" / "papers.md").read_text("utf8")
PARTS = dict(zip(["Hou", "Fagan", "Wang", "Jeoung"], TEXT.split("\n## ")[1:], strict=True))
COUNTS = {"Hou": (13, 9), "Fagan": (14, 3), "Wang": (8, 3), "Jeoung": (15, 8)}  # tables, figures
LISTED = re.compile(r"^\| (Table|Figure) (\d+) \| (\d\d) \|(?: (\S+))? \| (.+) \|$", re.M)
DESCRIBED = re.compile(r"^\| (Table|Figure) (\d+) \| \d\d \| .*?\| (.+) \|$", re.M)


def source_of(number):
    """All cells of the notebook of a number."""
    (file,) = paths.NOTEBOOKS.glob(f"{number}_*.ipynb")
    notebook = nbformat.read(file, as_version=4)
    return "\n".join(cell.source for cell in notebook.cells)


@pytest.mark.parametrize("paper", PARTS)
def test_every_table_and_figure_is_listed_and_its_name_is_made(paper):
    numbers = {"Table": [], "Figure": []}
    for kind, number, notebook, name, _ in LISTED.findall(PARTS[paper]):
        numbers[kind].append(int(number))
        if name:
            plain_name = name.strip("`")
            assert f'"{plain_name}' in source_of(notebook), (notebook, name)

    tables, figures = COUNTS[paper]
    assert numbers["Table"] == list(range(1, tables + 1))
    assert numbers["Figure"] == list(range(1, figures + 1))


@pytest.mark.parametrize("paper", PARTS)
def test_every_row_says_how_far_it_is_the_papers(paper):
    rows = DESCRIBED.findall(PARTS[paper])
    assert len(rows) == sum(COUNTS[paper])

    for kind, number, description in rows:
        content, _, layout = description.partition("LaTeX: ")
        assert re.match(r"(same|partial|ours|missing)\b", content), (kind, number)

        has_layout = re.match(r"(same|partial|missing)\b", layout) is not None
        assert has_layout == (kind == "Table"), number
