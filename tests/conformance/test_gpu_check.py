"""The check of a machine with a GPU, run without one: the same steps, as far as they can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

GPU_CHECK = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"


def check(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the check where nvidia-smi is not on the PATH."""
    return subprocess.run(
        [sys.executable, GPU_CHECK, *options],
        cwd=folder,
        env=os.environ | {"PATH": str(folder), "NVIDIA_VISIBLE_DEVICES": "none"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def test_a_gpu_that_is_asked_for_and_not_there_is_one_line(tmp_path: Path) -> None:
    done = check(tmp_path, "--device", "cuda")
    assert done.returncode == 1
    assert done.stderr == "no GPU: nvidia-smi lists none.\n"


def test_every_step_runs_on_processors_and_says_on_which_xgboost(tmp_path: Path) -> None:
    done = check(tmp_path, "--rows", "20000", "--rounds", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[1].startswith("no GPU: nvidia-smi lists none.")
    assert not done.stderr
    report = json.loads((tmp_path / "build/gpu_check.json").read_text())
    assert report["installed"]["wheel"].startswith("xgboost")
    steps = report["steps"]
    assert steps["jobs"]["agrees"]
    # One worker of the Dask mode trains the very model of the one process.
    assert steps["dask-one"]["logloss"] == steps["jobs"]["processors"]["logloss"]
    assert abs(steps["dask-all"]["logloss"] - steps["dask-one"]["logloss"]) < 0.01
    assert steps["gpu-batches"] == {"skipped": "no GPU"}
    assert steps["loading"]["gb_a_second"] > 0
    assert 0 < steps["external"]["logloss"] < 0.7
