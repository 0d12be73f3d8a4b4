"""The prompts and answers behind a number: sent messages, stored replies and their files."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from ingroup import models, notebook, paths
from ingroup.commands.run_parameters import defaults, study_of
from ingroup.commands.settings import first_notebooks
from ingroup.contract import module_of
from ingroup.design import Block, Message, named_values
from ingroup.inference import Job, StoreError, rated, stored
from ingroup.inference.choices import lists_to_array, most_probable_text, probabilities
from ingroup.inference.job import folder_name
from ingroup.inference.prompts import fold_system
from ingroup.parsing import Rule
from ingroup.tables import InputError, hint

MAX_EXAMPLES = 12  # trials that are shown in full
MAX_UNFOLDED_LETTERS = 300  # characters; a longer text is folded
MAX_UNFOLDED_LINES = 6  # so is a text of more lines
MAX_LABEL_LETTERS = 60  # characters; a longer text is in the prompt anyway
MAX_NAMES_LISTED = 12  # names in a sentence

# Columns that say what was read in a reply, and where it is stored; most others are labels.
_NO_LABELS = {"value", "status", "reply", "rating", "trial", "prefix", "store"}


class _NoRows(Exception):
    """Error of a number without a trial behind it. The message says why."""


@dataclass(frozen=True, eq=False)
class TrialsBehind:
    """The trials behind a number, which a notebook shows as a table.

    Attributes
    ----------
    rows : DataFrame
        One row for each value, in the order of the stores: the labels and factors of its trial,
        ``value``, ``status``, ``store`` and ``trial``. Empty if nothing is stored.
    examples : DataFrame
        Up to `MAX_EXAMPLES` of these rows from the lowest value to the highest, or all in their
        order. Further columns are ``chat`` (the messages as they were sent), ``answer`` (the stored
        text, which is the greedy answer of a scored trial; missing if the call failed),
        ``reasoning``, ``error`` and ``file``. A scored answer also has its ``answer_prefix``,
        ``mean`` (NaN for choices that are not numbers), ``most_probable`` and ``option_mass``.
    sentence : str
        The number of values and their mean, or the reason why there are no values.
    """

    rows: pd.DataFrame
    examples: pd.DataFrame
    sentence: str

    def _repr_html_(self) -> str:
        """Write the sentence and the examples as HTML, with all foreign text escaped."""
        parts = [f"<p>{escape(self.sentence)}</p>"]
        if self.rows.empty:
            return parts[0]

        # Labels that all rows share stand once above the table; the others have a column in it.
        labels = _label_columns(self.rows)
        n_levels = self.rows[labels].astype(str).nunique()
        is_constant = n_levels == 1
        constant = list(n_levels.index[is_constant])
        varying = list(n_levels.index[~is_constant])

        first_row = self.rows.iloc[0]
        constant_labels = "; ".join(_named_labels(first_row, constant))
        parts.append(f"<p>{constant_labels}</p>")
        stores = [escape(store) for store in self.rows.store.unique()]
        first_stores = _first_names(stores)
        parts.append(f"<p>stored in {first_stores}</p>")
        parts.append(_table_html(self.examples, varying))
        if len(self.rows) > len(self.examples):
            parts.append(_all_values_html(self.rows))
        return "\n".join(parts)


def replies_behind(
    study: str | Sequence[Job],
    run: str = paths.DEFAULT_RUN,
    /,
    *,
    parsing: Rule | None = None,
    **labels: Any,
) -> TrialsBehind:
    """Find the trials behind a number, with the messages sent and the answers stored.

    Parameters
    ----------
    study : str or sequence of Job
        The study, e.g. ``"empathy_gap"``, or jobs of one study.
    run : str
        The run whose jobs are meant. The notebook's own parameters are taken if it has not run.
    parsing : {"sound", "released"}, optional
        How free text is parsed; as the run did unless given, and "sound" for jobs.
    **labels
        The labels of the number, as the tables name them: ``model``, ``setting``, ``perceiver``,
        ``group``, ``word``, ``trial`` and so on. A list stands for each of its values. Without
        ``mode`` ("scored", "free text") the answers that the study analyses are taken.

    Returns
    -------
    TrialsBehind
        The trials. A ``value`` is a rating; for a verdict it is 100 if it is right and else 0, so
        the mean is a percentage. A reply that rates several words has a row for each ``word``.
        Where nothing is stored, a sentence says why.

    Raises
    ------
    InputError
        For a study that does not exist.
    """
    if isinstance(study, str):
        jobs, usual_parsing = _jobs_of_run(study, run)
    else:
        jobs = list(study)
        usual_parsing = "sound"

    wanted = {name: _texts(value) for name, value in labels.items()}
    try:
        matching_jobs = _matching_jobs(jobs, wanted)
        rows_of_jobs = _rows_of_jobs(matching_jobs, parsing or usual_parsing)
        rows = _with_labels(rows_of_jobs, wanted)
    except _NoRows as why:
        return _no_trials(str(why))

    examples = _with_answers(_choose_examples(rows), matching_jobs)
    summary = _summary(rows, matching_jobs)
    return TrialsBehind(rows, examples, summary)


def store_of(job: Job) -> str:
    """Name the folder of a job's answers, relative to this repository.

    Parameters
    ----------
    job : Job
        A job with stored answers.

    Returns
    -------
    str
        For example ``"data/recordings/<model>/empathy_gap/sample-12/<model>@vllm/P0,S0,T0"``. A
        model that is loaded from a folder stands there by its name, without the folder's path.
    """
    folder = job.folder
    name = folder.as_posix()
    roots = {
        "data/recordings": paths.RECORDINGS,
        "build/responses": paths.RESPONSES,
    }
    for shown, root in roots.items():
        if root in folder.parents:
            inside = folder.relative_to(root)
            name = f"{shown}/{inside.as_posix()}"

    # Earlier versions put the whole path of the model's folder into the name of the store.
    path_of_model = folder_name(job.loaded)
    name_of_model = folder_name(job.model)
    return name.replace(path_of_model, name_of_model)


def _jobs_of_run(study: str, run: str) -> tuple[list[Job], Rule]:
    """List the jobs of a study's first notebook in a run, and return the run's parsing rule."""
    notebook_of = {study_of(name): name for name in first_notebooks()}
    if study not in notebook_of:
        studies = list(map(str, notebook_of))
        listed = ", ".join(studies)
        question = hint(study, studies)
        raise InputError(f"there is no study {study!r}; there are {listed}{question}")

    name = notebook_of[study]
    parameters = notebook.parameters_of_run(name, run) or defaults(name)
    design = module_of(study, "design", "jobs")
    return design.jobs(parameters), parameters["PARSING"]


def _texts(value: Any) -> list[str]:
    """Turn a label, or several labels, into a list of texts."""
    is_single = isinstance(value, str) or not isinstance(value, Iterable)
    labels = [value] if is_single else value
    return [str(label) for label in labels]


def _matching_jobs(jobs: list[Job], wanted: dict[str, list[str]]) -> list[Job]:
    """Select the jobs with the wanted labels, as far as jobs have them.

    Raise `_NoRows` if no job is left.
    """
    # A text that a model writes for the prompts of others has no value.
    jobs = [job for job in jobs if job.labels.get("setting") != "rewrite"]
    if "mode" not in wanted and "store" not in wanted:
        jobs = rated(jobs)

    labels = pd.DataFrame([_labels_of(job) for job in jobs])
    has_all = pd.Series(True, labels.index)
    for name, values in wanted.items():
        if name in labels:
            has_all &= _has_label(labels[name], values)

    matching_jobs = [job for job, is_match in zip(jobs, has_all, strict=True) if is_match]
    if not matching_jobs:
        raise _NoRows("This run asks nothing that has all of these labels together.")
    return matching_jobs


def _rows_of_jobs(jobs: list[Job], rule: Rule) -> pd.DataFrame:
    """Load the rows of all jobs with stored answers. Raise `_NoRows` if no job has answers."""
    tables = []
    for job in jobs:
        try:
            table = _rows_of(job, rule)
            tables.append(table)
        except StoreError as error:
            why_none = _not_stored(job, error)

    if not tables:
        raise _NoRows(why_none)
    return pd.concat(tables, ignore_index=True)


def _with_labels(rows: pd.DataFrame, wanted: dict[str, list[str]]) -> pd.DataFrame:
    """Select the rows with all wanted labels. Raise `_NoRows` if no row has them."""
    for name, values in wanted.items():
        if name not in rows:
            known = [*_label_columns(rows), "store", "trial"]
            listed = ", ".join(known)
            question = hint(name, known) or "."
            raise _NoRows(f"There is no label {name!r}; there are {listed}{question}")

        has_label = _has_label(rows[name], values)
        rows = rows[has_label]
    return rows.reset_index(drop=True)


def _has_label(column: pd.Series, values: list[str]) -> pd.Series:
    """Mark the entries of a column that are one of the values. Raise `_NoRows` if no entry is."""
    has_label = column.map(str).isin(values)
    if not has_label.any():
        raise _NoRows(_unknown_value(column, values))
    return has_label


def _labels_of(job: Job) -> dict[str, Any]:
    """Collect the labels that tell a job from others."""
    return {
        "model": job.model,
        "mode": job.mode,
        **job.labels,
        "store": store_of(job),
    }


def _rows_of(job: Job, rule: Rule) -> pd.DataFrame:
    """Load one row for each value of a job, with the labels and factors of its trial."""
    answers = notebook.load_rows(job, rule).reset_index(drop=True)
    (block,) = job.design.blocks
    factors = _factors(block)
    labels = _labels_of(job)
    names_of_labels = list(labels)

    # Where names agree, a label of the job replaces a column of the study, and this a factor.
    further_factors = factors.columns.difference(answers.columns, sort=False)
    trials = pd.concat([factors[further_factors], answers], axis=1)
    trials = trials.drop(columns=names_of_labels, errors="ignore")

    labels_of_rows = pd.DataFrame([labels] * len(trials), columns=names_of_labels)
    rows = pd.concat([labels_of_rows, trials], axis=1)
    rows["trial"] = np.arange(len(rows))
    return _with_values(rows)


def _factors(block: Block) -> pd.DataFrame:
    """Tabulate the levels of each trial of a block. A named tuple has a column per field."""
    # For each factor, the number of its level in each trial.
    trials = np.arange(len(block))
    level_numbers = np.unravel_index(trials, block.shape)
    columns: dict[str, Any] = {}
    for (name, levels), numbers in zip(block.factors.items(), level_numbers, strict=True):
        named_levels = [named_values(name, level) for level in levels]
        # As objects, every level stays what it is.
        table = pd.DataFrame(named_levels, dtype=object)
        for field in table:
            values = table[field].to_numpy()
            columns[field] = values[numbers]
    return pd.DataFrame(columns)


def _with_values(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the ``value`` and the number of the answer prefix to rows of a study's ``load``."""
    if "letter" in rows:
        is_right = rows.letter == rows.correct
        return rows.assign(value=100.0 * is_right, prefix=0)
    if "values" not in rows:
        return rows.assign(value=rows.rating, prefix=0)

    # A reply may rate several words, so it gets a row per word. A reply without ratings keeps one
    # row, without a word.
    ratings = rows["values"].map(lambda values: list(values.items()) or [("", np.nan)])
    by_word = rows.drop(columns="values").assign(word_and_value=ratings)
    by_word = by_word.explode("word_and_value", ignore_index=True)
    word_and_value = by_word.pop("word_and_value")
    return by_word.assign(
        word=word_and_value.str[0],
        value=word_and_value.str[1].astype(float),
        prefix=by_word.groupby("trial").cumcount(),
    )


