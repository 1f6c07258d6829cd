"""XGBoost's tracker, which brings the workers of a job together, and the group that they join through it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.group import Joined
from smxgb.log import log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.job import Job

    type TrackerArguments = Mapping[str, str | int]
    """How a worker reaches the tracker, as `RabitTracker.worker_args` says it."""

RETRIES = 10
"""How often a worker tries to reach the tracker, with growing pauses; it runs before anybody hears of it."""


@contextmanager
def tracker(job: Job, address: str) -> Iterator[TrackerArguments]:
    """Run the tracker of all workers at an address of this host; yield how it is reached."""
    hosts = len(job.hosts.names)
    # Only other hosts need to find a port that their network lets through.
    port = job.parameters.settings.tracker_port if hosts > 1 else 0
    try:
        started = RabitTracker(hosts * job.team.workers, address, port, sortby="task")
        started.start()
    except XGBoostError as error:
        text = f"XGBoost's tracker can't listen at {address}, port {port}: set tracker_port to a free one."
        raise PlatformError(text) from error
    arguments = cast("TrackerArguments", started.worker_args())
    log(f"Tracker: {address}, port {arguments['dmlc_tracker_port']}.")
    try:
        yield arguments
    except BaseException:
        # Python would stop it, which means to wait for the dead: it ends with this process.
        del started.handle
        raise
    started.wait_for(job.parameters.settings.collective_timeout)


def join(job: Job, arguments: TrackerArguments, index: int = 0) -> Joined:
    """Join the group as worker `index` of this host. Ranks go host by host, the first host's first."""
    task = f"{job.hosts.names.index(job.hosts.current):05}-{index:03}"  # ranks follow its text
    timeout = job.parameters.settings.collective_timeout
    also: dict[str, str | int] = {"dmlc_task_id": task, "dmlc_timeout": timeout, "dmlc_retry": RETRIES}
    return Joined({**arguments, **also}, job.hosts.current)


@contextmanager
def as_member() -> Iterator[None]:
    """Mark XGBoost's errors: when a worker dies, the others see only that an operation failed."""
    try:
        yield
    except XGBoostError as error:
        failure = as_job_error(error)
        if isinstance(failure, AlgorithmError):
            failure.origin = "elsewhere"
        raise failure from error
