"""All GPUs of one or several hosts: a Dask worker for each, and one task for each worker.

The first host has the scheduler, and the client that gives each worker its task. Each host's supervisor
starts the host's workers. With device=cpu the workers are processes without a GPU: so the mode can be tried
and tested without one.
"""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from smxgb.errors import PlatformError
from smxgb.log import log
from smxgb.program import PROGRAM, Program
from smxgb.supervision.messages import Arrived, Finished, Lead, Rendezvous, Start, Succeeded
from smxgb.trainers import dask_cluster
from smxgb.trainers.credentials import security_of
from smxgb.trainers.tracker import tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from smxgb.job import Job
    from smxgb.supervision.link import Link

PAUSE = 0.05
NEWS = 60.0
"""Seconds between two looks for workers, and between two lines of the log that say which are missing."""


def train(job: Job, link: Link) -> None:
    """Start this host's part of the cluster; the first host has the workers train."""
    link.send(Arrived(job.team.offer()))
    lead = link.wait_for(Lead) if job.hosts.current == job.hosts.names[0] else None
    if lead:
        link.send(Start(_scheduler(job)))
    # From the scheduler itself: a foreign process that listens at its port gets neither workers nor tasks.
    meeting = link.wait_for(Rendezvous)
    for index in range(job.team.workers):
        link.send(Start(_worker(job, index)))
    if lead:
        _have_trained(job, lead, meeting)
    ends = [link.wait_for(Finished) for _ in range(job.team.workers)]
    said = {end.name: end.text for end in ends}
    link.send(Succeeded(said[_shown(job, 0)]))


def _scheduler(job: Job) -> Program:
    settings = job.parameters.settings
    # The port is chosen only for other hosts, whose network must let it through.
    port = settings.scheduler_port if len(job.hosts.names) > 1 else 0
    command = [*PROGRAM, "dask-scheduler", "--port", str(port)]
    command += ["--dashboard"] if settings.dashboard else []
    return Program("Dask's scheduler", command, {}, float(settings.silence_timeout))


def _worker(job: Job, index: int) -> Program:
    command = [*PROGRAM, "dask-worker", "--index", str(index)]
    environ = {}
    if job.team.device.value == "cuda":
        # A process sees its own GPU only, so that whatever uses the first GPU uses that one.
        environ["CUDA_VISIBLE_DEVICES"] = job.machine.gpus[index]
        command += ["--gpus", ",".join(job.machine.gpus)]
    silence = float(job.parameters.settings.silence_timeout)
    return Program(_shown(job, index), command, environ, silence)


def _shown(job: Job, index: int) -> str:
    """Return what messages call a worker of this host."""
    gpu = f" (GPU {job.machine.gpus[index]})" if job.team.device.value == "cuda" else ""
    return f"Dask worker {index}{gpu}"


def _have_trained(job: Job, lead: Lead, meeting: Rendezvous) -> None:
    """Have the workers join one group and train, and wait until all have.

    Workers report to their supervisors: no result is fetched.
    """
    begin = time.monotonic()
    dask_cluster.configure()
    from distributed import Client  # noqa: PLC0415 - configured first

    scheduler = str(meeting.arguments["scheduler"])
    try:
        client = Client(scheduler, security=security_of(meeting))
        workers = _wait_for_workers(client, job)
        seconds = time.monotonic() - begin
        log(f"Dask: {len(workers)} workers at {scheduler} after {seconds:.1f} s.")
        with tracker(job, lead) as arguments:
            _run_on_all(client, workers, dask_cluster.take_seat, Rendezvous(arguments, lead.addresses))
        _run_on_all(client, workers, dask_cluster.stay_seated)
    except (OSError, CancelledError) as error:
        raise dask_cluster.unreachable(error) from error


def _run_on_all(client: Any, workers: Iterable[str], task: Callable[..., None], *arguments: object) -> None:
    """Have each worker run a task, and wait for all. Raises PlatformError if one does not end it."""
    from distributed import wait  # noqa: PLC0415 - configured first

    pinned: dict[str, Any] = {"allow_other_workers": False, "pure": False}
    running = [client.submit(task, *arguments, workers=[worker], **pinned) for worker in workers]
    wait(running)
    if any(each.status != "finished" for each in running):
        raise PlatformError("Dask has lost a worker.", origin="elsewhere")


def _wait_for_workers(client: Any, job: Job) -> list[str]:
    """Return the addresses of all workers. Raises PlatformError if one does not come in `start_timeout`."""
    limit = job.parameters.settings.start_timeout
    names = [
        dask_cluster.name_of(host, index) for host in job.hosts.names for index in range(job.team.workers)
    ]
    begin = said = time.monotonic()
    while True:
        workers = client.scheduler_info()["workers"]
        found = {worker["name"]: address for address, worker in workers.items()}
        missing = [name for name in names if name not in found]
        if not missing:
            return [found[name] for name in names]
        now = time.monotonic()
        if now - begin > limit:
            raise PlatformError(_absent(missing, limit), origin="everywhere")
        if now - said > NEWS:
            said = now
            log(f"Waiting for Dask workers: {', '.join(missing)}.")
        time.sleep(PAUSE)


def _absent(missing: Iterable[str], limit: int) -> str:
    return (
        f"after start_timeout={limit} s the scheduler has not heard of the Dask workers {', '.join(missing)} "
        "(host/worker). Start the job again, or raise start_timeout."
    )
