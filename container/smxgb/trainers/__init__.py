"""Trainers: who starts the workers. One module for each mode of a job, imported only when it is chosen."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smxgb.job import Job, Mode
    from smxgb.supervision.link import Link

TRAINERS: Mapping[Mode, str] = {
    "single": "smxgb.trainers.single",
    "collective": "smxgb.trainers.collective",
    "dask": "smxgb.trainers.dask",
}
"""Mode -> the module whose `train` starts the workers of that mode."""


def train(job: Job, link: Link) -> None:
    """Train in the job's mode; returns once the artefacts are written."""
    start = cast("Callable[[Job, Link], None]", import_module(TRAINERS[job.team.mode.value]).train)
    start(job, link)