def _choose_examples(rows: pd.DataFrame) -> pd.DataFrame:
    """Choose at most `MAX_EXAMPLES` rows, at even steps in the order of their values.

    Rows without a value come after the highest value.
    """
    if len(rows) <= MAX_EXAMPLES:
        return rows

    ordered = rows.sort_values("value", kind="stable")
    even_steps = np.linspace(0, len(rows) - 1, MAX_EXAMPLES)
    positions = even_steps.round().astype(int)
    return ordered.iloc[positions]


def _with_answers(examples: pd.DataFrame, jobs: Iterable[Job]) -> pd.DataFrame:
    """Join to examples their sent messages and stored answers."""
    job_by_store = {store_of(job): job for job in jobs}
    answers = []
    for example in examples.itertuples():
        job = job_by_store[example.store]
        answer = _answer(job, example.trial, example.prefix)
        answers.append(answer)

    answer_columns = pd.DataFrame(answers, examples.index)
    return pd.concat([examples, answer_columns], axis=1)


def _answer(job: Job, trial: int, prefix: int) -> dict[str, Any]:
    """Collect the sent messages of one trial, one of its stored answers, and the file's name."""
    store = stored(job)
    shard = trial // store.shard_size
    files = [file.name for file in store.files()[shard]]
    one_row = store.read(trial, trial + 1)
    reply = one_row.iloc[0]

    messages = job.design[trial].messages
    # A model that takes no system message was sent it as a part of the user's message.
    if store.manifest.get("system") == "fold":
        messages = fold_system(messages)

    answer = {
        "chat": messages,
        "answer": reply.text,
        "reasoning": reply.reasoning,
        "error": reply.error,
        "file": " and ".join(files),
    }
    if job.is_scored:
        answer |= _distribution(job, one_row, prefix)
    return answer


