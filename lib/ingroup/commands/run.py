"""Run a notebook with papermill: check its parameters first, keep its result only if whole."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import papermill
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError

from ingroup import paths
from ingroup.commands.parameters import command_line, parameters_of
from ingroup.tables import InputError

# How papermill starts a notebook; its kernel would warn of a connection that stays on the machine.
KERNEL = {
    "kernel_name": "python3",
    "cwd": str(paths.ROOT),
    "progress_bar": False,
    "start_timeout": 600,  # seconds; a busy machine may need many
    "extra_arguments": ["--IPKernelApp.log_level=ERROR"],
}


def execute(notebook: str, parameters: dict[str, Any]) -> Path:
    """Run a notebook from top to bottom and move the executed copy to `ingroup.paths.executed`.

    Raises PapermillExecutionError where a cell fails; the unfinished copy stays beside the target.
    """
    target = paths.executed(notebook, parameters["RUN"])
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{notebook}.unfinished.ipynb")
    for attempt in (1, 2):
        try:
            papermill.execute_notebook(
                str(paths.NOTEBOOKS / f"{notebook}.ipynb"),
                str(unfinished),
                parameters=parameters,
                stderr_file=sys.stderr,  # progress bars; what a cell prints stays in the notebook
                **KERNEL,
            )
            break
        except RuntimeError:  # a failing cell raises another kind
            # Kernels that start side by side can draw the same port; a second try is enough.
            if attempt == 2:
                raise
    os.replace(unfinished, target)
    return target


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when the notebook ran, 2 for a wrong parameter, 1 when a cell failed."""
    parser = command_line(__doc__)
    parser.add_argument("notebook")
    options = parser.parse_args(arguments)
    notebook, started = options.notebook, time.monotonic()
    try:
        parameters = parameters_of(notebook, options)
        target = execute(notebook, parameters)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except PapermillExecutionError as error:
        cell = f"{notebook}, cell {error.exec_count}"
        print(f"{cell}: {error.ename}: {error.evalue}", file=sys.stderr)
        return 1
    except DeadKernelError:
        why = "the kernel died, which is mostly a lack of memory; answers that are stored stay"
        print(f"{notebook}: {why} (a smaller BATCH_SIZE needs less)", file=sys.stderr)
        return 1
    given = {name: value for name, value in parameters.items() if name != "RUN" and value != ""}
    shown = ", ".join(f"{name}={value}" for name, value in given.items()) or "no parameters"
    took = f"{notebook}: {time.monotonic() - started:.0f} s, {shown}\n"
    target.with_suffix(".txt").write_text(took, "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
