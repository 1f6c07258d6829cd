"""What rows and trees take in memory and on disk, by the kind of matrix. The numbers are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from smxgb.rows import Shape
    from smxgb.settings import Hyperparameters

type MatrixKind = Literal["quantile", "external", "iterated", "whole"]
"""`quantile` is binned batch by batch, `external` is binned too and read from a cache on disk in each round,
`iterated` is CSR that XGBoost caches on disk, `whole` is CSR that is built from one table in memory."""

XGBOOST_MAX_BIN = 256
"""XGBoost's own default of `max_bin`."""
PAGES = 5
"""Pages of a cache, one for each batch, that are in memory at a time: that in use, and those read ahead."""
GRADIENTS = 16
"""Bytes of a bin of a histogram: two sums in double precision."""
THREADS = 2
"""Histograms beside those of the nodes: where threads share a node, each has its own."""


@dataclass(frozen=True)
class RowBytes:
    """What the bytes of one row depend on, beside its columns."""

    kind: MatrixKind
    max_bin: int
    outputs: int

    def trained(self, shape: Shape) -> float:
        """Return the bytes of a row that is trained on: values, label, gradients, predictions, node."""
        own = 36 if self.kind == "external" else 56
        return own + 12 * (self.outputs - 1) + self._in_memory(shape, with_columns=True)

    def evaluated(self, shape: Shape) -> float:
        """Return the bytes of a row that is only predicted: values, label and predictions."""
        own = 12 if self.kind == "external" else 24
        return own + 4 * self.outputs + self._in_memory(shape, with_columns=False)

    def cached(self, shape: Shape, *, is_trained: bool) -> float:
        """Return the bytes of a row in XGBoost's cache on disk, of a row that is trained on or predicted."""
        present = shape.columns * (1 - shape.missing)
        if self.kind == "external":
            return 12 + self._binned(shape, with_columns=True)
        if self.kind == "iterated":
            # Trained on, there are the values by column and their bins too.
            more = 8 * present + 12 + self._binned(shape, with_columns=False)
            return 8 * present + 8 + more * is_trained
        return 0

    def in_page(self, shape: Shape) -> float:
        """Return the bytes of a row while its page of the cache is in memory."""
        if self.kind == "iterated":
            return 14 * shape.columns * (1 - shape.missing)
        return self.cached(shape, is_trained=True)

    def on_gpu(self, shape: Shape) -> float:
        """Return the bytes of one row on a GPU, from XGBoost's source: not measured yet.

        A value takes the bits (ELLPACK) that tell the bins of one column and "missing" apart. Label,
        prediction, gradients in two precisions and the row's node in the tree follow.
        """
        return 64 + 28 * (self.outputs - 1) + shape.columns * self.max_bin.bit_length() / 8

    def _in_memory(self, shape: Shape, *, with_columns: bool) -> float:
        """Return the bytes of a row's values; hist keeps those of training rows by column too."""
        present = shape.columns * (1 - shape.missing)
        if self.kind == "whole":
            return (8 * present if shape.sparse else 4 * shape.columns) + 20 * present
        return self._binned(shape, with_columns=with_columns) if self.kind == "quantile" else 0

    def _binned(self, shape: Shape, *, with_columns: bool) -> float:
        present = shape.columns * (1 - shape.missing)
        bin_bytes = 1 if self.max_bin <= 256 else 2 if self.max_bin <= 65_536 else 4  # noqa: PLR2004 - 1, 2 bytes
        by_column = bin_bytes * shape.columns * with_columns
        if shape.missing:  # a sparse index: 4 bytes a value, and the offsets of its rows
            # A column with few values keeps the row's number beside each value, not a bin for every row.
            return 8 + 4 * present + min(by_column, (8 + bin_bytes) * present)
        return bin_bytes * shape.columns + by_column


def histogram_bytes(settings: Hyperparameters, bins: int, rows: int, outputs: int) -> int:
    """Return the bytes of the histograms of the nodes of a tree, all of which stay until the next tree.

    `bins` are those of all features together, `rows` those of all workers.
    """
    if settings.booster == "gblinear" or settings.method == "exact":
        return 0
    targets = outputs if settings.multi_strategy == "multi_output_tree" else 1
    return GRADIENTS * bins * targets * (THREADS + _nodes(settings, rows))


def _nodes(settings: Hyperparameters, rows: int) -> int:
    """Return about how many nodes of a tree have a histogram: those above the deepest level.

    Few rows make few nodes: measured with 2,000 to 200,000 rows, depths from 6 to 14 and `min_child_weight` 1
    and 20. The number for logistic loss is within `UNCERTAINTY`, that for squared error up to twice as small.
    """
    depth = min(6 if settings.max_depth is None else settings.max_depth, 60)
    most = 1 / ((1 << depth) - 1) if depth else 0.0
    weight = 1.0 if settings.min_child_weight is None else settings.min_child_weight
    nodes = 1 / (most + (4 + 3 * weight) / max(1, rows))
    if settings.max_leaves:
        nodes = min(nodes, 2 * settings.max_leaves - 1)
    return round(nodes)
