"""Changes to the executed copy of a notebook, so that its text and outputs fit its run.

The text of a notebook describes the models of the default run. The copy of a run with other models
names these instead. If no calibrant ran, the copy leaves out the text about calibrants.
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
PROGRESS_LINE = re.compile(r"^.* left, .* prompts/s\n", re.MULTILINE)
PARAMETERS = "injected-parameters"  # papermill's tag of the cell with the run's parameters
CALIBRANT_TAG = "about-calibrants"  # the tag of a text about calibrants alone
EMPTY_BODY = re.compile(r"(<thead>.*?</thead>\s*)<tbody>\s*</tbody>", re.DOTALL)
EMPTY_TEXT = re.compile(r"Empty DataFrame\nColumns: .*\nIndex: \[\](\n\n\[0 rows.*\])?", re.DOTALL)


def labels_of_folders(entries: Iterable[str]) -> dict[str, str]:
    """Find the models that are folders, each with its label.

    Parameters
    ----------
    entries : iterable of str
        The value of ``MODELS``: names or folders, each with or without its engine.

    Returns
    -------
    dict of str to str
        The label of each folder as it was typed. The dict is empty where two models have one label,
        because only the folders tell them apart.
    """
    labels = {}
    for entry in entries:
        name, _ = models.split_entry(entry)
        labels[name] = models.label(name)

    different_labels = set(labels.values())
    if len(different_labels) < len(labels):
        return {}
    return {name: label for name, label in labels.items() if os.path.isdir(name)}


def labels_of_paths(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Find the user's folders and files that parameters name, each with its label.

    Parameters
    ----------
    parameters : mapping
        Some parameters of a run.

    Returns
    -------
    dict of str to str
        A model's folder by its label (:func:`labels_of_folders`). Any other absolute path of a file
        or folder by its last part, because its place on a machine is private.
    """
    names = labels_of_folders(parameters.get("MODELS") or [])
    for parameter, value in parameters.items():
        if parameter == "MODELS":
            continue
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if _is_own_file(entry):
                names[entry] = os.path.basename(entry.rstrip("/"))
    return names


def _is_own_file(value: Any) -> bool:
    """Tell whether a value is the absolute path of a file or folder that exists."""
    if not isinstance(value, str):
        return False
    return os.path.isabs(value) and os.path.exists(value)


def introduce(notebook: Any, parameters: Mapping[str, Any], committed: Mapping[str, Any]) -> None:
    """Describe the models of the run where a notebook describes the models of the default run.

    If the run has no calibrant, cells with the tag `CALIBRANT_TAG` and list items that name a
    calibrant are left out.

    Parameters
    ----------
    notebook : NotebookNode
        The notebook before it runs. Its text is changed where ``MODELS`` is not as committed.
    parameters, committed : mapping
        The parameters of the run, and the parameters in git.
    """
    entries = parameters.get("MODELS")
    if not entries or entries == committed.get("MODELS"):
        return

    names = []
    labels = []
    for entry in entries:
        name, _ = models.split_entry(entry)
        label = models.label(name)
        names.append(name)
        labels.append(f"`{label}`")

    listed = ", ".join(labels)
    introduction = f"This run shows {listed}. {ABOUT_MODELS}"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            # A function gives the text, because `sub` would read a label's backslash as an escape.
            cell.source = DEFAULT_MODELS.sub(lambda _: introduction, cell.source)

    has_calibrant = any(map(models.is_calibrant, names))
    if not has_calibrant:
        leave_calibrants_out(notebook)


def leave_calibrants_out(notebook: Any) -> None:
    """Remove the text that is about calibrants alone from a notebook.

    Parameters
    ----------
    notebook : NotebookNode
        The notebook before it runs. Cells with the tag `CALIBRANT_TAG` and list items that name a
        calibrant are removed.
    """
    left = []
    for cell in notebook.cells:
        if CALIBRANT_TAG in cell.metadata.get("tags", ()):
            continue
        if cell.cell_type == "markdown":
            lines = cell.source.split("\n")
            others = [line for line in lines if not _is_about_calibrants(line)]
            cell.source = "\n".join(others)
        left.append(cell)
    notebook.cells = left


