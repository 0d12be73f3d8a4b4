"""Run a notebook with papermill, after a check of its parameters.

The executed copy is kept only if the notebook comes to its end. The option ``--redraw`` only draws
the figures, byte for byte, from the tables of the last run. The option ``--again`` takes the
parameters of the last run. The option ``--ask`` asks and stores the prompts, and runs no cell.
"""

import argparse
import io
import logging
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ingroup import models, paths
from ingroup.commands import digests, kernel, settings
from ingroup.commands.executed import as_typed, introduce, leave_calibrants_out, tidy
from ingroup.commands.run_parameters import (
    command_line,
    defaults,
    folder_of,
    jobs_of,
    parameters_of,
    study_of,
)
from ingroup.inference import EngineError, Job, StoreError, ask, count_stored, make_engine, stored
from ingroup.inference.cost import budget_of, money
from ingroup.inference.job import cost_stored
from ingroup.tables import InputError, writing

# How papermill starts a notebook.
KERNEL_OPTIONS = {
    # The name only says which language it is: ingroup.commands.kernel starts it.
    "kernel_name": "python3",
    "cwd": str(paths.ROOT),
    "progress_bar": False,
    # The kernel would warn of a connection that stays on the machine.
    "extra_arguments": ["--IPKernelApp.log_level=CRITICAL"],
    "start_timeout": 600,  # seconds
}
DRAWING_TAGS = {"setup", "parameters", "figure"}  # tags of the cells that need no answers
# Errors of a cell whose message is a sentence for the user; others are shown with their traceback.
ERRORS_WITH_SENTENCE = {"InputError", "Unfinished", "EngineError", "StoreError"}


class Progress(io.TextIOBase):
    """A notebook's steps and progress bars on standard error.

    Parameters
    ----------
    head : str
        The beginning of each line: the notebook's name.
    alone : bool
        Whether no other notebook writes at the same time. Only then, and on a terminal, a bar
        moves. Elsewhere its state is a line now and then.
    """

    def __init__(self, head: str, alone: bool):
        self.head = head
        self.moving = alone and sys.stderr.isatty()
        # These are the seconds from one state of a bar to the next.
        seconds = "1" if self.moving else "10"
        # The kernel inherits the environment, and its bars their pace.
        os.environ.setdefault("TQDM_MININTERVAL", seconds)

    def line(self, text: str) -> None:
        """Write a line to standard error.

        Parameters
        ----------
        text : str
            The text behind the head of the line.
        """
        print(f"{self.head}: {text}", file=sys.stderr, flush=True)

    def write(self, text: str) -> int:
        """Pass on the output of the kernel.

        Parameters
        ----------
        text : str
            One or more lines, or states of a progress bar.

        Returns
        -------
        int
            The number of characters, as of any stream.
        """
        if self.moving:
            print(text, end="", file=sys.stderr, flush=True)
            return len(text)

        # Elsewhere than on a terminal each state of a bar becomes a line, as in a log.
        for line in re.split("[\r\n]+", text):
            if line.strip():
                self.line(line)
        return len(text)

    def step(self, cell: Any, cell_index: int) -> None:
        """Say which section of the notebook begins.

        Parameters
        ----------
        cell : NotebookNode
            The cell that runs next.
        cell_index : int
            Its position in the notebook, which is not used.
        """
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            heading, *_ = cell.source.split("\n")
            self.line(heading.removeprefix("## "))


def given_files(parameters: Mapping[str, Any]) -> set[str]:
    """Return a pattern for each of the user's files and folders that the parameters name.

    Parameters
    ----------
    parameters : mapping
        The parameters of a run. A model may be a folder, ``<folder>@<engine>``.

    Returns
    -------
    set of str
        Patterns from the project's root. A folder that contains the project is left out.
    """
    texts = []
    for value in parameters.values():
        texts += value if isinstance(value, list) else [value]

    patterns = set()
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            continue

        # A parameter may be a folder by itself, or a model's folder with its engine behind it.
        name, _, engine = text.rpartition("@")
        path = os.path.join(paths.ROOT, name if engine in models.ENGINES else text)
        pattern = escape(digests.path_in_records(Path(path)))
        if os.path.isfile(path):
            patterns.add(pattern)
        # A folder around the project would make every file an input.
        elif os.path.isdir(path) and not paths.ROOT.is_relative_to(os.path.abspath(path)):
            patterns.add(f"{pattern}/**")
    return patterns


