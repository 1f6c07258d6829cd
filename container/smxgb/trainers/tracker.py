"""The tracker, through which the workers of a job form one of XGBoost's groups.

It stands in the place of XGBoost's own, which reads one connection after the other, so that one that says
nothing holds up all, and which listens until each worker has said goodbye. This one hears all at once, turns
away who is no host of the job, and is gone when all workers have joined.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
import sys
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

from smxgb.errors import PlatformError
from smxgb.listeners import admit_only, is_foreign
from smxgb.log import log

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from smxgb.job import Job
    from smxgb.supervision.messages import Lead

    type TrackerArguments = Mapping[str, str | int]
    """What a worker needs to reach the tracker, in XGBoost's names."""

MAGIC = struct.pack("=i", 0xFF99)
START = 1
LONGEST = 4096
"""What XGBoost's workers say first, the command with which they join, and the bytes of a message
at most (src/collective/protocol.h, 3.4.1). A message is JSON, after its length as an int32."""

PATIENCE = 10.0
"""Seconds in which a connection must have said all that a worker says."""

BACKLOG = 128


@contextmanager
def tracker(job: Job, lead: Lead) -> Iterator[TrackerArguments]:
    """Run the tracker of all workers at an address of this host; yield the arguments that reach it.

    Leave the block when all workers have joined. Raises PlatformError if the port can't be opened.
    """
    hosts = range(len(job.hosts.names))
    # The port is chosen only for other hosts, whose network must let it through.
    # Each restart has a port of its own: workers of the attempt that has ended can't reach the new tracker.
    port = job.parameters.settings.tracker_port + lead.attempt if len(hosts) > 1 else 0
    try:
        listener = socket.create_server((lead.address, port), backlog=BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno or 0)  # Python's own text says the address again
        raise PlatformError(
            f"XGBoost's tracker can't listen at {lead.address}, port {port} ({reason}): set tracker_port to "
            "a free one."
        ) from error
    admit_only(listener.fileno(), lead.addresses)
    port = listener.getsockname()[1]
    log(f"Tracker: {lead.address}, port {port}.")
    tasks = [task_of(host, index) for host in hosts for index in range(job.team.workers)]
    meeting = _Meeting(tasks, lead.addresses)
    serving = Thread(target=meeting.serve, args=(listener,), name="tracker", daemon=True)
    serving.start()
    try:
        yield {"dmlc_tracker_uri": lead.address, "dmlc_tracker_port": port}
    finally:
        meeting.end()
        serving.join()


def task_of(host: int, index: int) -> str:
    """Return what XGBoost calls worker `index` of a host: its task."""
    return f"{host:05}-{index:03}"


class _Meeting:
    """The workers that have come so far. Ranks are given in the order of the tasks."""

    def __init__(self, tasks: Sequence[str], addresses: Collection[str]) -> None:
        self._tasks = tasks
        self._is_foreign = is_foreign(addresses)
        self._places: dict[int, tuple[str, int]] = {}
        self._loop = asyncio.new_event_loop()
        self._are_all_here = asyncio.Event()
        self._is_over = asyncio.Event()

    def serve(self, listener: socket.socket) -> None:
        """Hear whoever connects, until the end; in a thread of its own."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(listener))

    def end(self) -> None:
        """Turn away whoever is still there, and listen no more."""
        self._loop.call_soon_threadsafe(self._is_over.set)

    async def _serve(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._hear, sock=listener)
        await self._is_over.wait()
        server.close()

    async def _hear(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Take part in the conversation with one worker; leave anybody else at the first wrong word."""
        address = writer.get_extra_info("peername")[0]
        try:
            if self._is_foreign(address):
                return
            async with asyncio.timeout(PATIENCE):
                rank = await self._seat(reader, writer, address)
            await self._are_all_here.wait()
            after = (rank + 1) % len(self._tasks)
            host, port = self._places[after]
            await _say(writer, {"rank": after, "host": host, "port": port})
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError):
            return  # no worker: it has left, is silent, or babbles
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _seat(self, reader: StreamReader, writer: StreamWriter, address: str) -> int:
        """Return the rank of the worker that has come. Raises ValueError if it is none that is awaited."""
        writer.write(MAGIC)
        if await reader.readexactly(len(MAGIC)) != MAGIC:
            raise ValueError
        rank = self._tasks.index((await _heard(reader))["task_id"])
        start = await _heard(reader)
        port = start["port"]
        if start["cmd"] != START or not isinstance(port, int) or rank in self._places:
            raise ValueError
        self._places[rank] = address, port
        await _say(writer, {"world_size": len(self._tasks)})
        if len(self._places) == len(self._tasks):
            self._are_all_here.set()
        return rank


async def _heard(reader: StreamReader) -> Any:
    """Return the next message of a worker. Raises ValueError if it is none."""
    size = int.from_bytes(await reader.readexactly(4), sys.byteorder)
    if size > LONGEST:
        raise ValueError
    return json.loads(await reader.readexactly(size))


async def _say(writer: StreamWriter, message: Mapping[str, object]) -> None:
    text = json.dumps(message).encode()
    writer.write(struct.pack("=i", len(text)) + text)
    await writer.drain()
