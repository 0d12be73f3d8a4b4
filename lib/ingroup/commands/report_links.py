"""Addresses of the notebooks as they are in the report, which can be moved anywhere."""

import base64
import mimetypes
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from markupsafe import Markup

from ingroup import paths
from ingroup.commands import report_html

if TYPE_CHECKING:
    from ingroup.commands.report import Page

SHOWN_AS_TEXT = {".md", ".py", ".yaml", ".yml", ".toml", ".cff", ".lock", ""}


def anchor_key(anchor: str) -> str:
    """Jupyter and GitHub make different anchors of a heading; what both keep of it."""
    return re.sub(r"[\W_]+", "", anchor).lower()


class Links:
    """Addresses of a notebook, as they are in the report; files they lead to are copied there.

    Attributes
    ----------
    lost : list of str
        Addresses that lead nowhere, with the page that has them.
    """

    def __init__(self, target: Path, run: Path, pages: list["Page"]):
        self.target, self.run = target, run
        self.pages = {page.name: page for page in pages}
        self.lost: list[str] = []

    def rewrite(self, page: "Page") -> None:
        """Give the links and pictures of a page's prose and outputs their new addresses."""

        def rewritten(rendered: str) -> Markup:
            linked = partial(self.link, page), partial(self.picture, page)
            return Markup(report_html.relink(rendered, *linked))

        for cell in page.notebook.cells:
            if cell.cell_type == "markdown":
                cell.html = rewritten(cell.html)
            for part in cell.get("parts", ()):
                if part["kind"] == "html":
                    part["html"] = rewritten(part["html"])

    def link(self, page: "Page", address: str) -> str | None:
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

    def picture(self, page: "Page", address: str) -> str | None:
        """A picture of the repository as an address that carries it; None for any other."""
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
            own = (
                self.run / ours / file.relative_to(theirs) if file.is_relative_to(theirs) else file
            )
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
