"""The report of a run: a page a notebook and a first page, in one folder that can go anywhere.

It is written beside the executed notebooks and tables of the run. Its pages need no net and no
server, and the same inputs give the same bytes.
"""

import argparse
import base64
import hashlib
import shutil
import sys
from collections import namedtuple
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from ingroup import models, paths
from ingroup.commands.report_pages import TEMPLATES, Page, exporter
from ingroup.figures import DEMONSTRATION, read_table, whose

WAYS = {models.STORED: "stored answers", "replay": "recorded answers"}
VERSUS = {"printed": "printed_versus_here", "planted": "planted_versus_here"}
# What was real, in words: the kind is "demonstration", "real" or "none".
Banner = namedtuple("Banner", "kind head text")


def banner(parameters: dict[str, Any] | None, answered: Collection[str] | None = None) -> Banner:
    """What a notebook shows that ran with these parameters: of its models those that answered."""
    if parameters is None:
        return Banner("none", "Not known:", "this notebook does not say how it was run.")
    if not parameters.get("MODELS"):
        return Banner("none", "No model:", "none was asked on this page.")
    named = [models.split(entry, parameters.get("ENGINE", "")) for entry in parameters["MODELS"]]
    named = [one for one in named if answered is None or one[0] in answered]
    if note := whose([model for model, _ in named]):
        head, _, text = note.partition(": ")
        kind = "demonstration" if note == DEMONSTRATION else "real"
        return Banner(kind, f"{head}:", text)
    listed = [f"{models.label(model)} ({WAYS.get(engine, engine)})" for model, engine in named]
    return Banner("real", "Real:", f"{', '.join(listed)}.")


def _set_banners(pages: list[Page], tables: Path) -> None:
    """A page without a model of its own that shows what a calibrant answered says so too."""
    for page in pages:
        used = tables / page.folder / "usage.csv"
        answered = {*read_table(used.parent, "usage").model} if used.exists() else None
        page.banner = banner(page.parameters, answered)
    demonstrated = any(models.is_calibrant(name) for page in pages for name in page.models)
    for page in pages if demonstrated else ():
        sources = "\n".join(cell.source for cell in page.notebook.cells)
        if page.banner.kind == "none" and any(name in sources for name in models.calibrants()):
            more = " What it shows of a calibrant in this run is a demonstration."
            page.banner = page.banner._replace(text=page.banner.text + more)


def verdicts(table: pd.DataFrame) -> pd.Series:
    """Of each row: its ``verdict``; or whether it is ``inside``; or where its planted number is."""
    if "verdict" in table:
        return table["verdict"].fillna("")
    interval = {True: "in the 95 % interval", False: "outside the 95 % interval"}
    if "inside" in table:
        return table["inside"].astype(bool).map(interval)
    name = next(name for name in table if f"{name}_planted" in table)
    here, planted = table[name], table[f"{name}_planted"]
    inside = planted.between(table["low"], table["high"]).map(interval)
    return inside.mask(np.isclose(here, planted), "the planted number")


def counted(folder: Path, since: float = 0.0) -> list[str]:
    """How the numbers of a study came out: a line a table, with the rows of a verdict of few.

    Of tables that were written `since`, in seconds as `time.time` has them. A line more for each
    model that is another checkpoint than the paper's.
    """
    found = []
    for kind, name in VERSUS.items():
        if (file := folder / f"{name}.csv").exists() and file.stat().st_mtime >= since:
            said, parts = verdicts(table := read_table(folder, name)), []
            for verdict, rows in said[said != ""].groupby(said, sort=False):
                lines = ", ".join(str(row + 2) for row in rows.index)  # under the header, from 1
                few = f" ({name}.csv, line {lines})" if len(rows) <= 3 < len(said) else ""
                parts.append(f"{len(rows)} of {len(said)} {verdict}{few}")
            parts += ["the pipeline is exact"] * ({*table.get("pipeline", ())} == {"exact"})
            found.append(f"{kind}: {', '.join(parts)}")
            found += list(table.get("checkpoint", pd.Series(dtype=str)).dropna())
    return found


