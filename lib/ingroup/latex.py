"""Numbered tables as LaTeX, laid out as in the papers.

``data/published/latex.yaml`` holds the layouts as data: what stands in the rows, the columns and
the cells of a table, to how many decimals, with which marks, and how wide the table is.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from string import Formatter
from typing import Any

import pandas as pd
import yaml

from ingroup import figures, models, paths

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
    '"': "''",
    "[": "{[}",  # after a line's end it would begin an option
    "]": "{]}",
    "*": "{*}",  # after a line's end it would be a part of its command
    "\u200b": r"\hspace{0pt}",
})  # fmt: skip

# Letters and signs beyond ASCII that every LaTeX prints in its default font.
LETTERS = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿŒœŁłŠšŽžČčĆćŚśŹźŻżŃńĞğİıŞş"
SIGNS = "–—‘’“”…•×±°§¶©£€\u200b"

# A table is scaled down to its page, never up.
SCALED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
ENVIRONMENTS = {"column": "table", "page": "table*"}


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
    layouts = _layouts().get(study, {})
    floats = []

    for layout in layouts.get("tables", {}).get(name, []):
        layout = {"study": study, "labels": {}, **layout}
        layout["labels"] = layouts["labels"] | layout["labels"]
        rows = table.query(layout["where"]) if "where" in layout else table
        floats += [_float(part, layout, name) for part in _parts(rows, layout)]

    return "\n".join(floats)


@cache
def _layouts() -> dict[str, Any]:
    return yaml.safe_load((paths.PUBLISHED / "latex.yaml").read_text("utf8"))


def escape(text: object) -> str:
    """Write a text so that LaTeX prints it, on one line, and reads no command in it.

    A character that LaTeX's default fonts lack becomes its number, e.g. [U+4E2D].
    """
    line = " ".join(str(text).split())
    known = "".join(map(_known, line))
    breakable = re.sub(rf"(\S{{{LONGEST_WORD}}})(?=\S)", "\\1\u200b", known)
    return breakable.translate(ESCAPES)


def _known(letter: str) -> str:
    if letter in LETTERS + SIGNS or (letter.isascii() and letter.isprintable()):
        return letter
    return f"[U+{ord(letter):04X}]"


def _parts(rows: pd.DataFrame, layout: Mapping[str, Any]) -> list[pd.DataFrame]:
    """Rows of each float: of so many models as the paper shows in one table, or all."""
    if rows.empty:
        return []

    if "parts" not in layout:
        return [rows]

    size = layout["parts"] * layout.get("stacked", 1)
    return _chunks(rows, layout.get("parts_of", "model"), size)


def _chunks(rows: pd.DataFrame, column: str, size: int) -> list[pd.DataFrame]:
    values = rows[column].unique()
    starts = range(0, len(values), size)
    return [rows[rows[column].isin(values[start : start + size])] for start in starts]


def _float(rows: pd.DataFrame, layout: Mapping[str, Any], name: str) -> str:
    """One table with its caption."""
    names = list(rows["model"].dropna().unique()) if "model" in rows else []
    shown = escape(", ".join(map(models.label, names)))
    caption = layout["caption"].format(models=shown)
    note = escape(figures.whose(names))

    blocks = [rows]
    if "stacked" in layout:
        blocks = _chunks(rows, layout.get("parts_of", "model"), layout["parts"])

    environment = ENVIRONMENTS[layout["width"]]
    lines = [rf"\begin{{{environment}}}[tp]", r"\centering\setlength{\tabcolsep}{4pt}"]
    for block in blocks:
        lines += [SCALED, _tabular(block, layout).strip() + "}", r"\par\medskip"]
    lines[-1] = rf"\caption{{{caption} {note}".strip() + "}"

    label = f"tab:{layout['study']}:{layout.get('number', name)}"
    if layout.get("parts") == 1:
        label += ":" + re.sub(r"[^\w.-]", "-", str(rows["model"].iloc[0]))
    lines += [rf"\label{{{label}}}", rf"\end{{{environment}}}", ""]
    return "\n".join(lines)


def _tabular(rows: pd.DataFrame, layout: Mapping[str, Any]) -> str:
    """The rows, columns and cells of one table."""
    row_keys = [*layout.get("rows", {}).values(), *layout.get("hidden", [])]
    column_keys = layout["columns"]
    texts = _texts(rows, layout)
    places = _places(rows, layout["labels"])

    # One line a cell: what it says, and the row and the column in which it stands.
    cells, of_cells = [], []
    for place, (head, template) in enumerate(layout["cells"].items()):
        over, _, cell = head.rpartition(" | ")
        one = texts.assign(over=over, cell=cell)
        has_none = one[_fields([template])].eq(MISSING).all(axis=1)
        filled = _filled(template, one).mask(has_none, MISSING)
        one["text"] = _marked(filled, rows, layout.get("marks", []))
        cells.append(one)
        of_cells.append(places.assign(over=place, cell=place))
    texts = pd.concat(cells, ignore_index=True)
    places = pd.concat(of_cells, ignore_index=True)

    keyed = texts[["text"]].copy()
    for key in [*row_keys, *column_keys]:
        keyed[key] = _filled(key, texts)

    # Rows and columns in the order of the labels, each for itself.
    row_order = _ordered(keyed, row_keys, places, layout.get("sort", _fields(row_keys)))
    column_order = _ordered(keyed, column_keys, places, _fields(column_keys))
    if "join" in layout:
        joined = keyed.groupby([*row_keys, *column_keys], sort=False)["text"]
        long = joined.agg(layout["join"].join)
    else:
        long = keyed.set_index([*row_keys, *column_keys])["text"]
    wide = long.unstack(column_keys).reindex(index=row_order, columns=column_order)

    return _written(wide.fillna(layout.get("missing", MISSING)), layout)


def _fields(templates: Iterable[str]) -> list[str]:
    """Names of the columns that templates name, in their order."""
    parsed = [part for template in templates for part in Formatter().parse(template)]
    return [field for _, field, _, _ in parsed if field]


def _filled(template: str, texts: pd.DataFrame) -> pd.Series:
    """A template filled with each row's texts."""
    filled = [template.format_map(row) for row in texts.to_dict("records")]
    return pd.Series(filled, texts.index, dtype=object)


