"""Jobs started as a user starts them, with both SageMaker Python SDKs, in local mode."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from tests.image.containers import NOTEBOOK, image, learned
from tests.image.environments import python_of
from tests.opt_ml import Outcome, Source, csv, parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

type Sdk = Literal["v2", "v3"]

SETTINGS = {"objective": "reg:squarederror", "num_round": 20, "max_depth": 4}
QUIET = """
SchemaVersion: '1.0'
SageMaker:
  PythonSDK:
    Modules:
      TelemetryOptOut: true
"""


@dataclass(frozen=True)
class Ran:
    """How the user's program ended, and the files of every archive that it left, by name."""

    code: int
    log: str
    archives: dict[str, dict[str, bytes]]

    def outcome(self) -> Outcome:
        models = self.archives["model.tar.gz"]
        return Outcome(self.code, self.log, None, models, {})


@pytest.fixture(params=["v2", "v3"])
def sdk(request: pytest.FixtureRequest) -> Sdk:
    version: Sdk = request.param
    return version


def run_with(
    sdk: Sdk,
    folder: Path,
    hyperparameters: Mapping[str, object],
    channels: Mapping[str, Source],
    *,
    hosts: int = 1,
) -> Ran:
    """Write the channels, run a program of the SDK's on them, and open what it left."""
    for name, source in channels.items():
        (folder / "data" / name).mkdir(parents=True)
        for path, content in source.files.items():
            (folder / "data" / name / path).write_bytes(content)
    for made in ("work", "output", "docker"):
        (folder / made).mkdir()
    (folder / "quiet.yaml").write_text(QUIET)
    job = {
        "image": image("cpu"),
        "hosts": hosts,
        "hyperparameters": dict(hyperparameters),
        "channels": {name: [str(folder / "data" / name), channels[name].content_type] for name in channels},
        "work": str(folder / "work"),
        "output": str(folder / "output"),
    }
    (folder / "job.json").write_text(json.dumps(job))
    done = subprocess.run(
        [python_of(f"sdk-{sdk}"), Path(__file__).parent / "sdk" / f"{sdk}.py", folder / "job.json"],
        env={
            **os.environ,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "DOCKER_CONFIG": str(folder / "docker"),
            "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
            "SAGEMAKER_USER_CONFIG_OVERRIDE": str(folder / "quiet.yaml"),
        },
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=180,
        check=False,
    )
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", done.stdout.decode()).replace("\r\n", "\n")
    return Ran(done.returncode, plain, {path.name: unpack(path) for path in folder.rglob("*.tar.gz")})


def unpack(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {
            os.path.normpath(member.name): content.read()
            for member in tar.getmembers()
            if (content := tar.extractfile(member)) is not None
        }


@pytest.mark.parametrize(("write", "settings"), [(csv, NOTEBOOK), (parquet, SETTINGS)])
def test_the_sdk_gets_a_model_that_predicts(
    sdk: Sdk,
    write: Callable[[pd.DataFrame], Source],
    settings: dict[str, object],
    tmp_path: Path,
    table: pd.DataFrame,
) -> None:
    ran = run_with(sdk, tmp_path, settings, {"train": write(table), "validation": write(table[:500])})
    assert ran.code == 0, ran.log
    assert list(ran.archives["model.tar.gz"]) == ["xgboost-model"]
    assert learned(ran.outcome(), table)
    assert re.search(r"\[19\]\ttrain-rmse:[\d.]+\tvalidation-rmse:[\d.]+", ran.log), ran.log


def test_the_sdk_shows_the_reason_of_a_failure(sdk: Sdk, tmp_path: Path, table: pd.DataFrame) -> None:
    ran = run_with(sdk, tmp_path, {**SETTINGS, "max_dept": 3}, {"train": csv(table)})
    assert ran.code != 0
    assert "UserError: " in ran.log
    assert "max_depth" in ran.log
    assert not ran.archives.get("model.tar.gz")
