"""Parquet channels: the row groups of their files as batches."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from smxgb.errors import Mistakes, UserError
from smxgb.job import PARQUET_MAGIC, is_compressed
from smxgb.log import log, notice
from smxgb.rows.batch import CELL_BYTES, rows_of_batch
from smxgb.rows.categories import CATEGORY
from smxgb.rows.columns import aligned, assigned, check_partitions, chosen
from smxgb.rows.readers.parquet.types import (
    INVENTED_INDEX,
    categories,
    check_index,
    check_types,
    converted,
    dictionaries,
    is_float,
    may_be_label,
    notice_numbers,
    rounded,
    saved_index,
)
from smxgb.rows.readers.reader import Reader
from smxgb.rows.readers.row_rules import (
    FLOAT_GROUPS,
    ROUNDED,
    CleanRows,
    Fault,
    clean,
    is_unrounded,
    merged,
    shown_columns,
    shown_file,
    with_infinities_told,
)
from smxgb.rows.row_numbers import COUNT, breaks, counts_on
from smxgb.rows.schema import Declared
from smxgb.wording import shown_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from smxgb.job import Channel, DataFile
    from smxgb.rows.batch import Batch
    from smxgb.rows.readers.reader import Request
    from smxgb.rows.roles import RoleName
    from smxgb.rows.schema import Layout

ENCRYPTED_MAGIC = b"PARE"
SIGNATURE_BYTES = 28
"""A nonce and a tag behind a footer that is signed."""

COUNTED_ROWS = 50
"""Rows in which a column without a name must count to be taken for row numbers; the others are checked."""

BUFFER_BYTES = 1 << 16
"""Bytes read at a time from each column; else a whole row group is held before its first row comes."""


@dataclass(frozen=True)
class _Table:
    """One file: its columns, without an index that pandas saved, and its rows.

    `rows` are those to read; the `largest` row group of the file has so many rows. `labels` are those of the
    `index` that may be the label, `categories` the columns that were dictionaries when they were written.
    """

    file: DataFile
    source: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    rows: range
    largest: int
    index: frozenset[str]
    labels: tuple[str, ...]
    categories: frozenset[str]


def open_channel(request: Request) -> Reader:
    """Return the reader of a channel of Parquet files: their footers tell the columns and rows of all.

    Decoding costs next to nothing, but a streamed file comes over the network in each pass. Raises UserError
    as `smxgb.rows.readers.open_reader` does.
    """
    channel = request.channel
    tables = _tables(request)
    layouts = _layouts(request, tables)
    like = request.like
    declared = like if like and like.layout else Declared(layouts[0])
    return Reader(
        declared,
        _Passes(request, tables, layouts, declared.names or ()).batches,
        sum(len(table.rows) for table in tables),
        is_exact=True,
        can_repeat=channel.format.is_cheap_to_repeat and channel.mode == "File",
        # Arrow holds much of the largest row group while batches are cut from it.
        buffer_bytes=max(CELL_BYTES * len(table.names) * table.largest for table in tables),
    )


def can_be_cut(file: DataFile) -> bool:  # noqa: ARG001 - its index tells where the rows of any part begin
    """Tell that a file can be cut: its rows can."""
    return True


def _tables(request: Request) -> list[_Table]:
    """Return the files that have rows, or all if none has: one without may be written with other columns."""
    channel = request.channel
    with ThreadPoolExecutor(request.threads, thread_name_prefix="parquet") as pool:
        every = list(pool.map(partial(_table, channel), channel.files))
    tables = [table for table in every if table.largest] or every
    index = sorted(set[str]().union(*(table.index for table in tables)))
    if index:
        log(f"Channel {channel.name}: left out the index that pandas saved: {', '.join(index)}.")
    return tables


def _table(channel: Channel, file: DataFile) -> _Table:
    source = shown_file(channel, file)
    with _readable(file, source), pq.ParquetFile(file.path) as parquet:
        schema, rows = parquet.schema_arrow, _rows(file, parquet.metadata)
        largest = max(_group_sizes(parquet.metadata), default=0)
        found = categories(schema, parquet.metadata.metadata or {})
    index = saved_index(schema)
    fields = [field for field in schema if field.name not in index]
    names = tuple(field.name for field in fields)
    types = tuple(field.type for field in fields)
    labels = tuple(
        field.name
        for field in schema
        if field.name in index and not INVENTED_INDEX.fullmatch(field.name) and may_be_label(field.type)
    )
    return _Table(file, source, names, types, rows, largest, index, labels, found)


def _layouts(request: Request, tables: list[_Table]) -> list[Layout]:
    """Return the layout of each file. Raises UserError with all files and columns that don't fit."""
    first, *others = tables
    layouts = [_first_layout(request, first)]
    mistakes = Mistakes()
    for table in others:
        with mistakes.collect():
            layouts.append(aligned(layouts[0], table.names, len(table.names), table.source, first.source))
    mistakes.raise_any()
    check_types(
        (
            (table.source, table.names, table.types, layout)
            for table, layout in zip(tables, layouts, strict=True)
        ),
        dictionaries=request.settings.dictionaries,
        codes_labels=request.settings.coder is not None,
    )
    for table, layout in zip(tables, layouts, strict=True):
        for position in layout.row_numbers:
            with mistakes.collect():
                _check_row_numbers(table, position)
    mistakes.raise_any()
    return layouts


