"""Programs that a command starts and waits for; none is left behind when it is stopped."""

import subprocess
from collections.abc import Sequence

RUNNING: set[subprocess.Popen] = set()
PATIENCE = 60  # seconds in which a stopped program says what it kept


def start(command: Sequence[str]) -> bool:
    """Run a program that writes to this terminal; return whether it succeeded."""
    program = subprocess.Popen(command)
    RUNNING.add(program)
    try:
        return program.wait() == 0
    finally:
        if program.returncode is not None:
            RUNNING.discard(program)


def stop(signalled: bool) -> None:
    """Wait for all programs to end; ask them to, unless a terminal has `signalled` them already."""
    for program in list(RUNNING):
        if not signalled:
            program.terminate()
    for program in list(RUNNING):
        try:
            program.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            program.terminate()
