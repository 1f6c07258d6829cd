"""Push a built image to Amazon ECR, or to another registry, and print its URI and digest.

A version is pushed once: its tags are `<version>-<variant>-<commit>` and `<version>-<variant>`. The second
comes last, so that it stands for a push that is complete.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import boto3
from aws import AwsError, explained
from botocore.exceptions import BotoCoreError

DOCKER = os.environ.get("DOCKER", "docker")
ECR_HOST = re.compile(r"\d{12}\.dkr\.ecr(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
NOT_FOUND = 404
MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.index.v1+json",
)
"""What a tag may stand for. A registry that is asked for less says that a list of images is not there."""


class PushError(Exception):
    """What keeps the image from being pushed, in one sentence with the cure."""


@dataclass(frozen=True)
class Image:
    """A built image, as its labels describe it; `identifier` is Docker's own name for it."""

    name: str
    identifier: str
    variant: str
    version: str
    commit: str

    @property
    def tag(self) -> str:
        """The tag that stands for the version."""
        return f"{self.version}-{self.variant}"

    @property
    def exact_tag(self) -> str:
        """The tag that names the commit too."""
        return f"{self.tag}-{self.commit[:12]}"


@dataclass(frozen=True)
class Login:
    """What it takes to log in to ECR."""

    user: str
    password: str


@dataclass(frozen=True)
class Registry:
    """A registry's host. Without `login`, which is ECR's, Docker logs in as its user has set it up."""

    host: str
    login: Login | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where Docker takes registries without TLS too."""
        return self.host.partition(":")[0] in {"localhost", "127.0.0.1"}


@dataclass(frozen=True)
class Held:
    """What a registry has under a tag: the digests of its manifest and of the image's configuration."""

    manifest: str
    config: str


def built_image(name: str) -> Image:
    """Return what Docker says of the image.

    Raises:
        PushError: If Docker does not answer, or the image is missing, foreign, or of no commit.
    """
    if _docker("version").returncode:
        raise PushError(
            f"Docker does not answer: `{DOCKER} version` says why. Start it, or name a client in DOCKER."
        )
    found = _docker("image", "inspect", name)
    if found.returncode:
        raise PushError(f"there is no image {name}: build it with scripts/build --tag {name}.")
    (described,) = json.loads(found.stdout)
    labels = described["Config"]["Labels"] or {}
    if "smxgb.variant" not in labels:
        raise PushError(f"{name} was not built by scripts/build: it lacks the labels of this project.")
    platform = f"{described['Os']}/{described['Architecture']}"
    if platform != "linux/amd64":
        raise PushError(
            f"{name} is for {platform}, and SageMaker runs linux/amd64: build it with scripts/build."
        )
    image = Image(
        name,
        described["Id"],
        labels["smxgb.variant"],
        labels["org.opencontainers.image.version"],
        labels["org.opencontainers.image.revision"],
    )
    if not re.fullmatch(r"[0-9a-f]{7,64}", image.commit):
        raise PushError(
            f"{name} was built from files that no commit holds ({image.commit}), so nobody could build it "
            "again: commit the changes, build, and push."
        )
    return image


def aws_session() -> boto3.Session:
    """Return a session of the ordinary AWS configuration: environment, profile, or the machine's role.

    Raises:
        PushError: If the configuration cannot be used, or names no region.
    """
    try:
        session = boto3.Session()
    except BotoCoreError as error:
        raise PushError(f"the AWS configuration cannot be used: {error}.") from None
    if not session.region_name:
        raise PushError(
            "no AWS region is configured: set AWS_DEFAULT_REGION, such as AWS_DEFAULT_REGION=eu-west-1."
        )
    return session


