"""The tracker as XGBoost's workers see it, and as others do."""

from __future__ import annotations

import json
import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest
from tests.distributed.hosts import free_ports
from tests.opt_ml import write_opt_ml

from smxgb.errors import PlatformError
from smxgb.job import Job, load_job
from smxgb.supervision.messages import Lead
from smxgb.trainers.tracker import MAGIC, task_of, tracker

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ["127.0.0.1", "127.0.0.2"]
LEAD = Lead(HOSTS[0], ())


@pytest.fixture
def job(tmp_path: Path) -> Job:
    [port] = free_ports(HOSTS[0], 1)
    base = write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 1, "tracker_port": port},
        channels={"train": b"1,2\n"},
        resourceconfig={"current_host": HOSTS[0], "hosts": HOSTS},
    )
    return load_job({"SAGEMAKER_BASE_DIR": str(base)})


def message(value: object) -> bytes:
    text = json.dumps(value).encode()
    return struct.pack("=i", len(text)) + text


def start(task: str, port: int = 5) -> bytes:
    told = {"world_size": -1, "rank": -1, "task_id": task}, {"cmd": 1, "port": port, "error_port": 6}
    return MAGIC + b"".join(map(message, told))


def answers(stream: socket.socket) -> list[Any]:
    """Return what the tracker says to a worker until it closes the connection."""
    with stream, stream.makefile("rb") as read:
        assert read.read(4) == MAGIC
        found = []
        while size := read.read(4):
            found.append(json.loads(read.read(struct.unpack("=i", size)[0])))
        return found


def connect(port: object, said: bytes = b"") -> socket.socket:
    assert isinstance(port, int)
    stream = socket.create_connection((HOSTS[0], port), timeout=30)
    stream.sendall(said)
    return stream


def test_each_worker_hears_who_comes_after_it_whatever_their_order(job: Job) -> None:
    with tracker(job, LEAD) as arguments:
        port = arguments["dmlc_tracker_port"]
        assert arguments["dmlc_tracker_uri"] == HOSTS[0]
        second, first = connect(port, start(task_of(1, 0), 51)), connect(port, start(task_of(0, 0), 50))
        assert answers(first) == [{"world_size": 2}, {"rank": 1, "host": HOSTS[0], "port": 51}]
        assert answers(second) == [{"world_size": 2}, {"rank": 0, "host": HOSTS[0], "port": 50}]


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        MAGIC + struct.pack("=i", 2**31 - 1),
        MAGIC + struct.pack("=i", -1),
        MAGIC + message(["task_id"]),
        MAGIC + message({"world_size": 2}),
        MAGIC + struct.pack("=i", 4000) + b"[" * 4000,
        start("00007-000"),
        MAGIC + message({"task_id": task_of(0, 0)}) + message({"cmd": 3, "port": 5}),
    ],
    ids=["http", "long", "negative", "list", "no task", "nested", "other task", "other command"],
)
def test_who_does_not_speak_as_a_worker_is_left_and_the_workers_come_together(job: Job, said: bytes) -> None:
    with tracker(job, LEAD) as arguments:
        port = arguments["dmlc_tracker_port"]
        silent = connect(port)
        assert silent.recv(4) == MAGIC
        assert answers(connect(port, said)) == []
        workers = [connect(port, start(task_of(host, 0))) for host in range(2)]
        assert [len(answers(worker)) for worker in workers] == [2, 2]
        silent.close()


def test_nobody_is_heard_any_more_when_all_have_joined(job: Job) -> None:
    with tracker(job, LEAD) as arguments:
        silent = connect(arguments["dmlc_tracker_port"])
        assert silent.recv(4) == MAGIC
    assert silent.recv(1) == b""
    silent.close()
    with pytest.raises(ConnectionRefusedError):
        connect(arguments["dmlc_tracker_port"])


def test_a_taken_port_is_named_with_its_setting(job: Job) -> None:
    port = job.parameters.settings.tracker_port
    with (
        socket.create_server((HOSTS[0], port)),
        pytest.raises(PlatformError, match=f"port {port} .Address already in use.: set tracker_port"),
        tracker(job, LEAD),
    ):
        pass