def _check_row_numbers(table: _Table, position: int) -> None:
    """Raise UserError if a column without a name does not count the rows."""
    place = f"{table.source}, {shown_column(position, table.names)}"
    with _readable(table.file, table.source), pq.ParquetFile(table.file.path) as parquet:
        before = 0
        for batch in parquet.iter_batches(columns=[table.names[position]]):
            column = batch.column(0)
            if not pa.types.is_integer(column.type):
                raise UserError(f"{place}: it is of type {column.type} and {COUNT[0]}. {COUNT[1]}")
            broken = breaks(column.fill_null(-1).cast(pa.int64(), safe=False).to_numpy())
            if broken.any():
                row = int(broken.argmax())
                raise UserError(f"{place}, row {before + row}: {column[row].as_py()} {COUNT[0]}. {COUNT[1]}")
            before += batch.num_rows


def _counts(table: _Table, position: int) -> bool:
    """Tell whether a column of whole numbers counts the first rows of a file."""
    if not pa.types.is_integer(table.types[position]):
        return False
    with _readable(table.file, table.source), pq.ParquetFile(table.file.path) as parquet:
        batches = parquet.iter_batches(COUNTED_ROWS, columns=[table.names[position]])
        return all(counts_on(batch.column(0).fill_null(-1).to_pylist()) for batch in islice(batches, 1))


def _unrounded(table: _Table, layout: Layout, *, is_streamed: bool) -> frozenset[int]:
    """Return the columns that are read from whose first values float32 takes no digits of whole numbers.

    Of a streamed file, each byte of which is read once, the types alone tell: doubles count as fractions.
    """
    read = {*layout.features, *(position for _, position in layout.roles)}
    plain = {index for index in read if is_float(table.types[index], short=not is_streamed)}
    if is_streamed:
        return frozenset(plain)
    long = [index for index in sorted(read - plain) if may_be_label(table.types[index])]
    names = [table.names[index] for index in long]
    file = pq.ParquetFile(table.file.path, buffer_size=BUFFER_BYTES)
    with _readable(table.file, table.source), file as parquet:
        # Not from the footer's statistics: Arrow ends the process that asks for those of an encrypted column.
        first = next(parquet.iter_batches(COUNTED_ROWS, columns=names), None) if names else None
        columns = [] if first is None else [first.column(name) for name in names]
        values = [column.cast(pa.float64(), safe=False).drop_null().to_pylist() for column in columns]
    return frozenset(plain | {index for index, held in zip(long, values, strict=False) if is_unrounded(held)})


def _first_layout(request: Request, table: _Table) -> Layout:
    settings, like = request.settings, request.like
    check_partitions(request.channel.name, table.names, settings)
    width = len(table.names)
    if like is not None and like.layout is not None:
        if like.layout.columns is None:
            notice(
                f"{table.source} has names, and the files of train have none: its columns are taken in "
                "the order of train's."
            )
        return aligned(like.layout, table.names, width, table.source, "train")
    check_index(settings, table.index, table.labels, table.source)
    drop = tuple(ref for ref in settings.drop if str(ref) not in table.index)
    layout = assigned(
        table.names,
        width,
        replace(settings, csv_weights=False, drop=drop),
        table.source,
        partial(_counts, table),
    )
    layout = replace(layout, unrounded=_unrounded(table, layout, is_streamed=request.channel.mode != "File"))
    if settings.csv_weights:
        notice(
            "csv_weights=1 has no effect on Parquet, where the column after the label is a feature: name the "
            "weights' column in weight_column."
        )
    if settings.dictionaries:
        return dictionaries(layout, table.names, table.categories)
    notice_numbers(layout, table.names, table.types, table.categories, table.source)
    return layout


