"""XGBoost's tracker, through which the workers of a job form a group."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from smxgb.errors import PlatformError
from smxgb.log import log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.job import Job

    type TrackerArguments = Mapping[str, str | int]
    """What a worker needs to reach the tracker: `RabitTracker.worker_args`."""


@contextmanager
def tracker(job: Job, address: str) -> Iterator[TrackerArguments]:
    """Run the tracker of all workers at an address of this host; yield the arguments that reach it."""
    hosts = len(job.hosts.names)
    # The port is chosen only for other hosts, whose network must let it through.
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
        # Freeing the handle would wait for all workers, even dead ones. The tracker ends with this process.
        del started.handle
        raise
    started.wait_for(job.parameters.settings.collective_timeout)
