"""The parameters of a run, checked before a kernel starts, so that a mistake is refused at once."""

import argparse
import ast
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ingroup import parameters, paths
from ingroup.commands.settings import (
    COMPARISON_NOTEBOOK,
    known_parameters,
    notebooks,
    parameters_cell,
    study_names,
    with_present_names,
)
from ingroup.contract import module_of
from ingroup.inference import Job
from ingroup.tables import InputError, hint, read_yaml, wrong


def merged_parameters(
    notebook: str,
    profile: str,
    given: dict[str, str],
    run: str = paths.DEFAULT_RUN,
    shared: bool = False,
    instead: Mapping[str, str] = {},
) -> dict[str, Any]:
    """Merge the defaults of a notebook and a profile with given values, and check all parameters.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    profile : str
        The name of a profile, e.g. ``"demo"``.
    given : dict of str to str
        Values as they were typed, by name.
    run : str
        The name of the run, the value of ``RUN``.
    shared : bool
        Whether several notebooks have the same command line: then a parameter that only another
        notebook takes is passed over.
    instead : mapping of str to str
        A value that is a key of it is replaced.

    Returns
    -------
    dict
        The value of each parameter in its type.

    Raises
    ------
    InputError
        For a notebook or profile that does not exist. For the first unknown name, with the nearest
        known name. Else for the first invalid value, with the expected value.
    """
    usual = defaults(notebook, profile)
    names = [name for name in usual if name != "RUN"]
    typed, sentences = with_present_names(given)
    for sentence in sentences:
        parameters.note(sentence)

    values = dict(usual)
    for name, text in typed.items():
        if shared and name not in usual and _is_known_elsewhere(name):
            continue
        if name not in names:
            listed = ", ".join(names) or "none"
            takes = hint(name, names) or f"; it takes {listed}"
            raise InputError(f"{notebook} has no parameter {name}{takes}")
        values[name] = text

    for name, value in values.items():
        # A plan puts stand-ins in the place of corpora that are not fetched.
        values[name] = instead.get(str(value), value)
    values["RUN"] = run
    return parameters.checked_parameters(_base(notebook), values, usual)


def _is_known_elsewhere(name: str) -> bool:
    """Tell whether any notebook takes a parameter."""
    return name in known_parameters(notebooks())


def defaults(notebook: str, profile: str = "demo") -> dict[str, Any]:
    """Return the default parameters of a notebook under a profile.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    profile : str
        The name of a profile.

    Returns
    -------
    dict
        Values by name: the profile's value where it sets the parameter, or else the notebook's.

    Raises
    ------
    InputError
        If the notebook or profile does not exist, with a list of all. If the profile is not YAML or
        sets a parameter that the notebook does not have.
    """
    profile_file = _file("PROFILE", paths.PROFILES, profile, ".yaml")
    profiled = read_yaml(profile_file)
    if not isinstance(profiled, dict):
        found = "an empty file" if profiled is None else repr(profiled)
        raise wrong(profile_file, found, "notebooks with their parameters")

    known = notebooks()
    for name, values in profiled.items():
        # Any other name may hold values that several notebooks share by a YAML alias.
        question = hint(str(name), known)
        if name not in known and question:
            raise InputError(f"{profile_file}: found {name!r}, expected a notebook{question}")
        if values is not None and not isinstance(values, dict):
            where = f"{profile_file}, {name}"
            raise wrong(where, repr(values), "parameters with their values, as N_EVENTS: 12")

    takes = cell_parameters(notebook)
    values = profiled.get(notebook) or {}
    for name in values:
        if name not in takes:
            expected = f"a parameter of this notebook{hint(name, takes)}"
            raise InputError(f"{profile_file}, {notebook}: found {name}, expected {expected}")
    return takes | values


def cell_parameters(notebook: str) -> dict[str, Any]:
    """Read the parameters of a notebook from its parameters cell.

    Parameters
    ----------
    notebook : str
        The notebook's name.

    Returns
    -------
    dict
        Values by name.

    Raises
    ------
    InputError
        Where the notebook does not exist, or a line of the cell is not NAME = value.
    """
    source = _file("notebook", paths.NOTEBOOKS, notebook, ".ipynb")
    return _read_cell(source)


