"""Batches: the one form that rows have between the readers and the matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    type FloatArray = npt.NDArray[np.float32]
    type GroupArray = npt.NDArray[np.int64]

ROWS = 65_536
"""Rows of a full batch; the last one of a channel may be shorter."""

BATCH_BYTES = 16 << 20
"""Bytes of a full batch of a table so wide that `ROWS` rows would be more."""

CELL_BYTES = 4
"""Bytes of a float32."""

type Role = Literal["label", "weight", "group", "lower", "upper"]
"""What a column that is not a feature is for."""


@dataclass(frozen=True)
class Layout:
    """Where the columns of a file are. Positions count from 0, over all columns of the file.

    `columns` are the names in the file's order, None if it has none. `features` are positions in the order of
    the schema.
    """

    columns: tuple[str, ...] | None
    width: int
    features: tuple[int, ...]
    roles: tuple[tuple[Role, int], ...]

    def name(self, position: int) -> str | None:
        """Return the column's name, if the file has names."""
        return None if self.columns is None else self.columns[position]


@dataclass(frozen=True)
class Schema:
    """The features of a job, in order: every batch of every channel has exactly these columns.

    `invented` says that the files name no columns, so that the names are `f0`, `f1`, ... of our making.
    `layout` is the one of the first file of `train`; later channels are read by it.
    """

    names: tuple[str, ...]
    invented: bool
    layout: Layout | None = field(default=None, compare=False)

    @classmethod
    def unnamed(cls, count: int, layout: Layout | None = None) -> Schema:
        """Return the schema of `count` features of files that name no columns."""
        return cls(tuple(f"f{index}" for index in range(count)), invented=True, layout=layout)


@dataclass(frozen=True)
class Dense:
    """Rows as columns of numbers.

    `features` holds one float32 column for each name of the schema, null or NaN where a value is missing.
    `label`, `weight`, `lower` and `upper` are float32 of shape (rows,), `group` is int64 of shape (rows,).
    Labels are finite, weights finite and not negative, bounds may be infinite but not NaN; a feature is never
    infinite. `dropped` counts the rows that were left out for their invalid label since the last batch.
    """

    features: pa.Table
    label: FloatArray | None
    weight: FloatArray | None = None
    group: GroupArray | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    dropped: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.features.num_rows)


type Batch = Dense
"""What a reader yields. A sparse form (CSR) joins when a reader needs it."""


def rows_of_batch(columns: int) -> int:
    """Return how many rows a full batch of that many columns has."""
    return max(1, min(ROWS, BATCH_BYTES // (CELL_BYTES * max(1, columns))))
