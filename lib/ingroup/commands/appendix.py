"""The appendix of a run: one document to go behind a paper, in LaTeX, in HTML and for Word.

The document is written from the run's tables, figures, manifests and notebooks. It names the parts
that the run lacks. The file for Word needs pandoc.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from ingroup import paths
from ingroup.appendix import asked, documents, forms, results
from ingroup.appendix.content import Document, Figure, Heading, Missing
from ingroup.appendix.run import UNREADABLE, Run, first_line
from ingroup.commands import settings
from ingroup.tables import InputError

# The sections of an appendix, in their order.
SECTIONS = {
    "About this appendix": asked.overview,
    "What was asked": asked.by_study,
    "Tables and figures": results.results,
    "Tests, power and what could be found": results.tests,
    "Claims on every path of the analysis": results.multiverse,
    "What could not be told": results.untold,
    "Limits": results.limits,
    "Findings of the default run": results.default_findings,
    "Responsible-research checklists": forms.checklists,
    "Model cards": forms.cards,
    "Stores of answers": asked.stored_answers,
    "How to cite": forms.citing,
}


MAX_MODELS_IN_TITLE = 3  # models


def contents(run: Run) -> Document:
    """Collect the sections of a run's appendix.

    Parameters
    ----------
    run : Run
        A run of which a notebook ran.

    Returns
    -------
    Document
        Its blocks and references.
    """
    # The labels of many models would fill a title of several lines.
    is_named = not run.is_default and 0 < len(run.models) <= MAX_MODELS_IN_TITLE
    subject = f"{run.model_names_text} in Ingroup" if is_named else f"{run.title_of_run} of Ingroup"
    document = Document(f"Appendix: {subject}", references=forms.references())

    for title, section in SECTIONS.items():
        try:
            blocks = section(run)
        except UNREADABLE as error:  # of a table from another version, or one changed by hand
            blocks = [
                Missing(f"This section cannot be written from the run’s files: {first_line(error)}")
            ]
        if blocks:
            document.blocks += [Heading(title), *blocks]
    return document


def build(name: str = paths.DEFAULT_RUN) -> Path:
    """Write the appendix of a run.

    An older appendix is replaced when the new appendix is complete.

    Parameters
    ----------
    name : str
        The name of the run.

    Returns
    -------
    Path
        The folder with ``appendix.tex``, ``appendix.html``, ``figures`` and, if pandoc is here,
        ``appendix.docx``.

    Raises
    ------
    FileNotFoundError
        If no notebook of the run has run. The message names the folder and the command.
    """
    run = Run(name)
    if not run.notebooks:
        folder = os.path.relpath(run.folder / "notebooks")
        available = settings.runs()
        end = f"; RUN can be {', '.join(available)}" if available else ""
        question = settings.suggestion(name, available)
        if question:
            end = f"; {question}"
        raise FileNotFoundError(f"there is no run in {folder}: {_command(name)} makes it{end}")

    document = contents(run)

    target = settings.appendix_folder(name)
    fresh = target.with_name(f"{name}.unfinished")
    # A killed command may have left half an appendix.
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    _copy_figures(document, fresh)
    (fresh / "appendix.tex").write_text(documents.to_latex(document), "utf8")
    (fresh / "appendix.html").write_text(documents.to_html(document), "utf8")
    _write_word(fresh)

    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target


def pandoc() -> str | None:
    """Find pandoc in the package pypandoc-binary, or else on the path.

    Returns
    -------
    str or None
        The path of the program, None where there is none.
    """
    try:
        # This package is optional (locks/word.lock).
        import pypandoc

        return pypandoc.get_pandoc_path()
    except (ImportError, OSError):
        return shutil.which("pandoc")


def _write_word(folder: Path) -> Path | None:
    """Write ``appendix.docx`` from ``appendix.html``. Return its path, or None if that fails."""
    program = pandoc()
    if program is None:
        return None

    file = folder / "appendix.docx"
    # The page's first heading is its title, so pandoc writes no title of its own.
    options = ["--from=html", "--metadata=title:", "--output", file.name]
    # pandoc looks for figures from its working folder.
    done = subprocess.run([program, *options, "appendix.html"], cwd=folder)
    return file if done.returncode == 0 else None


def _copy_figures(document: Document, folder: Path) -> None:
    """Copy the figures of a document into the folder of the appendix."""
    for block in document.blocks:
        if isinstance(block, Figure):
            for file in block.files:
                copy = folder / f"{block.address}{file.suffix}"
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)


def _command(name: str) -> str:
    """Write the command that makes a run, as make was called or by the name of the run."""
    values = settings.given_variables()
    if not values and name != paths.DEFAULT_RUN:
        values = {"RUN": name}
    parts = ["make", "all"]
    for parameter, value in values.items():
        parts.append(f"{parameter}={shlex.quote(value)}")
    return " ".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Write the appendix of the run that the command line names.

    Parameters
    ----------
    arguments : list of str, optional
        The arguments of the command, by default those of the process.

    Returns
    -------
    int
        The exit status: 0 when the appendix is written, 2 where there is no such run.
    """
    parser = argparse.ArgumentParser(prog="python -m ingroup.commands.appendix")
    parser.add_argument("--run", default=paths.DEFAULT_RUN, help="name of the run")
    try:
        target = build(parser.parse_args(arguments).run)
    except (FileNotFoundError, InputError) as error:
        print(error, file=sys.stderr)
        return 2
    folder = os.path.relpath(target)
    print(f"Appendix: {folder}/appendix.tex and {folder}/appendix.html")
    if (target / "appendix.docx").exists():
        print(f"For Word: {folder}/appendix.docx")
    elif pandoc() is None:
        print("For Word: there is no pandoc here; make word adds it and writes appendix.docx")
    return 0


if __name__ == "__main__":
    sys.exit(main())
