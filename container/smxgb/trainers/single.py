"""One host with at most one GPU: the worker runs in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb import worker

if TYPE_CHECKING:
    from smxgb.job import Job
    from smxgb.progress import Link


def train(job: Job, link: Link) -> None:
    """Run the one worker of the job."""
    worker.run(job, worker.Place(rank=0, world_size=1, device=job.device.value, threads=job.threads), link)
