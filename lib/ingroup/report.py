"""The report of a run: a page a notebook and a first page, in one folder that can go anywhere.

``python -m ingroup.report --run default`` reads the executed notebooks and tables of a run and
writes ``build/report`` (another run: ``build/runs/<run>/report``). The pages need no net and no
server, and the same inputs give the same bytes.
"""

import argparse
import base64
import hashlib
import mimetypes
import re
import shutil
import sys
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import nbformat
import numpy as np
import pandas as pd
from markupsafe import Markup

from ingroup import paths, report_pages
from ingroup.calibrant import NAMES, is_calibrant
from ingroup.figures import DEMONSTRATION

STUDY_HEADING = "Printed versus here"  # the notebooks that compare have it
VERSUS = {"printed": "printed_versus_here.csv", "planted": "planted_versus_here.csv"}
SHOWN_AS_TEXT = {".md", ".py", ".yaml", ".yml", ".toml", ".cff", ".lock", ""}


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
        self.anchors = {_key(heading.anchor): heading.anchor for heading in reversed(found)}
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
        return any(name in cell.source for cell in self.notebook.cells for name in NAMES)

    @property
    def prose(self) -> list[str]:
        """HTML of the markdown cells."""
        return [cell.html for cell in self.notebook.cells if cell.cell_type == "markdown"]

    @property
    def citation(self) -> Markup | None:
        """The paragraph below the title."""
        return _inline(report_pages.section(self.prose, self.title))

    @property
    def question(self) -> Markup | None:
        """The first paragraph of the question."""
        return _inline(report_pages.section(self.prose, "Question"))

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


def _key(anchor: str) -> str:
    """Jupyter and GitHub make different anchors of a heading; what both keep of it."""
    return re.sub(r"[\W_]+", "", anchor).lower()


