"""Connections between supervisors: messages over TCP, between processes of the same job only."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import ipaddress
import json
import socket
import struct
from contextlib import suppress
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import TYPE_CHECKING

from smxgb.limits import PORTS
from smxgb.supervision.messages import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smxgb.environment import Hosts
    from smxgb.supervision.messages import Message

PATIENCE = 5
"""Seconds that one read or write of a few bytes may take."""

NEWS = 60.0
"""Seconds between the lines of the log that say which hosts are being waited for."""

LONGEST_MESSAGE = 1 << 20
"""Bytes. A failure with its mistakes is by far the longest message."""

SIOCGIFADDR = 0x8915
"""Linux's request for the address of a network interface (netdevice(7))."""


class NotReady(Exception):  # noqa: N818 - it is no failure yet: the next attempt may work
    """A host has no address yet; the text says why."""


def make_key(job: str | None, hosts: Hosts, secret: str | None) -> bytes:
    """Return the key that the supervisors of one job have in common.

    SageMaker gives the hosts of a job no secret. If its owner gives none either, this keeps strays out, but
    nobody who knows the job's name and hosts.
    """
    return hashlib.sha256(json.dumps([job, hosts.names, secret]).encode()).digest()


def digests(key: bytes, values: Mapping[str, object]) -> dict[str, str | int]:
    """Return a digest of each value, from which nobody without the key learns anything but its name."""
    return {
        name: hmac.digest(key, json.dumps(value, sort_keys=True).encode(), "sha256").hex()
        for name, value in values.items()
    }


def ports(control_port: int) -> tuple[int, int]:
    """Return the port of the control channel, and that at which the leader says that it can't open it."""
    return control_port, control_port + (1 if control_port + 1 in PORTS else -1)


class Wire:
    """One connection with the supervisor of another host."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    def connect(cls, address: str, port: int, key: bytes) -> Wire:
        """Connect with the leader.

        Raises OSError or EOFError if it does not listen yet, AuthenticationError if it has another job's key.
        """
        stream = socket.create_connection((address, port), timeout=PATIENCE)
        return cls(_proved(stream, key, answer_challenge, deliver_challenge))

    @classmethod
    def accept(cls, stream: socket.socket, key: bytes) -> Wire:
        """Check that the process that has connected is one of this job.

        Raises AuthenticationError if it has another key, OSError or EOFError if it does not answer.
        """
        return cls(_proved(stream, key, deliver_challenge, answer_challenge))

    def fileno(self) -> int:
        """Return the descriptor of the connection."""
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Send a message. It is dropped if the connection is broken, which `receive` tells."""
        with suppress(OSError):
            self._connection.send_bytes(encode(message))

    def receive(self, wait: float = 0.0) -> tuple[list[Message], bool]:
        """Return the messages that have arrived, by now or in `wait` seconds, and whether it is still open.

        A connection over which something comes that is not JSON counts as closed.
        """
        messages: list[Message] = []
        try:
            while self._connection.poll(0 if messages else wait):
                if message := decode(self._connection.recv_bytes(LONGEST_MESSAGE)):
                    messages.append(message)
        except (OSError, EOFError, ValueError):
            return messages, False
        return messages, True

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._connection.close()


def resolve(name: str) -> str:
    """Return the IPv4 address of a host. Raises NotReady as long as there is none."""
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise NotReady(f"its name does not resolve ({error.strerror})") from None
    return str(found[0][4][0])


def own_address(hosts: Hosts) -> str:
    """Return the address under which other hosts reach this one. Raises NotReady while there is none.

    In some images /etc/hosts maps the name to the loopback device, which other hosts can't reach. Then it is
    the address of the interface that SageMaker names, if there is such an interface.
    """
    address = resolve(hosts.current)
    if address == hosts.current or not ipaddress.ip_address(address).is_loopback:
        return address
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("256s", (hosts.interface or "eth0").encode()[:15])
        return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)[20:24])
    raise NotReady(f"its own name stands for {address}, which other hosts can't reach")


def _proved(stream: socket.socket, key: bytes, *steps: Callable[[Connection, bytes], None]) -> Connection:
    """Return the stream as a connection, once these steps have shown that both ends have the key."""
    connection = _connection(stream)
    try:
        for step in steps:
            step(connection, key)
    except BaseException:
        connection.close()
        raise
    return connection


def _connection(stream: socket.socket) -> Connection:
    """Return the stream as a connection whose reads and writes give up after `PATIENCE` seconds."""
    stream.settimeout(None)
    limit = struct.pack("ll", PATIENCE, 0)
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        stream.setsockopt(socket.SOL_SOCKET, option, limit)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(stream.detach())
