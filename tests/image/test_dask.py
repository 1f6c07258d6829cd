"""The Dask mode in containers, with processors in the place of GPUs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.image.containers import learned, start
from tests.image.hosts import hosts, outcomes
from tests.image.local_mode import run_with
from tests.opt_ml import Source, csv, parquet, write_opt_ml

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from tests.image.containers import Train, Variant

SETTINGS = {
    "objective": "reg:squarederror",
    "num_round": 20,
    "max_depth": 4,
    "nthread": 1,
    "use_dask_gpu_training": "true",
    "device": "cpu",
    "workers_per_host": 2,
}


def halves(table: pd.DataFrame) -> Source:
    parts = {"a.csv": table[:1200], "b.csv": table[1200:]}
    return Source({name: csv(part).files["data.csv"] for name, part in parts.items()}, "text/csv")


@pytest.mark.parametrize("variant", ["cpu", "gpu"])
def test_one_host_trains_with_two_workers_confined_and_without_a_network(
    train: Train, table: pd.DataFrame, variant: Variant
) -> None:
    outcome = train(
        "train",
        variant=variant,
        options=("--network", "none", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"),  # noqa: S108
        hyperparameters=SETTINGS,
        channels={"train": halves(table), "validation": parquet(table[:500])},
    )
    assert outcome.code == 0, outcome.log
    assert "Mode: dask (as asked for). Device: cpu (as asked for)." in outcome.log
    assert "Rows of train: algo-1 1,200 + 800; together 2,000." in outcome.log
    shape = r"^\[(\d+)\]\ttrain-rmse:\d+\.\d+\tvalidation-rmse:\d+\.\d+$"
    lines = re.findall(shape, outcome.log, re.MULTILINE)
    assert lines == [str(number) for number in range(20)]
    assert learned(outcome, table)


@pytest.mark.parametrize("distribution", ["ShardedByS3Key", "FullyReplicated"])
def test_two_hosts_train_with_two_workers_each(
    tmp_path: Path, network: str, table: pd.DataFrame, distribution: str
) -> None:
    shards = [{"train": csv(table[:1500])}, {"train": csv(table[1500:])}]
    if distribution == "FullyReplicated":
        shards = [{"train": halves(table)}] * 2
    with hosts(tmp_path, network, shards, SETTINGS, distribution=distribution) as containers:
        leader, other = outcomes(containers)
    assert (leader.code, other.code) == (0, 0), leader.log + other.log
    assert list(leader.models) == ["xgboost-model"]
    assert not other.models
    assert "; together 2,000." in leader.log
    assert "\ttrain-rmse" not in other.log
    assert learned(leader, table)


@pytest.mark.parametrize("count", [1, 2])
def test_the_sdk_trains_with_two_workers_on_each_host(
    count: int, tmp_path: Path, table: pd.DataFrame
) -> None:
    ran = run_with("v2", tmp_path, SETTINGS, {"train": halves(table)}, hosts=count)
    assert ran.code == 0, ran.log
    assert list(ran.archives["model.tar.gz"]) == ["xgboost-model"]
    assert learned(ran.outcome(), table)
    assert "; together 2,000." in ran.log


def test_the_gpu_image_checks_the_announcements_example(tmp_path: Path, table: pd.DataFrame) -> None:
    settings = {
        "objective": "reg:squarederror",
        "num_round": 500,
        "verbosity": 3,
        "tree_method": "gpu_hist",
        "eval_metric": "rmse",
        "use_dask_gpu_training": "true",
    }
    channels = {"train": parquet(table), "validation": parquet(table[:500])}
    base = write_opt_ml(tmp_path / "ml", hyperparameters=settings, channels=channels)
    refused = start(base, "smxgb", "check", variant="gpu").outcome()
    assert refused.code == 2, refused.log
    assert "needs a GPU and this host has none" in refused.log
    settings["device"] = "cpu"
    base = write_opt_ml(tmp_path / "cpu", hyperparameters=settings, channels=channels)
    checked = start(base, "smxgb", "check", variant="gpu").outcome()
    assert checked.code == 0, checked.log
    assert "Mode: dask" in checked.log
    assert "Nothing was found that would stop the job" in checked.log


def test_a_worker_out_of_memory_ends_the_job_with_its_name(train: Train, table: pd.DataFrame) -> None:
    outcome = train(
        "train",
        options=("--memory", "200m", "--memory-swap", "200m"),
        hyperparameters=SETTINGS,
        channels={"train": halves(table)},
    )
    assert outcome.code == 3, outcome.log
    assert outcome.failure is not None
    assert re.match(r"PlatformError: out of memory: the kernel killed (Dask|the work)", outcome.failure)
    assert "200 MiB" in outcome.failure
    assert not outcome.models
