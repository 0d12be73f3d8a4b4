"""Numbered tables as LaTeX, laid out as in the papers.

``data/published/latex.yaml`` holds the layouts as data. A layout describes the rows, columns and
cells of a table, its decimals and marks, and its width.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from string import Formatter
from typing import Any

import pandas as pd
import yaml

from ingroup import figures, models, paths

Labels = Mapping[str, Mapping[Any, str]]  # for each column, the labels of its values
MISSING = r"\mbox{--}"  # in text and in mathematics
MAX_UNBROKEN_LETTERS = (
    25  # letters; a longer word may be broken, so that it stays inside its column
)

# Characters that LaTeX would read as a command, or would print as another character.
ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedblright{}",
        "[": "{[}",  # after a line's end it would begin an option
        "]": "{]}",
        "*": "{*}",  # after a line's end it would be a part of its command
        "\u200b": r"\hspace{0pt}",
    }
)

# Where two characters meet that LaTeX would print as one, as a dash or a Spanish question mark.
LIGATURE = re.compile(r"(?<=[-–])(?=-)|(?<=[?!`‘])(?=[`‘])|(?<=['’])(?=['’])|(?<=,)(?=,)")

# Letters and signs beyond ASCII that every LaTeX prints in its default font.
LETTERS = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿŒœŁłŠšŽžČčĆćŚśŹźŻżŃńĞğİıŞş"
SIGNS = "–—‘’“”…•×±°§¶©£€\u200b"

# Footnotes have 9 points in ACL's class. A table is scaled down to its page, never up.
SCALED_TEMPLATE = r"""{\footnotesize\setlength{\tabcolsep}{3pt}%%
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%%
%(tabular)s}}"""

FLOAT_TEMPLATE = r"""%% %(place)s Needs the packages %(packages)s.
\begin{%(environment)s}[tp]
\centering
%(tabulars)s
\caption{%(caption)s}
\label{%(label)s}
\end{%(environment)s}
"""
BETWEEN_TIERS = "\n\\par\\medskip\n"
ENVIRONMENTS = {"column": "table", "page": "table*"}
PLACES = {"column": "One column wide.", "page": "Two columns wide, where a page has two."}
# colortbl is here, as xcolor's option `table` clashes with classes that load xcolor, as ACL's does.
LATEX_PACKAGES = ("booktabs", "colortbl", "graphicx", "xcolor")


@dataclass(frozen=True)
class Layout:
    """Layout of one numbered table, whose entries ``latex.yaml`` explains."""

    study: str
    name: str
    caption: str
    width: str
    columns: list[str]
    cells: dict[str, str]
    labels: Labels
    number: int | None = None
    where: str = ""
    parts: int = 0
    parts_of: str = "model"
    stacked: int = 1
    rows: dict[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    section: str = ""
    sort: list[str] = field(default_factory=list)
    repeat: bool = False
    heading: str = ""
    join: str = ""
    decimals: dict[str, int | str] = field(default_factory=dict)
    bare: list[str] = field(default_factory=list)
    marks: list[dict[str, str]] = field(default_factory=list)
    missing: str = MISSING
    align: str = "c"

    @property
    def row_keys(self) -> list[str]:
        """List the templates that distinguish the rows.

        Returns
        -------
        list of str
            The templates of the shown rows, then of the hidden rows.
        """
        return [*self.rows.values(), *self.hidden]


def tables(table: pd.DataFrame, study: str, name: str) -> str:
    """Write a table of a run as LaTeX, laid out as the paper prints it.

    Parameters
    ----------
    table : pandas.DataFrame
        The tidy table that a notebook writes, its keys as columns.
    study, name : str
        The study and the table's name, as in ``latex.yaml``.

    Returns
    -------
    str
        One float for each numbered table and each of its parts, e.g. models; "" if the table has no
        layout or no rows. Its first line says which packages it needs.
    """
    # A table without rows may lack the columns that a layout names.
    if table.empty:
        return ""

    floats = []
    for layout in layouts(study, name):
        rows = table.query(layout.where) if layout.where else table
        parts = _parts(rows, layout)
        for number, part in enumerate(parts, start=1):
            floats.append(_float(part, layout, number, len(parts)))

    return "\n".join(floats)


def layouts(study: str, name: str) -> list[Layout]:
    """Read the layouts of a table of a run.

    Parameters
    ----------
    study : str
        The name of a study's folder, e.g. ``"empathy_gap"``.
    name : str
        The table's name, without a suffix.

    Returns
    -------
    list of Layout
        One layout for each numbered table that the table fills; none if it is not numbered.
    """
    of_study = read_layouts().get(study, {"labels": {}, "tables": {}})
    numbered = []

    for entries in of_study["tables"].get(name, []):
        # The labels of one table replace those of the study, column by column.
        labels = of_study["labels"] | entries.get("labels", {})
        layout = Layout(**{**entries, "study": study, "name": name, "labels": labels})
        numbered.append(layout)

    return numbered


def group_names() -> dict[str, str]:
    """Name the groups that are keys in the tables of a run, as tables of the papers print them.

    Returns
    -------
    dict of str to str
        The names by key, e.g. "Non-Binary" for ``"non_binary"``. Other groups have no key.
    """
    names: dict[str, str] = {}
    for of_study in read_layouts().values():
        names |= of_study["labels"].get("group", {})
    return names


@cache
def read_layouts() -> dict[str, Any]:
    """Read ``latex.yaml``.

    Returns
    -------
    dict
        The labels and layouts of each study, as the file has them.
    """
    text = (paths.PUBLISHED / "latex.yaml").read_text("utf8")
    return yaml.safe_load(text)


@cache
def _schema() -> pd.DataFrame:
    """Read the schema of the printed tables, one row per column."""
    return pd.read_csv(paths.PUBLISHED / "columns.csv", dtype=str)


def escape(text: object) -> str:
    """Escape a text so that LaTeX prints it on one line and reads no command in it.

    A character that LaTeX's default fonts lack becomes its number, e.g. [U+4E2D].

    Parameters
    ----------
    text : object
        Any value, such as a cell of a table.

    Returns
    -------
    str
        The value's text in LaTeX. A word may break after every `MAX_UNBROKEN_LETTERS` characters.
    """
    line = " ".join(str(text).split())
    printable = "".join(map(_printable, line))
    # U+200B marks a place where LaTeX may break, and ESCAPES replaces it. It is set first, because
    # the characters of an escape must stay together.
    long_word = rf"(\S{{{MAX_UNBROKEN_LETTERS}}})(?=\S)"
    breakable = re.sub(long_word, "\\1\u200b", printable)
    escaped = breakable.translate(ESCAPES)
    # LIGATURE matches between two signs that LaTeX would merge. Its braces come last, so that they
    # are not escaped themselves.
    return LIGATURE.sub("{}", escaped)


def _printable(letter: str) -> str:
    """Return a character, or its number if LaTeX's default fonts lack it."""
    if letter in LETTERS + SIGNS:
        return letter
    if letter.isascii() and letter.isprintable():
        return letter
    return f"[U+{ord(letter):04X}]"


