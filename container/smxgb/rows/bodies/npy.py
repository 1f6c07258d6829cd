"""Bodies of NumPy's format: one array of numbers (numpy.lib.format)."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from smxgb.errors import UserError
from smxgb.rows.bodies.body import SOURCE, finite

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from smxgb.rows.batch import FloatArray
    from smxgb.rows.bodies.body import Body
    from smxgb.rows.signature import Signature

MAGIC = npy.MAGIC_PREFIX
ROWS = 2
"""The dimensions of an array of rows."""

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def npy_rows(body: Body, signature: Signature, *, label_first: bool = False) -> Iterator[FloatArray]:
    """Yield the rows of a body of NumPy's format, shape (rows, features), or (features,) for one row.

    Raises:
        UserError: If it is damaged, holds no numbers, or has other columns than the model features.
    """
    array = _array(body)
    if array.ndim == 1:
        array = array.reshape(1, -1)
    if array.ndim != ROWS:
        raise UserError(f"{SOURCE} is an array of {array.ndim} dimensions: rows and features are needed.")
    signature.layout(None, array.shape[1], SOURCE, label_first=label_first)
    yield finite(array[:, int(label_first) :], signature)


def _array(body: Body) -> npt.NDArray[Any]:
    """Return the array. Its size is checked before anything is read: a header can say anything."""
    try:
        version = npy.read_magic(body.stream)
        shape, by_columns, dtype = HEADERS[version](body.stream)
    except (ValueError, KeyError, OverflowError, SyntaxError, RecursionError) as error:
        raise UserError(f"{SOURCE} is not an array in NumPy's format, or is damaged.") from error
    if dtype.kind not in "fiub":
        raise UserError(f"{SOURCE} is an array of {dtype}: numbers are needed.")
    data = body.stream.read()
    count = prod(shape)
    if len(data) != count * dtype.itemsize:
        raise UserError(
            f"{SOURCE} says that it is an array of the shape {shape}, which takes {count * dtype.itemsize} "
            f"bytes, and holds {len(data)}: it is damaged or cut off."
        )
    return np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
