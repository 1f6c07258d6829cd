"""Several hosts with at most one GPU each: a worker on each, joined by XGBoost's tracker on the first."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, cast

from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from smxgb import worker
from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.group import Joined
from smxgb.progress import log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Job
    from smxgb.progress import Link

RETRIES = 10
"""How often a worker tries to reach the tracker, with growing pauses; it runs before anybody hears of it."""


def train(job: Job, link: Link) -> None:
    """Run this host's worker in the group of all hosts."""
    link.arrived()
    with _tracker(job, link) if job.hosts.current == job.hosts.names[0] else nullcontext():
        try:
            group = Joined(_arguments(job, link), job.hosts.current)
            place = worker.Place(device=job.device.value, threads=job.threads)
            worker.run(job, place, group, link)
        except XGBoostError as error:
            failure = as_job_error(error)
            if isinstance(failure, AlgorithmError):
                # When a worker dies, the others see only that an operation failed.
                failure.origin = "elsewhere"
            raise failure from error


@contextmanager
def _tracker(job: Job, link: Link) -> Iterator[None]:
    """Start the tracker once all hosts are there, at the address that the supervisor has found."""
    address = str(link.wait_for("lead"))
    port = job.parameters.settings.tracker_port
    try:
        tracker = RabitTracker(len(job.hosts.names), address, port, sortby="task")
        tracker.start()
    except XGBoostError as error:
        text = f"XGBoost's tracker can't listen at {address}, port {port}: set tracker_port to a free one."
        raise PlatformError(text) from error
    link.tracker(tracker.worker_args())
    log(f"Tracker: {address}, port {port}.")
    try:
        yield
    except BaseException:
        # Python would stop it, which means to wait for the dead: it ends with this process.
        del tracker.handle
        raise
    tracker.wait_for(job.parameters.settings.collective_timeout)


def _arguments(job: Job, link: Link) -> dict[str, str | int]:
    arguments = cast("dict[str, str | int]", link.wait_for("tracker"))
    # Ranks follow the text of the task, so that the first host has rank 0.
    task = f"{job.hosts.names.index(job.hosts.current):05}"
    timeout = job.parameters.settings.collective_timeout
    return arguments | {"dmlc_task_id": task, "dmlc_timeout": timeout, "dmlc_retry": RETRIES}
