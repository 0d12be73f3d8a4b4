"""Prose and outputs of a notebook as HTML that is safe to show, whatever a model wrote.

All goes through bleach after it is rendered (nbconvert's SanitizeHTML would clean markdown before,
and a link to a script pass); characters that hide or turn text become visible ones.
"""

import html
import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from xml.etree import ElementTree

import bleach
from bs4 import BeautifulSoup, Tag
from latex2mathml.converter import convert
from nbconvert.filters import strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from ingroup import models

_HEADS = [f"h{level}" for level in range(1, 7)]
_TAGS = {"table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", *_HEADS}
_TAGS |= {"p", "div", "span", "br", "hr", "b", "strong", "i", "em", "code", "pre", "kbd", "sub"}
_TAGS |= {"sup", "del", "small", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "a", "mark"}
_CELLS = {cell: ["colspan", "rowspan", "scope"] for cell in ("th", "td")}
_PROSE = {tag: ["class"] for tag in ("span", "div")} | {tag: ["id"] for tag in _HEADS}


def _inside(tag: str, name: str, value: str) -> bool:
    """A link of an output may lead to a page or a place in one, nowhere else."""
    return name == "href" and re.fullmatch(r"[\w./%,-]{0,200}(#[^\s]{0,200})?", value) is not None


# Other tags stay visible, as text.
_clean_output = bleach.Cleaner(_TAGS, _CELLS | {"a": _inside}).clean
_clean_prose = bleach.Cleaner(_TAGS, _CELLS | _PROSE | {"a": ["href", "title"]}).clean

# pandas puts a style block before its tables; ours are styled by the page.
_PANDAS_STYLE = re.compile(r'\A\s*(<div>\s*)?<style(?: scoped| type="text/css")?>.*?</style>', re.S)
# Control characters get their picture, those that turn the direction of text their number.
_HIDDEN = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_TURNS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_HIDDEN |= {code: f"[U+{code:04X}]" for code in _TURNS}

_NUMBER = (
    r"[-+\u2212]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*(?:%|\*{1,3})?|nan|NaN|-?inf|<NA>|None"
)
_CLASSES = (  # of a table's cells, for the style; those of an earlier line are left alone
    ("n", re.compile(rf"<(td)>(?=\s*(?:{_NUMBER})\s*</td>)")),
    ("t", re.compile(r"<(t[dh][^>]*)>(?=[^<]{60})")),  # a text, which needs width to be read
    ("m", re.compile(r"<(td[^>]*)>(?=[^<]{25,59}</t)")),
    ("s", re.compile(r"<(t[dh](?! class)[^>]*)>(?=[^<]{1,24}</t)")),  # a name, kept on one line
)

_WORDS = {"True": "yes", "False": "no", **dict.fromkeys(("NaN", "nan", "None", "<NA>"), "\u2013")}
# Columns whose cells stay as they are.
_EXACT = {"printed", "recomputed", "tolerance", "reply", "prompt", "text", "figure"}


class Heading(NamedTuple):
    """A heading of a page: its level (1 to 6), its text and the anchor that leads to it."""

    level: int
    text: str
    anchor: str


def visible(text: str) -> str:
    """What a cell printed, in which every character shows: ``\\x1b`` as ``␛``, no colour codes."""
    return strip_ansi(text).replace("\r\n", "\n").strip("\r\n").translate(_HIDDEN)


def formula(latex: str, display: bool = False) -> str:
    """A formula (without dollars) as MathML, or as its own text where that fails."""
    try:
        mathml = convert(latex, display="block" if display else "inline")
        texts = [node.text or "" for node in ElementTree.fromstring(mathml).iter()]
    except Exception:  # a formula may be anything; the converter raises a dozen kinds of errors
        texts = ["\\"]
    if any(text.startswith("\\") for text in texts):
        dollars = "$$" if display else "$"
        return f"<code>{html.escape(dollars + latex + dollars)}</code>"
    return mathml


class _Renderer(IPythonRenderer):
    """Markdown with anchors as Jupyter makes them, and marks where formulas will stand."""

    def __init__(self, taken: set[str]):
        super().__init__(escape=False, exclude_anchor_links=True)
        self.taken, self.formulas = taken, []

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        name = anchor = re.sub(r"\s+", "-", plain(text))
        numbers = itertools.count(2)
        while anchor in self.taken:
            anchor = f"{name}-{next(numbers)}"
        self.taken.add(anchor)
        return f'<h{level} id="{html.escape(anchor)}">{text}</h{level}>\n'

    def inline_math(self, body: str, display: bool = False) -> str:
        self.formulas.append(formula(body, display))
        return f"\ue000{len(self.formulas) - 1}\ue001"

    def block_math(self, body: str) -> str:
        return self.inline_math(body, display=True)


