"""The parameters of a run, checked before a kernel starts: a wrong one costs but a sentence."""

import argparse
import ast
import difflib
import json
import os
import pkgutil
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError, create_model

from ingroup import parameters, paths, studies
from ingroup.commands.settings import renamed
from ingroup.inference import Call
from ingroup.tables import InputError

KINDS = {bool: "true or false", int: "a whole number", float: "a number"}


def merged(
    notebook: str, profile: str, given: dict[str, str],
    run: str = paths.DEFAULT_RUN, shared: bool = False, instead: Mapping[str, str] = {},
) -> dict[str, Any]:  # fmt: skip
    """All parameters of a run: the notebook's defaults, the profile's, then those given; checked.

    Names are without suffix, ``given`` as typed; where ``shared``, what only another notebook takes
    is passed over; a value that is a key of ``instead`` is replaced. InputError for the first
    unknown name, else the first value that cannot work.
    """
    usual = defaults(notebook, profile)
    values, names = dict(usual), [name for name in usual if name != "RUN"]
    given, sentences = renamed(given)
    for sentence in sentences:
        parameters.note(sentence)
    for name, text in given.items():
        others = paths.NOTEBOOKS.glob("[0-9]*.ipynb") if shared and name not in usual else ()
        if any(name in _cell(other) for other in others):
            continue
        if name not in names:
            near = difflib.get_close_matches(name.upper(), names, 1)
            says = f"did you mean {near[0]}?" if near else f"it takes {', '.join(names) or 'none'}"
            raise InputError(f"{notebook} has no parameter {name}; {says}")
        values[name] = text
    values |= {n: instead[str(v)] for n, v in values.items() if str(v) in instead}
    values["RUN"] = run
    return _checked(_kind(notebook, usual), values)


def defaults(notebook: str, profile: str = "demo") -> dict[str, Any]:
    """A notebook's own parameters, then the profile's; InputError where one is not there."""
    own = _cell(_file("notebook", paths.NOTEBOOKS, notebook, ".ipynb"))
    profiled = _file("PROFILE", paths.PROFILES, profile, ".yaml").read_text("utf8")
    return own | (yaml.safe_load(profiled).get(notebook) or {})


def study_of(notebook: str) -> str | None:
    """The study that a notebook's name has behind its number, e.g. of ``41_stereomap_keywords``."""
    name = notebook.partition("_")[2]
    names = (module.name for module in pkgutil.iter_modules(studies.__path__))
    return next((study for study in names if f"{name}_".startswith(f"{study}_")), None)


def folder_of(notebook: str) -> str:
    """Where a notebook writes below ``tables`` and ``figures``; all parts of the audit to one."""
    return study_of(notebook) or re.sub("^audit_.*", "audit", notebook.partition("_")[2])


def calls_of(notebook: str, parameters: dict[str, Any]) -> list[Call]:
    """What a study's notebook asks with these parameters: the ``calls`` of the study's design."""
    return import_module(f"ingroup.studies.{study_of(notebook)}.design").calls(parameters)


def _file(what: str, folder: Path, name: str, suffix: str) -> Path:
    files = {file.stem: file for file in sorted(folder.glob(f"*{suffix}"))}
    if name not in files:
        raise InputError(f"there is no {what} {name!r}; there are {', '.join(files)}")
    return files[name]


def _cell(source: Path) -> dict[str, Any]:
    """What a notebook's cell of parameters sets; papermill alone would take seconds to import."""
    cells = json.loads(source.read_text("utf8"))["cells"]
    (cell,) = (one for one in cells if "parameters" in one["metadata"].get("tags", ()))
    lines = ast.parse("".join(cell["source"])).body
    return {line.targets[0].id: ast.literal_eval(line.value) for line in lines}


def _kind(notebook: str, defaults: dict[str, Any]) -> type[parameters.Parameters]:
    """A study's ``Parameters``; what only this notebook takes has the type of its default."""
    study = study_of(notebook)
    known = (import_module(f"ingroup.studies.{study}.design") if study else parameters).Parameters
    fields = dict.fromkeys(set(known.model_fields) - set(defaults), (Any, None))
    for name in set(defaults) - set(known.model_fields):
        kind = type(defaults[name])
        fields[name] = (parameters.Texts if kind is list else kind, ...)
    return create_model("Parameters", __base__=known, **fields)


def _checked(kind: type[parameters.Parameters], values: dict[str, Any]) -> dict[str, Any]:
    """Values in their types; the first mistake in the house's words."""
    try:
        found = kind.model_validate(values)
        return {name: getattr(found, name) for name in values}
    except ValidationError as error:
        problem = error.errors()[0]
        name, more = next(iter(problem["loc"]), ""), problem.get("ctx", {})
        value = repr(problem["input"])
        if problem["type"] == "value_error":  # a check's own words
            says = f"{name}: {more['error']}" if name else str(more["error"])
        elif problem["type"] == "literal_error":
            expected = more["expected"].replace("'", "").removeprefix(", ")  # "" is one of them
            says = f"{name} {value} is unknown; expected {expected}"
        else:
            field = kind.model_fields[name]
            words = field.description or KINDS.get(field.annotation, "text")
            says = f"{name} must be {words}, found {value}"
        raise InputError(says) from error


def command_line(description: str | None) -> argparse.ArgumentParser:
    """The arguments that every command about notebooks takes; PYTHONOPTIMIZE=2 has no docstring."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--run", default=paths.DEFAULT_RUN)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--shared", action="store_true", help="pass over what other notebooks take")
    return parser


def parameters_of(notebook: str, options: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """:func:`merged` of what :func:`command_line` read."""
    # A name alone stands for its value in the environment, where no shell has read it.
    if unset := [p for p in options.set if "=" not in p and p not in os.environ]:
        raise InputError(f"--set {unset[0]} has no value: write {unset[0]}=<value>")
    given = dict(p.split("=", 1) if "=" in p else (p, os.environ[p]) for p in options.set)
    return merged(notebook, options.profile, given, options.run, options.shared, **more)
