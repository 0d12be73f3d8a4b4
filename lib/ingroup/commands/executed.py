"""What the executed copy of a notebook shows: the models of its run by their names, no empty table.

A notebook describes the models of the default run; with others, its copy names those instead. Where
no calibrant ran, the copy leaves out what the notebook says of calibrants alone.
"""

import html
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ingroup import models
from ingroup.commands import settings

# The sentences of a notebook about the models of the default run, to the end of their paragraph.
DEFAULT_MODELS = re.compile(r"Unless you chose other.*")
ABOUT_MODELS = (
    "What a real model answers is about that model and its weights alone. Nothing here is about "
    "people."
)
# The last state of the bar of `ingroup.inference.generate.fill`.
SPEED = re.compile(r"^.* left, .* prompts/s\n", re.MULTILINE)
PARAMETERS = "injected-parameters"  # papermill's tag of the cell with those of the run
CALIBRANTS = "about-calibrants"  # the tag of a text about calibrants alone
EMPTY_BODY = re.compile(r"(<thead>.*?</thead>\s*)<tbody>\s*</tbody>", re.DOTALL)
EMPTY_TEXT = re.compile(r"Empty DataFrame\nColumns: .*\nIndex: \[\](\n\n\[0 rows.*\])?", re.DOTALL)


def folders(entries: Iterable[str]) -> dict[str, str]:
    """Find the models that are folders, and what they are called.

    Parameters
    ----------
    entries : iterable of str
        The value of ``MODELS``: names or folders, each with or without its engine.

    Returns
    -------
    dict of str to str
        The label of each folder as it was typed; empty where two models have one label, as then
        only the folders tell them apart.
    """
    labels = {}
    for entry in entries:
        name, _ = models.split(entry)
        labels[name] = models.label(name)

    has_equal_labels = len(set(labels.values())) < len(labels)
    if has_equal_labels:
        return {}
    return {name: label for name, label in labels.items() if os.path.isdir(name)}


