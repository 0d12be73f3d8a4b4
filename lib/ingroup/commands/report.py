"""The report of a run: a first page and one page per notebook, in a folder that can be moved.

The folder lies beside the run's executed notebooks and tables. Its pages need no network and no
server. The same inputs give the same bytes.
"""

import argparse
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from ingroup import claim_verdicts, models, paths
from ingroup.commands import book
from ingroup.commands.report_pages import Banner, Page
from ingroup.families import families
from ingroup.figures import DEMONSTRATION_NOTE, models_note, read_table
from ingroup.stats import multiverse

ANSWER_SOURCES = {models.STORED: "stored answers", "replay": "recorded answers"}
COMPARISON_TABLES = {"printed": "printed_versus_here", "ground truth": "ground_truth_versus_here"}
COPIED_SUFFIXES = {".csv", ".tex", ".pdf", ".png"}  # the files of a run that go into its report
Links = list[tuple[str, str]]  # (kind, address) of a file in its formats
# Verdicts that need a subject to be read alone.
VERDICTS_IN_WORDS = {
    "covers the ground truth": "the interval covers the ground truth",
    "misses the ground truth": "the interval misses the ground truth",
    "in the 95 % interval": "the ground truth is inside the 95 % interval",
    "outside the 95 % interval": "the ground truth is outside the 95 % interval",
    "clusters of the ground truth": "all clusters are those of the ground truth",
    "no cluster differs, as in the ground truth": "no cluster differs, as in the ground truth,",
    "not all clusters of the ground truth": "not all clusters are those of the ground truth",
}
MAX_ROWS_LISTED = 3  # a verdict of so many rows is reported with their lines


def banner(parameters: dict[str, Any] | None, answered: Collection[str] | None = None) -> Banner:
    """Say whether the models of a notebook were real or calibrants.

    Parameters
    ----------
    parameters : dict or None
        The parameters with which it ran, or None where they are not known.
    answered : collection of str, optional
        The models that answered. Other models are left out. By default all models are shown.

    Returns
    -------
    Banner
        The models, by engine where all of them are real.
    """
    if parameters is None:
        return Banner(
            kind="none",
            head="Not known:",
            text="this notebook does not say how it was run.",
        )
    if not parameters.get("MODELS"):
        return Banner(
            kind="none",
            head="No model:",
            text="none was asked on this page.",
        )

    names = []
    labels = []
    default_engine = parameters.get("ENGINE", "")
    for entry in parameters["MODELS"]:
        model, engine = models.split_entry(entry, default_engine)
        if answered is None or models.without_place(model) in answered:
            names.append(model)
            source = ANSWER_SOURCES.get(engine, engine)
            labels.append(f"{models.label(model)} ({source})")

    note = models_note(names)
    if not note:
        return Banner(
            kind="real",
            head="Real:",
            text=f"{', '.join(labels)}.",
        )

    head, _, text = note.partition(": ")
    kind = "demonstration" if note == DEMONSTRATION_NOTE else "real"
    return Banner(kind, f"{head}:", text)


def _set_banners(pages: list[Page], tables: Path) -> None:
    """Set the banner of each page.

    A page that asked no model gets a further note if it names a calibrant and the run has one.
    """
    run_models = set()
    for page in pages:
        run_models |= page.models
        answered = None
        folder = tables / page.folder
        # Models without stored answers were left out; usage.csv has those that answered.
        if (folder / "usage.csv").exists():
            answered = set(read_table(folder, "usage").model)
        page.banner = banner(page.parameters, answered)

    if not any(map(models.is_calibrant, run_models)):
        return
    for page in pages:
        if page.banner.kind == "none" and _names_calibrant(page):
            more = " What it shows of a calibrant in this run is a demonstration."
            page.banner = page.banner._replace(text=page.banner.text + more)


def _names_calibrant(page: Page) -> bool:
    """Tell whether the cells of a page name a calibrant."""
    text = "\n".join(cell.source for cell in page.notebook.cells)
    return any(name in text for name in models.calibrants())


def verdicts(table: pd.DataFrame) -> pd.Series:
    """Return the verdict on each row of a table of printed or ground-truth numbers.

    Parameters
    ----------
    table : DataFrame
        With a column ``verdict``, or with ``inside``, whether the number is in its interval. A
        table with neither has a number ``x``, its ground-truth value ``x_ground_truth``, and the
        interval from ``low`` to ``high``.

    Returns
    -------
    Series of str
        "" where a row has no verdict.
    """
    if "verdict" in table:
        return table["verdict"].fillna("")

    interval = {True: "in the 95 % interval", False: "outside the 95 % interval"}
    if "inside" in table:
        return table["inside"].astype(bool).map(interval)

    name = next(name for name in table if f"{name}_ground_truth" in table)
    ground_truth = table[f"{name}_ground_truth"]
    inside = ground_truth.between(table.low, table.high).map(interval)
    is_equal = np.isclose(table[name], ground_truth)
    return inside.mask(is_equal, "equal to the ground truth")


