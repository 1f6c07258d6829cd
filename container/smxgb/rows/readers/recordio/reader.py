"""RecordIO-protobuf channels: records by the thousand as batches, dense or sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from smxgb.errors import UserError
from smxgb.rows.batch import SPARSE, Sparse
from smxgb.rows.prefetch import in_order
from smxgb.rows.readers.column_picks import ColumnPicks, column_picks, from_dense, from_sparse, numbered
from smxgb.rows.readers.csr import ascending, first_infinite
from smxgb.rows.readers.reader import Reader
from smxgb.rows.readers.recordio.records import RecordRows, read_records
from smxgb.rows.readers.recordio_framing import HEADER, LENGTH_BITS, MAGIC, cut_off, parse_header
from smxgb.rows.readers.row_rules import FLOAT_GROUPS, as_floats, clean, merged, with_infinities_told
from smxgb.rows.readers.streams import beginning, open_streams
from smxgb.rows.schema import Declared, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from smxgb.rows.batch import Batch
    from smxgb.rows.readers.reader import Request
    from smxgb.rows.readers.row_rules import CleanRows, Fault
    from smxgb.rows.readers.streams import Stream
    from smxgb.rows.roles import RoleName

BLOCK_BYTES = 1 << 20
LONGEST_RECORD = 64 << 20
"""A longer record means that the file is damaged: 16 million features have their values in so many bytes."""

LARGEST_KEY = 2**31 - 1


@dataclass(frozen=True)
class RecordBlock:
    """Some records of a file; the first of them has the number `first` in it, counted from 1."""

    source: str
    records: list[bytes]
    first: int


@dataclass(frozen=True)
class _Form:
    """What all records of a channel have in common: their width if they are dense, and whether they weigh."""

    width: int | None
    weighted: bool
    picks: ColumnPicks

    @property
    def own_roles(self) -> tuple[RoleName, ...]:
        return ("label", "weight") if self.weighted else ("label",)

    @property
    def roles(self) -> tuple[RoleName, ...]:
        return (*self.own_roles, *(role for role, _ in self.picks.roles))


def open_channel(request: Request) -> Reader:
    """Return the reader of a channel of RecordIO-protobuf files: its first record tells the form of all.

    Dense records tell how many features there are; of sparse ones it is known when all rows were seen. Raises
    UserError as `smxgb.rows.readers.open_reader` does.
    """
    channel = request.channel
    start, streams = beginning(open_streams(channel), partial(_look, request))
    if start is None:
        raise UserError(f"channel {channel.name}: none of its files holds a record.")
    form = start.form
    expected = round(channel.size * start.inflation / start.record_bytes)
    return Reader(Declared(width=form.width), _Pass(request, form, streams).batches, expected)


@dataclass(frozen=True)
class _Start:
    """What the first record of a channel tells, and the mean length of the first ones in bytes."""

    form: _Form
    record_bytes: float
    inflation: float


def _look(request: Request, stream: Stream) -> _Start | None:
    """Return what the first record of a stream tells, None if it has none."""
    block = next(read_blocks(stream), None)
    if block is None:
        return None
    rows = read_records(block.records[:1], block.source, block.first)
    dense = len(rows.values) > 0 and not len(rows.keys)
    weighted = rows.weight is not None
    roles: tuple[RoleName, ...] = ("label", "weight") if weighted else ("label",)
    picks = column_picks(request.settings, roles, request.channel.name, block.source)
    form = _Form(len(rows.values) if dense else None, weighted, picks)
    record_bytes = sum(map(len, block.records)) / len(block.records) + HEADER.size
    return _Start(form, record_bytes, stream.inflation)


class _Pass:
    """The one pass over the rows of `streams`."""

    def __init__(self, request: Request, form: _Form, streams: Iterator[Stream]) -> None:
        self._request = request
        self._form = form
        self._streams = streams
        self._width = 0

    def batches(self, names: tuple[str, ...]) -> Iterator[Batch]:
        """Yield all rows with the named features, or as sparse ones."""
        form = self._form
        of_features = None if form.width is None else names
        columns = [*form.roles, *(["the values"] if of_features is None else of_features)]
        blocks = ((block,) for stream in self._streams for block in read_blocks(stream))
        parts = in_order(self._part, blocks, self._request.threads)
        told = with_infinities_told(parts, self._request.channel, columns)
        for batch in merged(told, form.roles, of_features):
            yield replace(batch, width=self._width) if isinstance(batch, Sparse) else batch

    def _part(self, block: RecordBlock) -> CleanRows:
        form = self._form
        rows = read_records(block.records, block.source, block.first)
        self._width = max(self._width, rows.width)
        _check(rows, form, block)
        given = _given(rows, form, block)
        part, faults = clean(numbered(given), form.roles, self._request.settings)
        if faults:
            raise UserError(*(_text(fault, given, form, block) for fault in faults))
        return part


def read_blocks(stream: Stream, size: int = BLOCK_BYTES) -> Iterator[RecordBlock]:
    """Yield the records of a stream in blocks of about `size` bytes.

    Raises UserError, naming the record, for a wrong magic number, parts that are out of order, a record that
    is longer than `LONGEST_RECORD`, and a file that ends inside a record.
    """
    split = _Split(stream.source)
    wanted = size
    while chunk := stream.read(wanted):
        first = split.number
        records = split.records(chunk)
        if records:
            yield RecordBlock(stream.source, records, first)
        wanted = max(size, split.missing)
    split.end()


class _Split:
    """Splits a stream of chunks into records; `number` is that of the next record.

    What was read of a record is looked at once: its whole parts are kept as they are, and only a part that is
    not whole yet is looked at again, with the chunk that has `missing` bytes more.
    """

    def __init__(self, source: str) -> None:
        self.number = 1
        self.missing = 0
        self._source = source
        self._held = b""
        self._parts: list[bytes] = []
        self._length = 0

    def records(self, chunk: bytes) -> list[bytes]:
        """Return the records that end in the next chunk."""
        data = self._held + chunk if self._held else chunk
        records: list[bytes] = []
        offset = 0
        mask = (1 << LENGTH_BITS) - 1
        self.missing = 0
        while (start := offset + HEADER.size) <= len(data):
            magic, word = HEADER.unpack_from(data, offset)
            is_last = True
            if magic != MAGIC or word > mask or self._parts:  # not a whole record: look with care
                number = self.number + len(records)
                is_last = parse_header(data, offset, self._source, number, inside=bool(self._parts)).is_last
            end = start + (word & mask)
            if self._length + end - offset > LONGEST_RECORD:
                raise UserError(
                    f"{self._source}, record {self.number + len(records)}: it has more than "
                    f"{LONGEST_RECORD >> 20} MB. The file is damaged, or no RecordIO-protobuf."
                )
            padded = end + (start - end) % 4
            if padded > len(data):
                self.missing = padded - len(data)
                break
            offset = padded
            if is_last and not self._parts:
                records.append(data[start:end])
                continue
            self._parts.append(data[start:end])
            self._length += end - start + HEADER.size
            if is_last:
                records.append(b"".join(self._parts))
                self._parts, self._length = [], 0
        self._held = data[offset:]
        self.number += len(records)
        return records

    def end(self) -> None:
        """Raise UserError if the stream has ended inside a record."""
        if self._held or self._parts:
            cut_off(self._source, self.number)


def _check(rows: RecordRows, form: _Form, block: RecordBlock) -> None:
    """Raise UserError, naming the record, for rows that are not of the channel's form."""
    _refuse(rows.label_counts != 1, block, "it has no label, or more than one.")
    if form.weighted != (rows.weight is not None):
        has, first = ("no", "one") if form.weighted else ("a", "none")
        raise UserError(
            f"{block.source}, record {block.first}: it has {has} weight, the channel's first record has "
            f"{first}: give each record one, or none."
        )
    if form.width is None:
        complaint = (
            "its keys and values differ in number; the channel's first record is sparse, so all must be."
        )
        _refuse(rows.counts != rows.key_counts, block, complaint)
    else:
        complaint = "it is sparse; the channel's first record is dense, so all must be."
        _refuse(rows.key_counts > 0, block, complaint)
        complaint = f"it does not have {form.width} values, as the channel's first record has."
        _refuse(rows.counts != form.width, block, complaint)


