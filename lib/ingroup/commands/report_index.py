"""What the report's first page puts together from the tables of a run."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from ingroup.commands.report_pages import Page, anchor_key

STUDY_HEADING = anchor_key("Printed versus here")  # the notebooks that compare have it
VERSUS = {"printed": "printed_versus_here.csv", "planted": "planted_versus_here.csv"}


def verdicts(table: pd.DataFrame) -> pd.Series:
    """A verdict for each row of a table that puts printed or planted numbers beside ours.

    It has a column ``verdict``; or ``inside``, whether the planted number lies in the interval; or
    a column beside its ``_planted`` one with the interval ``low`` to ``high``.
    """
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


def versus(pages: Sequence[Page], tables: Path) -> dict[str, Any]:
    """Printed, or planted, versus here: the counts of verdicts of each study, for the template.

    ``rows`` are of verdicts, ``missing`` sentences; the studies are the pages with the section
    "Printed versus here", but for a study's later notebooks, whose tables are its own.
    """
    rows, missing, kinds, known = [], [], [], [page.study for page in pages]
    for page in pages:
        if any(page.study.startswith(f"{study}_") for study in known):
            continue
        files = {kind: tables / page.study / name for kind, name in VERSUS.items()}
        there = {kind: pd.read_csv(file) for kind, file in files.items() if file.exists()}
        if STUDY_HEADING in page.anchors and not there:
            missing.append(
                f"{page.title}: no table puts printed or planted numbers beside this run's "
                f"(build/tables/{page.study}/ has neither {' nor '.join(VERSUS.values())})."
            )
        for kind, table in there.items() if STUDY_HEADING in page.anchors else ():
            kinds.append(kind)
            asked = pd.Series((page.parameters or {}).get("MODEL", ""), table.index)
            for model, own in verdicts(table).groupby(table.get("model", asked), sort=False):
                for verdict, count in own.value_counts(sort=False).items():
                    rows.append([page.title, model, kind, verdict, int(count), len(own)])
    beside = " or ".join(kind for kind in VERSUS if kind in kinds) or "printed"
    return {
        "heading": f"{beside.capitalize()} versus here",
        "text": "Each number of a study that has a counterpart, and how the two compare.",
        "rows": rows,
        "missing": missing,
    }


def audit(tables: Path) -> dict[str, Any]:
    """What the audit found, by paper and by check, or a sentence that it is missing."""
    file = tables / "audit" / "summary.csv"
    if not file.exists():
        missing = f"The audit has not run: no {file.name} in its tables."
        return {"audit": None, "audit_missing": missing}
    summary = pd.read_csv(file)
    totals = summary.groupby("paper", sort=False).sum(numeric_only=True).reset_index()
    totals.loc[len(totals)] = ["all", *totals.iloc[:, 1:].sum()]
    shown = {"columns": list(totals), "totals": totals.to_numpy(object).tolist()}
    shown |= {"all_columns": list(summary), "rows": summary.to_numpy(object).tolist()}
    return {"audit": shown}


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
