"""Whole training jobs in containers of the cpu image, started as SageMaker and as users start them."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import WriteOptions, write_csv
from tests.image.containers import NOTEBOOK, docker, image, learned, start
from tests.opt_ml import Source, csv, parquet, write_opt_ml

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from tests.image.containers import Train

TMP = ("--tmpfs", "/tmp")  # noqa: S108 - a folder in the container

NO_HEADER = WriteOptions(include_header=False)
SETTINGS = {"objective": "reg:squarederror", "num_round": 20, "max_depth": 4}


@pytest.fixture(scope="module")
def large() -> Source:
    """Return 200,000 rows of 50 columns as CSV, 40 MB as float32."""
    columns = np.random.default_rng(7).normal(size=(50, 200_000)).astype("float32")
    buffer = io.BytesIO()
    write_csv(pa.table(list(columns), names=[f"x{number}" for number in range(50)]), buffer, NO_HEADER)
    return Source({"data.csv": buffer.getvalue()}, "text/csv")


def test_csv_trains_a_model_and_nothing_else_stands_beside_it(train: Train, table: pd.DataFrame) -> None:
    outcome = train("train", hyperparameters=SETTINGS, channels={"train": table, "validation": table[:500]})
    assert outcome.code == 0, outcome.log
    assert list(outcome.models) == ["xgboost-model"]
    assert outcome.failure is None
    assert learned(outcome, table)
    assert {"metrics.json", "feature_importance.csv"} <= outcome.output_data.keys()
    assert "[19]\ttrain-rmse:" in outcome.log


def test_parquet_trains_a_model_with_its_column_names(train: Train, table: pd.DataFrame) -> None:
    outcome = train("train", hyperparameters=SETTINGS, channels={"train": parquet(table)})
    assert outcome.code == 0, outcome.log
    assert outcome.booster().feature_names == ["x0", "x1", "x2", "x3"]
    assert learned(outcome, table)


def test_the_settings_of_a_typical_notebook_train_unchanged(train: Train, table: pd.DataFrame) -> None:
    outcome = train("train", hyperparameters=NOTEBOOK, channels={"train": table, "validation": table[:500]})
    assert outcome.code == 0, outcome.log
    assert learned(outcome, table)


def test_without_a_command_the_image_trains(train: Train, table: pd.DataFrame) -> None:
    outcome = train(hyperparameters=SETTINGS, channels={"train": table})
    assert outcome.code == 0, outcome.log
    assert learned(outcome, table)


def test_missing_configuration_files_are_empty_ones(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train",
        hyperparameters=SETTINGS,
        channels={"train": table},
        inputdataconfig=None,
        resourceconfig=None,
    )
    assert outcome.code == 0, outcome.log
    assert learned(outcome, table)


def test_missing_hyperparameters_are_the_users_mistake(train: Train, table: pd.DataFrame) -> None:
    outcome = train("train", hyperparameters=None, channels={"train": table})
    assert outcome.code == 2
    assert outcome.failure is not None
    assert outcome.failure.startswith("UserError: ")
    assert "num_round" in outcome.failure
    assert not outcome.models


def test_without_a_mounted_tree_the_image_says_what_it_needs() -> None:
    done = docker("run", "--rm", image("cpu"), "train")
    assert done.returncode == 2, done.stdout
    assert "UserError: " in done.stdout
    assert "num_round" in done.stdout


def test_any_user_may_train_where_the_folders_are_his(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train",
        options=("--user", "1000:1000"),
        owner=1000,
        hyperparameters=SETTINGS,
        channels={"train": table},
    )
    assert outcome.code == 0, outcome.log
    assert learned(outcome, table)


def test_a_user_who_may_not_write_is_told_so(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train", options=("--user", "1000:1000"), hyperparameters=SETTINGS, channels={"train": table}
    )
    assert outcome.code == 3, outcome.log
    assert "PlatformError: " in outcome.log
    assert not outcome.models


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--network", "none"), id="without a network"),
        pytest.param(("--read-only", *TMP), id="on a read-only root"),
        pytest.param(("--read-only",), id="on a read-only root without a temporary folder"),
        pytest.param(("--read-only", *TMP, "--network", "none", "--cap-drop", "ALL"), id="all together"),
    ],
)
def test_a_confined_container_trains(train: Train, table: pd.DataFrame, options: tuple[str, ...]) -> None:
    outcome = train("train", options=options, hyperparameters=SETTINGS, channels={"train": csv(table)})
    assert outcome.code == 0, outcome.log
    assert learned(outcome, table)


def test_the_limits_of_the_container_are_the_jobs(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train",
        options=("--cpus", "1", "--memory", "600m"),
        hyperparameters=SETTINGS,
        channels={"train": table},
    )
    assert outcome.code == 0, outcome.log
    assert "Threads: 1." in outcome.log
    assert re.search(r"Memory: \d+ MiB free of 600 MiB", outcome.log)


def test_docker_stop_ends_the_job_promptly_with_the_model_that_it_has(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    base = write_opt_ml(
        tmp_path / "ml", hyperparameters={**SETTINGS, "num_round": 1_000_000}, channels={"train": table}
    )
    container = start(base, "train")
    container.wait_for("[10]\t")
    assert container.stop(seconds=60) < 10
    outcome = container.outcome()
    assert outcome.code == 0, outcome.log
    assert outcome.failure is None
    assert outcome.booster().num_boosted_rounds() > 10


def test_a_stop_in_the_first_moment_of_process_1_is_not_lost(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "sh",
        "-c",
        "(until readlink /proc/1/exe | grep -q python; do :; done; kill -TERM 1) & exec train",
        hyperparameters={**SETTINGS, "num_round": 1_000_000},
        channels={"train": table},
    )
    assert outcome.code == 143, outcome.log
    assert outcome.failure is not None
    assert "SIGTERM before its first phase" in outcome.failure


def test_a_job_that_the_kernel_kills_for_memory_is_explained(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train",
        options=("--memory", "48m", "--memory-swap", "48m"),
        hyperparameters=SETTINGS,
        channels={"train": table},
    )
    assert outcome.code == 3, outcome.log
    assert outcome.failure is not None
    assert outcome.failure.startswith("PlatformError: out of memory: the kernel killed the work")
    assert "48 MiB" in outcome.failure
    assert not outcome.models


def test_a_job_killed_while_it_reads_says_so(train: Train, large: Source) -> None:
    outcome = train(
        "train",
        options=("--memory", "96m", "--memory-swap", "96m"),
        hyperparameters=SETTINGS,
        channels={"train": large},
    )
    assert outcome.code == 3, outcome.log
    assert outcome.failure is not None
    assert "the kernel killed the work in phase load" in outcome.failure


def test_a_job_that_does_not_fit_is_refused_with_the_numbers(train: Train, large: Source) -> None:
    outcome = train(
        "train",
        options=("--memory", "200m", "--memory-swap", "200m"),
        hyperparameters=SETTINGS,
        channels={"train": large},
    )
    assert outcome.code == 3, outcome.log
    assert outcome.failure is not None
    expected = r"PlatformError: .* needs about \d+ MiB of memory, .* and \d+ MiB are free"
    assert re.search(expected, outcome.failure)
    assert not outcome.models


def test_a_full_disk_under_the_model_is_explained(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train",
        options=("--tmpfs", "/opt/ml/model:size=16k"),
        hyperparameters={**SETTINGS, "num_round": 100},
        channels={"train": table},
    )
    assert outcome.code == 3, outcome.log
    assert outcome.failure is not None
    assert outcome.failure.startswith("PlatformError: the disk is full")
    assert "/opt/ml/model" in outcome.failure


def test_a_spool_folder_too_small_is_explained(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train",
        options=("--tmpfs", "/spool:size=8k"),
        hyperparameters={**SETTINGS, "spool_dir": "/spool"},
        channels={"train": table},
    )
    assert outcome.code == 3, outcome.log
    assert outcome.failure is not None
    assert outcome.failure.startswith("PlatformError: ")
    assert "/spool" in outcome.failure
    assert not outcome.models
