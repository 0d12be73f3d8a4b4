"""The variables of make's command line, read and checked with the standard library alone.

The names come in MAKEFLAGS and the values as environment variables, so no shell reads a value.
``python settings.py`` refuses invalid values before an environment exists.
"""

import difflib
import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("INGROUP_BUILD", ROOT / "build"))
DEFAULT_RUN = "default"

# Names that the Makefile or a command reads. Any other is a parameter of a notebook.
MAKE_VARIABLES = {"PYTHON", "VENV", "PY", "READY", "TORCH_INDEX", "DATA_MIRROR", "PROFILE", "RUN"}
COMMAND_OPTIONS = {"STUDY", "RATE", "SAMPLES", "BUNDLE", "FILE"}
# Options of commands with the targets that read them; any other of `TASKS` would pass them over.
TARGETS_BY_OPTION = {
    "STUDY": {"plan", "ask", "view"},
    "RATE": {"plan"},
    "SAMPLES": {"view"},
    "BUNDLE": {"view"},
}
FIGURE_OPTIONS = {"ONLY", "OUT", "FORMAT", "WIDTH", "FONT", "CMAP", "PANEL"}
# They say who computes, and change no result.
WORKER_PARAMETERS = {"ENGINE_WORKERS", "RAY_ADDRESS"}
# Targets that read a finished run and start none.
READING_TARGETS = {"00", "60", "report", "figures"}
# Targets that write a document of executed notebooks.
DOCUMENT_TARGETS = {"report", "appendix", "word"}
COMPARISON_NOTEBOOK = "61_comparison"  # the notebook of make compare
# Parameters by their former names: the name now, and the values that changed.
FORMER_PARAMETERS = {"RATING": ("READING", {"greedy": "free"}), "RUNS": ("ROUNDS", {})}
MAX_NAME_LENGTH = 60
MAX_MESSAGE_LENGTH = 2000  # characters


class Refused(Exception):
    """A sentence for the user that names an invalid value and its remedy.

    The sentence is safe for a terminal, like the texts of `ingroup.tables.shown`, which needs
    pandas.

    Parameters
    ----------
    message : str
        The sentence. Signs that a terminal would obey are written as escapes, and a long sentence
        is cut in its middle.
    """

    def __init__(self, message: str):
        half = MAX_MESSAGE_LENGTH // 2
        if len(message) > MAX_MESSAGE_LENGTH:
            message = f"{message[:half]} ... {message[-half:]}"
        if not message.isprintable():
            signs = []
            for sign in message:
                # ascii() puts the escape between quotes.
                escape = ascii(sign)[1:-1]
                signs.append(sign if sign.isprintable() else escape)
            message = "".join(signs)
        super().__init__(message)


def given_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Read every variable that was set on make's command line.

    Parameters
    ----------
    environment : mapping
        ``MAKEFLAGS``, which has the names, and the values.

    Returns
    -------
    dict of str to str
        The values by their names, each exactly as it was typed.

    Raises
    ------
    Refused
        If a name has other characters than letters, digits and _, or is that of a key.
    """
    flags = environment.get("MAKEFLAGS", "")
    # make puts the variables of its command line behind "-- " in MAKEFLAGS.
    overrides = re.search(r"(?:^|\s)-- (.*)", flags, re.DOTALL)
    if overrides is None:
        return {}

    # make writes a blank inside a value as a backslash and a blank.
    words = re.findall(r"(?:\\.|[^\\ ])+", overrides[1], re.DOTALL)
    values = {}
    for word in words:
        left_side, _, _ = word.partition("=")
        # The operators :=, +=, ?= and != leave a sign behind the name.
        name = left_side.rstrip(":+?!")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise Refused(f"a parameter's name has letters, digits and _: {name}")
        if name.endswith(("_KEY", "_TOKEN")):
            raise Refused(f"a key belongs in the environment, not on the command line: {name}")
        values[name] = environment.get(name, "")
    return values


def command_line_parameters(values: Mapping[str, str]) -> dict[str, str]:
    """Select the parameters of notebooks among the variables that were set.

    Parameters
    ----------
    values : mapping of str to str
        From `given_variables`.

    Returns
    -------
    dict of str to str
        The parameters, sorted by name.
    """
    others = MAKE_VARIABLES | COMMAND_OPTIONS | FIGURE_OPTIONS
    if "ONLY" in values:
        # MODELS then says which models this one figure shows.
        others = others | {"MODELS"}
    names = set(values) - others
    return {name: values[name] for name in sorted(names)}


def with_present_names(values: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Replace former names and values of parameters by their present names and values.

    Parameters
    ----------
    values : mapping of str to str
        Parameters as they were typed.

    Returns
    -------
    now : dict of str to str
        The same parameters under their names and values of today.
    sentences : list of str
        For each former name, a sentence with the new name.
    """
    now = {}
    sentences = []
    for name, value in values.items():
        if name not in FORMER_PARAMETERS:
            now[name] = value
            continue

        new_name, new_values = FORMER_PARAMETERS[name]
        new_value = new_values.get(value, value)
        now[new_name] = new_value
        sentences.append(
            f"{name}={value} is now {new_name}={new_value}; the old name works for one release"
        )
    return now, sentences


