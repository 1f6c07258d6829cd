"""Child processes, which the supervisor starts, watches and kills: each leads a session of its own."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.limits import beat_of
from smxgb.supervision.link import Listener
from smxgb.supervision.messages import FIRST_PHASE, Failed, PhaseBegins, Planned, Scratch, Succeeded

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from smxgb.errors import JobError
    from smxgb.supervision.messages import Message

STOPS = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""The signals with which a job is stopped: those that people and schedulers send to end a process."""


@dataclass
class Child:
    """A process, and what it has said of its own end.

    `name` is what messages call it. If it gives no sign of life for `silence` seconds it counts as frozen;
    with None it never does. `phase` is the last that it has begun, None before the first. `has_phases` turns
    True with the second. `has_slower_plan` says that it could do with less memory.
    """

    name: str
    pid: int
    link: Listener
    silence: float | None
    phase: str | None = None
    has_phases: bool = False
    has_slower_plan: bool = False
    error: JobError | None = None
    success: Succeeded | None = None
    scratch: list[Path] = field(default_factory=list)

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        silence: float | None = None,
    ) -> Child:
        """Start a process. Two options on its command line say how to reach this one, and how often to beat.

        Raises OSError if it can't be started.
        """
        ours, theirs = socket.socketpair()
        try:
            theirs.set_inheritable(True)
            signs = ["--beat", str(beat_of(silence))] if silence else []
            arguments = [*command, *signs, "--link", str(theirs.fileno())]
            pid = os.posix_spawn(
                arguments[0], arguments, environ, setsid=True, setsigmask=(), setsigdef=STOPS
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(name, pid, Listener(ours.detach()), silence)

    def listen(self) -> list[Message]:
        """Return what the process has said since the last call, and remember what matters at its end."""
        messages = self.link.listen()
        for message in messages:
            match message:
                case PhaseBegins():
                    self.phase = message.name
                    self.has_phases |= message.name != FIRST_PHASE
                case Planned():
                    self.has_slower_plan = message.has_slower
                case Scratch():
                    self.scratch.append(message.folder)
                case Failed():
                    self.error = message.error
                case Succeeded():
                    self.success = message
        return messages

    def kill(self) -> None:
        """Kill the process and all that it has started, except what has left its session."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + 5
        while left := _processes_of_session(self.pid):
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


def reap_others(children: Container[int]) -> int | None:
    """Reap the processes that have ended, up to the first that is one of these children.

    Returns the number of that child, which is still to be reaped, or None if none of the children has ended.
    The others are orphans: process 1 of a container inherits them.
    """
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in children:
                return ended.si_pid
            os.waitpid(ended.si_pid, 0)
    return None


def _processes_of_session(leader: int) -> list[int]:
    """Return the living processes of a session."""
    living = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                # The command may contain anything. It is in brackets; state, parent, group, session follow.
                text = (process / "stat").read_text(errors="replace")
                state, _, _, session = text.rpartition(")")[2].split()[:4]
                if int(session) == leader and state not in "ZX":
                    living.append(int(process.name))
    return living
