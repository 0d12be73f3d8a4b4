"""Functions and other names of a notebook, taken from its own cells."""

import nbformat

from ingroup import paths


def defined(notebook, name, **known):
    """Run the only cell that defines the function `name`, with known names. Return the function."""
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    (source,) = [cell.source for cell in book.cells if f"def {name}(" in cell.source]
    exec(compile(source, f"{notebook}, {name}", "exec"), known)
    return known[name]


def run(notebook, **parameters):
    """Run the code cells of a notebook with `parameters`, and return all names that they set."""
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    names = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, notebook, "exec"), names)
        if "parameters" in cell.metadata.get("tags", ()):
            names |= parameters
    return names
