"""What each notebook reads, and which one comes first; doit runs what is out of date.

What a notebook reads is compared by content with what it read in its last run, and what it wrote
with what is there. make calls this (ingroup.commands.cli). To add an input, add it to a list below.
"""

import os
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

from doit.exceptions import BaseFail, TaskFailed, UnmetDependency
from doit.reporter import ZeroReporter
from doit.task import Task
from doit.tools import config_changed

from ingroup.commands import digests, doit_state, environments, processes, settings

# Patterns of files that every notebook reads.
SHARED = [
    "requirements.lock",
    "lib/ingroup/*.*",
    "lib/ingroup/inference/*.py",
    "lib/ingroup/stats/*.py",
    "lib/ingroup/commands/run.py",
    "lib/ingroup/commands/executed.py",
    "lib/ingroup/commands/kernel.py",
    "lib/ingroup/commands/run_parameters.py",
    "data/*.*",
    "data/sample/*",
    "data/stimuli/*.*",
    "data/published/*.*",
    "data/judgements/*",
    "data/recordings/*.yaml",
    "data/recordings/*.csv",
    "data/models/*.*",
    "data/models/*/*.*",
    "notebooks/profiles/{profile}.yaml",
]
# Patterns of files that the notebooks of a study read. An audit reads its printed tables and the
# module with their checks.
OF_AN_AUDIT = [
    "data/published/{study}/**/*",
    "lib/ingroup/studies/{study}/consistency.py",
]
OF_A_STUDY = [
    *OF_AN_AUDIT,
    "lib/ingroup/studies/{study}/*.*",
    "data/stimuli/{study}/**/*",
    "data/recordings/*/{study}/**/*",
]
# What the pages of the report are made with, and the guides and docstrings that they show.
REPORT = [
    "lib/ingroup/commands/*.py",
    "lib/ingroup/commands/templates/**/*",
    "lib/ingroup/*.py",
    "lib/ingroup/inference/*.py",
    "lib/ingroup/stats/*.py",
    "lib/ingroup/studies/*/*.py",
    "docs/*.md",
    "*.md",
]
# What the appendix of a run is made with.
APPENDIX = [
    "lib/ingroup/appendix/**/*",
    "lib/ingroup/commands/appendix.py",
    "lib/ingroup/commands/plan.py",
    "CITATION.cff",
    "data/README.md",
]
# Notebooks that take longest, and so begin.
LONG = ("10_", "40_")


class Reporter(ZeroReporter):
    """A notebook says itself why it failed; what fails before one is said here."""

    def add_failure(self, task: Task, fail_info: BaseFail) -> None:
        """Print why a task could not start."""
        if not isinstance(fail_info, TaskFailed | UnmetDependency):
            print(f"{task.name}: {fail_info.get_msg()}", file=sys.stderr)


GOALS = os.environ.get("GOALS", "").split()
IS_ALL = not GOALS or "all" in GOALS
IS_COMPARISON = "compare" in GOALS
PROFILE = os.environ.get("PROFILE") or "demo"
VALUES = settings.given_variables()
PARAMETERS = settings.command_line_parameters(VALUES)
RUN = settings.run_name()
FOLDER = settings.run_folder(RUN)

DOIT_CONFIG = {
    "dep_file": str(settings.BUILD / "digests" / f"{RUN}.json"),
    "check_file_uptodate": doit_state.ContentChecker,
    "reporter": Reporter,
}


def files(patterns: list[str], **words: str) -> list[str]:
    """List the files that patterns name, except compiled modules.

    Parameters
    ----------
    patterns : list of str
        Patterns from the project's root, with names in braces.
    **words : str
        What the names in braces stand for.

    Returns
    -------
    list of str
        Sorted names, as in the records (:mod:`ingroup.commands.digests`).
    """
    names = set()
    for pattern in patterns:
        for file in settings.ROOT.glob(pattern.format(**words)):
            if file.is_file() and "__pycache__" not in file.parts:
                names.add(digests.path_in_records(file))
    return sorted(names)


