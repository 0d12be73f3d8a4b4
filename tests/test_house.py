"""The layout: who imports whom, what notebooks hold, and which versions are installed."""

import ast
import json
import re
import tomllib
from graphlib import TopologicalSorter

import pytest
import yaml
from packaging.requirements import Requirement

from ingroup import NOTEBOOKS, ROOT, run

LIB = ROOT / "lib"
STUDIES = {file.parent.name for file in LIB.glob("ingroup/*/stimuli.py")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))
DECLARED = {found.name: found for found in map(Requirement, PROJECT["project"]["dependencies"])}


def module_name(file):
    """Name the module of a file."""
    return ".".join(file.relative_to(LIB).with_suffix("").parts)


MODULES = {module_name(file): file for file in LIB.rglob("*.py")}


def imports(source, nodes=ast.walk):
    """List the modules of this project that a source imports."""
    found = set()
    for node in nodes(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ingroup"):
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.add(inside if inside in MODULES else node.module)
    return found


def test_imports_make_no_circle():
    """Imports at the top of modules."""
    graph = {}
    for name, file in MODULES.items():
        source = file.read_text("utf8")
        graph[name] = imports(source, lambda tree: tree.body) - {name, "ingroup"}
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_no_study_imports_another():
    """Nor does what studies share import a study."""
    for name, file in MODULES.items():
        own = name.split(".")[1:2]
        for other in imports(file.read_text("utf8")):
            of_study = STUDIES & set(other.split(".")[1:2])
            assert not of_study - set(own), f"{name} imports {other}"


@pytest.mark.parametrize("name", run.names([]))
def test_a_notebook_is_committed_without_outputs_and_is_short(name):
    """It has parameters, is drawn from tables, and writes to figures/ under make alone."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for cell in code:
        assert not cell["outputs"]
        assert cell["execution_count"] is None
    assert len(code) <= 30
    assert run.defaults(name)["RUN"] == "lab"
    tags = {tag for cell in cells for tag in cell["metadata"].get("tags", [])}
    assert tags <= {"setup", "parameters", "figure", "solution"}


@pytest.mark.parametrize("file", list(run.PROFILES.iterdir()))
def test_every_parameter_of_a_profile_exists(file):
    """A profile changes what notebooks have."""
    for name, values in yaml.safe_load(file.read_text("utf8")).items():
        assert set(values) <= {*run.defaults(name), *run.of_engines()}, name


def test_parameters_of_engines_are_those_of_the_file():
    """The program finds them without a YAML library, before there is an environment."""
    assert run.of_engines() == yaml.safe_load(run.ENGINES.read_text("utf8"))


def test_documents_name_targets_that_exist():
    """Each `make ...` in README and the guides is a target or a notebook's number."""
    makefile = (ROOT / "Makefile").read_text("utf8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    targets |= {name[:2] for name in run.names([])}
    for file in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        text = file.read_text("utf8")
        named = re.findall(r"(?:^|`)make ([a-z0-9-]+)", text, re.MULTILINE)
        assert set(named) <= targets, file.name


# ---- environments


def test_the_lock_pins_what_is_declared():
    """One version and its hashes, for each package but torch."""
    text = (ROOT / "requirements.lock").read_text("utf8")
    pinned = {}
    for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]:
        requirement = Requirement(block.partition("\\")[0].strip())
        assert "--hash=sha256:" in block
        pinned.setdefault(requirement.name, []).append(str(requirement.specifier)[2:])

    assert set(DECLARED) - set(pinned) == {"torch"}
    for name in set(DECLARED) & set(pinned):
        assert all(version in DECLARED[name].specifier for version in pinned[name]), name


def test_the_conda_environment_has_the_same_versions():
    """Other names there: pytorch, matplotlib-base."""
    lines = yaml.safe_load((ROOT / "environment.yml").read_text("utf8"))["dependencies"]
    *conda, pip = lines
    names = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
    found = {}
    for line in [*conda, *pip["pip"]]:
        name = re.match(r"[\w-]*", line).group()
        found[names.get(name, name)] = line
    for name, requirement in DECLARED.items():
        assert Requirement(found[name]).specifier == requirement.specifier, name
    assert set(found) == {*DECLARED, "python", "make", "pip", "--editable"}


def test_no_file_names_a_registry():
    """Where packages come from is for the machine to say."""
    for name in ("requirements.lock", "pyproject.toml", "environment.yml", "Makefile"):
        assert "://" not in (ROOT / name).read_text("utf8")


def test_versions_in_the_makefile_are_those_of_the_project():
    """Torch and uv are installed by pip, before anything reads pyproject.toml."""
    makefile = (ROOT / "Makefile").read_text("utf8")
    assert str(DECLARED["torch"]) in makefile
    assert f"uv{PROJECT['tool']['uv']['required-version']}" in makefile