def command_options(values: Mapping[str, str]) -> list[str]:
    """Write the profile and the parameters as the options of a command.

    Parameters
    ----------
    values : mapping of str to str
        From `given_variables`.

    Returns
    -------
    list of str
        The profile, and the name of each parameter. The command reads the values in the
        environment.
    """
    profile = os.environ.get("PROFILE") or "demo"
    options = ["--profile", profile]
    for name in command_line_parameters(values):
        options += ["--set", name]
    return options


def is_folder_name(name: str) -> bool:
    """Tell whether a name can be the name of a folder below build/runs.

    Parameters
    ----------
    name : str
        The name as it was typed.

    Returns
    -------
    bool
        True for A-Z a-z 0-9 _ . + = - and comma, without two dots and without . or - in front.
    """
    return name != "" and not _folder_fault(name)


def _folder_fault(name: str) -> str:
    """Say why a name cannot name a folder, and how to mend the name. Return "" for a valid name."""
    other_sign = re.search(r"[^A-Za-z0-9_.,+=-]", name)
    if other_sign:
        return f"holds {other_sign[0]!r}; use only the letters a to z, digits and _.,+=-"
    if ".." in name:
        return "holds '..'; use single dots"
    if name.startswith((".", "-")):
        return f"begins with {name[0]!r}; begin with a letter or digit"
    return ""


def run_name(environment: Mapping[str, str] = os.environ) -> str:
    """Name the run by ``RUN``, by its profile and changed parameters, or as "default".

    Parameters
    ----------
    environment : mapping
        ``MAKEFLAGS`` and the values.

    Returns
    -------
    str
        At most `MAX_NAME_LENGTH` characters, unless ``RUN`` is longer. A file or folder is named
        without the folders that hold it. Two runs with different parameters have different names:
        a name that is cut, or that lacks a sign of a value, ends in a checksum.
    """
    if environment.get("RUN"):
        return environment["RUN"]

    profile = environment.get("PROFILE") or "demo"
    return name_of(profile, command_line_parameters(given_variables(environment)))


def name_of(profile: str, changed: Mapping[str, str]) -> str:
    """Name a run by its profile and its changed parameters.

    Parameters
    ----------
    profile : str
        The name of its profile, or "lab" for a run from JupyterLab.
    changed : mapping of str to str
        The parameters that it changes, as they are typed on the command line.

    Returns
    -------
    str
        As `run_name` without ``RUN``.
    """
    changes = []
    short_changes = []
    if profile != "demo":
        changes.append(profile)
        short_changes.append(profile)
    for name, value in changed.items():
        if name not in WORKER_PARAMETERS:
            # A single + stands between two changes.
            escaped = value.replace("+", "++")
            changes.append(f"{name}-{escaped}")
            short_changes.append(f"{name}-{_without_folders(escaped)}")

    whole = "+".join(changes)
    if not whole:
        return DEFAULT_RUN
    # A profile that is called "default" must not take the default run's folder.
    is_short = len(whole) <= MAX_NAME_LENGTH
    is_valid = is_folder_name(whole)
    if is_short and is_valid and whole != DEFAULT_RUN:
        return whole

    # A value may hold bytes that are not UTF-8, which Python keeps as halves of surrogates.
    content = whole.encode("utf8", "surrogatepass")
    digest = hashlib.sha256(content).hexdigest()
    checksum = digest[:10]
    short = "+".join(short_changes)
    readable = re.sub(r"[^A-Za-z0-9_,+=]+", "-", short)
    # The name of a run may not begin with a dash.
    readable = readable.lstrip("-")
    room = MAX_NAME_LENGTH - len(checksum) - 1
    return f"{readable[:room]}-{checksum}"


