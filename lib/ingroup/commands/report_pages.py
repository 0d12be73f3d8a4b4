"""Executed notebooks as pages: what each shows, and addresses as they are in the report.

nbconvert's template blocks lay a page out and escape what is not marked as clean; the page's
Content-Security-Policy lets nothing run or load but its own style, its own script and pictures
that it carries itself.
"""

import base64
import mimetypes
import re
import shutil
import struct
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import nbformat
from markupsafe import Markup
from nbconvert import TemplateExporter
from nbconvert.filters import Highlight2HTML
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from traitlets.config import Config

from ingroup import paths
from ingroup.commands import report_html
from ingroup.notebook import ran

TEMPLATES = Path(__file__).parent / "templates"
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")
SHOWN_AS_TEXT = {".md", ".py", ".yaml", ".yml", ".toml", ".cff", ".lock", ""}


class Page:
    """An executed notebook on its way to a page; its cells hold what the template shows."""

    def __init__(self, name: str, run: str = paths.DEFAULT_RUN):
        source = paths.executed(name, run)
        self.name, self.file, self.study = name, f"{name}.html", name.partition("_")[2]
        self.notebook = nbformat.read(source, as_version=4)
        self.parameters = ran(name, run)
        found = _prepare(self.notebook)
        self.title = next((h.text for h in found if h.level == 1), name)
        # The title is no part of the contents; a notebook of several parts has more of its level.
        self.headings = [h for h in found if h.level <= 3 and h.text != self.title]
        self.anchors = {anchor_key(heading.anchor): heading.anchor for heading in reversed(found)}
        told = source.with_suffix(".txt")
        self.ran = told.read_text("utf8").strip() if told.exists() else ""
        self.seconds = (re.search(r": (\d+) s\b", self.ran) or [None, None])[1]
        self.ran = self.ran or f"{told.name} is missing: how long it took is not known."
        self.banner = self.before = self.after = None

    def opening(self, heading: str) -> Markup | None:
        """The first paragraph below a heading; its links lead from another page: now text."""
        prose = [cell.html for cell in self.notebook.cells if cell.cell_type == "markdown"]
        paragraph = report_html.section(prose, heading)
        return Markup(re.sub(r"</?(?:p|a)\b[^>]*>", "", paragraph)) if paragraph else None

    @property
    def picture(self) -> dict[str, Any] | None:
        """The figure that shows the whole at a glance, or else the first one."""
        outputs = [output for cell in self.notebook.cells for output in cell.get("outputs", ())]
        drawn = list(filter(None, map(picture, outputs)))
        whole = [part for part in drawn if part["alt"].startswith("At a glance")]
        return next(iter(whole + drawn), None)


def anchor_key(anchor: str) -> str:
    """Jupyter and GitHub make different anchors of a heading; what both keep of it."""
    return re.sub(r"[\W_]+", "", anchor).lower()


def picture(output: NotebookNode) -> dict[str, Any] | None:
    """The picture of an output, which its address carries; width and height keep text in place."""
    data = output.get("data", {})
    kind = next((kind for kind in PICTURES if kind in data), None)
    if kind is None:
        return None
    coded = "".join("".join(data[kind]).split())
    if kind == "image/svg+xml":
        coded = base64.b64encode("".join(data[kind]).encode()).decode()
    size = struct.unpack(">II", base64.b64decode(coded[:32])[16:]) if kind == PICTURES[0] else None
    return {"src": f"data:{kind};base64,{coded}", "alt": output.metadata.alt, "size": size}


def _prepare(notebook: NotebookNode) -> list[report_html.Heading]:
    """Clean the cells: ``html`` of prose, HTML of outputs, ``alt`` of pictures. All headings."""
    taken: set[str] = {"code", "top", "contents"}
    caption, found = "Figure", []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.html = report_html.prose(cell.source, taken, cell.get("attachments"))
            found += report_html.headings(cell.html)
            caption = report_html.describe(cell.html) if report_html.plain(cell.html) else caption
        outputs = [output for output in cell.get("outputs", ()) if "data" in output]
        drawn = [output for output in outputs if set(PICTURES) & set(output.data)]
        for number, output in enumerate(drawn, start=1):
            of = f" ({number} of {len(drawn)})" if len(drawn) > 1 else ""
            output.metadata.alt = caption + of
        for output in outputs:
            if "text/html" in output.data:
                output.data["text/html"] = report_html.output_html(output.data["text/html"])
            elif "text/markdown" in output.data:
                markdown = report_html.output_markdown(output.data["text/markdown"])
                output.data["text/html"] = markdown
    return found


