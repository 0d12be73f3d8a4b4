"""Executed notebooks and guides as sources of the book, made harmless for browsers.

The replies of a model are hostile text. Sphinx gets pictures unchanged, HTML cleaned, and every
other output as text.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from os.path import normpath
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import nbformat
from docutils.nodes import make_id
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from ingroup import models, notebook_cells, paths
from ingroup.commands import report_html
from ingroup.commands.run_parameters import folder_of
from ingroup.notebook import parameters_of_run

TEMPLATES = Path(__file__).parent / "templates" / "report"
PNG = "image/png"
HTML = "text/html"
TEXT = "text/plain"
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}
# A link of markdown outside of code: its text, its address.
LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)")
# A heading of level 2, a link to a notebook, or the name of a table in a guide.
TABLE_OR_PLACE = re.compile(
    r"^## .*|\]\([^()\s]*?(?P<notebook>\w+)\.ipynb[^()\s]*\)|(?<!\[)`(?P<table>\w+)\.csv`",
    re.MULTILINE,
)
# A link of a clean output to a notebook: the notebook's name, its anchor, its text.
NOTEBOOK_LINK = re.compile(r'<a href="([\w%-]+)\.ipynb(#[^"]*)?">(.*?)</a>', re.DOTALL)


class Banner(NamedTuple):
    """Note on a page that says whether its models are real or calibrants.

    Attributes
    ----------
    kind : str
        ``"demonstration"``, ``"real"`` or ``"none"``.
    head, text : str
        The words in bold, which end in a colon, and the sentence behind them.
    """

    kind: str
    head: str
    text: str


class Page:
    """An executed notebook as a page of the book.

    Parameters
    ----------
    name : str
        The name of the notebook.
    run : str
        The run in which it was executed.

    Attributes
    ----------
    name, file, study, folder : str
        The notebook, the page's file, the name behind the notebook's number, and the folder of its
        tables and figures.
    notebook : NotebookNode
        The executed copy with clean cells.
    parameters : dict or None
        The parameters with which it ran, or None where they are not known.
    models : set of str
        The names of the models that its parameters name.
    prose : str
        The markdown of all its cells.
    title : str
        The first heading of level 1.
    ran, judged : str
        The first line of its summary, on the run, and the lines below, on its numbers.
    seconds : str or None
        How long it ran, in whole seconds.
    banner : Banner
        Its banner, set by the report.
    """

    banner: Banner

    def __init__(self, name: str, run: str = paths.DEFAULT_RUN):
        source = paths.executed(name, run)
        self.name = name
        self.file = f"{name}.html"
        self.study = name.partition("_")[2]
        self.folder = folder_of(name)

        self.notebook = nbformat.read(source, as_version=4)
        prose = [cell.source for cell in self.notebook.cells if cell.cell_type == "markdown"]
        self.prose = "\n\n".join(prose)
        titled = re.search(r"^# +(.+)$", self.prose, re.MULTILINE)
        self.title = re.sub(r"[*_`]{1,2}(\S.*?)[*_`]{1,2}", r"\1", titled[1]) if titled else name
        clean_notebook(self.notebook)

        self.parameters = parameters_of_run(name, run)
        self.models = set()
        for entry in (self.parameters or {}).get("MODELS", ()):
            model, _ = models.split_entry(entry)
            # Figures are named by the last part of a model's name or folder.
            self.models.add(Path(model).name)

        summary = source.with_suffix(".txt")
        text = summary.read_text("utf8").strip() if summary.exists() else ""
        self.ran, _, self.judged = text.partition("\n")
        duration = re.search(r": (\d+) s\b", self.ran)
        self.seconds = duration[1] if duration else None
        if not self.ran:
            self.ran = f"{summary.name} is missing: how long it took is not known."

    def has_heading(self, text: str) -> bool:
        """Tell whether the page has a heading.

        Parameters
        ----------
        text : str
            The heading, of any level.

        Returns
        -------
        bool
            True if a line of the prose is this heading.
        """
        return re.search(rf"^#+ +{re.escape(text)}$", self.prose, re.MULTILINE) is not None

    def opening(self, heading: str) -> Markup | None:
        """Return the first paragraph below a heading.

        Parameters
        ----------
        heading : str
            The heading, of any level.

        Returns
        -------
        Markup or None
            Clean HTML without links, or None where the page has no such heading.
        """
        beginning = rf"^#+ +{re.escape(heading)}\n+(.+?)(?:\n\n|\Z)"
        paragraph = re.search(beginning, self.prose, re.MULTILINE | re.DOTALL)
        if paragraph is None:
            return None
        rendered = report_html.without_links(report_html.prose_html(paragraph[1]))
        return Markup(re.sub(r"</?p>", "", rendered))

    @property
    def figures(self) -> list[nbformat.NotebookNode]:
        """List the cells that show a figure.

        Returns
        -------
        list of NotebookNode
            In the order of the page.
        """
        return [cell for cell in self.notebook.cells if outputs_of(cell, PNG)]

    def opens_with(self, pages: Iterable["Page"], figure: str) -> nbformat.NotebookNode | None:
        """Choose the figure that stands for this page.

        Parameters
        ----------
        pages : iterable of Page
            All pages of the book.
        figure : str
            The name of the figure on which the paper's claims rest, or "".

        Returns
        -------
        NotebookNode or None
            The cell that shows this figure, here or on another page of the study. Else the cell
            with the first figure here, or None if the page has no figure.
        """
        candidates = list(self.figures)
        for page in pages:
            if page.folder == self.study and page is not self:
                candidates += page.figures

        saves = re.compile(rf'\.save\(\w+, "{re.escape(figure)}"')
        for cell in candidates:
            if saves.search(cell.source):
                return cell
        return self.figures[0] if self.figures else None

    def insert_below_title(self, *cells: nbformat.NotebookNode) -> None:
        """Insert cells between the title of the page and the text below.

        Parameters
        ----------
        *cells : NotebookNode
            In their order.
        """
        first = self.notebook.cells[0] if self.notebook.cells else None
        title, rest = "", ""
        if first is not None and first.cell_type == "markdown":
            title, _, rest = first.source.partition("\n")
        if not title.startswith("# "):
            self.notebook.cells[:0] = [new_markdown_cell(f"# {self.title}"), *cells]
            return
        self.notebook.cells[:1] = [new_markdown_cell(title), *cells, new_markdown_cell(rest)]


def clean_notebook(notebook: nbformat.NotebookNode) -> None:
    """Make the outputs of a notebook harmless, fold its code, and describe its pictures.

    Parameters
    ----------
    notebook : NotebookNode
        An executed notebook. It is changed in place.
    """
    # A stream comes in many pieces, which are shown in one box.
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    notebook.metadata = nbformat.from_dict({"language_info": LANGUAGE})
    # A raw cell would reach the page unescaped.
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type != "raw"]
    caption = "Figure"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            caption = report_html.describe(report_html.prose_html(cell.source)) or caption
        if cell.cell_type != "code":
            continue

        is_solution = "solution" in cell.metadata.get("tags", ())
        cell.metadata = _metadata(cell, is_solution, caption)
        outputs = []
        for output in cell.outputs:
            outputs += _clean_output(output)
        cell.outputs = outputs


def _metadata(cell: nbformat.NotebookNode, is_solution: bool, caption: str) -> dict[str, Any]:
    """Make the metadata by which myst-nb folds a cell and describes its pictures.

    An empty cell also gets a source, because myst-nb would leave the cell out.
    """
    shown: dict[str, Any] = {"image": {"alt": caption}}
    tag = "hide-input"
    if not cell.source.strip():
        # myst-nb would leave a cell without a source out, with its outputs.
        cell.source = "shown"
        tag = "remove-input"
    elif is_solution:
        tag = "hide-cell"
        shown |= {"code_prompt_show": "Solution", "code_prompt_hide": "Hide the solution"}
    return nbformat.from_dict({"tags": [tag], "mystnb": shown})


def _clean_output(output: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the harmless form of an output: one picture, clean HTML or text, or no output."""
    if output.output_type == "stream":
        text = report_html.visible(output.text)
        if not text:
            return []
        if output.name == "stderr":
            return [html_output(template_macros().log(text))]
        return [html_output(template_macros().text("text", text))]

    if output.output_type == "error":
        text = report_html.visible("\n".join(output.traceback))
        return [html_output(template_macros().text("error", text))]

    data = output.get("data", {})
    # A picture comes with a text as well, such as <Figure size 640x480>, which says nothing.
    if PNG in data:
        return [new_output("display_data", data={PNG: data[PNG]})]
    if HTML in data:
        return [html_output(_clean_html(data[HTML]))]
    if TEXT in data:
        text = report_html.visible(data[TEXT])
        return [html_output(template_macros().text("text", text))]
    return []


