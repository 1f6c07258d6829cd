"""What hosts that are processes need to fail like machines: a network to cut, memory and a disk to fill.

All are the kernel's own (network namespaces, a control group, a file system in memory), so they need root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.distributed.hosts import Host

MEMORY_LIMIT = 600 << 20
"""Bytes of memory of a host that is to run out of it; a small job takes a quarter."""

DISK_SIZE = 150 << 20
"""Bytes of a volume that is to fill up; the rows of the failure table's longest load take two thirds."""

EATER = """
import pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text("0")
eaten = []
while pathlib.Path(sys.argv[2]).exists():
    eaten.append(bytearray(b"x") * (4 << 20))
    time.sleep(0.002)
"""


@dataclass(frozen=True)
class Network:
    """Hosts with an address each in a network of their own; `commands` start a process on each of them."""

    names: Sequence[str]
    commands: Sequence[Sequence[str]]
    links: Sequence[str]
    hub: str

    def cut(self, index: int) -> None:
        """Pull the cable of a host."""
        _run("ip", "-n", self.hub, "link", "set", self.links[index], "down")


@contextmanager
def network(count: int) -> Iterator[Network]:
    """Make so many network namespaces, joined by a bridge in one more, where no firewall's rules hold."""
    tag = f"sm{os.getpid() % 100_000}"
    names = [f"10.213.77.{number}" for number in range(1, count + 1)]
    spaces = [f"{tag}-{number}" for number in range(1, count + 1)]
    links = [f"{tag}v{number}" for number in range(1, count + 1)]
    hub = f"{tag}-hub"
    with ExitStack() as stack:
        _run("ip", "netns", "add", hub)
        stack.callback(_run, "ip", "netns", "del", hub)
        _run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", hub, "link", "set", "bridge", "up")
        for name, space, link in zip(names, spaces, links, strict=True):
            _run("ip", "netns", "add", space)
            stack.callback(_run, "ip", "netns", "del", space)
            peer = ("peer", "name", "eth0", "netns", space)
            _run("ip", "-n", hub, "link", "add", link, "type", "veth", *peer)
            _run("ip", "-n", hub, "link", "set", link, "master", "bridge", "up")
            for command in (
                ["addr", "add", f"{name}/24", "dev", "eth0"],
                ["link", "set", "eth0", "up"],
                ["link", "set", "lo", "up"],
            ):
                _run("ip", "-n", space, *command)
        yield Network(names, [["ip", "netns", "exec", space] for space in spaces], links, hub)


@dataclass(frozen=True)
class Memory:
    """A control group with little memory; `command` starts a process in it."""

    group: Path

    @property
    def command(self) -> list[str]:
        enter = f'echo $$ > {self.group}/cgroup.procs; exec "$@"'
        return ["sh", "-c", enter, "sh"]

    def exhaust(self, victim: int) -> None:
        """Take the memory that the group has left, until the kernel kills a process of it."""
        work = Path(f"/proc/{victim}")
        (work / "oom_score_adj").write_text("1000")
        eater = subprocess.Popen([sys.executable, "-c", EATER, self.group / "cgroup.procs", work])
        eater.wait(30)


@contextmanager
def little_memory() -> Iterator[Memory]:
    """Make a control group (version 1) for a host that is to run out of memory."""
    group = Path(f"/sys/fs/cgroup/memory/smxgb-test-{os.getpid()}")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(MEMORY_LIMIT))
        yield Memory(group)
    finally:
        deadline = time.monotonic() + 10
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
        group.rmdir()


@dataclass(frozen=True)
class Disk:
    """A folder that is a small volume to one host alone; `command` starts a process that sees it so."""

    folder: Path

    @property
    def command(self) -> list[str]:
        mount = f'mount -t tmpfs -o size={DISK_SIZE} none {self.folder}; exec "$@"'
        return ["unshare", "--mount", "sh", "-ec", mount, "sh"]

    def fill(self, host: Host) -> None:
        """Write to the volume until it is full."""
        with (
            suppress(OSError),
            Path(f"/proc/{host.supervisor}/root{self.folder}/filler").open("wb") as filler,
        ):
            while True:
                filler.write(bytes(1 << 20))
                filler.flush()


def can_mount() -> bool:
    """Return whether this process may mount volumes: in a container, root may not."""
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
