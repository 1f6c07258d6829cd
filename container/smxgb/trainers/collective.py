"""Several hosts with at most one GPU each: a worker on each, joined by XGBoost's tracker on the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from smxgb import worker
from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.group import Joined
from smxgb.progress import log

if TYPE_CHECKING:
    from smxgb.job import Job
    from smxgb.progress import Link

RETRIES = 10
"""How often a worker tries to reach the tracker, with growing pauses; it runs before anybody hears of it."""


def train(job: Job, link: Link) -> None:
    """Run this host's worker in the group of all hosts."""
    link.arrived(mode=job.mode.value, device=job.device.value)
    if job.hosts.current == job.hosts.names[0]:
        _start_tracker(job, link)
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


def _start_tracker(job: Job, link: Link) -> None:
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
    # It serves until this process ends: to stop it means to wait for the slowest worker, or for the dead.
    del tracker.handle


def _arguments(job: Job, link: Link) -> dict[str, str | int]:
    arguments = cast("dict[str, str | int]", link.wait_for("tracker"))
    # Ranks follow the text of the task, so that the first host has rank 0.
    task = f"{job.hosts.names.index(job.hosts.current):05}"
    timeout = job.parameters.settings.collective_timeout
    return arguments | {"dmlc_task_id": task, "dmlc_timeout": timeout, "dmlc_retry": RETRIES}
