"""The leader's listening socket, with which the supervisors of the other hosts connect."""

from __future__ import annotations

import socket
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from threading import Lock, Thread
from typing import TYPE_CHECKING

from smxgb.log import log
from smxgb.supervision.control.failures import OTHER_KEY, closed_port
from smxgb.supervision.control.wire import PATIENCE, NotReady, Wire, own_address, ports
from smxgb.supervision.messages import Hello

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smxgb.environment import Hosts
    from smxgb.limits import Limits
    from smxgb.supervision.control.connections import Connections
    from smxgb.supervision.messages import Message

RETRY = 1.0
"""Seconds between attempts to find this host's own address, or to accept a connection."""

BACKLOG = 128

MOST_ASKING = 64
"""Connections of one address that may be about to show that they are of this job. A host has one."""


@dataclass(frozen=True)
class Guest:
    """A process that has the job's key: what it says first, and the address that it has connected from."""

    hello: Hello
    address: str
    wire: Wire
    messages: Sequence[Message]


class Door:
    """Listens, and hands over each process that has the job's key, or the failure if it can't listen.

    `address` is None before it listens; `not_ready` says why. `refused` are the addresses of processes with
    another key.
    """

    def __init__(self, hosts: Hosts, limits: Limits, key: bytes, connections: Connections[Guest]) -> None:
        self._hosts = hosts
        self._limits = limits
        self._key = key
        self._connections = connections
        self.address: str | None = None
        self.not_ready = ""
        self.refused: set[str] = set()
        self._lock = Lock()
        self._asking = Counter[str]()
        connections.start(self._open)

    def _open(self) -> None:
        address = None
        while address is None:
            try:
                address = own_address(self._hosts)
            except NotReady as error:
                self.not_ready = str(error)
                time.sleep(RETRY)
        listener = self._listen(address)
        self._connections.end_wait()
        while True:
            try:
                stream, (guest, _) = listener.accept()
            except OSError as error:  # such as a lack of descriptors, which others may give back
                self._pause(error.strerror or str(error))
            else:
                self._receive(stream, guest)

    def _listen(self, address: str) -> socket.socket:
        """Listen at the control channel's port; if that fails, say so, and listen where others hear it."""
        port, spare = ports(self._limits.control_port)
        try:
            listener = socket.create_server((address, port), backlog=BACKLOG)
        except OSError as error:
            reason = error.strerror or str(error)
            self._connections.hand_over(closed_port(self._hosts.current, reason, self._limits))
            return socket.create_server((address, spare), backlog=BACKLOG)
        self.address = address
        log(f"Control channel: {address} (of {self._hosts.current}), port {port}.")
        return listener

    def _receive(self, stream: socket.socket, address: str) -> None:
        """Let a process show in a thread that it is one of this job, unless its address has too many such."""
        with self._lock:
            if self._asking[address] >= MOST_ASKING:
                stream.close()
                return
            self._asking[address] += 1
        try:
            Thread(target=self._admit, args=(stream, address), name="admit", daemon=True).start()
        except RuntimeError as error:
            stream.close()
            self._dismiss(address)
            self._pause(str(error))

    def _pause(self, reason: str) -> None:
        """Wait a moment before the next connection is accepted."""
        log(f"The control channel could not take a connection: {reason}. It tries again.")
        time.sleep(RETRY)

    def _dismiss(self, address: str) -> None:
        with self._lock:
            self._asking[address] -= 1
            self._asking += Counter()  # keeps what is above zero

    def _admit(self, stream: socket.socket, address: str) -> None:
        try:
            with suppress(OSError, EOFError):
                self._greet(Wire.accept(stream, self._key), address)
        except AuthenticationError:
            self._refuse(address)
        finally:
            self._dismiss(address)

    def _greet(self, wire: Wire, address: str) -> None:
        messages, is_open = wire.receive(PATIENCE)
        match messages:
            case [Hello() as hello, *_] if is_open and hello.host in self._hosts.names[1:]:
                self._connections.hand_over(Guest(hello, address, wire, messages))
            case _:
                wire.close()

    def _refuse(self, address: str) -> None:
        """Log, once, that a process at this address has another key. It tries again and again."""
        if address not in self.refused:
            self.refused.add(address)
            log(f"{address} is not let in: {OTHER_KEY}.")
