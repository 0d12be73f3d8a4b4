"""What every study's notebook does alike: parameters, files, what asking took, raw replies."""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from ingroup import figures, latex, models, paths, published
from ingroup.inference import Call, parts, rated, stored, usage
from ingroup.inference.generate import TOKENS
from ingroup.parsing import CUT, FAILED, OK, REFUSED, Rule, final_status
from ingroup.tables import InputError, writing

# A table is shown whole, up to what a page can hold: the report puts a long one in a box.
pd.set_option("display.max_rows", 1_000, "display.max_columns", 40, "display.max_colwidth", 300)


# Why a call gave no answer that could be parsed, where the engine gave no reason of its own.
ENDED = {
    FAILED: "the engine gave no text",
    REFUSED: "a content filter declined",
    CUT: "the reply ended before its answer: a larger MAX_TOKENS asks again",
}


def parameters(names: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters among a notebook's names, ``globals()``: those in capitals."""
    return {name: value for name, value in names.items() if name.isupper()}


def ran(notebook: str, run: str = paths.DEFAULT_RUN) -> dict[str, Any] | None:
    """The parameters that papermill gave a notebook of a run; None where it has not run.

    InputError for a run of an earlier version, whose parameters have other names.
    """
    file = paths.executed(notebook, run)
    if not file.exists():
        return None
    metadata = json.loads(file.read_text("utf8"))["metadata"]
    parameters = metadata.get("papermill", {}).get("parameters")
    if parameters and "RATING" in parameters:
        raise InputError(f"{notebook} of run {run!r} was made by an earlier version: run it again")
    return parameters


class Output:
    """Where a study writes a run's tables and figures (``RUN``), and reads the tables again."""

    def __init__(self, study: str, run: str):
        self.figures = paths.figure_folder(run) / study
        self.tables = paths.run_folder(run) / "tables" / study
        for folder in (self.figures, self.tables):
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)

    def write(self, table: pd.DataFrame, name: str, index: bool = False) -> pd.DataFrame:
        """Write a table (a numbered one as LaTeX, too); it comes back, to be shown.

        Where printed numbers stand beside those of another checkpoint than the paper's, this is
        said on standard output and once a model in the column ``checkpoint``.
        """
        if name.startswith("printed_versus_here"):
            table = published.with_checkpoints(table)
        flat = table.reset_index() if index else table
        text = latex.tables(flat, self.tables.name, name)
        with writing(self.tables):
            figures.write_table(table, self.tables, name, index)
            (self.tables / f"{name}.tex").unlink(missing_ok=True)  # of rows that are gone
            if text:
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
        note = figures.whose(shown)
        with writing(self.figures):
            return figures.save(figure, self.figures, name, note)


def left_out(planned: Sequence[Call], asked: Sequence[Call]) -> HTML:
    """Show in a box of which models a run has no answers, and how to get them.

    Parameters
    ----------
    planned : sequence of Call
        What the run wanted to read or ask.
    asked : sequence of Call
        What :func:`ingroup.inference.ask` returned of these.

    Returns
    -------
    HTML
        Empty where no model lacks an answer that the study analyses.
    """
    lacking: dict[str, list[Call]] = {}
    for call in rated(planned):
        if call not in asked:
            lacking.setdefault(call.model, []).append(call)

    lines = []
    for model, calls in lacking.items():
        wanted = [call for call in rated(planned) if call.model == model]
        parts = dict.fromkeys(" ".join(map(str, call.labels.values())) for call in calls)
        what = "all of it" if len(calls) == len(wanted) else "; ".join(parts)
        line = f"<b>{escape(models.label(model))}</b>: {escape(what)}"
        if model in models.carried():
            remedy = f"make model, then MODELS={model}@transformers"
            line = f"{line}. To ask it now: <code>{escape(remedy)}</code>"
        lines.append(f"<li>{line}</li>")

    if not lines:
        return HTML("")
    style = "border: 1px solid #B07000; border-radius: 4px; padding: 0.5em 1em"
    head = "Not in this run, because these answers are not recorded:"
    return HTML(f'<div style="{style}">{head}<ul>{"".join(lines)}</ul></div>')