def studies_of(notebook: str) -> list[str]:
    """List the study in a notebook's name; all studies where it names none."""
    studies = settings.study_names()
    named = [study for study in studies if study in notebook]
    return named or studies


def sources(notebook: str) -> list[str]:
    """List the files in git that a notebook reads."""
    names = [f"notebooks/{notebook}.ipynb"]
    names += files(SHARED, profile=PROFILE)
    if notebook == "00_map":
        names += files(["docs/claims.yaml"])

    patterns = OF_AN_AUDIT if "audit" in notebook else OF_A_STUDY
    for study in studies_of(notebook):
        names += files(patterns, study=study)
    return names


def earlier(notebook: str) -> list[str]:
    """List the notebooks whose tables or answers a notebook reads: each comes before it.

    Parameters
    ----------
    notebook : str
        The notebook's name.

    Returns
    -------
    list of str
        All others for the map, the other audits for the summary of audits, the first notebooks of
        all studies for synthesis and comparison, and for a further notebook of a study its first.
    """
    if notebook == "00_map":
        names = settings.notebooks()
    elif notebook == "50_audit":
        names = [name for name in settings.notebooks() if "audit" in name]
    elif notebook in ("60_synthesis", settings.COMPARISON_NOTEBOOK):
        names = settings.first_notebooks()
    elif "audit" in notebook:  # it reads printed tables alone
        names = []
    else:
        study = studies_of(notebook)[0]
        names = settings.chosen_studies(study)

    return [name for name in names if name != notebook]


def executed(notebook: str) -> Path:
    """Return where the executed copy of a notebook goes."""
    return FOLDER / "notebooks" / f"{notebook}.ipynb"


@cache
def is_unchanged(notebook: str) -> bool:
    """Compare what a notebook wrote, and what it read outside of git; say once what changed."""
    edited = digests.edited_outputs(executed(notebook))
    changed = digests.changed_inputs(executed(notebook))
    if edited or changed:
        when = "written" if edited else "read"
        digests.say_changed(notebook, edited + changed, when)
    return not edited and not changed


def is_own_copy(task: Task, values: dict[str, str], notebook: str) -> bool:
    """Compare the executed copy with the one that the notebook's last run left.

    Parameters
    ----------
    task : Task
        doit's task, which after a run keeps the digest of the new copy.
    values : dict
        What it kept after the last run.
    notebook : str
        The notebook's name.

    Returns
    -------
    bool
        Whether the copy is as the last run left it.
    """
    copy = executed(notebook)
    task.value_savers.append(lambda: {"copy": digests.digest(copy)})
    return values.get("copy") == digests.digest(copy)


def chosen() -> list[str]:
    """List the notebooks that the goals name, and those that must come before them.

    The paper's notebook comes before one that goes beyond it, and the four audits come before their
    summary. Synthesis and comparison take what is there.
    """
    if IS_ALL:
        names = set(settings.notebooks())
    else:
        names = set(settings.notebooks_of_goals(GOALS))
        for name in list(names):
            if "beyond" in name or name == "50_audit":
                names.update(earlier(name))
    return sorted(names, key=order)


def order(notebook: str) -> tuple[int, str]:
    """Return the key by which notebooks are sorted: long ones begin, the map ends."""
    if notebook.startswith(LONG):
        return 0, notebook
    if notebook == "00_map":
        return 2, notebook
    return 1, notebook


def made_again() -> list[str]:
    """List notebooks that the chosen ones read, and whose tables somebody changed by hand."""
    others = set()
    for notebook in chosen():
        others.update(earlier(notebook))
    others.difference_update(chosen())

    names = []
    for notebook in sorted(others):
        has_run = digests.record_file(executed(notebook)).exists()
        if has_run and not is_unchanged(notebook):
            names.append(notebook)
    return names


