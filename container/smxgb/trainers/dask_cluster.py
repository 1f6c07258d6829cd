"""The processes of a Dask cluster: the scheduler on the first host, and a worker for each GPU.

They speak TLS only, with a key that was made for the job: whoever speaks to a process of Dask can have it run
any code. Each is started by its host's supervisor, which also watches it and kills it in the end. Dask's own
nannies, with which dask-cuda starts its workers, would restart a dead worker, and a restarted worker can't
rejoin XGBoost's group. No data go through Dask: each worker gets the task `take_seat`, which has the process
run the worker function of all modes, and `stay_seated`, which lasts as long.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, cast

import dask

from smxgb import training
from smxgb.environment import process_environ
from smxgb.errors import AlgorithmError, PlatformError, as_job_error
from smxgb.job import load_job
from smxgb.listeners import admit_only, listeners
from smxgb.scratch import scratch_folder
from smxgb.settings import DASHBOARD_PORT
from smxgb.supervision.messages import Lead, Rendezvous, Scratch
from smxgb.trainers.credentials import make_credentials, security_of
from smxgb.trainers.member import join, train_as_member

if TYPE_CHECKING:
    from pathlib import Path

    from smxgb.errors import JobError
    from smxgb.supervision.link import Link

SETTINGS: dict[str, Any] = {
    # The host of a lost or frozen process reports it: Dask's other processes would add tracebacks.
    "distributed.logging": {
        **dict.fromkeys(("distributed", "distributed.client"), "error"),
        **dict.fromkeys(("distributed.core", "distributed.worker", "tornado"), "critical"),
    },
    # The scheduler listens before any worker starts, but on a busy machine it may answer late.
    "distributed.comm.timeouts.connect": 300,
    # The supervisors report lost workers, and no other worker may take over a task.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": None,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # A profile is of no use: the one task lasts as long as the job.
    "distributed.worker.profile.enabled": False,
    # Dask's monitoring of GPUs is not used, and it would load the driver in processes without a GPU.
    "distributed.diagnostics.nvml": False,
}
NO_PAGES: dict[str, Any] = {f"distributed.{process}.http.routes": [] for process in ("scheduler", "worker")}
SEAT = "seat"


def configure(*, pages: bool = False) -> None:
    """Set Dask's configuration. Importing `distributed` reads its log levels, so this comes first.

    Its processes show pages about themselves to whoever asks; none does if `pages` is False.
    """
    dask.config.set(SETTINGS if pages else SETTINGS | NO_PAGES)


def run_scheduler(link: Link, port: int, *, dashboard: bool) -> None:
    """Be the scheduler, at an address of this host, until this process is killed; port 0 is any free one.

    Once it listens, all hosts are told its address, and the key and certificate without which nobody may
    speak to a process of the cluster.
    """
    configure(pages=dashboard)
    lead = link.wait_for(Lead)
    credentials = make_credentials()
    from distributed import Scheduler  # noqa: PLC0415 - configured first

    async def serve() -> None:
        pages = f"{lead.address}:{DASHBOARD_PORT if dashboard else 0}"
        meeting = Rendezvous(credentials, lead.addresses)
        before = listeners()
        try:
            scheduler = await Scheduler(
                host=lead.address,
                port=port,
                protocol="tls",
                security=security_of(meeting),
                dashboard=dashboard,
                dashboard_address=pages,
            )
        except RuntimeError as error:
            if isinstance(error.__cause__, OSError):
                raise PlatformError(_not_listening(lead.address, port, error.__cause__)) from error
            raise
        for door in listeners() - before:
            admit_only(door, lead.addresses)
        link.send(replace(meeting, arguments={"scheduler": scheduler.address, **credentials}))
        await scheduler.finished()

    asyncio.run(serve())
    raise AlgorithmError("Dask's scheduler has ended before its time.")


def _not_listening(host: str, port: int, error: OSError) -> str:
    return (
        f"Dask's scheduler can't listen at {host}, port {port} ({error.strerror}): set scheduler_port to a "
        "free one."
    )


def run_worker(link: Link, index: int, gpus: str | None) -> None:
    """Be worker `index` of this host until this process is killed.

    `gpus` are the GPUs of all workers of the host, of which this one sees only its own. Dask runs in a second
    thread: XGBoost's messages, settings and communicator belong to the thread that trains, which is the first
    thread in every mode.
    """
    # dask-cuda imports `distributed` too.
    configure()
    meeting = link.wait_for(Rendezvous)
    environ = process_environ()
    job = load_job(environ if gpus is None else {**environ, "CUDA_VISIBLE_DEVICES": gpus})
    if gpus is not None:
        # The job has counted the host's processors by now, so this worker may keep to those near its GPU.
        training.stay_near(gpus.split(",")[index])
    seat = _Seat()
    spool_dir = job.parameters.settings.spool_dir
    with scratch_folder(spool_dir, job.paths.base, lambda made: link.send(Scratch(made))) as folder:
        arguments = (meeting, name_of(job.hosts.current, index), seat, folder)
        Thread(target=_serve_worker, args=arguments, name="dask", daemon=True).start()
        group = join(job, seat.taken(), link, index)
        seat.joined()
        train_as_member(job, group, link, index)
        seat.leave()
        Event().wait()


def _serve_worker(meeting: Rendezvous, name: str, seat: _Seat, folder: Path) -> None:
    """Run Dask's side of a worker until the scheduler is gone. Its own host reports a lost scheduler."""
    from distributed import Worker  # noqa: PLC0415 - configured first
    from distributed.utils import get_ip  # noqa: PLC0415

    async def serve() -> None:
        scheduler = str(meeting.arguments["scheduler"])
        host = get_ip(_host_of(scheduler))
        before = listeners()
        member = await Worker(
            scheduler,
            name=name,
            host=host,
            nthreads=1,
            memory_limit=None,
            local_directory=str(folder),
            dashboard_address=f"{host}:0",
            protocol="tls",
            security=security_of(meeting),
            extensions={SEAT: lambda _: seat},
        )
        for door in listeners() - before:
            admit_only(door, meeting.addresses)
        await member.finished()

    try:
        asyncio.run(serve())
    except Exception as error:  # noqa: BLE001 - nothing else reports what a thread raises
        seat.give_up(error)


