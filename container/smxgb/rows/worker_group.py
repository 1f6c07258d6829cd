"""The group of workers that train one model together, over XGBoost's communicator.

A worker that is alone has a group too, so that no code asks whether there are others. Every operation must be
called by all workers, in the same order; so must each constructor of a matrix and each round of boosting.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np
import xgboost
from pydantic import TypeAdapter
from xgboost import collective

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt


FLAG = TypeAdapter(bool)
FLAGS = TypeAdapter(list[bool])
COUNT = TypeAdapter(int)
TEXT: TypeAdapter[str | None] = TypeAdapter(str | None)
"""The types of what workers most often tell each other."""


class Group(Protocol):
    """All workers of the job; `hosts` has the name of each one's host, by rank."""

    rank: int
    hosts: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of workers."""

    def gather[T](self, value: T, kind: TypeAdapter[T]) -> list[T]:
        """Return every worker's value, by rank, to every worker; for small values. `kind` is their type."""
        return [kind.validate_json(part) for part in self.gather_bytes(kind.dump_json(value))]

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Return every worker's bytes, by rank, to every worker."""

    def broadcast(self, data: bytes) -> bytes:
        """Return the first worker's bytes to every worker; what the others give is not looked at."""

    def sum(self, array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum of all workers' arrays, which have one shape, with the same bits to each."""

    def outside[T](self, work: Callable[[], T]) -> T:
        """Do what needs no other worker, the building of matrices included, and return its result.

        A group is never left: that would take all others, and the tracker.
        """


class Solo(Group):
    """The group of a worker that is alone on `host`."""

    rank = 0
    size = 1

    def __init__(self, host: str) -> None:
        self.hosts: tuple[str, ...] = (host,)

    def gather[T](self, value: T, kind: TypeAdapter[T]) -> list[T]:  # noqa: ARG002 - nobody else is to know it
        """Return the one value."""
        return [value]

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Return the one worker's bytes."""
        return [data]

    def broadcast(self, data: bytes) -> bytes:
        """Return the bytes."""
        return data

    def sum(self, array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the array."""
        return array

    def outside[T](self, work: Callable[[], T]) -> T:
        """Do it."""
        return work()


class Joined(Group):
    """A group over XGBoost's communicator, which belongs to the thread that has joined it.

    Args:
        arguments: What `RabitTracker.worker_args` says, and this worker's `dmlc_task_id`, by whose text the
            ranks are given.
        host: The name of this worker's host.
    """

    def __init__(self, arguments: Mapping[str, str | int], host: str) -> None:
        # The context finds NCCL. It is never left: XGBoost would wait for the tracker, and for the dead.
        collective.CommunicatorContext(**arguments).__enter__()
        self.rank = collective.get_rank()
        self._size = collective.get_world_size()
        self.hosts = tuple(name.decode() for name in self.gather_bytes(host.encode()))

    @property
    def size(self) -> int:
        """The number of workers."""
        return self._size

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Return every worker's bytes."""
        sizes = np.zeros(self._size, np.int64)
        sizes[self.rank] = len(data)
        sizes = collective.allreduce(sizes, collective.Op.SUM)
        ends = np.cumsum(sizes)
        joined = np.zeros(ends[-1], np.uint8)
        joined[ends[self.rank] - len(data) : ends[self.rank]] = np.frombuffer(data, np.uint8)
        joined = collective.allreduce(joined, collective.Op.SUM)
        return [part.tobytes() for part in np.split(joined, ends[:-1])]

    def broadcast(self, data: bytes) -> bytes:
        """Return the first worker's bytes.

        `collective.broadcast` would unpickle what comes from the network: this takes it as it is.
        """
        first = self.rank == 0
        size = collective.allreduce(np.array([len(data) if first else 0], np.int64), collective.Op.SUM)
        own = np.frombuffer(data, np.uint8) if first else np.zeros(size[0], np.uint8)
        return bytes(collective.allreduce(own, collective.Op.SUM).tobytes())

    def sum(self, array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum of all workers' arrays."""
        # Arrays of two types would be added bit by bit, in silence.
        return collective.allreduce(np.asarray(array, np.float64), collective.Op.SUM)

    def outside[T](self, work: Callable[[], T]) -> T:
        """Do it in a thread of its own, which has no communicator, and else this thread's settings."""
        settings = xgboost.get_config()
        with ThreadPoolExecutor(1, initializer=lambda: xgboost.set_config(**settings)) as executor:
            return executor.submit(work).result()
