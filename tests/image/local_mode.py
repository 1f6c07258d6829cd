"""Local mode of the SageMaker Python SDKs: a user's program, and the archives that it leaves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.image.containers import image
from tests.image.environments import python_of
from tests.opt_ml import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from tests.opt_ml import Source

type Sdk = Literal["v2", "v3"]

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


def run_with(
    sdk: Sdk,
    folder: Path,
    hyperparameters: Mapping[str, object],
    channels: Mapping[str, Source],
    *,
    hosts: int = 1,
    serve: pd.DataFrame | None = None,
) -> Ran:
    """Write the channels, run a program of the SDK's on them, and open what it left.

    With `serve`, rows to predict, the program deploys the model too, and writes its answers to served.json.
    """
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
    if serve is not None:
        (folder / "rows").mkdir()
        serve.to_csv(folder / "rows" / "rows.csv", index=False, header=False)
        job["serve"] = str(folder / "rows" / "rows.csv")
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
