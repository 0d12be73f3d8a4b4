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
    names = [models.split(entry)[0] for entry in entries]
    labels = {name: models.label(name) for name in names}
    if len(set(labels.values())) < len(labels):
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
    others = {name: value for name, value in parameters.items() if name != "MODELS"}
    for value in others.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and os.path.isabs(text) and os.path.exists(text):
                names[text] = os.path.basename(text.rstrip("/"))
    return names


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

    names = [models.split(entry)[0] for entry in entries]
    labels = ", ".join(f"`{models.label(name)}`" for name in names)
    told = f"This run shows {labels}. {ABOUT_MODELS}"
    for cell in book.cells:
        if cell.cell_type == "markdown":
            # This is a function, as in a text a backslash of a label would be an escape.
            cell.source = DEFAULT_MODELS.sub(lambda _: told, cell.source)

    if not any(map(models.is_calibrant, names)):
        leave_calibrants_out(book)


def leave_calibrants_out(book: Any) -> None:
    """Remove what the text of a notebook says of calibrants alone.

    Parameters
    ----------
    book : NotebookNode
        The notebook before it runs; cells with the tag `CALIBRANTS` and items of lists that name a
        calibrant are taken out of it.
    """
    book.cells = [cell for cell in book.cells if CALIBRANTS not in cell.metadata.get("tags", ())]
    for cell in book.cells:
        if cell.cell_type == "markdown":
            lines = cell.source.split("\n")
            cell.source = "\n".join(line for line in lines if not _is_about_calibrants(line))


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
    return _named(settings.typed(value), places({name: value}))


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
            cell.source = _named(cell.source, labels)
        for output in cell.get("outputs", ()):
            # Each state of a bar begins with a carriage return; only the last one is worth reading.
            if output.get("name") == "stderr":
                output.text = re.sub(r"[^\n]*\r", "", output.text)
                output.text = SPEED.sub("", output.text)
            if "text" in output:
                output.text = _named(output.text, labels)
            for kind, content in output.get("data", {}).items():
                if kind.startswith("text/"):
                    output.data[kind] = _filled(_named(content, labels), kind)


def _named(text: str, labels: Mapping[str, str]) -> str:
    """A text with labels in place of folders and files."""
    for folder, label in labels.items():
        # HTML has the name in its escaped form.
        for written, shown in ((folder, label), (html.escape(folder), html.escape(label))):
            place = re.escape(written.rstrip("/"))
            # The name must not be a part of a longer path.
            alone = rf"(?<![\w./-]){place}/?(?![\w-]|[./]\w)"
            # re.sub would read a backslash of the label as its own.
            literal = shown.replace("\\", r"\\")
            text = re.sub(alone, literal, text)
    return text


def _filled(content: str, kind: str) -> str:
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