def prose(source: str, taken: set[str]) -> str:
    """Markdown of a cell as clean HTML; its anchors are added to those ``taken`` on the page."""
    renderer = _Renderer(taken)
    source = re.sub("[\ue000\ue001]", "", source)
    rendered = re.sub(  # a formula keeps the point or comma behind it on its line
        "\ue000(\\d+)\ue001([.,;:)]*)",
        lambda mark: f'<span class="s">{renderer.formulas[int(mark[1])]}{mark[2]}</span>',
        _clean_prose(MarkdownWithMath(renderer=renderer).render(source)),
    )
    return _boxed(rendered)


def output_html(source: str) -> str:
    """HTML that a cell displayed, cleaned: tables and text stay, every other tag becomes text.

    Of a table the numbering of rows goes, and its cells are written as people do (:func:`said`).
    """
    clean = _clean_output(_PANDAS_STYLE.sub(r"\1", source).translate(_HIDDEN))
    soup = BeautifulSoup(clean, "html.parser")
    for table in soup.find_all("table"):
        _tidy(table)
    return _boxed(soup.decode(formatter="minimal"))


def _tidy(table: Tag) -> None:
    """Without the numbers that pandas gives to rows; cells as people write them."""
    heads = [row.find_all(["th", "td"]) for row in table.select("thead tr")]
    below = [row.find_all(["th", "td"]) for row in table.select("tbody tr")]
    names = [cell.get_text(strip=True) for cell in heads[0]] if heads else []
    first = [row[0].get_text(strip=True) for row in below if row[0].name == "th"]
    if len(heads) == 1 and names[0] == "" and first == [*map(str, range(len(below)))]:
        for row in (*heads, *below):
            row.pop(0).decompose()
    for row in (*heads, *below):  # from the right: names at the left may span rows
        for cell, name in itertools.zip_longest(row[::-1], names[: -len(row) - 1 : -1]):
            if cell.contents[:1] == [cell.string] and (name not in _EXACT or row in heads):
                text = said(cell.string.strip())
                small = re.match(r"p\b|p_", name or "") and re.fullmatch(r"0\.0+", text)
                cell.string = f"<{text[:-1]}1" if small else text  # no p is 0


def said(text: str) -> str:
    """A cell as people write it: three digits of a number, yes and no, a model's name, words."""
    if re.fullmatch(r"[-+]?\d+\.\d+(e[-+]?\d+)?", text):
        return rounded(float(text)) if len(re.sub(r"e.*|\D", "", text).lstrip("0")) > 3 else text
    if re.fullmatch(r"[a-z]+[a-z0-9]*(_[a-z0-9]+)+", text):
        return text.replace("_", " ")
    known = models.find(text) if re.fullmatch(r"[\w./-]{3,60}", text) else None
    return known.label if known and known.name == text else _WORDS.get(text, text)


def rounded(number: float) -> str:
    """Three significant digits of a number, whole from 100 on, without zeros at the end."""
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1e}" if 0 < abs(number) < 0.001 else f"{number:.3g}"


def _boxed(rendered: str) -> str:
    """Tables in a box of their own; numbers and long texts in them marked, for the style."""
    rendered = rendered.replace("<table", '<div class="scroll"><table')
    rendered = rendered.replace("</table>", "</table></div>")
    for kind, cells in _CLASSES:
        rendered = cells.sub(rf'<\1 class="{kind}">', rendered)
    return rendered


def headings(rendered: str) -> list[Heading]:
    """The headings in a page's prose, in order."""
    found = re.findall(r'<h([1-6]) id="([^"]*)">(.*?)</h\1>', rendered, re.S)
    return [Heading(int(h), plain(text), html.unescape(anchor)) for h, anchor, text in found]


def plain(rendered: str) -> str:
    """The text of clean HTML, without tags and formulas, on one line."""
    rendered = re.sub(r"\ue000\d+\ue001|<[^>]*>", "", rendered)
    return " ".join(html.unescape(rendered).split())


def describe(rendered: str) -> str:
    """What a picture below this prose shows, by its last caption (bold), heading or words."""
    captions = re.findall(r"<p><strong>.*?</p>", rendered, re.S)
    heads = headings(rendered)
    text = plain(captions[-1]) if captions else heads[-1].text if heads else plain(rendered)
    short = re.match(r".{30,160}?[.:?!](?= |$)|.{1,160}(?= |$)", text)
    return (short[0] if short else text[:160]) or "Figure"


def relink(rendered: str, link: Callable[[str], str | None]) -> str:
    """Clean HTML with the addresses of links rewritten; None makes a link plain text."""

    def linked(found: re.Match) -> str:
        address = link(html.unescape(found[2]))
        return found[1] + ("" if address is None else f' href="{html.escape(address)}"')

    return re.sub(r'(<a\b[^>]*?)\shref="([^"]*)"', linked, rendered)
