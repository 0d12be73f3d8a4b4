"""Mutants of the code, each with one operator or number changed, of which tests should fail.

``make mutants`` tries the mutants that cosmic-ray's operators make. Each mutant runs in a process
of its own, which imports the changed text instead of the file. So no file is changed, even if the
program is killed. The tests of ``lib/ingroup/<folder>/<name>.py`` are
``tests/<folder>/test_<name>*.py``.

``make mutants FILE=stats/permutation SAMPLES=50`` tries one file. The draw is the same each time,
and a larger sample holds the smaller sample. A sample of 0 has all mutants. ``tests/mutants.csv``
explains survivors that no test can or need kill. Any other survivor ends the program with status 1.
"""

import ast
import csv
import os
import random
import resource
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "lib" / "ingroup"
EXPLAINED = ROOT / "tests" / "mutants.csv"
OUT = Path(os.environ.get("INGROUP_BUILD", ROOT / "build")) / "mutants"
FILES = [
    "stats/permutation",
    "stats/effects",
    "stats/corrections",
    "stats/paired",
    "stats/crossed",
    "stats/multiverse",
    "stats/power",
    "parsing",
    "dictionary",
    "studies/stereomap/keyword_lists",
    "studies/stereomap/rating_lists",
    "studies/empathy_gap/statistics",
    "studies/biased_samaritan/statistics",
    "studies/giebench/statistics",
    "studies/stereomap/statistics",
]
SAMPLES = 50  # of each file
SEED = 0
# Imported once, before there are mutants: they take most of the time of a small test.
SLOW_IMPORTS = ["pytest", "hypothesis", "numpy", "pandas", "scipy.stats", "statsmodels.api"]
KEY = ["file", "function", "before", "after"]


class Mutant(NamedTuple):
    """A changed text of a file, and the change."""

    text: str
    file: str
    function: str
    before: str
    after: str
    line: int

    def row(self) -> dict:
        """Return the row of the table about this mutant: all fields except the text of the file."""
        row = self._asdict()
        del row["text"]
        return row


class Instead(SourceFileLoader):
    """Loader that takes a module from a changed text, and passes over its compiled file.

    Parameters
    ----------
    name : str
        The module.
    path : str
        The file of the module.
    text : str
        The changed text.
    """

    def __init__(self, name: str, path: str, text: str):
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str):
        """Compile the changed text."""
        return compile(self.text, self.path, "exec")

    def find_spec(self, fullname: str, path=None, target=None) -> ModuleSpec | None:
        """Return the spec of this module, or None for any other.

        The loader is its own finder.
        """
        if fullname != self.name:
            return None
        return spec_from_file_location(fullname, self.path, loader=self)


def meaning(text: str) -> str:
    """Return the syntax tree of a text without annotations, which change no result.

    A text that Python warns about, such as `is` beside a literal, is a SyntaxError.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile(text, "", "exec")

    tree = ast.parse(text)
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if hasattr(node, field):
                setattr(node, field, None)
    return ast.dump(tree)


def function_of(text: str, line: int) -> str:
    """Name the innermost function or class around a line, or return "" outside all of them."""
    name = ""
    for node in ast.walk(ast.parse(text)):
        is_named = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if is_named and node.lineno <= line <= node.end_lineno:
            # ast.walk meets an outer function first, so the last one that fits is the innermost.
            name = node.name
    return name


def changed_lines(old: str, new: str) -> tuple[int, str, str]:
    """Return the number of the first changed line, and the changed lines before and after."""
    old_lines = old.splitlines()
    new_lines = new.splitlines()
    # Without autojunk=False difflib passes over lines that come often in a long file.
    matcher = SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    first = changes[0]
    last = changes[-1]

    before = " ".join(map(str.strip, old_lines[first[1] : last[2]]))
    after = " ".join(map(str.strip, new_lines[first[3] : last[4]]))
    return first[1] + 1, before, after


def places(text: str) -> list[tuple[str, int]]:
    """List the places that cosmic-ray can change, each as an operator's name and a number."""
    nodes = list(ast_nodes(get_ast(text)))
    numbered = []
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments():
            # An operator that takes arguments cannot be made without them.
            continue

        operator = operator_class()
        count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        numbered += [(name, number) for number in range(count)]
    return numbered


