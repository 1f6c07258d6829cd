"""Compressed files: recognised by their first bytes, and decompressed as they are read."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

GZIP, BZIP2, ZSTD = b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"
"""The first bytes of files that are read (RFC 1952; bzip2's manual; RFC 8878)."""

SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
"""How a skippable frame of zstd begins, which some programs write before the data (RFC 8878)."""

FOREIGN = {
    b"\xfd7zXZ\0": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"\x02\x21\x4c\x18": "lz4",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"\x1f\x9d": "compress",
}
"""The first bytes of files that are not read."""

CHUNK_BYTES = 1 << 16
"""Bytes of a bzip2 file that are read at a time."""

SUFFIXES = frozenset({".gz", ".gzip", ".bz2", ".zst", ".zstd"})
"""The last extensions of compressed files; before it stands the extension of what they hold."""


class Readable(Protocol):
    """Anything with bytes to read."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""


class Rejoined(io.RawIOBase):
    """A stream of which the first bytes have been read already: it gives them again, then the rest."""

    def __init__(self, head: bytes, read: Callable[[int], bytes]) -> None:
        self.given = 0
        self._head = memoryview(head)
        self._read = read

    def readable(self) -> bool:
        """Return True, for Python's own wrappers ask."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        chunk = bytes(self._head[:size])
        self._head = self._head[len(chunk) :]
        chunk = chunk or self._read(size)
        self.given += len(chunk)
        return chunk

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer with what one read gives, and return the number of bytes."""
        chunk = self.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


def read_fully(read: Callable[[int], bytes], size: int) -> bytes:
    """Return the next `size` bytes, fewer only at the end, even if each read gives fewer."""
    chunk = read(size)
    if len(chunk) in {0, size}:
        return chunk
    parts = [chunk]
    missing = size - len(chunk)
    while missing and (chunk := read(missing)):
        parts.append(chunk)
        missing -= len(chunk)
    return b"".join(parts)


def is_compressed(head: bytes) -> bool:
    """Return whether a file that begins with `head` is compressed with gzip, bzip2 or zstd."""
    return head.startswith((GZIP, BZIP2)) or _is_zstd(head)


def foreign(head: bytes) -> str | None:
    """Return the name of the compression, which is not read, of a file that begins with `head`."""
    return next((name for magic, name in FOREIGN.items() if head.startswith(magic)), None)


def decompressed(raw: Readable) -> Readable:
    """Return the stream, decompressed if its first bytes are those of gzip, bzip2 or zstd.

    Where the file is damaged or cut off, reading from the result raises EOFError, ValueError, an OSError
    without errno, or an error of Arrow.
    """
    head = read_fully(raw.read, len(ZSTD))
    joined = Rejoined(head, raw.read)
    if not is_compressed(head):
        return joined
    if head.startswith(BZIP2):
        return _Bzip2(joined)
    import pyarrow as pa  # noqa: PLC0415 - the names of content types need no Arrow

    codec = "zstd" if _is_zstd(head) else "gzip"
    stream: Readable = pa.CompressedInputStream(pa.PythonFile(joined, mode="r"), codec)
    return stream


class _Bzip2:
    """The content of one member of bzip2 after the other: what follows a member must be another one.

    Python's BZ2File ends at what is none, as at a damaged member; Arrow's own fails at an empty one.
    """

    def __init__(self, raw: Readable) -> None:
        from bz2 import BZ2Decompressor  # noqa: PLC0415 - rarely needed

        self._raw = raw
        self._new_member = BZ2Decompressor
        self._member = BZ2Decompressor()

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        while True:
            given = b""
            if self._member.eof:
                given = self._member.unused_data or self._raw.read(CHUNK_BYTES)
                if not given:
                    return b""
                self._member = self._new_member()
            elif self._member.needs_input:
                given = self._raw.read(CHUNK_BYTES)
                if not given:
                    raise EOFError("a member of bzip2 is cut off")
            data = self._member.decompress(given, size)
            if data:
                return data


def _is_zstd(head: bytes) -> bool:
    return head.startswith(ZSTD) or SKIPPABLE.match(head) is not None
