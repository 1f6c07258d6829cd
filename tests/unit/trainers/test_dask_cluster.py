from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.opt_ml import write_opt_ml

from smxgb.trainers.dask_cluster import unreachable

if TYPE_CHECKING:
    from pathlib import Path

    from smxgb.errors import JobError


def failure_of(error: Exception, below: Exception | None = None) -> JobError:
    with pytest.raises(type(error)) as caught:
        raise error from below
    return unreachable(caught.value)


def test_a_scheduler_that_does_not_answer_may_be_the_consequence_of_another_failure() -> None:
    failure = failure_of(OSError("Timed out trying to connect to tcp://127.0.0.1:8786"))
    assert str(failure).startswith("PlatformError: Dask's scheduler can't be reached: Timed out")
    assert failure.origin == "elsewhere"


def test_a_lack_of_memory_is_no_scheduler_that_does_not_answer() -> None:
    failure = failure_of(RuntimeError("Worker failed to start."), MemoryError())
    assert str(failure).startswith("PlatformError: out of memory: ")
    assert failure.origin == "here"


WORKER = """
import logging, os, sys, types
sys.modules["dask_cuda"] = types.ModuleType("dask_cuda")
sys.modules["dask_cuda.utils"] = utils = types.ModuleType("dask_cuda.utils")
def affinity(gpu):
    import distributed  # as dask-cuda does
    raise SystemExit(logging.getLogger("distributed.core").level)
utils.get_cpu_affinity = affinity
os.environ["SAGEMAKER_BASE_DIR"] = sys.argv[1]
from smxgb.supervision.link import Link
from smxgb.supervision.messages import Rendezvous, encode
from smxgb.trainers.dask_cluster import run_worker
reading, writing = os.pipe()
os.write(writing, encode(Rendezvous({"scheduler": "tls://127.0.0.1:9"}, ())) + b"\\n")
run_worker(Link(reading), 0, "0")
"""


def test_the_log_levels_of_dask_are_set_before_dask_cuda_is_imported(tmp_path: Path) -> None:
    write_opt_ml(tmp_path, hyperparameters={"num_round": 1}, channels={"train": b"1,2\n0,1\n"})
    done = subprocess.run(
        [sys.executable, "-c", WORKER, tmp_path], timeout=60, check=False, capture_output=True
    )
    assert done.returncode == 50, done.stderr.decode()  # logging.CRITICAL
