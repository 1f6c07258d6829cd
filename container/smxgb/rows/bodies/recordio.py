"""RecordIO-protobuf: records to predict, whose labels are passed over, and records of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError
from scipy.sparse import csr_matrix

from smxgb.errors import UserError
from smxgb.rows.bodies.body import SOURCE, finite
from smxgb.rows.readers.csr import ascending
from smxgb.rows.readers.recordio.reader import read_blocks
from smxgb.rows.readers.recordio.record_schema import Record
from smxgb.rows.readers.recordio.records import read_records
from smxgb.rows.readers.recordio_framing import HEADER, MAGIC
from smxgb.rows.signature import UnfitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from smxgb.rows.bodies.body import Body, Rows
    from smxgb.rows.readers.recordio.reader import RecordBlock
    from smxgb.rows.readers.recordio.records import RecordRows
    from smxgb.rows.signature import Signature


LABEL: bytes = Record(label={"values": {"float32_tensor": {"values": [0.0]}}}).SerializeToString()
"""What gives a record without a label one: protobuf joins messages that stand one behind the other."""


def recordio_rows(body: Body, signature: Signature, *, label_first: bool = False) -> Iterator[Rows]:  # noqa: ARG001 - a label is apart
    """Yield the rows of a body of RecordIO-protobuf.

    Raises:
        UserError: Naming the record that is damaged, or has another number of values than the model features.
    """
    for block in read_blocks(body.opened()):
        rows = read_records(_labelled(block.records), SOURCE, block.first)
        yield _sparse(rows, signature, block) if rows.key_counts.any() else _dense(rows, signature, block)


def _labelled(records: list[bytes]) -> list[bytes]:
    """Return records with a label each, as the reader of files wants them; those to predict may have none."""
    try:
        has_labels = len(Record.FromString(records[0]).label) > 0
    except DecodeError:
        has_labels = True  # the reader says what is wrong
    return records if has_labels else [record + LABEL for record in records]


def _dense(rows: RecordRows, signature: Signature, block: RecordBlock) -> Rows:
    if not rows.counts.any():
        return csr_matrix((len(rows.counts), signature.width), dtype=np.float32)
    complaint = f"it does not have {signature.width} values, as many as the model has features."
    _refuse(rows.counts != signature.width, block, complaint, UnfitError)
    return finite(rows.values.reshape(-1, signature.width), signature, block.first - 1)


def _sparse(rows: RecordRows, signature: Signature, block: RecordBlock) -> csr_matrix:
    _refuse(rows.counts != rows.key_counts, block, "its keys and values differ in number.")
    offsets = np.concatenate([[0], np.cumsum(rows.counts)])
    beyond = rows.keys >= signature.width
    if beyond.any():
        row = int(np.searchsorted(offsets, np.argmax(beyond), side="right")) - 1
        complaint = f"it has a key above {signature.width - 1}, the last of the model's features."
        _refuse(np.arange(len(rows.counts)) == row, block, complaint, UnfitError)
    indices, values, twice = ascending(rows.keys.astype(np.int32), rows.values, offsets)
    if twice is not None:
        _refuse(np.arange(len(rows.counts)) == twice, block, "it has a key twice.")
    floats = finite(values.reshape(-1, 1), signature).ravel()
    return csr_matrix((floats, indices, offsets), (len(rows.counts), signature.width))


def _refuse(
    bad: npt.NDArray[np.bool_], block: RecordBlock, complaint: str, error: type[UserError] = UserError
) -> None:
    if bad.any():
        raise error(f"{SOURCE}, record {block.first + int(np.argmax(bad))}: {complaint}")


def answer_records(columns: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return a record for each row of an answer: the values of each column are one of its labels.

    The columns have the shape (rows,) or (rows, values).
    """
    records = []
    for values in zip(*columns.values(), strict=True):
        label = {
            key: {"float32_tensor": {"values": np.atleast_1d(value).tolist()}}
            for key, value in zip(columns, values, strict=True)
        }
        data = Record(label=label).SerializeToString()
        records += [HEADER.pack(MAGIC, len(data)), data, b"\0" * (-len(data) % 4)]
    return b"".join(records)
