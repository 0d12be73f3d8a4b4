"""Run a notebook with papermill: check its parameters first, keep its result only if whole.

With ``--redraw`` only its figures are drawn, from the tables of its last run, byte for byte. With
``--again`` it runs with the parameters of its last run. With ``--ask`` its prompts are asked and
stored without it.
"""

import io
import logging
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ingroup import models, paths
from ingroup.commands import digests, kernel
from ingroup.commands.parameters import calls_of, command_line, defaults, folder_of, parameters_of
from ingroup.inference import Call, EngineError, StoreError, ask, kept, make_engine, stored
from ingroup.inference.call import cost_stored
from ingroup.inference.cost import budget_of, money
from ingroup.tables import InputError, writing

# How papermill starts a notebook; its kernel would warn of a connection that stays on the machine.
# The name only says which language it is: ingroup.commands.kernel starts it.
KERNEL = {"kernel_name": "python3", "cwd": str(paths.ROOT), "progress_bar": False}
KERNEL |= {"extra_arguments": ["--IPKernelApp.log_level=CRITICAL"], "start_timeout": 600}
DRAWING = {"setup", "parameters", "figure"}  # tags of the cells that need no answers


class Progress(io.TextIOBase):
    """A notebook's steps and bars on standard error; beside others lines that begin with its name,
    and a bar is one now and then."""

    def __init__(self, head: str, alone: bool):
        self.head, self.moving = head, alone and sys.stderr.isatty()
        seconds = "1" if self.moving else "10"  # from one state of a bar to the next
        os.environ.setdefault("TQDM_MININTERVAL", seconds)  # the kernel inherits it

    def line(self, text: str) -> None:
        print(f"{self.head}: {text}", file=sys.stderr, flush=True)

    def write(self, text: str) -> None:
        """Take what the kernel wrote."""
        if self.moving:
            print(text, end="", file=sys.stderr, flush=True)
        for said in () if self.moving else filter(str.strip, re.split("[\r\n]+", text)):
            self.line(said)

    def step(self, cell: Any, cell_index: int) -> None:
        """Say which section of the notebook begins."""
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            self.line(cell.source.split("\n")[0].removeprefix("## "))


def given_files(parameters: Mapping[str, Any]) -> set[str]:
    """Return a pattern for each file or folder of the user's own that the parameters name."""
    texts = []
    for value in parameters.values():
        texts += value if isinstance(value, list) else [value]

    patterns = set()
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            continue
        name, _, engine = text.rpartition("@")
        place = os.path.join(paths.ROOT, name if engine in models.ENGINES else text)
        pattern = escape(digests.name_of(Path(place)))
        if os.path.isfile(place):
            patterns.add(pattern)
        elif os.path.isdir(place) and not paths.ROOT.is_relative_to(os.path.abspath(place)):
            patterns.add(f"{pattern}/**")
    return patterns


def answer_files(notebook: str, parameters: dict[str, Any]) -> set[str]:
    """Return patterns for the stored answers that a notebook reads, recorded ones left out."""
    try:
        calls = calls_of(notebook, parameters)
    except (ImportError, KeyError):  # it asks nothing, or not what a study's design says
        return set()

    patterns = set()
    for call in calls:
        place = escape(digests.name_of((call.root or paths.RESPONSES) / call.address))
        if call.engine == models.STORED:
            place = place.replace(f"@{models.STORED}/", "@*/")
        patterns.add(f"{place}/*")
    return patterns


def results(files: Iterable[Path], run: str) -> list[Path]:
    """Keep the tables and figures of a run among some files."""
    folders = (paths.run_folder(run) / "tables", paths.figure_folder(run))
    return [file for file in files if any(file.is_relative_to(folder) for folder in folders)]


def execute(
    notebook: str, parameters: dict[str, Any], progress: Progress, redraw: bool = False
) -> Path | None:
    """Run a notebook from top to bottom and move the executed copy to `ingroup.paths.executed`.

    To `redraw` its figures only its cells with one of the tags `DRAWING` run, and no copy is kept.
    Where a cell fails or the kernel dies it says so, and returns None: what does not come to its
    end leaves no copy, and of a run that is new no folder. Beside the copy it records what the
    notebook wrote and read (:mod:`ingroup.commands.digests`).
    """
    import nbformat  # with papermill seconds, for which a wrong parameter does not wait
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    target = paths.executed(notebook, parameters["RUN"])
    folder, unfinished = target.parent.parent, target.with_name(f"{notebook}.unfinished.ipynb")
    new = folder != paths.BUILD and not folder.exists()  # answers are in build/, too
    target.parent.mkdir(parents=True, exist_ok=True)
    book = nbformat.read(paths.NOTEBOOKS / f"{notebook}.ipynb", as_version=4)
    if redraw:
        book.cells = [cell for cell in book.cells if DRAWING & {*cell.metadata.get("tags", ())}]
    else:  # its tables are no longer those of the last run
        digests.record(target).unlink(missing_ok=True)
    asked = book, str(unfinished), parameters
    given = digests.states(given_files(parameters))
    notes_folder = TemporaryDirectory()
    notes = Path(notes_folder.name) / "notes"
    told = {"stderr_file": progress, "on_cell_start": progress.step, **KERNEL}
    told["kernel_manager_class"] = kernel.manager(notes)
    try:
        try:
            whole = papermill.execute_notebook(*asked, **told)
        except RuntimeError:  # a failing cell raises another kind
            # Kernels that start side by side can draw the same port; a second try is enough.
            whole = papermill.execute_notebook(*asked, **told)
        for output in (output for cell in whole.cells for output in cell.get("outputs", ())):
            if output.get("name") == "stderr":  # bars that moved for hours are no log
                output.text = re.sub(r"[^\n]*\r", "", output.text)
        if not redraw:
            nbformat.write(whole, unfinished)
            answers = digests.states(answer_files(notebook, parameters))
            os.replace(unfinished, target)
            digests.write(
                target, results(kernel.written(notes), parameters["RUN"]), given | answers
            )
        return target
    except PapermillExecutionError as error:
        sentence = error.ename in ("InputError", "EngineError", "StoreError")  # else its traceback
        trace = "" if sentence else "\n".join([*error.traceback, ""])
        remedy = f"; make {notebook[:2]} writes its tables" * (redraw and "File" in error.ename)
        progress.line(f"{trace}cell {error.exec_count}: {error.ename}: {error.evalue}{remedy}")
    except DeadKernelError:
        why = "the kernel died, which is mostly a lack of memory; answers that are stored stay"
        progress.line(f"{why} (a smaller BATCH_SIZE needs less)")
    finally:
        notes_folder.cleanup()
        unfinished.unlink(missing_ok=True)
        if new and not any(target.parent.iterdir()):  # no other notebook of the run is there
            shutil.rmtree(folder)
    return None


