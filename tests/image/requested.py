"""Run what CreateTrainingJob asks for: an /opt/ml tree for each host, and a container on each tree."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.image.containers import Container, docker, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.opt_ml import Outcome

type Request = Mapping[str, Any]
"""A CreateTrainingJob request, as DescribeTrainingJob gives it back."""


@dataclass(frozen=True)
class Platform:
    """A stand-in for SageMaker: `s3` is a boto3 client, `folder` holds the hosts' trees."""

    s3: Any
    folder: Path

    def run(self, request: Request) -> list[Outcome]:
        """Run the job on as many containers as it has instances; return the outcome of each host in order."""
        hosts = [f"algo-{number + 1}" for number in range(request["ResourceConfig"]["InstanceCount"])]
        trees = [self._tree(request, hosts, host) for host in hosts]
        with _network() as network:
            containers = [
                _start(request, tree, host, network) for tree, host in zip(trees, hosts, strict=True)
            ]
            with ThreadPoolExecutor(len(containers)) as pool:
                return list(pool.map(Container.outcome, containers))

    def _tree(self, request: Request, hosts: list[str], host: str) -> Path:
        base = self.folder / host
        config = base / "input/config"
        for made in (config, base / "model", base / "output/data"):
            made.mkdir(parents=True)
        channels = {channel["ChannelName"]: channel for channel in request["InputDataConfig"]}
        written = {
            "hyperparameters": request["HyperParameters"],
            "resourceconfig": {"current_host": host, "hosts": hosts, "network_interface_name": "eth0"},
            "inputdataconfig": {name: _described(request, channel) for name, channel in channels.items()},
        }
        for name, content in written.items():
            (config / f"{name}.json").write_text(json.dumps(content))
        for name, channel in channels.items():
            self._fill(base / "input/data" / name, channel, hosts.index(host), len(hosts))
        return base

    def _fill(self, folder: Path, channel: Request, number: int, hosts: int) -> None:
        """Download what SageMaker would give this host: all objects below the prefix, or every n-th."""
        source = channel["DataSource"]["S3DataSource"]
        bucket, _, prefix = source["S3Uri"].removeprefix("s3://").partition("/")
        found = self.s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
        keys = sorted(entry["Key"] for entry in found)
        if source.get("S3DataDistributionType") == "ShardedByS3Key":
            keys = keys[number::hosts]
        for key in keys:
            file = folder / key.removeprefix(prefix).lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            self.s3.download_file(bucket, key, str(file))


def _described(request: Request, channel: Request) -> dict[str, str]:
    """Return a channel's entry in inputdataconfig.json; keys that the request lacks stay away."""
    mode = channel.get("InputMode") or request["AlgorithmSpecification"]["TrainingInputMode"]
    entry = {
        "ContentType": channel.get("ContentType"),
        "TrainingInputMode": mode,
        "S3DistributionType": channel["DataSource"]["S3DataSource"].get("S3DataDistributionType"),
        "RecordWrapperType": channel.get("RecordWrapperType"),
        "CompressionType": channel.get("CompressionType"),
    }
    return {key: value for key, value in entry.items() if value is not None}


def _start(request: Request, tree: Path, host: str, network: str) -> Container:
    """Start a host as SageMaker does; the channels that it streams from S3 are read-only."""
    options = ["--network", network, "--hostname", host, "--network-alias", host]
    for name in ("TRAINING_JOB_NAME", "TRAINING_JOB_ARN"):
        key = {"TRAINING_JOB_NAME": "TrainingJobName", "TRAINING_JOB_ARN": "TrainingJobArn"}[name]
        options += ["--env", f"{name}={request[key]}"]
    for variable, value in request.get("Environment", {}).items():
        options += ["--env", f"{variable}={value}"]
    for channel in request["InputDataConfig"]:
        if channel.get("InputMode") == "FastFile":
            name = channel["ChannelName"]
            options += ["--volume", f"{tree}/input/data/{name}:/opt/ml/input/data/{name}:ro"]
    name = request["AlgorithmSpecification"]["TrainingImage"]
    return start(tree, "train", options=tuple(options), name=name)


@contextmanager
def _network() -> Iterator[str]:
    name = f"smxgb-test-{uuid4().hex[:8]}"
    made = docker("network", "create", name)
    assert made.returncode == 0, made.stdout
    try:
        yield name
    finally:
        docker("network", "rm", name)
