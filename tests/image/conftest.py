"""What the tests of the image share: the images must be built, and one table of rows to learn from."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from tests.image.containers import Train, Variant, containers, docker, image, start
from tests.image.strangers import TABLE
from tests.opt_ml import Outcome, write_opt_ml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TABLE:
        terminalreporter.section("a stranger on the network")
        for line in TABLE:
            terminalreporter.line(line)


@pytest.fixture(scope="session", autouse=True)
def images() -> Iterator[None]:
    """Make sure that the images are there; afterwards remove the containers that the tests left."""
    for variant in ("cpu", "gpu"):
        found = docker("image", "inspect", image(variant))
        assert found.returncode == 0, (
            f"Build the image first: scripts/build --variant {variant}\n{found.stdout}"
        )
    before = containers()
    yield
    if left := containers() - before:
        docker("rm", "--force", "--volumes", *left)


@pytest.fixture
def network() -> Iterator[str]:
    name = f"smxgb-test-{uuid.uuid4().hex[:8]}"
    made = docker("network", "create", name)
    assert made.returncode == 0, made.stdout
    yield name
    docker("network", "rm", name)


@pytest.fixture
def train(tmp_path: Path) -> Train:
    def run(
        *command: str, variant: Variant = "cpu", options: tuple[str, ...] = (), owner: int = 0, **tree: Any
    ) -> Outcome:
        base = write_opt_ml(tmp_path / "ml", **tree)
        if owner:
            for path in (base, *base.rglob("*")):
                os.chown(path, owner, owner)
        return start(base, *command, variant=variant, options=options).outcome()

    return run


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    """Return 2,000 rows: the label, which two of the four features explain but for a little noise, first."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(2000, 4)).astype("float32")
    label = 3 * features[:, 0] - 2 * features[:, 1] + rng.normal(scale=0.1, size=2000)
    return pd.DataFrame({"y": label.astype("float32"), **{f"x{i}": features[:, i] for i in range(4)}})
