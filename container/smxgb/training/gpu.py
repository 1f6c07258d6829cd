"""The GPU of a worker: its memory, rows on it, and the failures that only it has.

Written from XGBoost's documentation and source. CuPy is imported only where there is a GPU.
"""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import xgboost as xgb

from smxgb.environment import nccl_environ, set_unset
from smxgb.errors import PlatformError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from smxgb.environment import Hosts
    from smxgb.rows import Group


OLDEST = (7, 5)
"""The lowest compute capability (Turing, as T4) that XGBoost's CUDA 12 wheel has code for. It has machine
code for 7.5, 8.0, 9.0, 10.0 and 12.0, each good for later ones of the same first number, and PTX beyond."""


@contextmanager
def in_use(
    hosts: Hosts,
    group: Group,
    scratch: Path,
    meeting: Callable[[Callable[[], PlatformError]], AbstractContextManager[None]],
) -> Iterator[None]:
    """Use the GPU that this process sees, alone or with those of the group.

    `meeting` limits the time of the first meeting of the GPUs, given the failure of one that lasts too long.
    NCCL itself may wait for half an hour.

    Raises:
        UserError: If the GPU is too old.
        PlatformError: If the driver is missing or too old, if the GPU's memory is too small, or if it can't
            reach the other GPUs.
    """
    check_gpu()
    log = scratch / "nccl.log"
    set_unset(nccl_environ(hosts, log))
    # XGBoost's own allocations are many and small: CUDA's pool saves most of them a call of the driver.
    with explaining(log), xgb.config_context(use_cuda_async_pool=True):
        if group.size > 1:
            with meeting(partial(apart, log)):
                _meet()
        yield


def check_gpu() -> None:
    """Raise the failure of a GPU that XGBoost can't use, before any row is read."""
    import cupy  # noqa: PLC0415

    try:
        properties = cupy.cuda.runtime.getDeviceProperties(0)
    except RuntimeError as error:
        raise PlatformError(
            f"CUDA can't use the GPU: {error}. The host's NVIDIA driver is missing or too old (CUDA 12 "
            "needs 525 or newer), or the container was started without the GPU: use a newer instance type, "
            "or device=cpu."
        ) from error
    capability = properties["major"], properties["minor"]
    if capability < OLDEST:
        raise UserError(
            f"the GPU of this host ({properties['name'].decode()}) has compute capability "
            f"{capability[0]}.{capability[1]}, and XGBoost's CUDA 12 build needs {OLDEST[0]}.{OLDEST[1]} or "
            "newer: use an instance of ml.g4dn, g5, g6, p4 or p5, or set device=cpu."
        )


@contextmanager
def explaining(log: Path) -> Iterator[None]:
    """Raise errors of the GPU as failures that say what to do, others as they are. `log` is NCCL's log."""
    try:
        yield
    except (xgb.core.XGBoostError, MemoryError, RuntimeError) as error:
        failure = explained(error, log)
        if failure is None:
            raise
        raise failure from error


def stay_near(gpu: str) -> None:
    """Keep this process, and the threads that it starts, on those of its processors that are next to its GPU.

    `gpu` is a value for CUDA_VISIBLE_DEVICES. On hosts with two sockets, a processor of the other socket
    reaches the GPU more slowly. If the driver does not know the processors, nothing changes.
    """
    from dask_cuda.utils import get_cpu_affinity  # noqa: PLC0415

    # If the driver does not know them, dask-cuda warns and returns all processors. For a UUID the warning
    # itself raises TypeError.
    with warnings.catch_warnings(action="ignore"):
        try:
            near = get_cpu_affinity(int(gpu) if gpu.isdecimal() else gpu)
        except TypeError:
            near = []
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, mine.intersection(near) or mine)


def _meet() -> None:
    """Build a small matrix on all GPUs, so that a GPU that can't reach another fails before data load."""
    import cupy  # noqa: PLC0415

    xgb.QuantileDMatrix(cupy.arange(2, dtype=np.float32).reshape(2, 1))


def explained(error: Exception, log: Path) -> PlatformError | None:
    """Return the failure of the GPU for an error of XGBoost or CuPy; None if the error is not about a GPU.

    `log` is NCCL's log.
    """
    # CuPy's own errors: OutOfMemoryError is a MemoryError, as NumPy's and Arrow's of the host's memory are.
    of_cupy = type(error).__module__.partition(".")[0].startswith("cupy")
    if not of_cupy and not isinstance(error, xgb.core.XGBoostError):
        return None
    text = str(error).partition("Stack trace:")[0].lower()
    # XGBoost has no exception of its own for this, and the depth of trees, which decides it, is not known
    # beforehand.
    of_memory = ("out of memory", "memory allocation error")
    if (of_cupy and isinstance(error, MemoryError)) or any(words in text for words in of_memory):
        return PlatformError(
            "the GPU is out of memory: use more GPUs or hosts, GPUs with more memory, a smaller max_bin or "
            "max_depth, fewer rows or columns, or device=cpu."
        )
    said = _warning(log)
    # NCCL may warn of what does no harm, so the error must be one of the network, by its source file.
    if said and ("nccl" in text or "/collective/" in text):
        return PlatformError(f"the GPUs can't reach each other. NCCL says: {said}", origin="elsewhere")
    if of_cupy:
        return PlatformError(
            f"CUDA says {error}: the GPU or its driver has failed. Start the job again, on another host if "
            "it happens once more."
        )
    return None


def apart(log: Path) -> PlatformError:
    """Return the failure of GPUs that have not met in time."""
    said = _warning(log)
    return PlatformError(
        "the GPUs of the workers did not meet within start_timeout: the hosts must reach each other at any "
        f"port (NCCL chooses it).{f' NCCL says: {said}' if said else ''}",
        origin="elsewhere",
    )


def _warning(log: Path) -> str | None:
    """Return NCCL's first warning: the last one may be about a GPU that is gone."""
    warnings = [line for line in _lines(log) if "WARN" in line]
    return warnings[0].partition("WARN")[2].strip() if warnings else None


def free_memory() -> int:
    """Return how many bytes of the GPU's memory are free."""
    import cupy  # noqa: PLC0415

    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free)


def holds(features: pa.Table) -> bool:
    """Return whether rows can be handed over on the GPU: only if all are numbers. Categories stay Arrow."""
    return all(column.type == pa.float32() for column in features.columns)


def to_gpu(features: pa.Table) -> Any:
    """Return float32 columns as a CuPy array of shape (rows, columns); null becomes NaN.

    XGBoost sketches and bins on the GPU what lies there, and on the processors what lies elsewhere.
    """
    import cupy  # noqa: PLC0415

    columns = np.empty((features.num_columns, features.num_rows), np.float32)
    for position, column in enumerate(features.columns):
        columns[position] = column.to_numpy()
    # The GPU transposes faster.
    return cupy.ascontiguousarray(cupy.asarray(columns).T)


def forget_batches() -> None:
    """Free the GPU memory that CuPy keeps for further batches."""
    import cupy  # noqa: PLC0415

    cupy.get_default_memory_pool().free_all_blocks()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
