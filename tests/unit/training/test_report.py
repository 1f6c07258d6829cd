from __future__ import annotations

from pathlib import Path

import pytest

from smxgb.environment import Hosts, Paths
from smxgb.job import Channel, Channels, DataFile
from smxgb.job.job import Job
from smxgb.job.mode import Choice, Team
from smxgb.machine import Machine
from smxgb.settings import parse
from smxgb.training.report import start_block


def job(count: int, size: int, current: str = "algo-1", hosts: tuple[str, ...] = ("algo-1",)) -> Job:
    files = tuple(DataFile(Path(f"/data/train/{number}"), size) for number in range(count))
    train = Channel("train", Path("/data/train"), "csv", "File", "FullyReplicated", files)
    return Job(
        paths=Paths(Path("/opt/ml")),
        hosts=Hosts(current, hosts),
        machine=Machine(2, 8 << 30, "cgroup", 7 << 30, ()),
        parameters=parse({"num_round": 3, "eta": "0.3"}),
        channels=Channels(train, None, ("Channel 'x' is not used.",)),
        team=Team(Choice("single", "one host"), Choice("cpu", "no GPU is there"), 1),
        notes=("a note",),
    )


def test_the_start_says_what_runs_on_what_and_why() -> None:
    _, mode, machine, channel, settings, note = start_block(job(1, 2048))
    assert mode == "Mode: single (one host). Device: cpu (no GPU is there)."
    assert machine == "Threads: 2. Memory: 7.0 GiB free of 8.0 GiB (the cgroup's)."
    assert channel == "Channel train: 1 file, 2.0 KiB, csv (given), File, FullyReplicated."
    assert settings == 'Hyperparameters: {"num_round": 3, "eta": 0.3}'
    assert note == "a note"


def test_another_host_says_in_one_line_what_only_it_knows() -> None:
    block = start_block(job(2, 2048, "algo-2", ("algo-1", "algo-2")))
    assert block == [
        "Host algo-2: cpu, 2 threads, 7.0 GiB free of 8.0 GiB (the cgroup's); train 2 files, 4.0 KiB."
    ]


@pytest.mark.parametrize(
    ("count", "size", "said"), [(1001, 3000, True), (1000, 3000, False), (1001, 1 << 20, False)]
)
def test_many_small_files_are_pointed_out(count: int, size: int, *, said: bool) -> None:
    text = "Channel train: its files have 2.9 KiB on average; fewer and larger ones are read faster."
    assert (text in start_block(job(count, size))) == said
