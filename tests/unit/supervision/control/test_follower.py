from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.supervision.control.channel import HAS, KEY, NAMES, Channel, first_heard, free_port

from smxgb.environment import Hosts
from smxgb.errors import PlatformError, UserError
from smxgb.limits import Limits
from smxgb.supervision.control.follower import Follower

if TYPE_CHECKING:
    import pytest


def alone(start_timeout: int, silence_timeout: int) -> Follower:
    """Return a follower whose leader does not listen."""
    return Follower(Hosts(NAMES[1], NAMES), Limits(free_port(), start_timeout, silence_timeout), KEY, HAS)


def test_a_leader_that_does_not_answer_is_a_failure_with_its_reason() -> None:
    heard = first_heard(alone(1, 1))
    assert "could not be reached" in str(heard[0])
    assert "Connection refused" in str(heard[0])


def test_a_failure_before_the_leader_is_in_reach_does_not_wait_for_it() -> None:
    follower = alone(900, 1)
    follower.fail(UserError("no channel"))
    assert f"host {NAMES[1]}: no channel" in str(first_heard(follower)[0])


def test_a_stop_before_the_leader_is_in_reach_ends_the_host_at_once() -> None:
    follower = alone(900, 900)
    follower.stop()
    follower.fail(PlatformError("stopped", exit_code=143))
    assert f"host {NAMES[1]}: stopped" in str(first_heard(follower)[0])


def test_a_stop_does_not_wait_long_for_a_leader_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smxgb.supervision.control.follower.PATIENCE", 0.2)
    channel = Channel(silence_timeout=900)
    follower = channel.join()
    channel.until_connected(1)
    follower.stop()
    follower.fail(PlatformError("stopped", exit_code=143))
    assert f"host {NAMES[1]}: stopped" in str(first_heard(follower)[0])


def test_a_leader_that_falls_silent_is_a_failure_that_does_not_say_which_side_is_cut_off() -> None:
    channel = Channel(silence_timeout=1)
    follower = channel.join()
    channel.until_connected(1)
    text = str(first_heard(follower)[0])
    assert f"host {NAMES[1]} heard nothing from {NAMES[0]} for 1 s" in text


def test_a_certain_failure_of_its_own_explains_a_host_better_than_the_loss_of_the_leader() -> None:
    channel = Channel()
    follower = channel.join()
    channel.until_connected(1)
    channel.leader._part(channel.leader._members[NAMES[1]])
    follower.fail(UserError("a word in line 3"))
    assert f"host {NAMES[1]}: a word in line 3" in str(first_heard(follower)[0])


def test_a_leader_that_closes_the_connection_is_lost() -> None:
    channel = Channel()
    follower = channel.join()
    channel.until_connected(1)
    channel.leader._part(channel.leader._members[NAMES[1]])
    text = str(first_heard(follower)[0])
    assert f"host {NAMES[0]} was lost before it had saved the model" in text
