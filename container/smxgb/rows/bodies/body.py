"""A body: the bytes of some rows to predict, and the arrays that its rows become."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_matrix

from smxgb.errors import UserError
from smxgb.job import DataFile
from smxgb.rows.categories import Coding
from smxgb.rows.readers.row_rules import INFINITE, Fault, as_floats
from smxgb.rows.readers.streams import Stream
from smxgb.rows.signature import UnfitError

if TYPE_CHECKING:
    import numpy.typing as npt

    from smxgb.rows.batch import FloatArray, Sparse
    from smxgb.rows.signature import Signature

type Rows = FloatArray | csr_matrix
"""Rows as XGBoost predicts them, float32, shape (rows, features): NaN, or no entry of CSR, is missing.

A feature of categories holds their codes.
"""

SOURCE = "the body"
"""What messages call a body."""

HEAD_BYTES = 65_536
"""Bytes that are looked at to find out how a body is written."""


@dataclass(frozen=True)
class Body:
    """The bytes of some rows: a stream that can go back to its beginning, of `size` bytes."""

    stream: BinaryIO
    size: int

    def head(self) -> bytes:
        """Return the first bytes."""
        data = self.stream.read(HEAD_BYTES)
        self.stream.seek(0)
        return data

    def opened(self) -> Stream:
        """Return the bytes as the readers of files want them."""
        return Stream(SOURCE, self.stream, DataFile(Path(SOURCE), self.size))


def as_matrix(data: pa.RecordBatch, signature: Signature) -> FloatArray:
    """Return the columns of all features, in order, as rows; categories become the codes of the model.

    A category that the model does not know is missing.
    """
    rows = np.empty((data.num_rows, data.num_columns), np.float32)
    for index, column in enumerate(data.columns):
        if pa.types.is_dictionary(column.type):
            coding = Coding(signature.schema.categories[signature.schema.names[index]])
            column = coding.coded(pa.chunked_array([column])).indices.cast(pa.float32())  # noqa: PLW2901
        rows[:, index] = column.to_numpy(zero_copy_only=False)
    return rows


def as_csr(batch: Sparse, signature: Signature, first: int) -> csr_matrix:
    """Return sparse rows, whose features count from `first`, as a matrix of the model's width.

    Raises:
        UnfitError: If an index is not one of the model's features.
    """
    indices = batch.indices - np.int32(first)
    beyond = np.flatnonzero((indices < 0) | (indices >= signature.width))
    if len(beyond):
        row = int(np.searchsorted(batch.offsets, beyond[0], side="right"))
        raise UnfitError(
            f"{SOURCE}, row {row}: it has the index {batch.indices[beyond[0]]}, and the model has "
            f"{signature.width} features, with the indices {first} to {first + signature.width - 1}."
        )
    return csr_matrix((batch.values, indices, batch.offsets), (batch.rows, signature.width))


def finite(rows: npt.NDArray[Any], signature: Signature, before: int = 0) -> FloatArray:
    """Return rows of numbers as 32-bit floats, by the rule for infinite values; `before` rows came before.

    Raises:
        UserError: If the model's training took infinite values for mistakes, and there is one.
    """
    floats = as_floats(rows)
    infinite = np.isinf(floats)
    if not infinite.any():
        return floats
    if signature.infinity == "missing":
        return np.where(infinite, np.float32(np.nan), floats)
    column = int(np.flatnonzero(infinite.any(axis=0))[0])
    fault = Fault(column, np.flatnonzero(infinite[:, column]), *INFINITE)
    raise UserError(
        fault.text(
            SOURCE,
            f"column {column}",
            ("row", lambda row: before + row + 1),
            lambda row: str(rows[row, column]),
        )
    )
