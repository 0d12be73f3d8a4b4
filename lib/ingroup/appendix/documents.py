"""An appendix in LaTeX and in HTML: two templates over one list of blocks.

Every text is escaped when it is written, by `ingroup.latex.escape` for LaTeX and by Jinja for HTML.
Only the output of this module passes unchanged, as `Latex` or ``Markup``.
"""

import html
import math
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import mistune
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from ingroup import latex
from ingroup.appendix.content import Document, Table
from ingroup.commands import report_html

FOLDER = Path(__file__).with_name("templates")

# A line of a table has room for so many signs, in the small print of the appendix's tables.
LINE_LENGTH = 112
# Columns of no more signs keep their width: the first number of these that leaves room for others.
SHORT_COLUMN_LENGTHS = (19, 15, 11, 7, 0)
MIN_SHARED_LENGTH = 12  # signs of a column that shares
NUMBER = re.compile(r"[-+<]?[\d.,]+(e[-+]?\d+)?( %)?|–|")

# Signs beyond LaTeX's default fonts that tables and notebooks of this project use.
MATHEMATICS = {
    "α": r"\alpha",
    "β": r"\beta",
    "δ": r"\delta",
    "κ": r"\kappa",
    "λ": r"\lambda",
    "μ": r"\mu",
    "ρ": r"\rho",
    "σ": r"\sigma",
    "χ": r"\chi",
    "Δ": r"\Delta",
    "−": "-",
    "≤": r"\le",
    "≥": r"\ge",
    "≠": r"\ne",
    "≈": r"\approx",
    "→": r"\rightarrow",
    "←": r"\leftarrow",
    "↑": r"\uparrow",
    "↓": r"\downarrow",
    "√": r"\surd",
    "∞": r"\infty",
    "²": "^2",
}


class Latex(str):
    """LaTeX that is ready to be printed."""

    __slots__ = ()


@dataclass(frozen=True)
class FittedTable:
    """A table with columns that fit on the page.

    Attributes
    ----------
    columns : Latex
        The kinds of the columns, for ``longtable``.
    width : int
        How many columns it has.
    head : list of str
        The heads.
    rows : list of list of str
        The texts, with places to break in long words.
    """

    columns: Latex
    width: int
    head: list[str]
    rows: list[list[str]]


# ---- LaTeX ---------------------------------------------------------------------------------------


def to_latex(document: Document) -> str:
    """Write an appendix as a standalone LaTeX document, for pdflatex.

    Parameters
    ----------
    document : Document
        The appendix, whose figures are named by their addresses.

    Returns
    -------
    str
        The document.
    """
    # Jinja's usual signs, {{ and {%, are common in LaTeX, so others mark its statements.
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        # Jinja calls this for all that the template prints, so nothing goes unescaped.
        finalize=escape_for_latex,
    )

    environment.filters |= {
        "fitted": fit_columns,
        "floats": floats_in_place,
        "markdown": markdown_to_latex,
        "caption": _caption_to_latex,
        # These signs have no meaning for LaTeX in the key of a reference.
        "key": lambda text: Latex(re.sub(r"[^A-Za-z0-9_./+=,-]", "-", text)),
    }
    return environment.get_template("appendix.tex.j2").render(document=document)


def escape_for_latex(value: Any) -> str:
    """Escape a text for LaTeX, with the signs of mathematics that its fonts lack.

    Parameters
    ----------
    value : object
        A value that a template prints. `Latex` is unchanged.

    Returns
    -------
    Latex
        The text on one line.
    """
    if isinstance(value, Latex):
        return value

    written = []
    # The group keeps the signs themselves among the parts.
    for part in re.split(f"([{''.join(MATHEMATICS)}])", str(value)):
        sign = MATHEMATICS.get(part)
        written.append(f"${sign}$" if sign else _with_blanks(part))
    return Latex("".join(written))


