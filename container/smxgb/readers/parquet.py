"""Parquet channels: the row groups of their files as batches."""

from __future__ import annotations

from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from smxgb.batch import CELL_BYTES, rows_of_batch
from smxgb.compression import is_compressed
from smxgb.content_types import PARQUET_MAGIC
from smxgb.errors import Mistakes, UserError
from smxgb.log import log
from smxgb.readers.categories import CATEGORY
from smxgb.readers.columns import aligned, assigned, chosen, schema_of, shown
from smxgb.readers.parquet_types import check_types, converted, dictionaries, saved_index
from smxgb.readers.rows import Fault, Part, clean, merged, shown_columns, shown_file, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smxgb.batch import Batch, Layout, Schema
    from smxgb.channels import Channel, DataFile
    from smxgb.job import DataSettings

BUFFER_BYTES = 1 << 16
"""Bytes read at a time from each column; else a whole row group is held before its first row comes."""


@dataclass(frozen=True)
class _Table:
    """One file: its columns, without an index that pandas saved, and its rows.

    `groups` are the row groups to read, `rows` how many rows they have, `before` how many stand before them;
    the `largest` group of the file has so many rows.
    """

    file: DataFile
    source: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    groups: range
    rows: int
    before: int
    largest: int
    index: frozenset[str]


