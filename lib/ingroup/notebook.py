"""What every study's notebook does alike: parameters, files, what asking took, raw replies."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from ingroup import figures, paths, published
from ingroup.inference import Call, parts, stored, usage
from ingroup.inference.engine import FAILED
from ingroup.inference.generate import TOKENS
from ingroup.parsing import Rule

# A table is shown whole, up to what a page can hold: the report puts a long one in a box.
pd.set_option("display.max_rows", 1_000, "display.max_columns", 40, "display.max_colwidth", 300)


def parameters(names: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters among a notebook's names, ``globals()``: those in capitals."""
    return {name: value for name, value in names.items() if name.isupper()}


def ran(notebook: str, run: str = paths.DEFAULT_RUN) -> dict[str, Any] | None:
    """The parameters that papermill gave a notebook of a run; None where it has not run."""
    file = paths.executed(notebook, run)
    if not file.exists():
        return None
    return json.loads(file.read_text("utf8"))["metadata"].get("papermill", {}).get("parameters")


class Output:
    """Where a study writes a run's tables and figures (``RUN``), and reads the tables again."""

    def __init__(self, study: str, run: str):
        self.figures = paths.figure_folder(run) / study
        self.tables = paths.run_folder(run) / "tables" / study
        for folder in (self.figures, self.tables):
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, table: pd.DataFrame, name: str, index: bool = False) -> pd.DataFrame:
        """Write a table (a numbered one as LaTeX, too); it comes back, to be shown.

        Where printed numbers stand beside those of another checkpoint than the paper's, this is
        said on standard output and once a model in the column ``checkpoint``.
        """
        if name.startswith("printed_versus_here"):
            table = published.with_checkpoints(table)
        figures.write_table(table, self.tables, name, index)
        flat = table.reset_index() if index else table
        note = figures.whose([*dict.fromkeys(flat.get("model", ()))])
        (self.tables / f"{name}.tex").unlink(missing_ok=True)  # of rows that are gone
        if text := published.latex(flat, self.tables.name, name, note):
            (self.tables / f"{name}.tex").write_text(text, "utf8")
        return table

    def drop(self, name: str) -> None:
        """Remove a table and a figure that an earlier run of this name may have made, of others."""
        for file in [*self.tables.glob(f"{name}.*"), *self.figures.glob(f"{name}.*")]:
            file.unlink()

    def read(self, name: str) -> pd.DataFrame:
        """A table that the notebook wrote; see :func:`ingroup.figures.read_table`."""
        return figures.read_table(self.tables, name)

    def save(self, figure: Figure, name: str, shown: Sequence[str] = ()) -> Figure:
        """Write a figure as PDF and PNG; it says which of the models `shown` are calibrants."""
        return figures.save(figure, self.figures, name, figures.whose(shown))


def took(
    calls: Sequence[Call], out: Output, price_in: float = 0.0, price_out: float = 0.0
) -> Styler:
    """What calls took, and their sum (``usage.csv``); why some of them failed (``failed.csv``)."""
    used, failed = [], []
    for call in calls:
        about = {"model": call.model, "asked": call.way, **call.labels}
        for part in parts(stored(call), columns=[*TOKENS, "error", "model"]):
            used.append(usage(part, price_in, price_out, call.model).assign(**about))
            for row in part[part.finish_reason == FAILED].itertuples():
                told = call.design[row.trial].condition
                failed.append({"model": call.model, **call.labels, **told, "reason": row.error})
    spent = pd.concat(used).groupby(list(about), sort=False).sum()
    spent.loc[("all", *[""] * (len(about) - 1)), :] = spent.sum()
    spent = spent.astype(dict.fromkeys(spent.columns.drop("cost"), int))
    out.write(spent, "usage", index=True)
    out.write(pd.DataFrame(failed), "failed")
    shown = spent.style.format_index(escape="html").format("{:,.0f}")
    return shown.format("{:,.2f}", subset="cost")


def one_line(reply: Any) -> str:
    """The first 200 characters of a reply on one line, its line ends shown as ⏎."""
    return (reply if isinstance(reply, str) else "(failed)").replace("\n", "⏎")[:200]


def replies(
    call: Call, status_of: Callable[[str | None], str],
    about: Callable[[Mapping[str, Any]], Mapping[str, Any]], number: int = 4,
) -> HTML:  # fmt: skip
    """At most `number` raw replies of one call without an answer, then as many with, escaped.

    `status_of` gives a reply's status, "ok" where it holds an answer; `about` makes of a condition
    the columns that tell what was asked.
    """

    def some(read: pd.DataFrame) -> pd.DataFrame:
        answered = read[read.status == "ok"]
        rest = read[read.status != "ok"].head(number)
        return pd.concat([rest, answered.iloc[:: len(answered) // number + 1]])

    read = []
    for part in parts(stored(call), columns=["text"]):
        texts = part.text.astype(object)
        read.append(some(part.assign(text=texts, status=texts.map(status_of, na_action=None))))
    rows = [
        {**about(call.design[row.trial].condition), "reply": row.text, "status": row.status}
        for row in some(pd.concat(read)).itertuples()
    ]
    shown = pd.DataFrame(rows)
    return HTML(shown.to_html(formatters={"reply": one_line}, escape=True, index=False))


def read(call: Call, rule: Rule = "sound") -> pd.DataFrame:
    """What the study's ``load`` makes of a call's replies by `rule`: a row a trial, in order.

    ``otherwise`` ("yes", "no"): the released rule reads another value. StoreError without answers.
    """
    load = import_module(f"ingroup.studies.{call.study}.answers").load
    found = [load(call, one) for one in (rule, "released")]
    own, released = (one if isinstance(one, pd.DataFrame) else one.rows for one in found)
    values = [table.drop(columns="status").map(str) for table in (own, released)]
    return own.assign(otherwise=np.where((values[0] != values[1]).any(axis=1), "yes", "no"))
