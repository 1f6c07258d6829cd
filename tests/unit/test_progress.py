from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smxgb.errors import PlatformError, UserError
from smxgb.progress import (
    Link,
    Listener,
    PhaseClock,
    RoundClock,
    log,
    log_error,
    readable_bytes,
    warnings_as_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1024**2


@pytest.fixture
def pipe() -> Iterator[tuple[Link, Listener]]:
    reading, writing = os.pipe()
    yield Link(writing), Listener(reading)
    os.close(reading)
    os.close(writing)


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=30
    )


def test_log_lines_go_to_standard_output_and_errors_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log("[0]\ttrain-rmse:1.0")
    log_error("UserError: no")
    assert capsys.readouterr() == ("[0]\ttrain-rmse:1.0\n", "UserError: no\n")


def test_a_line_is_out_at_once() -> None:
    assert run("import os; from smxgb.progress import log; log('a'); os._exit(0)").stdout == "a\n"


def test_a_line_with_characters_that_the_log_can_not_show_is_spelled_out() -> None:
    script = (
        "import sys; from smxgb.progress import log\n"
        "sys.stdout.reconfigure(encoding='ascii'); log('ä\\udcff')"
    )
    assert run(script).stdout == "\\xe4\\udcff\n"


def test_a_log_that_nobody_reads_any_more_does_not_end_the_work() -> None:
    script = "from smxgb.progress import log\nfor _ in range(9): log('x' * 9999)\nraise SystemExit(7)"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(30) == 7


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (2048, "2.0 KiB"), (725 * MIB, "725 MiB"), (1500 * MIB, "1.5 GiB")],
)
def test_bytes_are_shown_with_the_digits_that_matter(count: int, text: str) -> None:
    assert readable_bytes(count) == text


def test_the_supervisor_hears_what_the_work_says(pipe: tuple[Link, Listener]) -> None:
    link, listener = pipe
    link.phase("load")
    link.phase("matrix")
    link.scratch(Path("/volume/a"))
    link.scratch(Path("/volume/b"))
    link.succeeded("done", [Path("/model/.smxgb-xgboost-model")])
    assert listener.listen()
    assert listener.phase == "matrix"
    assert listener.scratch == [Path("/volume/a"), Path("/volume/b")]
    assert listener.success == "done"
    assert listener.results == [Path("/model/.smxgb-xgboost-model")]
    assert listener.error is None


@given(st.lists(st.text(), min_size=1))
def test_an_error_arrives_as_it_was_sent(mistakes: list[str]) -> None:
    error = PlatformError(*mistakes)
    reading, writing = os.pipe()
    try:
        Link(writing).failed(error)
        listener = Listener(reading)
        listener.listen()
    finally:
        os.close(reading)
        os.close(writing)
    assert isinstance(listener.error, PlatformError)
    assert listener.error.mistakes == error.mistakes


def test_a_message_longer_than_the_pipe_arrives_whole() -> None:
    reading, writing = os.pipe()
    mistakes = [f"{number} " + "x" * 10_000 for number in range(60)]
    script = (
        "import sys; from smxgb.progress import Link; from smxgb.errors import UserError\n"
        "Link(int(sys.argv[1])).failed(UserError(*(f'{n} ' + 'x' * 10_000 for n in range(60))))"
    )
    listener = Listener(reading)
    with subprocess.Popen([sys.executable, "-c", script, str(writing)], pass_fds=[writing]):
        os.close(writing)
        deadline = time.monotonic() + 30
        while listener.listen() and time.monotonic() < deadline:
            time.sleep(0.001)
    os.close(reading)
    assert isinstance(listener.error, UserError)
    assert list(listener.error.mistakes) == mistakes


def test_a_message_cut_by_the_end_of_the_work_is_no_message(pipe: tuple[Link, Listener]) -> None:
    link, listener = pipe
    assert link._fd is not None
    os.write(link._fd, b'{"phase": "load"}\n{"succeeded": "do')
    listener.listen()
    assert (listener.phase, listener.success) == ("load", None)


