"""The places in notebooks that make a table or a figure."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nbformat import NotebookNode

# A heading of Markdown, or bold words at the beginning of a line.
HEADING = re.compile(r"^(?:#+ |\*\*)([^*\n]+)", re.MULTILINE)
SAVES = re.compile(r"\b(out|figures)\.save\(")
WRITES = re.compile(r"\bout\.write(_any)?\(")


def heading_of(notebook: NotebookNode, figure: str) -> str:
    """Find the heading or bold words above the cell that saves a figure.

    Parameters
    ----------
    notebook : NotebookNode
        A notebook.
    figure : str
        The name of the figure's files, without a suffix.

    Returns
    -------
    str
        The last heading above the cell; "" if no cell saves the figure. A cell with the full name
        wins, then one that builds the name from a number (``f"figure{number}"``), then one that
        appends a model's name (``figure5_<model>``).
    """
    return text_above(notebook.cells, figure, _last_heading)


def _last_heading(source: str) -> str:
    """Find the last heading in a text, or bold words that begin a line. Return "" without them."""
    headings = HEADING.findall(source)
    return headings[-1].strip(" .:") if headings else ""


def text_above(
    cells: Iterable[Mapping[str, Any]], figure: str, text_of: Callable[[str], str]
) -> str:
    """Find a text above the cell that saves a figure.

    Parameters
    ----------
    cells : iterable of mapping
        Cells of one notebook or several, as their files have them.
    figure : str
        The name of the figure's files, without a suffix.
    text_of : callable
        Takes the source of a markdown cell, and returns its text; "" where the one above counts.

    Returns
    -------
    str
        The last text above the cell that :func:`heading_of` describes; "" if no cell saves the
        figure.
    """
    saving = _saving_cells(cells, text_of)
    # Each way is tried on all cells before the next, less sure one: a pattern may fit other names.
    for names_figure in (_has_name, _has_pattern, _has_beginning):
        for text, code in saving:
            if names_figure(code, figure):
                return text
    return ""


def _saving_cells(
    cells: Iterable[Mapping[str, Any]], text_of: Callable[[str], str]
) -> list[tuple[str, str]]:
    """List the text above each cell that saves a figure, and the cell's code.

    A table may have the name of a figure, so calls that read a table are taken out of the code.
    """
    saving = []
    text = ""
    for cell in cells:
        # A notebook's file may have a source as a list of lines.
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text = text_of(source) or text
        elif SAVES.search(source):
            saving.append((text, _without_reads(source)))
    return saving


def _without_reads(code: str) -> str:
    """Remove from code every call that reads a table."""
    return re.sub(r'\bread\("\w+"\)', "", code)


def _has_name(code: str, figure: str) -> bool:
    """Tell whether code has the whole name of a figure."""
    return f'"{figure}"' in code


def _has_pattern(code: str, figure: str) -> bool:
    """Tell whether code makes the name of a figure by an f-string."""
    for text in re.findall(r'f"(\w[^" ]*\{[^" ]+)"', code):
        # Any text may stand where the f-string has a value in braces.
        parts = re.split(r"\{.*?\}", text)
        pattern = ".+".join(map(re.escape, parts))
        if re.fullmatch(pattern, figure):
            return True
    return False


def _has_beginning(code: str, figure: str) -> bool:
    """Tell whether a figure's name begins with a quoted name of the code plus "_".

    For example, "figure3_calibrant" begins with "figure3_".
    """
    names = re.findall(r'"(\w+)"', code)
    beginnings = tuple(f"{name}_" for name in names)
    return figure.startswith(beginnings)


def writer_of(notebooks: Mapping[str, NotebookNode], table: str) -> str:
    """Find the notebook that writes a table.

    Parameters
    ----------
    notebooks : mapping
        The notebooks of one study by name, at least one.
    table : str
        The table's name, without a suffix.

    Returns
    -------
    str
        The name of the first notebook that writes the table, or else of the first notebook.
    """
    for name, notebook in notebooks.items():
        if cell_of(notebook, table) is not None:
            return name
    return next(iter(notebooks))


def cell_of(notebook: NotebookNode, table: str) -> NotebookNode | None:
    """Find the cell that writes a table.

    Parameters
    ----------
    notebook : NotebookNode
        A notebook.
    table : str
        The name of the table, without a suffix.

    Returns
    -------
    NotebookNode or None
        The first such cell, which writes the table itself or calls the function of
        :mod:`ingroup.notebook` that has the table's name. None where no cell does.
    """
    # The name is the last argument but for named ones; elsewhere it may be that of a column.
    last_argument = re.compile(rf'"{re.escape(table)}"(?:,\s*\w+=\w+)*,?\s*\)')
    function = f"notebook.{table}("
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if function in cell.source:
            return cell
        if WRITES.search(cell.source) and last_argument.search(_without_reads(cell.source)):
            return cell
    return None
