"""Train on this machine in SageMaker's local mode: Docker runs the job, and no AWS account is needed.

python -m venv sdk && sdk/bin/pip install "sagemaker[local]<3"
sdk/bin/python examples/local_mode.py --image smxgb:cpu --data FOLDER --output FOLDER

Needs docker-compose, or Docker's compose plugin. The data folder has train/ and validation/ with CSV files
whose first column is the label; scripts/quickstart makes such a folder in build/quickstart/input/data.
"""

import argparse
import os
import tarfile
from pathlib import Path

# The SDK asks for a region and keys even where it talks to nobody. They must be there before it is imported.
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ.setdefault("AWS_ACCESS_KEY_ID", "none")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "none")

from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput
from sagemaker.local import LocalSession

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--image", default="smxgb:cpu")
parser.add_argument("--data", type=Path, default=Path("build/quickstart/input/data"))
parser.add_argument("--output", type=Path, default=Path("build/local_mode"))
parser.add_argument("--instances", type=int, default=1, help="so many containers train together")
options = parser.parse_args()
data, output = options.data.resolve(), options.output.resolve()
output.mkdir(parents=True, exist_ok=True)

session = LocalSession()
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
    hyperparameters={
        "objective": "reg:absoluteerror",
        "num_round": 60,
        "max_depth": 6,
        "eta": 0.2,
        "early_stopping_rounds": 5,
        "invalid_label": "drop",
    },
)
estimator.fit(
    {
        channel: TrainingInput(f"file://{data / channel}", content_type="text/csv")
        for channel in ("train", "validation")
    }
)
with tarfile.open(output / "model.tar.gz") as archive:
    archive.extractall(output, filter="data")
print("Model:", output / "xgboost-model")
