from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from smxgb.errors import AlgorithmError, PlatformError
from smxgb.limits import Limits
from smxgb.program import Program
from smxgb.supervision.child import Child
from smxgb.supervision.control import Alone
from smxgb.supervision.endings import WORK, unreported
from smxgb.supervision.messages import Arrived, Message, PhaseBegins, RoundDone
from smxgb.supervision.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smxgb.errors import JobError

BEGIN = """
import os, sys, time
from smxgb.errors import PlatformError, UserError
from smxgb.program import Program
from smxgb.supervision.link import Link, die_with_parent
from smxgb.supervision.messages import *
link = Link(int(sys.argv[-1]))
folder = Path(sys.argv[1])
def start(name, script):
    link.send(Start(Program(name, (sys.executable, "-c", BEGIN + script, str(folder)), {}, 30.0)))
"""


class OneHost(Alone):
    """The control of a job with one host, which notes what it is told."""

    def __init__(self, max_restarts: int = 0) -> None:
        super().__init__(Limits(max_restarts=max_restarts))
        self.told: list[Message] = []

    def tell(self, message: Message) -> None:
        self.told.append(message)
        super().tell(message)


@dataclass
class Host:
    """One host, whose work is a script."""

    folder: Path
    wakeup: int
    to_wakeup: int
    control: OneHost = field(default_factory=OneHost)
    rounds: list[RoundDone] = field(default_factory=list)

    def verdict(self, script: str, silence: float = 30.0) -> JobError | None:
        command = (sys.executable, "-c", f"BEGIN = {BEGIN!r}\n{BEGIN}{script}", str(self.folder))
        work = Program(WORK, command, {}, silence)
        watch = Watch(
            work, self.control, self.wakeup, unreported, start, grace=9.0, on_round=self.rounds.append
        )
        return watch.verdict()

    def receive(self, number: signal.Signals) -> None:
        os.write(self.to_wakeup, bytes([number]))


