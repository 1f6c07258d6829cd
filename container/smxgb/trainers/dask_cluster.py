"""The processes of a Dask cluster: the scheduler on the first host, and a worker for each GPU.

Each is started by its host's supervisor, which also watches it and kills it in the end: Dask's own nannies,
with which dask-cuda starts its workers, would start a dead one again, whose group has gone on without it. No
data go through Dask: its one task for each worker, `take_seat`, has the process run the worker function of
all modes.
"""

from __future__ import annotations

import asyncio
import socket
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, cast

import dask

from smxgb import gpu, worker
from smxgb.environment import process_environ
from smxgb.errors import AlgorithmError, PlatformError
from smxgb.job import load_job
from smxgb.scratch import scratch_folder
from smxgb.trainers.tracker import as_member, join

if TYPE_CHECKING:
    from pathlib import Path

    from smxgb.link import Link
    from smxgb.trainers.tracker import TrackerArguments

SETTINGS: dict[str, Any] = {
    "distributed.logging": {"distributed": "error", "distributed.client": "error", "tornado": "critical"},
    # The scheduler, which is started with the workers, may take its time on a busy machine.
    "distributed.comm.timeouts.connect": 300,
    # Who is lost is for the supervisors to say, and nobody is to take over.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": None,
    "distributed.scheduler.work-stealing": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # One task that lasts as long as the job teaches nothing.
    "distributed.worker.profile.enabled": False,
    # Dask's look at the GPUs is of no use here, and loads the driver in processes that need none.
    "distributed.diagnostics.nvml": False,
}
DASHBOARD_PORT = 8787
SEAT = "seat"


def configure() -> None:
    """Set Dask up for what it does here, before `distributed` is imported, which reads the log levels."""
    dask.config.set(SETTINGS)


def run_scheduler(link: Link, host: str, port: int, *, dashboard: bool) -> None:
    """Be the scheduler, at an address of this host, until this process is killed."""
    link.phase("schedule")
    try:
        # Dask wraps the error of a taken port in others.
        socket.create_server((host, port)).close()
    except OSError as error:
        text = f"Dask's scheduler can't listen at {host}, port {port}: set scheduler_port to a free one."
        raise PlatformError(text) from error
    configure()
    from distributed import Scheduler  # noqa: PLC0415 - configured first

    async def serve() -> None:
        pages = f"{host}:{DASHBOARD_PORT if dashboard else 0}"
        scheduler = await Scheduler(host=host, port=port, dashboard=dashboard, dashboard_address=pages)
        await scheduler.finished()

    asyncio.run(serve())
    raise AlgorithmError("Dask's scheduler has ended before its time.")


def run_worker(link: Link, scheduler: str, index: int, gpus: str | None) -> None:
    """Be worker `index` of this host until this process is killed.

    `gpus` are the GPUs that all workers of the host have together, of which this one sees only its own. Dask
    lives in a thread: XGBoost's messages, settings and communicator belong to the thread that trains, which
    is the first one here as in every mode.
    """
    environ = process_environ()
    job = load_job(environ if gpus is None else {**environ, "CUDA_VISIBLE_DEVICES": gpus})
    if gpus is not None:
        # The job has counted the processors that its workers share: now each takes those near it.
        gpu.stay_near(gpus.split(",")[index])
    seat = _Seat()
    with scratch_folder(job.parameters.settings.spool_dir, job.paths.base, link) as folder:
        arguments = (scheduler, name_of(job.hosts.current, index), seat, folder)
        Thread(target=_serve_worker, args=arguments, name="dask", daemon=True).start()
        with as_member():
            group = join(job, seat.taken(), link, index)
            worker.run(job, worker.place_of(job, index), group, link)
        seat.leave()
        Event().wait()


def _serve_worker(scheduler: str, name: str, seat: _Seat, folder: Path) -> None:
    """Run Dask's side of a worker, as long as the scheduler is there. If it is lost, its host tells."""
    configure()
    from distributed import Worker  # noqa: PLC0415 - configured first
    from distributed.utils import get_ip  # noqa: PLC0415

    async def serve() -> None:
        host = get_ip(scheduler.rpartition("/")[2].rpartition(":")[0])
        member = await Worker(
            scheduler,
            name=name,
            host=host,
            nthreads=1,
            memory_limit=None,
            local_directory=str(folder),
            dashboard_address=f"{host}:0",
            extensions={SEAT: lambda _: seat},
        )
        await member.finished()

    try:
        asyncio.run(serve())
    except Exception as error:  # noqa: BLE001 - what a thread raises is heard by nobody else
        seat.give_up(error)


def name_of(host: str, index: int) -> str:
    """Return the name that Dask knows a worker by."""
    return f"{host}/{index}"


class _Seat:
    """Where the task in Dask's thread and the first thread of the process meet."""

    def __init__(self) -> None:
        self._taken = SimpleQueue[Any]()
        self._left = Event()

    def take(self, arguments: TrackerArguments) -> None:
        """Have the first thread train; return when it has."""
        self._taken.put(arguments)
        self._left.wait()

    def taken(self) -> TrackerArguments:
        """Wait for the task; return what it has brought."""
        taken = self._taken.get()
        if isinstance(taken, Exception):
            raise PlatformError(f"Dask's scheduler can't be reached: {taken}.", origin="elsewhere") from taken
        return cast("TrackerArguments", taken)

    def give_up(self, error: Exception) -> None:
        """Let the first thread know that no task will come."""
        self._taken.put(error)

    def leave(self) -> None:
        """Let the task return."""
        self._left.set()


def take_seat(arguments: TrackerArguments) -> None:
    """Have the process that runs this task train, with the others that the tracker brings together."""
    from distributed import get_worker  # noqa: PLC0415 - configured first

    get_worker().extensions[SEAT].take(arguments)
