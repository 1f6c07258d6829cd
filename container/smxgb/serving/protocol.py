"""The protocol of a connection: uvicorn's, with limits for what comes before a request's body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

HEAD_BYTES = 1 << 16
"""Bytes of a request line with headers at most."""

HEAD_SECONDS = 20
"""Seconds in which a connection must begin with a request, and a request's headers must be there."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that is closed if it sends too much before a body, or too little."""

    _head_bytes = 0
    _in_head = True
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._expire)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come; headers of too many bytes are refused."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The request's headers have too many bytes.")

    def on_message_begin(self) -> None:
        """Begin to wait for the headers of a request."""
        self._in_head, self._head_bytes = True, 0
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._expire)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Let the application begin."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if not self.transport.is_closing():
            self.send_400_response("No whole request has come in time.")