def places(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Find the folders and files of the user's own that parameters name, and what they are called.

    Parameters
    ----------
    parameters : mapping
        Some parameters of a run.

    Returns
    -------
    dict of str to str
        A model's folder by its label (:func:`folders`). Any other absolute path of a file or folder
        by its last part: where it stands on a machine is nobody else's business.
    """
    names = folders(parameters.get("MODELS") or [])
    for parameter, value in parameters.items():
        if parameter == "MODELS":
            continue
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if _is_own_file(entry):
                names[entry] = os.path.basename(entry.rstrip("/"))
    return names


def _is_own_file(value: Any) -> bool:
    """Whether a value is the absolute path of a file or folder that exists."""
    return isinstance(value, str) and os.path.isabs(value) and os.path.exists(value)


def introduce(book: Any, parameters: Mapping[str, Any], committed: Mapping[str, Any]) -> None:
    """Name the models of the run where a notebook describes those of the default run.

    In a run without a calibrant, cells with the tag `CALIBRANTS` and items of lists that name a
    calibrant are left out.

    Parameters
    ----------
    book : NotebookNode
        The notebook before it runs; its text is changed where ``MODELS`` is not as committed.
    parameters, committed : mapping
        The parameters of the run, and those in git.
    """
    entries = parameters.get("MODELS")
    if not entries or entries == committed.get("MODELS"):
        return

    names = [name for name, _ in map(models.split, entries)]
    labels = [f"`{models.label(name)}`" for name in names]
    introduction = f"This run shows {', '.join(labels)}. {ABOUT_MODELS}"
    for cell in book.cells:
        if cell.cell_type == "markdown":
            # A function gives the text, because `sub` would read a label's backslash as an escape.
            cell.source = DEFAULT_MODELS.sub(lambda _: introduction, cell.source)

    has_calibrant = any(models.is_calibrant(name) for name in names)
    if not has_calibrant:
        leave_calibrants_out(book)


def leave_calibrants_out(book: Any) -> None:
    """Remove what the text of a notebook says of calibrants alone.

    Parameters
    ----------
    book : NotebookNode
        The notebook before it runs; cells with the tag `CALIBRANTS` and items of lists that name a
        calibrant are taken out of it.
    """
    left = []
    for cell in book.cells:
        if CALIBRANTS in cell.metadata.get("tags", ()):
            continue
        if cell.cell_type == "markdown":
            lines = cell.source.split("\n")
            others = [line for line in lines if not _is_about_calibrants(line)]
            cell.source = "\n".join(others)
        left.append(cell)
    book.cells = left


def _is_about_calibrants(line: str) -> bool:
    """Whether a line of markdown is the item of a list that names a calibrant."""
    return line.startswith("- ") and any(name in line for name in models.calibrants())


def as_typed(name: str, value: Any) -> str:
    """Write a parameter as on make's command line, without the places of folders and files.

    Parameters
    ----------
    name : str
        The parameter.
    value : any
        Its value. Lists are joined by ";".

    Returns
    -------
    str
        The value as a user types it, with the names of :func:`places`.
    """
    return _with_labels(settings.typed(value), places({name: value}))


def tidy(book: Any, parameters: Mapping[str, Any]) -> None:
    """Change an executed notebook so that a reader can use its outputs.

    Folders and files of the user's own are shown by their names, among the parameters, too. An
    empty table says "none". A progress bar keeps its last state alone, and the bar of prompts,
    whose speed is the machine's, is left out.

    Parameters
    ----------
    book : NotebookNode
        The notebook; it is changed.
    parameters : mapping
        The parameters that it ran with.
    """
    # This takes a second to import, and only some commands need it.
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    # Each state of a bar is an output of its own until they are joined.
    CoalesceStreamsPreprocessor().preprocess(book, {})
    labels = places(parameters)
    for cell in book.cells:
        if PARAMETERS in cell.metadata.get("tags", ()):
            cell.source = _with_labels(cell.source, labels)
        for output in cell.get("outputs", ()):
            _tidy_output(output, labels)


def _tidy_output(output: Any, labels: Mapping[str, str]) -> None:
    """Change one output: labels in place of folders, the last state of a bar, "none"."""
    # Each state of a bar begins with a carriage return; only the last one is worth reading.
    if output.get("name") == "stderr":
        output.text = re.sub(r"[^\n]*\r", "", output.text)
        output.text = SPEED.sub("", output.text)
    if "text" in output:
        output.text = _with_labels(output.text, labels)

    for kind, content in output.get("data", {}).items():
        if kind.startswith("text/"):
            labelled = _with_labels(content, labels)
            output.data[kind] = _without_empty_tables(labelled, kind)


def _with_labels(text: str, labels: Mapping[str, str]) -> str:
    """A text with labels in place of folders and files."""
    for folder, label in labels.items():
        text = _with_label(text, folder, label)
        # HTML has the name in its escaped form.
        text = _with_label(text, html.escape(folder), html.escape(label))
    return text


def _with_label(text: str, folder: str, label: str) -> str:
    """A text with a label in place of a folder, wherever that is no part of a longer path."""
    path = re.escape(folder.rstrip("/"))
    pattern = rf"(?<![\w./-]){path}/?(?![\w-]|[./]\w)"
    # A function gives the label, because `sub` would read its backslash as an escape.
    return re.sub(pattern, lambda _: label, text)


def _without_empty_tables(content: str, kind: str) -> str:
    """An output in which a table without a row says "none"."""
    if kind != "text/html":
        return EMPTY_TEXT.sub("none", content)
    return EMPTY_BODY.sub(_with_none, content)


def _with_none(table: re.Match) -> str:
    """The head of an empty table, and one row below it."""
    # Where a head has several rows, only the last has a cell for each column.
    *_, last_row = table[1].split("<tr")
    columns = max(last_row.count("<th"), 1)
    row = f'<tr><td colspan="{columns}">none</td></tr>'
    return f"{table[1]}<tbody>{row}</tbody>"
