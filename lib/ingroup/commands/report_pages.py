"""Executed notebooks as pages of the report.

nbconvert's template blocks lay a page out and escape what is not marked as clean; a page's
Content-Security-Policy lets nothing run or load but its own style, script and pictures (PNG).
"""

import base64
import re
import struct
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
from markupsafe import Markup
from nbconvert import TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from traitlets.config import Config

from ingroup import models, paths
from ingroup.commands import report_html
from ingroup.commands.parameters import folder_of
from ingroup.notebook import ran

TEMPLATES = Path(__file__).parent / "templates"
PNG = "image/png"
HTML = "text/html"
# Anchors of the page's own frame, which no heading may take.
FRAME_ANCHORS = {"code", "top", "contents", "replies", "claims"}


class Page:
    """An executed notebook on its way to a page; its cells hold what the template shows.

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
        The executed copy with clean cells: ``html`` of prose, HTML of outputs, ``alt`` of pictures.
    parameters : dict or None
        Those with which it ran.
    models : set of str
        The names of the models that its parameters name.
    title : str
        The first heading of level 1.
    headings : list of Heading
        All headings in order.
    anchors : set of str
        Their anchors.
    ran, weighed : str
        The first line of its summary, on the run; the lines below it, on its numbers.
    seconds : str or None
        How long it ran, in whole seconds.
    picture : dict or None
        The figure that stands for the page, from `picture`; set by the report.
    banner : Banner or None
        What was real on it; set by the report.
    """

    def __init__(self, name: str, run: str = paths.DEFAULT_RUN):
        source = paths.executed(name, run)
        self.name = name
        self.file = f"{name}.html"
        self.study = name.partition("_")[2]
        self.folder = folder_of(name)
        self.picture = None
        self.banner = None

        self.notebook = nbformat.read(source, as_version=4)
        self.headings = _prepare(self.notebook)
        self.anchors = {heading.anchor for heading in self.headings}
        titles = [heading.text for heading in self.headings if heading.level == 1]
        self.title = titles[0] if titles else name

        self.parameters = ran(name, run)
        self.models = set()
        for entry in (self.parameters or {}).get("MODELS", ()):
            model, _ = models.split(entry)
            self.models.add(Path(model).name)

        summary = source.with_suffix(".txt")
        text = summary.read_text("utf8").strip() if summary.exists() else ""
        self.ran, _, self.weighed = text.partition("\n")
        duration = re.search(r": (\d+) s\b", self.ran)
        self.seconds = duration[1] if duration else None
        if not self.ran:
            self.ran = f"{summary.name} is missing: how long it took is not known."

    def opening(self, heading: str) -> Markup | None:
        """Return the first paragraph below a heading.

        Parameters
        ----------
        heading : str
            The text of the heading.

        Returns
        -------
        Markup or None
            The paragraph for another page: its links, which lead on from this one, are text.
        """
        prose = "".join(cell.get("html", "") for cell in self.notebook.cells)
        tag = rf'<h[1-6] id="[^"]*">{re.escape(heading)}</h[1-6]>'
        paragraph = re.search(rf"{tag}\s*<p>(.*?)</p>", prose, re.S)
        if paragraph is None:
            return None
        return Markup(re.sub(r"</?a\b[^>]*>", "", paragraph[1]))

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """All figures that the notebook shows, each from `picture`."""
        pictures = []
        for cell in self.notebook.cells:
            for output in _outputs(cell, PNG):
                pictures.append(picture(output))
        return pictures

    def opens_with(self, pages: Iterable["Page"]) -> dict[str, Any] | None:
        """Choose the figure that stands for this page.

        Parameters
        ----------
        pages : iterable of Page
            All pages of the report.

        Returns
        -------
        dict or None
            The first figure "At a glance", here or on another page of the study; else the first
            figure here; None where there is none.
        """
        candidates = list(self.figures)
        for page in pages:
            if page.folder == self.study and page is not self:
                candidates += page.figures

        for figure in candidates:
            if figure["alt"].startswith("At a glance"):
                return figure
        return self.figures[0] if self.figures else None

    def relink(self, pages: dict[str, "Page"]) -> list[str]:
        """Give links their addresses in the report.

        Parameters
        ----------
        pages : dict of str to Page
            All pages by the names of their notebooks.

        Returns
        -------
        list of str
            The links that lead nowhere, each after the name of this notebook.
        """
        lost = []

        def link(address: str) -> str | None:
            new_address, is_lost = self._address(address, pages)
            if is_lost:
                lost.append(f"{self.name}: {address}")
            return new_address

        for cell in self.notebook.cells:
            if "html" in cell:
                cell.html = Markup(report_html.relink(cell.html, link))
            for output in _outputs(cell, HTML):
                clean = report_html.relink(output.data[HTML], link)
                output.data[HTML] = Markup(clean)
        return lost

    def _address(self, address: str, pages: dict[str, "Page"]) -> tuple[str | None, bool]:
        """Return a link's address in the report, None for plain text, and whether it is lost."""
        if re.match(r"(https?|mailto):", address):
            return address, False

        file, mark, anchor = address.partition("#")
        page = pages.get(file.removesuffix(".ipynb")) if file else self
        if page is None:
            # Of a file, and of a notebook that has not run here, the name is enough.
            exists = (paths.NOTEBOOKS / unquote(file)).exists()
            return None, not exists

        if mark and unquote(anchor) not in page.anchors:
            return None, True
        if page is self:
            return f"{mark}{anchor}" or None, False
        return f"{page.file}{mark}{anchor}", False


