"""Pipe mode: SageMaker streams a channel through a FIFO, once for each pass; the container makes one pass."""

from __future__ import annotations

import os
import select
import stat
import time
from typing import TYPE_CHECKING

from smxgb.errors import PlatformError, UserError

if TYPE_CHECKING:
    from pathlib import Path

SILENCE = 900.0
"""Seconds without a byte after which a pipe counts as broken."""

LOOK_AGAIN = 0.1
"""Seconds between two looks for a pipe that is not there yet."""


class Pipe:
    """The bytes that come through a FIFO; it is opened at once, whether or not anybody writes yet.

    Raises PlatformError if the FIFO is not there, or nothing comes, for `SILENCE` seconds, UserError if it
    ends without a byte.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _wait_for(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._begun = False

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        if not self._poll.poll(SILENCE * 1000):
            state = "stopped" if self._begun else "has not begun"
            raise PlatformError(
                f"the pipe {self._path} {state}: nothing came for {SILENCE:.0f} seconds. Start the job "
                "again, or use input mode FastFile."
            )
        data = os.read(self._fd, size)
        if not data and not self._begun:
            raise UserError(
                f"the pipe {self._path} ended before its first byte: check the channel's S3 address and that "
                "its files have rows."
            )
        self._begun = True
        return data

    def close(self) -> None:
        """Stop reading."""
        os.close(self._fd)


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + SILENCE
    while not (path.exists() and stat.S_ISFIFO(path.stat().st_mode)):
        if time.monotonic() > deadline:
            raise PlatformError(
                f"the pipe {path} was not there after {SILENCE:.0f} seconds. Start the job again, or use "
                "input mode FastFile."
            )
        time.sleep(LOOK_AGAIN)
