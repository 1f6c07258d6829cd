"""The server: the parent of the workers, which gives them a socket and starts those that die again.

It needs Python's standard library only, so that it starts at once and takes little memory.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smxgb.environment import child_environ
from smxgb.errors import JobError, PlatformError
from smxgb.log import log, log_error
from smxgb.machine import read_machine
from smxgb.program import PROGRAM
from smxgb.serving.endpoint import checked_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from smxgb.machine import Machine
    from smxgb.serving.endpoint import Endpoint

WORKER = "serve-worker"
"""The name of a worker's process on its command line."""

PROCESS_BYTES = 96 << 20
"""Bytes of memory of a worker without its model."""

LOADED = 3
"""Bytes of memory that each byte of a model's file takes while it is loaded, at most."""

HASTY = 10.0
"""A worker that ends within so many seconds, again and again, will not run."""

HASTY_ENDS = 3


def serve(environ: Mapping[str, str]) -> int:
    """Serve until SIGTERM; return the exit code."""
    try:
        endpoint = checked_endpoint(environ)
        listener = _bound(endpoint.port)
    except JobError as error:
        log_error(str(error))
        return error.exit_code
    with listener:
        count = _processes(endpoint, read_machine(environ))
        log(f"Serving on port {endpoint.port} with {count} process{'es' if count > 1 else ''}.")
        return _Workers(listener, count, environ).run()


def _bound(port: int) -> socket.socket:
    """Return a socket with the port. Connections are refused until a worker, its model loaded, listens."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("0.0.0.0", port))  # noqa: S104 - SageMaker calls from outside the container
    except OSError as error:
        listener.close()
        raise PlatformError(f"Port {port} can't be had: {error.strerror}. End what uses it.") from None
    return listener


def _processes(endpoint: Endpoint, machine: Machine) -> int:
    """Return how many processes serve: one for each processor, as far as each has memory for the model.

    Several models are in one process, for its models are those that requests have loaded.
    """
    if endpoint.multi_model:
        return 1
    if endpoint.workers is not None:
        return endpoint.workers
    each = PROCESS_BYTES + LOADED * _model_bytes(endpoint.models)
    return max(1, min(machine.threads, machine.memory_available // each))


def _model_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


class _Workers:
    """The workers: `count` processes that share a socket."""

    def __init__(self, listener: socket.socket, count: int, environ: Mapping[str, str]) -> None:
        self._listener = listener
        self._count = count
        self._environ = {"OMP_NUM_THREADS": "1"} | child_environ(environ)
        self._begun: dict[int, tuple[subprocess.Popen[bytes], float]] = {}
        # Workers die with this process, which holds the other end.
        self._life, self._held = socket.socketpair()
        self._is_ending = False
        self._hasty = 0
        self._code = 0

    def run(self) -> int:
        """Start the workers and wait for their end; return the exit code."""
        with self._signals():
            for _ in range(self._count):
                self._start()
            while self._begun:
                pid, status = os.wait()
                worker = self._begun.pop(pid, None)
                if worker is None:
                    continue
                worker[0].returncode = os.waitstatus_to_exitcode(status)
                self._ended(*worker)
        return self._code

    def _start(self) -> None:
        if self._is_ending:
            return
        listener, life = self._listener.fileno(), self._life.fileno()
        command = [*PROGRAM, WORKER, "--listener", str(listener), "--life", str(life)]
        worker = subprocess.Popen(command, env=self._environ, pass_fds=[listener, life])
        self._begun[worker.pid] = worker, time.monotonic()
        if self._is_ending:
            worker.terminate()

    def _ended(self, worker: subprocess.Popen[bytes], begun: float) -> None:
        """Start a worker again that has died; end all if it would die again."""
        if self._is_ending:
            return
        code = worker.returncode
        self._hasty = self._hasty + 1 if time.monotonic() - begun < HASTY else 0
        if code in {1, 2, 3} or self._hasty >= HASTY_ENDS:
            # It has said why: the model or the environment is wrong, and would be again.
            self._code = code if code > 0 else 1
            self._end()
            return
        how = f"signal {-code}" if code < 0 else f"code {code}"
        log_error(f"A worker ended with {how}. Another one takes its place.")
        self._start()

    def _end(self, *_: object) -> None:
        self._is_ending = True
        # Only the workers may hold the socket: connections to it would wait here for nobody.
        self._listener.close()
        for worker, _begun in self._begun.values():
            worker.terminate()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._end) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
