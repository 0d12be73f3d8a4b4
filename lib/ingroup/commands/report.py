"""The report of a run: a page a notebook and a first page, in one folder that can go anywhere.

It is written beside the executed notebooks and tables of the run. Its pages need no net and no
server, and the same inputs give the same bytes.
"""

import argparse
import base64
import hashlib
import shutil
import sys
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd

from ingroup import models, paths
from ingroup.commands.report_pages import TEMPLATES, Page, exporter
from ingroup.figures import DEMONSTRATION, read_table, whose

WAYS = {models.STORED: "stored answers", "replay": "recorded answers"}
VERSUS = {"printed": "printed_versus_here", "planted": "planted_versus_here"}


class Banner(NamedTuple):
    """What was real: ``kind`` is ``"demonstration"``, ``"real"`` or ``"none"``."""

    kind: str
    head: str
    text: str


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
    demonstrated = False
    for page in pages:
        used = tables / page.study / "usage.csv"
        answered = {*read_table(used.parent, "usage").model} if used.exists() else None
        page.banner = banner(page.parameters, answered)
        entries = (page.parameters or {}).get("MODELS", ())
        demonstrated |= any(models.is_calibrant(models.split(entry)[0]) for entry in entries)
    for page in pages if demonstrated else ():
        sources = "\n".join(cell.source for cell in page.notebook.cells)
        if page.banner.kind == "none" and any(name in sources for name in models.calibrants()):
            more = " What it shows of a calibrant in this run is a demonstration."
            page.banner = page.banner._replace(text=page.banner.text + more)


def verdicts(table: pd.DataFrame) -> pd.Series:
    """Of each row: its ``verdict``; or whether it is ``inside``; or where its planted number is."""
    if "verdict" in table:
        return table["verdict"].fillna("")
    if "inside" in table:
        inside = table["inside"].astype(bool)
        return inside.map({True: "planted in the interval", False: "planted outside the interval"})
    name = next(name for name in table if f"{name}_planted" in table)
    here, planted = table[name], table[f"{name}_planted"]
    inside = planted.between(table["low"], table["high"])
    wording = ["the planted number", "planted in the interval"]
    chosen = np.select([np.isclose(here, planted), inside], wording, "planted outside")
    return pd.Series(chosen, table.index)


def versus(pages: list[Page], tables: Path) -> dict[str, Any]:
    """Counts of the verdicts of each study, and sentences about what is missing, for the template.

    A study's page has the section "Printed versus here"; its later notebooks are left out.
    """
    rows, missing, kinds = [], [], set()
    for page in pages:
        compares = any(heading.text == "Printed versus here" for heading in page.headings)
        if not compares or any(page.study.startswith(f"{other.study}_") for other in pages):
            continue
        folder = tables / page.study
        there = {
            kind: read_table(folder, name)
            for kind, name in VERSUS.items()
            if (folder / f"{name}.csv").exists()
        }
        kinds |= set(there)
        if not there:
            names = (
                f"build/tables/{page.study}/ has neither {'.csv nor '.join(VERSUS.values())}.csv"
            )
            says = "no table puts other numbers beside this run's"
            missing.append(f"{page.title}: {says} ({names}).")
        for kind, table in there.items():
            none = pd.Series("", table.index)
            for model, own in verdicts(table).groupby(table.get("model", none), sort=False):
                for verdict, count in own.value_counts(sort=False).items():
                    rows.append([page.title, model, kind, verdict, int(count), len(own)])
    beside = " or ".join(kind for kind in VERSUS if kind in kinds) or "printed"
    return {"heading": f"{beside.capitalize()} versus here", "rows": rows, "missing": missing}


def compared(tables: Path) -> list[dict[str, Any]]:
    """Claims by model: the estimate on the first path, the share of paths on which they stand."""
    found = []
    for file in sorted((tables / "synthesis").glob("multiverse_*.csv")):
        table, study = read_table(file.parent, file.stem), file.stem.removeprefix("multiverse_")
        if study in ("shares", "options") or table.empty:
            continue
        every = table.groupby(["claim", "model"], sort=False)
        first = every.nth(0).set_index(["claim", "model"])  # and not the first that is no NaN
        stands = 100 * every.stands.mean()
        cells = [
            f"{row.estimate:.2g} ({row.low:.2g} to {row.high:.2g}); {stands[key]:.0f} %"
            if row.estimate == row.estimate
            else f"none: {row.reason}"
            for key, row in first[["estimate", "low", "high", "reason"]].iterrows()
        ]
        wide = pd.Series(cells, first.index).unstack(sort=False).fillna("not asked")
        columns = ["claim", *map(models.label, wide)]
        rows = wide.rename(index=lambda name: name.replace("_", " ")).reset_index()
        shown = {"columns": columns, "rows": rows.to_numpy().tolist()}
        found.append({"study": study.replace("_", " "), **shown})
    return found


def audit(tables: Path) -> dict[str, list] | None:
    """What the audit found, by paper and by check; None where it has not run."""
    if not (tables / "audit" / "summary.csv").exists():
        return None
    summary = read_table(tables / "audit", "summary")
    totals = summary.groupby("paper", sort=False).sum(numeric_only=True).reset_index()
    totals.loc[len(totals)] = ["all", *totals.iloc[:, 1:].sum()]
    shown = {"columns": list(totals), "totals": totals.to_numpy(object).tolist()}
    return shown | {"all_columns": list(summary), "rows": summary.to_numpy(object).tolist()}


def copies(run: Path, figures: Path, target: Path) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Copy a run's tables and figures; study, then name, then (kind, address) of each file."""
    listed: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for kind, source in (("tables", run / "tables"), ("figures", figures)):
        for file in sorted(source.glob("*/*")):
            if file.suffix in (".csv", ".pdf", ".png"):
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
    for before, after in pairwise(every):
        before.after, after.before = after, before

    target, fresh = folder / "report", folder / "report.unfinished"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    exported, frame, lost = exporter(), _frame(), []
    for page in every:
        lost += page.relink(pages)
        text, _ = exported.from_notebook_node(page.notebook, {"page": page, "frame": frame})
        (fresh / page.file).write_text(text, "utf8")

    main = next((page for page in every if page.banner.kind != "none"), every[0])
    known = {file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb")}
    text = exported.environment.get_template("contents.html.j2").render(
        resources={"frame": frame},
        run=run,
        pages=every,
        banner=main.banner,
        others=[page for page in every if page.banner != main.banner],
        versus=versus(every, folder / "tables"),
        compared=compared(folder / "tables"),
        unfinished=sorted(known - set(pages)),
        files=copies(folder, paths.figure_folder(run), fresh),
        audit=audit(folder / "tables"),
    )
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
