"""Several hosts with at most one GPU each: a worker on each, joined by XGBoost's tracker on the first."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from smxgb import training
from smxgb.trainers.tracker import as_member, join, tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Job
    from smxgb.supervision.messages import Link
    from smxgb.trainers.tracker import TrackerArguments


def train(job: Job, link: Link) -> None:
    """Run this host's worker in the group of all hosts."""
    link.arrived(**job.team.offer())
    with _tracker(job, link) as arguments, as_member():
        training.run(job, training.place_of(job), join(job, arguments, link), link)


@contextmanager
def _tracker(job: Job, link: Link) -> Iterator[TrackerArguments]:
    """Start the tracker if this host leads, once all hosts are there; else wait for it."""
    if job.hosts.current == job.hosts.names[0]:
        # The supervisor has found the address.
        with tracker(job, str(link.wait_for("lead"))) as arguments:
            link.tracker(arguments)
            yield arguments
    else:
        yield cast("TrackerArguments", link.wait_for("tracker"))
