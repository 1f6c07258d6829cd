"""Run a training job in a container of the built image, as SageMaker does: one tree mounted at /opt/ml."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from tests.opt_ml import Outcome, read_outcome

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

type Variant = Literal["cpu", "gpu"]

DOCKER = os.environ.get("DOCKER", "docker")
IMAGES = os.environ.get("SMXGB_IMAGES", "smxgb")
"""The name of the images under test; the variant is their tag."""
NOTEBOOK = {
    "objective": "reg:linear",
    "silent": "0",
    "num_round": "50",
    "max_depth": "5",
    "eta": "0.2",
    "gamma": "4",
    "min_child_weight": "6",
    "subsample": "0.7",
}
"""The settings of AWS's abalone notebook."""


def image(variant: Variant) -> str:
    """Return the image's name, as `scripts/build` gives it."""
    return f"{IMAGES}:{variant}"


def docker(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a Docker command to its end; stdout and stderr come together, in order."""
    return subprocess.run(
        [DOCKER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )


def containers() -> set[str]:
    """Return the identifiers of all containers of our images, those that an SDK made among them."""
    filters = [f"--filter=ancestor={image(variant)}" for variant in ("cpu", "gpu")]
    return set(docker("ps", "--all", "--quiet", *filters).stdout.split())


@dataclass(frozen=True)
class Container:
    """A container that was started with a tree of its own."""

    identifier: str
    base: Path

    def wait_for(self, text: str, *, seconds: float = 30) -> None:
        """Wait until the log holds a text."""
        end = time.monotonic() + seconds
        while text not in self.log():
            assert time.monotonic() < end, f"{text!r} did not come in {seconds} s:\n{self.log()}"
            time.sleep(0.1)

    def log(self) -> str:
        return docker("logs", self.identifier).stdout

    def stop(self, *, seconds: int) -> float:
        """Send SIGTERM, and SIGKILL after so many seconds; return the seconds that it took."""
        begin = time.monotonic()
        docker("stop", "--time", str(seconds), self.identifier)
        return time.monotonic() - begin

    def outcome(self, *, seconds: float = 120) -> Outcome:
        """Wait for the end, remove the container and return what it left."""
        try:
            code = int(docker("wait", self.identifier, timeout=seconds).stdout)
            return read_outcome(self.base, code, self.log())
        finally:
            self.remove()

    def remove(self) -> None:
        docker("rm", "--force", "--volumes", self.identifier)


def start(
    base: Path,
    *command: str,
    variant: Variant = "cpu",
    options: tuple[str, ...] = (),
    name: str | None = None,
) -> Container:
    """Start a container on a tree, from another image than the built one if `name` gives it.

    Without a command the image's own is run.
    """
    mount = f"{base}:/opt/ml"
    started = docker("run", "--detach", "--volume", mount, *options, name or image(variant), *command)
    assert started.returncode == 0, started.stdout
    return Container(started.stdout.strip().splitlines()[-1], base)


def run_python(code: str, *, variant: Variant = "cpu", options: tuple[str, ...] = ()) -> str:
    """Run Python code in the image and return what it printed."""
    done = docker("run", "--rm", *options, image(variant), "python", "-c", code)
    assert done.returncode == 0, done.stdout
    return done.stdout


class Train(Protocol):
    """Run a whole job in a container with these options, on a tree from `write_opt_ml`'s arguments."""

    def __call__(
        self,
        *command: str,
        variant: Variant = "cpu",
        options: tuple[str, ...] = (),
        owner: int = 0,
        **tree: Any,
    ) -> Outcome: ...


def learned(outcome: Outcome, table: pd.DataFrame) -> bool:
    """Return whether the model explains most of the label's spread."""
    error = outcome.predict(table.drop(columns="y")) - table["y"].to_numpy()
    return float(np.square(error).mean()) < 0.1 * float(table["y"].var())
