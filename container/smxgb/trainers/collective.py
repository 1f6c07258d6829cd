"""Several hosts with at most one GPU each: a worker on each, joined by XGBoost's tracker on the first."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from smxgb.supervision.messages import Arrived, Lead, Rendezvous
from smxgb.trainers.member import train_as_member
from smxgb.trainers.tracker import tracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Job
    from smxgb.supervision.link import Link
    from smxgb.trainers.tracker import TrackerArguments


def train(job: Job, link: Link) -> None:
    """Run this host's worker in the group of all hosts."""
    link.send(Arrived(job.team.offer()))
    with _tracker(job, link) as arguments:
        train_as_member(job, arguments, link)


@contextmanager
def _tracker(job: Job, link: Link) -> Iterator[TrackerArguments]:
    """On the first host, start the tracker once all hosts are there; on any other, wait for its address."""
    if job.hosts.current == job.hosts.names[0]:
        # The supervisor tells the address that the other hosts reach this one at.
        with tracker(job, link.wait_for(Lead).address) as arguments:
            link.send(Rendezvous(arguments))
            yield arguments
    else:
        yield link.wait_for(Rendezvous).arguments