class Links:
    """Addresses of a notebook, as they are in the report; files they lead to are copied there.

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

        def rewritten(rendered: str) -> Markup:
            linked = partial(self.link, page), partial(self.picture, page)
            return Markup(report_pages.relink(rendered, *linked))

        for cell in page.notebook.cells:
            if cell.cell_type == "markdown":
                cell.html = rewritten(cell.html)
            for part in cell.get("parts", ()):
                if part["kind"] == "html":
                    part["html"] = rewritten(part["html"])

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
        found = to.anchors.get(_key(unquote(anchor)))
        if anchor and found is None:
            self.lost.append(f"{page.name}: {address}")
        own = "" if to is page else to.file
        return f"{own}#{quote(found)}" if found else own or None

    def picture(self, page: Page, address: str) -> str | None:
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


def verdicts(table: pd.DataFrame) -> pd.Series | None:
    """A verdict for each row of a table that puts printed or planted numbers beside ours.

    Parameters
    ----------
    table : pandas.DataFrame
        With a column ``verdict``; or ``inside``, whether the planted number lies in the interval;
        or a column beside its ``_planted`` one with the interval ``low`` to ``high``.

    Returns
    -------
    pandas.Series of str or None
        None where the table has none of these.
    """
    if "verdict" in table:
        return table["verdict"].fillna("")
    if "inside" in table:
        inside = table["inside"].astype(bool)
        return inside.map({True: "planted in the interval", False: "planted outside the interval"})
    both = [name for name in table if f"{name}_planted" in table]
    if both and {"low", "high"} <= set(table):
        here, planted = table[both[0]], table[f"{both[0]}_planted"]
        inside = planted.between(table["low"], table["high"])
        wording = ["the planted number", "planted in the interval"]
        chosen = np.select([np.isclose(here, planted), inside], wording, "planted outside")
        return pd.Series(chosen, table.index)
    return None


def versus(pages: list[Page], tables: Path) -> dict[str, Any]:
    """Printed, or planted, versus here: the counts of verdicts of each study.

    Parameters
    ----------
    pages : list of Page
        In their order; those with the section "Printed versus here" are studies.
    tables : pathlib.Path
        Folder with one folder a study.

    Returns
    -------
    dict
        For the template: ``heading``, ``text``, ``rows`` of verdicts, ``tables`` that hold none
        and are shown whole, and sentences on what is ``missing``.
    """
    rows, whole, missing, kinds = [], [], [], []
    for page in pages:
        if _key(STUDY_HEADING) not in page.anchors:
            continue
        there = {k: tables / page.study / name for k, name in VERSUS.items()}
        there = {kind: file for kind, file in there.items() if file.exists()}
        if not there:
            missing.append(
                f"{page.title}: no table puts printed or planted numbers beside this run's "
                f"(build/tables/{page.study}/ has neither {' nor '.join(VERSUS.values())})."
            )
        for kind, file in there.items():
            kinds.append(kind)
            table = pd.read_csv(file)
            models = table.get(
                "model", pd.Series((page.parameters or {}).get("MODEL", ""), table.index)
            )
            found = verdicts(table)
            if found is None:
                names = [name.replace("_", " ") for name in table]
                caption = f"{kind.capitalize()} numbers and those of this run, from {file.name}"
                cells = [
                    [_shown(value) for value in row] for row in table.head(12).to_numpy(object)
                ]
                whole.append(
                    {"study": page.title, "columns": names, "rows": cells, "caption": caption}
                )
                continue
            for model, own in found.groupby(models, sort=False):
                for verdict, count in own.value_counts(sort=False).items():
                    rows.append([page.title, model, kind, verdict, int(count), len(own)])
    beside = " or ".join(kind for kind in VERSUS if kind in kinds) or "printed"
    return {
        "heading": f"{beside.capitalize()} versus here",
        "text": "Each number of a study that has a counterpart, and how the two compare.",
        "rows": rows,
        "tables": whole,
        "missing": missing,
    }


def _shown(value: Any) -> Any:
    """A cell: numbers to three decimals, nothing for what is missing."""
    if isinstance(value, float):
        return "" if np.isnan(value) else round(value, 3) + 0.0
    return value


def audit(tables: Path) -> dict[str, Any]:
    """What the audit found, by paper and by check, or a sentence that it is missing."""
    file = tables / "audit" / "summary.csv"
    if not file.exists():
        return {
            "audit": None,
            "audit_missing": f"The audit has not run: no {file.name} in its tables.",
        }
    summary = pd.read_csv(file)
    totals = summary.groupby("paper", sort=False).sum(numeric_only=True).reset_index()
    totals.loc[len(totals)] = ["all", *totals.iloc[:, 1:].sum()]
    return {
        "audit": {
            "columns": list(totals),
            "totals": totals.to_numpy(object).tolist(),
            "all_columns": list(summary),
            "rows": summary.to_numpy(object).tolist(),
        }
    }


def copies(run: Path, figures: Path, target: Path) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Copy a run's tables and figures; study, then name, then (kind, address) of each file."""
    listed: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for kind, source in (("tables", run / "tables"), ("figures", figures)):
        for file in sorted(source.glob("*/*")):
            if file.suffix not in (".csv", ".pdf", ".png"):
                continue
            copy = target / kind / file.parent.name / file.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            study = listed.setdefault(file.parent.name, {})
            address = quote(copy.relative_to(target).as_posix())
            study.setdefault(file.stem, []).append((file.suffix[1:], address))
    return listed


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
        versus=versus(pages, folder / "tables"),
        unfinished=[
            f"{name} has not run in this run: make {name[:2]} runs it." for name in sorted(left)
        ],
        files=copies(folder, paths.FIGURES if folder == paths.BUILD else folder / "figures", fresh),
        **audit(folder / "tables"),
    )
    (fresh / "index.html").write_text(text, "utf8")
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target, links.lost


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the report is written or waits for shares, 2 where nothing has run."""
    parser = argparse.ArgumentParser(prog="python -m ingroup.report", description=__doc__)
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
