"""Numbered tables as LaTeX, laid out as in the papers.

``data/published/latex.yaml`` holds the layouts as data: what stands in the rows, the columns and
the cells of a table, to how many decimals, with which marks, and how wide the table is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from string import Formatter
from typing import Any

import pandas as pd
import yaml

from ingroup import figures, models, paths

Labels = Mapping[str, Mapping[Any, str]]  # of the values of each column
MISSING = r"\mbox{--}"  # in text and in mathematics
LONGEST_WORD = 25  # letters; a longer word may be broken, so that it leaves no column

# What LaTeX would read as a command, or would print as another character.
ESCAPES = str.maketrans({
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
})  # fmt: skip

# Where two characters meet that LaTeX would print as one, as a dash or a Spanish question mark.
LIGATURE = re.compile(r"(?<=[-–])(?=-)|(?<=[?!`‘])(?=[`‘])|(?<=['’])(?=['’])|(?<=,)(?=,)")

# Letters and signs beyond ASCII that every LaTeX prints in its default font.
LETTERS = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿŒœŁłŠšŽžČčĆćŚśŹźŻżŃńĞğİıŞş"
SIGNS = "–—‘’“”…•×±°§¶©£€\u200b"

# A table is scaled down to its page, never up.
SCALED = r"""\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%%
%(tabular)s}"""

FLOAT = r"""\begin{%(environment)s}[tp]
\centering\setlength{\tabcolsep}{4pt}
%(tabulars)s
\caption{%(caption)s}
\label{%(label)s}
\end{%(environment)s}
"""
BETWEEN_TIERS = "\n\\par\\medskip\n"
ENVIRONMENTS = {"column": "table", "page": "table*"}


@dataclass(frozen=True)
class Layout:
    """How one numbered table looks; ``latex.yaml`` says what each of these means."""

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
        """Templates that tell the rows apart."""
        return [*self.rows.values(), *self.hidden]


def tables(table: pd.DataFrame, study: str, name: str) -> str:
    """Lay out a table of a run as the paper prints it.

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
        layout or no rows. Needs the packages booktabs, graphicx and xcolor with its option `table`.
    """
    if table.empty:  # and perhaps without the columns that a layout names
        return ""

    floats = []
    for layout in layouts(study, name):
        rows = table.query(layout.where) if layout.where else table
        for place, part in enumerate(_parts(rows, layout), 1):
            floats.append(_float(part, layout, place))

    return "\n".join(floats)


def layouts(study: str, name: str) -> list[Layout]:
    """Read the layouts of a table of a run, none if it is not a numbered one."""
    of_study = _file().get(study, {"labels": {}, "tables": {}})
    found = []

    for told in of_study["tables"].get(name, []):
        own = {"study": study, "name": name, **told}
        own["labels"] = of_study["labels"] | told.get("labels", {})
        found.append(Layout(**own))

    return found


@cache
def _file() -> dict[str, Any]:
    text = (paths.PUBLISHED / "latex.yaml").read_text("utf8")
    return yaml.safe_load(text)


@cache
def _schema() -> pd.DataFrame:
    return pd.read_csv(paths.PUBLISHED / "columns.csv", dtype=str)


def escape(text: object) -> str:
    """Write a text so that LaTeX prints it, on one line, and reads no command in it.

    A character that LaTeX's default fonts lack becomes its number, e.g. [U+4E2D].
    """
    line = " ".join(str(text).split())
    known = "".join(map(_known, line))
    long_word = rf"(\S{{{LONGEST_WORD}}})(?=\S)"
    breakable = re.sub(long_word, "\\1\u200b", known)
    escaped = breakable.translate(ESCAPES)
    return LIGATURE.sub("{}", escaped)


def _known(letter: str) -> str:
    if letter in LETTERS + SIGNS:
        return letter
    if letter.isascii() and letter.isprintable():
        return letter
    return f"[U+{ord(letter):04X}]"


def _parts(rows: pd.DataFrame, layout: Layout) -> list[pd.DataFrame]:
    """Rows of each float: of so many models as the paper shows in one table, or all."""
    if rows.empty:
        return []

    if layout.parts == 0:
        return [rows]

    return _chunks(rows, layout.parts_of, layout.parts * layout.stacked)


def _chunks(rows: pd.DataFrame, column: str, size: int) -> list[pd.DataFrame]:
    """Rows with the first `size` values of a column, with the next ones, and so on."""
    values = rows[column].unique()
    chunks = []

    for start in range(0, len(values), size):
        own = values[start : start + size]
        chunks.append(rows[rows[column].isin(own)])

    return chunks


def _float(rows: pd.DataFrame, layout: Layout, place: int) -> str:
    """One table with its caption, the part of a numbered table in this place, from 1."""
    names = []
    if "model" in rows:
        names = list(rows["model"].dropna().unique())

    tiers = [rows]
    if layout.stacked > 1:
        tiers = _chunks(rows, layout.parts_of, layout.parts)

    tabulars = []
    for tier in tiers:
        tabular = _tabular(tier, layout)
        tabulars.append(SCALED % {"tabular": tabular})

    label = f"tab:{layout.study}:{layout.number or layout.name}"
    if layout.parts == 1:
        own = re.sub(r"[^A-Za-z0-9_.-]", "-", names[0])
        label = f"{label}:{own}"
    elif place > 1:
        label = f"{label}:{place}"

    return FLOAT % {
        "environment": ENVIRONMENTS[layout.width],
        "tabulars": BETWEEN_TIERS.join(tabulars),
        "caption": _caption(rows, layout, names),
        "label": label,
    }


def _caption(rows: pd.DataFrame, layout: Layout, names: list[str]) -> str:
    """The caption, with the names of the models and whose they are."""
    labels = ", ".join(map(models.label, names))
    told = {"models": escape(labels)}

    for column in _fields([layout.caption]):
        if column != "models":
            told[column] = escape(rows[column].iloc[0])

    caption = layout.caption.format_map(told)
    note = escape(figures.whose(names))
    return f"{caption} {note}".strip()


def _tabular(rows: pd.DataFrame, layout: Layout) -> str:
    """The rows, columns and cells of one table."""
    texts, places = _cells(rows, layout)
    keyed = texts[["filled"]].copy()
    for key in [*layout.row_keys, *layout.columns]:
        keyed[key] = _filled(key, texts)

    # Rows and columns come in the order of the labels, each for itself.
    row_fields = layout.sort or _fields(layout.row_keys)
    row_order = _ordered(keyed, layout.row_keys, places, row_fields)
    column_fields = _fields(layout.columns)
    column_order = _ordered(keyed, layout.columns, places, column_fields)

    keys = [*layout.row_keys, *layout.columns]
    if layout.join:
        by_cell = keyed.groupby(keys, sort=False)["filled"]
        long = by_cell.agg(layout.join.join)
    else:
        long = keyed.set_index(keys)["filled"]

    wide = long.unstack(layout.columns)
    wide = wide.reindex(index=row_order, columns=column_order)
    return _written(wide.fillna(layout.missing), layout)


def _cells(rows: pd.DataFrame, layout: Layout) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The text of each cell, one a row, and where each of its keys stands in its column."""
    texts = _texts(rows, layout)
    places = _places(rows, layout.labels)
    cells = []
    of_cells = []

    for place, (head, template) in enumerate(layout.cells.items()):
        over, _, name = head.rpartition(" | ")
        one = texts.assign(over=over, cell=name)
        filled = _filled(template, one)
        numbers = one[_fields([template])]
        has_none = numbers.eq(MISSING).all(axis=1)
        filled = filled.mask(has_none, MISSING)

        one["filled"] = _marked(filled, rows, layout)
        cells.append(one)
        of_cells.append(places.assign(over=place, cell=place))

    return pd.concat(cells, ignore_index=True), pd.concat(of_cells, ignore_index=True)


