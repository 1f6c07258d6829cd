"""The parent process: starts the work as a child, watches it, and turns its end into what SageMaker reads.

It imports nothing but Python, so that it stands while the work imports, and survives whatever happens to it.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import stat
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.environment import ROOT, Paths, child_environ, oom_kills, read_machine
from smxgb.errors import AlgorithmError, JobError, PlatformError, as_job_error
from smxgb.progress import PARTIAL, Listener, log, log_error, readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import FrameType

    from smxgb.progress import OnRound

COMMAND = (sys.executable, "-P", "-m", "smxgb", "work")
"""How the work is started; `--link` and the pipe's file descriptor are added. -P keeps a module that lies in
the current folder from standing in for one of the container's."""

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Ending:
    """How the job ended: the exit code, and why if it failed."""

    code: int
    error: JobError | None = None

    @classmethod
    def of(cls, error: JobError) -> Ending:
        """Return a failure with its own exit code."""
        return cls(error.exit_code, error)


@dataclass(frozen=True)
class Child:
    """The process that does the work, leader of its own session, and what it says."""

    pid: int
    said: Listener

    @classmethod
    def start(cls, command: Sequence[str], environ: Mapping[str, str], on_round: OnRound | None) -> Child:
        """Start the work. Raises OSError if it can't be started."""
        listening, speaking = os.pipe()
        try:
            os.set_inheritable(speaking, True)  # noqa: FBT003 - it takes no keyword
            arguments = [*command, "--link", str(speaking)]
            pid = os.posix_spawn(
                arguments[0], arguments, environ, setsid=True, setsigmask=(), setsigdef=STOPS
            )
        except OSError:
            os.close(listening)
            raise
        finally:
            os.close(speaking)
        return cls(pid, Listener(listening, on_round))

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
        ending = _run(command, environ, root, wakeup, on_round)
        if ending.error:
            _remove_partial(paths.model, paths.output_data)
            _report(ending.error, paths.failure)
            # In folders that are used again, as on one's own machine. It stays: no failure costs a model.
            for path in earlier:
                log_error(f"{path} is the model of an earlier job: this one has left none.")
        _open_to_all(paths.output, paths.model)
    return ending.code


def _run(
    command: Sequence[str],
    environ: Mapping[str, str],
    root: Path,
    wakeup: int,
    on_round: OnRound | None,
) -> Ending:
    kills = oom_kills(root)
    try:
        child = Child.start(command, child_environ(environ), on_round)
    except OSError as error:
        return Ending.of(AlgorithmError(f"the work could not be started: {command[0]}: {error.strerror}."))
    stopped = _watch(child, wakeup)
    child.kill()
    status = child.reap()
    child.said.listen()
    os.close(child.said.fd)
    for folder in child.said.scratch:
        shutil.rmtree(folder, ignore_errors=True)
    if child.said.error:
        return Ending.of(child.said.error)
    if status == 0 and child.said.success is not None:
        return _succeeded(child.said)
    if stopped:
        return _stopped(stopped, child.said)
    if status == -signal.SIGKILL and oom_kills(root) > kills:
        return _out_of_memory(child.said, environ, root)
    return _unreported(status, child.said)


def _watch(child: Child, wakeup: int) -> signal.Signals | None:
    """Wait for the child's end, not collecting it yet; return the signal that asked to stop, if any.

    While it is not collected its number, which is its session's, can't be given to another process.
    """
    poll = select.poll()
    poll.register(wakeup, select.POLLIN)
    poll.register(child.said.fd, select.POLLIN)
    stopped: signal.Signals | None = None
    while not _ended(child.pid):
        ready = {fd for fd, _ in poll.poll()}
        if child.said.fd in ready and not child.said.listen():
            poll.unregister(child.said.fd)
        if wakeup in ready:
            stops = [number for number in os.read(wakeup, 4096) if number in STOPS]
            # What is done can't be stopped: a child that has said so is on its way out.
            if stops and child.said.success is None:
                stopped = stopped or signal.Signals(stops[0])
                child.kill()
    return stopped


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


def _succeeded(said: Listener) -> Ending:
    """Give the results their names: here, where no signal can make a failure of the job any more."""
    named: list[Path] = []
    try:
        for path in said.results:
            place = path.with_name(path.name.removeprefix(PARTIAL))
            path.replace(place)
            named.append(place)
    except OSError as error:
        for path in named:
            path.unlink(missing_ok=True)
        return Ending.of(as_job_error(error))
    log(said.success or "")
    return Ending(0)


def _stopped(number: signal.Signals, said: Listener) -> Ending:
    return Ending(
        128 + number,
        PlatformError(
            f"the job was stopped by {number.name}{_while(said)}, and no model was written. If nobody "
            "stopped it, its time limit (max_run) or a Spot interruption did: raise the limit or start again."
        ),
    )


def _out_of_memory(said: Listener, environ: Mapping[str, str], root: Path) -> Ending:
    machine = read_machine(environ, root)
    owner = (
        "the container's memory limit" if machine.memory_limit_source == "cgroup" else "the machine's memory"
    )
    return Ending.of(
        PlatformError(
            f"out of memory: the kernel killed the work{_while(said)}, at {owner} of "
            f"{readable_bytes(machine.memory_limit)}. "
            "Use an instance type with more memory, or fewer rows or columns."
        )
    )


def _unreported(status: int, said: Listener) -> Ending:
    """Explain an end that the child itself said nothing about."""
    if status >= 0:
        how = f"with exit code {status}" if status else "as if all was well"
        return Ending.of(
            AlgorithmError(
                f"the work ended {how}{_while(said)}, without a word of success or failure: see the log."
            )
        )
    number = -status
    name = signal.Signals(number).name if number in set(signal.Signals) else "an unnamed signal"
    if number in CRASHES:
        text = f"native code crashed{_while(said)}: signal {number} ({name}). The log shows where."
        return Ending(128 + number, AlgorithmError(text))
    text = f"the work was killed from outside{_while(said)}: signal {number} ({name}). Start the job again."
    return Ending(128 + number, PlatformError(text))


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
