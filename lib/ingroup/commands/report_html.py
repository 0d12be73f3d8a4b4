"""Prose and outputs of a notebook as HTML that is safe to show.

Bleach cleans all HTML after rendering, because nbconvert's SanitizeHTML cleans markdown before, and
a link to a script passes. Characters that hide or turn text become visible.
"""

import html
import itertools
import re
from typing import Any
from xml.etree import ElementTree

import bleach
from bs4 import BeautifulSoup, Tag
from latex2mathml.converter import convert
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from ingroup import models
from ingroup.commands.report_tables import stack_table

# Tags that stay tags; any other becomes visible text.
_HEADS = ["h1", "h2", "h3", "h4", "h5", "h6"]
_BLOCKS = ["p", "div", "br", "hr", "pre", "blockquote", "ul", "ol", "li", "dl", "dt", "dd"]
_FOLDS = ["details", "summary"]
_WORD_TAGS = ["span", "b", "strong", "i", "em", "code", "kbd", "sub", "sup", "del", "small", "mark"]
_TABLES = ["table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption"]
_TAGS = {*_HEADS, *_BLOCKS, *_FOLDS, *_WORD_TAGS, *_TABLES, "a"}


def _may_stay(tag: str, name: str, value: str) -> bool:
    """Tell whether an attribute of an output's link may stay: only a link within the book may."""
    address = re.fullmatch(r"[\w./%,-]{0,200}(#[^\s]{0,200})?", value)
    return name == "href" and address is not None


# Attributes that stay, by their tags.
_OF_OUTPUTS = {
    "th": ["colspan", "rowspan", "scope"],
    "td": ["colspan", "rowspan", "scope"],
    "a": _may_stay,
}
_OF_PROSE = {
    **_OF_OUTPUTS,
    "span": ["class"],
    "div": ["class"],
    "a": ["href", "title"],
}
_clean_output = bleach.Cleaner(_TAGS, _OF_OUTPUTS).clean
_clean_prose = bleach.Cleaner(_TAGS, _OF_PROSE).clean

# pandas puts a style block before its tables; ours are styled by the page.
_PANDAS_STYLE = re.compile(r'\A\s*(<div>\s*)?<style(?: scoped| type="text/css")?>.*?</style>', re.S)


def _visible_characters() -> dict[int, str]:
    """Map characters that hide or turn text to visible ones, for `str.translate`."""
    shown = {}
    for code in range(32):
        if chr(code) not in "\n\t":
            # From U+2400 on, Unicode has a picture for each control character.
            shown[code] = chr(0x2400 + code)

    # These turn the direction of the text behind them.
    for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)):
        shown[code] = f"[U+{code:04X}]"
    return shown


_HIDDEN = _visible_characters()

# Private characters between which the number of a formula stands while prose is cleaned.
_MARKS = "[\ue000\ue001]"
_MARKED = "\ue000(\\d+)\ue001"

_NUMBER = (
    r"[-+\u2212]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*(?:%|\*{1,3})?|nan|NaN|-?inf|<NA>|None"
)
# Classes of a table's cells, for the style. A cell has the first that fits; "n" is a number.
_CLASSES = {
    "n": re.compile(rf"<(td)((?! class|[^>]* \w+span=)[^>]*)>(?=\s*(?:{_NUMBER})\s*</td>)"),
    "t": re.compile(r"<(t[dh])((?! class)[^>]*)>(?=[^<]{60})"),  # a text, which needs width
    "m": re.compile(r"<(td)((?! class)[^>]*)>(?=[^<]{25,59}</t)"),  # a text of middle length
    "s": re.compile(r"<(t[dh])((?! class)[^>]*)>(?=[^<]{1,24}</t)"),  # a name, kept on one line
}

_WORDS = {
    "True": "yes",
    "False": "no",
    "NaN": "\u2013",
    "nan": "\u2013",
    "None": "\u2013",
    "<NA>": "\u2013",
}
# Columns whose cells stay as they are.
_EXACT = {"printed", "recomputed", "tolerance", "reply", "prompt", "text", "figure"}
# Columns that stay in view where a table is wider than the page.
_KEPT_IN_VIEW = {"verdict", "finding"}
_LONG = 30  # a table of more rows is folded


def visible(text: str) -> str:
    """Make every character visible in the output of a cell.

    Parameters
    ----------
    text : str
        A stream or a traceback.

    Returns
    -------
    str
        The text without colour codes and without empty lines at its ends, e.g. ``\\x1b`` as ``␛``.
    """
    lines = strip_ansi(text).replace("\r\n", "\n")
    return lines.strip("\r\n").translate(_HIDDEN)


