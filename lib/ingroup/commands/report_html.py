"""Prose and outputs of a notebook as HTML that is safe to show, whatever a model wrote.

What a notebook holds is text by strangers. So every output of HTML goes through bleach with a
short list of tags, and characters that hide or turn text become visible ones.
"""

import html
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

import bleach
from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

_TABLE = {"table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption"}
_TEXT = {"p", "div", "span", "br", "hr", "b", "strong", "i", "em", "code", "pre", "kbd", "sub"}
_TEXT |= {"sup", "del", "small", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "a"}
_TEXT |= {f"h{level}" for level in range(1, 7)}
_PROSE = _TEXT | _TABLE | {"img", "details", "summary"}
_CELL = ["colspan", "rowspan", "scope"]


def _inside(tag: str, name: str, value: str) -> bool:
    """A link of an output may lead to a page or a place in one, nowhere else."""
    return name == "href" and re.fullmatch(r"[\w./%,-]{0,200}(#[^\s]{0,200})?", value) is not None


def _link(tag: str, name: str, value: str) -> bool:
    return name == "title" or (name == "href" and not value.strip().lower().startswith("data:"))


def _picture(tag: str, name: str, value: str) -> bool:
    return name in ("alt", "title") or (
        name == "src" and re.match(r"data:(?!image/)", value.strip(), re.I) is None
    )


# Tags that are on neither list stay visible, as text.
_clean_output = bleach.Cleaner(
    tags=_TEXT | _TABLE, attributes={"th": _CELL, "td": _CELL, "a": _inside}
)
_clean_prose = bleach.Cleaner(
    tags=_PROSE,
    attributes={
        "th": _CELL,
        "td": _CELL,
        "a": _link,
        "img": _picture,
        "span": ["class"],
        "div": ["class"],
        **{f"h{level}": ["id"] for level in range(1, 7)},
    },
    protocols=["http", "https", "mailto", "data"],
)

# pandas puts a style block before its tables; ours are styled by the page.
_PANDAS_STYLE = re.compile(r'\A\s*(<div>\s*)?<style(?: scoped| type="text/css")?>.*?</style>', re.S)
# Control characters get their picture, those that turn the direction of text their number.
_HIDDEN = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_TURNS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_HIDDEN |= {code: f"[U+{code:04X}]" for code in _TURNS}

_NUMBER = (
    r"[-+\u2212]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?\s*(?:%|\*{1,3})?|nan|NaN|-?inf|<NA>|None"
)
_NUMBER_CELL = re.compile(rf"<td>(?=\s*(?:{_NUMBER})\s*</td>)")
_LONG_CELL = re.compile(r"<(t[dh][^>]*)>(?=[^<]{60})")  # a text, which needs width to be read
_PHRASE_CELL = re.compile(r"<(td[^>]*)>(?=[^<]{25,59}</t)")
# A name, which is not broken over lines.
_SHORT_CELL = re.compile(r"<(t[dh](?! class)[^>]*)>(?=[^<]{1,24}</t)")


class Heading(NamedTuple):
    """A heading of a page: its level (1 to 6), its text and the anchor that leads to it."""

    level: int
    text: str
    anchor: str


def visible(text: str) -> str:
    """Text in which every character shows: no colour codes, no controls, no turned direction.

    Parameters
    ----------
    text : str
        Anything, e.g. what a model wrote or a cell printed.

    Returns
    -------
    str
        The same text; ``\\x1b`` reads ``␛``, a right-to-left override ``[U+202E]``.
    """
    return text.translate(_HIDDEN)


def formula(latex: str, display: bool = False) -> str:
    """A formula as MathML, which browsers draw without a script; as its own text where that fails.

    Parameters
    ----------
    latex : str
        Without the dollar signs.
    display : bool
        On a line of its own.

    Returns
    -------
    str
        HTML.
    """
    try:
        mathml = convert(latex, display="block" if display else "inline")
        tree = ElementTree.fromstring(mathml)
    except Exception:  # a formula may be anything; the converter raises a dozen kinds of errors
        tree = None
    if tree is None or any((node.text or "").startswith("\\") for node in tree.iter()):
        dollars = "$$" if display else "$"
        return f"<code>{html.escape(dollars + latex + dollars)}</code>"
    return mathml


class _Renderer(IPythonRenderer):
    """Markdown with anchors as Jupyter makes them, and marks where formulas will stand."""

    def __init__(self, taken: set[str], formulas: list[str], **options: Any):
        super().__init__(escape=False, exclude_anchor_links=True, **options)
        self.taken, self.formulas = taken, formulas

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        name = anchor = re.sub(r"\s+", "-", plain(text))
        number = 1
        while anchor in self.taken:
            number += 1
            anchor = f"{name}-{number}"
        self.taken.add(anchor)
        return f'<h{level} id="{html.escape(anchor)}">{text}</h{level}>\n'

    def inline_math(self, body: str) -> str:
        return self._keep(formula(body))

    def block_math(self, body: str) -> str:
        return self._keep(formula(body, display=True))

    def latex_environment(self, name: str, body: str) -> str:
        return self._keep(formula(f"\\begin{{{name}}}{body}\\end{{{name}}}", display=True))

    def _keep(self, mathml: str) -> str:
        self.formulas.append(mathml)
        return f"\ue000{len(self.formulas) - 1}\ue001"


