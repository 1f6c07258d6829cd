"""Several hosts with at most one GPU each: a worker on each, joined by XGBoost's tracker on the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smxgb.supervision.messages import Arrived, Lead, Rendezvous
from smxgb.trainers.member import join, train_as_member
from smxgb.trainers.tracker import tracker

if TYPE_CHECKING:
    from smxgb.job import Job
    from smxgb.rows import Joined
    from smxgb.supervision.link import Link


def train(job: Job, link: Link) -> None:
    """Run this host's worker in the group of all hosts."""
    link.send(Arrived(job.team.offer()))
    train_as_member(job, _join(job, link), link)


def _join(job: Job, link: Link) -> Joined:
    """On the first host, run the tracker until all have joined; on any other, join where it says."""
    if job.hosts.current != job.hosts.names[0]:
        return join(job, link.wait_for(Rendezvous), link)
    # The supervisor tells the address that the other hosts reach this one at.
    lead = link.wait_for(Lead)
    with tracker(job, lead) as arguments:
        meeting = Rendezvous(arguments, lead.addresses)
        link.send(meeting)
        return join(job, meeting, link)
