"""Train on many CSV files with several instances, each of which streams its own part of the files from S3.

Needs the SageMaker Python SDK 2 (pip install "sagemaker<3"). A set like that of the public 1 TB walk-through:

scripts/make_dataset s3://BUCKET/PREFIX/train --files 10000 --megabytes 104 --copies
python examples/several_hosts.py --image URI --role ARN --data s3://BUCKET/PREFIX/train --output s3://BUCKET/models
"""

import argparse

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--image", required=True, help="as scripts/push printed it")
parser.add_argument("--role", required=True, help="a role that SageMaker may take on")
parser.add_argument("--data", required=True, help="CSV files; the label, 0 or 1, is the first column")
parser.add_argument("--output", required=True)
parser.add_argument("--instances", type=int, default=25)
parser.add_argument("--instance-type", default="ml.m5.24xlarge")
parser.add_argument("--rounds", type=int, default=100)
options = parser.parse_args()

from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput

estimator = Estimator(
    image_uri=options.image,
    role=options.role,
    instance_count=options.instances,
    instance_type=options.instance_type,
    output_path=options.output,
    volume_size=200,  # GB: what FastFile streams is kept there in a compact form
    max_run=24 * 3600,
    hyperparameters={
        "objective": "binary:logistic",
        "num_round": options.rounds,
        "max_depth": 6,
        "eval_metric": "logloss",
    },
)
train = TrainingInput(
    options.data,
    content_type="text/csv",
    distribution="ShardedByS3Key",  # each instance gets its own files
    input_mode="FastFile",  # and reads them as they come, without a download before
)
estimator.fit({"train": train})
print("Model:", estimator.model_data)
