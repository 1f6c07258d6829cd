"""The check of a machine with a GPU, run without one: the same steps, as far as they can."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

GPU_CHECK = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"


def test_every_step_runs_on_processors_and_says_on_which_xgboost(tmp_path: Path) -> None:
    out = tmp_path / "gpu_check.json"
    done = subprocess.run(
        [sys.executable, GPU_CHECK, "--device", "cpu", "--rows", "20000", "--rounds", "3", "--out", out],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(out.read_text())
    assert report["installed"]["wheel"].startswith("xgboost")
    steps = report["steps"]
    assert steps["jobs"]["agrees"]
    # One worker of the Dask mode trains the very model of the one process.
    assert steps["dask-one"]["logloss"] == steps["jobs"]["processors"]["logloss"]
    assert abs(steps["dask-all"]["logloss"] - steps["dask-one"]["logloss"]) < 0.01
    assert "skipped" in steps["gpu-batches"]
    assert steps["loading"]["gb_a_second"] > 0
    assert 0 < steps["external"]["logloss"] < 0.7
