"""What was left out of the image is not missed: it trains from each format, and the model predicts."""

from __future__ import annotations

import bz2
import gzip
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.image.containers import learned, start
from tests.opt_ml import Source, csv, libsvm, parquet, recordio, write_opt_ml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from tests.image.containers import Train

SETTINGS = {"objective": "reg:squarederror", "num_round": 20, "max_depth": 4}


def compressed(table: pd.DataFrame) -> Source:
    half = len(table) // 2
    first, second = (csv(rows).files["data.csv"] for rows in (table[:half], table[half:]))
    return Source({"a.csv.gz": gzip.compress(first), "b.csv.bz2": bz2.compress(second)}, "text/csv")


@pytest.mark.parametrize("write", [csv, parquet, libsvm, recordio, compressed])
def test_the_image_trains_from(
    train: Train, table: pd.DataFrame, write: Callable[[pd.DataFrame], Source]
) -> None:
    channels = {"train": write(table), "validation": write(table[:500])}
    outcome = train("train", options=("--read-only",), hyperparameters=SETTINGS, channels=channels)
    assert outcome.code == 0, outcome.log
    assert "Validation matrix has 500 rows" in outcome.log
    assert learned(outcome, table)


def test_the_image_trains_from_a_pipe(tmp_path: Path, table: pd.DataFrame) -> None:
    config = {"train": {"ContentType": "text/csv", "TrainingInputMode": "Pipe"}}
    base = write_opt_ml(tmp_path / "ml", hyperparameters=SETTINGS, channels={}, inputdataconfig=config)
    (base / "input/data").mkdir(parents=True)
    os.mkfifo(base / "input/data/train_0")
    container = start(base, "train")
    (tmp_path / "rows.csv").write_bytes(csv(table).files["data.csv"])
    copy = "import shutil, sys; shutil.copyfileobj(open(sys.argv[1], 'rb'), open(sys.argv[2], 'wb'))"
    command = [sys.executable, "-c", copy, str(tmp_path / "rows.csv"), str(base / "input/data/train_0")]
    with subprocess.Popen(command) as writer:
        outcome = container.outcome()
        writer.kill()
    assert outcome.code == 0, outcome.log
    assert learned(outcome, table)