def answer(notebook: str, parameters: dict[str, Any]) -> str:
    """Ask and store what a study's notebook would ask; a line on the answers, one on their cost."""
    calls = calls_of(notebook, parameters)
    if not all(call.settled for call in calls):  # texts that come first
        ask([call for call in calls if call.settled], parameters)
        calls = calls_of(notebook, parameters)
    done = ask(calls, parameters)
    trials = sum(len(call.design) for call in done)
    failed = sum(len(stored(call).state().failed) for call in done)
    answered = (
        f"{trials - failed:,} of {trials:,} prompts are answered and stored, {failed:,} failed"
    )
    return f"{answered}\n{cost_line(done, parameters)}"


def cost_line(calls: list[Call], parameters: dict[str, Any]) -> str:
    """What this run's replies took, in tokens and, where a server gave some, in money."""
    budget = budget_of(parameters)
    took = (
        f"this run took {budget.prompt_tokens:,} prompt tokens and {budget.output_tokens:,} "
        "reply tokens"
    )
    if not any(call.engine in models.SERVERS for call in calls):
        return took

    if not budget.prices.are_given:
        return f"{took}; prices not given: set PRICE_IN and PRICE_OUT (per million tokens)"

    stored_cost = money(cost_stored(calls, parameters))
    return f"{took}, and cost {budget.bill()}; all that is stored cost {stored_cost}"


def _stop(*_: Any) -> None:
    """When stopped: what is torn down would log tracebacks, also after the last sentence."""
    logging.disable()
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when it was done, 2 for a wrong parameter, 1 when a cell failed."""
    parser = command_line(__doc__)
    parser.add_argument("notebook")
    parser.add_argument("--ask", action="store_true", help="ask and store, run nothing")
    parser.add_argument("--redraw", action="store_true", help="draw the figures of its last run")
    parser.add_argument("--again", action="store_true", help="with its last run's parameters")
    options, started = parser.parse_args(arguments), time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal's, a scheduler's
        signal.signal(number, _stop)
    notebook, names = options.notebook, sorted(f.stem for f in paths.NOTEBOOKS.glob("*.ipynb"))
    place = f"[{sum(name <= notebook for name in names)}/{len(names)}] " if options.shared else ""
    progress, parameters = Progress(f"{place}{notebook}", alone=not options.shared), {}
    try:
        if options.redraw or options.again:
            from ingroup.notebook import ran  # seconds

            if not (parameters := ran(notebook, options.run)):
                raise InputError(f"{notebook} has not run in {options.run!r}: make all first")
        else:
            parameters = parameters_of(notebook, options)
            budget_of(parameters)  # a limit without prices starts nothing
        # Who has forgotten a key waits for no kernel; beside stored answers it may not be needed.
        if not (options.ask or options.redraw or any(paths.RESPONSES.glob("*/*/*@inspect"))):
            named = models.asked(parameters) if "READING" in parameters else ()
            for model in (one for one in named if one.engine == "inspect"):
                make_engine("inspect", model.name, base_url=parameters["BASE_URL"]).close()
        if options.ask:
            print(answer(notebook, parameters))
            return 0
        with writing(paths.run_folder(options.run)):
            target = execute(notebook, parameters, progress, options.redraw)
    except (InputError, EngineError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        told = ""
        with suppress(ImportError, KeyError):  # it asks nothing, or not what a study's design says
            told = f"{kept(calls_of(notebook, parameters)):,} answers kept; "
        progress.line(f"stopped; {told}the same line goes on")
        return 130
    if target is None or options.redraw:
        return int(target is None)
    seconds, usual = time.monotonic() - started, defaults(notebook) | {"RUN": options.run}
    took = f"{seconds:.0f} s"
    progress.line(f"done in {took}")
    changed = [f"{name}={value}" for name, value in parameters.items() if value != usual[name]]
    lines = [f"{notebook}: {took}, {', '.join(changed) or 'as the demo profile has it'}"]
    tables = paths.run_folder(options.run) / "tables" / folder_of(notebook)
    if [*tables.glob("*_versus_here.csv")]:
        from ingroup.commands.report import counted  # as slow to import

        lines += [f"  {line}" for line in counted(tables, time.time() - seconds)]
    target.with_suffix(".txt").write_text("\n".join([*lines, ""]), "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
