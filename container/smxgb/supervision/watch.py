"""The watch over the processes of one host, from the start of the work to the verdict on the job."""

from __future__ import annotations

import os
import select
import shutil
import signal
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from smxgb.environment import PLANS_GIVEN_UP
from smxgb.errors import as_job_error
from smxgb.limits import beat_of
from smxgb.log import log, log_values
from smxgb.supervision.child import STOPS, reap_others
from smxgb.supervision.control.clock import Clock
from smxgb.supervision.endings import frozen, stopped, unstartable
from smxgb.supervision.messages import (
    Abort,
    Arrived,
    Finished,
    Leave,
    PhaseBegins,
    Rendezvous,
    Restart,
    RoundDone,
    Start,
    Stop,
    Succeeded,
)
from smxgb.supervision.publishing import publish

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from pathlib import Path

    from smxgb.errors import JobError
    from smxgb.program import Program
    from smxgb.supervision.child import Child
    from smxgb.supervision.control import Control
    from smxgb.supervision.messages import Message, OnRound

SETTLING = 1.0
"""Seconds to wait for a better cause, when a process may have failed only because another one has."""

TURN = 0.1
"""Seconds between two checks during that time, and while a job stops."""

ENDS = {
    "train": "the job stops after this round",
    "save": "the job stops after this round",
    "script": "the script is told to end",
}
"""The phases of the work in which there is something to save, and how it then ends."""


