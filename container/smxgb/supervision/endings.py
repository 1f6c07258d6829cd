"""Endings: the failures that a process could not report itself, by how it has ended."""

from __future__ import annotations

import errno
import signal
from typing import TYPE_CHECKING

from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.machine import read_machine
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from smxgb.errors import JobError
    from smxgb.supervision.child import Child

WORK = "the work"
"""What messages call the process that trains, or starts those that do."""

SCRIPT = "the script's process"
"""What messages call the process that runs a user's script."""

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
"""The signals that faults of native code raise."""


def unstartable(name: str, command: Sequence[str], error: OSError) -> JobError:
    """Return the failure of a process that could not be started."""
    if error.errno in {errno.EAGAIN, errno.ENOMEM}:
        return PlatformError(f"{name} could not be started: {as_job_error(error).mistakes[0]}")
    return AlgorithmError(f"{name} could not be started: {command[0]}: {error.strerror}.")


def stopped(number: signal.Signals, child: Child) -> JobError:
    """Return the failure of a process that was killed because a signal has told the supervisor to stop."""
    return PlatformError(
        f"the job was stopped by {number.name}{_during(child)}, and no model was written. If nobody "
        "stopped it, its time limit (max_run) or a Spot interruption did: raise the limit or start again.",
        exit_code=128 + number,
    )


def frozen(child: Child) -> JobError:
    """Return the failure of a process that has given no sign of life for too long."""
    return PlatformError(
        f"{child.name} gave no sign of life for {child.silence:g} s{_during(child)}: its process is frozen. "
        "Start the job again.",
        may_pass=True,
    )


def out_of_memory(child: Child, environ: Mapping[str, str], root: Path) -> JobError:
    """Return the failure of a process that the kernel has killed because memory ran out."""
    machine = read_machine(environ, root)
    owner = (
        "the container's memory limit" if machine.memory_limit_source == "cgroup" else "the machine's memory"
    )
    return PlatformError(
        f"out of memory: the kernel killed {child.name}{_during(child)}, at {owner} of "
        f"{readable_bytes(machine.memory_limit)}. Use an instance type with more memory, or fewer rows or "
        "columns.",
        may_pass=child.has_slower_plan,
        wants_memory=child.has_slower_plan,
    )


def unreported(child: Child, status: int) -> JobError:
    """Return the failure of a process that has reported neither success nor failure.

    `status` is its exit code, or the number of the signal that killed it, below zero.
    """
    if status >= 0:
        how = f"with exit code {status}" if status else "as if all was well"
        return AlgorithmError(
            f"{child.name} ended {how}{_during(child)}, without a word of success or failure: see the log.",
            may_pass=True,
        )
    number = -status
    name = signal.Signals(number).name if number in set(signal.Signals) else "an unnamed signal"
    if number in CRASHES:
        where = "" if child.name == WORK else f" of {child.name}"
        text = f"native code{where} crashed{_during(child)}: signal {number} ({name}). The log shows where."
        return AlgorithmError(text, exit_code=128 + number, may_pass=True)
    text = f"{child.name} was killed from outside{_during(child)}: signal {number} ({name}). "
    text += "Start the job again."
    return PlatformError(text, exit_code=128 + number, may_pass=True)


def _during(child: Child) -> str:
    return f" in phase {child.phase}" if child.phase else " before its first phase"
