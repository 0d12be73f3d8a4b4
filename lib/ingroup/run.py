"""Run the numbered notebooks with papermill. The Makefile calls this.

``run.py folder ...`` needs the standard library alone: it checks what was typed behind make, and
names the folder of the run. The other commands run in the environment.
"""

import ast
import difflib
import hashlib
import json
import os
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
PROFILES = NOTEBOOKS / "profiles"
ENGINES = ROOT / "lib/ingroup/inference/engines.yaml"
# Variables of the Makefile; any other is a parameter.
OF_MAKE = {"PROFILE", "RUN", "ONLY", "STUDY", "PYTHON", "VENV", "PY", "READY", "TORCH_INDEX"}
DRAWING = {"setup", "parameters", "figure"}  # tags of the cells that draw, from written tables
SENTENCES = {"InputError", "StoreError", "EngineError"}  # errors whose message says all
KINDS = {bool: "true or false", int: "a whole number", float: "a number"}


def names(numbers: Collection[str]) -> list[str]:
    """List the notebooks with some numbers, or all."""
    found = sorted(file.stem for file in NOTEBOOKS.glob("[0-9]*.ipynb"))
    return [name for name in found if name[:2] in numbers or not numbers]


def tags(cell: dict) -> list[str]:
    """List the tags of a notebook's cell."""
    return cell["metadata"].get("tags", [])


def defaults(notebook: str) -> dict:
    """Read the values in a notebook's cell of parameters, by name."""
    text = (NOTEBOOKS / f"{notebook}.ipynb").read_text("utf8")
    values = {}
    for cell in json.loads(text)["cells"]:
        if "parameters" in tags(cell):
            source = "".join(cell["source"])
            for line in ast.parse(source).body:
                match line:
                    case ast.Assign([ast.Name(name)], value):
                        values[name] = ast.literal_eval(value)
    return values


def of_engines() -> dict:
    """Read the usual values of the engines' parameters, without a YAML library."""
    lines = re.findall(r"^(\w+): (\S+)", ENGINES.read_text("utf8"), re.MULTILINE)
    return {name: parsed(text) for name, text in lines}


def parsed(text: str) -> Any:
    """Parse a number, a text in quotation marks, true or false; else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def converted(name: str, text: str, usual: Any) -> Any:
    """Convert a typed text into the type of the usual value; semicolons part a list."""
    if isinstance(usual, str):
        return text
    if isinstance(usual, list):
        parts = [part.strip() for part in text.split(";")]
        return [part for part in parts if part]

    kind = type(usual)
    value = parsed(text.lower())
    if type(value) is int and kind is float:
        return float(value)
    if type(value) is not kind:
        sys.exit(f"{name}={text} must be {KINDS[kind]}")
    return value


def near(name: str, known: Iterable[str]) -> str:
    """Ask for the nearest known name, or list all."""
    close = difflib.get_close_matches(name, known, 1)
    if close:
        return f"did you mean {close[0]}?"
    return f"expected {', '.join(sorted(known))}"


def assignments(line: str) -> dict:
    r"""Read ``A=1 B=x\ y``, as make's MAKEOVERRIDES has what was typed."""
    values = {}
    for word in re.findall(r"(?:\\.|[^\\\s])+", line):
        plain = re.sub(r"\\(.)", r"\1", word)
        name, _, value = plain.partition("=")
        values[name.rstrip(":+?!")] = value
    return values


def note(line: str, goals: Iterable[str]) -> dict:
    """Check what was typed, and name the run.

    Parameters
    ----------
    line : str
        What was typed, as make has it.
    goals : iterable of str
        Goals of make, and the numbers of the notebooks that they need.

    Returns
    -------
    dict
        ``run``, ``profile`` and the ``typed`` parameters. A wrong name or value ends the program
        with one sentence.
    """
    known = of_engines()
    numbers = list(filter(str.isdigit, goals))
    for notebook in names(numbers):
        known |= defaults(notebook)

    words = assignments(line)
    typed = {}
    for name in sorted(words.keys() - OF_MAKE):
        text = words[name]
        if name not in known:
            hint = near(name.upper(), known)
            sys.exit(f"{name} is no parameter of the notebooks that run: {hint}")
        converted(name, text, known[name])
        typed[name] = text

    profile = words.get("PROFILE", "")
    profiles = [file.stem for file in PROFILES.iterdir()]
    if profile and profile not in profiles:
        sys.exit(f"PROFILE={profile} does not exist: {near(profile, profiles)}")
    run = run_name(words.get("RUN", ""), profile, typed)
    return {"run": run, "profile": profile, "typed": typed}


def run_name(given: str, profile: str, typed: dict) -> str:
    """Name a run as it was given, or by what it changes; ``default`` if that is nothing."""
    parts = [f"{name}-{text}" for name, text in typed.items()]
    changes = "+".join([profile, *parts] if profile else parts)
    if given:
        is_plain = re.fullmatch(r"\w[\w.,+=-]{0,99}", given)
        is_taken = changes and given == "default"
        if is_taken or not is_plain:
            sys.exit(f"RUN={given} must be a plain name other than default")
        return given

    plain = re.sub(r"[^\w.,+=-]+", "-", changes)[:60]
    if plain == changes:
        return plain or "default"
    digest = hashlib.sha256(changes.encode()).hexdigest()
    return f"{plain}-{digest[:10]}"


