"""Time, for processes that may be stopped and continued."""

from __future__ import annotations

import time

LONGEST_TURN = 2.0
"""Seconds that count at most between two looks at the clock."""


class Clock:
    """Counts the seconds for which this process was awake, if it looks often.

    A process that was stopped for a minute has heard from nobody for a minute when it goes on. Those seconds
    must not count as the silence of the others.
    """

    def __init__(self) -> None:
        self._start = self._seen = time.monotonic()
        self._now = 0.0

    def elapsed(self) -> float:
        """Return the seconds since the start, awake or not."""
        return time.monotonic() - self._start

    def now(self) -> float:
        """Return the seconds awake since the start."""
        seen = time.monotonic()
        self._now += min(seen - self._seen, LONGEST_TURN)
        self._seen = seen
        return self._now


class Interval:
    """What is to be done every so many `seconds`, for the first time at `first`."""

    def __init__(self, seconds: float, first: float | None = None) -> None:
        self._seconds = seconds
        self._next = seconds if first is None else first

    def begin_next(self, now: float) -> bool:
        """Begin the next interval if the last one is over; return whether it was."""
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
