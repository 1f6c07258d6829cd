"""The plan: which matrix a job trains on, the first that fits into memory on every host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import TYPE_CHECKING

from smxgb.environment import free_bytes
from smxgb.errors import PlatformError
from smxgb.machine import memory_available
from smxgb.rows import Shape, rows_of_batch
from smxgb.settings import CURVES
from smxgb.training import gpu
from smxgb.training.memory_needs import PAGES, XGBOOST_MAX_BIN, RowBytes, histogram_bytes
from smxgb.training.metrics import TOGETHER
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from smxgb.job import Team
    from smxgb.settings import Hyperparameters, Method, Parsed
    from smxgb.training.memory_needs import MatrixKind

MIB = 1 << 20
SPARSE_FEATURE = 750
"""Bytes of a feature of sparse rows, even if no row has a value: its names, sketch, bins and histogram."""
CURVE = 22
"""Bytes of a row and output while predictions are sorted for auc or aucpr."""
OWN_METRIC = 8
"""Bytes of a row, and half as many of each output, while the container's own metrics are computed."""
UNCERTAINTY = 0.3
"""The share by which the estimate may be wrong: the largest error for the jobs of benchmarks/memory.py."""
GPU_BASE = 1024 * MIB
"""Bytes on the GPU that do not grow with the rows: histograms, sketches, NCCL's buffers and a batch."""
HOST_ROW = 24
"""Bytes of a row that stay in the host's memory when its features are on the GPU."""


@dataclass(frozen=True)
class Memory:
    """Bytes: of the host's memory, of a GPU's, None without one, and of the disk that XGBoost caches on."""

    host: int
    gpu: int | None = None
    disk: int = 0


@dataclass(frozen=True)
class Plan:
    """How the rows become a matrix, and what a worker needs for it and has free.

    Both are beyond what is in use now. `histograms` are the bytes of `needed.host` that the trees take,
    `slow` is what makes rounds take longer than in memory, "" for nothing. `has_slower` says that another
    plan fits, which needs less memory.
    """

    kind: MatrixKind
    needed: Memory
    free: Memory
    histograms: int = 0
    slow: str = ""
    has_slower: bool = False

    @property
    def fits(self) -> bool:
        """Whether what is free suffices."""
        needed, free = self.needed, self.free
        on_gpu = needed.gpu is None or free.gpu is None or needed.gpu <= free.gpu
        return needed.host <= free.host and needed.disk <= free.disk and on_gpu

    def describe(self) -> str:
        """Return the line of the log that says which matrix is built and what it needs."""
        needed = self.needed.host
        low, high = ((1 - UNCERTAINTY) * needed, (1 + UNCERTAINTY) * needed)
        elsewhere = ""
        if self.needed.gpu is not None and self.free.gpu is not None:
            elsewhere = f"; {_mib(self.needed.gpu)} MiB of the {readable_bytes(self.free.gpu)} on the GPU"
        if self.needed.disk:
            elsewhere = f"; {_mib(self.needed.disk)} MiB of the {readable_bytes(self.free.disk)} of disk"
        return (
            f"Matrix: {self.kind}, about {_mib(needed)} MiB (between {_mib(low)} and {_mib(high)} MiB) "
            f"of the {readable_bytes(self.free.host)} of memory that are free{elsewhere}.{self.slow}"
        )

    def check(self) -> None:
        """Raise PlatformError if the job would not fit."""
        needed, free = self.needed, self.free
        if needed.host > free.host:
            trees = ""
            if 2 * self.histograms > needed.host:
                trees = (
                    f", {_mib(self.histograms, ceil)} MiB of it for the histograms of a tree: lower "
                    "max_depth, max_leaves or max_bin, or"
                )
            raise PlatformError(
                f"the training data needs about {_mib(needed.host, ceil)} MiB of memory{_on_disk(self.kind)} "
                f"and {_mib(free.host, floor)} MiB are free{trees or ':'} use an instance with more memory, "
                "or fewer rows or columns."
            )
        if needed.disk > free.disk:
            raise PlatformError(
                f"the training data does not fit into memory, and its cache needs about "
                f"{_mib(needed.disk, ceil)} MiB of disk, of which {_mib(free.disk, floor)} MiB are free: use "
                "an instance with more memory, give the job a larger volume (volume_size), or set spool_dir."
            )
        if needed.gpu is not None and free.gpu is not None and needed.gpu > free.gpu:
            raise PlatformError(
                f"a worker's share of the data needs about {_mib(needed.gpu, ceil)} MiB on its GPU "
                f"and {_mib(free.gpu, floor)} MiB are free: use more GPUs or hosts, GPUs with more "
                "memory, a smaller max_bin, or device=cpu."
            )


def _on_disk(kind: MatrixKind) -> str:
    return ", even with its matrix on disk," if kind == "external" else ""


