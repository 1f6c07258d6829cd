"""Parquet channels: row groups of their files as batches."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from smxgb.batch import ROWS
from smxgb.errors import Mistakes, UserError
from smxgb.readers.columns import aligned, assigned, check_names, schema_of, shown
from smxgb.readers.rows import Fault, Part, clean, merged, shown_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.batch import Batch, Layout, Schema
    from smxgb.channels import Channel, DataFile
    from smxgb.job import DataSettings

BUFFER_BYTES = 1 << 16
"""Bytes read at a time from each column; without it a whole row group is held before its first row comes."""

MAGIC = b"PAR1"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Table:
    """One file: its columns without a saved pandas index."""

    file: DataFile
    source: str
    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    rows: int


class ParquetReader:
    """Reads the Parquet files of one channel; see `smxgb.readers.Reader`."""

    def __init__(
        self, channel: Channel, settings: DataSettings, *, threads: int, like: Schema | None
    ) -> None:
        self._channel = channel
        self._settings = settings
        self._threads = threads
        self._like = like

    @property
    def cheap_to_repeat(self) -> bool:
        """Decoding costs next to nothing, but a streamed file comes over the network each time."""
        return self._channel.mode == "File"

    def schema(self) -> Schema:
        """Return the features; the columns of all files are checked."""
        layouts = self._layouts
        return self._like or schema_of(layouts[0])

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield all rows with the columns of `schema`."""
        roles = tuple(role for role, _ in self._layouts[0].roles)
        yield from merged(self._parts(with_features=bool(schema.names)), roles, schema.names)

    @cached_property
    def _tables(self) -> list[_Table]:
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(self._table, self._channel.files))

    @cached_property
    def _layouts(self) -> list[Layout]:
        """The layout of each file. Raises UserError with all files and columns that don't fit."""
        mistakes = Mistakes()
        first, *others = self._tables
        with mistakes.collect():
            check_names(first.names, first.source)
        mistakes.raise_any()
        layouts = [self._first_layout(first)]
        for table in others:
            with mistakes.collect():
                layouts.append(aligned(layouts[0], table.names, len(table.names), table.source, first.source))
        mistakes.raise_any()
        _check_types(self._tables, layouts)
        return layouts

    def _first_layout(self, table: _Table) -> Layout:
        width = len(table.names)
        if self._like is None or self._like.layout is None:
            return assigned(table.names, width, replace(self._settings, csv_weights=False), table.source)
        return aligned(self._like.layout, table.names, width, table.source, "train")

    def _table(self, file: DataFile) -> _Table:
        source = shown_file(self._channel, file)
        with _readable(file, source), pq.ParquetFile(file.path) as parquet:
            schema, rows = parquet.schema_arrow, parquet.metadata.num_rows
        index = _saved_index(schema)
        fields = [field for field in schema if field.name not in index]
        if len(fields) < len(schema):
            _LOG.info("%s: left out the index that pandas saved: %s.", source, ", ".join(sorted(index)))
        return _Table(
            file, source, tuple(field.name for field in fields), tuple(field.type for field in fields), rows
        )

    def expected_rows(self) -> int:
        """Return how many rows the files have."""
        return sum(table.rows for table in self._tables)

    def _parts(self, *, with_features: bool) -> Iterator[Part]:
        for table, layout in zip(self._tables, self._layouts, strict=True):
            features = layout.features if with_features else ()
            positions = [*(position for _, position in layout.roles), *features]
            with _readable(table.file, table.source):
                yield from self._file_parts(table, layout, positions)

    def _file_parts(self, table: _Table, layout: Layout, positions: list[int]) -> Iterator[Part]:
        names = [table.names[position] for position in positions]
        roles = tuple(role for role, _ in layout.roles)
        before = 0
        for raw in self._raw_batches(table.file, [table.names[position] for position in sorted(positions)]):
            columns = [
                _numbers(
                    raw.column(name),
                    pa.int64() if index < len(roles) and roles[index] == "group" else pa.float32(),
                )
                for index, name in enumerate(names)
            ]
            data = pa.RecordBatch.from_arrays(columns, [str(index) for index in range(len(columns))])
            part, faults = clean(data, roles, self._settings)
            if faults:
                raise UserError(*(_text(fault, table, raw, positions, before) for fault in faults))
            yield part
            before += raw.num_rows

    def _raw_batches(self, file: DataFile, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the columns `names`, which are in the file's order, as the file has them."""
        with pq.ParquetFile(file.path, buffer_size=BUFFER_BYTES) as parquet:
            for group in range(parquet.num_row_groups):
                if self._channel.mode == "File":
                    yield from parquet.iter_batches(ROWS, [group], names, use_threads=self._threads > 1)
                else:
                    # Column after column is the order of the bytes: a streamed file is slow at jumping.
                    columns = [
                        parquet.read_row_group(group, [name], use_threads=False).column(0) for name in names
                    ]
                    yield from pa.table(columns, names).to_batches(ROWS)


def _check_types(tables: list[_Table], layouts: list[Layout]) -> None:
    """Raise UserError with all columns of all files that hold no numbers."""
    files: dict[str, list[str]] = {}
    groups: dict[str, list[str]] = {}
    for table, layout in zip(tables, layouts, strict=True):
        group = dict(layout.roles).get("group")
        used = sorted({*layout.features, *(position for _, position in layout.roles)})
        bad = [position for position in used if not _is_numeric(table.types[position])]
        if bad:
            listed = ", ".join(f"{table.names[position]!r} ({table.types[position]})" for position in bad)
            names = ",".join(table.names[position] for position in bad)
            files.setdefault(
                f"columns that hold no numbers: {listed}. Numbers, booleans and decimals are read; encode the "
                f"others as numbers, or leave them out with drop_columns={names}.",
                [],
            ).append(table.source)
        if group is not None and group not in bad and not pa.types.is_integer(table.types[group]):
            groups.setdefault(
                f"the group {shown(group, table.names[group])} is of type {table.types[group]}: number the groups.",
                [],
            ).append(table.source)
    texts = [
        f"{sources[0]}{f' and {len(sources) - 1} more files' if sources[1:] else ''}: {text}"
        for text, sources in [*files.items(), *groups.items()]
    ]
    if texts:
        raise UserError(*texts)


def _is_numeric(data_type: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_floating(data_type)
        or types.is_integer(data_type)
        or types.is_boolean(data_type)
        or types.is_decimal(data_type)
        or types.is_null(data_type)
    )


def _numbers(column: pa.Array, data_type: pa.DataType) -> pa.Array:
    # Unsafe: integers beyond 24 bits are rounded as XGBoost would, and too large a double becomes infinite, which
    # the rules for rows then see.
    return column if column.type == data_type else column.cast(data_type, safe=False)


def _saved_index(schema: pa.Schema) -> set[str]:
    """Return the columns that hold an index of pandas (its metadata: pandas.pydata.org, "pandas metadata")."""
    try:
        described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        return {column for column in described.get("index_columns", ()) if isinstance(column, str)}
    except (ValueError, AttributeError, TypeError):
        return set()


def _text(fault: Fault, table: _Table, raw: pa.RecordBatch, positions: list[int], before: int) -> str:
    position = positions[fault.column]
    values = raw.column(table.names[position])
    return fault.text(
        table.source,
        shown(position, table.names[position]),
        lambda row: f"row {before + row}",
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
            start = opened.read(len(MAGIC))
        if start != MAGIC:
            raise UserError(f"{source} is not a Parquet file: it does not begin with PAR1.") from error
        raise UserError(
            f"{source} can't be read as Parquet: it is damaged or cut off; write or upload it again."
        ) from error