def count_verdicts(folder: Path, since: float = 0.0) -> list[str]:
    """Count the verdicts on the numbers of a study.

    Parameters
    ----------
    folder : Path
        The tables of a study.
    since : float
        Only tables written at this time or later are counted, in seconds as `time.time` has them.

    Returns
    -------
    list of str
        One line per table (`COMPARISON_TABLES`) with the number of rows of each verdict, and the
        lines in the file where these are few. One more line for each model that is another
        checkpoint than the paper's.
    """
    sentences = []
    for kind, name in COMPARISON_TABLES.items():
        file = folder / f"{name}.csv"
        if not file.exists() or file.stat().st_mtime < since:
            continue

        table = read_table(folder, name)
        counts = _counts(verdicts(table), file)
        if set(table.get("pipeline", ())) == {"exact"}:
            counts.append("the pipeline is exact")
        sentences.append(f"{kind}: {', '.join(counts)}")
        if "checkpoint" in table:
            sentences += table["checkpoint"].dropna().tolist()
    return sentences


def _counts(verdict_of_row: pd.Series, file: Path) -> list[str]:
    """Count the rows of each verdict, in words, and name the lines of the file if rows are few."""
    total = len(verdict_of_row)
    given = verdict_of_row[verdict_of_row != ""]
    counts = []
    for verdict, rows in given.groupby(given, sort=False):
        count = f"{VERDICTS_IN_WORDS.get(verdict, verdict)} in {len(rows)} of {total} rows"
        if len(rows) <= MAX_ROWS_LISTED < total:
            # Line 1 of the file is the header, and rows count from 0.
            lines = map(str, rows.index + 2)
            word = "line" if len(rows) == 1 else "lines"
            count += f" ({file.name}, {word} {', '.join(lines)})"
        counts.append(count)
    return counts


def claims(tables: Path) -> dict[str, Any] | None:
    """Read the papers' claims and their verdicts from the tables of 00_map.

    Parameters
    ----------
    tables : Path
        The folder of a run's tables.

    Returns
    -------
    dict or None
        None where 00_map has not run. ``found`` has the sentences on all claims, each with its
        ``notebook``. ``models`` has the label of each model by its name, real models first.
        ``controls`` has the names of the calibrants. ``rows`` has the papers' claims. A row has its
        ``cells`` by model, with the ``line`` of each in the file, and the direction of the claim in
        words (``says``). ``counts`` has the number of each verdict by study and model. ``claimed``
        has the claim of each paper, and ``papers`` the verdict on each whole paper by model.
    """
    folder = tables / "map"
    if not (folder / "claims.csv").exists():
        return None

    table = read_table(folder, "claims")
    table["line"] = table.index + 2  # line 1 is the header
    claimed = families()
    rows = []
    # The table has a row for each claim and model; the page has one row, with a cell for each
    # model.
    for _, claim in table.groupby(["study", "name"], sort=False):
        row = claim.iloc[0].fillna("").to_dict()
        row["cells"] = claim.set_index("model").to_dict("index")
        words = claimed[row["study"]].words if row["study"] in claimed else {}
        row["says"] = words.get(row["way"], row["way"])
        rows.append(row)

    # False comes before True, so real models stand first.
    names = sorted(table.model.unique(), key=models.is_calibrant)
    counts: dict = {}
    papers = {}
    for study, of_study in table.groupby("study", sort=False):
        # A model without answers in a study has no verdict there.
        counts[study] = {name: {} for name in names}
        papers[study] = {name: multiverse.paper_verdict([]) for name in names}
        for name, of_model in of_study.groupby("model"):
            counts[study][name] = of_model.verdict.value_counts().to_dict()
            papers[study][name] = claim_verdicts.verdict_on_paper(of_model)

    return {
        "claimed": {study: family.claim for study, family in claimed.items()},
        "counts": counts,
        "controls": [name for name in names if models.is_calibrant(name)],
        "found": read_table(folder, "found").to_dict("records"),
        "models": {name: models.label(name) for name in names},
        "papers": papers,
        "rows": rows,
    }


