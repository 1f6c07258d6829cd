from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from smxgb.errors import AlgorithmError, UserError
from smxgb.supervision.link import Link, Listener, diagnose
from smxgb.supervision.messages import (
    Beat,
    Failed,
    Finished,
    Lead,
    Message,
    PhaseBegins,
    Rendezvous,
    Scratch,
    Stop,
    Succeeded,
)


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=30
    )


def ends() -> tuple[Link, Listener]:
    ours, theirs = socket.socketpair()
    return Link(theirs.detach()), Listener(ours.detach())


def test_the_supervisor_hears_what_the_work_says(pipe: tuple[Link, Listener]) -> None:
    link, listener = pipe
    said = [PhaseBegins("load"), Scratch(Path("/volume/a")), PhaseBegins("matrix"), Succeeded("done")]
    for message in said:
        link.send(message)
    assert listener.listen() == said
    assert listener.is_open
    assert listener.listen() == []


def test_the_work_hears_of_a_stop_once_and_waits_for_none() -> None:
    link, listener = ends()
    assert not link.has_heard(Stop)
    listener.send(Finished("another", "done"))
    assert not link.has_heard(Stop)
    listener.send(Stop())
    listener.send(Finished("another", "done"))
    assert link.has_heard(Stop)
    assert not link.has_heard(Stop)
    assert not Link().has_heard(Stop)


def test_a_message_longer_than_the_pipe_arrives_whole() -> None:
    link, listener = ends()
    mistakes = tuple(f"{number} " + "x" * 10_000 for number in range(60))
    sender = Thread(target=link.send, args=(Failed(UserError(*mistakes)),))
    sender.start()
    messages: list[Message] = []
    while not messages:
        assert select.select([listener.fd], [], [], 30)[0]
        messages = listener.listen()
    sender.join()
    [message] = messages
    assert isinstance(message, Failed)
    assert message.error.mistakes == mistakes


def test_a_message_cut_by_the_end_of_the_work_is_no_message(pipe: tuple[Link, Listener]) -> None:
    link, listener = pipe
    assert link._fd is not None
    link.send(PhaseBegins("load"))
    os.write(link._fd, b'["Succeeded", {"text": "do')
    assert listener.listen() == [PhaseBegins("load")]


def test_a_line_that_is_no_message_is_passed_over(pipe: tuple[Link, Listener]) -> None:
    link, listener = pipe
    assert link._fd is not None
    os.write(link._fd, b'{nonsense\n[1]\n["Failed", {"error": []}]\n\xff\n')
    link.send(PhaseBegins("load"))
    assert listener.listen() == [PhaseBegins("load")]


def test_the_end_of_the_pipe_is_noticed() -> None:
    reading, writing = os.pipe()
    listener = Listener(reading)
    listener.listen()
    assert listener.is_open
    os.close(writing)
    listener.listen()
    assert not listener.is_open
    os.close(reading)


def test_a_process_that_ends_with_unread_messages_closes_the_connection_all_the_same() -> None:
    ours, theirs = socket.socketpair()
    listener = Listener(ours.detach())
    listener.send(Lead("10.0.0.1", ()))
    theirs.close()
    assert listener.listen() == []
    assert not listener.is_open


def test_the_work_gets_the_message_that_it_waits_for_and_drops_other_kinds() -> None:
    link, listener = ends()
    for message in (
        Lead("10.0.0.1", ()),
        Finished("a", "first"),
        Lead("10.0.0.2", ()),
        Finished("b", "second"),
    ):
        listener.send(message)
    assert [link.wait_for(Finished) for _ in range(2)] == [Finished("a", "first"), Finished("b", "second")]


def test_a_message_that_comes_in_two_pieces_is_waited_for() -> None:
    link, listener = ends()
    os.write(listener.fd, b'["Rendezvous", {"arguments": {"scheduler"')
    later = Thread(target=os.write, args=(listener.fd, b': "tls://10.0.0.1:8786"}, "addresses": []}]\n'))
    later.start()
    assert link.wait_for(Rendezvous).arguments == {"scheduler": "tls://10.0.0.1:8786"}
    later.join()


