"""Hosts of the Dask mode, with processors in the place of GPUs: how they start, and what their logs say."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.distributed.hosts import free_ports, hosts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.distributed.hosts import Channels, Host, Hosts
    from tests.opt_ml import Outcome

DASK = {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 2}


@contextmanager
def dask_hosts(
    base: Path,
    channels: Sequence[Channels],
    hyperparameters: Mapping[str, object],
    distribution: str | None = None,
) -> Iterator[Hosts]:
    """Write the folders of hosts whose scheduler has a port of its own."""
    [port] = free_ports("127.0.0.1", 1)
    settings = {**DASK, "scheduler_port": port, **hyperparameters}
    with hosts_of(base, channels, settings, distribution=distribution) as job:
        yield job


def processes(host: Host) -> dict[str, int]:
    """Return the processes of a running host by the command each runs, the workers by their index too."""
    found = {}
    for pid in Path(f"/proc/{host.supervisor}/task/{host.supervisor}/children").read_text().split():
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        index = words[words.index("--index") + 1] if "--index" in words else ""
        found[words[words.index("smxgb") + 1] + index] = int(pid)
    return found


def rows_of(outcome: Outcome, channel: str = "train") -> tuple[list[list[int]], int]:
    """Return the rows of each worker of each host, and of all, as the log has them."""
    found = re.search(rf"^Rows of {channel}: (.*); together ([\d,]+)\.$", outcome.log, re.MULTILINE)
    assert found, outcome.log
    hosts = re.findall(r"\S+ ([\d,]+(?: \+ [\d,]+)*)(?:, |$)", found[1])
    return [[number(count) for count in host.split(" + ")] for host in hosts], number(found[2])


def number(text: str) -> int:
    return int(text.replace(",", ""))
