"""Train the same model on a grid of instances, counts and modes, and compare time, cost and metrics.

scripts/make_dataset s3://BUCKET/PREFIX/train --format parquet --files 64 --megabytes 100
scripts/make_dataset s3://BUCKET/PREFIX/validation --format parquet --files 8 --megabytes 100 --first-part 64
.venv/bin/python examples/benchmark/benchmark.py launch JOBS.json --image URI --role ARN \
    --data s3://BUCKET/PREFIX --output s3://BUCKET/benchmark
.venv/bin/python examples/benchmark/benchmark.py show JOBS.json

`launch` starts all jobs of grid.toml and notes them in JOBS.json; AWS runs them side by side, as far as the
account's quotas allow, and bills them. `show` prints what is known of them so far. Below the prefix are
train/ and validation/ with Parquet files.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOUR = 3600
METRICS = ("train:rmse", "validation:rmse")


def requests(grid: Mapping[str, Any], options: argparse.Namespace, stamp: str) -> Iterator[dict[str, Any]]:
    """Yield a CreateTrainingJob request for each job and count of the grid."""
    for entry in grid["job"]:
        for count in entry["counts"]:
            instance = entry["instance"].removeprefix("ml.").replace(".", "-")
            yield {
                "TrainingJobName": f"smxgb-{entry['name']}-{instance}-x{count}-{stamp}",
                "RoleArn": options.role,
                "AlgorithmSpecification": {
                    "TrainingImage": options.image,
                    "TrainingInputMode": "File",
                    "MetricDefinitions": [
                        {"Name": name, "Regex": rf".*\[[0-9]+\].*{name.replace(':', '-')}:(-?[0-9.]+)"}
                        for name in METRICS
                    ],
                },
                "HyperParameters": {**grid["hyperparameters"], **entry.get("hyperparameters", {})},
                "InputDataConfig": [
                    channel(name, options.data, entry.get("distribution", "FullyReplicated"))
                    for name in ("train", "validation")
                ],
                "OutputDataConfig": {"S3OutputPath": options.output},
                "ResourceConfig": {
                    "InstanceType": entry["instance"],
                    "InstanceCount": count,
                    "VolumeSizeInGB": options.volume,
                },
                "StoppingCondition": {"MaxRuntimeInSeconds": options.hours * HOUR},
            }


def channel(name: str, data: str, distribution: str) -> dict[str, Any]:
    """Return one channel of a request: the Parquet files below data/name."""
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"{data}/{name}",
        "S3DataDistributionType": distribution,
    }
    return {
        "ChannelName": name,
        "ContentType": "application/x-parquet",
        "DataSource": {"S3DataSource": source},
    }


def launch(options: argparse.Namespace) -> None:
    """Start all jobs; those that AWS refuses are told, and the others go on."""
    grid = tomllib.loads(options.grid.read_text())
    try:
        # Before the first job, for what is not noted is billed all the same.
        options.jobs.touch(exist_ok=False)
    except OSError as error:
        sys.exit(
            f"The jobs can't be noted in {options.jobs}: {error.strerror}. Give a file that is not there yet."
        )
    sagemaker = boto3.client("sagemaker")
    started = []
    for request in requests(grid, options, time.strftime("%m%d%H%M%S")):
        name = request["TrainingJobName"]
        try:
            sagemaker.create_training_job(**request)
        except ClientError as error:
            print(f"{name} was refused: {error.response['Error']['Message']}")
            continue
        started.append(name)
        options.jobs.write_text(json.dumps({"prices": grid["prices"], "jobs": started}, indent=2) + "\n")
        print(f"Started {name}")
    if not started:
        options.jobs.unlink()
        sys.exit("No job was started.")
    print(f"{len(started)} jobs run; their names are in {options.jobs}.")


def row(answer: Mapping[str, Any], prices: Mapping[str, float]) -> tuple[str, ...]:
    """Return a job's row of the table from what DescribeTrainingJob answers.

    AWS bills BillableTimeInSeconds once for each instance.
    """
    resources = answer["ResourceConfig"]
    instance, count = resources["InstanceType"], resources["InstanceCount"]
    training, billable = answer.get("TrainingTimeInSeconds"), answer.get("BillableTimeInSeconds")
    price = prices.get(instance)
    cost = None if billable is None or price is None else billable * count * price / HOUR
    metrics = {entry["MetricName"]: entry["Value"] for entry in answer.get("FinalMetricDataList", [])}
    return (
        mode(answer["HyperParameters"]),
        instance,
        str(count),
        answer["TrainingJobStatus"],
        _shown(training, ",.0f"),
        _shown(None if billable is None else billable * count, ",.0f"),
        _shown(cost, ",.2f"),
        *(_shown(metrics.get(name), ".5g") for name in METRICS),
    )


def mode(hyperparameters: Mapping[str, str]) -> str:
    """Return how a job trains, by its settings."""
    if hyperparameters.get("use_dask_gpu_training") == "true":
        return "all GPUs"
    return "one GPU" if hyperparameters.get("tree_method") == "gpu_hist" else "CPU"


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def show(options: argparse.Namespace) -> None:
    """Print the table of the jobs, in Markdown, and why the failed ones failed."""
    noted = json.loads(options.jobs.read_text())
    sagemaker = boto3.client("sagemaker")
    answers = [sagemaker.describe_training_job(TrainingJobName=name) for name in noted["jobs"]]
    head = ("mode", "instance", "count", "status", "training s", "billed s", "cost USD", *METRICS)
    print("|", " | ".join(head), "|")
    print("|" + "---|" * len(head))
    for answer in answers:
        print("|", " | ".join(row(answer, noted["prices"])), "|")
    for answer in answers:
        if answer.get("FailureReason"):
            print(f"\n{answer['TrainingJobName']}: {answer['FailureReason']}")


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("launch", help="start the jobs of the grid")
    start.add_argument("jobs", type=Path, help="a file to note the jobs in")
    start.add_argument("--image", required=True, help="the gpu variant, which trains on CPUs too")
    start.add_argument("--role", required=True)
    start.add_argument("--data", required=True, type=lambda text: text.rstrip("/"))
    start.add_argument("--output", required=True)
    start.add_argument("--grid", type=Path, default=Path(__file__).with_name("grid.toml"))
    start.add_argument("--volume", type=int, default=100, help="GB of each instance (default 100)")
    start.add_argument("--hours", type=int, default=2, help="longest run of a job (default 2)")
    commands.add_parser("show", help="print the table").add_argument("jobs", type=Path)
    options = parser.parse_args()
    try:
        {"launch": launch, "show": show}[options.command](options)
    except (BotoCoreError, ClientError) as error:
        sys.exit(f"AWS could not be asked: {error}")


if __name__ == "__main__":
    main()
