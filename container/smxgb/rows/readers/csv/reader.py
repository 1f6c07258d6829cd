"""CSV channels: blocks of their files, parsed side by side, as batches in order."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from smxgb.errors import UserError
from smxgb.log import log
from smxgb.rows.columns import (
    aligned,
    asked_names,
    assigned,
    check_partitions,
    chosen,
    label_index,
    unweighted,
)
from smxgb.rows.prefetch import in_order
from smxgb.rows.readers.csv.blocks import (
    CsvBlock,
    block_size,
    can_be_cut,
    line_end,
    read_blocks,
    read_part,
)
from smxgb.rows.readers.csv.cells import Cells
from smxgb.rows.readers.csv.dialect import (
    SAMPLE,
    check_blanks,
    check_text,
    find_delimiter,
    first_records,
    shown_cells,
)
from smxgb.rows.readers.csv.evidence import Known, counting
from smxgb.rows.readers.csv.header import Head, read_head
from smxgb.rows.readers.csv.spelling import LETTERS, TRUTH, kind, truths
from smxgb.rows.readers.reader import Reader
from smxgb.rows.readers.row_rules import is_unrounded, merged, shown_columns, with_infinities_told
from smxgb.rows.readers.streams import beginning, open_streams
from smxgb.rows.schema import Declared

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from smxgb.rows.batch import Batch
    from smxgb.rows.readers.reader import Request
    from smxgb.rows.readers.streams import Stream
    from smxgb.rows.schema import Layout

__all__ = ["can_be_cut", "open_channel"]

WHOLE_VALUED = re.compile(r"[+-]?\d{1,30}(\.0*)?", re.ASCII)


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


def open_channel(request: Request) -> Reader:
    """Return the reader of a channel of CSV files: the first file that has a record tells what all hold.

    Raises UserError as `smxgb.rows.readers.open_reader` does.
    """
    heads = _Heads(request)
    # Files before the first one with rows hold a header at most.
    start, streams = beginning(open_streams(request.channel), heads.look)
    start = start or heads.start
    if start is None:
        raise UserError(f"channel {request.channel.name}: none of its files holds a record.")
    like = request.like
    declared = like if like and like.layout else Declared(start.layout)
    sizes = (max(0, file.size * start.inflation - start.header_bytes) for file in request.channel.files)
    expected = round(sum(sizes) / start.record_bytes)
    return Reader(declared, _Pass(request, heads, start, declared.names or (), streams).batches, expected)


@dataclass(frozen=True)
class _Pass:
    """The one pass over the rows of `streams`, whose features have `names`."""

    request: Request
    heads: _Heads
    start: _Start
    names: tuple[str, ...]
    streams: Iterator[Stream]

    def batches(self, wanted: tuple[str, ...]) -> Iterator[Batch]:
        """Yield all rows with the wanted features; a bounded number of blocks is in work."""
        layout = self.start.layout
        blocks = self._blocks(wanted)
        parts = in_order(lambda cells, block: cells.part(block), blocks, self.request.threads)
        told = with_infinities_told(parts, self.request.channel, shown_columns(layout))
        return merged(told, tuple(role for role, _ in layout.roles), wanted)

    def _blocks(self, wanted: tuple[str, ...]) -> Iterator[tuple[Cells, CsvBlock]]:
        start = self.start
        size = block_size(start.record_bytes)
        for stream in self.streams:
            source = stream.source
            blocks = read_blocks(stream, start.delimiter, size)
            first = next(blocks, None)
            if first is None:
                continue
            check_text(first.data, source)
            head = self.heads.read(first.data, start.delimiter, source, start.layout, start.source)
            if head is None:
                continue
            layout = aligned(start.layout, head.names, head.width, source, start.source)
            features = chosen(layout, self.names, wanted)
            headless = head.names is None
            rows = first_records(first.data[head.start :], start.delimiter, SAMPLE)
            cells = Cells(
                stream.file.path,
                source,
                start.delimiter,
                layout,
                features,
                self.request.settings,
                head.start,
                headless,
                frozenset(holding(rows, TRUTH)),
            )
            if stream.file.is_part:
                blocks = read_part(stream.file, source, start.delimiter, size, head.start)
            elif len(first.data) > head.start:
                lines = first.data.count(line_end(first.data), 0, head.start)
                yield cells, CsvBlock(first.data[head.start :], head.start, lines)
            for block in blocks:
                yield cells, block


class _Heads:
    """Reads the heads of a channel's files; `start` is what the first one with a record decides."""

    def __init__(self, request: Request) -> None:
        self.start: _Start | None = None
        self._channel = request.channel
        self._settings = request.settings
        self._like = request.like
        self._told = False

    def look(self, stream: Stream) -> _Start | None:
        """Return what the files so far decide, measured by the rows of this one; None if it has none."""
        chosen = self.start.delimiter if self.start else self._settings.delimiter
        first = next(read_blocks(stream, "," if chosen == "auto" else chosen), None)
        if first is None:
            return None
        check_text(first.data, stream.source)
        self.start = start = self.start or self._decided(first.data, stream.source)
        if start is None:
            return None
        head = self.read(first.data, start.delimiter, stream.source, start.layout, start.source)
        rows = first.data[head.start :].rstrip(b"\r\n") if head else b""
        if not rows:
            return None
        lines = rows.count(line_end(first.data)) + 1
        return replace(start, record_bytes=(len(rows) + 1) / lines, inflation=stream.inflation)

    def _decided(self, data: bytes, source: str) -> _Start | None:
        """Return what the beginning of the first file decides, None if it has no record."""
        chosen = self._settings.delimiter
        delimiter = find_delimiter(data) if chosen == "auto" else chosen
        check_blanks(data, delimiter, source)
        others = self._like.layout if self._like else None
        head = self.read(data, delimiter, source, others, "train")
        if head is None:
            return None
        rows = first_records(data[head.start :], delimiter, SAMPLE)
        layout = self._first_layout(head, rows, source)
        header = "a" if head.names else "no"
        log(f"{source}: delimiter {delimiter!r}, {header} header, {head.width} columns.")
        return _Start(delimiter, source, layout, head.start)

    def read(
        self, data: bytes, delimiter: str, source: str, others: Layout | None, first: str
    ) -> Head | None:
        """Return the head of a file; `others` is the layout of the files before it, as those of `first`.

        Where they have no header, this one has none either: what looks like it may be a row with a bad value.
        """
        header = self._settings.header
        names = others.columns if others else None
        known = Known(label_index(self._settings), asked_names(self._settings))
        head = read_head(data, delimiter, header, source, known=known, like=names)
        if head is None or others is None or header != "auto":
            return head
        if head.names and others.columns is None:
            raise UserError(
                f"{source}: its first record ({shown_cells(head.names)}) looks like a header, and "
                f"{first} has none: correct the record, or write a header into every file or into none."
            )
        if head.names is None and others.columns is not None and not self._told:
            self._told = True
            log(f"{source} has no header: its columns are taken in the order of {first}'s.")
        return head

    def _first_layout(self, head: Head, rows: list[list[str]], source: str) -> Layout:
        check_partitions(self._channel.name, head.names, self._settings)
        if self._like is None or self._like.layout is None:
            layout = assigned(head.names, head.width, self._settings, source, partial(counting, rows))
            return replace(layout, letters=holding(rows, LETTERS), unrounded=_unrounded(rows))
        expected = self._like.layout
        if (
            self._settings.csv_weights
            and "weight" in dict(expected.roles)
            and head.width == expected.width - 1
        ):
            log(f"{source} has one column fewer than train: its rows have no weights.")
            expected = unweighted(expected)
        return aligned(expected, head.names, head.width, source, "train")


def holding(rows: Sequence[Sequence[str]], spelled: Mapping[str, float]) -> tuple[int, ...]:
    """Return the positions in the first records at which each value is a truth value that is so `spelled`."""
    found: list[int] = []
    for position, column in enumerate(zip(*rows, strict=False)):
        # Most columns hold no such word at all, which costs less to see.
        if any(cell.strip() in spelled for cell in column):
            words = [None if kind(cell) == "missing" else cell.strip() for cell in column]
            found += [position] if truths(words, spelled) else []
    return tuple(found)


def _unrounded(rows: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return the positions in the first records at which float32 takes no digits from whole numbers."""
    columns = (
        [cell.strip() for cell in column if kind(cell) != "missing"] for column in zip(*rows, strict=False)
    )
    return frozenset(
        position
        for position, held in enumerate(columns)
        if not all(map(WHOLE_VALUED.fullmatch, held))
        or is_unrounded([int(cell.split(".")[0]) for cell in held])
    )
