"""The plan: which matrix a training method takes, and whether it fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import TYPE_CHECKING, Literal

from smxgb.errors import PlatformError
from smxgb.machine import memory_available
from smxgb.settings import CURVES
from smxgb.training import gpu
from smxgb.training.metrics import TOGETHER
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smxgb.job import Team
    from smxgb.rows import Shape
    from smxgb.settings import Hyperparameters, Method, Parsed

type MatrixKind = Literal["quantile", "iterated", "whole"]
"""`quantile` is binned batch by batch, `iterated` is CSR that XGBoost caches on disk, `whole` is CSR that is
built from one table in memory."""

MIB = 1 << 20
XGBOOST_MAX_BIN = 256
"""XGBoost's own default of `max_bin`."""
SPARSE_FEATURE = 750
"""Bytes of a feature of sparse rows, even if no row has a value: its names, sketch, bins and histogram."""
CURVE = 32
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
    """Bytes of memory: of the host, and of a GPU, None without one."""

    host: int
    gpu: int | None = None


@dataclass(frozen=True)
class Plan:
    """How the rows become a matrix, and the memory that a worker needs for it and has free.

    Both are beyond what is in use now.
    """

    kind: MatrixKind
    needed: Memory
    free: Memory

    def describe(self) -> str:
        """Return the line of the log that says which matrix is built and what it needs."""
        needed = self.needed.host
        low, high = ((1 - UNCERTAINTY) * needed, (1 + UNCERTAINTY) * needed)
        on_gpu = ""
        if self.needed.gpu is not None and self.free.gpu is not None:
            on_gpu = f"; {_mib(self.needed.gpu)} MiB of the {readable_bytes(self.free.gpu)} on the GPU"
        return (
            f"Matrix: {self.kind}, about {_mib(needed)} MiB (between {_mib(low)} and {_mib(high)} MiB) "
            f"of the {readable_bytes(self.free.host)} of memory that are free{on_gpu}."
        )

    def check(self) -> None:
        """Raise PlatformError if the job would not fit into memory."""
        if self.needed.host > self.free.host:
            raise PlatformError(
                f"the training data needs about {_mib(self.needed.host, ceil)} MiB of memory and "
                f"{_mib(self.free.host, floor)} MiB are free: use an instance with more memory, or fewer "
                "rows or columns."
            )
        if self.needed.gpu is not None and self.free.gpu is not None and self.needed.gpu > self.free.gpu:
            raise PlatformError(
                f"a worker's share of the data needs about {_mib(self.needed.gpu, ceil)} MiB on its GPU "
                f"and {_mib(self.free.gpu, floor)} MiB are free: use more GPUs or hosts, GPUs with more "
                "memory, a smaller max_bin, or device=cpu."
            )


def free_memory(team: Team) -> Memory:
    """Return the memory that is free now for each of this host's workers, and on the GPU of this one."""
    on_gpu = gpu.free_memory() if team.device.value == "cuda" else None
    return Memory(memory_available() // team.workers, on_gpu)


def make_plan(
    parameters: Parsed, shapes: Mapping[str, Shape], free: Memory, *, classes: int | None, reading: int
) -> Plan:
    """Return the plan for the channels' matrices, of the given shapes.

    `classes` is the number of classes of a multi-class objective, `reading` the bytes that reading the rows
    takes beside the matrix. The GPU is planned for if `free` has its memory.
    """
    settings = parameters.settings
    outputs = classes or settings.outputs or 1
    row = _Row(choose_matrix(settings), settings.max_bin or XGBOOST_MAX_BIN, outputs)
    reading += SPARSE_FEATURE * max((shape.columns for shape in shapes.values() if shape.sparse), default=0)
    evaluating = _evaluating(parameters, shapes, outputs)
    matrices = sum(
        round(shape.rows * (row.trained(shape) if name == "train" else row.evaluated(shape)))
        for name, shape in shapes.items()
    )
    if free.gpu is None:
        return Plan(row.kind, Memory(reading + matrices + evaluating), free)
    if row.kind == "quantile":
        matrices = HOST_ROW * sum(shape.rows for shape in shapes.values())
    on_gpu = sum(round(shape.rows * row.on_gpu(shape)) for shape in shapes.values())
    return Plan(row.kind, Memory(reading + matrices, GPU_BASE + on_gpu + evaluating), free)


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


@dataclass(frozen=True)
class _Row:
    """What the bytes of one row depend on, beside its columns. The numbers are measured."""

    kind: MatrixKind
    max_bin: int
    outputs: int

    def trained(self, shape: Shape) -> float:
        """Return the bytes of a row that is trained on: values, label, gradients, predictions, node."""
        return 56 + 12 * (self.outputs - 1) + self._values(shape, with_columns=True)

    def evaluated(self, shape: Shape) -> float:
        """Return the bytes of a row that is only predicted: values, label and predictions."""
        return 24 + 4 * self.outputs + self._values(shape, with_columns=False)

    def _values(self, shape: Shape, *, with_columns: bool) -> float:
        """Return the bytes of a row's values; hist keeps those of training rows by column too."""
        present = shape.columns * (1 - shape.missing)
        if self.kind == "whole":
            return (8 * present if shape.sparse else 4 * shape.columns) + 20 * present
        if self.kind == "iterated":
            return 14 * present
        bin_bytes = 1 if self.max_bin <= 256 else 2 if self.max_bin <= 65_536 else 4  # noqa: PLR2004 - 1, 2 bytes
        by_column = bin_bytes * shape.columns * with_columns
        if shape.missing:  # a sparse index: 4 bytes a value, and the offsets of its rows
            # A column with few values keeps the row's number beside each value, not a bin for every row.
            return 8 + 4 * present + min(by_column, (8 + bin_bytes) * present)
        return bin_bytes * shape.columns + by_column

    def on_gpu(self, shape: Shape) -> float:
        """Return the bytes of one row on a GPU, from XGBoost's source: not measured yet.

        A value takes the bits (ELLPACK) that tell the bins of one column and "missing" apart. Label,
        prediction, gradients in two precisions and the row's node in the tree follow.
        """
        return 64 + 28 * (self.outputs - 1) + shape.columns * self.max_bin.bit_length() / 8


def _mib(count: float, whole: Callable[[float], int] = round) -> str:
    return f"{whole(count / MIB):,}"
