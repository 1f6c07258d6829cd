"""CSV channels: blocks of their files, parsed side by side, as batches in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.log import log
from smxgb.rows.columns import aligned, assigned, check_partitions, chosen, label_index, schema_of, unweighted
from smxgb.rows.prefetch import begun, in_order
from smxgb.rows.readers.csv.blocks import Block, block_size, line_end, read_blocks, read_part
from smxgb.rows.readers.csv.cells import Cells
from smxgb.rows.readers.csv.dialect import (
    Head,
    check_blanks,
    check_text,
    find_delimiter,
    read_head,
    shown_cells,
)
from smxgb.rows.readers.row_rules import merged, shown_columns, with_infinities_told
from smxgb.rows.readers.streams import open_streams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.job import Channel, DataSettings
    from smxgb.rows.batch import Batch, Layout, Schema
    from smxgb.rows.readers.row_rules import Part
    from smxgb.rows.readers.streams import Stream


@dataclass(frozen=True)
class _Start:
    """What the first file with a record decides for all: the delimiter and where the columns are.

    A record of the first file with rows has about `record_bytes`; without rows it is infinite.
    """

    delimiter: str
    source: str
    layout: Layout
    header_bytes: int
    record_bytes: float = inf
    inflation: float = 1.0


class CsvReader:
    """Reads the CSV files of one channel; see `smxgb.rows.readers.Reader`."""

    cheap_to_repeat = False
    buffer_bytes = 0

    def __init__(
        self, channel: Channel, settings: DataSettings, *, threads: int, like: Schema | None
    ) -> None:
        self._channel = channel
        self._settings = settings
        self._threads = threads
        self._like = like
        self._told = False
        self._begun: Iterator[Stream] | None = None

    def schema(self) -> Schema:
        """Return the features, from the beginning of the first file that has a record."""
        layout = self._start.layout
        like = self._like
        return like if like and like.layout else schema_of(layout)

    def expected_rows(self) -> int:
        """Return about how many rows there are, from the length of the first file's first lines."""
        start = self._start
        sizes = (max(0, file.size * start.inflation - start.header_bytes) for file in self._channel.files)
        return round(sum(sizes) / start.record_bytes)

    def batches(self, schema: Schema) -> Iterator[Batch]:
        """Yield all rows with the columns of `schema`."""
        roles = tuple(role for role, _ in self._start.layout.roles)
        parts = with_infinities_told(self._parts(schema), self._channel, shown_columns(self._start.layout))
        return merged(parts, roles, schema.names)

    @cached_property
    def _start(self) -> _Start:
        """What is decided by the first file with a record, and measured by the first with rows.

        Files before that one are done with then: they hold a header at most.
        """
        streams = open_streams(self._channel)
        start = None
        for stream in streams:
            with stream.look():
                chosen = start.delimiter if start else self._settings.delimiter
                first = next(read_blocks(stream, "," if chosen == "auto" else chosen), None)
                inflation = stream.inflation
            if first is None:
                continue
            check_text(first.data, stream.source)
            start = start or self._decided(first.data, stream.source)
            if start is None:
                continue
            head = self._head(first.data, start.delimiter, stream.source, start.layout, start.source)
            rows = first.data[head.start :].rstrip(b"\r\n") if head else b""
            if rows:
                lines = rows.count(line_end(first.data)) + 1
                self._begun = begun(stream, streams)
                return replace(start, record_bytes=(len(rows) + 1) / lines, inflation=inflation)
        if start is None:
            raise UserError(f"channel {self._channel.name}: none of its files holds a record.")
        self._begun = streams
        return start

    def _decided(self, data: bytes, source: str) -> _Start | None:
        """Return what the beginning of the first file decides, None if it has no record."""
        chosen = self._settings.delimiter
        delimiter = find_delimiter(data) if chosen == "auto" else chosen
        check_blanks(data, delimiter, source)
        others = self._like.layout if self._like else None
        head = self._head(data, delimiter, source, others, "train")
        if head is None:
            return None
        layout = self._first_layout(head, source)
        header = "a" if head.names else "no"
        log(f"{source}: delimiter {delimiter!r}, {header} header, {head.width} columns.")
        return _Start(delimiter, source, layout, head.start)

    def _head(
        self, data: bytes, delimiter: str, source: str, others: Layout | None, first: str
    ) -> Head | None:
        """Return the head of a file; `others` is the layout of the files before it, as those of `first`.

        Where they have no header, this one has none either: what looks like it may be a row with a bad value.
        """
        header = self._settings.header
        head = read_head(data, delimiter, header, source, label=label_index(self._settings))
        if head is None or others is None or header != "auto":
            return head
        if head.names and others.columns is None:
            raise UserError(
                f"{source}: its first record ({shown_cells(head.names)}) looks like a header, and "
                f"{first} has none: mend the record, or write a header into every file or into none."
            )
        if head.names is None and others.columns is not None and not self._told:
            self._told = True
            log(f"{source} has no header: its columns are taken in the order of {first}'s.")
        return head

    def _first_layout(self, head: Head, source: str) -> Layout:
        check_partitions(self._channel.name, head.names, self._settings)
        if self._like is None or self._like.layout is None:
            layout = assigned(head.names, head.width, self._settings, source)
            used = {*layout.features, *(position for _, position in layout.roles)}
            if head.unnamed and 0 in used:
                raise UserError(
                    f"{source}: the first column has no name, as in a table that pandas saved with its "
                    "index. Leave it out with drop_columns=0, or save the table with index=False."
                )
            return layout
        expected = self._like.layout
        if (
            self._settings.csv_weights
            and "weight" in dict(expected.roles)
            and head.width == expected.width - 1
        ):
            log(f"{source} has one column fewer than train: its rows have no weights.")
            expected = unweighted(expected)
        return aligned(expected, head.names, head.width, source, "train")

    def _parts(self, schema: Schema) -> Iterator[Part]:
        """Yield the parsed blocks of all files in order, a bounded number of them being in work."""
        blocks = self._blocks(schema)
        return in_order(lambda cells, block: cells.part(block), blocks, self._threads)

    def _blocks(self, schema: Schema) -> Iterator[tuple[Cells, Block]]:
        start = self._start
        size = block_size(start.record_bytes)
        streams, self._begun = self._begun or open_streams(self._channel), None
        for stream in streams:
            source = stream.source
            blocks = read_blocks(stream, start.delimiter, size)
            first = next(blocks, None)
            if first is None:
                continue
            check_text(first.data, source)
            head = self._head(first.data, start.delimiter, source, start.layout, start.source)
            if head is None:
                continue
            layout = aligned(start.layout, head.names, head.width, source, start.source)
            features = chosen(layout, self.schema(), schema)
            headless = head.names is None
            cells = Cells(
                stream.file.path,
                source,
                start.delimiter,
                layout,
                features,
                self._settings,
                head.start,
                headless,
            )
            if stream.file.is_part:
                blocks = read_part(stream.file, source, start.delimiter, size, head.start)
            elif len(first.data) > head.start:
                lines = first.data.count(line_end(first.data), 0, head.start)
                yield cells, Block(first.data[head.start :], head.start, lines)
            for block in blocks:
                yield cells, block
