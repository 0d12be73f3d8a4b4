"""Run one notebook with papermill: check its parameters first, keep the result only if it is whole.

``python -m ingroup.run 10_empathy_gap --profile demo --run default --set N_EVENTS=24`` is what the
Makefile calls. Every mistake in a parameter ends here, in one sentence, before a kernel starts.
"""

import argparse
import ast
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import papermill
import yaml
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from ingroup import corpora, paths, stimuli
from ingroup.calibrant import is_calibrant
from ingroup.inference.address import address
from ingroup.inference.engine import EngineError
from ingroup.inference.engines import ENGINES

CHOICES = {
    "ENGINE": ENGINES,
    "EXCLUSION": ("any", "pairwise"),
    "PARSING": ("sound", "authors"),
    "RATING": ("greedy", "expected"),
    "SYSTEM": ("keep", "fold"),
    "BOS": ("template", "authors"),
    "DTYPE": ("auto", "float32", "bfloat16", "float16"),
}


class ParameterError(ValueError):
    """A parameter is unknown or malformed; the message says what is expected."""


def merged(
    notebook: str,
    profile: str,
    given: dict[str, str],
    run: str = paths.DEFAULT_RUN,
    shared: bool = False,
) -> dict[str, Any]:
    """All parameters of a run: the notebook's defaults, the profile's, then those given.

    Parameters
    ----------
    notebook : str
        Name without suffix, e.g. ``"10_empathy_gap"``.
    profile : str
        Name of a file in ``notebooks/profiles/``.
    given : dict of str to str
        As typed on the command line; converted to the type of the notebook's default.
    run : str
        Name of the run; see :func:`ingroup.paths.outputs`.
    shared : bool
        Whether ``given`` is for all notebooks: what only another one takes is passed over.

    Returns
    -------
    dict
        Name to value, checked. ``CONTROL`` is the negative control of the calibrant: for another
        model, a server or recordings it is empty unless it is given.

    Raises
    ------
    ParameterError
        For an unknown name, a value of another type, or one outside its range.
    """
    source = paths.NOTEBOOKS / f"{notebook}.ipynb"
    if not source.exists():
        known = ", ".join(sorted(p.stem for p in paths.NOTEBOOKS.glob("*.ipynb")))
        raise ParameterError(f"there is no notebook {notebook!r}; there are {known}")
    file = paths.PROFILES / f"{profile}.yaml"
    if not file.exists():
        known = ", ".join(sorted(p.stem for p in paths.PROFILES.glob("*.yaml")))
        raise ParameterError(f"there is no PROFILE {profile!r}; there are {known}")
    defaults = _defaults(source)
    values = defaults | (yaml.safe_load(file.read_text("utf8")).get(notebook) or {})
    for name, text in given.items():
        others = paths.NOTEBOOKS.glob("[0-9]*.ipynb") if shared and name not in defaults else ()
        if any(name in _defaults(other) for other in others):
            continue
        if name not in defaults or name == "RUN":
            names = ", ".join(name for name in defaults if name != "RUN")
            raise ParameterError(f"{notebook} has no parameter {name}; it takes {names or 'none'}")
        values[name] = converted(name, text, defaults[name])
    values["RUN"] = run
    if "CONTROL" in values and "CONTROL" not in given and not _demonstrates(values):
        values["CONTROL"] = ""
    for name, value in values.items():
        check(name, value)
    _check_models(values)
    if "CORPUS" in values:
        try:
            corpora.load_events(values["CORPUS"], values["N_EVENTS"] or None)
        except corpora.CorpusError as error:
            raise ParameterError(
                f"CORPUS {values['CORPUS']!r}, N_EVENTS {values['N_EVENTS']}: {error}"
            ) from error
    return values


def _defaults(source: Path) -> dict[str, Any]:
    described = papermill.inspect_notebook(str(source))
    return {name: ast.literal_eval(about["default"]) for name, about in described.items()}


def converted(name: str, text: str, default: Any) -> Any:
    """``text`` in the type of ``default``; the items of a list are divided by semicolons."""
    try:
        if isinstance(default, bool):
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        if isinstance(default, list):
            return [part.strip() for part in text.split(";") if part.strip()]
        return type(default)(text)
    except (KeyError, ValueError):
        kind = {bool: "true or false", int: "a whole number", float: "a number"}[type(default)]
        raise ParameterError(f"{name} must be {kind}, found {text!r}") from None


def check(name: str, value: Any) -> None:
    """Raise a :class:`ParameterError` where a value alone cannot work, in one sentence."""
    if name == "MODEL" and not value:
        raise ParameterError("MODEL is empty; name a model, e.g. MODEL=calibrant")
    if name in ("N_EVENTS", "SEED", "PRICE_IN", "PRICE_OUT") and value < 0:
        raise ParameterError(f"{name} must not be negative, found {value}")
    if name == "N_EVENTS" and value == 1:
        raise ParameterError("N_EVENTS must be at least 2 (paired tests need two), or 0 for all")
    if name in ("N_RESAMPLES", "BATCH_SIZE", "GPUS", "IN_FLIGHT") and value < 1:
        raise ParameterError(f"{name} must be at least 1, found {value}")
    if name == "SETTINGS":
        for setting in value:
            try:
                stimuli.setting(setting)
            except stimuli.StimulusError as error:
                raise ParameterError(f"SETTINGS: {error}") from error
    if name in CHOICES and value not in CHOICES[name]:
        *most, last = CHOICES[name]
        expected = f"{', '.join(most)} or {last}"
        raise ParameterError(f"{name} {value!r} is unknown; expected {expected}")