def _without_folders(value: str) -> str:
    """Keep only the last part of each path in a value that separates paths by semicolons."""
    names = []
    for path in value.split(";"):
        _, _, name = path.rstrip("/").rpartition("/")
        names.append(name)
    return ";".join(names)


def run_folder(run: str) -> Path:
    """Return the folder of a run's tables and executed notebooks.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    Path
        The folder ``build/`` for the default run, or else ``build/runs/<run>``.
    """
    if run == DEFAULT_RUN:
        return BUILD
    return BUILD / "runs" / run


def appendix_folder(run: str) -> Path:
    """Return the folder of a run's appendix.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    Path
        The folder, whether it is there or not.
    """
    return BUILD / "appendix" / run


def runs() -> list[str]:
    """List the runs that can be read, the default run first.

    Returns
    -------
    list of str
        Names of runs in which a notebook has ended, or a copy of JupyterLab has started.
    """
    names = set()
    # A notebook's summary, the .txt, is written when it has come to its end.
    for pattern in ("runs/*/notebooks/*.txt", "runs/*/lab/*.json"):
        for file in BUILD.glob(pattern):
            names.add(file.parents[1].name)

    if any(BUILD.glob("notebooks/*.txt")):
        return [DEFAULT_RUN, *sorted(names)]
    return sorted(names)


def started_in_lab(run: str) -> dict[str, dict[str, Any]]:
    """Read the parameters with which copies in JupyterLab started to write into a run.

    Parameters
    ----------
    run : str
        The name of the run.

    Returns
    -------
    dict
        By the name of the notebook: ``changed``, the parameters that its copy changed, as they are
        shown, and ``parameters``, all parameters.
    """
    starts = {}
    files = run_folder(run).glob("lab/*.json")
    for file in sorted(files):
        text = file.read_text("utf8")
        starts[file.stem] = json.loads(text)
    return starts


def value_text(value: Any) -> str:
    """Write a parameter as on make's command line.

    Parameters
    ----------
    value : any
        Its value.

    Returns
    -------
    str
        The value, or the entries of a list with ";" between them.
    """
    entries = value if isinstance(value, list) else [value]
    return ";".join(map(str, entries))


def notebooks() -> list[str]:
    """List the notebooks in the order of their numbers.

    Returns
    -------
    list of str
        Names without a suffix, e.g. ``"10_empathy_gap"``.
    """
    files = ROOT.glob("notebooks/[0-9]*.ipynb")
    return sorted(file.stem for file in files)


def study_names() -> list[str]:
    """List the studies.

    Returns
    -------
    list of str
        The names of their folders in lib, sorted.
    """
    designs = ROOT.glob("lib/ingroup/studies/*/design.py")
    return sorted(file.parent.name for file in designs)


def first_notebooks() -> list[str]:
    """List the first notebook of each study, which asks the study's prompts.

    Returns
    -------
    list of str
        Names without a suffix: a number that ends in 0, then the study.
    """
    studies = study_names()
    names = []
    for notebook in notebooks():
        number, _, name = notebook.partition("_")
        if number.endswith("0") and name in studies:
            names.append(notebook)
    return names


