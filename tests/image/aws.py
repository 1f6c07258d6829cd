"""Stand-ins for AWS on this machine: moto for its interfaces and S3, docker-registry for ECR's images."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.image.environments import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ECR = Path(__file__).with_name("ecr.py")
REGISTRY = """
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "{address}"}}
"""


@dataclass(frozen=True)
class Stand:
    """Where the stand-ins listen: moto as an URL, the registry as host:port."""

    endpoint: str
    registry: str

    def environ(self, folder: Path) -> dict[str, str]:
        """Return the environment of a user of this AWS, whose Docker keeps its logins in `folder`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return {
            **kept,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "stand-in",
            "AWS_SECRET_ACCESS_KEY": "stand-in",
            "DOCKER_CONFIG": str(folder / "docker"),
            "NO_PROXY": "127.0.0.1,localhost",
        }


@contextmanager
def stand_in(folder: Path) -> Iterator[Stand]:
    """Run both stand-ins, with all that they hold below `folder`, until the block ends."""
    moto, registry = (f"127.0.0.1:{_free_port()}" for _ in range(2))
    config = folder / "registry.yml"
    config.write_text(REGISTRY.format(folder=folder / "registry", address=registry))
    host, port = moto.split(":")
    commands: list[list[str | Path]] = [
        [python_of("aws-stand-in"), ECR, registry, "--host", host, "--port", port],
        ["docker-registry", "serve", config],
    ]
    with (folder / "stand-ins.log").open("w") as log:
        servers = [subprocess.Popen(command, stdout=log, stderr=log) for command in commands]
        try:
            for url in (f"http://{moto}/moto-api/", f"http://{registry}/v2/"):
                _wait_for(url)
            yield Stand(f"http://{moto}", registry)
        finally:
            for server in servers:
                server.terminate()
                server.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def _wait_for(url: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - an address of our own
                return
        except OSError:
            assert time.monotonic() < end, f"{url} did not answer in {seconds} s"
            time.sleep(0.1)
