"""The report of a run: a page a notebook and a first page, in one folder that can go anywhere.

``python -m ingroup.commands.report --run default`` reads the executed notebooks and tables of a
run and writes ``build/report`` (another run: ``build/runs/<run>/report``). The pages need no
net and no server, and the same inputs give the same bytes.
"""

import argparse
import base64
import hashlib
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from markupsafe import Markup

from ingroup import paths
from ingroup.commands import report_html, report_index, report_pages
from ingroup.commands.report_links import Links, anchor_key
from ingroup.figures import DEMONSTRATION
from ingroup.models import calibrants, is_calibrant


class Banner(NamedTuple):
    """What was real: ``kind`` is ``"demonstration"``, ``"real"`` or ``"none"``."""

    kind: str
    head: str
    text: str

    def beside_a_demonstration(self) -> "Banner":
        """What a page without a model of its own says where the run's model is a calibrant."""
        more = " What it shows of the studies in this run is a demonstration."
        return self._replace(text=self.text + more) if self.kind == "none" else self


def banner(parameters: dict[str, Any] | None) -> Banner:
    """Say from a notebook's parameters what was real in it and what a demonstration.

    Parameters
    ----------
    parameters : dict or None
        As papermill wrote them into the executed notebook.

    Returns
    -------
    Banner
        A demonstration wherever the model that was asked is a calibrant.
    """
    if parameters is None:
        return Banner("none", "Not known:", "this notebook does not say how it was run.")
    model, engine = parameters.get("MODEL"), parameters.get("ENGINE", "")
    if not model:
        return Banner("none", "No model:", "none was asked on this page.")
    control = parameters.get("CONTROL")
    beside = f" Beside it, as negative control: {control}." if control else ""
    if is_calibrant(model):
        head, _, text = DEMONSTRATION.partition(":")
        return Banner("demonstration", f"{head}:", f"{text.strip()}{beside}")
    if control and is_calibrant(control):
        beside += " What is shown of that one is a demonstration."
    if engine == "replay":
        return Banner("real", "Recorded answers:", f"those of {model}; none was asked.{beside}")
    through = f", asked through {engine}" if engine else ""
    return Banner("real", "Real model:", f"{model}{through}.{beside}")


class Page:
    """An executed notebook on its way to a page."""

    def __init__(self, notebook: Path):
        self.name = notebook.stem
        self.file = f"{self.name}.html"
        self.study = self.name.partition("_")[2]
        self.notebook = nbformat.read(notebook, as_version=4)
        found = report_pages.prepare(self.notebook)
        self.title = next((h.text for h in found if h.level == 1), self.name)
        # The title is no part of the contents; a notebook of several parts has more of its level.
        self.headings = [h for h in found if h.level <= 3 and h.text != self.title]
        self.anchors = {anchor_key(heading.anchor): heading.anchor for heading in reversed(found)}
        self.parameters = self.notebook.metadata.get("papermill", {}).get("parameters")
        self.banner = banner(self.parameters)
        summary = notebook.with_suffix(".txt")
        told = summary.read_text("utf8").strip() if summary.exists() else ""
        self.ran = told or f"{summary.name} is missing: how long it took is not known."
        self.seconds = (re.search(r": (\d+) s\b", told) or [None, None])[1]
        self.before = self.after = None

    @property
    def names_a_calibrant(self) -> bool:
        """Whether prose or code speaks of one, as a page does that shows what others found."""
        return any(name in cell.source for cell in self.notebook.cells for name in calibrants())

    @property
    def prose(self) -> list[str]:
        """HTML of the markdown cells."""
        return [cell.html for cell in self.notebook.cells if cell.cell_type == "markdown"]

    @property
    def citation(self) -> Markup | None:
        """The paragraph below the title."""
        return _inline(report_html.section(self.prose, self.title))

    @property
    def question(self) -> Markup | None:
        """The first paragraph of the question."""
        return _inline(report_html.section(self.prose, "Question"))

    @property
    def picture(self) -> dict[str, Any] | None:
        """The figure that shows the whole at a glance, or else the first one."""
        parts = [part for cell in self.notebook.cells for part in cell.get("parts", ())]
        drawn = [part for part in parts if part["kind"] == "figure"]
        whole = [part for part in drawn if part["alt"].startswith("At a glance")]
        return next(iter(whole + drawn), None)