def chosen_studies(study: str) -> list[str]:
    """List the first notebooks of the studies that ``STUDY`` names.

    Parameters
    ----------
    study : str
        The number or name of a study, or of its first notebook. "" means all studies.

    Returns
    -------
    list of str
        Names of notebooks.

    Raises
    ------
    Refused
        If there is no such study. The sentence lists all studies.
    """
    first = first_notebooks()
    if not study:
        return first

    for notebook in first:
        number, _, name = notebook.partition("_")
        if study in (number, name, notebook):
            return [notebook]

    names = [*first, *study_names()]
    question = suggestion(study, names)
    hint = f"; {question}" if question else ""
    raise Refused(f"there is no study {study}: give one of {' '.join(first)}, or its number{hint}")


def parameters_cell(file: Path) -> str:
    """Read the code of a notebook's cell of parameters.

    Parameters
    ----------
    file : Path
        The notebook.

    Returns
    -------
    str
        The source of the cell that is tagged ``parameters``; "" where none is.
    """
    notebook = json.loads(file.read_text("utf8"))
    for cell in notebook["cells"]:
        if "parameters" in cell["metadata"].get("tags", []):
            return "".join(cell["source"])
    return ""


def known_parameters(names: Collection[str]) -> set[str]:
    """Collect the parameters in the parameters cells of some notebooks.

    Parameters
    ----------
    names : collection of str
        Names of notebooks.

    Returns
    -------
    set of str
        The parameters that can be set. ``RUN``, which make sets, is left out.
    """
    known = set()
    for name in names:
        source = parameters_cell(ROOT / "notebooks" / f"{name}.ipynb")
        known.update(re.findall(r"^([A-Z_0-9]+) = ", source, re.MULTILINE))
    return known - {"RUN"}


def notebooks_of_goals(goals: Collection[str]) -> list[str]:
    """List the notebooks that goals of make name.

    Parameters
    ----------
    goals : collection of str
        Targets of make: numbers of notebooks, or ``compare``.

    Returns
    -------
    list of str
        Names without a suffix.
    """
    numbers = set(goals)
    if "compare" in goals:
        numbers.add(COMPARISON_NOTEBOOK[:2])
    return [name for name in notebooks() if name[:2] in numbers]


def asked_notebooks(goals: Collection[str], study: str) -> list[str]:
    """List the notebooks whose parameters can be set for these goals.

    Parameters
    ----------
    goals : collection of str
        Targets of make.
    study : str
        The value of ``STUDY``, which only the target ``ask`` needs.

    Returns
    -------
    list of str
        Names of notebooks. Targets that take no parameters have none.

    Raises
    ------
    Refused
        If there is no such study.
    """
    if {"all", "plan", "view"}.intersection(goals):
        return notebooks()
    if "ask" in goals:
        return chosen_studies(study)
    return notebooks_of_goals(goals)


def check_names(goals: Collection[str], environment: Mapping[str, str]) -> None:
    """Refuse a parameter that no notebook of these goals has.

    Parameters
    ----------
    goals : collection of str
        Targets of make. Targets without a notebook take any parameter.
    environment : mapping
        ``MAKEFLAGS`` and the values.

    Raises
    ------
    Refused
        If a parameter is given under its former and its present name, or is unknown. The sentence
        names the nearest parameter, or all.
    """
    typed = command_line_parameters(given_variables(environment))
    for former_name, (name, _) in FORMER_PARAMETERS.items():
        if former_name in typed and name in typed:
            raise Refused(f"{former_name} is now {name}: give {name} alone")

    study = environment.get("STUDY", "")
    names = asked_notebooks(goals, study)
    if not names:
        return

    known = known_parameters(names)
    now, _ = with_present_names(typed)
    for name in now:
        if name in known:
            continue
        takers = [notebook for notebook in notebooks() if name in known_parameters([notebook])]
        if takers:
            listed = ", ".join(takers)
            raise Refused(f"{name} is not a parameter here; it is one of {listed}")

        sentence = unknown_parameter_message(name, known | {"PROFILE", "RUN"})
        raise Refused(sentence)