def replies(tables: Path) -> dict[str, list[list[dict[str, Any]]]]:
    """Read the prompts and replies that 00_map chose as examples.

    Parameters
    ----------
    tables : Path
        The folder of a run's tables.

    Returns
    -------
    dict of str to list
        By study, a list for each model and kind of reply, real models first: some of its trials,
        each a row of ``replies.csv``. Empty where 00_map has not run.
    """
    folder = tables / "map"
    if not (folder / "replies.csv").exists():
        return {}

    table = read_table(folder, "replies").astype(object)
    table = table.fillna("")
    # False comes before True, so real models stand first.
    table = table.sort_values(
        "model", key=lambda names: names.map(models.is_calibrant), kind="stable"
    )
    table["model"] = table.model.map(models.label)
    examples = defaultdict(list)
    for (study, _, _), trials in table.groupby(["study", "model", "kind"], sort=False):
        examples[study].append(trials.to_dict("records"))
    return dict(examples)


def copies(run: Path, figures: Path, target: Path) -> dict[str, dict[str, Links]]:
    """Copy the tables and figures of a run into its report, and return their addresses.

    Parameters
    ----------
    run, figures : Path
        The folder of a run, which holds its ``tables``, and that of its figures.
    target : Path
        The folder of the report.

    Returns
    -------
    dict
        By study and name, a list of (kind, address), e.g. ``("csv", "tables/map/claims.csv")``.
    """
    copied: dict = {}
    sources = {"tables": run / "tables", "figures": figures}
    for kind, source in sources.items():
        for file in sorted(source.glob("*/*")):
            if file.suffix not in COPIED_SUFFIXES:
                continue

            study = file.parent.name
            folder = target / kind / study
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / file.name)
            # A file's name may hold signs that an address cannot.
            address = quote(f"{kind}/{study}/{file.name}")
            suffix = file.suffix.removeprefix(".")
            links = copied.setdefault(study, {}).setdefault(file.stem, [])
            links.append((suffix, address))
    return copied


def gather(run: str, site: Path) -> tuple[book.Contents, list[str]]:
    """Read the contents of a run's book, and copy its files.

    Parameters
    ----------
    run : str
        The name of the run.
    site : Path
        The folder to which its tables and figures are copied.

    Returns
    -------
    contents : book.Contents
        Notebooks, claims, replies and files.
    lost : list of str
        Notebooks that cannot be read.

    Raises
    ------
    FileNotFoundError
        Where no notebook has run.
    """
    folder = paths.run_folder(run)
    pages, lost = book.read_pages(run)
    if not pages:
        where = folder / "notebooks"
        raise FileNotFoundError(f"{where} holds no executed notebook: make all first")

    tables = folder / "tables"
    _set_banners(pages, tables)
    contents = book.Contents(
        run=run,
        pages=pages,
        claims=claims(tables),
        replies=replies(tables),
        files=copies(folder, paths.figure_folder(run), site),
    )
    return contents, lost


def build(run: str = paths.DEFAULT_RUN) -> tuple[Path, list[str]]:
    """Write the report of a run.

    An older report is replaced when the new report is complete.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    folder : Path
        The folder of the report, whose first page is ``index.html``.
    lost : list of str
        The faults of the report, e.g. links that lead nowhere, each with its page.

    Raises
    ------
    FileNotFoundError
        Where no notebook has run.
    """
    fresh = paths.run_folder(run) / "report.unfinished"
    shutil.rmtree(fresh, ignore_errors=True)
    site = fresh / "site"
    contents, lost = gather(run, site)
    lost += book.write(contents, fresh / "sources")
    lost += book.make(fresh / "sources", site)

    target = paths.run_folder(run) / "report"
    shutil.rmtree(target, ignore_errors=True)
    site.rename(target)
    shutil.rmtree(fresh)
    return target, lost


def main(arguments: list[str] | None = None) -> int:
    """Write the report of the run that the command line names.

    Parameters
    ----------
    arguments : list of str, optional
        The command line; by default that of this program.

    Returns
    -------
    int
        The exit status: 0 when the report is written, 2 where nothing has run or Sphinx failed.
    """
    parser = argparse.ArgumentParser(prog="python -m ingroup.commands.report", description=__doc__)
    parser.add_argument("--run", default=paths.DEFAULT_RUN, help="name of the run")
    options = parser.parse_args(arguments)
    try:
        target, lost = build(options.run)
    except (FileNotFoundError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2

    for link in lost:
        print(link, file=sys.stderr)
    print(f"Report: {os.path.relpath(target)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