def _parts(rows: pd.DataFrame, layout: Layout) -> list[pd.DataFrame]:
    """Split rows into one part per float, of as many models as a table of the paper has.

    A layout without parts keeps all rows together. A table without rows has no part.
    """
    if rows.empty:
        return []

    if layout.parts == 0:
        return [rows]

    # A float has `stacked` tiers, each for `parts` values of `parts_of`.
    return _chunks(rows, layout.parts_of, layout.parts * layout.stacked)


def _chunks(rows: pd.DataFrame, column: str, size: int) -> list[pd.DataFrame]:
    """Split rows into chunks of `size` different values of a column, by first appearance."""
    values = rows[column].unique()
    chunks = []

    for start in range(0, len(values), size):
        in_chunk = rows[column].isin(values[start : start + size])
        chunks.append(rows[in_chunk])

    return chunks


def _float(rows: pd.DataFrame, layout: Layout, number: int, n_parts: int) -> str:
    """Write the float of one part of a numbered table. Parts are numbered from 1."""
    names = []
    if "model" in rows:
        names = list(rows["model"].dropna().unique())

    tiers = [rows]
    if layout.stacked > 1:
        tiers = _chunks(rows, layout.parts_of, layout.parts)

    tabulars = []
    for tier in tiers:
        tabular = _tabular(tier, layout)
        tabulars.append(SCALED_TEMPLATE % {"tabular": tabular})

    return FLOAT_TEMPLATE % {
        "place": PLACES[layout.width],
        "packages": ", ".join(LATEX_PACKAGES),
        "environment": ENVIRONMENTS[layout.width],
        "tabulars": BETWEEN_TIERS.join(tabulars),
        "caption": _caption(rows, layout, names, n_parts),
        "label": _label(layout, names, number),
    }


