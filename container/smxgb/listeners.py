"""The sockets with which this process listens for connections: who may connect, and until when.

Libraries open them at all of the host's addresses, for whoever comes. Linux alone is asked here.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import Counter
from contextlib import contextmanager, suppress
from ctypes import addressof, create_string_buffer
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

SO_ATTACH_FILTER = 26
"""Linux's option that gives a socket a filter of packets (socket(7))."""

LOAD, MASK, COMPARE, RETURN = 0x20, 0x54, 0x15, 0x06
"""Instructions of such a filter (linux/bpf_common.h): ld [k], and #k, jeq #k, ret #k."""

WHOLE, NOTHING = 0xFFFFFFFF, 0
"""What a filter returns to let a packet pass, or to drop it."""

SOURCE = 0xFFF00000 + 12
"""Where a filter finds the sender's IPv4 address: byte 12 after SKF_NET_OFF (linux/filter.h)."""

ESTABLISHED = "01"
"""A connection's state, in Linux's /proc/net/tcp (proc(5), include/net/tcp_states.h)."""

LOOK = 0.01
"""Seconds between two looks for sockets that have begun to listen."""

type OnStranger = Callable[[str, int], None]
"""Called with the address of a process that is no part of the job, and the port that it has reached."""


def listeners() -> frozenset[int]:
    """Return the descriptors of the sockets that listen for IPv4 connections."""
    found = set()
    for path in Path("/proc/self/fd").iterdir():
        descriptor = int(path.name)
        with suppress(OSError), _socket(descriptor) as each:  # most are no sockets
            if each.family == socket.AF_INET and each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.add(descriptor)
    return frozenset(found)


def admit_only(descriptor: int, addresses: Collection[str]) -> None:
    """Have the kernel drop whatever does not come from these IPv4 addresses, or from this host's loopback.

    A stranger then finds no door there at all. Some kernels allow this to a process with CAP_NET_ADMIN only;
    with them the socket stays as it is.
    """
    words = [(LOAD, 0, 0, SOURCE), (MASK, 0, 0, 0xFF000000), *_passing(0x7F000000), (LOAD, 0, 0, SOURCE)]
    for address in sorted(set(addresses)):
        words += _passing(int.from_bytes(socket.inet_aton(address)))
    words.append((RETURN, 0, 0, NOTHING))
    program = create_string_buffer(b"".join(struct.pack("HBBI", *word) for word in words))
    option = struct.pack("HL", len(words), addressof(program))
    with suppress(OSError), _socket(descriptor) as each:
        each.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, option)


def shut(descriptor: int) -> None:
    """End the listening. A thread that waits for a connection there goes on with an error."""
    with suppress(OSError), _socket(descriptor) as each:
        each.shutdown(socket.SHUT_RDWR)


def port_of(descriptor: int) -> int:
    """Return the port at which a socket listens."""
    with _socket(descriptor) as each:
        return int(each.getsockname()[1])


def connected(port: int) -> Counter[str]:
    """Return how many connections with a port of this host each address has."""
    found = Counter[str]()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state = line.split()[:4]
        if state == ESTABLISHED and int(local.partition(":")[2], 16) == port:
            found[socket.inet_ntoa(struct.pack("=I", int(remote.partition(":")[0], 16)))] += 1
    return found


@contextmanager
def brief(addresses: Collection[str], on_stranger: OnStranger) -> Iterator[None]:
    """Guard the sockets that begin to listen while the block runs, and end their listening with it.

    A thread admits these addresses only. Of a stranger that is connected with one all the same, because it
    has come early or the kernel does not drop it, `on_stranger` hears in that thread.
    """
    before = listeners()
    over = Event()

    def watch() -> None:
        found: set[int] = set()
        while not over.wait(LOOK):
            for descriptor in listeners() - before:
                if descriptor not in found:
                    found.add(descriptor)
                    admit_only(descriptor, addresses)
                with suppress(OSError):  # it may be closed by now
                    port = port_of(descriptor)
                    for stranger in filter(is_foreign(addresses), connected(port)):
                        on_stranger(stranger, port)

    watcher = Thread(target=watch, name="listeners", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        for descriptor in listeners() - before:
            shut(descriptor)


def is_foreign(addresses: Collection[str]) -> Callable[[str], bool]:
    """Return what tells whether an address is neither one of these nor this host's loopback."""
    return lambda address: address not in addresses and not address.startswith("127.")


def _passing(address: int) -> list[tuple[int, int, int, int]]:
    """Return the instructions that let a packet pass if what was loaded is this address."""
    return [(COMPARE, 0, 1, address), (RETURN, 0, 0, WHOLE)]


def _socket(descriptor: int) -> socket.socket:
    """Return a second descriptor of the same socket. Raises OSError if it is none."""
    copy = os.dup(descriptor)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