def _distribution(job: Job, reply: pd.DataFrame, prefix: int) -> dict[str, Any]:
    """Summarise the probabilities of one scored answer. A failed call gives NaN."""
    choices = job.sampling.choices
    prefixes = job.sampling.leads
    n_prefixes = len(prefixes)
    # Both arrays have one row, for the one reply, and one entry per prefix.
    shares = probabilities(reply, choices, n_prefixes)[0, prefix]
    option_mass = lists_to_array(reply.mass, n_prefixes)[0, prefix]
    # Choices that are not numbers become NaN, and so does their mean.
    points = pd.to_numeric(pd.Series(choices), errors="coerce").to_numpy()

    has_failed = np.isnan(shares).any()
    return {
        "answer_prefix": prefixes[prefix].strip(),
        "mean": float(shares @ points),
        "most_probable": "" if has_failed else most_probable_text(shares, choices),
        "option_mass": float(option_mass),
    }


# ---- sentences -----------------------------------------------------------------------------------


def _no_trials(why: str) -> TrialsBehind:
    """Return no trials, with the sentence that says why."""
    empty = pd.DataFrame(columns=["model", "value", "status", "store", "trial"])
    return TrialsBehind(empty, empty, why)


def _summary(rows: pd.DataFrame, jobs: Sequence[Job]) -> str:
    """Write the number of values, their mean, and the reasons for missing values."""
    values = rows.value.dropna()
    if "letter" in rows:
        summary = f"{len(rows):,} verdicts (100 for a right one, 0 for any other reply)"
    else:
        # A dict keeps each reading once, in order.
        distinct_readings = dict.fromkeys(job.read_as for job in jobs)
        readings = "; ".join(distinct_readings)
        summary = f"{len(rows):,} values (read as: {readings})"
    if len(values):
        summary += f", mean {values.mean():.4f}"

    has_no_value = rows.value.isna()
    statuses = rows.status[has_no_value].astype(str)
    counts = statuses.value_counts()
    if len(counts):
        reasons = [f"{status} {count:,}" for status, count in counts.items()]
        listed = ", ".join(reasons)
        summary += f"; without a value: {listed}"
    return f"{summary}."