class ParquetReader:
    """Reads the Parquet files of one channel; see `smxgb.readers.Reader`."""

    def __init__(
        self, channel: Channel, settings: DataSettings, *, threads: int, like: Schema | None
    ) -> None:
        self._channel = channel
        self._settings = settings
        self._threads = threads
        self._like = like
        self._told = False

    @property
    def cheap_to_repeat(self) -> bool:
        """Decoding costs next to nothing, but a streamed file comes over the network each time."""
        return self._channel.mode == "File"

    @property
    def buffer_bytes(self) -> int:
        """The largest row group, as 32-bit floats: Arrow holds much of it while batches are cut from it."""
        return max((CELL_BYTES * len(table.names) * table.largest for table in self._tables), default=0)

    def schema(self) -> Schema:
        """Return the features; the columns of all files are checked."""
        layouts = self._layouts
        like = self._like
        return like if like and like.layout else schema_of(layouts[0])

    def expected_rows(self) -> int:
        """Return how many rows the files have."""
        return sum(table.rows for table in self._tables)

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield all rows with the columns of `schema`."""
        layout = self._layouts[0]
        parts = self._parts(schema)
        if schema.names and not self._told:
            self._told = True
            parts = told(parts, self._channel, shown_columns(layout))
        return merged(parts, tuple(role for role, _ in layout.roles), schema.names)

    @cached_property
    def _tables(self) -> list[_Table]:
        with ThreadPoolExecutor(self._threads, thread_name_prefix="parquet") as pool:
            tables = list(pool.map(self._table, self._channel.files))
        index = sorted(set[str]().union(*(table.index for table in tables)))
        if index:
            log(f"Channel {self._channel.name}: left out the index that pandas saved: {', '.join(index)}.")
        return tables

    def _table(self, file: DataFile) -> _Table:
        source = shown_file(self._channel, file)
        with _readable(file, source), pq.ParquetFile(file.path) as parquet:
            schema, groups = parquet.schema_arrow, _groups(file, parquet.metadata)
            largest = max((group.num_rows for group in _row_groups(parquet.metadata)), default=0)
        index = saved_index(schema)
        fields = [field for field in schema if field.name not in index]
        names = tuple(field.name for field in fields)
        return _Table(file, source, names, tuple(field.type for field in fields), *groups, largest, index)

    @cached_property
    def _layouts(self) -> list[Layout]:
        """The layout of each file. Raises UserError with all files and columns that don't fit."""
        first, *others = self._tables
        layouts = [self._first_layout(first)]
        mistakes = Mistakes()
        for table in others:
            with mistakes.collect():
                layouts.append(aligned(layouts[0], table.names, len(table.names), table.source, first.source))
        mistakes.raise_any()
        check_types(
            (table.source, table.names, table.types, layout)
            for table, layout in zip(self._tables, layouts, strict=True)
        )
        return layouts

    def _first_layout(self, table: _Table) -> Layout:
        width = len(table.names)
        if self._like is None or self._like.layout is None:
            layout = assigned(table.names, width, replace(self._settings, csv_weights=False), table.source)
            if self._settings.dictionaries:
                layout = dictionaries(layout, table.types)
            return layout
        return aligned(self._like.layout, table.names, width, table.source, "train")

    def _parts(self, schema: Schema) -> Iterator[Part]:
        for table, layout in zip(self._tables, self._layouts, strict=True):
            features = chosen(layout, self.schema(), schema)
            with _readable(table.file, table.source):
                yield from self._file_parts(table, layout, features)

    def _file_parts(self, table: _Table, layout: Layout, features: Sequence[int]) -> Iterator[Part]:
        roles = layout.roles
        positions = [*(position for _, position in roles), *features]
        names = [table.names[position] for position in positions]
        types = [pa.int64() if role == "group" else pa.float32() for role, _ in roles]
        types += [CATEGORY if index in layout.categorical else pa.float32() for index in features]
        fields = pa.schema([(str(index), data_type) for index, data_type in enumerate(types)])
        before = table.before
        for raw in self._raw_batches(table, sorted(positions)):
            columns = [
                converted(raw.column(name), data_type, table.source, shown(position, table.names))
                for name, data_type, position in zip(names, types, positions, strict=True)
            ]
            data = pa.RecordBatch.from_arrays(columns, schema=fields)
            part, faults = clean(data, tuple(role for role, _ in roles), self._settings)
            if faults:
                raise UserError(*(_text(fault, table, positions, raw, before) for fault in faults))
            yield part
            before += raw.num_rows

    def _raw_batches(self, table: _Table, positions: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield some columns as the file has them; `positions` are ascending."""
        names = [table.names[position] for position in positions]
        rows = rows_of_batch(len(names))
        with pq.ParquetFile(table.file.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as parquet:
            for group in table.groups:
                if self._channel.mode == "File":
                    yield from parquet.iter_batches(rows, [group], names, use_threads=self._threads > 1)
                else:
                    # Column after column is the order of the bytes: a streamed file is slow at jumping.
                    columns = [parquet.read_row_group(group, [name]).column(0) for name in names]
                    yield from pa.table(columns, names).to_batches(rows)


def _groups(file: DataFile, metadata: pq.FileMetaData) -> tuple[range, int, int]:
    """Return the row groups to read of a file, how many rows they have, and how many stand before them.

    A part of a file stands for the same part of its rows, as near as whole row groups allow.
    """
    if not file.is_part:
        return range(metadata.num_row_groups), metadata.num_rows, 0
    rows = [group.num_rows for group in _row_groups(metadata)]
    bytes_a_row = file.path.stat().st_size / max(1, metadata.num_rows)
    middles = [(end - own / 2) * bytes_a_row for own, end in zip(rows, accumulate(rows), strict=True)]
    first, last = bisect_left(middles, file.begin), bisect_left(middles, file.end)
    return range(first, last), sum(rows[first:last]), sum(rows[:first])


def _row_groups(metadata: pq.FileMetaData) -> list[pq.RowGroupMetaData]:
    return [metadata.row_group(index) for index in range(metadata.num_row_groups)]


def _text(fault: Fault, table: _Table, positions: list[int], raw: pa.RecordBatch, before: int) -> str:
    position = positions[fault.column]
    values = raw.column(table.names[position])
    return fault.text(
        table.source,
        shown(position, table.names),
        ("row", lambda row: before + row),
        lambda row: str(values[row].as_py()),
    )


@contextmanager
def _readable(file: DataFile, source: str) -> Iterator[None]:
    """Turn Arrow's ways to say that a file is damaged into one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        with file.path.open("rb") as opened:
            head = opened.read(len(PARQUET_MAGIC))
            if is_compressed(head):
                raise UserError(
                    f"{source} is compressed as a whole, which a Parquet file must not be: decompress it, "
                    "and let what writes it compress its columns."
                ) from error
            if head != PARQUET_MAGIC:
                raise UserError(f"{source} is not a Parquet file: it does not begin with PAR1.") from error
        raise UserError(
            f"{source} can't be read as Parquet: it is damaged or cut off. Write or upload it again."
        ) from error