def _is_about_calibrants(line: str) -> bool:
    """Tell whether a line of markdown is a list item that names a calibrant."""
    if not line.startswith("- "):
        return False
    return any(name in line for name in models.calibrants())


def as_typed(name: str, value: Any) -> str:
    """Write a parameter as on make's command line, with labels for the user's folders and files.

    Parameters
    ----------
    name : str
        The parameter.
    value : any
        Its value. Lists are joined by ";".

    Returns
    -------
    str
        The value as a user types it, with the names of :func:`labels_of_paths`.
    """
    labels = labels_of_paths({name: value})
    text = settings.value_text(value)
    return _with_labels(text, labels)


def tidy(notebook: Any, parameters: Mapping[str, Any]) -> None:
    """Change an executed notebook so that a reader can use its outputs.

    The user's folders and files are shown by their labels, also among the parameters. An empty
    table says "none". A progress bar keeps only its last state. The bar of prompts is left out,
    because its speed depends on the machine.

    Parameters
    ----------
    notebook : NotebookNode
        The notebook, which is changed.
    parameters : mapping
        The parameters that it ran with.
    """
    # This takes a second to import, and only some commands need it.
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    # Each state of a bar is an output of its own until they are joined.
    CoalesceStreamsPreprocessor().preprocess(notebook, {})
    labels = labels_of_paths(parameters)
    for cell in notebook.cells:
        if PARAMETERS in cell.metadata.get("tags", ()):
            cell.source = _with_labels(cell.source, labels)
        for output in cell.get("outputs", ()):
            _tidy_output(output, labels)


def _tidy_output(output: Any, labels: Mapping[str, str]) -> None:
    """Tidy an output: labels for folders, the last state of a bar, "none" for an empty table."""
    # Each state of a bar begins with a carriage return; only the last one is worth reading.
    if output.get("name") == "stderr":
        last_states = re.sub(r"[^\n]*\r", "", output.text)
        output.text = PROGRESS_LINE.sub("", last_states)
    if "text" in output:
        output.text = _with_labels(output.text, labels)

    contents = output.get("data", {})
    for kind, content in contents.items():
        if kind.startswith("text/"):
            labelled = _with_labels(content, labels)
            output.data[kind] = _without_empty_tables(labelled, kind)


def _with_labels(text: str, labels: Mapping[str, str]) -> str:
    """Replace folders and files in a text by their labels."""
    for folder, label in labels.items():
        text = _with_label(text, folder, label)
        # HTML has the name in its escaped form.
        escaped_folder = html.escape(folder)
        escaped_label = html.escape(label)
        text = _with_label(text, escaped_folder, escaped_label)
    return text


def _with_label(text: str, folder: str, label: str) -> str:
    """Replace a folder or file in a text by its label, except within a longer path."""
    path = re.escape(folder.rstrip("/"))
    pattern = rf"(?<![\w./-]){path}/?(?![\w-]|[./]\w)"
    # A function gives the label, because `sub` would read its backslash as an escape.
    return re.sub(pattern, lambda _: label, text)


def _without_empty_tables(content: str, kind: str) -> str:
    """Write "none" into the empty tables of an output, which is HTML or plain text."""
    if kind != "text/html":
        return EMPTY_TEXT.sub("none", content)
    return EMPTY_BODY.sub(_with_none, content)


def _with_none(table: re.Match) -> str:
    """Return the head of an empty table, with one row "none" below."""
    head = table[1]
    # Where a head has several rows, only the last has a cell for each column.
    *_, last_row = head.split("<tr")
    n_cells = last_row.count("<th")
    columns = max(n_cells, 1)
    row = f'<tr><td colspan="{columns}">none</td></tr>'
    return f"{head}<tbody>{row}</tbody>"
