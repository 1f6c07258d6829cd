"""The run of a script: started, watched to its end, and told to stop when the job is."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from smxgb.errors import PlatformError, UserError
from smxgb.log import log
from smxgb.machine import oom_kills
from smxgb.script_mode.error_log import ErrorLog
from smxgb.supervision.messages import Stop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from smxgb.errors import JobError
    from smxgb.supervision.link import Link

TURN = 200
"""Milliseconds between two looks at the processes that a script has left, while the job stops."""


def run(name: str, command: Sequence[str], environ: Mapping[str, str], folder: Path, link: Link) -> None:
    """Run a program to its end, as the leader of a process group.

    Standard output stays ours. What it writes to standard error is passed on. When the supervisor says
    `Stop`, the whole group gets SIGTERM, and then has all the time until the supervisor ends this process.

    Raises:
        UserError: If it ends with another exit code than 0, which is then that of the job.
        PlatformError: If a signal ends it, or it can't be started.
    """
    kills = oom_kills()
    reading, writing = os.pipe2(os.O_CLOEXEC)
    try:
        process = subprocess.Popen(command, env=environ, cwd=folder, stderr=writing, process_group=0)
    except OSError as error:
        raise PlatformError(f"{name} can't be started: {command[0]}: {error.strerror}.") from error
    finally:
        os.close(writing)
    errors = ErrorLog(reading)
    is_stopped = _watch(process, errors, link)
    status = process.wait()
    failure = _failure(name, status, errors, is_stopped=is_stopped, ran_out=oom_kills() > kills)
    if failure:
        raise failure


def _watch(process: subprocess.Popen[bytes], errors: ErrorLog, link: Link) -> bool:
    """Wait for the end of a script; return whether it was told to stop.

    What it has started and left running is waited for only when it was: a shell ends at once of the signal
    that its command still works at.
    """
    is_stopped = False
    end = os.pidfd_open(process.pid)
    poll = select.poll()
    for fd in (end, errors.fd, link.fileno()):
        if fd is not None:
            poll.register(fd, select.POLLIN)
    try:
        has_ended = False
        while not has_ended or (is_stopped and _is_alive(process.pid)):
            ready = {fd for fd, _ in poll.poll(TURN if is_stopped else None)}
            if errors.fd in ready and not errors.pass_on():
                poll.unregister(errors.fd)
            if end in ready:
                has_ended = True
                poll.unregister(end)
                process.poll()
            if link.has_heard(Stop) and not is_stopped:
                is_stopped = True
                log("SIGTERM is passed on to the script and all that it has started.")
                _signal(process.pid, signal.SIGTERM)
        errors.pass_on()
    finally:
        os.close(end)
    return is_stopped


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def _failure(name: str, status: int, errors: ErrorLog, *, is_stopped: bool, ran_out: bool) -> JobError | None:
    """Return what the end of a script means, None if it has ended well."""
    if status == 0:
        return None
    if status > 0:
        return UserError(f"{name} ended with exit code {status}{errors.explanation()}.", exit_code=status)
    number = -status
    signals = {each.value: each.name for each in signal.Signals}
    called = f"signal {number} ({signals.get(number, 'unnamed')})"
    if is_stopped:
        text = f"the job was stopped, and {name} ended of {called}. What it has saved is kept."
    elif number == signal.SIGKILL and ran_out:
        text = (
            f"out of memory: the kernel killed {name}. Use an instance type with more memory, or less of it."
        )
    elif number == signal.SIGKILL:
        text = f"{name} was killed from outside: {called}."
    else:
        text = f"{name} crashed: {called}{errors.explanation()}."
    return PlatformError(text, exit_code=128 + number)
