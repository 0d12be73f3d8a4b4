"""Tables on a phone: attributes by which the stylesheet shows each row as a record.

A narrow screen has no room for most tables, so each row becomes a block. Its first cells are a
heading. Each other cell has a line with the name of its column (``data-label``).
"""

from collections import defaultdict
from copy import copy

from bs4 import Tag

# A phone of 320 pixels has room for so many characters. A column takes two more for its edges, and
# its head two more for the sign by which it sorts.
PHONE_CHARACTERS = 36
EDGE_CHARACTERS = 2
SORT_CHARACTERS = 2
MOST_COLUMNS = 1000  # no cell covers more in a browser
ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tfoot": "rowgroup"}

# The cells of some rows, each by the number of its column.
Grid = list[dict[int, Tag]]


def stack_table(table: Tag) -> None:
    """Prepare a table for a narrow screen, unless the table fits there without a change.

    Parameters
    ----------
    table : Tag
        The table, with its final texts. If it needs more room, it gets the class ``wide``, and its
        cells get roles and the names of their columns. A cell that spans rows is repeated in each
        of them. Only a narrow screen shows these copies, which have the class ``again``.
    """
    heads = _grid(_rows(table, "thead"))
    rows = _rows(table, "tbody")
    body = _grid(rows)
    if not _is_wide(heads, body):
        return

    _add_class(table, "wide")
    for cells in body:
        _name_columns(cells, heads)
    _repeat_spanning(rows, body)
    set_roles(table)


def set_roles(table: Tag) -> None:
    """Set the roles of a table and its parts, which browsers drop where the parts become blocks.

    Parameters
    ----------
    table : Tag
        The table, which is changed.
    """
    table["role"] = ROLES["table"]
    for name in ("thead", "tbody", "tfoot"):
        for group in table.find_all(name, recursive=False):
            group["role"] = ROLES[name]
        head = "columnheader" if name == "thead" else "rowheader"
        for row in _rows(table, name):
            row["role"] = "row"
            for cell in _cells(row):
                cell["role"] = head if cell.name == "th" else "cell"


def _rows(table: Tag, group: str) -> list[Tag]:
    """List the rows of a table's groups of one kind, without the rows of tables inside cells."""
    groups = table.find_all(group, recursive=False)
    if group == "tbody":
        # A table without a tbody has its rows as children of its own.
        groups.append(table)

    rows: list[Tag] = []
    for parent in groups:
        rows += parent.find_all("tr", recursive=False)
    return rows


def _cells(row: Tag) -> list[Tag]:
    """List the cells of a row."""
    return row.find_all(["th", "td"], recursive=False)


def _grid(rows: list[Tag]) -> Grid:
    """Arrange the cells of rows by column. A cell that spans stands in each place it covers."""
    grid: Grid = [{} for _ in rows]
    for number, row in enumerate(rows):
        column = 0
        for cell in _cells(row):
            while column in grid[number]:
                column += 1
            columns = range(column, column + _span(cell, "colspan"))
            for covered in grid[number : number + _span(cell, "rowspan")]:
                covered.update(dict.fromkeys(columns, cell))
            column = columns.stop
    return grid


def _span(cell: Tag, direction: str) -> int:
    """Count the columns or rows that a cell covers, from 1 to `MOST_COLUMNS`."""
    text = str(cell.get(direction, "1"))
    if not text.isdecimal():
        return 1
    number = max(int(text), 1)
    return min(number, MOST_COLUMNS)


def _is_wide(heads: Grid, body: Grid) -> bool:
    """Tell whether the columns need more room than a phone has."""
    lengths: dict[int, int] = defaultdict(int)
    for cells in heads:
        for column, cell in cells.items():
            length = _head_length(cell)
            lengths[column] = max(lengths[column], length)
    for cells in body:
        for column, cell in cells.items():
            length = len(_own_text(cell))
            lengths[column] = max(lengths[column], length)

    edges = EDGE_CHARACTERS * len(lengths)
    return sum(lengths.values()) + edges > PHONE_CHARACTERS


def _head_length(cell: Tag) -> int:
    """Return the number of characters that a head needs, with its sign for sorting."""
    words = _own_text(cell).split()
    if not words:
        return 0
    # A head may break between words.
    longest = max(map(len, words))
    return longest + SORT_CHARACTERS


def _own_text(cell: Tag) -> str:
    """Return the text for which a column needs room, or "" for a cell over several columns."""
    if _span(cell, "colspan") > 1:
        return ""
    return _text(cell)


def _text(cell: Tag) -> str:
    """Return the text of a cell without its tags."""
    return cell.get_text(" ", strip=True)


def _name_columns(cells: dict[int, Tag], heads: Grid) -> None:
    """Label the cells of a row with the names of their columns, and mark empty cells."""
    for column, cell in cells.items():
        if _span(cell, "colspan") > 1:
            continue
        own_heads = heads
        if cell.name == "th":
            # pandas writes the names of an index into the last of several rows of heads.
            own_heads = heads[1:][-1:]
        label = _column_name(own_heads, column)
        if label:
            cell["data-label"] = label
        if cell.name == "td" and not _text(cell) and not cell.find("img"):
            _add_class(cell, "blank")


def _add_class(tag: Tag, name: str) -> None:
    """Add a class to a tag."""
    classes = tag.get("class") or ""
    if not isinstance(classes, str):
        classes = " ".join(classes)
    longer = f"{classes} {name}"
    tag["class"] = longer.strip()


def _column_name(heads: Grid, column: int) -> str:
    """Join the different texts of the heads above a column, from the top."""
    texts = []
    for row in heads:
        text = _text(row[column]) if column in row else ""
        if text and text not in texts:
            texts.append(text)
    return ", ".join(texts)


def _repeat_spanning(rows: list[Tag], body: Grid) -> None:
    """Insert copies of cells that span rows into the rows below."""
    for row, cells in zip(rows, body, strict=True):
        repeated = []
        # A cell over several columns stands in each, and in the row once.
        by_identity = {id(cells[column]): cells[column] for column in sorted(cells)}
        for cell in by_identity.values():
            if cell.parent is not row:
                cell = copy(cell)
                del cell["rowspan"]
                _add_class(cell, "again")
            repeated.append(cell)
        row.clear()
        row.extend(repeated)