def unknown_parameter_message(name: str, known: Collection[str]) -> str:
    """Say that a name is not a parameter, and which parameter has the nearest name.

    Parameters
    ----------
    name : str
        The name as it was typed.
    known : collection of str
        The names of the parameters.

    Returns
    -------
    str
        One sentence. If no name is near, the sentence lists all names.
    """
    # All parameters are in capitals, which a user may forget.
    hint = suggestion_or_list(name.upper(), known)
    return f"{name} is not a parameter here; {hint}"


def suggestion(name: str, known: Collection[str]) -> str:
    """Ask whether the user meant the nearest known name.

    Parameters
    ----------
    name : str
        An unknown name.
    known : collection of str
        The known names.

    Returns
    -------
    str
        The end of a sentence, or "" where no name is near.
    """
    near = difflib.get_close_matches(name, known, 1)
    if not near:
        return ""
    return f"did you mean {near[0]}?"


def suggestion_or_list(name: str, known: Collection[str], between: str = " ") -> str:
    """Ask whether the user meant the nearest known name, or list all known names.

    Parameters
    ----------
    name : str
        An unknown name.
    known : collection of str
        The known names.
    between : str
        The separator of the names in a list.

    Returns
    -------
    str
        The end of a sentence. If no name is near, it lists all names.
    """
    question = suggestion(name, known)
    if question:
        return question
    listed = between.join(sorted(known))
    return f"there are {listed}"


def _check_run(goals: Collection[str], environment: Mapping[str, str]) -> None:
    """Refuse a run with an invalid name, changes to the default run, and a missing run to read."""
    values = given_variables(environment)
    goal = " ".join(goals)
    for name in ("PROFILE", "RUN"):
        value = environment.get(name) or DEFAULT_RUN
        fault = _folder_fault(value)
        if fault:
            raise Refused(f"{name}={value!r} {fault}")

    run = run_name(environment)
    changed = set(command_line_parameters(values)) - WORKER_PARAMETERS
    if run == DEFAULT_RUN and changed:
        names = " ".join(sorted(changed))
        raise Refused(
            f"RUN=default is the run without changes, found {names}: leave RUN out, or give "
            "another name"
        )

    readers = READING_TARGETS
    # A run's name may come from the environment, too.
    if environment.get("RUN"):
        readers = READING_TARGETS | {"view", "compare"}
    is_read = bool(goals) and readers.issuperset(goals)
    if is_read and run not in runs():
        # A misspelt option of a figure would be taken for a parameter of the run.
        known = known_parameters(notebooks()) | FIGURE_OPTIONS | {"PROFILE", "RUN"}
        now, _ = with_present_names(command_line_parameters(values))
        for name in now:
            if name not in known:
                raise Refused(unknown_parameter_message(name, known))

        raise Refused(_missing_run(goal, run))
    _check_executed(goals, run)


def _missing_run(goal: str, run: str) -> str:
    """Write the error for a run that does not exist, with the names of the runs that exist."""
    available = runs()
    if not available:
        return f"make {goal} reads a finished run, and there is none yet: make all first"

    sentence = f"there is no run {run} to read; RUN can be {', '.join(available)}"
    others = set(available) - {DEFAULT_RUN}
    near = difflib.get_close_matches(run, others, 1)
    if near:
        return f"{sentence}; did you mean RUN={near[0]}?"
    return sentence


def _check_executed(goals: Collection[str], run: str) -> None:
    """Refuse a document about a run from JupyterLab, which keeps no executed notebooks."""
    documents = sorted(DOCUMENT_TARGETS.intersection(goals))
    starts = started_in_lab(run)
    summaries = run_folder(run).glob("notebooks/*.txt")
    executed = {file.stem for file in summaries}
    if not documents or not starts or executed.intersection(starts):
        return

    numbers = [notebook[:2] for notebook in starts]
    command = ["make", *numbers]
    for start in starts.values():
        for name, value in start["changed"].items():
            # A changed RUN is the run that the copy reads. RUN among all parameters is the run
            # that it writes.
            if name != "RUN":
                value = value_text(start["parameters"][name])
            assignment = f"{name}={value}"
            if assignment not in command:
                command.append(assignment)

    goal = " ".join(documents)
    line = shlex.join(command)
    raise Refused(
        f"make {goal} needs executed notebooks, and JupyterLab keeps none: run "
        f"{line}, or read {run} with make runs, view, figures or compare"
    )