def _clean_html(source: str) -> Markup:
    """Clean the HTML that a cell displayed, or show its source as text where cleaning fails."""
    try:
        cleaned = report_html.output_html(source)
    except Exception:  # an unforeseen table must not cost the page
        return template_macros().text("text", report_html.visible(source))
    return Markup(f'<div class="out">{cleaned}</div>')


def relink_outputs(page: Page, names: Collection[str]) -> None:
    """Change links to notebooks in the outputs of a page into links to pages of the book.

    A link to a notebook that has no page becomes its text.

    Parameters
    ----------
    page : Page
        Its outputs change in place.
    names : collection of str
        The names of the book's pages, e.g. "10_empathy_gap".
    """

    def rewrite(link: re.Match) -> str:
        name, anchor, text = link.groups()
        if name not in names:
            return text
        fragment = f"#{make_id(unquote(anchor))}" if anchor else ""
        return f'<a href="{name}.html{fragment}">{text}</a>'

    for cell in page.notebook.cells:
        for output in outputs_of(cell, HTML):
            output.data[HTML] = NOTEBOOK_LINK.sub(rewrite, output.data[HTML])


def outputs_of(cell: nbformat.NotebookNode, kind: str) -> list[nbformat.NotebookNode]:
    """List the outputs of a cell that have data of a kind.

    Parameters
    ----------
    cell : NotebookNode
        A cell. A cell of text has no outputs.
    kind : str
        A media type, e.g. `PNG`.

    Returns
    -------
    list of NotebookNode
        In their order.
    """
    return [output for output in cell.get("outputs", ()) if kind in output.get("data", ())]


