"""Phases of the work: the seconds and the memory of each, and the pace of the rounds."""

from __future__ import annotations

import resource
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from smxgb.log import log
from smxgb.supervision.messages import PhaseBegins, RoundDone
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.supervision.link import Link

type PhaseName = Literal["load", "matrix", "train", "save"]


@dataclass(frozen=True)
class Phase:
    """A part of the work: how many seconds it took, and the most bytes of memory that were resident in it."""

    name: PhaseName
    seconds: float
    peak_memory: int


class PhaseClock:
    """Measures the phases of the work, one after the other, and tells the supervisor which one runs.

    Each phase resets the kernel's peak of resident memory, which `getrusage` and `wait4` report too: only
    `peak_memory` has the peak of the whole process. Where the kernel allows no reset, a phase's peak is the
    highest so far.
    """

    def __init__(self, link: Link, root: Path = Path("/")) -> None:
        self._link = link
        self._proc = root / "proc/self"
        self._phases: dict[PhaseName, Phase] = {}
        self._earlier_peak = 0

    @contextmanager
    def phase(self, name: PhaseName) -> Iterator[None]:
        """Measure what happens inside. The seconds of a phase that comes again are added up."""
        self._link.send(PhaseBegins(name))
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

    def seconds(self, name: PhaseName) -> float:
        """Return how long a phase took, 0 if there was none."""
        return self._phases[name].seconds if name in self._phases else 0.0

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
    """Tells the supervisor of each round, and writes the progress to the log every 30 seconds.

    `done` is the number of rounds that an earlier process has trained.
    """

    def __init__(self, link: Link, total: int, done: int = 0, every: float = 30.0) -> None:
        self._link = link
        self._total = total
        self._done = done
        self._every = every
        self._start = self._said = time.monotonic()

    def finished(self, number: int) -> None:
        """Note that round `number`, counted from 0, is done."""
        self._link.send(RoundDone(number, self._total))
        now = time.monotonic()
        if now - self._said < self._every:
            return
        self._said = now
        pace = (now - self._start) / (number + 1 - self._done)
        left = round(pace * (self._total - number - 1))
        log(
            f"Round {number + 1} of {self._total}: {pace:.2f} s a round, at most "
            f"{timedelta(seconds=left)} left."
        )
