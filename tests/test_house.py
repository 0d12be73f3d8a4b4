"""The house: imports go down, no study knows another, no circle."""

import ast
import re

import nbformat
import pytest
import yaml

from ingroup import models, paths
from ingroup.commands import settings
from ingroup.commands.run_parameters import study_of
from plainness import Plainness, unclear_summaries

LIB = paths.ROOT / "lib"
FILES = sorted((LIB / "ingroup").rglob("*.py"))
STUDIES = sorted(file.parent.name for file in LIB.glob("ingroup/studies/*/design.py"))
NOTEBOOKS = [notebook for notebook in settings.notebooks() if study_of(notebook)]
# The rooms, from the ground up: a module imports from its own floor or from below.
FLOORS = [
    {"paths", "tables"},
    {"design", "parsing", "corpora", "stats", "models", "canvas", "figures", "contract"},
    {
        "families",
        "inference",
        "published",
        "latex",
        "keywords",
        "dictionary",
        "audit",
        "audit_figures",
        "parameters",
        "findings_sentences",
    },
    {
        "notebook",
        "synthesis",
        "synthesis_figures",
        "guide_figures",
        "claim_verdicts",
        "notebook_cells",
        "examples",
        "sizes",
        "comparison",
    },
    {"studies"},
    {"appendix", "commands", "trials_behind"},
]
FLOOR = {}
for number, rooms in enumerate(FLOORS):
    FLOOR |= dict.fromkeys(rooms, number)


def name_of(file):
    parts = file.relative_to(LIB).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


SOURCES = {name_of(file): file.read_text("utf8") for file in FILES}


def imports(source, top_level=False):
    """Modules of this project that a source imports, and the names that it takes from them."""
    tree = ast.parse(source)
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("ingroup"):
                    yield alias.name, ""
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ingroup"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = whole in SOURCES
                yield (whole, "") if is_module else (node.module, alias.name)


def room(module):
    """A module's place in the package: `stats` of `ingroup.stats.paired`."""
    _, *inside = module.split(".")
    return inside[0] if inside else ""


def study_of(module):
    """The study that a module belongs to, or none."""
    is_of_study = re.match(r"ingroup\.studies\.(\w+)", module)
    return is_of_study.group(1) if is_of_study else None


@pytest.mark.parametrize("module", SOURCES)
def test_imports_go_to_lower_floors_and_take_no_private_name(module):
    floor = FLOOR.get(room(module), 99)
    study = study_of(module)
    for other, name in imports(SOURCES[module]):
        assert not re.match("_[a-z]", name), f"{module} takes {name} from {other}"
        if other != "ingroup":
            assert FLOOR[room(other)] <= floor, f"{module} imports {other}"
        if study and room(other) == "studies":
            assert study_of(other) == study, f"{module} imports another study: {other}"
        if room(module) == "stats":
            assert room(other) == "stats", f"{module} imports {other}"


def test_imports_make_no_circle():
    graph = {}
    for module, source in SOURCES.items():
        others = {other for other, _ in imports(source, top_level=True)}
        graph[module] = others - {module}

    left = set(graph)
    while left:
        free = {module for module in left if not graph[module] & left}
        assert free, f"a circle among {sorted(left)}"
        left -= free


def test_every_study_has_the_same_files():
    needed = {"stimuli", "design", "answers", "statistics", "ground_truth", "group_profile"}
    for study in STUDIES:
        folder = LIB / "ingroup" / "studies" / study
        modules = {file.stem for file in folder.glob("*.py")}
        assert needed <= modules, f"{study} lacks {sorted(needed - modules)}"


