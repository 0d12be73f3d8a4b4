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


class Page:
    """An executed notebook on its way to a page; its cells hold what the template shows."""

    def __init__(self, name: str, run: str = paths.DEFAULT_RUN):
        source = paths.executed(name, run)
        self.name, self.file, self.study = name, f"{name}.html", name.partition("_")[2]
        self.folder, self.picture = folder_of(name), None
        self.notebook = nbformat.read(source, as_version=4)
        self.parameters = ran(name, run)
        asked = (self.parameters or {}).get("MODELS", ())
        self.models = {Path(models.split(entry)[0]).name for entry in asked}
        found = _prepare(self.notebook)
        self.title = next((h.text for h in found if h.level == 1), name)
        self.headings, self.anchors = found, {heading.anchor for heading in found}
        told = source.with_suffix(".txt")
        told_of = told.read_text("utf8").strip() if told.exists() else ""
        self.ran, _, self.weighed = told_of.partition("\n")
        self.seconds = (re.search(r": (\d+) s\b", self.ran) or [None, None])[1]
        self.ran = self.ran or f"{told.name} is missing: how long it took is not known."
        self.banner = None

    def opening(self, heading: str) -> Markup | None:
        """The first paragraph below a heading; its links lead from another page: now text."""
        prose = "".join(cell.get("html", "") for cell in self.notebook.cells)
        head = rf'<h[1-6] id="[^"]*">{re.escape(heading)}</h[1-6]>'
        found = re.search(rf"{head}\s*<p>(.*?)</p>", prose, re.S)
        return Markup(re.sub(r"</?a\b[^>]*>", "", found[1])) if found else None

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """All that it shows, as `picture` makes them."""
        outputs = [output for cell in self.notebook.cells for output in cell.get("outputs", ())]
        return [picture(output) for output in outputs if "image/png" in output.get("data", ())]

    def opens_with(self, pages: Iterable["Page"]) -> dict[str, Any] | None:
        """What shows the whole at a glance, here or later in the study, or the first figure."""
        near = [page for page in pages if page.folder == self.study and page is not self]
        every = [part for page in (self, *near) for part in page.figures]
        whole = [part for part in every if part["alt"].startswith("At a glance")]
        return next(iter(whole + self.figures), None)

    def relink(self, pages: dict[str, "Page"]) -> list[str]:
        """Give links their addresses in the report; those that lead to no notebook are returned."""
        lost = []

        def link(address: str) -> str | None:
            if re.match(r"(https?|mailto):", address):
                return address
            file, mark, anchor = address.partition("#")
            to = pages.get(file.removesuffix(".ipynb")) if file else self
            if to and (not mark or unquote(anchor) in to.anchors):
                return f"{'' if to is self else to.file}{mark}{anchor}" or None
            if to or not (paths.NOTEBOOKS / unquote(file)).exists():
                lost.append(f"{self.name}: {address}")
            return None  # of a file, and a notebook that has not run here, the name is enough

        for cell in self.notebook.cells:
            if "html" in cell:
                cell.html = Markup(report_html.relink(cell.html, link))
            for output in cell.get("outputs", ()):
                if "text/html" in output.get("data", ()):
                    clean = report_html.relink(output.data["text/html"], link)
                    output.data["text/html"] = Markup(clean)
        return lost


def picture(output: nbformat.NotebookNode) -> dict[str, Any]:
    """The picture of an output, which its address carries; width and height keep text in place."""
    coded = "".join(output.data["image/png"].split())
    size = struct.unpack(">II", base64.b64decode(coded[:32])[16:])
    return {"src": f"data:image/png;base64,{coded}", "alt": output.metadata.alt, "size": size}


def _prepare(notebook: nbformat.NotebookNode) -> list[report_html.Heading]:
    """Clean the cells: ``html`` of prose, HTML of outputs, ``alt`` of pictures. All headings."""
    taken: set[str] = {"code", "top", "contents", "replies", "claims"}
    caption, found = "Figure", []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.html = report_html.prose(cell.source, taken)
            found += report_html.headings(cell.html)
            caption = report_html.describe(cell.html) if report_html.plain(cell.html) else caption
        outputs = [output for output in cell.get("outputs", ()) if "data" in output]
        drawn = [output for output in outputs if "image/png" in output.data]
        for number, output in enumerate(drawn, start=1):
            of = f" ({number} of {len(drawn)})" if len(drawn) > 1 else ""
            output.metadata.alt = caption + of
        for output in outputs:
            if "text/html" in output.data:
                output.data["text/html"] = report_html.output_html(output.data["text/html"])
    return found


def exporter() -> TemplateExporter:
    """nbconvert with the report's template, which escapes what is not marked as clean."""
    order = ["image/png", "text/html", "text/plain"]
    made = TemplateExporter(
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
    made.environment.autoescape = True
    return made
