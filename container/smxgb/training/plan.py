"""The plan: which matrix a training method takes, and whether it fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError
from smxgb.settings import CURVES
from smxgb.wording import readable_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smxgb.rows import Shape
    from smxgb.settings import Hyperparameters, Method, Parsed

type MatrixKind = Literal["quantile", "iterated", "whole"]
"""Binned as the batches stream by; CSR that XGBoost caches on disk; CSR from one table in memory."""

MIB = 1 << 20
XGBOOST_MAX_BIN = 256
"""XGBoost's own default of `max_bin`."""
SPARSE_FEATURE = 750
"""Bytes of a feature of sparse rows, even if no row has it: its names, sketch, bins and histogram."""
OWN_METRIC = 28
"""Bytes of a row and output while the container's own metrics are computed."""
UNCERTAINTY = 0.3
"""By what share the estimate may be wrong: that much was it at worst for the jobs of benchmarks/memory.py."""
GPU_BASE = 1024 * MIB
"""Histograms, sketches, NCCL's buffers and a batch on the GPU, beside what grows with the rows."""
HOST_ROW = 24
"""Bytes of a row that stay in the host's memory when its features are on the GPU."""


@dataclass(frozen=True)
class GpuNeed:
    """Bytes of GPU memory that a worker needs, and that are free."""

    needed: int
    available: int


@dataclass(frozen=True)
class Plan:
    """How the rows become a matrix. `needed` and `available` are bytes beyond what is in use now."""

    kind: MatrixKind
    needed: int
    available: int
    gpu: GpuNeed | None = None

    def describe(self) -> str:
        """Return the line of the log that says which matrix is built and what it needs."""
        low, high = ((1 - UNCERTAINTY) * self.needed, (1 + UNCERTAINTY) * self.needed)
        on_gpu = (
            f"; {_mib(self.gpu.needed)} MiB of the {readable_bytes(self.gpu.available)} on the GPU"
            if self.gpu
            else ""
        )
        return (
            f"Matrix: {self.kind}, about {_mib(self.needed)} MiB (between {_mib(low)} and {_mib(high)} MiB) "
            f"of the {readable_bytes(self.available)} of memory that are free{on_gpu}."
        )

    def check(self) -> None:
        """Raise UserError if the job would not fit into memory."""
        if self.needed > self.available:
            raise UserError(
                f"the training data needs about {_mib(self.needed)} MiB of memory and "
                f"{_mib(self.available)} MiB are free: use an instance with more memory, or fewer rows or "
                "columns."
            )
        if self.gpu and self.gpu.needed > self.gpu.available:
            raise UserError(
                f"a worker's share of the data needs about {_mib(self.gpu.needed)} MiB on its GPU and "
                f"{_mib(self.gpu.available)} MiB are free: use more GPUs or hosts, GPUs with more memory, a "
                "smaller max_bin, or device=cpu."
            )


def make_plan(
    parameters: Parsed,
    shapes: Mapping[str, Shape],
    available: int,
    *,
    classes: int | None,
    reading: int,
    gpu_available: int | None = None,
) -> Plan:
    """Return the plan for matrices of the given shapes, with `available` bytes of memory left.

    `classes` is the number of classes of a multi-class objective, `reading` the bytes that reading the rows
    holds beside the matrix. `gpu_available` are the bytes left on the GPU, None without one.
    """
    settings = parameters.settings
    kind = choose_matrix(settings)
    outputs = classes or settings.outputs or 1
    row = _Row(kind, settings.max_bin or XGBOOST_MAX_BIN, outputs)
    bases = {metric.base for metric in parameters.metrics}
    # Sorting the predictions, and counting classes, lasts for one set at a time.
    passing = 24 * bool(bases & CURVES)
    passing += OWN_METRIC * outputs * any(metric.own for metric in parameters.metrics)
    matrices = sum(
        round(shape.rows * (row.trained(shape) if name == "train" else row.evaluated(shape)))
        for name, shape in shapes.items()
    )
    features = max((shape.columns for shape in shapes.values() if shape.sparse), default=0)
    reading += SPARSE_FEATURE * features
    most = max((shape.rows for shape in shapes.values()), default=0)
    if gpu_available is None:
        return Plan(kind, reading + matrices + passing * most, available)
    if kind == "quantile":
        matrices = HOST_ROW * sum(shape.rows for shape in shapes.values())
    on_gpu = sum(round(shape.rows * row.on_gpu(shape)) for shape in shapes.values())
    gpu = GpuNeed(GPU_BASE + on_gpu + passing * most, gpu_available)
    return Plan(kind, reading + matrices, available, gpu)


def choose_matrix(settings: Hyperparameters) -> MatrixKind:
    """Return the kind of matrix: `exact` takes no iterator in XGBoost, and only `hist` a binned matrix."""
    if settings.booster == "gblinear":
        return "iterated"
    kinds: Mapping[Method, MatrixKind] = {"exact": "whole", "approx": "iterated", "hist": "quantile"}
    return kinds[settings.method]


@dataclass(frozen=True)
class _Row:
    """What the memory of one row depends on, beside its columns; measured in bytes."""

    kind: MatrixKind
    max_bin: int
    outputs: int

    def trained(self, shape: Shape) -> float:
        """Return the bytes of a row that is trained on: values, label, gradients, predictions, its place."""
        return 56 + 12 * (self.outputs - 1) + self._values(shape, with_columns=True)

    def evaluated(self, shape: Shape) -> float:
        """Return the bytes of a row that is only predicted: values, label and predictions."""
        return 24 + 4 * self.outputs + self._values(shape, with_columns=False)

    def _values(self, shape: Shape, *, with_columns: bool) -> float:
        """Return the bytes of a row's values; training by hist has them by column too."""
        present = shape.columns * (1 - shape.missing)
        if self.kind == "whole":
            return (8 * present if shape.sparse else 4 * shape.columns) + 20 * present
        if self.kind == "iterated":
            return 14 * present
        bin_bytes = 1 if self.max_bin <= 256 else 2 if self.max_bin <= 65_536 else 4  # noqa: PLR2004 - 1, 2 bytes
        by_column = bin_bytes * shape.columns * with_columns
        if shape.missing:  # a sparse index: 4 bytes a value, and the offsets of its rows
            # Columns with few values keep the number of each one's row instead of a place for every row.
            return 8 + 4 * present + min(by_column, (8 + bin_bytes) * present)
        return bin_bytes * shape.columns + by_column

    def on_gpu(self, shape: Shape) -> float:
        """Return the bytes of one row on a GPU, from XGBoost's source: not measured yet.

        A value takes the bits (ELLPACK) that tell the bins of one column and "missing" apart. Label,
        prediction, gradients in two precisions and the row's place in the tree follow.
        """
        return 64 + 28 * (self.outputs - 1) + shape.columns * self.max_bin.bit_length() / 8


def _mib(count: float) -> str:
    return f"{round(count) // MIB:,}"
