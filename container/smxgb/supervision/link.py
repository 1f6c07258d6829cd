"""The connection between the supervisor and a process of the work.

Both ends are here: `Link` is that of the work, `Listener` that of the supervisor. Each message is a line.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread, Timer
from typing import TYPE_CHECKING, NoReturn

from smxgb.errors import AlgorithmError, JobError, as_job_error
from smxgb.log import log_error
from smxgb.supervision.messages import Beat, Failed, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smxgb.supervision.messages import Message


class Link:
    """The work's end of the connection. `fd` is its descriptor, None in a process without a supervisor.

    If the supervisor is gone, messages are dropped: the work is killed with it anyway (`die_with_parent`).
    """

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd
        self._lock = Lock()
        self._rest = b""
        if fd is not None:
            os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no keyword

    def fileno(self) -> int | None:
        """Return the descriptor, None in a process without a supervisor."""
        return self._fd

    def send(self, message: Message) -> None:
        """Tell the supervisor something. Any thread may do so."""
        if self._fd is None:
            return
        line = encode(message) + b"\n"
        with self._lock, suppress(BrokenPipeError, ConnectionResetError):
            while line:
                line = line[os.write(self._fd, line) :]

    def beat(self, seconds: float) -> None:
        """Send a sign of life every so many seconds from now on, from a thread.

        Native code lets other threads run, so only a process that is stopped falls silent.
        """

        def beat() -> None:
            pause = Event()
            while not pause.wait(seconds):
                self.send(Beat())

        Thread(target=beat, name="heartbeat", daemon=True).start()

    def wait_for[M: Message](self, kind: type[M]) -> M:
        """Wait for the supervisor's next message of this kind and return it. Other kinds are dropped.

        Raises SystemExit if the supervisor is gone, or there is none.
        """
        while self._fd is not None:
            line, newline, self._rest = self._rest.partition(b"\n")
            if newline:
                message = decode(line)
                if isinstance(message, kind):
                    return message
            else:
                data = os.read(self._fd, 65_536)
                if not data:
                    break
                self._rest = line + data
        raise SystemExit(128 + signal.SIGKILL)

    def has_heard(self, kind: type[Message]) -> bool:
        """Return whether a message of this kind has arrived by now. All that has arrived is dropped."""
        if self._fd is None:
            return False
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while poll.poll(0) and (data := os.read(self._fd, 65_536)):
            self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        return any(isinstance(decode(line), kind) for line in lines)


class Listener:
    """The supervisor's end of the connection. `is_open` turns False when the process can send no more."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.is_open = True
        self._rest = b""

    def send(self, message: Message) -> None:
        """Tell the process something. A process that has ended does not need it any more."""
        with suppress(OSError):
            os.write(self.fd, encode(message) + b"\n")

    def listen(self) -> list[Message]:
        """Return the messages that have arrived by now."""
        messages = []
        with suppress(BlockingIOError):  # nothing more has arrived yet
            while data := self._read():
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    with suppress(ValueError):  # a line that is not JSON must not end the supervisor
                        if message := decode(line):
                            messages.append(message)
            self.is_open = False
        return messages

    def _read(self) -> bytes:
        # A process that dies with unread messages breaks the connection instead of closing it.
        try:
            return os.read(self.fd, 65_536)
        except ConnectionResetError:
            return b""


def die_with_parent(fd: int) -> None:
    """Make the kernel kill this process when the supervisor, which holds the other end of `fd`, dies.

    Raises SystemExit if the supervisor is already dead. The number of the parent process could not tell: in a
    container the supervisor is process 1, and elsewhere process 1 inherits orphans.
    """
    import ctypes  # noqa: PLC0415 - the supervisor imports this module too, and must start fast

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    poll = select.poll()
    poll.register(fd, 0)
    if poll.poll(0):
        raise SystemExit(128 + signal.SIGKILL)


def diagnose(error: BaseException) -> JobError:
    """Return the failure to report for an exception, and print the traceback of one that nobody foresaw."""
    failure = as_job_error(error)
    if isinstance(failure, AlgorithmError) and failure is not error:
        import traceback  # noqa: PLC0415 - needed for a fault of ours only, and the start must be fast

        for line in "".join(traceback.format_exception(error)).splitlines():
            log_error(f"  {line}")
    return failure


def die_of(error: BaseException, link: Link) -> NoReturn:
    """Report an exception to the supervisor and end this process.

    It ends through `os._exit`: XGBoost's clean-up at the end of the interpreter can wait for other hosts.
    """
    failure = diagnose(error)
    link.send(Failed(failure))
    leave(failure.exit_code)


@contextmanager
def dying_after(seconds: float, failure: Callable[[], BaseException], link: Link) -> Iterator[None]:
    """Report `failure()` and end this process if the block is not left in time.

    It is for native calls that wait for other processes, and that nothing can interrupt.
    """
    timer = Timer(seconds, lambda: die_of(failure(), link))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def leave(code: int) -> NoReturn:
    """End this process at once, but flush its log."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