def mutants(file: str) -> Iterator[Mutant]:
    """Yield all mutants of a file in random order.

    A change that is not Python, or that keeps the meaning, is left out.
    """
    text = (PACKAGE / f"{file}.py").read_text("utf8")
    seen = {meaning(text)}
    drawn = places(text)
    random.Random(f"{SEED} {file}").shuffle(drawn)

    for name, number in drawn:
        operator = get_operator(name)()
        changed = mutate_code(text, operator, number)
        try:
            changed_meaning = meaning(changed)
        except SyntaxError:
            continue
        # The code itself is among the seen, so a change that keeps its meaning is no mutant.
        if changed_meaning in seen:
            continue

        seen.add(changed_meaning)
        line, before, after = changed_lines(text, changed)
        yield Mutant(changed, file, function_of(text, line), before, after, line)


def tests_of(file: str) -> list[str]:
    """List the test files of a file."""
    folder, _, name = file.rpartition("/")
    return [str(test) for test in sorted((ROOT / "tests" / folder).glob(f"test_{name}*.py"))]


def passes(file: str, text: str | None, seconds: float) -> bool:
    """Tell whether the tests of a file pass with a changed text, in a process of their own."""
    # A fork has the slow imports already, and its changes end with it.
    child = os.fork()
    if child == 0:
        _run_tests(file, text, seconds)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


def _run_tests(file: str, text: str | None, seconds: float) -> None:
    """Run the tests of a file, and end this process with their status."""
    import pytest

    # A mutant may never end, or ask for more memory than there is.
    limit = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (6 * 2**30, 6 * 2**30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)

    if text is not None:
        name = "ingroup." + file.replace("/", ".")
        # It goes before Python's own finders, so that the tests import the changed text.
        sys.meta_path.insert(0, Instead(name, str(PACKAGE / f"{file}.py"), text))
    # xdist is off, as its workers would import the file and not the changed text.
    options = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    sys.exit(pytest.main([*options, *tests_of(file)]))


def explanations() -> dict[tuple, str]:
    """Read why each explained survivor is not worth a test, by its `KEY`."""
    with EXPLAINED.open(encoding="utf8", newline="") as stream:
        return {tuple(row[name] for name in KEY): row["why"] for row in csv.DictReader(stream)}


def children_seconds() -> float:
    """Return the processor seconds of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def survivors_of(file: str, samples: int) -> tuple[list[Mutant], int]:
    """Return the mutants of a sample that no test kills, and the size of the sample."""
    before = children_seconds()
    if not passes(file, None, 600):
        raise SystemExit(f"the tests of {file} fail without any mutant")
    # The time of the tests without a mutant sets the limit for the tests with a mutant.
    seconds = children_seconds() - before

    survivors = []
    tried = 0
    for mutant in mutants(file):
        if tried == samples:
            break
        tried += 1
        if passes(file, mutant.text, 5 + 3 * seconds):
            survivors.append(mutant)
            print(f"  line {mutant.line}: {mutant.before}  ->  {mutant.after}", flush=True)
    return survivors, tried


def chosen_samples() -> int:
    """Return the number of mutants to try per file, from SAMPLES.

    A SAMPLES of 0 stands for all mutants.
    """
    given = os.environ.get("SAMPLES") or f"{SAMPLES}"
    if not given.isdecimal():
        sys.exit(f"SAMPLES must be a whole number, or 0 for all, found {given!r}")
    return int(given) or sys.maxsize


def main(files: Sequence[str]) -> int:
    """Try the mutants of some files, and return 1 for a survivor without an explanation."""
    samples = chosen_samples()
    for name in SLOW_IMPORTS:
        __import__(name)

    explained = explanations()
    rows = []
    open_ends = 0
    for file in files:
        survivors, tried = survivors_of(file, samples)
        unexplained = 0
        for mutant in survivors:
            row = mutant.row()
            row["why"] = explained.get(tuple(row[name] for name in KEY), "")
            unexplained += not row["why"]
            rows.append(row)
        print(
            f"{file}: {tried} mutants, {tried - len(survivors)} killed, {len(survivors)} survived, "
            f"{unexplained} of them without an explanation",
            flush=True,
        )
        open_ends += unexplained

    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / "survivors.csv").open("w", encoding="utf8", newline="") as stream:
        table = csv.DictWriter(stream, ["file", "line", *KEY[1:], "why"])
        table.writeheader()
        table.writerows(rows)
    return 1 if open_ends else 0


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: a process with threads cannot be forked
    os.chdir(ROOT)
    chosen = os.environ.get("FILE")
    if chosen and chosen not in FILES:
        sys.exit(f"FILE is one of {' '.join(FILES)}, not {chosen!r}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = folder  # of the tests, which a kill does not let clean up
        tempfile.tempdir = None
        sys.exit(main([chosen] if chosen else FILES))