def html_output(html: Markup) -> nbformat.NotebookNode:
    """Make an output that shows HTML.

    Parameters
    ----------
    html : Markup
        Clean HTML. Text that nobody marked as clean is escaped.

    Returns
    -------
    NotebookNode
        An output of a code cell.
    """
    return new_output("display_data", data={HTML: str(escape(html))})


def html_cell(html: Markup) -> nbformat.NotebookNode:
    """Make a cell that shows HTML and no code.

    Parameters
    ----------
    html : Markup
        As in `html_output`.

    Returns
    -------
    NotebookNode
        A code cell with one output.
    """
    return cell_of_outputs([html_output(html)])


def cell_of_outputs(outputs: list[nbformat.NotebookNode], **metadata: Any) -> nbformat.NotebookNode:
    """Make a cell that shows outputs and no code.

    Parameters
    ----------
    outputs : list of NotebookNode
        Outputs that are harmless.
    **metadata : any
        Further metadata of the cell.

    Returns
    -------
    NotebookNode
        A code cell with a hidden source, because myst-nb leaves out a cell without a source.
    """
    hidden = {"tags": ["remove-input"], **metadata}
    return new_code_cell("shown", metadata=hidden, outputs=outputs)


@cache
def template_macros() -> Any:
    """Load the macros of ``parts.html.j2``.

    Returns
    -------
    module
        A function per macro, which escapes all text that is not marked as clean.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    environment.filters |= {"rounded": report_html.round_for_reader, "visible": report_html.visible}
    return environment.get_template("parts.html.j2").module


def relink(source: str, folder: Path, sources: Mapping[Path, str]) -> tuple[str, list[str]]:
    """Give the links of a markdown text their addresses in the book.

    Parameters
    ----------
    source : str
        The text.
    folder : Path
        The folder of the repository where the text stands.
    sources : mapping of Path to str
        The book's sources by the files of the repository that they show.

    Returns
    -------
    text : str
        The text, in which a link to a file outside the book is its text alone.
    lost : list of str
        Addresses that lead to no file.
    """
    lost = []

    def rewrite(link: re.Match) -> str:
        text, address = link.groups()
        if re.match(r"(https?|mailto):", address):
            return link[0]

        file, mark, anchor = address.partition("#")
        target = Path(normpath(folder / unquote(file)))
        # Sphinx makes the anchors of headings in this way.
        fragment = mark + make_id(unquote(anchor))
        if not file:
            return f"[{text}]({fragment})"
        if target in sources:
            page, _, module = sources[target].partition("#")
            if module:
                fragment = f"#{make_id(module)}"
            return f"[{text}](/{page}{fragment})"
        # A file that is there, but is no page of the book, is no mistake: its link becomes text.
        if not target.is_relative_to(paths.ROOT) or not target.exists():
            lost.append(address)
        return text

    return LINK.sub(rewrite, source), lost


def section_of(table: str, pages: Iterable[Page]) -> str | None:
    """Return the address of the cell where the book shows a table.

    Parameters
    ----------
    table : str
        The name of the table, without a suffix.
    pages : iterable of Page
        The pages of its study.

    Returns
    -------
    str or None
        The address of the first cell that writes the table, or None without such a cell.
    """
    for page in pages:
        if notebook_cells.cell_of(page.notebook, table) is not None:
            return f"{page.file}#csv-{table}"
    return None


def link_tables(
    source: str, place: str, pages: Iterable[Page], files: Mapping[str, Mapping[str, Any]]
) -> str:
    """Link the names of tables in a guide to the places where the book shows the tables.

    Parameters
    ----------
    source : str
        The markdown text of a guide, with its own links.
    place : str
        Its file among the sources of the book.
    pages : iterable of Page
        The pages of the book.
    files : mapping
        The files of the run by folder and name, as of :func:`ingroup.commands.report.copies`.

    Returns
    -------
    str
        The text, in which a name such as ```scopes.csv``` links to the cell that writes the table,
        or else to the file. A table belongs to the study of the nearest notebook link above it
        under the same ``##`` heading. Without such a link, or without the table in the run, the
        name gets no link.
    """
    page_by_name = {page.name: page for page in pages}
    up = "../" * place.count("/")
    last = None

    def rewrite(match: re.Match) -> str:
        nonlocal last
        table = match["table"]
        if table is None:
            last = page_by_name.get(match["notebook"])  # None at a heading
            return match[0]
        if last is None:
            return match[0]

        file = dict(files.get(last.folder, {}).get(table, ())).get("csv")
        if file is None:
            return match[0]
        # The notebook that was named comes first, then the others of its study.
        of_study = [page for page in page_by_name.values() if page.folder == last.folder]
        of_study.sort(key=lambda page: page is not last)
        section = section_of(table, of_study)
        address = f"book:{up}{section}" if section else f"copy:{up}{file}"
        return f"[{match[0]}]({address})"

    return TABLE_OR_PLACE.sub(rewrite, source)
