"""The modules that every study has, and the error of a study that still lacks one."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from ingroup.tables import InputError

# The names that the commands and the shared modules take from each file of a study's folder.
REQUIRED_NAMES = {
    "design": ("Parameters", "jobs"),
    "answers": ("load",),
    "ground_truth": ("GroundTruth",),
    "group_profile": (
        "MEASURES",
        "views",
        "claims",
        "paths",
        "power",
        "effects",
        "items",
        "extent",
    ),
}


class Unfinished(InputError):
    """Error of a study that lacks a module, or a name that the module must define."""


def module_of(study: str, file: str, *names: str) -> ModuleType:
    """Import a module of a study.

    Parameters
    ----------
    study : str
        The study.
    file : str
        The name of the module, one of `REQUIRED_NAMES`.
    *names : str
        The names that the caller takes from the module.

    Returns
    -------
    ModuleType
        The module, which has these names.

    Raises
    ------
    Unfinished
        If the file is missing, cannot be imported or lacks a name. The message lists all names that
        the file must define.
    """
    module_name = f"ingroup.studies.{study}.{file}"
    place = f"the study {study} is unfinished: lib/ingroup/studies/{study}/{file}.py"
    expected = f"it must define {', '.join(REQUIRED_NAMES[file])} (CONTRIBUTING.md, Add a study)"
    if find_spec(module_name) is None:
        raise Unfinished(f"{place} is missing; {expected}")

    try:
        module = import_module(module_name)
    except ImportError as error:
        raise Unfinished(f"{place} cannot be imported: {error}") from error

    lacking = [name for name in names if not hasattr(module, name)]
    if lacking:
        raise Unfinished(f"{place} lacks {', '.join(lacking)}; {expected}")
    return module
