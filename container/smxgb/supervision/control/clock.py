"""Time as a process that may be stopped itself has to count it."""

from __future__ import annotations

import time

LONGEST_TURN = 2.0
"""Seconds that count at most between two looks at the clock."""


class Clock:
    """Seconds that this process was awake, if it looks often.

    Who was stopped for a minute, and wakes, has not heard from anybody for a minute, and would blame all of
    them for their silence.
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
