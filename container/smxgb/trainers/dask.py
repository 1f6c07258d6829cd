"""All GPUs of one or several hosts: a Dask worker for each, and one task for each worker.

The first host has the scheduler, and the client that gives each worker its task. Each host's supervisor
starts the host's workers. With device=cpu the workers are processes without a GPU: so the mode can be tried
and tested without one.
"""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, cast

from smxgb.errors import PlatformError
from smxgb.log import log
from smxgb.program import PROGRAM, Program
from smxgb.supervision.messages import Arrived, Finished, Lead, Rendezvous, Start, Succeeded
from smxgb.trainers import dask_cluster
from smxgb.trainers.tracker import tracker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smxgb.job import Job
    from smxgb.supervision.link import Link

    type Met = Mapping[str, str]
    """What the scheduler tells: its address (`scheduler`), and the `token` in its workers' names."""

LOOPBACK = "127.0.0.1"
"""The scheduler's address in a job with one host, which needs no network."""

PAUSE = 0.05
NEWS = 60.0
"""Seconds between two looks for workers, and between two lines of the log that say which are missing."""


def train(job: Job, link: Link) -> None:
    """Start this host's part of the cluster; the first host has the workers train."""
    link.send(Arrived(job.team.offer()))
    leads = job.hosts.current == job.hosts.names[0]
    if leads:
        address = link.wait_for(Lead).address if len(job.hosts.names) > 1 else LOOPBACK
        link.send(Start(_scheduler(job, address)))
    # From the scheduler itself: a foreign process that listens at its port gets neither workers nor tasks.
    met = cast("Met", link.wait_for(Rendezvous).arguments)
    _start_workers(job, link, met)
    if leads:
        _have_trained(job, met)
    ends = [link.wait_for(Finished) for _ in range(job.team.workers)]
    said = {end.name: end.text for end in ends}
    link.send(Succeeded(said[_shown(job, 0)]))


def _scheduler(job: Job, address: str) -> Program:
    settings = job.parameters.settings
    # The port is chosen only for other hosts, whose network must let it through.
    port = settings.scheduler_port if len(job.hosts.names) > 1 else 0
    arguments = ["--host", address, "--port", str(port)]
    arguments += ["--dashboard"] if settings.dashboard else []
    return Program(
        "Dask's scheduler", (*PROGRAM, "dask-scheduler", *arguments), {}, float(settings.silence_timeout)
    )


def _start_workers(job: Job, link: Link, met: Met) -> None:
    silence = float(job.parameters.settings.silence_timeout)
    for index in range(job.team.workers):
        arguments = ["--scheduler", met["scheduler"], "--token", met["token"], "--index", str(index)]
        environ = {}
        if job.team.device.value == "cuda":
            # A process sees its own GPU only, so that whatever uses the first GPU uses that one.
            environ["CUDA_VISIBLE_DEVICES"] = job.machine.gpus[index]
            arguments += ["--gpus", ",".join(job.machine.gpus)]
        command = (*PROGRAM, "dask-worker", *arguments)
        link.send(Start(Program(_shown(job, index), command, environ, silence)))


def _shown(job: Job, index: int) -> str:
    """Return what messages call a worker of this host."""
    gpu = f" (GPU {job.machine.gpus[index]})" if job.team.device.value == "cuda" else ""
    return f"Dask worker {index}{gpu}"


def _have_trained(job: Job, met: Met) -> None:
    """Give each worker its task, and wait until all are done."""
    begin = time.monotonic()
    dask_cluster.configure()
    from distributed import Client, wait  # noqa: PLC0415 - configured first

    try:
        client = Client(met["scheduler"])
        workers = _wait_for_workers(client, job, met["token"])
        seconds = time.monotonic() - begin
        log(f"Dask: {len(workers)} workers at {met['scheduler']} after {seconds:.1f} s.")
        with tracker(job, dask_cluster.host_of(met["scheduler"])) as arguments:
            tasks = [
                client.submit(
                    dask_cluster.take_seat,
                    dict(arguments),
                    workers=[worker],
                    allow_other_workers=False,
                    pure=False,
                )
                for worker in workers
            ]
            # Workers report to their supervisors: no result is fetched.
            wait(tasks)
            if any(task.status != "finished" for task in tasks):
                raise PlatformError("Dask has lost a worker.", origin="elsewhere")
    except (OSError, CancelledError) as error:
        raise dask_cluster.unreachable(error) from error


def _wait_for_workers(client: Any, job: Job, token: str) -> list[str]:
    """Return the addresses of all workers. Raises PlatformError if one does not come in `start_timeout`."""
    limit = job.parameters.settings.start_timeout
    names = {
        dask_cluster.name_of(host, index, token): f"{host}/{index}"
        for host in job.hosts.names
        for index in range(job.team.workers)
    }
    begin = said = time.monotonic()
    while True:
        workers = client.scheduler_info()["workers"]
        found = {worker["name"]: address for address, worker in workers.items()}
        missing = [shown for name, shown in names.items() if name not in found]
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
