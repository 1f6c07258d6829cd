"""RecordIO's framing: records of bytes, each behind a magic number and its length, maybe in several parts.

The form is MXNet's: two little-endian 32-bit words, the magic, and 3 bits for the part with 29 for the
length; then the bytes, padded to a multiple of 4. The parts of one record are joined as they are, as AWS's
own reader does.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol

from smxgb.errors import UserError
from smxgb.job import RECORDIO_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator


class Source(Protocol):
    """Bytes of a file or pipe, which messages call `source`."""

    source: str

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""


MAGIC = int.from_bytes(RECORDIO_MAGIC, "little")
HEADER = struct.Struct("<II")
LENGTH_BITS = 29
WHOLE, BEGIN, MIDDLE, END = range(4)
"""The parts of a record."""


@dataclass(frozen=True)
class FramePart:
    """The header of a part of a record; `size` counts the bytes behind it, without those that pad."""

    kind: int
    size: int

    @property
    def padding(self) -> int:
        """The bytes that fill up to a multiple of 4."""
        return -self.size % 4

    @property
    def is_last(self) -> bool:
        """Whether the record ends with this part."""
        return self.kind in {WHOLE, END}


def read_header(stream: Source, number: int, *, inside: bool) -> FramePart | None:
    """Return the header of the next part, None at the end; `inside` says that a record has begun before it.

    Raises UserError, naming the record, if there is no such header.
    """
    data = stream.read(HEADER.size)
    if not data and not inside:
        return None
    if len(data) < HEADER.size:
        cut_off(stream.source, number)
    return parse_header(data, 0, stream.source, number, inside=inside)


def parse_header(data: bytes, offset: int, source: str, number: int, *, inside: bool) -> FramePart:
    """Return the header at a place in `data`. Raises UserError, naming the record, if none is there."""
    magic, word = HEADER.unpack_from(data, offset)
    if magic != MAGIC:
        raise UserError(
            f"{source}, record {number}: it does not begin with RecordIO's magic number 0xced7230a but with "
            f"{magic:#010x}. The file is damaged, or no RecordIO."
        )
    part = FramePart(word >> LENGTH_BITS, word & ((1 << LENGTH_BITS) - 1))
    if part.kind not in ({MIDDLE, END} if inside else {WHOLE, BEGIN}):
        raise UserError(
            f"{source}, record {number}: its parts are not in order (a part of kind {part.kind} "
            f"{'inside' if inside else 'outside'} a record). The file is damaged."
        )
    return part


def cut_off(source: str, number: int) -> NoReturn:
    """Raise UserError for a file that ends inside a record."""
    raise UserError(f"{source}, record {number}: the file ends inside it. Write or upload it again.")


class Payload:
    """The bytes of one record of a stream, to be read in pieces."""

    def __init__(self, stream: Source, number: int, first: FramePart) -> None:
        self._stream = stream
        self._number = number
        self._part = first
        self._left = first.size

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end. Raises UserError if the stream ends before it."""
        while not self._left:
            self._stream.read(self._part.padding)
            if self._part.is_last:
                self._part = FramePart(END, 0)
                return b""
            part = read_header(self._stream, self._number, inside=True)
            if part is not None:
                self._part, self._left = part, part.size
        data = self._stream.read(min(size, self._left))
        if not data:
            cut_off(self._stream.source, self._number)
        self._left -= len(data)
        return data


def payloads(stream: Source) -> Iterator[Payload]:
    """Yield the records of a stream; each must be read before the next is asked for."""
    number = 1
    while (part := read_header(stream, number, inside=False)) is not None:
        payload = Payload(stream, number, part)
        yield payload
        while payload.read(1 << 20):
            pass
        number += 1
