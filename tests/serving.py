"""A real server on loopback: the command `serve` on a folder of models, and requests to it."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import xgboost as xgb

SECONDS = 120


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True)
class Server:
    """A server that runs; its log goes to a file."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def request(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Reply:
        """Send one request on a connection of its own; `content_type` is the header Content-Type."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return Reply(response.status, response.read(), dict(response.getheaders()))
        finally:
            connection.close()

    def invoke(self, body: bytes | str, content_type: str = "text/csv", accept: str = "*/*") -> Reply:
        """Ask for predictions."""
        return self.request("POST", "/invocations", body, content_type=content_type, accept=accept)

    def worker(self) -> int:
        """Return the number of the process that answers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return int(children.split()[0])

    def resident(self) -> int:
        """Return the bytes of memory of the process that answers."""
        pages = Path(f"/proc/{self.worker()}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")

    def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


def write_models(base: Path, **boosters: xgb.Booster) -> Path:
    """Write models into the folder of a base, without invented names; return the base."""
    folder = base / "model"
    folder.mkdir(parents=True, exist_ok=True)
    for name, booster in boosters.items():
        (folder / name).write_bytes(booster.save_raw("ubj"))
    return base


def start(base: Path, **environment: str) -> Server:
    """Start a server on the models of a base, and return it at once."""
    port = _free_port()
    log = base / "serve.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "smxgb", "serve"],
            env={
                **os.environ,
                "SAGEMAKER_BASE_DIR": str(base),
                "SAGEMAKER_BIND_TO_PORT": str(port),
                "SAGEMAKER_MODEL_SERVER_WORKERS": "1",
                **environment,
            },
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    return Server(process, port, log)


@contextmanager
def serving(base: Path, **environment: str) -> Iterator[Server]:
    """Start a server, wait until it is healthy, and end it after the block."""
    server = start(base, **environment)
    try:
        wait_healthy(server)
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def wait_healthy(server: Server) -> None:
    """Return when the server answers; its end before that is shown with its log."""
    while True:
        assert server.process.poll() is None, server.log.read_text()
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=1).close()
        except OSError:
            try:
                server.process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        else:
            assert server.request("GET", "/ping").status == 200
            return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