def formula(latex: str, display: bool = False) -> str:
    """Convert a formula to MathML.

    Parameters
    ----------
    latex : str
        The formula without its dollars.
    display : bool
        Whether it stands on a line of its own.

    Returns
    -------
    str
        MathML, or the escaped source with its dollars where the conversion fails.
    """
    dollars = "$$" if display else "$"
    source = html.escape(f"{dollars}{latex}{dollars}")
    readable = f"<code>{source}</code>"
    try:
        mathml = convert(latex, display="block" if display else "inline")
        nodes = ElementTree.fromstring(mathml).iter()
    except Exception:  # a formula may be anything; the converter raises a dozen kinds of errors
        return readable

    for node in nodes:
        # The converter passes a command that it does not know on as text.
        if node.text and node.text.startswith("\\"):
            return readable
    return mathml


class _Renderer(IPythonRenderer):
    """Renderer of markdown that writes marks in place of formulas."""

    def __init__(self):
        super().__init__(escape=False, exclude_anchor_links=True)
        self.formulas = []

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        """Render a heading without an anchor."""
        return f"<h{level}>{text}</h{level}>\n"

    def inline_math(self, body: str, display: bool = False) -> str:
        """Store a formula and return its mark."""
        self.formulas.append(formula(body, display))
        return f"\ue000{len(self.formulas) - 1}\ue001"

    def block_math(self, body: str) -> str:
        """Store a formula that stands on a line of its own and return its mark."""
        return self.inline_math(body, display=True)


def prose_html(source: str) -> str:
    """Render the markdown of a cell as clean HTML.

    Parameters
    ----------
    source : str
        The source of the cell.

    Returns
    -------
    str
        HTML with formulas as MathML.
    """
    renderer = _Renderer()
    # The text must not bring marks of its own.
    text = re.sub(_MARKS, "", source)
    clean = _clean_prose(MarkdownWithMath(renderer=renderer).render(text))

    def put_back(mark: re.Match) -> str:
        mathml = renderer.formulas[int(mark[1])]
        return f'<span class="s">{mathml}{mark[2]}</span>'

    # A formula keeps the point or comma behind it on its line.
    return _boxed(re.sub(_MARKED + "([.,;:)]*)", put_back, clean))


def output_html(source: str) -> str:
    """Clean the HTML that a cell displayed.

    Parameters
    ----------
    source : str
        HTML, e.g. of a DataFrame.

    Returns
    -------
    str
        Tables and text. Every other tag becomes text. Tables lose pandas' numbering of rows, and
        their cells are written for readers (:func:`format_cell`).
    """
    # Cleaning would show a style block as text, so it goes first.
    unstyled = _PANDAS_STYLE.sub(r"\1", source)
    soup = BeautifulSoup(_clean_output(unstyled.translate(_HIDDEN)), "html.parser")
    for table in soup.find_all("table"):
        _tidy(table)
        rows = len(table.select("tbody tr"))
        if rows > _LONG:
            fold = f'<details class="fold"><summary>All {rows:,} rows</summary></details>'
            table.insert_before(BeautifulSoup(fold, "html.parser"))
        stack_table(table)
    return _boxed(soup.decode(formatter="minimal"))


def _tidy(table: Tag) -> None:
    """Remove pandas' row numbers from a table, put a finding in its place, and format the cells."""
    head_rows = _cells(table, "thead tr")
    body_rows = _cells(table, "tbody tr")
    names = _names(head_rows)
    if _moves_finding(names, head_rows):
        for row in head_rows + body_rows:
            _move_finding(row, names)
        names = _names(head_rows)

    # An index with a name, or below several heads, says something and stays.
    has_unnamed_index = len(head_rows) == 1 and names[:1] == [""]
    if has_unnamed_index and _are_numbered(body_rows):
        for row in head_rows + body_rows:
            row.pop(0).decompose()

    for row in head_rows:
        for cell in row:
            _keep_in_view(cell, cell.get_text(strip=True))
            _write_cell(cell, "")
    for row in body_rows:
        # Columns are matched from the right: a cell at the left may span rows.
        names_from_right = itertools.chain(reversed(names), itertools.repeat(""))
        for cell, name in zip(reversed(row), names_from_right, strict=False):
            _keep_in_view(cell, name)
            if name not in _EXACT:
                _write_cell(cell, name)


def _names(head_rows: list[list[Tag]]) -> list[str]:
    """List the texts in the first row of heads, or no text without heads."""
    return [cell.get_text(strip=True) for cell in head_rows[0]] if head_rows else []


def _moves_finding(names: list[str], head_rows: list[list[Tag]]) -> bool:
    """Tell whether the finding in a table stands apart from the interval of its estimate."""
    if "finding" not in names or "high" not in names:
        return False
    if any(cell.has_attr("colspan") for row in head_rows for cell in row):
        return False
    return names.index("finding") > names.index("high") + 1


