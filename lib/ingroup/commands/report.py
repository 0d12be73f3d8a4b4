"""The report of a run: a page a notebook and a first page, in one folder that can go anywhere.

``python -m ingroup.commands.report --run default`` reads the executed notebooks and tables of a
run and writes ``build/report`` (another run: ``build/runs/<run>/report``). The pages need no
net and no server, and the same inputs give the same bytes.
"""

import argparse
import base64
import hashlib
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ingroup import paths
from ingroup.commands import report_index, report_pages
from ingroup.commands.report_pages import Links, Page
from ingroup.figures import DEMONSTRATION
from ingroup.models import calibrants, is_calibrant


class Banner(NamedTuple):
    """What was real: ``kind`` is ``"demonstration"``, ``"real"`` or ``"none"``."""

    kind: str
    head: str
    text: str


def banner(parameters: dict[str, Any] | None) -> Banner:
    """Say from a notebook's parameters what was real in it and what a demonstration.

    It is a demonstration wherever the model that was asked is a calibrant; ``parameters`` are from
    :func:`ingroup.notebook.ran`.
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


def _set_banners(pages: list[Page]) -> None:
    """A page without a model of its own that shows what a calibrant answered says so too."""
    for page in pages:
        page.banner = banner(page.parameters)
    if any(page.banner.kind == "demonstration" for page in pages):
        more = " What it shows of the studies in this run is a demonstration."
        for page in pages:
            sources = [cell.source for cell in page.notebook.cells]
            named = any(name in source for source in sources for name in calibrants())
            if named and page.banner.kind == "none":
                page.banner = page.banner._replace(text=page.banner.text + more)


def _frame() -> dict[str, str]:
    """The pages' own style and script, and the hashes by which their policy allows them."""
    frame = {}
    for kind, name in (("style", "report.css"), ("script", "report.js")):
        frame[kind] = (report_pages.TEMPLATES / "report" / name).read_text("utf8")
        digest = hashlib.sha256(frame[kind].encode()).digest()
        frame[f"{kind}_hash"] = base64.b64encode(digest).decode()
    return frame


def build(run: str = paths.DEFAULT_RUN) -> tuple[Path, list[str]]:
    """Write the report of a run; an older one is replaced when the new one is whole.

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
    executed = sorted(file.stem for file in (folder / "notebooks").glob("[0-9]*.ipynb"))
    pages = [Page(name, run) for name in executed if not name.endswith(".unfinished")]
    if not pages:
        raise FileNotFoundError(
            f"{folder / 'notebooks'} holds no executed notebook: run make all first."
        )
    _set_banners(pages)
    for before, after in pairwise(pages):
        before.after, after.before = after, before

    target, fresh = folder / "report", folder / "report.unfinished"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    exporter, links, frame = report_pages.exporter(), Links(fresh, folder, pages), _frame()
    for page in pages:
        links.rewrite(page)
        resources = {"page": page, "frame": frame}
        text, _ = exporter.from_notebook_node(page.notebook, resources=resources)
        (fresh / page.file).write_text(text, "utf8")

    main = next((page for page in pages if page.banner.kind != "none"), pages[0])
    left = {p.stem for p in paths.NOTEBOOKS.glob("[0-9]*.ipynb")} - {page.name for page in pages}
    text = exporter.environment.get_template("contents.html.j2").render(
        resources={"frame": frame},
        run=run,
        pages=pages,
        banner=main.banner,
        others=[page for page in pages if page.banner != main.banner],
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
    """Command line; 0 when the report is written, 2 where nothing has run."""
    parser = argparse.ArgumentParser(prog="python -m ingroup.commands.report", description=__doc__)
    parser.add_argument("--run", default=paths.DEFAULT_RUN, help="name of the run")
    try:
        target, lost = build(parser.parse_args(arguments).run)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    for link in lost:
        print(f"{link}: this link leads nowhere", file=sys.stderr)
    print(f"Report: {target / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
