"""Processes that are no part of a job, and connect with its ports; and processes that are stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from tests.distributed.hosts import Host, hosts_of, wait_until
from tests.opt_ml import csv

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS: dict[str, object] = {"objective": "reg:squarederror", "num_round": 5, "max_depth": 3}
ENDLESS = {**SETTINGS, "num_round": 1_000_000}
DASK: dict[str, object] = {"use_dask_gpu_training": "true", "device": "cpu", "workers_per_host": 2}
LISTEN = "0A"
FEW_DESCRIPTORS = ("sh", "-c", 'ulimit -n 60; exec "$@"', "sh")


def shards() -> list[dict[str, object]]:
    x = np.random.default_rng(3).normal(size=2000).astype(np.float32)
    table = pd.DataFrame({"y": 2 * x, "x": x})
    return [{"train": csv(table[:1000])}, {"train": csv(table[1000:])}]


@contextmanager
def staying(port: int, most: int) -> Iterator[list[socket.socket]]:
    """Open up to `most` connections with a port as long as the block runs, and say nothing over them."""
    held: list[socket.socket] = []
    over = Event()

    def knock() -> None:
        while not over.wait(0.002):
            if len(held) < most:
                with suppress(OSError):
                    held.append(socket.create_connection(("127.0.0.1", port), timeout=1))

    knocking = Thread(target=knock, daemon=True)
    knocking.start()
    try:
        yield held
    finally:
        over.set()
        knocking.join()
        for each in held:
            each.close()


def listening(process: int) -> list[int]:
    """Return the ports at which a process listens."""
    sockets = set()
    for path in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            sockets.add(str(path.readlink()))
    rows = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    return [
        int(row[1].partition(":")[2], 16)
        for row in rows
        if row[3] == LISTEN and f"socket:[{row[9]}]" in sockets
    ]


def port_of(host: Host, name: str) -> int:
    settings = json.loads((host.base / "input" / "config" / "hyperparameters.json").read_text())
    return int(settings[name])


def test_connections_that_stay_with_the_tracker_hold_nothing_up(tmp_path: Path) -> None:
    with hosts_of(tmp_path, shards(), SETTINGS) as job, staying(port_of(job[0], "tracker_port"), 50) as held:
        leader, other = job.run()
        assert held
    assert [leader.code, other.code] == [0, 0], leader.log
    assert list(leader.models) == ["xgboost-model"]


def test_the_work_listens_no_more_once_the_workers_have_met(tmp_path: Path) -> None:
    with hosts_of(tmp_path, shards(), ENDLESS) as job:
        job.start()
        job[0].wait_for("[3]\t")
        assert [listening(host.work) for host in job] == [[], []]
        assert listening(job[0].supervisor) == [port_of(job[0], "control_port")]


def test_a_leader_without_descriptors_waits_until_there_are_some(tmp_path: Path) -> None:
    commands = [FEW_DESCRIPTORS, ()]
    with hosts_of(tmp_path, shards(), SETTINGS, commands=commands) as job:
        leader, other = job
        leader.start()
        leader.wait_for("Control channel: ")
        with staying(port_of(leader, "control_port"), 100):
            leader.wait_for("The control channel could not take a connection: Too many open files.")
            other.start()
        ended = job.wait()
    assert [each.code for each in ended] == [0, 0], ended[0].log
    assert leader.log.count("could not take a connection") < 60


def test_hosts_with_different_hyperparameters_are_told_at_once(tmp_path: Path) -> None:
    with hosts_of(tmp_path, shards(), SETTINGS) as job:
        path = job[1].base / "input" / "config" / "hyperparameters.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "max_depth": "4"}))
        ended = job.run()
    for each in ended:
        assert each.code == 2, each.log
        assert str(each.failure).startswith(
            "UserError: host 127.0.0.2 differs from host 127.0.0.1 in max_depth: give all hosts of a job"
        )


@pytest.mark.parametrize("mode", [{}, DASK], ids=["single", "dask"])
def test_work_that_is_stopped_on_one_host_alone_is_missed(tmp_path: Path, mode: dict[str, object]) -> None:
    settings = {**ENDLESS, **mode, "silence_timeout": 3, "max_restarts": 0}
    with hosts_of(tmp_path, shards()[:1], settings) as job:
        job.start()
        job[0].wait_for("[3]\t")
        begin = time.monotonic()
        os.kill(job[0].work, signal.SIGSTOP)
        [ended] = job.wait()
    assert time.monotonic() - begin < 30
    assert ended.code == 3
    assert str(ended.failure).startswith(
        "PlatformError: the work gave no sign of life for 3 s in phase train"
    )


def test_processes_of_dask_speak_to_none_but_their_own(tmp_path: Path) -> None:
    """Not to one who sends junk or says nothing either, through the loopback of the host itself."""
    with hosts_of(tmp_path, shards()[:1], {**ENDLESS, **DASK}) as job:
        job.start()
        job[0].wait_for("[3]\t")
        children = Path(f"/proc/{job[0].supervisor}/task/{job[0].supervisor}/children").read_text().split()
        ports = [port for child in children for port in listening(int(child))]
        assert len(ports) >= 3
        for port in ports:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as stream:
                stream.sendall(os.urandom(64))
        rounds = job[0].log.count("\ttrain-rmse:")
        wait_until(lambda: job[0].log.count("\ttrain-rmse:") > rounds + 3, "the next rounds")
        assert "PRIVATE KEY" not in job[0].log
        for child in children:
            shown = Path(f"/proc/{child}/cmdline").read_text() + Path(f"/proc/{child}/environ").read_text()
            assert "PRIVATE KEY" not in shown
