"""Pushing the image, and CodeBuild's phases, against stand-ins for AWS and for ECR's registry."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
import yaml
from tests.image.aws import Stand, stand_in
from tests.image.containers import DOCKER, docker, image, start
from tests.opt_ml import write_opt_ml

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

REPOSITORY = Path(__file__).parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with stand_in(tmp_path_factory.mktemp("aws")) as stand:
        yield stand


@dataclass(frozen=True)
class Pusher:
    """Runs scripts/push on images that differ in their labels only, as a user of the stand-in."""

    aws: Stand
    folder: Path
    made: list[str]

    def image(self, version: str, commit: str = COMMIT) -> str:
        """Return the name of an image with these labels."""
        name = f"smxgb-push-{os.getpid()}:{version}"
        dockerfile = (
            f"FROM {image('cpu')}\nLABEL org.opencontainers.image.version={version} "
            f"org.opencontainers.image.revision={commit}\n"
        )
        subprocess.run(
            [DOCKER, "build", "--quiet", "--tag", name, "-"], input=dockerfile.encode(), check=True
        )
        self.made.append(name)
        return name

    def push(self, *arguments: str, **environ: str | None) -> subprocess.CompletedProcess[str]:
        """Run the script; an environment variable that is None is absent."""
        changed = self.aws.environ(self.folder) | environ
        return subprocess.run(
            [REPOSITORY / "scripts/push", *arguments],
            env={name: value for name, value in changed.items() if value is not None},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


@pytest.fixture
def pusher(aws: Stand, tmp_path: Path) -> Iterator[Pusher]:
    made: list[str] = []
    yield Pusher(aws, tmp_path, made)
    remove(aws, made)


def remove(aws: Stand, names: list[str]) -> None:
    """Remove the images that a test made, and the names under which they were pushed."""
    listed = docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()
    pushed = [name for name in listed if name.startswith(aws.registry)]
    docker("image", "rm", *names, *pushed)


def uri_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the URI that the script names for jobs."""
    found = re.search(r"^Image URI for jobs: (\S+@sha256:[0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return found[1]


def without_aws(folder: Path) -> dict[str, str | None]:
    """Return the environment of a user who has no AWS account."""
    none = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL")
    return {**dict.fromkeys(none), "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(folder)}


def test_a_pushed_image_is_pulled_by_its_digest_and_trains(
    pusher: Pusher, table: pd.DataFrame, tmp_path: Path
) -> None:
    name = pusher.image("1.2.3")
    done = pusher.push(name)
    assert done.returncode == 0, done.stdout
    assert "Created the repository smxgb in account 123456789012, eu-west-1." in done.stdout
    for tag in ("1.2.3-cpu", f"1.2.3-cpu-{COMMIT[:12]}"):
        assert f"Pushing {pusher.aws.registry}/smxgb:{tag} ..." in done.stdout
    uri = uri_of(done)
    assert f"Digest: {uri.split('@')[1]}\n" in done.stdout
    remove(pusher.aws, [name])
    assert docker("pull", uri).returncode == 0
    base = write_opt_ml(tmp_path / "ml", hyperparameters={"num_round": 2}, channels={"train": table})
    container = start(base, "train", name=uri)
    outcome = container.outcome()
    assert outcome.code == 0, outcome.log
    assert outcome.model
    docker("image", "rm", uri)


def test_a_version_is_pushed_once(pusher: Pusher) -> None:
    name = pusher.image("1.3.0")
    assert pusher.push(name).returncode == 0
    other = pusher.image("1.3.0", commit=COMMIT[::-1])
    done = pusher.push(other)
    assert done.returncode == 1
    assert "smxgb:1.3.0-cpu is there already, and a version never changes: it is another image" in done.stdout
    assert "Raise __version__" in done.stdout
    assert "Pushing" not in done.stdout


def test_a_version_that_a_list_of_images_has_is_not_taken_from_it(pusher: Pusher) -> None:
    kind = "application/vnd.oci.image.index.v1+json"
    content = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": []}).encode()
    address = f"http://{pusher.aws.registry}/v2/smxgb/manifests/1.3.5-cpu"
    headers = {"Content-Type": kind}
    request = urllib.request.Request(address, content, headers, method="PUT")
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - the registry of the tests
        assert answer.status == 201
    done = pusher.push(pusher.image("1.3.5"))
    assert done.returncode == 1
    assert "smxgb:1.3.5-cpu is there already, and a version never changes: it is another image" in done.stdout


def test_the_two_tags_of_a_version_are_one_image(pusher: Pusher) -> None:
    exact = f"{pusher.aws.registry}/smxgb:1.3.6-cpu-{COMMIT[:12]}"
    docker("tag", pusher.image("1.3.7"), exact)
    assert docker("push", exact).returncode == 0
    done = pusher.push(pusher.image("1.3.6"))
    assert done.returncode == 1
    assert f"{exact} is there already: it is another image than this one" in done.stdout
    assert "Pushing" not in done.stdout


def test_who_pushes_the_same_image_again_is_told_where_it_is(pusher: Pusher) -> None:
    name = pusher.image("1.3.1")
    first = pusher.push(name)
    again = pusher.push(name)
    assert again.returncode == 1
    assert "is there already, and a version never changes: it is this very image" in again.stdout
    assert uri_of(again) == uri_of(first)


def test_another_registry_than_ecr_needs_no_aws(pusher: Pusher, tmp_path: Path) -> None:
    name = pusher.image("1.3.2")
    to = (name, "--registry", pusher.aws.registry, "--repository", "elsewhere")
    first = pusher.push(*to, **without_aws(tmp_path))
    assert first.returncode == 0, first.stdout
    assert uri_of(first).startswith(f"{pusher.aws.registry}/elsewhere@")
    assert not (tmp_path / "docker/config.json").exists()
    again = pusher.push(*to, **without_aws(tmp_path))
    assert again.returncode == 1
    assert "it is this very image" in again.stdout
    assert uri_of(again) == uri_of(first)
    other = pusher.push(pusher.image("1.3.2", commit=COMMIT[::-1]), *to[1:], **without_aws(tmp_path))
    assert other.returncode == 1
    assert "it is another image than this one" in other.stdout
    assert uri_of(other) == uri_of(first)


def test_another_registry_that_is_not_there(pusher: Pusher, tmp_path: Path) -> None:
    done = pusher.push(pusher.image("1.3.3"), "--registry", "localhost:9", **without_aws(tmp_path))
    assert done.returncode == 1
    assert "scripts/push: Docker could not ask the registry localhost:9" in done.stdout
    assert "Traceback" not in done.stdout


def test_the_pushed_manifest_is_one_image_and_no_list(pusher: Pusher) -> None:
    assert pusher.push(pusher.image("1.4.0"), "--repository", "team/xgboost").returncode == 0
    found = docker("manifest", "inspect", "--insecure", f"{pusher.aws.registry}/team/xgboost:1.4.0-cpu")
    manifest = json.loads(found.stdout)
    assert manifest["mediaType"] == "application/vnd.docker.distribution.manifest.v2+json"
    assert "manifests" not in manifest


def test_no_credentials(pusher: Pusher, tmp_path: Path) -> None:
    done = pusher.push(pusher.image("1.5.0"), **without_aws(tmp_path) | {"AWS_DEFAULT_REGION": "eu-west-1"})
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith(
        "scripts/push: there are no AWS credentials: run `aws conf"
    )


def test_no_region(pusher: Pusher, tmp_path: Path) -> None:
    done = pusher.push(pusher.image("1.5.0"), AWS_DEFAULT_REGION=None, HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.startswith("scripts/push: no AWS region is configured: set AWS_DEFAULT_REGION")


def test_a_registry_in_another_region(pusher: Pusher) -> None:
    elsewhere = "123456789012.dkr.ecr.us-east-1.amazonaws.com"
    done = pusher.push(pusher.image("1.5.0"), "--registry", elsewhere)
    assert done.returncode == 1
    assert "is in us-east-1 and the AWS configuration says eu-west-1: set AWS_DEFAULT_REGION" in done.stdout


def test_no_repository_is_made_for_another_account(pusher: Pusher) -> None:
    elsewhere = "999999999999.dkr.ecr.eu-west-1.amazonaws.com"
    done = pusher.push(pusher.image("1.5.1"), "--repository", "theirs", "--registry", elsewhere)
    assert done.returncode == 1
    assert "account 999999999999 has no repository theirs: its owner has to make it first" in done.stdout
    assert "Created" not in done.stdout


def test_aws_out_of_reach(pusher: Pusher) -> None:
    done = pusher.push(pusher.image("1.5.0"), AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "AWS cannot be reached" in done.stdout
    assert "is eu-west-1 the right region?" in done.stdout
    assert "Traceback" not in done.stdout


def test_no_docker(pusher: Pusher) -> None:
    done = pusher.push(DOCKER_HOST="tcp://127.0.0.1:9")
    assert done.returncode == 1
    assert "Docker does not answer" in done.stdout
    absent = pusher.push(DOCKER="docker-that-is-not-there")
    assert absent.returncode == 1
    assert "Docker does not answer" in absent.stdout


def test_an_image_that_is_not_there_or_not_ours(pusher: Pusher) -> None:
    assert "build it with scripts/build --tag nothing:here" in pusher.push("nothing:here").stdout
    base = "debian:trixie-slim"
    assert f"{base} was not built by scripts/build" in pusher.push(base).stdout


@pytest.mark.parametrize("commit", [f"{COMMIT}-dirty", "unknown"])
def test_an_image_of_no_commit_is_not_pushed(pusher: Pusher, commit: str) -> None:
    done = pusher.push(pusher.image("1.6.0", commit=commit))
    assert done.returncode == 1
    assert "was built from files that no commit holds" in done.stdout


@contextmanager
def permissions_are_checked(aws: Stand) -> Iterator[None]:
    """Have moto look at credentials and policies, which it does from a given number of requests on."""
    try:
        _unchecked_requests(aws, b"0")
        yield
    finally:
        _unchecked_requests(aws, b"inf")


def _unchecked_requests(aws: Stand, number: bytes) -> None:
    address = f"{aws.endpoint}/moto-api/reset-auth"
    headers = {"Content-Type": "text/plain"}
    urllib.request.urlopen(urllib.request.Request(address, number, headers), timeout=30).close()  # noqa: S310


def keys_of_a_user(aws: Stand, name: str, *actions: str) -> dict[str, str | None]:
    """Make a user who may do these actions only; return the environment variables of its keys."""
    iam = boto3.client(
        "iam",
        endpoint_url=aws.endpoint,
        region_name="eu-west-1",
        aws_access_key_id="stand-in",
        aws_secret_access_key="stand-in",  # noqa: S106 - opens nothing
    )
    iam.create_user(UserName=name)
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName=name, PolicyName="some", PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}


def test_credentials_that_aws_does_not_know(pusher: Pusher) -> None:
    name = pusher.image("1.7.0")
    with permissions_are_checked(pusher.aws):
        done = pusher.push(name)
    assert done.returncode == 1
    assert "AWS does not take the credentials" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_missing_permission_is_named(pusher: Pusher) -> None:
    name = pusher.image("1.7.0")
    keys = keys_of_a_user(pusher.aws, "reader", "sts:GetCallerIdentity", "ecr:DescribeRepositories")
    with permissions_are_checked(pusher.aws):
        done = pusher.push(name, "--repository", "absent", **keys)
    assert done.returncode == 1
    assert "the permission ecr:CreateRepository is missing: " in done.stdout
    assert "Traceback" not in done.stdout


def test_the_phases_of_the_buildspec_build_and_push_a_clone_once(aws: Stand, tmp_path: Path) -> None:
    clone = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
    spec = yaml.safe_load((clone / "buildspec.yml").read_text())
    named = {
        "IMAGE": f"smxgb-codebuild-{os.getpid()}:cpu",
        "PUSH_OPTIONS": "--repository built",
    }
    environ = aws.environ(tmp_path) | spec["env"]["variables"] | named
    phases = [spec["phases"][name]["commands"] for name in ("install", "build", "post_build")]

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=clone,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    try:
        for command in [command for commands in phases for command in commands]:
            done = run(command)
            assert done.returncode == 0, f"{command}\n{done.stdout}"
        assert re.search(r"^Digest: sha256:[0-9a-f]{64}$", done.stdout, re.MULTILINE)
        again = run(phases[-1][0])
        assert again.returncode == 1
        assert "is there already, and a version never changes" in again.stdout
    finally:
        remove(aws, [named["IMAGE"]])
