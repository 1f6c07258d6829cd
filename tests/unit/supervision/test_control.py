from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from smxgb.environment import Hosts
from smxgb.errors import JobError, PlatformError, UserError, from_json
from smxgb.limits import Limits
from smxgb.supervision.control import Alone, join_hosts
from smxgb.supervision.control.clock import LONGEST_TURN, Clock
from smxgb.supervision.control.follower import Follower
from smxgb.supervision.control.leader import Leader
from smxgb.supervision.control.wire import NotReady, Wire, make_key, own_address, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smxgb.supervision.control import Control

NAMES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
KEY = b"key"


def free_port() -> int:
    with socket.create_server((NAMES[0], 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Group:
    """The supervisors' ends of a job's control channel, all in this process, turned one after the other."""

    def __init__(self, **limits: int) -> None:
        self.limits = Limits(**{"control_port": free_port(), "start_timeout": 20, **limits})
        self.ends: list[Control] = [Leader(Hosts(NAMES[0], NAMES), self.limits, KEY)]
        self.heard: list[list[Mapping[str, object]]] = [[], [], []]

    def come(self, *, key: bytes = KEY) -> Control:
        name = NAMES[len(self.ends)]
        self.ends.append(Follower(Hosts(name, NAMES), self.limits, key))
        return self.ends[-1]

    def turn(self) -> None:
        for heard, end in zip(self.heard, self.ends, strict=False):
            heard.extend(end.hear())

    def until(self, index: int, key: str, seconds: float = 15) -> object:
        """Turn all ends until one has heard a message with this key; return its value."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.turn()
            for message in self.heard[index]:
                if key in message:
                    return message[key]
            time.sleep(0.01)
        raise AssertionError(f"{key} was not heard: {self.heard}")

    def cause(self, index: int) -> JobError:
        failure = self.until(index, "abort")
        assert isinstance(failure, dict)
        return from_json(failure)


@pytest.fixture
def group() -> Group:
    return Group()


def arrive(*ends: Control) -> None:
    for end in ends:
        end.tell({"arrived": {"workers": 1}})


def test_the_tracker_is_started_when_all_hosts_are_there_and_all_hear_of_it(group: Group) -> None:
    arrive(*group.ends, group.come())
    group.turn()
    time.sleep(0.3)
    group.turn()
    assert group.heard == [[], [], []]
    arrive(group.come())
    assert group.until(0, "lead") == NAMES[0]
    group.ends[0].tell({"tracker": {"dmlc_tracker_port": 9}})
    for index in range(3):
        assert group.until(index, "tracker") == {"dmlc_tracker_port": 9}


def test_hosts_that_are_not_equal_are_named_with_what_each_has(group: Group) -> None:
    ends = [group.ends[0], group.come(), group.come()]
    for end, workers in zip(ends, (2, 2, 4), strict=True):
        end.tell({"arrived": {"mode": "dask", "device": "cuda", "workers": workers}})
    for index in range(3):
        cause = group.cause(index)
        assert isinstance(cause, UserError)
        for host, workers in zip(NAMES, (2, 2, 4), strict=True):
            assert f"{host} (mode dask, device cuda, workers {workers})" in cause.mistakes[0]
        assert "same number of GPUs" in cause.mistakes[0]
    assert not any("lead" in message for message in group.heard[0])


def test_the_others_may_leave_once_the_leader_parts(group: Group) -> None:
    group.come(), group.come()
    arrive(*group.ends)
    group.until(0, "lead")
    for end in group.ends:
        end.done()
    assert group.until(0, "leave") is True
    assert not any("leave" in message for message in group.heard[1])
    group.ends[0].close()
    for index in (1, 2):
        assert group.until(index, "leave") is True


def test_the_first_certain_failure_is_the_cause_everywhere_with_its_host_and_code(group: Group) -> None:
    group.come(), group.come()
    arrive(*group.ends)
    group.until(0, "lead")
    group.ends[1].fail(PlatformError("killed", exit_code=137))
    for index in range(3):
        cause = group.cause(index)
        assert (cause.exit_code, cause.mistakes) == (137, (f"host {NAMES[1]}: killed",))


def test_what_may_be_a_consequence_waits_for_a_better_cause(group: Group) -> None:
    group.come(), group.come()
    arrive(*group.ends)
    group.until(0, "lead")
    group.ends[0].fail(PlatformError("allreduce failed", origin="elsewhere"))
    group.ends[2].fail(PlatformError("allreduce failed", origin="elsewhere"))
    group.turn()
    time.sleep(0.5)
    group.ends[1].fail(UserError("a word in line 3"))
    assert {group.cause(index).mistakes for index in range(3)} == {(f"host {NAMES[1]}: a word in line 3",)}


def test_a_failure_that_stays_unexplained_is_the_cause_after_a_while(group: Group) -> None:
    group.come(), group.come()
    arrive(*group.ends)
    group.ends[1].fail(PlatformError("allreduce failed", origin="elsewhere"))
    assert group.cause(2).mistakes == (f"host {NAMES[1]}: allreduce failed",)


def test_who_comes_after_the_verdict_is_told_it(group: Group) -> None:
    group.ends[0].fail(UserError("no channel"))
    group.cause(0)
    group.come()
    assert group.cause(1).mistakes == (f"host {NAMES[0]}: no channel",)


def test_hosts_that_do_not_come_are_named_when_the_time_is_over() -> None:
    group = Group(start_timeout=1)
    arrive(*group.ends, group.come())
    text = group.cause(0).mistakes[0]
    assert f"{NAMES[2]} (not in touch yet)" in text
    assert f"{NAMES[1]} (" not in text
    assert group.cause(1).mistakes[0] == text


def test_a_leader_that_does_not_answer_is_a_failure_with_its_reason() -> None:
    follower = Follower(Hosts(NAMES[1], NAMES), Limits(free_port(), 1, 1), KEY)
    deadline = time.monotonic() + 10
    while not (heard := follower.hear()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "could not be reached" in str(heard[0])
    assert "Connection refused" in str(heard[0])


def test_a_failure_before_the_leader_is_in_reach_does_not_wait_for_it() -> None:
    follower = Follower(Hosts(NAMES[1], NAMES), Limits(free_port(), 900, 1), KEY)
    follower.fail(UserError("no channel"))
    deadline = time.monotonic() + 10
    while not (heard := follower.hear()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert f"host {NAMES[1]}: no channel" in str(heard[0])


def test_a_stop_before_the_leader_is_in_reach_ends_the_host_at_once() -> None:
    follower = Follower(Hosts(NAMES[1], NAMES), Limits(free_port(), 900, 900), KEY)
    follower.stop()
    follower.fail(PlatformError("stopped", exit_code=143))
    deadline = time.monotonic() + 5
    while not (heard := follower.hear()):
        assert time.monotonic() < deadline
    assert f"host {NAMES[1]}: stopped" in str(heard[0])


def test_a_stop_does_not_wait_long_for_a_leader_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smxgb.supervision.control.follower.PATIENCE", 0.2)
    group = Group(silence_timeout=900)
    follower = group.come()
    follower.tell({"phase": "start"})
    wait = time.monotonic() + 1
    while time.monotonic() < wait:
        group.turn()
    follower.stop()
    follower.fail(PlatformError("stopped", exit_code=143))
    deadline = time.monotonic() + 5
    while not (heard := follower.hear()):
        assert time.monotonic() < deadline
    assert f"host {NAMES[1]}: stopped" in str(heard[0])


def test_a_leader_that_is_stopped_waits_for_nobody_who_has_not_come() -> None:
    group = Group(silence_timeout=900, start_timeout=900)
    group.ends[0].stop()
    group.ends[0].fail(PlatformError("stopped", exit_code=143))
    group.cause(0)
    begin = time.monotonic()
    group.ends[0].close()
    assert time.monotonic() - begin < 5


def silent(port: int) -> Iterator[socket.socket]:
    yield socket.create_connection((NAMES[0], port))


def talkative(port: int) -> Iterator[socket.socket]:
    stream = socket.create_connection((NAMES[0], port))
    stream.sendall(b"GET / HTTP/1.1\r\nHost: algo-1\r\n\r\n" * 100)
    yield stream


def hasty(port: int) -> Iterator[None]:
    socket.create_connection((NAMES[0], port)).close()
    yield


@pytest.mark.parametrize("stray", [silent, talkative, hasty])
def test_a_stray_connection_disturbs_nobody(
    group: Group, stray: Callable[[int], Iterator[socket.socket | None]]
) -> None:
    time.sleep(0.2)
    strays = [next(stray(group.limits.control_port)) for _ in range(20)]
    arrive(*group.ends, group.come(), group.come())
    assert group.until(0, "lead", 4) == NAMES[0]
    for each in strays:
        if each:
            each.close()


def test_a_process_of_another_job_is_not_let_in(group: Group) -> None:
    group.come(key=b"another")
    arrive(*group.ends)
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        group.turn()
        time.sleep(0.01)
    assert group.heard == [[], [], []]


def test_hosts_that_are_not_set_up_alike_say_so_at_once_and_when_the_time_is_over(
    capfd: pytest.CaptureFixture[str],
) -> None:
    group = Group(start_timeout=2)
    group.come(key=b"another")
    arrive(*group.ends)
    differ = "its key is another job's, so its hosts, hyperparameters or job name differ from this host's"
    for index in range(2):
        assert differ in group.cause(index).mistakes[0]
    said = capfd.readouterr().out.splitlines()
    # Who connects is known by its address alone: on one machine all come from one.
    assert f"{NAMES[0]} is not let in: {differ}." in said
    assert f"{NAMES[0]}, port {group.limits.control_port}, does not let us in: {differ}." in said


def test_the_second_process_of_a_name_is_told_so_and_the_first_goes_on(group: Group) -> None:
    first = group.come()
    first.tell({"phase": "start"})
    wait = time.monotonic() + 1
    while time.monotonic() < wait:
        group.turn()
    second = Follower(Hosts(NAMES[1], NAMES), group.limits, KEY)
    deadline = time.monotonic() + 10
    heard: list[Mapping[str, object]] = []
    while not heard:
        assert time.monotonic() < deadline
        group.turn()
        heard += second.hear()
    assert f"two processes say that they are host {NAMES[1]}" in str(heard[0])
    assert len(heard) == 1
    arrive(*group.ends, group.come())
    assert group.until(0, "lead") == NAMES[0]


def test_very_many_mistakes_reach_the_others_as_the_first_of_them_and_the_log_has_all(
    group: Group, capfd: pytest.CaptureFixture[str]
) -> None:
    group.come(), group.come()
    arrive(*group.ends)
    group.until(0, "lead")
    group.ends[1].fail(UserError(*(f"{number} {'x' * 200}" for number in range(9000))))
    for index in range(3):
        cause = group.cause(index)
        assert (len(cause.mistakes), cause.more) == (20, 8980)
        assert cause.mistakes[0].startswith(f"host {NAMES[1]}: 0 x")
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 9000
    assert said[-1].startswith("9000. 8999 x")


def test_a_host_takes_no_name_that_is_not_a_hosts() -> None:
    group = Group()
    time.sleep(0.2)
    wire = Wire.connect(NAMES[0], group.limits.control_port, KEY)
    wire.send({"hello": "127.0.0.9"})
    messages, goes_on = wire.receive(5)
    assert (messages, goes_on) == ([], False)


def test_a_port_that_is_taken_is_said_at_once() -> None:
    with socket.create_server((NAMES[0], 0)) as listener:
        port = listener.getsockname()[1]
        leader = Leader(Hosts(NAMES[0], NAMES), Limits(port, 900, 30), KEY)
        deadline = time.monotonic() + 10
        while not (heard := leader.hear()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert f"port {port} of {NAMES[0]}" in str(heard[0])
    assert "Set control_port" in str(heard[0])


def test_the_key_depends_on_job_hosts_and_settings() -> None:
    hosts = Hosts("a", ("a", "b"))
    key = make_key("job", hosts, {"num_round": "1"})
    assert key == make_key("job", Hosts("b", ("a", "b")), {"num_round": "1"})
    others = [
        make_key(None, hosts, {"num_round": "1"}),
        make_key("job", hosts, {}),
        make_key("job", Hosts("a", ("a",)), {}),
    ]
    assert len({key, *others}) == 4


def test_a_name_that_does_not_resolve_may_do_so_later() -> None:
    with pytest.raises(NotReady, match="does not resolve"):
        resolve("algo-1.invalid")


def test_a_name_of_the_loopback_device_is_no_address_for_others() -> None:
    with pytest.raises(NotReady, match="other hosts can't reach"):
        own_address(Hosts("localhost", ("localhost", "b"), "no-such-interface"))
    assert own_address(Hosts("127.0.0.2", ("127.0.0.1", "127.0.0.2"))) == "127.0.0.2"


def test_one_host_alone_opens_no_channel() -> None:
    assert type(join_hosts(Hosts("a", ("a",)), None, {})) is Alone


def test_a_process_that_was_stopped_does_not_count_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    later = time.monotonic() + 100
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert clock.now() == LONGEST_TURN
    assert clock.elapsed() == pytest.approx(100, abs=1)
