"""The README's commands, in its order, in a clone without anything else; against stand-ins for AWS."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from tests.image.aws import Stand, stand_in
from tests.image.containers import DOCKER, docker
from tests.image.environments import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).parents[2]
IMAGE = f"smxgb-readme-{os.getpid()}:cpu"
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SDK_OF = {"from sagemaker.estimator": "sdk-v2", "from sagemaker.train": "sdk-v3"}


@dataclass(frozen=True)
class Reader:
    """A newcomer with a clone, who does what the README says."""

    aws: Stand
    clone: Path

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the newcomer's shell."""
        programs = self.clone.parent / "bin"
        return {
            **self.aws.environ(self.clone.parent),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
            "SAGEMAKER_VALIDATE_ROLE": "false",
        }

    def sentence(self, text: str) -> str:
        """Put real names where the README has an example's."""
        registry = self.aws.registry
        for written, real in {
            "smxgb:cpu": IMAGE,
            "123456789012.dkr.ecr.eu-west-1.amazonaws.com": registry,
            "IMAGE_URI": IMAGE,
            "ROLE_ARN": "arn:aws:iam::123456789012:role/training",
            "BUCKET": "data",
        }.items():
            text = re.sub(rf"(?<![\w/-]){re.escape(written)}(?![\w-])", real, text)
        return text

    def run(self, language: str, text: str) -> str:
        """Run a block; return what it printed."""
        command: list[str | Path] = ["bash", "-euo", "pipefail", "-c", text]
        if language == "python":
            sdk = next((sdk for line, sdk in SDK_OF.items() if line in text), None)
            python = python_of(sdk) if sdk else self.clone / ".venv/bin/python"
            command = [python, "-c", text]
        # The SDK that the README installs has the versions of its lock file here: no surprises.
        pins = str(self.clone.parent / "constraints.txt")
        locked = {"PIP_CONSTRAINT": pins} if "sagemaker[local]" in text else {}
        done = subprocess.run(
            command,
            cwd=self.clone,
            env=self.environ | locked,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}"
        return done.stdout


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    clone = tmp_path / "smxgb"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").symlink_to(str(shutil.which(DOCKER)))
    pins = re.findall(r"^([\w.-]+==\S+)", (clone / "requirements/sdk-v2.txt").read_text(), re.MULTILINE)
    (tmp_path / "constraints.txt").write_text("\n".join(pins))
    with stand_in(tmp_path) as stand:
        keys = {"aws_access_key_id": "stand-in", "aws_secret_access_key": "stand-in"}
        s3 = boto3.client("s3", endpoint_url=stand.endpoint, region_name="us-east-1", **keys)
        s3.create_bucket(Bucket="data")
        s3.put_object(Bucket="data", Key="train/rows.csv", Body=b"1,2\n0,1\n")
        yield Reader(stand, clone)
        if left := docker("ps", "--all", "--quiet", f"--filter=ancestor={IMAGE}").stdout.split():
            docker("rm", "--force", "--volumes", *left)  # docker-compose keeps those of local mode
        listed = docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
        docker("image", "rm", IMAGE, *(name for name in listed if name.startswith(stand.registry)))


def test_every_block_of_the_readme_does_what_it_says(reader: Reader) -> None:
    blocks = FENCED.findall((reader.clone / "README.md").read_text())
    assert {language for language, _ in blocks} == {"sh", "python", "text"}
    (_, opening), *others = blocks
    said = ""
    for language, text in others:
        if language != "text":
            said = reader.run(language, reader.sentence(text))
            continue
        shown = [line for line in reader.sentence(text).splitlines() if line != "..."]
        assert [line for line in shown if line not in said] == []
    wrong = {"num_round": "20", "objective": "reg:absolute", "learnin_rate": "0.2"}
    (reader.clone / "wrong.json").write_text(json.dumps(wrong))
    check = ".venv/bin/smxgb check --hyperparameters wrong.json --train my-job/input/data/train 2>&1 || true"
    assert opening in reader.run("sh", check)
