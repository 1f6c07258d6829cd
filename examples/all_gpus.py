"""Train on all GPUs of one or more instances, with the settings that AWS announced for its own image.

Needs the SageMaker Python SDK 2 (pip install "sagemaker<3") and the image's gpu variant. Data:

scripts/make_dataset s3://BUCKET/PREFIX/train --format parquet --files 64 --megabytes 100
scripts/make_dataset s3://BUCKET/PREFIX/validation --format parquet --files 8 --megabytes 100 --first-part 64
python examples/all_gpus.py --image URI --role ARN --data s3://BUCKET/PREFIX --output s3://BUCKET/models
"""

import argparse

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--image", required=True, help="the gpu variant, as scripts/push printed it")
parser.add_argument("--role", required=True, help="a role that SageMaker may take on")
parser.add_argument("--data", required=True, help="where train/ and validation/ hold Parquet files")
parser.add_argument("--output", required=True)
parser.add_argument("--instances", type=int, default=1)
parser.add_argument("--instance-type", default="ml.g4dn.12xlarge")
parser.add_argument("--rounds", type=int, default=500)
parser.add_argument("--rehearse", action="store_true", help="on instances without GPUs, with CPU workers")
options = parser.parse_args()

from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput

hyperparameters = {
    "objective": "reg:squarederror",
    "num_round": options.rounds,
    "tree_method": "gpu_hist",
    "eval_metric": "rmse",
    "use_dask_gpu_training": "true",
}
if options.rehearse:
    hyperparameters |= {"tree_method": "hist", "device": "cpu", "workers_per_host": 2}

estimator = Estimator(
    image_uri=options.image,
    role=options.role,
    instance_count=options.instances,
    instance_type=options.instance_type,
    output_path=options.output,
    max_run=7200,
    hyperparameters=hyperparameters,
)
estimator.fit(
    {
        channel: TrainingInput(f"{options.data}/{channel}", content_type="application/x-parquet")
        for channel in ("train", "validation")
    }
)
print("Model:", estimator.model_data)
