"""Train on one CPU instance of SageMaker, with the SageMaker Python SDK 3 (pip install sagemaker-train).

Below the prefix are train/ and validation/ with CSV files whose first column is the label, 0 or 1:

scripts/make_dataset s3://BUCKET/PREFIX/train --files 10 --megabytes 100
scripts/make_dataset s3://BUCKET/PREFIX/validation --files 2 --megabytes 100 --first-part 10
python examples/model_trainer.py --image URI --role ARN --data s3://BUCKET/PREFIX --output s3://BUCKET/models

Without an AWS account, on this machine: --local FOLDER, with --data a folder and no --role and --output.
"""

import argparse
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--image", required=True, help="as scripts/push printed it")
parser.add_argument("--role", default="arn:aws:iam::111111111111:role/none-is-needed-here")
parser.add_argument("--data", required=True)
parser.add_argument("--output")
parser.add_argument("--instance-type", default="ml.m5.4xlarge")
parser.add_argument(
    "--local",
    type=Path,
    metavar="FOLDER",
    help="an empty folder for the job, which docker-compose runs here with the `docker` of the PATH",
)
options = parser.parse_args()

from sagemaker.core.shapes import OutputDataConfig, StoppingCondition
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData
from sagemaker.train.model_trainer import Mode

data = options.data
if options.local:
    data = Path(data).resolve()  # Docker takes whole paths only
    where = {
        "training_mode": Mode.LOCAL_CONTAINER,
        "compute": Compute(instance_type="local_cpu", instance_count=1),
        "local_container_root": str(options.local.resolve()),
    }
else:
    where = {
        "training_mode": Mode.SAGEMAKER_TRAINING_JOB,
        "compute": Compute(instance_type=options.instance_type, instance_count=1, volume_size_in_gb=100),
        "output_data_config": OutputDataConfig(s3_output_path=options.output),
        "stopping_condition": StoppingCondition(max_runtime_in_seconds=3600),
    }
trainer = ModelTrainer(
    training_image=options.image,
    role=options.role,
    base_job_name="smxgb",
    hyperparameters={
        "objective": "binary:logistic",
        "eval_metric": "auc,logloss",
        "num_round": 200,
        "early_stopping_rounds": 10,
        "eta": 0.2,
        "max_depth": 6,
    },
    **where,
)
trainer.train(
    input_data_config=[
        InputData(channel_name=channel, data_source=f"{data}/{channel}", content_type="text/csv")
        for channel in ("train", "validation")
    ],
    wait=True,
)
