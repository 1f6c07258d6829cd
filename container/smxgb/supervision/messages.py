"""The connection between the supervisor and a process of the work.

Its two ends stand here together: `Link` is the work's, `Listener` the supervisor's. A message is one line of
JSON with one key.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, NoReturn

from smxgb.errors import AlgorithmError, JobError, as_job_error, from_json
from smxgb.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

type OnRound = Callable[[int, int], None]
"""Called after each round with its number, counted from 0, and the most rounds there will be."""


class Link:
    """The worker's end of the connection with its supervisor; `fd` None if nobody listens.

    A supervisor that is gone is no error here: the worker dies with it anyway (`die_with_parent`).
    """

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd
        self._lock = Lock()
        self._rest = b""
        if fd is not None:
            os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no keyword

    def phase(self, name: str) -> None:
        """Say what the work is about now: named if the process should be killed."""
        self._send({"phase": name})

    def scratch(self, folder: Path) -> None:
        """Name a folder of temporary files, which the supervisor removes at the end, whatever the end."""
        self._send({"scratch": str(folder.absolute())})

    def round(self, number: int, total: int) -> None:
        """Say that round `number`, counted from 0, of at most `total` is done."""
        self._send({"round": [number, total]})

    def failed(self, error: JobError) -> None:
        """Report the failure that ends the job."""
        self._send({"failed": error.as_json()})

    def succeeded(self, text: str, results: Sequence[Path] = ()) -> None:
        """Say that all is done, with the last line of the log. Without it no end is a success.

        `results` are the files that are to get their names now: see `smxgb.supervision.publishing`.
        """
        self._send({"succeeded": text, "results": [str(path.absolute()) for path in results]})

    def beat(self, seconds: float) -> None:
        """Give a sign of life every so many seconds from now on, whatever the work does.

        Native code lets other threads run, so only a process that is stopped falls silent.
        """

        def beat() -> None:
            pause = Event()
            while not pause.wait(seconds):
                self._send({"beat": True})

        Thread(target=beat, name="heartbeat", daemon=True).start()

    def arrived(self, **offer: str | int) -> None:
        """Say that this host's configuration is in order, so that it can join the others.

        `offer` must be the same on all hosts.
        """
        self._send({"arrived": offer})

    def tracker(self, arguments: Mapping[str, object]) -> None:
        """Say to all hosts how the tracker of XGBoost, or the scheduler of Dask, is reached."""
        self._send({"tracker": dict(arguments)})

    def start(self, program: Program) -> None:
        """Ask for a process beside this one, for as long as this one runs.

        The supervisor tells of its success (`finished`); any other end of it ends the job.
        """
        self._send({"start": asdict(program)})

    def wait_for(self, key: str) -> object:
        """Wait for the supervisor's message with this key; return its value. Others are passed over."""
        while self._fd is not None:
            line, newline, self._rest = self._rest.partition(b"\n")
            if newline:
                message = json.loads(line)
                if key in message:
                    return message[key]
            else:
                data = os.read(self._fd, 65_536)
                if not data:
                    break
                self._rest = line + data
        raise SystemExit(128 + signal.SIGKILL)

    def _send(self, message: dict[str, object]) -> None:
        if self._fd is None:
            return
        line = json.dumps(message).encode() + b"\n"
        with self._lock, suppress(BrokenPipeError, ConnectionResetError):
            while line:
                line = line[os.write(self._fd, line) :]


class Listener:
    """The supervisor's end of the connection, and what has been said so far.

    `signs` counts the signs of life: it rises with whatever is said. `programs` are still to be started.
    """

    def __init__(self, fd: int, on_round: OnRound | None = None) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._on_round = on_round
        self.phase: str | None = None
        self.scratch: list[Path] = []
        self.error: JobError | None = None
        self.success: str | None = None
        self.results: list[Path] = []
        self.arrived: Mapping[str, object] | None = None
        self.tracker: Mapping[str, object] | None = None
        self.programs: list[Program] = []
        self.signs = 0
        self._rest = b""

    def tell(self, message: Mapping[str, object]) -> None:
        """Send the work a message. One that has ended needs none."""
        with suppress(OSError):
            os.write(self.fd, json.dumps(message).encode() + b"\n")

    def listen(self) -> bool:
        """Take in what has been sent by now; return whether more may come."""
        with suppress(BlockingIOError):
            while data := self._read():
                self.signs += 1
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    with suppress(ValueError):  # a stray line must not end the one who watches
                        self._take(json.loads(line))
            return False
        return True

    def _read(self) -> bytes:
        # An end that dies with messages unread breaks the connection instead of closing it.
        try:
            return os.read(self.fd, 65_536)
        except ConnectionResetError:
            return b""

    def _take(self, message: object) -> None:
        match message:
            case {"phase": str(name)}:
                self.phase = name
            case {"round": [int(number), int(total)]}:
                if self._on_round:
                    self._on_round(number, total)
            case {"scratch": str(folder)}:
                self.scratch.append(Path(folder))
            case {"failed": dict(failure)}:
                self.error = from_json(failure)
            case {"arrived": dict(offer)}:
                self.arrived = offer
            case {"start": dict(program)}:
                self.programs.append(Program(**program))
            case {"tracker": dict(arguments)}:
                self.tracker = arguments
            case {"succeeded": str(text), "results": [*results]}:
                self.success = text
                self.results = [Path(str(path)) for path in results]


def die_with_parent(fd: int) -> None:
    """Make the kernel kill this process when the supervisor that holds the other end of `fd` dies.

    Raises SystemExit if it is dead already. Its process number could not tell: in a container the supervisor
    is process 1, and so is whoever inherits orphans elsewhere.
    """
    import ctypes  # noqa: PLC0415 - the supervisor imports this module too, and its start is waited for

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    poll = select.poll()
    poll.register(fd, 0)
    if poll.poll(0):
        raise SystemExit(128 + signal.SIGKILL)


def failure_of(error: BaseException) -> JobError:
    """Return the failure to report for anything that was raised.

    What nobody has foreseen shows in the log with where it comes from: a fault of ours has no other words.
    """
    failure = as_job_error(error)
    if isinstance(failure, AlgorithmError) and failure is not error:
        traceback.print_exception(error)
    return failure


def die_of(error: BaseException, link: Link) -> NoReturn:
    """Report what was raised and end this process.

    Through `os._exit`, since XGBoost's clean-up at the end of the interpreter can wait for other hosts.
    """
    failure = failure_of(error)
    link.failed(failure)
    leave(failure.exit_code)


def leave(code: int) -> NoReturn:
    """End this process at once; what it has written to its log is kept."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
