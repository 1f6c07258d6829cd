"""Blocks of a text file that end where a record ends, read in order, each byte once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from smxgb.errors import UserError
from smxgb.job import ListedFile, is_compressed
from smxgb.rows.readers.csv.quotes import QUOTE, quotes_of
from smxgb.rows.readers.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from smxgb.job import DataFile, Readable

BLOCK_BYTES = 1 << 20
"""Blocks of 1 MB stay in the processor's caches: blocks of 8 MB parse at half the speed."""

BLOCK_ROWS = 256
"""Rows that a block of a very wide table has at least: each column of a block costs some microseconds."""

LONGEST_RECORD = 64 << 20
"""A longer record means that the file is not CSV, or that a quote is never closed."""

SAMPLED_BYTES = 65_536
"""Bytes of a whole file that are looked at for what would keep it from being cut."""

BLANKS = b" \r\n"
"""What a file without a record may hold; tabs set apart values."""


@dataclass(frozen=True)
class CsvBlock:
    """Whole records; `offset` bytes and `line` lines of the file come before them, None if not counted."""

    data: bytes
    offset: int
    line: int | None = None


def read_blocks(
    stream: Stream, delimiter: str, size: int = BLOCK_BYTES, begin: int = 0
) -> Iterator[CsvBlock]:
    """Yield a stream, which begins at byte `begin` of its file, in blocks of about `size` bytes.

    Only the last may end without a line end. The first holds two records, if there are so many: a header
    alone tells nothing of the rows.

    A line end inside a quoted field ends no record. Raises UserError for a record that is longer than
    `LONGEST_RECORD`.
    """
    held = last = b""
    offset, line = begin, 0
    while chunk := stream.read(size):
        held = held + chunk if held else chunk
        last = chunk[-1:]
        is_last = len(chunk) < size
        end = len(held) if is_last else _last_record_end(held, delimiter)
        if end and (is_last or offset > begin or _has_two_records(held[:end], delimiter)):
            block = CsvBlock(held[:end], offset, line)
            yield block
            offset += end
            line += block.data.count(line_end(block.data))
            held = held[end:]
        elif len(held) > LONGEST_RECORD:
            raise UserError(
                f"{stream.source}, after byte {offset:,}: no record ends within {LONGEST_RECORD >> 20} MB. "
                "The file is not CSV, or a quoted field is never closed."
            )
    if held:
        yield CsvBlock(held, offset, line)
    stream.text_ended(last)


def read_part(file: DataFile, source: str, delimiter: str, size: int, start: int) -> Iterator[CsvBlock]:
    """Yield the records that begin in a part of a file, whose data begin at byte `start`.

    The blocks don't know how many lines come before them. Raises UserError for a quote: in the middle of a
    file, nothing tells whether one is open.
    """
    begin, end = max(file.begin, start), file.end
    is_cut = begin > 0  # what stands before the first line end began in an earlier part
    with ListedFile(file) as opened:
        place = opened.seek(max(0, begin - 1))
        stream = Stream(source, _Unquoted(opened, source), file)
        for block in read_blocks(stream, delimiter, size, place):
            data, offset = block.data, block.offset
            if is_cut:
                first = data.find(line_end(data)) + 1
                if not first:  # the file's last record, which has no line end
                    return
                data, offset = data[first:], offset + first
                is_cut = False
            if offset >= end:
                file.check()
                return
            if offset + len(data) >= end:
                file.check()
                newline = data.find(line_end(data), end - 1 - offset)
                yield CsvBlock(data[: newline + 1] if newline >= 0 else data, offset)
                return
            if data:
                yield CsvBlock(data, offset)


def can_be_cut(file: DataFile) -> bool:
    """Tell whether no line end stands inside quotes and no byte is compressed, as far as the bytes tell.

    Of a whole file the first bytes are looked at, of a part all of them.
    """
    if not file.is_part:
        with file.path.open("rb") as stream:
            head = stream.read(SAMPLED_BYTES)
        return QUOTE not in head and not is_compressed(head)
    left = file.size
    with file.path.open("rb", buffering=0) as opened:
        opened.seek(file.begin)
        while left > 0 and (chunk := opened.read(min(left, BLOCK_BYTES))):
            if QUOTE in chunk:
                return False
            left -= len(chunk)
    return True


class _Unquoted:
    """The bytes of a file that is cut, which must hold no quote."""

    def __init__(self, opened: Readable, source: str) -> None:
        self._opened = opened
        self._source = source

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        data = self._opened.read(size)
        if QUOTE in data:
            raise UserError(
                f"{self._source} is cut between workers, for there are fewer files than workers, and text in "
                "it is quoted, in which a line end can't be told from a record's end: give at least as many "
                "files as workers, use input mode File, or write the file without quotes."
            )
        return data


def block_size(record_bytes: float) -> int:
    """Return the bytes of a block for records of this length."""
    return int(min(max(BLOCK_BYTES, BLOCK_ROWS * record_bytes), LONGEST_RECORD))


def line_end(data: bytes) -> bytes:
    """Return what ends the lines: a carriage return only where there is no line feed."""
    return b"\r" if b"\n" not in data and b"\r" in data else b"\n"


def is_blank(data: bytes) -> bool:
    """Tell whether there is no record."""
    return not data[:1].strip(BLANKS) and not data.strip(BLANKS)


def lines_before(path: Path, offset: int) -> int:
    """Return how many lines end before a byte: the file is read again, which only a mistake is worth."""
    count = 0
    newline = b""
    with path.open("rb", buffering=0) as file:
        while offset > 0 and (chunk := file.read(min(BLOCK_BYTES, offset))):
            newline = newline or line_end(chunk)
            count += chunk.count(newline)
            offset -= len(chunk)
    return count


def _has_two_records(data: bytes, delimiter: str) -> bool:
    """Tell whether whole records are more than one, or one that is too long to look for another."""
    body = data.strip(BLANKS)
    return len(body) > LONGEST_RECORD or _last_record_end(body, delimiter) > 0


def _last_record_end(data: bytes, delimiter: str) -> int:
    """Return where the last record ends that ends in `data`, 0 if none does; a record begins with `data`."""
    newline = line_end(data)
    place = data.rfind(newline)
    if place < 0 or QUOTE not in data:
        return place + 1
    quotes = quotes_of(data[:place], delimiter)
    while place >= 0 and (before := int(np.searchsorted(quotes, place))) % 2:
        place = data.rfind(newline, 0, int(quotes[before - 1]))
    return place + 1
