"""The plan: which matrix a training method takes, and whether it fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from smxgb.errors import UserError

type MatrixKind = Literal["quantile", "iterated", "whole"]
"""Binned as the batches stream by; CSR that XGBoost caches on disk; CSR from one table in memory."""

MIB = 1 << 20
BASE = 64 * MIB
"""Read buffers, quantile sketches and histograms, beside what grows with the rows."""


@dataclass(frozen=True)
class Plan:
    """How the rows become a matrix. `needed` and `available` are bytes beyond what is in use now."""

    kind: MatrixKind
    needed: int
    available: int

    def describe(self) -> str:
        """Return the line of the log that says which matrix is built and what it needs."""
        return f"Matrix: {self.kind}, about {_mib(self.needed)} of {_mib(self.available)} free memory."

    def check(self) -> None:
        """Raise UserError if the job would not fit into memory."""
        if self.needed > self.available:
            raise UserError(
                f"the training data needs about {_mib(self.needed)} of memory and {_mib(self.available)} "
                "are free: use an instance with more memory, or fewer rows or columns."
            )


@dataclass(frozen=True)
class Shape:
    """What the memory of a matrix depends on. `missing` is the share of values that are missing, 0 to 1."""

    rows: int
    columns: int
    missing: float = 0.0


def choose_matrix(booster: str | None, tree_method: str | None) -> MatrixKind:
    """Return the kind of matrix for a booster and tree method, None being XGBoost's default.

    XGBoost's `exact` takes no iterator, and only `hist` takes a binned matrix.
    """
    if tree_method == "exact":
        return "whole"
    if booster == "gblinear" or tree_method == "approx":
        return "iterated"
    return "quantile"


def make_plan(
    kind: MatrixKind,
    train: Shape,
    validation: Shape | None,
    *,
    max_bin: int,
    ranked_metric: bool,
    available: int,
) -> Plan:
    """Return the plan with its estimate of memory.

    Args:
        kind: The kind of matrix.
        train: The training matrix.
        validation: The evaluation matrix, if there is one.
        max_bin: Bins a feature.
        ranked_metric: Whether a metric sorts the predictions (auc, aucpr), which needs 24 bytes a row.
        available: Bytes that the job may still use.
    """
    needed = BASE
    for shape in (train, validation):
        if shape is not None:
            needed += round(shape.rows * _bytes_a_row(kind, shape, max_bin, ranked_metric=ranked_metric))
    return Plan(kind, needed, available)


def _bytes_a_row(kind: MatrixKind, shape: Shape, max_bin: int, *, ranked_metric: bool) -> float:
    """Return the measured bytes of one row: its values, and its label, gradients and predictions."""
    row = 56 + 24 * ranked_metric
    present = shape.columns * (1 - shape.missing)
    if kind == "whole":
        return row + 4 * shape.columns + 8 * present * 3
    if kind == "iterated":
        return row + 8 * present * 2
    bin_bytes = 1 if max_bin <= 256 else 2 if max_bin <= 65_536 else 4  # noqa: PLR2004 - what bytes hold
    if shape.missing:  # a sparse index: 4 bytes a value, and the offsets of its rows
        return row + 8 + 4 * present + bin_bytes * shape.columns
    return row + 2 * bin_bytes * shape.columns


def _mib(count: int) -> str:
    return f"{count // MIB:,} MiB"
