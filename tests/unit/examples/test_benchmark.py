from __future__ import annotations

import argparse
import importlib.util
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from smxgb.settings.metrics import metric_definitions

if TYPE_CHECKING:
    from types import ModuleType

FOLDER = Path(__file__).parents[3] / "examples/benchmark"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark", FOLDER / "benchmark.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What DescribeTrainingJob answers of a finished job, by AWS's reference.
ANSWER = {
    "TrainingJobName": "smxgb-all-gpus-g4dn-12xlarge-x2-1130120000",
    "TrainingJobStatus": "Completed",
    "HyperParameters": {"tree_method": "gpu_hist", "use_dask_gpu_training": "true"},
    "ResourceConfig": {"InstanceType": "ml.g4dn.12xlarge", "InstanceCount": 2, "VolumeSizeInGB": 100},
    "TrainingTimeInSeconds": 1800,
    "BillableTimeInSeconds": 1500,
    "FinalMetricDataList": [
        {"MetricName": "validation:rmse", "Value": 2.5012345},
        {"MetricName": "train:rmse", "Value": 2.25},
    ],
}


def test_a_row_has_billed_seconds_and_cost_of_all_instances(benchmark: ModuleType) -> None:
    row = benchmark.row(ANSWER, {"ml.g4dn.12xlarge": 6.0})
    assert row == (
        *("all GPUs", "ml.g4dn.12xlarge", "2", "Completed"),
        *("1,800", "3,000", "5.00", "2.25", "2.5012"),
    )


def test_a_row_of_a_job_that_runs_leaves_open_what_is_not_known(benchmark: ModuleType) -> None:
    unknown = {"TrainingTimeInSeconds", "BillableTimeInSeconds", "FinalMetricDataList"}
    answer = {key: value for key, value in ANSWER.items() if key not in unknown}
    row = benchmark.row(answer | {"TrainingJobStatus": "InProgress"}, {})
    assert row[3:] == ("InProgress", "-", "-", "-", "-", "-")


def test_the_grid_gives_a_job_for_each_count_with_a_name_that_sagemaker_takes(benchmark: ModuleType) -> None:
    grid = tomllib.loads((FOLDER / "grid.toml").read_text())
    options = argparse.Namespace(
        image="image", role="role", data="s3://b/d", output="s3://b/o", volume=1, hours=2
    )
    requests = list(benchmark.requests(grid, options, "1130120000"))
    assert len(requests) == sum(len(entry["counts"]) for entry in grid["job"])
    names = [request["TrainingJobName"] for request in requests]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 and name.replace("-", "").isalnum() for name in names)
    assert all(type(value) is str for request in requests for value in request["HyperParameters"].values())
    for request in requests:
        asked = request["AlgorithmSpecification"]["MetricDefinitions"]
        assert [definition for definition in metric_definitions() if definition in asked] == asked
    assert {entry["instance"] for entry in grid["job"]} == set(grid["prices"])
