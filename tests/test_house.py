"""The house: imports go down, no study knows another, no circle."""

import ast
import re

import nbformat
import pytest
import yaml

from ingroup import models, paths
from plainness import Plainness

LIB = paths.ROOT / "lib"
FILES = sorted((LIB / "ingroup").rglob("*.py"))
STUDIES = sorted(f.name for f in (LIB / "ingroup/studies").iterdir() if (f / "design.py").exists())
# The rooms, from the ground up: a module imports from its own floor or from below.
FLOORS = [
    {"paths", "tables"},
    {"design", "parsing", "corpora", "stats", "models", "canvas", "figures"},
    {
        "families",
        "inference",
        "published",
        "latex",
        "keywords",
        "dictionary",
        "audit",
        "parameters",
        "claims",
    },
    {"notebook", "synthesis", "synthesis_figures"},
    {"studies"},
    {"appendix", "commands"},
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def name_of(file):
    parts = file.relative_to(LIB).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {name_of(file): file.read_text("utf8") for file in FILES}


def imports(source, top_level=False):
    """Modules of this project that a source imports, and the names that it takes from them."""
    tree = ast.parse(source)
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ingroup"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole, "") if whole in SOURCES else (node.module, alias.name)
        elif isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if a.name.startswith("ingroup"))


def room(module):
    return [*module.split("."), ""][1]


@pytest.mark.parametrize("module", SOURCES)
def test_imports_go_down_and_take_no_private_name(module):
    study = module.split(".")[2:3] if room(module) == "studies" else []
    for other, name in imports(SOURCES[module]):
        if other != "ingroup":
            assert FLOOR[room(other)] <= FLOOR.get(room(module), 99), f"{module} imports {other}"
        assert not re.match("_[a-z]", name), f"{module} takes {name} from {other}"
        if room(other) == "studies" and study:
            assert other.split(".")[2:3] == study, f"{module} imports another study: {other}"
        if room(module) == "stats":
            assert room(other) == "stats", f"{module} imports {other}"


def test_no_circle():
    graph = {m: {o for o, _ in imports(f, top_level=True)} - {m} for m, f in SOURCES.items()}
    gone = set()
    while left := {m for m in graph if m not in gone}:
        free = {m for m in left if not (graph[m] & left)}
        assert free, f"a circle among {sorted(left)}"
        gone |= free


def test_every_study_has_the_same_files():
    for study in STUDIES:
        there = {file.stem for file in (LIB / "ingroup/studies" / study).glob("*.py")}
        needed = {"stimuli", "design", "answers", "statistics", "planted", "lens"}
        assert needed <= there, study


def test_no_model_is_named_in_the_library():
    known = {f.parent.name for f in paths.MODELS.glob("*/config.json")}
    rows = models.registry().rows
    known |= {*rows["name"], *rows["printed"], *rows["label"], *rows["hub_id"]} - {""}
    for name, source in SOURCES.items():
        texts = {n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)}
        assert not known & texts, name


@pytest.mark.parametrize("notebook", sorted(p.stem for p in paths.NOTEBOOKS.glob("[1-4]*.ipynb")))
def test_opening_a_study_loads_no_module_of_another(notebook):
    cells = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", 4).cells
    left = ["\n".join(cell.source for cell in cells if cell.cell_type == "code")]
    loaded = set()  # whatever an import leads to, those within functions too
    while left:
        new = {module for module, _ in imports(left.pop())} - loaded
        loaded |= new
        left += [SOURCES[module] for module in new]
    found = {module.split(".")[2] for module in loaded if room(module) == "studies"}
    assert found == {study for study in STUDIES if study in notebook}


def test_a_profile_names_notebooks_that_are_there():
    for file in paths.PROFILES.glob("*.yaml"):
        for notebook in yaml.safe_load(file.read_text("utf8")):
            assert (paths.NOTEBOOKS / f"{notebook}.ipynb").exists(), notebook


def test_plainness_by_hand():
    """Two lines of twelve expressions, one packed assignment; a long function without a break."""
    counts = Plainness()
    counts.add('"""Docstring."""\n\n# comment\na, b = 1, 2\nc = [x for x in y]\n')
    assert (counts.lines, counts.packed, counts.comprehensions) == (2, 1, 1)
    assert counts.expressions == 1 + 6 + 5  # the docstring is one, too
    body = "\n".join(f"    a{n} = {n}" for n in range(12))
    counts.add(f"def f():\n{body}\n")
    assert (counts.long, counts.unbroken) == (1, 1)
    counts.add(f'def f():\n    """Docstring.\n\n    """\n{body}\n\n    return 1\n')
    assert (counts.long, counts.unbroken) == (2, 1)


def test_code_is_plain():
    """One step a line, with a name for it, and a blank line between two thoughts."""
    counts = Plainness()
    for module, source in SOURCES.items():
        counts.add(source)
        assert "fmt: skip" not in source, module
    assert counts.density <= 5.0
    assert counts.per_thousand(counts.packed) <= 5
    assert counts.per_thousand(counts.comprehensions) <= 30
    assert counts.unbroken <= 0.2 * counts.long
