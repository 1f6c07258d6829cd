"""Child processes, which the supervisor starts, watches and kills: each leads a session of its own."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from smxgb.limits import beat_of
from smxgb.supervision.messages import Listener

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from smxgb.supervision.messages import OnRound

STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True)
class Child:
    """A process, and what it says.

    `name` is what messages call it. `silence` is after how many seconds without a sign of life it counts as
    frozen, None if it never does.
    """

    name: str
    pid: int
    said: Listener
    silence: float | None

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        silence: float | None = None,
        on_round: OnRound | None = None,
    ) -> Child:
        """Start a process, which is told how to reach this one and how often to give a sign of life.

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
        return cls(name, pid, Listener(ours.detach(), on_round), silence)

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


def ended_among(children: Container[int]) -> int | None:
    """Return one of these children that has ended, still to be reaped; reap every other process that has."""
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid in children:
                return ended.si_pid
            os.waitpid(ended.si_pid, 0)
    return None


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
