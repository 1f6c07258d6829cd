"""Causes: the words for an end of a process that it has not explained itself."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from smxgb.errors import AlgorithmError, PlatformError
from smxgb.machine import read_machine
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from smxgb.errors import JobError
    from smxgb.supervision.child import Child

WORK = "the work"
"""What messages call the process that does the work, or has others do it."""

CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)


def unstartable(name: str, command: Sequence[str], error: OSError) -> JobError:
    """Explain why there is no process."""
    return AlgorithmError(f"{name} could not be started: {command[0]}: {error.strerror}.")


def stopped(number: signal.Signals, child: Child) -> JobError:
    """Explain the end that a signal to the supervisor has brought."""
    return PlatformError(
        f"the job was stopped by {number.name}{_while(child)}, and no model was written. If nobody "
        "stopped it, its time limit (max_run) or a Spot interruption did: raise the limit or start again.",
        exit_code=128 + number,
    )


def frozen(child: Child) -> JobError:
    """Explain the end of a process that has been silent for too long."""
    return PlatformError(
        f"{child.name} gave no sign of life for {child.silence:g} s{_while(child)}: its process is frozen. "
        "Start the job again."
    )


def out_of_memory(child: Child, environ: Mapping[str, str], root: Path) -> JobError:
    """Explain the end of a process that the kernel has killed for want of memory."""
    machine = read_machine(environ, root)
    owner = (
        "the container's memory limit" if machine.memory_limit_source == "cgroup" else "the machine's memory"
    )
    return PlatformError(
        f"out of memory: the kernel killed {child.name}{_while(child)}, at {owner} of "
        f"{readable_bytes(machine.memory_limit)}. Use an instance type with more memory, or fewer rows or "
        "columns."
    )


def unreported(child: Child, status: int) -> JobError:
    """Explain an end by its exit status: an exit code, or the number of a signal below zero."""
    if status >= 0:
        how = f"with exit code {status}" if status else "as if all was well"
        return AlgorithmError(
            f"{child.name} ended {how}{_while(child)}, without a word of success or failure: see the log."
        )
    number = -status
    name = signal.Signals(number).name if number in set(signal.Signals) else "an unnamed signal"
    if number in CRASHES:
        where = "" if child.name == WORK else f" of {child.name}"
        text = f"native code{where} crashed{_while(child)}: signal {number} ({name}). The log shows where."
        return AlgorithmError(text, exit_code=128 + number)
    text = (
        f"{child.name} was killed from outside{_while(child)}: signal {number} ({name}). Start the job again."
    )
    return PlatformError(text, exit_code=128 + number)


def _while(child: Child) -> str:
    return f" in phase {child.said.phase}" if child.said.phase else " before its first phase"
