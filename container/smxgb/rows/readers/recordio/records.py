"""SageMaker's records (`aialgs.data.Record`) as arrays: many at once, and one by one where that fails."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from smxgb.errors import UserError
from smxgb.rows.readers.recordio.record_schema import (
    TENSORS,
    Float32Tensor,
    Int32Tensor,
    Merged,
    Record,
    Tensor,
)
from smxgb.rows.readers.row_rules import as_floats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from smxgb.rows.batch import FloatArray

    type Counts = npt.NDArray[np.int64]

VALUES = "values"
"""The key of the features, and of the label, in a record's maps (SageMaker's developer guide)."""

WEIGHT = "weight"
"""The key of a row's weight in the map of its labels."""

NUMBERS: Mapping[str, np.dtype[Any]] = {
    "float32_tensor": np.dtype("<f4"),
    "float64_tensor": np.dtype("<f8"),
}


@dataclass(frozen=True)
class RecordRows:
    """The rows of some records. Values and keys stand row after row; `counts` says how many each row has.

    Values are of the type that the records have: 32-bit floats would round numbers of groups. `width` is how
    many features the records' shapes give, 0 if they give none.
    """

    values: npt.NDArray[Any]
    counts: Counts
    keys: npt.NDArray[np.uint64]
    key_counts: Counts
    width: int
    label: FloatArray
    label_counts: Counts
    weight: FloatArray | None = None


LAST_BYTE = 0x80
"""What is below is the last byte of a variable-length integer."""


class _Uneven(Exception):  # noqa: N818 - it never leaves this module
    """Some records are not built as the first one is."""


def read_records(records: Sequence[bytes], source: str, first: int) -> RecordRows:
    """Return the rows of records, the first of which has the number `first` in its file.

    Raises UserError for a record that can't be read.
    """
    try:
        return _at_once(records)
    except (_Uneven, DecodeError):
        return _one_by_one(records, source, first)


def _at_once(records: Sequence[bytes]) -> RecordRows:
    """Read records whose features, and labels, are all tensors of one kind."""
    opening = Record.FromString(records[0])
    kinds = tuple(getattr(opening, part)[VALUES].WhichOneof("value") for part in ("features", "label"))
    if not TENSORS.keys() >= set(kinds):
        raise _Uneven
    boundary = _boundary(*kinds)
    merged = Merged.FromString(boundary.join([*records, b""]))
    features = _tensor(merged.features, kinds[0], len(records))
    label = _tensor(merged.label, kinds[1], len(records))
    values, counts = _numbers(features.values, kinds[0], len(records))
    labels, label_counts = _numbers(label.values, kinds[1], len(records))
    keys, key_counts = _integers(features.keys, len(records))
    widths = {_width(shape) for shape in set(features.shape)}
    if len(values) and not len(keys) and not widths <= {counts[0]}:
        raise _Uneven
    return RecordRows(
        values, counts, keys, key_counts, max(widths, default=0), as_floats(labels), label_counts
    )


@cache
def _boundary(features: str, label: str) -> bytes:
    """Return bytes that, behind a record, put an empty item behind its keys and numbers when merged."""
    mark = Tensor(values=[b""], keys=[b""])
    merged: bytes = Merged(
        features={"key": [b""], "value": {features: mark}}, label={"key": [b""], "value": {label: mark}}
    ).SerializeToString()
    return merged


def _tensor(entry: Any, kind: str, rows: int) -> Any:
    """Return the merged tensor. Raises _Uneven unless each row has one entry, and all tensors one kind."""
    if list(entry.key) != [VALUES.encode(), b""] * rows:
        raise _Uneven
    if [name for name in TENSORS if entry.value.HasField(name)] != [kind]:
        raise _Uneven
    tensor = getattr(entry.value, kind)
    # Bytes, or numbers that are not packed, as another writer may have them.
    if len(UnknownFieldSet(entry.value)) or len(UnknownFieldSet(tensor)):
        raise _Uneven
    return tensor


def _items(items: Sequence[bytes], rows: int) -> tuple[bytes, Counts]:
    """Return the items of all rows as one, and how many bytes each row has."""
    sizes = np.fromiter(map(len, items), np.int64, len(items))
    ends = np.flatnonzero(sizes == 0)
    if len(ends) != rows:
        raise _Uneven
    return b"".join(items), np.diff(np.cumsum(sizes)[ends], prepend=0)


