"""Streams: the bytes of a channel's files, decompressed, in order, each byte read once."""

from __future__ import annotations

import io
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from smxgb.errors import JobError, UserError
from smxgb.readers.framing import payloads
from smxgb.readers.pipe import Pipe
from smxgb.readers.rows import shown_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smxgb.channels import Channel, DataFile

OPEN_AHEAD = 4
"""Files that are opened, and whose first bytes are read, before they are needed: each costs a round trip."""

HEAD_BYTES = 1 << 20
"""Bytes that are read of a file that is opened ahead."""

GZIP, BZIP2, ZSTD = b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"
"""The first bytes of compressed files (RFC 1952; bzip2's manual; RFC 8878)."""


class Readable(Protocol):
    """Anything with bytes to read."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""


class Stream:
    """The decompressed bytes of a file; `source` is the file as messages show it."""

    def __init__(self, source: str, content: Readable, file: DataFile, raw: _Joined | None = None) -> None:
        self.source = source
        self.file = file
        self._content = content
        self._raw = raw
        self._came = 0
        self._seen: list[bytes] | None = None

    @property
    def inflation(self) -> float:
        """About how many bytes have come of each byte of the file so far: 1 where it is not compressed."""
        return max(1.0, self._came / self._raw.given) if self._raw and self._raw.given else 1.0

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end. Raises UserError if the file is damaged or cut off."""
        try:
            data = filled(self._content.read, size)
        except (EOFError, ValueError, pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise UserError(
                f"{self.source} can't be decompressed: it is damaged or cut off. Write or upload it again."
            ) from error
        self._came += len(data)
        if self._seen is not None:
            self._seen.append(data)
        return data

    @contextmanager
    def look(self) -> Iterator[None]:
        """Have what is read inside come again afterwards."""
        self._seen = []
        try:
            yield
        finally:
            seen = b"".join(self._seen)
            self._content = _Joined(seen, self._content.read)
            self._came -= len(seen)
            self._seen = None


def open_streams(channel: Channel) -> Iterator[Stream]:
    """Yield a stream for each file of a channel, or its pipe; each must be read before the next is asked for.

    Raises what a pipe raises, and UserError for a file that is damaged or cut off.
    """
    opened: deque[_Opening] = deque()
    with ThreadPoolExecutor(OPEN_AHEAD, thread_name_prefix="open-ahead") as pool:
        try:
            for file in channel.files:
                opened.append(_Opening(channel, file, pool))
                if len(opened) > OPEN_AHEAD:
                    yield from opened.popleft().streams()
            while opened:
                yield from opened.popleft().streams()
        finally:
            for opening in opened:
                opening.close()


def filled(read: Callable[[int], bytes], size: int) -> bytes:
    """Return `size` bytes, fewer only at the end, of what may give fewer at a time."""
    chunk = read(size)
    if len(chunk) in {0, size}:
        return chunk
    parts = [chunk]
    missing = size - len(chunk)
    while missing and (chunk := read(missing)):
        parts.append(chunk)
        missing -= len(chunk)
    return b"".join(parts)


class _Opening:
    """A file or pipe that is being opened in another thread."""

    def __init__(self, channel: Channel, file: DataFile, pool: ThreadPoolExecutor) -> None:
        self.channel = channel
        self.source = shown_file(channel, file)
        self._file = file
        self._begun = pool.submit(self._begin)

    def streams(self) -> Iterator[Stream]:
        """Yield the file's stream, or that of each file that a pipe has wrapped; close it afterwards."""
        try:
            raw, head = self._begun.result()
            joined = _Joined(head, raw.read)
            stream = Stream(self.source, decompressed(joined), self._file, joined)
            if self.channel.wrapped:
                for number, payload in enumerate(payloads(stream), 1):
                    yield Stream(f"{self.source}, file {number}", decompressed(payload), self._file)
            else:
                yield stream
        finally:
            self.close()

    def close(self) -> None:
        with suppress(JobError, OSError):
            self._begun.result()[0].close()

    def _begin(self) -> tuple[io.FileIO | Pipe, bytes]:
        raw = (
            Pipe(self._file.path) if self.channel.mode == "Pipe" else self._file.path.open("rb", buffering=0)
        )
        try:
            return raw, raw.read(HEAD_BYTES)
        except BaseException:
            raw.close()
            raise


class _Joined(io.RawIOBase):
    """What was read of a file already, then the rest of it."""

    def __init__(self, head: bytes, read: Callable[[int], bytes]) -> None:
        self.given = 0
        self._head = memoryview(head)
        self._read = read

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        chunk = bytes(self._head[:size])
        self._head = self._head[len(chunk) :]
        chunk = chunk or self._read(size)
        self.given += len(chunk)
        return chunk

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        chunk = self.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


def is_compressed(head: bytes) -> bool:
    """Return whether a file that begins with `head` is compressed."""
    return head.startswith((GZIP, BZIP2, ZSTD))


def decompressed(raw: Readable) -> Readable:
    """Return the stream, decompressed if its first bytes are those of gzip, bzip2 or zstd."""
    head = filled(raw.read, len(ZSTD))
    joined = _Joined(head, raw.read)
    if head.startswith(BZIP2):
        import bz2  # noqa: PLC0415 - hardly ever needed; Arrow's own stumbles over an empty member

        return bz2.BZ2File(joined)
    codec = "gzip" if head.startswith(GZIP) else "zstd" if head.startswith(ZSTD) else None
    return joined if codec is None else pa.CompressedInputStream(pa.PythonFile(joined, mode="r"), codec)
