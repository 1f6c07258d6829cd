"""The members of a group: how a worker joins through XGBoost's tracker, and trains."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from xgboost.core import XGBoostError

from smxgb import training
from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.listeners import brief, connected
from smxgb.rows import Joined
from smxgb.supervision.link import die_of, dying_after
from smxgb.trainers.tracker import task_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Job
    from smxgb.supervision.link import Link
    from smxgb.supervision.messages import Rendezvous

GRACE = 2.0
"""Seconds by which the first host, which sees who is connected, gives up earlier than the others."""

RETRIES = 10
"""How often a worker tries to reach the tracker, with growing pauses. The tracker runs before any worker is
told its address."""


def train_as_member(job: Job, group: Joined, link: Link, index: int = 0) -> None:
    """Train as worker `index` of this host, in the group that it has joined.

    Raises:
        JobError: If the training fails. XGBoost's errors have the origin "elsewhere", for when another worker
            dies, this one sees only that an operation failed.
    """
    with _errors_from_elsewhere():
        training.run(job, group, link, index)


def join(job: Job, meeting: Rendezvous, link: Link, index: int = 0) -> Joined:
    """Join the group as worker `index` of this host. Ranks are given host by host, those of the first first.

    When this returns, all workers have joined, and none listens any more: what XGBoost's workers listen for
    afterwards is the word of the tracker that one has died, which the supervisors know better.

    If not all workers have joined after `start_timeout`, this process ends with a failure that says who is
    connected; XGBoost itself would wait for `collective_timeout`. It ends at once if a stranger has connected
    with one of its ports, where XGBoost takes it for its neighbour.

    Raises:
        PlatformError: If XGBoost could not form the group.
    """
    task = task_of(job.hosts.names.index(job.hosts.current), index)
    settings = job.parameters.settings
    timeout = settings.collective_timeout
    also: dict[str, str | int] = {"dmlc_task_id": task, "dmlc_timeout": timeout, "dmlc_retry": RETRIES}
    grace = 0 if job.hosts.current == job.hosts.names[0] else GRACE

    def disturbed(stranger: str, port: int) -> None:
        die_of(_disturbed(stranger, port), link)

    limit = min(settings.start_timeout, timeout) + grace
    try:
        with dying_after(limit, partial(_apart, job, meeting), link), brief(meeting.addresses, disturbed):
            return Joined({**meeting.arguments, **also}, job.hosts.current)
    except XGBoostError as error:
        raise _apart(job, meeting) from error


def _disturbed(stranger: str, port: int) -> PlatformError:
    """Return the failure of a worker whose port a stranger has reached before it was guarded."""
    return PlatformError(
        f"while the workers came together, {stranger}, which is no host of this job, connected with port "
        f"{port} of this host. Start the job again, in a security group of its own."
    )


def _apart(job: Job, meeting: Rendezvous) -> PlatformError:
    """Return the failure of workers that have not come together."""
    address, port = meeting.arguments["dmlc_tracker_uri"], int(meeting.arguments["dmlc_tracker_port"])
    count = len(job.hosts.names) * job.team.workers
    seen = ""
    if job.hosts.current == job.hosts.names[0]:
        found = [f"{number} from {source}" for source, number in sorted(connected(port).items())]
        seen = f" It has these connections: {', '.join(found) or 'none'}."
    return PlatformError(
        f"the {count} workers did not come together at XGBoost's tracker, {address}, port {port}.{seen} "
        "Either a host can't reach that port, or something beside this job has connected with it: set "
        "tracker_port to one that is open between the hosts, and "
        "that nothing else uses.",
        origin="elsewhere",
    )


@contextmanager
def _errors_from_elsewhere() -> Iterator[None]:
    """Give XGBoost's errors the origin "elsewhere", unless they say what happened."""
    try:
        yield
    except XGBoostError as error:
        failure = as_job_error(error)
        if isinstance(failure, AlgorithmError):
            failure.origin = "elsewhere"
        raise failure from error