def exporter() -> TemplateExporter:
    """nbconvert with the report's template, which escapes what is not marked as clean."""
    order = [*PICTURES, "text/html", "text/plain"]
    made = TemplateExporter(
        config=Config({"NbConvertBase": {"display_data_priority": order}}),
        template_name="report",
        template_file="index.html.j2",
        extra_template_basedirs=[str(TEMPLATES)],
        preprocessors=[CoalesceStreamsPreprocessor],
        filters={
            "highlight_code": Highlight2HTML(pygments_lexer="ipython3"),
            "visible": report_html.visible,
            "picture": picture,
        },
    )
    made.environment.autoescape = True
    return made


class Links:
    """Addresses of a notebook as they are in the report; files they lead to are copied there.

    Attributes
    ----------
    lost : list of str
        Addresses that lead nowhere, with the page that has them.
    """

    def __init__(self, target: Path, run: Path, pages: list[Page]):
        self.target, self.run = target, run
        self.pages = {page.name: page for page in pages}
        self.lost: list[str] = []

    def rewrite(self, page: Page) -> None:
        """Give the links and pictures of a page's prose and outputs their new addresses."""
        way = {"link": partial(self.link, page), "picture": partial(self.picture, page)}
        for cell in page.notebook.cells:
            if "html" in cell:
                cell.html = Markup(report_html.relink(cell.html, **way))
            for output in cell.get("outputs", ()):
                if "text/html" in output.get("data", ()):
                    clean = report_html.relink(output.data["text/html"], **way)
                    output.data["text/html"] = Markup(clean)

    def link(self, page: Page, address: str) -> str | None:
        """From an address of a page's notebook to the report's; None for one that leads nowhere."""
        if re.match(r"(https?|mailto):", address):
            return address
        place, _, anchor = address.partition("#")
        file = self._file(place) if place else paths.NOTEBOOKS / f"{page.name}.ipynb"
        if file.parent != paths.NOTEBOOKS or file.suffix != ".ipynb":
            copy = self._copy(file)
            self.lost += [f"{page.name}: {address}"] if copy is None else []
            return copy
        to = self.pages.get(file.stem)
        if to is None:  # a notebook that has not run here
            self.lost += [] if file.exists() else [f"{page.name}: {address}"]
            return None
        found = to.anchors.get(anchor_key(unquote(anchor)))
        if anchor and found is None:
            self.lost.append(f"{page.name}: {address}")
        own = "" if to is page else to.file
        return f"{own}#{quote(found)}" if found else own or None

    def picture(self, page: Page, address: str) -> str | None:
        """A picture of the repository as an address that carries it; None for any other.

        (nbconvert's ``embed_images`` takes only those in the notebook's own folder.)
        """
        if address.startswith("data:"):
            return address
        file = self._file(address)
        kind = mimetypes.guess_type(file.name)[0] or ""
        if not (kind.startswith("image/") and file.is_relative_to(paths.ROOT) and file.is_file()):
            self.lost.append(f"{page.name}: {address}")
            return None
        return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"

    def _file(self, address: str) -> Path:
        """The file of an address; what the default run wrote is looked for in this run first."""
        file = (paths.NOTEBOOKS / unquote(address)).resolve()
        for theirs, ours in ((paths.FIGURES, "figures"), (paths.BUILD / "tables", "tables")):
            if file.is_relative_to(theirs):
                own = self.run / ours / file.relative_to(theirs)
                file = own if own.exists() else file
        return file

    def _copy(self, file: Path) -> str | None:
        """Copy a file of the repository below ``files/``; of a folder its README."""
        file = file / "README.md" if file.is_dir() else file
        if not (file.is_file() and file.is_relative_to(paths.ROOT)):
            return None
        inside = file.relative_to(paths.ROOT)
        if any(part.startswith(".") for part in inside.parts):
            return None
        # A browser shows a text as a text only where its name says so.
        suffix = ".txt" if file.suffix in SHOWN_AS_TEXT else ""
        copy = self.target / "files" / f"{inside}{suffix}"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        return quote(copy.relative_to(self.target).as_posix())
