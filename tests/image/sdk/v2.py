"""Run a job with the SageMaker Python SDK, version 2, in local mode: python v2.py JOB.json.

JOB.json: image, hosts (how many), hyperparameters, channels (name -> [folder, content type]), output and
work (empty folders).
"""

import json
import sys
from pathlib import Path

from sagemaker.estimator import Estimator
from sagemaker.inputs import TrainingInput
from sagemaker.local import LocalSession

job = json.loads(Path(sys.argv[1]).read_text())
session = LocalSession()
session.config = {
    "local": {
        "local_code": True,
        "region_name": "us-east-1",
        "container_root": job["work"],
        "container_config": {"shm_size": "1g"},
    }
}
estimator = Estimator(
    image_uri=job["image"],
    role="arn:aws:iam::111111111111:role/training",
    instance_type="local",
    instance_count=job["hosts"],
    sagemaker_session=session,
    output_path=f"file://{job['output']}",
    hyperparameters=job["hyperparameters"],
)
estimator.fit(
    {
        name: TrainingInput(f"file://{folder}", content_type=content_type)
        for name, (folder, content_type) in job["channels"].items()
    }
)
