"""One host with at most one GPU: the worker runs in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb import training
from smxgb.rows import Solo

if TYPE_CHECKING:
    from smxgb.job import Job
    from smxgb.supervision.link import Link


def train(job: Job, link: Link) -> None:
    """Run the one worker of the job."""
    training.run(job, Solo(job.hosts.current), link)
