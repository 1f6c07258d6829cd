"""Every example, run as a user runs it.

Those for SageMaker hand their CreateTrainingJob request to a stand-in for AWS; the job that it asks for then
runs in containers. Those for local mode start the containers themselves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from tests.image.aws import Stand, stand_in
from tests.image.containers import DOCKER, containers, image
from tests.image.environments import python_of
from tests.image.requested import Platform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.image.requested import Request
    from tests.opt_ml import Outcome

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
ROLE = "arn:aws:iam::123456789012:role/training"
QUIET = "SchemaVersion: '1.0'\nSageMaker: {PythonSDK: {Modules: {TelemetryOptOut: true}}}\n"


class Cloud:
    """An AWS with a bucket `data`, and a user's environment to talk to it."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.folder = folder
        (folder / "quiet.yaml").write_text(QUIET)
        self.environ = stand.environ(folder) | {
            "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
            "SAGEMAKER_USER_CONFIG_OVERRIDE": str(folder / "quiet.yaml"),
            # SDK 3 asks for a simulation of the role's policies, which moto does not have.
            "SAGEMAKER_VALIDATE_ROLE": "false",
        }
        keys = {"aws_access_key_id": "stand-in", "aws_secret_access_key": "stand-in"}
        common: dict[str, Any] = {"endpoint_url": stand.endpoint, "region_name": "eu-west-1", **keys}
        self.s3 = boto3.client("s3", **common)
        self.sagemaker = boto3.client("sagemaker", **common)
        place = {"LocationConstraint": "eu-west-1"}
        self.s3.create_bucket(Bucket="data", CreateBucketConfiguration=place)

    def run(self, *command: str | Path) -> str:
        """Run a program in this environment; its output is shown if it fails."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def make_dataset(self, prefix: str, *options: str) -> None:
        """Put files below a prefix of the bucket."""
        self.run(REPOSITORY / "scripts/make_dataset", f"s3://data/{prefix}", *options)

    def request_of(self, sdk: str, example: str, data: str, *options: str) -> Request:
        """Run an example; return the training job that it asked for."""
        common = ["--image", image("cpu"), "--role", ROLE, "--data", f"s3://data/{data}"]
        output = ["--output", "s3://data/models"]
        before = self.jobs()
        self.run(python_of(sdk), REPOSITORY / "examples" / example, *common, *output, *options)
        (name,) = self.jobs() - before
        request: Request = self.sagemaker.describe_training_job(TrainingJobName=name)
        return request

    def jobs(self) -> set[str]:
        """Return the names of all training jobs."""
        listed = self.sagemaker.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]
        return {job["TrainingJobName"] for job in listed}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    folder = tmp_path_factory.mktemp("aws")
    with stand_in(folder) as stand:
        yield Cloud(stand, folder)


@pytest.fixture
def platform(cloud: Cloud, tmp_path: Path) -> Platform:
    return Platform(cloud.s3, tmp_path)


def area_under_curve(outcome: Outcome, validation: pd.DataFrame) -> float:
    """Return XGBoost's own area under the curve of the model on rows with the label first."""
    booster = outcome.booster()
    matrix = xgb.DMatrix(
        validation.iloc[:, 1:].to_numpy(np.float32),
        validation.iloc[:, 0],
        feature_names=booster.feature_names,
    )
    booster.set_param({"eval_metric": "auc"})
    return float(str(booster.eval(matrix)).rpartition(":")[2])


def frame(cloud: Cloud, key: str) -> pd.DataFrame:
    """Read one file of the bucket."""
    body = cloud.s3.get_object(Bucket="data", Key=key)["Body"]
    if key.endswith(".parquet"):
        (cloud.folder / "file.parquet").write_bytes(body.read())
        return pd.read_parquet(cloud.folder / "file.parquet")
    return pd.read_csv(body, header=None)


@pytest.mark.parametrize(("sdk", "example"), [("sdk-v2", "one_instance.py"), ("sdk-v3", "model_trainer.py")])
def test_one_instance(cloud: Cloud, platform: Platform, sdk: str, example: str) -> None:
    prefix = example.removesuffix(".py")
    cloud.make_dataset(f"{prefix}/train", "--files", "2", "--megabytes", "2")
    cloud.make_dataset(f"{prefix}/validation", "--files", "1", "--megabytes", "0.5", "--first-part", "2")
    request = cloud.request_of(sdk, example, prefix)
    assert request["ResourceConfig"]["InstanceType"] == "ml.m5.4xlarge"
    (outcome,) = platform.run(request)
    assert outcome.code == 0, outcome.log
    assert re.search(r"\[0\]\ttrain-auc:[\d.]+\ttrain-logloss:[\d.]+\tvalidation-auc:", outcome.log)
    assert area_under_curve(outcome, frame(cloud, f"{prefix}/validation/part-00002.csv")) > 0.8


def test_several_hosts_stream_their_own_files(cloud: Cloud, platform: Platform) -> None:
    cloud.make_dataset("terabyte", "--files", "6", "--megabytes", "0.5", "--copies")
    request = cloud.request_of("sdk-v2", "several_hosts.py", "terabyte", "--instances", "3", "--rounds", "10")
    first, *others = platform.run(request)
    assert first.code == 0, first.log
    assert "csv (given), FastFile, ShardedByS3Key" in first.log
    assert [outcome.code for outcome in others] == [0, 0]
    assert [len(outcome.models) for outcome in (first, *others)] == [1, 0, 0]
    one = frame(cloud, "terabyte/part-00000.csv")
    assert f"Train matrix has {6 * len(one)} rows and 28 columns" in first.log
    assert area_under_curve(first, one) > 0.8