def check_cell_parameters(notebook: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters that an edited cell of a notebook sets.

    The values have types already, so a text that reads as a number or a list is refused.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    values : mapping
        The values of its parameters, without ``RUN``.

    Returns
    -------
    dict
        The values, each in its type.

    Raises
    ------
    InputError
        For the first invalid value, with the expected value.
    """
    usual = cell_parameters(notebook)
    del usual["RUN"]
    return parameters.checked_parameters(_base(notebook), values, usual, strict=True)


def study_of(notebook: str) -> str | None:
    """Return the study that a notebook's name has behind its number.

    Parameters
    ----------
    notebook : str
        The notebook's name, e.g. ``"41_stereomap_keywords"``.

    Returns
    -------
    str or None
        E.g. ``"stereomap"``. None where the name does not begin with a study's name.
    """
    _, _, name = notebook.partition("_")
    for study in study_names():
        if name == study or name.startswith(f"{study}_"):
            return study
    return None


def folder_of(notebook: str) -> str:
    """Name the folder below ``tables`` and ``figures`` into which a notebook writes.

    Parameters
    ----------
    notebook : str
        The notebook's name.

    Returns
    -------
    str
        The study, ``"audit"`` for all parts of the audit, or else the name behind the number.
    """
    study = study_of(notebook)
    if study:
        return study
    _, _, name = notebook.partition("_")
    return "audit" if name.startswith("audit_") else name


def jobs_of(notebook: str, parameters: Mapping[str, Any]) -> list[Job]:
    """Return the jobs of a study's notebook with these parameters.

    A notebook that asks more than the study's ``design`` is named after the module that plans it.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    parameters : dict
        Its checked parameters.

    Returns
    -------
    list of Job
        The ``jobs`` of the module that the notebook has behind its study, such as ``construction``
        of ``31_giebench_construction``. Without such a module, the ``jobs`` of the study's design.

    Raises
    ------
    Unfinished
        Where the study's design is unfinished.
    KeyError
        Where the notebook is not a study's.
    """
    study = study_of(notebook)
    _, _, further = notebook.partition(f"{study}_")
    if study and (paths.ROOT / "lib/ingroup/studies" / study / f"{further}.py").is_file():
        return import_module(f"ingroup.studies.{study}.{further}").jobs(parameters)
    return _design(notebook).jobs(parameters)


def _design(notebook: str) -> ModuleType:
    """Return the module ``design`` of a notebook's study. Raise a KeyError without a study."""
    study = study_of(notebook)
    if study is None:
        raise KeyError(f"{notebook} is not a study's")
    return module_of(study, "design", "Parameters", "jobs")


def _file(kind: str, folder: Path, name: str, suffix: str) -> Path:
    """Return a file of a folder by its name. Raise an InputError with all names if none fits."""
    files = {}
    for file in sorted(folder.glob(f"*{suffix}")):
        files[file.stem] = file
    if name not in files:
        listed = ", ".join(files)
        raise InputError(f"there is no {kind} {name!r}; there are {listed}{hint(name, files)}")
    return files[name]


def _read_cell(source: Path) -> dict[str, Any]:
    """Read the values that a notebook's parameters cell sets."""
    # papermill, which reads this cell too, would take seconds to import.
    values = {}
    for statement in ast.parse(parameters_cell(source)).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                # The cell is read and not run, so its values are literals.
                values[name] = ast.literal_eval(value)
            case _:
                line = f"{ast.unparse(statement)!r} in the cell of parameters"
                raise wrong(source, line, "a line NAME = value")
    return values


def _base(notebook: str) -> type[parameters.Parameters]:
    """Return the ``Parameters`` class of a notebook's study, or a shared class without a study."""
    if notebook == COMPARISON_NOTEBOOK:
        return parameters.ComparisonParameters
    if study_of(notebook) is None:
        return parameters.Parameters
    return _design(notebook).Parameters


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the arguments that every command about notebooks takes.

    Parameters
    ----------
    description : str or None
        A module's docstring, whose first line the help shows. None under PYTHONOPTIMIZE=2.

    Returns
    -------
    ArgumentParser
        With ``--profile``, ``--run``, ``--set`` and ``--shared``.
    """
    first_line, _, _ = (description or "").partition("\n")
    parser = argparse.ArgumentParser(description=first_line)
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--run", default=paths.DEFAULT_RUN)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--shared", action="store_true", help="pass over what other notebooks take")
    return parser


def parameters_of(notebook: str, options: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """Merge and check the parameters that a command line sets, as `merged_parameters` does.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    options : Namespace
        The arguments that :func:`command_line` read. A name alone stands for its value in the
        environment, where no shell has read it.
    **more
        Further arguments of :func:`merged_parameters`.

    Returns
    -------
    dict
        The value of each parameter in its type.

    Raises
    ------
    InputError
        For a name alone that is not in the environment, and where :func:`merged_parameters` does.
    """
    given = {}
    for assignment in options.set:
        name, sign, value = assignment.partition("=")
        if sign:
            given[name] = value
        elif name in os.environ:
            given[name] = os.environ[name]
        else:
            raise InputError(f"--set {name} has no value: write {name}=<value>")
    return merged_parameters(notebook, options.profile, given, options.run, options.shared, **more)