def _label(layout: Layout, names: list[str], number: int) -> str:
    """Write the label of a float. Each part of a table has its own label."""
    of_table = f"tab:{layout.study}:{layout.number or layout.name}"
    if layout.parts == 1:
        # The part has one model.
        model = names[0]
        # A model may be the path of a folder; then its label has the folder's name alone.
        if os.path.isabs(model):
            model = os.path.basename(model.rstrip("/"))
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", model)
        return f"{of_table}:{name}"

    if number > 1:
        return f"{of_table}:{number}"
    return of_table


def _caption(rows: pd.DataFrame, layout: Layout, names: list[str], n_parts: int) -> str:
    """Write the caption, with the names of the models and the note of `figures.models_note`."""
    labels = ", ".join(map(models.label, names))
    values = {"models": escape(labels)}

    # A column in a caption has the same value in all rows, so the first will do.
    for column in _fields([layout.caption]):
        if column != "models":
            first = rows[column].iloc[0]
            values[column] = escape(first)

    caption = layout.caption.format_map(values)
    note = escape(figures.models_note(names))
    # Parts with several models would have the same caption; a part with one model names it already,
    # and so does the note about real models beside calibrants.
    is_part = n_parts > 1 and layout.parts > 1 and layout.parts_of == "model"
    if is_part and not note.startswith("Real:"):
        caption = f"{caption} Models: {values['models']}."

    return f"{caption} {note}".strip()


def _tabular(rows: pd.DataFrame, layout: Layout) -> str:
    """Write the rows, columns and cells of one table as a tabular."""
    texts, positions = _cells(rows, layout)
    keys = [*layout.row_keys, *layout.columns]
    keyed = texts[["filled"]].copy()
    # The filled templates of row and column heads are the keys of a cell.
    for key in keys:
        keyed[key] = _fill_template(key, texts)

    # Rows and columns are sorted apart, each in the order of its labels.
    row_fields = layout.sort or _fields(layout.row_keys)
    row_order = _ordered_keys(keyed, layout.row_keys, positions, row_fields)
    column_fields = _fields(layout.columns)
    column_order = _ordered_keys(keyed, layout.columns, positions, column_fields)

    if layout.join:
        # Several rows of the table fill one cell, such as a list of pairs.
        by_cell = keyed.groupby(keys, sort=False)["filled"]
        long = by_cell.agg(layout.join.join)
    else:
        long = keyed.set_index(keys)["filled"]

    wide = long.unstack(layout.columns)
    # unstack sorts both axes, so their orders are set again.
    wide = wide.reindex(index=row_order, columns=column_order)
    wide = wide.fillna(layout.missing)
    return _as_tabular(wide, layout)


