"""What is set on make's command line, read and checked with the standard library alone.

make exports the names in MAKEFLAGS and the values as environment variables, so no shell reads a
value. ``python settings.py`` refuses what cannot work before there is an environment.
"""

import difflib
import hashlib
import json
import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("INGROUP_BUILD", ROOT / "build"))
DEFAULT_RUN = "default"

# Names that are read by the Makefile or by a command. Any other is a parameter of a notebook.
OF_MAKE = {"PYTHON", "VENV", "PY", "READY", "TORCH_INDEX", "DATA_MIRROR", "PROFILE", "RUN"}
OF_COMMANDS = {"STUDY", "RATE", "SAMPLES", "BUNDLE"}
OF_A_FIGURE = {"ONLY", "OUT", "FORMAT", "WIDTH", "FONT", "CMAP", "PANEL"}
# They say who computes, and change no result.
OF_WORKERS = {"ENGINE_WORKERS", "RAY_ADDRESS"}
# They read a run that is there already.
READERS = {"00", "60", "report", "figures"}
COMPARISON = "61_comparison"  # the notebook of make compare
# Parameters under the names that they had, with their names now and values that changed.
FORMER_PARAMETERS = {"RATING": ("READING", {"greedy": "free"})}
LONGEST_NAME = 60


class Refused(Exception):
    """A sentence for the user: what cannot work, and what would."""