def test_a_line_that_is_no_message_is_passed_over(pipe: tuple[Link, Listener]) -> None:
    link, listener = pipe
    assert link._fd is not None
    os.write(link._fd, b'{nonsense\n[1]\n{"failed": []}\n{"phase": 7}\n\xff\n')
    link.phase("load")
    listener.listen()
    assert (listener.phase, listener.error) == ("load", None)


def test_the_end_of_the_pipe_is_noticed() -> None:
    reading, writing = os.pipe()
    listener = Listener(reading)
    assert listener.listen()
    os.close(writing)
    assert not listener.listen()
    os.close(reading)


def test_a_supervisor_that_is_gone_is_no_error_for_the_work() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    Link(writing).phase("load")
    os.close(writing)


def test_without_a_supervisor_messages_go_nowhere() -> None:
    Link().succeeded("done")


def test_what_the_work_starts_does_not_hold_the_pipe_open(pipe: tuple[Link, Listener]) -> None:
    link, _ = pipe
    assert link._fd is not None
    assert not os.get_inheritable(link._fd)


def test_a_process_whose_supervisor_died_before_it_could_watch_ends() -> None:
    script = (
        "import os; from smxgb.progress import die_with_parent\n"
        "reading, writing = os.pipe(); os.close(reading); die_with_parent(writing)"
    )
    assert run(script).returncode == 128 + signal.SIGKILL


def test_a_process_whose_supervisor_lives_goes_on() -> None:
    script = (
        "import os; from smxgb.progress import die_with_parent\n"
        "reading, writing = os.pipe(); die_with_parent(writing); print('on')"
    )
    assert run(script).stdout == "on\n"


def test_each_phase_has_its_own_peak_of_memory() -> None:
    script = (
        "from smxgb.progress import Link, PhaseClock\n"
        "clock = PhaseClock(Link())\n"
        "with clock.phase('load'): data = bytearray(200 * 2**20)\n"
        "del data\n"
        "with clock.phase('matrix'): data = bytearray(50 * 2**20)\n"
        "print(*(phase.peak_memory for phase in clock.phases), clock.peak_memory)"
    )
    load, matrix, whole = map(int, run(script).stdout.split())
    assert 200 * MIB < load < 250 * MIB
    assert 50 * MIB < matrix < 100 * MIB
    assert whole == load


def test_the_peak_of_the_whole_job_counts_what_came_before_the_first_phase() -> None:
    script = (
        "from smxgb.progress import Link, PhaseClock\n"
        "data = bytearray(200 * 2**20)\n"
        "del data\n"
        "clock = PhaseClock(Link())\n"
        "with clock.phase('load'): pass\n"
        "print(clock.phases[0].peak_memory, clock.peak_memory)"
    )
    load, whole = map(int, run(script).stdout.split())
    assert load < 100 * MIB
    assert whole > 200 * MIB


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
    listener.listen()
    assert listener.phase == "load"
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


@pytest.fixture
def plain_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings_as_lines()
        yield


@pytest.mark.usefixtures("plain_warnings")
def test_a_warning_of_xgboost_is_one_line_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    for second in ("01", "02"):
        text = f"[04:10:{second}] WARNING: /workspace/src/learner.cc:343: `booster=dart`\nis deprecated."
        warnings.warn(text, UserWarning, stacklevel=1)
    assert capsys.readouterr() == ("XGBoost: `booster=dart` is deprecated.\n", "")


@pytest.mark.usefixtures("plain_warnings")
def test_a_warning_of_another_library_is_one_line_without_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    warnings.warn("a is old", FutureWarning, stacklevel=1)
    warnings.warn("b is old", FutureWarning, stacklevel=1)
    assert capsys.readouterr().out == "Warning: a is old\nWarning: b is old\n"


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
    link, _ = pipe
    rounds: list[tuple[int, int]] = []
    listener = Listener(pipe[1].fd, on_round=lambda number, total: rounds.append((number, total)))
    clock = RoundClock(link, total=2)
    clock.finished(0)
    clock.finished(1)
    listener.listen()
    assert rounds == [(0, 2), (1, 2)]
    assert not capsys.readouterr().out