def free_memory(team: Team, scratch: Path) -> Memory:
    """Return what is free now for each of this host's workers, and on the GPU of this one.

    XGBoost's caches go to the folder `scratch`.
    """
    on_gpu = gpu.free_memory() if team.device.value == "cuda" else None
    return Memory(memory_available() // team.workers, on_gpu, free_bytes(scratch) // team.workers)


def choose_plan(
    plans: Sequence[Plan], fit_everywhere: Callable[[list[bool]], list[bool]], given_up: int = 0
) -> Plan:
    """Return the first plan that fits on all workers.

    Args:
        plans: The plans of this worker, the fastest first.
        fit_everywhere: Returns which plans fit for all workers, from which fit for this one. All workers
            call it.
        given_up: How many of the first plans are not taken, for the job has run out of memory with them.

    Raises:
        PlatformError: If none fits. On a worker that is not the reason, its origin is "elsewhere".
    """
    fits = fit_everywhere([plan.fits for plan in plans])[given_up:]
    for index, plan in enumerate(plans[given_up:]):
        if fits[index]:
            return replace(plan, has_slower=any(fits[index + 1 :]))
    plans[-1].check()
    raise PlatformError("the rows of another worker do not fit into its host's memory.", origin="elsewhere")


def make_plans(
    parameters: Parsed,
    shapes: Mapping[str, Shape],
    free: Memory,
    *,
    classes: int | None,
    reading: int,
    rows: int | None = None,
    bins: int | None = None,
) -> list[Plan]:
    """Return the plans for the channels' matrices, of the given shapes: the fastest first.

    `classes` is the number of classes of a multi-class objective, `reading` the bytes that reading the rows
    takes beside the matrix. `rows` are the training rows of all workers, None for those of `shapes`.
    `bins` is how many histogram bins all features have together, None for as many as there can be. The GPU is
    planned for if `free` has its memory.
    """
    settings = parameters.settings
    outputs = classes or settings.outputs or 1
    max_bin = settings.max_bin or XGBOOST_MAX_BIN
    first = choose_matrix(settings)
    kinds: list[MatrixKind] = [first, "external"] if first == "quantile" and free.gpu is None else [first]
    reading += SPARSE_FEATURE * max((shape.columns for shape in shapes.values() if shape.sparse), default=0)
    train = shapes.get("train", Shape(0, 0))  # a check may have failed to read it
    if bins is None:
        bins = 0 if train.sparse else max_bin * train.columns
    histograms = histogram_bytes(settings, bins, train.rows if rows is None else rows, outputs)
    evaluating = _evaluating(parameters, shapes, outputs)
    # Rows are read while matrices are built, and no more when they are trained on.
    beside = max(reading, histograms + evaluating)
    plans = []
    for kind in kinds:
        row = RowBytes(kind, max_bin, outputs)
        needed = _needed(row, shapes, free)
        if needed.gpu is None:
            needed = replace(needed, host=needed.host + beside)
        else:
            needed = Memory(needed.host + reading, needed.gpu + evaluating)
        plans.append(Plan(kind, needed, free, histograms, _slow(kind, settings)))
    return plans


def _needed(row: RowBytes, shapes: Mapping[str, Shape], free: Memory) -> Memory:
    """Return what the matrices take."""
    host = disk = 0
    for name, shape in shapes.items():
        is_train = name == "train"
        cached = row.cached(shape, is_trained=is_train)
        host += round(shape.rows * (row.trained(shape) if is_train else row.evaluated(shape)))
        page = rows_of_batch(1 if shape.sparse else shape.columns)
        host += round(min(shape.rows, PAGES * page) * row.in_page(shape))
        disk += round(shape.rows * cached)
    if free.gpu is None:
        return Memory(host, disk=disk)
    if row.kind == "quantile":
        host = HOST_ROW * sum(shape.rows for shape in shapes.values())
    on_gpu = sum(round(shape.rows * row.on_gpu(shape)) for shape in shapes.values())
    return Memory(host, GPU_BASE + on_gpu)


def _slow(kind: MatrixKind, settings: Hyperparameters) -> str:
    if kind != "external":
        return ""
    text = " The rows do not fit into memory: each round reads them from disk."
    if settings.grow_policy == "lossguide":
        text += " With grow_policy=lossguide that takes about three times as long as in memory."
    return text


def _evaluating(parameters: Parsed, shapes: Mapping[str, Shape], outputs: int) -> int:
    """Return the bytes that metrics take while all channels are evaluated side by side."""
    bases = {metric.base for metric in parameters.metrics}
    row = CURVE * min(outputs, TOGETHER) * bool(bases & CURVES)
    row += (OWN_METRIC + OWN_METRIC * outputs // 2) * any(metric.own for metric in parameters.metrics)
    # Without a validation channel early stopping may watch train.
    with_train = parameters.settings.eval_train or "validation" not in shapes
    return row * sum(shape.rows for name, shape in shapes.items() if name != "train" or with_train)


def choose_matrix(settings: Hyperparameters) -> MatrixKind:
    """Return the kind of matrix: in XGBoost `exact` takes no iterator, and only `hist` a binned matrix."""
    if settings.booster == "gblinear":
        return "iterated"
    kinds: Mapping[Method, MatrixKind] = {"exact": "whole", "approx": "iterated", "hist": "quantile"}
    return kinds[settings.method]


def _mib(count: float, whole: Callable[[float], int] = round) -> str:
    return f"{whole(count / MIB):,}"