def run_notebook(notebook: str, inputs: list[str], how: list[str]) -> bool:
    """Execute a notebook; its inputs are those that it had when it began.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    inputs : list of str
        The files that it reads.
    how : list of str
        Options of :mod:`ingroup.commands.run`.

    Returns
    -------
    bool
        Whether it came to its end.
    """
    doit_state.remember_digests(inputs)
    command = [sys.executable, "-m", "ingroup.commands.run", notebook, "--run", RUN, *how]
    return processes.start(command)


def notebook_task(notebook: str, others: list[str], how: list[str]) -> dict:
    """Describe to doit what a notebook reads, what it writes, and when it is out of date.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    others : list of str
        The notebooks that run in the same call of make.
    how : list of str
        Options of :mod:`ingroup.commands.run`.

    Returns
    -------
    dict
        A task of doit.
    """
    inputs = sources(notebook)
    for other in earlier(notebook):
        record = digests.record_file(executed(other))
        if other in others or record.exists():
            inputs.append(digests.path_in_records(record))
            if notebook == "00_map":  # it says when each ran
                inputs.append(digests.path_in_records(executed(other)))

    copy = executed(notebook)
    outputs = [copy, copy.with_suffix(".txt"), digests.record_file(copy)]

    config = {"PROFILE": PROFILE, "torch": version("torch")}
    for name, value in PARAMETERS.items():
        if name not in settings.WORKER_PARAMETERS:
            config[name] = value
    uptodate = [config_changed(config), (is_unchanged, [notebook]), (is_own_copy, [notebook])]
    if not environments.engines(VALUES).isdisjoint(environments.ENGINES_ASKED_AGAIN):
        uptodate.append(False)

    return {
        "name": notebook,
        "actions": [(run_notebook, [notebook, inputs, how])],
        "file_dep": inputs,
        "targets": [digests.path_in_records(file) for file in outputs],
        "uptodate": uptodate,
        "io": {"capture": False},
    }


def task_notebook():
    """Execute the notebooks that are out of date."""
    how = settings.command_options(VALUES)
    if IS_ALL:
        how.append("--shared")

    others = [*chosen(), *made_again()]
    for notebook in chosen():
        yield notebook_task(notebook, others, how)


def task_again():
    """Execute notebooks as they ran before, whose tables somebody changed by hand."""
    for notebook in made_again():
        yield notebook_task(notebook, [], ["--again"])


def task_report():
    """Write the report, when it or something that it shows changed."""
    if not (IS_ALL or IS_COMPARISON):
        return

    inputs = files(REPORT)
    for notebook in chosen():
        copy = executed(notebook)
        inputs.append(digests.path_in_records(copy))
        inputs.append(digests.path_in_records(digests.record_file(copy)))

    command = [sys.executable, "-m", "ingroup.commands.report", "--run", RUN]
    yield {
        "name": "pages",
        "actions": [(processes.start, [command])],
        "file_dep": inputs,
        "targets": [digests.path_in_records(FOLDER / "report" / "index.html")],
        "io": {"capture": False},
    }


def write_appendix() -> bool:
    """Write the appendix of the run; one that fails says why, and costs no report."""
    processes.start([sys.executable, "-m", "ingroup.commands.appendix", "--run", RUN])
    return True


def task_appendix():
    """Write the appendix of a whole run of one's own, when something that it shows changed."""
    if not IS_ALL or RUN == settings.DEFAULT_RUN:
        return

    inputs = files(APPENDIX)
    for notebook in chosen():
        copy = executed(notebook)
        inputs.append(digests.path_in_records(copy))
        inputs.append(digests.path_in_records(digests.record_file(copy)))

    target = settings.appendix_folder(RUN) / "appendix.html"
    yield {
        "name": "documents",
        "actions": [write_appendix],
        "file_dep": inputs,
        "targets": [digests.path_in_records(target)],
        "io": {"capture": False},
    }