def _with_blanks(text: str) -> str:
    """Escape a part of a text for LaTeX, and keep a blank at its ends."""
    # `latex.escape` joins the words of a text, and so drops blanks at its ends.
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() and text.strip() else ""
    return f"{before}{latex.escape(text)}{after}"


def fit_columns(table: Table) -> FittedTable:
    """Choose columns for a table so that it fits on the page.

    Short columns keep their width. If the longest texts are too wide together, the longer columns
    share the room that is left, by the square roots of their longest texts.

    Parameters
    ----------
    table : Table
        A table of texts.

    Returns
    -------
    Fitted
        Its columns, head and rows.
    """
    texts = table.rows.astype(str)
    lengths = {}
    for name in texts:
        longest = texts[name].str.len().max() if len(texts) else 0
        lengths[name] = max(int(longest), len(name))

    # Two letters are the gap between two columns.
    gaps = 2 * len(lengths)
    is_narrow = sum(lengths.values()) + gaps <= LINE_LENGTH
    rooms = {} if is_narrow else _share_room(lengths, LINE_LENGTH - gaps)

    kinds = []
    for name in texts:
        if name in rooms:
            # LaTeX breaks no first word of a cell without \hspace{0pt} before it.
            share = rooms[name] / LINE_LENGTH
            kinds.append(rf">{{\RaggedRight\hspace{{0pt}}}}p{{{share:.3f}\linewidth}}")
        # Numbers stand on the right, so that their digits are below each other.
        elif texts[name].map(lambda text: bool(NUMBER.fullmatch(text))).all():
            kinds.append("r")
        else:
            kinds.append("l")

    head = []
    for name in texts:
        # One sign less leaves room for letters that are wider than usual.
        room = int(rooms.get(name, LINE_LENGTH)) - 1
        head.append(_mark_breaks(name, room))
        if name in rooms:
            texts[name] = texts[name].map(partial(_mark_breaks, room=room))
    return FittedTable(Latex("".join(kinds)), len(kinds), head, texts.to_numpy().tolist())


def _share_room(lengths: dict[str, int], room: int) -> dict[str, float]:
    """Share the room of a line between the columns of longer texts, as signs per column."""
    # Ever shorter columns have to share, until each that does has some room.
    for short in SHORT_COLUMN_LENGTHS:
        longer = {name: length for name, length in lengths.items() if length > short}
        left: float = room - sum(length for length in lengths.values() if length <= short)
        if longer and left >= MIN_SHARED_LENGTH * len(longer):
            break

    # A column that needs less than its share leaves the rest to the others.
    rooms = _rooms_by_root(longer, left)
    fitting = _fitting_columns(longer, rooms)
    while fitting:
        for name in fitting:
            left -= longer.pop(name)
        rooms = _rooms_by_root(longer, left)
        fitting = _fitting_columns(longer, rooms)
    return rooms


def _fitting_columns(lengths: dict[str, int], rooms: dict[str, float]) -> list[str]:
    """List the columns whose longest text fits into their room."""
    return [name for name, length in lengths.items() if rooms[name] >= length]


def _rooms_by_root(lengths: dict[str, int], room: float) -> dict[str, float]:
    """Share room between columns by the square roots of their lengths."""
    weights = {name: math.sqrt(length) for name, length in lengths.items()}
    whole = sum(weights.values())
    return {name: room * weight / whole for name, weight in weights.items()}


def _mark_breaks(text: str, room: int) -> str:
    """Mark the places where a text may break, also within a word longer than its column."""
    # A zero-width space lets a line break behind these signs, but not behind a number's comma.
    marked = re.sub(r"(?<=\w)([-/_+;@]|,(?!\d))(?=\S)", "\\1\u200b", text)

    written = []
    width = 0.0
    for letter in marked:
        if letter.isspace() or letter == "\u200b":
            width = 0.0
        else:
            width += _width(letter)
            if width > room:
                written.append("\u200b")
                width = _width(letter)
        written.append(letter)
    return "".join(written)