def test_no_model_is_named_in_the_library():
    names = {file.parent.name for file in paths.MODELS.glob("*/config.json")}
    rows = models.registry().rows
    for column in ("name", "printed", "label", "hub_id"):
        names |= set(rows[column])
    names -= {""}

    for module, source in SOURCES.items():
        nodes = ast.walk(ast.parse(source))
        constants = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert not names & constants, module


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_opening_a_study_loads_no_module_of_another(notebook):
    cells = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", 4).cells
    left = ["\n".join(cell.source for cell in cells if cell.cell_type == "code")]

    loaded = set()  # whatever an import leads to, those within functions too
    while left:
        imported = {module for module, _ in imports(left.pop())}
        new = imported - loaded
        loaded |= new
        left += [SOURCES[module] for module in new]

    loaded_studies = {study_of(module) for module in loaded} - {None}
    assert loaded_studies == {study for study in STUDIES if study in notebook}


def test_a_profile_names_notebooks_that_exist():
    for file in paths.PROFILES.glob("*.yaml"):
        for notebook in yaml.safe_load(file.read_text("utf8")):
            assert (paths.NOTEBOOKS / f"{notebook}.ipynb").exists(), notebook


def test_plainness_counts_what_a_hand_counts():
    """Two lines of twelve expressions, one packed assignment; a long function without a break."""
    counts = Plainness()
    counts.add('"""Docstring."""\n\n# comment\na, b = 1, 2  # beside code\nc = [x for x in y]\n')
    assert counts.lines == 2
    assert counts.comments == 1
    assert counts.packed == 1
    assert counts.comprehensions == 1
    assert counts.expressions == 1 + 6 + 5  # the docstring is one, too

    body = "\n".join(f"    a{n} = {n}" for n in range(12))
    counts.add(f"def f():\n{body}\n")
    assert (counts.long, counts.unbroken) == (1, 1)

    counts.add(f'def f():\n    """Docstring.\n\n    """\n{body}\n\n    return 1\n')
    assert (counts.long, counts.unbroken) == (2, 1)


def sources_of(room):
    """The name and the code of each module or notebook of a room; cells are joined."""
    for file in sorted((paths.ROOT / room).rglob("*.py")):
        yield file.name, file.read_text("utf8")
    for file in sorted((paths.ROOT / room).glob("*.ipynb")):
        cells = nbformat.read(file, 4).cells
        yield file.name, "\n\n".join(cell.source for cell in cells if cell.cell_type == "code")


@pytest.mark.parametrize(
    ("room", "most_dense", "least_comments"),
    [
        ("lib", 5.0, 60),
        ("bench", 5.0, 60),
        ("notebooks", 5.0, 60),
        ("data/models/training", 5.0, 60),
        ("tests", 5.5, 0),  # their names say why
    ],
)
def test_code_is_plain(room, most_dense, least_comments):
    """One step a line, with a name for it, and a blank line between two thoughts."""
    counts = Plainness()
    for _, source in sources_of(room):
        counts.add(source)
        # The mark is written in two parts, so that this file has none.
        assert "fmt: " + "skip" not in source

    assert counts.density <= most_dense
    assert counts.per_thousand(counts.packed) <= 5
    assert counts.per_thousand(counts.comprehensions) <= 30
    assert counts.per_thousand(counts.comments) >= least_comments
    assert counts.unbroken <= 0.2 * counts.long


def test_an_unclear_docstring_is_listed_with_its_line_and_the_reason():
    long_sentence = " ".join(["word"] * 26) + "."
    source = f'''"""Numbers and names; both are read here."""

def rains(day):
    """Whether it rains."""

class Rain:
    """The rain of a day."""

    def amount(self):
        """Return the amount in millimetres.

        The day begins at six; its rain is that of 24 hours.
        """

def wind():
    """Return {long_sentence}"""
'''
    assert unclear_summaries(source) == [
        "line 1, a semicolon: Numbers and names; both are read here.",
        "line 3, no verb: Whether it rains.",
        f"line 15, 27 words: Return {long_sentence}",
    ]


@pytest.mark.parametrize(
    "room", ["lib", "bench", "notebooks", "data/models/training", "data/recordings"]
)
def test_docstrings_begin_with_one_clear_sentence(room):
    unclear = []
    for name, source in sources_of(room):
        unclear += [f"{name}, {problem}" for problem in unclear_summaries(source)]
    assert not unclear, "\n".join(unclear)
