"""What make calls: ``python -m ingroup.commands.cli <target>``.

The targets read what is set on the command line from :mod:`ingroup.commands.settings`.
"""

import csv
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ingroup.commands import processes, settings

TWO = 2  # notebooks at a time; a model of your own may fill the machine alone
KEPT = {"BACKEND": {"kept": "ingroup.commands.decide:Kept"}, "GLOBAL": {"backend": "kept"}}


def become(module: str, *options: str) -> None:
    """Run a module of the commands in place of this program."""
    os.execv(sys.executable, [sys.executable, "-m", f"ingroup.commands.{module}", *options])


def run_notebooks(values: dict[str, str]) -> int:
    """Run the notebooks that are out of date; 0 when they are not any more."""
    from doit.doit_cmd import DoitMain
    from filelock import FileLock, Timeout

    at_once = TWO if not settings.parameters(values) else 1
    options = ["--process", str(at_once), "--parallel-type", "thread"]
    run = settings.run_name()
    folder = settings.BUILD / "digests"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{run}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"another make works on the run {run}: waiting for it", file=sys.stderr)
        lock.acquire()
    with lock:
        return DoitMain(config_filenames=(), extra_config=KEPT).run(["run", *options])


def summary(number: str) -> str:
    """Join what the notebooks of a run said at their end, of one number or of all."""
    folder = settings.run_folder(settings.run_name()) / "notebooks"
    files = sorted(folder.glob(f"{number}*.txt"))
    return "".join(file.read_text("utf8") for file in files).rstrip("\n")


def compare() -> int:
    """Run the notebook that compares models, and print where two of them differ."""
    status = run_notebooks(settings.given())
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

    page = folder / "report" / f"{settings.COMPARISON}.html"
    print(f"Page: {os.path.relpath(page)}")
    return 0


def rows_of(file: Path) -> list[dict[str, str]]:
    """Read the rows of a table; none where the file is not there."""
    if not file.exists():
        return []
    with file.open(encoding="utf8") as stream:
        return list(csv.DictReader(stream))


def run_target(target: str, values: dict[str, str]) -> int:
    """Run all notebooks, or those of a number, and print how their numbers came out."""
    status = run_notebooks(values)
    if status != 0:
        return status

    run = settings.run_name()
    folder = os.path.relpath(settings.run_folder(run))
    is_default = run == settings.DEFAULT_RUN
    figures = "figures/" if is_default else f"{folder}/figures/"
    places = f"{figures}   tables: {folder}/tables/"
    if target == "all":
        print(f"\n{summary('')}\nReport: {folder}/report/index.html   figures: {places}")
    else:
        print(summary(f"{target}_"))
        if not is_default:
            print(f"Figures: {places}")
    return 0


def make_again(run: str) -> bool:
    """Run again, as they ran, the notebooks whose tables or figures were changed by hand."""
    from ingroup.commands import digests

    for text in sorted(settings.run_folder(run).glob("notebooks/[0-9]*.txt")):
        copy = text.with_suffix(".ipynb")
        edited = digests.edited(copy)
        if not edited:
            continue
        digests.say_changed(text.stem, edited, "written")
        command = [sys.executable, "-m", "ingroup.commands.run", text.stem, "--run", run, "--again"]
        if not processes.start(command):
            return False
    return True


def draw_figures(run: str, values: dict[str, str]) -> int:
    """Draw the figures of the notebooks that ran, or one of them for a paper."""
    if not make_again(run):
        return 1
    figures = values.get("ONLY", "").split()
    if figures:
        for name in sorted(settings.OF_A_FIGURE | {"MODELS"}):
            os.environ[f"FIGURE_{name}"] = values.get(name, "")
        os.environ["FIGURE_OUT"] = values.get("OUT") or "paper"

    commands = []
    for file in sorted(settings.run_folder(run).glob("notebooks/[0-9]*_*.txt")):
        studies = [figure.partition("/")[0] for figure in figures]
        if not figures or any(study in file.stem for study in studies):
            command = [sys.executable, "-m", "ingroup.commands.run", file.stem, "--run", run]
            commands.append([*command, "--redraw"])
    pool = ThreadPoolExecutor(TWO)
    try:
        drawn = list(pool.map(processes.start, commands))
    finally:  # after a signal no further one is drawn
        pool.shutdown(wait=False, cancel_futures=True)
    return 0 if all(drawn) else 1


def show_runs() -> int:
    """Print the runs that are there: what each changed, how its numbers came out."""
    names = settings.runs()
    if not names:
        print("no run is there yet: make all")
    for name in names:
        print(f"{name}:")
        for file in sorted(settings.run_folder(name).glob("notebooks/*.txt")):
            for line in file.read_text("utf8").splitlines():
                print(f"  {line}")
    return 0


def plan(values: dict[str, str]) -> None:
    """Become the program that plans a run."""
    study = os.environ.get("STUDY", "")
    options = [*settings.chosen_studies(study), *settings.command_options(values)]
    if os.environ.get("RATE"):
        options += ["--rate", os.environ["RATE"]]
    if not study:
        options.append("--shared")
    become("plan", *options)


def view(values: dict[str, str]) -> None:
    """Become the viewer of stored replies."""
    study = os.environ.get("STUDY", "")
    options = settings.chosen_studies(study) if study else []
    options = [*options, *settings.command_options(values), "--run", settings.run_name()]
    for name in ("SAMPLES", "BUNDLE"):
        if os.environ.get(name):
            options += [f"--{name.lower()}", os.environ[name]]
    become("view", *options)


def prepare(target: str, values: dict[str, str]) -> None:
    """Check the values, then go on in the environment that a run needs: it may be large."""
    from ingroup.commands import environments

    if not settings.parameters(values):
        return

    from ingroup.commands.parameters import command_line, parameters_of
    from ingroup.tables import InputError

    options = command_line("").parse_args(settings.command_options(values))
    options.shared = target == "all"
    names = settings.asked_notebooks([target], os.environ.get("STUDY", ""))
    if options.shared:
        names = settings.first_notebooks()
    try:
        for name in names:
            parameters_of(name, options)
        environments.prepare(values)
    except InputError as error:
        raise settings.Refused(str(error)) from error


def call(target: str) -> int:
    """Do what a target says; return the exit status."""
    values = settings.given()
    settings.check([target])
    run = settings.run_name()
    if target in ("all", "ask", "bench-gpu") or target.isdigit():
        prepare(target, values)

    if target == "all" or target.isdigit():
        return run_target(target, values)
    if target == "compare":
        return compare()
    if target == "figures":
        return draw_figures(run, values)
    if target == "runs":
        return show_runs()
    if target in ("report", "appendix"):
        if not make_again(run):
            return 1
        become(target, "--run", run)
    if target == "plan":
        plan(values)
    if target == "view":
        view(values)
    if target == "ask":
        (study,) = settings.chosen_studies(os.environ["STUDY"])
        become("run", study, "--ask", *settings.command_options(values))
    if target == "bench-gpu":
        os.execv(sys.executable, [sys.executable, "bench/gpu.py"])
    raise settings.Refused(f"there is no target {target}: make help lists them")


def main() -> int:
    """Command line; 2 for what cannot work, 130 when it was stopped."""

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
