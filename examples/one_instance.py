"""Train on one CPU instance of SageMaker, with the SageMaker Python SDK 2 (pip install "sagemaker<3").

Below the prefix are train/ and validation/ with CSV files whose first column is the label, 0 or 1:

scripts/make_dataset s3://BUCKET/PREFIX/train --files 10 --megabytes 100
scripts/make_dataset s3://BUCKET/PREFIX/validation --files 2 --megabytes 100 --first-part 10
python examples/one_instance.py --image URI --role ARN --data s3://BUCKET/PREFIX --output s3://BUCKET/models
"""

import argparse

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--image", required=True, help="as scripts/push printed it")
parser.add_argument("--role", required=True, help="a role that SageMaker may take on")
parser.add_argument("--data", required=True)
parser.add_argument("--output", required=True)
parser.add_argument("--instance-type", default="ml.m5.4xlarge")
options = parser.parse_args()

from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput

estimator = Estimator(
    image_uri=options.image,
    role=options.role,
    instance_count=1,
    instance_type=options.instance_type,
    output_path=options.output,
    max_run=3600,
    hyperparameters={
        "objective": "binary:logistic",
        "eval_metric": "auc,logloss",
        "num_round": 200,
        "early_stopping_rounds": 10,
        "eta": 0.2,
        "max_depth": 6,
    },
    metric_definitions=[{"Name": "validation:auc", "Regex": r".*\[[0-9]+\].*validation-auc:(-?[0-9.]+)"}],
)
estimator.fit(
    {
        channel: TrainingInput(f"{options.data}/{channel}", content_type="text/csv")
        for channel in ("train", "validation")
    }
)
print("Model:", estimator.model_data)