def _marked(cells: pd.Series, rows: pd.DataFrame, marks: Iterable[Mapping[str, str]]) -> pd.Series:
    """Cells with the mark of each condition that their row meets."""
    for mark in marks:
        meets = rows.eval(mark["where"]).fillna(False).astype(bool)
        cells = cells.mask(meets, cells.map(mark["as"].format))
    return cells


def _texts(rows: pd.DataFrame, layout: Mapping[str, Any]) -> pd.DataFrame:
    """The rows as texts: numbers rounded, names as the paper has them, all else escaped."""
    templates = [
        *layout.get("rows", {}).values(),
        *layout.get("hidden", []),
        *layout["columns"],
        *layout["cells"].values(),
    ]
    decimals = _decimals(layout)
    texts = {}

    for field in dict.fromkeys(_fields(templates)):
        if field in ("cell", "over"):
            continue
        if field in decimals:
            texts[field] = _numbers(rows[field], decimals[field], field in layout.get("bare", []))
        elif field in ("model", layout.get("parts_of")):
            texts[field] = rows[field].map(_model_names(rows[field].unique()))
        else:
            known = layout["labels"].get(field, {})
            named = [known.get(value, escape(value)) for value in rows[field]]
            texts[field] = pd.Series(named, rows.index).mask(rows[field].isna(), "")

    return pd.DataFrame(texts, index=rows.index)


def _decimals(layout: Mapping[str, Any]) -> dict[str, int]:
    """Decimals of each number: its own, or those of the printed column that it names."""
    schema = pd.read_csv(paths.PUBLISHED / "columns.csv", dtype=str)
    schema = schema[schema["study"] == layout["study"]]
    decimals = {}

    for field, told in layout.get("decimals", {}).items():
        if isinstance(told, int):
            decimals[field] = told
            continue
        file, column = told.split(".")
        of_column = schema[schema["file"].str.startswith(file) & (schema["column"] == column)]
        decimals[field] = int(of_column["decimals"].iloc[0])

    return decimals


