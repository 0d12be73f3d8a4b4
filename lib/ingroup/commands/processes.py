"""Programs that a command starts, waits for, and ends when the command is stopped."""

import os
import subprocess
from collections.abc import Mapping, Sequence

RUNNING: set[subprocess.Popen] = set()
PATIENCE = 60  # seconds in which a stopped program says what it kept


def start(command: Sequence[str], variables: Mapping[str, str] | None = None) -> bool:
    """Run a program that writes to this terminal, and wait for it.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    variables : mapping of str to str, optional
        Variables that are added to the environment of the program.

    Returns
    -------
    bool
        Whether its exit status was 0.
    """
    program = subprocess.Popen(command, env={**os.environ, **(variables or {})})
    RUNNING.add(program)
    try:
        return program.wait() == 0
    finally:
        # A program whose wait was interrupted stays in the set, for `stop`.
        if program.returncode is not None:
            RUNNING.discard(program)


def stop(signalled: bool) -> None:
    """End all started programs, and wait for each of them.

    Parameters
    ----------
    signalled : bool
        Whether a terminal has signalled the programs already. Otherwise they are asked to end.
    """
    for program in list(RUNNING):
        if not signalled:
            program.terminate()
    for program in list(RUNNING):
        try:
            program.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # after a terminal's signal it may still work
            program.terminate()
