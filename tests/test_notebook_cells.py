"""Where a figure and a table are made, in notebooks made by hand."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ingroup import notebook_cells


@pytest.fixture
def notebook():
    cells = [
        new_markdown_cell("# Title\n\n## First heading"),
        new_code_cell('out.read("gaps")\nout.save(fig, f"figure{number}")'),
        new_markdown_cell("No heading here."),
        new_code_cell('"group_profile"'),
        new_markdown_cell("## Second heading\n\n**Bold words.** More."),
        new_code_cell('rows = out.read("figure7")\nout.save(fig, "gaps")'),
        new_markdown_cell("## Third heading"),
        new_code_cell('figures.save(fig, folder, "figure5")'),
    ]
    return new_notebook(cells=cells)


@pytest.mark.parametrize(
    ("figure", "heading"),
    [
        ("gaps", "Bold words"),  # the first cell reads a table of this name
        ("figure7", "First heading"),  # a pattern; a table of this name is read elsewhere
        ("figure5", "Third heading"),  # the whole name comes before a pattern
        ("gaps_some-model", "Bold words"),
        ("group_profile", ""),  # the cell saves nothing
        ("gapsize", ""),
    ],
)
def test_the_heading_above_the_cell_that_saves_a_figure(notebook, figure, heading):
    assert notebook_cells.heading_of(notebook, figure) == heading


def test_the_first_notebook_that_writes_a_table_is_its_writer():
    def writing(code):
        return new_notebook(cells=[new_code_cell(code)])

    notebooks = {
        "10_a": writing('out.read("b")'),
        "11_b": writing('out.write(table, "b")'),
        "12_c": writing('out.write(table, "b")\nout.write(table, "bc")'),
    }
    assert notebook_cells.writer_of(notebooks, "b") == "11_b"
    assert notebook_cells.writer_of(notebooks, "bc") == "12_c"
    assert notebook_cells.writer_of(notebooks, "unknown") == "10_a"


@pytest.mark.parametrize(
    "code",
    [
        'out.write(table, "gaps")',
        'shown = out.write_any(by_key(tables, KEY), "gaps", index=True)',
        'out.write(\n    table,\n    "gaps",\n)',
        "notebook.gaps(asked, out)",
    ],
)
def test_the_cell_that_writes_a_table(code):
    book = new_notebook(
        cells=[
            new_code_cell('out.read("gaps")\nout.write(other, "gaps of others")'),
            new_code_cell(code),
        ]
    )
    assert notebook_cells.cell_of(book, "gaps") is book.cells[1]
    assert notebook_cells.cell_of(book, "others") is None