def _given(rows: RecordRows, form: _Form, block: RecordBlock) -> pa.RecordBatch:
    """Return rows of a channel's form, roles first; a group is of the type that the records have."""
    if "group" not in form.roles:
        rows = replace(rows, values=as_floats(rows.values))
    roles = [pa.array(rows.label)] + ([pa.array(rows.weight)] if form.weighted else [])
    if form.width is None:
        features, names = _sparse(rows, block), SPARSE.names
    else:
        columns = np.ascontiguousarray(rows.values.reshape(-1, form.width).T)
        features = [pa.array(column) for column in columns]
        names = list(Schema.unnamed(form.width).names)
    data = pa.RecordBatch.from_arrays([*roles, *features], [*form.own_roles, *names])
    if form.picks and form.width is None:
        data = from_sparse(data, form.picks)
    elif form.picks and form.width is not None:
        data = from_dense(data, form.picks, form.width, block.source)
    return data


def _text(fault: Fault, given: pa.RecordBatch, form: _Form, block: RecordBlock) -> str:
    column = given.schema.names[fault.column]
    cell = given.column(fault.column)[int(fault.rows[0])]
    value = str(cell.as_py()) if cell.is_valid else None
    if form.width is None and fault.column >= len(form.roles):
        key, value = first_infinite(given, fault)
        column = f"key {key}"
    place = ("record", lambda row: block.first + row)
    return fault.of_groups(form.roles, FLOAT_GROUPS).text(block.source, column, place, lambda _: value)


def _sparse(rows: RecordRows, block: RecordBlock) -> list[pa.Array]:
    """Return the features as two arrays of lists. Raises UserError for keys that can't be."""
    offsets = np.concatenate([[0], np.cumsum(rows.counts)])
    limit = min(rows.width or LARGEST_KEY + 1, LARGEST_KEY + 1)
    beyond = rows.keys >= limit
    if beyond.any():
        row = int(np.searchsorted(offsets, np.argmax(beyond), side="right")) - 1
        which = "that its shape allows" if rows.width else "there can be"
        complaint = f"it has a key above {limit - 1}, the largest {which}."
        _refuse(np.arange(len(rows.counts)) == row, block, complaint)
    indices, values, twice = ascending(rows.keys.astype(np.int32), rows.values, offsets)
    if twice is not None:
        _refuse(np.arange(len(rows.counts)) == twice, block, "it has a key twice.")
    places = pa.array(offsets.astype(np.int32))
    return [pa.ListArray.from_arrays(places, pa.array(each)) for each in (indices, values)]


def _refuse(bad: npt.NDArray[np.bool_], block: RecordBlock, text: str) -> None:
    """Raise UserError for the first record that is `bad`, if any is."""
    if bad.any():
        raise UserError(f"{block.source}, record {block.first + int(np.argmax(bad))}: {text}")
