"""Batches: the one form that rows have between the readers and the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    type FloatArray = npt.NDArray[np.float32]
    type GroupArray = npt.NDArray[np.int64]

ROWS = 65_536
"""Rows of a full batch; a reader's last batch of a file may be shorter."""


@dataclass(frozen=True)
class Schema:
    """The features of a job, in order: every batch of every channel has exactly these columns.

    `invented` says that the files name no columns, so that the names are `f0`, `f1`, ... of our making.
    """

    names: tuple[str, ...]
    invented: bool

    @classmethod
    def unnamed(cls, count: int) -> Schema:
        """Return the schema of `count` features of files that name no columns."""
        return cls(tuple(f"f{index}" for index in range(count)), invented=True)


@dataclass(frozen=True)
class Dense:
    """Rows as columns of numbers.

    `features` holds one float32 column for each name of the schema, null where a value is missing. `label`,
    `weight`, `lower` and `upper` are float32 of shape (rows,), `group` is int64 of shape (rows,). Labels and
    weights are finite; a feature is never infinite.
    """

    features: pa.Table
    label: FloatArray | None
    weight: FloatArray | None = None
    group: GroupArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.features.num_rows)


type Batch = Dense
"""What a reader yields. A sparse form (CSR) joins when a reader needs it."""
