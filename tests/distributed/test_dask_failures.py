"""A process of a Dask job fails: all hosts end, soon, with its cause, and none with success."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import pytest
from tests.distributed.dask_hosts import dask_hosts, processes
from tests.distributed.hosts import wait_until
from tests.distributed.table import TABLE, Line
from tests.opt_ml import Source

if TYPE_CHECKING:
    from tests.distributed.hosts import Hosts

type Fault = Literal[
    "worker killed", "worker frozen", "scheduler killed", "scheduler frozen", "client killed", "host killed"
]
type Stage = Literal["loading", "loaded", "training"]

SILENCE = 4
SETTINGS = {
    "num_round": 1_000_000,
    "silence_timeout": SILENCE,
    "max_restarts": 0,
    "objective": "binary:logistic",
    "max_depth": 2,
}
ROWS = b"1,0.5,2,0.25\n0,0.25,1,0.5\n" * 500
SLOW_ROWS = b"1,   NA   ,1,1\n0,1,1,1\n" * 3_000_000
"""Wide padding around a missing value is read with care, which takes seconds for these."""

CI = {("worker killed", 1, "loading"), ("worker killed", 0, "loaded"), ("worker frozen", 1, "training")}
"""The rows of the table that each run of the suite has time for."""


@dataclass(frozen=True)
class Row:
    """One row of the table: what happens on which of two hosts, and when."""

    fault: Fault
    victim: int
    stage: Stage

    @property
    def limit(self) -> float:
        """Seconds within which all must have ended."""
        return (SILENCE if self.fault.endswith("frozen") else 0) + 5

    @property
    def named(self) -> str:
        """What the failure files of all hosts must name, beside the host."""
        return {
            "worker killed": "Dask worker 1",
            "worker frozen": "Dask worker 1",
            "scheduler killed": "Dask's scheduler",
            "scheduler frozen": "Dask's scheduler",
            "client killed": "the work",
            "host killed": "",
        }[self.fault]


def rows() -> list[object]:
    stages: tuple[Stage, ...] = get_args(Stage.__value__)
    every = [
        Row(fault, victim, stage)
        for fault in get_args(Fault.__value__)
        for victim in (0, 1)
        for stage in stages
        if victim == 0 or fault not in {"scheduler killed", "scheduler frozen", "client killed"}
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
def test_when_a_process_fails_all_hosts_end_soon_and_name_it(row: Row, tmp_path: Path) -> None:
    slow = {"loading": row.victim, "loaded": 1 - row.victim}.get(row.stage)
    shards = [
        {
            "train": Source(
                {f"part-{host}.csv": SLOW_ROWS if host == slow else ROWS[: -26 * host or None]}, None
            )
        }
        for host in (0, 1)
    ]
    with dask_hosts(tmp_path, shards, SETTINGS, "ShardedByS3Key") as job:
        reach(row, job)
        started = [processes(host) for host in job]
        begin = time.monotonic()
        strike(row, job, started[row.victim])
        outcomes = job.wait()
        seconds = max(host.ended or 0 for host in job) - begin
        victim = job[row.victim].name
    failures = [outcome.failure or "-" for outcome in outcomes]
    codes = [outcome.code for outcome in outcomes]
    TABLE.append(Line(row.fault, ("leader", "other")[row.victim], row.stage, codes, seconds, failures))
    assert 0 not in codes, failures
    assert not any(outcome.models for outcome in outcomes)
    assert not any("Traceback" in outcome.log for outcome in outcomes)
    assert seconds < row.limit, failures
    for index, failure in enumerate(failures):
        if row.fault == "host killed" and index == row.victim:
            assert failure == "-"  # nobody was left there to write one
        else:
            assert victim in failure, failures
            assert row.named in failure, failures
    assert_gone(pid for host in started for pid in host.values())


def assert_gone(pids: object) -> None:
    for pid in pids:  # type: ignore[attr-defined]
        wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), f"the end of process {pid}", 5)


def reach(row: Row, job: Hosts) -> None:
    job.start()
    if row.stage == "training":
        job[0].wait_for("[20]\t")
    else:
        job[row.victim].wait_for("no header")
        time.sleep(1)


def strike(row: Row, job: Hosts, victims: dict[str, int]) -> None:
    if row.fault == "host killed":
        job[row.victim].kill()
        return
    name = {"scheduler": "dask-scheduler", "client": "work", "worker": "dask-worker1"}[row.fault.split()[0]]
    os.kill(victims[name], signal.SIGSTOP if row.fault.endswith("frozen") else signal.SIGKILL)


@pytest.mark.parametrize(("fault", "number"), [("killed", signal.SIGKILL), ("frozen", signal.SIGSTOP)])
def test_on_one_host_a_lost_worker_ends_the_job_with_its_cause(
    tmp_path: Path, fault: str, number: signal.Signals
) -> None:
    with dask_hosts(tmp_path, [{"train": ROWS}], SETTINGS) as job:
        job.start()
        job[0].wait_for("[20]\t")
        started = processes(job[0])
        begin = time.monotonic()
        os.kill(started["dask-worker0"], number)
        [outcome] = job.wait()
        assert time.monotonic() - begin < SILENCE + 5
    assert outcome.code not in {0, 1}
    assert outcome.failure is not None
    assert "Dask worker 0" in outcome.failure
    assert fault in outcome.failure
    assert "phase train" in outcome.failure
    assert not outcome.models
    assert_gone(started.values())


def test_a_stop_leaves_a_model_and_no_process(tmp_path: Path) -> None:
    with dask_hosts(tmp_path, [{"train": ROWS}, {"train": ROWS[26:]}], SETTINGS) as job:
        job.start()
        job[0].wait_for("[20]\t")
        started = [processes(host) for host in job]
        for host in job:
            assert host.process is not None
            host.process.terminate()
        # A Dask worker that gets SIGTERM itself waits for its task.
        outcomes = job.wait(10)
    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert outcomes[0].booster().num_boosted_rounds() > 20
    assert_gone(pid for host in started for pid in host.values())


def test_a_worker_that_does_not_come_in_time_is_named_with_its_host(tmp_path: Path) -> None:
    settings = {**SETTINGS, "start_timeout": 6, "silence_timeout": 60}
    with dask_hosts(tmp_path, [{"train": ROWS}, {"train": ROWS[26:]}], settings) as job:
        job.start()
        wait_until(lambda: "dask-worker1" in processes(job[1]), "the second worker of the second host")
        os.kill(processes(job[1])["dask-worker1"], signal.SIGSTOP)
        outcomes = job.wait()
    assert [outcome.code for outcome in outcomes] == [3, 3]
    for outcome in outcomes:
        assert outcome.failure is not None
        assert "start_timeout=6" in outcome.failure
        assert "127.0.0.2/1" in outcome.failure
        assert "127.0.0.2/0" not in outcome.failure
