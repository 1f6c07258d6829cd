"""The connections of one end of the control channel, for which it can wait all at once."""

from __future__ import annotations

import os
import select
from collections import deque
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from smxgb.errors import as_job_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from smxgb.errors import JobError
    from smxgb.supervision.control.wire import Wire


class Connections[T]:
    """Waits for messages on open connections, and for what threads have opened meanwhile.

    Connecting can take long, so threads do it. They hand over what they have opened, a `T` each, or a
    failure.
    """

    def __init__(self) -> None:
        self._opened: deque[T | JobError] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll = select.epoll()
        self._epoll.register(self._wake, select.EPOLLIN)

    def fileno(self) -> int:
        """Return a descriptor that is readable when there is something to take or to receive."""
        return self._epoll.fileno()

    def start(self, open_them: Callable[[], None]) -> None:
        """Run a function, which opens connections, in a thread. A failure of either is handed over."""

        def run() -> None:
            try:
                open_them()
            except Exception as error:  # noqa: BLE001 - nothing else reports what a thread raises
                self.hand_over(as_job_error(error))

        try:
            Thread(target=run, name="control", daemon=True).start()
        except RuntimeError as error:
            self.hand_over(as_job_error(error))

    def hand_over(self, opened: T | JobError) -> None:
        """Pass on what a thread has opened, and end the wait."""
        self._opened.append(opened)
        self.end_wait()

    def end_wait(self) -> None:
        """Make the descriptor readable."""
        os.eventfd_write(self._wake, 1)

    def take_opened(self) -> list[T | JobError]:
        """Return what has been handed over since the last call."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        opened: list[T | JobError] = []
        while self._opened:
            opened.append(self._opened.popleft())
        return opened

    def add(self, wire: Wire) -> None:
        """Wait for messages of this connection too."""
        self._epoll.register(wire.fileno(), select.EPOLLIN)

    def remove(self, wire: Wire) -> None:
        """Wait for no more messages of this connection. It must still be open."""
        self._epoll.unregister(wire.fileno())

    def wait(self, seconds: float) -> None:
        """Wait until there is something to take or to receive, but not longer than so many seconds."""
        self._epoll.poll(seconds)