def _check_models(values: dict[str, Any]) -> None:
    """Raise where models, engine and its options do not go together."""
    for name in ("MODEL", "CONTROL", "REWRITER"):
        model = values.get(name)
        if model and _engine_is_local(values) and not _model_exists(model):
            raise ParameterError(
                f"{name} {model!r} is neither a model in data/models, nor a folder with a "
                "config.json, nor a hub name such as organisation/name"
            )
    if values.get("ENGINE") == "replay":
        if not values["RECORDINGS"]:
            raise ParameterError(
                "ENGINE=replay needs RECORDINGS=<file or folder> with the recorded answers"
            )
        if values["CONTROL"] or values["REWRITER"]:
            raise ParameterError(
                "ENGINE=replay has the answers of one model: leave CONTROL and REWRITER empty"
            )
        if values["RATING"] == "expected":
            raise ParameterError("RATING=expected needs probabilities, which recordings lack")
    elif values.get("RECORDINGS"):
        raise ParameterError(f"RECORDINGS is for ENGINE=replay, found ENGINE={values['ENGINE']}")
    if values.get("BASE_URL"):
        if values["ENGINE"] != "openai":
            raise ParameterError(f"BASE_URL is for ENGINE=openai, found ENGINE={values['ENGINE']}")
        try:
            address(values["BASE_URL"])
        except EngineError as error:
            raise ParameterError(f"BASE_URL: {error}") from error
    for name, plain in {"SYSTEM": "keep", "BOS": "template", "DTYPE": "auto"}.items():
        if not _engine_is_local(values) and values.get(name, plain) != plain:
            raise ParameterError(
                f"{name} is for an engine that loads the model, found ENGINE={values['ENGINE']}"
            )


def _demonstrates(values: dict[str, Any]) -> bool:
    """Whether the run is a calibrant's, whose control is then asked beside it."""
    return _engine_is_local(values) and is_calibrant(values["MODEL"])


def _engine_is_local(values: dict[str, Any]) -> bool:
    """Whether the model itself is loaded: a server's or a recorded model is only a name."""
    return values.get("ENGINE") not in ("openai", "replay")


def _model_exists(model: str) -> bool:
    return (
        (paths.MODELS / model / "config.json").exists()
        or (Path(model) / "config.json").exists()
        or re.fullmatch(r"[\w.-]+/[\w.-]+", model) is not None
    )


def execute(notebook: str, parameters: dict[str, Any]) -> Path:
    """Run a notebook from top to bottom and move the executed copy into place when it is whole.

    Returns
    -------
    pathlib.Path
        ``build/notebooks/<notebook>.ipynb``, or below ``build/runs/<run>`` for another run.

    Raises
    ------
    papermill.exceptions.PapermillExecutionError
        Where a cell fails; the unfinished copy is left beside the target for a look.
    """
    target = paths.executed(notebook, parameters["RUN"])
    unfinished = target.with_name(f"{notebook}.unfinished.ipynb")
    for attempt in (1, 2):
        try:
            papermill.execute_notebook(
                str(paths.NOTEBOOKS / f"{notebook}.ipynb"),
                str(unfinished),
                parameters=parameters,
                kernel_name="python3",
                cwd=str(paths.ROOT),
                progress_bar=False,
                stderr_file=sys.stderr,  # progress bars; what a cell prints stays in the notebook
            )
            break
        except (DeadKernelError, RuntimeError) as error:
            # Kernels that start side by side can draw the same port; a second try is enough.
            if attempt == 2 or isinstance(error, PapermillExecutionError):
                raise
    os.replace(unfinished, target)
    return target


def command_line(description: str) -> argparse.ArgumentParser:
    """The arguments that every command about a notebook takes."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("notebook")
    parser.add_argument("--profile", default="demo")
    parser.add_argument("--run", default=paths.DEFAULT_RUN)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--shared", action="store_true", help="pass over what other notebooks take")
    return parser


def parameters_of(options: argparse.Namespace) -> dict[str, Any]:
    """:func:`merged` of what :func:`command_line` read."""
    given = dict(pair.split("=", 1) for pair in options.set)
    return merged(options.notebook, options.profile, given, options.run, options.shared)


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the notebook ran, 2 for a wrong parameter, 1 when a cell failed."""
    options = command_line(__doc__).parse_args(arguments)
    try:
        parameters = parameters_of(options)
    except ParameterError as error:
        print(error, file=sys.stderr)
        return 2
    started = time.monotonic()
    try:
        target = execute(options.notebook, parameters)
    except PapermillExecutionError as error:
        print(
            f"{options.notebook}, cell {error.exec_count}: {error.ename}: {error.evalue}",
            file=sys.stderr,
        )
        return 1
    except DeadKernelError:
        print(
            f"{options.notebook}: the kernel died, which is mostly a lack of memory; answers that "
            "are stored stay (a smaller BATCH_SIZE needs less)",
            file=sys.stderr,
        )
        return 1
    shown = ", ".join(
        f"{name}={value}" for name, value in parameters.items() if name != "RUN" and value != ""
    )
    summary = (
        f"{options.notebook}: {time.monotonic() - started:.0f} s, {shown or 'no parameters'}\n"
    )
    target.with_suffix(".txt").write_text(summary, "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
