"""Run a notebook with papermill: check its parameters first, keep its result only if whole."""

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from ingroup import models, paths
from ingroup.commands.parameters import calls_of, command_line, parameters_of
from ingroup.inference import EngineError, StoreError, ask, kept, lacking
from ingroup.tables import InputError

# How papermill starts a notebook; its kernel would warn of a connection that stays on the machine.
KERNEL = {
    "kernel_name": "python3",
    "cwd": str(paths.ROOT),
    "progress_bar": False,
    "start_timeout": 600,  # seconds; a busy machine may need many
    "extra_arguments": ["--IPKernelApp.log_level=ERROR"],
}
OWN = ("InputError", "EngineError", "StoreError")  # a sentence each; others need their traceback


class Failed(Exception):
    """A notebook that did not come to its end; the message says at which cell and why."""


class Progress:
    """What a notebook does, on standard error: lines that begin with its name, each written whole.

    So notebooks that run side by side do not mix. A bar moves each second where a person looks at
    one notebook, else it is a line at most every ten seconds.
    """

    def __init__(self, head: str, alone: bool):
        self.head, self.moving = head, alone and sys.stderr.isatty()
        self.started, self._open, self._shown = time.monotonic(), "", 0.0

    def line(self, text: str) -> None:
        sys.stderr.write(f"{self.head}: {text}\n")
        sys.stderr.flush()

    def write(self, text: str) -> None:
        """Take what the kernel wrote, whole lines or the states of a bar."""
        if self.moving:
            sys.stderr.write(text)
            return
        *lines, self._open = (self._open + text).split("\n")
        for line in lines:
            if whole := line.rpartition("\r")[2].strip():
                self.line(whole)
        state = self._open.rpartition("\r")[2].strip()
        if state and time.monotonic() - self._shown > 10:
            self.line(state)
            self._shown = time.monotonic()

    def flush(self) -> None:
        sys.stderr.flush()

    def step(self, cell: Any, cell_index: int) -> None:
        """Say which section of the notebook begins."""
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            self.line(cell.source.split("\n")[0].removeprefix("## "))


def execute(notebook: str, parameters: dict[str, Any], progress: Progress | None = None) -> Path:
    """Run a notebook from top to bottom and move the executed copy to `ingroup.paths.executed`.

    Raises Failed where a cell fails or the kernel dies. What does not come to its end leaves no
    copy, and of a run that is new no folder.
    """
    import nbformat  # with papermill seconds, which a wrong parameter does not wait for
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    progress = progress or Progress(notebook, alone=False)
    target = paths.executed(notebook, parameters["RUN"])
    folder, unfinished = target.parent.parent, target.with_name(f"{notebook}.unfinished.ipynb")
    new = folder != paths.BUILD and not folder.exists()  # answers are in build/, too
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        for attempt in (1, 2):
            try:
                whole = papermill.execute_notebook(
                    str(paths.NOTEBOOKS / f"{notebook}.ipynb"),
                    str(unfinished),
                    parameters=parameters,
                    stderr_file=progress,  # what a cell prints stays in the notebook
                    on_cell_start=progress.step,
                    **KERNEL,
                )
                break
            except (DeadKernelError, RuntimeError) as error:
                # Kernels that start side by side can draw the same port; a second try is enough.
                if attempt == 2 or isinstance(error, PapermillExecutionError):
                    raise
        for output in (output for cell in whole.cells for output in cell.get("outputs", ())):
            if output.get("name") == "stderr":  # bars that moved for hours are no log
                output.text = re.sub(r"[^\n]*\r", "", output.text)
        nbformat.write(whole, unfinished)
        os.replace(unfinished, target)
    except PapermillExecutionError as error:
        trace = "" if error.ename in OWN else "\n".join([*error.traceback, ""])
        cell = f"cell {error.exec_count}: {error.ename}: {error.evalue}"
        raise Failed(f"{trace}{cell}") from error
    except DeadKernelError as error:
        why = "the kernel died, which is mostly a lack of memory; answers that are stored stay"
        raise Failed(f"{why} (a smaller BATCH_SIZE needs less)") from error
    finally:
        unfinished.unlink(missing_ok=True)
        if new and not any(target.parent.iterdir()):  # no other notebook of the run is there
            shutil.rmtree(folder)
    return target


def answer(notebook: str, parameters: dict[str, Any]) -> None:
    """Ask and store what the notebook of a study would ask, without it."""
    calls = calls_of(notebook, parameters)
    if not all(call.settled for call in calls):  # texts that come first
        ask([call for call in calls if call.settled], parameters)
        calls = calls_of(notebook, parameters)
    sizes = [len(call.design) for call in ask(calls, parameters)]
    print(f"{len(sizes)} calls, {sum(sizes):,} prompts are answered and stored")


def stopped(notebook: str, parameters: dict[str, Any]) -> str:
    """The sentence for who pressed Ctrl-C: how many answers are stored."""
    asked = [c for c in calls_of(notebook, parameters) if paths.RECORDINGS not in c.folder.parents]
    found = f"{kept(asked):,} answers kept; " if asked else ""
    return f"stopped; {found}the same line goes on"


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the notebook ran, 2 for a wrong parameter, 1 when a cell failed."""
    parser = command_line(__doc__)
    parser.add_argument("notebook")
    parser.add_argument("--check", action="store_true", help="check the parameters, run nothing")
    parser.add_argument("--ask", action="store_true", help="ask and store, run nothing")
    options = parser.parse_args(arguments)
    notebook, names = options.notebook, sorted(f.stem for f in paths.NOTEBOOKS.glob("*.ipynb"))
    place = f"[{names.index(notebook) + 1}/{len(names)}] " if options.shared else ""
    progress = Progress(f"{place}{notebook}", alone=not options.shared)
    try:
        parameters = parameters_of(notebook, options)
        paths.run_folder(options.run)
        if options.check:
            return 0
        asked = models.asked(parameters) if "MODELS" in parameters else []
        if "openai" in [model.engine for model in asked]:
            lacking(calls_of(notebook, parameters), parameters)
        if options.ask:
            answer(notebook, parameters)
            return 0
        target = execute(notebook, parameters, progress)
    except (InputError, EngineError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2
    except Failed as error:
        progress.line(str(error))
        return 1
    except KeyboardInterrupt:
        progress.line(stopped(notebook, parameters))
        return 130
    took = f"{time.monotonic() - progress.started:.0f} s"
    progress.line(f"done in {took}")
    given = {name: value for name, value in parameters.items() if name != "RUN" and value != ""}
    shown = ", ".join(f"{name}={value}" for name, value in given.items()) or "no parameters"
    target.with_suffix(".txt").write_text(f"{notebook}: {took}, {shown}\n", "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
