"""The targets that make calls, as ``python -m ingroup.commands.cli <target>``.

The values on make's command line are read by `ingroup.commands.settings`.
"""

import csv
import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from ingroup.commands import processes, settings

WHERE_RESULTS_ARE = (
    "A run's tables and figures are in build/runs/<run>/; "
    "those of the default run are in build/tables/ and figures/."
)
NOTEBOOKS_AT_ONCE = 2
# doit keeps its digests with ingroup.commands.doit_state.SavedState.
DOIT_CONFIG = {
    "BACKEND": {"kept": "ingroup.commands.doit_state:SavedState"},
    "GLOBAL": {"backend": "kept"},
}


def replace_program(module: str, *options: str) -> NoReturn:
    """Replace this program with a module of `ingroup.commands`.

    Parameters
    ----------
    module : str
        The name of a module of `ingroup.commands`.
    *options : str
        The arguments of its command line.
    """
    command = [sys.executable, "-m", f"ingroup.commands.{module}", *options]
    os.execv(sys.executable, command)


def run_notebooks(values: dict[str, str]) -> int:
    """Run the notebooks that are out of date.

    Two programs that run the notebooks of one run take turns. A notebook that fails stops only the
    notebooks that read its files.

    Parameters
    ----------
    values : dict of str to str
        The variables that were set on make's command line.

    Returns
    -------
    int
        The exit status of doit, 0 when no notebook is out of date any more.
    """
    from doit.doit_cmd import DoitMain
    from filelock import FileLock, Timeout

    # Parameters often mean a larger model, and one larger model may fill the memory.
    at_once = 1 if settings.command_line_parameters(values) else NOTEBOOKS_AT_ONCE
    options = ["--process", str(at_once), "--parallel-type", "thread", "--continue"]

    run = settings.run_name()
    folder = settings.BUILD / "digests"
    lock = FileLock(folder / f"{run}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        print(f"another make works on the run {run}: waiting for it", file=sys.stderr)
        lock.acquire()
    except OSError as problem:
        raise settings.Refused(
            f"{problem.filename} cannot be written: {problem.strerror}; allow writing there, or "
            "work in a clone of your own"
        ) from problem
    with lock:
        # doit would take further settings from files in the project.
        return DoitMain(config_filenames=(), extra_config=DOIT_CONFIG).run(["run", *options])


def summary(beginning: str) -> str:
    """Join the summaries that the run's notebooks wrote at their end.

    Parameters
    ----------
    beginning : str
        The beginning of the notebooks' names, or "" for all notebooks.

    Returns
    -------
    str
        The summaries in the order of the notebooks' numbers.
    """
    text = ""
    for file in _summary_files(settings.run_name()):
        if file.name.startswith(beginning):
            text += file.read_text("utf8")
    return text.rstrip("\n")


def compare() -> int:
    """Run the notebook that compares models, and print how many effects differ significantly.

    Returns
    -------
    int
        The exit status: 0, 1 where no study has answers of two models, or that of doit.
    """
    status = run_notebooks(settings.given_variables())
    if status != 0:
        return status

    folder = settings.run_folder(settings.run_name())
    tables = folder / "tables" / "comparison"
    for row in rows_of(tables / "missing.csv"):
        print(f"{row['study']}, {row['model']} is left out: {row['reason']}")

    counts = rows_of(tables / "counts.csv")
    for row in counts:
        print(
            f"{row['study']}: {row['first_has_more']} of {row['effects']} effects are "
            f"significantly larger in {row['model']}, {row['second_has_more']} in "
            f"{row['other_model']}"
        )
    if not counts:
        print("nothing was compared: no study has stored answers of two models", file=sys.stderr)
        return 1

    page = folder / "report" / f"{settings.COMPARISON_NOTEBOOK}.html"
    print(f"Page: {os.path.relpath(page)}")
    return 0


def rows_of(file: Path) -> list[dict[str, str]]:
    """Read the rows of a table.

    Parameters
    ----------
    file : Path
        A CSV file with a header.

    Returns
    -------
    list of dict of str
        The cells of each row by the names of the columns. A missing file has no row.
    """
    if not file.exists():
        return []
    with file.open(encoding="utf8") as stream:
        return list(csv.DictReader(stream))


def _run_target(target: str, values: dict[str, str]) -> int:
    """Run the notebooks of a target, print where the results are, and return doit's exit status.

    If a notebook of the target "all" fails, a report on the notebooks that ran is written.
    """
    status = run_notebooks(values)
    run = settings.run_name()
    if status != 0:
        if target == "all":
            _report_what_ran(run)
        return status

    folder = os.path.relpath(settings.run_folder(run))
    is_default = run == settings.DEFAULT_RUN
    figures = "figures/" if is_default else f"{folder}/figures/"
    tables = f"{folder}/tables/"
    if target == "all":
        print(f"\n{summary('')}")
        print(f"Report: {folder}/report/index.html   figures: {figures}   tables: {tables}")
        if not is_default:
            appendix = os.path.relpath(settings.appendix_folder(run))
            print(f"Appendix: {appendix}/appendix.html")
    else:
        print(summary(f"{target}_"))
        if not is_default:
            print(f"Figures: {figures}   tables: {tables}")
    return 0


def _report_what_ran(run: str) -> None:
    """Write the report of a run in which a notebook failed, if another notebook came to its end.

    A run other than the default run also gets its appendix.
    """
    if not _summary_files(run):
        return
    documents = ["report"]
    if run != settings.DEFAULT_RUN:
        documents.append("appendix")
    for document in documents:
        processes.start([sys.executable, "-m", f"ingroup.commands.{document}", "--run", run])
    print("a notebook failed, as said above: these show what ran", file=sys.stderr)


def _make_again(run: str) -> bool:
    """Run notebooks again whose tables or figures were edited. Return whether all succeeded."""
    from ingroup.commands import digests

    for summary_file in _summary_files(run):
        notebook = summary_file.stem
        edited = digests.edited_outputs(summary_file.with_suffix(".ipynb"))
        if not edited:
            continue

        digests.say_changed(notebook, edited, "written")
        if not processes.start([*_run_command(notebook, run), "--again"]):
            return False
    return True


def _summary_files(run: str) -> list[Path]:
    """List the summary files of a run, which exist for notebooks that came to their end."""
    return sorted(settings.run_folder(run).glob("notebooks/[0-9]*.txt"))


def _run_command(notebook: str, run: str) -> list[str]:
    """Return the command line that runs a notebook within a run."""
    return [sys.executable, "-m", "ingroup.commands.run", notebook, "--run", run]


def _draw_figures(run: str, values: dict[str, str]) -> int:
    """Draw the figures of a run again, or only the figures in ONLY, and return the exit status."""
    _check_style(values)
    if not _make_again(run):
        return 1

    figures = values.get("ONLY", "").split()
    studies = [figure.partition("/")[0] for figure in figures]
    problem = _unknown_model(run, studies, values.get("MODELS", "")) if figures else ""
    if problem:
        print(problem, file=sys.stderr)
        return 1

    # The kernels of the notebooks inherit these variables.
    variables = {}
    if figures:
        for name in sorted(settings.FIGURE_OPTIONS | {"MODELS"}):
            variables[f"FIGURE_{name}"] = values.get(name, "")
        variables["FIGURE_OUT"] = values.get("OUT") or "paper"

    commands = []
    ended = {file.stem for file in _summary_files(run)}
    for notebook in sorted(ended.union(settings.started_in_lab(run))):
        # The folder of a figure is its study, and the names of the study's notebooks begin with it.
        _, _, subject = notebook.partition("_")
        if not figures or subject.startswith(tuple(studies)):
            commands.append([*_run_command(notebook, run), "--redraw"])

    with TemporaryDirectory() as folder:
        # `ingroup.figures.save` adds a line per file, and one per figure that cannot be drawn.
        record = Path(folder) / "record"
        record.touch()
        variables["FIGURE_RECORD"] = str(record)
        start = partial(processes.start, variables=variables)
        pool = ThreadPoolExecutor(NOTEBOOKS_AT_ONCE)
        try:
            ended_well = list(pool.map(start, commands))
        finally:  # after a signal no further one is drawn
            pool.shutdown(wait=False, cancel_futures=True)
        lines = record.read_text(encoding="utf8").splitlines()

    entries = [json.loads(line) for line in lines]
    _print_sizes(entries)
    problems = [entry["problem"] for entry in entries if "problem" in entry]
    reason = "this run has no such figure" if all(ended_well) else "a notebook failed, see above"
    recorded = {entry["figure"] for entry in entries}
    for figure in figures:
        if figure not in recorded:
            problems.append(f"{figure} was not drawn: {reason}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 0 if all(ended_well) and not problems else 1


def _check_style(values: dict[str, str]) -> None:
    """Refuse an invalid WIDTH, FONT, CMAP or FORMAT before the notebooks start."""
    options = {}
    for name in ("WIDTH", "FONT", "CMAP", "FORMAT"):
        if values.get(name):
            options[name.lower()] = values[name]
    if not options:
        return

    # These take seconds to import, and only options need them.
    from ingroup.figures import use_style
    from ingroup.tables import InputError

    try:
        use_style(**options)
    except InputError as error:
        raise settings.Refused(str(error)) from error


def _unknown_model(run: str, studies: list[str], typed: str) -> str:
    """Say that a model of MODELS is in no table of these studies, and name the nearest model.

    The sentence is about the first such model. Return "" if the tables have every model of MODELS,
    or no model at all.
    """
    known = set()
    for study in studies:
        known |= _models_in_tables(settings.run_folder(run) / "tables" / study)
    if not known:
        return ""

    for entry in typed.split(";"):
        name = entry.strip()
        # Tables name a model's folder by the last part of its path.
        label = os.path.basename(name.rstrip("/"))
        if name and known.isdisjoint({name, label}):
            hint = settings.suggestion_or_list(name, known, "; ")
            return f"MODELS: {name} is in no table of {' '.join(studies)}; {hint}"
    return ""


def _models_in_tables(folder: Path) -> set[str]:
    """Collect the names in the columns ``model`` of a study's tables."""
    names = set()
    for file in folder.glob("*.csv"):
        with file.open(encoding="utf8", newline="") as lines:
            rows = csv.DictReader(lines)
            if "model" in (rows.fieldnames or []):
                names |= {row["model"] for row in rows}
    return names


def _print_sizes(entries: list[dict[str, Any]]) -> None:
    """Print the path and the size in inches of each figure file that was written.

    A path below the project's root is printed from the root.
    """
    sizes = {}
    for entry in entries:
        if "file" in entry:
            file = Path(entry["file"])
            if file.is_relative_to(settings.ROOT):
                file = file.relative_to(settings.ROOT)
            sizes[file] = entry["inches"]
    for file in sorted(sizes):
        width, height = sizes[file]
        print(f"{file}: {width:.2f} x {height:.2f} in")


def _show_runs() -> int:
    """Print the runs with the summaries of their notebooks, and return the exit status 0."""
    names = settings.runs()
    if not names:
        print("no run is there yet: make all")

    for name in names:
        print(f"{name}:")
        for file in _summary_files(name):
            for line in file.read_text("utf8").splitlines():
                print(f"  {line}")
        for notebook, start in settings.started_in_lab(name).items():
            changes = [f"{parameter}={value}" for parameter, value in start["changed"].items()]
            how = ", ".join(changes) or "as the notebook has it"
            print(f"  {notebook}: started in JupyterLab, {how}")
    if names:
        print(WHERE_RESULTS_ARE)
    return 0


def plan(values: dict[str, str]) -> NoReturn:
    """Replace this program with the module that plans a run.

    STUDY and RATE come from the environment.

    Parameters
    ----------
    values : dict of str
        The variables that were set on make's command line.
    """
    study = os.environ.get("STUDY", "")
    options = settings.command_options(values)
    if study:
        options = [*settings.chosen_studies(study), *options]
    if os.environ.get("RATE"):
        options += ["--rate", os.environ["RATE"]]
    # With several notebooks, each takes only the parameters that its cell has.
    if not study:
        options.append("--shared")
    replace_program("plan", *options)


def view(values: dict[str, str]) -> NoReturn:
    """Replace this program with the viewer of stored replies.

    STUDY, SAMPLES and BUNDLE come from the environment.

    Parameters
    ----------
    values : dict of str
        The variables that were set on make's command line.
    """
    options = []
    if os.environ.get("STUDY"):
        options += settings.chosen_studies(os.environ["STUDY"])
    options += settings.command_options(values)
    options += ["--run", settings.run_name()]

    for name in ("SAMPLES", "BUNDLE"):
        if os.environ.get(name):
            options += [f"--{name.lower()}", os.environ[name]]
    replace_program("view", *options)


def prepare(target: str, values: dict[str, str]) -> None:
    """Check the parameters, then go on in the environment that the run needs.

    The parameters are checked first because installing an environment can take long.

    Parameters
    ----------
    target : str
        "all", "ask", "bench-gpu" or the number of a notebook.
    values : dict of str to str
        The variables that were set on make's command line.

    Raises
    ------
    Refused
        For the first invalid parameter, in the words of the notebook that takes the parameter.
    """
    from ingroup.commands import environments

    # The environment that runs this program is enough for the default run.
    if not settings.command_line_parameters(values):
        return

    from ingroup.commands.run_parameters import command_line, parameters_of
    from ingroup.tables import InputError

    options = command_line("").parse_args(settings.command_options(values))
    options.shared = target == "all"
    if options.shared:
        names = settings.first_notebooks()
    else:
        names = settings.asked_notebooks([target], os.environ.get("STUDY", ""))

    try:
        for name in names:
            parameters_of(name, options)
        environments.prepare(values)
    except InputError as error:
        raise settings.Refused(str(error)) from error


def call(target: str) -> int:
    """Run a target of the Makefile.

    Parameters
    ----------
    target : str
        A target of the Makefile.

    Returns
    -------
    int
        The exit status. Targets that become another program do not return.

    Raises
    ------
    Refused
        For an invalid value, and for an unknown target.
    """
    values = settings.given_variables()
    settings.check([target])
    run = settings.run_name()
    is_run = target == "all" or target.isdigit()
    if is_run or target in ("ask", "bench-gpu"):
        prepare(target, values)

    if is_run:
        return _run_target(target, values)
    if target == "compare":
        return compare()
    if target == "figures":
        return _draw_figures(run, values)
    if target == "runs":
        return _show_runs()
    # A table that was changed by hand must not get into a document.
    if target in ("report", "appendix", "word") and not _make_again(run):
        return 1
    _go_on(target, values)


def _go_on(target: str, values: dict[str, str]) -> NoReturn:
    """Replace this program with the program of a target. Raise Refused for an unknown target."""
    if target == "report":
        replace_program("report", "--run", settings.run_name())
    # `make word` has added pandoc by now, and all else is the same.
    if target in ("appendix", "word"):
        replace_program("appendix", "--run", settings.run_name())
    if target == "plan":
        plan(values)
    if target == "view":
        view(values)

    if target == "ask":
        # `settings.check` has refused an ask without a study.
        (study,) = settings.chosen_studies(os.environ["STUDY"])
        replace_program("run", study, "--ask", *settings.command_options(values))
    if target == "bench-gpu":
        os.execv(sys.executable, [sys.executable, "bench/gpu.py"])
    raise settings.Refused(f"there is no target {target}: make help lists them")


def main() -> int:
    """Run the target that the command line names.

    Returns
    -------
    int
        The exit status: that of the target, 2 for an invalid value, or 130 for a stopped target.
    """

    # A terminal signals all programs, a scheduler only this one. Only the scheduler's interrupt has
    # a number.
    def stopped(number: int, frame: object) -> None:
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGTERM, stopped)
    os.chdir(settings.ROOT)
    try:
        return call(sys.argv[1])
    except KeyboardInterrupt as signalled:
        processes.stop(signalled=not signalled.args)
        return 130
    except settings.Refused as refused:
        print(refused, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