class _Passes:
    """Passes over the rows of `tables`, whose features have `names`."""

    def __init__(
        self, request: Request, tables: list[_Table], layouts: list[Layout], names: tuple[str, ...]
    ) -> None:
        self._channel = request.channel
        self._settings = request.settings
        self._threads = request.threads
        self._tables = tables
        self._layouts = layouts
        self._names = names
        self._told = False

    def batches(self, wanted: tuple[str, ...]) -> Iterator[Batch]:
        """Yield all rows with the wanted features; the first pass with any tells of infinite values."""
        layout = self._layouts[0]
        parts = self._parts(wanted)
        if wanted and not self._told:
            self._told = True
            parts = with_infinities_told(parts, self._channel, shown_columns(layout))
        return merged(parts, tuple(role for role, _ in layout.roles), wanted)

    def _parts(self, wanted: tuple[str, ...]) -> Iterator[CleanRows]:
        for table, layout in zip(self._tables, self._layouts, strict=True):
            features = chosen(layout, self._names, wanted)
            with _readable(table.file, table.source):
                table.file.check()
                yield from self._file_parts(table, layout, features)
                table.file.check()

    def _file_parts(self, table: _Table, layout: Layout, features: Sequence[int]) -> Iterator[CleanRows]:
        roles = tuple(role for role, _ in layout.roles)
        positions = [*(position for _, position in layout.roles), *features]
        names = [table.names[position] for position in positions]
        types = [self._settings.dtype(role) for role in roles]
        if "label" in roles and self._settings.coder:
            label = table.types[positions[roles.index("label")]]
            types[roles.index("label")] = label if pa.types.is_floating(label) else CATEGORY
        types += [CATEGORY if index in layout.categorical else pa.float32() for index in features]
        fields = pa.schema([(str(index), data_type) for index, data_type in enumerate(types)])
        before = table.rows.start
        for raw in self._raw_batches(table, sorted(positions)):
            columns = [
                converted(raw.column(name), data_type, table.source, shown_column(position, table.names))
                for name, data_type, position in zip(names, types, positions, strict=True)
            ]
            data = pa.RecordBatch.from_arrays(columns, schema=fields)
            part, faults = clean(data, roles, self._settings)
            is_number = "label" in roles and not self._settings.coder
            if is_number and len(rows := rounded(raw.column(names[roles.index("label")]))):
                faults = (*faults, Fault(roles.index("label"), rows, *ROUNDED))
            if faults:
                raise UserError(
                    *(_text(fault, table, positions, raw, roles=roles, before=before) for fault in faults)
                )
            yield part
            before += raw.num_rows

    def _raw_batches(self, table: _Table, positions: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield some columns of a table's rows as the file has them; `positions` are ascending."""
        names = [table.names[position] for position in positions]
        rows = rows_of_batch(len(names))
        with pq.ParquetFile(table.file.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as parquet:
            sizes = _group_sizes(parquet.metadata)
            for group, (size, end) in enumerate(zip(sizes, accumulate(sizes), strict=True)):
                wanted = range(max(table.rows.start - end + size, 0), min(table.rows.stop - end + size, size))
                if not wanted:
                    continue
                if self._channel.mode == "File":
                    batches = parquet.iter_batches(rows, [group], names, use_threads=self._threads > 1)
                else:
                    # Column after column is the order of the bytes: a streamed file is slow at jumping.
                    columns = [parquet.read_row_group(group, [name]).column(name) for name in names]
                    batches = iter(pa.table(columns, names).to_batches(rows))
                yield from _sliced(batches, wanted)


def _rows(file: DataFile, metadata: pq.FileMetaData) -> range:
    """Return the rows to read of a file; a part of a file stands for the same part of its rows."""
    if not file.is_part:
        return range(metadata.num_rows)
    begin, end = (place * metadata.num_rows // file.listed for place in (file.begin, file.end))
    return range(begin, end)


def _group_sizes(metadata: pq.FileMetaData) -> list[int]:
    """Return the number of rows of each row group."""
    return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]


def _sliced(batches: Iterator[pa.RecordBatch], wanted: range) -> Iterator[pa.RecordBatch]:
    """Yield the `wanted` ones of the rows of `batches`."""
    before = 0
    for batch in batches:
        first, last = max(wanted.start - before, 0), min(wanted.stop - before, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)
        before += batch.num_rows
        if before >= wanted.stop:
            return


def _text(
    fault: Fault,
    table: _Table,
    positions: list[int],
    raw: pa.RecordBatch,
    *,
    roles: tuple[RoleName, ...],
    before: int,
) -> str:
    position = positions[fault.column]
    values = raw.column(table.names[position])
    if pa.types.is_floating(values.type):
        fault = fault.of_groups(roles, FLOAT_GROUPS)
    return fault.text(
        table.source,
        shown_column(position, table.names),
        ("row", lambda row: before + row),
        lambda row: str(values[row].as_py()) if values[row].is_valid else None,
    )


@contextmanager
def _readable(file: DataFile, source: str) -> Iterator[None]:
    """Turn Arrow's ways to say that a file is damaged into one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if _is_encrypted(file):
            raise UserError(
                f"{source} is encrypted by Parquet itself, and the job has no key: write it without "
                "encryption properties. What S3 encrypts (SSE-KMS) is read as it is."
            ) from error
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


def _is_encrypted(file: DataFile) -> bool:
    """Tell whether Parquet itself encrypted a file (Encryption.md of Apache Parquet).

    Either its footer is encrypted, which the first bytes tell, or columns are, and the footer is signed.
    """
    with file.path.open("rb") as opened, suppress(pa.ArrowException, OSError):
        if opened.read(len(ENCRYPTED_MAGIC)) == ENCRYPTED_MAGIC:
            return True
        opened.seek(-8, os.SEEK_END)
        length = int.from_bytes(opened.read(4), "little")
        return bool(length == pq.read_metadata(file.path).serialized_size + SIGNATURE_BYTES)
    return False
