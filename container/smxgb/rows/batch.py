"""Batches: the one form that rows have between the readers and the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from smxgb.rows.roles import RoleArray, RoleName

type FloatArray = npt.NDArray[np.float32]
type GroupArray = npt.NDArray[np.int64]

ROWS = 65_536
"""Rows of a full batch; the last one of a channel may be shorter."""

BATCH_BYTES = 16 << 20
"""Bytes of a full batch of a table so wide that `ROWS` rows would be more."""

CELL_BYTES = 4
"""Bytes of a float32."""


@dataclass(frozen=True)
class Dense:
    """Rows as columns of numbers.

    `features` holds a column for each name of the schema, null or NaN where a value is missing: float32, or a
    dictionary of strings for a feature of categories. A feature is never infinite.
    `roles` has the values of each role that the rows have, as the rules of `smxgb.rows.roles` want them.
    `dropped` counts the rows that were left out for their invalid label since the last batch.
    """

    features: pa.Table
    roles: Mapping[RoleName, RoleArray]
    dropped: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.features.num_rows)


@dataclass(frozen=True)
class Sparse:
    """Rows as their present values, all others being missing (CSR).

    `features` has two columns with a list for each row: `indices` (int32, ascending) and `values` (float32,
    NaN where missing all the same). As a reader yields them, indices are those of the file;
    `smxgb.rows.features` makes them positions in the schema. `width` is how many features the file says there
    are, 0 if it does not say. The other fields are those of `Dense`.
    """

    features: pa.Table
    roles: Mapping[RoleName, RoleArray]
    dropped: int = 0
    width: int = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.features.num_rows)

    @property
    def indices(self) -> npt.NDArray[np.int32]:
        """The indices of all values, row after row."""
        array: npt.NDArray[np.int32] = flat(self.features.column("indices")).to_numpy()
        return array

    @property
    def values(self) -> FloatArray:
        """All values, row after row."""
        array: FloatArray = flat(self.features.column("values")).to_numpy()
        return array

    @property
    def offsets(self) -> npt.NDArray[np.int32]:
        """Where each row's values begin among all, and the end; shape (rows + 1,)."""
        offsets = _one_chunk(self.features.column("indices")).offsets.to_numpy()
        array: npt.NDArray[np.int32] = offsets - offsets[0]
        return array


type Batch = Dense | Sparse
"""What a reader yields."""

SPARSE = pa.schema([("indices", pa.list_(pa.int32())), ("values", pa.list_(pa.float32()))])
"""The columns of sparse features."""


def flat(column: pa.ChunkedArray) -> pa.Array:
    """Return the items of a column of lists, row after row."""
    return _one_chunk(column).flatten()


def _one_chunk(column: pa.ChunkedArray) -> pa.ListArray:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def rows_of_batch(columns: int) -> int:
    """Return how many rows a full batch of that many columns has."""
    return max(1, min(ROWS, BATCH_BYTES // (CELL_BYTES * max(1, columns))))
