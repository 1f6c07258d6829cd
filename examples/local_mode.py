"""Train on this machine in SageMaker's local mode: Docker runs the job, and no AWS account is needed.

python3 -m venv .cache/sdk && .cache/sdk/bin/pip install "sagemaker[local]<3"
.cache/sdk/bin/python examples/local_mode.py --image smxgb:cpu --data FOLDER --hyperparameters FILE

Needs docker-compose or Docker's compose plugin; the SDK takes the `docker` of the PATH. The data folder has
train/ and validation/ with CSV files whose first column is the label; scripts/quickstart makes such a folder
in build/quickstart/input/data, which is what is trained on if nothing else is given.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tarfile
from pathlib import Path

FLIGHTS = {
    "objective": "reg:absoluteerror",
    "num_round": 60,
    "max_depth": 6,
    "eta": 0.2,
    "early_stopping_rounds": 5,
    "invalid_label": "drop",
}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--image", default="smxgb:cpu")
parser.add_argument("--data", type=Path, default=Path("build/quickstart/input/data"))
parser.add_argument(
    "--hyperparameters",
    type=Path,
    metavar="FILE",
    help="JSON; absent: those of the flights, which fit no other data",
)
parser.add_argument("--output", type=Path, default=Path("build/local_mode"))
parser.add_argument("--instances", type=int, default=1, help="so many containers train together")
options = parser.parse_args()
if not (options.data / "train").is_dir():
    parser.error(f"{options.data} has no folder train: give one that has, or run scripts/quickstart first")
if options.hyperparameters and not options.hyperparameters.is_file():
    parser.error(f"there is no file {options.hyperparameters}")
data, output = options.data.resolve(), options.output.resolve()
output.mkdir(parents=True, exist_ok=True)

# The SDK asks for a region and keys even where it talks to nobody. They must be there before it is imported.
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ.setdefault("AWS_ACCESS_KEY_ID", "none")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "none")
os.environ.setdefault("SAGEMAKER_SUPPRESS_V2_WARNING", "1")

from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput
from sagemaker.local import LocalSession


def remove_containers() -> None:
    """Remove this program's containers, which docker-compose keeps after they have ended."""
    label = '{{.Label "com.docker.compose.project.working_dir"}}'
    command = ["docker", "ps", "--all", "--filter", "status=exited", "--format", f"{{{{.ID}}}} {label}"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.partition(" ") for line in listed.splitlines()]
    left = [identifier for identifier, _, folder in rows if Path(folder).is_relative_to(output)]
    if left:
        subprocess.run(["docker", "rm", *left], stdout=subprocess.DEVNULL, check=True)


# Without the internet the SDK's telemetry would fill the log with its failures.
quiet = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}
session = LocalSession(sagemaker_config=quiet)
session.config = {
    "local": {
        "local_code": True,
        "region_name": "us-east-1",
        "container_root": str(output),
        "container_config": {"shm_size": "1g"},
    }
}
estimator = Estimator(
    image_uri=options.image,
    role="arn:aws:iam::111111111111:role/none-is-needed-here",
    instance_count=options.instances,
    instance_type="local",
    sagemaker_session=session,
    output_path=f"file://{output}",
    hyperparameters=json.loads(options.hyperparameters.read_text()) if options.hyperparameters else FLIGHTS,
)
channels = [name for name in ("train", "validation") if (data / name).is_dir()]
try:
    estimator.fit(
        {name: TrainingInput(f"file://{data / name}", content_type="text/csv") for name in channels}
    )
finally:
    remove_containers()
with tarfile.open(output / "model.tar.gz") as archive:
    archive.extractall(output, filter="data")
print("Model:", output / "xgboost-model")