def open_ecr(session: boto3.Session, repository: str, host: str | None) -> Registry:
    """Return the ECR to push to, with the repository in it: the account's own, or that of `host`.

    Raises:
        PushError: If AWS refuses, or cannot be asked.
    """
    region = session.region_name
    if host and (match := ECR_HOST.fullmatch(host)) and match[1] != region:
        raise PushError(
            f"the registry {host} is in {match[1]} and the AWS configuration says {region}: set "
            f"AWS_DEFAULT_REGION={match[1]}, or push to another registry."
        )
    with explained("sts:GetCallerIdentity", region):
        account = session.client("sts").get_caller_identity()["Account"]
    ecr = session.client("ecr")
    owner = host.partition(".")[0] if host else account
    with explained("ecr:DescribeRepositories", region):
        mutability = _mutability(ecr, owner, repository)
    if mutability == "MUTABLE":
        print(f"The repository {repository} lets tags be overwritten: set its tag immutability in ECR.")
    if mutability is None and owner != account:
        raise PushError(f"account {owner} has no repository {repository}: its owner has to make it first.")
    if mutability is None:
        with explained("ecr:CreateRepository", region):
            ecr.create_repository(
                repositoryName=repository,
                imageTagMutability="IMMUTABLE",
                imageScanningConfiguration={"scanOnPush": True},
            )
        print(f"Created the repository {repository} in account {account}, {region}.")
    with explained("ecr:GetAuthorizationToken", region):
        (entry,) = ecr.get_authorization_token()["authorizationData"]
    user, _, password = base64.b64decode(entry["authorizationToken"]).decode().partition(":")
    return Registry(host or entry["proxyEndpoint"].removeprefix("https://"), Login(user, password))


def _mutability(ecr: Any, account: str, repository: str) -> str | None:
    """Return whether the repository's tags can change, as ECR calls it; None if there is no repository."""
    try:
        (found,) = ecr.describe_repositories(registryId=account, repositoryNames=[repository])["repositories"]
    except ecr.exceptions.RepositoryNotFoundException:
        return None
    return str(found["imageTagMutability"])