def _outputs(cell: nbformat.NotebookNode, kind: str) -> list[nbformat.NotebookNode]:
    """List the outputs of a cell that have data of a kind, e.g. `PNG`."""
    return [output for output in cell.get("outputs", ()) if kind in output.get("data", ())]


def picture(output: nbformat.NotebookNode) -> dict[str, Any]:
    """Return a picture as its address, which carries it, so that a page loads no file.

    Parameters
    ----------
    output : NotebookNode
        An output with a PNG, and ``alt`` in its metadata.

    Returns
    -------
    dict
        ``src``, the address; ``alt``, the text for it; ``size``, width and height in pixels, by
        which a page keeps its place.
    """
    content = "".join(output.data[PNG].split())
    # A PNG has width and height in bytes 16 to 23, big-endian; 32 characters are 24 bytes.
    header = base64.b64decode(content[:32])
    return {
        "src": f"data:{PNG};base64,{content}",
        "alt": output.metadata.alt,
        "size": struct.unpack(">II", header[16:]),
    }


def _prepare(notebook: nbformat.NotebookNode) -> list[report_html.Heading]:
    """Clean the cells: ``html`` of prose, HTML of outputs, ``alt`` of pictures. All headings."""
    taken = set(FRAME_ANCHORS)
    caption = "Figure"
    headings = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.html = report_html.prose(cell.source, taken)
            headings += report_html.headings(cell.html)
            if report_html.plain(cell.html):
                caption = report_html.describe(cell.html)

        drawn = _outputs(cell, PNG)
        for number, output in enumerate(drawn, start=1):
            output.metadata.alt = caption
            if len(drawn) > 1:
                output.metadata.alt += f" ({number} of {len(drawn)})"
        for output in _outputs(cell, HTML):
            output.data[HTML] = report_html.output_html(output.data[HTML])
    return headings


def exporter() -> TemplateExporter:
    """Return nbconvert with the report's template, which escapes what is not marked as clean."""
    order = [PNG, HTML, "text/plain"]
    report_exporter = TemplateExporter(
        config=Config({"NbConvertBase": {"display_data_priority": order}}),
        template_name="report",
        template_file="index.html.j2",
        extra_template_basedirs=[str(TEMPLATES)],
        preprocessors=[CoalesceStreamsPreprocessor],
        filters={
            "highlight_code": Highlight2HTML(pygments_lexer="ipython3"),
            "picture": picture,
            "rounded": report_html.rounded,
            "visible": report_html.visible,
        },
    )

    report_exporter.environment.autoescape = True
    return report_exporter