def _move_finding(row: list[Tag], names: list[str]) -> None:
    """Move the finding of a row next to the interval of its estimate."""
    # Columns are counted from the right: a cell at the left may span rows.
    finding_cell = row.pop(names.index("finding") - len(names))
    without_finding = [name for name in names if name != "finding"]
    high = without_finding.index("high") - len(without_finding)
    high_cell = row[high]

    high_cell.insert_after(finding_cell)
    row.insert(row.index(high_cell) + 1, finding_cell)


def _keep_in_view(cell: Tag, column: str) -> None:
    """Mark a cell of a column that stays in view where its table is wider than the page."""
    if column in _KEPT_IN_VIEW:
        cell["class"] = "verdict"


def _cells(table: Tag, rows: str) -> list[list[Tag]]:
    """List the cells of each row that a selector names."""
    return [row.find_all(["th", "td"]) for row in table.select(rows)]


def _are_numbered(rows: list[list[Tag]]) -> bool:
    """Tell whether the first cells of rows are heads that count them from 0."""
    for number, row in enumerate(rows):
        if not row or row[0].name != "th":
            return False
        if row[0].get_text(strip=True) != str(number):
            return False
    return True


def _write_cell(cell: Tag, column: str) -> None:
    """Format the text of a cell for readers, except in a cell with tags inside."""
    if cell.string is None or cell.contents[:1] != [cell.string]:
        return

    text = cell.string.strip()
    is_name = column == "model" and text not in _WORDS
    # A name keeps its underscores.
    text = models.label(text) if is_name else format_cell(text)
    is_p = re.match(r"p\b|p_", column)
    # No p is 0: one that is rounded to it is below its last digit.
    if is_p and re.fullmatch(r"0\.0+", text):
        text = f"<{text[:-1]}1"
    cell.string = text


def format_cell(text: str) -> str:
    """Format a cell for readers: rounded numbers, yes or no, labels.

    Parameters
    ----------
    text : str
        The text of a table's cell.

    Returns
    -------
    str
        A number with three significant digits, yes or no, the label of a model, or a name with
        blanks for underscores. Any other text is unchanged.
    """
    if re.fullmatch(r"[-+]?\d+\.\d+(e[-+]?\d+)?", text):
        # Zeros in front are no significant digits.
        digits = re.sub(r"e.*|\D", "", text).lstrip("0")
        return round_for_reader(float(text)) if len(digits) > 3 else text

    if re.fullmatch(r"[a-z]+[a-z0-9]*(_[a-z0-9]+)+", text):
        return text.replace("_", " ")

    if re.fullmatch(r"[\w./-]{3,60}", text):
        model = models.find(text)
        # A paper's name for a model, which `find` knows as well, stays as it is printed.
        if model and model.name == text:
            return model.label
    return _WORDS.get(text, text)


def round_for_reader(number: float) -> str:
    """Write a number with three significant digits.

    Parameters
    ----------
    number : float
        Any number.

    Returns
    -------
    str
        Whole from 100 on, with an exponent below 0.001, without zeros at the end.
    """
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1e}" if 0 < abs(number) < 0.001 else f"{number:.3g}"


def _boxed(rendered: str) -> str:
    """Put tables into boxes of their own, and give their cells a class for the style."""
    rendered = rendered.replace("<table", '<div class="scroll"><table')
    rendered = rendered.replace("</table>", "</table></div>")
    for name, pattern in _CLASSES.items():
        rendered = pattern.sub(rf'<\1 class="{name}"\2>', rendered)
    return rendered


def text_of_html(rendered: str) -> str:
    """Return the text of clean HTML.

    Parameters
    ----------
    rendered : str
        Clean HTML.

    Returns
    -------
    str
        One line without tags and formulas.
    """
    text = re.sub(f"{_MARKED}|<[^>]*>", "", rendered)
    return " ".join(html.unescape(text).split())


def describe(rendered: str) -> str:
    """Describe a picture by the prose above the picture.

    Parameters
    ----------
    rendered : str
        Clean HTML of the prose.

    Returns
    -------
    str
        The first sentence of the last caption (a paragraph that begins in bold), or of the last
        heading, or of the prose. At most 160 characters or so.
    """
    text = text_of_html(rendered)
    captions = re.findall(r"<p><strong>.*?</p>", rendered, re.S)
    heads = re.findall(r"<h[1-6]>.*?</h[1-6]>", rendered, re.S)
    if captions:
        text = text_of_html(captions[-1])
    elif heads:
        text = text_of_html(heads[-1])

    # This takes a sentence of some length, or else as many whole words as fit.
    beginning = re.match(r".{30,160}?[.:?!](?= |$)|.{1,160}(?= |$)", text)
    short = beginning[0] if beginning else text[:160]
    return short or "Figure"


def without_links(rendered: str) -> str:
    """Replace links by their texts.

    Parameters
    ----------
    rendered : str
        Clean HTML.

    Returns
    -------
    str
        The same without the tags of links.
    """
    return re.sub(r"</?a\b[^>]*>", "", rendered)
