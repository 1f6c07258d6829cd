"""One host with at most one GPU: the worker runs in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb import worker
from smxgb.group import Solo

if TYPE_CHECKING:
    from smxgb.job import Job
    from smxgb.link import Link


def train(job: Job, link: Link) -> None:
    """Run the one worker of the job."""
    worker.run(job, worker.place_of(job), Solo(job.hosts.current), link)