def _fields(templates: Iterable[str]) -> list[str]:
    """Names of the columns that templates name, in their order."""
    fields = []

    for template in templates:
        for _, name, _, _ in Formatter().parse(template):
            if name:
                fields.append(name)

    return fields


def _filled(template: str, texts: pd.DataFrame) -> pd.Series:
    """A template filled with each row's texts."""
    filled = []
    for row in texts.to_dict("records"):
        filled.append(template.format_map(row))
    return pd.Series(filled, texts.index, dtype=object)


def _marked(cells: pd.Series, rows: pd.DataFrame, layout: Layout) -> pd.Series:
    """Cells with the mark of each condition that their row meets."""
    for mark in layout.marks:
        meets = rows.eval(mark["where"]).fillna(False)
        marked = cells.map(mark["as"].format)
        cells = cells.mask(meets.astype(bool), marked)
    return cells


def _texts(rows: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """The rows as texts: numbers rounded, names as the paper has them, all else escaped."""
    templates = [*layout.row_keys, *layout.columns, *layout.cells.values()]
    decimals = _decimals(layout)
    texts = pd.DataFrame(index=rows.index)

    for column in _fields(templates):
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
    """Decimals of each number: its own, or those of the printed column that it names."""
    schema = _schema()
    schema = schema[schema["study"] == layout.study]
    decimals = {}

    for column, told in layout.decimals.items():
        if isinstance(told, int):
            decimals[column] = told
            continue

        file, printed = told.split(".")
        is_file = schema["file"].str.startswith(file)
        is_column = schema["column"] == printed
        of_column = schema.loc[is_file & is_column, "decimals"]
        decimals[column] = int(of_column.iloc[0])

    return decimals


def _numbers(values: pd.Series, decimals: int, is_bare: bool) -> pd.Series:
    """Rounded numbers; a bare one has no zero before its point, as .05."""
    rounded = f"{{:z.{decimals}f}}"  # z: no minus before a zero
    texts = values.astype(float).map(rounded.format)
    if is_bare:
        texts = texts.str.replace(r"^(-?)0\.", r"\1.", regex=True)
    return texts.mask(values.isna(), MISSING)


def _names(values: pd.Series, labels: Mapping[Any, str]) -> pd.Series:
    """The label of each value, the value itself without one, and "" where there is none."""
    names = []
    for value in values:
        names.append(labels.get(value, escape(value)))
    return pd.Series(names, values.index).mask(values.isna(), "")


def _model_names(ids: Iterable[str]) -> dict[str, str]:
    """How each model is named; two models of one name keep their ids."""
    ids = list(ids)
    names = pd.Series(map(models.label, ids), ids)
    is_shared = names.duplicated(keep=False)
    names[is_shared] = names.index[is_shared]
    return names.map(escape).to_dict()


def _places(rows: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Where each value stands in its column: first those with a label, then as they appear."""
    places = pd.DataFrame(index=rows.index)

    for column in rows:
        values = rows[column]
        order = [*labels.get(column, {}), *values.dropna()]
        different = pd.Index(order, dtype=object).unique()
        places[column] = different.get_indexer(values)

    return places


def _ordered(keyed: pd.DataFrame, keys: list[str], places: pd.DataFrame, by: list[str]) -> pd.Index:
    """The different values of some keys, in the order of the columns `by`."""
    order = places.sort_values(by, kind="stable").index
    different = keyed.loc[order].drop_duplicates(keys)
    return different.set_index(keys).index


def _written(wide: pd.DataFrame, layout: Layout) -> str:
    """A table of texts as a tabular."""
    heads = list(layout.rows)
    said = _row_heads(wide, layout)

    columns = wide.columns.to_frame(index=False)
    if layout.heading:
        columns.insert(0, "heading", layout.heading)
    levels = len(columns.columns)
    over_rows = [(head, *[""] * (levels - 1)) for head in heads]
    over_cells = list(columns.itertuples(index=False, name=None))

    table = pd.concat([said, wide.reset_index(drop=True)], axis=1)
    table.columns = pd.MultiIndex.from_tuples(over_rows + over_cells)
    if levels == 1:
        table.columns = table.columns.get_level_values(0)

    text = table.to_latex(
        index=False,
        escape=False,
        multicolumn_format="c",
        column_format="l" * len(heads) + layout.align * len(over_cells),
    )
    if layout.section:
        sections = wide.index.get_level_values(layout.section)
        return _with_sections(text, sections, len(table.columns))
    return text.strip()


def _row_heads(wide: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """What begins each row; it leaves out what it shares with the row before, unless repeated."""
    names = wide.index.to_frame(index=False)
    names = names.iloc[:, : len(layout.rows)]
    if layout.repeat:
        return names

    said = names.copy()
    for place, name in enumerate(names):
        so_far = names.iloc[:, : place + 1]
        is_shared = (so_far == so_far.shift()).all(axis=1)
        said[name] = names[name].mask(is_shared, "")

    return said


def _with_sections(text: str, sections: pd.Index, width: int) -> str:
    """A tabular with the name of each section in a line above its first row."""
    lines = text.splitlines()
    first = lines.index(r"\midrule") + 1

    for place in reversed(range(len(sections))):
        section = sections[place]
        if place > 0 and section == sections[place - 1]:
            continue

        line = first + place
        lines.insert(line, rf"\multicolumn{{{width}}}{{l}}{{{section}}} \\")
        if place > 0:
            lines.insert(line, r"\midrule")

    return "\n".join(lines)
