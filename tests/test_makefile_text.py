"""The text of the Makefile, and what `make help` makes of it: seconds, as nothing runs."""

import re

import pytest

import clone
from ingroup import paths
from ingroup.commands import settings

MAKEFILE = (paths.ROOT / "Makefile").read_text("utf8")
FUNCTION = r"\$\((?:if|foreach|shell|call|eval|filter|filter-out|patsubst|subst|wildcard|or|and) "


def test_the_makefile_is_short_and_plain():
    lines = MAKEFILE.splitlines()
    assert len(lines) <= 100, "the Makefile is full: an old line has to go for a new one"
    assert "$(if" not in MAKEFILE
    assert "awk" not in MAKEFILE

    for line in lines:
        assert len(line) <= 100, line
        assert not re.search(rf"{FUNCTION}[^)]*{FUNCTION}", line), line


def test_a_file_with_the_name_of_a_target_stops_no_target():
    text = MAKEFILE.replace("\\\n", "")
    lists = re.findall(r"^(?:override (?:TASKS|CHECKS) +:=|\.PHONY:)(.*)", text, re.MULTILINE)
    phony = set(" ".join(lists).split())
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert targets <= phony, f"add to .PHONY: {targets - phony}"


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [
        ("reprot", "there is no target reprot; did you mean report?"),
        ("12", "there is no notebook 12; there are 00 10 11 "),
    ],
)
def test_a_misspelt_target_is_refused_and_the_nearest_one_suggested(goal, sentence):
    make = clone.make(paths.ROOT, goal, check=False)
    assert make.returncode == 2
    assert make.stderr.startswith(sentence)


def test_a_goal_is_run_by_no_shell(tmp_path):
    pwned = tmp_path / "PWNED"
    for goal in (f"x;touch {pwned}", f"x`touch {pwned}`", f"$(shell touch {pwned})"):
        make = clone.make(paths.ROOT, goal, check=False)
        assert make.stderr.startswith("there is no target ")
        assert not pwned.exists(), goal


def test_help_lists_every_target_and_notebook():
    text = clone.make(paths.ROOT, "help").stdout
    listed = set(re.findall(r"^  make (\S+)  ", text, re.MULTILINE))
    assert {notebook[:2] for notebook in settings.notebooks()} < listed

    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)) - {"check"}
    assert targets < listed
    assert not re.search("^#", text, re.MULTILINE)
