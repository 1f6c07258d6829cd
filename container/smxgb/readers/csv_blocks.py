"""Blocks of a text file that end where a record ends, read in order, each byte once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smxgb.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smxgb.readers.streams import Stream

BLOCK_BYTES = 1 << 20
"""Small blocks stay in the caches and in buffers at hand: 8 MB ones parse at half the speed."""

BLOCK_ROWS = 256
"""Rows that a block of a very wide table has at least: each column of a block costs some microseconds."""

LONGEST_RECORD = 64 << 20
"""A record beyond this is taken for a file that is no CSV, or for a quote that is never closed."""


@dataclass(frozen=True)
class Block:
    """Whole records; `offset` bytes and `line` lines of the file come before them."""

    data: bytes
    offset: int
    line: int = 0


def read_blocks(stream: Stream, delimiter: str, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield a stream in blocks of about `size` bytes; only the last may end without a line end.

    A line end inside a quoted field ends no record. Raises UserError for a record that is longer than
    `LONGEST_RECORD`.
    """
    held = b""
    offset = line = 0
    while chunk := stream.read(size):
        held = held + chunk if held else chunk
        end = len(held) if len(chunk) < size else _last_record_end(held, delimiter)
        if end:
            block = Block(held[:end], offset, line)
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
        yield Block(held, offset, line)


def block_size(record_bytes: float) -> int:
    """Return the bytes of a block for records of this length."""
    return int(min(max(BLOCK_BYTES, BLOCK_ROWS * record_bytes), LONGEST_RECORD))


def line_end(data: bytes) -> bytes:
    """Return what ends the lines: a carriage return only where there is no line feed."""
    return b"\r" if b"\n" not in data and b"\r" in data else b"\n"


def open_quote(data: bytes, delimiter: str) -> int:
    """Return where a quoted field begins that is not closed, or -1. `data` begins where a record begins."""
    before = b"[\\r\\n" + re.escape(delimiter).encode() + b"]"
    fields = re.compile(rb"(?:^|(?<=" + before + rb'))"[^"]*+(?:""[^"]*+)*+("?)')
    last = None
    for last in fields.finditer(data):  # noqa: B007 - only the last one is of interest
        pass
    return -1 if last is None or last[1] else last.start()


def _last_record_end(data: bytes, delimiter: str) -> int:
    newline = line_end(data)
    end = data.rfind(newline) + 1
    # An even number of quotes leaves none open; stray ones inside a field are rare enough for the slow look.
    if not end or b'"' not in data or data.count(b'"', 0, end) % 2 == 0:
        return end
    quote = open_quote(data[:end], delimiter)
    return end if quote < 0 else data.rfind(newline, 0, quote) + 1