def _not_stored(job: Job, error: StoreError) -> str:
    """Say why the answers to a job cannot be shown, and how to ask for them."""
    if not (job.folder / "manifest.json").exists():
        sentence = f"Nothing is stored of {job.title}: it was neither recorded nor asked"
    else:
        text = str(error).replace(str(job.folder), store_of(job))
        sentence = f"The answers of {job.title} cannot be read: {text}"
    remedy = models.how_to_ask(job.model)
    if remedy:
        sentence += f" ({remedy} asks it now)"
    return f"{sentence}."


def _unknown_value(column: pd.Series, values: list[str]) -> str:
    """Say that no entry of a column is one of the values, and list similar entries first."""
    known_texts = list(column.map(str).unique())
    similar = []
    if values:
        similar = difflib.get_close_matches(values[0], known_texts, MAX_NAMES_LISTED, cutoff=0.5)
    others = [text for text in known_texts if text not in similar]

    wanted = " or ".join(map(repr, values))
    listed = _first_names(similar + others)
    return f"Nothing that is asked or stored here has {column.name} {wanted}; there are {listed}."


def _first_names(names: Sequence[str]) -> str:
    """List the first `MAX_NAMES_LISTED` names, and count the others."""
    listed = ", ".join(names[:MAX_NAMES_LISTED])
    n_more = len(names) - MAX_NAMES_LISTED
    if n_more <= 0:
        return listed
    return f"{listed} and {n_more:,} more"