def _cells(rows: pd.DataFrame, layout: Layout) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fill the text of each cell, one per row, and rank the keys of each column."""
    texts = _texts(rows, layout)
    positions = _positions(rows, layout.labels)
    cells = []
    cell_positions = []

    for number, (head, template) in enumerate(layout.cells.items()):
        # What stands before " | " is a head over those of several cells.
        over, _, name = head.rpartition(" | ")
        named = texts.assign(over=over, cell=name)
        numbers = named[_fields([template])]
        # A cell without any number is one dash, without the signs of its template.
        has_none = numbers.eq(MISSING).all(axis=1)
        filled = _fill_template(template, named)
        filled = filled.mask(has_none, MISSING)

        named["filled"] = _add_marks(filled, rows, layout)
        cells.append(named)
        # Heads of cells have no column in the table, so the layout gives their order.
        cell_positions.append(positions.assign(over=number, cell=number))

    all_cells = pd.concat(cells, ignore_index=True)
    all_positions = pd.concat(cell_positions, ignore_index=True)
    return all_cells, all_positions


def _fields(templates: Iterable[str]) -> list[str]:
    """List the columns that templates name, in their order."""
    fields = []

    for template in templates:
        for _, name, _, _ in Formatter().parse(template):
            if name:
                fields.append(name)

    return fields


def _fill_template(template: str, texts: pd.DataFrame) -> pd.Series:
    """Fill a template with each row's texts."""
    filled = []
    for row in texts.to_dict("records"):
        filled.append(template.format_map(row))
    return pd.Series(filled, texts.index, dtype=object)


def _add_marks(cells: pd.Series, rows: pd.DataFrame, layout: Layout) -> pd.Series:
    """Add to each cell the marks of the conditions that its row meets."""
    marked = cells
    for mark in layout.marks:
        condition = rows.eval(mark["where"])
        meets = condition.fillna(False).astype(bool)
        with_mark = marked.map(mark["as"].format)
        marked = marked.mask(meets, with_mark)
    return marked


