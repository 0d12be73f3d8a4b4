"""Figures of a notebook drawn in this process, from the tables of its last run."""

from contextlib import contextmanager
from fnmatch import fnmatch

import nbformat
from matplotlib import pyplot as plt
from matplotlib.text import Text

from ingroup import canvas, figures, paths
from ingroup import notebook as notebooks
from ingroup.commands import run

# Some texts of these would overlap if they followed the font; docs/for_your_paper.md names them.
SMALL_TYPE = [
    "stereomap/figure2",
    "stereomap/figure7*",
    "synthesis/multiverse_biased_samaritan*",
]
NOTEBOOKS = sorted(file.stem for file in paths.NOTEBOOKS.glob("[0-9]*.ipynb"))


@contextmanager
def style(**options):
    """Use the style with options of `make figures`, and then restore the usual style."""
    before = dict(figures.OPTIONS_GIVEN)
    figures.OPTIONS_GIVEN.update(options)
    try:
        yield
    finally:
        figures.OPTIONS_GIVEN.clear()
        figures.OPTIONS_GIVEN.update(before)
        figures.use_style()


def drawing_cells(notebook):
    """Yield for each cell that `make figures` runs if it sets parameters, and its code."""
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    for cell in book.cells:
        tags = set(cell.metadata.get("tags", []))
        if cell.cell_type == "code" and tags & run.DRAWING_TAGS:
            yield "parameters" in tags, cell.source


def small_texts(fig, figure, font):
    """List the texts of a figure with less than 6 points where plain text has 8."""
    if any(fnmatch(figure, pattern) for pattern in SMALL_TYPE):
        return []

    least = 6 * font / 8
    problems = []
    for text in fig.findobj(Text):
        if text.get_text().strip() and text.get_size() < least:
            problems.append(f"{text.get_text()!r} has {text.get_size():.1f} points")
    return problems


def figures_of(notebook, width, font):
    """Draw a notebook's figures at a size, and list each name with the problems of its text."""
    misfits = []

    def note_misfits(fig, folder, name, note=""):
        figures.finish(fig, name, note)
        figure = f"{folder.name}/{name}"
        problems = canvas.misfits(fig) + small_texts(fig, figure, font)
        misfits.append((figure, problems))
        plt.close(fig)
        return fig

    save = figures.save
    figures.save = note_misfits
    names = {"display": lambda *shown: None, "__name__": "__main__"}
    try:
        with style(width=width, font=font):
            for is_parameters, source in drawing_cells(notebook):
                exec(compile(source, notebook, "exec"), names)
                names["display"] = lambda *shown: None  # a cell may import it
                if is_parameters:
                    names.update(notebooks.parameters_of_run(notebook))
    finally:
        figures.save = save
    return misfits
