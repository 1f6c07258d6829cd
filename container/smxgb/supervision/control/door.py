"""The leader's listening socket, with which the supervisors of the other hosts connect."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from threading import Thread
from typing import TYPE_CHECKING

from smxgb.log import log
from smxgb.supervision.control.failures import OTHER_KEY, closed_port
from smxgb.supervision.control.wire import PATIENCE, NotReady, Wire, own_address
from smxgb.supervision.messages import Hello

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smxgb.environment import Hosts
    from smxgb.errors import JobError
    from smxgb.limits import Limits
    from smxgb.supervision.control.connections import Connections
    from smxgb.supervision.messages import Message

RETRY = 1.0
"""Seconds between attempts to find this host's own address."""


@dataclass(frozen=True)
class Guest:
    """A process that has the job's key and says it is the host `name`, with its first messages."""

    name: str
    wire: Wire
    messages: Sequence[Message]


class Door:
    """Listens, and hands over each process that has the job's key, or the failure if it can't listen.

    `address` is None before it listens; `not_ready` says why. `refused` are the addresses of processes with
    another key.
    """

    def __init__(
        self, hosts: Hosts, limits: Limits, key: bytes, connections: Connections[Guest | JobError]
    ) -> None:
        self._hosts = hosts
        self._limits = limits
        self._key = key
        self._connections = connections
        self.address: str | None = None
        self.not_ready = ""
        self.refused: set[str] = set()
        connections.start(self._open)

    def _open(self) -> None:
        listener = None
        while listener is None:
            try:
                address = own_address(self._hosts)
                listener = socket.create_server((address, self._limits.control_port), backlog=128)
            except NotReady as error:
                self.not_ready = str(error)
                time.sleep(RETRY)
            except OSError as error:
                reason = error.strerror or str(error)
                self._connections.hand_over(closed_port(self._hosts.current, reason, self._limits))
                return
        self.address = address
        log(f"Control channel: {address} (of {self._hosts.current}), port {self._limits.control_port}.")
        self._connections.end_wait()
        while True:
            with suppress(OSError):
                stream, (address, _) = listener.accept()
                Thread(target=self._admit, args=(stream, address), name="admit", daemon=True).start()

    def _admit(self, stream: socket.socket, address: str) -> None:
        with suppress(OSError, EOFError):
            try:
                wire = Wire.accept(stream, self._key)
            except AuthenticationError:
                self._refuse(address)
                return
            messages, is_open = wire.receive(PATIENCE)
            match messages:
                case [Hello(name), *_] if is_open and name in self._hosts.names[1:]:
                    self._connections.hand_over(Guest(name, wire, messages))
                case _:
                    wire.close()

    def _refuse(self, address: str) -> None:
        """Log, once, that a process at this address has another key. It tries again and again."""
        if address not in self.refused:
            self.refused.add(address)
            log(f"{address} is not let in: {OTHER_KEY}.")
