"""Which worker takes which part of the work next; no worker, no clock and no Ray of its own."""

from collections import deque
from statistics import median

SLOW, LEAST = 2.0, 5.0  # a part is asked twice when it takes so many medians, and so many seconds


class Backlog:
    """Parts that wait, those that are asked and those that are done.

    A part goes to one worker after another, in order. When none waits, a worker without work gets
    the part that was begun first, if it takes longer than ``LEAST`` and than ``SLOW`` times the
    median of the finished ones; of two answers the first counts. A part is with two workers at
    most. A part of a worker that is lost waits again, behind all others: where it was the part that
    killed the worker, the others are done by the time it kills the next.

    Parameters
    ----------
    parts : int
        They are numbered from 0.
    """

    def __init__(self, parts: int):
        self.parts = parts
        self._waiting = deque(range(parts))
        self._asked: dict[int, tuple[float, int]] = {}  # worker: when it began, and which part
        self._done: set[int] = set()
        self._took: list[float] = []

    @property
    def done(self) -> bool:
        return len(self._done) == self.parts

    def take(self, worker: int, now: float) -> int | None:
        """The part that a worker without work takes at a time in seconds; None: nothing to do."""
        part = self._waiting.popleft() if self._waiting else self._straggler(now)
        if part is not None:
            self._asked[worker] = now, part
        return part

    def _straggler(self, now: float) -> int | None:
        asked = [part for _, part in self._asked.values()]
        alone = [
            (began, part)
            for began, part in self._asked.values()
            if part not in self._done and asked.count(part) == 1
        ]
        if not alone or not self._took:
            return None
        began, part = min(alone)
        return part if now - began > max(LEAST, SLOW * median(self._took)) else None

    def finish(self, worker: int, now: float) -> int | None:
        """The part that a worker answers; None where another was quicker."""
        began, part = self._asked.pop(worker)
        if part in self._done:
            return None
        self._done.add(part)
        self._took.append(now - began)
        return part

    def lose(self, worker: int) -> None:
        """A worker is gone; its part waits again, unless it is done or asked of another."""
        _, part = self._asked.pop(worker)
        if part not in self._done and all(part != other for _, other in self._asked.values()):
            self._waiting.append(part)
