"""The parameters of a notebook: its defaults, a profile's, those given; every mistake one sentence.

They are checked before a kernel starts, so that a wrong one costs nothing.
"""

import argparse
import ast
import difflib
import glob
import re
from pathlib import Path
from typing import Any

import papermill
import yaml

from ingroup import corpora, paths
from ingroup import dictionary as lexicon
from ingroup.inference.address import address
from ingroup.inference.engine import EngineError
from ingroup.inference.engines import ENGINES
from ingroup.inference.share import Share
from ingroup.models import is_calibrant
from ingroup.studies.biased_samaritan import stimuli as scenarios
from ingroup.studies.empathy_gap import stimuli
from ingroup.studies.giebench import stimuli as questions
from ingroup.studies.stereomap import human_evaluation
from ingroup.studies.stereomap import stimuli as social_groups
from ingroup.tables import InputError

CHOICES = {
    "ENGINE": ENGINES,
    "EXCLUSION": ("any", "pairwise"),
    "PARSING": ("sound", "released"),
    "RATING": ("greedy", "expected"),
    "SYSTEM": ("keep", "fold"),
    "BOS": ("template", "released"),
    "CROSSING": ("full", "printed"),
    "UNIT": ("scenario", "prompt"),
    "ORDER": ("given", "rotate"),
    "RAW": ("appendix", "text"),
    "DENOMINATOR": ("n", "released"),
    "BRITTLENESS": ("sample", "population"),
    "ORIGINAL_GROUPS": ("paper", "released"),
    "FORM": social_groups.FORMS,
    "CALLS": ("together", "separate"),
    "INCOMPLETE": ("drop", "mean"),
    "DOCUMENTS": ("sound", "released"),
    "LEMMAS": ("sound", "paper"),
    "KEYBERT": ("package", "hub"),
    "DTYPE": ("auto", "float32", "bfloat16", "float16"),
}
AT_LEAST_ONE = (
    *("N_RESAMPLES", "BATCH_SIZE", "GPUS", "ENGINE_WORKERS", "IN_FLIGHT", "RUNS", "MAX_TOKENS"),
    *("ROUNDS", "CLUSTERS", "N_INIT", "CLUSTER_SEEDS"),
)
SERVED = ("openai", "replay")  # engines to which a model is a name
NOT_NEGATIVE = ("N_EVENTS", "SEED", "PRICE_IN", "PRICE_OUT", "ABLATION_ROUNDS", "CLUSTER_SEED")


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
    InputError
        For an unknown name, a value of another type, or one outside its range.
    """
    source = paths.NOTEBOOKS / f"{notebook}.ipynb"
    if not source.exists():
        known = ", ".join(sorted(p.stem for p in paths.NOTEBOOKS.glob("*.ipynb")))
        raise InputError(f"there is no notebook {notebook!r}; there are {known}")
    file = paths.PROFILES / f"{profile}.yaml"
    if not file.exists():
        known = ", ".join(sorted(p.stem for p in paths.PROFILES.glob("*.yaml")))
        raise InputError(f"there is no PROFILE {profile!r}; there are {known}")
    defaults = _defaults(source)
    values = defaults | (yaml.safe_load(file.read_text("utf8")).get(notebook) or {})
    for name, text in given.items():
        others = paths.NOTEBOOKS.glob("[0-9]*.ipynb") if shared and name not in defaults else ()
        if any(name in _defaults(other) for other in others):
            continue
        if name not in defaults or name == "RUN":
            names = ", ".join(name for name in defaults if name != "RUN")
            near = difflib.get_close_matches(name.upper(), defaults, 1)
            says = f"did you mean {near[0]}?" if near else f"it takes {names or 'none'}"
            raise InputError(f"{notebook} has no parameter {name}; {says}")
        values[name] = converted(name, text, defaults[name])
    values["RUN"] = run
    if "CONTROL" in values and "CONTROL" not in given and not _demonstrates(values):
        values["CONTROL"] = ""
    for name, value in values.items():
        check(name, value)
    _check_models(values)
    _check_sources(values)
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
        raise InputError(f"{name} must be {kind}, found {text!r}") from None


def check(name: str, value: Any) -> None:
    """Raise a :class:`InputError` where a value alone cannot work, in one sentence."""
    if name == "MODEL" and not value:
        raise InputError("MODEL is empty; name a model, e.g. MODEL=calibrant")
    if name in NOT_NEGATIVE and value < 0:
        raise InputError(f"{name} must not be negative, found {value}")
    if name == "N_EVENTS" and value == 1:
        raise InputError("N_EVENTS must be at least 2 (paired tests need two), or 0 for all")
    if name in AT_LEAST_ONE and value < 1:
        raise InputError(f"{name} must be at least 1, found {value}")
    if name in ("TEMPERATURE", "TOP_P") and value != -1:
        low, high = (0, 2) if name == "TEMPERATURE" else (1e-6, 1)
        if not low <= value <= high:
            expected = "0 to 2" if name == "TEMPERATURE" else "above 0 and at most 1"
            raise InputError(f"{name} must be {expected}, or -1, found {value}")
    if name == "ALPHA" and not 0 < value < 1:
        raise InputError(f"ALPHA must be between 0 and 1, found {value}")
    if name == "SETTINGS":
        for setting in value:
            try:
                stimuli.setting(setting)
            except InputError as error:
                raise InputError(f"SETTINGS: {error}") from error
    if name == "SHARD":
        try:
            Share.parse(value)
        except ValueError as error:
            raise InputError(str(error)) from error
    if name in CHOICES and value not in CHOICES[name]:
        *most, last = CHOICES[name]
        expected = f"{', '.join(most)} or {last}"
        raise InputError(f"{name} {value!r} is unknown; expected {expected}")


def _check_models(values: dict[str, Any]) -> None:
    """Raise where models, engine and its options do not go together."""
    for name in ("MODEL", "CONTROL", "REWRITER"):
        model = values.get(name)
        if model and _engine_is_local(values) and not _model_exists(model):
            known = ", ".join(sorted(f.parent.name for f in paths.MODELS.glob("*/config.json")))
            raise InputError(
                f"{name} {model!r} is neither a model in data/models ({known}), nor a folder with "
                "a config.json, nor a hub name such as organisation/name"
            )
    if values.get("ENGINE") == "replay":
        if not values["RECORDINGS"]:
            raise InputError(
                "ENGINE=replay needs RECORDINGS=<file or folder> with the recorded answers"
            )
        others = [name for name in ("CONTROL", "REWRITER") if values.get(name)]
        if others:
            raise InputError(
                f"ENGINE=replay has the answers of one model: leave {' and '.join(others)} empty"
            )
        if values.get("RATING") == "expected":
            raise InputError("RATING=expected needs probabilities, which recordings lack")
        if not glob.glob(values["RECORDINGS"]):
            raise InputError(f"RECORDINGS: there is nothing at {values['RECORDINGS']!r}")
    elif values.get("RECORDINGS"):
        raise InputError(f"RECORDINGS is for ENGINE=replay, found ENGINE={values['ENGINE']}")
    if values.get("BASE_URL"):
        if values["ENGINE"] != "openai":
            raise InputError(f"BASE_URL is for ENGINE=openai, found ENGINE={values['ENGINE']}")
        try:
            address(values["BASE_URL"])
        except EngineError as error:
            raise InputError(f"BASE_URL: {error}") from error
    if values.get("SHARD") and values["ENGINE"] == "replay":
        raise InputError("SHARD divides what is computed, recordings are not: leave it empty")
    loading = {"SYSTEM": "keep", "BOS": "template", "DTYPE": "auto"}
    for name, plain in (loading | {"ENGINE_WORKERS": 1, "RAY_ADDRESS": ""}).items():
        if not _engine_is_local(values) and values.get(name, plain) != plain:
            raise InputError(
                f"{name} is for an engine that loads the model, found ENGINE={values['ENGINE']}"
            )


def _check_sources(values: dict[str, Any]) -> None:
    """Raise where what is asked about cannot be read."""
    if "CORPUS" in values:
        try:
            corpora.load_events(values["CORPUS"], values["N_EVENTS"] or None)
        except InputError as error:
            raise InputError(
                f"CORPUS {values['CORPUS']!r}, N_EVENTS {values['N_EVENTS']}: {error}"
            ) from error
    if "SCENARIOS" in values:
        try:
            scenarios.load_scenarios(values["SCENARIOS"])
        except InputError as error:
            raise InputError(f"SCENARIOS: {error}") from error
        if (values["CROSSING"], values["UNIT"]) == ("printed", "prompt"):
            raise InputError(
                "CROSSING=printed asks a group and the control in different wordings, which leaves "
                "no prompt to pair: take UNIT=scenario"
            )
    if "QUESTIONS" in values:
        try:
            questions.load_questions(values["QUESTIONS"])
        except InputError as error:
            raise InputError(f"QUESTIONS: {error}") from error
    if "GROUPS" in values:
        _check_stereomap(values)


def _check_stereomap(values: dict[str, Any]) -> None:
    """Raise where the groups, the dictionary, mappings or filled sheets cannot be used."""
    known, extended = social_groups.groups().group, set(social_groups.names("EXTENDED"))
    for group in values["GROUPS"]:
        if group not in set(known):
            near = difflib.get_close_matches(group, known, 3, 0.4) or list(known[:3])
            raise InputError(
                f"GROUPS: {group!r} is no name in groups.csv; there are {', '.join(near)} ..."
            )
    chosen = len(extended.intersection(values["GROUPS"] or extended))
    if chosen < values["CLUSTERS"]:
        raise InputError(
            f"GROUPS has {chosen} of the groups that the EXTENDED prompts are asked for, expected "
            f"at least as many as CLUSTERS, {values['CLUSTERS']}"
        )
    readers = {
        "DICTIONARY": lambda: lexicon.load_lexicon(values["DICTIONARY"]),
        "MAPPINGS": lambda: lexicon.load_mappings(*values["MAPPINGS"]),
        "SHEETS": lambda: values["SHEETS"] and human_evaluation.score(values["SHEETS"]),
    }
    for name in readers.keys() & values:
        try:
            readers[name]()
        except InputError as error:
            raise InputError(f"{name}: {error}") from error


def _demonstrates(values: dict[str, Any]) -> bool:
    """Whether the run is a calibrant's, whose control is then asked beside it."""
    return values.get("ENGINE") not in SERVED and is_calibrant(values["MODEL"])


def _engine_is_local(values: dict[str, Any]) -> bool:
    """Whether the model itself is loaded: a server's or a recorded model is only a name.

    So it is in a notebook without ENGINE, which reads what others asked.
    """
    return "ENGINE" in values and values["ENGINE"] not in SERVED


def _model_exists(model: str) -> bool:
    return (
        (paths.MODELS / model / "config.json").exists()
        or (Path(model) / "config.json").exists()
        or re.fullmatch(r"[\w.-]+/[\w.-]+", model) is not None
    )


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
