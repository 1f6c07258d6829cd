"""Signals that stop whole jobs near their end: the exit code is 0 with a whole model, else there is none."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
import xgboost as xgb
from tests.opt_ml import csv, write_opt_ml

from smxgb.supervision.child import STOPS

if TYPE_CHECKING:
    from pathlib import Path

JOBS, IN_CI = 100, 3
LAST_ROUND, ROUNDS = "[39]", 40
AFTER = 0.6
"""Seconds from the last round to the end of a job, and some more, in which the signal comes."""


@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[] if seed < IN_CI else [pytest.mark.soak]) for seed in range(JOBS)],
)
def test_a_signal_near_the_end_leaves_a_whole_model_and_exit_code_0_or_neither(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - moments, not secrets
    rows = "".join(f"{row % 2},{row},{row * row % 7}\n" for row in range(500)).encode()
    write_opt_ml(tmp_path, hyperparameters={"num_round": ROUNDS}, channels={"train": csv(rows)})
    with subprocess.Popen(
        [sys.executable, "-m", "smxgb", "train"],
        env={**os.environ, "SAGEMAKER_BASE_DIR": str(tmp_path), "NVIDIA_VISIBLE_DEVICES": "none"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as job:
        assert job.stdout is not None
        for line in job.stdout:
            if line.startswith(LAST_ROUND):
                break
        number = rng.choice(STOPS)
        timer = threading.Timer(rng.uniform(0, AFTER), job.send_signal, [number])
        timer.start()
        log = job.stdout.read()
        code = job.wait(60)
        timer.cancel()
    model = tmp_path / "model" / "xgboost-model"
    failure = tmp_path / "output" / "failure"
    if code == 0:
        assert xgb.Booster(model_file=bytearray(model.read_bytes())).num_boosted_rounds() == ROUNDS
        assert not failure.exists()
        assert "Model: " in log
    else:
        assert code == 128 + number, log
        assert list(model.parent.iterdir()) == []
        assert f"was stopped by {signal.Signals(number).name}" in failure.read_text()
