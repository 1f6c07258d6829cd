"""Several hosts on one machine: each a `train` process with an /opt/ml folder and a loopback address.

A job's hosts have names, which resolve to addresses; an address is its own name, so that what runs here is
what runs anywhere.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.opt_ml import Outcome, Source, read_outcome, write_opt_ml

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

type Channels = Mapping[str, Source | pd.DataFrame | bytes]

OWN_PORTS = range(20_000, 30_000)
DEADLINE = 60.0
"""Seconds within which whatever is awaited must have happened."""


@dataclass
class Host:
    """One host of a job: its name, its folder, and its process once it has been started."""

    name: str
    base: Path
    command: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0
    ended: float | None = None

    def start(self) -> None:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.command, sys.executable, "-m", "smxgb", "train"],
                env={**os.environ, "SAGEMAKER_BASE_DIR": str(self.base), "TRAINING_JOB_NAME": "job"},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.began = time.monotonic()

    @property
    def _log(self) -> Path:
        return self.base / "log.txt"

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def supervisor(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def work(self) -> int:
        """The process that does the work, once it is there."""
        children = Path(f"/proc/{self.supervisor}/task/{self.supervisor}/children")
        wait_until(lambda: bool(children.read_text().split()), f"the work of {self.name}")
        return int(children.read_text().split()[0])

    def processes(self) -> list[int]:
        """Return the processes that the supervisor has started, in this order."""
        children = Path(f"/proc/{self.supervisor}/task/{self.supervisor}/children")
        return [int(number) for number in children.read_text().split()]

    def wait_until_grown(self, text: str) -> None:
        """Wait until the log holds a text once more than now."""
        count = self.log.count(text)
        wait_until(lambda: self.log.count(text) > count, f"one more {text!r} in the log of {self.name}")

    def kill(self) -> None:
        """Kill the host: all its processes, at once and without a word, as when its machine goes off."""
        processes = self.supervisor, self.work
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def kill_work(self) -> None:
        os.kill(self.work, signal.SIGKILL)

    def freeze_work(self) -> None:
        os.kill(self.work, signal.SIGSTOP)

    def freeze(self) -> None:
        """Stop all processes of the host, as `docker pause` does."""
        for process in (self.supervisor, self.work):
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        children = Path(f"/proc/{self.supervisor}/task/{self.supervisor}/children").read_text().split()
        for process in (self.supervisor, *map(int, children)):
            os.kill(process, signal.SIGCONT)

    def wait(self, seconds: float = DEADLINE) -> Outcome:
        """Wait for the end; return what the host has left."""
        assert self.process is not None
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end in {seconds} s:\n{self.log}") from None
        self.ended = self.ended or time.monotonic()
        return read_outcome(self.base, code, self.log)

    def wait_for(self, text: str, seconds: float = DEADLINE) -> None:
        """Wait until the log holds a text."""

        def is_there() -> bool:
            assert self.process is not None
            assert text in self.log or self.process.poll() is None, f"{self.name} ended early:\n{self.log}"
            return text in self.log

        wait_until(is_there, f"{text!r} in the log of {self.name}", seconds)


@dataclass
class Hosts:
    """The hosts of one job, the first of which leads."""

    hosts: list[Host] = field(default_factory=list)

    def __getitem__(self, index: int) -> Host:
        return self.hosts[index]

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts)

    def start(self) -> None:
        for host in self.hosts:
            host.start()

    def wait(self, seconds: float = DEADLINE) -> list[Outcome]:
        """Wait for the end of all; return what each has left."""
        deadline = time.monotonic() + seconds
        return [host.wait(max(0.1, deadline - time.monotonic())) for host in self.hosts]

    def run(self, seconds: float = DEADLINE) -> list[Outcome]:
        self.start()
        return self.wait(seconds)


@contextmanager
def hosts_of(
    base: Path,
    channels: Sequence[Channels],
    hyperparameters: Mapping[str, object],
    *,
    distribution: str | None = None,
    names: Sequence[str] | None = None,
    commands: Sequence[Sequence[str]] = (),
    checkpoints: Path | None = None,
) -> Iterator[Hosts]:
    """Write the folders of a job's hosts, one for each of `channels`; what still runs at the end is killed.

    `distribution` is the S3DistributionType, not said if None. `commands` go before each host's own. Each
    host has a folder of its own name in `checkpoints`.
    """
    names = names or [f"127.0.0.{number}" for number in range(1, len(channels) + 1)]
    control, tracker = free_ports(names[0], 2) if names[0].startswith("127.") else (7890, 9091)
    settings = {"nthread": 1, "control_port": control, "tracker_port": tracker, **hyperparameters}
    every = sorted({name for of_host in channels for name in of_host})
    said = {} if distribution is None else {"S3DistributionType": distribution}
    made = []
    for index, (name, of_host) in enumerate(zip(names, channels, strict=True)):
        folder = base / name
        write_opt_ml(
            folder,
            hyperparameters=settings,
            channels=of_host,
            inputdataconfig={channel: {"TrainingInputMode": "File", **said} for channel in every},
            resourceconfig={"current_host": name, "hosts": list(names), "network_interface_name": "eth0"},
            checkpointconfig={"LocalPath": str(checkpoints / name)} if checkpoints else None,
        )
        made.append(Host(name, folder, commands[index] if commands else ()))
    job = Hosts(made)
    try:
        yield job
    finally:
        for host in made:
            if host.process is not None and host.process.poll() is None:
                with suppress(ProcessLookupError):
                    host.thaw()
                host.process.kill()
                host.process.wait()


def free_ports(address: str, count: int) -> list[int]:
    """Return ports that nobody listens on, below those that the kernel gives to connections by itself."""
    ports: set[int] = set()
    while len(ports) < count:
        with suppress(OSError), socket.create_server((address, secrets.choice(OWN_PORTS))) as listener:
            ports.add(listener.getsockname()[1])
    return list(ports)


def wait_until(condition: object, what: str, seconds: float = DEADLINE) -> None:
    deadline = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come in {seconds} s"
        time.sleep(0.02)