def _check_comparison(environment: Mapping[str, str]) -> None:
    """Refuse a comparison that names fewer than two models, or a profile."""
    typed_models = environment.get("MODELS", "")
    entries = typed_models.split(";")
    models = set(map(str.strip, entries)) - {""}
    if len(models) < 2:
        raise Refused(
            f"MODELS must be two models or more, found {typed_models!r}: make compare "
            'MODELS="<name>;<name>"'
        )
    if environment.get("PROFILE"):
        raise Refused("make compare reads a run that is there: name it with RUN, not with PROFILE")


def _check_figure(goals: Collection[str], environment: Mapping[str, str]) -> None:
    """Refuse a figure that does not exist, and a figure's options for other targets."""
    values = given_variables(environment)
    options = sorted(FIGURE_OPTIONS.intersection(values))
    only = values.get("ONLY", "")
    if "ONLY" in values and not only.strip():
        raise Refused("ONLY is empty: write ONLY=<study>/<name>, e.g. ONLY=empathy_gap/figure2")

    is_for_figures = bool(only) and set(goals) <= {"figures"}
    if options and not is_for_figures:
        names = " ".join(options)
        raise Refused(f"only make figures ONLY=<study>/<name> takes {names}")

    run = run_name(environment)
    for figure in only.split():
        if not _is_figure(figure, run):
            near = _nearest_figures(figure, _figures(run))
            listed = " or ".join(near)
            hint = f"; did you mean {listed}?" if near else ""
            raise Refused(
                f"there is no figure {figure}: write ONLY=<study>/<name>, e.g. "
                f"ONLY=empathy_gap/figure2{hint}"
            )


def _check_options(goals: Collection[str], environment: Mapping[str, str]) -> None:
    """Refuse an option of a command where no goal of make reads it."""
    # The program checks one goal after the other, and another one may read the option.
    all_goals = {*goals, *environment.get("GOALS", "").split()}
    for name in given_variables(environment):
        readers = TARGETS_BY_OPTION.get(name, all_goals)
        if all_goals and all_goals.isdisjoint(readers):
            targets = " or ".join(sorted(readers))
            raise Refused(f"{name} is for make {targets}, found make {' '.join(sorted(all_goals))}")


def _figures(run: str) -> list[str]:
    """List the figures, ``<study>/<name>``, that are committed or were drawn by a run."""
    names = set()
    drawn = run_folder(run) / "figures"
    for folder in (ROOT / "figures", drawn):
        for file in folder.glob("*/*.pdf"):
            study = file.parent.name
            names.add(f"{study}/{file.stem}")
    return sorted(names)


def _nearest_figures(figure: str, known: Collection[str]) -> list[str]:
    """List the figures with the nearest name, within the nearest study or within all studies."""
    typed_study, _, typed_name = figure.rpartition("/")
    studies = set()
    for known_figure in known:
        study, _, _ = known_figure.partition("/")
        studies.add(study)
    near_studies = difflib.get_close_matches(typed_study, studies, 1)

    by_name: dict[str, list[str]] = {}
    for known_figure in known:
        study, _, name = known_figure.partition("/")
        if study in near_studies or not near_studies:
            of_name = by_name.setdefault(name, [])
            of_name.append(known_figure)

    # Names without their studies are compared, because a shared study makes no two names similar.
    near_names = difflib.get_close_matches(typed_name, by_name, 1)
    if not near_names:
        return []
    return by_name[near_names[0]]


def _is_figure(figure: str, run: str) -> bool:
    """Tell whether a figure, ``<study>/<name>``, is committed or was drawn by a run."""
    study, _, name = figure.partition("/")
    # A name with two dots would lead out of the folder.
    if not is_folder_name(study) or not is_folder_name(name):
        return False

    file = f"figures/{figure}.pdf"
    committed = ROOT / file
    drawn = run_folder(run) / file
    return committed.is_file() or drawn.is_file()


