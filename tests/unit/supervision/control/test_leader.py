from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from tests.unit.supervision.control.channel import HAS, KEY, NAMES, Channel, arrive

from smxgb.errors import PlatformError, UserError
from smxgb.supervision.control.listener import MOST_ASKING
from smxgb.supervision.control.wire import Wire
from smxgb.supervision.messages import (
    Abort,
    Done,
    Failed,
    Hello,
    Lead,
    Leave,
    PhaseBegins,
    Rendezvous,
    Restart,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from smxgb.supervision.messages import Message

DIFFER = "its key is another job's, so its job name, hosts or SMXGB_JOB_SECRET differ from this host's"


def test_the_tracker_is_started_when_all_hosts_are_there_and_all_hear_of_it(channel: Channel) -> None:
    arrive(*channel.ends, channel.join())
    channel.until(lambda: channel.leader._members[NAMES[1]].offer)
    channel.turn()
    assert channel.heard == [[], [], []]
    arrive(channel.join())
    assert channel.hear(0, Lead) == Lead(NAMES[0], (NAMES[0],) * 3)
    tracker = Rendezvous({"dmlc_tracker_port": 9}, (NAMES[0],))
    channel.ends[0].tell(tracker)
    for index in range(3):
        assert channel.hear(index, Rendezvous) == tracker


def test_hosts_that_are_not_equal_are_named_with_what_each_has(channel: Channel) -> None:
    ends = [channel.ends[0], channel.join(), channel.join()]
    for end, workers in zip(ends, (2, 2, 4), strict=True):
        arrive(end, workers=workers)
    for index in range(3):
        cause = channel.cause(index)
        assert isinstance(cause, UserError)
        for host, workers in zip(NAMES, (2, 2, 4), strict=True):
            assert f"{host} (mode dask, workers {workers})" in cause.mistakes[0]
        assert "same number of GPUs" in cause.mistakes[0]
    assert not channel.has_heard(0, Lead)


def test_the_others_may_leave_once_the_leader_closes(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smxgb.supervision.control.leader.PATIENCE", 0.2)
    channel.join(), channel.join()
    arrive(*channel.ends)
    channel.hear(0, Lead)
    for end in channel.ends:
        end.done()
    channel.hear(0, Leave)
    assert not channel.has_heard(1, Leave)
    channel.leader.close()
    for index in (1, 2):
        channel.hear(index, Leave)


def test_the_first_certain_failure_is_the_cause_everywhere_with_its_host_and_code(channel: Channel) -> None:
    channel.join(), channel.join()
    arrive(*channel.ends)
    channel.hear(0, Lead)
    channel.ends[1].fail(PlatformError("killed", exit_code=137))
    for index in range(3):
        cause = channel.cause(index)
        assert (cause.exit_code, cause.mistakes) == (137, (f"host {NAMES[1]}: killed",))


def test_what_may_be_a_consequence_waits_for_a_better_cause(channel: Channel) -> None:
    channel.join(), channel.join()
    arrive(*channel.ends)
    channel.hear(0, Lead)
    channel.ends[0].fail(PlatformError("allreduce failed", origin="elsewhere"))
    channel.ends[2].fail(PlatformError("allreduce failed", origin="elsewhere"))
    channel.until(lambda: len(channel.leader._failures) == 2)
    channel.ends[1].fail(UserError("a word in line 3"))
    causes = {channel.cause(index).mistakes for index in range(3)}
    assert causes == {(f"host {NAMES[1]}: a word in line 3",)}


def test_a_failure_that_stays_unexplained_is_the_cause_after_a_while(channel: Channel) -> None:
    channel.join(), channel.join()
    arrive(*channel.ends)
    channel.ends[1].fail(PlatformError("allreduce failed", origin="elsewhere"))
    assert channel.cause(2).mistakes == (f"host {NAMES[1]}: allreduce failed",)


def test_a_host_that_connects_after_the_verdict_is_told_it(channel: Channel) -> None:
    channel.leader.fail(UserError("no channel"))
    channel.cause(0)
    channel.join()
    assert channel.cause(1).mistakes == (f"host {NAMES[0]}: no channel",)


def test_a_host_whose_connection_closes_is_lost_with_its_phase(channel: Channel) -> None:
    channel.until_listening()
    wire = Wire.connect(NAMES[0], channel.limits.control_port, KEY)
    wire.send(Hello(NAMES[1], HAS))
    wire.send(PhaseBegins("train"))
    channel.until(lambda: channel.leader._members[NAMES[1]].phase)
    wire.close()
    assert channel.cause(0).mistakes[0].startswith(f"host {NAMES[1]} was lost in phase train: its connection")


def test_a_silent_host_among_others_is_named_with_its_phase() -> None:
    channel = Channel(silence_timeout=1)
    channel.join()
    channel.until_listening()
    wire = Wire.connect(NAMES[0], channel.limits.control_port, KEY)
    wire.send(Hello(NAMES[2], HAS))
    wire.send(PhaseBegins("load"))
    text = channel.cause(0).mistakes[0]
    assert text.startswith(
        f"host {NAMES[2]} gave no sign of life for 1 s in phase load: it is frozen, or cut"
    )
    assert channel.cause(1).mistakes[0] == text
    wire.close()


def test_a_leader_that_hears_from_no_host_does_not_say_which_side_is_cut_off() -> None:
    channel = Channel(silence_timeout=1)
    channel.until_listening()
    wires = [Wire.connect(NAMES[0], channel.limits.control_port, KEY) for _ in NAMES[1:]]
    for name, wire in zip(NAMES[1:], wires, strict=True):
        wire.send(Hello(name, HAS))
    text = channel.cause(0).mistakes[0]
    assert text.startswith(f"host {NAMES[0]} heard nothing from ")
    assert all(name in text for name in NAMES[1:])
    for wire in wires:
        wire.close()


def test_hosts_that_do_not_come_are_named_when_the_time_is_over() -> None:
    channel = Channel(start_timeout=1)
    arrive(*channel.ends, channel.join())
    text = channel.cause(0).mistakes[0]
    assert f"{NAMES[2]} (not in touch yet)" in text
    assert f"{NAMES[1]} (" not in text
    assert channel.cause(1).mistakes[0] == text


def test_a_leader_that_is_stopped_waits_for_nobody_who_has_not_come() -> None:
    channel = Channel(silence_timeout=900, start_timeout=900)
    channel.leader.stop()
    channel.leader.fail(PlatformError("stopped", exit_code=143))
    channel.cause(0)
    begin = time.monotonic()
    channel.leader.close()
    assert time.monotonic() - begin < 60


def silent(port: int) -> socket.socket:
    return socket.create_connection((NAMES[0], port))


def talkative(port: int) -> socket.socket:
    stream = socket.create_connection((NAMES[0], port))
    stream.sendall(b"GET / HTTP/1.1\r\nHost: algo-1\r\n\r\n" * 100)
    return stream


def hasty(port: int) -> socket.socket:
    stream = socket.create_connection((NAMES[0], port))
    stream.close()
    return stream


@pytest.mark.parametrize("stray", [silent, talkative, hasty])
def test_a_stray_connection_disturbs_nobody(channel: Channel, stray: Callable[[int], socket.socket]) -> None:
    channel.until_listening()
    strays = [stray(channel.limits.control_port) for _ in range(20)]
    arrive(*channel.ends, channel.join(), channel.join())
    assert channel.hear(0, Lead) == Lead(NAMES[0], (NAMES[0],) * 3)
    for each in strays:
        each.close()


def test_a_process_of_another_job_is_not_let_in(channel: Channel) -> None:
    channel.join(key=b"another")
    arrive(*channel.ends)
    channel.until(lambda: channel.leader._door.refused)
    channel.turn()
    assert channel.heard == [[], [], []]
    assert channel.leader._members[NAMES[1]].wire is None


def test_hosts_that_are_not_set_up_alike_say_so_at_once_and_when_the_time_is_over(
    capfd: pytest.CaptureFixture[str],
) -> None:
    channel = Channel(start_timeout=2)
    channel.join(key=b"another")
    arrive(*channel.ends)
    for index in range(2):
        assert DIFFER in channel.cause(index).mistakes[0]
    said = capfd.readouterr().out.splitlines()
    # A process with another key is known by its address alone: on one machine all come from one.
    assert f"{NAMES[0]} is not let in: {DIFFER}." in said
    assert f"{NAMES[0]}, port {channel.limits.control_port}, does not let us in: {DIFFER}." in said


def test_the_second_process_of_a_name_is_told_so_and_the_first_goes_on(channel: Channel) -> None:
    channel.join()
    channel.until_connected(1)
    second = channel.namesake(1)
    heard: list[Message] = []

    def has_heard() -> bool:
        heard.extend(second.hear())
        return bool(heard)

    channel.until(has_heard)
    assert f"two processes say that they are host {NAMES[1]}" in str(heard[0])
    assert len(heard) == 1
    arrive(*channel.ends, channel.join())
    assert channel.hear(0, Lead) == Lead(NAMES[0], (NAMES[0],) * 3)


def test_very_many_mistakes_reach_the_others_as_the_first_of_them_and_the_log_has_all(
    channel: Channel, capfd: pytest.CaptureFixture[str]
) -> None:
    channel.join(), channel.join()
    arrive(*channel.ends)
    channel.hear(0, Lead)
    channel.ends[1].fail(UserError(*(f"{number} {'x' * 200}" for number in range(9000))))
    for index in range(3):
        cause = channel.cause(index)
        assert (len(cause.mistakes), cause.more) == (20, 8980)
        assert cause.mistakes[0].startswith(f"host {NAMES[1]}: 0 x")
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 9000
    assert said[-1].startswith("9000. 8999 x")


@pytest.mark.parametrize(
    "first",
    [Hello("127.0.0.9", HAS), Hello(NAMES[0], HAS), Done(), Failed(UserError("a"))],
    ids=lambda m: type(m).__name__,
)
def test_a_connection_that_does_not_begin_with_the_name_of_another_host_is_closed(
    channel: Channel, first: Hello | Done | Failed
) -> None:
    channel.until_listening()
    wire = Wire.connect(NAMES[0], channel.limits.control_port, KEY)
    wire.send(first)
    assert wire.receive(30) == ([], False)


def test_a_port_that_is_taken_is_said_at_once_on_all_hosts() -> None:
    with socket.create_server((NAMES[0], 0)) as listener:
        port = listener.getsockname()[1]
        channel = Channel(control_port=port, start_timeout=900)
        channel.join(), channel.join()
        Thread(target=_close_whatever_comes, args=(listener,), daemon=True).start()
        for index in range(3):
            text = channel.cause(index).mistakes[0]
            assert text.startswith(f"port {port} of {NAMES[0]}, the control channel's, can't be opened: ")
            assert text.endswith("Set control_port.")


def _close_whatever_comes(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            listener.accept()[0].close()


def test_a_host_with_other_hyperparameters_or_another_version_ends_the_job_at_once(channel: Channel) -> None:
    channel.join(has={"num_round": "2", "eta": "1"})
    channel.join(has=HAS)
    for index in range(3):
        [text] = channel.cause(index).mistakes
        assert text.startswith(f"host {NAMES[1]} differs from host {NAMES[0]} in eta, num_round: give all")


def test_strays_of_one_address_do_not_use_up_the_threads_of_the_leader(channel: Channel) -> None:
    channel.until_listening()
    strays = [silent(channel.limits.control_port) for _ in range(3 * MOST_ASKING)]
    admitting = [thread for thread in threading.enumerate() if thread.name == "admit"]
    assert len(admitting) <= MOST_ASKING
    for each in strays:
        each.close()
    arrive(*channel.ends, channel.join(), channel.join())
    channel.hear(0, Lead)


def test_a_thread_that_can_not_be_started_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("threading.Thread.start", refuse)
        channel = Channel(start_timeout=900)
    assert "no more processes or threads can be started" in channel.cause(0).mistakes[0]


def test_a_connection_for_which_there_is_no_thread_is_taken_later(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.until_listening()
    begin = threading.Thread.start
    refused: list[threading.Thread] = []

    def refuse_once(thread: threading.Thread) -> None:
        if thread.name == "admit" and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr("threading.Thread.start", refuse_once)
    channel.join()
    channel.until_connected(1)
    assert refused


DIED = PlatformError("the work was killed from outside", may_pass=True, exit_code=137)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_all_hosts_start_again_when_the_work_of_one_has_died_and_end_when_it_dies_again(victim: int) -> None:
    channel = Channel(max_restarts=1)
    channel.join(), channel.join()
    arrive(*channel.ends)
    channel.hear(0, Lead)
    channel.ends[victim].fail(DIED)
    for index in range(3):
        restart = channel.hear(index, Restart)
        assert isinstance(restart, Restart)
        assert restart.attempt == 1
        assert restart.error.mistakes == (f"host {NAMES[victim]}: the work was killed from outside",)
    channel.heard = [[], [], []]
    arrive(*channel.ends)
    lead = channel.hear(0, Lead)
    assert isinstance(lead, Lead)
    assert lead.attempt == 1
    channel.ends[victim].fail(DIED)
    for index in range(3):
        cause = channel.cause(index)
        assert cause.exit_code == 137
        assert "The work had been started again once before, after this: host" in cause.mistakes[0]


def test_what_a_host_says_of_the_work_that_has_ended_does_not_count_for_the_new_one() -> None:
    channel = Channel(max_restarts=1)
    first, second = channel.join(), channel.join()
    arrive(*channel.ends)
    channel.hear(0, Lead)
    first.fail(DIED)
    # It has not heard of the restart yet.
    second.tell(PhaseBegins("load"))
    second.done()
    second.fail(PlatformError("allreduce failed", origin="elsewhere"))
    for index in range(3):
        channel.hear(index, Restart)
    arrive(*channel.ends)
    channel.hear(0, Lead)
    for end in channel.ends:
        end.done()
    channel.hear(0, Leave)
    assert not any(isinstance(message, Abort) for heard in channel.heard for message in heard)


def test_a_host_that_is_lost_with_its_supervisor_ends_the_job() -> None:
    channel = Channel(max_restarts=5)
    first = channel.join()
    channel.join()
    arrive(*channel.ends)
    channel.hear(0, Lead)
    assert first._wire is not None
    first._wire.close()
    del channel.ends[1], channel.heard[1]
    assert "was lost" in str(channel.cause(0))