def took(
    calls: Sequence[Call], out: Output, price_in: float = 0.0, price_out: float = 0.0
) -> Styler:
    """What calls took, and their sum (``usage.csv``); which gave no answer (``failed.csv``).

    Prices are per million tokens; each reply of a server counts at the share of them at which it
    was bought. Three kinds gave no answer: calls that failed, replies that a filter declined, and
    replies that ended before their answer. A larger ``MAX_TOKENS`` asks the last again.
    """
    used = []
    failed = []
    for call in calls:
        store = stored(call)
        # A model on this machine has no price.
        is_served = store.manifest.get("engine") in models.SERVERS
        prices = (price_in, price_out) if is_served else (0.0, 0.0)
        about = {"model": call.model, "asked": call.way, **call.labels}
        columns = [*TOKENS, "text", "reasoning", "error", "model", "price_share"]
        for part in parts(store, columns):
            used.append(usage(part, *prices, call.model).assign(**about))
            status = final_status(part, [OK] * len(part))
            for row, why in zip(part[status != OK].itertuples(), status[status != OK], strict=True):
                told = call.design[row.trial].condition
                reason = row.error or f"{ENDED[why]} ({row.output_tokens:,} tokens)"
                about_trial = {"model": call.model, **call.labels, **told}
                failed.append(about_trial | {"status": why, "reason": reason})
    spent = pd.concat(used).groupby(list(about), sort=False).sum()
    spent.loc[("all", *[""] * (len(about) - 1)), :] = spent.sum()
    spent = spent.astype(dict.fromkeys(spent.columns.drop("cost"), int))
    out.write(spent, "usage", index=True)
    out.write(pd.DataFrame(failed), "failed")
    shown = spent.style.format_index(escape="html").format("{:,.0f}")
    return shown.format("{:,.2f}", subset="cost")


def option_mass(calls: Sequence[Call], out: Output) -> Styler:
    """How much of a model's probability its scored answers hold (``option_mass.csv``).

    A row a model and part of the study: how many answers, the mean and least option mass, and the
    per cent of answers below one half, where the model would mostly have said something else. A
    line warns of each model with such answers.
    """
    rows = []
    for call in calls:
        if not call.over_choices:
            continue
        masses = [part.mass.list.flatten() for part in parts(stored(call), columns=["mass"])]
        mass = pd.concat(masses).astype(float)
        rows.append({
            "model": call.model,
            **call.labels,
            "answers": len(mass),
            "mean": mass.mean(),
            "least": mass.min(),
            "below half %": 100 * mass.lt(0.5).mean(),
        })  # fmt: skip

    table = pd.DataFrame(rows, columns=None if rows else ["model", "answers", "below half %"])
    out.write(table, "option_mass")
    low = table[table["below half %"] > 0].groupby("model", sort=False)
    for model, share in low["below half %"].mean().items():
        print(
            f"Warning: {share:.0f} % of {models.label(model)}'s scored answers hold less than half "
            "of its probability: asked for free text it would mostly say something else."
        )
    shown = table.style.hide().format(escape="html").format(precision=3, subset=table.columns[-3:])
    return shown if rows else table.style.hide()


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
    for part in parts(stored(call), columns=["text", "reasoning"]):
        texts = part.text.astype(object)
        parsed = texts.map(status_of, na_action=None)
        read.append(some(part.assign(text=texts, status=final_status(part, parsed))))
    rows = []
    for row in some(pd.concat(read)).itertuples():
        said = {"reasoning": row.reasoning, "reply": row.text, "status": row.status}
        rows.append({**about(call.design[row.trial].condition), **said})
    shown = pd.DataFrame(rows)
    if not shown["reasoning"].astype(bool).any():
        shown = shown.drop(columns="reasoning")
    # A collapsed reasoning is HTML, so every cell is escaped by its own formatter.
    formatters = dict.fromkeys(shown.columns, lambda cell: escape(str(cell)))
    formatters["reply"] = lambda reply: escape(one_line(reply))
    formatters["reasoning"] = collapsed
    return HTML(shown.to_html(formatters=formatters, escape=False, index=False))


def collapsed(reasoning: str) -> str:
    """A reasoning as HTML that opens on a click, escaped; "" where there is none."""
    if not reasoning:
        return ""
    inside = escape(reasoning)
    return f"<details><summary>{len(reasoning):,} characters</summary>{inside}</details>"


def read(call: Call, rule: Rule = "sound") -> pd.DataFrame:
    """What the study's ``load`` makes of a call's replies by `rule`: a row a trial, in order.

    ``otherwise`` ("yes", "no"): the released rule reads another value. StoreError without answers.
    """
    load = import_module(f"ingroup.studies.{call.study}.answers").load
    found = [load(call, one) for one in (rule, "released")]
    own, released = (one if isinstance(one, pd.DataFrame) else one.rows for one in found)
    values = [table.drop(columns="status").map(str) for table in (own, released)]
    return own.assign(otherwise=np.where((values[0] != values[1]).any(axis=1), "yes", "no"))
