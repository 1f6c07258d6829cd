from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from smxgb.errors import PlatformError, UserError
from smxgb.supervision.messages import Link, Listener


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=30
    )


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
        "import sys; from smxgb.supervision.messages import Link; from smxgb.errors import UserError\n"
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
        "import os; from smxgb.supervision.messages import die_with_parent\n"
        "reading, writing = os.pipe(); os.close(reading); die_with_parent(writing)"
    )
    assert run(script).returncode == 128 + signal.SIGKILL


def test_a_process_whose_supervisor_lives_goes_on() -> None:
    script = (
        "import os; from smxgb.supervision.messages import die_with_parent\n"
        "reading, writing = os.pipe(); die_with_parent(writing); print('on')"
    )
    assert run(script).stdout == "on\n"