def folder(line: str, flags: str, *goals: str) -> None:
    """Print the folder of the run for make, and note there what was typed."""
    noted = note(line, goals)
    run = noted["run"]
    path = "build" if run == "default" else f"build/runs/{run}"
    file = ROOT / path / "parameters.json"

    known = file.read_text("utf8") if file.exists() else ""
    text = json.dumps(noted, indent=1)
    is_named_again = known and "RUN" in assignments(line) and not noted["typed"]
    is_noted = text == known or is_named_again
    has_number = any(map(str.isdigit, goals))
    runs_notebooks = "all" in goals or (has_number and "plan" not in goals)
    # make runs the notebooks again if this file is newer, which a dry run (-n) leaves alone.
    if runs_notebooks and not is_noted and "n" not in flags:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf8")
    print(path)


def parameters(notebook: str, noted: dict) -> dict:
    """Collect a notebook's parameters: its own, the profile's over them, then those typed."""
    import yaml

    values = defaults(notebook)
    profile = noted["profile"]
    if profile:
        text = (PROFILES / f"{profile}.yaml").read_text("utf8")
        values |= yaml.safe_load(text).get(notebook, {})
    known = of_engines() | values
    for name, text in noted["typed"].items():
        if name in known:
            values[name] = converted(name, text, known[name])
    values["RUN"] = noted["run"]
    return values


def papermill(notebook: str, path: str, redraw: bool = False) -> None:
    """Run a notebook into the run's folder, or only its cells that draw."""
    import logging

    import nbformat
    from papermill import PapermillExecutionError, execute_notebook

    # Parameters of engines are in no notebook's cell, of which papermill would warn.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    # A run that is stopped leaves a task of the notebook's client behind.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    source = nbformat.read(NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    if redraw:
        source.cells = [cell for cell in source.cells if DRAWING.intersection(tags(cell))]

    target = Path(path, "notebooks", f"{notebook}.ipynb")
    unfinished = Path(path, "unfinished", target.name)
    for file in (target, unfinished):
        file.parent.mkdir(parents=True, exist_ok=True)

    def say_section(cell, cell_index):
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            heading = cell.source.splitlines()[0]
            print(f"{notebook}: {heading[3:]}", file=sys.stderr)

    noted = json.loads(Path(path, "parameters.json").read_text("utf8"))
    options = {
        "parameters": parameters(notebook, noted),
        "cwd": ROOT,
        "kernel_name": "python3",
        "language": "python",
        "progress_bar": False,
        "stderr_file": sys.stderr,
        "on_cell_start": say_section,
        "extra_arguments": ["--IPKernelApp.log_level=CRITICAL"],
    }
    try:
        try:
            execute_notebook(source, unfinished, **options)
        except RuntimeError:  # two kernels that start at once may take the same port
            execute_notebook(source, unfinished, **options)
    except PapermillExecutionError as error:
        if error.ename not in SENTENCES:
            print(*error.traceback, sep="\n", file=sys.stderr)
        sys.exit(f"{notebook}, cell {error.exec_count}: {error.evalue} (see {unfinished})")
    if redraw:
        unfinished.unlink()
    else:
        unfinished.replace(target)
        print(f"{notebook}: written to {target}", file=sys.stderr)


def redraw(path: str, only: str = "") -> None:
    """Draw the figures of a run again, or the one figure ``<study>/<name>``, from its tables."""
    ran = sorted(Path(path, "notebooks").glob("[0-9]*.ipynb"))
    if not ran:
        sys.exit(f"{path} has no tables to draw from: run its notebooks first")
    figures = Path("figures") if path == "build" else Path(path, "figures")
    files = figures.glob("*/*.png")
    known = [f"{file.parent.name}/{file.stem}" for file in files]
    if only and only not in known:
        sys.exit(f"ONLY={only} is no figure of this run: {near(only, known)}")

    os.environ["FIGURE_ONLY"] = only  # Output.save passes over all others
    study, _, figure = only.partition("/")
    of_study = [file for file in ran if study in file.stem]
    saved = f'{figure}\\"'  # as a notebook's JSON has the name, with a quotation mark
    saving = [file for file in of_study if saved in file.read_text("utf8")]
    for file in saving or of_study:
        papermill(file.stem, path, redraw=True)
    print(f"drawn: {figures / only}")


def plan(line: str, *studies: str) -> None:
    """Print what a run would ask: prompts, tokens and price of each job."""
    from importlib import import_module

    from ingroup.inference.jobs import plan as planned

    noted = note(line, studies)
    asking = [name for name in names(studies) if (ROOT / "lib/ingroup" / name[3:]).is_dir()]
    if not asking:
        sys.exit(f"notebook {', '.join(studies)} asks no model by itself")
    for notebook in asking:
        answers = import_module(f"ingroup.{notebook[3:]}.answers")
        values = parameters(notebook, noted)
        checked = answers.Parameters.of(values)
        jobs = answers.jobs(checked) + answers.written(checked)
        table = planned(jobs, checked)
        for part in (table, table.agg(["sum"])):
            print(part.to_string(float_format="{:,.2f}".format))


def front(path: str) -> None:
    """Print the front page of a run's book; that of the default run is kept in README, too."""
    from ingroup import book

    table = book.front(ROOT / path / "tables")
    print(book.plain(table), f"\nThe book: {path}/book/index.html", sep="\n")
    if path == "build":
        book.keep_in_readme(table)


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    try:
        globals()[command](*words)
    except KeyboardInterrupt:
        sys.exit("\nstopped: answers are kept, and the same command goes on")
    except (ValueError, RuntimeError) as error:
        if type(error).__name__ not in SENTENCES:
            raise
        sys.exit(str(error))