def prose(source: str, taken: set[str], attachments: dict | None = None) -> str:
    """Markdown as clean HTML; tables in boxes that scroll, formulas as MathML.

    Parameters
    ----------
    source : str
        Markdown of one cell.
    taken : set of str
        Anchors of the page so far; those of this cell are added.
    attachments : dict, optional
        Pictures that the cell carries.

    Returns
    -------
    str
        HTML, safe to show.
    """
    formulas: list[str] = []
    renderer = _Renderer(taken, formulas, attachments=attachments or {})
    source = re.sub("[\ue000\ue001]", "", source)
    rendered = _clean_prose.clean(MarkdownWithMath(renderer=renderer).render(source))
    rendered = re.sub(  # a formula keeps the point or comma behind it on its line
        "\ue000(\\d+)\ue001([.,;:)]*)",
        lambda mark: f'<span class="s">{formulas[int(mark[1])]}{mark[2]}</span>',
        rendered,
    )
    return _boxed(rendered)


def headings(rendered: str) -> list[Heading]:
    """The headings in a page's prose, in order."""
    found = re.findall(r'<h([1-6]) id="([^"]*)">(.*?)</h\1>', rendered, re.S)
    return [Heading(int(h), plain(text), html.unescape(anchor)) for h, anchor, text in found]


def output_html(source: str) -> str:
    """HTML that a cell displayed, cleaned: tables and text stay, every other tag becomes text."""
    return _boxed(_clean_output.clean(_PANDAS_STYLE.sub(r"\1", source).translate(_HIDDEN)))


def _boxed(rendered: str) -> str:
    """Tables in a box of their own; numbers and long texts in them marked, for the style."""
    rendered = rendered.replace("<table", '<div class="scroll"><table')
    rendered = rendered.replace("</table>", "</table></div>")
    rendered = _NUMBER_CELL.sub('<td class="n">', rendered)
    for kind, cells in (("t", _LONG_CELL), ("m", _PHRASE_CELL), ("s", _SHORT_CELL)):
        rendered = cells.sub(rf'<\1 class="{kind}">', rendered)
    return rendered


def plain(rendered: str) -> str:
    """The text of clean HTML, without tags and formulas, on one line."""
    rendered = re.sub(r"\ue000\d+\ue001", "", rendered)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", rendered)).split())


def describe(rendered: str) -> str:
    """What a picture below this prose shows: its caption, or the heading above it.

    Parameters
    ----------
    rendered : str
        HTML of the markdown cell before the picture.

    Returns
    -------
    str
        The last paragraph that begins in bold, as captions do, up to two sentences of it; without
        one the last heading; without that the first words.
    """
    captions = re.findall(r"<p><strong>.*?</p>", rendered, re.S)
    heads = headings(rendered)
    text = plain(captions[-1]) if captions else heads[-1].text if heads else plain(rendered)
    short = re.match(r".{30,160}?[.:?!](?= |$)|.{1,160}(?= |$)", text)
    return (short[0] if short else text[:160]) or "Figure"


def relink(
    rendered: str, link: Callable[[str], str | None], picture: Callable[[str], str | None]
) -> str:
    """Rewrite the addresses of links and pictures.

    Parameters
    ----------
    rendered : str
        Clean HTML.
    link, picture : callable
        From an address in the notebook to that in the report; None where it leads nowhere: the
        link then becomes plain text, and the picture its alternative text.
    """

    def linked(found: re.Match) -> str:
        address = link(html.unescape(found[2]))
        return found[1] + ("" if address is None else f' href="{html.escape(address)}"')

    def pictured(found: re.Match) -> str:
        address = picture(html.unescape(found[2]))
        alt = re.search(r'\balt="([^"]*)"', found[0])
        if address is None:
            return alt[1] if alt else ""
        return f'{found[1]} src="{html.escape(address)}"{found[3]}'

    rendered = re.sub(r'(<a\b[^>]*?)\shref="([^"]*)"', linked, rendered)
    return re.sub(r'(<img\b[^>]*?)\ssrc="([^"]*)"([^>]*>)', pictured, rendered)


def section(rendered: Sequence[str], heading: str) -> str | None:
    """The first paragraph below a heading, as HTML; None where there is no such heading."""
    found = re.search(
        rf"<h[1-6] id=\"[^\"]*\">{re.escape(heading)}</h[1-6]>\s*(<p>.*?</p>)",
        "".join(rendered),
        re.S,
    )
    return found[1] if found else None