def answer_files(notebook: str, parameters: dict[str, Any]) -> set[str]:
    """Return patterns for the stored answers that a notebook reads, without recorded answers.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    parameters : dict
        The parameters of its run.

    Returns
    -------
    set of str
        One pattern per job and address, also where nothing is stored yet. No pattern for a notebook
        that asks nothing. For the engine "stored" the pattern has the answers of any engine. There
        is also a pattern for weights that could give the answers that are not recorded, even where
        the weights are missing.
    """
    try:
        jobs = jobs_of(notebook, parameters)
    except KeyError:  # no study, or none of its parameters
        return set()

    patterns = set()
    for job in jobs:
        # `job.folder` may be a recording's, which doit knows as a file of git.
        for address in job.addresses:
            folder = (job.root or paths.RESPONSES) / address
            pattern = escape(digests.path_in_records(folder))
            if job.engine == models.STORED:
                pattern = pattern.replace(f"@{models.STORED}/", "@*/")
            patterns.add(f"{pattern}/*")

        # After `make model` the same run would ask what it left out before.
        if job.engine == models.STORED and job.wider is not None:
            patterns.add(escape(digests.path_in_records(paths.MADE / job.model / "config.json")))
    return patterns


def written_results(files: Iterable[Path], run: str) -> list[Path]:
    """Select the tables and figures of a run among some files.

    Parameters
    ----------
    files : iterable of Path
        Absolute paths of files.
    run : str
        The name of the run.

    Returns
    -------
    list of Path
        The `files` that lie in the run's folders of tables and figures.
    """
    tables = paths.run_folder(run) / "tables"
    figures = paths.figure_folder(run)
    outputs = []
    for file in files:
        if file.is_relative_to(tables) or file.is_relative_to(figures):
            outputs.append(file)
    return outputs


def execute(
    notebook: str, parameters: dict[str, Any], progress: Progress, redraw: bool = False
) -> Path | None:
    """Run a notebook from top to bottom and move the executed copy into its place.

    Parameters
    ----------
    notebook : str
        The notebook's name.
    parameters : dict
        Its checked parameters, including ``RUN``.
    progress : Progress
        The output for its steps and a failure.
    redraw : bool
        Run only the cells with one of the tags `DRAWING_TAGS`, and keep no copy.

    Returns
    -------
    Path or None
        The executed copy, `ingroup.paths.executed`, or None if a cell failed or the kernel died.

    Notes
    -----
    A notebook that does not come to its end leaves no copy, and in a new run no folder. Beside the
    copy stands a record of the files that the notebook wrote and read
    (:mod:`ingroup.commands.digests`).
    """
    # These and papermill take seconds to import; a wrong parameter is refused without them.
    import nbformat
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    run = parameters["RUN"]
    target = paths.executed(notebook, run)
    folder = target.parent.parent
    # The default run's folder is build/ itself, which holds answers, too.
    is_new = folder != paths.BUILD and not folder.exists()
    target.parent.mkdir(parents=True, exist_ok=True)

    unfinished = target.with_name(f"{notebook}.unfinished.ipynb")
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    # A test makes sure that cells with these tags use no names of other cells.
    if redraw:
        book.cells = [
            cell for cell in book.cells if DRAWING_TAGS & set(cell.metadata.get("tags", ()))
        ]
    else:  # the record is about the tables of the last run, which this run replaces
        digests.record_file(target).unlink(missing_ok=True)
    introduce(book, parameters, defaults(notebook))
    if notebook == "00_map":
        # The map takes no MODELS, because it is about the models of its run.
        from ingroup.commands.overview import has_calibrant

        if not has_calibrant(run):
            leave_calibrants_out(book)

    # States are taken before the notebook runs: a file that is edited meanwhile counts as changed.
    given = digests.file_states(given_files(parameters))
    notes_folder = TemporaryDirectory()
    notes = Path(notes_folder.name) / "notes"
    is_whole = False
    try:
        executed = _run_kernel(book, unfinished, parameters, progress, notes)
        if not redraw:
            nbformat.write(executed, unfinished)
            # Answers' states are taken afterwards: the notebook may have asked for some itself.
            answers = digests.file_states(answer_files(notebook, parameters))
            os.replace(unfinished, target)
            written = written_results(kernel.written_files(notes), run)
            digests.write(target, written, given | answers)
        is_whole = True
    except PapermillExecutionError as error:
        progress.line(_failure(error, notebook, run, redraw))
    except DeadKernelError:
        progress.line(
            "the kernel died, which is mostly a lack of memory; answers that are stored stay "
            "(a smaller BATCH_SIZE needs less)"
        )
    finally:
        notes_folder.cleanup()
        unfinished.unlink(missing_ok=True)
        # No other notebook of this new run is there, so nothing is lost.
        if is_new and not any(target.parent.iterdir()):
            shutil.rmtree(folder)
    return target if is_whole else None


