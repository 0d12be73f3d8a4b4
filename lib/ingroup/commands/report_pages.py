"""One executed notebook as one page of the report, safe to open whatever a model wrote.

What a notebook holds is text by strangers: HTML is cleaned by :mod:`ingroup.report_html`, all else
is escaped by the template, and the page's Content-Security-Policy lets nothing run or load but its
own style, its own script and pictures that it carries itself.
"""

import base64
import struct
from pathlib import Path
from typing import Any

from markupsafe import Markup
from nbconvert import HTMLExporter, TemplateExporter
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from ingroup.commands import report_html

TEMPLATES = Path(__file__).parent / "templates"


def pictures(output: NotebookNode) -> str | None:
    """The picture of an output as an address that carries it, or None where it has none."""
    data = output.get("data", {})
    for kind in ("image/png", "image/jpeg"):
        if kind in data:
            return f"data:{kind};base64,{''.join(data[kind].split())}"
    if "image/svg+xml" in data:
        coded = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f"data:image/svg+xml;base64,{coded}"
    return None


def size(address: str) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG in a data address, so that text does not jump."""
    if not address.startswith("data:image/png"):
        return None
    start = base64.b64decode(address.partition(",")[2][:32])
    return struct.unpack(">II", start[16:24])


def outputs(cell: NotebookNode, caption: str) -> list[dict[str, Any]]:
    """What a cell printed and displayed, in order, each as a part the template knows.

    Parameters
    ----------
    cell : nbformat.NotebookNode
        A code cell that ran.
    caption : str
        What the prose before it calls its pictures.

    Returns
    -------
    list of dict
        ``kind`` is ``"html"`` (clean), ``"text"``, ``"log"``, ``"error"`` or ``"figure"``.
    """
    parts: list[dict[str, Any]] = []
    drawn = [address for address in map(pictures, cell.outputs) if address]
    shown = 0
    for output in cell.outputs:
        if output.output_type == "stream":
            kind = "log" if output.name == "stderr" else "text"
            if parts and parts[-1]["kind"] == kind:
                parts[-1]["text"] += output.text
            else:
                parts.append({"kind": kind, "text": output.text})
        elif output.output_type == "error":
            parts.append({"kind": "error", "text": "\n".join(output.traceback)})
        elif address := pictures(output):
            shown += 1
            alt = caption if len(drawn) == 1 else f"{caption} ({shown} of {len(drawn)})"
            parts.append({"kind": "figure", "src": address, "alt": alt, "size": size(address)})
        elif "text/html" in output.data:
            parts.append(
                {"kind": "html", "html": Markup(report_html.output_html(output.data["text/html"]))}
            )
        elif "text/markdown" in output.data:
            markdown = MarkdownWithMath(renderer=IPythonRenderer(exclude_anchor_links=True))
            rendered = report_html.output_html(markdown.render(output.data["text/markdown"]))
            parts.append({"kind": "html", "html": Markup(rendered)})
        else:
            parts.append({"kind": "text", "text": output.data.get("text/plain", "")})
    for part in parts:
        if "text" in part:
            part["text"] = report_html.visible(_last_state(strip_ansi(part["text"]))).strip("\n")
    return [part for part in parts if part.get("text") != ""]


def _last_state(text: str) -> str:
    """What a terminal shows in the end: a carriage return begins its line anew."""
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


def prepare(notebook: NotebookNode) -> list[report_html.Heading]:
    """Write into each cell what the template shows of it.

    Parameters
    ----------
    notebook : nbformat.NotebookNode
        An executed notebook; markdown cells get ``html``, code cells ``parts``, ``tags``.

    Returns
    -------
    list of Heading
        Of the whole page.
    """
    taken: set[str] = {"code", "top", "contents"}
    caption, found = "Figure", []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.html = report_html.prose(cell.source, taken, cell.get("attachments"))
            found += report_html.headings(cell.html)
            caption = report_html.describe(cell.html) if report_html.plain(cell.html) else caption
        elif cell.cell_type == "code":
            cell.parts, cell.tags = outputs(cell, caption), cell.metadata.get("tags", [])
    return found


class _Exporter(HTMLExporter):
    """Without the last step of nbconvert's, which reads each page again for pictures without alt.

    Ours have one, and reading takes three times as long as writing.
    """

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict[str, Any] | None = None, **kw: Any
    ) -> tuple[str, dict[str, Any]]:
        self.register_filter("highlight_code", Highlight2HTML(pygments_lexer="ipython3"))
        return TemplateExporter.from_notebook_node(self, nb, resources, **kw)


def exporter() -> HTMLExporter:
    """nbconvert's HTML exporter with the report's template, which escapes what is not marked."""
    made = _Exporter(template_name="report", extra_template_basedirs=[str(TEMPLATES)])
    made.environment.autoescape = True
    return made
