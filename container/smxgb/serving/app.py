"""The application: the routes of SageMaker's endpoints, as ASGI (https://asgi.readthedocs.io)."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, BinaryIO

from smxgb.serving.endpoint import MIB, PAYLOAD_MIB
from smxgb.serving.intake import Gate, GoneError, RefusedError, take_body
from smxgb.serving.service import Request, Response, refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from concurrent.futures import Executor

    from smxgb.serving.endpoint import Endpoint
    from smxgb.serving.fleet import Fleet
    from smxgb.serving.intake import Receive
    from smxgb.serving.service import Service

    type Send = Callable[[dict[str, Any]], Awaitable[None]]
    type Scope = Mapping[str, Any]

SENT_BYTES = 1 << 18
WAITING = 64
"""Requests that wait for each thread at most."""


class App:
    """Answers the requests of an endpoint.

    `service` predicts, in this thread if that is quick, else in one of the `threads` of `pool`. After
    `drain`, each response asks the client to close its connection.
    """

    def __init__(self, endpoint: Endpoint, service: Service, pool: Executor, threads: int) -> None:
        self._endpoint = endpoint
        self._service = service
        self._pool = pool
        self._threads = threads
        self._gate = Gate(threads * (1 + WAITING))
        self._is_draining = False

    def drain(self) -> None:
        """Have clients close their connections."""
        self._is_draining = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            response = await self._routed(scope, receive)
        except GoneError:
            return
        except RefusedError as error:
            response = refusal(error.status, error.text, _request(scope, b"", 0))
        await self._send(response, send)

    async def _routed(self, scope: Scope, receive: Receive) -> Response:
        match scope["method"], scope["path"]:
            case "POST", "/invocations":
                return await self._invoked(self._service, scope, receive)
            case "GET", "/ping":
                return Response(200)
            case "GET", "/execution-parameters":
                return self._parameters()
            case _, "/invocations" | "/ping" | "/execution-parameters":
                return Response(405, b"This path takes another method.")
        return await self._other(scope, receive)

    async def _other(self, scope: Scope, receive: Receive) -> Response:  # noqa: ARG002 - as that of several models
        return Response(404, f"There is no path {scope['path']}.".encode())

    async def _invoked(self, service: Service, scope: Scope, receive: Receive) -> Response:
        with self._gate.enter():
            headers = dict(scope["headers"])
            body = await take_body(receive, headers, self._endpoint.largest, self._endpoint.timeout)
            request = _request(scope, body.content, body.size)
            try:
                if service.is_quick(body.size):
                    return service.answer(request)
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._pool, service.answer, request)
            finally:
                if not isinstance(body.content, bytes):
                    body.content.close()

    def _parameters(self) -> Response:
        largest = self._endpoint.largest
        parameters = {
            "MaxConcurrentTransforms": self._threads,
            "BatchStrategy": "MULTI_RECORD",
            "MaxPayloadInMB": PAYLOAD_MIB if largest is None else max(1, largest // MIB),
        }
        return Response(200, json.dumps(parameters).encode(), "application/json")

    async def _send(self, response: Response, send: Send) -> None:
        body = response.body
        headers = []
        if response.status != HTTPStatus.NO_CONTENT:
            headers.append((b"content-type", response.content_type.encode("latin-1")))
        headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        if isinstance(body, bytes):
            headers.append((b"content-length", str(len(body)).encode()))
        if self._is_draining:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body})
        else:
            await _send_file(body, send)


class MultiModelApp(App):
    """Answers the requests of an endpoint whose models are loaded and unloaded by requests."""

    def __init__(self, endpoint: Endpoint, fleet: Fleet, pool: Executor, threads: int) -> None:
        super().__init__(endpoint, fleet.none, pool, threads)
        self._fleet = fleet

    async def _other(self, scope: Scope, receive: Receive) -> Response:
        fleet, method = self._fleet, scope["method"]
        loop = asyncio.get_running_loop()
        match scope["path"].strip("/").split("/"):
            case ["models"] if method == "GET":
                return fleet.listed(scope["query_string"].decode("latin-1"))
            case ["models"] if method == "POST":
                with self._gate.enter():
                    body = await take_body(receive, {}, MIB, self._endpoint.timeout)
                    content = body.content if isinstance(body.content, bytes) else b""
                    return await loop.run_in_executor(self._pool, fleet.load, content)
            case ["models", name] if method == "GET":
                return fleet.described(name)
            case ["models", name] if method == "DELETE":
                return fleet.unload(name)
            case ["models", name, "invoke"] if method == "POST":
                return await self._invoked(fleet.service(name), scope, receive)
        return await super()._other(scope, receive)


def _request(scope: Scope, body: bytes | BinaryIO, size: int) -> Request:
    content_type = accept = ""
    for name, value in scope["headers"]:
        if name == b"content-type":
            content_type = value.decode("latin-1").strip()
        elif name == b"accept":
            accept = value.decode("latin-1").strip()
    return Request(content_type, accept, body, size)


async def _send_file(file: BinaryIO, send: Send) -> None:
    with file:
        while part := file.read(SENT_BYTES):
            await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