class Watch:
    """Watches the processes of this host, and passes messages between them and the other hosts.

    `program` is the work, which is started at once: OSError is raised if it can't be.
    `wakeup` is the descriptor from which the numbers of signals are read. `explain` returns the failure that
    an exit status means, for a process that has reported none. `start` starts a program of the work. A job
    that is told to stop while it trains has `grace` seconds for its present round and for saving.
    """

    def __init__(
        self,
        program: Program,
        control: Control,
        wakeup: int,
        explain: Callable[[Child, int], JobError],
        start: Callable[[Program], Child],
        *,
        grace: float,
        on_round: OnRound | None = None,
    ) -> None:
        self._program = program
        self._control = control
        self._wakeup = wakeup
        self._explain = explain
        self._start = start
        self._grace = grace
        self._on_round = on_round
        self._meeting: list[Message] = []
        self._phase: str | None = None
        self._children: dict[int, Child] = {}
        self._last_signs: dict[int, float] = {}
        self._stopped: signal.Signals | None = None
        self._stop_by: float | None = None
        self._failures: list[tuple[float, JobError]] = []
        self._error: JobError | None = None
        self._is_done = False
        self._plans_given_up = 0
        self._results: list[Path] = []
        self._clock = Clock()
        self._poll = select.poll()
        for fd in (wakeup, control.fileno()):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        self._work = start(program)
        self._add(self._work)

    def verdict(self) -> JobError | None:
        """Wait until the whole job has ended, on all hosts; return why it failed, None if it succeeded."""
        ready: set[int] = set()
        while True:
            for child in list(self._children.values()):
                self._hear(child, ready)
            if self._wakeup in ready and self._handle_signals() and self._error:
                return self._error  # there is no time left for the verdict of the other hosts
            self._notice_ends()
            self._conclude()
            while messages := self._control.hear():
                for message in messages:
                    match message:
                        case Abort():
                            self._end_all()
                            return message.error
                        case Restart():
                            self._restart(message)
                        case Leave():
                            self._end_all()
                            if self._publish():
                                return None
                        case _:
                            self._meeting.append(message)
                            self._work.link.send(message)
            ready = {fd for fd, _ in self._poll.poll(self._pause())}

    def _restart(self, restart: Restart) -> None:
        """Start the work again, and forget what has become of it so far."""
        self._end_all()
        for line in restart.error.lines():
            log(line)
        log(f"The work is started again (restart {restart.attempt}), and goes on from its last checkpoint.")
        self._plans_given_up += restart.error.wants_memory
        self._error, self._phase, self._is_done = None, None, False
        for kept in (self._failures, self._results, self._meeting):
            kept.clear()
        try:
            self._work = self._begin(self._program)
        except OSError as error:
            self._note(unstartable(self._program.name, self._program.command, error))
            return
        self._add(self._work)
        if self._stopped:  # what was to be saved is lost
            self._kill_all()

    def _begin(self, program: Program) -> Child:
        """Start a program, which is told how many memory plans were not enough. Raises OSError."""
        told = {PLANS_GIVEN_UP: str(self._plans_given_up)} if self._plans_given_up else {}
        return self._start(replace(program, environ={**program.environ, **told}))

    def _add(self, child: Child) -> None:
        self._children[child.pid] = child
        self._last_signs[child.pid] = self._clock.now()
        self._poll.register(child.link.fd, select.POLLIN)

    def _pause(self) -> float | None:
        """Return how many milliseconds to wait at most for the next event, None for any time."""
        beats = [beat_of(child.silence) for child in self._children.values() if child.silence]
        settling = [TURN] if self._failures and self._error is None else []
        settling += [TURN] if self._stop_by else []
        turns = [*beats, *settling, *([self._control.beat] if self._control.beat else [])]
        return 1000 * min(turns) if turns else None

    def _hear(self, child: Child, ready: Container[int]) -> None:
        """Take in what a child has said, if it is ready to be read, and do what it asks for."""
        if child.link.fd not in ready:
            return
        messages = child.listen()
        if not child.link.is_open:
            self._poll.unregister(child.link.fd)
        if messages:
            self._last_signs[child.pid] = self._clock.now()
        for message in messages:
            self._handle(message, child)

    def _handle(self, message: Message, child: Child) -> None:
        match message:
            case PhaseBegins():
                self._phase = message.name
                self._control.tell(message)
            case Arrived() | Rendezvous():
                self._control.tell(message)
            case RoundDone():
                self._control.tell(message)
                if self._on_round:
                    self._on_round(message)
            case Start():
                self._start_program(message.program)
            case Succeeded() if child is not self._work:
                self._work.link.send(Finished(child.name, message.text))

    def _start_program(self, program: Program) -> None:
        try:
            child = self._begin(program)
        except OSError as error:
            self._note(unstartable(program.name, program.command, error))
            return
        self._add(child)
        for message in self._meeting:
            child.link.send(message)

    def _handle_signals(self) -> bool:
        """Read the signals that have arrived, and stop the job if one says so; return whether one does."""
        stops = [number for number in os.read(self._wakeup, 4096) if number in STOPS]
        # A success that the work has reported stands: its process is about to end.
        if stops and self._children and not self._is_done and self._work.success is None:
            self._stop(signal.Signals(stops[0]))
        return bool(stops)

    def _stop(self, number: signal.Signals) -> None:
        """Stop the job: after its present round if it trains, with a script that ends, else at once.

        A second Ctrl-C stops it at once too.
        """
        is_repeated = self._stopped is signal.SIGINT is number
        first, self._stopped = self._stopped is None, number if is_repeated else self._stopped or number
        saving = next((child.phase for child in self._children.values() if child.phase in ENDS), None)
        if is_repeated or saving is None:
            self._kill_all()
        elif first:
            self._stop_by = self._clock.now() + self._grace
            log(f"{number.name}: {ENDS[saving]}, in at most {self._grace:g} s.")
            for child in self._children.values():
                child.link.send(Stop())

    def _kill_all(self) -> None:
        self._stop_by = None
        self._control.stop()
        for child in self._children.values():
            child.kill()

    def _notice_ends(self) -> None:
        """Take note of the children that have ended, and of those that are frozen."""
        for child in self._children.values():
            # The dask mode's scheduler, and the work that has started it, have the phases of the workers.
            if not child.has_phases:
                child.phase = self._phase
        # Only here is a child reaped. Until then no other process can get its number, that of its session.
        while (pid := reap_others(self._children)) is not None:
            self._take_end(self._children[pid], None)
        now = self._clock.now()
        if self._stop_by and now > self._stop_by:
            self._kill_all()
        for child in list(self._children.values()):
            if child.silence and now - self._last_signs[child.pid] > child.silence:
                self._take_end(child, frozen(child))

    def _take_end(self, child: Child, error: JobError | None) -> None:
        """Take note of a child's end. `error` is a failure that the child can't have reported itself."""
        status = self._end(child)
        if self._is_done:
            return
        if child.error or error:
            self._note(child.error or error)
        elif child.success and (status == 0 or child is not self._work):
            if child is self._work:
                # Its programs go on until all hosts are done: those of other hosts may still need them.
                self._is_done = True
                self._control.done()
        elif self._stopped:
            self._note(stopped(self._stopped, child))
        else:
            self._note(self._explain(child, status))

    def _note(self, error: JobError | None) -> None:
        if error:
            self._failures.append((self._clock.now(), error))

    def _conclude(self) -> None:
        """Choose the failure that ends this host's part of the job, if there is any, and end all processes.

        A failure that may be the consequence of another host's counts only if no other one follows in time.
        """
        if self._error or not self._failures:
            return
        begin, first = self._failures[0]
        certain = next((error for _, error in self._failures if error.origin != "elsewhere"), None)
        if certain or not self._children or self._clock.now() - begin > SETTLING:
            self._end_all()
            self._error = certain or first
            if self._stopped:
                self._error.origin, self._error.may_pass = "here", False
            self._control.fail(self._error)

    def _publish(self) -> bool:
        """Rename the results and log the success, now that all hosts are done; return whether that worked."""
        try:
            publish(self._results)
        except OSError as problem:
            self._error = as_job_error(problem)
            self._control.fail(self._error)
            return False
        log_values(self._work.success.text if self._work.success else "")
        return True

    def _end_all(self) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        for child in list(self._children.values()):
            self._end(child)

    def _end(self, child: Child) -> int:
        """Kill a child, unless it has ended, and remove what it leaves; return its exit status."""
        del self._children[child.pid]
        child.kill()
        status = child.reap()
        child.listen()
        self._results += child.success.results if child.success else ()
        with suppress(KeyError):
            self._poll.unregister(child.link.fd)
        os.close(child.link.fd)
        for folder in child.scratch:
            shutil.rmtree(folder, ignore_errors=True)
        return status
