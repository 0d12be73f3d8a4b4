"""A notebook's functions, taken from the very cell that defines them."""

import nbformat

from ingroup import paths


def defined(notebook, name, **known):
    """What the one cell that begins to define `name` makes of it, given what it knows."""
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    (source,) = [cell.source for cell in book.cells if f"def {name}(" in cell.source]
    exec(compile(source, f"{notebook}, {name}", "exec"), known)
    return known[name]


def run(notebook, **parameters):
    """All names of a notebook whose code cells were run one after another, with `parameters`."""
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    names = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, notebook, "exec"), names)
        if "parameters" in cell.metadata.get("tags", ()):
            names |= parameters
    return names
