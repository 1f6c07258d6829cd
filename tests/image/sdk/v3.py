"""Run a job with the SageMaker Python SDK, version 3, in local container mode: python v3.py JOB.json.

JOB.json: image, hosts (how many), hyperparameters, channels (name -> [folder, content type]), work (an
empty folder).
"""

import json
import sys
from pathlib import Path

from sagemaker.train import ModelTrainer
from sagemaker.train.configs import Compute, InputData
from sagemaker.train.model_trainer import Mode

job = json.loads(Path(sys.argv[1]).read_text())
trainer = ModelTrainer(
    training_image=job["image"],
    training_mode=Mode.LOCAL_CONTAINER,
    role="arn:aws:iam::111111111111:role/training",
    compute=Compute(instance_type="local_cpu", instance_count=job["hosts"]),
    hyperparameters=job["hyperparameters"],
    local_container_root=job["work"],
)
trainer.train(
    input_data_config=[
        InputData(channel_name=name, data_source=folder, content_type=content_type)
        for name, (folder, content_type) in job["channels"].items()
    ],
    wait=True,
)
