"""The list of the papers' tables and figures: each stands in its notebook, and each is listed."""

import re

import pytest
import yaml

from ingroup import FIGURES, NOTEBOOKS, PUBLISHED, ROOT

STUDY = {"1": "empathy_gap", "2": "biased_samaritan", "3": "giebench", "4": "stereomap"}
N_FIGURES = {"empathy_gap": 9, "biased_samaritan": 3, "giebench": 3, "stereomap": 8}


def rows() -> list[list[str]]:
    """Read the rows of docs/papers.md: item, notebook and name."""
    lines = (ROOT / "docs" / "papers.md").read_text("utf8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row[1:4] for row in cells[2:]]


def numbers(text: str) -> set[int]:
    """Read the numbers of ``Tables 3, 7 to 13``."""
    found = set(map(int, re.findall(r"\d+", text)))
    for first, last in re.findall(r"(\d+) to (\d+)", text):
        found |= set(range(int(first), int(last) + 1))
    return found


@pytest.mark.parametrize(("item", "notebook", "name"), [row for row in rows() if row[2]])
def test_each_target_is_made(item, notebook, name):
    """A table is written by its notebook or study, and a figure is in git as PDF and PNG."""
    study = STUDY[notebook[0]]
    name = name.strip("`")
    (file,) = NOTEBOOKS.glob(f"{notebook}_*.ipynb")
    sources = [file.read_text("utf8")]
    sources += [module.read_text("utf8") for module in (ROOT / "lib/ingroup" / study).glob("*.py")]
    stem = re.sub(r"^table\d+_", "", name)
    assert any(name in source or stem in source for source in sources)

    if item.startswith("Figure"):
        assert (FIGURES / study / f"{name}.png").exists()
        assert (FIGURES / study / f"{name}.pdf").exists()


@pytest.mark.parametrize("study", STUDY.values())
def test_each_table_and_figure_is_listed(study):
    """All printed tables, and all figures, have a row."""
    listed = {"Table": set(), "Figure": set()}
    for item, notebook, _ in rows():
        kind = re.match("(Table|Figure)s? ", item)
        if STUDY[notebook[0]] == study and kind:
            listed[kind[1]] |= numbers(item)

    printed = {int(file.stem[5:7]) for file in (PUBLISHED / study).glob("table*.csv")}
    assert listed["Table"] >= printed
    assert listed["Figure"] == set(range(1, N_FIGURES[study] + 1))


def test_codecheck_lists_each_target():
    """The manifest has the names of docs/papers.md, as the files that a run writes."""
    manifest = yaml.safe_load((ROOT / "codecheck.yml").read_text("utf8"))["manifest"]
    files = []
    for item, notebook, name in rows():
        is_figure = item.startswith("Figure")
        target = "figures/{}/{}.png" if is_figure else "build/tables/{}/{}.csv"
        if name and name != "`appendix_l`":  # needs a run of its own
            files.append((target.format(STUDY[notebook[0]], name.strip("`")), item))
    assert [(entry["file"], entry["comment"].split(", ", 1)[1]) for entry in manifest] == files