def _failure(error: Any, notebook: str, run: str, redraw: bool) -> str:
    """Say which cell of a notebook failed and why, if needed below the traceback."""
    # Where only figures are drawn, a cell that was left out would have written a missing table.
    lacks_table = redraw and "File" in error.ename
    sentence = f"cell {error.exec_count}: {error.ename}: {error.evalue}"
    if lacks_table:
        return f"{sentence}; {_who_writes_tables(notebook, run)}"
    # The message says all; a traceback above it would bury it.
    if error.ename in ERRORS_WITH_SENTENCE:
        return sentence
    return "\n".join([*error.traceback, sentence])


def _who_writes_tables(notebook: str, run: str) -> str:
    """Say how a notebook's tables are written: by make, or by the notebook's copy in JupyterLab."""
    if paths.started(notebook, run).exists():
        return "its copy in JupyterLab writes its tables: run it to its end"
    return f"make {notebook[:2]} writes its tables"


def _run_kernel(
    book: Any, unfinished: Path, parameters: dict[str, Any], progress: Progress, notes: Path
) -> Any:
    """Execute a notebook in a kernel that notes the files it writes. Return the executed copy."""
    import papermill

    options = {
        "stderr_file": progress,
        "on_cell_start": progress.step,
        "kernel_manager_class": kernel.manager_class(notes),
        **KERNEL_OPTIONS,
    }
    try:
        executed = papermill.execute_notebook(book, str(unfinished), parameters, **options)
    except RuntimeError:  # a failing cell raises another kind
        # Kernels that start side by side can draw the same port; a second try is enough.
        executed = papermill.execute_notebook(book, str(unfinished), parameters, **options)

    tidy(executed, parameters)
    return executed


def ask_notebook(notebook: str, parameters: dict[str, Any]) -> str:
    """Ask the jobs of a study's notebook and store the answers.

    Parameters
    ----------
    notebook : str
        The name of a study's first notebook.
    parameters : dict
        Its checked parameters.

    Returns
    -------
    str
        A line on the number of answers, and a line on their cost.
    """
    jobs = jobs_of(notebook, parameters)
    settled = [job for job in jobs if job.settled]
    # The answers to some jobs are texts that the prompts of others need.
    if len(settled) < len(jobs):
        ask(settled, parameters)
        jobs = jobs_of(notebook, parameters)
    done = ask(jobs, parameters)

    trials = 0
    failed = 0
    for job in done:
        trials += len(job.design)
        failed += len(stored(job).state().failed)
    answered = (
        f"{trials - failed:,} of {trials:,} prompts are answered and stored, {failed:,} failed"
    )
    return f"{answered}\n{_cost_line(done, parameters)}"