def _width(letter: str) -> float:
    """Estimate the printed width of a letter, in letters of the usual width."""
    if not letter.isascii() and letter not in latex.LETTERS + latex.SIGNS:
        # It is printed as its number, e.g. [U+4E2D].
        return 9.0
    if letter in "MW@%\\":
        return 2.2
    return 1.5 if letter.isupper() else 1.0


def floats_in_place(text: str) -> Latex:
    """Fit floats of `ingroup.latex` into a page of one column, in their places within the text.

    Parameters
    ----------
    text : str
        Floats in LaTeX.

    Returns
    -------
    Latex
        The same floats, one column wide.
    """
    # Without [H], LaTeX would move most floats to the end of the appendix.
    one_column = text.replace("{table*}", "{table}")
    return Latex(one_column.replace("{table}[tp]", "{table}[H]"))


class LatexRenderer(mistune.BaseRenderer):
    """Renderer of this repository's markdown as LaTeX, in which a link becomes its text."""

    NAME = "latex"

    def render_token(self, token: dict[str, Any], state: Any) -> str:
        """Write one token of the syntax tree, and all tokens below it.

        Parameters
        ----------
        token : dict
            A token of mistune, with its ``type``.
        state : object
            The state of mistune's parser.

        Returns
        -------
        str
            The text in LaTeX. A kind of token without a rule gives the text inside.
        """
        kind = token["type"]
        raw = token.get("raw", "")
        inside = ""
        if "children" in token:
            inside = self.render_tokens(token["children"], state)

        if kind == "list":
            name = "enumerate" if token["attrs"]["ordered"] else "itemize"
            return f"\\begin{{{name}}}\n{inside}\\end{{{name}}}\n"
        if kind in LATEX_BY_TOKEN:
            return LATEX_BY_TOKEN[kind].replace("@", inside or escape_for_latex(raw))
        if kind == "inline_math":
            return f"${raw}$"
        if kind == "block_math":
            return f"\\[{raw}\\]\n"
        return inside or escape_for_latex(raw)


# How kinds of tokens are written; @ is what they hold.
LATEX_BY_TOKEN = {
    "paragraph": "@\n\n",
    "block_text": "@",
    "list_item": "\\item @\n",
    "strong": r"\textbf{@}",
    "emphasis": r"\emph{@}",
    "codespan": r"\texttt{@}",
    "heading": "\\paragraph{@}\n",
    "block_code": "\\begin{quote}\\texttt{@}\\end{quote}\n",
    "block_quote": "\\begin{quote}@\\end{quote}\n",
    "linebreak": "\\\\\n",
    "softbreak": " ",
    "blank_line": "",
    "thematic_break": "",
}


def markdown_to_latex(source: str) -> Latex:
    """Write markdown of this repository as LaTeX.

    Parameters
    ----------
    source : str
        Markdown, with formulas between dollar signs.

    Returns
    -------
    Latex
        The text in LaTeX, escaped.
    """
    written = mistune.create_markdown(renderer=LatexRenderer(), plugins=["math"])(source)
    return Latex(str(written))


def _caption_to_latex(source: str) -> Latex:
    """Write markdown as a caption in LaTeX, on one line."""
    # A blank line would end the argument of LaTeX's caption.
    written = markdown_to_latex(" ".join(source.split()))
    return Latex(" ".join(written.split()))


# ---- HTML ----------------------------------------------------------------------------------------


