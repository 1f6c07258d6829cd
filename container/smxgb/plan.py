"""The plan: which matrix a training method takes, and whether it fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from smxgb.hyperparameters import Parsed
    from smxgb.store import Shape

type MatrixKind = Literal["quantile", "iterated", "whole"]
"""Binned as the batches stream by; CSR that XGBoost caches on disk; CSR from one table in memory."""

MIB = 1 << 20
XGBOOST_MAX_BIN = 256
"""XGBoost's own default of `max_bin`."""
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


def make_plan(parameters: Parsed, shapes: Mapping[str, Shape], available: int) -> Plan:
    """Return the plan for matrices of the given shapes, with `available` bytes of memory left."""
    settings = parameters.settings
    kind = choose_matrix(settings.booster, settings.tree_method, settings.updater)
    row = _Row(
        kind,
        max_bin=settings.max_bin or XGBOOST_MAX_BIN,
        ranked_metric=any(metric.base in {"auc", "aucpr"} for metric in parameters.metrics),
    )
    needed = BASE + sum(round(shape.rows * row.size(shape)) for shape in shapes.values())
    return Plan(kind, needed, available)


def choose_matrix(
    booster: str | None, tree_method: str | None, updater: Collection[str] | None
) -> MatrixKind:
    """Return the kind of matrix for a booster, tree method and updaters, None being XGBoost's default.

    XGBoost's `exact` takes no iterator, and only `hist` takes a binned matrix. Updaters take the place of the
    tree method; `grow_colmaker` is that of `exact`, and `prune` looks at no rows.
    """
    if booster == "gblinear":
        return "iterated"
    if updater:
        if "grow_colmaker" in updater:
            return "whole"
        return "quantile" if set(updater) <= {"grow_quantile_histmaker", "prune"} else "iterated"
    if tree_method == "exact":
        return "whole"
    return "iterated" if tree_method == "approx" else "quantile"


@dataclass(frozen=True)
class _Row:
    """What the memory of one row depends on, beside its columns."""

    kind: MatrixKind
    max_bin: int
    ranked_metric: bool

    def size(self, shape: Shape) -> float:
        """Return the measured bytes of one row: its values, and its label, gradients and predictions."""
        # A metric that sorts the predictions (auc, aucpr) needs 24 bytes more.
        row = 56 + 24 * self.ranked_metric
        present = shape.columns * (1 - shape.missing)
        if self.kind == "whole":
            return row + 4 * shape.columns + 24 * present
        if self.kind == "iterated":
            return row + 16 * present
        bin_bytes = 1 if self.max_bin <= 256 else 2 if self.max_bin <= 65_536 else 4  # noqa: PLR2004 - 1, 2 bytes
        if shape.missing:  # a sparse index: 4 bytes a value, and the offsets of its rows
            return row + 8 + 4 * present + bin_bytes * shape.columns
        return row + 2 * bin_bytes * shape.columns


def _mib(count: float) -> str:
    return f"{round(count) // MIB:,} MiB"