def _cost_line(jobs: list[Job], parameters: dict[str, Any]) -> str:
    """State the tokens that this run's prompts and replies took, and their cost with a server."""
    budget = budget_of(parameters)
    took = (
        f"this run took {budget.prompt_tokens:,} prompt tokens and {budget.output_tokens:,} "
        "reply tokens"
    )
    # A model on this machine costs no money.
    if not any(job.engine in models.SERVERS for job in jobs):
        return took

    if not budget.prices.are_given:
        return f"{took}; prices not given: set PRICE_IN and PRICE_OUT (per million tokens)"

    stored_cost = money(cost_stored(jobs, parameters))
    return f"{took}, and cost {budget.bill()}; all that is stored cost {stored_cost}"


def _stop(*_: Any) -> None:
    """Interrupt the program, without the tracebacks that its shutdown would log."""
    logging.disable()
    raise KeyboardInterrupt


def _take_signals() -> None:
    """Stop the run at a scheduler's signal, and at Ctrl-C unless this program ignores Ctrl-C."""
    signal.signal(signal.SIGTERM, _stop)
    # A script's shell lets what it starts in the background ignore Ctrl-C, make included. A
    # notebook alone must not stop then, or make would go on with the next one.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop)


@contextmanager
def _alone(notebook: str, run: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of a run's notebook, so that only one program at a time executes the notebook.

    Another program may still hold the lock, because it goes on when its make is killed.
    """
    from filelock import FileLock, Timeout

    folder = paths.BUILD / "digests"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f"{run}-{notebook}.lock")
    # The first try does not wait, so that a wait is announced.
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.line("another program executes this notebook: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _head(options: argparse.Namespace) -> str:
    """Name a notebook as "10_empathy_gap", or "[2/19] 10_empathy_gap" where all notebooks run."""
    notebook = options.notebook
    if not options.shared:
        return notebook
    names = settings.notebooks()
    position = names.index(notebook) + 1
    return f"[{position}/{len(names)}] {notebook}"


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the checked parameters of the command line, or the parameters of the last run."""
    if not (options.redraw or options.again):
        parameters = parameters_of(options.notebook, options)
        if _shows_a_named_run(options, parameters):
            parameters["MODELS"] = _models_of(options.run) or parameters["MODELS"]
        # This refuses a cost limit without prices, before anything runs.
        budget_of(parameters)
        return parameters

    # This takes seconds to import, and only some commands need it.
    from ingroup.notebook import parameters_of_run

    of_last_run = parameters_of_run(options.notebook, options.run)
    if not of_last_run:
        raise InputError(f"{options.notebook} has not run in {options.run!r}: make all first")
    return of_last_run


def _shows_a_named_run(options: argparse.Namespace, parameters: Mapping[str, Any]) -> bool:
    """Tell whether a notebook takes the models of a named run that it reads.

    Such a notebook asks nothing but has a parameter MODELS, which `--set` did not give.
    """
    asks_nothing = study_of(options.notebook) is None
    shows_models = "MODELS" in parameters
    names_set = [assignment.partition("=")[0] for assignment in options.set]
    is_named_run = options.run != paths.DEFAULT_RUN
    return asks_nothing and shows_models and is_named_run and "MODELS" not in names_set


def _models_of(run: str) -> list[str]:
    """List the entries of ``MODELS`` in the study notebooks of a run, each once."""
    # This takes seconds to import, and only some commands need it.
    from ingroup.notebook import parameters_of_run

    entries: dict[str, None] = {}
    for notebook in paths.executed_notebooks(run):
        if study_of(notebook):
            parameters = parameters_of_run(notebook, run) or {}
            entries |= dict.fromkeys(parameters.get("MODELS", ()))
    return list(entries)


def _check_servers(parameters: dict[str, Any]) -> None:
    """Refuse a server without its key, unless some answers of servers are stored."""
    # Stored answers may be all that the run needs; where they are not, the notebook refuses.
    if "READING" not in parameters or any(paths.RESPONSES.glob("*/*/*@inspect")):
        return
    for model in models.entries(parameters):
        if model.engine == "inspect":
            make_engine("inspect", model.name, base_url=parameters["BASE_URL"]).close()


def _kept_answers(notebook: str, parameters: dict[str, Any]) -> str:
    """State how many answers a stopped run keeps. Return "" for a notebook that asks nothing."""
    # The jobs are unknown where the notebook is no study's, or before its parameters are known.
    with suppress(KeyError, InputError):
        return f"{count_stored(jobs_of(notebook, parameters)):,} answers kept; "
    return ""


def _model_sentences(tables: Path) -> list[str]:
    """Read the map's sentence on each model, which counts the verdicts on the papers' claims."""
    if not (tables / "found.csv").exists():
        return []
    # This takes seconds to import, and only some commands need it.
    from ingroup.figures import read_table

    sentences = read_table(tables, "found")
    return sentences.sentence[sentences.notebook == "60_synthesis"].tolist()


def _summary(options: argparse.Namespace, parameters: dict[str, Any], seconds: float) -> str:
    """Summarise a run: its seconds, its changed parameters and the verdicts on its numbers."""
    notebook = options.notebook
    # Every run has a name of its own, which is no change of a parameter.
    usual = defaults(notebook) | {"RUN": options.run}
    changed = []
    for name, value in parameters.items():
        if value != usual[name]:
            changed.append(f"{name}={as_typed(name, value)}")
    how = ", ".join(changed) or "as the demo profile has it"
    lines = [f"{notebook}: {seconds:.0f} s, {how}"]

    tables = paths.run_folder(options.run) / "tables" / folder_of(notebook)
    if notebook == "00_map":
        lines += [f"  {sentence}" for sentence in _model_sentences(tables)]
    if any(tables.glob("*_versus_here.csv")):
        # This takes seconds to import, and only some commands need it.
        from ingroup.commands.report import count_verdicts

        # Tables of an earlier run in the same folder do not count.
        started = time.time() - seconds
        lines += [f"  {line}" for line in count_verdicts(tables, started)]
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> int:
    """Run, redraw or ask the notebook that the command line names.

    Parameters
    ----------
    arguments : list of str, optional
        The command line; by default that of this program.

    Returns
    -------
    int
        The exit status: 0 when it was done, 1 when a cell failed, 2 for a wrong parameter, 130 when
        it was stopped.
    """
    parser = command_line(__doc__)
    parser.add_argument("notebook")
    parser.add_argument("--ask", action="store_true", help="ask and store, run nothing")
    parser.add_argument("--redraw", action="store_true", help="draw the figures of its last run")
    parser.add_argument("--again", action="store_true", help="with its last run's parameters")
    options = parser.parse_args(arguments)
    notebook = options.notebook
    started = time.monotonic()
    _take_signals()

    progress = Progress(_head(options), alone=not options.shared)
    parameters = {}
    try:
        parameters = _parameters(options)
        if options.ask:
            print(ask_notebook(notebook, parameters))
            return 0
        if not options.redraw:
            _check_servers(parameters)
        with writing(paths.run_folder(options.run)), _alone(notebook, options.run, progress):
            target = execute(notebook, parameters, progress, options.redraw)
    except (InputError, EngineError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept_answers = _kept_answers(notebook, parameters)
        progress.line(f"stopped; {kept_answers}the same line goes on")
        return 130

    if target is None:
        return 1
    if not options.redraw:
        seconds = time.monotonic() - started
        progress.line(f"done in {seconds:.0f} s")
        # This file is also the mark of a notebook that came to its end, by which `settings.runs`
        # finds runs.
        summary = _summary(options, parameters, seconds)
        target.with_suffix(".txt").write_text(summary, "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