def to_html(document: Document) -> str:
    """Write an appendix as an HTML page that needs no network.

    The figures of the page lie beside it.

    Parameters
    ----------
    document : Document
        The appendix.

    Returns
    -------
    str
        The page.
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    environment.filters |= {
        "layouts": layouts_to_html,
        "markdown": _markdown_to_html,
        "visible": report_html.visible,
    }
    style = Markup((FOLDER / "appendix.css").read_text("utf8"))
    page = environment.get_template("appendix.html.j2")
    return page.render(document=document, style=style)


def _markdown_to_html(source: str) -> Markup:
    """Write markdown as clean HTML in which each link becomes its text."""
    # The links lead into the repository, which does not come with the page.
    return Markup(report_html.without_links(report_html.prose_html(source)))


def layouts_to_html(text: str) -> Markup:
    """Write the floats of `ingroup.latex` as tables of HTML.

    Parameters
    ----------
    text : str
        Floats in LaTeX.

    Returns
    -------
    Markup
        A caption and a table for each float.
    """
    tables = []
    # `ingroup.latex` alone writes these floats, so patterns suffice to read them.
    for float_text in re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", text, re.DOTALL):
        caption = re.search(r"\\caption\{(.*)\}\n\\label", float_text, re.DOTALL)
        caption_html = _cell_html(caption[1]) if caption else ""

        # Models may stand in tiers, one below the other.
        rows = []
        for tier in re.findall(r"\\toprule\n(.*?)\\bottomrule", float_text, re.DOTALL):
            rows += _rows_html(tier)
        body = "\n".join(rows)
        tables.append(
            f'<p class="caption">{caption_html}</p>\n'
            f'<div class="scroll"><table class="layout">\n{body}\n</table></div>'
        )
    return Markup("\n".join(tables))


def _rows_html(tabular: str) -> list[str]:
    """Write the rows of a tabular as HTML. Rows above the first midrule are heads."""
    head, _, body = tabular.partition("\\midrule\n")
    return [*_tagged_rows(head, "th"), *_tagged_rows(body, "td")]


def _tagged_rows(lines: str, tag: str) -> list[str]:
    """Write the rows of a tabular as HTML with a tag for their cells, and leave out rules."""
    rows = []
    for line in lines.splitlines():
        if not line.endswith(r" \\"):
            continue

        cells = []
        # An escaped ampersand is a sign of the text, and no border of a cell.
        for cell in re.split(r"(?<!\\) & ", line.removesuffix(r" \\")):
            cells.append(_tagged_cell(cell.strip(), tag))
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return rows


def _tagged_cell(cell: str, tag: str) -> str:
    """Write a cell as HTML with its tag, its span and its colour."""
    attributes = ""
    spanned = re.fullmatch(r"\\multicolumn\{(\d+)\}\{[clr]\}\{(.*)\}", cell)
    if spanned:
        attributes = f' colspan="{spanned[1]}"'
        cell = spanned[2]

    coloured = re.match(r"\\cellcolor\{(\w+)!(\d+)\}", cell)
    if coloured:
        attributes += f' class="{coloured[1]}{coloured[2]}"'
        cell = cell[coloured.end() :]
    return f"<{tag}{attributes}>{_cell_html(cell)}</{tag}>"


# The commands and escapes that ingroup.latex writes, and the text that each prints.
PRINTED = {written: chr(code) for code, written in latex.ESCAPES.items()}
PRINTED |= {latex.MISSING: "–", "{}": "", r"\newline": "\n"}
COMMAND = re.compile(
    "|".join([r"\$(?:[^$\\]|\\.)*\$", *map(re.escape, sorted(PRINTED, key=len, reverse=True))])
)


def _cell_html(text: str) -> str:
    """Write the LaTeX of a cell or a caption as HTML, with formulas as MathML."""
    written = []
    end = 0
    for command in COMMAND.finditer(text):
        written.append(html.escape(text[end : command.start()]))
        written.append(_command_html(command[0]))
        end = command.end()

    written.append(html.escape(text[end:]))
    return "".join(written)


def _command_html(command: str) -> str:
    """Write a formula, an escape or a command of LaTeX as HTML."""
    if len(command) > 2 and command.startswith("$"):
        formula = command.strip("$")
        is_number = re.fullmatch(r"[-+]?[\d.]+", formula)
        # A number needs no MathML, only a true minus sign.
        return formula.replace("-", "−") if is_number else report_html.formula(formula)
    printed = PRINTED[command]
    # A long word may be broken at this place.
    if printed == "\u200b":
        return "<wbr>"
    return "<br>" if printed == "\n" else html.escape(printed)
