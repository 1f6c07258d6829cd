"""What the process that does the work tells: lines to the log, messages to its supervisor, time and memory.

The two ends of the pair of sockets between them stand here together: `Link` is the worker's, `Listener` the
supervisor's. A message is one line of JSON with one key.
"""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Literal, NoReturn, TextIO

from smxgb.errors import AlgorithmError, JobError, as_job_error, from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

type OnRound = Callable[[int, int], None]
"""Called after each round with its number, counted from 0, and the most rounds there will be."""
type PhaseName = Literal["load", "matrix", "train", "save"]

PARTIAL = ".smxgb-"
"""How the names of results begin until the job has succeeded: then the supervisor takes it off."""

_STAMP = re.compile(r"\[[0-9:]+\] WARNING: \S+?:[0-9]+: ")
"""How the warnings of XGBoost's native code begin."""


def log(text: str) -> None:
    """Write one line to standard output, at once. A log that nobody takes any more does not end the job."""
    _write(text, sys.stdout)


def log_error(text: str) -> None:
    """Write one line to standard error, in the same way."""
    _write(text, sys.stderr)


def warnings_as_lines() -> None:
    """Make every warning one line of the log, each text once; XGBoost's by its name.

    Python would show them with the file and line that they passed through, and XGBoost's anew each time, for
    they begin with the time of day.
    """
    said: set[str] = set()

    def show(  # noqa: PLR0917 - Python calls it so
        message: Warning | str,
        category: type[Warning],  # noqa: ARG001
        filename: str,
        lineno: int,  # noqa: ARG001
        file: TextIO | None = None,  # noqa: ARG001
        line: str | None = None,
    ) -> None:
        text = " ".join(_STAMP.sub("", str(message)).split())
        stamped = _STAMP.match(str(message)) or "xgboost" in Path(filename).parts
        line = f"XGBoost: {text}" if stamped else f"Warning: {text}"
        if line not in said:
            said.add(line)
            log(line)

    warnings.showwarning = show


def failure_of(error: BaseException) -> JobError:
    """Return the failure to report for anything that was raised.

    What nobody has foreseen shows in the log with where it comes from: a fault of ours has no other words.
    """
    failure = as_job_error(error)
    if isinstance(failure, AlgorithmError) and failure is not error:
        traceback.print_exception(error)
    return failure


def readable_bytes(count: int) -> str:
    """Return a number of bytes as a reader wants it: `725 MiB`, `1.4 GiB`."""
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1000:  # noqa: PLR2004 - at most three digits before the point
            break
        size, unit = size / 1024, larger
    whole = unit == "bytes" or size >= 10  # noqa: PLR2004 - two digits that matter are enough
    return f"{size:.0f} {unit}" if whole else f"{size:.1f} {unit}"


@dataclass(frozen=True)
class Program:
    """A process that the work wants beside itself on its host.

    `name` is what messages call it. `command` is its command line, to which are added how it reaches the
    supervisor and how often it has to give a sign of life; after `silence` seconds without one it counts as
    frozen. `environ` are environment variables beside those of the work.
    """

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    silence: float


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

        `results` are the files that are to get their names now: their present ones begin with `PARTIAL`.
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


@dataclass(frozen=True)
class Phase:
    """A part of the work: how many seconds it took, and the most bytes of memory that were resident in it."""

    name: PhaseName
    seconds: float
    peak_memory: int


class PhaseClock:
    """Measures the phases of the work, one after the other, and tells the supervisor which one runs.

    The kernel's peak is set back at the start of each phase, and so is what `getrusage` and `wait4` report:
    `peak_memory` is the one number that holds for the whole process. Where the kernel does not allow it, a
    phase's peak is the highest so far.
    """

    def __init__(self, link: Link, root: Path = Path("/")) -> None:
        self._link = link
        self._proc = root / "proc/self"
        self._phases: dict[PhaseName, Phase] = {}
        self._earlier_peak = 0

    @contextmanager
    def phase(self, name: PhaseName) -> Iterator[None]:
        """Measure what happens inside. A phase that comes again adds its seconds to the first time's."""
        self._link.phase(name)
        self._reset_peak()
        start = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - start
            before = self._phases.get(name, Phase(name, 0.0, 0))
            peak = max(before.peak_memory, self._peak())
            self._phases[name] = Phase(name, before.seconds + seconds, peak)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases so far, in the order in which they first began."""
        return tuple(self._phases.values())

    @property
    def peak_memory(self) -> int:
        """The most bytes that were resident at any time since the process began."""
        return max(self._earlier_peak, self._peak(), *(phase.peak_memory for phase in self.phases))

    def summary(self) -> str:
        """Return the phases as one line of the log."""
        parts = [
            f"{phase.name} {phase.seconds:.1f} s (peak {readable_bytes(phase.peak_memory)})"
            for phase in self.phases
        ]
        return f"Phases: {', '.join(parts)}; peak memory {readable_bytes(self.peak_memory)}."

    def _reset_peak(self) -> None:
        self._earlier_peak = self.peak_memory
        with suppress(OSError):
            (self._proc / "clear_refs").write_text("5")

    def _peak(self) -> int:
        with suppress(OSError):
            for line in (self._proc / "status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class RoundClock:
    """Tells the supervisor of each round, and every half minute the log how far the training is."""

    def __init__(self, link: Link, total: int, every: float = 30.0) -> None:
        self._link = link
        self._total = total
        self._every = every
        self._start = self._said = time.monotonic()

    def finished(self, number: int) -> None:
        """Take note that round `number`, counted from 0, is done."""
        self._link.round(number, self._total)
        now = time.monotonic()
        if now - self._said < self._every:
            return
        self._said = now
        pace = (now - self._start) / (number + 1)
        left = round(pace * (self._total - number - 1))
        log(
            f"Round {number + 1} of {self._total}: {pace:.2f} s a round, at most "
            f"{timedelta(seconds=left)} left."
        )


def _write(text: str, stream: TextIO) -> None:
    encoding = stream.encoding or "utf-8"
    line = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(f"{line}\n")
        stream.flush()
    except OSError:
        # The unwritten line would be tried again when Python ends, and its failure become the exit code.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