def unreachable(error: Exception) -> JobError:
    """Return the failure of a process that can't reach the scheduler, unless the error has a known cause."""
    failure = as_job_error(error)
    if isinstance(failure, AlgorithmError):
        return PlatformError(f"Dask's scheduler can't be reached: {error}.", origin="elsewhere")
    return failure


def _host_of(scheduler: str) -> str:
    """Return the address in `tls://address:port`."""
    return scheduler.rpartition("/")[2].rpartition(":")[0]


def name_of(host: str, index: int) -> str:
    """Return Dask's name of a worker."""
    return f"{host}/{index}"


class _Seat:
    """The seat of a worker: a task in Dask's thread takes it, and the first thread trains meanwhile."""

    def __init__(self) -> None:
        self._taken = SimpleQueue[Any]()
        self._joined = Event()
        self._left = Event()

    def take(self, meeting: Rendezvous) -> None:
        """Have the first thread join the group and train; return when it has joined."""
        self._taken.put(meeting)
        self._joined.wait()

    def stay(self) -> None:
        """Return when the first thread has trained."""
        self._left.wait()

    def taken(self) -> Rendezvous:
        """Wait for the task that takes the seat; return where the group meets."""
        taken = self._taken.get()
        if isinstance(taken, Exception):
            raise unreachable(taken) from taken
        return cast("Rendezvous", taken)

    def give_up(self, error: Exception) -> None:
        """Tell the first thread that no task will come, and why."""
        self._taken.put(error)

    def joined(self) -> None:
        """Let the task return that took the seat."""
        self._joined.set()

    def leave(self) -> None:
        """Let the last task return."""
        self._left.set()


def take_seat(meeting: Rendezvous) -> None:
    """Have the process that runs this task join the group and train; return when it has joined."""
    from distributed import get_worker  # noqa: PLC0415 - configured first

    get_worker().extensions[SEAT].take(meeting)


def stay_seated() -> None:
    """Return when the process that runs this task has trained."""
    from distributed import get_worker  # noqa: PLC0415 - configured first

    get_worker().extensions[SEAT].stay()