def start(program: Program) -> Child:
    return Child.start(program.name, program.command, os.environ, silence=program.silence)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A host whose watch is woken when a child ends, as the supervisor arranges it."""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    handler = signal.signal(signal.SIGCHLD, lambda *_: None)
    earlier = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    yield Host(tmp_path, reading, writing)
    signal.set_wakeup_fd(earlier)
    signal.signal(signal.SIGCHLD, handler)
    os.close(reading)
    os.close(writing)


def test_phases_and_the_offer_go_to_the_other_hosts_and_rounds_to_the_caller(host: Host) -> None:
    said = (
        "link.send(PhaseBegins('load')); link.send(Arrived({'workers': 1})); link.send(RoundDone(0, 2))\n"
        "link.send(PhaseBegins('train')); link.send(Succeeded('done'))"
    )
    assert host.verdict(said) is None
    assert host.control.told == [
        PhaseBegins("load"),
        Arrived({"workers": 1}),
        RoundDone(0, 2),
        PhaseBegins("train"),
    ]
    assert host.rounds == [RoundDone(0, 2)]


def test_a_program_that_succeeds_is_told_to_the_work_and_its_results_are_published(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    program = (
        "(folder / '.smxgb-model').touch(); link.send(Succeeded('trained', (folder / '.smxgb-model',)))\\n"
        "time.sleep(60)"
    )
    said = f"start('Dask worker 0', \"{program}\")\nended = link.wait_for(Finished)\n"
    assert host.verdict(f"{said}link.send(Succeeded(f'{{ended.name}}: {{ended.text}}'))") is None
    assert capsys.readouterr().out == "Dask worker 0: trained\n"
    assert [path.name for path in host.folder.iterdir()] == ["model"]


def test_a_program_that_ends_without_a_success_ends_the_job(host: Host) -> None:
    error = host.verdict("start('Dask worker 0', 'sys.exit(4)'); link.wait_for(Finished)")
    assert isinstance(error, AlgorithmError)
    assert error.mistakes[0].startswith("Dask worker 0 ended with exit code 4 before its first phase")


def test_a_program_that_can_not_be_started_ends_the_job(host: Host) -> None:
    program = "Program('Dask worker 0', ('/nowhere/python',), {}, 30.0)"
    error = host.verdict(f"link.send(Start({program})); link.wait_for(Finished)")
    assert error is not None
    assert error.mistakes[0].startswith("Dask worker 0 could not be started: /nowhere/python")


def test_work_that_gives_no_sign_of_life_is_killed_as_frozen(host: Host) -> None:
    error = host.verdict("time.sleep(60)", silence=0.5)
    assert isinstance(error, PlatformError)
    assert error.mistakes[0].startswith("the work gave no sign of life for 0.5 s")


def test_a_program_hears_what_the_work_has_heard_before_it_was_started(host: Host) -> None:
    program = (
        "link.wait_for(Lead); met = link.wait_for(Rendezvous)\\n"
        "link.send(Succeeded(str(met.arguments['a']))); time.sleep(60)"
    )
    said = (
        "link.send(Arrived({'workers': 1})); link.wait_for(Lead)\n"
        "link.send(Rendezvous({'a': 1}, ())); link.wait_for(Rendezvous)\n"
        f'start("Dask worker 0", "{program}")\n'
        "link.send(Succeeded(link.wait_for(Finished).text))"
    )
    assert host.verdict(said) is None


def test_a_process_that_only_waits_is_in_the_phase_of_those_that_it_waits_for(host: Host) -> None:
    program = "link.send(PhaseBegins('start')); link.send(PhaseBegins('train')); time.sleep(60)"
    said = (
        f'link.send(PhaseBegins("start")); start("Dask worker 0", "{program}")\n'
        "link.send(Scratch(folder / 'a'))\n"
        "time.sleep(60)"
    )
    error = host.verdict(said, silence=2)
    assert error is not None
    assert error.mistakes[0].startswith("the work gave no sign of life for 2 s in phase train")


def test_a_certain_failure_explains_one_that_may_be_its_consequence(host: Host) -> None:
    said = (
        "start('Dask worker 0', \"link.send(Failed(UserError('a word in line 3')))\")\n"
        "link.send(Failed(PlatformError('allreduce failed', origin='elsewhere')))"
    )
    error = host.verdict(said)
    assert error is not None
    assert error.mistakes == ("a word in line 3",)


def test_a_failure_that_no_other_explains_is_the_verdict(host: Host) -> None:
    said = (
        "start('Dask worker 0', 'time.sleep(60)')\n"
        "link.send(Failed(PlatformError('allreduce failed', origin='elsewhere')))"
    )
    error = host.verdict(said)
    assert error is not None
    assert error.mistakes == ("allreduce failed",)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_kills_the_work(host: Host, number: signal.Signals) -> None:
    host.receive(number)
    error = host.verdict("time.sleep(60)")
    assert isinstance(error, PlatformError)
    assert error.exit_code == 128 + number


def test_another_signal_changes_nothing(host: Host) -> None:
    host.receive(signal.SIGCHLD)
    assert host.verdict("link.send(Succeeded('done'))") is None


def test_scratch_folders_are_removed_at_the_end(host: Host) -> None:
    (host.folder / "spool").mkdir()
    assert host.verdict("link.send(Scratch(folder / 'spool')); os._exit(1)") is not None
    assert list(host.folder.iterdir()) == []


TRIES = """
tries = len(list(folder.glob("try-*")))
(folder / f"try-{tries}").touch()
"""


@pytest.mark.parametrize("death", ["os.kill(os.getpid(), 9)", "os._exit(1)", "os.abort()"])
def test_work_that_dies_once_is_started_again(
    host: Host, death: str, capsys: pytest.CaptureFixture[str]
) -> None:
    host.control = OneHost(max_restarts=1)
    assert host.verdict(f"{TRIES}if not tries: {death}\nlink.send(Succeeded('done'))") is None
    assert "The work is started again (restart 1)" in capsys.readouterr().out
    assert (host.folder / "try-1").exists()


def test_work_that_freezes_is_started_again_with_all_its_programs(host: Host) -> None:
    host.control = OneHost(max_restarts=1)
    said = (
        f"{TRIES}start('Dask worker 0', \"link.send(Succeeded('trained')); time.sleep(60)\")\n"
        "link.wait_for(Finished)\n"
        "if not tries: time.sleep(60)\n"
        "link.send(Succeeded('done'))"
    )
    assert host.verdict(said, silence=2) is None


def test_work_that_dies_too_often_names_all_that_has_happened(host: Host) -> None:
    host.control = OneHost(max_restarts=1)
    error = host.verdict(f"{TRIES}os._exit(4 + tries)")
    assert error is not None
    (mistake,) = error.mistakes
    assert mistake.startswith("the work ended with exit code 5 before its first phase, without a word")
    assert (
        "The work had been started again once before, after this: the work ended with exit code 4" in mistake
    )


def test_a_round_that_ends_two_attempts_gets_no_third(host: Host) -> None:
    host.control = OneHost(max_restarts=9)
    assert host.verdict(f"{TRIES}link.send(RoundDone(3, 9)); os._exit(1)") is not None
    assert len(list(host.folder.glob("try-*"))) == 2
    for path in host.folder.iterdir():
        path.unlink()
    host.control = OneHost(max_restarts=3)
    assert host.verdict(f"{TRIES}link.send(RoundDone(tries, 9)); os._exit(1)") is not None
    assert len(list(host.folder.glob("try-*"))) == 4


def test_a_mistake_of_the_user_is_told_at_once(host: Host) -> None:
    host.control = OneHost(max_restarts=1)
    assert host.verdict(f"{TRIES}link.send(Failed(UserError('eta')))") is not None
    assert len(list(host.folder.glob("try-*"))) == 1