def _texts(rows: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Write the rows as texts: numbers rounded, names as in the paper, the rest escaped."""
    templates = [*layout.row_keys, *layout.columns, *layout.cells.values()]
    decimals = _decimals(layout)
    texts = pd.DataFrame(index=rows.index)

    for column in _fields(templates):
        # `_cells` adds these two; they are no columns of the table.
        if column in ("cell", "over"):
            continue

        values = rows[column]
        if column in decimals:
            texts[column] = _numbers(values, decimals[column], column in layout.bare)
        elif column in ("model", layout.parts_of):
            texts[column] = values.map(_model_names(values.unique()))
        else:
            texts[column] = _names(values, layout.labels.get(column, {}))

    return texts


def _decimals(layout: Layout) -> dict[str, int]:
    """Look up the decimals of each number, in the layout or in the printed column it names."""
    schema = _schema()
    schema = schema[schema["study"] == layout.study]
    decimals = {}

    for column, entry in layout.decimals.items():
        if isinstance(entry, int):
            decimals[column] = entry
            continue

        # An entry such as table02_.delta has the beginning of a file's name, and a printed column.
        file, printed = entry.split(".")
        is_file = schema["file"].str.startswith(file)
        is_column = schema["column"] == printed
        of_column = schema.loc[is_file & is_column, "decimals"]
        decimals[column] = int(of_column.iloc[0])

    return decimals


def _numbers(values: pd.Series, decimals: int, is_bare: bool) -> pd.Series:
    """Round numbers as texts. A bare number has no zero before its point, as .05."""
    # The z of a format leaves out the minus before a rounded zero.
    rounded = f"{{:z.{decimals}f}}"
    texts = values.astype(float).map(rounded.format)
    if is_bare:
        texts = texts.str.replace(r"^(-?)0\.", r"\1.", regex=True)
    return texts.mask(values.isna(), MISSING)


def _names(values: pd.Series, labels: Mapping[Any, str]) -> pd.Series:
    """Replace each value by its label, and escape a value without a label. NaN becomes ""."""
    names = []
    for value in values:
        escaped = escape(value)
        names.append(labels.get(value, escaped))
    return pd.Series(names, values.index).mask(values.isna(), "")


def _model_names(ids: Iterable[str]) -> dict[str, str]:
    """Map each model to its name. Models that share a name keep their ids."""
    ids = list(ids)
    labels = map(models.label, ids)
    names = pd.Series(labels, ids)
    is_shared = names.duplicated(keep=False)
    names[is_shared] = names.index[is_shared]
    return names.map(escape).to_dict()


def _positions(rows: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Rank the values of each column: labelled values first, then others as they appear."""
    positions = pd.DataFrame(index=rows.index)

    for column in rows:
        values = rows[column]
        order = [*labels.get(column, {}), *values.dropna()]
        different = pd.Index(order, dtype=object).unique()
        # A missing value has the position -1, before all others.
        positions[column] = different.get_indexer(values)

    return positions


def _ordered_keys(
    keyed: pd.DataFrame, keys: list[str], positions: pd.DataFrame, by: list[str]
) -> pd.Index:
    """List the different values of some keys, in the order of the columns `by`."""
    in_order = positions.sort_values(by, kind="stable")
    sorted_rows = keyed.loc[in_order.index]
    different = sorted_rows.drop_duplicates(keys)
    return different.set_index(keys).index


def _as_tabular(wide: pd.DataFrame, layout: Layout) -> str:
    """Write a wide table of texts as a tabular of LaTeX, with its heads and sections."""
    row_heads = _row_heads(wide, layout)
    columns = wide.columns.to_frame(index=False)
    if layout.heading:
        columns.insert(0, "heading", layout.heading)

    # The columns may have several lines of heads; the name of a row head stands in the first.
    n_levels = len(columns.columns)
    blanks = [""] * (n_levels - 1)
    heads = [(head, *blanks) for head in layout.rows]
    heads += columns.itertuples(index=False, name=None)
    cells = wide.reset_index(drop=True)
    table = pd.concat([row_heads, cells], axis=1)
    table.columns = pd.MultiIndex.from_tuples(heads)
    # to_latex would write the heads of a single level as tuples.
    if n_levels == 1:
        table.columns = table.columns.get_level_values(0)

    # Every text is escaped already.
    text = table.to_latex(
        index=False,
        escape=False,
        multicolumn_format="c",
        column_format="l" * len(layout.rows) + layout.align * len(columns),
    )
    if layout.section:
        sections = wide.index.get_level_values(layout.section)
        return _with_sections(text, sections, len(table.columns))
    return text.strip()


def _row_heads(wide: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Blank the first names of each row that the row before shares, unless names repeat."""
    names = wide.index.to_frame(index=False)
    names = names.iloc[:, : len(layout.rows)]
    if layout.repeat:
        return names

    # The first row of a section repeats its names.
    is_shared = pd.Series(True, names.index)
    if layout.section:
        sections = wide.index.get_level_values(layout.section).to_series(names.index)
        is_shared = sections == sections.shift()

    heads = names.copy()
    for name in names:
        # A name is left out only where all names before it are shared, too.
        is_shared = is_shared & (names[name] == names[name].shift())
        heads[name] = names[name].mask(is_shared, "")

    return heads


def _with_sections(text: str, sections: pd.Index, width: int) -> str:
    """Insert the name of each section into a tabular, in a line above its first row."""
    lines = text.splitlines()
    first_line = lines.index(r"\midrule") + 1

    # From the last row to the first, so that inserted lines move no row that is still to come.
    for row in reversed(range(len(sections))):
        section = sections[row]
        if row > 0 and section == sections[row - 1]:
            continue

        line = first_line + row
        lines.insert(line, rf"\multicolumn{{{width}}}{{l}}{{{section}}} \\")
        if row > 0:
            lines.insert(line, r"\midrule")

    return "\n".join(lines)
