"""A container beside a job's hosts, on their network, that connects with every port it can find."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from tests.image.containers import Container, docker, image

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

type Kind = Literal["leaves", "babbles", "stays", "floods"]
"""What it does with a connection: closes it without a byte, sends bytes that mean nothing, or keeps it; or it
keeps hundreds of connections with each port that settings name."""

TABLE: list[str] = []
"""What came of each job, to be shown at the end of the tests."""

CONTROL, SCHEDULER = 7890, 8786

KNOCK = """
import collections, itertools, json, os, select, socket, sys, time
kind, hosts = sys.argv[1], sys.argv[2:]
named = [7890, 7891, 8786, 8787, 9091] * (40 if kind == "floods" else 1)
reached, kept = collections.Counter(), collections.deque()

def knock(address, ports):
    waiting = {}
    for port in ports:
        stream = socket.socket()
        stream.setblocking(False)
        stream.connect_ex((address, port))
        waiting[stream.fileno()] = stream, port
    time.sleep(0.02)
    _, ready, _ = select.select([], [stream for stream, _ in waiting.values()], [], 0)
    for stream in ready:
        port = waiting[stream.fileno()][1]
        if stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
            reached[port] += 1
            if kind == "babbles":
                stream.send(os.urandom(64))
            elif kind != "leaves":
                kept.append(waiting.pop(stream.fileno())[0])
    for stream, _ in waiting.values():
        stream.close()
    while len(kept) > 400:
        kept.popleft().close()

for ports in itertools.cycle(itertools.batched(range(32768, 61000), 250)):
    for host in hosts:
        try:
            address = socket.gethostbyname(host)
        except OSError:
            continue
        knock(address, [*named, *ports])
    print(json.dumps(reached), flush=True)
"""


@contextmanager
def stranger(network: str, kind: Kind, hosts: Sequence[str], base: Path) -> Iterator[Container]:
    """Run such a container, from before the hosts of these names are there until the block ends."""
    # Docker asks other name servers for a host that has not started: where none answers, it waits.
    resolving = ("--dns-opt", "timeout:1", "--dns-opt", "attempts:1")
    options = ("--detach", "--network", network, "--ulimit", "nofile=4096", *resolving)
    started = docker("run", *options, image("cpu"), "python", "-c", KNOCK, kind, *hosts)
    assert started.returncode == 0, started.stdout
    container = Container(started.stdout.strip().splitlines()[-1], base)
    try:
        container.wait_for("{}", seconds=60)  # its first line: it has looked for the hosts once
        yield container
    finally:
        container.remove()


def reached(container: Container) -> dict[int, int]:
    """Return how many connections the stranger has had with each port by now."""
    counts: dict[str, int] = json.loads(container.log().splitlines()[-1])
    return {int(port): count for port, count in counts.items()}
