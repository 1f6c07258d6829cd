"""A group whose workers are threads of one process, for what workers agree on without XGBoost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TYPE_CHECKING

import numpy as np

from smxgb.errors import UserError
from smxgb.rows.worker_group import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


class Thread(Group):
    """A worker of the group on `hosts`; all share the list `told` and wait for each other at `barrier`."""

    def __init__(self, rank: int, hosts: Sequence[str], told: list[bytes], barrier: Barrier) -> None:
        self.rank, self.hosts = rank, tuple(hosts)
        self._told, self._barrier = told, barrier

    @property
    def size(self) -> int:
        return len(self.hosts)

    def gather_bytes(self, data: bytes) -> list[bytes]:
        self._told[self.rank] = data
        self._barrier.wait(60)
        every = list(self._told)
        self._barrier.wait(60)
        return every

    def broadcast(self, data: bytes) -> bytes:
        return self.gather_bytes(data)[0]

    def outside[T](self, work: Callable[[], T]) -> T:
        return work()

    def sum(self, array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        every = self.gather_bytes(array.tobytes())
        return np.sum([np.frombuffer(data).reshape(array.shape) for data in every], axis=0)


def by_all[R](work: Callable[[Group], R], hosts: Sequence[str]) -> list[R | tuple[str, ...]]:
    """Return what `work` gives each worker, by rank; of a UserError its mistakes."""
    told, barrier = [b""] * len(hosts), Barrier(len(hosts))

    def outcome(rank: int) -> R | tuple[str, ...]:
        try:
            return work(Thread(rank, hosts, told, barrier))
        except UserError as error:
            return error.mistakes

    with ThreadPoolExecutor(len(hosts)) as pool:
        return [done.result() for done in [pool.submit(partial(outcome, rank)) for rank in range(len(hosts))]]
