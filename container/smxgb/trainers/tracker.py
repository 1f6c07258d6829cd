"""XGBoost's tracker, which brings the workers of a job together, and the group that they join through it."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, cast

from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.log import log
from smxgb.rows import Joined
from smxgb.supervision.messages import die_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smxgb.job import Job
    from smxgb.supervision.messages import Link

    type TrackerArguments = Mapping[str, str | int]
    """How a worker reaches the tracker, as `RabitTracker.worker_args` says it."""

GRACE = 2.0
"""Seconds by which the first host, which sees who is connected, gives up earlier than the others."""

ESTABLISHED = "01"
"""A connection's state, in Linux's /proc/net/tcp (proc(5), include/net/tcp_states.h)."""

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


def join(job: Job, arguments: TrackerArguments, link: Link, index: int = 0) -> Joined:
    """Join the group as worker `index` of this host. Ranks go host by host, the first host's first.

    All workers are there by then: after `start_timeout` this process ends with what keeps them apart. XGBoost
    itself would wait for `collective_timeout`, and say nothing of a stray that keeps its tracker busy.
    """
    task = f"{job.hosts.names.index(job.hosts.current):05}-{index:03}"  # ranks follow its text
    settings = job.parameters.settings
    timeout = settings.collective_timeout
    also: dict[str, str | int] = {"dmlc_task_id": task, "dmlc_timeout": timeout, "dmlc_retry": RETRIES}
    grace = 0 if job.hosts.current == job.hosts.names[0] else GRACE

    def give_up() -> None:
        die_of(_apart(job, arguments), link)

    timer = Timer(min(settings.start_timeout, timeout) + grace, give_up)
    timer.daemon = True
    timer.start()
    try:
        return Joined({**arguments, **also}, job.hosts.current)
    except XGBoostError as error:
        raise _apart(job, arguments) from error
    finally:
        timer.cancel()


def _apart(job: Job, arguments: TrackerArguments) -> PlatformError:
    """Return the failure of workers that have not come together."""
    port = int(arguments["dmlc_tracker_port"])
    count = len(job.hosts.names) * job.team.workers
    seen = ""
    if job.hosts.current == job.hosts.names[0]:
        found = [f"{number} from {address}" for address, number in sorted(_connected(port).items())]
        seen = f" It has these connections: {', '.join(found) or 'none'}."
    return PlatformError(
        f"the {count} workers did not come together at XGBoost's tracker, {arguments['dmlc_tracker_uri']}, "
        f"port {port}.{seen} Either a host can't reach that port, or something "
        "beside this job has connected with it: set tracker_port to one that is open between the hosts, and "
        "that nothing else uses.",
        origin="elsewhere",
    )


def _connected(port: int) -> Counter[str]:
    """Return how many connections with a port of this host each address has."""
    found = Counter[str]()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state = line.split()[:4]
        if state == ESTABLISHED and int(local.partition(":")[2], 16) == port:
            found[socket.inet_ntoa(struct.pack("=I", int(remote.partition(":")[0], 16)))] += 1
    return found


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
