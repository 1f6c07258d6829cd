"""Rows of sparse files: put into the one order that XGBoost takes, and what is infinite in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from smxgb.rows.readers.row_rules import Fault

    type Indices = npt.NDArray[np.int32]
    type Offsets = npt.NDArray[np.int64]


def ascending(
    indices: Indices, values: npt.NDArray[Any], offsets: Offsets
) -> tuple[Indices, npt.NDArray[Any], int | None]:
    """Return each row's indices in ascending order, the values with them, and a row that has an index twice.

    `offsets` says where each row begins, and where the last one ends; shape (rows + 1,).
    """
    if len(indices) < 2:  # noqa: PLR2004 - nothing to sort
        return indices, values, None
    rises = np.diff(indices) > 0
    rises[offsets[(offsets > 0) & (offsets < len(indices))] - 1] = True
    if rises.all():
        return indices, values, None
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((indices, rows))
    indices, values = indices[order], values[order]
    twice = np.flatnonzero((np.diff(indices) == 0) & (np.diff(rows) == 0))
    return indices, values, int(rows[twice[0]]) if len(twice) else None


def first_infinite(rows: pa.RecordBatch, fault: Fault) -> tuple[int, str]:
    """Return the index and the value of what is infinite in the first row of a fault of sparse rows."""
    row = int(fault.rows[0])
    indices, values = (rows.column(name)[row].values for name in ("indices", "values"))
    place = pc.index(pc.is_inf(values), value=True).as_py()
    return indices[place].as_py(), str(values[place].as_py())
