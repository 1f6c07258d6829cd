"""A worker: the process that answers requests. Several take them from one socket."""

from __future__ import annotations

import asyncio
import gc
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from smxgb.log import log
from smxgb.machine import read_machine
from smxgb.serving.app import App, MultiModelApp
from smxgb.serving.endpoint import checked_endpoint
from smxgb.serving.fleet import Fleet
from smxgb.serving.model import load_folder
from smxgb.serving.protocol import BoundedProtocol
from smxgb.serving.service import Predictions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from smxgb.serving.endpoint import Endpoint

DRAIN_SECONDS = 0.5
"""Seconds in which, after SIGTERM, connections are accepted, and then served: clients are asked to close."""

END_SECONDS = 25
"""Seconds in which requests in work may be finished. Docker and SageMaker kill after 30."""

CONNECTIONS = 4_096


def run_worker(listener: int, environ: Mapping[str, str]) -> None:
    """Load the model, then answer the requests of a socket that is given by its file descriptor.

    Raises:
        UserError: If there is no model, or if the environment is wrong.
    """
    endpoint = checked_endpoint(environ)
    threads = read_machine(environ).threads
    with ThreadPoolExecutor(threads, "answer") as pool, ThreadPoolExecutor(threads, "predict") as parts:
        app = _app(endpoint, environ, threads, pool, parts if threads > 1 else None)
        # What is loaded stays: the collector of garbage need not look at it again.
        gc.collect()
        gc.freeze()
        server = _Server(app)
        log("Ready.")
        server.run(sockets=[socket.socket(fileno=listener)])


def _app(
    endpoint: Endpoint,
    environ: Mapping[str, str],
    threads: int,
    pool: ThreadPoolExecutor,
    parts: ThreadPoolExecutor | None,
) -> App:
    if endpoint.multi_model:
        return MultiModelApp(endpoint, Fleet(endpoint, parts), pool, threads)
    if endpoint.program:
        from smxgb.serving.user_code import load_user_code  # noqa: PLC0415 - few endpoints have any

        return App(endpoint, load_user_code(endpoint, environ), pool, threads)
    models = load_folder(endpoint.models, ensemble=endpoint.ensemble)
    _tell(models.signature.schema.first_index, models.signature.width)
    return App(endpoint, Predictions.of(models, endpoint, parts), pool, threads)


def _tell(first_index: int | None, features: int) -> None:
    base = "" if first_index is not None else " The model does not say where libsvm's indices begin: at 0."
    log(f"Features: {features}.{base}")


class _Server(uvicorn.Server):
    """uvicorn's server, which goes on for a moment after SIGTERM so that no request is lost."""

    def __init__(self, app: App) -> None:
        config = uvicorn.Config(
            cast("Any", app),  # uvicorn's types of ASGI are unions of all events
            http=BoundedProtocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=END_SECONDS,
        )
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn calls it so
        """Begin to end: ask clients to close, and stop a moment later."""
        self._app.drain()
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._stop)

    def _stop(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new connections, serve those that are there a moment longer, and end.

        Connections that wait to be accepted would be reset with the socket, so they are accepted first.
        """
        waiting = [connection for listener in sockets or [] for connection in _waiting(listener)]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for connection in waiting:
            await loop.connect_accepted_socket(self._protocol, connection)
        await asyncio.sleep(DRAIN_SECONDS)
        await super().shutdown(sockets)

    def _protocol(self) -> BoundedProtocol:
        return BoundedProtocol(self.config, self.server_state, self.lifespan.state)


def _waiting(listener: socket.socket) -> Iterator[socket.socket]:
    """Accept and yield the connections that wait."""
    with suppress(BlockingIOError):
        while True:
            yield listener.accept()[0]