def test_all_gpus_rehearsed_on_processors(cloud: Cloud, platform: Platform) -> None:
    form = ("--format", "parquet", "--megabytes", "0.5")
    cloud.make_dataset("taxi/train", "--files", "8", *form)
    cloud.make_dataset("taxi/validation", "--files", "2", "--first-part", "8", *form)
    options = ("--instances", "2", "--rounds", "10", "--rehearse")
    request = cloud.request_of("sdk-v2", "all_gpus.py", "taxi", *options)
    first, second = platform.run(request)
    assert first.code == second.code == 0, first.log + second.log
    assert "Mode: dask" in first.log
    assert re.search(r"\[9\]\ttrain-rmse:[\d.]+\tvalidation-rmse:[\d.]+", first.log)
    assert area_under_curve(first, frame(cloud, "taxi/validation/part-00008.parquet")) > 0.8


def test_the_announced_settings_without_a_gpu_are_refused_in_one_sentence(
    cloud: Cloud, platform: Platform
) -> None:
    cloud.make_dataset("gpus/train", "--format", "parquet", "--files", "1", "--megabytes", "0.5")
    cloud.make_dataset("gpus/validation", "--format", "parquet", "--files", "1", "--megabytes", "0.5")
    request = cloud.request_of("sdk-v2", "all_gpus.py", "gpus")
    (outcome,) = platform.run(request)
    assert outcome.code == 2, outcome.log
    assert "GPU" in str(outcome.failure)


def test_the_benchmark_starts_its_grid_and_prints_its_table(cloud: Cloud, tmp_path: Path) -> None:
    program = [Path(sys.executable), REPOSITORY / "examples/benchmark/benchmark.py"]
    places = ["--image", image("cpu"), "--role", ROLE, "--data", "s3://data/b", "--output", "s3://data/o"]
    before = cloud.jobs()
    said = cloud.run(*program, "launch", tmp_path / "jobs.json", *places)
    started = cloud.jobs() - before
    assert f"{len(started)} jobs run" in said
    assert len(started) == 14
    table = cloud.run(*program, "show", tmp_path / "jobs.json").splitlines()
    assert table[0].startswith("| mode | instance | count | status | training s | billed s | cost USD |")
    assert len(table) == 2 + len(started)
    assert "| all GPUs | ml.g5.12xlarge | 2 | Completed |" in table[-1]


def run_locally(folder: Path, sdk: str, example: str, *options: str | Path) -> str:
    """Run an example on folder/data as a user without an AWS account; return what it said."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SAGEMAKER_"))}
    (folder / "bin").mkdir()
    (folder / "bin/docker").symlink_to(str(shutil.which(DOCKER)))
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    common: list[str | Path] = ["--image", image("cpu"), "--data", "data"]
    command: list[str | Path] = [python_of(sdk), REPOSITORY / "examples" / example, *common, *options]
    done = subprocess.run(
        command,
        env={**kept, "PATH": path, "DOCKER_CONFIG": str(folder / "docker")},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("hosts", [1, 2])
def test_local_mode_without_an_account(tmp_path: Path, table: pd.DataFrame, hosts: int) -> None:
    for channel, rows in {"train": table, "validation": table[:500]}.items():
        (tmp_path / "data" / channel).mkdir(parents=True)
        rows.to_csv(tmp_path / "data" / channel / "rows.csv", index=False, header=False)
    (tmp_path / "settings.json").write_text(json.dumps({"num_round": 30, "max_depth": 4}))
    before = containers()
    said = run_locally(
        tmp_path,
        "sdk-v2",
        "local_mode.py",
        *("--instances", str(hosts), "--output", "output", "--hyperparameters", "settings.json"),
    )
    assert "Traceback" not in said
    assert containers() == before
    model = tmp_path / "output/xgboost-model"
    assert f"Model: {model}" in said
    assert "[29]\ttrain-rmse:" in said
    predicted = xgb.Booster(model_file=bytearray(model.read_bytes())).inplace_predict(
        table.drop(columns="y").to_numpy()
    )
    assert np.abs(predicted - table["y"]).mean() < 0.5 * np.abs(table["y"]).mean()


def test_the_third_sdk_in_local_mode(tmp_path: Path, table: pd.DataFrame) -> None:
    labelled = table.assign(y=(table["y"] > 0).astype(int))
    for channel, rows in {"train": labelled, "validation": labelled[:500]}.items():
        (tmp_path / "data" / channel).mkdir(parents=True)
        rows.to_csv(tmp_path / "data" / channel / "rows.csv", index=False, header=False)
    said = run_locally(tmp_path, "sdk-v3", "model_trainer.py", "--local", "job")
    assert "Traceback" not in said
    assert (tmp_path / "job/compressed_artifacts/model.tar.gz").stat().st_size > 1000


@pytest.mark.parametrize("example", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.stem)
def test_help_needs_no_sdk(example: Path) -> None:
    """Our own environment, in which this runs, has neither."""
    done = subprocess.run([sys.executable, example, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
