"""The GPU of a worker: its memory, rows on it, and the failures that only it has.

Written from XGBoost's documentation and source. CuPy is imported only where there is a GPU.
"""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import xgboost as xgb

from smxgb.environment import nccl_environ, set_unset
from smxgb.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smxgb.environment import Hosts
    from smxgb.rows import Group


@contextmanager
def in_use(hosts: Hosts, group: Group, scratch: Path) -> Iterator[None]:
    """Use the GPU that this process sees, alone or with those of the group.

    Raises:
        PlatformError: If its memory does not suffice, or it can't reach the others.
    """
    log = scratch / "nccl.log"
    set_unset(nccl_environ(hosts, log))
    # XGBoost's own allocations are many and small: CUDA's pool spares most of them a round trip.
    with explaining(log), xgb.config_context(use_cuda_async_pool=True):
        if group.size > 1:
            _meet()
        yield


@contextmanager
def explaining(log: Path) -> Iterator[None]:
    """Raise errors of the GPU as failures that say what to do; any other as it is. `log` is NCCL's own."""
    try:
        yield
    except (xgb.core.XGBoostError, MemoryError) as error:
        failure = explained(error, log)
        if failure is None:
            raise
        raise failure from error


def stay_near(gpu: str) -> None:
    """Keep this process, and the threads that it starts, on those of its processors that are next to its GPU.

    `gpu` is a value for CUDA_VISIBLE_DEVICES. On hosts with two sockets the way from the other one is longer.
    Without an answer of the driver, nothing changes.
    """
    from dask_cuda.utils import get_cpu_affinity  # noqa: PLC0415

    # If the driver does not say, it warns and returns all processors; its warning takes no UUID.
    with warnings.catch_warnings(action="ignore"):
        try:
            near = get_cpu_affinity(int(gpu) if gpu.isdecimal() else gpu)
        except TypeError:
            near = []
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine.intersection(near) or mine)


def _meet() -> None:
    """Do something small with all GPUs: what keeps them from each other shows before the data are loaded."""
    import cupy  # noqa: PLC0415

    xgb.QuantileDMatrix(cupy.arange(2, dtype=np.float32).reshape(2, 1))


def explained(error: Exception, log: Path) -> PlatformError | None:
    """Return the failure of the GPU that an error of XGBoost or CuPy stands for; `log` is NCCL's own.

    None if the error says nothing of a GPU.
    """
    text = str(error).lower()
    # Neither has an exception of its own for it, and no check beforehand knows what depth a tree will reach.
    if isinstance(error, MemoryError) or "out of memory" in text or "memory allocation error" in text:
        return PlatformError(
            "the GPU is out of memory: use more GPUs or hosts, GPUs with more memory, a smaller max_bin or "
            "max_depth, fewer rows or columns, or device=cpu."
        )
    warnings = [line for line in _lines(log) if "WARN" in line]
    if warnings:
        # The last word of a GPU whose partner is gone is about the network too.
        said = warnings[0].partition("WARN")[2].strip()
        return PlatformError(f"the GPUs can't reach each other. NCCL says: {said}", origin="elsewhere")
    return None


def free_memory() -> int:
    """Return how many bytes of the GPU's memory are free."""
    import cupy  # noqa: PLC0415

    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free)


def holds(features: pa.Table) -> bool:
    """Return whether rows can be handed over on the GPU: numbers only, for categories have their own form."""
    return all(column.type == pa.float32() for column in features.columns)


def to_gpu(features: pa.Table) -> Any:
    """Return float32 columns as a CuPy array of shape (rows, columns); null becomes NaN.

    XGBoost sketches and bins what lies on the GPU there, and anything else on the processors.
    """
    import cupy  # noqa: PLC0415

    columns = np.empty((features.num_columns, features.num_rows), np.float32)
    for position, column in enumerate(features.columns):
        columns[position] = column.to_numpy()
    # Turned into rows by the GPU, which is quicker at it.
    return cupy.ascontiguousarray(cupy.asarray(columns).T)


def forget_batches() -> None:
    """Give the memory of the batches, which CuPy keeps for the next ones, back to the GPU."""
    import cupy  # noqa: PLC0415

    cupy.get_default_memory_pool().free_all_blocks()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
