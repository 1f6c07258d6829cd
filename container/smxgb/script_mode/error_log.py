"""The error stream of a script: it is passed on as it comes, and its last lines are kept."""

from __future__ import annotations

import os
import re
from contextlib import suppress

KEPT_BYTES = 16_384
SHOWN_BYTES = 700
"""Bytes that are kept of the stream's end, and those of them that a failure shows."""

READS = 64
"""A process that the script has left, and that never stops writing, must not hold up the end: at most so many
reads at once, which are more than a pipe holds."""

TRACEBACK = "Traceback (most recent call last):"
SKIPPED = re.compile(r"\s*[~^]+\s*")
"""Lines that only point at a part of the line above."""


class ErrorLog:
    """Reads the stream from `fd`, writes it to the standard error of this process, and keeps its end."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._end = b""

    def pass_on(self) -> bool:
        """Pass on what has come; return whether more may come."""
        with suppress(BlockingIOError):
            for _ in range(READS):
                data = os.read(self.fd, 1 << 16)
                if not data:
                    return False
                self._end = (self._end + data)[-KEPT_BYTES:]
                _write_all(data)
        return True

    def lines(self) -> list[str]:
        """Return the last lines, those that say something."""
        text = self._end.decode(errors="replace")
        return [line.strip() for line in text.splitlines() if line.strip() and not SKIPPED.fullmatch(line)]

    def explanation(self) -> str:
        """Return why the script has failed, as far as its last lines say so: an exception, and where it was.

        It is empty if the script has written nothing.
        """
        lines = self.lines()
        if not lines:
            return ""
        *before, last = lines
        begin = max((index for index, line in enumerate(before) if line == TRACEBACK), default=None)
        title = "Its last lines" if begin is None else "The traceback's last lines"
        kept: list[str] = []
        for line in reversed(before if begin is None else before[begin + 1 :]):
            if sum(map(len, kept)) + len(line) > SHOWN_BYTES - len(last):
                break
            kept.insert(0, line)
        where = f" ({title}: {' / '.join(kept)})" if kept else ""
        return f": {last[:SHOWN_BYTES]}{where}"


def _write_all(data: bytes) -> None:
    """Write to standard error. A log that nobody takes any more does not end the job."""
    with suppress(BrokenPipeError, ConnectionResetError):
        while data:
            data = data[os.write(2, data) :]