def _numbers(values: pd.Series, decimals: int, bare: bool) -> pd.Series:
    """Rounded numbers; a `bare` one has no zero before its point, as .05."""
    texts = values.astype(float).map(f"{{:z.{decimals}f}}".format)
    if bare:
        texts = texts.str.replace(r"^(-?)0\.", r"\1.", regex=True)
    return texts.mask(values.isna(), MISSING)


def _model_names(names: Iterable[str]) -> dict[str, str]:
    """How each model is named; two models of one name keep their ids."""
    labels = pd.Series({name: models.label(name) for name in names})
    shared = labels.duplicated(keep=False)
    labels[shared] = labels.index[shared]
    return labels.map(escape).to_dict()


def _places(rows: pd.DataFrame, labels: Mapping[str, Mapping[Any, str]]) -> pd.DataFrame:
    """Where each value stands in its column: first those with a label, then as they appear."""
    places = {}
    for column in rows:
        order = dict.fromkeys([*labels.get(column, {}), *rows[column].dropna()])
        place = {value: number for number, value in enumerate(order)}
        places[column] = rows[column].map(place)
    return pd.DataFrame(places, index=rows.index)


def _ordered(keyed: pd.DataFrame, keys: list[str], places: pd.DataFrame, by: list[str]) -> pd.Index:
    """The different values of some keys, in the order of the columns `by`."""
    order = places.sort_values(by, kind="stable").index
    different = keyed.loc[order, keys].drop_duplicates()
    return pd.MultiIndex.from_frame(different) if keys[1:] else pd.Index(different[keys[0]])


def _written(wide: pd.DataFrame, layout: Mapping[str, Any]) -> str:
    """A table of texts as a tabular.

    A row leaves out what it shares with the row before, unless the layout repeats it.
    """
    heads = list(layout.get("rows", {}))
    names = wide.index.to_frame(index=False).iloc[:, : len(heads)]
    said = names.copy()
    for place in range(0 if layout.get("repeat") else len(heads)):
        shared = names.iloc[:, : place + 1]
        said.iloc[:, place] = said.iloc[:, place].mask((shared == shared.shift()).all(axis=1), "")

    columns = [key if isinstance(key, tuple) else (key,) for key in wide.columns]
    if "heading" in layout:
        columns = [(layout["heading"], *key) for key in columns]
    blank = ("",) * (len(columns[0]) - 1)
    table = pd.concat([said, wide.reset_index(drop=True)], axis=1)
    table.columns = pd.MultiIndex.from_tuples([*((head, *blank) for head in heads), *columns])
    if not blank:
        table.columns = table.columns.get_level_values(0)

    kinds = _kinds(layout, table)
    text = table.to_latex(index=False, escape=False, multicolumn_format="c", column_format=kinds)
    if "section" not in layout:
        return text
    return _with_sections(text, wide.index.get_level_values(layout["section"]), len(table.columns))


def _with_sections(text: str, sections: pd.Index, width: int) -> str:
    """A tabular with the name of each section in a line above its first row."""
    lines = text.splitlines()
    first = lines.index(r"\midrule") + 1

    for place in reversed(range(len(sections))):
        if place and sections[place] == sections[place - 1]:
            continue
        lines.insert(first + place, rf"\multicolumn{{{width}}}{{l}}{{{sections[place]}}} \\")
        if place:
            lines.insert(first + place, r"\midrule")

    return "\n".join(lines)


def _kinds(layout: Mapping[str, Any], table: pd.DataFrame) -> str:
    """The kind of each column: one for each head of a row, then those of the cells, repeated."""
    heads = layout.get("rows", {})
    of_cells = layout.get("align", ["c"])
    cells = len(table.columns) - len(heads)
    repeated = [of_cells[place % len(of_cells)] for place in range(cells)]
    return "".join(["l"] * len(heads) + repeated)
