from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.distributed.hosts import free_ports
from tests.opt_ml import write_opt_ml

from smxgb.supervision.link import Listener
from smxgb.supervision.messages import Failed

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ["127.0.0.1", "127.0.0.2"]

FIRST_WORKER = """
import socket, sys
from contextlib import ExitStack
from smxgb.environment import process_environ
from smxgb.job import load_job
from smxgb.supervision.link import Link
from smxgb.supervision.messages import Lead, Rendezvous
from smxgb.trainers.member import join
from smxgb.trainers.tracker import tracker
job = load_job(process_environ())
with tracker(job, Lead("127.0.0.1", ())) as arguments, ExitStack() as held:
    for _ in range(int(sys.argv[2])):
        held.enter_context(socket.create_connection(("127.0.0.1", arguments["dmlc_tracker_port"])))
    join(job, Rendezvous(arguments, ()), Link(int(sys.argv[1])))
"""


@pytest.mark.parametrize("strays", [0, 1])
def test_workers_that_do_not_come_together_say_who_is_connected_with_the_tracker(
    tmp_path: Path, strays: int
) -> None:
    """A stray keeps the tracker busy for as long as it says nothing; without one it waits for the second."""
    [port] = free_ports(HOSTS[0], 1)
    base = write_opt_ml(
        tmp_path,
        hyperparameters={"num_round": 1, "start_timeout": 1, "tracker_port": port},
        channels={"train": b"1,2\n"},
        resourceconfig={"current_host": HOSTS[0], "hosts": HOSTS},
    )
    reading, writing = os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WORKER, str(writing), str(strays)],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(base)},
        pass_fds=[writing],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writing)
    listener = Listener(reading)
    [message] = listener.listen()
    os.close(reading)
    assert done.returncode == 3, done.stderr
    assert done.stderr == ""
    assert isinstance(message, Failed)
    [text] = message.error.mistakes
    assert text.startswith(
        f"the 2 workers did not come together at XGBoost's tracker, 127.0.0.1, port {port}. "
        f"It has these connections: {1 + strays} from 127.0.0.1."
    )
    assert "set tracker_port" in text