def check(goals: Collection[str], environment: Mapping[str, str] = os.environ) -> None:
    """Refuse the first invalid value on the command line, in one sentence.

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
    _check_paths(environment)
    _check_figure(goals, environment)
    _check_options(goals, environment)
    # A parameter that no notebook of the goals takes would name a run that is not there.
    check_names(goals, environment)
    _check_run(goals, environment)

    study = environment.get("STUDY", "")
    if {"plan", "ask", "view"}.intersection(goals):
        chosen_studies(study)
    if "ask" in goals and not study:
        raise Refused("give a study: make ask STUDY=10 MODELS=...")
    if "compare" in goals:
        _check_comparison(environment)

    samples = environment.get("SAMPLES", "")
    has_other_sign = re.search(r"[^0-9]", samples)
    if "view" in goals and has_other_sign:
        raise Refused(f"SAMPLES must be a whole number, or 0 for all, found {samples!r}")


def _check_paths(environment: Mapping[str, str]) -> None:
    """Refuse a path with signs of a shell, because the Makefile writes paths into shell lines."""
    values = given_variables(environment)
    for name in ("PYTHON", "PY", "VENV", "READY"):
        value = values.get(name, "")
        if not re.fullmatch(r"[\w./~+@:-]*", value):
            raise Refused(f"{name} must be a path without blanks or shell signs, found {value!r}")


def unknown_target(goals: Collection[str]) -> str:
    """Say which goal is no target of the Makefile, and which target has the nearest name.

    Parameters
    ----------
    goals : collection of str
        The goals of make. Either one goal has no rule, or a file that a target needs is missing.

    Returns
    -------
    str
        One sentence.
    """
    makefile = (ROOT / "Makefile").read_text("utf8")
    named = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    numbers = [name[:2] for name in notebooks()]
    for goal in goals:
        if goal in named or goal in numbers or "/" in goal:
            continue
        if goal.isdigit():
            listed = " ".join(numbers)
            return f"there is no notebook {goal}; there are {listed}"

        question = suggestion(goal, named) or "make help lists all"
        return f"there is no target {goal}; {question}"
    return "a file that this target needs is missing: git status shows which"


def _help_text() -> str:
    """Write the help: targets of the Makefile, notebooks, parameters and variables."""
    lines = []
    for line in (ROOT / "Makefile").read_text("utf8").splitlines():
        target = re.match(r"([a-z-]+):.*?  ## (.*)", line)
        if target:
            lines.append(f"  make {target[1]:18}{target[2]}")
        elif line.startswith("#+ "):  # goes on with the description of the target above
            lines[-1] += line.removeprefix("#+")

    for name in notebooks():
        lines.append(f"  make {name[:2]:18}run notebook {name}")

    lines.append(
        "Parameters of a notebook: make 10 MODELS=... ENGINE=... CORPUS=... N_EVENTS=... "
        "(PROFILE=demo|full)"
    )
    lines.append(
        "The environment: PYTHON=python3.12 chooses the Python, "
        "TORCH_INDEX=<address> where pip looks for torch"
    )
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Check the command line for the goals in the environment, or print the help.

    Parameters
    ----------
    arguments : list of str
        ``["help"]``, ``["unknown"]`` where make knows no rule for a goal, or nothing.

    Returns
    -------
    int
        The exit status: 2 for an invalid value or a Python that is too old or too new, else 0.
    """
    python = sys.version_info[:2]
    if not (3, 11) <= python < (3, 14):
        version = ".".join(map(str, python))
        print(
            f"Ingroup needs Python 3.11 to 3.13; {sys.executable} is {version}. "
            "Name another with make PYTHON=python3.12",
            file=sys.stderr,
        )
        return 2

    if arguments == ["help"]:
        print(_help_text())
        return 0
    if arguments == ["unknown"]:
        goals = os.environ.get("MAKECMDGOALS", "").split()
        print(Refused(unknown_target(goals)), file=sys.stderr)
        return 2

    # make keeps the user's own PYTHONPATH under this name, and sets another.
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
