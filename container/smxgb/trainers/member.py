"""The members of a group: how a worker joins through XGBoost's tracker, trains, and leaves."""

from __future__ import annotations

import socket
import struct
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xgboost.core import XGBoostError

from smxgb import training
from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.rows import Joined
from smxgb.supervision.link import dying_after

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Job
    from smxgb.supervision.link import Link
    from smxgb.trainers.tracker import TrackerArguments

GRACE = 2.0
"""Seconds by which the first host, which sees who is connected, gives up earlier than the others."""

ESTABLISHED = "01"
"""A connection's state, in Linux's /proc/net/tcp (proc(5), include/net/tcp_states.h)."""

RETRIES = 10
"""How often a worker tries to reach the tracker, with growing pauses. The tracker runs before any worker is
told its address."""


def train_as_member(job: Job, arguments: TrackerArguments, link: Link, index: int = 0) -> None:
    """Join the group as worker `index` of this host and train. The worker leaves it before it saves.

    Raises:
        JobError: If the training fails. XGBoost's errors have the origin "elsewhere", for when another worker
            dies, this one sees only that an operation failed.
    """
    with _errors_from_elsewhere():
        training.run(job, join(job, arguments, link, index), link, index)


def join(job: Job, arguments: TrackerArguments, link: Link, index: int = 0) -> Joined:
    """Join the group as worker `index` of this host. Ranks are given host by host, those of the first first.

    If not all workers have joined after `start_timeout`, this process ends with a failure that says who is
    connected. XGBoost itself would wait for `collective_timeout`, and not report a stray connection that
    keeps its tracker busy.
    """
    # The tracker sorts the tasks as text, and gives the ranks in that order.
    task = f"{job.hosts.names.index(job.hosts.current):05}-{index:03}"
    settings = job.parameters.settings
    timeout = settings.collective_timeout
    also: dict[str, str | int] = {"dmlc_task_id": task, "dmlc_timeout": timeout, "dmlc_retry": RETRIES}
    grace = 0 if job.hosts.current == job.hosts.names[0] else GRACE

    limit = min(settings.start_timeout, timeout) + grace
    try:
        with dying_after(limit, partial(_apart, job, arguments), link):
            return Joined({**arguments, **also}, job.hosts.current)
    except XGBoostError as error:
        raise _apart(job, arguments) from error


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
def _errors_from_elsewhere() -> Iterator[None]:
    """Give XGBoost's errors the origin "elsewhere", unless they say what happened."""
    try:
        yield
    except XGBoostError as error:
        failure = as_job_error(error)
        if isinstance(failure, AlgorithmError):
            failure.origin = "elsewhere"
        raise failure from error
