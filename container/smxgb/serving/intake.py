"""The intake of requests: their bodies, within limits of size, time, and number at once."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from smxgb.serving.service import SPOOLED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    type Receive = Callable[[], Awaitable[dict[str, Any]]]


class RefusedError(Exception):
    """A request that is not taken in: the status, and why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class GoneError(Exception):
    """The client has closed the connection before its request was whole."""


@dataclass(frozen=True)
class TakenBody:
    """The body of a request: bytes, or a file that stands at its beginning, and its size."""

    content: bytes | BinaryIO
    size: int


async def take_body(
    receive: Receive, headers: Mapping[bytes, bytes], largest: int | None, seconds: float
) -> TakenBody:
    """Return the body of a request.

    Raises:
        RefusedError: If it has more than `largest` bytes, or does not arrive within `seconds`.
        GoneError: If the client went away.
    """
    length = headers.get(b"content-length", b"")
    if largest is not None and length.isdigit() and int(length) > largest:
        raise _too_large(largest)
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
            body: bytes = message.get("body", b"")
            _check(message, len(body), largest)
            if not message.get("more_body"):
                return TakenBody(body, len(body))
            return await _gathered(receive, body, largest)
    except TimeoutError:
        raise RefusedError(408, f"The body did not arrive within {seconds:g} s.") from None


async def _gathered(receive: Receive, first: bytes, largest: int | None) -> TakenBody:
    """Return a body that comes in several parts; a large one in a file."""
    parts, size = [first], len(first)
    file: BinaryIO | None = None
    more = True
    try:
        while more:
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            _check(message, size, largest)
            parts.append(part)
            more = message.get("more_body", False)
            if size > SPOOLED:
                file = file or cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - who uses it closes it
                file.writelines(parts)
                parts = []
    except BaseException:
        if file:
            file.close()
        raise
    if file is None:
        return TakenBody(b"".join(parts), size)
    file.seek(0)
    return TakenBody(file, size)


def _check(message: Mapping[str, Any], size: int, largest: int | None) -> None:
    """Raise for a message that a client has gone, and for one with which a body is too large."""
    if message["type"] == "http.disconnect":
        raise GoneError
    if largest is not None and size > largest:
        raise _too_large(largest)


def _too_large(largest: int) -> RefusedError:
    return RefusedError(413, f"The body has more than {largest:,} bytes, which MAX_CONTENT_LENGTH sets.")


class Gate:
    """Lets in so many requests at once, and refuses the others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Count a request while the block runs. Raises RefusedError if there are too many already."""
        if self._inside >= self._most:
            raise RefusedError(503, "Too many requests wait already: try again later.")
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