def claims(tables: Path) -> dict[str, Any] | None:
    """The papers' sentences as 00_map weighs them: a row a sentence, a cell a model; None before.

    ``found`` are the sentences above them, each with its ``notebook``; ``models`` the names of the
    columns; ``rows`` the sentences, each with its ``cells``.
    """
    if not (tables / "map" / "claims.csv").exists():
        return None
    table, rows = read_table(tables / "map", "claims"), []
    for _, own in table.groupby(["study", "name"], sort=False):
        cells = own.set_index("model").to_dict("index")
        rows.append({"cells": cells, **own.iloc[0].fillna("").to_dict()})
    names = {name: models.label(name) for name in table.model.unique()}
    found = read_table(tables / "map", "found").to_dict("records")
    return {"found": found, "models": names, "rows": rows}


def replies(tables: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """By study the excerpts that 00_map took: each some trials of one kind, prompt and reply."""
    if not (tables / "map" / "replies.csv").exists():
        return {}
    table, found = read_table(tables / "map", "replies").astype(object).fillna(""), {}
    table["model"] = table.model.map(models.label)
    for (study, *_), own in table.groupby(["study", "model", "kind"], sort=False):
        found.setdefault(study, []).append(own.to_dict("records"))
    return found


def copies(run: Path, figures: Path, target: Path) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Copy a run's tables and figures; study, then name, then (kind, address) of each file."""
    listed: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for kind, source in (("tables", run / "tables"), ("figures", figures)):
        for file in sorted(source.glob("*/*")):
            if file.suffix in (".csv", ".tex", ".pdf", ".png"):
                study = file.parent.name
                (target / kind / study).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target / kind / study / file.name)
                names = listed.setdefault(study, {}).setdefault(file.stem, [])
                names.append((file.suffix[1:], quote(f"{kind}/{study}/{file.name}")))
    return listed


def _frame() -> dict[str, str]:
    """The pages' own style and script, and the hashes by which their policy allows them."""
    frame = {}
    for kind, name in (("style", "report.css"), ("script", "report.js")):
        frame[kind] = (TEMPLATES / "report" / name).read_text("utf8")
        digest = hashlib.sha256(frame[kind].encode()).digest()
        frame[f"{kind}_hash"] = base64.b64encode(digest).decode()
    return frame


def build(run: str = paths.DEFAULT_RUN) -> tuple[Path, list[str]]:
    """Write the report of a run; an older one is replaced when the new one is whole.

    Returns its folder, and links that lead nowhere; FileNotFoundError where no notebook has run.
    """
    folder = paths.run_folder(run)
    executed = sorted(file.stem for file in (folder / "notebooks").glob("[0-9]*.ipynb"))
    pages = {name: Page(name, run) for name in executed if not name.endswith(".unfinished")}
    if not pages:
        where = folder / "notebooks"
        raise FileNotFoundError(f"{where} holds no executed notebook: run make all first.")
    every = list(pages.values())
    _set_banners(every, folder / "tables")
    for page in every:
        page.picture = page.opens_with(every)

    target, fresh = folder / "report", folder / "report.unfinished"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    lost, exported = [link for page in every for link in page.relink(pages)], exporter()
    told = {"claims": claims(folder / "tables"), "replies": replies(folder / "tables")}
    told |= {"files": copies(folder, paths.figure_folder(run), fresh), "frame": _frame()}
    exported.environment.globals |= {"run": run, "pages": every, **told}
    for place, page in enumerate(every):
        text, _ = exported.from_notebook_node(page.notebook, {"place": place})
        (fresh / page.file).write_text(text, "utf8")

    main = next((page for page in every if page.banner.kind != "none"), every[0])
    known = {file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb")}
    contents = exported.environment.get_template("contents.html.j2")
    text = contents.render(banner=main.banner, unfinished=sorted(known - set(pages)))
    (fresh / "index.html").write_text(text, "utf8")
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target, lost


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
        print(f"{link}: this link leads nowhere in the report", file=sys.stderr)
    print(f"Report: {target / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
