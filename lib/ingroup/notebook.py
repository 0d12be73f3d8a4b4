"""Steps that every study's notebook shares: parameters, files, usage and raw replies."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import HTML
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from ingroup import figures, latex, models, paths, published
from ingroup.contract import module_of
from ingroup.inference import Job, jobs_by_model, parts, rated, stored, usage
from ingroup.inference.generate import TOKENS
from ingroup.parameters import Parameters, checked_parameters
from ingroup.parsing import CUT, FAILED, OK, REFUSED, Rule, final_status
from ingroup.tables import InputError, writing

# A table is shown whole, up to what a page can hold: the report puts a long one in a box.
pd.set_option("display.max_rows", 1_000)
pd.set_option("display.max_columns", 40)
pd.set_option("display.max_colwidth", 300)

# Why a call gave no answer that could be parsed, where the engine gave no reason of its own.
REASON_BY_STATUS = {
    FAILED: "the engine gave no text",
    REFUSED: "a content filter declined",
    CUT: "the reply ended before its answer: a larger MAX_TOKENS asks again",
}

MAX_PARTS_NAMED = 3  # parts of a study that are named, of those that a model lacks


def parameters(names: Mapping[str, Any], base: type[Parameters] | None = None) -> dict[str, Any]:
    """Select the parameters among a notebook's names, and check them.

    Parameters
    ----------
    names : mapping
        The names of a notebook and their values, ``globals()``.
    base : type of Parameters, optional
        The ``Parameters`` of the study's design. Without it no value is checked.

    Returns
    -------
    dict
        The names without a lower-case letter, with their values, except classes and functions.

    Raises
    ------
    InputError
        For the first value that cannot work, with the message of the command line. A number or list
        that is written as a text is refused, too: other cells use the value unchanged.
    """
    values = {}
    for name, value in names.items():
        if name.isupper() and not callable(value):
            values[name] = value
    if base is None:
        return values

    return checked_parameters(base, values, values, strict=True)


def parameters_of_run(notebook: str, run: str = paths.DEFAULT_RUN) -> dict[str, Any] | None:
    """Read the parameters of a notebook of a run.

    Parameters
    ----------
    notebook : str
        The notebook's name without a suffix, e.g. ``"10_empathy_gap"``.
    run : str
        The name of the run.

    Returns
    -------
    dict or None
        The parameters that papermill gave the notebook, or with which a copy started in JupyterLab;
        None if the notebook has not run.

    Raises
    ------
    InputError
        For a run of an earlier version, whose parameters have other names.
    """
    file = paths.executed(notebook, run)
    if not file.exists():
        # A copy that was started in JupyterLab has no executed notebook.
        started = paths.started(notebook, run)
        if not started.exists():
            return None
        return json.loads(started.read_text("utf8"))["parameters"]

    metadata = json.loads(file.read_text("utf8"))["metadata"]
    parameters = metadata.get("papermill", {}).get("parameters")
    # These are READING and ROUNDS now.
    if parameters and not {"RATING", "RUNS"}.isdisjoint(parameters):
        raise InputError(f"{notebook} of run {run!r} was made by an earlier version: run it again")
    return parameters


class Output:
    """The folders into which a notebook writes a study's tables and figures.

    Parameters
    ----------
    study : str
        The name of the study's folders.
    run : str
        The name of the run. :func:`ingroup.paths.written_run` may name another run.

    Attributes
    ----------
    figures, tables : Path
        The two folders, which are made.

    Raises
    ------
    InputError
        Where a folder cannot be made.
    """

    def __init__(self, study: str, run: str):
        written = paths.written_run(run)
        self.figures = paths.figure_folder(written) / study
        self.tables = paths.run_folder(written) / "tables" / study
        for folder in (self.figures, self.tables):
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)

    def write(self, table: pd.DataFrame, name: str, index: bool = False) -> pd.DataFrame:
        """Write a table, and a numbered table as LaTeX, too.

        Parameters
        ----------
        table : DataFrame
            The table.
        name : str
            The name of the table, without a suffix.
        index : bool
            Whether the index is written.

        Returns
        -------
        DataFrame
            The table, to be shown. Where it compares printed numbers with another checkpoint than
            the paper's, it has a column ``checkpoint``, and a line on standard output says so
            (:func:`ingroup.published.with_checkpoints`).
        """
        if name.startswith("printed_versus_here"):
            table = published.with_checkpoints(table)
        flat = table.reset_index() if index else table
        # The folder of the tables has the name of the study.
        text = latex.tables(flat, self.tables.name, name)
        latex_file = self.tables / f"{name}.tex"

        with writing(self.tables):
            figures.write_table(table, self.tables, name, index)
            # The file of an earlier run may have rows that are gone.
            latex_file.unlink(missing_ok=True)
            if text:
                latex_file.write_text(text, "utf8")

        return table

    def write_any(self, table: pd.DataFrame, name: str) -> pd.DataFrame:
        """Write a table that has rows, or else drop the table of an earlier run.

        Parameters
        ----------
        table : DataFrame
            The table. Its index is not written.
        name : str
            The name of the table, without a suffix.

        Returns
        -------
        DataFrame
            The table, to be shown, as :meth:`write` returns it.
        """
        if table.empty:
            self.drop(name)
            return table
        return self.write(table, name)

    def drop(self, name: str) -> None:
        """Remove a table and a figure that an earlier run with this name may have made.

        Parameters
        ----------
        name : str
            The name of the table and of the figure, without a suffix.
        """
        for folder in (self.tables, self.figures):
            for file in folder.glob(f"{name}.*"):
                file.unlink()

    def has(self, name: str) -> bool:
        """Tell whether the notebook wrote a table.

        Parameters
        ----------
        name : str
            The table's name, without a suffix.

        Returns
        -------
        bool
            False for a table that a run without its answers dropped.
        """
        file = self.tables / f"{name}.csv"
        return file.exists()

    def earlier(self, name: str, run: str) -> Path:
        """Find the file of a table of this study that another notebook wrote.

        Parameters
        ----------
        name : str
            The table's name, without a suffix.
        run : str
            The run that the notebook reads. In JupyterLab, it writes into another run.

        Returns
        -------
        Path
            The file beside the notebook's own tables, if it is there; else the file of `run`.
        """
        own = self.tables / f"{name}.csv"
        if own.exists():
            return own
        return paths.run_folder(run) / "tables" / self.tables.name / own.name

    def read(self, name: str) -> pd.DataFrame:
        """Read a table that the notebook wrote, by `figures.read_table`.

        Parameters
        ----------
        name : str
            The table's name, without a suffix.

        Returns
        -------
        DataFrame
            The table, with the types that pandas infers.
        """
        return figures.read_table(self.tables, name)

    def save(
        self,
        figure: Figure,
        name: str,
        shown: Sequence[str] | Mapping[str, Sequence[str]] = (),
    ) -> Figure:
        """Write a figure as PDF and PNG.

        Parameters
        ----------
        figure : Figure
            A figure without a note.
        name : str
            The name of its files, without a suffix.
        shown : sequence of str, or mapping
            The models in the figure, or in each of its panels, as `figures.models_note` takes them.
            A note in the figure says which of them are calibrants.

        Returns
        -------
        Figure
            The figure, to be shown.

        Raises
        ------
        InputError
            Where a file cannot be written.
        """
        note = figures.models_note(shown)
        with writing(self.figures):
            return figures.save(figure, self.figures, name, note)


def shown(table: pd.DataFrame | Styler, empty: str) -> pd.DataFrame | Styler | HTML:
    """Show a table, or say why it has no rows.

    Parameters
    ----------
    table : DataFrame or Styler
        The table.
    empty : str
        A sentence that stands in its place if it has no rows.

    Returns
    -------
    DataFrame, Styler or HTML
        The table, or the sentence in its place.
    """
    rows = table.data if isinstance(table, Styler) else table
    if len(rows):
        return table
    return HTML(f"<p>{escape(empty)}</p>")


def for_each(keys: Iterable[tuple[str, ...]], function: Callable[..., Any]) -> dict[tuple, Any]:
    """Apply a function to each part of a study, and print the parts without a result.

    Parameters
    ----------
    keys : iterable of tuple
        The names of each part, for example a model and a setting.
    function : callable
        Takes the names of a part, one by one. A ValueError says why the part has no result.

    Returns
    -------
    dict
        The results by key. A line on standard output names each part without a result.
    """
    results = {}
    for key in keys:
        try:
            results[key] = function(*key)
        except ValueError as error:
            print(f"{', '.join(key)} is left out: {error}")
    return results


def by_key(rows: Mapping[tuple[str, ...], Mapping[str, Any]], names: Sequence[str]) -> pd.DataFrame:
    """Make a table with one row per part of a study.

    Parameters
    ----------
    rows : mapping
        The numbers of each part, by its names, as `for_each` returns them.
    names : sequence of str
        The columns of the parts' names, for example ``["model", "setting"]``.

    Returns
    -------
    DataFrame
        A column for each of `names`, then a column for each number.
    """
    index = pd.MultiIndex.from_tuples(list(rows), names=names)
    table = pd.DataFrame(list(rows.values()), index)
    return table.reset_index()


def left_out(planned: Sequence[Job], asked: Sequence[Job]) -> HTML:
    """Show in a box the models without answers in a run, and how to ask them.

    Parameters
    ----------
    planned : sequence of Job
        The jobs that the run wanted to read or ask.
    asked : sequence of Job
        The jobs among these that :func:`ingroup.inference.ask` returned.

    Returns
    -------
    HTML
        Empty where no model lacks an answer that the study analyses.
    """
    lines = []
    lacking_models = []
    for model, of_model in jobs_by_model(rated(planned)).items():
        lacking = [job for job in of_model if job not in asked]
        if lacking:
            lines.append(_lacking_line(model, lacking, len(of_model)))
            lacking_models.append(model)

    if not lines:
        return HTML("")

    head = "Not in this run, because these answers are not recorded:"
    remedy = _remedy(lacking_models)
    return HTML(f"<blockquote>{head}<ul>{''.join(lines)}</ul>{remedy}</blockquote>")


def _lacking_line(model: str, lacking: Sequence[Job], n_wanted: int) -> str:
    """Name a model and the parts that it lacks, as an item of a list in HTML."""
    parts = []
    for job in lacking:
        part = " ".join(map(str, job.labels.values()))
        if part not in parts:
            parts.append(part)

    listed = "; ".join(parts[:MAX_PARTS_NAMED])
    n_more = len(parts) - MAX_PARTS_NAMED
    if len(lacking) == n_wanted:
        listed = "all parts"
    elif n_more > 0:
        listed = f"{listed} and {n_more} more parts"

    name = escape(models.label(model))
    return f"<li><b>{name}</b>: {escape(listed)}</li>"


def _remedy(lacking_models: Sequence[str]) -> str:
    """Say in HTML how to ask these models. Return "" if no model has packaged weights."""
    packaged = models.packaged_models()
    askable = [model for model in lacking_models if model in packaged]
    if not askable:
        return ""

    entries = [f"{model}@transformers" for model in askable]
    in_cell = json.dumps(entries)
    on_command_line = ";".join(entries)
    megabytes = sum(packaged[model]["megabytes"] for model in askable)

    return (
        f"<p>To ask now: write <code>MODELS = {escape(in_cell)}</code> in the cell of parameters "
        "and run all cells, or call make with "
        f"<code>MODELS='{escape(on_command_line)}'</code>. Weights that are not here are fetched "
        f"first ({megabytes:,} MB). <code>make plan</code> says how many prompts that are.</p>"
    )


def took(
    jobs: Sequence[Job],
    out: Output,
    price_in: float = 0.0,
    price_out: float = 0.0,
) -> Styler:
    """Sum up the usage of jobs (``usage.csv``), and list unanswered trials (``failed.csv``).

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers.
    out : Output
        Where the tables go.
    price_in, price_out : float
        Prices per million tokens. Each reply of a server counts at the share of the price at which
        it was bought. A model on this machine has no price.

    Returns
    -------
    Styler
        The usage of each job, and the sum over all.

    Notes
    -----
    Three kinds of trials have no answer: calls that failed, replies that a filter declined, and
    replies that ended before their answer. A larger ``MAX_TOKENS`` asks the last kind again.
    """
    used = []
    failed = []
    columns = [*TOKENS, "text", "reasoning", "error", "model", "price_share"]

    for job in jobs:
        store = stored(job)
        is_served = store.manifest.get("engine") in models.SERVERS
        prices = (price_in, price_out) if is_served else (0.0, 0.0)
        keys = {"model": job.model, "mode": job.mode, **job.labels}
        # The store is read in parts, because it may have millions of replies.
        for part in parts(store, columns):
            of_part = usage(part, *prices, job.model)
            used.append(of_part.assign(**keys))
            failed.extend(_without_answer(part, job))

    used_by_part = pd.concat(used)
    labels = jobs[-1].labels
    spent = used_by_part.groupby(["model", "mode", *labels], sort=False).sum()
    blanks = [""] * (len(labels) + 1)
    spent.loc[("all", *blanks), :] = spent.sum()
    # The sums are one Series of floats, but only the cost is no whole number.
    counts = spent.columns.drop("cost")
    spent = spent.astype(dict.fromkeys(counts, int))

    out.write(spent, "usage", index=True)
    out.write(pd.DataFrame(failed), "failed")
    # The names of models are the user's texts.
    style = spent.style.format_index(escape="html")
    return style.format("{:,.0f}").format("{:,.2f}", subset="cost")


def _without_answer(part: pd.DataFrame, job: Job) -> list[dict[str, Any]]:
    """Make a row for each stored reply that holds no answer, with the reason."""
    # Texts are not parsed here: each counts as an answer unless the reply's ending tells otherwise.
    status = final_status(part, [OK] * len(part))
    with_status = part.assign(status=status)
    unanswered = with_status[status != OK]
    rows = []

    for reply in unanswered.itertuples():
        trial = job.design[reply.trial]
        ended = REASON_BY_STATUS[reply.status]
        row = {
            "model": job.model,
            **job.labels,
            **trial.condition,
            "status": reply.status,
            "reason": reply.error or f"{ended} ({reply.output_tokens:,} tokens)",
        }
        rows.append(row)

    return rows


def option_mass(jobs: Sequence[Job], out: Output) -> Styler | HTML:
    """Measure how much of a model's probability its scored answers hold (``option_mass.csv``).

    Parameters
    ----------
    jobs : sequence of Job
        Jobs with stored answers. Jobs in free text are left out.
    out : Output
        Where the table goes.

    Returns
    -------
    Styler or HTML
        One row for each model and part of the study, with the number of answers, the mean and least
        option mass, and the percentage of answers below one half. In place of such an answer the
        model would mostly have said something else, and a line warns of each model with such
        answers. A sentence where no answer was scored.
    """
    rows = []
    for job in jobs:
        if not job.is_scored:
            continue

        mass = _masses(job)
        row = {
            "model": job.model,
            **job.labels,
            "answers": len(mass),
            "mean": mass.mean(),
            "least": mass.min(),
            "below half %": 100 * mass.lt(0.5).mean(),
        }
        rows.append(row)

    if not rows:
        empty = pd.DataFrame(columns=["model", "answers", "below half %"])
        out.write(empty, "option_mass")
        return shown(empty, "No model of this run was asked for scored answers.")

    table = pd.DataFrame(rows)
    out.write(table, "option_mass")
    has_low = table["below half %"] > 0
    by_model = table[has_low].groupby("model", sort=False)
    shares = by_model["below half %"].mean()
    for model, share in shares.items():
        print(
            f"Warning: {share:.0f} % of {models.label(model)}'s scored answers hold less than half "
            "of its probability: asked for free text it would mostly say something else."
        )

    # The last three columns are the mean, the least and the percentage.
    measures = table.columns[-3:]
    style = table.style.hide().format(escape="html")
    return style.format(precision=3, subset=measures)


def _masses(job: Job) -> pd.Series:
    """Read the option mass of each scored answer of a job."""
    masses = []
    for part in parts(stored(job), columns=["mass"]):
        # A reply may consist of several answers, so it has a list of masses.
        masses.append(part.mass.list.flatten())
    return pd.concat(masses).astype(float)


def reply_beginning(reply: Any) -> str:
    """Write the first 200 characters of a reply on one line, its line ends as ⏎.

    Parameters
    ----------
    reply : object
        The text of a reply. Any other value is a failed call.

    Returns
    -------
    str
        The line, not yet escaped; "(failed)" where there is no text.
    """
    text = reply if isinstance(reply, str) else "(failed)"
    return text.replace("\n", "⏎")[:200]


def replies(
    job: Job,
    status_of: Callable[[str | None], str],
    about: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    number: int = 4,
) -> HTML:
    """Show raw replies of one job, escaped: some without an answer, then some with an answer.

    Parameters
    ----------
    job : Job
        A job with stored answers.
    status_of : callable
        Gives a reply's status, "ok" if it holds an answer.
    about : callable
        Turns a condition into the columns that describe the prompt.
    number : int
        How many replies of each kind are shown at most.

    Returns
    -------
    HTML
        A table with the condition, the reply and its status, and the reasoning where there is any.
    """
    # A store may be large, so only some replies of each part are kept.
    chosen = []
    for part in parts(stored(job), columns=["text", "reasoning"]):
        texts = part.text.astype(object)
        # A missing text has a status, too.
        parsed = texts.map(status_of, na_action=None)
        with_status = part.assign(text=texts, status=final_status(part, parsed))
        chosen.append(_some_of_each(with_status, number))

    rows = []
    for reply in _some_of_each(pd.concat(chosen), number).itertuples():
        row = {
            **about(job.design[reply.trial].condition),
            "reasoning": reply.reasoning,
            "reply": reply.text,
            "status": reply.status,
        }
        rows.append(row)

    table = pd.DataFrame(rows)
    if not table["reasoning"].astype(bool).any():
        table = table.drop(columns="reasoning")

    # A collapsed reasoning is HTML, so every cell is escaped by its own formatter.
    formatters = dict.fromkeys(table.columns, lambda cell: escape(str(cell)))
    formatters["reply"] = lambda reply: escape(reply_beginning(reply))
    formatters["reasoning"] = collapsed_html
    return HTML(table.to_html(formatters=formatters, escape=False, index=False))


def _some_of_each(replies: pd.DataFrame, number: int) -> pd.DataFrame:
    """Select the first replies without an answer, then as many answered ones, evenly spread."""
    is_answered = replies.status == OK
    unanswered = replies[~is_answered].head(number)
    answered = replies[is_answered]
    # With this step no more than `number` rows are taken.
    step = len(answered) // number + 1
    return pd.concat([unanswered, answered.iloc[::step]])


def collapsed_html(reasoning: str) -> str:
    """Write a reasoning as HTML that opens on a click, escaped.

    Parameters
    ----------
    reasoning : str
        The model's text before its answer.

    Returns
    -------
    str
        A ``details`` element; "" if there is no reasoning.
    """
    if not reasoning:
        return ""
    inside = escape(reasoning)
    return f"<details><summary>{len(reasoning):,} characters</summary>{inside}</details>"


def read(job: Job, rule: Rule = "sound") -> pd.DataFrame:
    """Read a job's replies with the study's ``load``.

    Parameters
    ----------
    job : Job
        A job with stored answers.
    rule : str
        How a reply is parsed.

    Returns
    -------
    DataFrame
        One row for each trial, in order. ``otherwise`` is "yes" if the released rule reads another
        value, else "no".

    Raises
    ------
    StoreError
        If there are no answers.
    """
    chosen = load_rows(job, rule)
    released = load_rows(job, "released")
    chosen_values = chosen.drop(columns="status")
    released_values = released.drop(columns="status")
    # Values are compared as texts, in which a missing value equals a missing value.
    differs = chosen_values.map(str) != released_values.map(str)
    is_other = differs.any(axis=1)
    return chosen.assign(otherwise=np.where(is_other, "yes", "no"))


def load_rows(job: Job, rule: Rule = "sound") -> pd.DataFrame:
    """Load the rows of a job with the study's ``load``.

    Parameters
    ----------
    job : Job
        A job with stored answers.
    rule : str
        How a reply is parsed.

    Returns
    -------
    DataFrame
        One row for each trial, in order.

    Raises
    ------
    StoreError
        If there are no answers.
    """
    answers = module_of(job.study, "answers", "load")
    tables = answers.load(job, rule)
    if isinstance(tables, pd.DataFrame):
        return tables
    return tables.rows
