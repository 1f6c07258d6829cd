"""Streams: the bytes of a channel's files, decompressed, in order, each byte read once."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from smxgb.errors import JobError, UserError
from smxgb.job import ListedFile, Rejoined, decompressed, foreign, is_compressed, read_fully
from smxgb.log import log
from smxgb.rows.readers.pipe import Pipe
from smxgb.rows.readers.recordio_framing import payloads
from smxgb.rows.readers.row_rules import shown_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from smxgb.job import Channel, DataFile, Readable

PREFETCHED_FILES = 4
"""Files that are opened, and whose first bytes are read, before they are needed: each costs a round trip."""

HEAD_BYTES = 1 << 20
"""Bytes that are read of a file before they are needed."""


class Stream:
    """The decompressed bytes of a file; `source` is the file as messages show it."""

    def __init__(
        self,
        source: str,
        content: Readable,
        file: DataFile,
        raw: Rejoined | None = None,
        *,
        is_plain_pipe: bool = False,
    ) -> None:
        self.source = source
        self.file = file
        self._is_plain_pipe = is_plain_pipe
        self._content = content
        self._raw = raw
        self._came = 0
        self._seen: list[bytes] | None = None

    @property
    def inflation(self) -> float:
        """About how many bytes have come of each byte of the file so far: 1 where it is not compressed."""
        return max(1.0, self._came / self._raw.given) if self._raw and self._raw.given else 1.0

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end.

        Raises UserError if the file is damaged or cut off, or compressed in a way that is not read.
        """
        try:
            data = read_fully(self._content.read, size)
        except (EOFError, ValueError, pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise UserError(
                f"{self.source} can't be decompressed: it is damaged or cut off. Write or upload it again."
            ) from error
        if not self._came:
            self._check_compression(data)
        self._came += len(data)
        if self._seen is not None:
            self._seen.append(data)
        return data

    def text_ended(self, last: bytes) -> None:
        """Say that a text may be cut off, if it came through a pipe and its last byte, `last`, ends no line.

        A pipe doesn't tell how long it should be; what is packed or wrapped shows itself where it is cut.
        """
        if self._is_plain_pipe and last not in {b"\n", b"\r"}:
            log(f"{self.source} ended without a line end: its last record may be cut off.")

    def _check_compression(self, head: bytes) -> None:
        name = foreign(head)
        if name:
            raise UserError(
                f"{self.source} is compressed with {name}, which is not read: compress it with gzip, bzip2 "
                "or zstd, or not at all."
            )
        if is_compressed(head):
            raise UserError(f"{self.source} is compressed twice: compress it once.")

    @contextmanager
    def look(self) -> Iterator[None]:
        """Have what is read inside come again afterwards."""
        self._seen = []
        try:
            yield
        finally:
            seen = b"".join(self._seen)
            self._content = Rejoined(seen, self._content.read)
            self._came -= len(seen)
            self._seen = None


def open_streams(channel: Channel) -> Iterator[Stream]:
    """Yield a stream for each file of a channel, or its pipe; each must be read before the next is asked for.

    Raises what a pipe raises, and UserError for a file that is damaged or cut off.
    """
    opened: deque[_Opening] = deque()
    with ThreadPoolExecutor(PREFETCHED_FILES, thread_name_prefix="prefetch-file") as pool:
        try:
            for file in channel.files:
                opened.append(_Opening(channel, file, pool))
                if len(opened) > PREFETCHED_FILES:
                    yield from opened.popleft().streams()
            while opened:
                yield from opened.popleft().streams()
        finally:
            for opening in opened:
                opening.close()


def beginning[T](
    streams: Iterator[Stream], look: Callable[[Stream], T | None]
) -> tuple[T | None, Iterator[Stream]]:
    """Return what `look` finds in the first stream in which it finds anything, and the streams from it on.

    What was read to look comes again. Streams in which nothing was found are done with. Without any find,
    the first value is None and there are no streams.
    """
    for stream in streams:
        with stream.look():
            found = look(stream)
        if found is not None:
            return found, _again(stream, streams)
    return None, iter(())


def _again(first: Stream, rest: Iterator[Stream]) -> Iterator[Stream]:
    yield first
    yield from rest


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
            joined = Rejoined(head, raw.read)
            content = decompressed(joined)
            is_plain_pipe = self.channel.mode == "Pipe" and isinstance(content, Rejoined)
            stream = Stream(self.source, content, self._file, joined, is_plain_pipe=is_plain_pipe)
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

    def _begin(self) -> tuple[ListedFile | Pipe, bytes]:
        raw = Pipe(self._file.path) if self.channel.mode == "Pipe" else ListedFile(self._file)
        try:
            return raw, raw.read(HEAD_BYTES)
        except BaseException:
            raw.close()
            raise