def _inline(paragraph: str | None) -> Markup | None:
    """A paragraph's content; its links would lead from another page, so they become text."""
    return Markup(re.sub(r"</?(?:p|a)\b[^>]*>", "", paragraph)) if paragraph else None


def _asset(name: str) -> tuple[str, str]:
    """Text of the style or script, and the hash by which the pages' policy allows it."""
    text = (report_pages.TEMPLATES / "report" / name).read_text("utf8")
    return text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def build(run: str = paths.DEFAULT_RUN) -> tuple[Path, list[str]]:
    """Write the report of a run; an older one is replaced when the new one is whole.

    Parameters
    ----------
    run : str
        Name of the run.

    Returns
    -------
    target : pathlib.Path
        The report's folder.
    lost : list of str
        Links of the notebooks that lead nowhere.

    Raises
    ------
    FileNotFoundError
        Where no notebook of the run has been executed.
    """
    folder = paths.run_folder(run)
    executed = sorted((folder / "notebooks").glob("[0-9]*.ipynb"))
    stopped = [file for file in executed if file.stem.endswith(".unfinished")]
    pages = [Page(file) for file in executed if file not in stopped]
    if not pages:
        raise FileNotFoundError(
            f"{folder / 'notebooks'} holds no executed notebook: run make all first."
        )
    if any(page.banner.kind == "demonstration" for page in pages):
        for page in pages:
            if page.names_a_calibrant:
                page.banner = page.banner.beside_a_demonstration()
    for before, after in pairwise(pages):
        before.after, after.before = after, before

    target, fresh = folder / "report", folder / "report.unfinished"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    style, style_hash = _asset("report.css")
    script, script_hash = _asset("report.js")
    frame = {"style": style, "style_hash": style_hash, "script": script, "script_hash": script_hash}
    exporter, links = report_pages.exporter(), Links(fresh, folder, pages)
    for page in pages:
        links.rewrite(page)
        text, _ = exporter.from_notebook_node(
            page.notebook, resources={"page": page, "frame": frame}
        )
        (fresh / page.file).write_text(text, "utf8")

    main = next((page for page in pages if page.banner.kind != "none"), pages[0])
    others = [page for page in pages if page.banner != main.banner]
    done = {page.name for page in pages}
    left = {p.stem for p in paths.NOTEBOOKS.glob("[0-9]*.ipynb")} - done
    text = exporter.environment.get_template("contents.html.j2").render(
        frame=frame,
        run=run,
        pages=pages,
        banner=main.banner,
        others=others,
        versus=report_index.versus(pages, folder / "tables"),
        unfinished=[
            f"{name} has not run in this run: make {name[:2]} runs it." for name in sorted(left)
        ],
        files=report_index.copies(folder, paths.figure_folder(run), fresh),
        **report_index.audit(folder / "tables"),
    )
    (fresh / "index.html").write_text(text, "utf8")
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target, links.lost


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the report is written or waits for shares, 2 where nothing has run."""
    parser = argparse.ArgumentParser(prog="python -m ingroup.commands.report", description=__doc__)
    parser.add_argument("--run", default=paths.DEFAULT_RUN, help="name of the run")
    run = parser.parse_args(arguments).run
    try:
        target, lost = build(run)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        # A share that waits for the others leaves a sentence and no notebook: all went well.
        return 0 if any((paths.run_folder(run) / "notebooks").glob("[0-9]*.txt")) else 2
    for link in lost:
        print(f"{link}: this link leads nowhere", file=sys.stderr)
    print(f"Report: {target / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