def _numbers(items: Sequence[bytes], kind: str, rows: int) -> tuple[npt.NDArray[Any], Counts]:
    if kind not in NUMBERS:
        data, counts = _varints(items, rows)
        message = Int32Tensor.FromString(Tensor(values=[data]).SerializeToString())
        return np.array(message.values, np.int32), counts
    data, sizes = _items(items, rows)
    if (sizes % NUMBERS[kind].itemsize).any():
        raise _Uneven
    return np.frombuffer(data, NUMBERS[kind]), sizes // NUMBERS[kind].itemsize


def _integers(items: Sequence[bytes], rows: int) -> tuple[npt.NDArray[np.uint64], Counts]:
    data, counts = _varints(items, rows)
    message = Float32Tensor.FromString(Tensor(keys=[data]).SerializeToString())
    return np.array(message.keys, np.uint64), counts


def _varints(items: Sequence[bytes], rows: int) -> tuple[bytes, Counts]:
    """Return the items of all rows as one, and how many variable-length integers each row has."""
    data, sizes = _items(items, rows)
    lasts = np.concatenate([[0], np.cumsum(np.frombuffer(data, np.uint8) < LAST_BYTE)])
    return data, np.diff(lasts[np.cumsum(sizes)], prepend=0)


def _width(shape: bytes) -> int:
    return prod(Float32Tensor.FromString(Tensor(shape=[shape]).SerializeToString()).shape)


def _one_by_one(records: Sequence[bytes], source: str, first: int) -> RecordRows:
    """Read records of any build."""
    tensors, labels, weights = [], [], []
    weighs: list[bool] = []
    for number, data in enumerate(records, first):
        place = f"{source}, record {number}"
        try:
            record = Record.FromString(data)
        except DecodeError as error:
            raise UserError(
                f"{place}: it is not a record of SageMaker's protobuf schema. The file is damaged, or of "
                "another type."
            ) from error
        tensors.append(_only(record.features, VALUES, place, "features"))
        _check_shape(tensors[-1], place)
        labels.append(as_floats(np.array(_only(record.label, VALUES, place, "label").values, np.float64)))
        weighs.append(WEIGHT in record.label)
        if weighs[-1] != weighs[0]:
            has, others = ("a", "none") if weighs[-1] else ("no", "one")
            raise UserError(
                f"{place}: it has {has} weight, those before it have {others}: give each record one, or none."
            )
        if weighs[-1]:
            given = _only(record.label, WEIGHT, place, "label").values
            weights.append(as_floats(np.array(given, np.float64)))
            if len(weights[-1]) != 1:
                raise UserError(f"{place}: it has {len(weights[-1])} weights; a row has one.")
    kinds = {tensor.DESCRIPTOR.name for tensor in tensors}
    common = np.dtype(np.float32 if "Float32Tensor" in kinds else np.float64)
    with np.errstate(over="ignore"):
        values: list[npt.NDArray[Any]] = [np.array(tensor.values).astype(common) for tensor in tensors]
    keys = [np.array(tensor.keys, np.uint64) for tensor in tensors]
    return RecordRows(
        np.concatenate(values),
        np.array([len(row) for row in values]),
        np.concatenate(keys),
        np.array([len(row) for row in keys]),
        max(prod(tensor.shape) if tensor.shape else 0 for tensor in tensors),
        np.concatenate(labels),
        np.array([len(label) for label in labels]),
        np.concatenate(weights) if weights else None,
    )


def _check_shape(tensor: Any, place: str) -> None:
    """Raise UserError for a dense tensor that has not as many values as its shape says."""
    values, width = len(tensor.values), prod(tensor.shape)
    if values and not tensor.keys and tensor.shape and width != values:
        shape = " x ".join(map(str, tensor.shape))
        raise UserError(f"{place}: its shape is {shape}, and it has {values} values: give it all of them.")


def _only(values: Any, key: str, place: str, part: str) -> Any:
    """Return the tensor of numbers under a key of a record's map."""
    holds, is_ = ("hold", "are") if part == "features" else ("holds", "is")
    if key not in values:
        found = f"only {', '.join(sorted(map(repr, values)))}" if values else "nothing"
        raise UserError(f"{place}: its {part} {holds} {found}, and {key!r} is needed.")
    kind = values[key].WhichOneof("value")
    if kind not in TENSORS:
        raise UserError(f"{place}: its {part} {is_} {kind or 'empty'}; a tensor of numbers is needed.")
    return getattr(values[key], kind)