def test_waiting_for_a_supervisor_that_is_gone_ends_the_process() -> None:
    link, listener = ends()
    os.close(listener.fd)
    with pytest.raises(SystemExit) as ended:
        link.wait_for(Lead)
    assert ended.value.code == 128 + signal.SIGKILL


def test_signs_of_life_come_while_the_work_does_something_else() -> None:
    link, listener = ends()
    link.beat(0.001)
    assert select.select([listener.fd], [], [], 30)[0]
    assert listener.listen()[0] == Beat()
    os.close(listener.fd)


def test_a_supervisor_that_is_gone_is_no_error_for_the_work() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    link = Link(writing)
    link.send(PhaseBegins("load"))
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"a")
    os.close(writing)


def test_without_a_supervisor_messages_go_nowhere() -> None:
    link = Link()
    link.send(Succeeded("done"))
    assert link.fileno() is None


def test_what_the_work_starts_does_not_hold_the_pipe_open(pipe: tuple[Link, Listener]) -> None:
    link, _ = pipe
    assert link._fd is not None
    assert not os.get_inheritable(link._fd)


def test_a_process_whose_supervisor_died_before_it_could_watch_ends() -> None:
    script = (
        "import os; from smxgb.supervision.link import die_with_parent\n"
        "reading, writing = os.pipe(); os.close(reading); die_with_parent(writing)"
    )
    assert run(script).returncode == 128 + signal.SIGKILL


def test_a_process_whose_supervisor_lives_goes_on() -> None:
    script = (
        "import os; from smxgb.supervision.link import die_with_parent\n"
        "reading, writing = os.pipe(); die_with_parent(writing); print('on')"
    )
    assert run(script).stdout == "on\n"


def test_a_process_that_dies_of_an_error_reports_it_and_ends_with_its_code() -> None:
    reading, writing = os.pipe()
    script = (
        "import sys; from smxgb.errors import UserError; from smxgb.supervision.link import Link, die_of\n"
        "print('said', end=''); die_of(UserError('a is wrong.'), Link(int(sys.argv[1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(writing)], pass_fds=[writing], capture_output=True, check=False
    )
    listener = Listener(reading)
    [message] = listener.listen()
    assert (done.returncode, done.stdout, done.stderr) == (2, b"said", b"")
    assert isinstance(message, Failed)
    assert message.error.mistakes == ("a is wrong.",)
    os.close(reading)
    os.close(writing)


def test_an_error_that_nobody_foresaw_is_logged_with_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert isinstance(diagnose(KeyError("column")), AlgorithmError)
    assert "KeyError: 'column'" in capsys.readouterr().err
    error = UserError("a is wrong.")
    assert diagnose(error) is error
    assert not capsys.readouterr().err


@pytest.mark.parametrize(("seconds", "code"), [(0.05, 3), (60, 0)])
def test_a_wait_that_lasts_too_long_ends_the_process_with_its_failure(seconds: float, code: int) -> None:
    ours, theirs = socket.socketpair()
    script = f"""
import sys
from threading import Event
from smxgb.errors import PlatformError
from smxgb.supervision.link import Link, dying_after
with dying_after({seconds}, lambda: PlatformError("alone"), Link(int(sys.argv[1]))):
    Event().wait(None if {code} else 0)
"""
    command = [sys.executable, "-c", script, str(theirs.fileno())]
    done = subprocess.run(command, pass_fds=[theirs.fileno()], check=False, timeout=30)
    theirs.close()
    assert done.returncode == code
    said = [message for message in Listener(ours.detach()).listen() if isinstance(message, Failed)]
    assert [str(message.error) for message in said] == ["PlatformError: alone"] * bool(code)
