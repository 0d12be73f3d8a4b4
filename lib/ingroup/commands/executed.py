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

# The sentences of a notebook about the models of the default run, to the end of their paragraph.
DEFAULT_MODELS = re.compile(r"Unless you chose other.*")
ABOUT_MODELS = (
    "What a real model answers is about that model and its weights alone. Nothing here is about "
    "people."
)
CALIBRANT = "calibrant"  # the tag of a text about calibrants alone
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


def introduce(book: Any, parameters: Mapping[str, Any], committed: Mapping[str, Any]) -> None:
    """Name the models of the run where a notebook describes those of the default run.

    In a run without a calibrant, cells with the tag `CALIBRANT` and items of lists that name a
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
            cell.source = DEFAULT_MODELS.sub(lambda _: told, cell.source)

    if not any(map(models.is_calibrant, names)):
        _leave_calibrants_out(book)


def _leave_calibrants_out(book: Any) -> None:
    """Remove what the text of a notebook says of calibrants alone."""
    book.cells = [cell for cell in book.cells if CALIBRANT not in cell.metadata.get("tags", ())]
    for cell in book.cells:
        if cell.cell_type == "markdown":
            lines = cell.source.split("\n")
            cell.source = "\n".join(line for line in lines if not _is_about_calibrants(line))


def _is_about_calibrants(line: str) -> bool:
    """Whether a line of markdown is the item of a list that names a calibrant."""
    return line.startswith("- ") and any(name in line for name in models.calibrants())


def as_typed(name: str, value: Any) -> str:
    """Write a parameter as on make's command line, with a model's folder by its label.

    Parameters
    ----------
    name : str
        The parameter.
    value : any
        Its value. Lists are joined by ";".

    Returns
    -------
    str
        The value as a user types it. A model's folder is named as :func:`folders` calls it.
    """
    if not isinstance(value, list):
        return str(value)
    if name != "MODELS":
        return ";".join(map(str, value))

    labels = folders(value)
    entries = []
    for entry in value:
        model, _ = models.split(entry)
        entries.append(entry.replace(model, labels.get(model, model)))
    return ";".join(entries)


def tidy(book: Any, parameters: Mapping[str, Any]) -> None:
    """Change the outputs of an executed notebook so that a reader can use them.

    A model's folder is shown by its label, an empty table says "none", and a progress bar keeps its
    last state alone.

    Parameters
    ----------
    book : NotebookNode
        The notebook; it is changed.
    parameters : mapping
        The parameters that it ran with.
    """
    labels = folders(parameters.get("MODELS") or [])
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr":  # bars that moved for hours are no log
                output.text = re.sub(r"[^\n]*\r", "", output.text)
            if "text" in output:
                output.text = _named(output.text, labels)
            for kind, content in output.get("data", {}).items():
                if kind.startswith("text/"):
                    output.data[kind] = _filled(_named(content, labels), kind)


def _named(text: str, labels: Mapping[str, str]) -> str:
    """A text with labels in place of the folders of models."""
    for folder, label in labels.items():
        for written, shown in ((folder, label), (html.escape(folder), html.escape(label))):
            place = re.escape(written.rstrip("/"))
            alone = rf"(?<![\w./-]){place}/?(?![\w-]|[./]\w)"  # no part of a longer path
            text = re.sub(alone, lambda _, shown=shown: shown, text)
    return text


def _filled(content: str, kind: str) -> str:
    """An output in which a table without a row says "none"."""
    if kind != "text/html":
        return EMPTY_TEXT.sub("none", content)
    return EMPTY_BODY.sub(_with_none, content)


def _with_none(table: re.Match) -> str:
    """The head of an empty table, and one row below it."""
    *_, last_row = table[1].split("<tr")
    columns = max(last_row.count("<th"), 1)
    row = f'<tr><td colspan="{columns}">none</td></tr>'
    return f"{table[1]}<tbody>{row}</tbody>"