def given(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Read every variable that was set on make's command line.

    Returns
    -------
    dict of str to str
        The values by their names, each exactly as it was typed.

    Raises
    ------
    Refused
        If a name has other characters than letters, digits and _, or is that of a key.
    """
    overrides = re.search(r"(?:^|\s)-- (.*)", environment.get("MAKEFLAGS", ""), re.DOTALL)
    if overrides is None:
        return {}

    # make writes a blank of a value as a backslash and a blank.
    words = re.findall(r"(?:\\.|[^\\ ])+", overrides[1], re.DOTALL)
    values = {}
    for word in words:
        name = word.partition("=")[0].rstrip(":+?!")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise Refused(f"a parameter's name has letters, digits and _: {name}")
        if name.endswith(("_KEY", "_TOKEN")):
            raise Refused(f"a key belongs in the environment, not on the command line: {name}")
        values[name] = environment.get(name, "")
    return values


def parameters(values: Mapping[str, str]) -> dict[str, str]:
    """Keep the parameters of notebooks among the variables that were set."""
    others = OF_MAKE | OF_COMMANDS | OF_A_FIGURE
    if "ONLY" in values:
        others = others | {"MODELS"}  # which models one figure shows
    names = set(values) - others
    return {name: values[name] for name in sorted(names)}


def renamed(values: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Give parameters the names that they have now, and say which had another in a sentence."""
    now = {}
    sentences = []
    for name, value in values.items():
        new_name, new_values = FORMER_PARAMETERS.get(name, (name, {}))
        now[new_name] = new_values.get(value, value)
        if new_name != name:
            sentences.append(
                f"{name}={value} is now {new_name}={now[new_name]}; "
                "the old name works for one release"
            )
    return now, sentences


def command_options(values: Mapping[str, str]) -> list[str]:
    """Write what is set as the options of a command: names alone, no value."""
    options = ["--profile", os.environ.get("PROFILE") or "demo"]
    for name in parameters(values):
        options += ["--set", name]
    return options


def is_folder_name(name: str) -> bool:
    """Tell whether a name can be that of a folder below build/runs."""
    return ".." not in name and bool(re.fullmatch(r"[A-Za-z0-9_,+=][A-Za-z0-9_.,+=-]*", name))


def run_name(environment: Mapping[str, str] = os.environ) -> str:
    """Name the run: ``RUN``, or what it changes, or "default".

    Two runs with different parameters have different names: a name that is cut, or that lacks a
    sign of a value, ends in a checksum.
    """
    if environment.get("RUN"):
        return environment["RUN"]

    changes = []
    for name, value in parameters(given(environment)).items():
        if name not in OF_WORKERS:
            escaped = value.replace("+", "++")
            changes.append(f"{name}-{escaped}")
    profile = environment.get("PROFILE") or "demo"
    if profile != "demo":
        changes.insert(0, profile)

    whole = "+".join(changes)
    if not whole:
        return DEFAULT_RUN
    if len(whole) <= LONGEST_NAME and is_folder_name(whole) and whole != DEFAULT_RUN:
        return whole

    digest = hashlib.sha256(whole.encode("utf8", "surrogateescape")).hexdigest()[:10]
    readable = re.sub(r"[^A-Za-z0-9_,+=]+", "-", whole).lstrip("-")
    return f"{readable[: LONGEST_NAME - 1 - len(digest)]}-{digest}"


def run_folder(run: str) -> Path:
    """Return the folder of a run's tables and executed notebooks."""
    return BUILD if run == DEFAULT_RUN else BUILD / "runs" / run


def runs() -> list[str]:
    """List the runs that are there to be read, the default run first."""
    names = set()
    for file in BUILD.glob("runs/*/notebooks/*.txt"):
        names.add(file.parents[1].name)

    has_default = any(BUILD.glob("notebooks/*.txt"))
    return [DEFAULT_RUN, *sorted(names)] if has_default else sorted(names)


def notebooks() -> list[str]:
    """List the notebooks in the order of their numbers."""
    return sorted(file.stem for file in ROOT.glob("notebooks/[0-9]*.ipynb"))


def study_names() -> list[str]:
    """List the studies: each has a folder in lib."""
    return sorted(file.parent.name for file in ROOT.glob("lib/ingroup/studies/*/design.py"))


def first_notebooks() -> list[str]:
    """List the notebooks that ask: one per study, named like it."""
    studies = study_names()
    return [name for name in notebooks() if name[1] == "0" and name[3:] in studies]


def chosen_studies(study: str) -> list[str]:
    """List the first notebooks that ``STUDY`` (a number or a name) means; all where it is empty."""
    first = first_notebooks()
    if not study:
        return first
    for name in first:
        if study in (name[:2], name[3:], name):
            return [name]
    raise Refused(f"there is no study {study}: give one of {' '.join(first)}, or its number")


def known_parameters(names: Collection[str]) -> set[str]:
    """Collect the names in the cells of parameters of some notebooks."""
    known = set()
    for name in names:
        file = ROOT / "notebooks" / f"{name}.ipynb"
        notebook = json.loads(file.read_text("utf8"))
        for cell in notebook["cells"]:
            if "parameters" in cell["metadata"].get("tags", []):
                source = "".join(cell["source"])
                known.update(re.findall(r"^([A-Z_0-9]+) = ", source, re.MULTILINE))
    return known - {"RUN"}


def named_by(goals: Collection[str]) -> list[str]:
    """List the notebooks that goals name: by their numbers, or by ``compare``."""
    numbers = set(goals)
    if "compare" in goals:
        numbers.add(COMPARISON[:2])
    return [name for name in notebooks() if name[:2] in numbers]


def asked_notebooks(goals: Collection[str], study: str) -> list[str]:
    """List the notebooks whose parameters can be set for these goals."""
    if {"all", "plan", "view"} & set(goals):
        return notebooks()
    if "ask" in goals:
        return chosen_studies(study)
    return named_by(goals)


def check_names(goals: Collection[str], environment: Mapping[str, str]) -> None:
    """Refuse a parameter that none of the notebooks of these goals has."""
    asked = asked_notebooks(goals, environment.get("STUDY", ""))
    known = known_parameters(asked)
    typed = parameters(given(environment))
    for name in FORMER_PARAMETERS.keys() & typed.keys():
        new_name, _ = FORMER_PARAMETERS[name]
        if new_name in typed:
            raise Refused(f"{name} is now {new_name}: give {new_name} alone")
    now, _ = renamed(typed)
    for name in now if asked else ():
        if name in known:
            continue
        near = difflib.get_close_matches(name.upper(), known, 1)
        there_are = f"there are {' '.join(sorted(known))}"
        hint = f"did you mean {near[0]}?" if near else there_are
        raise Refused(f"{name} is no parameter here; {hint}")


def check_run(goals: Collection[str], environment: Mapping[str, str]) -> None:
    """Refuse a run that has no folder's name, that is not there, or whose name is taken."""
    values = given(environment)
    for name in ("PROFILE", "RUN"):
        value = environment.get(name) or DEFAULT_RUN
        if not is_folder_name(value):
            goal = " ".join(goals)
            raise Refused(
                f"{name} is the name of a folder or file, of A-Z a-z 0-9 _ . + = - and comma, "
                f"without two dots: give another, make {goal} {name}=<name>, not {value!r}"
            )

    run = run_name(environment)
    changed = set(parameters(values)) - OF_WORKERS
    if run == DEFAULT_RUN and changed:
        raise Refused("the default run has no other parameters: leave RUN out, or give another")

    readers = READERS | {"view", "compare"} if "RUN" in values else READERS
    reads = bool(goals) and readers.issuperset(goals)
    if reads and run not in runs():
        there_are = " ".join(runs()) or "none, make all first"
        goal = " ".join(goals)
        raise Refused(
            f"there is no run {run} to read, there are: {there_are}. "
            f"Name one, make {goal} RUN=<name>"
        )


def check_comparison(environment: Mapping[str, str]) -> None:
    """Refuse a comparison without two models, and a profile: `check_run` knows the runs."""
    models = {entry.strip() for entry in environment.get("MODELS", "").split(";")} - {""}
    if len(models) < 2:
        raise Refused('give two models or more: make compare MODELS="<name>;<name>"')
    if environment.get("PROFILE"):
        raise Refused("make compare reads a run that is there: name it with RUN, not with PROFILE")


def check_figure(goals: Collection[str], environment: Mapping[str, str]) -> None:
    """Refuse a figure that is not there, and a figure's options for anything else."""
    values = given(environment)
    drawn = sorted(OF_A_FIGURE.intersection(values))
    if drawn and (not values.get("ONLY") or set(goals) - {"figures"}):
        names = " ".join(drawn)
        raise Refused(f"{names}: these are of make figures ONLY=<study>/<name>, and nothing else")

    folders = (ROOT / "figures", run_folder(run_name(environment)) / "figures")
    for figure in values.get("ONLY", "").split():
        study, _, name = figure.partition("/")
        is_there = False
        if is_folder_name(study) and is_folder_name(name):
            files = [folder / f"{figure}.pdf" for folder in folders]
            is_there = files[0].is_file() or files[1].is_file()
        if not is_there:
            raise Refused(
                f"there is no figure {figure}: ONLY is as a file below figures/ is called, "
                "without its ending"
            )


def check(goals: Collection[str], environment: Mapping[str, str] = os.environ) -> None:
    """Refuse what is set on the command line and cannot work, in one sentence.

    Parameters
    ----------
    goals : collection of str
        The targets that read parameters: numbers of notebooks, "all", "plan" and so on.
    environment : mapping
        ``MAKEFLAGS`` and the values.

    Raises
    ------
    Refused
        For the first mistake.
    """
    values = given(environment)
    for name in ("PYTHON", "PY", "VENV", "READY"):  # the Makefile writes them into shell lines
        value = values.get(name, "")
        if not re.fullmatch(r"[\w./~+@:-]*", value):
            raise Refused(f"{name} is a path without blanks and signs of a shell, not {value!r}")

    check_figure(goals, environment)
    check_run(goals, environment)
    if {"plan", "ask", "view"} & set(goals):
        chosen_studies(environment.get("STUDY", ""))
    if "ask" in goals and not environment.get("STUDY"):
        raise Refused("give a study: make ask STUDY=10 MODELS=...")
    if "compare" in goals:
        check_comparison(environment)
    samples = environment.get("SAMPLES", "")
    if "view" in goals and re.search(r"[^0-9]", samples):
        raise Refused(f"SAMPLES is a whole number, 0 for all, not {samples}")
    check_names(goals, environment)


def help_text() -> str:
    """List the targets of the Makefile, the notebooks, and what can be set."""
    lines = []
    for line in (ROOT / "Makefile").read_text("utf8").splitlines():
        target = re.match(r"([a-z-]+):.*?  ## (.*)", line)
        if target:
            lines.append(f"  make {target[1]:18}{target[2]}")
        elif line.startswith("#+ "):  # the line above goes on
            lines[-1] += line.removeprefix("#+")
    for name in notebooks():
        lines.append(f"  make {name[:2]:18}run notebook {name}")
    lines += [
        "Parameters of a notebook: make 10 MODELS=... ENGINE=... CORPUS=... N_EVENTS=... "
        "(PROFILE=demo|full)",
        "The environment: PYTHON=python3.12 chooses the Python, "
        "TORCH_INDEX=<address> where pip looks for torch",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Check the command line for the goals in the environment; 2 where it cannot work."""
    if not (3, 11) <= sys.version_info[:2] < (3, 14):
        version = ".".join(map(str, sys.version_info[:2]))
        print(
            f"Ingroup needs Python 3.11 to 3.13; {sys.executable} is {version}. "
            "Name another with make PYTHON=python3.12",
            file=sys.stderr,
        )
        return 2
    if arguments == ["help"]:
        print(help_text())
        return 0

    foreign = os.environ.get("FOREIGN", "")
    if foreign not in ("", str(ROOT / "lib")):
        print(f"PYTHONPATH is not used: make runs {ROOT / 'lib'}", file=sys.stderr)
    try:
        check(os.environ.get("GOALS", "").split())
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
