from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from smxgb.trainers.dask_cluster import unreachable

if TYPE_CHECKING:
    from smxgb.errors import JobError


def failure_of(error: Exception, below: Exception | None = None) -> JobError:
    with pytest.raises(type(error)) as caught:
        raise error from below
    return unreachable(caught.value)


def test_a_scheduler_that_does_not_answer_may_be_the_consequence_of_another_failure() -> None:
    failure = failure_of(OSError("Timed out trying to connect to tcp://127.0.0.1:8786"))
    assert str(failure).startswith("PlatformError: Dask's scheduler can't be reached: Timed out")
    assert failure.origin == "elsewhere"


def test_a_lack_of_memory_is_no_scheduler_that_does_not_answer() -> None:
    failure = failure_of(RuntimeError("Worker failed to start."), MemoryError())
    assert str(failure).startswith("PlatformError: out of memory: ")
    assert failure.origin == "here"
