"""The watch over the process that does the work, and those that it asks for, until there is a verdict."""

from __future__ import annotations

import os
import select
import shutil
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from smxgb.errors import as_job_error, from_json
from smxgb.limits import beat_of
from smxgb.log import log
from smxgb.supervision.child import STOPS, ended_among
from smxgb.supervision.control.clock import Clock
from smxgb.supervision.endings import frozen, stopped, unstartable
from smxgb.supervision.publishing import publish

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from smxgb.errors import JobError
    from smxgb.program import Program
    from smxgb.supervision.child import Child
    from smxgb.supervision.control import Control

SETTLING = 1.0
"""Seconds in which a better cause may still come, when one process may have failed because another has."""

TURN = 0.1
"""Seconds between two looks meanwhile."""


class Watch:
    """Watches the work, and passes on what it says to the other hosts, and what they say to it.

    `explain` finds the words for the exit status of a process that has not explained its end itself; `start`
    starts a process that the work asks for.
    """

    def __init__(
        self,
        work: Child,
        control: Control,
        wakeup: int,
        explain: Callable[[Child, int], JobError],
        start: Callable[[Program], Child],
    ) -> None:
        self._work = work
        self._control = control
        self._wakeup = wakeup
        self._explain = explain
        self._start = start
        self._children: dict[int, Child] = {}
        self._stopped: signal.Signals | None = None
        self._failures: list[tuple[float, JobError]] = []
        self._error: JobError | None = None
        self._is_done = False
        self._results: list[Path] = []
        self._passed_on: dict[tuple[int, str], object] = {}
        self._clock = Clock()
        self._signs: dict[int, tuple[int, float]] = {}
        self._poll = select.poll()
        for fd in (wakeup, control.fileno()):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        self._add(work)

    def verdict(self) -> JobError | None:
        """Wait for the end of the job, of which the work's own end is only a part; return why it failed."""
        ready: set[int] = set()
        while True:
            for child in list(self._children.values()):
                self._listen(child, ready)
            if self._wakeup in ready and self._is_stopped():
                return self._error
            self._notice_ends()
            self._conclude()
            while messages := self._control.hear():
                for message in messages:
                    match message:
                        case {"abort": dict(failure)}:
                            self._end_all()
                            return from_json(failure)
                        case {"leave": True}:
                            self._end_all()
                            if self._is_published():
                                return None
                        case _:
                            self._work.said.tell(message)
            ready = {fd for fd, _ in self._poll.poll(self._pause())}

    def _add(self, child: Child) -> None:
        self._children[child.pid] = child
        self._signs[child.pid] = 0, self._clock.now()
        self._poll.register(child.said.fd, select.POLLIN)

    def _pause(self) -> float | None:
        """Return the milliseconds until it is time to look again, if nothing happens."""
        beats = [beat_of(child.silence) for child in self._children.values() if child.silence]
        settling = [TURN] if self._failures and self._error is None else []
        turns = [*beats, *settling, *([self._control.beat] if self._control.beat else [])]
        return 1000 * min(turns) if turns else None

    def _listen(self, child: Child, ready: set[int]) -> None:
        if child.said.fd in ready and not child.said.listen():
            self._poll.unregister(child.said.fd)
        said = {"phase": child.said.phase, "arrived": child.said.arrived, "tracker": child.said.tracker}
        for key, value in said.items():
            if self._is_news(child, key, value):
                self._control.tell({key: value})
        if child is not self._work and self._is_news(child, "finished", child.said.success):
            self._work.said.tell({"finished": {"name": child.name, "said": child.said.success}})
        while child.said.programs:
            program = child.said.programs.pop(0)
            try:
                self._add(self._start(program))
            except OSError as error:
                self._note(unstartable(program.name, program.command, error))

    def _is_news(self, child: Child, key: str, value: object) -> bool:
        """Return whether a child has said something for the first time, or something else than before."""
        if value is None or value == self._passed_on.get((child.pid, key)):
            return False
        self._passed_on[child.pid, key] = value
        return True

    def _is_stopped(self) -> bool:
        """Take in the signals; return whether one ends the wait for the verdict on a failure."""
        stops = [number for number in os.read(self._wakeup, 4096) if number in STOPS]
        # What is done can't be stopped: work that has said so is on its way out.
        if stops and self._children and not self._is_done and self._work.said.success is None:
            self._stopped = self._stopped or signal.Signals(stops[0])
            self._control.stop()
            for child in self._children.values():
                child.kill()
        return bool(stops) and self._error is not None

    def _notice_ends(self) -> None:
        # A child is collected only here: before, its number, its session's, can't go to another process.
        while (pid := ended_among(self._children)) is not None:
            self._take_end(self._children[pid], None)
        now = self._clock.now()
        for child in list(self._children.values()):
            signs, last = self._signs[child.pid]
            if child.said.signs > signs:
                self._signs[child.pid] = child.said.signs, now
            elif child.silence and now - last > child.silence:
                self._take_end(child, frozen(child))

    def _take_end(self, child: Child, error: JobError | None) -> None:
        """Take note of a child's end; `error` is what is known before it has said so itself."""
        status = self._end(child)
        said = child.said
        if self._is_done:
            return
        if said.error or error:
            self._note(said.error or error)
        elif said.success is not None and (status == 0 or child is not self._work):
            if child is self._work:
                # Its programs stay until all hosts are done: those of other hosts may still need them.
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
        """Find what ends this host's part of the job, if anything has failed: what is certain comes first."""
        if self._error or not self._failures:
            return
        begin, first = self._failures[0]
        certain = next((error for _, error in self._failures if error.origin != "elsewhere"), None)
        if certain or not self._children or self._clock.now() - begin > SETTLING:
            self._end_all()
            self._error = certain or first
            self._control.fail(self._error)

    def _is_published(self) -> bool:
        """Give the results their names, now that all hosts are done; say so, or that it failed."""
        try:
            publish(self._results)
        except OSError as problem:
            self._error = as_job_error(problem)
            self._control.fail(self._error)
            return False
        log(self._work.said.success or "")
        return True

    def _end_all(self) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        for child in list(self._children.values()):
            self._end(child)

    def _end(self, child: Child) -> int:
        """Make sure that nothing of a child is left; return its exit status."""
        del self._children[child.pid]
        child.kill()
        status = child.reap()
        child.said.listen()
        self._results += child.said.results
        with suppress(KeyError):
            self._poll.unregister(child.said.fd)
        os.close(child.said.fd)
        for folder in child.said.scratch:
            shutil.rmtree(folder, ignore_errors=True)
        return status