def held(registry: Registry, repository: str, tag: str) -> Held | None:
    """Return what the registry has under the tag, None if it has nothing.

    Raises:
        PushError: If the registry does not say.
    """
    if registry.login is None:
        return _held_as_docker_says(registry, f"{registry.host}/{repository}:{tag}")
    scheme = "http" if registry.is_local else "https"
    url = f"{scheme}://{registry.host}/v2/{repository}/manifests/{tag}"
    secret = base64.b64encode(f"{registry.login.user}:{registry.login.password}".encode()).decode()
    request = urllib.request.Request(url, headers={"Accept": ", ".join(MANIFESTS)})  # noqa: S310 - as made above
    request.add_unredirected_header("Authorization", f"Basic {secret}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
            manifest = answer.read()
    except urllib.error.HTTPError as error:
        if error.code == NOT_FOUND:
            return None
        raise PushError(
            f"the registry {registry.host} answers {error.code} {error.reason} when asked for "
            f"{repository}:{tag}: the permission ecr:BatchGetImage may be missing."
        ) from None
    except OSError as error:
        raise PushError(
            f"the registry {registry.host} cannot be reached ({error}): check --registry, the region and "
            "the network."
        ) from None
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    # A list of images has no configuration of its own: it is none of ours.
    return Held(digest, json.loads(manifest).get("config", {}).get("digest", ""))


def _held_as_docker_says(registry: Registry, name: str) -> Held | None:
    insecure = ["--insecure"] if registry.is_local else []
    found = _docker("manifest", "inspect", "--verbose", *insecure, name)
    if found.returncode:
        # Docker's exit code is the same whatever the reason.
        if any(text in found.stderr for text in ("no such manifest", "manifest unknown", "not found")):
            return None
        raise PushError(
            f"Docker could not ask the registry {registry.host} for {name}: {found.stderr.strip()}. Check "
            f"--registry, and whether `{DOCKER} login {registry.host}` is needed."
        )
    answer = json.loads(found.stdout)
    if isinstance(answer, list):  # a list of images, which is none of ours
        return Held("", "")
    manifest = answer.get("SchemaV2Manifest") or answer["OCIManifest"]
    return Held(answer["Descriptor"]["digest"], manifest["config"]["digest"])


def push(image: Image, registry: Registry, repository: str) -> str:
    """Push the image under both tags; return its digest.

    Raises:
        PushError: If the version is there already, or Docker fails.
    """
    place = f"{registry.host}/{repository}"
    if registry.login:
        _log_in(registry.host, registry.login)
    if there := held(registry, repository, image.tag):
        if there.manifest:
            print(_shown(place, image.tag, there.manifest))
        raise PushError(
            f"{place}:{image.tag} is there already, and a version never changes: {_cure(image, there)}"
        )
    for tag in (image.exact_tag, image.tag):
        if tag == image.exact_tag and (there := held(registry, repository, tag)):
            if not _is_same(image, there):
                raise PushError(f"{place}:{tag} is there already: {_cure(image, there)}")
            continue  # an earlier push ended between the two tags
        # By its identifier: another build may take the name meanwhile.
        if (done := _docker("tag", image.identifier, f"{place}:{tag}")).returncode:
            raise PushError(f"Docker could not tag {place}:{tag}: {done.stderr.strip()}")
        print(f"Pushing {place}:{tag} ...", flush=True)
        if subprocess.run([DOCKER, "push", f"{place}:{tag}"], check=False).returncode:
            needed = (
                "Pushing needs the permissions that README.md lists."
                if registry.login
                else f"Is the registry there, and is `{DOCKER} login {registry.host}` needed?"
            )
            raise PushError(f"Docker could not push {place}:{tag}; its own message stands above. {needed}")
    there = held(registry, repository, image.tag)
    if there is None or not _is_same(image, there):
        raise PushError(f"the registry does not hold this image as {place}:{image.tag} now: push again.")
    return there.manifest


def _is_same(image: Image, there: Held) -> bool:
    """Return whether the registry holds this image.

    Docker names an image by its configuration or, where containerd keeps it, by its manifest.
    """
    return image.identifier in {there.config, there.manifest}


def _cure(image: Image, there: Held) -> str:
    if _is_same(image, there):
        return "it is this very image, so use the URI above."
    return (
        "it is another image than this one. Raise __version__ in container/smxgb/__init__.py, commit, build, "
        "and push."
    )


def _log_in(host: str, login: Login) -> None:
    done = _docker("login", "--username", login.user, "--password-stdin", host, stdin=login.password)
    if done.returncode:
        raise PushError(f"Docker could not log in to {host}: {done.stderr.strip()}")


def _shown(place: str, tag: str, digest: str) -> str:
    return f"Image:  {place}:{tag}\nDigest: {digest}\nImage URI for jobs: {place}@{digest}"


def _docker(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([DOCKER, *arguments], input=stdin, capture_output=True, text=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess([DOCKER], 127, "", f"{DOCKER} can't be run: {error.strerror}")


def main() -> None:
    """Push the image that the arguments name, and print where it is."""
    parser = argparse.ArgumentParser(
        prog="scripts/push", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("image", nargs="?", default="smxgb:cpu", help="a built image (default smxgb:cpu)")
    parser.add_argument(
        "--repository", default="smxgb", help="default smxgb; in ECR it is made if it is not there"
    )
    parser.add_argument(
        "--registry",
        metavar="HOST",
        help="instead of your account's ECR: that of another account, or any other registry, as "
        "localhost:5000, for which Docker's own login counts and AWS is not asked",
    )
    arguments = parser.parse_args()
    host: str | None = arguments.registry
    try:
        image = built_image(arguments.image)
        if host and not ECR_HOST.fullmatch(host):
            registry = Registry(host)
        else:
            registry = open_ecr(aws_session(), arguments.repository, host)
        digest = push(image, registry, arguments.repository)
    except (PushError, AwsError) as error:
        sys.exit(f"scripts/push: {error}")
    print(_shown(f"{registry.host}/{arguments.repository}", image.tag, digest))


if __name__ == "__main__":
    main()
