"""A job of three hosts in which one fails: all end, soon, with the same cause, and none with success."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import pytest
from tests.distributed.hosts import Host, Hosts, hosts_of
from tests.distributed.places import Disk, Memory, Network, can_mount, little_memory, network
from tests.distributed.table import TABLE, Line
from tests.opt_ml import Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

type Fault = Literal[
    "killed",
    "work killed",
    "frozen",
    "work frozen",
    "network cut",
    "out of memory",
    "out of disk",
    "bad data",
]
type Stage = Literal["before roll-call", "loading", "training"]

SILENCE = 4
START = 8
SETTINGS = {
    "num_round": 1_000_000,
    "silence_timeout": SILENCE,
    "max_restarts": 0,
    "start_timeout": START,
    "objective": "binary:logistic",
    "max_depth": 2,
    "num_parallel_tree": 50,
}
ROWS = b"1,0.5,2,0.25\n0,0.25,1,0.5\n" * 500
SLOW_ROWS = b"1,   NA   ,1,1\n0,1,1,1\n" * 3_000_000
"""Wide padding around a missing value is read with care, which takes seconds for these."""

CI = {
    ("killed", 1, "training"),
    ("frozen", 0, "loading"),
    ("out of disk", 1, "loading"),
    ("bad data", 1, "loading"),
}
"""The rows of the table that each run of the suite has time for."""


@dataclass(frozen=True)
class Row:
    """One row of the table: what happens to which host, when; within `limit` seconds all must have ended."""

    fault: Fault
    victim: int
    stage: Stage

    @property
    def limit(self) -> float:
        quiet = SILENCE if self.fault in {"frozen", "work frozen", "network cut"} else 0
        # A host that has not come can't be told: it waits as long as the others would have waited for it.
        absent = START if self.stage == "before roll-call" else 0
        return max(quiet, absent) + 5

    @property
    def needs_root(self) -> bool:
        return self.fault in {"network cut", "out of memory"}


def rows() -> list[object]:
    every = [
        Row(fault, victim, stage)
        for fault in get_args(Fault.__value__)
        for victim in (0, 1)
        for stage in get_args(Stage.__value__)
        # All data have been read, and written to the spool, by the time that trees grow.
        if not (fault in {"bad data", "out of disk"} and stage == "training")
    ]
    return [
        pytest.param(
            row,
            id=f"{row.fault}-{('leader', 'other')[row.victim]}-{row.stage}".replace(" ", "_"),
            marks=[] if (row.fault, row.victim, row.stage) in CI else [pytest.mark.soak],
        )
        for row in every
    ]


@pytest.mark.parametrize("row", rows())
def test_when_one_host_fails_all_end_soon_and_name_it(row: Row, tmp_path: Path) -> None:
    if row.needs_root and os.geteuid():
        pytest.skip("cutting a network and limiting memory need root")
    if row.fault == "out of disk" and not can_mount():
        pytest.skip("a volume of its own needs the right to mount one")
    with ExitStack() as stack:
        net = stack.enter_context(network(3)) if row.fault == "network cut" else None
        memory = stack.enter_context(little_memory()) if row.fault == "out of memory" else None
        disk = Disk(tmp_path / "spool") if row.fault == "out of disk" else None
        job = stack.enter_context(job_of(row, tmp_path, net, memory or disk))
        reach(row, job)
        begin = time.monotonic()
        strike(row, job, net, memory or disk)
        if row.stage == "before roll-call":
            time.sleep(0.5)
            job[2].start()
        still = {"frozen": [row.victim]}.get(row.fault, [])
        outcomes = {}
        for index, host in enumerate(job):
            if index not in still:
                outcomes[index] = host.wait()
        seconds = max(host.ended or 0 for host in job) - begin
        for index in still:
            job[index].thaw()
            outcomes[index] = job[index].wait(10)
    victim = job[row.victim].name
    codes = [outcomes[index].code for index in range(3)]
    failures = [outcomes[index].failure or "-" for index in range(3)]
    TABLE.append(Line(row.fault, ("leader", "other")[row.victim], row.stage, codes, seconds, failures))
    assert 0 not in codes, outcomes
    assert not any(outcome.models for outcome in outcomes.values())
    assert seconds < row.limit
    for index, failure in enumerate(failures):
        if row.fault == "killed" and index == row.victim:
            assert failure == "-"  # nobody was left there to write one
        else:
            assert victim in failure.splitlines()[0], failures


def job_of(
    row: Row, base: Path, net: Network | None, short: Memory | Disk | None
) -> AbstractContextManager[Hosts]:
    train = [ROWS, ROWS[: len(ROWS) // 2], ROWS[: len(ROWS) // 4]]
    channels = [{"train": Source({f"part-{index}.csv": data}, None)} for index, data in enumerate(train)]
    if row.stage == "loading":
        rows = SLOW_ROWS if row.fault != "bad data" else ROWS + b"1,word,2,3\n"
        channels[row.victim] = {"train": Source({"part.csv": rows}, None)}
    elif row.fault == "bad data":
        channels[row.victim] = {"train": Source({"a.csv": ROWS, "b.parquet": b"PAR1"}, None)}
    commands = net.commands if net else [short.command if short and i == row.victim else () for i in range(3)]
    settings: dict[str, object] = dict(SETTINGS)
    if isinstance(short, Disk):
        short.folder.mkdir()
        settings["spool_dir"] = short.folder
    return hosts_of(base, channels, settings, names=net.names if net else None, commands=commands)


def reach(row: Row, job: Hosts) -> None:
    """Start the hosts and wait until the stage is reached."""
    if row.stage == "before roll-call":
        job[0].start()
        job[1].start()
        if row.fault != "bad data":
            job[0].wait_for("2 of 3 hosts")
        return
    job.start()
    if row.stage == "loading":
        job[row.victim].wait_for("this worker reads")
        time.sleep(0.5)
    else:
        job[0].wait_for("[5]\t")


def strike(row: Row, job: Hosts, net: Network | None, short: Memory | Disk | None) -> None:
    host = job[row.victim]
    if net:
        net.cut(row.victim)
    elif isinstance(short, Memory):
        short.exhaust(host.work)
    elif short:
        short.fill(host)
    else:
        what: dict[str, Callable[[Host], None]] = {
            "killed": Host.kill,
            "work killed": Host.kill_work,
            "frozen": Host.freeze,
            "work frozen": Host.freeze_work,
        }
        if row.fault in what:
            what[row.fault](host)


def test_a_stop_while_rows_are_read_leaves_no_model_and_no_success(tmp_path: Path) -> None:
    with hosts_of(tmp_path, [{"train": SLOW_ROWS}] * 2, SETTINGS, distribution="ShardedByS3Key") as job:
        job.start()
        job[0].wait_for("train/data.csv: delimiter")
        for host in job:
            assert host.process is not None
            host.process.terminate()
        outcomes = job.wait(10)
    assert [outcome.code for outcome in outcomes] == [143, 143]
    assert not any(outcome.models for outcome in outcomes)
    assert all("stopped by SIGTERM" in str(outcome.failure) for outcome in outcomes)


@pytest.mark.parametrize("index", [0, 1])
def test_a_stop_ends_a_host_that_is_alone_before_docker_would_kill_it(tmp_path: Path, index: int) -> None:
    settings = {**SETTINGS, "silence_timeout": 60, "start_timeout": 60}
    with hosts_of(tmp_path, [{"train": ROWS}, {"train": ROWS}], settings) as job:
        host = job[index]
        host.start()
        assert host.process is not None
        assert host.work
        host.process.terminate()
        outcome = host.wait(5)
    assert outcome.code == 143
    assert str(outcome.failure).startswith(f"PlatformError: host {host.name}: the job was stopped by SIGTERM")


def test_a_leader_that_can_not_write_the_model_ends_the_job_on_all_hosts(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("a volume of its own needs the right to mount one")
    disk = Disk(tmp_path / "127.0.0.1/model")
    settings = {**SETTINGS, "num_round": 200}
    channels = [{"train": ROWS}, {"train": ROWS[: len(ROWS) // 2]}]
    with hosts_of(tmp_path, channels, settings, commands=[disk.command, ()]) as job:
        job.start()
        job[0].wait_for("[5]\t")
        disk.fill(job[0])
        outcomes = job.wait(30)
    assert [outcome.code for outcome in outcomes] == [3, 3]
    for outcome in outcomes:
        assert str(outcome.failure).startswith(
            "PlatformError: host 127.0.0.1: the disk is full while writing"
        )
