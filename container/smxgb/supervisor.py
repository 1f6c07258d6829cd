"""The parent process: starts the work as a child, watches it, and turns its end into what SageMaker reads.

It imports nothing but Python, so that it stands while the work imports, and survives whatever happens to it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import stat
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.control import Alone, join_hosts
from smxgb.control.clock import Clock
from smxgb.environment import ROOT, Paths, child_environ, oom_kills, read_hosts, read_json, read_machine
from smxgb.errors import AlgorithmError, JobError, PlatformError, UserError, as_job_error, from_json
from smxgb.progress import PARTIAL, Listener, log, log_error, readable_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

    from smxgb.control import Control
    from smxgb.progress import OnRound

COMMAND = (sys.executable, "-P", "-m", "smxgb", "work")
"""How the work is started; `--link` and the pipe's file descriptor are added. -P keeps a module that lies in
the current folder from standing in for one of the container's."""

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Child:
    """The process that does the work, leader of its own session, and what it says."""

    pid: int
    said: Listener

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        environ: Mapping[str, str],
        beat: float | None,
        on_round: OnRound | None,
    ) -> Child:
        """Start the work, which gives a sign of life every `beat` seconds. Raises OSError if it can't."""
        ours, theirs = socket.socketpair()
        try:
            theirs.set_inheritable(True)
            signs = ["--beat", str(beat)] if beat else []
            arguments = [*command, *signs, "--link", str(theirs.fileno())]
            pid = os.posix_spawn(
                arguments[0], arguments, environ, setsid=True, setsigmask=(), setsigdef=STOPS
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(pid, Listener(ours.detach(), on_round))

    def kill(self) -> None:
        """Kill the process and all that it has started, as far as they have not left its session."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while left := _session(self.pid):
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return
            time.sleep(0.002)

    def reap(self) -> int:
        """Wait for the end; return the exit code, or the number of the signal below zero."""
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def supervise(
    environ: Mapping[str, str],
    command: Sequence[str] = COMMAND,
    root: Path = ROOT,
    on_round: OnRound | None = None,
) -> int:
    """Do the whole job in a child process; return its exit code. A failed job leaves the failure file.

    To be called in the main thread of a process of its own: it takes over SIGTERM, SIGINT and SIGCHLD, and
    collects every child that ends, for as process 1 of a container it inherits orphans.
    """
    paths = Paths.from_environ(environ)
    with suppress(OSError):
        paths.failure.unlink()  # an earlier job's
    earlier = _models(paths.model)
    with _signals() as wakeup:
        control = _control(environ, paths)
        error = _run(command, environ, root, wakeup, control, on_round=on_round)
        if error:
            _remove_partial(paths.model, paths.output_data)
            _report(error, paths.failure)
            # In folders that are used again, as on one's own machine. It stays: no failure costs a model.
            for path in earlier:
                log_error(f"{path} is the model of an earlier job: this one has left none.")
        _open_to_all(paths.output, paths.model)
        control.close()
    return error.exit_code if error else 0


def _control(environ: Mapping[str, str], paths: Paths) -> Control:
    """Return this host's end of the control channel. What can't be read is for the work to complain of."""
    try:
        hosts = read_hosts(paths)
        hyperparameters = read_json(paths.config / "hyperparameters.json")
    except (UserError, OSError):
        return Alone()
    job = environ.get("TRAINING_JOB_ARN") or environ.get("TRAINING_JOB_NAME")
    return join_hosts(hosts, job, hyperparameters)


def _run(
    command: Sequence[str],
    environ: Mapping[str, str],
    root: Path,
    wakeup: int,
    control: Control,
    *,
    on_round: OnRound | None,
) -> JobError | None:
    """Run the work to its end, and the job to its verdict; return the failure, if it is one."""
    kills = oom_kills(root)
    try:
        child = Child.start(command, child_environ(environ), control.beat, on_round)
    except OSError as error:
        return AlgorithmError(f"the work could not be started: {command[0]}: {error.strerror}.")

    def explain(status: int) -> JobError:
        if status == -signal.SIGKILL and oom_kills(root) > kills:
            return _out_of_memory(child.said, environ, root)
        return _unreported(status, child.said)

    return _Watch(child, control, wakeup, explain).verdict()


class _Watch:
    """Watches the work, and passes on what it says to the other hosts, and what they say to it.

    `explain` finds the words for an exit status that the work itself has not explained.
    """

    def __init__(
        self, child: Child, control: Control, wakeup: int, explain: Callable[[int], JobError]
    ) -> None:
        self._child = child
        self._said = child.said
        self._control = control
        self._wakeup = wakeup
        self._explain = explain
        self._is_running = True
        self._stopped: signal.Signals | None = None
        self._error: JobError | None = None
        self._passed_on: dict[str, object] = {}
        self._clock = Clock()
        self._signs, self._last_sign = 0, 0.0
        self._poll = select.poll()
        for fd in (wakeup, self._said.fd, control.fileno()):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)

    def verdict(self) -> JobError | None:
        """Wait for the end of the job, of which the work's own end is only a part; return why it failed."""
        pause = None if self._control.beat is None else 1000 * self._control.beat
        ready: set[int] = set()
        while True:
            self._listen(ready)
            if self._wakeup in ready and self._is_stopped():
                return self._error
            # The work is collected only here: before, its number, its session's, can't go to another process.
            if _ended(self._child.pid if self._is_running else 0):
                self._conclude(None)
            elif self._is_running and self._is_silent():
                self._conclude(_frozen(self._said, self._control.silence))
            while messages := self._control.hear():
                for message in messages:
                    match message:
                        case {"abort": dict(failure)}:
                            self._end()
                            return from_json(failure)
                        case {"leave": True}:
                            if self._is_published():
                                return None
                        case _:
                            self._said.tell(message)
            ready = {fd for fd, _ in self._poll.poll(pause)}

    def _listen(self, ready: set[int]) -> None:
        if self._is_running and self._said.fd in ready and not self._said.listen():
            self._poll.unregister(self._said.fd)
        said = {
            "phase": self._said.phase,
            "arrived": self._said.has_arrived or None,
            "tracker": self._said.tracker,
        }
        for key, value in said.items():
            if value is not None and value != self._passed_on.get(key):
                self._control.tell({key: value})
                self._passed_on[key] = value

    def _is_stopped(self) -> bool:
        """Take in the signals; return whether one ends the wait for the verdict on a failure."""
        stops = [number for number in os.read(self._wakeup, 4096) if number in STOPS]
        # What is done can't be stopped: work that has said so is on its way out.
        if stops and self._is_running and self._said.success is None:
            self._stopped = self._stopped or signal.Signals(stops[0])
            self._child.kill()
        return bool(stops) and self._error is not None

    def _is_silent(self) -> bool:
        now = self._clock.now()
        if self._said.signs > self._signs:
            self._signs, self._last_sign = self._said.signs, now
        return self._control.silence is not None and now - self._last_sign > self._control.silence

    def _conclude(self, error: JobError | None) -> None:
        """End the work, and say how it went; `error` is what is known before it has said so itself."""
        status = self._end()
        if self._said.error:
            self._error = self._said.error
        elif error:
            self._error = error
        elif status == 0 and self._said.success is not None:
            self._control.done()
            return
        elif self._stopped:
            self._error = _stopped(self._stopped, self._said)
        else:
            self._error = self._explain(status)
        self._control.fail(self._error)

    def _is_published(self) -> bool:
        """Give the results their names, now that all hosts are done; say so, or that it failed."""
        try:
            _name_results(self._said.results)
        except OSError as problem:
            self._error = as_job_error(problem)
            self._control.fail(self._error)
            return False
        log(self._said.success or "")
        return True

    def _end(self) -> int:
        """Make sure that nothing of the work is left; return its exit status, 0 if that is known already."""
        if not self._is_running:
            return 0
        self._is_running = False
        self._child.kill()
        status = self._child.reap()
        self._said.listen()
        with suppress(KeyError):
            self._poll.unregister(self._said.fd)
        os.close(self._said.fd)
        for folder in self._said.scratch:
            shutil.rmtree(folder, ignore_errors=True)
        return status


def _ended(child: int) -> bool:
    """Return whether the child has ended, and collect every other process that has."""
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == child:
                return True
            os.waitpid(ended.si_pid, 0)
    return False


def _session(leader: int) -> list[int]:
    """Return the living processes of a session."""
    living = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                # The command, in brackets, may hold anything; state, parent, group and session follow it.
                text = (process / "stat").read_text(errors="replace")
                state, _, _, session = text.rpartition(")")[2].split()[:4]
                if int(session) == leader and state not in "ZX":
                    living.append(int(process.name))
    return living


@contextmanager
def _signals() -> Iterator[int]:
    """Catch the signals that matter; yield a file descriptor that their numbers can be read from."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    earlier = {number: signal.signal(number, _noted) for number in (*STOPS, signal.SIGCHLD)}
    earlier_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(earlier_fd)
        for number, handler in earlier.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal that is read from the wake-up descriptor: without a handler none arrives there."""


def _name_results(results: Sequence[Path]) -> None:
    """Give the results their names: here, where no signal can make a failure of the job any more.

    Raises OSError, and leaves none of them, if one can't have its name.
    """
    named: list[Path] = []
    try:
        for path in results:
            place = path.with_name(path.name.removeprefix(PARTIAL))
            path.replace(place)
            named.append(place)
    except OSError:
        for path in named:
            path.unlink(missing_ok=True)
        raise


def _stopped(number: signal.Signals, said: Listener) -> JobError:
    return PlatformError(
        f"the job was stopped by {number.name}{_while(said)}, and no model was written. If nobody "
        "stopped it, its time limit (max_run) or a Spot interruption did: raise the limit or start again.",
        exit_code=128 + number,
    )


def _frozen(said: Listener, seconds: float | None) -> JobError:
    return PlatformError(
        f"the work gave no sign of life for {seconds} s{_while(said)}: its process is frozen. Start the job "
        "again."
    )


def _out_of_memory(said: Listener, environ: Mapping[str, str], root: Path) -> JobError:
    machine = read_machine(environ, root)
    owner = (
        "the container's memory limit" if machine.memory_limit_source == "cgroup" else "the machine's memory"
    )
    return PlatformError(
        f"out of memory: the kernel killed the work{_while(said)}, at {owner} of "
        f"{readable_bytes(machine.memory_limit)}. "
        "Use an instance type with more memory, or fewer rows or columns."
    )


def _unreported(status: int, said: Listener) -> JobError:
    """Explain an end that the child itself said nothing about."""
    if status >= 0:
        how = f"with exit code {status}" if status else "as if all was well"
        return AlgorithmError(
            f"the work ended {how}{_while(said)}, without a word of success or failure: see the log."
        )
    number = -status
    name = signal.Signals(number).name if number in set(signal.Signals) else "an unnamed signal"
    if number in CRASHES:
        text = f"native code crashed{_while(said)}: signal {number} ({name}). The log shows where."
        return AlgorithmError(text, exit_code=128 + number)
    text = f"the work was killed from outside{_while(said)}: signal {number} ({name}). Start the job again."
    return PlatformError(text, exit_code=128 + number)


def _while(said: Listener) -> str:
    return f" in phase {said.phase}" if said.phase else " before its first phase"


def _report(error: JobError, failure: Path) -> None:
    """Write the failure to the log, whole, and to the failure file, unless the work has left one there."""
    for line in error.lines():
        log_error(line)
    beside = failure.with_name(f"{PARTIAL}failure")
    try:
        if failure.exists():
            return
        failure.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_text(error.failure_text(), encoding="utf-8")
            beside.replace(failure)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        log_error(f"The failure file {failure} could not be written: {problem.strerror}.")


def _models(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if not path.name.startswith(PARTIAL))
    return []


def _remove_partial(*folders: Path) -> None:
    """Remove results that have not got their names: all that stands there is uploaded."""
    for path in (path for folder in folders for path in folder.glob(f"{PARTIAL}*")):
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _open_to_all(*folders: Path) -> None:
    """Let everyone read and write the results, as `chmod -R a+rwX`: local mode runs as another user."""
    for folder in folders:
        for place, _, names in folder.walk():
            for path in (place, *(place / name for name in names)):
                with suppress(OSError):
                    mode = path.lstat().st_mode
                    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                        runs = 0o111 if stat.S_ISDIR(mode) or mode & 0o111 else 0
                        path.chmod(stat.S_IMODE(mode) | 0o666 | runs)
