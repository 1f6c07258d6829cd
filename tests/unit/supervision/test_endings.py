from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING

import pytest

from smxgb.errors import AlgorithmError, PlatformError
from smxgb.supervision.child import Child
from smxgb.supervision.endings import WORK, frozen, stopped, unreported, unstartable

if TYPE_CHECKING:
    from smxgb.supervision.link import Link, Listener


@pytest.fixture
def work(pipe: tuple[Link, Listener]) -> Child:
    return Child(WORK, 1, pipe[1], 30.0, phase="train")


def test_an_end_before_the_first_phase_says_so(work: Child) -> None:
    work.phase = None
    [text] = unreported(work, 0).mistakes
    assert text.startswith(
        "the work ended as if all was well before its first phase, without a word of success"
    )


def test_a_crash_of_a_program_beside_the_work_names_it(work: Child) -> None:
    work.name = "Dask worker 0"
    error = unreported(work, -signal.SIGSEGV)
    assert isinstance(error, AlgorithmError)
    assert error.exit_code == 128 + signal.SIGSEGV
    assert error.mistakes == (
        "native code of Dask worker 0 crashed in phase train: signal 11 (SIGSEGV). The log shows where.",
    )


def test_a_signal_without_a_name_is_shown_by_its_number(work: Child) -> None:
    error = unreported(work, -33)
    assert isinstance(error, PlatformError)
    assert error.exit_code == 161
    assert "signal 33 (an unnamed signal)" in error.mistakes[0]


def test_a_frozen_process_is_named_with_its_phase_and_its_silence(work: Child) -> None:
    assert frozen(work).mistakes == (
        "the work gave no sign of life for 30 s in phase train: its process is frozen. Start the job again.",
    )


def test_a_stop_says_what_may_have_stopped_the_job(work: Child) -> None:
    error = stopped(signal.SIGTERM, work)
    assert error.exit_code == 143
    assert "max_run" in error.mistakes[0]
    assert "Spot" in error.mistakes[0]


def test_a_process_that_could_not_be_started_is_named_with_its_program() -> None:
    error = unstartable("Dask worker 0", ("/nowhere/python", "-m"), FileNotFoundError(2, "No such file"))
    assert error.mistakes == ("Dask worker 0 could not be started: /nowhere/python: No such file.",)


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_a_host_that_has_no_room_for_a_process_is_to_blame_for_that(number: int) -> None:
    error = unstartable("the work", ("python",), OSError(number, os.strerror(number)))
    assert isinstance(error, PlatformError)
    assert error.mistakes[0].startswith("the work could not be started: ")
