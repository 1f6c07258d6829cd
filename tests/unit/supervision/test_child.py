from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from smxgb.supervision.child import Child, reap_others

WORK = """
import sys
from pathlib import Path
from smxgb.errors import UserError
from smxgb.supervision.link import Link
from smxgb.supervision.messages import Failed, PhaseBegins, Scratch, Succeeded
link = Link(int(sys.argv[-1]))
"""


def start(script: str, *arguments: str, silence: float | None = None) -> Child:
    command = (sys.executable, "-c", script, *arguments)
    return Child.start("a child", command, os.environ, silence=silence)


def heard_to_the_end(child: Child) -> Child:
    while child.link.is_open:
        assert select.select([child.link.fd], [], [], 30)[0]
        child.listen()
    assert child.reap() == 0
    os.close(child.link.fd)
    return child


def test_what_a_child_says_of_its_end_is_remembered() -> None:
    said = (
        "link.send(PhaseBegins('load')); link.send(Scratch(Path('/a'))); link.send(Scratch(Path('/b')))\n"
        "link.send(PhaseBegins('save')); link.send(Failed(UserError('a is wrong.')))\n"
        "link.send(Succeeded('done', (Path('/c'),)))"
    )
    child = heard_to_the_end(start(WORK + said))
    assert child.phase == "save"
    assert child.scratch == [Path("/a"), Path("/b")]
    assert child.error is not None
    assert child.error.mistakes == ("a is wrong.",)
    assert child.success is not None
    assert (child.success.text, child.success.results) == ("done", (Path("/c"),))


@pytest.mark.parametrize(
    ("silence", "beat"), [(30.0, ["--beat", "1.0"]), (3.0, ["--beat", "0.5"]), (None, [])]
)
def test_a_child_is_told_how_often_to_give_a_sign_of_life(silence: float | None, beat: list[str]) -> None:
    said = "link.send(PhaseBegins(' '.join(sys.argv[1:-2])))"
    child = heard_to_the_end(start(WORK + said, silence=silence))
    assert child.phase == " ".join(beat)


def test_a_command_that_can_not_be_started_is_an_error_and_leaves_nothing_open() -> None:
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(FileNotFoundError):
        Child.start("a child", ("/nowhere/python",), os.environ)
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_child_that_was_killed_is_reaped_with_the_signal() -> None:
    child = start("import time; time.sleep(60)")
    child.kill()
    assert child.reap() == -9
    os.close(child.link.fd)


def test_a_child_that_has_ended_stays_to_be_reaped() -> None:
    child = start("import sys; sys.exit(5)")
    while not child.listen() and child.link.is_open:
        assert select.select([child.link.fd], [], [], 30)[0]
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert reap_others({child.pid}) == child.pid
    assert child.reap() == 5
    os.close(child.link.fd)


def test_without_children_there_is_none_to_reap() -> None:
    assert reap_others(()) is None