# ---- HTML ----------------------------------------------------------------------------------------


def _label_columns(rows: pd.DataFrame) -> list[str]:
    """List the columns that describe the prompt in a few words."""
    names = []
    for name in rows.columns:
        if name in _NO_LABELS:
            continue
        column = rows[name]
        is_plain = column.map(lambda level: isinstance(level, (str, int, np.integer)))
        longest = column.map(str).str.len().max()
        if is_plain.all() and 0 < longest <= MAX_LABEL_LETTERS:
            names.append(name)
    return names


def _named_labels(row: pd.Series, names: Iterable[str]) -> list[str]:
    """Write the labels of a row, each with its name, as HTML."""
    labels = []
    for name in names:
        value = escape(str(row[name]))
        labels.append(f"{escape(name)}: {value}")
    return labels


def _table_html(examples: pd.DataFrame, varying: list[str]) -> str:
    """Write the examples as an HTML table."""
    has_several_stores = examples.store.nunique() > 1
    rows = []
    for _, example in examples.iterrows():
        address = f"{escape(example.file)}, trial {example.trial}"
        if has_several_stores:
            address = f"{escape(example.store)}/{address}"
        row = {
            "asked about": "<br>".join(_named_labels(example, varying)),
            "prompt": _chat_html(example.chat),
            "answer": _answer_html(example),
            "value": f"{example.value:.4g}",
            "status": escape(example.status),
            "address": address,
        }
        rows.append(row)

    table = pd.DataFrame(rows)
    if not varying:
        table = table.drop(columns="asked about")
    return table.to_html(escape=False, index=False)


def _chat_html(messages: Iterable[Message]) -> str:
    """Write a chat as HTML, with the role of each message."""
    turns = [f"[{message['role']}]\n{message['content']}" for message in messages]
    return _folded_html("\n\n".join(turns))


def _answer_html(example: pd.Series) -> str:
    """Write a stored answer as HTML, with the probabilities of a scored answer."""
    text = _folded_html(example.answer) if isinstance(example.answer, str) else "(no text)"
    # Scored and free answers may stand in one table, where free ones lack these columns' values.
    is_scored = "most_probable" in example and isinstance(example.most_probable, str)
    lines = []
    if is_scored:
        if example.answer_prefix:
            lines.append(f"after: {escape(example.answer_prefix)}")
        lines.append(f"most probable: {escape(example.most_probable)}")
        if not np.isnan(example["mean"]):
            lines.append(f"mean: {example['mean']:.4f}")
        lines.append(f"option mass: {example.option_mass:.1%}")
        lines.append(f"greedy: {text}")
    else:
        lines.append(text)

    if example.reasoning:
        lines.append(f"reasoning: {notebook.collapsed_html(example.reasoning)}")
    if example.error:
        lines.append(f"error: {escape(example.error)}")
    return "<br>".join(lines)


def _folded_html(text: str) -> str:
    """Write a text as escaped HTML. A long text opens on a click."""
    whole = escape(text).replace("\n", "<br>")
    n_lines = text.count("\n") + 1
    if len(text) <= MAX_UNFOLDED_LETTERS and n_lines <= MAX_UNFOLDED_LINES:
        return whole

    beginning = " ".join(text[:100].split())
    summary = f"{escape(beginning)} ... ({len(text):,} characters)"
    return _details_html(summary, whole)


def _details_html(summary: str, content: str) -> str:
    """Write HTML that shows a summary, and its content on a click. Both are escaped already."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def _all_values_html(rows: pd.DataFrame) -> str:
    """Write the values and trials of all rows by store, as HTML that opens on a click."""
    lines = []
    for store, rows_of_store in rows.groupby("store", sort=False):
        values = rows_of_store.value.map("{:.4g}".format)
        pairs = rows_of_store.trial.astype(str) + ": " + values
        listed = ", ".join(pairs)
        lines.append(f"{escape(store)}<br>{listed}")

    summary = f"All {len(rows):,} values by trial; the table shows {MAX_EXAMPLES}, the lowest first"
    content = "<br>".join(lines)
    return _details_html(summary, content)
