from __future__ import annotations

import time

import pytest

from smxgb.supervision.control.clock import LONGEST_TURN, Clock, Interval


def test_a_process_that_was_stopped_does_not_count_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    later = time.monotonic() + 100
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert clock.now() == LONGEST_TURN
    assert clock.elapsed() == pytest.approx(100, abs=1)


def test_an_interval_begins_when_the_last_one_is_over() -> None:
    interval = Interval(10, first=3)
    assert [now for now in range(30) if interval.begin_next(now)] == [3, 13, 23]
    assert [now for now in range(30) if Interval(10).begin_next(now)] == list(range(10, 30))
