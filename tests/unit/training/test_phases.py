from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from smxgb.supervision.link import Link, Listener
from smxgb.supervision.messages import PhaseBegins, RoundDone
from smxgb.training.phases import PhaseClock, RoundClock

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024**2


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=30
    )


def test_each_phase_has_its_own_peak_of_memory() -> None:
    script = (
        "from smxgb.training.phases import PhaseClock; from smxgb.supervision.link import Link\n"
        "clock = PhaseClock(Link())\n"
        "with clock.phase('save'): pass\n"
        "with clock.phase('load'): data = bytearray(200 * 2**20)\n"
        "del data\n"
        "with clock.phase('matrix'): data = bytearray(50 * 2**20)\n"
        "print(*(phase.peak_memory for phase in clock.phases), clock.peak_memory)"
    )
    base, load, matrix, whole = map(int, run(script).stdout.split())
    assert 190 * MIB < load - base < 220 * MIB
    assert 40 * MIB < matrix - base < 70 * MIB
    assert whole == load


def test_the_peak_of_the_whole_job_counts_what_came_before_the_first_phase() -> None:
    script = (
        "from smxgb.training.phases import PhaseClock; from smxgb.supervision.link import Link\n"
        "data = bytearray(200 * 2**20)\n"
        "del data\n"
        "clock = PhaseClock(Link())\n"
        "with clock.phase('load'): pass\n"
        "print(clock.phases[0].peak_memory, clock.peak_memory)"
    )
    load, whole = map(int, run(script).stdout.split())
    assert 190 * MIB < whole - load < 220 * MIB


def test_where_the_kernel_tells_no_peak_of_a_phase_the_highest_so_far_counts(tmp_path: Path) -> None:
    clock = PhaseClock(Link(), root=tmp_path)
    with clock.phase("load"):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert clock.peak_memory == pytest.approx(peak, rel=0.05)


def divide_slowly() -> float:
    time.sleep(0.01)
    return 1 / 0


def test_a_phase_tells_the_supervisor_and_is_measured_even_if_it_fails(pipe: tuple[Link, Listener]) -> None:
    link, listener = pipe
    clock = PhaseClock(link)
    with pytest.raises(ZeroDivisionError), clock.phase("load"):
        divide_slowly()
    assert listener.listen() == [PhaseBegins("load")]
    assert clock.phases[0].seconds >= 0.01


def test_a_phase_that_comes_again_adds_its_seconds() -> None:
    clock = PhaseClock(Link())
    for _ in range(2):
        with clock.phase("load"):
            time.sleep(0.01)
    with clock.phase("matrix"):
        pass
    assert [phase.name for phase in clock.phases] == ["load", "matrix"]
    assert clock.phases[0].seconds >= 0.02


def test_the_summary_names_each_phase_with_seconds_and_memory() -> None:
    clock = PhaseClock(Link())
    with clock.phase("train"):
        pass
    assert clock.summary().startswith("Phases: train 0.0 s (peak ")


def test_every_so_often_one_line_says_how_far_the_training_is(capsys: pytest.CaptureFixture[str]) -> None:
    clock = RoundClock(Link(), total=200, every=0.05)
    started = time.monotonic()
    number = 0
    while time.monotonic() - started < 0.12:
        time.sleep(0.01)
        clock.finished(number)
        number += 1
    lines = capsys.readouterr().out.splitlines()
    assert 1 <= len(lines) <= 2
    assert all(
        re.fullmatch(r"Round \d+ of 200: 0\.\d\d s a round, at most 0:00:0\d left\.", line) for line in lines
    )


def test_a_short_training_has_no_such_line_but_tells_the_supervisor(
    pipe: tuple[Link, Listener], capsys: pytest.CaptureFixture[str]
) -> None:
    link, listener = pipe
    clock = RoundClock(link, total=2)
    clock.finished(0)
    clock.finished(1)
    assert listener.listen() == [RoundDone(0, 2), RoundDone(1, 2)]
    assert not capsys.readouterr().out
